//! The free tile nearest to any tile: a position for an object that would stand on a blocked one.
//!
//! Rows are searched outwards from the tile's own; in each, the nearest run of free tiles to the left and to the
//! right counts. Invariant: exact; among equals the smaller y wins, then the smaller x.
//!
//! Cost: O(rows within the result's distance × (runs examined + distance / 64)).

use glam::IVec2;

use super::TileMap;
use super::regions::RegionId;

impl TileMap {
    /// The free tile with the smallest distance to `tile`, at most `radius_max` tiles away (from centre to centre).
    ///
    /// `tile` may be outside the map. Among equals the smaller y wins, then the smaller x.
    pub fn nearest_free(&self, tile: IVec2, radius_max: u32) -> Option<IVec2> {
        self.nearest(tile, radius_max, None)
    }

    /// As [`TileMap::nearest_free`], among the tiles of one region.
    pub fn nearest_in_region(
        &self,
        tile: IVec2,
        radius_max: u32,
        region: RegionId,
    ) -> Option<IVec2> {
        self.nearest(tile, radius_max, Some(region))
    }

    fn nearest(&self, tile: IVec2, radius_max: u32, region: Option<RegionId>) -> Option<IVec2> {
        let (x, y) = (i64::from(tile.x), i64::from(tile.y));
        let bottom = i64::from(self.height()) - 1;
        let mut best: Option<(u64, i64, i64)> = None;
        // No distance reaches 2³² along an axis, and no sum of two squares 2⁶⁴: no map is that far from a tile.
        let mut limit = u64::from(radius_max).pow(2);
        // Rows before the first one of the map hold nothing.
        let first = (y - y.clamp(0, bottom)).abs();
        for distance in first.. {
            let squared = (distance * distance) as u64;
            if squared > limit || (y - distance < 0 && y + distance > bottom) {
                break;
            }
            let rows = [y - distance, y + distance];
            let rows = rows.iter().take(if distance == 0 { 1 } else { 2 });
            for row in rows.filter(|row| (0..=bottom).contains(*row)) {
                // A candidate is never nearer than its row, so the limit stays at `squared` or above.
                let reach = (limit - squared).isqrt() as i64;
                if let Some(found) = self.nearest_in_row(x, *row as u32, reach, region) {
                    let candidate = (squared + (found - x).unsigned_abs().pow(2), *row, found);
                    best = Some(best.map_or(candidate, |best| best.min(candidate)));
                    limit = limit.min(candidate.0);
                }
            }
        }
        best.map(|(_, y, x)| IVec2::new(x as i32, y as i32))
    }

    /// The nearest allowed tile of a row to x, at most `reach` away; the left one of two.
    fn nearest_in_row(&self, x: i64, y: u32, reach: i64, region: Option<RegionId>) -> Option<i64> {
        let is_chosen =
            |x: u32| region.is_none_or(|region| self.regions.contains(&self.rows, region, x, y));
        let right_most = i64::from(self.width()) - 1;
        let left = (x <= right_most + reach && x >= 0).then(|| {
            let mut at = x.min(right_most) as u32;
            loop {
                let found = self
                    .rows
                    .last_free(at, y)
                    .filter(|found| x - i64::from(*found) <= reach)?;
                if is_chosen(found) {
                    return Some(i64::from(found));
                }
                at = self.rows.run_start(found, y).checked_sub(1)?;
            }
        });
        let left = left.flatten();
        let reach = left.map_or(reach, |left| reach.min(x - left - 1));
        let right = (x <= right_most && x >= -reach).then(|| {
            let mut at = x.max(0) as u32;
            loop {
                let found = self
                    .rows
                    .next_free(at, y)
                    .filter(|found| i64::from(*found) - x <= reach)?;
                if is_chosen(found) {
                    return Some(i64::from(found));
                }
                at = self.rows.run_end(found, y) + 1;
            }
        });
        right.flatten().or(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn brute_force(
        map: &TileMap,
        tile: IVec2,
        radius_max: u32,
        region: Option<RegionId>,
    ) -> Option<IVec2> {
        let all = (0..map.height() as i32)
            .flat_map(|y| (0..map.width() as i32).map(move |x| IVec2::new(x, y)));
        all.filter(|at| {
            map.is_free(*at) && region.is_none_or(|region| map.region(*at) == Some(region))
        })
        .map(|at| ((at - tile).as_i64vec2().length_squared(), at.y, at.x))
        .filter(|(squared, _, _)| *squared <= i64::from(radius_max).pow(2))
        .min()
        .map(|(_, y, x)| IVec2::new(x, y))
    }

    #[test]
    fn tiles_outside_find_the_map_only_within_the_radius() {
        let map = TileMap::new(3, 3, false).unwrap();
        assert_eq!(
            map.nearest_free(IVec2::new(10, 1), 8),
            Some(IVec2::new(2, 1))
        );
        assert_eq!(map.nearest_free(IVec2::new(10, 1), 7), None);
        assert_eq!(map.nearest_free(IVec2::MIN, u32::MAX), Some(IVec2::ZERO));
        assert_eq!(
            map.nearest_free(IVec2::MAX, u32::MAX),
            Some(IVec2::new(2, 2))
        );
        assert_eq!(
            TileMap::new(3, 3, true)
                .unwrap()
                .nearest_free(IVec2::ZERO, u32::MAX),
            None
        );
    }

    proptest! {
        #![proptest_config(draws!(256))]

        #[test]
        fn nearest_free_matches_brute_force(
            (width, height) in (1u32..100, 1u32..40),
            free in prop::collection::vec((0u32..100, 0u32..40, 1u32..6), 0..10),
            asked in prop::collection::vec((-20i32..120, -20i32..60, 0u32..150), 1..20),
        ) {
            let map = TileMap::from_fn(width, height, |x, y| {
                !free.iter().any(|(left, row, len)| y == *row && (*left..left + len).contains(&x))
            })
            .unwrap();
            for (x, y, radius) in asked {
                let tile = IVec2::new(x, y);
                prop_assert_eq!(map.nearest_free(tile, radius), brute_force(&map, tile, radius, None));
                let mut regions: Vec<RegionId> = (0..width * height)
                    .filter_map(|i| map.region(IVec2::new((i % width) as i32, (i / width) as i32)))
                    .collect();
                regions.sort_unstable();
                regions.dedup();
                for region in regions.into_iter().chain([RegionId(0), RegionId(1), RegionId(99), RegionId(u32::MAX)]) {
                    let expected = brute_force(&map, tile, radius, Some(region));
                    prop_assert_eq!(map.nearest_in_region(tile, radius, region), expected);
                }
            }
        }
    }
}
