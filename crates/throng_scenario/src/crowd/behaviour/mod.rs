//! The behaviours of individuals.
//!
//! ```text
//! perception target ─▶ nearest in sight ─▶ Perception ─▶ BehaviourRule::next_goal ─▶ an area ─▶ a free tile of it ─▶ PathRequest
//! ```
//! [`BehaviourRule`] is the extension point for games: an implementation names the kind that it reacts to and chooses the next
//! goal. [`Behaviour`] is the component that holds it. The systems of crowds do the rest: scan for targets, wait for paths, rest
//! between goals. The built-in behaviours ([`Wander`], [`Chase`], …) are ordinary implementations.
//!
//! | file | holds |
//! |---|---|
//! | `rule.rs` | the trait, its input, and the component |
//! | `built_in.rs` | the built-in behaviours |
//! | `state.rs` | the state of an individual |
//! | `think.rs` | the system that chooses goals for idle individuals |
//!
//! Invariant: the choice of an individual depends on its perception and on its own generator, seeded by the run's seed, its id
//! and the tick. Storage order and the number of threads have no effect.

mod built_in;
mod rule;
mod state;
mod think;

pub use built_in::{Chase, Commute, Flee, Gather, Idle, Patrol, Wander};
pub use rule::{Behaviour, BehaviourRule, Perception, PerceptionTarget};

pub(super) use state::BehaviourState;
pub(super) use think::think;
