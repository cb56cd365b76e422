//! Landmarks against brute force: all distances from them, and the searches that use them.

use glam::{IVec2, Vec2Swizzles as _};
use proptest::prelude::*;

use super::{check_prepared, lengths_from, map_and_tiles, prepared, to_ascii};
use crate::map::TileMap;
use crate::prepared::{JumpGraph, SignPlanes, SignScanner};
use crate::{Diagonal, PathSearch};
use throng_core::parallel::InlineExecutor;

/// Compares the distances of all jump points, and those of all tiles.
fn compare<const CUT: bool>(map: &TileMap) -> Result<(), TestCaseError> {
    let diagonal = if CUT { Diagonal::Cut } else { Diagonal::NoCut };
    let planes = &SignPlanes::build(map, diagonal);
    let graph = JumpGraph::build(map, diagonal, planes, usize::MAX, InlineExecutor)
        .expect("there is no limit");
    let (points, landmarks) = (&graph.points, &graph.landmarks);
    let tiles = map.height() as i32 * map.width() as i32;
    let tiles =
        (0..tiles).map(|nth| IVec2::new(nth % map.width() as i32, nth / map.width() as i32));
    for number in 0..points.len() {
        prop_assert_eq!(points.number(points.tile(number)), Some(number));
    }
    prop_assert_eq!(
        landmarks.numbers.len(),
        if points.len() == 0 { 0 } else { 4 }
    );
    for (nth, &number) in landmarks.numbers.iter().enumerate() {
        let landmark = points.tile(number);
        let lengths = lengths_from(map, diagonal, landmark, [0, 169, 239]);
        for (tile, length) in tiles.clone().zip(lengths) {
            let expected = length.unwrap_or(u32::MAX);
            let case = || format!("{diagonal:?} {landmark}→{tile}\n{}", to_ascii(map));
            if let Some(number) = points.number(tile) {
                let distances = landmarks.distances[number as usize];
                prop_assert_eq!(distances[nth], expected, "{}", case());
            }
            if map.is_free(tile) {
                let walks = SignScanner { tiles: map, planes };
                let distances = landmarks.of_tile::<CUT>(&walks, points, tile);
                prop_assert_eq!(
                    distances.map_or(u32::MAX, |of| of[nth]),
                    expected,
                    "{}",
                    case()
                );
            }
        }
    }
    Ok(())
}

/// A long strip divided by walls with one gap each, with randomly blocked tiles, and tiles near its ends.
fn strip() -> impl Strategy<Value = (TileMap, IVec2, Vec<IVec2>)> {
    let sizes = (60u32..160, 3u32..12, 3u32..20, 0u32..15, any::<bool>());
    sizes.prop_flat_map(|(length, breadth, apart, fill_percent, is_upright)| {
        let is_blocked = prop::bool::weighted(f64::from(fill_percent) / 100.0);
        let blocked = prop::collection::vec(is_blocked, (length * breadth) as usize);
        let gaps = prop::collection::vec(0..breadth, length as usize);
        let end = |far: i32| (far..far + 3, 0..breadth as i32).prop_map(|(x, y)| IVec2::new(x, y));
        let goals = prop::collection::vec(end(length as i32 - 3), 4);
        (blocked, gaps, end(0), goals).prop_map(move |(mut blocked, gaps, from, goals)| {
            for x in (3..length - 3).step_by(apart as usize) {
                for y in 0..breadth {
                    blocked[(y * length + x) as usize] = y != gaps[x as usize];
                }
            }
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
    fn landmark_distances_are_exact_on_small_maps((map, _) in map_and_tiles(14, 0)) {
        compare::<false>(&map)?;
        compare::<true>(&map)?;
    }

    #[test]
    fn searches_with_landmarks_find_shortest_paths((map, from, goals) in strip()) {
        for diagonal in Diagonal::ALL {
            check_prepared(&map, &prepared(&map, diagonal), &mut PathSearch::new(), from, &goals)?;
        }
    }
}

proptest! {
    #![proptest_config(draws!(40))]

    #[test]
    fn landmark_distances_are_exact_across_words((map, _) in map_and_tiles(90, 0)) {
        compare::<false>(&map)?;
        compare::<true>(&map)?;
    }
}
