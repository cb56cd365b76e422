//! The two clocks: as fast as possible, and real time; and the stopwatch behind every figure.
//!
//! Under both, one [`App::update`] is exactly one tick of [`FixedUpdate`](bevy_app::FixedUpdate): the simulation counts
//! ticks and never asks how late it is. In real time a [`Pacer`] sleeps between updates; a loop that falls behind catches
//! up by at most two ticks at once and then lets the schedule slip, so that lateness never grows into a burst.

use std::time::Duration;

use bevy_app::App;
use bevy_time::{Fixed, Time, TimeUpdateStrategy, Virtual};
pub use throng_core::clock::*;

/// Makes every later [`App::update`] run `FixedUpdate` exactly once, whatever the wall clock says.
///
/// Runs the app's start-up (one update, in which no time passes) on the way. Call it after all plugins are added.
pub fn one_tick_an_update(app: &mut App) {
    let timestep = app.world().resource::<Time<Fixed>>().timestep();
    app.insert_resource(TimeUpdateStrategy::FixedTimesteps(1));
    app.world_mut()
        .resource_mut::<Time<Virtual>>()
        .set_max_delta(timestep.max(Duration::from_millis(250)));
    app.update();
}
