//! Settings of movement: how strict the validation is, and how much work walkers may cause.

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use crate::movement::MoveRules;

/// How strictly players' moves are checked, and how much work walkers may make. A `Resource`; all may change while the
/// server runs and holds from the next tick on.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct MovementSettings {
    /// By what share a player may be faster than its speed: clocks differ.
    pub tolerance: f32,
    /// For how long a player can save up time without moving, in seconds.
    pub burst_s_max: f32,
    /// What rounding of positions on the wire may add to a move, in metres: one quantum.
    #[serde(alias = "slack_m")]
    pub rounding_tolerance_m: f32,
    /// Ticks without an accepted move after which a player stands still; 0 counts as 1.
    #[serde(alias = "rest_after_ticks")]
    pub idle_after_ticks: u32,
    /// Lines of sight that a walker tries at a waypoint; 0 turns smoothing off.
    #[serde(alias = "looks_max")]
    pub sight_tests_max: u32,
    /// How far, in tiles, somebody on a blocked tile is put at most. Without a free tile within it stays where it is, and
    /// is counted.
    pub push_radius_tiles_max: u32,
}

impl Default for MovementSettings {
    fn default() -> Self {
        Self {
            tolerance: 0.1,
            burst_s_max: 1.0,
            rounding_tolerance_m: 1.0 / 64.0,
            idle_after_ticks: 4,
            sight_tests_max: 8,
            push_radius_tiles_max: 256,
        }
    }
}

impl MovementSettings {
    /// The rules for players; what is negative or no number counts as 0.
    #[must_use]
    pub fn move_limits(&self) -> MoveRules {
        MoveRules {
            tolerance: self.tolerance.max(0.0),
            burst_s_max: self.burst_s_max.max(0.0),
            rounding_tolerance_m: self.rounding_tolerance_m.max(0.0),
        }
    }
}
