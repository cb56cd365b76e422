//! Connected regions: which free tiles a walk over straight neighbours joins.
//!
//! ```text
//! build:  stretches of free tiles, row by row ──▶ union with the row above ──▶ numbers by first tile ──▶ labels
//! block:  label 0 ──▶ stretches beside the blocked ones ──▶ do they still meet? ──▶ floods in turn ──▶ new numbers
//! free:   stretches freed ──▶ regions they touch ──▶ the larger keeps its number, the smaller are flooded with it
//! ```
//! Everything works on *runs*, maximal stretches of free tiles in a row: the flood is a breadth-first search whose
//! nodes are runs, so that it costs a step a run and a fill of memory, not a step a tile.
//!
//! Invariants: label 0 means blocked; all tiles of a run have one label; `sizes[n]` is the number of tiles labelled `n`;
//! a number below `sizes.len()` that no tile has is in `free_ids`; the last number is in use. Numbers depend on the
//! edits made, in their order, and on nothing else.
//!
//! Cost: `build` O(runs + tiles / 8). Blocking: nothing beyond the rectangle while its surroundings still meet beside
//! it; otherwise the floods from the pieces take turns, a run each, and end when they meet or when all pieces but one
//! are exhausted, so that they cost (pieces × runs of the largest piece but one). Freeing: the runs of all joined
//! regions but the largest.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::bit_plane::{BitPlane, Run};

/// The number of a connected region, from 1.
///
/// After a full build regions are numbered by their first tile (by y, then x). An edit that joins regions keeps the
/// largest's number; numbers that fall free are taken again, the smallest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RegionId(pub u32);

/// The region of each tile, and the size of each region.
#[derive(Clone, Debug)]
pub(super) struct Regions {
    width: usize,
    labels: Labels,
    /// Tiles by region number; 0 for number 0 and for numbers not in use.
    sizes: Vec<u32>,
    free_ids: BTreeSet<u32>,
}

/// A region number a tile, in as many bytes as the largest number has needed so far.
#[derive(Clone, Debug)]
enum Labels {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
}

impl Regions {
    /// Labels all free tiles of a plane.
    pub(super) fn build(rows: &BitPlane) -> Self {
        let mut sets = DisjointSets::default();
        let (mut above, mut row): (Vec<Run>, Vec<Run>) = Default::default();
        for y in 0..rows.height() {
            std::mem::swap(&mut above, &mut row);
            row.clear();
            row.extend(rows.runs(y));
            let first = sets.extend_by(row.len());
            sets.join_rows(&above, first - above.len(), &row, first);
        }
        let (numbers, count) = sets.into_numbers();

        let width = rows.width() as usize;
        let mut labels = Labels::zeroed(width * rows.height() as usize, count);
        let mut sizes = vec![0; count as usize + 1];
        let mut numbers = numbers.into_iter();
        for y in 0..rows.height() {
            for (run, number) in rows.runs(y).zip(numbers.by_ref()) {
                labels.fill(run, width, number + 1);
                sizes[number as usize + 1] += run.len();
            }
        }
        Self { width, labels, sizes, free_ids: BTreeSet::new() }
    }

    #[inline]
    pub(super) fn at(&self, x: u32, y: u32) -> Option<RegionId> {
        let label = self.label(x, y);
        (label != 0).then_some(RegionId(label))
    }

    pub(super) fn count(&self) -> u32 {
        (self.sizes.len() - 1 - self.free_ids.len()) as u32
    }

    pub(super) fn size(&self, region: RegionId) -> u64 {
        self.sizes.get(region.0 as usize).map_or(0, |size| u64::from(*size))
    }

    pub(super) fn free_count(&self) -> u64 {
        self.sizes.iter().map(|size| u64::from(*size)).sum()
    }

    pub(super) fn largest(&self) -> Option<(RegionId, u64)> {
        let used = (0..).zip(&self.sizes).filter(|(_, size)| **size > 0);
        used.max_by_key(|(id, size)| (**size, std::cmp::Reverse(*id)))
            .map(|(id, size)| (RegionId(id), u64::from(*size)))
    }

    pub(super) fn bytes(&self) -> usize {
        // A number that fell free takes about two words in the set.
        self.labels.bytes() + self.sizes.len() * 4 + self.free_ids.len() * 16
    }

    /// Follows the blocking of `blocked`, stretches of tiles that were free; `rows` has them blocked already.
    pub(super) fn block(&mut self, rows: &BitPlane, blocked: &[Run]) {
        // The pieces of a region that may have come apart all reach the blocked tiles.
        let mut beside = Vec::new();
        for run in blocked {
            let label = self.label(run.start, run.y);
            for_each_run_beside(rows, *run, |run| beside.push((label, run)));
        }
        let mut touched: Vec<u32> = Vec::new();
        for run in blocked {
            let label = self.label(run.start, run.y);
            self.sizes[label as usize] -= run.len();
            self.labels.fill(*run, self.width, 0);
            touched.push(label);
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
        for same_region in beside.chunk_by(|a, b| a.0 == b.0) {
            let runs: Vec<Run> = same_region.iter().map(|(_, run)| *run).collect();
            let (pieces, count) = components(&runs);
            if count > 1 {
                self.split(rows, same_region[0].0, &runs, &pieces, count);
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
                for label in &met {
                    let other = ids.binary_search(label).expect("runs of a region belong to it or to a piece");
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
        // The set still at work keeps the region's number, since its tiles were not all visited.
        for (piece, flood) in floods.iter().enumerate() {
            let set = sets.find(piece);
            let id = if at_work[set] > 0 { region } else { ids[set] };
            if id != ids[piece] {
                for run in &flood.runs {
                    self.labels.fill(*run, self.width, id);
                }
                self.release(ids[piece]);
            }
            if id != region {
                self.sizes[id as usize] += flood.tiles;
                self.sizes[region as usize] -= flood.tiles;
            }
        }
    }

    /// Frees `freed`, stretches of tiles that are still blocked in `rows`, and joins the regions they touch.
    pub(super) fn free(&mut self, rows: &mut BitPlane, freed: &[Run]) {
        let (numbers, _) = components(freed);
        let mut by_component: Vec<(u32, Run)> = numbers.into_iter().zip(freed.iter().copied()).collect();
        by_component.sort_unstable();
        let mut beside = Vec::new();
        for component in by_component.chunk_by(|a, b| a.0 == b.0) {
            // The tiles of later components are still blocked, so all runs beside this one are labelled whole.
            beside.clear();
            for (_, run) in component {
                for_each_run_beside(rows, *run, |run| beside.push((self.label(run.start, run.y), run)));
            }
            beside.sort_unstable();
            beside.dedup_by_key(|(label, _)| *label);
            let largest = beside.iter().map(|(label, _)| *label);
            let winner = largest.max_by_key(|id| (self.sizes[*id as usize], std::cmp::Reverse(*id)));
            let winner = winner.unwrap_or_else(|| self.take_id());
            for (loser, seed) in beside.iter().filter(|(label, _)| *label != winner) {
                let mut flood = Flood::default();
                flood.claim(self, *seed, winner);
                while !flood.is_exhausted() {
                    flood.step(self, rows, *loser, winner, |_| ());
                }
                self.sizes[winner as usize] += self.sizes[*loser as usize];
                self.release(*loser);
            }
            for (_, run) in component {
                rows.set_run(*run, false);
                self.labels.fill(*run, self.width, winner);
                self.sizes[winner as usize] += run.len();
            }
        }
        self.trim();
    }

    #[inline]
    fn label(&self, x: u32, y: u32) -> u32 {
        let index = y as usize * self.width + x as usize;
        match &self.labels {
            Labels::U8(labels) => u32::from(labels[index]),
            Labels::U16(labels) => u32::from(labels[index]),
            Labels::U32(labels) => labels[index],
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
        while self.sizes.len() > 1 && self.free_ids.last().is_some_and(|id| *id as usize == self.sizes.len() - 1) {
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

    fn claim(&mut self, regions: &mut Regions, run: Run, id: u32) {
        regions.labels.fill(run, regions.width, id);
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

/// Calls `visit` with each run that touches a stretch of tiles from above or below.
fn for_each_run_above_and_below(rows: &BitPlane, stretch: Run, mut visit: impl FnMut(Run)) {
    let below = Some(stretch.y + 1).filter(|y| *y < rows.height());
    for y in stretch.y.checked_sub(1).into_iter().chain(below) {
        let mut x = stretch.start;
        while let Some(first) = rows.free_from(x, y).filter(|first| *first <= stretch.end) {
            let start = if first == stretch.start { rows.run_start(first, y) } else { first };
            let end = rows.run_end(first, y);
            visit(Run { y, start, end });
            if end >= stretch.end {
                break;
            }
            x = end + 1;
        }
    }
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

/// Numbers the groups of stretches that touch from row to row, from 0 in the order of their first stretch.
///
/// The stretches are sorted, and no two of one row touch. Returns each stretch's number and how many groups there are.
fn components(runs: &[Run]) -> (Vec<u32>, u32) {
    let mut sets = DisjointSets::default();
    sets.extend_by(runs.len());
    let mut above: &[Run] = &[];
    let mut first = 0;
    for row in runs.chunk_by(|a, b| a.y == b.y) {
        if above.first().is_some_and(|run| run.y + 1 == row[0].y) {
            sets.join_rows(above, first - above.len(), row, first);
        }
        first += row.len();
        above = row;
    }
    sets.into_numbers()
}

/// Union-find whose representative is always the set's smallest member (Tarjan 1975, with path halving).
#[derive(Default)]
struct DisjointSets {
    parents: Vec<u32>,
}

impl DisjointSets {
    /// Adds members, each a set of its own; returns the first.
    fn extend_by(&mut self, count: usize) -> usize {
        let first = self.parents.len();
        self.parents.extend(first as u32..(first + count) as u32);
        first
    }

    fn find(&mut self, member: usize) -> usize {
        let mut at = member;
        loop {
            let parent = self.parents[at] as usize;
            if parent == at {
                return at;
            }
            self.parents[at] = self.parents[parent];
            at = self.parents[at] as usize;
        }
    }

    /// Unites two sets; returns the representative.
    fn union(&mut self, a: usize, b: usize) -> usize {
        let (a, b) = (self.find(a), self.find(b));
        self.parents[a.max(b)] = a.min(b) as u32;
        a.min(b)
    }

    /// Unites the runs of two neighbouring rows that touch; each row's members are numbered on from its first.
    fn join_rows(&mut self, above: &[Run], above_first: usize, below: &[Run], below_first: usize) {
        let (mut a, mut b) = (0, 0);
        while a < above.len() && b < below.len() {
            if above[a].start <= below[b].end && below[b].start <= above[a].end {
                self.union(above_first + a, below_first + b);
            }
            if above[a].end < below[b].end {
                a += 1;
            } else {
                b += 1;
            }
        }
    }

    /// Each member's set, numbered from 0 in the order of their smallest members, and the number of sets.
    fn into_numbers(self) -> (Vec<u32>, u32) {
        let mut numbers = self.parents;
        let mut count = 0;
        for member in 0..numbers.len() {
            let parent = numbers[member] as usize;
            // A parent is never above its child, so a smaller one has its number already.
            numbers[member] = if parent == member {
                count += 1;
                count - 1
            } else {
                numbers[parent]
            };
        }
        (numbers, count)
    }
}

impl Labels {
    fn zeroed(tiles: usize, id_max: u32) -> Self {
        match id_max {
            0..=0xFF => Self::U8(vec![0; tiles]),
            0x100..=0xFFFF => Self::U16(vec![0; tiles]),
            _ => Self::U32(vec![0; tiles]),
        }
    }

    fn fill(&mut self, run: Run, width: usize, id: u32) {
        let row = run.y as usize * width;
        let range = row + run.start as usize..row + run.end as usize + 1;
        match self {
            Self::U8(labels) => labels[range].fill(id as u8),
            Self::U16(labels) => labels[range].fill(id as u16),
            Self::U32(labels) => labels[range].fill(id),
        }
    }

    fn widen_for(&mut self, id: u32) {
        if let Self::U8(labels) = self
            && id > 0xFF
        {
            *self = Self::U16(labels.iter().map(|label| u16::from(*label)).collect());
        }
        if let Self::U16(labels) = self
            && id > 0xFFFF
        {
            *self = Self::U32(labels.iter().map(|label| u32::from(*label)).collect());
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::U8(labels) => labels.len(),
            Self::U16(labels) => labels.len() * 2,
            Self::U32(labels) => labels.len() * 4,
        }
    }
}
