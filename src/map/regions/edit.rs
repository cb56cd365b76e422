//! What blocked and freed tiles do to the regions.
//!
//! ```text
//! one tile:  3 × 3 around it ──▶ its free neighbours hang together ──▶ label, size
//!                            └─▶ they may not ──▶ as any other edit
//! block:     label 0 ──▶ stretches beside the blocked ones ──▶ do they still meet? ──▶ floods in turn ──▶ new numbers
//! free:      stretches freed ──▶ regions they touch ──▶ the larger keeps its number, the smaller are flooded with it
//! both:      a region that falls below 64 tiles, or reaches them, is flooded once more
//! ```
//! Invariants: those of the folder hold again after each call.
//!
//! Cost: one tile whose 3 × 3 decides takes 15 to 30 ns. Other blocking: nothing beyond the rectangle while its
//! surroundings still meet beside it; otherwise the floods from the pieces take turns, a run each, and end when they meet
//! or when all pieces but one are exhausted, so that they cost (pieces × runs of the largest piece but one). The worst is
//! a cut into halves, done at once, in the tick that asks for it: 0.1 ms on an open million of tiles, 1 to 3 ms on a maze
//! of 512² with corridors of one tile, 15 ms on a million tiles where every run is a single tile. Freeing: the runs of all
//! joined regions but the largest.

use super::sets::{DisjointSets, components};
use super::small::{SMALL_TILES_MAX, SmallRegion};
use super::{BLOCKED, RegionId, Regions, SMALL, for_each_run_above_and_below};
use crate::map::bit_plane::{BitPlane, Run};

impl Regions {
    /// Blocks a free tile, in `rows` as well.
    pub(in crate::map) fn block_tile(&mut self, rows: &mut BitPlane, x: u32, y: u32) {
        let run = Run {
            y,
            start: x,
            end: x,
        };
        let pieces = rows.pieces_around(x, y);
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
                if self.sizes[label as usize] == SMALL_TILES_MAX {
                    for_each_run_beside(rows, run, |run| self.make_small(rows, label, run));
                    self.trim();
                }
            }
        }
    }

    /// Frees a blocked tile, in `rows` as well.
    pub(in crate::map) fn free_tile(&mut self, rows: &mut BitPlane, x: u32, y: u32) {
        let run = Run {
            y,
            start: x,
            end: x,
        };
        // One large region around it, and nothing else: the tile joins it.
        let mut labels = straight_neighbours(rows, x, y).map(|(x, y)| self.label(x, y));
        match labels.next() {
            Some(label) if label != SMALL && labels.all(|other| other == label) => {
                rows.set_tile(x, y, false);
                self.label_run(run, label);
                self.sizes[label as usize] += 1;
            }
            _ => self.free(rows, &[run]),
        }
    }

    /// Blocks stretches of tiles that are free, in `rows` as well.
    pub(in crate::map) fn block(&mut self, rows: &mut BitPlane, blocked: &[Run]) {
        let small = blocked
            .iter()
            .filter(|run| self.label(run.start, run.y) == SMALL);
        self.small_count -= count_small(rows, small);
        for run in blocked {
            rows.set_run(*run, true);
        }
        // The pieces of a region that may have come apart all reach the blocked tiles.
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
        for label in touched {
            if self.sizes[label as usize] == 0 {
                self.release(label);
            }
        }
        beside.sort_unstable();
        beside.dedup();
        for same_label in beside.chunk_by(|a, b| a.0 == b.0) {
            let label = same_label[0].0;
            let runs: Vec<Run> = same_label.iter().map(|(_, run)| *run).collect();
            if label == SMALL {
                self.small_count += count_small(rows, &runs);
                continue;
            }
            let (pieces, count) = components(&runs);
            if count > 1 {
                self.split(rows, label, &runs, &pieces, count);
            } else if self.sizes[label as usize] <= SMALL_TILES_MAX {
                self.make_small(rows, label, runs[0]);
            }
        }
        self.trim();
    }

    /// Finds out which pieces of a region are still joined and gives those that are not numbers of their own.
    ///
    /// `seeds[i]` is a run of piece `pieces[i]`, of `count`.
    fn split(&mut self, rows: &BitPlane, region: u32, seeds: &[Run], pieces: &[u32], count: u32) {
        // Ascending, since the smallest free number is always next: the search below relies on it.
        let ids: Vec<u32> = (0..count).map(|_| self.take_id()).collect();
        let mut floods: Vec<Flood> = (0..count).map(|_| Flood::default()).collect();
        for (run, piece) in seeds.iter().zip(pieces) {
            floods[*piece as usize].claim(self, *run, ids[*piece as usize]);
        }
        // A set of pieces that have met is at work while one of its floods has runs to look at.
        let mut sets = DisjointSets::default();
        sets.extend_by(floods.len());
        let mut at_work = vec![1u32; floods.len()];
        let mut sets_at_work = floods.len();
        let mut unfinished: Vec<usize> = (0..floods.len()).collect();
        let mut met = Vec::new();
        while sets_at_work > 1 {
            unfinished.retain(|&piece| {
                if sets_at_work <= 1 {
                    return true;
                }
                met.clear();
                floods[piece].step(self, rows, region, ids[piece], |label| met.push(label));
                // Every run of the region is labelled with it or with a piece.
                for other in met.iter().filter_map(|label| ids.binary_search(label).ok()) {
                    let (a, b) = (sets.find(piece), sets.find(other));
                    if a != b {
                        let both = at_work[a] > 0 && at_work[b] > 0;
                        sets_at_work -= usize::from(both);
                        let sum = at_work[a] + at_work[b];
                        at_work[sets.union(a, b)] = sum;
                    }
                }
                let go_on = !floods[piece].is_exhausted();
                if !go_on {
                    let set = sets.find(piece);
                    at_work[set] -= 1;
                    sets_at_work -= usize::from(at_work[set] == 0);
                }
                go_on
            });
        }
        let mut tiles = vec![0; floods.len()];
        for (piece, flood) in floods.iter().enumerate() {
            tiles[sets.find(piece)] += flood.tiles;
        }
        // The set still at work keeps the region's number, since its tiles were not all visited.
        let mut seed_left = None;
        for (piece, flood) in floods.iter().enumerate() {
            let set = sets.find(piece);
            let id = if at_work[set] > 0 {
                seed_left = flood.runs.first().copied();
                region
            } else {
                self.sizes[region as usize] -= flood.tiles;
                if tiles[set] > SMALL_TILES_MAX {
                    self.sizes[ids[set] as usize] += flood.tiles;
                    ids[set]
                } else {
                    self.small_tiles += flood.tiles;
                    self.small_count += u32::from(set == piece);
                    SMALL
                }
            };
            if id != ids[piece] {
                for run in &flood.runs {
                    self.label_run(*run, id);
                }
                self.release(ids[piece]);
            }
        }
        if let Some(seed) = seed_left.filter(|_| self.sizes[region as usize] <= SMALL_TILES_MAX) {
            self.make_small(rows, region, seed);
        }
    }

    /// Frees stretches of tiles that are blocked, in `rows` as well, and joins the regions they touch.
    pub(in crate::map) fn free(&mut self, rows: &mut BitPlane, freed: &[Run]) {
        let (numbers, _) = components(freed);
        let mut by_component: Vec<(u32, Run)> =
            numbers.into_iter().zip(freed.iter().copied()).collect();
        by_component.sort_unstable();
        let mut beside = Vec::new();
        for component in by_component.chunk_by(|a, b| a.0 == b.0) {
            // The tiles of later components are still blocked, so all runs beside this one are labelled whole.
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
            // A new region of freed tiles and the small ones they join.
            let label = winner.unwrap_or_else(|| {
                self.small_count += 1;
                self.small_count -= count_small(rows, beside.iter().map(|(_, run)| run));
                SMALL
            });
            let losers = beside.iter().filter(|(loser, _)| *loser != label);
            for (loser, seed) in losers {
                // Several of the runs may belong to one region, which then was flooded from the first.
                if self.label(seed.start, seed.y) == *loser {
                    self.relabel(rows, *seed, *loser, label);
                }
            }
            for (_, run) in component {
                rows.set_run(*run, false);
                self.label_run(*run, label);
                self.count_tiles(label, run.len());
            }
            let (_, first) = component[0];
            if label == SMALL && SmallRegion::around(rows, first.start, first.y).is_none() {
                let id = self.take_id();
                self.relabel(rows, rows.run_around(first.start, first.y), SMALL, id);
            }
        }
        self.trim();
    }

    /// Gives a large region that has become small the label of those. `seed` is one of its runs.
    fn make_small(&mut self, rows: &BitPlane, region: u32, seed: Run) {
        if self.label(seed.start, seed.y) == region {
            self.small_count += 1;
            self.relabel(rows, seed, region, SMALL);
        }
    }

    /// Gives a whole region, of which `seed` is a run, another label, and its tiles to that label.
    fn relabel(&mut self, rows: &BitPlane, seed: Run, from: u32, to: u32) {
        let mut flood = Flood::default();
        flood.claim(self, seed, to);
        while !flood.is_exhausted() {
            flood.step(self, rows, from, to, |_| ());
        }
        if from == SMALL {
            self.small_count -= 1;
            self.small_tiles -= flood.tiles;
        } else {
            self.release(from);
        }
        self.count_tiles(to, flood.tiles);
    }

    fn count_tiles(&mut self, label: u32, tiles: u32) {
        if label == SMALL {
            self.small_tiles += tiles;
        } else {
            self.sizes[label as usize] += tiles;
        }
    }

    /// The smallest number not in use; the labels grow wider when it does not fit.
    fn take_id(&mut self) -> u32 {
        self.free_ids.pop_first().unwrap_or_else(|| {
            let id = self.sizes.len() as u32;
            self.sizes.push(0);
            self.labels.widen_for(id);
            id
        })
    }

    fn release(&mut self, id: u32) {
        self.sizes[id as usize] = 0;
        self.free_ids.insert(id);
    }

    /// Forgets free numbers beyond the last one in use.
    fn trim(&mut self) {
        let is_last = |id: &u32, count: usize| *id as usize + 1 == count;
        while self
            .free_ids
            .last()
            .is_some_and(|id| is_last(id, self.sizes.len()))
        {
            self.free_ids.pop_last();
            self.sizes.pop();
        }
    }
}

/// A breadth-first flood of one region, run by run, that relabels what it visits.
#[derive(Default)]
struct Flood {
    /// All runs visited; those from `next` on have neighbours still to be looked at.
    runs: Vec<Run>,
    next: usize,
    tiles: u32,
}

impl Flood {
    fn is_exhausted(&self) -> bool {
        self.next == self.runs.len()
    }

    fn claim(&mut self, regions: &mut Regions, run: Run, label: u32) {
        regions.label_run(run, label);
        self.tiles += run.len();
        self.runs.push(run);
    }

    /// Looks at the neighbours of one run: those labelled `from` become `to`, labels of others go to `met`.
    fn step(
        &mut self,
        regions: &mut Regions,
        rows: &BitPlane,
        from: u32,
        to: u32,
        mut met: impl FnMut(u32),
    ) {
        let run = self.runs[self.next];
        self.next += 1;
        for_each_run_above_and_below(rows, run, |run| {
            let label = regions.label(run.start, run.y);
            if label == from {
                self.claim(regions, run, to);
            } else if label != to {
                met(label);
            }
        });
    }
}

/// How many small regions the given runs belong to.
fn count_small<'a>(rows: &BitPlane, runs: impl IntoIterator<Item = &'a Run>) -> u32 {
    let id = |run: &Run| SmallRegion::around(rows, run.start, run.y)?.id(rows.width());
    let mut ids: Vec<RegionId> = runs.into_iter().filter_map(id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.len() as u32
}

/// The free tiles beside a tile of the map, as x and y.
fn straight_neighbours(
    rows: &BitPlane,
    x: u32,
    y: u32,
) -> impl Iterator<Item = (u32, u32)> + use<> {
    let (x, y) = (x as i32, y as i32);
    let around = [(x, y - 1), (x - 1, y), (x + 1, y), (x, y + 1)];
    let free = around.map(|(x, y)| !rows.is_blocked(x, y));
    // What is free lies in the map, so no coordinate is negative.
    (around.into_iter().zip(free))
        .filter(|(_, is_free)| *is_free)
        .map(|((x, y), _)| (x as u32, y as u32))
}

/// Calls `visit` with each run that touches a stretch of blocked tiles from any of the four sides.
fn for_each_run_beside(rows: &BitPlane, stretch: Run, mut visit: impl FnMut(Run)) {
    let left = stretch.start.checked_sub(1);
    let right = Some(stretch.end + 1).filter(|x| *x < rows.width());
    for x in left.into_iter().chain(right) {
        if !rows.is_blocked(x as i32, stretch.y as i32) {
            visit(rows.run_around(x, stretch.y));
        }
    }
    for_each_run_above_and_below(rows, stretch, visit);
}
