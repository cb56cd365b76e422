//! What players ask their objects to do.

use bevy_ecs::prelude::*;
use glam::Vec2;

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

/// Where a player's object goes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum PlayerMotion {
    /// Nowhere: it stands still from now on.
    #[default]
    Stand,
    /// As before: it turns, and nothing else.
    Turn,
    /// To a place, in metres.
    To(Vec2),
    /// One tick on at its own speed in this direction, in 256ths of a turn, as [`Heading`](super::Heading) has them.
    Towards(u8),
}
