//! The prepared data of a map against the definitions, tile by tile.
//!
//! A diagonal scan over free ground takes steps by the square of the map's side, so only small maps are compared completely.
//! Larger ones, which are needed for scans over several words and beyond an entry of the table, are sampled.

use glam::IVec2;
use proptest::prelude::*;

use super::{map_and_tiles, to_ascii};
use crate::jump_scan::{JumpScanner, Reach, Stop, for_each_successor};
use crate::map::TileMap;
use crate::prepared::{JumpGraph, SignPlanes, SignScanner};
use crate::reference::{StepTable, TileScanner};
use crate::rule::{diagonal_turns, is_step_free, is_straight_turn, next_directions};
use crate::{Diagonal, Direction};
use throng_core::parallel::{InlineExecutor, ParallelExecutor};

/// Up to this many tiles, straight scans are compared from every tile.
const WHOLE_TILES_MAX: u64 = 150 * 150;

/// The ends of straight scans from a tile.
fn straight_walks<const CUT: bool>(
    walks: &impl JumpScanner<CUT>,
    IVec2 { x, y }: IVec2,
) -> [Reach; 4] {
    [
        walks.scan_straight::<1, 0>(x, y),
        walks.scan_straight::<-1, 0>(x, y),
        walks.scan_straight::<0, 1>(x, y),
        walks.scan_straight::<0, -1>(x, y),
    ]
}

/// The same, and the first stops of diagonal scans.
fn all_walks<const CUT: bool>(
    walks: &impl JumpScanner<CUT>,
    tile: IVec2,
) -> ([Reach; 4], [Stop; 4]) {
    let IVec2 { x, y } = tile;
    let diagonal = [
        walks.scan_diagonal::<1, 1>(x, y),
        walks.scan_diagonal::<1, -1>(x, y),
        walks.scan_diagonal::<-1, 1>(x, y),
        walks.scan_diagonal::<-1, -1>(x, y),
    ];
    (straight_walks::<CUT>(walks, tile), diagonal)
}

/// Whether a path can reach a tile in a direction and may then have to turn.
fn is_jump_point<const CUT: bool>(map: &TileMap, tile: IVec2, direction: Direction) -> bool {
    let (rows, IVec2 { x, y }, step) = (map.rows(), tile, direction.step());
    is_step_free::<CUT>(rows, x, y, -step.x, -step.y)
        && match direction.is_diagonal() {
            true => CUT && diagonal_turns::<CUT>(rows, x, y, (step.x, step.y)) != (false, false),
            false => is_straight_turn::<CUT>(rows, x, y, (step.x, step.y)),
        }
}

/// Runs the last items first, as threads may.
#[derive(Clone, Copy)]
struct Backwards;

impl ParallelExecutor for Backwards {
    fn for_each_chunk<T: Send, S: Send + Default>(
        self,
        items: &mut [T],
        chunk_min: usize,
        scratch: &mut Vec<S>,
        work: impl Fn(&mut S, usize, &mut [T]) + Sync,
    ) {
        InlineExecutor.for_each_chunk(items, chunk_min, scratch, work);
    }

    fn for_each_item<T: Send>(self, items: &mut [T], work: impl Fn(&mut T) + Sync) {
        items.iter_mut().rev().for_each(work);
    }

    fn worker_count(self) -> usize {
        1
    }
}

/// Compares straight scans from all tiles of a map that is not too large, all scans from the given tiles, and their
/// lists in the graph.
fn compare<const CUT: bool>(map: &TileMap, tiles: &[IVec2]) -> Result<(), TestCaseError> {
    let diagonal = if CUT { Diagonal::Cut } else { Diagonal::NoCut };
    let (planes, table) = (
        SignPlanes::build(map, diagonal),
        StepTable::build(map, diagonal),
    );
    let graph = JumpGraph::build(map, diagonal, &planes, usize::MAX, InlineExecutor)
        .expect("there is no limit");
    let by_tiles = TileScanner(map.rows());
    let by_planes = SignScanner {
        tiles: map,
        planes: &planes,
    };
    let by_table = table.scanner(map.rows());
    let case = |tile| format!("{diagonal:?} {tile}\n{}", to_ascii(map));
    let all = || {
        (0..map.height() as i32)
            .flat_map(|y| (0..map.width() as i32).map(move |x| IVec2::new(x, y)))
            .filter(|tile| map.is_free(*tile))
    };
    for tile in all().filter(|_| map.rect().tile_count() <= WHOLE_TILES_MAX) {
        let expected = straight_walks::<CUT>(&by_tiles, tile);
        let (planes, table) = (
            straight_walks::<CUT>(&by_planes, tile),
            straight_walks::<CUT>(&by_table, tile),
        );
        prop_assert_eq!(planes, expected, "planes, {}", case(tile));
        prop_assert_eq!(table, expected, "table, {}", case(tile));
    }
    for &tile in tiles.iter().filter(|tile| map.is_free(**tile)) {
        let expected = all_walks::<CUT>(&by_tiles, tile);
        let (planes, table) = (
            all_walks::<CUT>(&by_planes, tile),
            all_walks::<CUT>(&by_table, tile),
        );
        prop_assert_eq!(planes, expected, "planes, {}", case(tile));
        prop_assert_eq!(table, expected, "table, {}", case(tile));
        for direction in Direction::ALL {
            if !is_jump_point::<CUT>(map, tile, direction) {
                continue;
            }
            let (mut listed, mut expected) = (Vec::new(), Vec::new());
            graph.for_each_successor(tile, direction, |tile, direction| {
                listed.push((tile, direction));
            });
            let onward = next_directions::<CUT>(map.rows(), tile, Some(direction));
            for_each_successor::<_, CUT, true>(&by_tiles, tile, onward, |tile, direction| {
                expected.push((tile, direction));
            });
            prop_assert_eq!(listed, expected, "graph, {:?}, {}", direction, case(tile));
        }
    }
    Ok(())
}

/// Every tile of a small map.
fn small() -> impl Strategy<Value = (TileMap, Vec<IVec2>)> {
    map_and_tiles(20, 0).prop_map(|(map, _)| {
        let (width, height) = (map.width() as i32, map.height() as i32);
        let tiles = (0..height).flat_map(|y| (0..width).map(move |x| IVec2::new(x, y)));
        (map, tiles.collect())
    })
}

/// A large map with few blocked tiles, so that scans are long, and tiles on it: every other one is next to the border of
/// two words.
fn sparse() -> impl Strategy<Value = (TileMap, Vec<IVec2>)> {
    (130u32..400, 130u32..400).prop_flat_map(|(width, height)| {
        let tile = (0..width as i32, 0..height as i32).prop_map(|(x, y)| IVec2::new(x, y));
        let seam = |side: u32| (0..=side as i32 / 64, -2..3).prop_map(|(word, by)| word * 64 + by);
        let at_seam = (seam(width), seam(height)).prop_map(move |(x, y)| {
            let last = IVec2::new(width as i32 - 1, height as i32 - 1);
            IVec2::new(x, y).clamp(IVec2::ZERO, last)
        });
        let blocked = prop::collection::vec(prop_oneof![tile.clone(), at_seam.clone()], 0..400);
        let tiles = prop::collection::vec(prop_oneof![tile, at_seam], 40);
        (blocked, tiles).prop_map(move |(blocked, tiles)| {
            let mut is_blocked = vec![false; (width * height) as usize];
            for tile in blocked {
                is_blocked[(tile.y as u32 * width + tile.x as u32) as usize] = true;
            }
            let map = TileMap::from_fn(width, height, |x, y| is_blocked[(y * width + x) as usize]);
            (map.expect("the sides are small"), tiles)
        })
    })
}

proptest! {
    #![proptest_config(draws!(120))]

    #[test]
    fn prepared_scans_match_tile_by_tile_scans(
        (map, tiles) in prop_oneof![6 => small(), 3 => map_and_tiles(150, 60), 1 => sparse()],
    ) {
        compare::<false>(&map, &tiles)?;
        compare::<true>(&map, &tiles)?;
    }

    #[test]
    fn graph_is_built_within_its_limit_or_not_at_all((map, _) in map_and_tiles(60, 0)) {
        for diagonal in Diagonal::ALL {
            let planes = SignPlanes::build(&map, diagonal);
            let build = |bytes_max| JumpGraph::build(&map, diagonal, &planes, bytes_max, InlineExecutor);
            let graph = build(usize::MAX).expect("there is no limit");
            let bytes = graph.memory_bytes();
            let backwards =
                |bytes_max| JumpGraph::build(&map, diagonal, &planes, bytes_max, Backwards);
            prop_assert!(backwards(bytes).as_ref() == Some(&graph));
            prop_assert!(build(bytes) == Some(graph));
            prop_assert!(build(bytes - 1).or_else(|| backwards(bytes - 1)).is_none());
        }
    }
}
