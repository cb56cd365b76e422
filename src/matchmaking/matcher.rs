//! All modes together: who is queued where, and one heartbeat over all of them.
//!
//! ```text
//! queue · cancel · remove_player ──▶ index of parties and players ──▶ one queue a mode
//! run(now) ──▶ each mode in order ──▶ matches, expired tickets
//! ```
//! Invariants: a party and a player are in at most one ticket, over all modes; what is refused leaves nothing
//! changed; the same calls give the same matches. The maps from ids to places are looked up, never walked.
//!
//! Cost: O(1) a request; a heartbeat as in `groups.rs`.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::groups::{Groups, WhyWaiting};
use super::mode::{ModeError, ModeId, QueueMode};
use super::quality::Quality;
use super::stats::ModeStats;
use super::ticket::{Ticket, TicketError};

/// Two groups of exactly K players that are to fight each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    /// Counts up from 0 over all modes.
    pub id: u64,
    /// The mode.
    pub mode: ModeId,
    /// The tickets of both groups, longest-waiting first; the longest-waiting of all is in the first group.
    pub groups: [Vec<Ticket>; 2],
    /// The groups' power.
    pub power: [u64; 2],
    /// How good the match is.
    pub quality: Quality,
}

/// The waiting parties of all modes.
#[derive(Clone, Debug)]
pub struct Matcher {
    names: Vec<String>,
    modes: Vec<Groups>,
    parties: HashMap<u32, Place, FixedState>,
    players: HashMap<u64, u32, FixedState>,
    next_match: u64,
}

/// Where a party's ticket is.
#[derive(Clone, Copy, Debug)]
struct Place {
    mode: ModeId,
    slot: u32,
}

impl Matcher {
    /// Opens the modes, in this order; their ids count from 0. A tick lasts `1 / tick_hz` seconds.
    ///
    /// # Errors
    /// [`ModeError`] when a mode's settings are out of range or two have the same name.
    pub fn new(modes: &[QueueMode], tick_hz: f64) -> Result<Self, ModeError> {
        if modes.len() > usize::from(u16::MAX) + 1 {
            return Err(ModeError::TooMany(modes.len()));
        }
        let mut names: Vec<String> = Vec::new();
        let mut opened = Vec::new();
        for (id, QueueMode::Groups(settings)) in modes.iter().enumerate() {
            let rules = settings.rules(tick_hz)?;
            if names.contains(&settings.name) {
                return Err(ModeError::NameTwice(settings.name.clone()));
            }
            names.push(settings.name.clone());
            opened.push(Groups::new(ModeId(id as u16), rules));
        }
        let (parties, players) = (HashMap::default(), HashMap::default());
        Ok(Self {
            names,
            modes: opened,
            parties,
            players,
            next_match: 0,
        })
    }

    /// The mode of this name. O(modes).
    #[must_use]
    pub fn mode_named(&self, name: &str) -> Option<ModeId> {
        self.names
            .iter()
            .position(|known| known == name)
            .map(|at| ModeId(at as u16))
    }

    /// The modes' names, by id.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The modes at work, by id.
    #[must_use]
    pub fn modes(&self) -> &[Groups] {
        &self.modes
    }

    /// What a mode has done so far. O(1).
    #[must_use]
    pub fn stats(&self, mode: ModeId) -> Option<&ModeStats> {
        self.modes.get(usize::from(mode.0)).map(Groups::stats)
    }

    /// Parties that wait, over all modes. O(1).
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.parties.len()
    }

    /// Players who wait, over all modes. O(1).
    #[must_use]
    pub fn waiting_players(&self) -> usize {
        self.players.len()
    }

    /// The ticket with which a party waits. O(1).
    #[must_use]
    pub fn ticket(&self, party: u32) -> Option<&Ticket> {
        let place = self.parties.get(&party)?;
        self.modes
            .get(usize::from(place.mode.0))?
            .queue
            .ticket(place.slot)
    }

    /// The party with which a player waits. O(1).
    #[must_use]
    pub fn party_of(&self, player: u64) -> Option<u32> {
        self.players.get(&player).copied()
    }

    /// Queues a party. O(size); see [`Queue::insert`](super::queue::Queue::insert) for a ticket whose waiting
    /// time is given back.
    ///
    /// # Errors
    /// [`TicketError`] when the ticket is not valid for its mode, the party or a member waits already, or the
    /// mode's queue is full. Nothing is changed then.
    pub fn queue(&mut self, ticket: Ticket) -> Result<(), TicketError> {
        let (party, id, modes) = (ticket.party, ticket.mode, self.modes.len());
        let mode = self.modes.get_mut(usize::from(id.0));
        let mode = mode.ok_or(TicketError::UnknownMode {
            party,
            mode: id,
            modes,
        })?;
        ticket.check(mode.rules().group_size)?;
        if self.parties.contains_key(&party) {
            return Err(TicketError::PartyQueued { party });
        }
        for &player in &ticket.members {
            if let Some(&queued_in) = self.players.get(&player) {
                return Err(TicketError::PlayerQueued {
                    party,
                    player,
                    queued_in,
                });
            }
        }
        let tickets_max = mode.rules().tickets_max;
        if mode.queue.len() >= tickets_max as usize {
            mode.stats.refused += 1;
            return Err(TicketError::QueueFull { party, tickets_max });
        }
        self.players
            .extend(ticket.members.iter().map(|&player| (player, party)));
        let slot = mode.queue.insert(ticket);
        self.parties.insert(party, Place { mode: id, slot });
        mode.stats.queued += 1;
        Ok(())
    }

    /// Takes a party out of its queue, whoever asks. O(1).
    ///
    /// # Errors
    /// [`TicketError::NotQueued`].
    pub fn cancel(&mut self, party: u32) -> Result<Ticket, TicketError> {
        let missing = TicketError::NotQueued { party };
        let Some(&place) = self.parties.get(&party) else {
            return Err(missing);
        };
        let mode = &mut self.modes[usize::from(place.mode.0)];
        let ticket = mode.queue.remove(place.slot).ok_or(missing)?;
        mode.stats.cancelled += 1;
        self.forget(&ticket);
        Ok(ticket)
    }

    /// Takes a party out of its queue because `player` asks, who must be a member. O(1).
    ///
    /// # Errors
    /// [`TicketError::NotQueued`], [`TicketError::NotAMember`].
    pub fn cancel_by(&mut self, party: u32, player: u64) -> Result<Ticket, TicketError> {
        let ticket = self.ticket(party).ok_or(TicketError::NotQueued { party })?;
        if !ticket.members.contains(&player) {
            return Err(TicketError::NotAMember { party, player });
        }
        self.cancel(party)
    }

    /// Voids the ticket of a player who leaves, since a party never splits, and returns it. O(1).
    pub fn remove_player(&mut self, player: u64) -> Option<Ticket> {
        let party = self.party_of(player)?;
        self.cancel(party).ok()
    }

    /// One heartbeat over all modes: appends the matches made to `matches` and the tickets that waited too long
    /// to `expired`. Cost as in `groups.rs`.
    pub fn run(&mut self, now_tick: u64, matches: &mut Vec<Match>, expired: &mut Vec<Ticket>) {
        let (first_match, first_expired) = (matches.len(), expired.len());
        for mode in &mut self.modes {
            mode.run(now_tick, &mut self.next_match, matches, expired);
        }
        for ticket in matches[first_match..]
            .iter()
            .flat_map(|made| made.groups.iter().flatten())
        {
            self.forget(ticket);
        }
        for ticket in &expired[first_expired..] {
            self.forget(ticket);
        }
    }

    /// Why a party has no match yet; `None` when it does not wait. O(n log n) in the parties of its mode.
    #[must_use]
    pub fn why_waiting(&self, party: u32, now_tick: u64) -> Option<WhyWaiting> {
        let place = self.parties.get(&party)?;
        self.modes
            .get(usize::from(place.mode.0))?
            .why_waiting(place.slot, now_tick)
    }

    /// Feeds all that can influence later matches or counts, in a fixed order, to a hash. O(n).
    pub fn digest(&self, feed: &mut impl FnMut(u64)) {
        feed(self.next_match);
        feed(self.modes.len() as u64);
        for mode in &self.modes {
            let stats = mode.stats();
            let counters = [
                stats.queued,
                stats.refused,
                stats.cancelled,
                stats.expired,
                stats.matched_parties,
            ];
            counters.into_iter().for_each(&mut *feed);
            feed(mode.queue().len() as u64);
            for (_, ticket) in mode.queue().iter() {
                digest_ticket(ticket, feed);
            }
        }
    }

    fn forget(&mut self, ticket: &Ticket) {
        self.parties.remove(&ticket.party);
        for player in &ticket.members {
            self.players.remove(player);
        }
    }
}

fn digest_ticket(ticket: &Ticket, feed: &mut impl FnMut(u64)) {
    feed(u64::from(ticket.party) << 32 | u64::from(ticket.power));
    feed(u64::from(ticket.skill as u32) << 32 | u64::from(ticket.leader_strength));
    feed(u64::from(ticket.mode.0) << 32 | u64::from(ticket.level) << 8 | u64::from(ticket.size));
    feed(ticket.since_tick);
    ticket.members.iter().copied().for_each(feed);
}

#[cfg(test)]
mod tests {
    use super::super::tests::{mode, ticket};
    use super::*;
    use crate::matchmaking::ModeSettings;

    fn duel() -> Matcher {
        let other = ModeSettings {
            name: "other".to_owned(),
            ..mode(5)
        };
        Matcher::new(
            &[QueueMode::Groups(mode(1)), QueueMode::Groups(other)],
            20.0,
        )
        .unwrap()
    }

    fn digest(matcher: &Matcher) -> Vec<u64> {
        let mut fed = Vec::new();
        matcher.digest(&mut |word| fed.push(word));
        fed
    }

    #[test]
    fn refused_requests_name_their_reason_and_change_nothing() {
        let mut matcher = duel();
        matcher.queue(ticket(1, 1, 0, 0)).unwrap();
        let before = digest(&matcher);
        let mut with_queued_player = ticket(2, 1, 0, 0);
        with_queued_player.members[0] = 10;
        let refused = TicketError::PlayerQueued {
            party: 2,
            player: 10,
            queued_in: 1,
        };
        assert_eq!(
            matcher.queue(with_queued_player.clone()),
            Err(refused.clone())
        );
        with_queued_player.mode = ModeId(1);
        assert_eq!(
            matcher.queue(with_queued_player),
            Err(refused),
            "also in another mode"
        );
        assert_eq!(
            matcher.queue(ticket(1, 1, 0, 0)),
            Err(TicketError::PartyQueued { party: 1 })
        );
        let too_large = TicketError::LargerThanGroup {
            party: 3,
            size: 2,
            group_size: 1,
        };
        assert_eq!(matcher.queue(ticket(3, 2, 0, 0)), Err(too_large));
        let stray = Ticket {
            mode: ModeId(2),
            ..ticket(3, 1, 0, 0)
        };
        assert_eq!(
            matcher.queue(stray),
            Err(TicketError::UnknownMode {
                party: 3,
                mode: ModeId(2),
                modes: 2
            })
        );
        assert_eq!(matcher.cancel(9), Err(TicketError::NotQueued { party: 9 }));
        assert_eq!(
            matcher.cancel_by(1, 77),
            Err(TicketError::NotAMember {
                party: 1,
                player: 77
            })
        );
        assert_eq!(matcher.remove_player(77), None);
        assert_eq!(digest(&matcher), before);
        assert_eq!((matcher.waiting(), matcher.waiting_players()), (1, 1));
    }

    #[test]
    fn a_full_queue_refuses_and_counts() {
        let settings = ModeSettings {
            tickets_max: 1,
            ..mode(5)
        };
        let mut matcher = Matcher::new(&[QueueMode::Groups(settings)], 20.0).unwrap();
        matcher.queue(ticket(1, 1, 0, 0)).unwrap();
        assert_eq!(
            matcher.queue(ticket(2, 1, 0, 0)),
            Err(TicketError::QueueFull {
                party: 2,
                tickets_max: 1
            })
        );
        assert_eq!(matcher.stats(ModeId(0)).unwrap().refused, 1);
        matcher.cancel(1).unwrap();
        assert_eq!(matcher.queue(ticket(2, 1, 0, 0)), Ok(()));
    }

    #[test]
    fn a_member_who_leaves_voids_the_whole_ticket() {
        let mut matcher = duel();
        let party = Ticket {
            mode: ModeId(1),
            ..ticket(4, 3, 0, 0)
        };
        matcher.queue(party.clone()).unwrap();
        assert_eq!(matcher.party_of(42), Some(4));
        assert_eq!(matcher.remove_player(42), Some(party));
        assert_eq!((matcher.waiting(), matcher.waiting_players()), (0, 0));
        assert_eq!(matcher.stats(ModeId(1)).unwrap().cancelled, 1);
        assert_eq!(
            matcher.queue(ticket(5, 1, 0, 0)),
            Ok(()),
            "the others may queue anew"
        );
    }

    #[test]
    fn modes_must_have_different_names() {
        let error = Matcher::new(
            &[QueueMode::Groups(mode(1)), QueueMode::Groups(mode(5))],
            20.0,
        )
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected different names for the queues, found `arena` twice"
        );
        assert_eq!(duel().mode_named("other"), Some(ModeId(1)));
        assert_eq!(duel().mode_named("nothing"), None);
    }

    #[test]
    fn a_waiting_party_can_be_asked_why() {
        let settings = ModeSettings {
            skill_window_start: 10,
            skill_window_widen_per_s: 0,
            power_gap_start: 5,
            power_gap_widen_per_s: 0,
            ..mode(5)
        };
        let mut matcher = Matcher::new(&[QueueMode::Groups(settings)], 20.0).unwrap();
        assert_eq!(matcher.why_waiting(1, 0), None);
        matcher.queue(ticket(1, 5, 0, 0)).unwrap();
        assert_eq!(
            matcher.why_waiting(1, 0),
            Some(WhyWaiting::TooFewPlayers {
                waiting: 5,
                needed: 10
            })
        );
        matcher.queue(ticket(2, 3, 0, 0)).unwrap();
        matcher.queue(ticket(3, 3, 0, 0)).unwrap();
        assert_eq!(matcher.why_waiting(1, 0), Some(WhyWaiting::SizesDoNotFit));
        matcher
            .queue(Ticket {
                power: 90,
                ..ticket(4, 5, 900, 0)
            })
            .unwrap();
        let outside = WhyWaiting::OutsideWindow {
            window: 10,
            opens_in_ticks: 1200,
        };
        assert_eq!(matcher.why_waiting(1, 0), Some(outside));
        matcher
            .queue(Ticket {
                power: 90,
                ..ticket(5, 5, 1, 0)
            })
            .unwrap();
        let gap = 90 - u64::from(ticket(1, 5, 0, 0).power);
        let uneven = WhyWaiting::PowerGap {
            gap,
            limit: 5,
            opens_in_ticks: 1190,
        };
        assert_eq!(matcher.why_waiting(1, 10), Some(uneven));
        assert_eq!(
            matcher.why_waiting(1, 1200),
            Some(WhyWaiting::NextHeartbeat)
        );
        let (mut matches, mut expired) = (Vec::new(), Vec::new());
        matcher.run(1200, &mut matches, &mut expired);
        assert_eq!(matcher.why_waiting(1, 1200), None);
        assert_eq!(matches[0].groups[0][0].party, 1);
    }
}
