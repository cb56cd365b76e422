//! Reasons of ended sessions and refused connections.

use thiserror::Error;
use throng_core::Variants;

use crate::wire::CloseReason;

/// Why a session ended, or a connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Variants)]
#[non_exhaustive]
pub enum LogoutReason {
    /// The client logged out.
    Requested,
    /// The connection was lost, and the session was not resumed in time.
    Disconnected,
    /// The same player logged in elsewhere.
    Replaced,
    /// The client reads too slowly.
    SlowConsumer,
    /// The game kicked the client.
    Kicked,
    /// Its address is banned.
    Banned,
    /// It was idle for too long.
    Idle,
    /// It exceeded its message quota.
    Flooding,
    /// Its authentication failed.
    Refused,
    /// It took too long to log in or to load.
    TimedOut,
    /// There is no room.
    Full,
    /// The server is stopping.
    Stopping,
    /// The session is resumed over another connection.
    Resumed,
    /// The stored player cannot be loaded, or is now leased by another server.
    PlayerUnavailable,
}

impl LogoutReason {
    /// The reason that is sent to the client.
    #[must_use]
    pub const fn close_reason(self) -> CloseReason {
        match self {
            Self::Requested | Self::Disconnected => CloseReason::Ended,
            Self::Replaced => CloseReason::Replaced,
            Self::SlowConsumer => CloseReason::SlowConsumer,
            Self::Kicked => CloseReason::Kicked,
            Self::Banned => CloseReason::Banned,
            Self::Idle => CloseReason::Idle,
            Self::Flooding => CloseReason::Flooding,
            Self::Refused => CloseReason::Refused,
            Self::TimedOut => CloseReason::TimedOut,
            Self::Full => CloseReason::Full,
            Self::Stopping => CloseReason::Stopping,
            Self::Resumed => CloseReason::Resumed,
            Self::PlayerUnavailable => CloseReason::Unavailable,
        }
    }
}

/// Why a connection was refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum AcceptError {
    /// The maximum number of sessions is open.
    #[error("the server is full: {0} sessions are open")]
    Full(usize),
    /// Too many new connections since the last tick.
    #[error("too many new connections in one tick ({0})")]
    TooManyPending(usize),
}
