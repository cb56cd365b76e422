//! Frozen players stand still, whatever their clients send.

use bevy_ecs::prelude::*;
use throng::movement::MaxSpeed;
use throng::world::Velocity;

use crate::plugin::FrozenPlayer;

/// The speed that a frozen player had, and gets back if it stays.
#[derive(Component, Clone, Copy, Debug)]
pub(super) struct SpeedBeforeFreeze(MaxSpeed);

/// Stops a player. Its client learns the speed, so it predicts no steps.
pub(super) fn stop_player(
    frozen: On<Add<FrozenPlayer>>,
    speeds: Query<&MaxSpeed>,
    mut commands: Commands,
) {
    if let Ok(&speed) = speeds.get(frozen.entity) {
        let rest = (SpeedBeforeFreeze(speed), MaxSpeed(0.0), Velocity::default());
        commands.entity(frozen.entity).try_insert(rest);
    }
}

/// Gives a player that stays its speed back.
pub(super) fn release_player(
    released: On<Remove<FrozenPlayer>>,
    speeds: Query<&SpeedBeforeFreeze>,
    mut commands: Commands,
) {
    if let Ok(&SpeedBeforeFreeze(speed)) = speeds.get(released.entity)
        && let Ok(mut player) = commands.get_entity(released.entity)
    {
        player.try_insert(speed).try_remove::<SpeedBeforeFreeze>();
    }
}
