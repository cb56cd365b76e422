//! Backoff for parties whose search used up its share of search steps, so that they do not use up those of all others
//! again and again.
//!
//! ```text
//! failures in a row   0     1     2     3     4    5 and more
//! share of steps    1/32  1/16   1/8   1/4   1/2      1/2
//! then it pauses      1     4    16    64   256     1,024    heartbeats
//! ```
//! So a party that needs many search steps gets them in the end. If all steps of a heartbeat are used up, the parties tried
//! count as tried at the next heartbeats, until the last one had its turn. Parties that failed or count as tried share
//! half of the steps, the longest-waiting first, so the others always have the other half. If more than
//! [`PAUSED_MAX`] are paused, no more are recorded.
//!
//! Cost: O(log n) per query, O(paused parties) per heartbeat.

use std::collections::BTreeMap;

use throng_core::memory::MemoryUse;

use super::ticket_queue::{TicketAge, TicketQueue};

/// The maximum number of recorded parties.
pub const PAUSED_MAX: usize = 4_096;

/// The smallest share of search steps.
pub const CANDIDATE_SHARE_MIN: u64 = 256;

#[derive(Clone, Copy, Debug)]
struct Pause {
    slot: u32,
    failed: u32,
    until_heartbeat: u64,
}

/// The paused parties, by age.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct SearchBackoff {
    paused: BTreeMap<TicketAge, Pause>,
    /// The last party tried when the steps were used up: of the left-over parties, and of the priority parties.
    stopped_at: [Option<TicketAge>; 2],
    heartbeat: u64,
}

impl SearchBackoff {
    /// Starts the next heartbeat; drops parties that no longer wait.
    pub fn next_heartbeat(&mut self, queue: &TicketQueue) {
        self.heartbeat += 1;
        self.paused
            .retain(|&age, pause| queue.age(pause.slot) == age);
    }

    /// Whether the search for a party is skipped at this heartbeat.
    #[must_use]
    pub fn is_paused(&self, age: TicketAge) -> bool {
        let pause = self.paused.get(&age);
        pause.is_some_and(|pause| self.heartbeat < pause.until_heartbeat)
    }

    /// Whether a party has failed before, or had its turn when the steps were used up.
    #[must_use]
    pub fn was_tried(&self, first: bool, age: TicketAge) -> bool {
        let stopped_at = self.stopped_at[usize::from(first)];
        stopped_at.is_some_and(|stopped_at| age < stopped_at) || self.paused.contains_key(&age)
    }

    /// Notes that the steps were used up at the turn of this party, or that all had their turn.
    pub const fn mark_exhausted(&mut self, first: bool, at: Option<TicketAge>) {
        self.stopped_at[first as usize] = at;
    }

    /// The part of `sight_tests_max` that a party may use.
    #[must_use]
    pub fn candidate_share(&self, age: TicketAge, sight_tests_max: u64) -> u64 {
        let failed = self.paused.get(&age).map_or(0, |pause| pause.failed);
        (sight_tests_max >> (5 - failed.min(4)))
            .max(CANDIDATE_SHARE_MIN)
            .min(sight_tests_max / 2)
            .max(1)
    }

    /// Notes that a party used up its share without a match.
    pub fn pause(&mut self, age: TicketAge, slot: u32) {
        let failed = self.paused.get(&age).map_or(0, |pause| pause.failed);
        if failed == 0 && self.paused.len() >= PAUSED_MAX {
            return;
        }
        let until_heartbeat = self.heartbeat + 1 + (1 << (2 * failed.min(5)));
        let failed = failed + 1;
        self.paused.insert(
            age,
            Pause {
                slot,
                failed,
                until_heartbeat,
            },
        );
    }

    /// Hashes the paused parties. O(paused parties).
    pub fn hash_state(&self, feed: &mut impl FnMut(u64)) {
        feed(self.heartbeat);
        for stopped_at in self.stopped_at {
            feed(stopped_at.map_or(u64::MAX, |age| age.since_tick()));
        }
        for pause in self.paused.values() {
            feed(u64::from(pause.slot) << 32 | u64::from(pause.failed));
            feed(pause.until_heartbeat);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::ticket;

    #[test]
    fn shares_grow_with_pauses_and_removed_parties_are_dropped() {
        let (mut queue, mut backoff) = (TicketQueue::default(), SearchBackoff::default());
        let slot = queue.insert(ticket(1, 1, 0, 0));
        let age = queue.age(slot);
        for (share, heartbeats) in [(1 << 15, 1), (1 << 16, 4), (1 << 17, 16), (1 << 18, 64)] {
            assert_eq!(backoff.candidate_share(age, 1 << 20), share);
            backoff.pause(age, slot);
            let paused = (0..heartbeats).all(|_| {
                backoff.next_heartbeat(&queue);
                backoff.is_paused(age)
            });
            backoff.next_heartbeat(&queue);
            assert!(paused && !backoff.is_paused(age));
        }
        for _ in 0..10 {
            backoff.pause(age, slot);
        }
        assert_eq!(backoff.candidate_share(age, 1 << 20), 1 << 19);
        queue.remove(slot);
        backoff.next_heartbeat(&queue);
        assert!(!backoff.was_tried(false, age));
        assert_eq!(backoff.candidate_share(age, 1), 1);
    }
}
