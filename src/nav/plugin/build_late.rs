//! What came later than it was due.

use bevy_ecs::prelude::*;

use super::ground::MapKey;

/// What paths of a scene are searched on is there, later than it was due: in real time no tick waits for it. Until now its paths
/// were as short, but may have been others of the same length than in a run that waits; where bodies are wide, requests waited.
/// Written in the tick that begins to use it; of scenes that had one map made wide together, for the first.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct NavBuildLate {
    /// The scene.
    pub scene: Entity,
    /// The bodies that it is for, as in [`PathRequest::clearance`](super::PathRequest::clearance).
    pub clearance: u8,
    /// Ticks after the one that it was due in.
    pub late_ticks: u64,
}

impl NavBuildLate {
    /// What is to be told of a build that a tick adopts; nothing when that is the tick that it was due in.
    pub(super) fn of(map: MapKey, tick: u64, due_tick: u64) -> Option<Self> {
        let late_ticks = tick.checked_sub(due_tick).filter(|&late| late > 0)?;
        Some(Self {
            scene: map.scene,
            clearance: map.clearance,
            late_ticks,
        })
    }
}
