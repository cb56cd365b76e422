//! The motion that a player requests for its object.

use glam::Vec2;

/// A motion of a player's object.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum PlayerMotion {
    /// It stands still from now on.
    #[default]
    Stand,
    /// It turns, and otherwise moves as before.
    Turn,
    /// To a position, in metres.
    To(Vec2),
    /// One tick at its own speed in this direction, in 256ths of a turn, as in [`Heading`](crate::spatial::Heading).
    Towards(u8),
}
