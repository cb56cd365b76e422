//! The store on a Postgres server.
//!
//! | file | contents |
//! |---|---|
//! | `schema` | tables and migrations |
//! | `connection` | a connection to the server |
//! | `tls` | its encryption |
//! | `errors` | errors of the server as store errors |
//! | `display` | readable values |
//! | `store`, `tables` | the store and its statements |
//! | `session` | a connection for other crates, such as `throng_cluster`, whose tables and functions are in `cluster*.sql` |
//! | `inspect` | inspection for operators |
//!
//! Every call is one transaction of a few statements, whatever the number of players: statements take arrays. Rows of players are locked by
//! ascending id, so that concurrent servers wait for each other without deadlocks.

mod connection;
mod display;
mod errors;
mod inspect;
mod schema;
mod session;
mod store;
mod tables;
#[cfg(all(test, unix))]
mod tests;
mod tls;

pub use session::{PostgresSession, SessionError};
pub use store::{PostgresSource, PostgresStore};
