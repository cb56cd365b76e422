//! Landmarks against brute force: how far everything is from them, and the searches that ask them.

use glam::{IVec2, Vec2Swizzles as _};
use proptest::prelude::*;

use super::{check_prepared, lengths_from, map_and_tiles, picture, prepared};
use crate::map::TileMap;
use crate::nav::cost::coarse_octile;
use crate::nav::prepared::{JumpGraph, SignPlanes, SignWalks};
use crate::nav::{Diagonal, Search};

/// Compares the distances of all jump points, and those of all tiles.
fn compare<const CUT: bool>(map: &TileMap) -> Result<(), TestCaseError> {
    let diagonal = if CUT { Diagonal::Cut } else { Diagonal::NoCut };
    let planes = &SignPlanes::build(map, diagonal);
    let graph = JumpGraph::build(map, diagonal, planes, usize::MAX).expect("there is no limit");
    let (points, landmarks) = (&graph.points, &graph.landmarks);
    let tiles = map.height() as i32 * map.width() as i32;
    let tiles =
        (0..tiles).map(|nth| IVec2::new(nth % map.width() as i32, nth / map.width() as i32));
    let in_largest = |tile: IVec2| {
        let (region, _) = map.largest_region()?;
        map.is_in_region(tile, region).then_some(())
    };
    let jump_points = tiles.clone().filter(|tile| points.number(*tile).is_some());
    prop_assert_eq!(
        jump_points.clone().any(|tile| in_largest(tile).is_some()),
        !landmarks.numbers.is_empty()
    );
    let steps = [IVec2::ZERO, IVec2::X, IVec2::ONE].map(|step| coarse_octile(IVec2::ZERO, step));
    for (nth, &number) in landmarks.numbers.iter().enumerate() {
        let landmark = points.tile(number);
        prop_assert!(in_largest(landmark).is_some());
        let corner = IVec2::new([-1, 1][nth % 2], [-1, 1][nth / 2]);
        let beyond =
            |tile: &IVec2| tile.dot(corner) > landmark.dot(corner) && in_largest(*tile).is_some();
        prop_assert_eq!(jump_points.clone().find(beyond), None);
        let lengths = lengths_from(map, diagonal, landmark, steps);
        for (tile, length) in tiles.clone().zip(lengths) {
            let expected = length.unwrap_or(u32::MAX);
            let case = || format!("{diagonal:?} {landmark}→{tile}\n{}", picture(map));
            if let Some(number) = points.number(tile) {
                let distances = landmarks.distances[number as usize];
                prop_assert_eq!(distances[nth], expected, "{}", case());
            }
            if map.is_free(tile) {
                let walks = SignWalks { tiles: map, planes };
                let distances = landmarks.of_tile::<CUT>(&walks, points, tile);
                prop_assert_eq!(distances[nth], expected, "{}", case());
            }
        }
    }
    Ok(())
}

/// A strip of walls with gaps, so long that a search from one end to the other asks the landmarks, and tiles near its ends.
fn strip() -> impl Strategy<Value = (TileMap, IVec2, Vec<IVec2>)> {
    let sizes = (110u32..200, 2u32..12, 0u32..50, any::<bool>());
    sizes.prop_flat_map(|(length, breadth, fill_percent, is_upright)| {
        let is_blocked = prop::bool::weighted(f64::from(fill_percent) / 100.0);
        let blocked = prop::collection::vec(is_blocked, (length * breadth) as usize);
        let end = |far: i32| (far..far + 6, 0..breadth as i32).prop_map(|(x, y)| IVec2::new(x, y));
        let goals = prop::collection::vec(end(length as i32 - 6), 4);
        (blocked, end(0), goals).prop_map(move |(mut blocked, from, goals)| {
            for tile in goals.iter().chain([&from]) {
                blocked[(tile.y as u32 * length + tile.x as u32) as usize] = false;
            }
            let of_strip = |x, y| blocked[(y * length + x) as usize];
            let map = match is_upright {
                true => TileMap::from_fn(breadth, length, |x, y| of_strip(y, x)),
                false => TileMap::from_fn(length, breadth, of_strip),
            };
            let turn = |tile: IVec2| if is_upright { tile.yx() } else { tile };
            let goals = goals.into_iter().map(turn).collect();
            (map.expect("the sides are small"), turn(from), goals)
        })
    })
}

proptest! {
    #![proptest_config(draws!(400))]

    #[test]
    fn distances_from_landmarks_are_exact_on_small_maps((map, _) in map_and_tiles(14, 0)) {
        compare::<false>(&map)?;
        compare::<true>(&map)?;
    }

    #[test]
    fn searches_that_ask_landmarks_find_shortest_walks((map, from, goals) in strip()) {
        for diagonal in Diagonal::ALL {
            check_prepared(&map, &prepared(&map, diagonal), &mut Search::new(), from, &goals)?;
        }
    }
}

proptest! {
    #![proptest_config(draws!(40))]

    #[test]
    fn distances_from_landmarks_are_exact_across_words((map, _) in map_and_tiles(90, 0)) {
        compare::<false>(&map)?;
        compare::<true>(&map)?;
    }
}
