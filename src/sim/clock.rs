//! Real-time pacing, and the stopwatch for measurements.
//!
//! A server runs as fast as possible or in real time. In both cases one [`App::update`] is exactly one tick of
//! [`FixedUpdate`](bevy_app::FixedUpdate): the simulation counts ticks and does not depend on delays. In real time a [`Pacer`] sleeps between
//! updates. A loop that is late catches up by at most two ticks at once; further time is skipped, so that delays do not accumulate.

use std::time::Duration;

use bevy_app::App;
use bevy_time::{Fixed, Time, TimeUpdateStrategy, Virtual};
pub use throng_core::clock::*;
use tracing::warn;

/// A server that stood still for less does so without a warning: on a busy machine that is normal.
const STANDSTILL_MIN: Duration = Duration::from_secs(2);

/// Logs that no tick ran for long, and how many of this length were skipped: the process was suspended, or a tick took that long.
pub(crate) fn warn_of_standstill(skipped: Duration, tick: Duration) {
    if skipped >= STANDSTILL_MIN {
        warn!(
            "server stood still for {:.1} s: the process was suspended, or a tick took that long; {:.0} ticks skipped",
            skipped.as_secs_f64(),
            skipped.as_secs_f64() / tick.as_secs_f64()
        );
    }
}

/// Makes every later [`App::update`] run `FixedUpdate` exactly once, whatever the wall clock says.
///
/// Runs the app's start-up (one update, in which no time passes) on the way. Call it after all plugins are added.
pub fn one_tick_per_update(app: &mut App) {
    let timestep = app.world().resource::<Time<Fixed>>().timestep();
    app.insert_resource(TimeUpdateStrategy::FixedTimesteps(1));
    app.world_mut()
        .resource_mut::<Time<Virtual>>()
        .set_max_delta(timestep.max(Duration::from_millis(250)));
    app.update();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::logged_warnings;

    #[test]
    fn standstill_of_two_seconds_is_logged_with_skipped_ticks() {
        let warnings_of = |ms| {
            let skipped = Duration::from_millis(ms);
            logged_warnings(|| warn_of_standstill(skipped, Duration::from_millis(50)))
        };
        assert_eq!(warnings_of(1_999), Vec::<String>::new());
        let warnings = warnings_of(12_000);
        assert!(
            warnings.len() == 1
                && warnings[0].contains("12.0 s")
                && warnings[0].ends_with("240 ticks skipped"),
            "{warnings:?}"
        );
        assert_eq!(warnings_of(2_000).len(), 1);
    }
}
