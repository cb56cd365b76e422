//! The store on a Postgres server.
//!
//! | file | what it holds |
//! |---|---|
//! | `schema` | tables and migrations |
//! | `connection` | a connection, whatever it is for |
//! | `tls` | its encryption |
//! | `errors` | what the server says, as faults |
//! | `shown` | values as people read them |
//! | `store`, `tables` | the store, and what it says to the server |
//! | `inspect` | a store looked at from outside: for operators |
//!
//! Every call is one transaction of a few statements, however many players it is about: each statement takes arrays. Rows of
//! players are locked by ascending id, so that servers that ask at the same time wait for each other and do not deadlock.

mod connection;
mod display;
mod errors;
mod inspect;
mod schema;
mod store;
mod tables;
#[cfg(all(test, unix))]
mod tests;
mod tls;

pub use store::{PostgresSource, PostgresStore};
