//! A run that pages can watch, pause, step and speed up.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use bevy_ecs::prelude::*;

use crate::CliError;
use throng::sim::clock::Stopwatch;
use throng_inspect::{
    InspectSettings, Inspector, PaceRequest, RunPace, open_inspector, refresh_pages,
};

/// The initial pace: paused before the first tick, so that a page does not miss any tick.
const INITIAL_PACE: RunPace = RunPace {
    is_paused: true,
    speed_percent: 100,
};

/// Maximum time to sleep before pages are polled again.
const PAGE_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A run that is later than this does not catch up.
const LATE_S_MAX: f64 = 0.25;

/// Maximum number of pending steps.
const STEPS_MAX: u32 = 1_000;

/// The maximum speed, in percent of real time; higher requests mean as fast as possible.
const SPEED_PERCENT_MAX: u32 = 100_000;

/// The pace of a run, as requested by its pages.
pub(super) struct PageControlledPace {
    pace: RunPace,
    /// Pending steps of a paused run.
    steps: u32,
    tick_s: f64,
    /// Started when the pace changed or the run was too late.
    stopwatch: Stopwatch,
    /// Ticks since then.
    ticks: u32,
}

impl PageControlledPace {
    /// Opens a page at a loopback address, and returns its address.
    pub fn open(
        world: &mut World,
        address: SocketAddr,
        tick_hz: f64,
    ) -> Result<(Self, SocketAddr), CliError> {
        if !address.ip().is_loopback() {
            return Err(CliError::new(format!(
                "--inspect {address}: expected a loopback address, such as 127.0.0.1:7777; use `throng serve` for pages on \
                 other machines"
            )));
        }
        let settings = InspectSettings {
            page: Some(address),
            pace: Some(INITIAL_PACE),
            ..InspectSettings::default()
        };
        let opened =
            open_inspector(world, settings).map_err(|error| CliError::new(error.to_string()))?;
        Ok((Self::new(tick_hz), opened.page.unwrap_or(address)))
    }

    fn new(tick_hz: f64) -> Self {
        Self {
            pace: INITIAL_PACE,
            steps: 0,
            tick_s: 1.0 / tick_hz,
            stopwatch: Stopwatch::start(),
            ticks: 0,
        }
    }

    /// Handles requests of pages. Returns whether the next tick is due; if not, sleeps for a while first.
    pub fn poll_tick_due(&mut self, world: &mut World) -> bool {
        if let Some(mut inspector) = world.get_resource_mut::<Inspector>() {
            let before = self.pace;
            while let Some(request) = inspector.next_pace_request() {
                self.apply(request);
            }
            if self.pace != before {
                inspector.send_pace(self.pace);
            }
        }
        match self.wait(self.stopwatch.elapsed().as_secs_f64()) {
            Some(Duration::ZERO) => true,
            wait => {
                if self.pace.is_paused {
                    refresh_pages(world);
                }
                thread::sleep(wait.unwrap_or(PAGE_POLL_INTERVAL).min(PAGE_POLL_INTERVAL));
                false
            }
        }
    }

    fn apply(&mut self, request: PaceRequest) {
        match request {
            PaceRequest::Pause => self.pace.is_paused = true,
            PaceRequest::Resume => self.pace.is_paused = false,
            PaceRequest::Step => {
                self.pace.is_paused = true;
                self.steps = (self.steps + 1).min(STEPS_MAX);
            }
            PaceRequest::Speed(percent) => {
                let is_slow = percent <= SPEED_PERCENT_MAX;
                self.pace.speed_percent = if is_slow { percent } else { 0 };
            }
        }
        if !self.pace.is_paused {
            self.steps = 0;
        }
        self.restart();
    }

    fn restart(&mut self) {
        (self.stopwatch, self.ticks) = (Stopwatch::start(), 0);
    }

    /// The time until the next tick, given the seconds since the stopwatch was started; `None` while paused without pending steps. A tick
    /// that is due counts as done.
    fn wait(&mut self, elapsed_s: f64) -> Option<Duration> {
        if self.pace.is_paused {
            self.steps = self.steps.checked_sub(1)?;
            return Some(Duration::ZERO);
        }
        if self.pace.speed_percent == 0 {
            return Some(Duration::ZERO);
        }
        let apart_s = self.tick_s * 100.0 / f64::from(self.pace.speed_percent);
        let early_s = f64::from(self.ticks) * apart_s - elapsed_s;
        if early_s > 0.0 {
            return Some(Duration::from_secs_f64(early_s));
        }
        if early_s < -LATE_S_MAX {
            self.restart();
        }
        self.ticks += 1;
        Some(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_can_be_paused_stepped_and_sped_up() {
        let mut pace = PageControlledPace::new(20.0);
        assert_eq!(pace.wait(10.0), None);
        pace.apply(PaceRequest::Step);
        pace.apply(PaceRequest::Step);
        let waits = [0.0; 3].map(|elapsed_s| pace.wait(elapsed_s));
        assert_eq!(waits, [Some(Duration::ZERO), Some(Duration::ZERO), None]);
        // Four times real time: a tick every 12.5 ms, the first one at once.
        pace.apply(PaceRequest::Speed(400));
        assert_eq!(pace.wait(0.0), None);
        pace.apply(PaceRequest::Resume);
        let due_ms = |pace: &mut PageControlledPace, elapsed_ms: u32| {
            let wait = pace.wait(f64::from(elapsed_ms) / 1e3).unwrap();
            wait.as_micros()
        };
        assert_eq!(due_ms(&mut pace, 0), 0);
        assert_eq!(due_ms(&mut pace, 0), 12_500);
        assert_eq!(due_ms(&mut pace, 13), 0);
        assert_eq!(due_ms(&mut pace, 13), 12_000);
        // A second late: missed ticks are not caught up.
        assert_eq!(due_ms(&mut pace, 1_000), 0);
        assert_eq!(due_ms(&mut pace, 0), 12_500);
        for percent in [0, u32::MAX] {
            pace.apply(PaceRequest::Speed(percent));
            assert_eq!((pace.pace.speed_percent, due_ms(&mut pace, 0)), (0, 0));
        }
        for _ in 0..2 * STEPS_MAX {
            pace.apply(PaceRequest::Step);
        }
        assert_eq!((pace.steps, pace.pace.is_paused), (STEPS_MAX, true));
        // Resuming drops pending steps.
        pace.apply(PaceRequest::Resume);
        pace.apply(PaceRequest::Pause);
        assert_eq!(pace.wait(0.0), None);
    }
}
