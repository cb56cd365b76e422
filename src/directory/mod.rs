//! Players that persist: what is kept of them, where they are live, and how that gets to a disk without the tick waiting.
//!
//! ```text
//!  LoggedIn ─▶ claim ─┐                        ┌▶ lease + record ─▶ PlayerLoaded ─▶ (the game spawns it)
//!  SaveRequest ─▶ save ├▶ Ledger ══ orders ══▶ StoreThread ══ reports ══▶ Ledger ─▶ Saved
//!  LoggedOut ─▶ release┘   what is not saved yet   └▶ Store: one transaction a tick     └▶ LeaseLost: it has to go
//! ```
//! | file | what it holds |
//! |---|---|
//! | `store` | what a store must do; the door for a game's own |
//! | `conformance`, `spoilt_records` | checks that hold any store to it |
//! | `lease` | who has a player, and until when |
//! | `record`, `save_batch` | what is kept of a player; what is to be saved in one transaction |
//! | `ledger` | who is here, what waits for the store, and what happens when it does not keep up |
//! | `supervisor`, `store_thread` | opens the store and works orders off; the thread that waits for it |
//! | `memory_store`, `faulty_store` | a store in memory; faults by seed around any store |
//! | `cache` | what is known here of players elsewhere (feature `lookups`) |
//! | `peers`, `followers` | what goes between servers, and who is told what (feature `lookups`) |
//! | `sqlite/`, `postgres/` | the store in a file, and on a server (features of these names) |
//! | `encodings`, `findings` | the names of encodings in both; what both tell their operators |
//! | `error` | what can go wrong |
//! | `plugin` | all that in the tick |
//!
//! Invariants: a player is live on one server; a writer without the newest lease changes nothing; what was acknowledged is on
//! disk; all saves of a tick are one transaction, and those of players that dealt with each other are in the same one or in
//! none; the tick never waits for a store, unless a deterministic run is told to.
//!
//! What is kept are the attributes that are [`persistent`](crate::sync::AttributeSpec::persistent) of objects with a
//! [`PlayerId`](crate::world::PlayerId). Deliberately absent: objects without a player, scenes, and what a player owns beyond
//! its attributes.

#[cfg(feature = "lookups")]
mod cache;
#[cfg(all(test, feature = "lookups"))]
mod cache_model;
pub mod conformance;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod encodings;
mod error;
mod faulty_store;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod findings;
#[cfg(feature = "lookups")]
mod followers;
#[cfg(test)]
mod hooked_store;
mod lease;
#[cfg(test)]
mod lease_model;
mod ledger;
mod memory_store;
#[cfg(feature = "lookups")]
mod peers;
mod plugin;
#[cfg(feature = "postgres")]
mod postgres;
mod record;
mod save_batch;
mod spoilt_records;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod store_thread;
mod supervisor;

#[cfg(feature = "lookups")]
pub use cache::{CacheSettings, CacheStats, KnownPlayer, PlayerCache};
pub use error::{DirectoryError, StoreError, StoreFault};
pub use faulty_store::{FaultShares, FaultySource};
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use findings::{ShownValue, StoreFindings, StoredRow};
#[cfg(feature = "lookups")]
pub use followers::{PeerSettings, PeerStats};
pub use lease::{LeaseClaim, LeaseRefused, LeaseState, ServerId};
pub use ledger::{Ledger, LedgerEvent, LedgerSettings};
pub use memory_store::{MemoryDisk, MemoryStore};
#[cfg(feature = "lookups")]
pub use peers::{LocalPeers, PeerFaults, PeerHub, PeerMessage, Peers};
pub use plugin::{
    Directory, DirectoryPlugin, DirectorySettings, DirectoryStats, DirectorySystems, LeaseLost,
    PlayerLoaded, PlayerRefused, PlayersSaved, StoreAnswers, Transfer, close_directory,
};
#[cfg(feature = "lookups")]
pub use plugin::{LookUpAnswer, LookUpRequest};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresSource, PostgresStore};
pub use record::{PlayerRecord, StoredAttribute};
pub use save_batch::{PlayerSave, SaveBatch};
pub use spoilt_records::check_spoilt_records;
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteSource, SqliteStore, dump_store, inspect_store, migrate_store};
pub use store::{ClaimTerms, Claimed, LookedUp, SaveOutcome, Store, StoreSource};
pub use store_thread::StoreThread;
pub use supervisor::{StoreOrder, StoreReport, StoreSupervisor};
