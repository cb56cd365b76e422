//! A histogram of times: eight bins per octave, so that quantiles have a relative error of at most 1/20, for any number of ticks.

use serde::{Deserialize, Serialize};

/// Bins per octave: eight bins later, times are twice as long.
const BINS_PER_OCTAVE: f64 = 8.0;

/// Number of bins, for times from 1 µs to 16 s.
const BINS: usize = 24 * 8 + 1;

/// Shorter times are counted in the first bin, which starts here.
const SHORTEST_MS: f64 = 1e-3;

/// The number of ticks per bin.
#[derive(Clone, Debug)]
pub(super) struct TimeCounts {
    counts: Box<[u32]>,
    ticks: u64,
    min_ms: f64,
    max_ms: f64,
}

/// A range of times, and the ticks in it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeBin {
    /// Start of the range, milliseconds.
    pub from_ms: f64,
    /// End of the range, milliseconds.
    pub to_ms: f64,
    /// Number of ticks in the range.
    pub ticks: u64,
}

impl Default for TimeCounts {
    fn default() -> Self {
        Self {
            counts: vec![0; BINS].into(),
            ticks: 0,
            min_ms: f64::INFINITY,
            max_ms: 0.0,
        }
    }
}

fn bin_index(ms: f64) -> usize {
    let octaves = (ms.max(SHORTEST_MS) / SHORTEST_MS).log2();
    ((octaves * BINS_PER_OCTAVE) as usize).min(BINS - 1)
}

fn bin_start_ms(bin: usize) -> f64 {
    SHORTEST_MS * (bin as f64 / BINS_PER_OCTAVE).exp2()
}

impl TimeCounts {
    pub fn add(&mut self, ms: f64) {
        let count = &mut self.counts[bin_index(ms)];
        *count = count.saturating_add(1);
        self.ticks += 1;
        self.min_ms = self.min_ms.min(ms);
        self.max_ms = self.max_ms.max(ms);
    }

    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count = count.saturating_add(*more);
        }
        self.ticks += other.ticks;
        self.min_ms = self.min_ms.min(other.min_ms);
        self.max_ms = self.max_ms.max(other.max_ms);
    }

    /// The quantile at `share` (0 to 1), approximately; exact for a single tick.
    pub fn quantile_ms(&self, share: f64) -> f64 {
        let rank = ((share * self.ticks as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let bin = self.counts.iter().position(|&count| {
            seen += u64::from(count);
            seen >= rank
        });
        let Some(bin) = bin else { return 0.0 };
        (bin_start_ms(bin) * bin_start_ms(bin + 1))
            .sqrt()
            .clamp(self.min_ms, self.max_ms)
    }

    /// The bins from the first to the last non-empty one.
    pub fn bins(&self) -> Vec<TimeBin> {
        let has_ticks = |count: &u32| *count > 0;
        let first = self.counts.iter().position(has_ticks);
        let last = self.counts.iter().rposition(has_ticks);
        let (Some(first), Some(last)) = (first, last) else {
            return Vec::new();
        };
        let bin = |nth: usize| TimeBin {
            from_ms: bin_start_ms(nth),
            to_ms: bin_start_ms(nth + 1),
            ticks: u64::from(self.counts[nth]),
        };
        (first..=last).map(bin).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn quantiles_are_within_a_bin_and_merging_is_lossless(
            times in prop::collection::vec(0.002f64..9_000.0, 1..200),
            cut in 0usize..200,
            share in 0.01f64..1.0,
        ) {
            let (mut all, mut rest) = (TimeCounts::default(), TimeCounts::default());
            for (nth, &ms) in times.iter().enumerate() {
                if nth < cut { all.add(ms) } else { rest.add(ms) }
            }
            all.merge(&rest);
            let mut sorted = times.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            let exact = sorted[(share * sorted.len() as f64).ceil() as usize - 1];
            let ratio = all.quantile_ms(share) / exact;
            prop_assert!((0.91..1.1).contains(&ratio), "{ratio}");
            let bins = all.bins();
            prop_assert_eq!(bins.iter().map(|bin| bin.ticks).sum::<u64>(), times.len() as u64);
            prop_assert!(bins[0].from_ms <= sorted[0] * 1.000_001);
        }
    }

    #[test]
    fn single_tick_is_its_own_median() {
        let mut counts = TimeCounts::default();
        assert_eq!((counts.quantile_ms(0.5), counts.bins().len()), (0.0, 0));
        counts.add(12.345);
        assert_eq!(counts.quantile_ms(0.5), 12.345);
        counts.add(f64::MAX);
        assert_eq!(counts.bins().len(), BINS - bin_index(12.345));
    }
}
