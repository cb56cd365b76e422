//! The tick's end: what is noted, gathered and handed to the thread that serves it.
//!
//! | file | holds |
//! |---|---|
//! | `note` | how long each tick took, and a line about slow ones |
//! | `gather` | the server's numbers, as metrics |
//! | `inspector` | opening the addresses, and answering what is asked |
//! | `pages` | which page is told what, and when |
//! | `summary` | figures of the whole server, for pages |
//! | `picked` | one object: what it is, its way, whom it sees and why |
//! | `waits` | who waits longest for a match, and why |
//! | `health` | whether players can play |
//! | `heats` | what cells cost |

mod health;
mod heatmap;
mod inspector;
mod metrics;
mod pages;
mod selected;
mod slow_ticks;
mod summary;
mod waits;

use bevy_app::{App, FixedUpdate, Last, Plugin};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};

pub use health::ServerHealth;
pub use inspector::{
    InspectAddresses, InspectError, InspectSettings, Inspector, MEMORY_INTERVAL_S,
    METRIC_UPDATES_PER_S, PAGE_ACTIONS_MAX, open_inspector, refresh_pages,
};

use super::ticks::TickHistory;
use throng::sim::{self, AfterTick};

/// Notes how long ticks take where [`TimingPlugin`](throng::sim::TimingPlugin) times them, writes a warning about slow ones (at
/// most one a second), and answers whoever looks at the server once [`open_inspector`] was called. Without that it costs a few
/// additions a tick.
#[derive(Clone, Copy, Debug, Default)]
pub struct InspectPlugin;

impl Plugin for InspectPlugin {
    fn build(&self, app: &mut App) {
        sim::install_tick(app);
        app.init_resource::<RecordedTicks>()
            .add_systems(FixedUpdate, slow_ticks::record_tick.in_set(AfterTick))
            .init_resource::<ServerHealth>()
            .add_systems(Last, (health::update_health, inspector::answer).chain());
    }
}

/// The ticks so far.
#[derive(Resource, Debug, Default)]
pub(super) struct RecordedTicks {
    pub history: TickHistory,
    /// The last tick that was noted.
    pub tick: u64,
}

/// The length of a tick in seconds.
fn tick_s(world: &World) -> f64 {
    let time = world.get_resource::<Time<Fixed>>();
    time.map_or(0.05, |time| time.timestep().as_secs_f64())
}
