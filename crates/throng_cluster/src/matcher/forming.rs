//! The matcher: its tickets, and the matches that it forms.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use throng_matchmaking::Ticket;

use super::pool::{PooledMatch, TicketPool};
use super::settings::{ClusterModeSettings, HostLoad, MatcherSettings, MatcherStats};
use crate::ids::NodeRun;
use crate::request::{MatchId, NewMatch, TicketChange, TicketId};

/// A match that is to be written, or is being written.
#[derive(Clone, Debug)]
struct FormingMatch {
    new: NewMatch,
    tickets: BTreeMap<TicketId, Ticket>,
    /// Tickets that a later read lists as waiting: an earlier match of them was aborted, or this match was aborted before the reply to
    /// `FormMatch` arrived.
    reread: BTreeSet<TicketId>,
}

/// The state of the matcher. Used only while the node holds the role.
#[derive(Clone, Debug)]
pub(super) struct Matcher {
    pool: TicketPool,
    requeued: BTreeMap<String, bool>,
    /// The epoch with which the role is held.
    epoch: Option<u64>,
    /// The revision of the last change that was read.
    pub after: u64,
    forming: VecDeque<FormingMatch>,
    /// Counts over all epochs.
    last_nth: u64,
    /// Hosts that the store refused as late during the current search.
    late: BTreeSet<NodeRun>,
    /// Load of new matches that hosts do not report yet: the time until which it counts, the host, and the load.
    given: VecDeque<(u64, NodeRun, u64)>,
    /// The sum of `given` for each host.
    given_sums: BTreeMap<NodeRun, u64>,
}

impl Matcher {
    pub fn new(pool: TicketPool, modes: &[ClusterModeSettings]) -> Self {
        let requeued = modes
            .iter()
            .map(|mode| (mode.mode.name().to_owned(), mode.is_requeued));
        Self {
            pool,
            requeued: requeued.collect(),
            epoch: None,
            after: 0,
            forming: VecDeque::new(),
            last_nth: 0,
            late: BTreeSet::new(),
            given: VecDeque::new(),
            given_sums: BTreeMap::new(),
        }
    }

    pub const fn pool(&self) -> &TicketPool {
        &self.pool
    }

    pub const fn epoch(&self) -> Option<u64> {
        self.epoch
    }

    /// Sets the epoch with which this node holds the role; `None` if another node holds it. Discards all tickets and matches.
    pub fn set_epoch(&mut self, epoch: Option<u64>) {
        self.pool.clear();
        self.forming.clear();
        self.late.clear();
        self.after = 0;
        self.epoch = epoch;
    }

    /// Applies a change that was read. Returns the ticket if it must be cancelled, because it fits no mode or the queue is full.
    pub fn on_change(&mut self, change: &TicketChange) -> Option<TicketId> {
        let id = match change {
            TicketChange::Waits(ticket, _) => ticket.id,
            TicketChange::Gone(id) => *id,
        };
        let forming = self.forming.iter_mut();
        let mut forming = forming.filter(|forming| forming.tickets.contains_key(&id));
        match (change, forming.next()) {
            (TicketChange::Waits(..), Some(forming)) => _ = forming.reread.insert(id),
            (TicketChange::Gone(_), Some(forming)) => _ = forming.reread.remove(&id),
            (TicketChange::Gone(_), None) => self.pool.remove(id),
            (TicketChange::Waits(ticket, since_ms), None) => {
                if !self.pool.knows(id) && self.pool.insert(ticket, *since_ms).is_err() {
                    return Some(id);
                }
            }
        }
        None
    }

    /// Searches for matches at a time of the store, and assigns them to hosts. Returns the tickets whose waiting time is over.
    pub fn find(
        &mut self,
        store_now_ms: u64,
        now_ms: u64,
        hosts: &[HostLoad],
        settings: &MatcherSettings,
    ) -> Vec<TicketId> {
        self.late.clear();
        let is_full = self.forming.len() >= settings.forming_matches_max;
        if hosts.is_empty() || is_full || self.epoch.is_none() {
            return Vec::new();
        }
        let (found, expired) = self.pool.find(store_now_ms);
        for found in found {
            self.form(found, now_ms, hosts, settings);
        }
        expired
    }

    fn form(
        &mut self,
        found: PooledMatch,
        now_ms: u64,
        hosts: &[HostLoad],
        settings: &MatcherSettings,
    ) {
        let sides = found
            .sides
            .each_ref()
            .map(|side| side.iter().map(|(id, _)| *id).collect::<Vec<TicketId>>());
        let mode = self.pool.name(found.mode).to_owned();
        let tickets: BTreeMap<TicketId, Ticket> = found.sides.into_iter().flatten().collect();
        let players = tickets.values().map(|ticket| u64::from(ticket.size)).sum();
        let Some((id, node)) = self.place(players, now_ms, hosts, settings) else {
            for (id, ticket) in tickets {
                self.pool.put_back(id, ticket);
            }
            return;
        };
        let new = NewMatch {
            id,
            is_requeued: self.requeued.get(&mode).copied().unwrap_or(false),
            mode,
            sides: sides.to_vec(),
            node,
        };
        self.forming.push_back(FormingMatch {
            new,
            tickets,
            reread: BTreeSet::new(),
        });
    }

    /// The id of a new match, and the host with the least load, which counts the match from now on. `None` without a host.
    fn place(
        &mut self,
        players: u64,
        now_ms: u64,
        hosts: &[HostLoad],
        settings: &MatcherSettings,
    ) -> Option<(MatchId, NodeRun)> {
        while let Some(&(until_ms, run, added)) = self.given.front()
            && until_ms <= now_ms
        {
            self.given.pop_front();
            if let Some(sum) = self.given_sums.get_mut(&run) {
                *sum -= added;
            }
        }
        self.given_sums.retain(|_, sum| *sum > 0);
        let load = |host: &HostLoad| {
            let given = self.given_sums.get(&host.run).copied();
            u64::from(host.load) + given.unwrap_or(0)
        };
        let usable = hosts.iter().filter(|host| !self.late.contains(&host.run));
        let run = usable.min_by_key(|host| (load(host), host.run))?.run;
        let added = players * u64::from(settings.load_per_player);
        let until_ms = now_ms + settings.load_settle_ms;
        self.given.push_back((until_ms, run, added));
        *self.given_sums.entry(run).or_default() += added;
        self.last_nth += 1;
        let id = MatchId {
            epoch: self.epoch?,
            nth: self.last_nth,
        };
        Some((id, run))
    }

    /// The next match to write.
    pub fn next_match(&self) -> Option<&NewMatch> {
        self.forming.front().map(|forming| &forming.new)
    }

    /// Handles that the next match was written. Returns its node.
    pub fn on_formed(&mut self) -> Option<NodeRun> {
        let forming = self.forming.pop_front()?;
        for (id, ticket) in forming.tickets {
            // If the ticket does belong to this match, the store refuses the next match with it.
            self.put_back_or_remove(id, ticket, forming.reread.contains(&id));
        }
        Some(forming.new.node)
    }

    /// Handles that the next match was not written, because these tickets no longer wait.
    pub fn on_unavailable(&mut self, missing: &[TicketId]) {
        let Some(forming) = self.forming.pop_front() else {
            return;
        };
        for (id, ticket) in forming.tickets {
            let waits = !missing.contains(&id) || forming.reread.contains(&id);
            self.put_back_or_remove(id, ticket, waits);
        }
    }

    fn put_back_or_remove(&mut self, id: TicketId, ticket: Ticket, waits: bool) {
        if waits {
            self.pool.put_back(id, ticket);
        } else {
            self.pool.remove(id);
        }
    }

    /// Assigns the next match to another node, because its node is late. If no other node is left, its tickets wait again.
    pub fn on_host_late(&mut self, now_ms: u64, hosts: &[HostLoad], settings: &MatcherSettings) {
        let Some(mut forming) = self.forming.pop_front() else {
            return;
        };
        self.late.insert(forming.new.node);
        let sizes = forming.tickets.values();
        let players = sizes.map(|ticket| u64::from(ticket.size)).sum();
        match self.place(players, now_ms, hosts, settings) {
            Some((id, node)) => {
                (forming.new.id, forming.new.node) = (id, node);
                self.forming.push_front(forming);
            }
            None => {
                for (id, ticket) in forming.tickets {
                    self.pool.put_back(id, ticket);
                }
            }
        }
    }
}

impl MatcherStats {
    pub(super) const NONE: Self = Self {
        roles_taken: 0,
        formed: 0,
        unavailable: 0,
        host_late: 0,
        rejected: 0,
        unknown_outcomes: 0,
        opened: 0,
        moves: 0,
    };
}

#[cfg(test)]
mod tests {
    use throng_core::ids::PlayerId;
    use throng_matchmaking::MatchModeSettings;

    use super::*;
    use crate::ids::ClusterNodeId;
    use crate::request::{ClusterTicket, TicketHome, TicketMember, TicketRating};

    const RUN: NodeRun = NodeRun {
        node: ClusterNodeId(0),
        run: 1,
    };

    fn waits(nth: u64) -> TicketChange {
        let home = TicketHome {
            node: RUN.node,
            scene: String::new(),
        };
        let member = TicketMember {
            player: PlayerId(nth),
            home,
        };
        let ticket = ClusterTicket {
            id: TicketId { run: RUN, nth },
            mode: "duel".to_owned(),
            members: vec![member],
            rating: TicketRating::default(),
        };
        TicketChange::Waits(ticket, 0)
    }

    /// A matcher that is writing a match of the tickets 1 and 2 on this node.
    fn forming() -> Matcher {
        let modes = [ClusterModeSettings::new(MatchModeSettings::groups(
            "duel", 1,
        ))];
        let mut matcher = Matcher::new(TicketPool::new(&modes).unwrap(), &modes);
        matcher.set_epoch(Some(1));
        for nth in [1, 2] {
            assert_eq!(matcher.on_change(&waits(nth)), None);
        }
        find(&mut matcher);
        assert!(matcher.next_match().is_some() && matcher.pool().waiting() == 0);
        matcher
    }

    fn find(matcher: &mut Matcher) {
        let hosts = [0, 1].map(|node| HostLoad {
            run: NodeRun {
                node: ClusterNodeId(node),
                ..RUN
            },
            load: node,
        });
        let settings = MatcherSettings::default();
        assert!(matcher.find(0, 0, &hosts, &settings).is_empty());
    }

    #[test]
    fn ticket_that_was_read_again_while_it_is_matched_is_kept() {
        for is_formed in [false, true] {
            let mut matcher = forming();
            // The match was formed and aborted before the reply came, or another match was aborted.
            assert_eq!(matcher.on_change(&waits(1)), None);
            if is_formed {
                assert_eq!(matcher.on_formed(), Some(RUN));
            } else {
                matcher.on_unavailable(&[1, 2].map(|nth| TicketId { run: RUN, nth }));
            }
            assert_eq!(matcher.pool().waiting(), 1);
            assert_eq!(matcher.on_change(&waits(2)), None);
            find(&mut matcher);
            assert!(matcher.next_match().is_some());
        }
    }

    #[test]
    fn tickets_that_do_not_wait_are_dropped_and_others_wait_again() {
        let mut matcher = forming();
        matcher.on_unavailable(&[TicketId { run: RUN, nth: 2 }]);
        assert_eq!((matcher.pool().waiting(), matcher.next_match()), (1, None));
        assert_eq!(matcher.on_change(&waits(3)), None);
        find(&mut matcher);
        assert!(matcher.next_match().is_some());
    }

    #[test]
    fn match_of_a_late_host_goes_to_the_next_one_with_a_new_id() {
        let mut matcher = forming();
        let first = matcher.next_match().unwrap().clone();
        assert_eq!(first.node, RUN);
        let other = NodeRun {
            node: ClusterNodeId(1),
            ..RUN
        };
        let hosts = [RUN, other].map(|run| HostLoad { run, load: 0 });
        matcher.on_host_late(0, &hosts, &MatcherSettings::default());
        let second = matcher.next_match().unwrap().clone();
        assert_eq!((second.node, &second.sides), (other, &first.sides));
        assert!(second.id > first.id);
        // No host is left.
        matcher.on_host_late(0, &hosts, &MatcherSettings::default());
        assert_eq!((matcher.pool().waiting(), matcher.next_match()), (2, None));
    }
}
