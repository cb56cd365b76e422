//! One motion of a player: the code with which the server moves an object, and with which the client predicts it.
//!
//! ```text
//! PlayerMotion ─▶ To: a position │ Towards: a step of one tick, along walls ─▶ check_move ─▶ new position and distance
//! ```
//!
//! Both ends compute the same position bit for bit, given the same map, the same speed and the tick of
//! [`wire_tick_s`](crate::wire::wire_tick_s). Directions come from a table that is computed at compile time; the rest is sums, products and
//! square roots, which IEEE 754 rounds the same everywhere.
//!
//! A step in a direction ends at the border of its scene, and slides along obstacles: if the whole step is not free, it is tried along one
//! axis, the longer one first. So it ends up to one step length before a wall, never inside it.
//!
//! Invariants: a step is never longer than [`PlayerStep::step_m`], except for rounding; [`check_move`] accepts its end. Cost: up to three
//! lines over a few tiles.

use glam::Vec2;
use throng_core::motion::PlayerMotion;

use super::check::{
    MoveBudget, MoveError, MoveRules, check_distance, check_move, is_straight_line_free,
};
use super::ground::Ground;

/// The parameters of a player's motion.
#[derive(Clone, Copy, Debug)]
pub struct PlayerStep<'a> {
    /// The map of its scene. Without a map there are no obstacles.
    pub ground: Option<Ground<'a>>,
    /// The scene's width and height, in metres.
    pub size_m: Vec2,
    /// Length of a step in a direction, in metres: [`step_m`] of its speed.
    pub step_m: f32,
}

impl PlayerStep<'_> {
    /// The end of a motion that starts at `from`, and its distance in metres.
    ///
    /// # Errors
    /// The first [`MoveError`] that applies; then the object does not move.
    pub fn walk(
        &self,
        from: Vec2,
        motion: PlayerMotion,
        credit: MoveBudget,
        rules: &MoveRules,
    ) -> Result<(Vec2, f32), MoveError> {
        match motion {
            PlayerMotion::Stand | PlayerMotion::Turn => Ok((from, 0.0)),
            PlayerMotion::To(to) => {
                let way_m = check_move(self.ground, self.size_m, from, to, credit, rules)?;
                Ok((to, way_m))
            }
            PlayerMotion::Towards(direction) => match self.free_end(from, direction) {
                // The way is free.
                Some(to) => {
                    let way_m = check_distance(self.size_m, from, to, credit, rules)?;
                    Ok((to, way_m))
                }
                None => {
                    let way_m = check_move(self.ground, self.size_m, from, from, credit, rules)?;
                    Ok((from, way_m))
                }
            },
        }
    }

    /// The end of a step in a direction that starts at `from`; `from` itself if every way is blocked.
    #[must_use]
    pub fn towards(&self, from: Vec2, direction: u8) -> Vec2 {
        self.free_end(from, direction).unwrap_or(from)
    }

    /// The same; `None` if every way is blocked.
    fn free_end(&self, from: Vec2, direction: u8) -> Option<Vec2> {
        let way = direction_of(direction) * self.step_m;
        let (along_x, along_y) = (Vec2::new(way.x, 0.0), Vec2::new(0.0, way.y));
        let ways = if way.x.abs() >= way.y.abs() {
            [way, along_x, along_y]
        } else {
            [way, along_y, along_x]
        };
        let ends = ways.map(|way| (from + way).clamp(Vec2::ZERO, self.size_m.max(Vec2::ZERO)));
        let Some(ground) = self.ground else {
            return Some(ends[0]);
        };
        let start = ground.standing_at(from)?;
        let is_free = |to: &Vec2| {
            let end = ground.standing_at(*to);
            end.is_some_and(|end| is_straight_line_free(ground, start, end))
        };
        ends.into_iter().find(is_free)
    }
}

/// The distance of a tick at a speed, in metres.
#[must_use]
pub fn step_m(speed_m_s: f32, tick_s: f32) -> f32 {
    speed_m_s * tick_s
}

/// The unit vector of a direction, in 256ths of a turn: 0 is +x, 64 is +y. The nearest `f32` of cosine and sine.
#[must_use]
pub fn direction_of(direction: u8) -> Vec2 {
    DIRECTIONS[usize::from(direction)]
}

/// Computed at compile time, so the result does not depend on the platform's sine.
static DIRECTIONS: [Vec2; 256] = directions();

const fn directions() -> [Vec2; 256] {
    let mut all = [Vec2::ZERO; 256];
    let mut nth = 0;
    while nth < 256 {
        // An eighth of a turn is enough; the rest is mirrored.
        let in_quarter = nth % 64;
        let (near, is_mirrored) = if in_quarter <= 32 {
            (in_quarter, false)
        } else {
            (64 - in_quarter, true)
        };
        let angle = near as f64 * (core::f64::consts::PI / 128.0);
        let (sine, cosine) = (series(angle, angle, 1), series(1.0, angle, 0));
        let (x, y) = if is_mirrored {
            (sine as f32, cosine as f32)
        } else {
            (cosine as f32, sine as f32)
        };
        all[nth] = match nth / 64 {
            0 => Vec2::new(x, y),
            1 => Vec2::new(-y, x),
            2 => Vec2::new(-x, -y),
            _ => Vec2::new(y, -x),
        };
        nth += 1;
    }
    all
}

/// The Taylor series of sine or cosine, from its first term and the power of that term. Up to an eighth of a turn, the omitted terms are
/// below 2⁻⁶⁰.
const fn series(first: f64, angle: f64, power: usize) -> f64 {
    let (mut term, mut sum, mut power) = (first, first, power);
    while power < 19 {
        term = -term * angle * angle / ((power + 1) * (power + 2)) as f64;
        sum += term;
        power += 2;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use throng_nav::map::TileMap;

    const ANY: MoveRules = MoveRules {
        tolerance: 0.0,
        burst_s_max: 0.0,
        rounding_tolerance_m: 0.0,
    };

    fn on(tiles: &TileMap, step_m: f32) -> PlayerStep<'_> {
        let ground = Ground { tiles, tile_m: 0.5 };
        let size_m = Vec2::new(tiles.width() as f32, tiles.height() as f32) * 0.5;
        PlayerStep {
            ground: Some(ground),
            size_m,
            step_m,
        }
    }

    #[test]
    fn directions_are_nearest_to_cosine_and_sine_and_symmetric() {
        for nth in 0..=255_u8 {
            let angle = f64::from(nth) * core::f64::consts::TAU / 256.0;
            let (exact, found) = ([angle.cos(), angle.sin()], direction_of(nth).to_array());
            for (exact, found) in exact.into_iter().zip(found) {
                let off = (f64::from(found) - exact).abs();
                assert!(off <= f64::from(f32::EPSILON) / 4.0 + 1e-15, "{nth}: {off}");
            }
            assert_eq!(-direction_of(nth), direction_of(nth.wrapping_add(128)));
            let heading = throng_core::spatial::Heading::from_direction(direction_of(nth));
            assert_eq!(heading, Some(throng_core::spatial::Heading(nth)));
        }
        assert_eq!(direction_of(64), Vec2::Y);
    }

    #[test]
    fn step_slides_along_walls_and_stops_in_corners_and_at_borders() {
        let tiles = TileMap::from_ascii("....\n..@@\n....").unwrap();
        let walk = on(&tiles, 0.3);
        let from = Vec2::new(0.9, 0.9);
        // Into the wall to the right and down; down is free.
        let slid = walk.towards(from, 16);
        assert!(slid.x == from.x && slid.y > from.y, "{slid}");
        assert_eq!(walk.towards(from, 0), from, "straight into it");
        let corner = Vec2::new(0.1, 0.1);
        assert_eq!(walk.towards(corner, 160), Vec2::ZERO);
        assert_eq!(walk.towards(Vec2::ZERO, 160), Vec2::ZERO);
        let free = PlayerStep {
            ground: None,
            ..walk
        };
        assert_eq!(free.towards(Vec2::new(1.9, 0.7), 0), Vec2::new(2.0, 0.7));
    }

    #[test]
    fn turn_moves_nothing_and_step_over_budget_is_refused() {
        let tiles = TileMap::new(8, 8, false).unwrap();
        let walk = on(&tiles, 0.3);
        let at = Vec2::ONE;
        let none = MoveBudget::default();
        let motions = [PlayerMotion::Turn, PlayerMotion::Towards(9)];
        let [turn, step] = motions.map(|motion| walk.walk(at, motion, none, &ANY));
        assert_eq!(turn, Ok((at, 0.0)));
        assert_eq!(step, Err(MoveError::TooFar));
    }

    proptest! {
        #![proptest_config(draws!())]

        /// From any free position, a step is not longer than allowed, ends at a free position, and is a move that the client could have
        /// requested as a position.
        #[test]
        fn step_is_always_a_valid_move(
            blocked in prop::collection::vec(prop::bool::weighted(0.3), 144),
            at in prop::array::uniform2(0.0f32..6.0),
            directions in prop::collection::vec(any::<u8>(), 1..60),
            step_m in prop_oneof![0.0f32..0.5, 0.5f32..4.0],
        ) {
            let tiles = TileMap::from_fn(12, 12, |x, y| blocked[(y * 12 + x) as usize]).unwrap();
            let walk = on(&tiles, step_m);
            let mut from = Vec2::from(at);
            prop_assume!(walk.ground.is_some_and(|ground| ground.is_free_at(from)));
            for direction in directions {
                let to = walk.towards(from, direction);
                prop_assert!(from.distance(to) <= step_m * 1.00001 + 1e-6);
                let unlimited = MoveBudget(f32::INFINITY);
                let moved = check_move(walk.ground, walk.size_m, from, to, unlimited, &ANY);
                prop_assert!(moved.is_ok(), "{:?} from {} to {}", moved, from, to);
                let again = walk.walk(from, PlayerMotion::Towards(direction), unlimited, &ANY);
                prop_assert_eq!(again, Ok((to, from.distance(to))));
                from = to;
            }
        }
    }
}
