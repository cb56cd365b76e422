//! The counters of a mode.
//!
//! Invariant after every heartbeat: queued = matched + cancelled + expired + waiting, counted in parties; parties
//! in a proposed match count as waiting.

use throng_core::memory::MemoryUse;

use super::matches::Match;
use super::ticket::Ticket;

/// The counters of a mode since it was created.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct ModeStats {
    /// Parties accepted into the queue.
    pub queued: u64,
    /// Parties refused because the queue was full.
    pub refused: u64,
    /// Parties cancelled, by themselves or because a member left or declined a match.
    pub cancelled: u64,
    /// Parties that waited until they expired, or did not reply in time.
    pub expired: u64,
    /// Players whom the latest heartbeat did not match.
    pub left_over_players: u64,
    /// Parties in a proposed match now.
    pub proposed: u64,
    /// Proposed matches that were declined or not accepted in time.
    pub dissolved: u64,
    /// Parties that joined running matches, which `matched_parties` includes.
    pub backfilled: u64,
    /// Parties matched.
    pub matched_parties: u64,
    /// Players matched.
    pub matched_players: u64,
    /// Matches made.
    pub matches: u64,
    /// Sets of parties that made no match because the power gap was above the limit; a party can count many times.
    pub gap_refusals: u64,
    /// Heartbeats in which the search for partners reached its limit.
    pub candidates_exhausted: u64,
    /// Searches that used up their share of search steps without a match; the party pauses then.
    pub searches_capped: u64,
    /// Heartbeats that reached the limit of matches.
    pub matches_exhausted: u64,
    /// Spectators who were removed, because two rooms merged or a proposed match was declined.
    pub spectators_dropped: u64,
    /// Power gaps of matches.
    pub power_gap: Distribution,
    /// Skill spreads of matches.
    pub spread: Distribution,
    /// Waiting times of matched parties: ticks.
    pub wait_ticks: Distribution,
}

impl ModeStats {
    /// Counts a match that starts. O(parties).
    pub fn record_match(&mut self, found: &Match, now_tick: u64) {
        self.matches += 1;
        self.power_gap.record(found.quality.power_gap);
        self.spread.record(u64::from(found.quality.spread));
        let tickets = found.groups.iter().flatten();
        tickets.for_each(|ticket| self.record_party(ticket, now_tick));
    }

    /// Counts a matched party.
    pub fn record_party(&mut self, ticket: &Ticket, now_tick: u64) {
        self.matched_parties += 1;
        self.matched_players += u64::from(ticket.size);
        self.wait_ticks.record(ticket.waited_ticks(now_tick));
    }
}

/// The number of classes per octave of values; below this, each value has its own class.
const STEPS: u64 = 32;
const CLASSES: usize = (64 - STEPS.ilog2() as usize + 1) * STEPS as usize;

/// A distribution of integers: exact count, mean and maximum; quantiles within 1/32 of the value.
///
/// A histogram whose classes double in width with each octave: 15 kB once a value is recorded, however many
/// follow.
#[derive(Clone, Debug, Default, PartialEq, Eq, MemoryUse)]
pub struct Distribution {
    count: u64,
    sum: u128,
    max: u64,
    classes: Vec<u64>,
}

impl Distribution {
    /// Counts a value. O(1).
    pub fn record(&mut self, value: u64) {
        if self.classes.is_empty() {
            self.classes.resize(CLASSES, 0);
        }
        self.classes[class(value)] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// The number of values.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The greatest value; 0 without values.
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// The sum of all values.
    #[must_use]
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// The mean; 0 without values.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum as f64 / self.count as f64
        }
    }

    /// The value below or at which `percent` of the values lie, rounded up by at most 1/32 and never above the
    /// maximum; 0 without values. O(classes).
    #[must_use]
    pub fn quantile(&self, percent: u8) -> u64 {
        let rank = (u128::from(self.count) * u128::from(percent.min(100)))
            .div_ceil(100)
            .max(1);
        let mut passed = 0;
        for (class, &count) in self.classes.iter().enumerate() {
            passed += u128::from(count);
            if passed >= rank {
                return greatest_of(class).min(self.max);
            }
        }
        self.max
    }
}

/// The class of a value.
fn class(value: u64) -> usize {
    if value < STEPS {
        return value as usize;
    }
    let shift = value.ilog2() - STEPS.ilog2();
    (u64::from(shift) * STEPS + (value >> shift)) as usize
}

/// The greatest value of a class.
fn greatest_of(class: usize) -> u64 {
    let class = class as u64;
    if class < STEPS {
        return class;
    }
    let shift = class / STEPS - 1;
    let top = class % STEPS + STEPS;
    (top << shift) | ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn without_values_everything_is_zero() {
        let empty = Distribution::default();
        assert_eq!((empty.mean(), empty.quantile(99), empty.max()), (0.0, 0, 0));
    }

    #[test]
    fn the_largest_value_has_a_class() {
        let mut values = Distribution::default();
        values.record(u64::MAX);
        assert_eq!(values.quantile(50), u64::MAX);
        assert_eq!(class(u64::MAX), CLASSES - 1);
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn quantiles_lie_within_a_32nd_above_the_sorted_values(
            mut values in prop::collection::vec((any::<u64>(), 0u32..64).prop_map(|(v, shift)| v >> shift), 1..80),
            percent in 1u8..=100,
        ) {
            let mut distribution = Distribution::default();
            values.iter().for_each(|&value| distribution.record(value));
            values.sort_unstable();
            let exact = values[(values.len() * usize::from(percent)).div_ceil(100) - 1];
            let found = distribution.quantile(percent);
            prop_assert!(found >= exact && found - exact <= exact / 32, "{found} for {exact}");
            prop_assert_eq!(distribution.max(), *values.last().unwrap());
        }
    }
}
