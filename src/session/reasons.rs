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
    /// The stored player cannot be loaded, or its lease has expired or its save was refused.
    PlayerUnavailable,
    /// Another server has taken the player over.
    PlayerTaken,
    /// The player was handed to another node of a cluster, which has taken its client over.
    Moved,
}

impl LogoutReason {
    /// The reason that is sent to the client.
    #[must_use]
    pub const fn close_reason(self) -> CloseReason {
        match self {
            Self::Requested | Self::Disconnected | Self::Moved => CloseReason::Ended,
            // For a client it is the same on which server the player logged in.
            Self::Replaced | Self::PlayerTaken => CloseReason::Replaced,
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

    /// The reason in the server's log and metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Disconnected => "disconnected",
            Self::Replaced => "replaced",
            Self::SlowConsumer => "slow_consumer",
            Self::Kicked => "kicked",
            Self::Banned => "banned",
            Self::Idle => "idle",
            Self::Flooding => "flooding",
            Self::Refused => "authentication_failed",
            Self::TimedOut => "timed_out",
            Self::Full => "server_full",
            Self::Stopping => "server_stopping",
            Self::Resumed => "resumed",
            Self::PlayerUnavailable => "player_unavailable",
            Self::PlayerTaken => "player_taken",
            Self::Moved => "moved",
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_reason_has_its_own_label_and_client_reason() {
        let labels: BTreeSet<&str> = LogoutReason::ALL.iter().map(|it| it.label()).collect();
        assert_eq!(labels.len(), LogoutReason::ALL.len());
        let numbers = LogoutReason::ALL
            .iter()
            .map(|it| it.close_reason().number());
        let numbers: BTreeSet<u8> = numbers.collect();
        // `Requested`, `Disconnected` and `Moved` have the same reason for clients, and so have `Replaced` and `PlayerTaken`.
        assert_eq!(numbers.len(), LogoutReason::ALL.len() - 3);
    }
}
