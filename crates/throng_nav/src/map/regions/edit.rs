//! Updates the regions after tiles were blocked or freed.
//!
//! ```text
//! one tile:  3 × 3 around it ──▶ its free neighbours are connected ──▶ label, size
//!                            └─▶ they may not be ──▶ as any other edit
//! block:     label 0 ──▶ runs next to the blocked ones ──▶ still connected? ──▶ alternating floods ──▶ new ids
//! free:      freed runs ──▶ regions they touch ──▶ the largest keeps its id, the smaller ones are flooded with it
//! both:      a region that falls below 64 tiles, or reaches them, is flooded once more
//! ```
//! Invariants: those of the folder hold again after each call.
//!
//! Cost: one tile whose 3 × 3 decides takes 15 to 40 ns. Other blocking: nothing beyond the rectangle while its
//! surroundings are still connected next to it; otherwise the floods from the fragments take turns, one run each, and end when
//! they meet or when all fragments but one are exhausted, so they cost (fragments × runs of the second largest fragment).
//! Freeing: the runs of all joined regions but the largest. Both stop after 8,192 runs, about 100 µs, and leave the rest to
//! `pending_splits.rs`: 0.1 ms for halves of an open map of a million tiles is done at once, the 95 ms of a comb of 2,048²
//! tiles, where every run is a single tile, are spread over slices. The labels grow wider at once, though, one millisecond per
//! million tiles, with the 255th large region or fragment that may become one.

use super::sets::components;
use super::small::{SMALL_TILES_MAX, SmallRegion};
use super::{BLOCKED, RegionId, Regions, SMALL, for_each_run_above_and_below};
use crate::map::bit_plane::{BitPlane, TileRun};

impl Regions {
    /// Blocks a free tile, also in `rows`.
    pub(in crate::map) fn block_tile(&mut self, rows: &mut BitPlane, x: u32, y: u32) {
        let run = TileRun {
            y,
            start: x,
            end: x,
        };
        let pieces = rows.fragments_around(x, y);
        if pieces > 1 {
            return self.block(rows, &[run]);
        }
        rows.set_tile(x, y, true);
        match self.label(x, y) {
            SMALL => {
                self.small_tiles -= 1;
                // A tile without free neighbours was a region.
                self.small_count -= u32::from(pieces == 0);
                self.label_run(run, BLOCKED);
            }
            label => {
                self.label_run(run, BLOCKED);
                self.sizes[label as usize] -= 1;
                let is_small = self.sizes[label as usize] == SMALL_TILES_MAX;
                if is_small || self.has_pending_splits() {
                    let mut beside = Vec::new();
                    for_each_run_beside(rows, run, |run| beside.push(run));
                    self.block_in_split(rows, label, &beside, pieces);
                    if is_small {
                        self.make_small(rows, label, &beside);
                        self.trim_free_ids();
                    }
                }
            }
        }
    }

    /// Frees a blocked tile, also in `rows`.
    pub(in crate::map) fn free_tile(&mut self, rows: &mut BitPlane, x: u32, y: u32) {
        let run = TileRun {
            y,
            start: x,
            end: x,
        };
        // Only one large region around it: the tile joins it.
        let mut labels = straight_neighbours(rows, x, y).map(|(x, y)| self.label(x, y));
        match labels.next() {
            Some(label) if label != SMALL && labels.all(|other| other == label) => {
                rows.set_tile(x, y, false);
                self.label_run(run, label);
                self.sizes[label as usize] += 1;
                self.restart_split(label);
            }
            _ => self.free(rows, &[run]),
        }
    }

    /// Blocks runs of tiles that are free, also in `rows`.
    pub(in crate::map) fn block(&mut self, rows: &mut BitPlane, blocked: &[TileRun]) {
        let small = blocked
            .iter()
            .filter(|run| self.label(run.start, run.y) == SMALL);
        self.small_count -= count_small(rows, small);
        for run in blocked {
            rows.set_run(*run, true);
        }
        // The fragments of a region that may be split all touch the blocked tiles.
        let mut beside = Vec::new();
        for run in blocked {
            let label = self.label(run.start, run.y);
            for_each_run_beside(rows, *run, |run| beside.push((label, run)));
        }
        let mut touched: Vec<u32> = Vec::new();
        for run in blocked {
            let label = self.label(run.start, run.y);
            if label == SMALL {
                self.small_tiles -= run.len();
            } else {
                self.sizes[label as usize] -= run.len();
                touched.push(label);
            }
            self.label_run(*run, BLOCKED);
        }
        touched.sort_unstable();
        touched.dedup();
        touched.retain(|label| {
            let is_left = self.sizes[*label as usize] > 0;
            if !is_left {
                self.release(*label);
            }
            is_left
        });
        beside.sort_unstable();
        beside.dedup();
        let runs_of = |label: u32| {
            let first = beside.partition_point(|(other, _)| *other < label);
            let same_label = beside[first..].iter().take_while(|at| at.0 == label);
            same_label.map(|(_, run)| *run).collect::<Vec<TileRun>>()
        };
        self.small_count += count_small(rows, &runs_of(SMALL));
        let mut runs_left = self.pending_splits.runs_per_edit_max;
        for label in touched {
            let runs = runs_of(label);
            let (pieces, count) = components(&runs);
            let is_cut = self.block_in_split(rows, label, &runs, count);
            if count > 1 && !is_cut {
                self.split(rows, label, &runs, &pieces, count, &mut runs_left);
            } else if self.sizes[label as usize] <= SMALL_TILES_MAX {
                self.make_small(rows, label, &runs);
            }
        }
        self.trim_free_ids();
    }

    /// Frees runs of tiles that are blocked, also in `rows`, and joins the regions they touch.
    pub(in crate::map) fn free(&mut self, rows: &mut BitPlane, freed: &[TileRun]) {
        let (numbers, _) = components(freed);
        let mut by_component: Vec<(u32, TileRun)> =
            numbers.into_iter().zip(freed.iter().copied()).collect();
        by_component.sort_unstable();
        let mut beside = Vec::new();
        let mut runs_left = self.pending_splits.runs_per_edit_max;
        for component in by_component.chunk_by(|a, b| a.0 == b.0) {
            // The tiles of later components are still blocked, so all runs next to this one are labelled as a whole.
            beside.clear();
            for (_, run) in component {
                for_each_run_beside(rows, *run, |run| {
                    beside.push((self.label(run.start, run.y), run))
                });
            }
            beside.sort_unstable();
            beside.dedup();
            let large = beside.iter().map(|(label, _)| *label);
            let winner = large
                .filter(|label| *label != SMALL)
                .max_by_key(|label| (self.sizes[*label as usize], std::cmp::Reverse(*label)));
            // A new region of the freed tiles and the small ones that they join.
            let label = winner.unwrap_or_else(|| {
                self.small_count += 1;
                self.small_count -= count_small(rows, beside.iter().map(|(_, run)| run));
                SMALL
            });
            let losers = beside.iter().filter(|(loser, _)| *loser != label);
            for (loser, seed) in losers {
                // Several runs may belong to one region, which was then flooded from the first.
                if self.label(seed.start, seed.y) != *loser {
                    continue;
                }
                if *loser == SMALL {
                    self.small_count -= 1;
                    self.relabel(rows, *seed, SMALL, label);
                } else {
                    self.join(rows, *seed, *loser, label, &mut runs_left);
                }
            }
            self.restart_split(label);
            for (_, run) in component {
                rows.set_run(*run, false);
                self.label_run(*run, label);
                self.count_tiles(label, run.len());
            }
            let (_, first) = component[0];
            if label == SMALL && SmallRegion::around(rows, first.start, first.y).is_none() {
                let id = self.allocate_id();
                self.small_count -= 1;
                self.relabel(rows, rows.run_around(first.start, first.y), SMALL, id);
            }
        }
        self.trim_free_ids();
    }

    /// Gives a large region that has become small the label of small regions. Each of its fragments contains one of the runs or,
    /// if it has a pending split, one of its seeds.
    pub(super) fn make_small(&mut self, rows: &BitPlane, region: u32, runs: &[TileRun]) {
        let mut runs = runs.to_vec();
        runs.extend(self.remove_split(rows, region));
        for run in runs {
            if self.label(run.start, run.y) == region {
                self.small_count += 1;
                self.relabel(rows, run, region, SMALL);
            }
        }
        debug_assert_eq!(self.sizes[region as usize], 0);
        self.release(region);
    }

    /// Gives the tiles that are connected to a run of a region another label.
    fn relabel(&mut self, rows: &BitPlane, seed: TileRun, from: u32, to: u32) {
        let mut flood = Flood::default();
        flood.claim(self, seed, to);
        while !flood.is_exhausted() {
            flood.step(self, rows, to, |names, label| names[label as usize] == from);
        }
        if from == SMALL {
            self.small_tiles -= flood.tiles;
        } else {
            self.sizes[from as usize] -= flood.tiles;
        }
        self.count_tiles(to, flood.tiles);
    }

    /// Joins a large region into another after tiles between them were freed. At most `runs_left` of its runs are
    /// relabelled, `seed` included. If it has more, its id becomes an alias.
    fn join(&mut self, rows: &BitPlane, seed: TileRun, from: u32, to: u32, runs_left: &mut usize) {
        let tiles = self.sizes[from as usize];
        if !self.merge_split(from, to) && *runs_left > 0 {
            let mut flood = Flood::default();
            flood.claim(self, seed, to);
            while !flood.is_exhausted() && *runs_left > 0 {
                let cost = flood.step(self, rows, to, |names, label| names[label as usize] == from);
                *runs_left = runs_left.saturating_sub(cost);
            }
            if flood.is_exhausted() {
                debug_assert_eq!(flood.tiles, tiles);
                self.release(from);
                self.count_tiles(to, tiles);
                return;
            }
        }
        self.sizes[from as usize] = 0;
        self.count_tiles(to, tiles);
        self.add_alias(from, to);
    }

    fn count_tiles(&mut self, label: u32, tiles: u32) {
        if label == SMALL {
            self.small_tiles += tiles;
        } else {
            self.sizes[label as usize] += tiles;
        }
    }

    /// The smallest unused id; the labels grow wider when it does not fit.
    pub(super) fn allocate_id(&mut self) -> u32 {
        self.free_ids.pop_first().unwrap_or_else(|| {
            let id = self.sizes.len() as u32;
            self.sizes.push(0);
            self.names.push(id);
            self.labels.widen_for(id);
            id
        })
    }

    /// Frees the id of a region without tiles.
    pub(super) fn release(&mut self, id: u32) {
        self.discard_split(id);
        self.sizes[id as usize] = 0;
        self.names[id as usize] = id;
        self.free_ids.insert(id);
    }

    /// Removes free ids beyond the last one in use.
    pub(super) fn trim_free_ids(&mut self) {
        let is_last = |id: &u32, count: usize| *id as usize + 1 == count;
        while self
            .free_ids
            .last()
            .is_some_and(|id| is_last(id, self.sizes.len()))
        {
            self.free_ids.pop_last();
            self.sizes.pop();
            self.names.pop();
        }
    }
}

/// A breadth-first flood of one region, run by run, that relabels what it visits.
#[derive(Clone, Debug, Default)]
pub(super) struct Flood {
    /// The visited runs, unless they were discarded; the neighbours of those from `next` on are still to be visited.
    pub(super) runs: Vec<TileRun>,
    next: usize,
    pub(super) discarded: usize,
    pub(super) tiles: u32,
}

impl Flood {
    pub(super) fn is_exhausted(&self) -> bool {
        self.next == self.runs.len()
    }

    pub(super) fn claim(&mut self, regions: &mut Regions, run: TileRun, label: u32) {
        regions.label_run(run, label);
        self.tiles += run.len();
        self.runs.push(run);
    }

    /// Discards finished runs, if they are more than `kept_max` and at least half.
    pub(super) fn discard_finished(&mut self, kept_max: usize) {
        if self.next > kept_max && self.next * 2 >= self.runs.len() {
            self.runs.drain(..self.next);
            self.discarded += self.next;
            self.next = 0;
        }
    }

    /// Visits the neighbours of one run: those that are `new`, by the names of labels and their own, become `to`.
    ///
    /// Returns the cost: the runs examined, and one more for every 256 tiles of the run.
    pub(super) fn step(
        &mut self,
        regions: &mut Regions,
        rows: &BitPlane,
        to: u32,
        mut is_new: impl FnMut(&[u32], u32) -> bool,
    ) -> usize {
        let run = self.runs[self.next];
        self.next += 1;
        let mut cost = 1 + run.len() as usize / 256;
        for_each_run_above_and_below(rows, run, |run| {
            cost += 1;
            let label = regions.raw_label(run.start, run.y);
            if label != to && is_new(&regions.names, label) {
                self.claim(regions, run, to);
            }
        });
        cost
    }
}

/// The number of small regions that the given runs belong to.
fn count_small<'a>(rows: &BitPlane, runs: impl IntoIterator<Item = &'a TileRun>) -> u32 {
    let id = |run: &TileRun| SmallRegion::around(rows, run.start, run.y)?.id(rows.width());
    let mut ids: Vec<RegionId> = runs.into_iter().filter_map(id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.len() as u32
}

/// The free straight neighbours of a tile of the map, as x and y.
fn straight_neighbours(
    rows: &BitPlane,
    x: u32,
    y: u32,
) -> impl Iterator<Item = (u32, u32)> + use<> {
    let (x, y) = (x as i32, y as i32);
    let around = [(x, y - 1), (x - 1, y), (x + 1, y), (x, y + 1)];
    let free = around.map(|(x, y)| !rows.is_blocked(x, y));
    // Free tiles are on the map, so no coordinate is negative.
    (around.into_iter().zip(free))
        .filter(|(_, is_free)| *is_free)
        .map(|((x, y), _)| (x as u32, y as u32))
}

/// Calls `visit` with each run that touches a run of blocked tiles from any of the four sides.
fn for_each_run_beside(rows: &BitPlane, stretch: TileRun, mut visit: impl FnMut(TileRun)) {
    let left = stretch.start.checked_sub(1);
    let right = Some(stretch.end + 1).filter(|x| *x < rows.width());
    for x in left.into_iter().chain(right) {
        if !rows.is_blocked(x as i32, stretch.y as i32) {
            visit(rows.run_around(x, stretch.y));
        }
    }
    for_each_run_above_and_below(rows, stretch, visit);
}
