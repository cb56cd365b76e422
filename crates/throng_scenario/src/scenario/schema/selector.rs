//! Who a cue is about, beyond a tag: what must hold of them, and which of them.

use serde::{Deserialize, Serialize};

use super::ScenarioArea;

/// Which objects a cue takes when more fit than its `count`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "Pick")]
pub enum SelectionOrder {
    /// Those that came first.
    #[default]
    First,
    /// Random ones, drawn from the script's own stream of the scenario's seed: other systems' draws change nothing.
    Random,
}

/// Something that must hold of an object for a cue to be about it. Areas are those of the scene in which the object is; a
/// ring counts with all that it surrounds, out to its outer edge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "Only", deny_unknown_fields)]
pub enum ObjectCondition {
    /// It is in this area.
    Within(ScenarioArea),
    /// It is not in this area.
    Outside(ScenarioArea),
    /// It is not in an area that moves and shrinks from one ring to another: the zone of a battle royale.
    OutsideZone {
        /// The middle at the beginning, metres.
        center_m: glam::Vec2,
        /// The radius at the beginning, metres.
        radius_m: f32,
        /// The middle at the end, metres; where it was at the beginning when absent.
        to_center_m: Option<glam::Vec2>,
        /// The radius at the end, metres.
        to_radius_m: f32,
        /// When it begins to move, seconds; it is as at the beginning before.
        from_s: f64,
        /// When it has come to the end, seconds; it stays so.
        until_s: f64,
    },
    /// It is so near to an object with this tag, in its scene. Nobody is near to itself.
    Near {
        /// The tag of those to whom it is near.
        tag: String,
        /// How near, metres.
        radius_m: f32,
    },
    /// A viewer with this tag has it in its view.
    InViewOf(String),
    /// It has an object with this tag in its view; only players have one.
    Seeing(String),
    /// An attribute of it is less than a value.
    Below {
        /// The attribute's name.
        attribute: String,
        /// The value.
        value: i64,
    },
    /// An attribute of it is a value or more.
    AtLeast {
        /// The attribute's name.
        attribute: String,
        /// The value.
        value: i64,
    },
}
