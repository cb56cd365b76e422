//! The modes in which parties can queue, and how their limits widen with waiting.
//!
//! Settings are in seconds, as in a scenario; [`GroupModeTickSettings`] are the same in ticks, so that only integers reach a
//! decision.
//!
//! ```text
//! limit(w) = start + widen_per_s · w   while w < limits_off_after   (skill window, level band, power gap)
//!            no limit                  from then on; avoid lists of and against the party end, too
//!            priority                  from priority_after on
//! ```
//! Invariant: a limit never narrows while a party waits.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::ticket::{PARTY_SIZE_MAX, ROLE_COUNT};

/// The largest group: players.
pub const GROUP_SIZE_MAX: u8 = 50;

/// The largest value of a setting in seconds.
pub const SECONDS_MAX: f64 = 1e9;

/// No limit: every spread and gap is within it.
pub const UNLIMITED: u32 = u32::MAX;

/// How parties are combined into groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect))]
pub enum Packing {
    /// Parties of similar skill, inside windows that widen with waiting.
    #[default]
    Windows,
    /// Parties in the order of arrival, whatever their skill (the reference design); the skill window does not apply.
    Arrival,
}

/// Settings of a mode that makes matches between two groups of exactly K players.
///
/// ```
/// use throng_matchmaking::{GroupModeSettings, MatchModeSettings};
///
/// let ranked = GroupModeSettings {
///     name: "ranked".to_owned(),
///     group_size: 5,
///     accept_timeout_s: 15.0, // the players have to accept the match
///     skill_window_start: 50,
///     skill_window_widen_per_s: 2, // at most 50 + 2 × 60 points of skill apart after a minute
///     ..GroupModeSettings::default()
/// };
/// let mode = MatchModeSettings::Groups(ranked);
/// assert_eq!(mode.name(), "ranked");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "ModeSettings", default, deny_unknown_fields)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect))]
pub struct GroupModeSettings {
    /// The mode's unique name in scenarios and statistics.
    pub name: String,
    /// K: players in a group, 1–50.
    pub group_size: u8,
    /// How parties are combined into groups.
    pub packing: Packing,
    /// A party leaves the queue unmatched after this many seconds; 0 means never.
    pub expire_after_s: f64,
    /// From this waiting time on (seconds) a party's window, level band and gap limit are off, and its avoid list
    /// is ignored.
    #[serde(alias = "open_after_s")]
    pub limits_off_after_s: f64,
    /// From this waiting time on (seconds), but not before its limits are off, a party is served before all
    /// others, oldest first, whatever that costs them: the wait bound.
    #[serde(alias = "first_after_s")]
    pub priority_after_s: f64,
    /// How long the players of a match have to accept it (seconds); 0 means that no acceptance is needed.
    #[serde(alias = "accept_within_s")]
    pub accept_timeout_s: f64,
    /// For how long (seconds) the players of a party that lets a proposed match fail may not queue; 0 means that
    /// there is no penalty.
    #[serde(alias = "bar_after_decline_s")]
    pub decline_penalty_s: f64,
    /// For how long (seconds) two players do not meet as opponents again; 0 means that there is no limit.
    #[serde(alias = "rematch_after_s")]
    pub rematch_cooldown_s: f64,
    /// The largest party that is accepted: players.
    pub party_size_max: u8,
    /// The minimum number of players of each role in a group.
    pub roles: [u8; ROLE_COUNT],
    /// The largest skill spread of a match whose oldest party has just arrived: skill points.
    pub skill_window_start: u32,
    /// By how much that spread widens per second: skill points.
    pub skill_window_widen_per_s: u32,
    /// The largest difference in level of a match whose oldest party has just arrived.
    pub level_band_start: u32,
    /// By how much that difference widens per second.
    pub level_band_widen_per_s: u32,
    /// The largest gap in power between the groups of a match whose oldest party has just arrived.
    pub power_gap_start: u32,
    /// By how much that gap widens per second.
    pub power_gap_widen_per_s: u32,
    /// Matches per heartbeat; those of the longest-waiting parties come first, the rest wait for the next heartbeat.
    pub matches_per_heartbeat_max: u32,
    /// Candidates examined per heartbeat in searches for priority parties, and again as many for parties that are left over
    /// after packing; the rest wait for the next heartbeat.
    #[serde(alias = "looks_per_heartbeat_max")]
    pub candidates_per_heartbeat_max: u32,
    /// The maximum number of waiting tickets; further ones are refused.
    pub tickets_max: u32,
}

impl Default for GroupModeSettings {
    fn default() -> Self {
        Self {
            name: "arena".to_owned(),
            group_size: 5,
            packing: Packing::default(),
            expire_after_s: 600.0,
            limits_off_after_s: 60.0,
            priority_after_s: 75.0,
            accept_timeout_s: 0.0,
            decline_penalty_s: 30.0,
            rematch_cooldown_s: 0.0,
            party_size_max: PARTY_SIZE_MAX,
            roles: [0; ROLE_COUNT],
            skill_window_start: 100,
            skill_window_widen_per_s: 10,
            level_band_start: 10,
            level_band_widen_per_s: 1,
            power_gap_start: 500,
            power_gap_widen_per_s: 100,
            matches_per_heartbeat_max: 500,
            candidates_per_heartbeat_max: 200_000,
            tickets_max: 1 << 20,
        }
    }
}

impl GroupModeSettings {
    /// Converts seconds into ticks of `1 / tick_hz` seconds. O(1).
    ///
    /// # Errors
    /// [`ModeError`] when a value is out of its range.
    pub fn tick_settings(&self, tick_hz: f64) -> Result<GroupModeTickSettings, ModeError> {
        self.check_ranges(tick_hz)?;
        let ticks = |seconds: f64| (seconds * tick_hz).ceil() as u64;
        Ok(GroupModeTickSettings {
            group_size: self.group_size,
            packing: self.packing,
            expire_after_ticks: (self.expire_after_s > 0.0).then(|| ticks(self.expire_after_s)),
            limits_off_after_ticks: ticks(self.limits_off_after_s),
            priority_after_ticks: ticks(self.priority_after_s.max(self.limits_off_after_s)),
            accept_timeout_ticks: ticks(self.accept_timeout_s),
            decline_penalty_ticks: ticks(self.decline_penalty_s),
            rematch_cooldown_ticks: ticks(self.rematch_cooldown_s),
            party_size_max: self.party_size_max.min(self.group_size),
            roles: self.roles,
            skill_window: Widening {
                start: self.skill_window_start,
                per_s: self.skill_window_widen_per_s,
            },
            level_band: Widening {
                start: self.level_band_start,
                per_s: self.level_band_widen_per_s,
            },
            power_gap: Widening {
                start: self.power_gap_start,
                per_s: self.power_gap_widen_per_s,
            },
            tick_mhz: (tick_hz * 1000.0).ceil() as u64,
            matches_max: self.matches_per_heartbeat_max as usize,
            sight_tests_max: u64::from(self.candidates_per_heartbeat_max),
            tickets_max: self.tickets_max,
        })
    }

    /// Whether each value is within its range.
    fn check_ranges(&self, tick_hz: f64) -> Result<(), ModeError> {
        let range = |field, value: f64, low, high| {
            let inside = value >= low && value <= high;
            let mode = || self.name.clone();
            if inside {
                Ok(())
            } else {
                Err(ModeError::Range {
                    mode: mode(),
                    field,
                    low,
                    high,
                    found: value,
                })
            }
        };
        if self.name.is_empty() {
            return Err(ModeError::EmptyName);
        }
        range("tick_hz", tick_hz, 0.001, 1e6)?;
        range(
            "group_size",
            f64::from(self.group_size),
            1.0,
            f64::from(GROUP_SIZE_MAX),
        )?;
        for (field, seconds) in [
            ("expire_after_s", self.expire_after_s),
            ("limits_off_after_s", self.limits_off_after_s),
            ("priority_after_s", self.priority_after_s),
            ("accept_timeout_s", self.accept_timeout_s),
            ("decline_penalty_s", self.decline_penalty_s),
            ("rematch_cooldown_s", self.rematch_cooldown_s),
        ] {
            range(field, seconds, 0.0, SECONDS_MAX)?;
        }
        let party_size_max = f64::from(self.party_size_max);
        range(
            "party_size_max",
            party_size_max,
            1.0,
            f64::from(PARTY_SIZE_MAX),
        )?;
        let roles: f64 = self.roles.iter().copied().map(f64::from).sum();
        range("roles", roles, 0.0, f64::from(self.group_size))?;
        range(
            "matches_per_heartbeat_max",
            f64::from(self.matches_per_heartbeat_max),
            1.0,
            f64::from(u32::MAX),
        )?;
        range(
            "candidates_per_heartbeat_max",
            f64::from(self.candidates_per_heartbeat_max),
            1.0,
            f64::from(u32::MAX),
        )
    }
}

/// A mode's settings in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupModeTickSettings {
    /// K: players in a group, 1–50.
    pub group_size: u8,
    /// How parties are combined into groups.
    pub packing: Packing,
    /// A party that has waited this long is removed; `None` means never.
    pub expire_after_ticks: Option<u64>,
    /// A party that has waited this long has no limits.
    pub limits_off_after_ticks: u64,
    /// A party that has waited this long has priority.
    pub priority_after_ticks: u64,
    /// A proposed match that is not accepted for this long is cancelled; 0 means that no acceptance is needed.
    pub accept_timeout_ticks: u64,
    /// Players of a party that lets a proposed match fail may not queue for this long.
    pub decline_penalty_ticks: u64,
    /// Players do not meet as opponents again for this long.
    pub rematch_cooldown_ticks: u64,
    /// The largest party that is accepted.
    pub party_size_max: u8,
    /// The minimum number of players of each role in a group.
    pub roles: [u8; ROLE_COUNT],
    /// The largest skill spread of a match.
    pub skill_window: Widening,
    /// The largest difference in level of a match.
    pub level_band: Widening,
    /// The largest power gap of a match.
    pub power_gap: Widening,
    /// Ticks in a thousand seconds.
    pub tick_mhz: u64,
    /// Matches per heartbeat.
    pub matches_max: usize,
    /// Candidates examined per heartbeat in searches for left-over parties.
    pub sight_tests_max: u64,
    /// The maximum number of waiting tickets.
    pub tickets_max: u32,
}

impl GroupModeTickSettings {
    /// The largest skill spread of a match whose longest-waiting party has waited `waited_ticks`; [`UNLIMITED`] for
    /// [`Packing::Arrival`] and for a party past the wait bound. O(1).
    #[must_use]
    pub fn window_at(&self, waited_ticks: u64) -> u32 {
        if self.packing == Packing::Arrival {
            UNLIMITED
        } else {
            self.limit_at(self.skill_window, waited_ticks)
        }
    }

    /// The largest difference in level of a match whose longest-waiting party has waited `waited_ticks`. O(1).
    #[must_use]
    pub fn level_band_at(&self, waited_ticks: u64) -> u32 {
        self.limit_at(self.level_band, waited_ticks)
    }

    /// The largest power gap of a match whose longest-waiting party has waited `waited_ticks`; [`UNLIMITED`] for a
    /// party past the wait bound. O(1).
    #[must_use]
    pub fn power_gap_at(&self, waited_ticks: u64) -> u32 {
        self.limit_at(self.power_gap, waited_ticks)
    }

    fn limit_at(&self, widening: Widening, waited_ticks: u64) -> u32 {
        if waited_ticks >= self.limits_off_after_ticks {
            return UNLIMITED;
        }
        widening.at(waited_ticks, self.tick_mhz)
    }
}

/// A limit that grows linearly with waiting time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widening {
    /// The limit at the start.
    pub start: u32,
    /// How much it grows per second.
    pub per_s: u32,
}

impl Widening {
    /// The limit after this waiting time. O(1).
    #[must_use]
    pub fn at(self, waited_ticks: u64, tick_mhz: u64) -> u32 {
        let millis = u128::from(waited_ticks) * 1000;
        let widened = u128::from(self.per_s) * millis / u128::from(tick_mhz.max(1));
        u32::try_from(u128::from(self.start) + widened).unwrap_or(UNLIMITED)
    }
}

/// Why a list of modes is not valid.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ModeError {
    /// A mode's name is empty.
    #[error("expected a name for each queue, found an empty one")]
    EmptyName,
    /// Two modes have the same name.
    #[error("expected different names for the queues, found `{0}` twice")]
    DuplicateName(String),
    /// There are more modes than ids.
    #[error("expected at most 65536 queues, found {0}")]
    TooManyModes(usize),
    /// A value is outside its range.
    #[error("queue `{mode}`: expected `{field}` between {low} and {high}, found {found}")]
    Range {
        /// The mode's name.
        mode: String,
        /// The name of the setting that is out of range.
        field: &'static str,
        /// The least value.
        low: f64,
        /// The greatest value.
        high: f64,
        /// The value that was found.
        found: f64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_widen_linearly_until_unlimited() {
        let settings = GroupModeSettings {
            skill_window_start: 50,
            skill_window_widen_per_s: 20,
            limits_off_after_s: 30.0,
            ..Default::default()
        };
        let rules = settings.tick_settings(20.0).unwrap();
        assert_eq!(rules.window_at(0), 50);
        assert_eq!(rules.window_at(10), 60);
        assert_eq!(rules.window_at(599), 50 + 599);
        assert_eq!(rules.window_at(600), UNLIMITED);
        assert_eq!(rules.power_gap_at(u64::MAX), UNLIMITED);
    }

    #[test]
    fn huge_values_saturate() {
        let settings = GroupModeSettings {
            skill_window_start: u32::MAX,
            skill_window_widen_per_s: u32::MAX,
            limits_off_after_s: SECONDS_MAX,
            ..Default::default()
        };
        assert_eq!(
            settings
                .tick_settings(1000.0)
                .unwrap()
                .window_at(999_999_999_999),
            UNLIMITED
        );
    }

    #[test]
    fn out_of_range_values_are_named() {
        let error = GroupModeSettings {
            group_size: 51,
            ..Default::default()
        }
        .tick_settings(20.0)
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "queue `arena`: expected `group_size` between 1 and 50, found 51"
        );
        assert!(
            GroupModeSettings {
                expire_after_s: f64::NAN,
                ..Default::default()
            }
            .tick_settings(20.0)
            .is_err()
        );
        assert!(
            GroupModeSettings {
                limits_off_after_s: -1.0,
                ..Default::default()
            }
            .tick_settings(20.0)
            .is_err()
        );
        assert!(GroupModeSettings::default().tick_settings(0.0).is_err());
        assert!(
            GroupModeSettings {
                candidates_per_heartbeat_max: 0,
                ..Default::default()
            }
            .tick_settings(20.0)
            .is_err()
        );
    }
}
