//! The step table of JPS+ (Harabor and Grastien, "Improving Jump Point Search", ICAPS 2014): for every tile and direction
//! the number of steps to the next stop, or to the wall.
//!
//! ```text
//! entry  1..126   a stop after this many steps: a jump point, or for a diagonal scan a tile with one along its straight parts
//!        0..−126  a wall after this many free steps
//!        ±127     further: 126 steps on, the entry there has the rest
//! ```
//! The hop of 126 for a code of 127 ensures that a stop exactly one hop away is not lost.
//!
//! Invariants: an entry follows from that of the next tile in its direction, so a code's sign shows how a scan ends
//! even if its length does not fit. Entries of blocked tiles are 0.
//!
//! Cost: building processes whole rows of bytes, upwards for three directions and downwards for three, which the compiler
//! vectorises; east and west are written run by run. An edit drops the table: repairing it took many times as long as
//! for sign planes. Memory: 8 bytes per tile, and 3 more while building.

use crate::direction::Direction;
use crate::jump_scan::{JumpScanner, Reach, Stop};
use crate::jump_scan::{diagonal_turns_in_word, turns_in_word, upright_turns_in_word};
use crate::map::{BitPlane, TileMap};
use crate::rule::{Diagonal, diagonal_turns};

/// The largest number of steps in an entry; one more means further.
const HOP: i32 = 126;
const FAR: i8 = 127;

/// The step table of a map under one movement rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StepTable {
    width: i32,
    /// Row by row, in the order of [`Direction::ALL`].
    entries: Vec<[i8; 8]>,
}

impl StepTable {
    /// The table of a map.
    pub(crate) fn build(map: &TileMap, diagonal: Diagonal) -> Self {
        match diagonal {
            Diagonal::NoCut => build::<false>(map),
            Diagonal::Cut => build::<true>(map),
        }
    }

    /// Bytes held on the heap.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&self.entries[..])
    }

    /// Creates a scanner.
    pub(crate) fn scanner<'m>(&'m self, rows: &'m BitPlane) -> TableScanner<'m> {
        TableScanner { rows, table: self }
    }

    #[inline(always)]
    fn index(&self, x: i32, y: i32) -> usize {
        y as usize * self.width as usize + x as usize
    }

    /// Steps to the stop if positive, else minus the free steps to the wall.
    #[inline(always)]
    fn steps<const DX: i32, const DY: i32>(&self, x: i32, y: i32) -> i32 {
        let direction = const { direction_of(DX, DY) } as usize;
        let mut index = self.index(x, y);
        let hop = (HOP * (DY * self.width + DX)) as isize;
        let mut hops = 0;
        loop {
            let entry = self.entries[index][direction];
            if entry.unsigned_abs() < FAR as u8 {
                let entry = i32::from(entry);
                return if entry > 0 {
                    hops + entry
                } else {
                    entry - hops
                };
            }
            hops += HOP;
            index = index.wrapping_add_signed(hop);
        }
    }
}

const fn direction_of(dx: i32, dy: i32) -> Direction {
    match Direction::of_step(dx, dy) {
        Some(direction) => direction,
        None => panic!("not a step"),
    }
}

/// Finds the ends of scans from a step table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableScanner<'m> {
    rows: &'m BitPlane,
    table: &'m StepTable,
}

impl<const CUT: bool> JumpScanner<CUT> for TableScanner<'_> {
    #[inline(always)]
    fn rows(&self) -> &BitPlane {
        self.rows
    }

    #[inline]
    fn scan_straight<const DX: i32, const DY: i32>(&self, x: i32, y: i32) -> Reach {
        let steps = self.table.steps::<DX, DY>(x, y);
        Reach {
            steps: steps.unsigned_abs(),
            is_jump_point: steps > 0,
        }
    }

    #[inline]
    fn scan_diagonal<const DX: i32, const DY: i32>(&self, x: i32, y: i32) -> Stop {
        let steps = self.table.steps::<DX, DY>(x, y);
        if steps <= 0 {
            return Stop::before_wall(steps.unsigned_abs());
        }
        let (x, y) = (x + DX * steps, y + DY * steps);
        let (aside, back) = diagonal_turns::<CUT>(self.rows, x, y, (DX, DY));
        Stop {
            steps: steps as u32,
            across: self.table.steps::<DX, 0>(x, y).max(0) as u32,
            along: self.table.steps::<0, DY>(x, y).max(0) as u32,
            turns: aside || back,
        }
    }
}

/// The entry of a tile from which one step leads to a tile with the entry `next`, in the same direction, that is not a stop.
#[inline(always)]
const fn one_further(next: i8) -> i8 {
    // Neither addition overflows where its result is used.
    let to_stop = next.saturating_add(1);
    let to_wall = if next > -FAR {
        next.wrapping_sub(1)
    } else {
        -FAR
    };
    if next > 0 { to_stop } else { to_wall }
}

/// The three directions with one vertical part, for a row; each with one entry of padding on both sides.
#[derive(Clone, Debug)]
struct StepRow {
    upright: Vec<i8>,
    to_left: Vec<i8>,
    to_right: Vec<i8>,
    east: Vec<i8>,
    west: Vec<i8>,
}

impl StepRow {
    fn new(width: usize) -> Self {
        let line = || vec![0; width + 2];
        Self {
            upright: line(),
            to_left: line(),
            to_right: line(),
            east: line(),
            west: line(),
        }
    }
}

/// Whether a scan ends one step from each tile of a row: one byte per tile, 0 or 1.
struct StopMasks {
    wall: Vec<u8>,
    stop: Vec<u8>,
}

impl StopMasks {
    /// Expands words of walls and stops, given for each 64th tile, to bytes.
    fn fill(&mut self, words: impl Fn(i32) -> (u64, u64)) {
        let bytes = self
            .wall
            .chunks_exact_mut(64)
            .zip(self.stop.chunks_exact_mut(64));
        for (word, (wall, stop)) in bytes.enumerate() {
            let (walls, stops) = words(word as i32 * 64);
            spread(walls, wall);
            spread(stops, stop);
        }
    }
}

impl StopMasks {
    /// Adds the tiles whose next tile has a stop ahead, by its entry.
    fn add_stops(&mut self, entries: &[i8]) {
        for (stop, entry) in self.stop.iter_mut().zip(entries) {
            *stop |= u8::from(*entry > 0);
        }
    }

    /// Fills entries from those of the next tiles. Slices of equal length and no branch, so that the compiler vectorises it:
    /// building spends most of its time here.
    fn enter(&self, next: &[i8], entries: &mut [i8]) {
        let next = &next[..entries.len()];
        let (wall, stop) = (&self.wall[..entries.len()], &self.stop[..entries.len()]);
        for x in 0..entries.len() {
            let (is_stop, is_open) = (-(stop[x] as i8), wall[x] as i8 - 1);
            entries[x] = (one_further(next[x]) & !is_stop | 1 & is_stop) & is_open;
        }
    }
}

/// Expands the bits of a word to 64 bytes.
fn spread(word: u64, bytes: &mut [u8]) {
    for (bits, bytes) in word
        .to_le_bytes()
        .into_iter()
        .zip(bytes.chunks_exact_mut(8))
    {
        bytes.copy_from_slice(&SPREAD[bits as usize]);
    }
}

const SPREAD: [[u8; 8]; 256] = {
    let mut spread = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            spread[byte][bit] = (byte >> bit & 1) as u8;
            bit += 1;
        }
        byte += 1;
    }
    spread
};

fn build<const CUT: bool>(map: &TileMap) -> StepTable {
    let (width, height) = (map.width() as usize, map.height() as usize);
    let rows = map.rows();
    let mut sweep = Sweep::<CUT>::new(rows);
    let mut lower = vec![0i8; 3 * width * height];
    for y in (0..height).rev() {
        sweep.advance(y as i32, 1);
        let lines = lower[3 * width * y..].chunks_exact_mut(width);
        let row = &sweep.row;
        for (line, from) in lines.zip([&row.upright, &row.to_right, &row.to_left]) {
            line.copy_from_slice(&from[1..=width]);
        }
    }
    let mut sweep = Sweep::<CUT>::new(rows);
    let mut entries = vec![[0i8; 8]; width * height];
    for (y, entries) in entries.chunks_exact_mut(width).enumerate() {
        sweep.advance(y as i32, -1);
        let row = &sweep.row;
        let lower = &lower[3 * width * y..][..3 * width];
        let inner = 1..=width;
        interleave(
            [
                &row.upright[inner.clone()],
                &row.east[inner.clone()],
                &lower[..width],
                &row.west[inner.clone()],
                &row.to_right[inner.clone()],
                &lower[width..2 * width],
                &lower[2 * width..],
                &row.to_left[inner],
            ],
            entries,
        );
    }
    StepTable {
        width: width as i32,
        entries,
    }
}

/// Interleaves eight rows of entries.
fn interleave(rows: [&[i8]; 8], entries: &mut [[i8; 8]]) {
    let [a, b, c, d, e, f, g, h] = rows.map(|row| &row[..entries.len()]);
    for (x, entry) in entries.iter_mut().enumerate() {
        *entry = [a[x], b[x], c[x], d[x], e[x], f[x], g[x], h[x]];
    }
}

/// A pass over the rows, each from the one before it.
struct Sweep<'m, const CUT: bool> {
    rows: &'m BitPlane,
    row: StepRow,
    before: StepRow,
    masks: StopMasks,
}

impl<'m, const CUT: bool> Sweep<'m, CUT> {
    fn new(rows: &'m BitPlane) -> Self {
        let width = rows.width() as usize;
        let bytes = || vec![0; width.next_multiple_of(64)];
        Self {
            rows,
            row: StepRow::new(width),
            before: StepRow::new(width),
            masks: StopMasks {
                wall: bytes(),
                stop: bytes(),
            },
        }
    }

    /// Fills row `y`; the row before it was `y + dy`, towards which the three directions go.
    fn advance(&mut self, y: i32, dy: i32) {
        std::mem::swap(&mut self.row, &mut self.before);
        let rows = self.rows;
        let is_border = !(0..rows.height() as i32).contains(&(y + dy));
        let (row, before) = (&mut self.row, &self.before);
        let masks = &mut self.masks;
        let width = rows.width() as usize;
        let turns = |x| {
            if is_border {
                0
            } else {
                upright_turns_in_word::<CUT>(rows, x, y + dy, dy)
            }
        };
        masks.fill(|x| (rows.word_at(x, y) | rows.word_at(x, y + dy), turns(x)));
        masks.enter(&before.upright[1..], &mut row.upright[1..=width]);
        let beside = [
            (&mut row.to_right, &before.to_right, &before.east, 1),
            (&mut row.to_left, &before.to_left, &before.west, -1),
        ];
        for (entries, next, across, dx) in beside {
            masks.fill(|x| {
                let (side, ahead) = (rows.word_at(x + dx, y), rows.word_at(x, y + dy));
                let corners = if CUT { side & ahead } else { side | ahead };
                let wall = rows.word_at(x, y) | rows.word_at(x + dx, y + dy) | corners;
                let turns = if CUT && !is_border {
                    diagonal_turns_in_word(rows, x + dx, y + dy, (dx, dy))
                } else {
                    0
                };
                (wall, turns)
            });
            // Of the tile that a step leads to, counted with the padding.
            let first = 1usize.wrapping_add_signed(dx as isize);
            masks.add_stops(&across[first..]);
            masks.add_stops(&before.upright[first..]);
            masks.enter(&next[first..], &mut entries[1..=width]);
        }
        fill_line::<CUT, 1>(rows, y, &mut row.east[1..=width]);
        fill_line::<CUT, -1>(rows, y, &mut row.west[1..=width]);
    }
}

/// Fills the entries of a row for scans to the east (`FORWARD` 1) or west (−1), run by run between stops.
fn fill_line<const CUT: bool, const FORWARD: i32>(rows: &BitPlane, y: i32, entries: &mut [i8]) {
    entries.fill(0);
    let width = entries.len();
    let mut start = 0;
    // To the west, the tile before the run decides: at first the border.
    let mut is_after_turn = false;
    let mut close = |start: usize, end: usize, is_turn: bool| {
        if FORWARD > 0 {
            fill_stretch::<FORWARD>(&mut entries[start..end], is_turn);
        } else {
            fill_stretch::<FORWARD>(&mut entries[start..end], is_after_turn);
            is_after_turn = is_turn;
        }
    };
    for x in (0..width).step_by(64) {
        let own = rows.word_at(x as i32, y);
        let mut stops = own | turns_in_word::<CUT, FORWARD>(rows, x as i32, y);
        while stops != 0 {
            let bit = stops.trailing_zeros();
            let stop = x + bit as usize;
            let walls = (own >> bit).trailing_ones();
            if walls > 0 {
                if stop < width {
                    close(start, stop, false);
                } else if start < width {
                    close(start, width, false);
                }
                start = stop + walls as usize;
                stops &= u64::MAX.checked_shl(bit + walls).unwrap_or(0);
            } else {
                // A scan to the west ends on the jump point, one to the east on the tile before counts up to it.
                let end = if FORWARD > 0 { stop } else { stop + 1 };
                close(start, end, true);
                start = end;
                stops &= stops - 1;
            }
        }
    }
    if start < width {
        close(start, width, false);
    }
}

/// Writes the entries of tiles at growing distance from a stop: from a turn 1, 2, 3, …, from a wall 0, −1, −2, ….
fn fill_stretch<const FORWARD: i32>(entries: &mut [i8], is_turn: bool) {
    const LENGTH: usize = FAR as usize;
    const RAMPS: [[[i8; LENGTH]; 2]; 2] = {
        let mut ramps = [[[0; LENGTH]; 2]; 2];
        let mut nth = 0;
        while nth < LENGTH {
            let (wall, turn) = (-(nth as i8), nth as i8 + 1);
            ramps[0][0][nth] = wall;
            ramps[0][1][nth] = turn;
            ramps[1][0][LENGTH - 1 - nth] = wall;
            ramps[1][1][LENGTH - 1 - nth] = turn;
            nth += 1;
        }
        ramps
    };
    let ramp = &RAMPS[(FORWARD > 0) as usize][is_turn as usize];
    let far = if is_turn { FAR } else { -FAR };
    let near = entries.len().min(LENGTH);
    if FORWARD > 0 {
        let (beyond, close) = entries.split_at_mut(entries.len() - near);
        beyond.fill(far);
        close.copy_from_slice(&ramp[LENGTH - near..]);
    } else {
        let (close, beyond) = entries.split_at_mut(near);
        close.copy_from_slice(&ramp[..near]);
        beyond.fill(far);
    }
}
