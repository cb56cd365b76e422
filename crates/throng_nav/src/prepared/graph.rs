//! The graph of jump points: for every jump point and direction of arrival, its successors.
//!
//! The successors of a node in Jump Point Search with pruned diagonals depend only on the node's tile and the direction in
//! which it was reached; the goal is handled separately. So all of them are computed in advance, and a search reads lists.
//! Only the start, which is not a jump point, scans the map.
//!
//! ```text
//! tile ──▶ number (rank in a bitmap) ──▶ first[number × ways + direction] ──▶ successors: number, direction
//! ```
//! Successors are reached diagonally first and then straight, so the length of that path is the octile distance of the two
//! tiles and needs no space in the list.
//!
//! Invariant: the successors are those that `jump` offers over sign planes, in that order.
//!
//! Cost: building scans once from every jump point in every direction, in parallel. Memory: 4 bytes per successor, 20 per
//! jump point (40 under `Cut`), plus the numbers and the landmarks.

use std::ops::Range;

use glam::IVec2;
use prefetch_index::prefetch_index;

use super::jump_points::JumpPoints;
use super::landmarks::{Landmarks, Legs};
use super::planes::{SignPlanes, SignScanner};
use crate::direction::{Direction, Directions};
use crate::jump_scan::for_each_successor;
use crate::jump_scan::{diagonal_turns_in_word, turns_in_word, upright_turns_in_word};
use crate::map::{BitPlane, TileMap};
use crate::rule::{Diagonal, diagonal_turns, is_step_free, is_straight_turn, next_directions};
use throng_core::parallel::ParallelExecutor;

/// The graph of jump points of a map under one movement rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JumpGraph {
    pub(crate) points: JumpPoints,
    pub(crate) landmarks: Landmarks,
    /// The number of directions in which a jump point may be reached: 4, or 8 under `Cut`.
    pub(super) direction_count: u32,
    /// Where the successors of a jump point and direction of arrival begin; they end where the next ones begin.
    pub(super) first: Vec<u32>,
    /// The directions in which a path continues from a jump point, by direction of arrival.
    pub(super) onward: Vec<Directions>,
    pub(super) successors: Vec<Successor>,
}

/// The number of a jump point above the three bits of the direction in which it is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Successor(u32);

impl Successor {
    #[inline(always)]
    fn new(number: u32, direction: Direction) -> Self {
        Self(number << 3 | direction as u32)
    }

    /// A successor from the result of [`Successor::bits`].
    pub(super) fn of_bits(bits: u32) -> Self {
        Self(bits)
    }

    pub(super) fn bits(self) -> u32 {
        self.0
    }

    #[inline(always)]
    pub(crate) fn number(self) -> u32 {
        self.0 >> 3
    }

    #[inline(always)]
    pub(crate) fn direction(self) -> Direction {
        Direction::ALL[self.0 as usize & 7]
    }
}

impl JumpGraph {
    /// Builds the graph of a map.
    /// `None` if it takes more than this many bytes.
    pub(crate) fn build(
        map: &TileMap,
        diagonal: Diagonal,
        planes: &SignPlanes,
        bytes_max: usize,
        spread: impl ParallelExecutor,
    ) -> Option<Self> {
        match diagonal {
            Diagonal::NoCut => Self::build_with::<false>(map, planes, bytes_max, spread),
            Diagonal::Cut => Self::build_with::<true>(map, planes, bytes_max, spread),
        }
    }

    /// Bytes held on the heap.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.points.memory_bytes()
            + Landmarks::memory_bytes_of(self.points.len())
            + size_of_val(&self.first[..])
            + size_of_val(&self.onward[..])
            + size_of_val(&self.successors[..])
    }

    /// The jump points alone.
    pub(super) fn without_successors(points: JumpPoints, diagonal: Diagonal) -> Self {
        Self {
            points,
            landmarks: Landmarks::default(),
            direction_count: match diagonal {
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
        spread: impl ParallelExecutor,
    ) -> Option<Self> {
        let rows = map.rows();
        let diagonal = if CUT { Diagonal::Cut } else { Diagonal::NoCut };
        let points = JumpPoints::number_all(map, |x, y| jump_points_in_word::<CUT>(rows, x, y));
        let mut graph = Self::without_successors(points, diagonal);
        let walks = SignScanner { tiles: map, planes };
        // Offsets in the lists of successors and legs have 32 bits; legs take at most 4 times the limit and are dropped later.
        let bytes_max = bytes_max.min(u32::MAX as usize);
        let room = bytes_max.checked_sub(graph.memory_bytes())?;
        let mut stretches: Vec<JumpPointChunk> = (0..graph.points.len())
            .step_by(CHUNK_POINTS as usize)
            .map(|first| JumpPointChunk::of(first..graph.points.len().min(first + CHUNK_POINTS)))
            .collect();
        let (mut graph_bytes, mut leg_count) = (0, 0);
        // In batches, since there may be more workers for the next ones, and all at once would take too much memory.
        for stretches in stretches.chunks_mut(CHUNKS_AT_ONCE) {
            spread.for_each_item(stretches, |stretch| {
                stretch.scan_points::<CUT>(&walks, &graph.points, graph.direction_count);
            });
            for stretch in stretches {
                graph_bytes += stretch.graph_bytes();
                leg_count += stretch.legs.ends.len();
            }
            if graph_bytes > room || leg_count > bytes_max {
                return None;
            }
        }
        let legs = graph.append_chunks(stretches);
        graph.landmarks = Landmarks::build::<CUT>(&walks, &graph.points, legs, spread);
        (graph.memory_bytes() <= bytes_max).then_some(graph)
    }

    /// Moves the successors of all jump points into the graph, and returns the legs from them.
    fn append_chunks(&mut self, stretches: Vec<JumpPointChunk>) -> Vec<Legs> {
        let sum = |len: fn(&JumpPointChunk) -> usize| stretches.iter().map(len).sum::<usize>();
        self.first.reserve_exact(sum(|it| it.counts.len()) + 1);
        self.onward.reserve_exact(sum(|it| it.onward.len()));
        let successors = sum(|it| it.successors.len());
        self.successors.reserve_exact(successors);
        let mut end = 0;
        self.first.push(end);
        let of_stretches = stretches.into_iter().map(|stretch| {
            self.first.extend(stretch.counts.iter().map(|count| {
                end += count;
                end
            }));
            self.onward.extend(stretch.onward);
            self.successors.extend(stretch.successors);
            stretch.legs
        });
        of_stretches.collect()
    }

    /// Calls `offer` with the successors that `jump` would offer from a jump point reached in a direction.
    #[inline]
    pub(crate) fn for_each_successor(
        &self,
        tile: IVec2,
        direction: Direction,
        mut offer: impl FnMut(IVec2, Direction),
    ) {
        let Some(number) = self.points.number(tile) else {
            return;
        };
        let (_, successors) = self.onward(number, direction);
        for &successor in successors {
            offer(self.points.tile(successor.number()), successor.direction());
        }
    }

    /// Prefetches the memory that continuing from a jump point reads; the whole graph is larger than the caches.
    #[inline(always)]
    pub(crate) fn prefetch_onward(&self, number: u32, direction: Direction) {
        let way = (number * self.direction_count + direction as u32) as usize;
        prefetch_index(&self.onward, way);
        prefetch_index(&self.successors, self.first[way] as usize);
    }

    /// The directions in which a path continues from a jump point reached in a direction, and its successors.
    #[inline(always)]
    pub(crate) fn onward(&self, number: u32, direction: Direction) -> (Directions, &[Successor]) {
        let way = (number * self.direction_count + direction as u32) as usize;
        let successors = self.first[way] as usize..self.first[way + 1] as usize;
        (self.onward[way], &self.successors[successors])
    }
}

/// The number of jump points in one work item: half a millisecond. Few in tests, whose maps are small.
const CHUNK_POINTS: u32 = if cfg!(test) { 16 } else { 512 };

/// The number of work items that run in parallel.
const CHUNKS_AT_ONCE: usize = 16;

/// The successors of jump points with consecutive numbers.
struct JumpPointChunk {
    numbers: Range<u32>,
    /// The number of successors of each jump point and direction of arrival.
    counts: Vec<u32>,
    onward: Vec<Directions>,
    successors: Vec<Successor>,
    legs: Legs,
}

impl JumpPointChunk {
    fn of(numbers: Range<u32>) -> Self {
        Self {
            legs: Legs::out_of(numbers.start),
            numbers,
            counts: Vec::new(),
            onward: Vec::new(),
            successors: Vec::new(),
        }
    }

    fn scan_points<const CUT: bool>(
        &mut self,
        walks: &SignScanner,
        points: &JumpPoints,
        ways: u32,
    ) {
        let rows = walks.tiles.rows();
        let mut by_direction: [Vec<Successor>; 8] = Default::default();
        for tile in self.numbers.clone().map(|number| points.tile(number)) {
            let ends = &mut self.legs.ends;
            let legs_before = ends.len();
            for direction in Direction::ALL {
                let found = &mut by_direction[direction as usize];
                found.clear();
                let directions = Directions::of(direction);
                for_each_successor::<_, CUT, true>(walks, tile, directions, |tile, direction| {
                    // Planes from a file may contain anything.
                    let number = points.number(tile);
                    found.extend(number.map(|number| Successor::new(number, direction)));
                });
                ends.extend(found.iter().map(|end| end.number()));
            }
            self.legs.counts.push((ends.len() - legs_before) as u32);
            for direction in Direction::ALL.into_iter().take(ways as usize) {
                let directions = next_directions::<CUT>(rows, tile, Some(direction));
                let successors_before = self.successors.len();
                if is_turn::<CUT>(rows, tile, direction) {
                    let onward = directions.iter();
                    let successors = onward.flat_map(|onward| &by_direction[onward as usize]);
                    self.successors.extend(successors);
                }
                self.counts
                    .push((self.successors.len() - successors_before) as u32);
                self.onward.push(directions);
            }
        }
    }

    /// The bytes that they take in the graph.
    fn graph_bytes(&self) -> usize {
        size_of_val(&self.counts[..])
            + size_of_val(&self.onward[..])
            + size_of_val(&self.successors[..])
    }
}

/// The tiles among 64 of a row where a path in any direction may have to turn.
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

/// Whether a path can reach a tile in a direction and may then have to turn there.
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
