//! The tick: its order, its clocks, its workers, its randomness, its hash and its timings.
//!
//! ```text
//! First ─▶ Ingest ─▶ Think ─▶ Navigate ─▶ Move ─▶ Locate ─▶ View ─▶ Heartbeat ─▶ Replicate ─▶ Send ─▶ Last
//! ```
//! Everything else in the crate hangs off these sets. A plugin calls [`begin`] and works alone, beside others of the
//! crate, or inside an app that exists already.
//!
//! | file | holds |
//! |---|---|
//! | `schedule` | the sets of a tick, the heartbeat, the tick rate |
//! | `plugins` | what a plugin adds, and what it expects of the app |
//! | `clock` | the clocks on the wall, and one that a test winds; all but the last are `throng_core`'s |
//! | `workers`, `background` | work over threads: of a tick, and beside the ticks; algorithms see it as a [`Spread`] |
//! | `hands` | how threads of a pool share a piece of work |
//! | `columns` | columns of components, cut into runs of rows for those threads |
//! | `hash` | the state hash, open to embedders |
//! | `timing` | what each set took |
//! | `trace` | spans of sets, for profilers |
//! | `overload` | what is given up when ticks take too long, and in which order |
//! | `governor` | the same in the tick: what a tick cost, and what it may |
//!
//! Invariants: a tick is one run of `FixedUpdate`; nothing below reads a wall clock except by [`clock`].

mod background;
pub mod clock;
mod columns;
mod governor;
mod hands;
mod hash;
mod overload;
mod plugins;
mod schedule;
mod timing;
#[cfg(feature = "trace")]
mod trace;
mod workers;

pub(crate) use background::{BackgroundWorkers, begin as begin_task, wait_for};
/// Derived by public components and settings, with the feature `reflect`; a plugin registers its own.
#[cfg(feature = "reflect")]
pub use bevy_reflect::Reflect;
#[doc(hidden)]
pub use columns::{ColumnRows, TableColumn, pieces};
pub(crate) use governor::LoadMeter;
pub use governor::{
    Growth, LoadMeasure, OverloadChanged, OverloadSettings, OverloadStats, OverloadThresholds,
    WorkAppExt, WorkCosts,
};
pub use hash::{HashAppExt, StateHash, StateHasher, state_hash};
pub use overload::{
    LOAD_FULL, LOAD_MAX, Overload, OverloadChange, OverloadEffects, OverloadLevel, OverloadRules,
};
pub use plugins::{SimPlugin, begin, finish, sim_plugin};
pub use schedule::{
    Heartbeat, HeartbeatPhase, HeartbeatSystems, SimSettings, SimSystems, SimTick, TickObservers,
    install, single_threaded,
};
pub use throng_core::parallel::{Inline, Spread, Threads};
pub use throng_core::random::RandomStreams;
pub use timing::{SetTiming, TickTimings, TimingPlugin};
pub use workers::Workers;
