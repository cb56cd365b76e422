//! Expectations: what a run must keep to. Their texts are what reports show.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that must hold, during the whole run unless it says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Expectation {
    /// No view list is over its cap.
    ViewsWithinCap,
    /// At the end, at rest, no view could gain anything.
    ViewsStable,
    /// At the end, at rest, every client's mirror equals what it may know.
    MirrorsEqual,
    /// Every path that was found is as short as can be.
    PathsExact,
    /// No object stands on a blocked tile.
    NobodyOnBlocked,
    /// No path request found its goal unreachable.
    NoUnreachable,
    /// At least so many matches were made.
    MatchesAtLeast(u64),
    /// No party waited longer for its match, seconds.
    WaitUnderS(f64),
    /// Every party that queued was matched, gave up, expired or still waits, and none twice.
    Conserved,
    /// 99 of 100 ticks took less wall time, milliseconds.
    TickP99UnderMs(f64),
    /// In 99 of 100 ticks a set took less wall time, milliseconds.
    SetP99UnderMs(SetName, f64),
    /// No client was sent more on average, bytes a simulated second.
    BytesPerClientUnder(f64),
    /// The state hash after the last tick: 16 hexadecimal digits.
    HashIs(String),
}

impl Expectation {
    /// Whether it is about wall time, so that `--no-timing` shows it without judging it.
    #[must_use]
    pub const fn is_timing(&self) -> bool {
        matches!(self, Self::TickP99UnderMs(_) | Self::SetP99UnderMs(..))
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ViewsWithinCap => f.write_str("views within cap"),
            Self::ViewsStable => f.write_str("views stable at rest"),
            Self::MirrorsEqual => f.write_str("mirrors equal at rest"),
            Self::PathsExact => f.write_str("paths exact"),
            Self::NobodyOnBlocked => f.write_str("nobody on a blocked tile"),
            Self::NoUnreachable => f.write_str("no unreachable goal"),
            Self::MatchesAtLeast(count) => write!(f, "at least {count} matches"),
            Self::WaitUnderS(seconds) => write!(f, "waits under {seconds} s"),
            Self::Conserved => f.write_str("parties conserved"),
            Self::TickP99UnderMs(ms) => write!(f, "tick p99 under {ms} ms"),
            Self::SetP99UnderMs(set, ms) => write!(f, "{} p99 under {ms} ms", set.name()),
            Self::BytesPerClientUnder(bytes) => write!(f, "under {bytes} bytes/s a client"),
            Self::HashIs(hash) => write!(f, "state hash is {hash}"),
        }
    }
}

/// A step of the tick, as `sim` names them; `First` and `Last` are empty and left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each is the step of that name")]
pub enum SetName {
    Ingest,
    Think,
    Navigate,
    Move,
    Locate,
    View,
    Heartbeat,
    Replicate,
    Send,
}

impl SetName {
    /// The name in tables and reports: lower case, equal to that of the set in `sim`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Think => "think",
            Self::Navigate => "navigate",
            Self::Move => "move",
            Self::Locate => "locate",
            Self::View => "view",
            Self::Heartbeat => "heartbeat",
            Self::Replicate => "replicate",
            Self::Send => "send",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_carry_their_values() {
        assert_eq!(
            Expectation::SetP99UnderMs(SetName::View, 10.0).to_string(),
            "view p99 under 10 ms"
        );
        assert_eq!(
            Expectation::MatchesAtLeast(7).to_string(),
            "at least 7 matches"
        );
        assert_eq!(
            Expectation::WaitUnderS(0.5).to_string(),
            "waits under 0.5 s"
        );
    }

    #[test]
    fn only_expectations_on_wall_time_are_timing() {
        assert!(Expectation::TickP99UnderMs(50.0).is_timing());
        assert!(!Expectation::WaitUnderS(50.0).is_timing());
    }
}
