//! Components of objects that move.

use bevy_ecs::prelude::*;

use crate::movement::MoveBudget;
use crate::nav::NavPath;
use crate::world::StateHashed;

/// How fast an object may walk, in metres a second. What has no speed is never moved, nor pushed out of a wall.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, StateHashed)]
#[require(LastMove)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct MaxSpeed(pub f32);

impl MaxSpeed {
    /// A person who walks: 1.5 m/s. What [`Player`](crate::world::Player) and [`Npc`](crate::world::Npc) have where nothing else stands beside them.
    pub const WALK: Self = Self(1.5);

    /// The speed; 0 for what is negative or not finite.
    #[must_use]
    pub fn m_s(self) -> f32 {
        if self.0.is_finite() {
            self.0.max(0.0)
        } else {
            0.0
        }
    }
}

/// The server walks this object along its [`NavPath`], which it has from the start, so that no answer makes it another archetype. An
/// object with [`MaxSpeed`] and without this is moved by its player.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq, StateHashed)]
#[require(NavPath)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct Walker;

/// When a player's object was last moved, and how far it could have gone on.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, StateHashed)]
pub struct LastMove {
    pub(super) tick: u64,
    pub(super) budget: MoveBudget,
}

impl LastMove {
    /// The tick of the last accepted move; 0 for none.
    #[must_use]
    pub const fn tick(&self) -> u64 {
        self.tick
    }
}
