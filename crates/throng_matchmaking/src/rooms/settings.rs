//! Settings of a mode of rooms.

use serde::{Deserialize, Serialize};

use crate::mode::{GroupModeSettings, GroupModeTickSettings, ModeError, UNLIMITED};

/// The largest side of a room: players, and so the largest party.
pub const SIDE_SIZE_MAX: u8 = 3;

/// Settings of a mode in which parties of up to three gather in rooms of 1v1, 2v2 or 3v3.
///
/// Avoid lists and regions of a party count here too, as do level bands and a limit on the gap if they are set. The
/// gap is that of the leaders' strengths, summed on each side: only leaders count in rooms. Roles do not apply, and a
/// running match of rooms is not backfilled.
///
/// ```
/// use throng_matchmaking::RoomModeSettings;
///
/// // 2v2 in which two parties of two meet, and never two friends and two strangers.
/// let settings = RoomModeSettings { side_size: 2, equal_size: true, ..RoomModeSettings::default() };
/// assert!(settings.strength_widen_per_s > 0); // the range widens while the oldest party waits
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "RoomSettings", default, deny_unknown_fields)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect))]
pub struct RoomModeSettings {
    /// The mode's unique name in scenarios and statistics.
    pub name: String,
    /// Players on a side, 1–3.
    pub side_size: u8,
    /// Whether a match is exactly two parties of equal size, however small.
    pub equal_size: bool,
    /// How far apart the strengths of the leaders in a room may be if its oldest party has just arrived.
    pub strength_start: u32,
    /// By how much that range widens per second.
    pub strength_widen_per_s: u32,
    /// The largest difference in level of a room whose oldest party has just arrived; unlimited when absent.
    pub level_band_start: u32,
    /// By how much that difference widens per second.
    pub level_band_widen_per_s: u32,
    /// The largest gap in strength between the sides of a match whose oldest party has just arrived; unlimited when
    /// absent.
    pub strength_gap_start: u32,
    /// By how much that gap widens per second.
    pub strength_gap_widen_per_s: u32,
    /// How much stronger a leader counts for each rank, which is the party's level: percent.
    pub rank_weight_percent: u32,
    /// A party leaves the queue unmatched after this many seconds; 0 means never.
    pub expire_after_s: f64,
    /// From this waiting time on (seconds) strengths, levels, gaps and avoid lists are ignored.
    #[serde(alias = "open_after_s")]
    pub limits_off_after_s: f64,
    /// From this waiting time on (seconds), but not before strengths are ignored, a party is served before all
    /// others, oldest first: the wait bound.
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
    /// The largest party that is accepted: players; no larger than a side.
    pub party_size_max: u8,
    /// Matches per heartbeat; the rest wait for the next one.
    pub matches_per_heartbeat_max: u32,
    /// Rooms examined per heartbeat; the rest wait for the next one.
    #[serde(alias = "looks_per_heartbeat_max")]
    pub candidates_per_heartbeat_max: u32,
    /// The maximum number of waiting tickets; further ones are refused.
    pub tickets_max: u32,
}

impl Default for RoomModeSettings {
    fn default() -> Self {
        let groups = GroupModeSettings::default();
        Self {
            name: "rooms".to_owned(),
            side_size: SIDE_SIZE_MAX,
            equal_size: false,
            strength_start: 200,
            strength_widen_per_s: 20,
            level_band_start: UNLIMITED,
            level_band_widen_per_s: groups.level_band_widen_per_s,
            strength_gap_start: UNLIMITED,
            strength_gap_widen_per_s: groups.power_gap_widen_per_s,
            rank_weight_percent: 10,
            expire_after_s: groups.expire_after_s,
            limits_off_after_s: groups.limits_off_after_s,
            priority_after_s: groups.priority_after_s,
            accept_timeout_s: groups.accept_timeout_s,
            decline_penalty_s: groups.decline_penalty_s,
            rematch_cooldown_s: groups.rematch_cooldown_s,
            party_size_max: SIDE_SIZE_MAX,
            matches_per_heartbeat_max: groups.matches_per_heartbeat_max,
            candidates_per_heartbeat_max: groups.candidates_per_heartbeat_max,
            tickets_max: groups.tickets_max,
        }
    }
}

/// Settings of rooms in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomModeTickSettings {
    /// The settings shared with groups of a side's size: the window applies to the leaders' strength.
    pub mode: GroupModeTickSettings,
    /// Whether a match is exactly two parties of equal size.
    pub equal_size: bool,
    /// Percent by which a leader counts stronger for each rank.
    pub rank_weight_percent: u32,
}

impl RoomModeSettings {
    /// Converts seconds into ticks of `1 / tick_hz` seconds. O(1).
    ///
    /// # Errors
    /// [`ModeError`] when a value is out of its range.
    pub fn tick_settings(&self, tick_hz: f64) -> Result<RoomModeTickSettings, ModeError> {
        if !(1..=SIDE_SIZE_MAX).contains(&self.side_size) {
            return Err(ModeError::Range {
                mode: self.name.clone(),
                field: "side_size",
                low: 1.0,
                high: f64::from(SIDE_SIZE_MAX),
                found: f64::from(self.side_size),
            });
        }
        let groups = GroupModeSettings {
            name: self.name.clone(),
            group_size: self.side_size,
            expire_after_s: self.expire_after_s,
            limits_off_after_s: self.limits_off_after_s,
            priority_after_s: self.priority_after_s,
            accept_timeout_s: self.accept_timeout_s,
            decline_penalty_s: self.decline_penalty_s,
            rematch_cooldown_s: self.rematch_cooldown_s,
            party_size_max: self.party_size_max,
            skill_window_start: self.strength_start,
            skill_window_widen_per_s: self.strength_widen_per_s,
            level_band_start: self.level_band_start,
            level_band_widen_per_s: self.level_band_widen_per_s,
            power_gap_start: self.strength_gap_start,
            power_gap_widen_per_s: self.strength_gap_widen_per_s,
            matches_per_heartbeat_max: self.matches_per_heartbeat_max,
            candidates_per_heartbeat_max: self.candidates_per_heartbeat_max,
            tickets_max: self.tickets_max,
            ..GroupModeSettings::default()
        };
        Ok(RoomModeTickSettings {
            mode: groups.tick_settings(tick_hz)?,
            equal_size: self.equal_size,
            rank_weight_percent: self.rank_weight_percent,
        })
    }
}
