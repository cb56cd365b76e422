//! The position and motion of an object. Metres; the origin is the scene's top left corner, y points down.

#[cfg(feature = "reflect")]
use bevy_ecs::prelude::ReflectComponent;
use glam::Vec2;

use crate::hash::StateHashed;

/// The object's position, in metres.
#[derive(Clone, Copy, Debug, Default, PartialEq, StateHashed)]
#[cfg_attr(feature = "bevy", derive(bevy_ecs::prelude::Component))]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect), reflect(Component))]
pub struct Position(pub Vec2);

/// Its velocity, in metres per second; zero at rest. The server computes it from the movement, for clients to extrapolate; writing it
/// moves nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, StateHashed)]
#[cfg_attr(feature = "bevy", derive(bevy_ecs::prelude::Component))]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect), reflect(Component))]
pub struct Velocity(pub Vec2);

/// The direction that it faces, in 256ths of a full turn: 0 is +x, 64 is +y (down).
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
