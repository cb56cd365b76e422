//! The store on a Postgres server.
//!
//! | file | what it holds |
//! |---|---|
//! | `schema` | tables and migrations |
//! | `errors` | what the server says, as faults |
//! | `store` | the store |
//!
//! Every call is one transaction of a few statements, however many players it is about: each statement takes arrays. Rows of
//! players are locked by ascending id, so that servers that ask at the same time wait for each other and do not deadlock.
//!
//! Deliberately absent: encryption of the line. Have the server beside the database, or a tunnel between them.

mod errors;
mod schema;
mod store;

pub use store::{PostgresSource, PostgresStore};
