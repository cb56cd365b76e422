//! Counters of the directory.

use bevy_ecs::prelude::*;

/// What happened since the app began.
#[derive(Resource, Clone, Debug, Default, PartialEq, Eq)]
pub struct PlayerStoreStats {
    /// Players whose record came.
    pub loaded: u64,
    /// Players that were refused.
    pub refused: u64,
    /// Players that were another server's all at once.
    pub lost: u64,
    /// Players whose lease ran out.
    pub expired: u64,
    /// Transactions that were acknowledged.
    pub transactions: u64,
    /// Players in them.
    pub players_saved: u64,
    /// Requests to save somebody who is not this server's: these are not saved.
    pub unleased_saves: u64,
    /// Deals between players of whom one is not this server's.
    pub transfers_refused: u64,
    /// Attempts that the store failed.
    pub failures: u64,
    /// The most players that waited to be saved at once.
    pub unsaved_peak: usize,
}
