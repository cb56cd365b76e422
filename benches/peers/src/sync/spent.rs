//! The time of the measured part of a tick, for both sides: two systems around it.

use std::time::Duration;

use bevy_ecs::prelude::*;
use cpu_time::ThreadTime;

/// Processor time of the thread, which must be the same at both ends.
#[derive(Resource, Default)]
pub struct Spent {
    started: Duration,
    /// In the last tick.
    pub took: Duration,
}

pub fn start(mut spent: ResMut<Spent>) {
    spent.started = ThreadTime::now().as_duration();
}

pub fn stop(mut spent: ResMut<Spent>) {
    spent.took = ThreadTime::now().as_duration() - spent.started;
}
