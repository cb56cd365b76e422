//! Persistent players: loads players at login, saves them while they play, and leases each of them to one server.
//!
//! Add [`PlayerStorePlugin`], open a store with [`PlayerStore::open`], and spawn players on [`PlayerLoaded`]. The saved state of a player is the
//! set of its object's [`persistent`](crate::sync::AttributeSpec::persistent) attributes. The guide page
//! [Persistent players](crate::guide::players_that_persist) has a complete example.
//!
//! ```text
//! LoggedIn ───▶ claim ──┐                                                           ┌▶ PlayerLoaded ─▶ (the game spawns the player)
//! SaveRequest ─▶ save ──┼▶ LeaseTable ══ requests ══▶ StoreThread ══ reports ══▶ LeaseTable ─▶ PlayersSaved
//! LoggedOut ──▶ release ┘  unsaved changes            └▶ StoreBackend:              └▶ LeaseLost: the player is disconnected
//!                                                        one transaction per tick
//! ```
//!
//! Invariants:
//! - A player is live on one server. A writer without the newest lease changes nothing.
//! - What was acknowledged is on disk.
//! - All saves of a tick are one transaction. The saves of players that traded are in the same transaction or in none.
//! - The tick never waits for a store, except in a deterministic run that is configured to.
//!
//! Not provided: persistence of objects without a [`PlayerId`](crate::world::PlayerId), of scenes, or of anything but attributes.

mod plugin;

pub use plugin::{
    AtomicSaveRequest, LeaseLost, PlayerLoadFailed, PlayerLoaded, PlayerLookup, PlayerLookupResult,
    PlayerStore, PlayerStorePlugin, PlayerStoreSettings, PlayerStoreStats, PlayerStoreSystems,
    PlayersSaved, StoreReplyMode, close_player_store,
};
pub use throng_store::{
    CacheSettings, CacheStats, CachedPlayer, ClaimResult, ClaimTerms, FaultShares, FaultySource,
    LeaseClaim, LeaseEvent, LeaseRefused, LeaseState, LeaseTable, LeaseTableSettings, LocalPeers,
    LookupResult, MemoryDisk, MemoryStore, PeerFaults, PeerHub, PeerMessage, PeerSettings,
    PeerStats, Peers, PlayerCache, PlayerRecord, PlayerSave, PlayerStoreError, RegistrationTerms,
    Renewal, SERVER_ENTRY_TTL_MS, SaveBatch, SaveOutcome, ServerId, StoreBackend, StoreError,
    StoreErrorKind, StoreFactory, StoreReply, StoreRequest, StoreSupervisor, StoreThread,
    StoredAttribute, check_corrupt_records, conformance,
};
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use throng_store::{DisplayValue, StoreInspection, StoredRow};
#[cfg(feature = "postgres")]
pub use throng_store::{PostgresSource, PostgresStore};
#[cfg(feature = "sqlite")]
pub use throng_store::{SqliteSource, SqliteStore, dump_store, inspect_store, migrate_store};
