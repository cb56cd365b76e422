//! The two movement rules: which steps are allowed, and where a search may have to turn.
//!
//! Both move to eight neighbours. They differ in the corners of a diagonal step:
//!
//! ```text
//!   NoCut: both straight neighbours free      Cut: at least one of them free
//!        a .                                        # .
//!        s b    s to its diagonal: a, b free        s b    b is free, a need not be
//! ```
//! The tiles where a shortest path may have to turn follow from the rule. Under `NoCut` they are just past the end of a
//! wall next to a straight path, and a diagonal path never has to turn. Under `Cut` they are next to the last tile of a
//! wall, and diagonal paths have them as well (Harabor and Grastien, "Online graph pruning for pathfinding on grid
//! maps", AAAI 2011, for `Cut`; `NoCut` is not the same rule with fewer steps):
//!
//! ```text
//! NoCut, going east    Cut, going east    Cut, going north-east
//!   # # a b              # # b .            b a .
//!   p ─ x c              p x c .            # x .       from x also to a and b (NoCut), or to b (Cut)
//!                                           p . .
//! ```
//! Invariant: reachability is the same under both, and the same as over straight steps alone.

use glam::IVec2;
use serde::{Deserialize, Serialize};
use throng_core::Variants;

use super::direction::{Direction, Directions};
use crate::map::BitPlane;

/// Which corners a diagonal step may cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, Variants)]
#[variants(kebab)]
pub enum Diagonal {
    /// Both straight neighbours next to a diagonal step must be free: a walker never clips a corner.
    #[default]
    NoCut,
    /// At least one of them must be free.
    Cut,
}

impl Diagonal {
    /// Whether the rule allows a step of −1, 0 or 1 along each axis from a free tile.
    pub fn allows(self, rows: &BitPlane, x: i32, y: i32, dx: i32, dy: i32) -> bool {
        match self {
            Diagonal::NoCut => is_step_free::<false>(rows, x, y, dx, dy),
            Diagonal::Cut => is_step_free::<true>(rows, x, y, dx, dy),
        }
    }
}

/// Whether a step from a free tile is allowed.
#[inline(always)]
pub(super) fn is_step_free<const CUT: bool>(
    rows: &BitPlane,
    x: i32,
    y: i32,
    dx: i32,
    dy: i32,
) -> bool {
    // For a straight step one of the two is the target tile and the other the tile itself.
    let (beside_x, beside_y) = (rows.is_blocked(x + dx, y), rows.is_blocked(x, y + dy));
    let is_corner_free = if CUT {
        !(beside_x && beside_y)
    } else {
        !(beside_x || beside_y)
    };
    is_corner_free && !rows.is_blocked(x + dx, y + dy)
}

/// The directions in which a shortest path may continue from a free tile after a step in the last direction: ahead, for a
/// diagonal path along both its straight parts, and where it may have to turn. From the start, all directions.
#[inline]
pub(super) fn next_directions<const CUT: bool>(
    rows: &BitPlane,
    tile: IVec2,
    last: Option<Direction>,
) -> Directions {
    let Some(last) = last else {
        return Directions::ALL;
    };
    let row = |dy| (rows.word_at(tile.x - 1, tile.y + dy) & 0b111) as usize;
    let around = row(-1) | row(0) << 3 | row(1) << 6;
    let directions = if CUT {
        &NEXT_DIRECTIONS_CUT
    } else {
        &NEXT_DIRECTIONS_NO_CUT
    };
    directions[last as usize][around]
}

/// The results of [`next_directions`] by last direction and the nine tiles around, 1 = blocked, row by row from the lowest
/// bit: one table lookup instead of a dozen tile tests.
static NEXT_DIRECTIONS_NO_CUT: [[Directions; 512]; 8] = all_next_directions::<false>();
static NEXT_DIRECTIONS_CUT: [[Directions; 512]; 8] = all_next_directions::<true>();

const fn all_next_directions<const CUT: bool>() -> [[Directions; 512]; 8] {
    let mut all = [[Directions::ALL; 512]; 8];
    let mut last = 0;
    while last < all.len() {
        let mut around = 0;
        while around < all[last].len() {
            all[last][around] = next_directions_around::<CUT>(around, Direction::ALL[last]);
            around += 1;
        }
        last += 1;
    }
    all
}

const fn next_directions_around<const CUT: bool>(around: usize, last: Direction) -> Directions {
    const fn is_blocked(around: usize, dx: i32, dy: i32) -> bool {
        around >> ((dy + 1) * 3 + dx + 1) & 1 != 0
    }
    let (dx, dy) = (last.step().x, last.step().y);
    let mut on = Directions::of(last);
    if last.is_diagonal() {
        on = on.with_step(dx, 0).with_step(0, dy);
        let is_aside_open = !is_blocked(around, 0, dy) && !is_blocked(around, -dx, dy);
        if CUT && is_blocked(around, -dx, 0) && is_aside_open {
            on = on.with_step(-dx, dy);
        }
        let is_back_open = !is_blocked(around, dx, 0) && !is_blocked(around, dx, -dy);
        if CUT && is_blocked(around, 0, -dy) && is_back_open {
            on = on.with_step(dx, -dy);
        }
        return on;
    }
    let mut side = -1;
    while side <= 1 {
        let (side_x, side_y) = (dy * side, dx * side);
        let is_side_blocked = is_blocked(around, side_x, side_y);
        if CUT {
            let is_ahead_open =
                !is_blocked(around, dx, dy) && !is_blocked(around, dx + side_x, dy + side_y);
            if is_side_blocked && is_ahead_open {
                on = on.with_step(dx + side_x, dy + side_y);
            }
        } else if is_blocked(around, side_x - dx, side_y - dy) && !is_side_blocked {
            on = on
                .with_step(side_x, side_y)
                .with_step(dx + side_x, dy + side_y);
        }
        side += 2;
    }
    on
}

/// Whether a path that reached a free tile by the straight step (`dx`, `dy`) may have to turn there.
#[inline(always)]
pub(super) fn is_straight_turn<const CUT: bool>(
    rows: &BitPlane,
    x: i32,
    y: i32,
    (dx, dy): (i32, i32),
) -> bool {
    // `jps` calls this for every tile of a scan: as a loop over the two sides it took twice the time.
    let is_turn = |side_x: i32, side_y: i32| {
        let is_side_blocked = rows.is_blocked(x + side_x, y + side_y);
        if CUT {
            is_side_blocked
                && !rows.is_blocked(x + dx + side_x, y + dy + side_y)
                && !rows.is_blocked(x + dx, y + dy)
        } else {
            !is_side_blocked && rows.is_blocked(x - dx + side_x, y - dy + side_y)
        }
    };
    is_turn(dy, dx) || is_turn(-dy, -dx)
}

/// Whether a path that reached a free tile by the diagonal step (`dx`, `dy`) may have to turn to (−`dx`, `dy`) and to
/// (`dx`, −`dy`). Never under `NoCut`.
#[inline(always)]
pub(super) fn diagonal_turns<const CUT: bool>(
    rows: &BitPlane,
    x: i32,
    y: i32,
    (dx, dy): (i32, i32),
) -> (bool, bool) {
    let turns = |back_x: i32, back_y: i32, on_x: i32, on_y: i32| {
        rows.is_blocked(x + back_x, y + back_y)
            && !rows.is_blocked(x + on_x, y + on_y)
            && !rows.is_blocked(x + back_x + on_x, y + back_y + on_y)
    };
    if CUT {
        (turns(-dx, 0, 0, dy), turns(0, -dy, dx, 0))
    } else {
        (false, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::TileMap;

    /// The tile tests agree with the table, for every 3×3 of tiles and every direction.
    #[test]
    fn turn_tests_agree_with_the_direction_table() {
        fn compare<const CUT: bool>() {
            let centre = IVec2::ONE;
            for around in (0..512).filter(|around| around >> 4 & 1 == 0) {
                let map = TileMap::from_fn(3, 3, |x, y| around >> (y * 3 + x) & 1 != 0).unwrap();
                for last in Direction::ALL {
                    let IVec2 { x, y } = last.step();
                    let on = next_directions::<CUT>(map.rows(), centre, Some(last));
                    let (ahead, turns) = if last.is_diagonal() {
                        let (aside, back) = diagonal_turns::<CUT>(map.rows(), 1, 1, (x, y));
                        (3, usize::from(aside) + usize::from(back))
                    } else {
                        let turns = is_straight_turn::<CUT>(map.rows(), 1, 1, (x, y));
                        (1, usize::from(turns))
                    };
                    let more = on.iter().count() - ahead;
                    assert_eq!(more > 0, turns > 0, "{last:?} {around:b}");
                    assert!(more <= if CUT { 2 } else { 4 });
                }
            }
        }
        compare::<false>();
        compare::<true>();
        assert_eq!(
            next_directions::<false>(TileMap::new(1, 1, false).unwrap().rows(), IVec2::ZERO, None),
            Directions::ALL
        );
    }
}
