//! The position and motion of an object. Metres; the origin is the scene's top left corner, y points down.

#[cfg(feature = "reflect")]
use bevy_ecs::prelude::ReflectComponent;
use glam::Vec2;

use crate::hash::StateHashed;

/// The object's position, in metres.
///
/// ```
/// use glam::Vec2;
/// use throng_core::spatial::Position;
///
/// let (guard, gate) = (Position(Vec2::new(3.0, 4.0)), Position(Vec2::ZERO));
/// assert_eq!(guard.0.distance(gate.0), 5.0); // metres
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, StateHashed)]
#[cfg_attr(feature = "bevy", derive(bevy_ecs::prelude::Component))]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect), reflect(Component))]
pub struct Position(pub Vec2);

/// Its velocity, in metres per second; zero at rest. The server computes it from the movement, for clients to extrapolate; writing it
/// moves nothing.
///
/// ```
/// use glam::Vec2;
/// use throng_core::spatial::{Position, Velocity};
///
/// /// Where an object will be if it goes on as it does.
/// fn in_half_a_second(at: Position, velocity: Velocity) -> Vec2 {
///     at.0 + velocity.0 * 0.5
/// }
///
/// assert_eq!(in_half_a_second(Position(Vec2::ZERO), Velocity(Vec2::new(3.0, 0.0))), Vec2::new(1.5, 0.0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, StateHashed)]
#[cfg_attr(feature = "bevy", derive(bevy_ecs::prelude::Component))]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect), reflect(Component))]
pub struct Velocity(pub Vec2);

/// The direction that it faces, in 256ths of a full turn: 0 is +x, 64 is +y (down).
///
/// ```
/// use glam::Vec2;
/// use throng_core::spatial::Heading;
///
/// // Face the gate, which is 10 m to the left (west).
/// let towards_gate = Vec2::new(-10.0, 0.0);
/// assert_eq!(Heading::from_direction(towards_gate), Some(Heading(128))); // half a turn
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, StateHashed)]
#[cfg_attr(feature = "bevy", derive(bevy_ecs::prelude::Component))]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect), reflect(Component))]
pub struct Heading(pub u8);

impl Heading {
    /// The heading nearest to a direction; `None` for the zero vector.
    ///
    /// Uses `libm`, so that every platform finds the same 256th.
    #[must_use]
    pub fn from_direction(direction: Vec2) -> Option<Self> {
        if direction == Vec2::ZERO || !direction.is_finite() {
            return None;
        }
        let turns = libm::atan2f(direction.y, direction.x) / core::f32::consts::TAU;
        Some(Self(
            (libm::roundf(turns * 256.0) as i32).rem_euclid(256) as u8
        ))
    }
}

/// The storey that it is on: stored and sent, without other effects.
///
/// ```
/// use throng_core::spatial::Floor;
///
/// // The second storey of the inn; the ground floor is the default.
/// let (upstairs, ground) = (Floor(1), Floor::default());
/// assert!(upstairs.0 > ground.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, StateHashed)]
#[cfg_attr(feature = "bevy", derive(bevy_ecs::prelude::Component))]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect), reflect(Component))]
pub struct Floor(pub u8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_turn_from_east_through_south() {
        let of = |x, y| Heading::from_direction(Vec2::new(x, y)).map(|heading| heading.0);
        assert_eq!(of(1.0, 0.0), Some(0));
        assert_eq!(of(0.0, 1.0), Some(64));
        assert_eq!(of(-1.0, 0.0), Some(128));
        assert_eq!(of(0.0, -1.0), Some(192));
        assert_eq!(of(1.0, -0.001), Some(0));
        assert_eq!(of(0.0, 0.0), None);
        assert_eq!(of(f32::NAN, 0.0), None);
    }
}
