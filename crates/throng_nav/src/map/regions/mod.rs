//! Connected regions: the free tiles that are connected by straight steps.
//!
//! ```text
//! build:  runs of free tiles, row by row ──▶ union with the row above ──▶ ids by first tile ──▶ labels
//! query:  label ──▶ its id; the label of all small regions ──▶ flood of at most 64 tiles ──▶ id from the first tile
//! edit:   one tile whose 3 × 3 decides ──▶ its label; else runs ──▶ floods (`edit.rs`)
//! ```
//! | file | holds |
//! |---|---|
//! | `labels` | one label per tile |
//! | `small` | regions of fewer than 64 tiles, which share one label |
//! | `edit` | updates after tiles were blocked or freed |
//! | `pending_splits` | work that an edit leaves to be done in slices |
//! | `sets` | union-find over runs |
//!
//! Everything works on *runs*, maximal sequences of free tiles in a row: a flood is a breadth-first search whose nodes
//! are runs, so it costs one step per run and a fill of memory, not one step per tile.
//!
//! Invariants: label 0 means blocked, label 1 a region of fewer than 64 tiles; any other label stands, by `names`, for the id
//! of a region of 64 tiles or more: for itself, except for aliases that are still to be replaced. All tiles of a run
//! stand for one id, and no tiles of two ids touch. `sizes[n]` is the number of tiles of id `n`. An id from
//! 2 and below `sizes.len()` that no tile has is in `free_ids`, unless it is an alias; the last id is in use. Ids of large
//! regions depend only on the edits, in their order; those of small ones only on the tiles.
//!
//! Cost: `build` O(runs + tiles / 8); a query O(1), in a small region a flood of its tiles. Memory: one byte per tile for
//! up to 254 large regions, two for up to 65,534, which no map of fewer than 4.2 million tiles exceeds. Without the
//! shared label a map of 2,048² tiles, 40 % of them blocked at random, took four bytes per tile for its 107,000 regions.

mod edit;
mod labels;
mod pending_splits;
mod sets;
mod small;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use self::labels::Labels;
use self::pending_splits::PendingSplits;
use self::sets::DisjointSets;
use self::small::{SMALL_TILES_MAX, SmallRegion, first_tile};
use super::bit_plane::{BitPlane, TileRun};

/// The id of a connected region.
///
/// Once the regions are final, two free tiles have the same id exactly when they are connected. After a full build the
/// regions of 64 tiles and more are numbered from 2 by their first tile (by y, then x); an edit that joins regions keeps the
/// id of the largest, and freed ids are reused, the smallest first. A smaller region's id is 2³¹ + width × y
/// + x of its first tile, and so changes when that tile does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RegionId(pub u32);

/// The label of blocked tiles.
const BLOCKED: u32 = 0;

/// The label of all tiles in small regions.
const SMALL: u32 = 1;

/// The smallest id of a large region.
const LARGE_FIRST: u32 = 2;

/// The region of each tile, and the size of each region.
#[derive(Clone, Debug)]
pub(super) struct Regions {
    width: usize,
    labels: Labels,
    /// The region id of each label: itself, unless it is an alias.
    names: Vec<u32>,
    /// Tiles by region id; 0 for unused ids, and for 0 and 1, which are not ids.
    sizes: Vec<u32>,
    free_ids: BTreeSet<u32>,
    small_count: u32,
    small_tiles: u32,
    pending_splits: PendingSplits,
}

impl Regions {
    /// Labels all free tiles of a plane.
    pub(super) fn build(rows: &BitPlane) -> Self {
        let (numbers, tiles) = run_components(rows);
        let mut regions = Self {
            width: rows.width() as usize,
            labels: Labels::zeroed(0, 0),
            names: Vec::new(),
            sizes: vec![0; LARGE_FIRST as usize],
            free_ids: BTreeSet::new(),
            small_count: 0,
            small_tiles: 0,
            pending_splits: PendingSplits::default(),
        };
        let mut label_of = tiles;
        for tiles in &mut label_of {
            if *tiles <= SMALL_TILES_MAX {
                regions.small_count += 1;
                regions.small_tiles += *tiles;
                *tiles = SMALL;
            } else {
                regions.sizes.push(*tiles);
                *tiles = regions.sizes.len() as u32 - 1;
            }
        }
        regions.names = (0..regions.sizes.len() as u32).collect();
        let label_max = regions.sizes.len() as u32 - 1;
        regions.labels = Labels::zeroed(regions.width * rows.height() as usize, label_max);
        let mut numbers = numbers.into_iter();
        for y in 0..rows.height() {
            for (run, number) in rows.runs(y).zip(numbers.by_ref()) {
                regions.label_run(run, label_of[number as usize]);
            }
        }
        regions
    }

    /// The region of a tile of the map.
    #[inline]
    pub(super) fn at(&self, rows: &BitPlane, x: u32, y: u32) -> Option<RegionId> {
        match self.label(x, y) {
            BLOCKED => None,
            SMALL => SmallRegion::around(rows, x, y)?.id(rows.width()),
            label => Some(RegionId(label)),
        }
    }

    /// Whether a tile of the map belongs to a region: as [`Regions::at`], without a flood for large regions.
    #[inline]
    pub(super) fn contains(&self, rows: &BitPlane, region: RegionId, x: u32, y: u32) -> bool {
        match self.label(x, y) {
            BLOCKED => false,
            SMALL => {
                first_tile(region, rows.width()).is_some() && self.at(rows, x, y) == Some(region)
            }
            label => label == region.0,
        }
    }

    /// Whether two tiles of the map, each given as x and y, are connected.
    #[inline]
    pub(super) fn are_connected(&self, rows: &BitPlane, a: (u32, u32), b: (u32, u32)) -> bool {
        match (self.label(a.0, a.1), self.label(b.0, b.1)) {
            (SMALL, SMALL) => {
                SmallRegion::around(rows, a.0, a.1).is_some_and(|region| region.contains(b.0, b.1))
            }
            (label, other) => label == other && label != BLOCKED,
        }
    }

    pub(super) fn count(&self) -> u32 {
        let unused = self.free_ids.len() + self.pending_splits.aliases().len();
        self.sizes.len() as u32 - LARGE_FIRST - unused as u32 + self.small_count
    }

    pub(super) fn size(&self, rows: &BitPlane, region: RegionId) -> u64 {
        let tiles = match first_tile(region, rows.width()) {
            None => self.sizes.get(region.0 as usize).copied(),
            Some((x, y)) if y < rows.height() && self.label(x, y) == SMALL => {
                SmallRegion::around(rows, x, y)
                    .filter(|small| small.id(rows.width()) == Some(region))
                    .map(|small| small.tiles)
            }
            Some(_) => None,
        };
        tiles.map_or(0, u64::from)
    }

    pub(super) fn free_count(&self) -> u64 {
        let large: u64 = self.sizes.iter().map(|size| u64::from(*size)).sum();
        large + u64::from(self.small_tiles)
    }

    /// The largest region, the lowest id among equals. Small regions are searched only if there are no large ones.
    pub(super) fn largest(&self, rows: &BitPlane) -> Option<(RegionId, u64)> {
        let used = (0..).zip(&self.sizes).filter(|(_, size)| **size > 0);
        let large = used.map(|(id, size)| (*size, Reverse(RegionId(id)))).max();
        let smalls = (0..rows.height())
            .filter(|_| large.is_none() && self.small_count > 0)
            .flat_map(|y| rows.runs(y))
            .filter_map(|run| {
                let small = SmallRegion::around(rows, run.start, run.y)?;
                Some((small.tiles, Reverse(small.id(rows.width())?)))
            });
        let (tiles, Reverse(id)) = large.or_else(|| smalls.max())?;
        Some((id, u64::from(tiles)))
    }

    pub(super) fn bytes(&self) -> usize {
        // A freed id takes about two words in the set.
        let numbers = (self.sizes.len() + self.names.len()) * 4 + self.free_ids.len() * 16;
        self.labels.bytes() + numbers + self.pending_splits.bytes()
    }

    /// The region id of a tile's label, or one of the two labels that are not ids.
    #[inline]
    fn label(&self, x: u32, y: u32) -> u32 {
        self.names[self.raw_label(x, y) as usize]
    }

    #[inline]
    fn raw_label(&self, x: u32, y: u32) -> u32 {
        self.labels.at(y as usize * self.width + x as usize)
    }

    fn label_run(&mut self, run: TileRun, label: u32) {
        self.labels.fill(run, self.width, label);
    }
}

/// For each run, row by row, the id of its region, counted from 0 by their first tiles, and the tiles of each region.
pub(super) fn run_components(rows: &BitPlane) -> (Vec<u32>, Vec<u32>) {
    let mut sets = DisjointSets::default();
    let mut lengths = Vec::new();
    let (mut above, mut row): (Vec<TileRun>, Vec<TileRun>) = Default::default();
    for y in 0..rows.height() {
        std::mem::swap(&mut above, &mut row);
        row.clear();
        row.extend(rows.runs(y));
        let first = sets.extend_by(row.len());
        sets.join_rows(&above, first - above.len(), &row, first);
        lengths.extend(row.iter().map(|run| run.len()));
    }
    let (numbers, count) = sets.into_numbers();
    let mut tiles = vec![0u32; count as usize];
    for (length, number) in lengths.iter().zip(&numbers) {
        tiles[*number as usize] += length;
    }
    (numbers, tiles)
}

/// Calls `visit` with each run that touches a run of tiles from above or below.
fn for_each_run_above_and_below(rows: &BitPlane, stretch: TileRun, mut visit: impl FnMut(TileRun)) {
    let below = Some(stretch.y + 1).filter(|y| *y < rows.height());
    for y in stretch.y.checked_sub(1).into_iter().chain(below) {
        let mut x = stretch.start;
        while let Some(first) = rows.next_free(x, y).filter(|first| *first <= stretch.end) {
            let start = if first == stretch.start {
                rows.run_start(first, y)
            } else {
                first
            };
            let end = rows.run_end(first, y);
            visit(TileRun { y, start, end });
            if end >= stretch.end {
                break;
            }
            x = end + 1;
        }
    }
}
