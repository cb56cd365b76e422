//! Distinguishes movement's own changes of positions, which need no check, from other changes.

use bevy_ecs::change_detection::Tick;
use bevy_ecs::prelude::*;

/// When players and walkers were last moved, as changes are dated. Whoever was moved then was put on free ground.
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

/// Does nothing, but that the system that it is piped into has a tick of its own: commands are dated as the system that runs next.
pub(super) const fn separate_system_tick() {}
