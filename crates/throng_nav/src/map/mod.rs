//! Obstacle maps: blocked tiles, connected regions of free tiles, and the sources of maps.
//!
//! ```text
//!  .map .raw .tmap .png ──▶ [load] ─────┐                    ┌──▶ rows, columns: 64 tiles per read, four directions
//!  recipe + seed ──────▶ [generate] ────┼──▶ [`TileMap`] ────┤
//!  rectangle ──────────▶ [edit] ────────┘                    └──▶ regions: reachability in O(1)
//! ```
//!
//! A tile is a square of the map, x to the right and y down. Everything outside a map is blocked. Heights, one-way doors
//! and terrain costs are deliberately absent: a tile is free or it is not.
//!
//! Invariants: the two bit planes are always consistent; so are the regions, except that after a large split they may be too
//! large until they are final; a map never has more than [`SIDE_MAX`] tiles per
//! side and [`TILES_MAX`] in all, checked before anything is allocated.
//!
//! Cost: a quarter of a byte per tile for the planes, one byte per tile for up to 254 regions of 64 tiles or more, two for up
//! to 65,534; smaller ones take none of their own. An edit costs its
//! rectangle and the smaller of the fragments that it joins or splits, up to a limit; the rest is left to
//! [`TileMap::finish_splits`], in slices.

// | file | holds |
// | `tiles` | `TileMap`: the tiles, row by row and column by column |
// | `rect` | `TileRect`, and the maximum size of a map |
// | `bit_plane` | one bit per tile, 64 per read |
// | `regions/` | connected regions of free tiles |
// | `edits` | `TileEdit`: changes of the tiles of a rectangle |
// | `erosion` | maps for walkers wider than a tile |
// | `nearest`, `line_of_sight` | the nearest free tile; lines of sight |
// | `sections` | `MapSection`: prepared data that a `.tmap` file stores |
// | `formats/`, `io` | file formats, between bytes and maps; files |
// | `generate/` | maps from a recipe and a seed |
// | `error` | `MapError` |

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
pub use formats::{MapFormat, TileLetter, count_letters, decode, decode_patches, encode};
pub use generate::{
    CaveRecipe, MapRecipe, MazeRecipe, RandomRecipe, RoomsRecipe, TownRecipe, generate,
    measure_recipe,
};
pub use io::{FILE_BYTES_MAX, load, load_patches, save};
pub use rect::{SIDE_MAX, TILES_MAX, TileRect};
pub use regions::RegionId;
pub use sections::MapSection;
pub use tiles::{MapMemory, TileMap};
