//! Players who let a proposed match fail may not queue for a while: otherwise they would be matched with its other
//! players again and again.
//!
//! Invariant: a penalty holds until its latest end tick, or until [`PENALTIES_MAX`] other players have a later
//! end. Cost: O(log n).

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::FixedState;
use throng_core::memory::MemoryUse;

use super::ticket::TicketPlayer;

/// The maximum number of penalties; the one that ends first is evicted.
pub const PENALTIES_MAX: usize = 1 << 20;

/// The players who may not queue.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct Penalties {
    by_player: HashMap<TicketPlayer, u64, FixedState>,
    by_end: BTreeSet<(u64, TicketPlayer)>,
}

impl Penalties {
    /// Adds a penalty until a tick, or keeps a longer one.
    pub fn add(&mut self, player: TicketPlayer, until_tick: u64) {
        let until = self.by_player.entry(player).or_insert(until_tick);
        self.by_end.remove(&(*until, player));
        *until = until_tick.max(*until);
        self.by_end.insert((*until, player));
        if self.by_end.len() > PENALTIES_MAX
            && let Some((_, first)) = self.by_end.pop_first()
        {
            self.by_player.remove(&first);
        }
    }

    /// Removes the penalties that have ended. O(removed · log n).
    pub fn expire(&mut self, now_tick: u64) {
        while self.by_end.first().is_some_and(|bar| bar.0 <= now_tick) {
            if let Some((_, player)) = self.by_end.pop_first() {
                self.by_player.remove(&player);
            }
        }
    }

    /// The end of a player's penalty.
    #[must_use]
    pub fn until_tick(&self, player: TicketPlayer) -> Option<u64> {
        self.by_player.get(&player).copied()
    }

    /// Hashes all penalties, in order of their end. O(n).
    pub fn hash_state(&self, feed: &mut impl FnMut(u64)) {
        for &(until_tick, player) in &self.by_end {
            feed(until_tick);
            player.hash_state(feed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_penalty_end_wins_and_penalties_expire() {
        let mut penalties = Penalties::default();
        for (player, until_tick) in [(1, 10), (2, 30), (1, 20), (2, 5)] {
            penalties.add(player.into(), until_tick);
        }
        penalties.expire(19);
        assert_eq!(
            [
                penalties.until_tick(1.into()),
                penalties.until_tick(2.into()),
                penalties.until_tick(3.into())
            ],
            [Some(20), Some(30), None]
        );
        penalties.expire(20);
        assert_eq!(
            [
                penalties.until_tick(1.into()),
                penalties.until_tick(2.into())
            ],
            [None, Some(30)]
        );
    }
}
