//! The objects of a cue beyond their tag: conditions and order.

use serde::{Deserialize, Serialize};

use super::ScenarioArea;

/// Which objects a cue selects if more than its `count` match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "Pick")]
pub enum SelectionOrder {
    /// The oldest ones.
    #[default]
    First,
    /// Random ones, drawn from the random stream of the script.
    Random,
}

/// A condition for the objects of a cue. Areas are those of the scene of the object; a ring includes the area inside it, up to its outer
/// edge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "Only", deny_unknown_fields)]
pub enum ObjectCondition {
    /// The object is in this area.
    Within(ScenarioArea),
    /// The object is not in this area.
    Outside(ScenarioArea),
    /// The object is outside of a circle that moves and shrinks: the zone of a battle royale.
    OutsideZone {
        /// The centre at the start, metres.
        center_m: glam::Vec2,
        /// The radius at the start, metres.
        radius_m: f32,
        /// The centre at the end, metres; that of the start when absent.
        to_center_m: Option<glam::Vec2>,
        /// The radius at the end, metres.
        to_radius_m: f32,
        /// The time at which the circle begins to move, seconds.
        from_s: f64,
        /// The time at which it reaches the end, seconds; it stays there.
        until_s: f64,
    },
    /// The object is near another object with this tag, in its scene.
    Near {
        /// The tag of the other objects.
        tag: String,
        /// The distance, metres.
        radius_m: f32,
    },
    /// A viewer with this tag sees the object.
    InViewOf(String),
    /// The object sees an object with this tag; only players have views.
    Seeing(String),
    /// An attribute of the object is less than a value.
    Below {
        /// The attribute's name.
        attribute: String,
        /// The value.
        value: i64,
    },
    /// An attribute of the object is a value or more.
    AtLeast {
        /// The attribute's name.
        attribute: String,
        /// The value.
        value: i64,
    },
}
