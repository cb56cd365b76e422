//! Counters of replication.

use bevy_ecs::prelude::*;

use crate::sync::counters::SentCounters;

/// Counters of replication since the app started, and the current number of links.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncStats {
    /// Attributes found dirty at a collection.
    pub attributes_dirty: u64,
    /// How many of these had really changed.
    pub attributes_changed: u64,
    /// How many of the dirty attributes have a value that their encoding cannot represent: clients receive the nearest possible
    /// value, or the beginning of a text.
    pub attributes_clamped: u64,
    /// Motion bases created or repeated.
    pub motions_encoded: u64,
    /// Messages sent to clients.
    pub sent: SentCounters,
    /// The current number of pairs of a client and an object that it knows.
    pub links: u64,
    /// How many of these objects are out of the client's view, and kept by [`Viewable::keep`](crate::aoi::Viewable::keep).
    pub kept: u64,
    /// The current number of pairs of a client and an object that it sees and does not know yet.
    pub pending_snapshots: u64,
    /// Announcements that were not sent because they, or those of their tick together, are too long.
    pub announcements_refused: u64,
    /// Save requests.
    pub saves: u64,
    /// How many of these the store could not save while too many others waited.
    pub saves_dropped: u64,
}
