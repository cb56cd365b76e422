#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! ```text
//! claim ──┐                                                            ┌▶ Loaded: lease and record; or LoadFailed
//! save ───┼▶ LeaseTable ══ requests ══▶ StoreThread ══ replies ══▶ LeaseTable ─▶ Saved
//! release ┘  unsaved changes                 │                         └▶ Lost: the player has to leave
//!                                            └▶ StoreBackend: one transaction per tick
//! ```
//!
//! Invariants: a player is live on one server. A writer without the newest lease changes nothing. What was acknowledged is on disk. All
//! saves of a tick are one transaction; the saves of players that traded with each other are in the same transaction or in none.
#![warn(missing_docs)]

// | file | contents |
// | `store` | the contract of a store; the trait for a game's own |
// | `conformance`, `corrupt_records` | test suites for any store |
// | `lease`, `registration` | leases of players; names of servers |
// | `record`, `save_batch` | the record of a player; the saves of one transaction |
// | `lease_table` | the players of a server, requests to the store, and the policy when it does not keep up |
// | `supervisor`, `store_thread` | opens the store and executes requests; the thread that waits for it |
// | `memory_store`, `faulty_store` | a store in memory; fault injection by seed around any store |
// | `cache` | records of players on other servers |
// | `peers`, `subscribers` | messages between servers, and who receives them |
// | `sqlite/`, `postgres/` | the store in a file, and on a server (features of these names) |
// | `encodings`, `inspection` | the names of encodings in both; inspection for operators |
// | `error` | errors |
// | `testing/` | helpers for tests of stores (feature `testing`) |

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
pub use postgres::{PostgresSession, PostgresSource, PostgresStore, SessionError};
pub use record::{PlayerRecord, StoredAttribute};
pub use registration::{RegistrationTerms, SERVER_ENTRY_TTL_MS};
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
