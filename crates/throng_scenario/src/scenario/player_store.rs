//! What became of players that persist, in a run with a store.

use bevy_ecs::prelude::*;
use serde::Serialize;

use throng::store::{PlayerStore, PlayerStoreStats};

/// Players that are loaded, held and saved: now, and over the run. See [`PlayerStoreStats`] for what is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PlayerStoreSummary {
    /// Players whose record came.
    pub loads: u64,
    /// Players that this server holds now, each under a lease.
    pub leases: u64,
    /// Leases that another server took over.
    pub leases_lost: u64,
    /// Leases that ran out.
    pub leases_expired: u64,
    /// Logins that were refused.
    pub logins_refused: u64,
    /// Transactions that were acknowledged.
    pub transactions: u64,
    /// Players in them.
    pub saves: u64,
    /// Players that wait to be saved now.
    pub unsaved: u64,
    /// The most that waited at once.
    pub max_unsaved: u64,
    /// Players that were to be saved and are not this server's.
    pub saves_refused: u64,
    /// Deals with a player who is not this server's.
    pub transfers_refused: u64,
    /// Attempts that the store failed.
    pub store_failures: u64,
    /// Looks at players who are elsewhere.
    pub look_ups: u64,
    /// Of these, the ones that were answered at once.
    pub look_up_hits: u64,
    /// Players that the store was asked for.
    pub look_up_loads: u64,
    /// Looks that were not answered in time, or refused.
    pub look_up_failures: u64,
}

/// The figures as they are now; `None` where nothing is kept.
pub(super) fn player_store_summary(world: &World) -> Option<PlayerStoreSummary> {
    let directory = world.get_resource::<PlayerStore>()?;
    let stats = world.get_resource::<PlayerStoreStats>()?;
    if !directory.has_store() {
        return None;
    }
    let figures = PlayerStoreSummary {
        loads: stats.loaded,
        leases: directory.live_count() as u64,
        leases_lost: stats.lost,
        leases_expired: stats.expired,
        logins_refused: stats.refused,
        transactions: stats.transactions,
        saves: stats.players_saved,
        unsaved: directory.unsaved() as u64,
        max_unsaved: stats.unsaved_peak as u64,
        saves_refused: stats.unleased_saves,
        transfers_refused: stats.transfers_refused,
        store_failures: stats.failures,
        ..PlayerStoreSummary::default()
    };
    Some(with_lookups(figures, directory))
}

fn with_lookups(figures: PlayerStoreSummary, directory: &PlayerStore) -> PlayerStoreSummary {
    let cache = directory.cache_stats().unwrap_or_default();
    PlayerStoreSummary {
        look_ups: cache.lookups,
        look_up_hits: cache.hits,
        look_up_loads: cache.players_requested,
        look_up_failures: cache.failed,
        ..figures
    }
}
