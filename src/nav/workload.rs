//! The queries that searches are measured with: one place for `cargo bench` and `throng bench nav`, so that both measure
//! the same.

use glam::IVec2;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{Query, octile, to_tiles};
use crate::map::{MapError, MapRecipe, RegionId, TileMap, TownRecipe, generate};

/// Tries at a pair of tiles before giving up on a map that has none like it.
const TRIES_MAX: u32 = 10_000;

/// A square town, the map of the reference workload.
///
/// Errors: those of the generator, for sides that it cannot serve.
pub fn town(side_tiles: u32) -> Result<TileMap, MapError> {
    let recipe = TownRecipe {
        width_tiles: side_tiles,
        height_tiles: side_tiles,
        ..TownRecipe::default()
    };
    generate(&MapRecipe::Town(recipe), 1)
}

/// At most `count` queries between tiles of the largest region, by a seed.
pub fn queries(map: &TileMap, count: usize, seed: u64) -> Vec<Query> {
    pairs(map, count, seed, |_, _| true)
}

/// The same between tiles about so many tiles apart: 19/20 to 21/20 of it by octile distance.
pub fn queries_apart(map: &TileMap, count: usize, tiles: u32, seed: u64) -> Vec<Query> {
    let tiles = f64::from(tiles);
    let range = tiles * 0.95..=tiles * 1.05;
    pairs(map, count, seed, |from, to| {
        range.contains(&to_tiles(octile(from, to)))
    })
}

fn pairs(
    map: &TileMap,
    count: usize,
    seed: u64,
    is_wanted: impl Fn(IVec2, IVec2) -> bool,
) -> Vec<Query> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let Some((region, _)) = map.largest_region() else {
        return Vec::new();
    };
    let mut pair = || {
        (0..TRIES_MAX).find_map(|_| {
            let (from, to) = (
                tile(map, region, &mut random)?,
                tile(map, region, &mut random)?,
            );
            is_wanted(from, to).then_some(Query::new(from, to))
        })
    };
    (0..count).map_while(|_| pair()).collect()
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
    fn queries_are_as_far_apart_as_was_asked() {
        let map = town(256).unwrap();
        let queries = queries_apart(&map, 50, 100, 7);
        assert_eq!(queries.len(), 50);
        for Query { from, to, .. } in queries {
            assert!((95.0..=105.0).contains(&to_tiles(octile(from, to))));
            assert!(map.connected(from, to));
        }
        assert_eq!(super::queries(&TileMap::new(9, 9, true).unwrap(), 5, 1), []);
        assert_eq!(
            queries_apart(&TileMap::new(9, 9, false).unwrap(), 5, 100, 1),
            []
        );
    }
}
