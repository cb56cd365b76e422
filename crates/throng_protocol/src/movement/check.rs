//! Validation of a player's move: target, distance, and obstacles on the way.
//!
//! The distance is limited by a [`MoveBudget`]: metres that a player may still move. It grows with time at the player's speed up to a
//! limit, and every accepted move is subtracted. So messages that the network delays and delivers together are all accepted, and sending
//! more messages makes no player faster.
//!
//! A step in a direction is a move like any other: its distance is subtracted, and it is refused if the budget is too small. So delayed
//! inputs are applied when they arrive. Duplicate and reordered inputs are refused earlier, by their number. A client that sends more
//! inputs than ticks have passed only uses up its budget.
//!
//! Invariant: over any n ticks, the accepted moves add up to at most [`MoveRules::allowance_m`]: the budget of n ticks, a full budget, and
//! one rounding tolerance. Cost: one line over the map per move.

use glam::Vec2;
use thiserror::Error;
use throng_core::hash::StateHashed;

use super::ground::{Ground, Standing};

/// Limits of a player's moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoveRules {
    /// By what share a player may exceed its speed, because clocks differ. 0.1 is 10 %.
    pub tolerance: f32,
    /// How much time a player can save up without moving, in seconds.
    pub burst_s_max: f32,
    /// What rounding of positions on the wire may add to a move, in metres. Corners are checked without it: a client that stays one quantum
    /// away from them is never refused for them.
    pub rounding_tolerance_m: f32,
}

impl MoveRules {
    /// The longest distance, in metres, of a player with this speed, in metres per second, over a number of seconds, whatever its client sends:
    /// the distance of that time, a full budget, and one rounding tolerance. For 0 seconds it is the distance that can be gained at once;
    /// the budget then has to refill.
    #[must_use]
    pub fn allowance_m(&self, speed_m_s: f32, elapsed_s: f32) -> f32 {
        speed_m_s * (1.0 + self.tolerance) * (elapsed_s + self.burst_s_max)
            + self.rounding_tolerance_m
    }
}

/// How far a player may still move, in metres; at least minus one rounding tolerance.
#[derive(Clone, Copy, Debug, Default, PartialEq, StateHashed)]
pub struct MoveBudget(pub f32);

impl MoveBudget {
    /// The budget after `elapsed_s` seconds at a speed in metres per second.
    #[must_use]
    pub fn refilled(self, elapsed_s: f32, speed_m_s: f32, rules: &MoveRules) -> Self {
        let pace = speed_m_s * (1.0 + rules.tolerance);
        Self((self.0 + pace * elapsed_s).min(pace * rules.burst_s_max))
    }

    /// The budget after a move.
    #[must_use]
    pub fn spent(self, distance_m: f32) -> Self {
        Self(self.0 - distance_m)
    }
}

/// Why a move is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum MoveError {
    /// The target is not finite, or outside the scene or its map.
    #[error("the target is outside the scene")]
    Outside,
    /// The player cannot have moved so far.
    #[error("the target is too far away")]
    TooFar,
    /// The target is on a blocked tile.
    #[error("the target is blocked")]
    Blocked,
    /// A blocked tile or its corner is on the way.
    #[error("an obstacle lies between start and target")]
    PathBlocked,
    /// The object cannot move, or the server moves it.
    #[error("the object is not player-controlled: it has no `Speed`, or the server moves it")]
    NotMovable,
}

/// Checks a move in a scene of `size_m` metres, and returns its distance. Without ground there are no obstacles.
///
/// # Errors
/// The first [`MoveError`] that applies.
pub fn check_move(
    ground: Option<Ground>,
    size_m: Vec2,
    from: Vec2,
    to: Vec2,
    credit: MoveBudget,
    rules: &MoveRules,
) -> Result<f32, MoveError> {
    let distance_m = check_distance(size_m, from, to, credit, rules)?;
    let Some(ground) = ground else {
        return Ok(distance_m);
    };
    let Some(end) = ground.standing_at(to) else {
        return Err(MoveError::Blocked);
    };
    match ground.standing_at(from) {
        Some(start) if is_straight_line_free(ground, start, end) => Ok(distance_m),
        _ => Err(MoveError::PathBlocked),
    }
}

/// The checks that need no ground: whether the target is inside the scene and near enough.
pub(super) fn check_distance(
    size_m: Vec2,
    from: Vec2,
    to: Vec2,
    credit: MoveBudget,
    rules: &MoveRules,
) -> Result<f32, MoveError> {
    // NaN fails every comparison.
    if !(to.cmpge(Vec2::ZERO).all() && to.cmple(size_m).all()) {
        return Err(MoveError::Outside);
    }
    let distance_m = from.distance(to);
    if distance_m > (credit.0 + rules.rounding_tolerance_m).max(0.0) {
        return Err(MoveError::TooFar);
    }
    Ok(distance_m)
}

/// Whether a player can move from one position to another in a straight line.
///
/// The line between the exact positions counts. If it runs along an edge, it also touches the tiles next to that edge; then the line
/// between the tiles decides.
pub(super) fn is_straight_line_free(ground: Ground, start: Standing, end: Standing) -> bool {
    ground.is_line_free(start, end, 0.0) || ground.tiles.is_line_free(start.tile, end.tile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use throng_nav::map::TileMap;

    const RULES: MoveRules = MoveRules {
        tolerance: 0.1,
        burst_s_max: 1.0,
        rounding_tolerance_m: 1.0 / 64.0,
    };
    const FULL: MoveBudget = MoveBudget(100.0);

    fn check(map: &str, from: (f32, f32), to: (f32, f32)) -> Result<f32, MoveError> {
        let tiles = TileMap::from_ascii(map).unwrap();
        let size_m = Vec2::new(tiles.width() as f32, tiles.height() as f32);
        check_move(
            Some(Ground {
                tiles: &tiles,
                tile_m: 1.0,
            }),
            size_m,
            from.into(),
            to.into(),
            FULL,
            &RULES,
        )
    }

    #[test]
    fn walls_and_corners_stop_a_move() {
        assert_eq!(check("...", (0.5, 0.5), (2.5, 0.5)), Ok(2.0));
        assert_eq!(
            check(".@.", (0.5, 0.5), (2.5, 0.5)),
            Err(MoveError::PathBlocked)
        );
        assert_eq!(
            check(".@.", (0.5, 0.5), (1.5, 0.5)),
            Err(MoveError::Blocked)
        );
        assert_eq!(
            check(".@\n..", (0.5, 0.5), (1.5, 1.5)),
            Err(MoveError::PathBlocked)
        );
        assert_eq!(
            check(".@\n..", (0.5, 0.7), (1.4, 1.5)).map(|_| ()),
            Ok(()),
            "past the corner"
        );
    }

    #[test]
    fn a_move_along_the_border_or_a_wall_is_free() {
        assert_eq!(check("...\n@@@", (0.0, 0.0), (3.0, 0.0)), Ok(3.0));
        assert_eq!(check("@@@\n...", (0.0, 1.0), (3.0, 1.0)), Ok(3.0));
        assert_eq!(check("@@@\n...", (0.0, 2.0), (3.0, 2.0)), Ok(3.0));
    }

    #[test]
    fn targets_outside_are_refused_with_and_without_a_map() {
        for bad in [
            (f32::NAN, 0.0),
            (0.5, f32::INFINITY),
            (-0.1, 0.0),
            (3.1, 0.5),
        ] {
            assert_eq!(
                check("...", (0.5, 0.5), bad),
                Err(MoveError::Outside),
                "{bad:?}"
            );
            let free = check_move(None, Vec2::ONE, Vec2::ZERO, bad.into(), FULL, &RULES);
            assert_eq!(free, Err(MoveError::Outside), "{bad:?}");
        }
    }

    #[test]
    fn delayed_moves_that_arrive_together_are_accepted() {
        let mut credit = MoveBudget(0.0).refilled(0.3, 5.0, &RULES);
        for _ in 0..3 {
            let way = check_move(
                None,
                Vec2::splat(10.0),
                Vec2::ZERO,
                Vec2::new(0.5, 0.0),
                credit,
                &RULES,
            );
            credit = credit.spent(way.unwrap());
        }
        let more = check_move(
            None,
            Vec2::splat(10.0),
            Vec2::ZERO,
            Vec2::new(0.5, 0.0),
            credit,
            &RULES,
        );
        assert_eq!(more, Err(MoveError::TooFar));
    }

    #[test]
    fn budget_holds_at_most_the_longest_burst() {
        let pace = 5.0 * (1.0 + RULES.tolerance);
        let of = |elapsed_s| MoveBudget(0.0).refilled(elapsed_s, 5.0, &RULES);
        assert_eq!(of(0.5), MoveBudget(pace * 0.5));
        assert_eq!(of(1.0), MoveBudget(pace));
        assert_eq!(of(100.0), MoveBudget(pace));
        assert_eq!(of(100.0).refilled(7.0, 5.0, &RULES), MoveBudget(pace));
    }

    #[test]
    fn rounding_tolerance_is_granted_once_not_per_move() {
        let (mut credit, mut walked_m) = (MoveBudget(0.0), 0.0);
        let step = Vec2::new(RULES.rounding_tolerance_m / 2.0, 0.0);
        for _ in 0..100 {
            if let Ok(way_m) = check_move(None, Vec2::ONE, Vec2::ZERO, step, credit, &RULES) {
                (credit, walked_m) = (credit.spent(way_m), walked_m + way_m);
            }
        }
        assert_eq!(walked_m, RULES.rounding_tolerance_m);
    }

    proptest! {
        #![proptest_config(draws!())]

        /// However moves are split, the distance never exceeds speed, tolerance, a full budget and one rounding tolerance.
        #[test]
        fn move_sequence_never_exceeds_the_speed_limit(
            moves in prop::collection::vec((0u32..30, 0.0f32..2.0), 1..200), speed in 0.0f32..12.0,
        ) {
            let (mut credit, mut walked, mut ticks) = (MoveBudget::default(), 0.0f32, 0);
            for (wait_ticks, way) in moves {
                credit = credit.refilled(wait_ticks as f32 * 0.05, speed, &RULES);
                ticks += wait_ticks;
                let to = Vec2::new(way, 0.0);
                if let Ok(distance) = check_move(None, Vec2::splat(9.0), Vec2::ZERO, to, credit, &RULES) {
                    credit = credit.spent(distance);
                    walked += distance;
                }
                prop_assert!(credit.0 >= -RULES.rounding_tolerance_m - 1e-4);
                prop_assert!(walked <= speed * 1.1 * (ticks as f32 * 0.05) + RULES.rounding_tolerance_m + 1e-2);
            }
        }
    }
}
