//! Statistics of players that persist, in a run with a store.

use bevy_ecs::prelude::*;
use serde::Serialize;

use throng::store::{PlayerStore, PlayerStoreStats};

/// Players that are loaded, leased and saved: currently, and over the run. See [`PlayerStoreStats`] for the definitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PlayerStoreSummary {
    /// Loaded players.
    pub loads: u64,
    /// Players that this server holds now, each under a lease.
    pub leases: u64,
    /// Leases that another server took over.
    pub leases_lost: u64,
    /// Leases that ran out.
    pub leases_expired: u64,
    /// Refused logins.
    pub logins_refused: u64,
    /// Acknowledged transactions.
    pub transactions: u64,
    /// Players in these transactions.
    pub saves: u64,
    /// Players with a pending save now.
    pub unsaved: u64,
    /// Maximum number of pending saves.
    pub max_unsaved: u64,
    /// Save requests for players that this server does not hold.
    pub saves_refused: u64,
    /// Transactions with players that this server does not hold.
    pub transfers_refused: u64,
    /// Attempts that failed in the store.
    pub store_failures: u64,
    /// Lookups of players on other nodes.
    pub lookups: u64,
    /// Lookups that the cache answered.
    pub lookup_hits: u64,
    /// Players requested from the store.
    pub lookup_loads: u64,
    /// Lookups that timed out or were refused.
    pub lookup_failures: u64,
}

/// The current statistics; `None` without a store.
pub(super) fn player_store_summary(world: &World) -> Option<PlayerStoreSummary> {
    let store = world.get_resource::<PlayerStore>()?;
    let stats = world.get_resource::<PlayerStoreStats>()?;
    if !store.has_store() {
        return None;
    }
    let figures = PlayerStoreSummary {
        loads: stats.loaded,
        leases: store.live_count() as u64,
        leases_lost: stats.lost,
        leases_expired: stats.expired,
        logins_refused: stats.refused,
        transactions: stats.transactions,
        saves: stats.players_saved,
        unsaved: store.unsaved() as u64,
        max_unsaved: stats.unsaved_peak as u64,
        saves_refused: stats.unleased_saves,
        transfers_refused: stats.transfers_refused,
        store_failures: stats.failures,
        ..PlayerStoreSummary::default()
    };
    Some(with_lookups(figures, store))
}

fn with_lookups(figures: PlayerStoreSummary, store: &PlayerStore) -> PlayerStoreSummary {
    let cache = store.cache_stats().unwrap_or_default();
    PlayerStoreSummary {
        lookups: cache.lookups,
        lookup_hits: cache.hits,
        lookup_loads: cache.players_requested,
        lookup_failures: cache.failed,
        ..figures
    }
}
