//! Why the administration API cannot be opened.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;
use throng::session::BanError;

/// Why the API cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AdminError {
    /// The address does not exist here, or another process uses it.
    #[error("cannot open the administration API on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system error.
        source: io::Error,
    },
    /// A file cannot be read or opened.
    #[error("{}: {source}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// The ban file is damaged or was written by another program.
    #[error("{}: expected a list of bans in JSON: {source}", path.display())]
    InvalidBanFile {
        /// Its path.
        path: PathBuf,
        /// The error with line and column.
        source: serde_json::Error,
    },
    /// The bans of the file cannot be applied.
    #[error("{}: {source}", path.display())]
    Ban {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: BanError,
    },
    /// The thread could not be started.
    #[error("the administration thread failed to start: {0}")]
    Thread(io::Error),
}
