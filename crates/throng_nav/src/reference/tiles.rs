//! Scans tile by tile: Jump Point Search as first published.

use crate::jump_scan::{JumpScanner, Reach};
use crate::map::BitPlane;
use crate::rule::is_straight_turn;

/// Finds the ends of scans from the tiles alone. Cost: up to seven tiles read per step of a straight scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileScanner<'m>(pub(crate) &'m BitPlane);

impl<const CUT: bool> JumpScanner<CUT> for TileScanner<'_> {
    fn rows(&self) -> &BitPlane {
        self.0
    }

    fn scan_straight<const DX: i32, const DY: i32>(&self, x: i32, y: i32) -> Reach {
        let (mut x, mut y) = (x, y);
        let mut steps = 0;
        while !self.0.is_blocked(x + DX, y + DY) {
            (x, y, steps) = (x + DX, y + DY, steps + 1);
            if is_straight_turn::<CUT>(self.0, x, y, (DX, DY)) {
                return Reach {
                    steps,
                    is_jump_point: true,
                };
            }
        }
        Reach {
            steps,
            is_jump_point: false,
        }
    }
}
