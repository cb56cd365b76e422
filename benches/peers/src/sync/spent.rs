//! Measures the timed part of a tick, for both sides, with a system before it and one after it.

use std::time::Duration;

use bevy_ecs::prelude::*;
use cpu_time::ThreadTime;

/// CPU time of the thread that runs both systems, which must be the same thread.
#[derive(Resource, Default)]
pub struct Spent {
    started: Duration,
    /// The time in the last tick.
    pub took: Duration,
}

pub fn start(mut spent: ResMut<Spent>) {
    spent.started = ThreadTime::now().as_duration();
}

pub fn stop(mut spent: ResMut<Spent>) {
    spent.took = ThreadTime::now().as_duration() - spent.started;
}
