//! A series of any length in a fixed number of buckets: when all are full, neighbours are merged in pairs, and each bucket holds
//! twice as many ticks from then on.

use super::sample::{COLUMNS, TickSample};
use super::times::TimeCounts;

/// Number of buckets: about the number of pixels of a plot.
pub(super) const BUCKETS_MAX: usize = 480;

/// A range of consecutive ticks.
#[derive(Clone, Debug)]
pub(super) struct TickBucket {
    pub ticks: u64,
    /// Sums by column, over the ticks.
    pub sums: [f64; COLUMNS],
    pub times: TimeCounts,
    pub longest_ms: f64,
    /// How often each cue ran.
    pub cues: Box<[u32]>,
}

impl TickBucket {
    fn new(cues: usize) -> Self {
        Self {
            ticks: 0,
            sums: [0.0; COLUMNS],
            times: TimeCounts::default(),
            longest_ms: 0.0,
            cues: vec![0; cues].into(),
        }
    }

    fn add(&mut self, sample: &TickSample) {
        self.ticks += 1;
        for (sum, value) in self.sums.iter_mut().zip(sample.values) {
            *sum += value;
        }
        self.times.add(sample.tick_ms());
        self.longest_ms = self.longest_ms.max(sample.tick_ms());
        for &cue in &sample.cues {
            if let Some(count) = self.cues.get_mut(cue) {
                *count = count.saturating_add(1);
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        self.ticks += other.ticks;
        for (sum, more) in self.sums.iter_mut().zip(other.sums) {
            *sum += more;
        }
        self.times.merge(&other.times);
        self.longest_ms = self.longest_ms.max(other.longest_ms);
        for (count, more) in self.cues.iter_mut().zip(&other.cues) {
            *count = count.saturating_add(*more);
        }
    }
}

/// All ticks of a run.
#[derive(Clone, Debug)]
pub(super) struct TickBuckets {
    buckets: Vec<TickBucket>,
    bucket_ticks: u64,
    buckets_max: usize,
    cues: usize,
}

impl TickBuckets {
    /// A series of at most `buckets_max` buckets, an even number; each counts this number of cues.
    pub fn new(buckets_max: usize, cues: usize) -> Self {
        debug_assert!(buckets_max >= 2 && buckets_max.is_multiple_of(2));
        Self {
            buckets: Vec::with_capacity(buckets_max),
            bucket_ticks: 1,
            buckets_max,
            cues,
        }
    }

    /// The number of ticks of every bucket but the last, which may have fewer.
    pub const fn bucket_ticks(&self) -> u64 {
        self.bucket_ticks
    }

    pub fn buckets(&self) -> &[TickBucket] {
        &self.buckets
    }

    pub fn add(&mut self, sample: &TickSample) {
        let is_full = self
            .buckets
            .last()
            .is_none_or(|last| last.ticks == self.bucket_ticks);
        if is_full {
            if self.buckets.len() == self.buckets_max {
                self.merge_pairs();
            }
            self.buckets.push(TickBucket::new(self.cues));
        }
        if let Some(last) = self.buckets.last_mut() {
            last.add(sample);
        }
    }

    fn merge_pairs(&mut self) {
        for nth in 0..self.buckets.len() / 2 {
            let (front, back) = self.buckets.split_at_mut(2 * nth + 1);
            front[2 * nth].merge(&back[0]);
            self.buckets.swap(nth, 2 * nth);
        }
        self.buckets.truncate(self.buckets.len() / 2);
        self.bucket_ticks *= 2;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compared with the plain list of all ticks, cut into buckets of the resulting size.
        #[test]
        fn buckets_are_bounded_and_hold_every_tick_once_in_order(
            times in prop::collection::vec(0.01f64..100.0, 0..300),
            half in 1usize..5,
        ) {
            let mut buckets = TickBuckets::new(2 * half, 2);
            for (nth, &ms) in times.iter().enumerate() {
                buckets.add(&TickSample::with_tick_ms(ms, vec![nth % 3]));
            }
            prop_assert!(buckets.buckets().len() <= 2 * half);
            prop_assert!(buckets.bucket_ticks().is_power_of_two());
            let size = buckets.bucket_ticks() as usize;
            let expected: Vec<&[f64]> = times.chunks(size).collect();
            prop_assert_eq!(buckets.buckets().len(), expected.len());
            let mut cues = [0, 0];
            for (bucket, ticks) in buckets.buckets().iter().zip(expected) {
                prop_assert_eq!(bucket.ticks as usize, ticks.len());
                let sum: f64 = ticks.iter().sum();
                prop_assert!((bucket.sums[0] - sum).abs() < 1e-9 * sum.max(1.0));
                let longest = ticks.iter().copied().fold(0.0, f64::max);
                prop_assert_eq!(bucket.longest_ms, longest);
                prop_assert!(bucket.times.quantile_ms(0.5) <= longest);
                cues = [cues[0] + bucket.cues[0], cues[1] + bucket.cues[1]];
            }
            // The third cue is beyond the limit, and is not counted.
            let ran = |cue| (0..times.len()).filter(|nth| nth % 3 == cue).count() as u32;
            prop_assert_eq!(cues, [ran(0), ran(1)]);
        }
    }
}
