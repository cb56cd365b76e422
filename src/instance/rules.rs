//! Rules of the matches of a mode: their duration, and what happens when a player leaves.

use serde::{Deserialize, Serialize};

/// The rules of a mode's instances. Seconds that are NaN or negative count as 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InstanceRules {
    /// The duration of a match; then its players go home and its scene closes. Seconds.
    pub duration_s: f64,
    /// For how long the seat of a player whose object is gone (for example by a logout) is reserved: if it has an object again
    /// in that time, it is moved in again; otherwise it has left. 0 means that it leaves at once. Seconds. The default is twice the time
    /// for which a lost connection can be resumed, so that the player can also log in again.
    #[serde(alias = "seat_held_s")]
    pub seat_reserved_s: f64,
    /// How often a backfill is requested for players who left; 0 means never. If no players are found after
    /// this number of attempts, the vacancy stays open, which is counted.
    #[serde(alias = "backfill_tries_max")]
    pub backfill_attempts_max: u32,
    /// The time between two such requests, if no players are found. Seconds.
    #[serde(alias = "backfill_every_s")]
    pub backfill_interval_s: f64,
    /// Whether an instance ends as soon as it has no seats.
    pub ends_when_empty: bool,
}

impl InstanceRules {
    /// Matches of this duration, in seconds; everything else by default.
    #[must_use]
    pub fn with_duration_s(duration_s: f64) -> Self {
        Self {
            duration_s,
            ..Self::default()
        }
    }
}

impl Default for InstanceRules {
    fn default() -> Self {
        Self {
            duration_s: 900.0,
            seat_reserved_s: 60.0,
            backfill_attempts_max: 10,
            backfill_interval_s: 5.0,
            ends_when_empty: true,
        }
    }
}

/// The rules in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InstanceTickSettings {
    pub duration: u64,
    pub seat_reserved: u64,
    pub backfill_attempts_max: u32,
    pub backfill_interval: u64,
    pub ends_when_empty: bool,
}

impl InstanceTickSettings {
    /// Adds the values that affect later ticks to a hash; the end of the instance is hashed separately.
    pub(super) fn hash_state(&self, feed: &mut impl FnMut(u64)) {
        feed(self.seat_reserved);
        feed(self.backfill_interval);
        feed(u64::from(self.backfill_attempts_max) << 1 | u64::from(self.ends_when_empty));
    }
}

impl InstanceRules {
    /// Converts to ticks, rounded down. `tick_mhz` is the number of ticks in a thousand seconds.
    pub(super) fn in_ticks(&self, tick_mhz: u64) -> InstanceTickSettings {
        // The cast maps NaN to 0, and values that are too large to the maximum.
        let ticks = |seconds: f64| (seconds.max(0.0) * tick_mhz as f64 / 1000.0) as u64;
        InstanceTickSettings {
            duration: ticks(self.duration_s),
            seat_reserved: ticks(self.seat_reserved_s),
            backfill_attempts_max: self.backfill_attempts_max,
            backfill_interval: ticks(self.backfill_interval_s).max(1),
            ends_when_empty: self.ends_when_empty,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_convert_to_ticks_and_invalid_ones_to_zero() {
        let rules = InstanceRules {
            duration_s: 1.99,
            seat_reserved_s: f64::NAN,
            backfill_interval_s: -3.0,
            ..InstanceRules::default()
        };
        let ticks = rules.in_ticks(20_000);
        assert_eq!(
            (ticks.duration, ticks.seat_reserved, ticks.backfill_interval),
            (39, 0, 1)
        );
        let endless = InstanceRules {
            duration_s: f64::INFINITY,
            ..rules
        };
        assert_eq!(endless.in_ticks(20_000).duration, u64::MAX);
    }
}
