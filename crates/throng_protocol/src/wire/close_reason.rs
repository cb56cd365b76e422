//! Reasons for which a server ends a session.

use std::fmt::{self, Display, Formatter};

use throng_core::Variants;

/// Why a server ends a session. *Closed* and captures contain its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Variants)]
#[non_exhaustive]
pub enum CloseReason {
    /// The client logged out, or its connection ended.
    Ended,
    /// The player logged in elsewhere.
    Replaced,
    /// The client's send queue was full.
    SlowConsumer,
    /// The server stops.
    Stopping,
    /// The game kicked the player.
    Kicked,
    /// The client's address is banned.
    Banned,
    /// The client was inactive for too long.
    Idle,
    /// The client far exceeded its message quota.
    Flooding,
    /// The client could not prove its identity.
    Refused,
    /// The login or loading timed out.
    TimedOut,
    /// The server is full.
    Full,
    /// The session continues over another connection.
    Resumed,
    /// The stored record of the player is not available.
    Unavailable,
    /// The server received nothing from the client for too long, or no acknowledgements.
    Lost,
}

/// A sentence for players and logs, different for each reason.
impl Display for CloseReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended => "the session has ended",
            Self::Replaced => "the player logged in elsewhere",
            Self::SlowConsumer => "the client is behind: it does not read fast enough",
            Self::Stopping => "the server is shutting down",
            Self::Kicked => "the player was kicked",
            Self::Banned => "the address of the client is banned",
            Self::Idle => "the player was idle for too long",
            Self::Flooding => "the client sends too many messages",
            Self::Refused => "the login is refused: the authentication failed",
            Self::TimedOut => "the login or the loading took too long",
            Self::Full => "the server is full",
            Self::Resumed => "the session continues over another connection",
            Self::Unavailable => "the stored player is unavailable: the store does not answer, or another server has the player",
            Self::Lost => "the connection is lost: the server received nothing for too long",
        })
    }
}

impl CloseReason {
    /// The number of the reason, from 1 on.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }

    /// The reason with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_reason_has_a_number_that_reads_back() {
        let reasons = (0..=255).filter_map(CloseReason::from_number);
        let numbers: Vec<u8> = reasons.map(CloseReason::number).collect();
        assert_eq!(numbers, Vec::from_iter(1..=14));
    }

    #[test]
    fn each_reason_has_its_own_name_and_sentence() {
        let all = CloseReason::ALL.iter();
        let names: BTreeSet<&str> = all.clone().map(|reason| reason.name()).collect();
        let sentences: BTreeSet<String> = all.map(ToString::to_string).collect();
        assert_eq!((names.len(), sentences.len()), (14, 14));
    }
}
