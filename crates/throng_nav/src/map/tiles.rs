//! The obstacle map: two bit planes and the connected regions, kept consistent.
//!
//! Invariants: `columns` is the transpose of `rows`; two tiles have the same region if straight steps connect
//! them and, once the regions are final, only then; `fingerprint` is a function of the tiles alone.
//!
//! Cost: 1/4 byte per tile for the two planes, 1 or 2 bytes per tile for the regions (4 with more than 65,534 of 64 tiles or
//! more, which takes 4.2 million tiles).

use std::sync::Arc;

use glam::IVec2;

use super::bit_plane::{BitPlane, TileRun};
use super::error::{MapError, SourceLocation};
use super::rect::{SIDE_MAX, TILES_MAX, TileRect};
use super::regions::{RegionId, Regions};
use super::sections::MapSection;

/// An obstacle map: blocked tiles, and connected regions of free tiles.
///
/// x points to the right, y down, tile (0, 0) is at the top left. Everything outside the map is blocked. Tiles change
/// through [`TileMap::edit`] and [`TileMap::set_blocked`] only.
///
/// A tile is an [`IVec2`] in every method, because a path or a step may lead outside; sizes and rectangles are `u32`, because they
/// cannot. Only [`BitPlane`], whose axes are swapped in [`TileMap::columns`], takes two numbers.
///
/// Two maps are equal when their tiles are; their [sections](TileMap::parts) may differ, and so may their region ids,
/// since those depend on the edits.
#[derive(Clone, Debug)]
pub struct TileMap {
    pub(super) rows: BitPlane,
    pub(super) columns: BitPlane,
    pub(super) regions: Regions,
    pub(super) fingerprint: u64,
    pub(super) sections: Arc<[MapSection]>,
}

impl PartialEq for TileMap {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint && self.rows == other.rows
    }
}

impl Eq for TileMap {}

impl TileMap {
    /// A map whose tiles are all blocked or all free.
    ///
    /// Errors: [`MapError::Size`] when a side is 0 or above [`SIDE_MAX`], or there are more than [`TILES_MAX`] tiles;
    /// nothing is allocated then.
    pub fn new(width: u32, height: u32, blocked: bool) -> Result<Self, MapError> {
        check_size(
            u64::from(width),
            u64::from(height),
            &SourceLocation::default(),
        )?;
        let mut rows = BitPlane::blocked(width, height);
        if !blocked {
            for y in 0..height {
                rows.set_run(
                    TileRun {
                        y,
                        start: 0,
                        end: width - 1,
                    },
                    false,
                );
            }
        }
        Ok(Self::from_rows(rows))
    }

    /// A map of the tiles for which `is_blocked(x, y)` is true; called row by row, from left to right.
    ///
    /// Errors: as [`TileMap::new`].
    pub fn from_fn(
        width: u32,
        height: u32,
        is_blocked: impl FnMut(u32, u32) -> bool,
    ) -> Result<Self, MapError> {
        check_size(
            u64::from(width),
            u64::from(height),
            &SourceLocation::default(),
        )?;
        Ok(Self::from_rows(BitPlane::from_fn(
            width, height, is_blocked,
        )))
    }

    /// A map drawn in text, for tests and documentation: `.` is free, `@` and `#` are blocked, a line of text is a row.
    /// Spaces around a line and empty lines at either end are dropped.
    ///
    /// Errors: another letter, rows of different lengths, no row at all.
    ///
    /// ```
    /// use throng_nav::map::TileMap;
    /// let map = TileMap::from_ascii("..#\n.#.")?;
    /// assert_eq!((map.width(), map.height(), map.region_count()), (3, 2, 2));
    /// # Ok::<(), throng_nav::map::MapError>(())
    /// ```
    pub fn from_ascii(text: &str) -> Result<Self, MapError> {
        Ok(Self::from_rows(parse_ascii(text)?))
    }

    /// Builds everything that is derived from the rows.
    pub(super) fn from_rows(rows: BitPlane) -> Self {
        let mut columns = BitPlane::blocked(rows.height(), rows.width());
        columns.transpose_from(&rows, TileRect::new(0, 0, rows.width(), rows.height()));
        let regions = Regions::build(&rows);
        let fingerprint = (0..rows.height()).fold(
            mix(u64::from(rows.width()) << 32 | u64::from(rows.height())),
            |sum, y| sum ^ row_fingerprint(&rows, y, 0..rows.width()),
        );
        Self {
            rows,
            columns,
            regions,
            fingerprint,
            sections: Arc::default(),
        }
    }

    /// The same map with these sections instead of its own.
    #[must_use]
    pub fn with_sections(self, parts: Vec<MapSection>) -> Self {
        let parts = parts.into();
        Self {
            sections: parts,
            ..self
        }
    }

    /// The sections that were loaded with the map from a `.tmap` file. An edit that changes a tile
    /// drops all of them; until then the bytes of the file stay in memory, for another scene with the same map.
    pub fn parts(&self) -> &[MapSection] {
        &self.sections
    }

    /// The number of tiles from left to right.
    pub fn width(&self) -> u32 {
        self.rows.width()
    }

    /// The number of tiles from top to bottom.
    pub fn height(&self) -> u32 {
        self.rows.height()
    }

    /// The whole map as a rectangle.
    pub fn rect(&self) -> TileRect {
        TileRect::new(0, 0, self.width(), self.height())
    }

    /// The bitmap row by row: `rows().word_at(x, y)` is 64 tiles to the right of (x, y).
    pub fn rows(&self) -> &BitPlane {
        &self.rows
    }

    /// The bitmap column by column, x and y swapped: `columns().word_at(y, x)` is 64 tiles down from (x, y).
    pub fn columns(&self) -> &BitPlane {
        &self.columns
    }

    /// Whether a tile is blocked. Everything outside the map is.
    #[inline]
    pub fn is_blocked(&self, tile: IVec2) -> bool {
        self.rows.is_blocked(tile.x, tile.y)
    }

    /// Whether a tile is on the map and not blocked.
    #[inline]
    pub fn is_free(&self, tile: IVec2) -> bool {
        !self.rows.is_blocked(tile.x, tile.y)
    }

    /// The region of a tile; `None` when it is blocked or outside.
    ///
    /// Until the [regions are final](TileMap::has_final_regions), a region that an edit has split may still be one.
    ///
    /// Cost: O(1); in a region of fewer than 64 tiles a flood of them, tens of nanoseconds to a few microseconds.
    #[inline]
    pub fn region(&self, tile: IVec2) -> Option<RegionId> {
        let (x, y) = self.inside(tile)?;
        self.regions.at(&self.rows, x, y)
    }

    /// Whether a tile belongs to a region: the same as comparing [`TileMap::region`], and O(1) unless both are of fewer
    /// than 64 tiles.
    #[inline]
    pub fn is_in_region(&self, tile: IVec2, region: RegionId) -> bool {
        self.inside(tile)
            .is_some_and(|(x, y)| self.regions.contains(&self.rows, region, x, y))
    }

    /// Whether two tiles are free and connected by straight steps. O(1), or a flood of fewer than 64
    /// tiles.
    ///
    /// `false` is always right. `true` means *perhaps* until the [regions are final](TileMap::has_final_regions): a large edit
    /// may just have separated the two.
    ///
    /// A diagonal step needs both straight neighbours free, or at least one of them, so this also holds for 8-connected
    /// movement.
    #[inline]
    pub fn are_connected(&self, a: IVec2, b: IVec2) -> bool {
        self.inside(a)
            .zip(self.inside(b))
            .is_some_and(|(a, b)| self.regions.are_connected(&self.rows, a, b))
    }

    /// Whether [`TileMap::finish_splits`] has nothing left to do. Until then regions, and the result of connectivity queries,
    /// may be too large, never too small: tiles reported as not connected are not. O(1).
    #[inline]
    pub fn has_final_regions(&self) -> bool {
        self.regions.has_final_regions()
    }

    /// Continues the work that edits left over, and returns whether the regions are final now.
    ///
    /// Cost: O(`runs_max`), in runs of free tiles, about 10 to 20 ns each. The limit doubles each time that
    /// an edit of a region restarts the running flood in it, so a region that is edited again and
    /// again is finished all the same. The state after the call follows from the edits and the calls alone.
    pub fn finish_splits(&mut self, runs_max: usize) -> bool {
        self.regions.finish_splits(&self.rows, runs_max)
    }

    /// The coordinates of a tile on the map.
    #[inline]
    fn inside(&self, tile: IVec2) -> Option<(u32, u32)> {
        // A negative coordinate is beyond any size.
        let (x, y) = (tile.x as u32, tile.y as u32);
        (x < self.width() && y < self.height()).then_some((x, y))
    }

    /// The number of regions; a region with a pending split counts as one until the [regions are
    /// final](TileMap::has_final_regions). O(1).
    pub fn region_count(&self) -> u32 {
        self.regions.count()
    }

    /// The number of tiles in a region; 0 when there is no such region. O(1), or a flood of fewer than 64 tiles.
    pub fn region_size(&self, region: RegionId) -> u64 {
        self.regions.size(&self.rows, region)
    }

    /// The number of free tiles. O(regions of 64 tiles and more).
    pub fn free_count(&self) -> u64 {
        self.regions.free_count()
    }

    /// The region with the most tiles and how many it has; the lowest number among equals.
    ///
    /// Cost: O(regions of 64 tiles and more); on a map that has none, a flood from every stretch of free tiles.
    pub fn largest_region(&self) -> Option<(RegionId, u64)> {
        self.regions.largest(&self.rows)
    }

    /// 64 bits that follow from the size and the tiles alone, updated by edits: the input of a state hash for the
    /// map. O(1).
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The memory use of each part of the map, in bytes.
    pub fn memory(&self) -> MapMemory {
        MapMemory {
            rows_bytes: std::mem::size_of_val(self.rows.words()),
            columns_bytes: std::mem::size_of_val(self.columns.words()),
            regions_bytes: self.regions.bytes(),
            sections_bytes: self.sections.iter().map(|part| part.bytes().len()).sum(),
        }
    }
}

/// The memory use of a [`TileMap`] in bytes, by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapMemory {
    /// The bitmap row by row.
    pub rows_bytes: usize,
    /// The transposed bitmap.
    pub columns_bytes: usize,
    /// The region of each tile and the size of each region.
    pub regions_bytes: usize,
    /// The sections that were loaded from a file. Clones of a map share them.
    pub sections_bytes: usize,
}

impl MapMemory {
    /// All parts together.
    pub fn total_bytes(&self) -> usize {
        self.rows_bytes + self.columns_bytes + self.regions_bytes + self.sections_bytes
    }
}

/// Reads the drawing that [`TileMap::from_ascii`] describes.
pub(super) fn parse_ascii(text: &str) -> Result<BitPlane, MapError> {
    let mut tiles = Vec::new();
    let mut width = None;
    let mut height = 0;
    let blank_lines = text
        .lines()
        .take_while(|line| line.trim().is_empty())
        .count();
    for (number, line) in (1..).zip(text.trim_end().lines()).skip(blank_lines) {
        let row = line.trim();
        let place = |column: usize| SourceLocation::text("text", number, column as u32 + 1);
        for (column, letter) in row.chars().enumerate() {
            match letter {
                '.' => tiles.push(false),
                '@' | '#' => tiles.push(true),
                _ => {
                    return Err(MapError::UnknownLetter {
                        place: place(column),
                        found: letter,
                        expected: "`.` (free), `@` or `#` (blocked)",
                    });
                }
            }
        }
        let found = tiles.len() - width.unwrap_or(0) * height;
        if found != *width.get_or_insert(found) {
            let expected = width.unwrap_or(0) as u32;
            return Err(MapError::RowLength {
                place: place(found),
                found: found as u64,
                expected,
            });
        }
        height += 1;
    }
    let width = width.unwrap_or(0);
    check_size(
        width as u64,
        height as u64,
        &SourceLocation::text("text", 1, 1),
    )?;
    Ok(BitPlane::from_fn(width as u32, height as u32, |x, y| {
        tiles[y as usize * width + x as usize]
    }))
}

/// Fails when a map of this size is not allowed.
pub(super) fn check_size(width: u64, height: u64, place: &SourceLocation) -> Result<(), MapError> {
    let side_ok = |side| (1..=u64::from(SIDE_MAX)).contains(&side);
    if side_ok(width) && side_ok(height) && width * height <= TILES_MAX {
        Ok(())
    } else {
        Err(MapError::Size {
            place: place.clone(),
            width,
            height,
        })
    }
}

/// The contribution of the words of one row that hold the given tiles to the map's fingerprint.
pub(super) fn row_fingerprint(rows: &BitPlane, y: u32, tiles: std::ops::Range<u32>) -> u64 {
    let first = tiles.start as usize / 64;
    let words = &rows.row(y)[first..(tiles.end as usize).div_ceil(64)];
    let place = u64::from(y) << 32 | first as u64;
    (place..).zip(words).fold(0, |sum, (place, word)| {
        sum ^ mix(mix(place).wrapping_add(*word))
    })
}

/// A 64-bit mix in which every input bit reaches every output bit (the finaliser of SplitMix64, Steele and others 2014).
pub(super) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_maps_read_as_drawn() {
        let map = TileMap::from_ascii("\n  .#.\n  @..\n").unwrap();
        assert_eq!((map.width(), map.height()), (3, 2));
        let blocked: Vec<(i32, i32)> = (0..2)
            .flat_map(|y| (0..3).map(move |x| (x, y)))
            .filter(|(x, y)| map.is_blocked((*x, *y).into()))
            .collect();
        assert_eq!(blocked, [(1, 0), (0, 1)]);
        assert_eq!(map.free_count(), 4);
    }

    #[test]
    fn bad_ascii_maps_are_refused_with_a_location() {
        let location = |text| TileMap::from_ascii(text).unwrap_err().line_column();
        assert_eq!(location("...\n.x."), Some((2, 2)));
        assert_eq!(location("...\n...\n.."), Some((3, 3)));
        assert_eq!(location("...\n...."), Some((2, 5)));
        assert_eq!(location(""), Some((1, 1)));
    }

    #[test]
    fn sizes_beyond_the_limits_are_refused() {
        for (width, height) in [
            (0, 1),
            (1, 0),
            (65_537, 1),
            (1, 65_537),
            (65_536, 4_097),
            (u32::MAX, u32::MAX),
        ] {
            assert!(
                matches!(
                    TileMap::new(width, height, false),
                    Err(MapError::Size { .. })
                ),
                "{width} × {height}"
            );
        }
        assert!(TileMap::new(65_536, 1, false).is_ok());
        assert!(TileMap::new(1, 65_536, true).is_ok());
    }

    #[test]
    fn tiles_outside_are_blocked_and_have_no_region() {
        let map = TileMap::new(3, 2, false).unwrap();
        for tile in [(-1, 0), (0, -1), (3, 0), (0, 2), (i32::MIN, i32::MAX)] {
            assert!(map.is_blocked(tile.into()) && !map.is_free(tile.into()));
            assert_eq!(map.region(tile.into()), None);
        }
        assert!(!map.are_connected(IVec2::new(-1, 0), IVec2::new(-1, 0)));
    }

    #[test]
    fn memory_counts_planes_and_regions() {
        let memory = TileMap::new(128, 64, false).unwrap().memory();
        assert_eq!(memory.rows_bytes, 8 * (4 * 66 + 1));
        assert_eq!(memory.columns_bytes, 8 * (3 * 130 + 1));
        assert!(memory.regions_bytes >= 128 * 64 && memory.regions_bytes < 128 * 64 + 64);
    }

    #[test]
    fn fingerprint_distinguishes_maps() {
        let maps = ["..", ".#", "#.", "##", ".\n.", "...", "..\n.."];
        let prints: Vec<u64> = maps
            .iter()
            .map(|map| TileMap::from_ascii(map).unwrap().fingerprint())
            .collect();
        for (i, print) in prints.iter().enumerate() {
            assert!(!prints[..i].contains(print), "{:?}", maps[i]);
        }
    }
}
