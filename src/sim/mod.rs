//! The tick: its order, clocks, workers, random streams, state hash, timings and overload control.
//!
//! Put your systems into a set of [`SimSystems`], in `FixedUpdate`. Plugins call [`start_plugin`] in their `build`; this makes them work alone, with
//! other plugins of this crate, or in an existing app.
//!
//! ```text
//! First ─▶ Ingest ─▶ Think ─▶ Navigate ─▶ Move ─▶ Locate ─▶ View ─▶ Heartbeat ─▶ Replicate ─▶ Send ─▶ Last
//! ```
//!
//! Invariants: a tick is one run of `FixedUpdate`. No other module reads a real clock, except through [`clock`].

// | file | contents |
// | `schedule` | the sets of a tick, the heartbeat, the tick rate |
// | `plugins` | what a plugin adds to the app and needs from it |
// | `clock` | real clocks and a manual one for tests; most of them are in `throng_core` |
// | `workers`, `background` | parallel work within a tick and between ticks; algorithms use it as a `ParallelExecutor` |
// | `worker_set` | how pool threads share a batch |
// | `columns` | component columns, split into runs of rows for these threads |
// | `hash` | the state hash, which games can extend |
// | `timing` | duration of each set |
// | `trace` | spans of sets, for profilers |
// | `warned_causes` | warnings that are logged once for each cause |
// | `overload` | overload levels: which work is reduced, in which order |
// | `governor` | measures the ticks and applies the overload level |

mod background;
pub mod clock;
mod columns;
mod governor;
mod hash;
#[cfg(test)]
mod logged;
mod overload;
mod plugins;
mod schedule;
mod timing;
#[cfg(feature = "trace")]
mod trace;
mod warned_causes;
mod worker_set;
mod workers;

pub(crate) use background::{BackgroundWorkers, start_task as begin_task, wait_for};
/// Derived by public components and settings, with the feature `reflect`; a plugin registers its own.
#[cfg(feature = "reflect")]
pub use bevy_reflect::Reflect;
#[doc(hidden)]
pub use columns::{ColumnRows, TableColumn, chunks};
pub(crate) use governor::LoadMeter;
pub use governor::{
    CounterDelta, LoadMeasure, OverloadChanged, OverloadSettings, OverloadStats,
    OverloadThresholds, WorkAppExt, WorkCosts,
};
pub use hash::{HashAppExt, StateHash, StateHasher, state_hash};
#[cfg(test)]
pub(crate) use logged::{log_to, logged_warnings};
pub use overload::{
    LOAD_FULL, LOAD_MAX, Overload, OverloadChange, OverloadEffects, OverloadLevel,
    OverloadTickSettings,
};
pub use plugins::{SimPlugin, TICK_HZ_DEFAULT, finish_plugin, sim_plugin, start_plugin};
pub use schedule::{
    AfterTick, Heartbeat, HeartbeatPhase, HeartbeatSystems, SimSettings, SimSystems, SimTick,
    install_tick, single_threaded,
};
pub use throng_core::parallel::{InlineExecutor, ParallelExecutor, ThreadExecutor};
pub use throng_core::random::RandomStreams;
pub use timing::{SetTiming, TickTimings, TimingPlugin};
pub(crate) use warned_causes::WarnedCauses;
pub use workers::Workers;
