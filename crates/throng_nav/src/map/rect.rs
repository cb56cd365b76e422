//! Rectangles of tiles, and the maximum size of a map.

use std::fmt;

use glam::IVec2;
use serde::{Deserialize, Serialize};

/// The maximum number of tiles along a side of a map.
pub const SIDE_MAX: u32 = 65_536;

/// The maximum number of tiles of a map.
pub const TILES_MAX: u64 = 1 << 28;

/// A rectangle of tiles. In a scenario it is written `(x, y, width, height)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "(u32, u32, u32, u32)", into = "(u32, u32, u32, u32)")]
pub struct TileRect {
    /// The left-most tile.
    pub x: u32,
    /// The top-most tile.
    pub y: u32,
    /// Tiles from left to right.
    pub width: u32,
    /// Tiles from top to bottom.
    pub height: u32,
}

impl TileRect {
    /// A rectangle by its top left tile and its size.
    pub const fn new(x: u32, y: u32, width: u32, height: u32) -> Self {
        Self {
            x,
            y,
            width,
            height,
        }
    }

    /// The first column right of the rectangle, at most `u32::MAX`.
    pub const fn right(&self) -> u32 {
        self.x.saturating_add(self.width)
    }

    /// The first row below the rectangle, at most `u32::MAX`.
    pub const fn bottom(&self) -> u32 {
        self.y.saturating_add(self.height)
    }

    /// The number of tiles.
    pub const fn tile_count(&self) -> u64 {
        self.width as u64 * self.height as u64
    }

    /// Whether a tile is in the rectangle.
    pub fn contains(&self, tile: IVec2) -> bool {
        let (x, y) = (i64::from(tile.x), i64::from(tile.y));
        let (left, top) = (i64::from(self.x), i64::from(self.y));
        x >= left
            && y >= top
            && x < left + i64::from(self.width)
            && y < top + i64::from(self.height)
    }

    /// The intersection of both; empty if they share no tile.
    pub fn intersection(&self, other: &TileRect) -> TileRect {
        let (x, y) = (self.x.max(other.x), self.y.max(other.y));
        TileRect {
            x,
            y,
            width: self.right().min(other.right()).saturating_sub(x),
            height: self.bottom().min(other.bottom()).saturating_sub(y),
        }
    }

    /// The rectangle with this many tiles more on every side, as far as coordinates go.
    pub const fn grown(&self, tiles: u32) -> TileRect {
        let (x, y) = (self.x.saturating_sub(tiles), self.y.saturating_sub(tiles));
        TileRect {
            x,
            y,
            width: self.right().saturating_add(tiles).saturating_sub(x),
            height: self.bottom().saturating_add(tiles).saturating_sub(y),
        }
    }

    /// Whether the two share a tile.
    pub fn intersects(&self, other: &TileRect) -> bool {
        self.intersection(other).tile_count() > 0
    }
}

impl From<(u32, u32, u32, u32)> for TileRect {
    fn from((x, y, width, height): (u32, u32, u32, u32)) -> Self {
        Self {
            x,
            y,
            width,
            height,
        }
    }
}

impl From<TileRect> for (u32, u32, u32, u32) {
    fn from(rect: TileRect) -> Self {
        (rect.x, rect.y, rect.width, rect.height)
    }
}

impl fmt::Display for TileRect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "({}, {}, {}, {})",
            self.x, self.y, self.width, self.height
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangles_intersect_when_they_share_a_tile() {
        let rect = TileRect::new(2, 3, 4, 2);
        assert!(rect.contains(IVec2::new(2, 3)) && rect.contains(IVec2::new(5, 4)));
        assert!(!rect.contains(IVec2::new(6, 4)) && !rect.contains(IVec2::new(5, 5)));
        assert!(!rect.contains(IVec2::new(-1, 3)));
        assert!(
            rect.intersects(&TileRect::new(5, 4, 1, 1))
                && !rect.intersects(&TileRect::new(6, 4, 1, 1))
        );
        assert!(!rect.intersects(&TileRect::new(3, 3, 0, 1)));
        let huge = TileRect::new(3, 0, u32::MAX, u32::MAX);
        assert_eq!(rect.intersection(&huge), TileRect::new(3, 3, 3, 2));
    }
}
