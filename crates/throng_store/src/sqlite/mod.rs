//! The store in a file: SQLite, linked into the program.
//!
//! | file | contents |
//! |---|---|
//! | `connect` | how a file is opened |
//! | `schema` | tables and migrations |
//! | `value` | readable values |
//! | `file`, `errors` | identity of the open file; errors of SQLite as store errors |
//! | `store`, `source` | the store, and its factory |
//! | `inspect` | inspection for operators |
//!
//! The file is in WAL mode with full synchronisation: what was acknowledged survives a crash of the process or system, and a power failure.
//! Several processes may use the file at once; one that waits for another does so for at most a second, on the store's thread.

mod connect;
mod errors;
mod file;
mod inspect;
mod schema;
mod source;
mod store;
#[cfg(test)]
mod tests;
mod value;

pub use inspect::{dump_store, inspect_store, migrate_store};
pub use source::SqliteSource;
pub use store::SqliteStore;
