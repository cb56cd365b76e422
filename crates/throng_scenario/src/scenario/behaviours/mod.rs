//! Behaviours and cues by name: what a scenario writes as `Wander(radius_m: 5)` becomes a
//! [`Behaviour`](crate::crowd::Behaviour), and what it writes as `Game(Storm(damage: 5))` is done by the game.
//!
//! ```text
//! `Guard(radius_m: 5, intruders: "player")` ─▶ name ─▶ Behaviours ─▶ BehaviourParameters ─▶ resolve ─▶ Behaviour
//!                                                        │                 │                  │
//!                             unknown: the closest name ─┘   wrong field ──┘   out of range ──┘─▶ file:line:column
//! ```
//! The built-in behaviours are registered from the start; a game registers its own with
//! [`register_behaviour`](BehaviourAppExt::register_behaviour), and scenarios name both alike. All cues by name are a
//! game's own.
//!
//! | file | holds |
//! |---|---|
//! | `built_in.rs` | what scenarios write of the behaviours that come with the crate |
//! | `cues.rs` | cues of a game's own |
//! | `parameters.rs` | what a behaviour's parameters are, and what they may ask while they are checked |
//! | `registry.rs` | the names |
//!
//! Invariant: a scenario is checked by resolving what it names, so what passed is what runs.

mod built_in;
mod cues;
mod parameters;
mod registry;

pub use cues::CueParameters;
pub use parameters::{BehaviourParameters, BehaviourSite};
pub use registry::{BehaviourAppExt, Behaviours};

pub(super) use parameters::area_in_metres;
