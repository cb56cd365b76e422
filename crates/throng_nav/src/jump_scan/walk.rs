//! The scanner trait of Jump Point Search, and the default implementation for diagonal scans.

use glam::IVec2;

use crate::map::BitPlane;
use crate::rule::{diagonal_turns, is_step_free};

/// The end of a straight scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The number of free tiles, the jump point included.
    pub(crate) steps: u32,
    /// Whether the scan ends at a jump point, not before a wall.
    pub(crate) is_jump_point: bool,
}

impl Reach {
    /// The steps to the jump point; 0 if there is none.
    #[inline(always)]
    pub(crate) fn to_jump_point(self) -> u32 {
        if self.is_jump_point { self.steps } else { 0 }
    }
}

/// The next stop of a diagonal scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    /// The number of free tiles, the stop included.
    pub(crate) steps: u32,
    /// From the stop, the steps east or west to a jump point; 0 if there is none.
    pub(crate) across: u32,
    /// The same to the north or south.
    pub(crate) along: u32,
    /// Whether the path may have to turn here itself.
    pub(crate) turns: bool,
}

impl Stop {
    /// The end of a diagonal scan before a wall.
    #[inline(always)]
    pub(crate) const fn before_wall(steps: u32) -> Self {
        Self {
            steps,
            across: 0,
            along: 0,
            turns: false,
        }
    }

    /// Whether the scan ends here.
    #[inline(always)]
    pub(crate) const fn is_before_wall(self) -> bool {
        self.across == 0 && self.along == 0 && !self.turns
    }
}

/// Finds the ends of scans over a map, under the rule that `CUT` stands for. Scans start on free tiles.
pub(crate) trait JumpScanner<const CUT: bool> {
    /// The tiles that are scanned, row by row.
    fn rows(&self) -> &BitPlane;

    /// The end of the straight scan from a tile.
    fn scan_straight<const DX: i32, const DY: i32>(&self, x: i32, y: i32) -> Reach;

    /// Whether the path from one tile to another is clear, first diagonally and then straight.
    #[inline]
    fn is_clear(&self, from: IVec2, to: IVec2) -> bool {
        let mut tile = from;
        while tile != to {
            let step = (to - tile).signum();
            if !is_step_free::<CUT>(self.rows(), tile.x, tile.y, step.x, step.y) {
                return false;
            }
            tile += step;
        }
        true
    }

    /// The next stop of the diagonal scan from a tile.
    #[inline]
    fn scan_diagonal<const DX: i32, const DY: i32>(&self, x: i32, y: i32) -> Stop {
        let (mut x, mut y) = (x, y);
        let mut steps = 0;
        while is_step_free::<CUT>(self.rows(), x, y, DX, DY) {
            (x, y, steps) = (x + DX, y + DY, steps + 1);
            let (aside, back) = diagonal_turns::<CUT>(self.rows(), x, y, (DX, DY));
            let stop = Stop {
                steps,
                across: self.scan_straight::<DX, 0>(x, y).to_jump_point(),
                along: self.scan_straight::<0, DY>(x, y).to_jump_point(),
                turns: aside || back,
            };
            if !stop.is_before_wall() {
                return stop;
            }
        }
        Stop::before_wall(steps)
    }
}
