//! Where players' objects go.

use glam::Vec2;

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
    /// One tick on at its own speed in this direction, in 256ths of a turn, as [`Heading`](crate::spatial::Heading) has them.
    Towards(u8),
}
