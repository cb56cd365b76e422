//! Small regions, those of fewer than 64 tiles: found by a flood at each query.
//!
//! Cost: at most 63 runs are visited and each is compared with those visited before, so the worst shape takes a
//! few thousand comparisons; most small regions are a handful of runs. Nothing is allocated.

use arrayvec::ArrayVec;

use super::{RegionId, for_each_run_above_and_below};
use crate::map::bit_plane::{BitPlane, TileRun};

/// The maximum number of tiles of a small region.
pub(super) const SMALL_TILES_MAX: u32 = 63;

/// Set in the id of a small region; the other bits are its first tile. No tile's index needs more than 28 bits.
const SMALL_BIT: u32 = 1 << 31;

/// All tiles of a small region.
pub(super) struct SmallRegion {
    runs: ArrayVec<TileRun, { SMALL_TILES_MAX as usize }>,
    pub tiles: u32,
}

impl SmallRegion {
    /// The region of a free tile; `None` when it is not small.
    pub(super) fn around(rows: &BitPlane, x: u32, y: u32) -> Option<Self> {
        let first = rows.run_around(x, y);
        let mut region = Self {
            runs: ArrayVec::new(),
            tiles: 0,
        };
        region.visit(first);
        let mut next = 0;
        while region.tiles <= SMALL_TILES_MAX {
            let Some(run) = region.runs.get(next).copied() else {
                return Some(region);
            };
            next += 1;
            for_each_run_above_and_below(rows, run, |run| region.visit(run));
        }
        None
    }

    /// Adds a run that was not visited before; once the region is too large, only its tiles are counted.
    fn visit(&mut self, run: TileRun) {
        if self.tiles <= SMALL_TILES_MAX && !self.runs.contains(&run) {
            self.tiles += run.len();
            // A run has at least one tile, so there is room for as many runs as tiles.
            if self.tiles <= SMALL_TILES_MAX {
                self.runs.push(run);
            }
        }
    }

    /// The region's id, which follows from its first tile, by y, then x.
    pub(super) fn id(&self, width: u32) -> Option<RegionId> {
        let first = self.runs.iter().min()?;
        Some(RegionId(SMALL_BIT | (first.y * width + first.start)))
    }

    pub(super) fn contains(&self, x: u32, y: u32) -> bool {
        self.runs
            .iter()
            .any(|run| run.y == y && (run.start..=run.end).contains(&x))
    }
}

/// The first tile, as x and y, of the id of a small region on a map of this width; `None` for the
/// id of any other region.
pub(super) fn first_tile(region: RegionId, width: u32) -> Option<(u32, u32)> {
    let index = region.0 & !SMALL_BIT;
    (region.0 & SMALL_BIT != 0).then_some((index % width, index / width))
}
