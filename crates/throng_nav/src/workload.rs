//! The queries for search benchmarks, shared by `cargo bench` and `throng bench nav`, so that both measure
//! the same.

use glam::IVec2;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{PathQuery, octile, to_tiles};
use crate::map::{MapError, MapRecipe, RegionId, TileMap, TownRecipe, generate};

/// The number of attempts to find a pair of tiles before giving up on a map.
const TRIES_MAX: u32 = 10_000;

/// A square town, the map of the reference workload.
///
/// Errors: those of the generator, for unsupported sides.
pub fn town(side_tiles: u32) -> Result<TileMap, MapError> {
    let recipe = TownRecipe {
        width_tiles: side_tiles,
        height_tiles: side_tiles,
        ..TownRecipe::default()
    };
    generate(&MapRecipe::Town(recipe), 1)
}

/// At most `count` queries between tiles of the largest region, by a seed.
pub fn queries(map: &TileMap, count: usize, seed: u64) -> Vec<PathQuery> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut query = |region| {
        let (from, to) = (
            tile(map, region, &mut random)?,
            tile(map, region, &mut random)?,
        );
        Some(PathQuery::new(from, to))
    };
    let region = map.largest_region();
    (0..count).map_while(|_| query(region?.0)).collect()
}

/// At most `count` tiles within a number of columns and rows of a goal that are connected with it, by a seed.
pub fn starts_within(
    map: &TileMap,
    goal: IVec2,
    tiles: u32,
    count: usize,
    seed: u64,
) -> Vec<IVec2> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let side = tiles as i32;
    let mut start = || {
        (0..TRIES_MAX).find_map(|_| {
            let mut axis = || random.random_range(-side..=side);
            let start = goal + IVec2::new(axis(), axis());
            map.are_connected(start, goal).then_some(start)
        })
    };
    (0..count).map_while(|_| start()).collect()
}

/// The same between tiles at about this distance: 19/20 to 21/20 of it by octile distance.
pub fn queries_at_distance(map: &TileMap, count: usize, tiles: u32, seed: u64) -> Vec<PathQuery> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let Some((region, _)) = map.largest_region() else {
        return Vec::new();
    };
    let side = (tiles + tiles / 20) as i32;
    let range = f64::from(tiles) * 0.95..=f64::from(tiles) * 1.05;
    let mut query = || {
        (0..TRIES_MAX).find_map(|_| {
            let from = tile(map, region, &mut random)?;
            let mut axis = || random.random_range(-side..=side);
            let to = from + IVec2::new(axis(), axis());
            let is_wanted =
                map.region(to) == Some(region) && range.contains(&to_tiles(octile(from, to)));
            is_wanted.then_some(PathQuery::new(from, to))
        })
    };
    (0..count).map_while(|_| query()).collect()
}

/// A tile of a region.
fn tile(map: &TileMap, region: RegionId, random: &mut Pcg64Mcg) -> Option<IVec2> {
    (0..TRIES_MAX).find_map(|_| {
        let mut axis = |tiles: u32| random.random_range(0..tiles as i32);
        let tile = IVec2::new(axis(map.width()), axis(map.height()));
        (map.region(tile) == Some(region)).then_some(tile)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_have_the_requested_distance() {
        let map = town(256).unwrap();
        let queries = queries_at_distance(&map, 50, 100, 7);
        assert_eq!(queries.len(), 50);
        for PathQuery { from, to, .. } in queries {
            assert!((95.0..=105.0).contains(&to_tiles(octile(from, to))));
            assert!(map.are_connected(from, to));
        }
        assert_eq!(super::queries(&TileMap::new(9, 9, true).unwrap(), 5, 1), []);
        assert_eq!(
            queries_at_distance(&TileMap::new(9, 9, false).unwrap(), 5, 100, 1),
            []
        );
    }
}
