//! `throng bench nav`: the default algorithm beside A*, on generated maps.

use glam::IVec2;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::Failure;
use super::rows::Row;
use crate::map::{CaveRecipe, MapRecipe, RoomsRecipe, TileMap, TownRecipe, generate};
use crate::nav::{Algorithm, NavMap, Outcome, Query, Search};
use crate::sim::clock::Stopwatch;

const SIDE_TILES: u32 = 512;

pub(super) fn measure(quick: bool) -> Result<Vec<Row>, Failure> {
    let (width_tiles, height_tiles) = (SIDE_TILES, SIDE_TILES);
    let recipes = [
        (
            "town/512",
            MapRecipe::Town(TownRecipe {
                width_tiles,
                height_tiles,
                ..TownRecipe::default()
            }),
        ),
        (
            "rooms/512",
            MapRecipe::Rooms(RoomsRecipe {
                width_tiles,
                height_tiles,
                ..RoomsRecipe::default()
            }),
        ),
        (
            "cave/512",
            MapRecipe::Cave(CaveRecipe {
                width_tiles,
                height_tiles,
                ..CaveRecipe::default()
            }),
        ),
    ];
    let queries = if quick { 50 } else { 300 };
    recipes
        .into_iter()
        .map(|(case, recipe)| Ok(row(case, &generate(&recipe, 1)?, queries)))
        .collect()
}

fn row(case: &str, map: &TileMap, count: usize) -> Row {
    let queries = queries(map, count);
    let (reference_us, lengths) = time(map, Algorithm::AStar, &queries);
    let (value_us, found) = time(map, Algorithm::default(), &queries);
    let wrong = lengths.iter().zip(&found).filter(|(a, b)| a != b).count();
    Row::new("nav", case, value_us, "us/query")
        .beside("astar", reference_us)
        .aiming(
            format!("the same length in all {count} queries ({wrong} differ)"),
            wrong == 0,
        )
}

/// Pairs of free tiles of the largest region.
fn queries(map: &TileMap, count: usize) -> Vec<Query> {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let region = map.largest_region().map(|(region, _)| region);
    let side = |tiles: u32| 0..tiles as i32;
    let mut tile = || loop {
        let tile = IVec2::new(
            random.random_range(side(map.width())),
            random.random_range(side(map.height())),
        );
        if map.region(tile) == region {
            return tile;
        }
    };
    (0..count).map(|_| Query::new(tile(), tile())).collect()
}

/// Mean µs a query, and the outcomes, which say the lengths. Each query's scratch is warm.
fn time(map: &TileMap, algorithm: Algorithm, queries: &[Query]) -> (f64, Vec<Outcome>) {
    let mut nav_map = NavMap::default();
    nav_map.prepare(map, algorithm);
    let (mut search, mut waypoints) = (Search::new(), Vec::new());
    let mut all = || {
        let watch = Stopwatch::start();
        let found: Vec<Outcome> = queries
            .iter()
            .map(|&query| search.find(map, &nav_map, algorithm, query, &mut waypoints))
            .collect();
        (
            watch.elapsed().as_secs_f64() * 1e6 / queries.len() as f64,
            found,
        )
    };
    let _ = all();
    all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_agree_on_a_small_map() {
        let recipe = RoomsRecipe {
            width_tiles: 64,
            height_tiles: 64,
            ..RoomsRecipe::default()
        };
        let row = row(
            "rooms/64",
            &generate(&MapRecipe::Rooms(recipe), 1).unwrap(),
            20,
        );
        assert_eq!(row.meets, Some(true), "{row:?}");
    }
}
