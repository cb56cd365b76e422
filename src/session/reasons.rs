//! Reasons of ended sessions and refused connections.

use thiserror::Error;
use throng_core::Variants;

use crate::wire::CloseReason;

/// Why a session ended, or a client was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Variants)]
#[non_exhaustive]
pub enum LogoutReason {
    /// The client said so.
    Requested,
    /// The connection ended, and nobody came back in time.
    Disconnected,
    /// The same player logged in elsewhere.
    Replaced,
    /// It took too little of what was sent to it.
    SlowConsumer,
    /// The game threw it out.
    Kicked,
    /// Its address is banned.
    Banned,
    /// It did nothing for too long.
    Idle,
    /// It sent far more than it may.
    Flooding,
    /// It could not say who it is.
    Refused,
    /// It took too long to log in or to load.
    TimedOut,
    /// There is no room.
    Full,
    /// The server stops.
    Stopping,
    /// The session goes on over another connection.
    Resumed,
    /// What is kept of the player cannot be had, or is another server's by now.
    PlayerUnavailable,
}

impl LogoutReason {
    /// What the client is told.
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
    /// As many as there may be.
    #[error("the server is full: {0} sessions are open")]
    Full(usize),
    /// Too many connected since the last tick.
    #[error("too many new connections in one tick ({0})")]
    TooManyPending(usize),
}
