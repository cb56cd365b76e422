//! Distinguishes movement's own changes of positions, which need no check, from other changes.

use bevy_ecs::change_detection::Tick;
use bevy_ecs::prelude::*;

/// The change ticks of the last moves of players and walkers. Objects moved then are on free ground.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub(super) struct MovementChangeTicks {
    pub(super) players: Option<Tick>,
    pub(super) walkers: Option<Tick>,
}

impl MovementChangeTicks {
    /// Whether a position that changed then was changed by movement itself.
    pub(super) fn contains(self, changed_at: Tick) -> bool {
        self.players == Some(changed_at) || self.walkers == Some(changed_at)
    }
}

/// Does nothing, but gives the system that it is piped into a tick of its own: commands are dated like the system that runs next.
pub(super) const fn separate_system_tick() {}
