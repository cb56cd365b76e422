//! The token service: a login service requests connect tokens by HTTP, with a shared secret.
//!
//! ```text
//! player ─ login ─▶ login service ─ POST /tokens, secret ─▶ token service ─ token, sealed with the server's key ─▶ login service ─▶ player
//! ```
//! | file | holds |
//! |---|---|
//! | `service` | starting the service |
//! | `settings` | what it needs |
//! | `api` | requests and replies as JSON |
//! | `server` | the thread: authentication, counters, one request per connection |
//!
//! Invariants: a request without a valid secret learns nothing but that. Bodies, connections and their time are limited. A refusal is
//! counted; at most one per second is logged, so that strangers cannot fill the log. The service stores nothing about players.
//!
//! Requests contain secrets: on other than loopback addresses the port needs TLS, or a proxy with TLS before it.

mod api;
mod server;
mod service;
mod settings;

pub use server::TokenServiceStats;
pub use service::{TokenService, TokenServiceError};
pub use settings::TokenServiceSettings;
