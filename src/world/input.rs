//! Input of players for their objects.

use bevy_ecs::prelude::*;

use super::PlayerMotion;

/// A player moved or turned its object. `Move` checks whether it may.
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct MoveInput {
    /// The player's object.
    pub entity: Entity,
    /// The requested motion.
    pub motion: PlayerMotion,
    /// The requested heading, in 256ths of a turn.
    pub heading: u8,
}
