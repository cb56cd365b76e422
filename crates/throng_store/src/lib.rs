#![doc = include_str!("../README.md")]
//!
//! # The modules
//!
//! ```text
//!  claim ─┐                             ┌▶ lease + record ─▶ LoadedScenario, ReceiveError
//!  save ──┼▶ LeaseTable ══ orders ══▶ StoreThread ══ reports ══▶ LeaseTable ─▶ Saved
//!  release┘   what is not saved yet   └▶ StoreBackend: one transaction a tick     └▶ Lost: it has to go
//! ```
//! | file | what it holds |
//! |---|---|
//! | `store` | what a store must do; the door for a game's own |
//! | `conformance`, `corrupt_records` | checks that hold any store to it |
//! | `lease`, `enrollment` | who has a player, and until when; the names of servers |
//! | `record`, `save_batch` | what is kept of a player; what is to be saved in one transaction |
//! | `ledger` | who is here, what waits for the store, and what happens when it does not keep up |
//! | `supervisor`, `store_thread` | opens the store and works orders off; the thread that waits for it |
//! | `memory_store`, `faulty_store` | a store in memory; faults by seed around any store |
//! | `cache` | what is known here of players elsewhere |
//! | `peers`, `followers` | what goes between servers, and who is told what |
//! | `sqlite/`, `postgres/` | the store in a file, and on a server (features of these names) |
//! | `encodings`, `findings` | the names of encodings in both; what both tell their operators |
//! | `error` | what can go wrong |
//! | `testing/` | what tests of stores have in common (feature `testing`) |
//!
//! Invariants: a player is live on one server; a writer without the newest lease changes nothing; what was acknowledged is on
//! disk; all saves of a tick are one transaction, and those of players that dealt with each other are in the same one or in
//! none.
#![warn(missing_docs)]

#[cfg(test)]
#[macro_use]
#[path = "../../../tests/draws.rs"]
mod draws;

mod cache;
#[cfg(test)]
mod cache_model;
pub mod conformance;
mod corrupt_records;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod encodings;
mod error;
mod faulty_store;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod inspection;
mod lease;
#[cfg(test)]
mod lease_model;
mod lease_table;
mod memory_store;
mod peers;
#[cfg(feature = "postgres")]
mod postgres;
mod record;
mod registration;
mod save_batch;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod store_thread;
mod subscribers;
mod supervisor;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod testing;

pub use cache::{CacheSettings, CacheStats, CachedPlayer, PlayerCache};
pub use corrupt_records::check_corrupt_records;
pub use error::{PlayerStoreError, StoreError, StoreErrorKind};
pub use faulty_store::{FaultShares, FaultySource};
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use inspection::{DisplayValue, StoreInspection, StoredRow};
pub use lease::{LeaseClaim, LeaseRefused, LeaseState, ServerId};
#[doc(hidden)]
pub use lease_table::thread_ended_error;
pub use lease_table::{LeaseEvent, LeaseTable, LeaseTableSettings};
pub use memory_store::{MemoryDisk, MemoryStore};
pub use peers::{LocalPeers, PeerFaults, PeerHub, PeerMessage, Peers};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresSource, PostgresStore};
pub use record::{PlayerRecord, StoredAttribute};
pub use registration::RegistrationTerms;
pub use save_batch::{PlayerSave, SaveBatch};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteSource, SqliteStore, dump_store, inspect_store, migrate_store};
pub use store::{
    ClaimResult, ClaimTerms, LookupResult, Renewal, SaveOutcome, StoreBackend, StoreFactory,
};
pub use store_thread::StoreThread;
#[doc(hidden)]
pub use subscribers::SaveSubscribers;
pub use subscribers::{PeerSettings, PeerStats};
pub use supervisor::{StoreReply, StoreRequest, StoreSupervisor};
