//! Reasons for which a server ends a session.

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
    use super::*;

    #[test]
    fn a_reason_has_a_number_that_reads_back() {
        let reasons = (0..=255).filter_map(CloseReason::from_number);
        let numbers: Vec<u8> = reasons.map(CloseReason::number).collect();
        assert_eq!(numbers, Vec::from_iter(1..=13));
    }
}
