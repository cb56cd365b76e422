//! Results, limits and slices of single searches; `exactness` tests that they are shortest paths.

use super::*;
use crate::Direction;
use crate::map::{TileEdit, TileRect};

fn prepared(tiles: &TileMap) -> NavMap {
    let mut nav_map = NavMap::new(Diagonal::NoCut);
    for algorithm in Algorithm::ALL {
        nav_map.prepare(tiles, algorithm);
    }
    nav_map
}

fn find(map: &str, query: PathQuery) -> Vec<(SearchOutcome, Vec<IVec2>)> {
    let tiles = TileMap::from_ascii(map).unwrap();
    let nav_map = prepared(&tiles);
    let mut search = PathSearch::new();
    let mut answer = |algorithm| {
        let mut waypoints = vec![IVec2::MAX];
        (
            search.find(&tiles, &nav_map, algorithm, query, &mut waypoints),
            waypoints,
        )
    };
    Algorithm::ALL.into_iter().map(&mut answer).collect()
}

const WALLED: &str = "....@.\n....@.\n....@.\n";

#[test]
fn outside_blocked_and_unreachable_ends_are_distinguished() {
    let free = IVec2::ZERO;
    let cases = [
        (IVec2::new(-1, 0), SearchOutcome::OutOfBounds),
        (IVec2::new(6, 0), SearchOutcome::OutOfBounds),
        (IVec2::new(0, i32::MAX), SearchOutcome::OutOfBounds),
        (IVec2::MIN, SearchOutcome::OutOfBounds),
        (IVec2::new(4, 1), SearchOutcome::Blocked),
        (IVec2::new(5, 1), SearchOutcome::Unreachable),
    ];
    for (tile, expected) in cases {
        for query in [PathQuery::new(free, tile), PathQuery::new(tile, free)] {
            for (outcome, waypoints) in find(WALLED, query) {
                assert_eq!(outcome, expected, "{query:?}");
                assert!(waypoints.is_empty());
            }
        }
    }
}

#[test]
fn equal_start_and_goal_is_one_waypoint_of_length_zero() {
    for (outcome, waypoints) in find(
        WALLED,
        PathQuery::new(IVec2::ONE, IVec2::ONE).with_node_limit(0),
    ) {
        assert_eq!(outcome, SearchOutcome::Found(FoundPath::default()));
        assert_eq!(waypoints, [IVec2::ONE]);
    }
}

#[test]
fn path_has_turning_points_and_step_counts() {
    for (outcome, waypoints) in find(
        "......\n.@@@@.\n......\n",
        PathQuery::new(IVec2::new(0, 1), IVec2::new(5, 1)),
    ) {
        let SearchOutcome::Found(path) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(
            path.steps,
            Steps {
                straight: 7,
                diagonal: 0
            }
        );
        assert_eq!(path.length_tiles(), 7.0);
        assert_eq!(
            (waypoints.len(), waypoints[0], waypoints[3]),
            (4, IVec2::new(0, 1), IVec2::new(5, 1))
        );
    }
}

#[test]
fn capped_search_is_not_reported_as_unreachable() {
    let query = PathQuery::new(IVec2::new(0, 1), IVec2::new(5, 1));
    for node_limit in [0, 1] {
        for (outcome, waypoints) in find(
            "......\n.@@@@.\n......\n",
            query.with_node_limit(node_limit),
        ) {
            assert_eq!(outcome, SearchOutcome::Capped);
            assert!(waypoints.is_empty());
        }
    }
}

#[test]
fn capped_search_returns_only_proven_optimal_paths() {
    let map = TileMap::new(9, 9, false).unwrap();
    let (start, goal) = (IVec2::ZERO, IVec2::new(8, 0));
    for (steps, is_answer) in [(8, true), (10, false)] {
        let mut search = PathSearch::new();
        let nav_map = NavMap::default();
        let ground = SearchMap::new(&map, &nav_map, Algorithm::AStar);
        search.reset(&ground, 1);
        let mut run = search.run(&ground, goal, 1, u32::MAX);
        run.relax(NONE, start, PathCost::ZERO, None);
        let current = run.next().unwrap();
        run.relax_goal(current.node, PathCost::straight(steps));
        run.relax(
            current.node,
            IVec2::X,
            PathCost::STRAIGHT,
            Some(Direction::East),
        );
        assert!(run.next().is_none());
        assert_eq!(
            matches!(run.progress.end(), SearchEnd::Goal { .. }),
            is_answer
        );
        assert_eq!(matches!(run.progress.end(), SearchEnd::Capped), !is_answer);
    }
}

#[test]
fn sliced_search_matches_and_restarts_after_an_edit() {
    let mut tiles = TileMap::from_fn(60, 60, |x, y| x % 7 == 3 && y % 9 < 7).unwrap();
    let mut nav_map = prepared(&tiles);
    let query = PathQuery::new(IVec2::new(0, 1), IVec2::new(58, 55));
    let (mut whole, mut sliced) = (PathSearch::new(), PathSearch::new());
    let (mut expected, mut waypoints) = (Vec::new(), Vec::new());
    for nth in 0..3 {
        for algorithm in Algorithm::ALL {
            for expansions in [1, 3, 1000] {
                sliced.abandon();
                assert_eq!(sliced.expanded(), 0);
                let mut resume = |tiles: &TileMap, nav_map: &NavMap| {
                    sliced.resume(tiles, nav_map, algorithm, query, expansions, &mut waypoints)
                };
                // Half way through the tiles change.
                let mut slices = 1;
                let paused = resume(&tiles, &nav_map);
                let wall = TileRect::new(10 + nth, 0, 1, 50);
                for edit in [TileEdit::Free, TileEdit::Block] {
                    let changed = tiles.edit(wall, &edit).unwrap();
                    nav_map.apply_edit(&tiles, changed.as_slice());
                }
                let outcome = loop {
                    slices += 1;
                    if let Some(outcome) = resume(&tiles, &nav_map) {
                        break outcome;
                    }
                };
                let found = whole.find(&tiles, &nav_map, algorithm, query, &mut expected);
                assert!(matches!(found, SearchOutcome::Found(_)));
                assert_eq!((outcome, &waypoints), (found, &expected), "{algorithm}");
                assert_eq!(sliced.expanded(), whole.expanded());
                let fewest = whole.expanded().div_ceil(expansions);
                assert!(slices >= fewest, "{slices} slices, {fewest} needed");
                assert!(paused.is_none() || expansions == 1000);
            }
        }
    }
}

/// A comb split at its back with pending splits, and tiles in its two halves and in the left one.
pub(crate) fn comb_with_pending_split() -> (TileMap, [IVec2; 3]) {
    let mut tiles = TileMap::from_fn(300, 200, |x, y| y > 0 && x % 2 == 1).unwrap();
    tiles
        .edit(TileRect::new(151, 0, 1, 1), &TileEdit::Block)
        .unwrap();
    assert!(!tiles.has_final_regions());
    (tiles, [(100, 9), (200, 9), (20, 9)].map(IVec2::from))
}

#[test]
fn cut_off_goal_is_unreachable_before_and_after_splits_finish() {
    let (mut tiles, [left, right, far_left]) = comb_with_pending_split();
    let mut nav_map = prepared(&tiles);
    let (mut search, mut waypoints) = (PathSearch::new(), Vec::new());
    for algorithm in Algorithm::ALL {
        let mut find = |from, to| {
            let query = PathQuery::new(from, to);
            search.find(&tiles, &nav_map, algorithm, query, &mut waypoints)
        };
        assert_eq!(find(left, right), SearchOutcome::Unreachable, "{algorithm}");
        assert_eq!(find(right, left), SearchOutcome::Unreachable, "{algorithm}");
        assert!(matches!(find(left, far_left), SearchOutcome::Found(_)));
    }
    assert!(!tiles.has_final_regions());
    // A running search ends when the regions become final.
    let query = PathQuery::new(left, right);
    let mut resume = |tiles: &TileMap, nav_map: &NavMap| {
        search.resume(tiles, nav_map, Algorithm::AStar, query, 5, &mut waypoints)
    };
    assert_eq!(resume(&tiles, &nav_map), None);
    assert!(!tiles.finish_splits(1_000) && tiles.are_connected(left, right));
    assert_eq!(resume(&tiles, &nav_map), None);
    assert!(tiles.finish_splits(usize::MAX) && !tiles.are_connected(left, right));
    assert_eq!(resume(&tiles, &nav_map), Some(SearchOutcome::Unreachable));
    nav_map.apply_edit(&tiles, &[]);
    let outcome = search.find(&tiles, &nav_map, Algorithm::AStar, query, &mut waypoints);
    assert_eq!(
        (outcome, search.expanded()),
        (SearchOutcome::Unreachable, 0)
    );
}

#[test]
fn pruning_opens_fewer_nodes_and_warm_search_keeps_its_memory() {
    let tiles = TileMap::from_fn(200, 200, |x, y| x % 7 == 3 && y % 5 < 3).unwrap();
    let nav_map = prepared(&tiles);
    let query = PathQuery::new(IVec2::new(0, 5), IVec2::new(199, 188));
    let mut search = PathSearch::new();
    let mut waypoints = Vec::new();
    let mut expanded = Vec::new();
    for algorithm in Algorithm::ALL {
        search.find(&tiles, &nav_map, algorithm, query, &mut waypoints);
        expanded.push(search.expanded());
        let touched: Vec<_> = search.visited(&tiles, &nav_map, algorithm).collect();
        let closed = touched.iter().filter(|(_, is_expanded)| *is_expanded);
        assert_eq!(closed.count() as u32, search.expanded());
        assert_eq!(touched.len() as u32, search.generated());
    }
    let [astar, jps, bit, prune, pre, prune_pre, graph] = expanded[..] else {
        panic!("{expanded:?}")
    };
    assert!(astar > jps && jps > prune, "{expanded:?}");
    assert!(
        jps == bit && bit == pre && prune == prune_pre && prune >= graph,
        "{expanded:?}"
    );
    let warm_bytes = search.heap_bytes();
    for algorithm in Algorithm::ALL {
        search.find(&tiles, &nav_map, algorithm, query, &mut waypoints);
    }
    assert_eq!(search.heap_bytes(), warm_bytes);
}
