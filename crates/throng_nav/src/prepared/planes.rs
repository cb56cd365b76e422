//! Sign planes: for every tile and straight direction one bit, whether the scan in that direction ends at a jump point.
//!
//! A diagonal scan tests both its straight parts at every step, and nine tests in ten find a wall. With the
//! results stored along the diagonals, one word shows which of 64 steps need a test:
//!
//! ```text
//! falling diagonals          the block of columns 64b..64b+63, one line per diagonal:
//!   \ \ \ \                  line = y − (x mod 64) + 64        bit = x mod 64
//!    \ \ \ \                 the same diagonal in the block to the right: 64 lines further
//! ```
//! Rising diagonals are mirrored. A line holds five words: where the step onto a tile from the left is not
//! allowed, and the signs across (east, west) and along (south or north) for scans to the right and to the left. Under
//! `Cut` two more words show where the diagonal path may have to turn itself.
//!
//! Invariants: after [`SignPlanes::repair`] the planes equal those built from the same tiles; tiles outside the map cannot
//! be stepped onto, so no scan leaves it.
//!
//! Cost: building processes words, not tiles: a fill along each line for the signs (six shifts per word), a transposition for
//! north and south, and a shear onto the diagonals (six passes). Repair recomputes the tiles around the changed
//! rectangle one by one; in each line through it the signs behind can only change back to the nearest stop, and there all of
//! them change or none. Memory: 1.25 bytes per tile (`Cut` 1.75) and 65 lines more per block.

use glam::IVec2;

use crate::jump_scan::{BitScanner, diagonal_turns_in_word, turns_in_word};
use crate::jump_scan::{JumpScanner, Reach, Stop};
use crate::map::{BitPlane, TileMap, TileRect, transpose_block};
use crate::rule::{Diagonal, diagonal_turns, is_step_free, is_straight_turn};

/// The words of a line.
pub(super) const STEP: usize = 0;
const ACROSS_RIGHT: usize = 1;
const ALONG_RIGHT: usize = 2;
const ACROSS_LEFT: usize = 3;
const ALONG_LEFT: usize = 4;

/// The number of lines of a block beyond the rows of the map.
const EXTRA_LINES: usize = 65;

/// The sign planes of a map under one movement rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignPlanes {
    /// Diagonals from the top left to the bottom right.
    pub(super) falling: SkewedPlane,
    /// Diagonals from the bottom left to the top right.
    pub(super) rising: SkewedPlane,
}

/// One family of diagonals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SkewedPlane {
    pub(super) lines: usize,
    pub(super) words: Vec<[u64; 5]>,
    /// Where paths to the right and to the left may have to turn; empty under `NoCut`.
    pub(super) turns: Vec<[u64; 2]>,
}

impl SignPlanes {
    /// The planes of a map. O(tiles).
    pub(crate) fn build(map: &TileMap, diagonal: Diagonal) -> Self {
        match diagonal {
            Diagonal::NoCut => Self::build_with::<false>(map),
            Diagonal::Cut => Self::build_with::<true>(map),
        }
    }

    /// Updates the planes after tiles in a rectangle of the map have changed.
    pub(crate) fn repair(&mut self, map: &TileMap, diagonal: Diagonal, rect: TileRect) {
        match diagonal {
            Diagonal::NoCut => self.repair_with::<false>(map, rect),
            Diagonal::Cut => self.repair_with::<true>(map, rect),
        }
    }

    /// Bytes held on the heap.
    pub(crate) fn memory_bytes(&self) -> usize {
        [&self.falling, &self.rising]
            .map(|family| size_of_val(&family.words[..]) + size_of_val(&family.turns[..]))
            .iter()
            .sum()
    }

    /// Whether all diagonal steps from one tile to another are allowed.
    #[inline]
    fn is_diagonal_clear(&self, from: IVec2, to: IVec2) -> bool {
        // Both directions take the same steps, and a step is stored with its right-hand tile.
        let (left, right) = if from.x < to.x {
            (from, to)
        } else {
            (to, from)
        };
        let dy = (right.y - left.y).signum();
        let family = if dy >= 0 { &self.falling } else { &self.rising };
        let (mut line, bit) = family.locate_tile(left.x, left.y, dy | 1);
        let mut steps = (right.x - left.x) as u32;
        let mut ahead = (u64::MAX << bit) << 1;
        let mut in_word = 63 - bit;
        loop {
            let walls = family.words[line][STEP] & ahead;
            if steps <= in_word {
                // Of the bits ahead only the first `steps` count.
                let end = 63 + steps - in_word;
                return walls << (63 - end) == 0;
            }
            if walls != 0 {
                return false;
            }
            steps -= in_word;
            ahead = u64::MAX;
            in_word = 64;
            line += family.lines;
            line = if dy > 0 { line + 64 } else { line - 64 };
        }
    }

    fn build_with<const CUT: bool>(map: &TileMap) -> Self {
        let (rows, height) = (map.rows(), map.height() as usize);
        let [east, west] = [signs::<CUT, 1>(rows), signs::<CUT, -1>(rows)];
        let columns = map.columns();
        let [south, north] = [signs::<CUT, 1>(columns), signs::<CUT, -1>(columns)];
        let mut planes = Self {
            falling: SkewedPlane::new::<CUT>(map),
            rising: SkewedPlane::new::<CUT>(map),
        };
        let (row_words, column_words) = (words_per_line(rows), words_per_line(columns));
        let mut block = vec![0; height];
        for column in 0..row_words {
            let x = column as i32 * 64;
            let (falling, rising) = (&mut planes.falling, &mut planes.rising);
            for (word, signs) in [(ACROSS_RIGHT, &east), (ACROSS_LEFT, &west)] {
                for (y, bits) in block.iter_mut().enumerate() {
                    *bits = signs[y * row_words + column];
                }
                falling.shear_into(&block, 0, column, falling_shear, |line, bits| {
                    line[word] = bits
                });
                rising.shear_into(&block, 0, column, rising_shear, |line, bits| {
                    line[word] = bits
                });
            }
            for (falling_word, rising_word, signs) in [
                (ALONG_RIGHT, ALONG_LEFT, &south),
                (ALONG_LEFT, ALONG_RIGHT, &north),
            ] {
                transpose_column(
                    signs,
                    column_words,
                    column,
                    map.width() as usize,
                    &mut block,
                );
                falling.shear_into(&block, 0, column, falling_shear, |line, bits| {
                    line[falling_word] = bits;
                });
                rising.shear_into(&block, 0, column, rising_shear, |line, bits| {
                    line[rising_word] = bits;
                });
            }
            for (y, bits) in (0..).zip(&mut block) {
                *bits = blocked_steps::<CUT>(rows, x, y, -1);
            }
            falling.shear_into(&block, u64::MAX, column, falling_shear, |line, bits| {
                line[STEP] = bits;
            });
            for (y, bits) in (0..).zip(&mut block) {
                *bits = blocked_steps::<CUT>(rows, x, y, 1);
            }
            rising.shear_into(&block, u64::MAX, column, rising_shear, |line, bits| {
                line[STEP] = bits;
            });
            if CUT {
                for (side, dx) in [(0, 1), (1, -1)] {
                    for (y, bits) in (0..).zip(&mut block) {
                        *bits = diagonal_turns_in_word(rows, x, y, (dx, dx));
                    }
                    falling.shear_turns_into(&block, column, falling_shear, side);
                    for (y, bits) in (0..).zip(&mut block) {
                        *bits = diagonal_turns_in_word(rows, x, y, (dx, -dx));
                    }
                    rising.shear_turns_into(&block, column, rising_shear, side);
                }
            }
        }
        planes
    }

    fn repair_with<const CUT: bool>(&mut self, map: &TileMap, rect: TileRect) {
        let rows = map.rows();
        let (left, top) = (rect.x as i32, rect.y as i32);
        let (right, bottom) = (rect.right() as i32, rect.bottom() as i32);
        let (width, height) = (map.width() as i32, map.height() as i32);
        for y in (top - 1).max(0)..=bottom.min(height - 1) {
            for x in (left - 1).max(0)..=right.min(width - 1) {
                let is_blocked = rows.is_blocked(x, y);
                for (family, dy) in [(&mut self.falling, 1), (&mut self.rising, -1)] {
                    // Onto this tile from the left; no scan starts on a blocked tile.
                    let may_step = !is_blocked
                        && !rows.is_blocked(x - 1, y - dy)
                        && is_step_free::<CUT>(rows, x, y, -1, -dy);
                    let (line, bit) = family.locate_tile(x, y, dy);
                    set_bit(&mut family.words[line][STEP], bit, !may_step);
                    if CUT {
                        for (side, dx) in [(0, 1), (1, -1)] {
                            let (aside, back) = diagonal_turns::<CUT>(rows, x, y, (dx, dx * dy));
                            let turns = !is_blocked && (aside || back);
                            set_bit(&mut family.turns[line][side], bit, turns);
                        }
                    }
                }
            }
        }
        for y in (top - 1).max(0)..=bottom.min(height - 1) {
            self.repair_line::<CUT, true, 1>(rows, y, (left, right));
            self.repair_line::<CUT, true, -1>(rows, y, (left, right));
        }
        for x in (left - 1).max(0)..=right.min(width - 1) {
            self.repair_line::<CUT, false, 1>(map.columns(), x, (top, bottom));
            self.repair_line::<CUT, false, -1>(map.columns(), x, (top, bottom));
        }
    }

    /// Repairs the signs of scans by `FORWARD` along the lines of a plane, in one line in or next to which the tiles from
    /// `start` up to `end` have changed.
    ///
    /// Stops have changed there and one tile to either side, and signs look strictly ahead.
    fn repair_line<const CUT: bool, const IS_ROW: bool, const FORWARD: i32>(
        &mut self,
        plane: &BitPlane,
        line: i32,
        (start, end): (i32, i32),
    ) {
        let width = plane.width() as i32;
        let tile = |place: i32| if IS_ROW { (place, line) } else { (line, place) };
        let (ahead_most, behind_most) = if FORWARD > 0 {
            (end - 1, start - 2)
        } else {
            (start, end + 1)
        };
        let ahead = ahead_most + FORWARD;
        let mut sign = (0..width).contains(&ahead) && self.sign::<IS_ROW, FORWARD>(tile(ahead));
        let mut place = ahead_most;
        loop {
            if !(0..width).contains(&place) {
                return;
            }
            let is_open =
                !plane.is_blocked(place, line) && !plane.is_blocked(place + FORWARD, line);
            sign = is_open
                && (sign || is_straight_turn::<CUT>(plane, place + FORWARD, line, (FORWARD, 0)));
            let is_changed = self.set_sign::<IS_ROW, FORWARD>(tile(place), sign);
            if place == behind_most {
                // A wall here is another change of the same edit, and no scan behind it passes it.
                if !is_changed || plane.is_blocked(place, line) {
                    return;
                }
                break;
            }
            place -= FORWARD;
        }
        let last = last_before_stop::<CUT, FORWARD>(plane, place, line);
        while place != last {
            place -= FORWARD;
            self.set_sign::<IS_ROW, FORWARD>(tile(place), sign);
        }
    }

    /// Which words hold the sign of a straight direction, on falling and on rising diagonals.
    const fn words_of<const IS_ROW: bool, const FORWARD: i32>() -> (usize, usize) {
        match (IS_ROW, FORWARD > 0) {
            (true, true) => (ACROSS_RIGHT, ACROSS_RIGHT),
            (true, false) => (ACROSS_LEFT, ACROSS_LEFT),
            (false, true) => (ALONG_RIGHT, ALONG_LEFT),
            (false, false) => (ALONG_LEFT, ALONG_RIGHT),
        }
    }

    #[inline]
    fn sign<const IS_ROW: bool, const FORWARD: i32>(&self, (x, y): (i32, i32)) -> bool {
        let (line, bit) = self.falling.locate_tile(x, y, 1);
        let (word, _) = Self::words_of::<IS_ROW, FORWARD>();
        self.falling.words[line][word] >> bit & 1 != 0
    }

    /// Sets a sign in both families; returns whether it changed.
    #[inline]
    fn set_sign<const IS_ROW: bool, const FORWARD: i32>(
        &mut self,
        (x, y): (i32, i32),
        sign: bool,
    ) -> bool {
        let words = Self::words_of::<IS_ROW, FORWARD>();
        let (line, bit) = self.falling.locate_tile(x, y, 1);
        let word = &mut self.falling.words[line][words.0];
        if (*word >> bit & 1 != 0) == sign {
            return false;
        }
        *word ^= 1 << bit;
        let (line, bit) = self.rising.locate_tile(x, y, -1);
        self.rising.words[line][words.1] ^= 1 << bit;
        true
    }
}

impl SkewedPlane {
    /// All steps blocked, no signs.
    fn new<const CUT: bool>(map: &TileMap) -> Self {
        let (lines, blocks) = Self::shape(map);
        Self {
            lines,
            words: vec![[u64::MAX, 0, 0, 0, 0]; lines * blocks],
            turns: if CUT {
                vec![[0; 2]; lines * blocks]
            } else {
                Vec::new()
            },
        }
    }

    /// The lines of a block, and the blocks.
    pub(super) fn shape(map: &TileMap) -> (usize, usize) {
        // A scan to the right reads the column beyond the last.
        let blocks = map.width() as usize / 64 + 1;
        (map.height() as usize + EXTRA_LINES, blocks)
    }

    /// The line of a tile, in `words`, and its bit there. `dy` is 1 for falling diagonals and −1 for rising ones.
    #[inline(always)]
    pub(super) fn locate_tile(&self, x: i32, y: i32, dy: i32) -> (usize, u32) {
        let (block, bit) = (x as usize >> 6, x as u32 & 63);
        let line = if dy > 0 {
            y as usize + 64 - bit as usize
        } else {
            y as usize + 1 + bit as usize
        };
        (block * self.lines + line, bit)
    }

    /// Writes one word per row of a block along its diagonals; `outside` is the value of tiles beyond the map.
    fn shear_into(
        &mut self,
        block: &[u64],
        outside: u64,
        column: usize,
        shear: fn(&mut [u64], u64),
        write: impl Fn(&mut [u64; 5], u64),
    ) {
        let lines = sheared(block, outside, self.lines, shear);
        let own = &mut self.words[column * self.lines..][..self.lines];
        for (line, bits) in own.iter_mut().zip(lines) {
            write(line, bits);
        }
    }

    fn shear_turns_into(
        &mut self,
        block: &[u64],
        column: usize,
        shear: fn(&mut [u64], u64),
        side: usize,
    ) {
        let lines = sheared(block, 0, self.lines, shear);
        let own = &mut self.turns[column * self.lines..][..self.lines];
        for (line, bits) in own.iter_mut().zip(lines) {
            line[side] = bits;
        }
    }
}

/// Finds the ends of scans from bitmaps and sign planes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignScanner<'m> {
    pub(crate) tiles: &'m TileMap,
    pub(crate) planes: &'m SignPlanes,
}

impl<const CUT: bool> JumpScanner<CUT> for SignScanner<'_> {
    #[inline(always)]
    fn rows(&self) -> &BitPlane {
        self.tiles.rows()
    }

    #[inline]
    fn scan_straight<const DX: i32, const DY: i32>(&self, x: i32, y: i32) -> Reach {
        JumpScanner::<CUT>::scan_straight::<DX, DY>(&BitScanner(self.tiles), x, y)
    }

    #[inline]
    fn is_clear(&self, from: IVec2, to: IVec2) -> bool {
        let way = to - from;
        let (across, along) = (way.x.abs(), way.y.abs());
        let bend = from + way.signum() * across.min(along);
        // This part is near the goal, which is tested again and again, and is usually not clear.
        let is_straight_clear = if across > along {
            let (start, end) = (bend.x.min(to.x), bend.x.max(to.x));
            self.tiles.rows().is_run_free(start, end, to.y)
        } else {
            let (start, end) = (bend.y.min(to.y), bend.y.max(to.y));
            self.tiles.columns().is_run_free(start, end, to.x)
        };
        is_straight_clear && self.planes.is_diagonal_clear(from, bend)
    }

    #[inline]
    fn scan_diagonal<const DX: i32, const DY: i32>(&self, x: i32, y: i32) -> Stop {
        let family = if DX == DY {
            &self.planes.falling
        } else {
            &self.planes.rising
        };
        let (mut line, from) = family.locate_tile(x, y, DX * DY);
        // The bits of the word that are ahead of the scan.
        let mut ahead = if DX > 0 {
            (u64::MAX << from) << 1
        } else {
            (1 << from) - 1
        };
        let (across, along) = if DX > 0 {
            (ACROSS_RIGHT, ALONG_RIGHT)
        } else {
            (ACROSS_LEFT, ALONG_LEFT)
        };
        let mut walked = 0u32;
        loop {
            let words = &family.words[line];
            let turns = if CUT {
                family.turns[line][usize::from(DX < 0)]
            } else {
                0
            };
            let stops = (words[across] | words[along] | turns) & ahead;
            // A step is stored with its right-hand tile: to the left, a blocked one from bit b leads onto bit b − 1.
            let walls = words[STEP] & if DX > 0 { ahead } else { ahead << 1 | 1 };
            // Counted from the word's first bit in the direction of the scan.
            let (origin, to_wall, to_stop) = if DX > 0 {
                (from, walls.trailing_zeros(), stops.trailing_zeros())
            } else {
                (63 - from, walls.leading_zeros() + 1, stops.leading_zeros())
            };
            if to_stop < to_wall && stops != 0 {
                let bit = if DX > 0 { to_stop } else { 63 - to_stop };
                let steps = walked + to_stop - origin;
                let at = (x + DX * steps as i32, y + DY * steps as i32);
                let look = |word: u64| word >> bit & 1 != 0;
                return Stop {
                    steps,
                    across: if look(words[across]) {
                        JumpScanner::<CUT>::scan_straight::<DX, 0>(self, at.0, at.1).steps
                    } else {
                        0
                    },
                    along: if look(words[along]) {
                        JumpScanner::<CUT>::scan_straight::<0, DY>(self, at.0, at.1).steps
                    } else {
                        0
                    },
                    turns: look(turns),
                };
            }
            if walls != 0 {
                return Stop::before_wall(walked + to_wall - 1 - origin);
            }
            walked += 64;
            ahead = u64::MAX;
            line = if DX > 0 {
                line + family.lines
            } else {
                line - family.lines
            };
            // To the right falling diagonals go down and rising ones up.
            line = if DY > 0 { line + 64 } else { line - 64 };
        }
    }
}

/// For each tile of each line of a plane, whether a scan by `FORWARD` along the line ends at a jump point.
fn signs<const CUT: bool, const FORWARD: i32>(plane: &BitPlane) -> Vec<u64> {
    let words = words_per_line(plane);
    let mut signs = vec![0; words * plane.height() as usize];
    for (line, signs) in (0..).zip(signs.chunks_exact_mut(words)) {
        // Whether the last stop is a jump point, and not a wall as beyond the map.
        let mut is_jump_point = false;
        for nth in 0..words {
            let word = if FORWARD > 0 { words - 1 - nth } else { nth };
            let x = word as i32 * 64;
            let own = plane.word_at(x, line);
            let turns = turns_in_word::<CUT, FORWARD>(plane, x, line);
            let filled = fill::<FORWARD>(turns & !own, own | turns, is_jump_point);
            // A tile's own stop is not ahead of it.
            let carry = u64::from(is_jump_point);
            let (ahead, next) = if FORWARD > 0 {
                (filled >> 1 | carry << 63, filled & 1)
            } else {
                (filled << 1 | carry, filled >> 63)
            };
            signs[word] = ahead & !own;
            is_jump_point = next != 0;
        }
    }
    signs
}

/// For each bit whether the nearest stop at it or ahead of it is a jump point; `beyond` is the value after the word.
fn fill<const FORWARD: i32>(jump_points: u64, stops: u64, beyond: bool) -> u64 {
    let (mut filled, mut open) = (jump_points, !stops);
    for distance in [1, 2, 4, 8, 16, 32] {
        let edge = (1 << distance) - 1;
        if FORWARD > 0 {
            filled |= open & filled >> distance;
            open &= open >> distance | edge << (64 - distance);
        } else {
            filled |= open & filled << distance;
            open &= open << distance | edge;
        }
    }
    if beyond { filled | open } else { filled }
}

/// The farthest position behind `place` whose scan by `FORWARD` ends where that of `place` does.
fn last_before_stop<const CUT: bool, const FORWARD: i32>(
    plane: &BitPlane,
    mut place: i32,
    line: i32,
) -> i32 {
    loop {
        let x = if FORWARD > 0 { place - 63 } else { place };
        let own = plane.word_at(x, line);
        let stops = own | turns_in_word::<CUT, FORWARD>(plane, x, line);
        if stops == 0 {
            place -= 64 * FORWARD;
            continue;
        }
        let steps = if FORWARD > 0 {
            stops.leading_zeros()
        } else {
            stops.trailing_zeros()
        };
        let stop = place - steps as i32 * FORWARD;
        return if plane.is_blocked(stop, line) {
            stop + FORWARD
        } else {
            stop
        };
    }
}

/// The tiles among 64 of a row where the step onto the tile from the left and from `dy` is not allowed.
fn blocked_steps<const CUT: bool>(rows: &BitPlane, x: i32, y: i32, dy: i32) -> u64 {
    let (left, beside) = (rows.word_at(x - 1, y), rows.word_at(x, y + dy));
    let corners = if CUT { left & beside } else { left | beside };
    rows.word_at(x, y) | rows.word_at(x - 1, y + dy) | corners
}

/// One word per row of the block, from signs that are stored column by column.
fn transpose_column(
    signs: &[u64],
    words_per_column: usize,
    column: usize,
    width: usize,
    block: &mut [u64],
) {
    let mut square = [0; 64];
    for (word, rows) in block.chunks_mut(64).enumerate() {
        for (x, bits) in (column * 64..).zip(&mut square) {
            *bits = if x < width {
                signs[x * words_per_column + word]
            } else {
                0
            };
        }
        transpose_block(&mut square);
        rows.copy_from_slice(&square[..rows.len()]);
    }
}

/// The lines of a block from its rows. Line `n` starts as the row that passes its first bit.
fn sheared(block: &[u64], outside: u64, lines: usize, shear: fn(&mut [u64], u64)) -> Vec<u64> {
    let mut sheared = vec![outside; lines + 64];
    sheared[64..64 + block.len()].copy_from_slice(block);
    shear(&mut sheared, outside);
    sheared
}

/// Bit `b` of line `n` comes from row `n + b`: in six passes, each of which moves the bits whose number has one bit set.
fn falling_shear(rows: &mut [u64], outside: u64) {
    for (distance, mask) in SHEARS {
        for line in 0..rows.len() {
            let moved = rows.get(line + distance).copied().unwrap_or(outside);
            rows[line] = rows[line] & !mask | moved & mask;
        }
    }
}

/// Bit `b` of line `n` comes from row `n − b`; lines are 63 further up than for falling diagonals.
fn rising_shear(rows: &mut [u64], outside: u64) {
    for (distance, mask) in SHEARS {
        for line in (0..rows.len()).rev() {
            let moved = line
                .checked_sub(distance)
                .map_or(outside, |from| rows[from]);
            rows[line] = rows[line] & !mask | moved & mask;
        }
    }
    rows.copy_within(63.., 0);
}

/// For each bit of a bit number, its weight and the bits of a word whose number has it set.
const SHEARS: [(usize, u64); 6] = [
    (1, 0xAAAA_AAAA_AAAA_AAAA),
    (2, 0xCCCC_CCCC_CCCC_CCCC),
    (4, 0xF0F0_F0F0_F0F0_F0F0),
    (8, 0xFF00_FF00_FF00_FF00),
    (16, 0xFFFF_0000_FFFF_0000),
    (32, 0xFFFF_FFFF_0000_0000),
];

fn words_per_line(plane: &BitPlane) -> usize {
    (plane.width() as usize).div_ceil(64)
}

#[inline]
fn set_bit(word: &mut u64, bit: u32, value: bool) {
    *word = *word & !(1 << bit) | u64::from(value) << bit;
}
