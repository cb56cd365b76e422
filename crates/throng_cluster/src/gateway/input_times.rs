//! How long inputs take from a gateway to the node.

/// The upper bounds of the counts, in milliseconds.
const BOUNDS_MS: [u64; 10] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000];

/// How long inputs took from their arrival at a gateway to their arrival at the node: the time that they waited at the gateway, and half of
/// the last round trip on the link. A forged time changes only these figures.
///
/// ```
/// use throng_cluster::InputTimes;
///
/// let times = InputTimes::default();
/// assert_eq!((times.count(), times.sum_s()), (0, 0.0));
/// assert!(times.cumulative_s().iter().all(|(_, below)| *below == 0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputTimes {
    /// The number of inputs up to each bound and above the one before; the last one is above all bounds.
    counts: [u64; BOUNDS_MS.len() + 1],
    sum_ms: u64,
}

impl InputTimes {
    pub(super) fn add(&mut self, ms: u64) {
        let nth = BOUNDS_MS.partition_point(|bound| *bound < ms);
        self.counts[nth] += 1;
        self.sum_ms += ms;
    }

    /// The number of inputs.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of their times, in seconds.
    #[must_use]
    pub const fn sum_s(&self) -> f64 {
        self.sum_ms as f64 / 1_000.0
    }

    /// Ascending times in seconds, and the number of inputs that took at most so long.
    #[must_use]
    pub fn cumulative_s(&self) -> [(f64, u64); BOUNDS_MS.len()] {
        let mut below = 0;
        let mut counts = self.counts.iter();
        BOUNDS_MS.map(|bound| {
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
        let mut times = InputTimes::default();
        for ms in [0, 1, 2, 3, 10, 11, 1_000, 1_001] {
            times.add(ms);
        }
        let below = times.cumulative_s().map(|(_, below)| below);
        assert_eq!(below, [2, 3, 4, 5, 6, 6, 6, 6, 6, 7]);
        assert_eq!((times.count(), times.sum_s()), (8, 2.028));
    }
}
