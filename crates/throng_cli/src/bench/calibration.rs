//! Two fixed kernels, timed before, between and after the systems. They measure the speed of this machine's core and memory, which makes
//! results of different machines comparable; if they vary within a run, the machine had other load.

use std::hint::black_box;

use super::rows::BenchRow;
use crate::cores;
use throng::sim::clock::Stopwatch;

/// The system name of its rows.
pub(super) const SYSTEM: &str = "calibration";

/// Steps of the core kernel per sample.
const CORE_STEPS: u64 = 1 << 19;

/// Entries that the memory kernel visits: 64 MiB, more than most caches hold.
const MEMORY_SLOTS: u32 = 1 << 24;

/// Steps of the memory kernel per sample.
const MEMORY_STEPS: u32 = 1 << 16;

/// Samples per timing of the kernels.
const SAMPLES: usize = 5;

/// A sample that takes this many times the minimum counts as disturbed.
const DISTURBED_RATIO: f64 = 1.25;

/// Load per core before the first measurement above which the machine counts as busy.
const LOAD_PER_CORE_MAX: f64 = 0.5;

/// The samples of a run.
pub(super) struct Calibration {
    core_ns: Vec<f64>,
    memory_ns: Vec<f64>,
    /// The successor of each entry; together they form one cycle through all entries.
    next: Vec<u32>,
    at: u32,
}

impl Calibration {
    /// No timings yet.
    pub(super) fn new() -> Self {
        // A congruential generator of full period (Hull and Dobell, 1962) visits all entries in an order that no prefetcher predicts, and
        // is cheap to compute.
        let next = (0..MEMORY_SLOTS)
            .map(|place| place.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) % MEMORY_SLOTS);
        Self {
            core_ns: Vec::new(),
            memory_ns: Vec::new(),
            next: next.collect(),
            at: 0,
        }
    }

    /// Times both kernels a few times.
    pub(super) fn measure(&mut self) {
        for _ in 0..SAMPLES {
            let watch = Stopwatch::start();
            black_box(core_kernel(black_box(CORE_STEPS)));
            let ns = watch.elapsed().as_secs_f64() * 1e9;
            self.core_ns.push(ns / CORE_STEPS as f64);
            let watch = Stopwatch::start();
            for _ in 0..MEMORY_STEPS {
                self.at = self.next[self.at as usize];
            }
            black_box(self.at);
            let ns = watch.elapsed().as_secs_f64() * 1e9;
            self.memory_ns.push(ns / f64::from(MEMORY_STEPS));
        }
    }

    /// One row per kernel.
    pub(super) fn rows(&self) -> [BenchRow; 2] {
        [
            BenchRow::repeated(SYSTEM, "core", &self.core_ns, "ns/step").about(
                "A fixed loop of integer arithmetic and branches, in one thread: the speed of a \
                 core while the rest was measured.",
            ),
            BenchRow::repeated(SYSTEM, "memory", &self.memory_ns, "ns/read").about(
                "Reads in 64 MiB, each of which yields the address of the next: the latency of \
                 memory.",
            ),
        ]
    }

    /// Signs that other load disturbed the figures, given the load average before the measurement; empty if there are none.
    pub(super) fn busy_reasons(&self, load_average: Option<f64>) -> Vec<String> {
        disturbances(load_average, cores(), &self.core_ns)
    }
}

/// One disturbed sample in ten is normal.
fn disturbances(load: Option<f64>, cores: usize, core_ns: &[f64]) -> Vec<String> {
    let mut reasons = Vec::new();
    if let Some(load) = load.filter(|load| *load > LOAD_PER_CORE_MAX * cores as f64) {
        reasons.push(format!(
            "load average {load:.2} on {cores} cores before the first measurement"
        ));
    }
    let least = core_ns.iter().copied().fold(f64::INFINITY, f64::min);
    let disturbed = core_ns
        .iter()
        .filter(|ns| **ns > DISTURBED_RATIO * least)
        .count();
    if disturbed * 10 > core_ns.len() {
        let most = core_ns.iter().copied().fold(0.0, f64::max);
        reasons.push(format!(
            "the same work of one core took between {least:.2} and {most:.2} ns"
        ));
    }
    reasons
}

/// Arithmetic in which each step depends on the one before, with a data-dependent branch.
fn core_kernel(steps: u64) -> u64 {
    let (mut state, mut odd) = (0x9E37_79B9_7F4A_7C15u64, 0u64);
    for _ in 0..steps {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state & 3 == 0 {
            odd = odd.wrapping_mul(31) ^ state;
        } else {
            odd = odd.wrapping_add(state >> 3);
        }
    }
    odd
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_walk_visits_every_slot() {
        let calibration = Calibration::new();
        let (mut at, mut steps) = (calibration.next[0], 1);
        while at != 0 {
            at = calibration.next[at as usize];
            steps += 1;
        }
        assert_eq!(steps, MEMORY_SLOTS);
    }

    #[test]
    fn busy_machine_is_reported_and_idle_one_is_not() {
        let mut ns = vec![2.0; 19];
        ns.push(9.0);
        assert!(disturbances(Some(0.3), 2, &ns).is_empty());
        assert!(disturbances(None, 2, &[]).is_empty());
        assert_eq!(disturbances(Some(1.7), 2, &ns).len(), 1);
        ns.extend([2.6, 2.6]);
        assert_eq!(disturbances(Some(1.7), 2, &ns).len(), 2);
    }

    #[test]
    fn both_kernels_are_timed() {
        let mut calibration = Calibration::new();
        calibration.measure();
        for row in calibration.rows() {
            assert!(row.value > 0.0 && row.spread.is_some(), "{row:?}");
        }
    }
}
