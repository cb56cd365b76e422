//! What individuals do with their time.
//!
//! ```text
//! whom it looks for ─▶ nearest in sight ─▶ Perception ─▶ BehaviourRule::next_goal ─▶ an area ─▶ a free tile of it ─▶ PathRequest
//! ```
//! [`BehaviourRule`] is the door for a game's own: an implementation says whom it looks for and where to go next, [`Behaviour`] is
//! the component that holds it, and the systems of crowds do the rest: they look around, wait for ways, rest between
//! goals. The built-in ones ([`Wander`], [`Chase`], …) are implementations like any other.
//!
//! | file | holds |
//! |---|---|
//! | `rule.rs` | the trait, what it is told, and the component |
//! | `built_in.rs` | the behaviours that come with the crate |
//! | `state.rs` | what an individual remembers |
//! | `think.rs` | the system that asks who has nothing to do |
//!
//! Invariant: what an individual chooses depends on what it senses and on a generator of its own, made from the seed, its id
//! and the tick; so neither the order of storage nor the number of threads can show.

mod built_in;
mod rule;
mod state;
mod think;

pub use built_in::{Chase, Commute, Flee, Gather, Idle, Patrol, Wander};
pub use rule::{Behaviour, BehaviourRule, Perception, PerceptionTarget};

pub(super) use state::BehaviourState;
pub(super) use think::think;
