//! The order of replication within a tick.

use bevy_ecs::prelude::*;

/// Order among the systems of `sync`.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncSystems {
    /// Change detection marks what changed.
    Mark,
}
