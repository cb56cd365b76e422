//! Work that an edit leaves for later, so that no edit takes more than a bounded number of steps.
//!
//! ```text
//! a split: floods from the fragments ──(limit)──▶ still one id, floods continue in slices ──▶ ids of their own
//! a join:  flood of the smaller ──────(limit)──▶ its id becomes an alias of the larger's
//! aliases: row by row, labels that are aliases become the ids they stand for ──▶ aliases are freed
//! ```
//! A region whose floods have not ended has a *pending split*: it may be several, and queries see it as one. Tiles that the
//! floods have visited have labels of their own, which are aliases of the region's id until the floods end. So tiles of
//! different regions are never connected, and tiles of a region without a pending split are always connected.
//!
//! Invariants: every fragment of a pending split contains one of its seeds, which are free tiles; a region under flood was not
//! edited since the flood began: an edit restarts the flood from the seeds, and its labels stay aliases; an alias stands for
//! an id that is not an alias; one flood or one pass over the aliases runs at a time, and a pass frees the aliases that
//! existed when it began, since only a flood ever labels tiles with an alias.
//!
//! Cost: each edit checks whether there are pending splits; one entry per split, one seed per fragment,
//! and for each flood the runs at its edge, plus as many as an edit may cost.

use super::edit::Flood;
use super::sets::DisjointSets;
use super::small::SMALL_TILES_MAX;
use super::{Regions, SMALL};
use crate::map::bit_plane::{BitPlane, TileRun};

/// The maximum cost of an edit in runs examined, before it leaves the rest for later: about 100 µs.
const RUNS_PER_EDIT_MAX: usize = 8_192;

/// With this many aliases they are processed first, so that ids stay few.
const ALIASES_MAX: usize = 64;

/// Tiles of a row that a pass over the aliases processes for the cost of a run.
const TILES_PER_RUN: usize = 32;

/// The maximum number of doublings of a slice.
const RESTARTS_MAX: u32 = 20;

/// The work left by edits.
#[derive(Clone, Debug)]
pub(super) struct PendingSplits {
    /// In the order in which they are finished.
    splits: Vec<PendingSplit>,
    /// Labels that stand for another id, the oldest first.
    aliases: Vec<u32>,
    pub(super) work: Option<RegionWork>,
    /// The maximum cost of an edit.
    pub(super) runs_per_edit_max: usize,
}

impl Default for PendingSplits {
    fn default() -> Self {
        Self {
            splits: Vec::new(),
            aliases: Vec::new(),
            work: None,
            runs_per_edit_max: RUNS_PER_EDIT_MAX,
        }
    }
}

/// A region that may be in several fragments.
#[derive(Clone, Debug)]
struct PendingSplit {
    region: u32,
    /// At least one tile of every fragment, as y and x.
    seeds: Vec<(u32, u32)>,
    /// The number of times that an edit restarted the flood.
    restarts: u32,
}

impl PendingSplit {
    fn add_seeds(&mut self, runs: &[TileRun]) {
        self.seeds.extend(runs.iter().map(|run| (run.y, run.start)));
        self.seeds.sort_unstable();
        self.seeds.dedup();
    }
}

#[derive(Clone, Debug)]
pub(super) enum RegionWork {
    Split(Box<RegionSplit>),
    /// A pass over the rows, which frees the first `aliases`.
    Pass {
        next_y: u32,
        aliases: usize,
    },
}

impl PendingSplits {
    pub(super) fn aliases(&self) -> &[u32] {
        &self.aliases
    }

    pub(super) fn bytes(&self) -> usize {
        let seeds: usize = self.splits.iter().map(|cut| cut.seeds.len() * 8).sum();
        let work = match &self.work {
            Some(RegionWork::Split(split)) => split.bytes(),
            _ => 0,
        };
        seeds + self.aliases.len() * 4 + work
    }
}

impl Regions {
    #[inline]
    pub(in crate::map) fn has_final_regions(&self) -> bool {
        self.pending_splits.splits.is_empty() && self.pending_splits.aliases.is_empty()
    }

    /// Continues with the remaining work, for about this many runs, and returns whether none is left.
    pub(in crate::map) fn finish_splits(&mut self, rows: &BitPlane, runs_max: usize) -> bool {
        let mut runs_left = runs_max;
        while runs_left > 0 && !self.has_final_regions() {
            let cost = match self.pending_splits.work.take() {
                Some(RegionWork::Split(split)) => self.advance_split(rows, split, runs_left),
                Some(RegionWork::Pass { next_y, aliases }) => {
                    self.rename_row(rows, next_y, aliases)
                }
                None => {
                    self.start_next_split(rows);
                    1
                }
            };
            runs_left = runs_left.saturating_sub(cost);
        }
        self.has_final_regions()
    }

    fn start_next_split(&mut self, rows: &BitPlane) {
        let aliases = self.pending_splits.aliases.len();
        self.pending_splits.work = Some(match self.pending_splits.splits.first() {
            Some(cut) if aliases < ALIASES_MAX => {
                let region = cut.region;
                let runs = runs_around(rows, &cut.seeds);
                let pieces: Vec<u32> = (0..runs.len() as u32).collect();
                let split = RegionSplit::start(self, region, &runs, &pieces, runs.len() as u32);
                self.pending_splits.aliases.extend(&split.ids);
                RegionWork::Split(Box::new(split))
            }
            _ => RegionWork::Pass { next_y: 0, aliases },
        });
    }

    fn advance_split(
        &mut self,
        rows: &BitPlane,
        mut split: Box<RegionSplit>,
        runs_left: usize,
    ) -> usize {
        let region = split.region;
        let cut = self
            .pending_splits
            .splits
            .iter()
            .find(|cut| cut.region == region);
        let doublings = cut.map_or(0, |cut| cut.restarts.min(RESTARTS_MAX));
        let cost = split.advance(self, rows, runs_left.saturating_mul(1 << doublings));
        if split.is_done() {
            self.pending_splits
                .splits
                .retain(|cut| cut.region != region);
            let is_own = |alias: &u32| split.ids.binary_search(alias).is_ok();
            self.pending_splits.aliases.retain(|alias| !is_own(alias));
            split.finish(self, rows);
            self.trim_free_ids();
        } else {
            self.pending_splits.work = Some(RegionWork::Split(split));
        }
        cost
    }

    /// Renames the tiles of one row.
    fn rename_row(&mut self, rows: &BitPlane, next_y: u32, aliases: usize) -> usize {
        let start = next_y as usize * self.width;
        self.labels.rename(start..start + self.width, &self.names);
        let next_y = next_y + 1;
        if next_y < rows.height() {
            self.pending_splits.work = Some(RegionWork::Pass { next_y, aliases });
        } else {
            let free: Vec<u32> = self.pending_splits.aliases.drain(..aliases).collect();
            free.into_iter().for_each(|alias| self.release(alias));
            self.trim_free_ids();
        }
        1 + self.width / TILES_PER_RUN
    }

    #[inline]
    pub(super) fn has_pending_splits(&self) -> bool {
        !self.pending_splits.splits.is_empty()
    }

    /// Makes a region's id an alias of another's; the tiles were counted there already.
    pub(super) fn add_alias(&mut self, from: u32, to: u32) {
        for alias in &self.pending_splits.aliases {
            let name = &mut self.names[*alias as usize];
            if *name == from {
                *name = to;
            }
        }
        self.names[from as usize] = to;
        self.pending_splits.aliases.push(from);
    }

    /// Finds the fragments of a region that are still connected and gives the others ids of their own; work
    /// beyond `runs_left` is left for later.
    ///
    /// `seeds[i]` is a run of fragment `pieces[i]`, of `count`.
    pub(super) fn split(
        &mut self,
        rows: &BitPlane,
        region: u32,
        seeds: &[TileRun],
        pieces: &[u32],
        count: u32,
        runs_left: &mut usize,
    ) {
        let is_small = self.sizes[region as usize] <= SMALL_TILES_MAX;
        let mut split = RegionSplit::start(self, region, seeds, pieces, count);
        let limit = if is_small { usize::MAX } else { *runs_left };
        let cost = split.advance(self, rows, limit);
        *runs_left = runs_left.saturating_sub(cost);
        if split.is_done() {
            return split.finish(self, rows);
        }
        let mut cut = PendingSplit {
            region,
            seeds: Vec::new(),
            restarts: 0,
        };
        cut.add_seeds(seeds);
        self.pending_splits.splits.push(cut);
        self.pending_splits.aliases.extend(&split.ids);
        if self.pending_splits.work.is_none() {
            self.pending_splits.work = Some(RegionWork::Split(Box::new(split)));
        }
    }

    /// Updates the seeds of a pending split after tiles of it were blocked, with these runs next to them in as many fragments
    /// that may be separate. Returns whether the region has a pending split.
    pub(super) fn block_in_split(
        &mut self,
        rows: &BitPlane,
        region: u32,
        beside: &[TileRun],
        pieces: u32,
    ) -> bool {
        self.restart_split(region);
        let mut cuts = self.pending_splits.splits.iter_mut();
        let Some(cut) = cuts.find(|cut| cut.region == region) else {
            return false;
        };
        let seed_count = cut.seeds.len();
        cut.seeds
            .retain(|(y, x)| !rows.is_blocked(*x as i32, *y as i32));
        if pieces > 1 || cut.seeds.len() < seed_count {
            cut.add_seeds(beside);
        }
        true
    }

    /// Restarts the flood of a region, if it is running.
    #[inline]
    pub(super) fn restart_split(&mut self, region: u32) {
        if self.has_pending_splits()
            && let Some(RegionWork::Split(split)) = &self.pending_splits.work
            && split.region == region
        {
            self.pending_splits.work = None;
            let mut cuts = self.pending_splits.splits.iter_mut();
            if let Some(cut) = cuts.find(|cut| cut.region == region) {
                cut.restarts += 1;
            }
        }
    }

    /// Moves the pending split of a region to another that freed tiles join it to. Returns whether there
    /// is one.
    pub(super) fn merge_split(&mut self, from: u32, to: u32) -> bool {
        self.restart_split(from);
        self.restart_split(to);
        let cuts = &mut self.pending_splits.splits;
        let Some(nth) = cuts.iter().position(|cut| cut.region == from) else {
            return false;
        };
        let mut cut = cuts.remove(nth);
        cut.region = to;
        // A region without a pending split needs no seed of its own: it is joined to a fragment that has one.
        match cuts.iter_mut().find(|other| other.region == to) {
            Some(other) => {
                other.seeds.extend(cut.seeds);
                other.add_seeds(&[]);
                other.restarts = other.restarts.max(cut.restarts);
            }
            None => cuts.insert(nth, cut),
        }
        true
    }

    /// Removes the pending split of a region; returns the runs of its seeds.
    pub(super) fn remove_split(&mut self, rows: &BitPlane, region: u32) -> Vec<TileRun> {
        let cuts = self.pending_splits.splits.iter();
        let seeds = cuts.filter(|cut| cut.region == region);
        let runs = seeds.flat_map(|cut| runs_around(rows, &cut.seeds));
        let runs = runs.collect();
        self.discard_split(region);
        runs
    }

    pub(super) fn discard_split(&mut self, region: u32) {
        self.restart_split(region);
        self.pending_splits
            .splits
            .retain(|cut| cut.region != region);
    }
}

/// The runs that contain these free tiles, each once.
fn runs_around(rows: &BitPlane, tiles: &[(u32, u32)]) -> Vec<TileRun> {
    let mut runs: Vec<TileRun> = (tiles.iter())
        .map(|(y, x)| rows.run_around(*x, *y))
        .collect();
    // Sorted as the tiles are.
    runs.dedup();
    runs
}

/// Floods from the fragments of a region that may be split, which take turns until they meet or all but one are
/// exhausted.
#[derive(Clone, Debug)]
pub(super) struct RegionSplit {
    region: u32,
    /// The labels of the fragments, ascending.
    ids: Vec<u32>,
    floods: Vec<Flood>,
    /// The fragments that have met, and for each set how many of its floods have runs left.
    sets: DisjointSets,
    active_floods: Vec<u32>,
    active_sets: usize,
    unfinished: Vec<usize>,
    /// The flood whose turn it is.
    next_flood: usize,
}

impl RegionSplit {
    fn start(
        regions: &mut Regions,
        region: u32,
        seeds: &[TileRun],
        pieces: &[u32],
        count: u32,
    ) -> Self {
        // Ascending, since the smallest free id is always next: the search below relies on it.
        let ids: Vec<u32> = (0..count).map(|_| regions.allocate_id()).collect();
        for id in &ids {
            regions.names[*id as usize] = region;
        }
        let mut floods = vec![Flood::default(); count as usize];
        for (run, piece) in seeds.iter().zip(pieces) {
            floods[*piece as usize].claim(regions, *run, ids[*piece as usize]);
        }
        let mut sets = DisjointSets::default();
        sets.extend_by(floods.len());
        Self {
            region,
            ids,
            sets,
            active_floods: vec![1; floods.len()],
            active_sets: floods.len(),
            unfinished: (0..floods.len()).collect(),
            next_flood: 0,
            floods,
        }
    }

    /// Whether all sets but one are exhausted.
    fn is_done(&self) -> bool {
        self.active_sets <= 1
    }

    /// Continues until it is done or has reached the cost; returns the cost.
    fn advance(&mut self, regions: &mut Regions, rows: &BitPlane, runs_max: usize) -> usize {
        let mut cost = 0;
        let mut met = Vec::new();
        while !self.is_done() && cost < runs_max {
            if self.next_flood == self.unfinished.len() {
                self.next_flood = 0;
                let floods = &self.floods;
                self.unfinished
                    .retain(|piece| !floods[*piece].is_exhausted());
            }
            let piece = self.unfinished[self.next_flood];
            self.next_flood += 1;
            met.clear();
            let (region, ids) = (self.region, &self.ids);
            cost += self.floods[piece].step(regions, rows, ids[piece], |_, label| {
                // Any other label of its tiles stands for the region.
                let other = match label {
                    _ if label == region => None,
                    _ => ids.binary_search(&label).ok(),
                };
                met.extend(other);
                other.is_none()
            });
            for other in &met {
                let (a, b) = (self.sets.find(piece), self.sets.find(*other));
                if a != b {
                    let both = self.active_floods[a] > 0 && self.active_floods[b] > 0;
                    self.active_sets -= usize::from(both);
                    let sum = self.active_floods[a] + self.active_floods[b];
                    self.active_floods[self.sets.union(a, b)] = sum;
                }
            }
            // This many are not relabelled at the end.
            let kept_max = regions
                .pending_splits
                .runs_per_edit_max
                .max(SMALL_TILES_MAX as usize);
            self.floods[piece].discard_finished(kept_max);
            if self.floods[piece].is_exhausted() {
                let set = self.sets.find(piece);
                self.active_floods[set] -= 1;
                self.active_sets -= usize::from(self.active_floods[set] == 0);
            }
        }
        cost
    }

    /// Gives the exhausted sets ids of their own. The set still at work keeps the region's id, since not all its tiles
    /// were visited.
    fn finish(mut self, regions: &mut Regions, rows: &BitPlane) {
        let mut tiles = vec![0; self.floods.len()];
        for (piece, flood) in self.floods.iter().enumerate() {
            tiles[self.sets.find(piece)] += flood.tiles;
        }
        let region = self.region;
        let mut runs_left = regions.pending_splits.runs_per_edit_max;
        let mut seed_left = None;
        for (piece, flood) in self.floods.iter().enumerate() {
            let (set, own) = (self.sets.find(piece), self.ids[piece]);
            let id = if self.active_floods[set] > 0 {
                seed_left = flood.runs.first().copied();
                region
            } else {
                regions.sizes[region as usize] -= flood.tiles;
                if tiles[set] > SMALL_TILES_MAX {
                    regions.sizes[self.ids[set] as usize] += flood.tiles;
                    self.ids[set]
                } else {
                    regions.small_tiles += flood.tiles;
                    regions.small_count += u32::from(set == piece);
                    SMALL
                }
            };
            if id == own {
                regions.names[own as usize] = own;
            } else if id == SMALL || (flood.discarded == 0 && flood.runs.len() <= runs_left) {
                debug_assert_eq!(flood.discarded, 0, "a small region has few runs");
                for run in &flood.runs {
                    regions.label_run(*run, id);
                }
                runs_left = runs_left.saturating_sub(flood.runs.len());
                regions.release(own);
            } else {
                regions.add_alias(own, id);
            }
        }
        if let Some(seed) = seed_left
            && regions.sizes[region as usize] <= SMALL_TILES_MAX
        {
            regions.make_small(rows, region, &[seed]);
        }
    }

    fn bytes(&self) -> usize {
        let runs: usize = self.floods.iter().map(|flood| flood.runs.len()).sum();
        runs * size_of::<TileRun>() + self.floods.len() * size_of::<Flood>()
    }
}
