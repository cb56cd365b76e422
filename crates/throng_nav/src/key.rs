//! A tile or a jump point in four bytes.

use glam::IVec2;

/// The tile or jump point of a node.
///
/// A tile's coordinates are in one word, y above x: sides are at most 65,536.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(pub(super) u32);

impl Key {
    /// The key of a tile on a map.
    #[inline]
    pub(super) fn of_tile(tile: IVec2) -> Self {
        debug_assert!(
            (0..65_536).contains(&tile.x) && (0..65_536).contains(&tile.y),
            "{tile} lies on no map"
        );
        Self((tile.y as u32) << 16 | tile.x as u32)
    }

    /// The tile of this key.
    #[inline]
    pub(super) fn tile(self) -> IVec2 {
        IVec2::new((self.0 & 0xFFFF) as i32, (self.0 >> 16) as i32)
    }
}
