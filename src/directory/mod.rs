//! Players that persist, in the tick, on the leases and stores of `throng_store`: what is kept of them, where they are live, and
//! how that gets to a disk without the tick waiting.
//!
//! ```text
//!  LoggedIn ─▶ claim ─┐                        ┌▶ lease + record ─▶ PlayerLoaded ─▶ (the game spawns it)
//!  SaveRequest ─▶ save ├▶ Ledger ══ orders ══▶ StoreThread ══ reports ══▶ Ledger ─▶ Saved
//!  LoggedOut ─▶ release┘   what is not saved yet   └▶ Store: one transaction a tick     └▶ LeaseLost: it has to go
//! ```
//! | file | what it holds |
//! |---|---|
//! | `plugin` | the directory in the tick |
//! | `throng_store` | [`Ledger`], who is here and what is not saved yet; [`Store`], what a store must do; stores in memory, in a file and on a server; players elsewhere |
//!
//! Invariants: a player is live on one server; a writer without the newest lease changes nothing; what was acknowledged is on
//! disk; all saves of a tick are one transaction, and those of players that dealt with each other are in the same one or in
//! none; the tick never waits for a store, unless a deterministic run is told to.
//!
//! What is kept are the attributes that are [`persistent`](crate::sync::AttributeSpec::persistent) of objects with a
//! [`PlayerId`](crate::world::PlayerId). Deliberately absent: objects without a player, scenes, and what a player owns beyond
//! its attributes.

mod plugin;

pub use plugin::{
    Directory, DirectoryPlugin, DirectorySettings, DirectoryStats, DirectorySystems, LeaseLost,
    LookUpAnswer, LookUpRequest, PlayerLoaded, PlayerRefused, PlayersSaved, StoreAnswers, Transfer,
    close_directory,
};
pub use throng_store::{
    CacheSettings, CacheStats, ClaimTerms, Claimed, DirectoryError, EnrollTerms, FaultShares,
    FaultySource, KnownPlayer, LeaseClaim, LeaseRefused, LeaseState, Ledger, LedgerEvent,
    LedgerSettings, LocalPeers, LookedUp, MemoryDisk, MemoryStore, PeerFaults, PeerHub,
    PeerMessage, PeerSettings, PeerStats, Peers, PlayerCache, PlayerRecord, PlayerSave, Renewal,
    SaveBatch, SaveOutcome, ServerId, Store, StoreError, StoreFault, StoreOrder, StoreReport,
    StoreSource, StoreSupervisor, StoreThread, StoredAttribute, check_spoilt_records, conformance,
};
#[cfg(feature = "postgres")]
pub use throng_store::{PostgresSource, PostgresStore};
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use throng_store::{ShownValue, StoreFindings, StoredRow};
#[cfg(feature = "sqlite")]
pub use throng_store::{SqliteSource, SqliteStore, dump_store, inspect_store, migrate_store};
