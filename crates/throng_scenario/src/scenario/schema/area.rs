//! Areas of a scene, where crowds spawn or go.

use glam::Vec2;
use serde::{Deserialize, Serialize};

/// A part of a scene. Metres count from the top left corner, x to the right and y down.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "Area", deny_unknown_fields)]
pub enum ScenarioArea {
    /// An axis-aligned rectangle.
    Rect {
        /// The top left corner, metres.
        min_m: Vec2,
        /// The bottom right corner, metres.
        max_m: Vec2,
    },
    /// A circle, or a band along it.
    Ring {
        /// The centre, metres.
        center_m: Vec2,
        /// The radius of the circle, metres.
        radius_m: f32,
        /// The width of the band, half of it on either side of the circle, metres; 0 is the circle itself.
        #[serde(default)]
        width_m: f32,
    },
    /// One point.
    Point {
        /// The point, metres.
        center_m: Vec2,
    },
    /// An axis-aligned rectangle in shares of the map, each 0 to 1: it scales with the map.
    Share(
        /// The top left corner.
        Vec2,
        /// The bottom right corner.
        Vec2,
    ),
}

impl Default for ScenarioArea {
    /// The whole map.
    fn default() -> Self {
        Self::Share(Vec2::ZERO, Vec2::ONE)
    }
}
