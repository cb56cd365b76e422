//! Handles replies to requests about matches, and requests without a reply.

use std::collections::{BTreeMap, BTreeSet};

use throng_core::ids::PlayerId;

use super::match_node::{MatchNode, MatchOutput, TicketOutcome, TicketWrite};
use super::requests::{MatchKind, MatchWork};
use crate::node::RequestId;
use crate::request::{ClusterReply, MatchReply, PlayerTravel, RefusedMatch};

impl MatchNode {
    /// Repeats a request whose outcome is unknown, or that was not executed. The first one may still be executed later.
    pub(super) fn on_unknown(&mut self, work: MatchWork) {
        self.stats.unknown_outcomes += 1;
        let kind = work.kind();
        match work {
            MatchWork::Rejoin(players) => self.rejoins.extend(players),
            MatchWork::Travels(_) => self.rejoined.append(&mut self.listed),
            // The matcher may have died with the node.
            MatchWork::Abort => self.has_death = true,
            // It may have the role now, so it reads the role again.
            MatchWork::TakeRole(_) => self.free_epoch = None,
            _ => {}
        }
        self.requests.set_next(kind, 0);
    }

    /// Reports that no reply will arrive and the outcome of the request is unknown. Without this call, the node repeats the request after
    /// the timeout.
    pub fn on_lost_reply(&mut self, id: RequestId) {
        if let Some(work) = self.requests.take(id) {
            self.on_unknown(work);
        }
    }

    /// Handles the reply to a request.
    pub fn on_reply(
        &mut self,
        now_ms: u64,
        id: RequestId,
        reply: ClusterReply,
    ) -> Vec<MatchOutput> {
        let Some(work) = self.requests.take(id) else {
            return Vec::new();
        };
        let reply = match reply {
            // A node that is only late may be alive again after its next heartbeat, so nothing is given up yet. If the run has ended,
            // `poll` discards everything.
            ClusterReply::Match(reply) if reply != MatchReply::Refused(RefusedMatch::RunEnded) => {
                reply
            }
            _ => {
                let kind = work.kind();
                self.on_unknown(work);
                self.requests
                    .set_next(kind, now_ms + self.settings.retry_interval_ms);
                return Vec::new();
            }
        };
        match work {
            MatchWork::Ticket => self.on_ticket(&reply),
            MatchWork::ReadRole => self.on_role(now_ms, &reply),
            MatchWork::TakeRole(epoch) => self.on_taken(now_ms, epoch, &reply),
            MatchWork::RenewRole => self.on_renewed(now_ms, &reply),
            MatchWork::Read => self.on_tickets(now_ms, reply),
            MatchWork::Form => self.on_formed(now_ms, &reply),
            MatchWork::Abort => {
                if self.matcher.epoch().is_none() {
                    // After a death: players of its matches are here, and go home.
                    self.requests.set_next(MatchKind::Travels, now_ms);
                }
                Vec::new()
            }
            MatchWork::EndTravels => Vec::new(),
            MatchWork::Rejoin(players) => {
                self.rejoined.extend(players);
                self.requests.set_next(MatchKind::Travels, now_ms);
                Vec::new()
            }
            MatchWork::Matches => self.on_matches(now_ms, reply),
            MatchWork::Instance => self.on_instance(now_ms, &reply),
            MatchWork::Travels(after) => self.on_travels(after, reply),
        }
    }

    fn on_ticket(&mut self, reply: &MatchReply) -> Vec<MatchOutput> {
        let (id, outcome) = match (self.tickets.pop_front(), reply) {
            (Some(TicketWrite::Add(ticket)), MatchReply::Refused(refused)) => {
                (ticket.id, TicketOutcome::Refused(*refused))
            }
            (Some(TicketWrite::Add(ticket)), _) => (ticket.id, TicketOutcome::Added),
            (Some(TicketWrite::Cancel(id)), MatchReply::Refused(RefusedMatch::InMatch)) => {
                (id, TicketOutcome::InMatch)
            }
            (Some(TicketWrite::Cancel(id)), MatchReply::Done) => (id, TicketOutcome::Cancelled),
            _ => return Vec::new(),
        };
        vec![MatchOutput::Ticket(id, outcome)]
    }

    fn on_role(&mut self, now_ms: u64, reply: &MatchReply) -> Vec<MatchOutput> {
        let &MatchReply::Role(owner, epoch, is_held) = reply else {
            return Vec::new();
        };
        if is_held && owner.is_some() && owner == self.run {
            // An earlier request took the role; its reply was lost.
            self.become_matcher(now_ms, epoch);
        } else if is_held {
            let next_ms = now_ms + self.settings.role_interval_ms;
            self.requests.set_next(MatchKind::Role, next_ms);
        } else {
            self.free_epoch = Some(epoch);
        }
        Vec::new()
    }

    fn on_taken(&mut self, now_ms: u64, epoch: u64, reply: &MatchReply) -> Vec<MatchOutput> {
        if *reply == MatchReply::Done {
            self.become_matcher(now_ms, epoch);
        } else {
            let next_ms = now_ms + self.settings.retry_interval_ms;
            self.requests.set_next(MatchKind::Role, next_ms);
        }
        Vec::new()
    }

    fn become_matcher(&mut self, now_ms: u64, epoch: u64) {
        self.stats.roles_taken += 1;
        self.matcher.set_epoch(Some(epoch));
        self.requests.set_next(MatchKind::Read, now_ms);
        let next_ms = now_ms + self.settings.renew_interval_ms;
        self.requests.set_next(MatchKind::Role, next_ms);
    }

    fn on_renewed(&mut self, now_ms: u64, reply: &MatchReply) -> Vec<MatchOutput> {
        if *reply == MatchReply::Done {
            let next_ms = now_ms + self.settings.renew_interval_ms;
            self.requests.set_next(MatchKind::Role, next_ms);
        } else {
            self.lose_role(now_ms);
        }
        Vec::new()
    }

    /// Another node has the role.
    fn lose_role(&mut self, now_ms: u64) {
        self.matcher.set_epoch(None);
        for kind in [
            MatchKind::Role,
            MatchKind::Read,
            MatchKind::Form,
            MatchKind::Abort,
        ] {
            self.requests.cancel(kind);
            self.requests.set_next(kind, now_ms);
        }
        self.tickets
            .retain(|write| !matches!(write, TicketWrite::Reject(_)));
        self.requests.cancel(MatchKind::Ticket);
    }

    fn on_tickets(&mut self, now_ms: u64, reply: MatchReply) -> Vec<MatchOutput> {
        let MatchReply::Tickets {
            changes,
            revision,
            now_ms: store_now_ms,
        } = reply
        else {
            self.lose_role(now_ms);
            return Vec::new();
        };
        let mut rejected = Vec::new();
        for change in &changes {
            rejected.extend(self.matcher.on_change(change));
        }
        self.matcher.after = revision;
        if changes.len() >= self.settings.read_tickets_max.max(1) {
            self.requests.set_next(MatchKind::Read, now_ms);
        } else {
            let (hosts, settings) = (&self.hosts, &self.settings);
            let expired = self.matcher.find(store_now_ms, now_ms, hosts, settings);
            rejected.extend(expired);
        }
        self.stats.rejected += rejected.len() as u64;
        let rejected = rejected.into_iter().map(TicketWrite::Reject);
        self.tickets.extend(rejected);
        Vec::new()
    }

    fn on_formed(&mut self, now_ms: u64, reply: &MatchReply) -> Vec<MatchOutput> {
        match reply {
            MatchReply::Done => {
                self.stats.formed += 1;
                let node = self.matcher.on_formed();
                let own = self.run.map(|run| run.node);
                match node.filter(|node| Some(node.node) != own) {
                    Some(node) => return vec![MatchOutput::Wake(node.node)],
                    None => self.requests.set_next(MatchKind::Matches, now_ms),
                }
            }
            MatchReply::Unavailable(missing) => {
                self.stats.unavailable += 1;
                self.matcher.on_unavailable(missing);
            }
            MatchReply::Refused(RefusedMatch::HostLate) => {
                self.stats.host_late += 1;
                let (hosts, settings) = (&self.hosts, &self.settings);
                self.matcher.on_host_late(now_ms, hosts, settings);
            }
            _ => self.lose_role(now_ms),
        }
        Vec::new()
    }

    fn on_matches(&mut self, now_ms: u64, reply: MatchReply) -> Vec<MatchOutput> {
        let MatchReply::Matches(entries) = reply else {
            return Vec::new();
        };
        let new = self.instances.on_list(now_ms, entries);
        self.stats.opened += new.len() as u64;
        new.into_iter().map(MatchOutput::Open).collect()
    }

    fn on_instance(&mut self, now_ms: u64, reply: &MatchReply) -> Vec<MatchOutput> {
        // Longer than the reply to `ReadMatches` can take.
        let known_until_ms = now_ms + 4 * self.settings.request_timeout_ms;
        if *reply == MatchReply::Done {
            if self.instances.on_written(known_until_ms).is_some() {
                self.requests.set_next(MatchKind::Travels, now_ms);
            }
            return Vec::new();
        }
        let over = self.instances.on_refused(known_until_ms);
        over.into_iter().map(MatchOutput::Close).collect()
    }

    /// Handles a part of the list of travelling players. The next part begins after it, or at the lowest id if this was the last one.
    fn on_travels(&mut self, after: Option<PlayerId>, reply: MatchReply) -> Vec<MatchOutput> {
        let listed = std::mem::take(&mut self.listed);
        let MatchReply::Travels(travels) = reply else {
            self.rejoined.extend(listed);
            return Vec::new();
        };
        let is_part = travels.len() >= self.settings.read_travels_max.max(1);
        self.travels_after = travels.last().filter(|_| is_part).map(|last| last.player);
        let last = self.travels_after.unwrap_or(PlayerId(u64::MAX));
        let is_read = |player: PlayerId| after < Some(player) && player <= last;
        let travelling: BTreeSet<PlayerId> = travels.iter().map(|travel| travel.player).collect();
        let (read, rest): (Vec<_>, Vec<_>) = listed.iter().partition(|player| is_read(**player));
        self.rejoined.extend(rest);
        let none = read
            .into_iter()
            .filter(|player| !travelling.contains(player));
        let mut outputs: Vec<MatchOutput> = none.map(MatchOutput::NoTravel).collect();
        let mut arrived = BTreeMap::new();
        for travel in travels {
            let PlayerTravel { player, goal, to } = &travel;
            if to.is_some() {
                self.stats.moves += 1;
                outputs.push(MatchOutput::Move(travel));
                continue;
            }
            if self.arrived.get(player) != Some(goal) {
                outputs.push(MatchOutput::Arrived(*player, goal.clone()));
            }
            arrived.insert(*player, travel.goal);
        }
        // The store has recorded the arrival of players that it does not list.
        self.arrived.retain(|player, _| !is_read(*player));
        self.arrived.append(&mut arrived);
        outputs
    }
}

#[cfg(test)]
mod tests {
    use throng_matchmaking::MatchModeSettings;

    use super::*;
    use crate::ids::{ClusterNodeId, NodeRun};
    use crate::matcher::{ClusterModeSettings, HostLoad, MatcherSettings};
    use crate::request::{
        ClusterRequest, MatchId, MatchRequest, MatchState, TicketHome, TicketMember, TicketRating,
        TravelGoal,
    };
    use crate::rows::ClusterRows;

    /// A node, and the rows that refuse some of its requests because it is late.
    struct LateRig {
        rows: ClusterRows,
        run: NodeRun,
        node: MatchNode,
        now_ms: u64,
        opened: Vec<MatchId>,
        closed: Vec<MatchId>,
        tickets: Vec<TicketOutcome>,
    }

    impl LateRig {
        fn new() -> Self {
            let mut rows = ClusterRows::default();
            let name = "n1".to_owned();
            let reply = rows.execute(ClusterRequest::StartRun { name }, 0);
            let ClusterReply::Started(run) = reply else {
                panic!("{reply:?}");
            };
            let modes = [ClusterModeSettings::new(MatchModeSettings::groups(
                "duel", 1,
            ))];
            Self {
                rows,
                run,
                node: MatchNode::new(&modes, MatcherSettings::default()).unwrap(),
                now_ms: 0,
                opened: Vec::new(),
                closed: Vec::new(),
                tickets: Vec::new(),
            }
        }

        /// Lets the node work for half a second. The first request of this kind is refused.
        fn step(&mut self, is_refused: impl Fn(&MatchRequest) -> bool) {
            let mut refused = 0;
            let until_ms = self.now_ms + 500;
            while self.now_ms < until_ms {
                self.now_ms += 10;
                let heartbeat = ClusterRequest::Heartbeat {
                    run: self.run,
                    load: 0,
                };
                self.rows.execute(heartbeat, self.now_ms);
                let hosts = [HostLoad {
                    run: self.run,
                    load: 0,
                }];
                let mut outputs = self.node.poll(self.now_ms, Some(self.run), &hosts);
                while let Some(output) = outputs.pop() {
                    match output {
                        MatchOutput::Store(id, request) => {
                            let reply = if refused == 0 && is_refused(&request) {
                                refused += 1;
                                ClusterReply::Match(MatchReply::Refused(RefusedMatch::RunEnded))
                            } else {
                                self.rows
                                    .execute(ClusterRequest::Match(request), self.now_ms)
                            };
                            outputs.extend(self.node.on_reply(self.now_ms, id, reply));
                        }
                        MatchOutput::Open(entry) => self.opened.push(entry.id),
                        MatchOutput::Close(id) => self.closed.push(id),
                        MatchOutput::Ticket(_, outcome) => self.tickets.push(outcome),
                        _ => {}
                    }
                }
            }
            assert_eq!(refused, 1);
        }

        fn state(&self, id: MatchId) -> Option<MatchState> {
            self.rows.match_state(id).map(|(state, _)| state)
        }
    }

    #[test]
    fn requests_of_a_late_node_are_repeated_until_its_run_ends() {
        let mut rig = LateRig::new();
        rig.step(|request| matches!(request, MatchRequest::TakeRole { .. }));
        for player in [PlayerId(1), PlayerId(2)] {
            let home = TicketHome {
                node: rig.run.node,
                scene: String::new(),
            };
            let members = vec![TicketMember { player, home }];
            let added = rig
                .node
                .add_ticket("duel", members, TicketRating::default());
            assert!(added.is_ok());
        }
        rig.step(|request| matches!(request, MatchRequest::AddTicket { .. }));
        assert_eq!(rig.tickets, [TicketOutcome::Added; 2]);
        rig.step(|request| matches!(request, MatchRequest::RenewRole { .. }));
        assert_eq!(rig.node.stats().roles_taken, 1);
        let [id] = rig.opened[..] else {
            panic!("{:?}", rig.opened);
        };
        assert!(rig.node.match_opened(id));
        rig.step(|request| matches!(request, MatchRequest::MatchReady { .. }));
        assert_eq!(rig.state(id), Some(MatchState::Ready));
        assert!(rig.node.end_match(id, vec![1]));
        rig.step(|request| matches!(request, MatchRequest::EndMatch { .. }));
        assert_eq!(rig.state(id), Some(MatchState::Ended));
        assert_eq!((rig.opened.len(), rig.closed.len()), (1, 0));
    }

    /// The store lists players in the order of their ids.
    fn travels_after(
        travels: &[PlayerTravel],
        after: Option<PlayerId>,
        players_max: usize,
    ) -> MatchReply {
        let later = travels.iter().filter(|travel| Some(travel.player) > after);
        MatchReply::Travels(later.take(players_max).cloned().collect())
    }

    #[test]
    fn failing_hand_offs_do_not_hide_other_travellers() {
        let settings = MatcherSettings {
            read_travels_max: 2,
            ..MatcherSettings::default()
        };
        let run = NodeRun {
            node: ClusterNodeId(0),
            run: 1,
        };
        let mut node = MatchNode::new(&[], settings).unwrap();
        // The hand-offs of all but two fail for ever, and the rows do not change.
        let ids = [0, 1, 2, 3, 5, 1 << 63, u64::MAX].map(PlayerId);
        let travels = ids.map(|player| PlayerTravel {
            player,
            goal: TravelGoal::Match(MatchId { epoch: 1, nth: 1 }),
            to: (![3, u64::MAX].contains(&player.0)).then_some(run),
        });
        let (mut moved, mut arrived) = (Vec::new(), Vec::new());
        let mut reported = Vec::new();
        for nth in 0..9 {
            let mut outputs = node.poll(nth * 1_000, Some(run), &[]);
            while let Some(output) = outputs.pop() {
                match output {
                    MatchOutput::Store(
                        id,
                        MatchRequest::ReadTravels {
                            after, players_max, ..
                        },
                    ) => {
                        let reply = travels_after(&travels, after, players_max);
                        let reply = ClusterReply::Match(reply);
                        outputs.extend(node.on_reply(nth * 1_000, id, reply));
                    }
                    MatchOutput::Store(id, MatchRequest::EndTravels { arrived, .. }) => {
                        reported = arrived;
                        let reply = ClusterReply::Match(MatchReply::Done);
                        outputs.extend(node.on_reply(nth * 1_000, id, reply));
                    }
                    MatchOutput::Move(travel) => moved.push(travel.player.0),
                    MatchOutput::Arrived(player, _) => arrived.push(player.0),
                    _ => {}
                }
            }
        }
        moved.sort_unstable();
        // Seven players are four parts, and nine polls are two rounds and a part. The first part contains the players 0 and 1.
        assert_eq!(moved, [0, 0, 0, 1, 1, 1, 2, 2, 5, 5, 1 << 63, 1 << 63]);
        // Each is reported once to the game, and to the store until it is no longer listed.
        assert_eq!(arrived, [3, u64::MAX]);
        let played = Some(MatchId { epoch: 1, nth: 1 });
        let both = [3, u64::MAX].map(|player| (PlayerId(player), played));
        assert_eq!(reported, both);
    }

    #[test]
    fn death_of_a_node_makes_another_one_abort_its_matches_once() {
        let run = NodeRun {
            node: ClusterNodeId(1),
            run: 1,
        };
        let mut node = MatchNode::new(&[], MatcherSettings::default()).unwrap();
        // Another node is the matcher.
        let poll = |node: &mut MatchNode, now_ms| {
            let (mut aborts, mut travels) = (0, 0);
            let mut outputs = node.poll(now_ms, Some(run), &[]);
            while let Some(output) = outputs.pop() {
                let MatchOutput::Store(id, request) = output else {
                    continue;
                };
                aborts += u32::from(matches!(request, MatchRequest::AbortLate { .. }));
                travels += u32::from(matches!(request, MatchRequest::ReadTravels { .. }));
                let reply = match request {
                    MatchRequest::ReadRole { .. } => MatchReply::Role(None, 1, true),
                    MatchRequest::ReadTravels { .. } => MatchReply::Travels(Vec::new()),
                    _ => MatchReply::Done,
                };
                outputs.extend(node.on_reply(now_ms, id, ClusterReply::Match(reply)));
            }
            (aborts, travels)
        };
        assert_eq!(poll(&mut node, 0), (0, 1));
        assert_eq!(poll(&mut node, 10), (0, 0));
        node.on_node_death();
        assert_eq!(poll(&mut node, 20), (1, 0));
        // The players that go home now are listed at once.
        assert_eq!(poll(&mut node, 30), (0, 1));
        assert_eq!(poll(&mut node, 500), (0, 1));
    }

    #[test]
    fn abort_after_a_death_is_repeated_if_its_outcome_is_unknown() {
        let mut node = MatchNode::new(&[], MatcherSettings::default()).unwrap();
        let run = NodeRun {
            node: ClusterNodeId(1),
            run: 1,
        };
        let abort = |node: &mut MatchNode, now_ms| {
            let outputs = node.poll(now_ms, Some(run), &[]).into_iter();
            let mut aborts = outputs.filter_map(|output| match output {
                MatchOutput::Store(id, MatchRequest::AbortLate { .. }) => Some(id),
                _ => None,
            });
            aborts.next()
        };
        assert_eq!(abort(&mut node, 0), None);
        node.on_node_death();
        let lost = abort(&mut node, 10).unwrap();
        node.on_lost_reply(lost);
        let second = abort(&mut node, 20).unwrap();
        node.on_reply(30, second, ClusterReply::Match(MatchReply::Done));
        assert_eq!(abort(&mut node, 400), None);
    }

    #[test]
    fn returning_players_do_not_wait_for_others_that_arrive() {
        let run = NodeRun {
            node: ClusterNodeId(1),
            run: 1,
        };
        let mut node = MatchNode::new(&[], MatcherSettings::default()).unwrap();
        // The store lists the player 1 as arrived again and again, and its node reports that again and again.
        let arriving = PlayerTravel {
            player: PlayerId(1),
            goal: TravelGoal::Match(MatchId { epoch: 1, nth: 1 }),
            to: None,
        };
        let mut rejoined = Vec::new();
        for now_ms in (0..2_000).step_by(10) {
            if now_ms == 1_000 {
                node.rejoin(PlayerId(1));
                node.rejoin(PlayerId(2));
            }
            let mut outputs = node.poll(now_ms, Some(run), &[]);
            while let Some(output) = outputs.pop() {
                let MatchOutput::Store(id, request) = output else {
                    continue;
                };
                let reply = match request {
                    MatchRequest::ReadTravels { .. } => MatchReply::Travels(vec![arriving.clone()]),
                    MatchRequest::Rejoin { players, .. } => {
                        rejoined.push((now_ms, players));
                        MatchReply::Done
                    }
                    _ => MatchReply::Done,
                };
                outputs.extend(node.on_reply(now_ms, id, ClusterReply::Match(reply)));
            }
        }
        assert_eq!(rejoined, [(1_000, vec![PlayerId(2)])]);
    }

    #[test]
    fn rejoined_player_without_a_travel_is_reported_once() {
        let settings = MatcherSettings {
            read_travels_max: 2,
            ..MatcherSettings::default()
        };
        let mut node = MatchNode::new(&[], settings).unwrap();
        let run = NodeRun {
            node: ClusterNodeId(1),
            run: 1,
        };
        let travels = [2, 3, 6].map(|player| PlayerTravel {
            player: PlayerId(player),
            goal: TravelGoal::Match(MatchId { epoch: 1, nth: 1 }),
            to: Some(run),
        });
        let mut none = Vec::new();
        for nth in 0..12 {
            if nth == 1 {
                for player in [1, 3, 5, 9] {
                    node.rejoin(PlayerId(player));
                }
            }
            let mut outputs = node.poll(nth * 1_000, Some(run), &[]);
            while let Some(output) = outputs.pop() {
                match output {
                    MatchOutput::Store(
                        id,
                        MatchRequest::ReadTravels {
                            after, players_max, ..
                        },
                    ) => {
                        // The list of the second round is lost.
                        if nth == 3 {
                            node.on_lost_reply(id);
                            continue;
                        }
                        let reply = travels_after(&travels, after, players_max);
                        let reply = ClusterReply::Match(reply);
                        outputs.extend(node.on_reply(nth * 1_000, id, reply));
                    }
                    MatchOutput::Store(id, MatchRequest::Rejoin { .. }) => {
                        let reply = ClusterReply::Match(MatchReply::Done);
                        outputs.extend(node.on_reply(nth * 1_000, id, reply));
                    }
                    MatchOutput::NoTravel(player) => none.push(player.0),
                    _ => {}
                }
            }
        }
        none.sort_unstable();
        assert_eq!(none, [1, 5, 9]);
    }
}
