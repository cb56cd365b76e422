//! Every algorithm against brute force on small maps, where failing cases shrink to a picture of a few tiles.

use std::collections::VecDeque;
use std::ops::Add;

use glam::{IVec2, Vec2Swizzles as _};
use proptest::prelude::*;

use super::prepared::SignPlanes;
use super::{
    Algorithm, Diagonal, Direction, MultiStartSearch, NavMap, PathCost, PathQuery, PathSearch,
    SearchOutcome, Steps,
};
use crate::map::{TileEdit, TileMap, TileRect};

mod jump_scan;
mod landmarks;
mod sections;

/// The movement rules, by their definition.
fn may_step(map: &TileMap, diagonal: Diagonal, tile: IVec2, step: IVec2) -> bool {
    let sides = [IVec2::new(step.x, 0), IVec2::new(0, step.y)].map(|side| map.is_free(tile + side));
    map.is_free(tile + step)
        && match diagonal {
            Diagonal::NoCut => sides[0] && sides[1],
            Diagonal::Cut => sides[0] || sides[1],
        }
}

/// All data prepared from a map.
fn prepared(map: &TileMap, diagonal: Diagonal) -> NavMap {
    let mut nav_map = NavMap::new(diagonal);
    for algorithm in Algorithm::ALL {
        nav_map.prepare(map, algorithm);
        assert!(nav_map.is_ready(map, algorithm));
    }
    nav_map
}

/// The cost from one tile to all others; `None` if there is no path.
fn costs_from(map: &TileMap, diagonal: Diagonal, from: IVec2) -> Vec<Option<PathCost>> {
    lengths_from(
        map,
        diagonal,
        from,
        [PathCost::ZERO, PathCost::STRAIGHT, PathCost::DIAGONAL],
    )
}

/// The same in any measure, given as the lengths of no step, a straight and a diagonal one: relaxes every step from
/// tiles that got nearer, until none does.
fn lengths_from<L: Copy + Ord + Add<Output = L>>(
    map: &TileMap,
    diagonal: Diagonal,
    from: IVec2,
    [none, straight, aslant]: [L; 3],
) -> Vec<Option<L>> {
    let (width, height) = (map.width() as i32, map.height() as i32);
    let index = |tile: IVec2| (tile.y * width + tile.x) as usize;
    let mut lengths = vec![None; (width * height) as usize];
    let mut nearer = VecDeque::new();
    if map.is_free(from) {
        lengths[index(from)] = Some(none);
        nearer.push_back(from);
    }
    while let Some(tile) = nearer.pop_front() {
        let length = lengths[index(tile)].unwrap_or(none);
        for direction in Direction::ALL
            .into_iter()
            .filter(|direction| may_step(map, diagonal, tile, direction.step()))
        {
            let step_length = if direction.is_diagonal() {
                aslant
            } else {
                straight
            };
            let (next, next_length) = (tile + direction.step(), length + step_length);
            if lengths[index(next)].is_none_or(|known| next_length < known) {
                lengths[index(next)] = Some(next_length);
                nearer.push_back(next);
            }
        }
    }
    lengths
}

/// Follows the waypoints step by step: the cost of the path, or the error.
fn check_path(
    map: &TileMap,
    diagonal: Diagonal,
    query: PathQuery,
    waypoints: &[IVec2],
) -> Result<PathCost, String> {
    if waypoints.first() != Some(&query.from) || waypoints.last() != Some(&query.to) {
        return Err(format!(
            "{waypoints:?} does not lead from {} to {}",
            query.from, query.to
        ));
    }
    let mut steps = Steps::default();
    let mut step_before = IVec2::ZERO;
    for ends in waypoints.windows(2) {
        let way = ends[1] - ends[0];
        let step = way.signum();
        if way != step * way.abs().max_element() || way == IVec2::ZERO {
            return Err(format!(
                "{} to {} is neither straight nor diagonal",
                ends[0], ends[1]
            ));
        }
        if step == step_before {
            return Err(format!("the walk does not turn at {}", ends[0]));
        }
        step_before = step;
        let mut tile = ends[0];
        while tile != ends[1] {
            if !may_step(map, diagonal, tile, step) {
                return Err(format!("the step {step} from {tile} is not allowed"));
            }
            tile += step;
            if step.x != 0 && step.y != 0 {
                steps.diagonal += 1
            } else {
                steps.straight += 1
            }
        }
    }
    Ok(steps.cost())
}

/// The map as text, for failing cases.
fn to_ascii(map: &TileMap) -> String {
    let row = |y| {
        (0..map.width() as i32)
            .map(move |x| {
                if map.is_blocked((x, y).into()) {
                    '@'
                } else {
                    '.'
                }
            })
            .chain(['\n'])
    };
    (0..map.height() as i32).flat_map(row).collect()
}

/// Compares the results of all algorithms for queries from one tile with brute force, under both rules.
fn check(
    map: &TileMap,
    search: &mut PathSearch,
    from: IVec2,
    goals: &[IVec2],
) -> Result<(), TestCaseError> {
    for diagonal in Diagonal::ALL {
        check_prepared(map, &prepared(map, diagonal), search, from, goals)?;
    }
    Ok(())
}

fn check_prepared(
    map: &TileMap,
    nav_map: &NavMap,
    search: &mut PathSearch,
    from: IVec2,
    goals: &[IVec2],
) -> Result<(), TestCaseError> {
    let diagonal = nav_map.diagonal();
    let costs = costs_from(map, diagonal, from);
    let mut waypoints = Vec::new();
    for &to in goals {
        let query = PathQuery::new(from, to);
        let expected = costs[(to.y * map.width() as i32 + to.x) as usize];
        for algorithm in Algorithm::ALL {
            let outcome = search.find(map, nav_map, algorithm, query, &mut waypoints);
            let case = || format!("{algorithm} {diagonal:?} {from}→{to}\n{}", to_ascii(map));
            match outcome {
                SearchOutcome::Found(path) => {
                    prop_assert_eq!(Some(path.cost()), expected, "{}", case());
                    let walked = check_path(map, diagonal, query, &waypoints);
                    prop_assert_eq!(walked, Ok(path.cost()), "{}", case());
                }
                SearchOutcome::Unreachable => prop_assert_eq!(None, expected, "{}", case()),
                SearchOutcome::Blocked => prop_assert!(!map.is_free(from) || !map.is_free(to)),
                other => prop_assert!(false, "{other:?} {}", case()),
            }
            prop_assert!(waypoints.is_empty() == !matches!(outcome, SearchOutcome::Found(_)));
        }
    }
    Ok(())
}

/// Compares the results of a multi-start search with brute force and with single searches, under both rules, with no data,
/// sign planes or all data prepared.
fn check_multi_start(
    map: &TileMap,
    shared: &mut MultiStartSearch,
    goal: IVec2,
    starts: &[IVec2],
) -> Result<(), TestCaseError> {
    let (mut search, mut answers, mut waypoints) = (PathSearch::new(), Vec::new(), Vec::new());
    for diagonal in Diagonal::ALL {
        let costs = costs_from(map, diagonal, goal);
        let mut with_planes = NavMap::new(diagonal);
        with_planes.prepare(map, Algorithm::JpsBitPrune);
        for nav_map in [NavMap::new(diagonal), with_planes, prepared(map, diagonal)] {
            shared.find(map, &nav_map, goal, starts, None, &mut answers);
            prop_assert_eq!(answers.len(), starts.len());
            for (nth, (&from, &answer)) in starts.iter().zip(&answers).enumerate() {
                let query = PathQuery::new(from, goal);
                let case = || {
                    format!(
                        "{diagonal:?} {from}→{goal} of {starts:?}\n{}",
                        to_ascii(map)
                    )
                };
                let algorithm = Algorithm::JpsBitPrune;
                let single = search.find(map, &nav_map, algorithm, query, &mut waypoints);
                prop_assert_eq!(answer, single, "{}", case());
                shared.write_path(nth, &mut waypoints);
                if let SearchOutcome::Found(path) = answer {
                    let expected = costs[(from.y * map.width() as i32 + from.x) as usize];
                    prop_assert_eq!(Some(path.cost()), expected, "{}", case());
                    let walked = check_path(map, diagonal, query, &waypoints);
                    prop_assert_eq!(walked, Ok(path.cost()), "{}", case());
                } else {
                    prop_assert!(waypoints.is_empty());
                }
            }
        }
    }
    Ok(())
}

/// A map of any fill rate, with sides up to `side_max`, and tiles on it.
fn map_and_tiles(side_max: u32, tiles: usize) -> impl Strategy<Value = (TileMap, Vec<IVec2>)> {
    (1..=side_max, 1..=side_max, 0u32..70).prop_flat_map(move |(width, height, fill_percent)| {
        let blocked = prop::collection::vec(
            prop::bool::weighted(f64::from(fill_percent) / 100.0),
            (width * height) as usize,
        );
        let tile = (0..width as i32, 0..height as i32).prop_map(|(x, y)| IVec2::new(x, y));
        (blocked, prop::collection::vec(tile, tiles)).prop_map(move |(blocked, tiles)| {
            let map = TileMap::from_fn(width, height, |x, y| blocked[(y * width + x) as usize]);
            (map.expect("the sides are small"), tiles)
        })
    })
}

proptest! {
    #![proptest_config(draws!(1500))]

    #[test]
    fn all_algorithms_find_shortest_paths_on_small_maps((map, tiles) in map_and_tiles(12, 8)) {
        check(&map, &mut PathSearch::new(), tiles[0], &tiles)?;
    }

    /// The goal is among the starts, and tiles occur more than once.
    #[test]
    fn multi_start_search_is_exact_on_small_maps((map, tiles) in map_and_tiles(14, 60), count in 1usize..=60) {
        check_multi_start(&map, &mut MultiStartSearch::new(), tiles[0], &tiles[60 - count..])?;
        check_multi_start(&map, &mut MultiStartSearch::new(), tiles[59], &tiles[60 - count..])?;
    }
}

proptest! {
    #![proptest_config(draws!(120))]

    /// Wide enough that straight scans cross from word to word in both planes.
    #[test]
    fn all_algorithms_find_shortest_paths_across_words((map, tiles) in map_and_tiles(150, 6)) {
        check(&map, &mut PathSearch::new(), tiles[0], &tiles)?;
    }

    #[test]
    fn prepared_data_follows_edits_exactly(
        (map, tiles) in map_and_tiles(90, 24),
        edits in prop::collection::vec((0usize..3, 1u32..9, 1u32..9), 16),
    ) {
        let mut search = PathSearch::new();
        for diagonal in Diagonal::ALL {
            let mut tile_map = map.clone();
            let mut nav_map = prepared(&map, diagonal);
            let mut changed = Vec::new();
            for (turn, &(kind, width, height)) in edits.iter().enumerate() {
                let corner = tiles[turn].as_uvec2();
                // Half of the edits change one tile, as in practice.
                let (width, height) = if turn % 2 == 0 { (1, 1) } else { (width, height) };
                let (width, height) = (width.min(map.width() - corner.x), height.min(map.height() - corner.y));
                let edit = &[TileEdit::Block, TileEdit::Free, TileEdit::Toggle][kind];
                let rect = TileRect { x: corner.x, y: corner.y, width, height };
                changed.extend(tile_map.edit(rect, edit).expect("inside the map"));
                // Some edits are applied one by one, some several at once.
                if turn % 5 > 2 {
                    continue;
                }
                nav_map.apply_edit(&tile_map, &changed);
                let planes = SignPlanes::build(&tile_map, diagonal);
                prop_assert!(nav_map.planes() == Some(&planes), "{changed:?}\n{}", to_ascii(&tile_map));
                prop_assert!(nav_map.table().is_none() && nav_map.graph().is_none());
                changed.clear();
            }
            // Without the last edits the prepared data is not used.
            check_prepared(&tile_map, &nav_map, &mut search, tiles[16], &tiles[17..])?;
            nav_map.apply_edit(&tile_map, &changed);
            nav_map.prepare(&tile_map, Algorithm::JpsGraph);
            nav_map.prepare(&tile_map, Algorithm::JpsBitPrunePre);
            check_prepared(&tile_map, &nav_map, &mut search, tiles[16], &tiles[17..])?;
        }
    }

    /// Every limit below what the search needs, so that it also stops between the first path to the goal and the best.
    #[test]
    fn capped_search_never_returns_a_wrong_path((map, tiles) in map_and_tiles(20, 2)) {
        let mut search = PathSearch::new();
        let mut waypoints = Vec::new();
        let query = PathQuery::new(tiles[0], tiles[1]);
        let nav_map = prepared(&map, Diagonal::NoCut);
        for algorithm in Algorithm::ALL {
            let unlimited = search.find(&map, &nav_map, algorithm, query, &mut waypoints);
            let generated = search.generated();
            for node_limit in 0..=generated {
                let limited = search.find(&map, &nav_map, algorithm, query.with_node_limit(node_limit), &mut waypoints);
                prop_assert!(search.generated() <= node_limit);
                let may_give_up = node_limit < generated && limited == SearchOutcome::Capped;
                prop_assert!(limited == unlimited || may_give_up, "{node_limit}: {limited:?}\n{}", to_ascii(&map));
            }
        }
    }

    #[test]
    fn multi_start_search_is_exact_across_words((map, tiles) in map_and_tiles(150, 40)) {
        let mut shared = MultiStartSearch::new();
        check_multi_start(&map, &mut shared, tiles[0], &tiles)?;
        check_multi_start(&map, &mut shared, tiles[1], &tiles[30..])?;
    }

    /// Every limit below what the search needs: all results are right, and the written paths have the same length.
    #[test]
    fn capped_multi_start_search_never_returns_a_wrong_path((map, tiles) in map_and_tiles(20, 12)) {
        let mut shared = MultiStartSearch::new();
        let (mut unlimited, mut limited, mut waypoints) = (Vec::new(), Vec::new(), Vec::new());
        let (goal, starts) = (tiles[0], &tiles[1..]);
        for diagonal in Diagonal::ALL {
            let nav_map = prepared(&map, diagonal);
            shared.find(&map, &nav_map, goal, starts, None, &mut unlimited);
            let generated = shared.generated();
            for node_limit in 0..=generated {
                shared.find(&map, &nav_map, goal, starts, Some(node_limit), &mut limited);
                prop_assert!(shared.generated() <= node_limit);
                for (nth, (&limited, &unlimited)) in limited.iter().zip(&unlimited).enumerate() {
                    let may_give_up = node_limit < generated && limited == SearchOutcome::Capped;
                    prop_assert!(limited == unlimited || may_give_up, "{node_limit}: {limited:?}\n{}", to_ascii(&map));
                    shared.write_path(nth, &mut waypoints);
                    if let SearchOutcome::Found(path) = limited {
                        let walked = check_path(&map, diagonal, PathQuery::new(starts[nth], goal), &waypoints);
                        prop_assert_eq!(walked, Ok(path.cost()));
                    } else {
                        prop_assert!(waypoints.is_empty());
                    }
                }
            }
        }
    }

    #[test]
    fn earlier_searches_do_not_change_results((map, tiles) in map_and_tiles(30, 8)) {
        let mut used = PathSearch::new();
        let nav_map = prepared(&map, Diagonal::NoCut);
        let (mut waypoints, mut fresh_waypoints) = (Vec::new(), Vec::new());
        for pair in tiles.chunks_exact(2) {
            let query = PathQuery::new(pair[0], pair[1]);
            for algorithm in Algorithm::ALL {
                let outcome = used.find(&map, &nav_map, algorithm, query, &mut waypoints);
                let mut fresh = PathSearch::new();
                prop_assert_eq!(fresh.find(&map, &nav_map, algorithm, query, &mut fresh_waypoints), outcome);
                prop_assert_eq!(&fresh_waypoints, &waypoints);
                prop_assert_eq!((fresh.expanded(), fresh.generated()), (used.expanded(), used.generated()));
            }
        }
    }
}

/// Shapes that break jump point searches, every pair of tiles of each.
#[test]
fn tricky_jump_point_shapes_are_searched_exactly() {
    let shapes = [
        ".",                                           // start is goal and the whole map
        ".......",                                     // a corridor of one tile
        ".\n.\n.\n.",                                  // the same, upright
        ".@\n@.",                                      // a diagonal gap that nobody passes
        "..@\n.@.\n@..",                               // the same, longer
        ".....\n..@..\n.....",                         // a pillar
        "@@@@@\n@...@\n@.@.@\n@...@\n@@@@@",           // a ring
        "....@\n.@@.@\n.@...\n.@@@@\n.....",           // dead ends
        "...@...\n.@.@.@.\n.@...@.\n.@@@@@.\n.......", // nested turns
        "..@..\n..@..\n.....\n@@.@@\n.....",           // doors
    ];
    let mut search = PathSearch::new();
    for shape in shapes {
        let map = TileMap::from_ascii(shape).expect("a valid shape");
        let (width, height) = (map.width() as i32, map.height() as i32);
        let tiles: Vec<IVec2> = (0..height)
            .flat_map(|y| (0..width).map(move |x| IVec2::new(x, y)))
            .collect();
        for &from in &tiles {
            check(&map, &mut search, from, &tiles)
                .unwrap_or_else(|error| panic!("{error}\n{shape}"));
        }
    }
}

/// A wall that ends exactly where one word does, in all four directions and at every offset of the scan.
#[test]
fn jump_points_at_word_boundaries_are_found() {
    let mut search = PathSearch::new();
    for wall_end in 55..75 {
        let row = TileMap::from_fn(140, 3, |x, y| {
            y == 0 && x < wall_end || y == 2 && x > wall_end + 4
        })
        .expect("small");
        let column = TileMap::from_fn(3, 140, |x, y| row.is_blocked((y as i32, x as i32).into()))
            .expect("small");
        for start in [0, 1, 30, 63, 64, 65, 100, 139] {
            let goals = [
                IVec2::new(139, 0),
                IVec2::new(0, 2),
                IVec2::new(139, 1),
                IVec2::new(0, 1),
            ];
            check(&row, &mut search, IVec2::new(start, 1), &goals).expect("along a row");
            check(
                &column,
                &mut search,
                IVec2::new(1, start),
                &goals.map(|goal| goal.yx()),
            )
            .expect("along a column");
        }
    }
}

#[test]
fn parallel_searches_on_one_map_match_sequential_ones() {
    let map = TileMap::from_fn(200, 200, |x, y| {
        (x * 7919 + y * 104_729).wrapping_mul(0x9E37_79B9) >> 29 == 1
    })
    .expect("small");
    let nav_map = prepared(&map, Diagonal::NoCut);
    let ask = |first: u32| {
        let (mut search, mut waypoints) = (PathSearch::new(), Vec::new());
        let mut answers = vec![None; 700];
        // Each thread in a different order, with the scratch of its earlier queries.
        for place in 0..700 {
            let nth = (place + first * 43) % 700;
            let tile = |n: u32| IVec2::new((n * 37 % 200) as i32, (n * 101 % 200) as i32);
            let query = PathQuery::new(tile(nth), tile(nth * 13 + 5));
            let algorithm = Algorithm::ALL[nth as usize % Algorithm::ALL.len()];
            let outcome = search.find(&map, &nav_map, algorithm, query, &mut waypoints);
            answers[nth as usize] = Some((outcome, waypoints.clone(), search.expanded()));
        }
        answers
    };
    let alone = ask(0);
    let found = |answer: &&Option<(SearchOutcome, _, _)>| {
        matches!(answer, Some((SearchOutcome::Found(_), ..)))
    };
    assert!(alone.iter().filter(found).count() > 300);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|first| scope.spawn(move || ask(first)))
            .collect();
        for thread in threads {
            assert_eq!(thread.join().expect("no thread panics"), alone);
        }
    });
}
