//! Maps from a recipe and a seed, for scenarios, tests and benches.
//!
//! | file | holds |
//! |---|---|
//! | `recipe` | the kind of map and the sizes of its parts |
//! | `canvas` | chances, noise, a plane to draw on, checks of recipes |
//! | `town` | a walled town with streets and houses |
//! | `cave` | rounded halls, all connected |
//! | `grid` | mazes and rooms |
//!
//! Invariants: the same recipe and seed give the same tiles on every platform (`Pcg64Mcg` and integers; a share is
//! converted to an integer once); an invalid recipe gives an error that names the field.
//!
//! Cost: O(tiles); a town of 2,000 × 2,000 tiles takes about 15 ms.

mod canvas;
mod cave;
mod grid;
mod recipe;
mod town;

pub use recipe::{CaveRecipe, MapRecipe, MazeRecipe, RandomRecipe, RoomsRecipe, TownRecipe};

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;

use super::TileMap;
use super::bit_plane::BitPlane;
use super::error::MapError;
use super::rect::TileRect;
use canvas::{Chance, check_sides, noise};

/// Generates the map of a recipe; the same recipe and seed give the same tiles.
///
/// Errors: [`MapError::Recipe`] names the first field with an invalid value.
pub fn generate(recipe: &MapRecipe, seed: u64) -> Result<TileMap, MapError> {
    generate_tiles(recipe, seed).map(TileMap::from_rows)
}

/// The size of the map of a recipe as a rectangle, and the number of its free tiles. The tiles are generated and
/// discarded; the map's data for searches is never built, which saves most of the time and the memory.
///
/// Errors: as [`generate`].
pub fn measure_recipe(recipe: &MapRecipe, seed: u64) -> Result<(TileRect, u64), MapError> {
    let rows = generate_tiles(recipe, seed)?;
    let free_tiles = (0..rows.height())
        .flat_map(|y| rows.runs(y))
        .map(|run| u64::from(run.len()));
    let free_tiles = free_tiles.sum();
    Ok((TileRect::new(0, 0, rows.width(), rows.height()), free_tiles))
}

fn generate_tiles(recipe: &MapRecipe, seed: u64) -> Result<BitPlane, MapError> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    match recipe {
        MapRecipe::Town(recipe) => town::generate(recipe, &mut rng),
        MapRecipe::Cave(recipe) => cave::generate(recipe, &mut rng),
        MapRecipe::Maze(recipe) => grid::generate_maze(recipe, &mut rng),
        MapRecipe::Rooms(recipe) => grid::generate_rooms(recipe, &mut rng),
        MapRecipe::Random(recipe) => {
            check_sides(recipe.width_tiles, recipe.height_tiles)?;
            let chance = Chance::new("fill", recipe.fill)?;
            Ok(noise(
                recipe.width_tiles,
                recipe.height_tiles,
                chance,
                &mut rng,
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::map::rect::SIDE_MAX;
    use glam::IVec2;

    use super::*;

    fn town(width_tiles: u32, height_tiles: u32) -> MapRecipe {
        MapRecipe::Town(TownRecipe {
            width_tiles,
            height_tiles,
            ..TownRecipe::default()
        })
    }

    fn recipes() -> [MapRecipe; 5] {
        [
            town(400, 300),
            MapRecipe::Cave(CaveRecipe {
                width_tiles: 200,
                height_tiles: 150,
                ..CaveRecipe::default()
            }),
            MapRecipe::Maze(MazeRecipe {
                width_tiles: 200,
                height_tiles: 150,
                corridor_tiles: 3,
            }),
            MapRecipe::Rooms(RoomsRecipe {
                width_tiles: 200,
                height_tiles: 150,
                ..RoomsRecipe::default()
            }),
            MapRecipe::Random(RandomRecipe {
                width_tiles: 200,
                height_tiles: 150,
                fill: 0.3,
            }),
        ]
    }

    #[test]
    fn same_seed_gives_the_same_map_other_seeds_differ() {
        for recipe in recipes() {
            let map = generate(&recipe, 7).unwrap();
            assert_eq!(map, generate(&recipe, 7).unwrap(), "{recipe:?}");
            assert_ne!(map, generate(&recipe, 8).unwrap(), "{recipe:?}");
        }
    }

    #[test]
    fn generated_maps_match_golden_fingerprints() {
        let prints = recipes().map(|recipe| generate(&recipe, 7).unwrap().fingerprint());
        assert_eq!(prints, GOLDEN);
    }

    const GOLDEN: [u64; 5] = [
        10490916884881845415,
        2305956027525941791,
        17761391369601272369,
        18440772517219167895,
        3770518503116503251,
    ];

    #[test]
    fn measure_recipe_matches_the_generated_map() {
        let solid = MapRecipe::Random(RandomRecipe {
            width_tiles: 70,
            height_tiles: 3,
            fill: 1.0,
        });
        for recipe in recipes().into_iter().chain([town(7, 3), town(1, 1), solid]) {
            for seed in 0..4 {
                let map = generate(&recipe, seed).unwrap();
                // Counted tile by tile, because the map's own counts come from the same runs of its rows.
                let (width, height) = (map.width() as i32, map.height() as i32);
                let tiles = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
                let free = tiles
                    .filter(|&(x, y)| !map.is_blocked((x, y).into()))
                    .count() as u64;
                assert_eq!(free, map.free_count(), "{recipe:?}");
                let expected = (map.rect(), free);
                assert_eq!(
                    measure_recipe(&recipe, seed).unwrap(),
                    expected,
                    "{recipe:?}"
                );
            }
        }
        let none = MapRecipe::Random(RandomRecipe {
            width_tiles: 0,
            ..RandomRecipe::default()
        });
        assert_eq!(
            measure_recipe(&none, 0).unwrap_err().to_string(),
            generate(&none, 0).unwrap_err().to_string()
        );
    }

    #[test]
    fn town_is_almost_fully_connected_with_an_open_middle() {
        for (width, height) in [
            (2_000, 2_000),
            (1_000, 1_000),
            (1_200, 500),
            (256, 256),
            (64, 64),
            (7, 3),
            (1, 1),
        ] {
            for seed in 0..2 {
                let map = generate(&town(width, height), seed).unwrap();
                let (_, largest) = map.largest_region().unwrap();
                assert!(largest * 10 > map.free_count() * 9, "{width} × {height}");
                assert!(
                    map.is_free(IVec2::new(width as i32 / 2, height as i32 / 2)),
                    "{width} × {height}"
                );
                if width >= 256 && height >= 256 {
                    let free_percent = map.free_count() * 100 / map.rect().tile_count();
                    assert!(
                        (50..85).contains(&free_percent),
                        "{width} × {height}: {free_percent} % free"
                    );
                }
            }
        }
    }

    #[test]
    fn town_gates_are_the_only_openings_in_its_wall() {
        let with_gates = |gates| {
            let recipe = TownRecipe {
                gates,
                ..TownRecipe::default()
            };
            generate(&MapRecipe::Town(recipe), 3).unwrap()
        };
        let (middle, outside) = (IVec2::new(500, 500), IVec2::new(500, 100));
        let closed = with_gates(0);
        assert!(
            closed.is_free(middle)
                && closed.is_free(outside)
                && !closed.are_connected(middle, outside)
        );
        let mut siege = with_gates(1);
        assert!(siege.are_connected(middle, outside));
        let gate = crate::map::TileRect::new(490, 300, 20, 4);
        assert_eq!(
            siege.edit(gate, &crate::map::TileEdit::Block).unwrap(),
            Some(gate),
            "the gate is there"
        );
        siege.finish_splits(usize::MAX);
        assert!(!siege.are_connected(middle, outside));
    }

    #[test]
    fn caves_mazes_and_rooms_are_connected() {
        for seed in 0..4 {
            for recipe in &recipes()[1..4] {
                let map = generate(recipe, seed).unwrap();
                assert_eq!(map.region_count(), 1, "{recipe:?}");
                assert!(map.free_count() * 4 > map.rect().tile_count(), "{recipe:?}");
            }
        }
    }

    #[test]
    fn maze_has_exactly_one_path_between_any_two_cells() {
        for corridor_tiles in [1, 2, 5] {
            let recipe = MazeRecipe {
                width_tiles: 61,
                height_tiles: 43,
                corridor_tiles,
            };
            let map = generate(&MapRecipe::Maze(recipe), 5).unwrap();
            // Cells and open walls are the nodes and edges of a tree.
            let pitch = corridor_tiles as i32 + 1;
            let (columns, rows) = (60 / pitch, 42 / pitch);
            let mut edges = 0;
            for row in 0..rows {
                for column in 0..columns {
                    let (x, y) = (1 + column * pitch, 1 + row * pitch);
                    assert!(!map.is_blocked((x, y).into()));
                    edges += i32::from(!map.is_blocked((x + pitch - 1, y).into()));
                    edges += i32::from(!map.is_blocked((x, y + pitch - 1).into()));
                }
            }
            assert_eq!(edges, columns * rows - 1);
            assert_eq!(map.region_count(), 1);
        }
    }

    #[test]
    fn random_map_has_the_requested_fill() {
        for (fill, low, high) in [(0.0, 0, 0), (0.25, 24, 26), (1.0, 100, 100)] {
            let recipe = RandomRecipe {
                width_tiles: 300,
                height_tiles: 300,
                fill,
            };
            let map = generate(&MapRecipe::Random(recipe), 1).unwrap();
            let blocked = 90_000 - map.free_count();
            assert!(
                (low * 900..=high * 900).contains(&blocked),
                "{fill}: {blocked}"
            );
        }
    }

    #[test]
    fn invalid_recipe_values_are_refused_by_field_name() {
        let read = |text: &str| {
            let options = ron::Options::default()
                .with_default_extension(ron::extensions::Extensions::UNWRAP_VARIANT_NEWTYPES);
            options.from_str::<MapRecipe>(text).unwrap()
        };
        for (text, field) in [
            ("Town(width_tiles: 0)", "width_tiles"),
            ("Town(height_tiles: 70000)", "height_tiles"),
            (
                "Town(width_tiles: 65536, height_tiles: 65536)",
                "height_tiles",
            ),
            ("Town(block_tiles: 3)", "block_tiles"),
            ("Town(street_tiles: 0)", "street_tiles"),
            ("Town(gates: 5)", "gates"),
            ("Town(core_share: 1.5)", "core_share"),
            ("Town(park_share: NaN)", "park_share"),
            ("Cave(fill: -0.1)", "fill"),
            ("Cave(smoothing_rounds: 1000000)", "smoothing_rounds"),
            ("Maze(corridor_tiles: 0)", "corridor_tiles"),
            ("Maze(corridor_tiles: 511)", "corridor_tiles"),
            ("Rooms(room_tiles: 4294967295)", "room_tiles"),
            ("Rooms(door_tiles: 16)", "door_tiles"),
            ("Rooms(extra_doors: inf)", "extra_doors"),
            ("Random(fill: 1.01)", "fill"),
            ("Random(height_tiles: 0)", "height_tiles"),
        ] {
            let error = generate(&read(text), 0).unwrap_err();
            assert!(
                matches!(&error, MapError::Recipe { field: found, .. } if *found == field),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn extreme_allowed_recipe_values_make_a_map() {
        let big = SIDE_MAX;
        for recipe in [
            MapRecipe::Town(TownRecipe {
                avenue_tiles: big,
                street_tiles: big,
                alley_tiles: big,
                wall_tiles: big,
                core_share: 1.0,
                park_share: 1.0,
                ..TownRecipe::default()
            }),
            MapRecipe::Town(TownRecipe {
                block_tiles: big,
                core_share: 0.0,
                ..TownRecipe::default()
            }),
            MapRecipe::Cave(CaveRecipe {
                fill: 1.0,
                ..CaveRecipe::default()
            }),
            MapRecipe::Maze(MazeRecipe {
                width_tiles: 3,
                height_tiles: 3,
                corridor_tiles: 1,
            }),
            MapRecipe::Rooms(RoomsRecipe {
                door_tiles: 15,
                extra_doors: 1.0,
                ..RoomsRecipe::default()
            }),
        ] {
            generate(&recipe, 1).unwrap();
        }
    }
}
