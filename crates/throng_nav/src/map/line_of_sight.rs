//! Whether a straight line between two tiles is free.
//!
//! ```text
//!   ┌──┬──┬──┬──┬──┐      The line crosses a few tiles of each row: a run of the row, read 64 tiles at a time.
//!   │A─┼──│  │  │  │      A line that is steeper than it is wide is read from the columns instead.
//!   │  │ ─┼──┼──│  │
//!   │  │  │  │ ─┼─B│
//!   └──┴──┴──┴──┴──┘
//! ```
//! Invariant: exact; all in integers, with coordinates multiplied by four so that tile edges are whole numbers.
//!
//! Cost: O(rows crossed + tiles / 64).

use glam::IVec2;

use super::TileMap;

impl TileMap {
    /// Whether every tile that the segment between two tile centres touches is free.
    ///
    /// Edges and corners belong to all tiles that meet there: a line exactly through a corner needs all four tiles,
    /// so a walker on a free line never clips a blocked corner. A tile outside the map is blocked.
    pub fn is_line_free(&self, from: IVec2, to: IVec2) -> bool {
        if !self.is_free(from) || !self.is_free(to) {
            return false;
        }
        // `along` is the direction in which the line is longer, and in which the plane is read.
        let is_steep = (to.y - from.y).abs() > (to.x - from.x).abs();
        let plane = if is_steep { &self.columns } else { &self.rows };
        let swap = |tile: IVec2| {
            if is_steep {
                (tile.y, tile.x)
            } else {
                (tile.x, tile.y)
            }
        };
        let (along, across) = swap(from);
        let (along_end, across_end) = swap(to);
        let (length, rows) = ((along_end - along).abs(), (across_end - across).abs());
        let row_step = (across_end - across).signum();
        // Whether the row has no blocked tile from the first to the last, counted from the start along the line.
        let is_row_free = |row: i32, first: i32, last: i32| {
            let y = across + row * row_step;
            if along_end >= along {
                plane.is_run_free(along + first, along + last, y)
            } else {
                plane.is_run_free(along - last, along - first, y)
            }
        };

        // The line leaves row r at (2r + 1) × length / (2 rows) from the start. Half a tile added, the whole part is the
        // last tile touched in row r; without a remainder the line passes through a corner, and row r + 1 begins one
        // tile before it.
        let mut first = 0;
        if rows > 0 {
            let divisor = 2 * i64::from(rows);
            let (step, step_remainder) = (
                2 * i64::from(length) / divisor,
                2 * i64::from(length) % divisor,
            );
            let start = i64::from(length) + i64::from(rows);
            let (mut last, mut remainder) = (start / divisor, start % divisor);
            for row in 0..rows {
                if !is_row_free(row, first, last as i32) {
                    return false;
                }
                first = last as i32 - i32::from(remainder == 0);
                last += step;
                remainder += step_remainder;
                if remainder >= divisor {
                    remainder -= divisor;
                    last += 1;
                }
            }
        }
        is_row_free(rows, first, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whether the segment touches the tile's closed square, by clipping it in exact fractions: coordinates are doubled,
    /// the segment is `from + t × delta` with t in 0..=1, and every bound on t is a fraction over |delta|.
    fn touches(from: IVec2, to: IVec2, tile: IVec2) -> bool {
        // The t at which the line enters and leaves the tile's slab, as fractions with a positive denominator.
        let mut enter = (0i64, 1i64);
        let mut leave = (1i64, 1i64);
        for (start, end, centre) in [(from.x, to.x, tile.x), (from.y, to.y, tile.y)] {
            let (start, delta) = (2 * i64::from(start), 2 * i64::from(end - start));
            let (low, high) = (
                2 * i64::from(centre) - 1 - start,
                2 * i64::from(centre) + 1 - start,
            );
            if delta == 0 {
                if low > 0 || high < 0 {
                    return false;
                }
                continue;
            }
            let (a, b) = if delta > 0 {
                ((low, delta), (high, delta))
            } else {
                ((-high, -delta), (-low, -delta))
            };
            if a.0 * enter.1 > enter.0 * a.1 {
                enter = a;
            }
            if b.0 * leave.1 < leave.0 * b.1 {
                leave = b;
            }
        }
        enter.0 * leave.1 <= leave.0 * enter.1
    }

    fn brute_force(map: &TileMap, from: IVec2, to: IVec2) -> bool {
        let (low, high) = (from.min(to), from.max(to));
        (low.y..=high.y).all(|y| {
            (low.x..=high.x)
                .all(|x| !touches(from, to, IVec2::new(x, y)) || map.is_free(IVec2::new(x, y)))
        })
    }

    #[test]
    fn a_line_through_a_corner_needs_all_four_tiles() {
        for blocked in [".@\n..", "..\n@.", "@.\n..", "..\n.@"] {
            let map = TileMap::from_ascii(blocked).unwrap();
            assert!(!map.is_line_free(IVec2::ZERO, IVec2::ONE), "{blocked}");
        }
        assert!(
            TileMap::from_ascii("..\n..")
                .unwrap()
                .is_line_free(IVec2::ZERO, IVec2::ONE)
        );
    }

    #[test]
    fn a_line_that_leaves_the_map_is_not_free() {
        let map = TileMap::new(4, 4, false).unwrap();
        assert!(!map.is_line_free(IVec2::ZERO, IVec2::new(4, 0)));
        assert!(!map.is_line_free(IVec2::new(i32::MIN, 0), IVec2::new(i32::MAX, i32::MAX)));
        assert!(map.is_line_free(IVec2::new(3, 3), IVec2::new(3, 3)));
    }

    #[test]
    fn only_blocked_tiles_on_the_line_block_it() {
        let side = 9;
        let ends: Vec<IVec2> = (0..side * side)
            .map(|i| IVec2::new(i % side, i / side))
            .collect();
        for blocked in &ends {
            let mut map = TileMap::new(side as u32, side as u32, false).unwrap();
            let rect = crate::map::TileRect::new(blocked.x as u32, blocked.y as u32, 1, 1);
            map.edit(rect, &crate::map::TileEdit::Block).unwrap();
            for from in &ends {
                for to in &ends {
                    assert_eq!(
                        map.is_line_free(*from, *to),
                        !touches(*from, *to, *blocked),
                        "{from} to {to}, {blocked} blocked"
                    );
                }
            }
        }
    }

    proptest! {
        #![proptest_config(draws!(256))]

        #[test]
        fn line_check_matches_brute_force(
            (width, height) in (1u32..150, 1u32..150),
            walls in prop::collection::vec((0u32..150, 0u32..150), 0..12),
            ends in prop::collection::vec((0i32..150, 0i32..150), 2..12),
        ) {
            let map = TileMap::from_fn(width, height, |x, y| walls.contains(&(x, y))).unwrap();
            for pair in ends.windows(2) {
                let (from, to) = (IVec2::from(pair[0]), IVec2::from(pair[1]));
                let expected = map.rect().contains(from) && map.rect().contains(to) && brute_force(&map, from, to);
                prop_assert_eq!(map.is_line_free(from, to), expected);
                prop_assert_eq!(map.is_line_free(to, from), expected);
            }
        }
    }
}
