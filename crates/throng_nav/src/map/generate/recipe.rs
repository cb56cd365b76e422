//! Recipes: the kind of map and the sizes of its parts.

use serde::{Deserialize, Serialize};

/// The kind of map to generate. All sizes are in tiles, shares from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum MapRecipe {
    /// A walled town with streets, houses, gates, a square in the middle and suburbs.
    Town(TownRecipe),
    /// A cave of rounded halls, all connected.
    Cave(CaveRecipe),
    /// A perfect maze: exactly one path between any two tiles.
    Maze(MazeRecipe),
    /// A grid of rooms with doors, all connected.
    Rooms(RoomsRecipe),
    /// Each tile is blocked with the same independent chance.
    Random(RandomRecipe),
}

/// A town: two avenues cross in a square in the middle of the map, a wall with gates surrounds the core, streets and
/// alleys separate blocks of houses and a few parks; outside the wall it thins out.
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
    /// The number of open gates, from 0 to 4: north, south, west, east, in this order. The wall is closed elsewhere.
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
    /// The number of smoothing rounds, at most 64.
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

/// Noise: each tile is blocked with the same independent chance; isolated parts are not connected.
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
