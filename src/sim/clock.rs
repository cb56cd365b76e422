//! Real-time pacing, and the stopwatch for measurements.
//!
//! A server runs as fast as possible or in real time. In both cases one [`App::update`] is exactly one tick of
//! [`FixedUpdate`](bevy_app::FixedUpdate): the simulation counts ticks and does not depend on delays. In real time a [`Pacer`] sleeps between
//! updates. A loop that is late catches up by at most two ticks at once; further time is skipped, so that delays do not accumulate.

use std::time::Duration;

use bevy_app::App;
use bevy_time::{Fixed, Time, TimeUpdateStrategy, Virtual};
pub use throng_core::clock::*;

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
