//! Recent opponents.
//!
//! A player's latest matches are stored with the side; two players were opponents when they share a match on
//! different sides. Invariant: a match is known from its start until `rematch_cooldown_s` has passed, unless one
//! of its players has been in [`MATCHES_MAX`] later ones, or more than [`ENTRIES_MAX`] came after it.
//!
//! Cost: O(players) per match to record and to remove, O([`MATCHES_MAX`]²) to compare two players.

use std::collections::{HashMap, VecDeque};

use arrayvec::ArrayVec;
use foldhash::fast::FixedState;
use throng_core::memory::MemoryUse;

use super::matches::Match;
use super::ticket::{Ticket, TicketPlayer};

/// The number of matches stored per player; the oldest is evicted.
pub const MATCHES_MAX: usize = 8;

/// The number of players in all stored matches; the matches of the oldest tick are evicted and counted.
pub const ENTRIES_MAX: usize = 1 << 22;

#[derive(Clone, Copy, Debug)]
struct PastMatch {
    tick: u64,
    id: u64,
    side: bool,
}

/// The recent matches.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct Rematches {
    players: HashMap<TicketPlayer, ArrayVec<PastMatch, MATCHES_MAX>, FixedState>,
    /// Every entry of `players`, oldest first, and those that were evicted.
    order: VecDeque<(u64, TicketPlayer)>,
    /// The number of entries that were evicted early.
    evicted_early: u64,
}

impl Rematches {
    /// Whether there are no recent matches. O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.players.is_empty()
    }

    /// Records that a player plays in match `id` from `tick` on; ticks never decrease between calls.
    pub fn record(&mut self, player: TicketPlayer, id: u64, side: bool, tick: u64) {
        if self.order.len() >= ENTRIES_MAX {
            let oldest = self.order.front().map_or(tick, |oldest| oldest.0);
            self.prune_before(oldest.saturating_add(1));
            self.evicted_early += (ENTRIES_MAX - self.order.len()) as u64;
        }
        let fought = self.players.entry(player).or_default();
        if fought.is_full() {
            fought.remove(0);
        }
        fought.push(PastMatch { tick, id, side });
        self.order.push_back((tick, player));
    }

    /// Records the opponents of a match from `tick` on. O(players).
    pub fn record_match(&mut self, found: &Match, tick: u64) {
        for (group, side) in found.groups.iter().zip([false, true]) {
            for &player in group.iter().flat_map(|ticket| &ticket.members) {
                self.record(player, found.id, side, tick);
            }
        }
    }

    /// Removes the matches before `tick`. O(entries removed).
    pub fn prune_before(&mut self, tick: u64) {
        while let Some(&(fought_at, player)) = self.order.front() {
            if fought_at >= tick {
                break;
            }
            self.order.pop_front();
            let Some(fought) = self.players.get_mut(&player) else {
                continue;
            };
            fought.retain(|fought| fought.tick >= tick);
            if fought.is_empty() {
                self.players.remove(&player);
            }
        }
    }

    /// Whether two players were opponents.
    #[must_use]
    pub fn were_opponents(&self, one: TicketPlayer, other: TicketPlayer) -> bool {
        let (Some(one), Some(other)) = (self.players.get(&one), self.players.get(&other)) else {
            return false;
        };
        let met = |a: &PastMatch| other.iter().any(|b| a.id == b.id && a.side != b.side);
        one.iter().any(met)
    }

    /// For each of these parties, the parties with a recent opponent, as bits. O(entries · log).
    #[must_use]
    pub fn opponents(&self, parties: &[&Ticket]) -> Vec<u128> {
        let mut fought: Vec<(u64, bool, usize)> = Vec::new();
        for (at, party) in parties.iter().enumerate() {
            let known = party.members.iter();
            let known = known.filter_map(|player| self.players.get(player));
            fought.extend(known.flatten().map(|fought| (fought.id, fought.side, at)));
        }
        fought.sort_unstable();
        let mut opponents = vec![0u128; parties.len()];
        for of_match in fought.chunk_by(|one, other| one.0 == other.0) {
            let side = |wanted: bool| of_match.iter().filter(move |fought| fought.1 == wanted);
            for (.., one) in side(false) {
                for (.., other) in side(true) {
                    opponents[*one] |= 1 << other;
                    opponents[*other] |= 1 << one;
                }
            }
        }
        opponents
    }

    /// The number of players in matches that were evicted early because of the limit.
    #[must_use]
    pub const fn evicted_early(&self) -> u64 {
        self.evicted_early
    }

    /// Hashes all stored matches, oldest first. O(entries).
    pub fn hash_state(&self, feed: &mut impl FnMut(u64)) {
        feed(self.order.len() as u64);
        for &(tick, player) in &self.order {
            feed(tick);
            player.hash_state(feed);
            let found = self.players.get(&player).into_iter().flatten();
            for fought in found.filter(|fought| fought.tick == tick) {
                feed(fought.id << 1 | u64::from(fought.side));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opponents_are_remembered_until_pruned_team_mates_never() {
        let mut met = Rematches::default();
        for (player, side) in [(1, false), (2, false), (3, true)] {
            met.record(player.into(), 9, side, 100);
        }
        assert!(met.were_opponents(1.into(), 3.into()) && met.were_opponents(3.into(), 2.into()));
        assert!(
            !met.were_opponents(1.into(), 2.into()) && !met.were_opponents(1.into(), 77.into())
        );
        met.prune_before(100);
        assert!(met.were_opponents(1.into(), 3.into()));
        met.prune_before(101);
        assert!(!met.were_opponents(1.into(), 3.into()) && met.is_empty());
    }

    #[test]
    fn oldest_match_of_a_player_is_evicted() {
        let mut met = Rematches::default();
        met.record(2.into(), 0, true, 0);
        for id in 0..=MATCHES_MAX as u64 {
            met.record(1.into(), id, false, id);
        }
        assert!(!met.were_opponents(1.into(), 2.into()));
        met.prune_before(u64::MAX);
        assert!(met.is_empty() && met.order.is_empty());
    }
}
