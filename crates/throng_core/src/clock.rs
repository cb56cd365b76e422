//! Real time, the time of day, and a stopwatch for measurements.
//!
//! The simulation counts ticks and never reads how late it is. In real time a [`Pacer`] sleeps between ticks. A loop that falls
//! behind catches up by at most two ticks at once and then lets the schedule slip, so a delay never becomes a burst.

use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// The number of late ticks that run without a pause; beyond that the schedule slips.
pub const CATCH_UP_TICKS_MAX: u32 = 2;

/// Milliseconds since 1970 by the system's clock; 0 if the clock is set to an earlier time. For data that several servers
/// share, such as leases, and never for the state of a simulation.
#[must_use]
pub fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

/// Measures elapsed time.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts the measurement.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// Time since the start, or the last lap, in nanoseconds; starts the next lap.
    pub fn lap_ns(&mut self) -> u64 {
        let now = Instant::now();
        let lap = now.duration_since(self.0);
        self.0 = now;
        u64::try_from(lap.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Keeps a loop of ticks in step with real time.
#[derive(Clone, Debug)]
pub struct Pacer {
    tick: Duration,
    next_tick_at: Instant,
    time_lost: Duration,
}

impl Pacer {
    /// Creates a pacer whose first tick is due now.
    #[must_use]
    pub fn new(tick: Duration) -> Self {
        Self {
            tick,
            next_tick_at: Instant::now(),
            time_lost: Duration::ZERO,
        }
    }

    /// Sets the interval between ticks from the next wait on.
    pub const fn set_tick(&mut self, tick: Duration) {
        self.tick = tick;
    }

    /// Sleeps until the next tick is due. Returns the slip of the schedule: the real time that was skipped since the last call.
    pub fn wait(&mut self) -> Duration {
        let (sleep, slip) = self.next_pause(Instant::now());
        self.time_lost += slip;
        thread::sleep(sleep);
        slip
    }

    /// The total slip of the schedule: real time that the simulation did not get.
    #[must_use]
    pub const fn time_lost(&self) -> Duration {
        self.time_lost
    }

    /// The pause before the next tick, and the slip of its schedule.
    fn next_pause(&mut self, now: Instant) -> (Duration, Duration) {
        let late = now.saturating_duration_since(self.next_tick_at);
        let slip = late.saturating_sub(self.tick * CATCH_UP_TICKS_MAX);
        let sleep = self.next_tick_at.saturating_duration_since(now);
        self.next_tick_at += self.tick + slip;
        (sleep, slip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(50);

    #[test]
    fn punctual_loop_sleeps_for_the_rest_of_each_tick() {
        let start = Instant::now();
        let mut pacer = Pacer {
            tick: TICK,
            next_tick_at: start,
            time_lost: Duration::ZERO,
        };
        assert_eq!(pacer.next_pause(start), (Duration::ZERO, Duration::ZERO));
        assert_eq!(
            pacer.next_pause(start + TICK / 5),
            (TICK * 4 / 5, Duration::ZERO)
        );
    }

    #[test]
    fn late_loop_catches_up_two_ticks_and_drops_the_rest() {
        let start = Instant::now();
        let mut pacer = Pacer {
            tick: TICK,
            next_tick_at: start,
            time_lost: Duration::ZERO,
        };
        let now = start + TICK * 10;
        assert_eq!(pacer.next_pause(now), (Duration::ZERO, TICK * 8));
        assert_eq!(pacer.next_pause(now), (Duration::ZERO, Duration::ZERO));
        assert_eq!(pacer.next_pause(now), (Duration::ZERO, Duration::ZERO));
        assert_eq!(pacer.next_pause(now), (TICK, Duration::ZERO));
    }
}
