//! The systems at the tick's end: what is recorded, gathered and sent to the server thread.
//!
//! | file | holds |
//! |---|---|
//! | `slow_ticks` | tick times, and a log message about slow ticks |
//! | `metrics` | the server's numbers, as metrics |
//! | `audit_log` | the audit log of actions outside the administration API |
//! | `inspector` | opening the addresses, and replying to requests |
//! | `pages` | which page receives what, and when |
//! | `summary` | figures of the whole server, for pages |
//! | `selected` | one object: its state, its path, its view and the reasons |
//! | `session_log` | ended sessions, and errors of clients |
//! | `sessions` | the list of sessions |
//! | `search` | players, objects and sessions by number |
//! | `matches` | matches, queues and parties |
//! | `waits` | the parties that wait longest for a match, and why |
//! | `health` | whether players can play |
//! | `heatmap` | costs per cell |

mod audit_log;
mod health;
mod heatmap;
mod inspector;
mod matches;
mod metrics;
mod pages;
mod search;
mod selected;
mod session_log;
mod sessions;
mod slow_ticks;
mod summary;
mod waits;

use bevy_app::{App, FixedUpdate, Last, Plugin};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};

pub use audit_log::AuditLog;
pub use health::ServerHealth;
pub use inspector::{
    InspectAddresses, InspectError, InspectSettings, Inspector, MEMORY_INTERVAL_S,
    METRIC_UPDATES_PER_S, PAGE_ACTIONS_MAX, open_inspector, refresh_pages,
};
pub use metrics::AppMetrics;

use super::ticks::TickHistory;
use throng::session::{ClientMessageRefused, LoggedOut, SessionClosed};
use throng::sim::{self, AfterTick};

/// Records tick times if [`TimingPlugin`](throng::sim::TimingPlugin) measures them, logs a warning about slow ticks (at most one
/// a second), and replies to requests once [`open_inspector`] was called. Without that it costs a few additions per tick.
#[derive(Clone, Copy, Debug, Default)]
pub struct InspectPlugin;

impl Plugin for InspectPlugin {
    fn build(&self, app: &mut App) {
        sim::install_tick(app);
        app.init_resource::<RecordedTicks>()
            .init_resource::<session_log::SessionLog>()
            .add_message::<ClientMessageRefused>()
            .add_message::<LoggedOut>()
            .add_message::<SessionClosed>()
            .add_systems(
                FixedUpdate,
                (slow_ticks::record_tick, session_log::record_sessions).in_set(AfterTick),
            )
            .init_resource::<ServerHealth>()
            .init_resource::<AppMetrics>()
            .add_systems(
                Last,
                (
                    health::update_health,
                    inspector::answer,
                    crate::admin::handle_admin_commands,
                )
                    .chain(),
            );
    }
}

/// The ticks so far.
#[derive(Resource, Debug, Default)]
pub(super) struct RecordedTicks {
    pub history: TickHistory,
    /// The last recorded tick.
    pub tick: u64,
}

/// The length of a tick in seconds.
fn tick_s(world: &World) -> f64 {
    let time = world.get_resource::<Time<Fixed>>();
    time.map_or(0.05, |time| time.timestep().as_secs_f64())
}
