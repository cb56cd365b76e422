//! Obstacle maps: which tiles are blocked, which free tiles are connected, and how maps come about.
//!
//! ```text
//!  .map .raw .tmap .png ──▶ [load] ─────┐                    ┌──▶ rows, columns: 64 tiles a read, four directions
//!  recipe + seed ──────▶ [generate] ────┼──▶ [`TileMap`] ────┤
//!  rectangle ──────────▶ [edit] ────────┘                    └──▶ regions: reachability in O(1)
//! ```
//! | file | holds |
//! |---|---|
//! | `tiles` | [`TileMap`]: the tiles, row by row and column by column |
//! | `rect` | [`TileRect`], and how large a map may be |
//! | `bit_plane` | a bit a tile, 64 a read |
//! | `regions/` | which free tiles are connected |
//! | `edits` | [`TileEdit`]: what may be done to the tiles of a rectangle |
//! | `erode` | maps for bodies wider than a tile |
//! | `nearest`, `line` | the nearest free tile; lines of sight |
//! | `parts` | [`MapSection`]: what others prepared of the tiles, and a `.tmap` keeps |
//! | `formats/`, `io` | file formats, between bytes and maps; files |
//! | `generate/` | maps from a recipe and a seed |
//! | `error` | [`MapError`] |
//!
//! A tile is a square of the map, x to the right and y down. Everything outside a map is blocked. Heights, doors that
//! open one way and costs of terrain are deliberately absent: a tile is free or it is not.
//!
//! Invariants: the two bit planes are always in step; so are the regions, but that after a large cut they may be too large
//! until the map is settled; a map never has more than [`SIDE_MAX`] tiles a
//! side and [`TILES_MAX`] in all, checked before anything is allocated.
//!
//! Cost: a quarter of a byte a tile for the planes, one byte a tile for up to 254 regions of 64 tiles or more, two for up
//! to 65,534; smaller ones take none of their own. An edit costs what its
//! rectangle and the smaller of the pieces that it joins or splits cost, up to a limit; what goes beyond it is left to
//! [`TileMap::finish_splits`], a slice at a time.

mod bit_plane;
mod edits;
mod erosion;
mod error;
mod formats;
mod generate;
mod io;
mod line_of_sight;
mod nearest;
mod rect;
mod regions;
mod sections;
mod tiles;

pub use bit_plane::BitPlane;
pub(crate) use bit_plane::transpose_block;
pub use edits::{TileEdit, TilePattern};
pub use error::{MapError, SourceLocation};
pub use formats::{MapFormat, decode, decode_patches, encode};
pub use generate::{
    CaveRecipe, MapRecipe, MazeRecipe, RandomRecipe, RoomsRecipe, TownRecipe, generate,
    measure_recipe,
};
pub use io::{FILE_BYTES_MAX, load, load_patches, save};
pub use rect::{SIDE_MAX, TILES_MAX, TileRect};
pub use regions::RegionId;
pub use sections::MapSection;
pub use tiles::{MapMemory, TileMap};
