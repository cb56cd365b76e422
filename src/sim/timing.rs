//! Duration of each set of a tick.
//!
//! [`TimingPlugin`] adds a timestamp between the sets; without it a tick costs nothing extra. Values are exact over the last
//! [`SAMPLES_MAX`] ticks; means and maxima cover the whole run.

use std::time::Duration;

use bevy_app::{App, FixedUpdate, Plugin};
use bevy_ecs::prelude::*;

use super::clock::Stopwatch;
use super::governor::update_overload;
use super::{AfterTick, SimSystems, install_tick};
use crate::memory::{AllocationTag, MemoryAppExt, MemoryUse, set_tick_tag};

/// Ticks whose times are stored for percentiles.
pub const SAMPLES_MAX: usize = 1 << 16;

/// Measures every set of [`SimSystems`] and the whole tick for [`TickTimings`].
#[derive(Clone, Copy, Debug, Default)]
pub struct TimingPlugin;

impl Plugin for TimingPlugin {
    fn build(&self, app: &mut App) {
        install_tick(app);
        app.init_resource::<TickTimings>()
            .count_memory::<TickTimings>("sim")
            .add_systems(
                FixedUpdate,
                start.after(update_overload).before(SimSystems::First),
            );
        for (index, set) in SimSystems::ALL.into_iter().enumerate() {
            let mark = move |mut timings: ResMut<TickTimings>| {
                timings.mark(index);
                set_tick_tag(
                    SimSystems::ALL
                        .get(index + 1)
                        .map_or(AllocationTag::default(), |set| set.allocation_tag()),
                );
            };
            match SimSystems::ALL.get(index + 1) {
                Some(&next) => app.add_systems(FixedUpdate, mark.after(set).before(next)),
                None => app.add_systems(FixedUpdate, mark.after(set).before(AfterTick)),
            };
        }
    }
}

/// Statistics of the ticks so far, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SetTiming {
    /// Mean over the whole run.
    pub mean_ms: f64,
    /// Median of the last 65,536 ticks.
    pub p50_ms: f64,
    /// 99th percentile of the last 65,536 ticks.
    pub p99_ms: f64,
    /// Maximum of the whole run.
    pub max_ms: f64,
}

/// The times of each set, and of the whole tick. Measured by the wall clock: never part of the game state.
#[derive(Resource, Clone, Debug, Default, MemoryUse)]
pub struct TickTimings {
    sets: [Samples; SimSystems::ALL.len()],
    ticks: Samples,
    lap: Option<Stopwatch>,
    whole_ns: u64,
}

impl TickTimings {
    /// Statistics of one set.
    #[must_use]
    pub fn set(&self, set: SimSystems) -> SetTiming {
        SimSystems::ALL
            .iter()
            .position(|&s| s == set)
            .map_or_else(SetTiming::default, |i| self.sets[i].timing())
    }

    /// Statistics of the whole tick: the sum of its sets.
    #[must_use]
    pub fn tick(&self) -> SetTiming {
        self.ticks.timing()
    }

    /// The duration of a set in the last tick, or of the whole tick, in milliseconds; 0 before the first.
    #[must_use]
    pub fn last_ms(&self, set: Option<SimSystems>) -> f64 {
        let place = set.and_then(|set| SimSystems::ALL.iter().position(|&s| s == set));
        let samples = place.map_or(&self.ticks, |place| &self.sets[place]);
        samples.last_ns as f64 / 1e6
    }

    /// How many of the stored ticks took at least `limit`. O(1) per stored tick.
    #[must_use]
    pub fn slow_ticks(&self, limit: Duration) -> usize {
        let limit_ns = u32::try_from(limit.as_nanos()).unwrap_or(u32::MAX);
        self.ticks
            .ring_ns
            .iter()
            .filter(|&&ns| ns >= limit_ns)
            .count()
    }

    /// The times of the stored ticks in milliseconds, in order while there are at most 65,536.
    #[must_use]
    pub fn recent_ticks_ms(&self) -> Vec<f64> {
        let kept = self.ticks.ring_ns.iter();
        kept.map(|&ns| f64::from(ns) / 1e6).collect()
    }

    /// Discards all samples, for example those of warm-up ticks.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    fn mark(&mut self, set: usize) {
        let Some(lap) = &mut self.lap else { return };
        let ns = lap.lap_ns();
        self.sets[set].add(ns);
        self.whole_ns += ns;
        if set + 1 == self.sets.len() {
            self.ticks.add(self.whole_ns);
        }
    }
}

fn start(mut timings: ResMut<TickTimings>) {
    timings.lap = Some(Stopwatch::start());
    timings.whole_ns = 0;
    set_tick_tag(SimSystems::First.allocation_tag());
}

impl SimSystems {
    /// The tag under which allocations in this set are counted, in an app with [`TimingPlugin`].
    #[must_use]
    pub fn allocation_tag(self) -> AllocationTag {
        let place = Self::ALL.iter().position(|&set| set == self);
        AllocationTag(place.map_or(0, |place| place as u8 + 1))
    }
}

/// A ring of the newest times with running totals.
#[derive(Clone, Debug, Default, MemoryUse)]
struct Samples {
    ring_ns: Vec<u32>,
    count: u64,
    total_ns: u64,
    max_ns: u64,
    last_ns: u64,
}

impl Samples {
    fn add(&mut self, ns: u64) {
        self.last_ns = ns;
        let kept = u32::try_from(ns).unwrap_or(u32::MAX);
        if self.ring_ns.len() < SAMPLES_MAX {
            self.ring_ns.push(kept);
        } else {
            self.ring_ns[(self.count % SAMPLES_MAX as u64) as usize] = kept;
        }
        self.count += 1;
        self.total_ns += ns;
        self.max_ns = self.max_ns.max(ns);
    }

    fn timing(&self) -> SetTiming {
        if self.ring_ns.is_empty() {
            return SetTiming::default();
        }
        let mut sorted = self.ring_ns.clone();
        sorted.sort_unstable();
        let at = |share: f64| {
            let rank = (share * sorted.len() as f64).ceil() as usize;
            f64::from(sorted[rank.clamp(1, sorted.len()) - 1]) / 1e6
        };
        SetTiming {
            mean_ms: self.total_ns as f64 / self.count as f64 / 1e6,
            p50_ms: at(0.50),
            p99_ms: at(0.99),
            max_ms: self.max_ns as f64 / 1e6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timings_match_the_samples() {
        let mut samples = Samples::default();
        (1..=100u64).for_each(|ms| samples.add(ms * 1_000_000));
        let timing = samples.timing();
        assert_eq!(
            timing,
            SetTiming {
                mean_ms: 50.5,
                p50_ms: 50.0,
                p99_ms: 99.0,
                max_ms: 100.0
            }
        );
    }

    #[test]
    fn long_run_keeps_the_newest_samples_and_all_totals() {
        let mut samples = Samples::default();
        samples.add(9_000_000_000);
        (0..SAMPLES_MAX as u64).for_each(|_| samples.add(1_000_000));
        assert_eq!(samples.ring_ns.len(), SAMPLES_MAX);
        assert_eq!(samples.timing().p99_ms, 1.0);
        assert_eq!(samples.timing().max_ms, 9_000.0);
    }

    #[test]
    fn slow_ticks_are_at_or_above_the_limit() {
        let mut timings = TickTimings::default();
        [1, 5, 9]
            .into_iter()
            .for_each(|ms| timings.ticks.add(ms * 1_000_000));
        let late = [1, 5, 6, 10_000_000].map(|ms| timings.slow_ticks(Duration::from_millis(ms)));
        assert_eq!(late, [3, 2, 1, 0]);
    }

    #[test]
    fn last_tick_is_reported_separately() {
        let mut timings = TickTimings::default();
        assert_eq!(timings.last_ms(None), 0.0);
        [9_000_000, 5_000_000]
            .into_iter()
            .for_each(|ns| timings.ticks.add(ns));
        timings.sets[SimSystems::ALL.len() - 1].add(2_000_000);
        assert_eq!(timings.last_ms(None), 5.0);
        assert_eq!(timings.last_ms(SimSystems::ALL.last().copied()), 2.0);
    }

    #[test]
    fn sets_are_timed_once_a_tick() {
        let mut app = App::new();
        app.add_plugins((bevy_time::TimePlugin, TimingPlugin));
        super::super::clock::one_tick_per_update(&mut app);
        (0..5).for_each(|_| app.update());
        let timings = app.world().resource::<TickTimings>();
        assert!(
            timings
                .sets
                .iter()
                .chain([&timings.ticks])
                .all(|samples| samples.count == 5)
        );
    }
}
