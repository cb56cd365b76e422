//! The margin by which an expectation holds or fails.

use serde::{Deserialize, Serialize};

/// The required side of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarginSide {
    /// Less than the limit.
    Below,
    /// At most the limit.
    AtMost,
    /// At least the limit.
    AtLeast,
}

/// A figure and its limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Margin {
    /// The figure.
    pub found: f64,
    /// The limit.
    pub limit: f64,
    /// The required side of the limit.
    pub side: MarginSide,
    /// The unit of both; empty for a count.
    pub unit: String,
}

impl Margin {
    /// Creates the margin of a figure that must be on this side of a limit.
    #[must_use]
    pub fn new(found: f64, limit: f64, side: MarginSide, unit: &str) -> Self {
        Self {
            found,
            limit,
            side,
            unit: unit.to_owned(),
        }
    }

    /// The distance to the limit, as a fraction of the limit (for a limit of 0, the distance itself); negative on the wrong side.
    #[must_use]
    pub fn headroom(&self) -> f64 {
        let room = match self.side {
            MarginSide::Below | MarginSide::AtMost => self.limit - self.found,
            MarginSide::AtLeast => self.found - self.limit,
        };
        // A limit of 0 has no fraction: take the distance itself.
        room / if self.limit == 0.0 {
            1.0
        } else {
            self.limit.abs()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headroom_is_positive_on_the_right_side_of_a_limit() {
        let room = |found, limit, side| Margin::new(found, limit, side, "").headroom();
        assert_eq!(room(12.5, 50.0, MarginSide::Below), 0.75);
        assert_eq!(room(75.0, 50.0, MarginSide::AtMost), -0.5);
        assert_eq!(room(75.0, 50.0, MarginSide::AtLeast), 0.5);
        assert_eq!(room(-3.0, -2.0, MarginSide::AtMost), 0.5);
        assert_eq!(room(3.0, 0.0, MarginSide::AtMost), -3.0);
    }
}
