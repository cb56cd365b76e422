//! Settings of movement: how strict the validation is, and how much work walkers may cause.

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use crate::movement::MoveRules;

/// How strictly players' moves are validated, and how much work walkers may cause. A `Resource`; changes at run time
/// take effect in the next tick.
///
/// ```
/// # let mut app = bevy_app::App::new();
/// use throng::movement::MovementSettings;
///
/// // Clients of this game run at the tick rate of the server, and need less tolerance.
/// app.insert_resource(MovementSettings { tolerance: 0.05, ..MovementSettings::default() });
/// ```
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct MovementSettings {
    /// The fraction by which a player may exceed its speed: clocks differ, and clients send at other rates than the server ticks. With a
    /// smaller one, honest players are corrected; with a larger one, modified clients are faster by as much. The default is 10 %.
    pub tolerance: f32,
    /// The maximum time that a player can save up without moving, in seconds: inputs that the network held back for so long are applied
    /// together. It is also how far ahead of its speed a modified client can jump.
    pub burst_s_max: f32,
    /// The tolerance for the rounding of positions in messages, in metres: one quantum.
    #[serde(alias = "slack_m")]
    pub rounding_tolerance_m: f32,
    /// Ticks without an accepted move after which a player stands still; 0 counts as 1. The default lets three inputs in a row be lost.
    #[serde(alias = "rest_after_ticks")]
    pub idle_after_ticks: u32,
    /// The number of line-of-sight tests of a walker at a waypoint; 0 turns smoothing off.
    #[serde(alias = "looks_max")]
    pub sight_tests_max: u32,
    /// The maximum distance, in tiles, that an object on a blocked tile is moved. Without a free tile within it, it stays where it is, and
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
    /// The limits for players; negative values and NaN count as 0.
    #[must_use]
    pub fn move_limits(&self) -> MoveRules {
        MoveRules {
            tolerance: self.tolerance.max(0.0),
            burst_s_max: self.burst_s_max.max(0.0),
            rounding_tolerance_m: self.rounding_tolerance_m.max(0.0),
        }
    }
}
