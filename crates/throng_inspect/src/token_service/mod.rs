//! The token service: a login service requests connect tokens by HTTP, with a shared secret.
//!
//! ```text
//! player ─ login ─▶ login service ─ POST /tokens, secret ─▶ token service ─ token, sealed with the server's key ─▶ login service ─▶ player
//! ```
//! | file | holds |
//! |---|---|
//! | `api` | requests and replies as JSON |
//! | `server` | the thread: authentication, counters, one request per connection |
//!
//! Invariants: a request without a valid secret learns nothing but that. Bodies, connections and their time are limited. A refusal is
//! counted; at most one per second is logged, so that strangers cannot fill the log. The service stores nothing about players.
//!
//! There is no TLS: keep the address private, or put a proxy with TLS before it.

mod api;
mod server;

use std::io;
use std::net::SocketAddr;

use thiserror::Error;
use throng::net::TokenKeys;

use crate::admin::AdminTokens;
use crate::http_listener::{HttpThread, bind};

pub use server::TokenServiceStats;

/// Settings of the token service.
#[derive(Clone, Debug)]
pub struct TokenServiceSettings {
    /// The address to listen on.
    pub address: SocketAddr,
    /// Who may request tokens: a name and a secret each. With two entries a secret can be replaced without an interruption.
    pub callers: AdminTokens,
    /// The keys of the servers. The first one seals the tokens; a clone can [replace](TokenKeys::replace) them later.
    pub keys: TokenKeys,
    /// The servers of a token whose request names none.
    pub servers: Vec<SocketAddr>,
    /// How long a token can be used to connect, in seconds, if the request does not say.
    pub lifetime_s: u32,
    /// After how many seconds without a packet a connection ends, if the request does not say.
    pub timeout_s: u32,
}

/// Why the token service does not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokenServiceError {
    /// The address is not free.
    #[error("token service: {address} is not available: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// No thread.
    #[error("token service: its thread does not start: {0}")]
    Thread(#[source] io::Error),
}

/// A running token service, until this is dropped.
#[derive(Debug)]
pub struct TokenService {
    address: SocketAddr,
    shared: std::sync::Arc<server::IssuerShared>,
    /// The thread ends when this is dropped.
    _thread: HttpThread,
}

impl TokenService {
    /// Starts the service.
    ///
    /// # Errors
    /// [`TokenServiceError`]; nothing is open then.
    pub fn start(settings: TokenServiceSettings) -> Result<Self, TokenServiceError> {
        let address = settings.address;
        let bound = bind(address);
        let (address, socket) =
            bound.map_err(|source| TokenServiceError::Bind { address, source })?;
        let (shared, thread) =
            server::start(socket, settings).map_err(TokenServiceError::Thread)?;
        Ok(Self {
            address,
            shared,
            _thread: thread,
        })
    }

    /// The open address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its counters.
    #[must_use]
    pub fn stats(&self) -> TokenServiceStats {
        self.shared.stats()
    }
}
