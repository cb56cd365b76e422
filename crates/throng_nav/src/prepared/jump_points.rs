//! The jump points of a map and their numbers.
//!
//! Numbers are assigned by blocks of 64 by 64 tiles, so that the data of neighbours is stored together:
//! a search that moves through adjacent blocks accesses the same few pages and cache lines again and again.
//!
//! Cost: O(1) either way. Memory: 4 bytes per jump point, 1.5 bits per tile.

use glam::IVec2;
use prefetch_index::prefetch_index;

use crate::key::Key;
use crate::map::TileMap;

/// Rows of a block.
const BLOCK_ROWS: usize = 64;

/// The jump points of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JumpPoints {
    /// One bit per tile, row by row, whole words per row.
    pub(super) is_jump_point: Vec<u64>,
    /// For each of those words the number of jump points before it.
    before: Vec<u32>,
    words_per_row: usize,
    /// The tiles of the jump points, by their numbers: block by block, and in each by y, then x.
    tiles: Vec<Key>,
}

impl JumpPoints {
    /// Numbers the jump points; `bits` returns those among 64 tiles of a row from x and y on.
    pub(super) fn number_all(map: &TileMap, bits: impl Fn(i32, i32) -> u64) -> Self {
        let (width, height) = (map.width() as i32, map.height() as i32);
        let words_per_row = (map.width() as usize).div_ceil(64);
        let words = words_per_row * map.height() as usize;
        let (mut is_jump_point, mut before) = (vec![0; words], vec![0; words]);
        let mut tiles = Vec::new();
        for top in (0..height).step_by(BLOCK_ROWS) {
            for x in (0..width).step_by(64) {
                for y in top..height.min(top + BLOCK_ROWS as i32) {
                    let word = y as usize * words_per_row + x as usize / 64;
                    let mut bits = bits(x, y);
                    (is_jump_point[word], before[word]) = (bits, tiles.len() as u32);
                    while bits != 0 {
                        let tile = IVec2::new(x + bits.trailing_zeros() as i32, y);
                        tiles.push(Key::of_tile(tile));
                        bits &= bits - 1;
                    }
                }
            }
        }
        tiles.shrink_to_fit();
        Self {
            is_jump_point,
            before,
            words_per_row,
            tiles,
        }
    }

    /// The number of jump points.
    #[inline(always)]
    pub(crate) fn len(&self) -> u32 {
        self.tiles.len() as u32
    }

    /// The tile of a jump point.
    #[inline(always)]
    pub(crate) fn tile(&self, number: u32) -> IVec2 {
        self.tiles[number as usize].tile()
    }

    /// The number of a jump point by its tile; `None` for any other tile of the map.
    #[inline]
    pub(crate) fn number(&self, tile: IVec2) -> Option<u32> {
        let word = tile.y as usize * self.words_per_row + (tile.x as usize >> 6);
        let (bits, own) = (self.is_jump_point[word], 1 << (tile.x & 63));
        let lower = bits & (own - 1);
        (bits & own != 0).then(|| self.before[word] + lower.count_ones())
    }

    /// Prefetches the memory that [`JumpPoints::tile`] reads.
    #[inline(always)]
    pub(crate) fn prefetch(&self, number: u32) {
        prefetch_index(&self.tiles, number as usize);
    }

    /// Bytes held on the heap.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&self.is_jump_point[..])
            + size_of_val(&self.before[..])
            + size_of_val(&self.tiles[..])
    }
}
