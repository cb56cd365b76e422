//! Input of players for their objects.

use bevy_ecs::prelude::*;

use super::PlayerMotion;

/// A player moved or turned its object. `Move` checks whether it may.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use glam::Vec2;
/// # use throng::prelude::*;
/// use throng::world::{MoveInput, PlayerMotion};
///
/// /// A player without a client, for example a bot of a test.
/// fn steer(bot: Entity, mut inputs: MessageWriter<MoveInput>) {
///     inputs.write(MoveInput { entity: bot, motion: PlayerMotion::To(Vec2::new(4.0, 2.0)), heading: 0 });
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct MoveInput {
    /// The player's object.
    pub entity: Entity,
    /// The requested motion.
    pub motion: PlayerMotion,
    /// The requested heading, in 256ths of a turn.
    pub heading: u8,
}
