//! The tick: its order, its clocks, its workers, its randomness, its hash and its timings.
//!
//! ```text
//! First ─▶ Ingest ─▶ Think ─▶ Navigate ─▶ Move ─▶ Locate ─▶ View ─▶ Heartbeat ─▶ Replicate ─▶ Send ─▶ Last
//! ```
//! Everything else in the crate hangs off these sets. A plugin calls [`install`] and works alone, beside others of the
//! crate, or inside an app that exists already; the first call lays the sets down, later calls do nothing.
//!
//! Invariants: a tick is one run of `FixedUpdate`; nothing below reads a wall clock except [`clock`].

pub mod clock;
mod hash;
mod random;
mod schedule;
mod spread;
mod timing;
mod workers;

pub use hash::{HashAppExt, StateHash, StateHasher, state_hash};
pub use random::RandomStreams;
pub use schedule::{
    Heartbeat, HeartbeatPhase, HeartbeatSystems, SimPlugin, SimSettings, SimSystems, SimTick,
    TickObservers, install, single_threaded,
};
pub use spread::{Inline, Spread};
pub use timing::{SetTiming, TickTimings, TimingPlugin};
pub use workers::Workers;
