//! Counters of the player store.

use bevy_ecs::prelude::*;

/// Counters since the app started.
#[derive(Resource, Clone, Debug, Default, PartialEq, Eq)]
pub struct PlayerStoreStats {
    /// Players whose record was loaded.
    pub loaded: u64,
    /// Players that were refused.
    pub refused: u64,
    /// Players whose lease was taken over by another server.
    pub lost: u64,
    /// Players whose lease expired.
    pub expired: u64,
    /// Transactions that were acknowledged.
    pub transactions: u64,
    /// Players in them.
    pub players_saved: u64,
    /// Save requests for players that this server does not lease; they are not saved.
    pub unleased_saves: u64,
    /// Transfers with a player that this server does not lease.
    pub transfers_refused: u64,
    /// Failed requests to the store, and players that are no longer saved because it rejected a value.
    pub failures: u64,
    /// The maximum number of players with unsaved changes.
    pub unsaved_peak: usize,
}
