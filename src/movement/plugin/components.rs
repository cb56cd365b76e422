//! Components of objects that move.

use bevy_ecs::prelude::*;

use crate::movement::MoveBudget;
use crate::nav::NavPath;
use crate::world::StateHashed;

/// The maximum walking speed of an object, in metres per second. An object without it is never moved, nor pushed off a blocked tile.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// /// A potion: from the next tick on the player may run 8 m/s; its client is notified.
/// fn drink(player: Entity, mut commands: Commands) {
///     commands.entity(player).insert(MaxSpeed(8.0));
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, StateHashed)]
#[require(LastMove)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct MaxSpeed(pub f32);

impl MaxSpeed {
    /// A walking person: 1.5 m/s. The default of [`Player`](crate::world::Player) and [`Npc`](crate::world::Npc).
    pub const WALK: Self = Self(1.5);

    /// The speed; 0 if it is negative or not finite.
    #[must_use]
    pub fn m_s(self) -> f32 {
        if self.0.is_finite() {
            self.0.max(0.0)
        } else {
            0.0
        }
    }
}

/// The server moves this object along its [`NavPath`], which is a required component, so that the first result does not change the
/// archetype. An object with [`MaxSpeed`] and without this is moved by its player.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use glam::Vec2;
/// # use throng::prelude::*;
/// /// Walks to the gate by itself.
/// fn send_guard(scene: Entity, mut commands: Commands) {
///     let walks = (Walker, MaxSpeed(1.5), PathRequest::to(Vec2::new(60.0, 20.0)));
///     commands.spawn((Npc, walks, InScene(scene), Position(Vec2::splat(10.0))));
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq, StateHashed)]
#[require(NavPath)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct Walker;

/// The last move of a player's object, and the distance that was left.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::movement::LastMove;
///
/// /// Players who have not moved for a minute, at 20 ticks a second.
/// fn find_idle(tick: Res<SimTick>, players: Query<(&PlayerId, &LastMove)>) {
///     for (player, moved) in &players {
///         if tick.0 > moved.tick() + 60 * 20 {
///             println!("player {} stands still", player.0);
///         }
///     }
/// }
/// ```
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
