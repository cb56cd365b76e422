//! One step of a walker along its waypoints.
//!
//! ```text
//! position ─▶ next waypoint ─▶ reached? ─▶ the farthest visible waypoint becomes the next ─▶ …   until the distance is used up
//! ```
//! Smoothing is lazy: a walker looks beyond a waypoint when it reaches it. This spreads the cost over the walk and spends nothing on
//! paths that are abandoned. A walker that does not start at the centre of its first tile walks straight to the next waypoint if the
//! line is free, otherwise through the centre.
//!
//! Invariants: no step touches a blocked tile, also right after an edit. The distance walked is never longer than requested.
//! Cost: a few tiles per step, and line-of-sight tests at waypoints.

use glam::{IVec2, Vec2};

use super::Ground;
use crate::nav::farthest_visible;

/// The state of a walker after a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WalkStep {
    /// Its position, in metres.
    pub position: Vec2,
    /// The index of its next waypoint.
    pub next: usize,
    /// The last direction of length 1; zero if it did not move.
    pub direction: Vec2,
    /// The status of the path.
    pub end: WalkStatus,
}

/// The status of a path after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkStatus {
    /// The walker has not reached the end.
    Going,
    /// The walker is at the last waypoint.
    Arrived,
    /// The map blocks the path; the walker stands before the obstacle.
    Blocked,
}

/// Moves `distance_m` metres along waypoints, towards `next` first.
///
/// At each waypoint up to `sight_tests_max` further ones are tested for a straight line. Without waypoints the status is arrived.
#[must_use]
pub fn advance(
    ground: Ground,
    position: Vec2,
    waypoints: &[IVec2],
    next: usize,
    distance_m: f32,
    sight_tests_max: usize,
) -> WalkStep {
    let mut walk = WalkStep {
        position,
        next,
        direction: Vec2::ZERO,
        end: WalkStatus::Arrived,
    };
    if next == 0 {
        walk.next = first_leg(ground, position, waypoints, sight_tests_max);
    }
    let mut left = distance_m;
    while let Some(&waypoint) = waypoints.get(walk.next) {
        let target = ground.centre_of(waypoint);
        let way = target - walk.position;
        let length = way.length();
        let is_reached = length <= left;
        let to = if is_reached {
            target
        } else {
            walk.position + way * (left / length)
        };
        if !ground.is_step_free(walk.position, to) {
            walk.end = WalkStatus::Blocked;
            return walk;
        }
        if to != walk.position {
            walk.direction = way / length;
        }
        walk.position = to;
        if !is_reached {
            walk.end = WalkStatus::Going;
            return walk;
        }
        left -= length;
        match farthest_visible_near(
            ground,
            waypoint,
            &waypoints[walk.next + 1..],
            sight_tests_max,
        ) {
            Some(skipped) => walk.next += 1 + skipped,
            None => break,
        }
    }
    walk
}

/// The first waypoint to go to: waypoint 0 is the walker's own tile, whose centre need not be on the path.
fn first_leg(ground: Ground, position: Vec2, waypoints: &[IVec2], sight_tests_max: usize) -> usize {
    let [own, ahead @ ..] = waypoints else {
        return 0;
    };
    if position == ground.centre_of(*own) || ground.tile_at(position) != *own {
        return 0;
    }
    let in_sight = |next: usize| {
        let target = ground.centre_of(waypoints[next]);
        ground.is_segment_free(position, target, ground.rounding_tiles())
    };
    let farthest = farthest_visible_near(ground, *own, ahead, sight_tests_max)
        .map_or(0, |skipped| 1 + skipped);
    [farthest, 1]
        .into_iter()
        .find(|&next| next < waypoints.len() && next > 0 && in_sight(next))
        .unwrap_or(0)
}

/// As [`farthest_visible`], limited to the distance at which a line can be followed on this map.
fn farthest_visible_near(
    ground: Ground,
    from: IVec2,
    ahead: &[IVec2],
    sight_tests_max: usize,
) -> Option<usize> {
    let reach = ground.sight_tiles_max();
    let is_near = |waypoint: &&IVec2| (**waypoint - from).as_dvec2().length() <= reach;
    let near = ahead
        .iter()
        .skip(1)
        .take(sight_tests_max)
        .take_while(is_near)
        .count();
    farthest_visible(ground.tiles, from, ahead, near)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{TileEdit, TileMap, TileRect};
    use crate::nav::{Algorithm, NavMap, PathQuery, PathSearch, SearchOutcome, smooth_path};
    use proptest::prelude::*;

    const LOOKS: usize = 8;

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
    fn walk_on_open_ground_is_one_straight_line() {
        let tiles = TileMap::new(40, 20, false).unwrap();
        let ground = Ground {
            tiles: &tiles,
            tile_m: 0.5,
        };
        let waypoints = path(&tiles, IVec2::new(2, 2), IVec2::new(32, 12));
        let walk = advance(ground, Vec2::new(1.25, 1.25), &waypoints, 0, 1.0, LOOKS);
        let expected = Vec2::new(1.25, 1.25) + Vec2::new(3.0, 1.0).normalize();
        assert!(walk.position.distance(expected) < 1e-5, "{walk:?}");
        assert_eq!(
            (walk.next, walk.end),
            (waypoints.len() - 1, WalkStatus::Going)
        );
        let end = advance(ground, walk.position, &waypoints, walk.next, 100.0, LOOKS);
        assert_eq!(
            (end.position, end.end),
            (ground.centre_of(IVec2::new(32, 12)), WalkStatus::Arrived)
        );
    }

    #[test]
    fn off_centre_walker_goes_straight_if_free_else_via_the_centre() {
        let tiles = TileMap::from_ascii("....\n.@..\n....").unwrap();
        let ground = Ground {
            tiles: &tiles,
            tile_m: 1.0,
        };
        let straight = [IVec2::new(0, 0), IVec2::new(3, 0)];
        let beside = Vec2::new(0.2, 0.3);
        assert_eq!(advance(ground, beside, &straight, 0, 0.1, LOOKS).next, 1);
        let corner = Vec2::new(0.9, 0.95);
        let walk = advance(ground, corner, &straight, 0, 0.1, LOOKS);
        assert_eq!(walk.next, 1, "along the wall");
        let walk = advance(ground, Vec2::new(0.5, 0.0), &straight, 0, 0.1, LOOKS);
        assert_eq!(
            (walk.next, walk.end),
            (0, WalkStatus::Going),
            "its way would touch what lies outside"
        );
        assert_eq!(walk.direction, Vec2::Y);
    }

    #[test]
    fn walker_stops_before_a_newly_blocked_tile() {
        let mut tiles = TileMap::new(8, 1, false).unwrap();
        let waypoints = path(&tiles, IVec2::ZERO, IVec2::new(7, 0));
        tiles
            .edit(TileRect::new(3, 0, 1, 1), &TileEdit::Block)
            .unwrap();
        let ground = Ground {
            tiles: &tiles,
            tile_m: 1.0,
        };
        let mut walk = advance(ground, Vec2::splat(0.5), &waypoints, 0, 0.7, LOOKS);
        while walk.end == WalkStatus::Going {
            walk = advance(ground, walk.position, &waypoints, walk.next, 0.7, LOOKS);
        }
        assert_eq!(walk.end, WalkStatus::Blocked);
        assert!((2.3..3.0).contains(&walk.position.x), "{walk:?}");
    }

    #[test]
    fn empty_path_zero_distance_and_zero_sight_tests_are_valid() {
        let tiles = TileMap::new(8, 8, false).unwrap();
        let ground = Ground {
            tiles: &tiles,
            tile_m: 1.0,
        };
        assert_eq!(
            advance(ground, Vec2::ONE, &[], 0, 1.0, LOOKS).end,
            WalkStatus::Arrived
        );
        let way = [IVec2::ZERO, IVec2::new(2, 2), IVec2::new(7, 2)];
        let still = advance(ground, Vec2::splat(0.5), &way, 0, 0.0, 0);
        assert_eq!(
            (still.position, still.end, still.direction),
            (Vec2::splat(0.5), WalkStatus::Going, Vec2::ZERO)
        );
        assert_eq!(still.next, 1);
        let single = advance(ground, Vec2::splat(0.5), &way[..1], 0, 0.0, LOOKS);
        assert_eq!(single.end, WalkStatus::Arrived);
    }

    proptest! {
        #![proptest_config(draws!())]

        /// The oracle is the path smoothed at once: same length, whatever the length of the steps.
        #[test]
        fn stepwise_walk_matches_the_smoothed_path_on_free_tiles(
            blocked in prop::collection::vec(prop::bool::weighted(0.25), 400),
            (a, b) in (0i32..400, 0i32..400),
            step_m in 0.05f32..1.5,
            tile_m in prop::sample::select(vec![0.5f32, 0.3, 1.0]),
        ) {
            let tiles = TileMap::from_fn(20, 20, |x, y| blocked[(y * 20 + x) as usize]).unwrap();
            let ground = Ground { tiles: &tiles, tile_m };
            let (from, to) = (IVec2::new(a % 20, a / 20), IVec2::new(b % 20, b / 20));
            prop_assume!(tiles.are_connected(from, to));
            let waypoints = path(&tiles, from, to);
            let mut smoothed = Vec::new();
            smooth_path(&tiles, &waypoints, &mut smoothed);
            let length: f32 = smoothed.windows(2).map(|w| (w[1] - w[0]).as_vec2().length() * tile_m).sum();
            let (mut position, mut next, mut steps) = (ground.centre_of(from), 0, 0);
            loop {
                let walk = advance(ground, position, &waypoints, next, step_m, usize::MAX);
                prop_assert!(walk.end != WalkStatus::Blocked);
                prop_assert!(walk.position.distance(position) <= step_m * 1.0001 + 1e-5);
                prop_assert!(ground.is_free_at(walk.position));
                (position, next, steps) = (walk.position, walk.next, steps + 1);
                if walk.end == WalkStatus::Arrived {
                    break;
                }
                prop_assert!(steps as f32 * step_m < length + 1.0, "it should have arrived");
            }
            prop_assert_eq!(position, ground.centre_of(to));
            prop_assert!(((steps as f32 - 1.0) * step_m) <= length + 1e-3);
            prop_assert!(steps as f32 * step_m >= length - 1e-3);
        }

        /// From any position on the first tile the walk stays on free tiles, too.
        #[test]
        fn off_centre_walk_arrives(
            blocked in prop::collection::vec(prop::bool::weighted(0.3), 144),
            (a, b) in (0i32..144, 0i32..144),
            (x, y) in (0.0f32..1.0, 0.0f32..1.0),
        ) {
            let tiles = TileMap::from_fn(12, 12, |x, y| blocked[(y * 12 + x) as usize]).unwrap();
            let ground = Ground { tiles: &tiles, tile_m: 0.5 };
            let (from, to) = (IVec2::new(a % 12, a / 12), IVec2::new(b % 12, b / 12));
            prop_assume!(tiles.are_connected(from, to));
            let waypoints = path(&tiles, from, to);
            let mut walk = WalkStep {
                position: (from.as_vec2() + Vec2::new(x, y)) * 0.5,
                next: 0,
                direction: Vec2::ZERO,
                end: WalkStatus::Going,
            };
            for _ in 0..400 {
                walk = advance(ground, walk.position, &waypoints, walk.next, 0.2, LOOKS);
                prop_assert!(ground.is_free_at(walk.position));
                if walk.end != WalkStatus::Going {
                    break;
                }
            }
            prop_assert_eq!((walk.end, walk.position), (WalkStatus::Arrived, ground.centre_of(to)));
        }
    }
}
