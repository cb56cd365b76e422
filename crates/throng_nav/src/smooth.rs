//! Shorter paths in any direction: straight lines between waypoints that see each other, and the paths that an edit crosses.
//!
//! A shortest path on tiles bends at octile angles; a walker that may move in any direction cuts those bends. Testing
//! lines costs about a fifth of a search, so a walker does it waypoint by waypoint as it moves, and saves most of it
//! for paths that are dropped half-way; [`smooth_path`] does all at once, for tools.
//!
//! Lines connect tile centres, and every tile that a line touches must be free, corners included
//! ([`is_line_free`](crate::map::TileMap::is_line_free)): the movement rule without corner cutting.

use glam::{I64Vec2, IVec2};

use crate::map::{TileMap, TileRect};

/// The last of the waypoints ahead that can be reached in a straight line from a tile: an index into `ahead`.
///
/// `ahead` are the remaining waypoints; the first is assumed to be visible, as it is on a path that was just
/// found. Later waypoints are tried one by one until the first that is not visible, at most `sight_tests_max` of them.
/// `None` if there are no waypoints ahead. Cost: the tiles along the tested lines.
pub fn farthest_visible(
    map: &TileMap,
    from: IVec2,
    ahead: &[IVec2],
    sight_tests_max: usize,
) -> Option<usize> {
    let later = ahead.get(1..)?;
    Some(
        later
            .iter()
            .take(sight_tests_max)
            .take_while(|&&waypoint| map.is_line_free(from, waypoint))
            .count(),
    )
}

/// The remaining waypoints when a walker tests the lines ahead at each of them, both ends included.
///
/// Writes into `smoothed`, which is cleared first. The result is not the shortest path in any direction, but it is
/// never longer than the path, and every line of it is free.
pub fn smooth_path(map: &TileMap, waypoints: &[IVec2], smoothed: &mut Vec<IVec2>) {
    smoothed.clear();
    let mut at = 0;
    while let Some(&from) = waypoints.get(at) {
        smoothed.push(from);
        match farthest_visible(map, from, &waypoints[at + 1..], usize::MAX) {
            Some(skipped) => at += 1 + skipped,
            None => break,
        }
    }
}

/// Whether a path of straight lines between waypoints touches a rectangle of tiles.
///
/// Touching is defined as in [`is_line_free`](crate::map::TileMap::is_line_free): a line through a corner touches
/// the four tiles around. After an edit this finds the walkers whose remaining path may be blocked; start the list
/// with the walker's tile. An empty rectangle touches nothing. Cost: O(waypoints).
pub fn path_crosses(waypoints: &[IVec2], rect: TileRect) -> bool {
    match waypoints {
        [] => false,
        &[only] => segment_touches(only, only, rect),
        _ => waypoints
            .windows(2)
            .any(|ends| segment_touches(ends[0], ends[1], rect)),
    }
}

/// Whether the closed segment between two tile centres and the closed rectangle share a point.
///
/// In half tiles, so that centres are whole numbers. Two convex shapes are separate exactly if one of the directions
/// perpendicular to their sides separates them: the axes, and the normal of the segment.
fn segment_touches(a: IVec2, b: IVec2, rect: TileRect) -> bool {
    if rect.width == 0 || rect.height == 0 {
        return false;
    }
    let (a, b) = (a.as_i64vec2() * 2 + 1, b.as_i64vec2() * 2 + 1);
    let low = I64Vec2::new(i64::from(rect.x), i64::from(rect.y)) * 2;
    let high = low + I64Vec2::new(i64::from(rect.width), i64::from(rect.height)) * 2;
    if a.min(b).cmpgt(high).any() || a.max(b).cmplt(low).any() {
        return false;
    }
    let way = b - a;
    let side_of = |x: i64, y: i64| (way.x * (y - a.y) - way.y * (x - a.x)).signum();
    let sides = [
        side_of(low.x, low.y),
        side_of(high.x, low.y),
        side_of(low.x, high.y),
        side_of(high.x, high.y),
    ];
    !(sides == [1; 4] || sides == [-1; 4])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Algorithm, NavMap, PathQuery, PathSearch, SearchOutcome};
    use proptest::prelude::*;

    fn path(map: &TileMap, from: IVec2, to: IVec2) -> Vec<IVec2> {
        let mut waypoints = Vec::new();
        let outcome = PathSearch::new().find(
            map,
            &NavMap::default(),
            Algorithm::default(),
            PathQuery::new(from, to),
            &mut waypoints,
        );
        assert!(matches!(outcome, SearchOutcome::Found(_)), "{outcome:?}");
        waypoints
    }

    #[test]
    fn farthest_visible_skips_bends_but_not_walls() {
        let map = TileMap::from_ascii("........\n........\n...@....\n...@....\n").unwrap();
        let open = path(&map, IVec2::ZERO, IVec2::new(7, 1));
        assert_eq!(open.len(), 3);
        assert_eq!(farthest_visible(&map, open[0], &open[1..], 8), Some(1));
        assert_eq!(farthest_visible(&map, open[0], &open[1..], 0), Some(0));
        let round = path(&map, IVec2::new(2, 3), IVec2::new(4, 3));
        assert_eq!(farthest_visible(&map, round[0], &round[1..], 8), Some(0));
        assert_eq!(farthest_visible(&map, round[0], &[], 8), None);
    }

    #[test]
    fn an_empty_path_or_rectangle_touches_nothing() {
        let rect = |width, height| TileRect {
            x: 1,
            y: 1,
            width,
            height,
        };
        let walk = [IVec2::ZERO, IVec2::splat(5)];
        assert!(path_crosses(&walk, rect(1, 1)));
        assert!(!path_crosses(&walk, rect(0, 3)));
        assert!(!path_crosses(&walk, rect(3, 0)));
        assert!(!path_crosses(&[], rect(9, 9)));
        assert!(path_crosses(&[IVec2::splat(1)], rect(1, 1)));
        assert!(!path_crosses(&[IVec2::splat(3)], rect(2, 2)));
    }

    fn length(waypoints: &[IVec2]) -> f64 {
        waypoints
            .windows(2)
            .map(|ends| (ends[1] - ends[0]).as_dvec2().length())
            .sum()
    }

    proptest! {
        #![proptest_config(draws!())]

        /// The oracle: with only the rectangle blocked, the lines of the path are free or they are not.
        #[test]
        fn path_crosses_a_rectangle_if_blocking_it_breaks_a_line(
            walk in prop::collection::vec((0i32..12, 0i32..12), 2..5),
            (x, y, width, height) in (0u32..12, 0u32..12, 1u32..5, 1u32..5),
        ) {
            let walk: Vec<IVec2> = walk.into_iter().map(|(x, y)| IVec2::new(x, y)).collect();
            let rect = TileRect { x, y, width, height };
            let map = TileMap::from_fn(12, 12, |x, y| rect.contains(IVec2::new(x as i32, y as i32))).unwrap();
            let is_broken = walk.windows(2).any(|ends| !map.is_line_free(ends[0], ends[1]));
            prop_assert_eq!(path_crosses(&walk, rect), is_broken);
        }

        #[test]
        fn smoothed_path_is_free_and_not_longer(
            (width, height) in (1u32..16, 1u32..16),
            blocked in prop::collection::vec(prop::bool::weighted(0.25), 256),
            (a, b) in (any::<u32>(), any::<u32>()),
        ) {
            let map = TileMap::from_fn(width, height, |x, y| blocked[(y * 16 + x) as usize]).unwrap();
            let tile = |n: u32| IVec2::new((n % width) as i32, (n / width % height) as i32);
            prop_assume!(map.are_connected(tile(a), tile(b)));
            let waypoints = path(&map, tile(a), tile(b));
            let mut smoothed = Vec::new();
            smooth_path(&map, &waypoints, &mut smoothed);
            prop_assert_eq!((smoothed.first(), smoothed.last()), (waypoints.first(), waypoints.last()));
            prop_assert!(smoothed.windows(2).all(|ends| map.is_line_free(ends[0], ends[1])));
            prop_assert!(length(&smoothed) <= length(&waypoints) + 1e-9);
        }
    }
}
