//! The store in a file: SQLite, in the program itself.
//!
//! | file | what it holds |
//! |---|---|
//! | `schema` | tables and migrations |
//! | `value` | values as people read them |
//! | `file`, `errors` | which file is open; what SQLite says, as faults |
//! | `store` | the store |
//! | `inspect` | a file looked at from outside: for operators |
//!
//! The file is in WAL mode with full synchronisation: what was acknowledged survives the process, the system and the power.
//! Several processes may use it at once; who waits for another does so for a second at most, on the store's thread.

mod errors;
mod file;
mod inspect;
mod schema;
mod store;
#[cfg(test)]
mod tests;
mod value;

pub use inspect::{dump_store, inspect_store, migrate_store};
pub use store::{SqliteSource, SqliteStore};
