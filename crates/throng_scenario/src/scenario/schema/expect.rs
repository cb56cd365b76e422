//! Expectations: what must hold in a run. Reports show their texts.

use std::fmt;

use serde::de::value::EnumAccessDeserializer;
use serde::de::{EnumAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::optional_brackets::OptionalBrackets;
use throng::sim::SimSystems;

/// Seconds at the start that timing expectations leave out by default, because caches are cold and all objects spawn.
const WARM_UP_S: f64 = 1.0;

/// The share of ticks that must be under the limit of `TickP99UnderMs` or `SetP99UnderMs`.
const P99: f64 = 0.99;

/// A condition that must hold: during the whole run, unless stated otherwise.
///
/// An expectation without anything to check (no client, no path, no match) is *not exercised*, and the run does not pass.
/// [`NoScriptErrors`](Self::NoScriptErrors) applies to every run whose script has run a cue;
/// [`AllowScriptErrors`](Self::AllowScriptErrors) turns it off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub enum Expectation {
    /// No view list exceeds its cap.
    ViewsWithinCap,
    /// At the end, with all objects at rest, no view has a free slot or a better target.
    ViewsStable,
    /// At the end, with all objects at rest, every client's mirror equals the state that the client may know.
    MirrorsEqual,
    /// Every checked path is a shortest one: A* finds none that is shorter.
    PathsExact {
        /// The share of the found paths that are checked, 0 to 1; a check takes milliseconds. When absent, a sample is checked: the
        /// first path of a tick, up to fifty over the run.
        #[serde(default)]
        share: Option<f64>,
    },
    /// No object stands on a blocked tile.
    #[serde(alias = "NobodyOnBlocked")]
    NoObjectOnBlockedTile,
    /// No path request found its goal unreachable.
    NoUnreachable,
    /// At least this many matches were made.
    MatchesAtLeast(u64),
    /// No party waited longer than this for its match, seconds.
    WaitUnderS(f64),
    /// Every party that queued was matched, cancelled, expired or still waits, exactly one of these.
    #[serde(alias = "Conserved")]
    TicketsConserved,
    /// Every cue succeeded. Applies by default; see [`AllowScriptErrors`](Self::AllowScriptErrors).
    #[serde(alias = "NoScriptFaults")]
    NoScriptErrors,
    /// Script errors are listed, but do not fail the run.
    #[serde(alias = "ScriptFaultsAllowed")]
    AllowScriptErrors,
    /// Every cue ran, and every cue that selects objects found at least one: a `When` that never became true, or an area that was always
    /// empty, fails it. Cues without effect are listed in any case, and `--strict` fails on them.
    #[serde(alias = "NoIdleCues")]
    NoCuesWithoutEffect,
    /// 99 of 100 ticks took less wall time than this, milliseconds; the first second is left out. Checked with `--check-timing`
    /// only, since times depend on the load of the machine.
    TickP99UnderMs(f64),
    /// In 99 of 100 ticks a set took less wall time than this, milliseconds; the first second is left out. Checked with `--check-timing` only.
    SetP99UnderMs(SimSystems, f64),
    /// A share of the ticks took less wall time than this. Checked in every run without `--no-timing`: use it for a known machine.
    TicksUnderMs {
        /// Milliseconds.
        ms: f64,
        /// The share of ticks, 0 to 1; 1 means all ticks.
        #[serde(default = "p99")]
        share: f64,
        /// Simulated seconds at the start that are left out.
        #[serde(default = "warm_up_s")]
        warm_up_s: f64,
        /// The set that is timed; the whole tick when absent.
        #[serde(default)]
        set: Option<SimSystems>,
    },
    /// The average traffic to a client is less than this, bytes per simulated second.
    BytesPerClientUnder(f64),
    /// After the run, when all players have logged out and all scenes are closed, no memory is kept for them, and none outlives the
    /// server. Allocations of the first second are ignored. Needs a build with the feature `leak-track`, in which an allocation
    /// takes some microseconds more, and with line tables (`--profile profiling`); with other builds it does not pass.
    NoLeaks,
    /// The state hash after the last tick: 16 hexadecimal digits.
    HashIs(String),
    /// A value of the report is within limits, inclusive.
    Counter {
        /// Its path in the JSON report: `paths.found`, `objects.npcs`, `memory.peak_rss_bytes`,
        /// `matchmaking.modes.arena.matches`.
        name: String,
        /// The minimum.
        #[serde(default)]
        at_least: Option<f64>,
        /// The maximum.
        #[serde(default)]
        at_most: Option<f64>,
    },
    /// Something holds from a time on. Monotonic counters are counted from that time.
    After {
        /// The time, seconds.
        t_s: f64,
        /// What holds: an expectation that is checked all the time, not only at the end.
        expect: Box<Expectation>,
    },
    /// Something holds between two times. Of monotonic counters, the growth in between counts; other values are read at the end.
    Between {
        /// The start, seconds.
        from_s: f64,
        /// The end, seconds.
        until_s: f64,
        /// What holds: an expectation that is checked all the time, not only at the end.
        expect: Box<Expectation>,
    },
}

const fn p99() -> f64 {
    P99
}

const fn warm_up_s() -> f64 {
    WARM_UP_S
}

/// A limit for the wall time of ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TickLimit {
    /// The whole tick when absent.
    pub set: Option<SimSystems>,
    /// Milliseconds.
    pub ms: f64,
    /// The share of ticks.
    pub share: f64,
    /// Simulated seconds at the start that are left out.
    pub warm_up_s: f64,
    /// Whether it is checked without `--check-timing`.
    pub is_always_checked: bool,
}

impl Expectation {
    /// [`Self::PathsExact`] for a sample of paths.
    pub const PATHS_EXACT: Self = Self::PathsExact { share: None };

    /// Returns the expectation without its time window, and the window: its start and, if it has one, its end, in seconds.
    #[must_use]
    pub fn split_window(&self) -> (&Self, Option<(f64, Option<f64>)>) {
        match self {
            Self::After { t_s, expect } => (expect, Some((*t_s, None))),
            Self::Between {
                from_s,
                until_s,
                expect,
            } => (expect, Some((*from_s, Some(*until_s)))),
            other => (other, None),
        }
    }

    /// Its limit for the wall time of ticks; `None` for other expectations.
    #[must_use]
    pub fn tick_limit(&self) -> Option<TickLimit> {
        let on_request = |set, ms| TickLimit {
            set,
            ms,
            share: P99,
            warm_up_s: WARM_UP_S,
            is_always_checked: false,
        };
        match *self {
            Self::TickP99UnderMs(ms) => Some(on_request(None, ms)),
            Self::SetP99UnderMs(set, ms) => Some(on_request(Some(set), ms)),
            Self::TicksUnderMs {
                ms,
                share,
                warm_up_s,
                set,
            } => Some(TickLimit {
                set,
                ms,
                share,
                warm_up_s,
                is_always_checked: true,
            }),
            _ => None,
        }
    }
}

/// The names of all expectations, which a deserializer needs in advance.
const NAMES: &[&str] = &[
    "ViewsWithinCap",
    "ViewsStable",
    "MirrorsEqual",
    "PathsExact",
    "NoObjectOnBlockedTile",
    "NoUnreachable",
    "MatchesAtLeast",
    "WaitUnderS",
    "TicketsConserved",
    "NoScriptErrors",
    "AllowScriptErrors",
    "NoCuesWithoutEffect",
    "TickP99UnderMs",
    "SetP99UnderMs",
    "TicksUnderMs",
    "BytesPerClientUnder",
    "NoLeaks",
    "HashIs",
    "Counter",
    "After",
    "Between",
];

impl<'de> Deserialize<'de> for Expectation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Choice;

        impl<'de> Visitor<'de> for Choice {
            type Value = Expectation;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an expectation")
            }

            fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Expectation, A::Error> {
                // The derived function: with `remote`, serde derives it as an inherent function, not as the trait's.
                Expectation::deserialize(EnumAccessDeserializer::new(OptionalBrackets(access)))
            }
        }
        deserializer.deserialize_enum("Expectation", NAMES, Choice)
    }
}

impl Serialize for Expectation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ViewsWithinCap => f.write_str("views within cap"),
            Self::ViewsStable => f.write_str("views stable at rest"),
            Self::MirrorsEqual => f.write_str("mirrors equal at rest"),
            Self::PathsExact { share: None } => f.write_str("paths exact"),
            Self::PathsExact { share: Some(share) } => {
                write!(f, "paths exact, {} of them", percent(*share))
            }
            Self::NoObjectOnBlockedTile => f.write_str("nobody on a blocked tile"),
            Self::NoUnreachable => f.write_str("no unreachable goal"),
            Self::MatchesAtLeast(count) => write!(f, "at least {count} matches"),
            Self::WaitUnderS(seconds) => write!(f, "waits under {seconds} s"),
            Self::TicketsConserved => f.write_str("parties conserved"),
            Self::NoScriptErrors => f.write_str("no script errors"),
            Self::AllowScriptErrors => f.write_str("script errors allowed"),
            Self::NoCuesWithoutEffect => f.write_str("no cues without effect"),
            Self::TickP99UnderMs(ms) => write!(f, "tick p99 under {ms} ms"),
            Self::SetP99UnderMs(set, ms) => write!(f, "{} p99 under {ms} ms", set.name()),
            Self::TicksUnderMs { ms, share, set, .. } => {
                let what = set.map_or("ticks", SimSystems::name);
                write!(f, "{what} under {ms} ms in {} of ticks", percent(*share))
            }
            Self::BytesPerClientUnder(bytes) => write!(f, "under {bytes} bytes/s a client"),
            Self::NoLeaks => f.write_str("no leaks"),
            Self::HashIs(hash) => write!(f, "state hash is {hash}"),
            Self::Counter {
                name,
                at_least,
                at_most,
            } => {
                f.write_str(name)?;
                if let Some(least) = at_least {
                    write!(f, " at least {least}")?;
                }
                if let Some(most) = at_most {
                    write!(f, " at most {most}")?;
                }
                Ok(())
            }
            Self::After { t_s, expect } => write!(f, "after {t_s} s: {expect}"),
            Self::Between {
                from_s,
                until_s,
                expect,
            } => write!(f, "from {from_s} to {until_s} s: {expect}"),
        }
    }
}

/// A share in percent.
fn percent(share: f64) -> String {
    // Rounded to thousandths of a percent, since the product is not exact.
    format!("{} %", (share * 1e5).round() / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Expectation, ron::error::SpannedError> {
        let options = ron::Options::default()
            .with_default_extension(ron::extensions::Extensions::IMPLICIT_SOME);
        options.from_str(text)
    }

    #[test]
    fn expectation_texts_contain_their_values() {
        for (text, words) in [
            ("SetP99UnderMs(View, 10)", "view p99 under 10 ms"),
            ("MatchesAtLeast(7)", "at least 7 matches"),
            ("WaitUnderS(0.5)", "waits under 0.5 s"),
            ("PathsExact(share: 0.07)", "paths exact, 7 % of them"),
            (
                "TicksUnderMs(ms: 20, share: 0.999)",
                "ticks under 20 ms in 99.9 % of ticks",
            ),
            (
                "After(t_s: 30, expect: Counter(name: \"paths.found\", at_least: 9))",
                "after 30 s: paths.found at least 9",
            ),
            (
                "Between(from_s: 1, until_s: 2.5, expect: NoObjectOnBlockedTile)",
                "from 1 to 2.5 s: nobody on a blocked tile",
            ),
        ] {
            assert_eq!(read(text).unwrap().to_string(), words);
        }
    }

    #[test]
    fn fields_that_have_defaults_need_no_brackets() {
        let bare = Expectation::PATHS_EXACT;
        for text in ["PathsExact", "PathsExact()", "PathsExact ( ) "] {
            assert_eq!(read(text).as_ref(), Ok(&bare), "{text}");
        }
        let after = read("After(t_s: 1, expect: PathsExact)").unwrap();
        assert_eq!(after.split_window(), (&bare, Some((1.0, None))));
        let error = read("TicksUnderMs").unwrap_err().to_string();
        assert!(error.contains("`ms`"), "{error}");
        let error = read("PathsExact(shre: 1)").unwrap_err().to_string();
        assert!(error.contains("`shre`"), "{error}");
    }

    #[test]
    fn expectations_round_trip() {
        for text in [
            "ViewsStable",
            "PathsExact(share: 0.5)",
            "TicksUnderMs(ms: 5, set: View)",
        ] {
            let expectation = read(text).unwrap();
            let written = ron::to_string(&expectation).unwrap();
            assert_eq!(read(&written), Ok(expectation), "{written}");
        }
    }

    #[test]
    fn only_ticks_under_ms_is_always_checked() {
        let firm = |text| {
            let limit = read(text).unwrap().tick_limit();
            limit.map(|limit| limit.is_always_checked)
        };
        assert_eq!(firm("TickP99UnderMs(50)"), Some(false));
        assert_eq!(firm("TicksUnderMs(ms: 50)"), Some(true));
        assert_eq!(firm("WaitUnderS(50)"), None);
    }
}
