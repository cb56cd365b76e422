//! Behaviours and cues by name: a scenario's `Wander(radius_m: 5)` becomes a [`Behaviour`](crate::crowd::Behaviour), and its
//! `Game(Storm(damage: 5))` runs a cue of the game.
//!
//! ```text
//! `Guard(radius_m: 5, intruders: "player")` ─▶ name ─▶ Behaviours ─▶ BehaviourParameters ─▶ resolve ─▶ Behaviour
//!                                                        │                 │                  │
//!                             unknown: the closest name ─┘   wrong field ──┘   out of range ──┘─▶ file:line:column
//! ```
//! The built-in behaviours are registered from the start; a game registers its own with
//! [`register_behaviour`](BehaviourAppExt::register_behaviour), and scenarios use both in the same way. All cues by name belong
//! to the game.
//!
//! | file | holds |
//! |---|---|
//! | `built_in.rs` | scenario parameters of the built-in behaviours |
//! | `cues.rs` | custom cues of a game |
//! | `parameters.rs` | the parameters of a behaviour, and the context of their checks |
//! | `registry.rs` | the registered names |
//!
//! Invariant: a scenario is validated by resolving its names, so the validated values are the ones that run.

mod built_in;
mod cues;
mod parameters;
mod registry;

pub use cues::CueParameters;
pub use parameters::{BehaviourParameters, BehaviourSite};
pub use registry::{BehaviourAppExt, Behaviours};

pub(super) use parameters::area_in_metres;
pub(super) use registry::{BehaviourVisitor, for_each_built_in};
