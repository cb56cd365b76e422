//! Why a server ends a session.

use throng_core::Variants;

/// Why nothing more is sent to a client. Its number is in *Closed*, and in captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Variants)]
#[non_exhaustive]
pub enum CloseReason {
    /// It logged out, or its connection ended.
    Ended,
    /// Its player logged in elsewhere.
    Replaced,
    /// More was waiting for it than may.
    SlowConsumer,
    /// The server stops.
    Stopping,
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
    /// There is no room for it.
    Full,
    /// Its session goes on over another connection.
    Resumed,
    /// What is kept of its player cannot be had.
    Unavailable,
}

impl CloseReason {
    /// Its number, from 1 on.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }

    /// The reason of a number.
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
