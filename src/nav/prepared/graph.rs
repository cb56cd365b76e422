//! The graph of jump points: for every jump point and direction of arrival the jump points that follow.
//!
//! What Jump Point Search with pruned diagonals finds out of a node depends on the node's tile and the direction in
//! which it was reached, and on nothing else: not on the goal, which is looked for apart. So all of it is listed
//! beforehand, and a search reads lists. Only the start, which is no jump point, walks over the map.
//!
//! ```text
//! tile ──▶ number (rank in a bitmap) ──▶ first[number × ways + direction] ──▶ successors: number, direction
//! ```
//! Numbers go block by block of 64 by 64 tiles, so that what a search reads of neighbours, and writes of them, lies together:
//! one that goes through blocks as it goes through the map meets the same few pages and lines again and again.
//!
//! Successors are reached diagonally first and straight after, so the length of that way is the octile distance of the two
//! tiles and needs no place in the list.
//!
//! Invariant: the successors are those that `jump` offers over sign planes, in that order.
//!
//! Cost: building walks once from every jump point in every direction. Memory: 4 bytes a successor, 24 a jump point (44
//! under `Cut`), 1.5 bits a tile for the numbers.

use glam::IVec2;
use prefetch_index::prefetch_index;

use super::planes::{SignPlanes, SignWalks};
use crate::map::{BitPlane, TileMap};
use crate::nav::direction::{Direction, Directions};
use crate::nav::key::Key;
use crate::nav::rule::{Diagonal, diagonal_turns, directions_on, is_step_free, is_straight_turn};
use crate::nav::walks::for_each_successor;
use crate::nav::walks::{diagonal_turns_in_word, turns_in_word, upright_turns_in_word};

/// Rows of a block.
const BLOCK_ROWS: usize = 64;

/// The graph of jump points of a map under one movement rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::nav) struct JumpGraph {
    /// One bit a tile, row by row, whole words a row.
    pub(super) is_jump_point: Vec<u64>,
    /// For each of those words how many jump points come before it.
    before: Vec<u32>,
    pub(super) words_per_row: usize,
    /// The tiles of the jump points, by their numbers: block by block, and in each by y, then x.
    pub(super) tiles: Vec<Key>,
    /// Directions in which a jump point may be reached: 4, or 8 under `Cut`.
    pub(super) ways: u32,
    /// Where the successors of a jump point reached in a direction begin; they end where the next ones begin.
    pub(super) first: Vec<u32>,
    /// The directions in which a jump point reached in a direction goes on.
    pub(super) onward: Vec<Directions>,
    pub(super) successors: Vec<Successor>,
}

/// The number of a jump point above the three bits of the direction in which it is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::nav) struct Successor(u32);

impl Successor {
    #[inline(always)]
    fn new(number: u32, direction: Direction) -> Self {
        Self(number << 3 | direction as u32)
    }

    /// A successor by what [`Successor::bits`] gave.
    pub(super) fn of_bits(bits: u32) -> Self {
        Self(bits)
    }

    pub(super) fn bits(self) -> u32 {
        self.0
    }

    #[inline(always)]
    pub(in crate::nav) fn number(self) -> u32 {
        self.0 >> 3
    }

    #[inline(always)]
    pub(in crate::nav) fn direction(self) -> Direction {
        Direction::ALL[self.0 as usize & 7]
    }
}

impl JumpGraph {
    /// The graph of a map.
    /// `None` if it takes more than so many bytes.
    pub(in crate::nav) fn build(
        map: &TileMap,
        diagonal: Diagonal,
        planes: &SignPlanes,
        bytes_max: usize,
    ) -> Option<Self> {
        match diagonal {
            Diagonal::NoCut => Self::build_with::<false>(map, planes, bytes_max),
            Diagonal::Cut => Self::build_with::<true>(map, planes, bytes_max),
        }
    }

    /// How many jump points there are.
    #[inline(always)]
    pub(in crate::nav) fn len(&self) -> u32 {
        self.tiles.len() as u32
    }

    /// The tile of a jump point.
    #[inline(always)]
    pub(in crate::nav) fn tile(&self, number: u32) -> IVec2 {
        self.tiles[number as usize].tile()
    }

    /// Bytes held on the heap.
    pub(in crate::nav) fn memory_bytes(&self) -> usize {
        size_of_val(&self.is_jump_point[..])
            + size_of_val(&self.before[..])
            + size_of_val(&self.tiles[..])
            + size_of_val(&self.first[..])
            + size_of_val(&self.onward[..])
            + size_of_val(&self.successors[..])
    }

    /// Jump points alone: those that `bits` has in 64 tiles of a row from x and y on.
    pub(super) fn numbered(
        map: &TileMap,
        diagonal: Diagonal,
        bits: impl Fn(i32, i32) -> u64,
    ) -> Self {
        let (width, height) = (map.width() as i32, map.height() as i32);
        let words_per_row = (map.width() as usize).div_ceil(64);
        let words = words_per_row * map.height() as usize;
        let (mut is_jump_point, mut before) = (vec![0; words], vec![0; words]);
        let mut tiles = Vec::new();
        for top in (0..height).step_by(BLOCK_ROWS) {
            for x in (0..width).step_by(64) {
                for y in top..height.min(top + BLOCK_ROWS as i32) {
                    let word = y as usize * words_per_row + x as usize / 64;
                    let mut bits = bits(x, y);
                    (is_jump_point[word], before[word]) = (bits, tiles.len() as u32);
                    while bits != 0 {
                        let tile = IVec2::new(x + bits.trailing_zeros() as i32, y);
                        tiles.push(Key::of_tile(tile));
                        bits &= bits - 1;
                    }
                }
            }
        }
        tiles.shrink_to_fit();
        Self {
            is_jump_point,
            before,
            words_per_row,
            tiles,
            ways: match diagonal {
                Diagonal::NoCut => 4,
                Diagonal::Cut => 8,
            },
            first: Vec::new(),
            onward: Vec::new(),
            successors: Vec::new(),
        }
    }

    fn build_with<const CUT: bool>(
        map: &TileMap,
        planes: &SignPlanes,
        bytes_max: usize,
    ) -> Option<Self> {
        let rows = map.rows();
        let diagonal = if CUT { Diagonal::Cut } else { Diagonal::NoCut };
        let mut graph =
            Self::numbered(map, diagonal, |x, y| jump_points_in_word::<CUT>(rows, x, y));
        let walks = SignWalks { tiles: map, planes };
        graph
            .first
            .reserve_exact(graph.tiles.len() * graph.ways as usize + 1);
        // Places in the list of successors are numbers of 32 bits.
        let bytes_max = bytes_max.min(u32::MAX as usize);
        for number in 0..graph.len() {
            if graph.memory_bytes() > bytes_max {
                return None;
            }
            let tile = graph.tile(number);
            for direction in Direction::ALL.into_iter().take(graph.ways as usize) {
                let directions = directions_on::<CUT>(rows, tile, Some(direction));
                graph.first.push(graph.successors.len() as u32);
                graph.onward.push(directions);
                if !is_turn::<CUT>(rows, tile, direction) {
                    continue;
                }
                let mut successors = std::mem::take(&mut graph.successors);
                for_each_successor::<_, CUT, true>(&walks, tile, directions, |tile, direction| {
                    // Planes that came out of a file may say anything.
                    let number = graph.number(tile);
                    successors.extend(number.map(|number| Successor::new(number, direction)));
                });
                graph.successors = successors;
            }
        }
        graph.first.push(graph.successors.len() as u32);
        graph.successors.shrink_to_fit();
        (graph.memory_bytes() <= bytes_max).then_some(graph)
    }

    /// The number of a jump point by its tile; `None` for any other tile of the map.
    #[inline]
    pub(in crate::nav) fn number(&self, tile: IVec2) -> Option<u32> {
        let word = tile.y as usize * self.words_per_row + (tile.x as usize >> 6);
        let (bits, own) = (self.is_jump_point[word], 1 << (tile.x & 63));
        let lower = bits & (own - 1);
        (bits & own != 0).then(|| self.before[word] + lower.count_ones())
    }

    /// Calls `offer` with what `jump` would offer out of a jump point reached in a direction.
    #[inline]
    pub(in crate::nav) fn for_each_successor(
        &self,
        tile: IVec2,
        direction: Direction,
        mut offer: impl FnMut(IVec2, Direction),
    ) {
        let Some(number) = self.number(tile) else {
            return;
        };
        let (_, successors) = self.onward(number, direction);
        for &successor in successors {
            offer(self.tile(successor.number()), successor.direction());
        }
    }

    /// Asks for the memory that going on from a jump point reads, of which there is more in all than caches hold.
    #[inline(always)]
    pub(in crate::nav) fn prefetch_onward(&self, number: u32, direction: Direction) {
        let way = (number * self.ways + direction as u32) as usize;
        prefetch_index(&self.onward, way);
        prefetch_index(&self.successors, self.first[way] as usize);
    }

    /// The same of what reaching it reads.
    #[inline(always)]
    pub(in crate::nav) fn prefetch_tile(&self, number: u32) {
        prefetch_index(&self.tiles, number as usize);
    }

    /// The directions in which a jump point reached in a direction goes on, and what it meets there.
    #[inline(always)]
    pub(in crate::nav) fn onward(
        &self,
        number: u32,
        direction: Direction,
    ) -> (Directions, &[Successor]) {
        let way = (number * self.ways + direction as u32) as usize;
        let successors = self.first[way] as usize..self.first[way + 1] as usize;
        (self.onward[way], &self.successors[successors])
    }
}

/// Where in 64 tiles of a row a walk of any direction may have to turn.
fn jump_points_in_word<const CUT: bool>(rows: &BitPlane, x: i32, y: i32) -> u64 {
    let straight = turns_in_word::<CUT, 1>(rows, x, y) & !rows.word_at(x - 1, y)
        | turns_in_word::<CUT, -1>(rows, x, y) & !rows.word_at(x + 1, y)
        | upright_turns_in_word::<CUT>(rows, x, y, 1) & !rows.word_at(x, y - 1)
        | upright_turns_in_word::<CUT>(rows, x, y, -1) & !rows.word_at(x, y + 1);
    let diagonal = if CUT {
        [(1, -1), (1, 1), (-1, 1), (-1, -1)]
            .into_iter()
            .fold(0, |bits, step| {
                bits | diagonal_turns_in_word(rows, x, y, step)
            })
    } else {
        0
    };
    (straight | diagonal) & !rows.word_at(x, y)
}

/// Whether a walk can come to a tile in a direction and may then have to turn there.
fn is_turn<const CUT: bool>(rows: &BitPlane, tile: IVec2, direction: Direction) -> bool {
    let IVec2 { x, y } = tile;
    let IVec2 { x: dx, y: dy } = direction.step();
    let may_come = is_step_free::<CUT>(rows, x, y, -dx, -dy);
    may_come
        && if direction.is_diagonal() {
            let (aside, back) = diagonal_turns::<CUT>(rows, x, y, (dx, dy));
            aside || back
        } else {
            is_straight_turn::<CUT>(rows, x, y, (dx, dy))
        }
}
