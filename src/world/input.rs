//! What players ask their objects to do.

use bevy_ecs::prelude::*;
use glam::Vec2;

/// A player put the own object somewhere, or turned it. Whether it may be there is checked in `Move`.
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct MoveInput {
    /// The player's object.
    pub entity: Entity,
    /// Where it is to be, in metres; `None` when it only turns.
    pub to: Option<Vec2>,
    /// Where it is to look, in 256ths of a turn.
    pub heading: u8,
}
