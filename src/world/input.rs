//! Requests of players to their objects.

use bevy_ecs::prelude::*;

use super::PlayerMotion;

/// A player moved the own object, or turned it. Whether it may is checked in `Move`.
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct MoveInput {
    /// The player's object.
    pub entity: Entity,
    /// Where it goes.
    pub motion: PlayerMotion,
    /// Where it is to look, in 256ths of a turn.
    pub heading: u8,
}
