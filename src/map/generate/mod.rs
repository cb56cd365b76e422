//! Maps made from a recipe and a seed, for scenarios, tests and benches.
//!
//! | file | holds |
//! |---|---|
//! | `town` | a walled town with streets and houses |
//! | `cave` | rounded halls, all connected |
//! | `grid` | mazes and rooms |
//!
//! Invariants: the same recipe and seed give the same tiles on every platform (`Pcg64Mcg` and integers; a share is
//! turned into an integer once); a recipe that makes no map is an error that names the field.
//!
//! Cost: O(tiles); a town of 2,000 × 2,000 tiles takes about 15 ms.

mod cave;
mod grid;
mod town;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::TileMap;
use super::bit_plane::{BitPlane, TileRun};
use super::error::{MapError, SourcePlace};
use super::rect::{SIDE_MAX, TILES_MAX, TileRect};
use super::regions::run_components;
use super::tiles::check_size;

/// What kind of map to make. All sizes are in tiles, shares from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum MapRecipe {
    /// A walled town with streets, houses, gates, a square in the middle and suburbs.
    Town(TownRecipe),
    /// A cave of rounded halls, all connected.
    Cave(CaveRecipe),
    /// A perfect maze: exactly one way between any two places.
    Maze(MazeRecipe),
    /// A grid of rooms with doors, all connected.
    Rooms(RoomsRecipe),
    /// Each tile blocked with the same chance, on its own.
    Random(RandomRecipe),
}

/// A town: two avenues cross in a square in the middle of the map, a wall with gates surrounds the core, streets and
/// alleys part blocks of houses and a few parks; outside the wall it thins out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TownRecipe {
    /// The map's width.
    pub width_tiles: u32,
    /// The map's height.
    pub height_tiles: u32,
    /// The width of the avenues, and of the gates in which they pass the wall.
    pub avenue_tiles: u32,
    /// The width of a street.
    pub street_tiles: u32,
    /// The width of an alley.
    pub alley_tiles: u32,
    /// The longest side of a block of houses.
    pub block_tiles: u32,
    /// The side of the walled core as a share of the map's. 0 builds no wall.
    pub core_share: f64,
    /// The thickness of the wall.
    pub wall_tiles: u32,
    /// How many gates are open, from 0 to 4: north, south, west, east, in this order. The wall is closed elsewhere.
    pub gates: u32,
    /// The share of blocks that are parks.
    pub park_share: f64,
}

impl Default for TownRecipe {
    fn default() -> Self {
        Self {
            width_tiles: 1_000,
            height_tiles: 1_000,
            avenue_tiles: 20,
            street_tiles: 10,
            alley_tiles: 5,
            block_tiles: 64,
            core_share: 0.4,
            wall_tiles: 4,
            gates: 4,
            park_share: 0.06,
        }
    }
}

/// A cave, grown from noise by a cellular automaton. Pockets are closed, so that all free tiles are connected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CaveRecipe {
    /// The map's width.
    pub width_tiles: u32,
    /// The map's height.
    pub height_tiles: u32,
    /// The share of tiles blocked in the noise; from about 0.4 (wide halls) to 0.5 (narrow caves).
    pub fill: f64,
    /// How often the noise is smoothed, at most 64 times.
    pub smoothing_rounds: u32,
}

impl Default for CaveRecipe {
    fn default() -> Self {
        Self {
            width_tiles: 512,
            height_tiles: 512,
            fill: 0.47,
            smoothing_rounds: 6,
        }
    }
}

/// A maze of corridors with walls one tile thick.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MazeRecipe {
    /// The map's width.
    pub width_tiles: u32,
    /// The map's height.
    pub height_tiles: u32,
    /// The width of a corridor.
    pub corridor_tiles: u32,
}

impl Default for MazeRecipe {
    fn default() -> Self {
        Self {
            width_tiles: 512,
            height_tiles: 512,
            corridor_tiles: 4,
        }
    }
}

/// A grid of square rooms with walls one tile thick.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoomsRecipe {
    /// The map's width.
    pub width_tiles: u32,
    /// The map's height.
    pub height_tiles: u32,
    /// The side of a room, without its walls.
    pub room_tiles: u32,
    /// The width of a door; a door as wide as a room leaves no wall.
    pub door_tiles: u32,
    /// The share of walls that get a door beyond those needed to connect all rooms.
    pub extra_doors: f64,
}

impl Default for RoomsRecipe {
    fn default() -> Self {
        Self {
            width_tiles: 512,
            height_tiles: 512,
            room_tiles: 15,
            door_tiles: 2,
            extra_doors: 0.25,
        }
    }
}

/// Noise: each tile is blocked with the same chance, whatever its neighbours are; nothing connects what is cut off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RandomRecipe {
    /// The map's width.
    pub width_tiles: u32,
    /// The map's height.
    pub height_tiles: u32,
    /// The chance of a tile to be blocked.
    pub fill: f64,
}

impl Default for RandomRecipe {
    fn default() -> Self {
        Self {
            width_tiles: 512,
            height_tiles: 512,
            fill: 0.25,
        }
    }
}

/// Makes the map of a recipe; the same recipe and seed give the same tiles.
///
/// Errors: [`MapError::Recipe`] names the first field whose value makes no map.
pub fn generate(recipe: &MapRecipe, seed: u64) -> Result<TileMap, MapError> {
    tiles_of(recipe, seed).map(TileMap::from_rows)
}

/// What the map of a recipe would be: its tiles as a rectangle, and how many of them are free. The tiles are made and
/// thrown away; what a map keeps beside them for searches is never built, which is most of the time and the memory.
///
/// Errors: as [`generate`].
pub fn survey(recipe: &MapRecipe, seed: u64) -> Result<(TileRect, u64), MapError> {
    let rows = tiles_of(recipe, seed)?;
    let free_tiles = (0..rows.height())
        .flat_map(|y| rows.runs(y))
        .map(|run| u64::from(run.len()));
    let free_tiles = free_tiles.sum();
    Ok((TileRect::new(0, 0, rows.width(), rows.height()), free_tiles))
}

fn tiles_of(recipe: &MapRecipe, seed: u64) -> Result<BitPlane, MapError> {
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

fn noise(width: u32, height: u32, blocked: Chance, rng: &mut Pcg64Mcg) -> BitPlane {
    BitPlane::from_fn(width, height, |_, _| blocked.draw(rng))
}

/// Blocks all regions with fewer tiles than the given number, but for the largest.
///
/// Works on the runs of the rows, so that what is built of a map is built once, of the tiles that it keeps.
fn close_pockets(mut rows: BitPlane, tiles_min: u64) -> BitPlane {
    let (numbers, tiles) = run_components(&rows);
    let largest = tiles.iter().copied().max().unwrap_or_default();
    let tiles_min = tiles_min.min(u64::from(largest));
    let mut numbers = numbers.into_iter();
    let mut runs = Vec::new();
    for y in 0..rows.height() {
        runs.clear();
        runs.extend(rows.runs(y));
        for (&run, number) in runs.iter().zip(numbers.by_ref()) {
            if u64::from(tiles[number as usize]) < tiles_min {
                rows.set_run(run, true);
            }
        }
    }
    rows
}

/// A chance in steps of 2⁻³², so that draws compare integers.
#[derive(Clone, Copy)]
struct Chance(u64);

impl Chance {
    fn new(field: &'static str, share: f64) -> Result<Self, MapError> {
        if (0.0..=1.0).contains(&share) {
            Ok(Self((share * 4_294_967_296.0) as u64))
        } else {
            Err(recipe_error(field, share, "a share from 0 to 1"))
        }
    }

    const fn percent(percent: u64) -> Self {
        Self((percent << 32) / 100)
    }

    fn draw(self, rng: &mut Pcg64Mcg) -> bool {
        u64::from(rng.next_u32()) < self.0
    }
}

/// A number from `low` to `high`, both included (Lemire's multiplication, without its rejection: the bias is below
/// 2⁻¹⁶ for the small ranges used here).
fn between(low: i32, high: i32, rng: &mut Pcg64Mcg) -> i32 {
    debug_assert!(low <= high);
    let count = i64::from(high) - i64::from(low) + 1;
    low + ((i64::from(rng.next_u32()) * count) >> 32) as i32
}

fn recipe_error(
    field: &'static str,
    found: impl ToString,
    expected: impl Into<String>,
) -> MapError {
    MapError::Recipe {
        field,
        found: found.to_string(),
        expected: expected.into(),
    }
}

fn check_sides(width: u32, height: u32) -> Result<(), MapError> {
    for (field, side) in [("width_tiles", width), ("height_tiles", height)] {
        check_range(field, side, 1, SIDE_MAX)?;
    }
    check_size(u64::from(width), u64::from(height), &SourcePlace::default()).map_err(|_| {
        let found = format!("{height} with a width of {width}");
        recipe_error(
            "height_tiles",
            found,
            format!("at most {TILES_MAX} tiles in all"),
        )
    })
}

fn check_range(field: &'static str, found: u32, min: u32, max: u32) -> Result<(), MapError> {
    if (min..=max).contains(&found) {
        Ok(())
    } else {
        Err(recipe_error(
            field,
            found,
            format!("a whole number from {min} to {max}"),
        ))
    }
}

/// A plane to draw on with rectangles that may lie partly or wholly outside.
struct Canvas {
    plane: BitPlane,
}

impl Canvas {
    fn fill(&mut self, x: i32, y: i32, width: i32, height: i32, blocked: bool) {
        let (left, right) = (x.max(0), (x + width).min(self.plane.width() as i32));
        if left >= right {
            return;
        }
        for y in y.max(0)..(y + height).min(self.plane.height() as i32) {
            self.plane.set_run(
                TileRun {
                    y: y as u32,
                    start: left as u32,
                    end: right as u32 - 1,
                },
                blocked,
            );
        }
    }
}

#[cfg(test)]
mod tests {
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
    fn the_same_seed_gives_the_same_map_and_another_seed_another() {
        for recipe in recipes() {
            let map = generate(&recipe, 7).unwrap();
            assert_eq!(map, generate(&recipe, 7).unwrap(), "{recipe:?}");
            assert_ne!(map, generate(&recipe, 8).unwrap(), "{recipe:?}");
        }
    }

    #[test]
    fn maps_stay_the_same_from_version_to_version() {
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
    fn a_survey_tells_the_size_and_the_free_tiles_of_the_map_that_is_made() {
        let solid = MapRecipe::Random(RandomRecipe {
            width_tiles: 70,
            height_tiles: 3,
            fill: 1.0,
        });
        for recipe in recipes().into_iter().chain([town(7, 3), town(1, 1), solid]) {
            for seed in 0..4 {
                let map = generate(&recipe, seed).unwrap();
                // Counted tile by tile: what the map knows of itself comes from the same runs of its rows.
                let (width, height) = (map.width() as i32, map.height() as i32);
                let tiles = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
                let free = tiles.filter(|&(x, y)| !map.is_blocked(x, y)).count() as u64;
                assert_eq!(free, map.free_count(), "{recipe:?}");
                let expected = (map.rect(), free);
                assert_eq!(survey(&recipe, seed).unwrap(), expected, "{recipe:?}");
            }
        }
        let none = MapRecipe::Random(RandomRecipe {
            width_tiles: 0,
            ..RandomRecipe::default()
        });
        assert_eq!(
            survey(&none, 0).unwrap_err().to_string(),
            generate(&none, 0).unwrap_err().to_string()
        );
    }

    #[test]
    fn almost_all_of_a_town_is_connected_and_its_middle_is_open() {
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
    fn a_towns_gates_are_the_only_ways_through_its_wall() {
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
            closed.is_free(middle) && closed.is_free(outside) && !closed.connected(middle, outside)
        );
        let mut siege = with_gates(1);
        assert!(siege.connected(middle, outside));
        let gate = crate::map::TileRect::new(490, 300, 20, 4);
        assert_eq!(
            siege.edit(gate, &crate::map::TileEdit::Block).unwrap(),
            Some(gate),
            "the gate is there"
        );
        siege.settle(usize::MAX);
        assert!(!siege.connected(middle, outside));
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
    fn a_maze_has_exactly_one_way_between_any_two_places() {
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
                    assert!(!map.is_blocked(x, y));
                    edges += i32::from(!map.is_blocked(x + pitch - 1, y));
                    edges += i32::from(!map.is_blocked(x, y + pitch - 1));
                }
            }
            assert_eq!(edges, columns * rows - 1);
            assert_eq!(map.region_count(), 1);
        }
    }

    #[test]
    fn noise_has_the_share_it_was_asked_for() {
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
    fn values_that_make_no_map_are_refused_by_name() {
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
    fn extreme_values_that_are_allowed_make_a_map() {
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
