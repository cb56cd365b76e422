//! By how much an expectation holds, or does not.

use serde::{Deserialize, Serialize};

/// On which side of its limit a figure is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarginSide {
    /// Less than it.
    Below,
    /// No more than it.
    AtMost,
    /// No less than it.
    AtLeast,
}

/// A figure beside its limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Margin {
    /// What was found.
    pub found: f64,
    /// What is allowed.
    pub limit: f64,
    /// On which side of the limit it is to be.
    pub side: MarginSide,
    /// Of both; empty for a count.
    pub unit: String,
}

impl Margin {
    /// A figure that is to be on a side of a limit.
    #[must_use]
    pub fn new(found: f64, limit: f64, side: MarginSide, unit: &str) -> Self {
        Self {
            found,
            limit,
            side,
            unit: unit.to_owned(),
        }
    }

    /// How far the figure is on the right side, as a share of the limit; below 0 on the wrong one.
    #[must_use]
    pub fn headroom(&self) -> f64 {
        let room = match self.side {
            MarginSide::Below | MarginSide::AtMost => self.limit - self.found,
            MarginSide::AtLeast => self.found - self.limit,
        };
        // A limit of nothing has no share: any step beyond it is a whole one.
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
