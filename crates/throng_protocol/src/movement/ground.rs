//! The tiles under positions: the tile of a position, and whether a straight step between two positions is free.
//!
//! [`TileMap::is_line_free`] handles lines between tile centres exactly. Positions can be anywhere on a tile, so their lines are clipped
//! row by row in 64-bit floats. A margin, in tiles, sets how close to a blocked tile they may come.
//!
//! Cost: O(tiles along the line).

use glam::{DVec2, IVec2, Vec2};
use throng_nav::map::TileMap;

/// A map, and the size of its tiles.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    /// Which tiles are blocked.
    pub tiles: &'a TileMap,
    /// The side of a tile, in metres.
    pub tile_m: f32,
}

/// A free position and its tile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) at: Vec2,
    pub(super) tile: IVec2,
}

/// If a step's bounding rectangle has at most this many tiles per side, it is checked as a whole.
const SHORT_STEP_TILES: i32 = 4;

impl Ground<'_> {
    /// The tile of a position. A position on the far border belongs to the last tile.
    #[inline]
    #[must_use]
    pub fn tile_at(&self, position: Vec2) -> IVec2 {
        let size = IVec2::new(self.tiles.width() as i32, self.tiles.height() as i32);
        let tile = (position / self.tile_m).floor().as_ivec2();
        let on_border = position.cmpeq(size.as_vec2() * self.tile_m);
        IVec2::select(on_border, size - 1, tile)
    }

    /// The centre of a tile, in metres.
    #[must_use]
    pub fn centre_of(&self, tile: IVec2) -> Vec2 {
        (tile.as_vec2() + 0.5) * self.tile_m
    }

    /// Whether the position is free.
    #[must_use]
    pub fn is_free_at(&self, position: Vec2) -> bool {
        self.standing_at(position).is_some()
    }

    /// Reads the map under a position that will be needed soon. The parts of the map that are read are far apart in memory; without other
    /// work in between, the processor waits for many of them at once.
    #[doc(hidden)]
    #[inline]
    pub fn prefetch(&self, at: Vec2) {
        std::hint::black_box(self.tiles.is_free(self.tile_at(at)));
    }

    /// A position with its tile; `None` if it is blocked.
    #[inline]
    pub(super) fn standing_at(&self, at: Vec2) -> Option<Standing> {
        let tile = self.tile_at(at);
        (at.is_finite() && self.tiles.is_free(tile)).then_some(Standing { at, tile })
    }

    /// Whether both ends are free and a straight step between them touches no blocked tile. Touching an edge or a corner counts, unless
    /// both ends are on the same tile.
    #[must_use]
    pub fn is_step_free(&self, from: Vec2, to: Vec2) -> bool {
        self.is_segment_free(from, to, 0.0)
    }

    /// Like [`is_step_free`](Self::is_step_free), with every blocked tile grown by `margin_tiles` on all sides; a negative margin shrinks
    /// them.
    #[must_use]
    pub fn is_segment_free(&self, from: Vec2, to: Vec2, margin_tiles: f64) -> bool {
        let ends = self.standing_at(from).zip(self.standing_at(to));
        ends.is_some_and(|(from, to)| self.is_line_free(from, to, margin_tiles))
    }

    /// Whether a straight step between two free positions touches no blocked tile grown by `margin_tiles`.
    #[inline]
    pub(super) fn is_line_free(&self, from: Standing, to: Standing, margin_tiles: f64) -> bool {
        from.tile == to.tile || self.is_line_over_tiles_free(from, to, margin_tiles)
    }

    fn is_line_over_tiles_free(&self, from: Standing, to: Standing, margin_tiles: f64) -> bool {
        let tile_m = f64::from(self.tile_m);
        let (a, b) = (from.at.as_dvec2() / tile_m, to.at.as_dvec2() / tile_m);
        // A tile at n is grown to n - margin ..= n + 1 + margin along each axis.
        let first_touched = |low: f64| (low - 1.0 - margin_tiles).ceil() as i32;
        let last_touched = |high: f64| (high + margin_tiles).floor() as i32;
        let size = IVec2::new(self.tiles.width() as i32, self.tiles.height() as i32);
        let is_row_free = |first: i32, last: i32, y: i32| {
            // Everything outside the map is blocked.
            let is_inside = first >= 0 && last < size.x && (0..size.y).contains(&y);
            first > last || is_inside && self.tiles.rows().is_run_free(first, last, y)
        };
        let (top, bottom) = (first_touched(a.y.min(b.y)), last_touched(a.y.max(b.y)));
        let (left, right) = (first_touched(a.x.min(b.x)), last_touched(a.x.max(b.x)));
        // It touches nothing outside its bounding rectangle, which for a step has few tiles, mostly free.
        let is_short = right - left < SHORT_STEP_TILES && bottom - top < SHORT_STEP_TILES;
        if is_short && (top..=bottom).all(|y| is_row_free(left, right, y)) {
            return true;
        }
        (top..=bottom).all(|y| {
            let top = f64::from(y) - margin_tiles;
            let (left, right) = clip(a, b, top, top + 1.0 + 2.0 * margin_tiles);
            is_row_free(first_touched(left), last_touched(right), y)
        })
    }

    /// How far, in tiles, rounding may move a position off its line: eight steps of a 32-bit float at the far end of the map.
    #[must_use]
    pub fn rounding_tiles(&self) -> f64 {
        f64::from(self.tiles.width().max(self.tiles.height())) / f64::from(1u32 << 21)
    }

    /// The longest line between tile centres, in tiles, that a walker can follow in 32-bit floats.
    ///
    /// A line of length d between centres that misses a corner misses it by at least 1 / 2d, because twice the area of the triangle is a
    /// multiple of a half. This distance must exceed the rounding error. 524 tiles on a map of 2,000².
    #[must_use]
    pub fn sight_tiles_max(&self) -> f64 {
        0.5 / self.rounding_tiles()
    }
}

/// The x range of the part of a segment with y in `top..=bottom`. The segment must intersect that range.
fn clip(a: DVec2, b: DVec2, top: f64, bottom: f64) -> (f64, f64) {
    let way = b - a;
    if way.y == 0.0 {
        return (a.x.min(b.x), a.x.max(b.x));
    }
    let x_at = |y: f64| a.x + ((y - a.y) / way.y).clamp(0.0, 1.0) * way.x;
    let (first, second) = (x_at(top), x_at(bottom));
    (first.min(second), first.max(second))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIDE: u32 = 12;

    fn map() -> impl Strategy<Value = TileMap> {
        let blocked = prop::collection::vec(prop::bool::weighted(0.2), (SIDE * SIDE) as usize);
        blocked.prop_map(|blocked| {
            TileMap::from_fn(SIDE, SIDE, |x, y| blocked[(y * SIDE + x) as usize]).unwrap()
        })
    }

    /// Whether the segment touches the tile's square grown by the margin: separating axes, in doubles.
    fn touches(a: DVec2, b: DVec2, tile: IVec2, margin: f64) -> bool {
        let (low, high) = (tile.as_dvec2() - margin, tile.as_dvec2() + 1.0 + margin);
        if a.min(b).cmpgt(high).any() || a.max(b).cmplt(low).any() {
            return false;
        }
        let side = |x: f64, y: f64| (b - a).perp_dot(DVec2::new(x, y) - a);
        let sides = [
            side(low.x, low.y),
            side(high.x, low.y),
            side(low.x, high.y),
            side(high.x, high.y),
        ];
        !(sides.iter().all(|&s| s > 0.0) || sides.iter().all(|&s| s < 0.0))
    }

    #[test]
    fn a_step_that_touches_a_corner_needs_all_four_tiles() {
        let tiles = TileMap::from_ascii("..\n.@").unwrap();
        let ground = Ground {
            tiles: &tiles,
            tile_m: 0.5,
        };
        assert!(!ground.is_step_free(Vec2::new(0.25, 0.75), Vec2::new(0.75, 0.25)));
        assert!(ground.is_step_free(Vec2::new(0.25, 0.7), Vec2::new(0.7, 0.25)));
        assert!(!ground.is_segment_free(Vec2::new(0.25, 0.7), Vec2::new(0.7, 0.25), 0.1));
        assert!(ground.is_segment_free(Vec2::new(0.25, 0.75), Vec2::new(0.75, 0.25), -0.1));
    }

    #[test]
    fn non_finite_points_are_never_free() {
        let tiles = TileMap::new(4, 4, false).unwrap();
        let ground = Ground {
            tiles: &tiles,
            tile_m: 0.5,
        };
        for bad in [Vec2::NAN, Vec2::INFINITY, Vec2::NEG_ONE, Vec2::splat(2.01)] {
            assert!(!ground.is_free_at(bad), "{bad}");
            assert!(!ground.is_step_free(Vec2::ONE, bad), "{bad}");
        }
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn a_segment_is_free_if_it_touches_no_blocked_tile(
            tiles in map(),
            ends in prop::array::uniform4(0.0f32..SIDE as f32),
            margin in prop::sample::select(vec![0.0, 0.05, -0.05]),
        ) {
            let ground = Ground { tiles: &tiles, tile_m: 1.0 };
            let (from, to) = (Vec2::new(ends[0], ends[1]), Vec2::new(ends[2], ends[3]));
            prop_assume!(ground.is_free_at(from) && ground.is_free_at(to));
            prop_assume!(ground.tile_at(from) != ground.tile_at(to));
            let (a, b) = (from.as_dvec2(), to.as_dvec2());
            let side = SIDE as i32;
            let touched = |margin: f64| {
                (-1..=side).any(|y| (-1..=side).any(|x| {
                    let tile = IVec2::new(x, y);
                    !tiles.is_free(tile) && touches(a, b, tile, margin)
                }))
            };
            let is_free = ground.is_segment_free(from, to, margin);
            // Rows are clipped before columns, so at the corner of a grown tile the two may round differently.
            prop_assert!(is_free || touched(margin + 1e-9));
            prop_assert!(!is_free || !touched(margin - 1e-9));
        }

        #[test]
        fn segments_between_tile_centres_match_tile_lines(
            tiles in map(), ends in prop::array::uniform4(0i32..SIDE as i32),
        ) {
            let ground = Ground { tiles: &tiles, tile_m: 0.5 };
            let (from, to) = (IVec2::new(ends[0], ends[1]), IVec2::new(ends[2], ends[3]));
            let (a, b) = (ground.centre_of(from), ground.centre_of(to));
            prop_assert!(!ground.is_segment_free(a, b, 1e-6) || tiles.is_line_free(from, to));
            prop_assert!(ground.is_segment_free(a, b, -1e-6) || !tiles.is_line_free(from, to));
        }
    }
}
