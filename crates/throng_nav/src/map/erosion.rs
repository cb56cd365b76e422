//! Maps for walkers wider than a tile: a tile is free if a walker centred on it fits.
//!
//! A walker of clearance c covers a square of 2c + 1 tiles a side. Obstacles grow by c tiles on every side (a dilation of
//! the blocked tiles), so a path of single tiles on the eroded map is one of the whole walker on the map itself.
//!
//! Cost: 4c + 2 operations for 64 tiles, which is little compared with the regions of the eroded map.

use super::TileMap;
use super::bit_plane::BitPlane;
use super::edits::{TileEdit, TilePattern};
use super::rect::TileRect;

impl TileMap {
    /// The map for walkers that need `clearance` free tiles on every side of theirs. O(tiles).
    pub fn eroded(&self, clearance: u8) -> TileMap {
        TileMap::from_rows(eroded_rows(&self.rows, self.rect(), clearance))
    }

    /// Updates this [eroded](TileMap::eroded) map after an edit of `base` in a rectangle. Returns the rectangle that
    /// really changed here, as [`TileMap::edit`] does; does nothing if the sizes differ.
    pub fn update_eroded(
        &mut self,
        base: &TileMap,
        changed: TileRect,
        clearance: u8,
    ) -> Option<TileRect> {
        if self.rect() != base.rect() {
            return None;
        }
        let rect = changed
            .grown(u32::from(clearance))
            .intersection(&self.rect());
        if rect.tile_count() == 0 {
            return None;
        }
        let pattern = TilePattern::from_plane(eroded_rows(&base.rows, rect, clearance));
        self.edit(rect, &TileEdit::Write(pattern)).ok().flatten()
    }
}

/// The rows of a rectangle on the map.
fn eroded_rows(rows: &BitPlane, rect: TileRect, clearance: u8) -> BitPlane {
    let reach = i32::from(clearance);
    let words = rect.width.div_ceil(64) as usize;
    let heights = rect.y as i32 - reach..rect.bottom() as i32 + reach;
    // First across, then down: together they cover the square.
    let mut wide = Vec::with_capacity(words * heights.len());
    for y in heights {
        let is_outside = y < 0 || y >= rows.height() as i32;
        for first in (rect.x..rect.right()).step_by(64) {
            wide.push(if is_outside {
                u64::MAX
            } else {
                wide_word(rows, first as i32, y, reach)
            });
        }
    }
    let mut plane = BitPlane::blocked(rect.width, rect.height);
    for (y, above) in (0..rect.height).zip(0..) {
        let column = |word: usize| {
            let square = wide[above * words..].iter().skip(word).step_by(words);
            square
                .take(2 * clearance as usize + 1)
                .fold(0, |all, bits| all | bits)
        };
        plane.set_row(y, (0..words).map(column));
    }
    plane
}

/// 64 tiles of a row, blocked if any tile at most `reach` to the left or right is.
fn wide_word(rows: &BitPlane, x: i32, y: i32, reach: i32) -> u64 {
    let width = rows.width() as i32;
    let word = |x: i32| {
        if (-64..width + 64).contains(&x) {
            rows.word_at(x, y)
        } else {
            u64::MAX
        }
    };
    (-reach..=reach).fold(0, |all, dx| all | word(x + dx))
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::IVec2;
    use proptest::prelude::*;

    /// By the definition, tile by tile.
    fn fits(map: &TileMap, tile: IVec2, clearance: u8) -> bool {
        let reach = i32::from(clearance);
        (-reach..=reach).all(|dy| (-reach..=reach).all(|dx| map.is_free(tile + IVec2::new(dx, dy))))
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn eroded_maps_agree_with_the_definition_and_follow_edits(
            (width, height) in (1u32..150, 1u32..40),
            free_one_in in 1u32..60,
            clearance in 0u8..70,
            seed in any::<u32>(),
            edits in prop::collection::vec((0u32..150, 0u32..40, 1u32..80, 1u32..10, any::<bool>()), 0..6),
        ) {
            let clearance = if clearance < 60 { clearance % 4 } else { clearance };
            let is_blocked = |x: u32, y: u32| {
                let mixed = ((x * 7919 + y * 104_729) ^ seed).wrapping_mul(0x9E37_79B9) >> 8;
                mixed % free_one_in == 1
            };
            let mut map = TileMap::from_fn(width, height, is_blocked).unwrap();
            let mut eroded = map.eroded(clearance);
            for (x, y, w, h, block) in edits {
                let rect = TileRect::new(x, y, w, h).intersection(&map.rect());
                let edit = if block { TileEdit::Block } else { TileEdit::Free };
                if let Ok(Some(changed)) = map.edit(rect, &edit) {
                    eroded.update_eroded(&map, changed, clearance);
                }
            }
            for y in 0..height as i32 {
                for x in 0..width as i32 {
                    let tile = IVec2::new(x, y);
                    prop_assert_eq!(eroded.is_free(tile), fits(&map, tile, clearance), "{}", tile);
                }
            }
            prop_assert_eq!(&eroded, &map.eroded(clearance));
        }
    }
}
