//! How often something took how long.

/// The number of upper bounds.
const BOUNDS: usize = 10;

/// How often something took how long, in milliseconds. A forged time changes only these figures.
///
/// ```
/// use throng_cluster::CountedTimes;
///
/// let mut times = CountedTimes::new([1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000]);
/// times.add(30);
/// assert_eq!((times.count(), times.sum_s()), (1, 0.03));
/// // At most 20 ms: none. At most 50 ms: one.
/// assert_eq!(times.cumulative_s()[4..6], [(0.02, 0), (0.05, 1)]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedTimes {
    bounds_ms: [u64; BOUNDS],
    /// The number of times up to each bound and above the one before; the last one is above all bounds.
    counts: [u64; BOUNDS + 1],
    sum_ms: u64,
}

impl CountedTimes {
    /// No times. The upper bounds are ascending, in milliseconds.
    #[must_use]
    pub const fn new(bounds_ms: [u64; 10]) -> Self {
        Self {
            bounds_ms,
            counts: [0; BOUNDS + 1],
            sum_ms: 0,
        }
    }

    /// Counts a time. O(1).
    pub fn add(&mut self, ms: u64) {
        let nth = self.bounds_ms.partition_point(|bound| *bound < ms);
        self.counts[nth] += 1;
        self.sum_ms = self.sum_ms.saturating_add(ms);
    }

    /// The number of times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of the times, in seconds.
    #[must_use]
    pub const fn sum_s(&self) -> f64 {
        self.sum_ms as f64 / 1_000.0
    }

    /// The upper bounds in seconds, and the number of times up to each.
    #[must_use]
    pub fn cumulative_s(&self) -> [(f64, u64); 10] {
        let mut below = 0;
        let mut counts = self.counts.iter();
        self.bounds_ms.map(|bound| {
            below += counts.next().copied().unwrap_or(0);
            (bound as f64 / 1_000.0, below)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_up_to_each_bound() {
        let mut times = CountedTimes::new([1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000]);
        for ms in [0, 1, 2, 3, 10, 11, 1_000, 1_001] {
            times.add(ms);
        }
        let below = times.cumulative_s().map(|(_, below)| below);
        assert_eq!(below, [2, 3, 4, 5, 6, 6, 6, 6, 6, 7]);
        assert_eq!((times.count(), times.sum_s()), (8, 2.028));
        times.add(u64::MAX);
        assert_eq!(times.count(), 9);
    }
}
