//! The stars are a shortest path through a generated cave, found by Jump Point Search without an ECS.
#![allow(
    clippy::print_stdout,
    reason = "an example talks to the person who runs it"
)]

use glam::IVec2;
use throng_nav::map::{CaveRecipe, MapRecipe, TileMap, generate};
use throng_nav::{Algorithm, Diagonal, NavMap, PathQuery, PathSearch, SearchOutcome};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let recipe = CaveRecipe {
        width_tiles: 72,
        height_tiles: 36,
        ..CaveRecipe::default()
    };
    let tiles = generate(&MapRecipe::Cave(recipe), 7)?;

    let algorithm = Algorithm::default();
    let mut prepared = NavMap::new(Diagonal::default());
    prepared.prepare(&tiles, algorithm);

    let query = PathQuery::new(
        free_near(&tiles, IVec2::ZERO)?,
        free_near(&tiles, IVec2::new(71, 35))?,
    );
    let (mut search, mut waypoints) = (PathSearch::new(), Vec::new());
    let outcome = search.find(&tiles, &prepared, algorithm, query, &mut waypoints);
    let SearchOutcome::Found(path) = outcome else {
        return Err(format!("no path: {outcome:?}").into());
    };

    // Between two waypoints the path is straight or diagonal.
    let mut on_path = vec![query.from];
    for ends in waypoints.windows(2) {
        let step = (ends[1] - ends[0]).signum();
        let mut tile = ends[0];
        while tile != ends[1] {
            tile += step;
            on_path.push(tile);
        }
    }
    for y in 0..tiles.height() as i32 {
        let draw = |x| match IVec2::new(x, y) {
            tile if on_path.contains(&tile) => '*',
            tile if tiles.is_free(tile) => ' ',
            _ => '#',
        };
        println!("{}", String::from_iter((0..tiles.width() as i32).map(draw)));
    }
    let (length, expanded) = (path.length_tiles(), search.expanded());
    println!("{length:.1} tiles, {expanded} nodes expanded");
    Ok(())
}

fn free_near(tiles: &TileMap, tile: IVec2) -> Result<IVec2, &'static str> {
    tiles.nearest_free(tile, 16).ok_or("no free tile in reach")
}
