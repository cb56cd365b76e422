//! Scans by whole words of tiles (Harabor and Grastien, "Improving Jump Point Search", ICAPS 2014).
//!
//! A straight scan reads a row and its two neighbours as words, lowest bit first, bit 0 the current tile. Walls are the
//! row's own bits. The tiles where a path may turn follow from a neighbour's bits `b` by the rule:
//!
//! - `NoCut`, just past a wall's end: `(b << 1) & !b`;
//! - `Cut`, next to a wall's last tile, if the tiles ahead are free: `b & !(b >> 1) & !(own >> 1)`.
//!
//! North and south read the transposed map. Words overlap, so no wall's end is between two of them.
//!
//! Cost: three words for up to 63 tiles (`NoCut`) or 62 (`Cut`) of a straight scan, two straight scans for each step of a
//! diagonal one.
//!
//! Tried without gain: testing a diagonal step in two words rather than three tiles.

use super::walk::{JumpScanner, Reach};
use crate::map::{BitPlane, TileMap};

/// Finds the ends of scans from the two bitmaps of a map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BitScanner<'m>(pub(crate) &'m TileMap);

impl<const CUT: bool> JumpScanner<CUT> for BitScanner<'_> {
    #[inline(always)]
    fn rows(&self) -> &BitPlane {
        self.0.rows()
    }

    #[inline]
    fn scan_straight<const DX: i32, const DY: i32>(&self, x: i32, y: i32) -> Reach {
        let (rows, columns) = (self.0.rows(), self.0.columns());
        match (DX, DY) {
            (1, _) => scan_up::<CUT>(rows, x, y),
            (-1, _) => scan_down::<CUT>(rows, x, y),
            (_, 1) => scan_up::<CUT>(columns, y, x),
            _ => scan_down::<CUT>(columns, y, x),
        }
    }
}

/// Scans along a line of a plane from `position` to higher positions.
///
/// The scan stops before a wall, so a word is read only from a free tile's position, which is on the map.
#[inline]
fn scan_up<const CUT: bool>(plane: &BitPlane, position: i32, line: i32) -> Reach {
    let mut walked = 0;
    loop {
        let from = position + walked;
        let own = plane.word_at(from, line);
        let (above, below) = (plane.word_at(from, line - 1), plane.word_at(from, line + 1));
        // Bit 0 is the first tile, where no scan ends; under `Cut` the last bit cannot look ahead.
        let (turns, unknown) = if CUT {
            let ends = (above & !(above >> 1)) | (below & !(below >> 1));
            (ends & !(own >> 1), 1 | 1 << 63)
        } else {
            ((above << 1 & !above) | (below << 1 & !below), 1)
        };
        let stops = (own | turns) & !unknown;
        if stops != 0 {
            let steps = stops.trailing_zeros();
            return reach_at(walked as u32 + steps, own >> steps & 1 != 0);
        }
        walked += if CUT { 62 } else { 63 };
    }
}

/// Scans along a line of a plane from `position` to lower positions; the mirror image of [`scan_up`].
#[inline]
fn scan_down<const CUT: bool>(plane: &BitPlane, position: i32, line: i32) -> Reach {
    let mut walked = 0;
    loop {
        let from = position - walked - 63;
        let own = plane.word_at(from, line);
        let (above, below) = (plane.word_at(from, line - 1), plane.word_at(from, line + 1));
        let (turns, unknown) = if CUT {
            let ends = (above & !(above << 1)) | (below & !(below << 1));
            (ends & !(own << 1), 1 | 1 << 63)
        } else {
            ((above >> 1 & !above) | (below >> 1 & !below), 1 << 63)
        };
        let stops = (own | turns) & !unknown;
        if stops != 0 {
            let steps = stops.leading_zeros();
            return reach_at(walked as u32 + steps, own << steps >> 63 != 0);
        }
        walked += if CUT { 62 } else { 63 };
    }
}

#[inline]
fn reach_at(stop: u32, is_wall: bool) -> Reach {
    Reach {
        steps: stop - u32::from(is_wall),
        is_jump_point: !is_wall,
    }
}

/// The jump points among 64 tiles of a line for scans by `FORWARD` along it, unless they are blocked. Everything is read
/// at its own offset, so every bit counts; `position` may be up to 63 tiles before the line.
#[inline]
pub(crate) fn turns_in_word<const CUT: bool, const FORWARD: i32>(
    plane: &BitPlane,
    position: i32,
    line: i32,
) -> u64 {
    let on_side = |side: i32| {
        let beside = plane.word_at(position, line + side);
        if CUT {
            beside & !plane.word_at(position + FORWARD, line + side)
        } else {
            plane.word_at(position - FORWARD, line + side) & !beside
        }
    };
    let turns = on_side(-1) | on_side(1);
    if CUT {
        turns & !plane.word_at(position + FORWARD, line)
    } else {
        turns
    }
}

/// The jump points among 64 tiles of a row for scans by `dy` up or down, unless they are blocked; from `x` = 0 on.
#[inline]
pub(crate) fn upright_turns_in_word<const CUT: bool>(
    rows: &BitPlane,
    x: i32,
    y: i32,
    dy: i32,
) -> u64 {
    let on_side = |side: i32| {
        let beside = rows.word_at(x + side, y);
        if CUT {
            beside & !rows.word_at(x + side, y + dy)
        } else {
            rows.word_at(x + side, y - dy) & !beside
        }
    };
    let turns = on_side(-1) | on_side(1);
    if CUT {
        turns & !rows.word_at(x, y + dy)
    } else {
        turns
    }
}

/// The tiles among 64 of a row where a diagonal path may have to turn under `Cut`; from `x` = 0 on.
#[inline]
pub(crate) fn diagonal_turns_in_word(rows: &BitPlane, x: i32, y: i32, (dx, dy): (i32, i32)) -> u64 {
    let turns = |back: (i32, i32), on: (i32, i32)| {
        rows.word_at(x + back.0, y + back.1)
            & !rows.word_at(x + on.0, y + on.1)
            & !rows.word_at(x + back.0 + on.0, y + back.1 + on.1)
    };
    (turns((-dx, 0), (0, dy)) | turns((0, -dy), (dx, 0))) & !rows.word_at(x, y)
}
