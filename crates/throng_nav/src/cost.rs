//! Exact path costs: the numbers of straight and diagonal steps, in one integer that orders as the true length.
//!
//! A straight step costs 1 tile, a diagonal one √2 tiles. With floats the order of equal paths would depend on the
//! order of additions, so a cost is the integer `straight·q + diagonal·p`, where p/q is a convergent of √2.
//! No fraction with a denominator below the next convergent's is nearer to √2 than p/q, hence two costs compare as
//! the true lengths do while their diagonal counts differ by less than q. Here q is above the number of tiles of the
//! largest map (2²⁸), so on every map:
//!
//! - order is exact, and two costs are equal only if both counts are;
//! - the counts can be computed from the cost ([`PathCost::steps`]);
//! - nothing overflows: 2²⁸ diagonal steps and the largest estimate stay below 2⁵⁹.

use std::ops::Add;

use glam::IVec2;

/// The cost of a straight step: q of the convergent p/q of √2 (p² − 2q² = 1).
const STRAIGHT: u64 = 543_339_720;
/// The cost of a diagonal step: p of the same convergent.
const DIAGONAL: u64 = 768_398_401;

const _: () =
    assert!(DIAGONAL as u128 * DIAGONAL as u128 == 2 * STRAIGHT as u128 * STRAIGHT as u128 + 1);
const _: () = assert!(
    STRAIGHT > 1 << 28,
    "counts of the largest map must stay below the denominator"
);

/// The step in coarse units: a fraction below √2, so that no length is overestimated, and small enough for 32 bits.
const COARSE_STRAIGHT: u32 = 169;
const COARSE_DIAGONAL: u32 = 239;

const _: () = assert!(PathCost::of_coarse(COARSE_DIAGONAL).0 <= DIAGONAL);

/// The length of a path in exact integer units; compares as the true lengths do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathCost(u64);

/// The numbers of straight and diagonal steps of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Steps {
    /// Steps to one of the four straight neighbours, of length 1 tile.
    pub straight: u32,
    /// Steps to one of the four diagonal neighbours, of length √2 tiles.
    pub diagonal: u32,
}

impl PathCost {
    /// The cost of an empty path.
    pub const ZERO: PathCost = PathCost(0);
    /// One step to a straight neighbour.
    pub const STRAIGHT: PathCost = PathCost(STRAIGHT);
    /// One step to a diagonal neighbour.
    pub const DIAGONAL: PathCost = PathCost(DIAGONAL);
    /// Above the cost of every path on every map.
    pub const MAX: PathCost = PathCost(u64::MAX / 2);

    /// The minimum cost of a length in [coarse units](coarse_octile).
    #[inline]
    pub(super) const fn of_coarse(units: u32) -> PathCost {
        PathCost(units as u64 * (STRAIGHT / COARSE_STRAIGHT as u64))
    }

    /// The cost of `count` straight steps.
    #[inline]
    pub const fn straight(count: u32) -> PathCost {
        PathCost(count as u64 * STRAIGHT)
    }

    /// The cost of `count` diagonal steps.
    #[inline]
    pub const fn diagonal(count: u32) -> PathCost {
        PathCost(count as u64 * DIAGONAL)
    }

    /// The step counts of this cost; exact while there are fewer than 2²⁸ diagonal steps, as on every map.
    ///
    /// Modulo q only the diagonal part is left, and p is its own inverse there, as p² = 2q² + 1.
    pub const fn steps(self) -> Steps {
        let diagonal = (self.0 % STRAIGHT) * (DIAGONAL % STRAIGHT) % STRAIGHT;
        let straight = self.0.saturating_sub(diagonal * DIAGONAL) / STRAIGHT;
        Steps {
            straight: straight as u32,
            diagonal: diagonal as u32,
        }
    }
}

impl Add for PathCost {
    type Output = PathCost;

    #[inline]
    fn add(self, other: PathCost) -> PathCost {
        PathCost(self.0 + other.0)
    }
}

impl Steps {
    /// The cost of these steps.
    pub const fn cost(self) -> PathCost {
        PathCost(self.straight as u64 * STRAIGHT + self.diagonal as u64 * DIAGONAL)
    }

    /// The length of these steps in tiles, rounded once: `straight + diagonal·√2`.
    pub fn length_tiles(self) -> f64 {
        f64::from(self.straight) + f64::from(self.diagonal) * std::f64::consts::SQRT_2
    }
}

/// The cost of the path from `a` to `b` without obstacles: diagonal along the shorter side, then straight.
///
/// As an estimate it is exact on open ground, never too high, and consistent (it drops by no more than a step costs).
#[inline]
pub fn octile(a: IVec2, b: IVec2) -> PathCost {
    let (dx, dy) = (a.x.abs_diff(b.x), a.y.abs_diff(b.y));
    Steps {
        straight: dx.abs_diff(dy),
        diagonal: dx.min(dy),
    }
    .cost()
}

/// The same in units of 1/169 tile; a diagonal step has 239 of them: less than its cost by one part in 110,000.
#[inline]
pub(super) const fn coarse_octile(a: IVec2, b: IVec2) -> u32 {
    let (dx, dy) = (a.x.abs_diff(b.x), a.y.abs_diff(b.y));
    let (longer, shorter) = if dx > dy { (dx, dy) } else { (dy, dx) };
    (longer - shorter) * COARSE_STRAIGHT + shorter * COARSE_DIAGONAL
}

/// The length of a cost in tiles; see [`PathCost::steps`] and [`Steps::length_tiles`].
pub fn to_tiles(cost: PathCost) -> f64 {
    cost.steps().length_tiles()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Compares `straight + diagonal·√2` of two paths exactly, by squaring the difference.
    fn compare_true_lengths(a: Steps, b: Steps) -> std::cmp::Ordering {
        let straight = i128::from(a.straight) - i128::from(b.straight);
        let diagonal = i128::from(a.diagonal) - i128::from(b.diagonal);
        // The sign of straight + diagonal·√2: if the signs differ, the larger square wins.
        match (straight.signum(), diagonal.signum()) {
            (0, sign) | (sign, 0) => sign.cmp(&0),
            (s, d) if s == d => s.cmp(&0),
            (s, d) => {
                let by_straight = (straight * straight).cmp(&(2 * diagonal * diagonal));
                if by_straight.is_gt() {
                    s.cmp(&0)
                } else {
                    d.cmp(&0)
                }
            }
        }
    }

    fn steps() -> impl Strategy<Value = Steps> {
        let count = prop_oneof![0u32..50, 0u32..1 << 28];
        (count.clone(), count).prop_map(|(straight, diagonal)| Steps { straight, diagonal })
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn costs_order_like_true_lengths(a in steps(), b in steps()) {
            prop_assert_eq!(a.cost().cmp(&b.cost()), compare_true_lengths(a, b));
        }

        #[test]
        fn step_counts_round_trip_through_a_cost(a in steps()) {
            prop_assert_eq!(a.cost().steps(), a);
        }

        #[test]
        fn octile_estimate_is_consistent(ends in prop::array::uniform4(0i32..65_536)) {
            let (tile, goal) = (IVec2::new(ends[0], ends[1]), IVec2::new(ends[2], ends[3]));
            for step in [IVec2::X, IVec2::Y, IVec2::ONE, IVec2::new(1, -1)] {
                for next in [tile + step, tile - step] {
                    let step_cost = octile(tile, next);
                    prop_assert!(octile(tile, goal) <= step_cost + octile(next, goal));
                }
            }
        }
    }

    #[test]
    fn adjacent_lengths_differ_at_the_largest_counts() {
        // 93,222,358·√2 and 131,836,323 differ by less than 10⁻⁸.
        let diagonals = Steps {
            straight: 0,
            diagonal: 93_222_358,
        };
        let straights = Steps {
            straight: 131_836_323,
            diagonal: 0,
        };
        assert_eq!(
            diagonals.cost().cmp(&straights.cost()),
            compare_true_lengths(diagonals, straights)
        );
        assert_ne!(diagonals.cost(), straights.cost());
    }

    #[test]
    fn the_longest_path_does_not_overflow() {
        let longest = PathCost::diagonal(1 << 28) + octile(IVec2::ZERO, IVec2::splat(65_535));
        assert!(longest < PathCost::MAX);
        assert!(
            to_tiles(PathCost::straight(3) + PathCost::diagonal(2))
                == 3.0 + 2.0 * std::f64::consts::SQRT_2
        );
    }
}
