//! Counters of replication.

use bevy_ecs::prelude::*;

use crate::sync::counters::SentCounters;

/// What replication did since the app began, and how many links there are now.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncStats {
    /// Attributes found dirty at a collection.
    pub attributes_dirty: u64,
    /// Of those, how many had really changed.
    pub attributes_changed: u64,
    /// Of those that were dirty, how many have a value that their encoding cannot hold: clients learn the nearest that it
    /// can, or the beginning of a text.
    pub attributes_clamped: u64,
    /// Motion bases made, and told again.
    pub motions_encoded: u64,
    /// What clients were sent.
    pub sent: SentCounters,
    /// Pairs of a client and an object that it knows, now.
    pub links: u64,
    /// Pairs of a client and an object that it sees and does not know yet, now.
    pub pending_snapshots: u64,
    /// Announcements that nobody was told of because they, or those of their tick together, are too long.
    pub announcements_refused: u64,
    /// Requests to store values.
    pub saves: u64,
    /// Of those, how many the store could not take while too many others waited.
    pub saves_dropped: u64,
}
