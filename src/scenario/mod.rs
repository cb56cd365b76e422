//! Scenarios: what a run is made of, written down in a file.
//!
//! ```text
//! file or built-in ──▶ [`load`] ──▶ [`Scenario`] ──▶ [`validate()`] ─▶ the runner
//!                        │                              │
//!                        └──── [`ScenarioError`]: file, line, column, what was found, what would be right
//! ```
//! A scenario is a cast list and a script in RON: scenes, crowds, queues, cues at given times, and expectations that are
//! judged at the end. Everything but the name has a default, unknown fields are refused, units stand in the names.
//!
//! Invariants: no text, however broken, panics or allocates more than a small multiple of its size; a scenario that
//! passed [`validate()`] names only scenes, kinds, tags, modes and attributes that exist, and every number in it is finite
//! and within a limit of [`limits`].
//!
//! Cost: O(text) to read; O(cues × log names + scenes²) to validate.

mod battles;
mod bounds;
mod builtin;
mod checks;
mod error;
mod events;
mod fits;
pub mod limits;
mod load;
mod outline;
mod place;
mod queues;
pub mod report;
mod runner;
mod schema;
mod script;
mod stage;
mod suggest;
mod syntax;
mod validate;

pub use battles::{Battles, BattlesStats};
pub use builtin::{BUILT_IN, BuiltIn, built_in};
pub use error::{Mistake, ScenarioError};
pub use events::EventLog;
pub use load::{Loaded, SCENARIO_BYTES_MAX, load, parse};
pub use place::{PathStep, Problem, ValuePath};
pub use report::{Judged, Memory, Report};
pub use runner::{RunOptions, ScenarioRun};
pub use schema::{
    Action, Area, BehaviourSpec, Class, Crowd, Cue, Expectation, MapSource, Packets, Queue,
    Scenario, ScenarioScene, Scope, SetName, Settings, Sight,
};
pub use script::ScenarioScript;
pub use suggest::{closest, one_of};
pub use validate::validate;
