//! Starting the token service.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use thiserror::Error;

use super::server::{self, IssuerShared, TokenServiceStats};
use super::settings::TokenServiceSettings;
use crate::http_listener::{HttpThread, bind};

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
    shared: Arc<IssuerShared>,
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
