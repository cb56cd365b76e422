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
        Self {
            width,
            labels,
            sizes,
            free_ids: BTreeSet::new(),
        }
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
        self.sizes
            .get(region.0 as usize)
            .map_or(0, |size| u64::from(*size))
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
                    let other = ids
                        .binary_search(label)
                        .expect("runs of a region belong to it or to a piece");
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
            beside.dedup_by_key(|(label, _)| *label);
            let largest = beside.iter().map(|(label, _)| *label);
            let winner =
                largest.max_by_key(|id| (self.sizes[*id as usize], std::cmp::Reverse(*id)));
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
        while self.sizes.len() > 1
            && self
                .free_ids
                .last()
                .is_some_and(|id| *id as usize == self.sizes.len() - 1)
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
            let start = if first == stretch.start {
                rows.run_start(first, y)
            } else {
                first
            };
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use glam::IVec2;
    use proptest::prelude::*;

    use super::*;
    use crate::map::{TileEdit, TileMap, TilePattern, TileRect};

    /// Labels by a flood tile by tile, numbered by first tile; 0 = blocked.
    fn flood_all(map: &TileMap) -> Vec<u32> {
        let (width, height) = (map.width() as i32, map.height() as i32);
        let mut labels = vec![0; (width * height) as usize];
        let mut count = 0;
        for first in 0..width * height {
            if labels[first as usize] != 0 || map.is_blocked(first % width, first / width) {
                continue;
            }
            count += 1;
            labels[first as usize] = count;
            let mut queue = vec![first];
            while let Some(at) = queue.pop() {
                for (dx, dy) in [(1, 0), (-1, 0), (0, 1), (0, -1)] {
                    let (x, y) = (at % width + dx, at / width + dy);
                    if !map.is_blocked(x, y) && labels[(y * width + x) as usize] == 0 {
                        labels[(y * width + x) as usize] = count;
                        queue.push(y * width + x);
                    }
                }
            }
        }
        labels
    }

    /// Checks every invariant of the regions against the flood tile by tile; `exact` when the numbers must agree, too.
    fn check(map: &TileMap, exact: bool) -> Result<(), TestCaseError> {
        let expected = flood_all(map);
        let width = map.width();
        let found: Vec<u32> = (0..map.width() * map.height())
            .map(|i| {
                map.region(IVec2::new((i % width) as i32, (i / width) as i32))
                    .map_or(0, |id| id.0)
            })
            .collect();
        let mut pairs = BTreeMap::new();
        let mut sizes = BTreeMap::new();
        for (expected, found) in expected.iter().zip(&found) {
            prop_assert_eq!(
                *pairs.entry(*expected).or_insert(*found),
                *found,
                "a region has two numbers"
            );
            prop_assert_eq!(*found == 0, *expected == 0);
            *sizes.entry(*found).or_insert(0u64) += u64::from(*found != 0);
        }
        sizes.remove(&0);
        prop_assert_eq!(
            map.region_count() as usize,
            sizes.len(),
            "two regions share a number"
        );
        prop_assert_eq!(sizes.len(), pairs.keys().filter(|id| **id != 0).count());
        for (id, size) in &sizes {
            prop_assert_eq!(map.region_size(RegionId(*id)), *size);
        }
        prop_assert_eq!(
            map.free_count(),
            expected.iter().filter(|id| **id != 0).count() as u64
        );
        prop_assert_eq!(
            map.largest_region().map(|(_, size)| size),
            sizes.values().max().copied()
        );
        let ids = map.regions.sizes.len();
        let unused = (1..ids)
            .filter(|id| map.regions.sizes[*id] == 0)
            .map(|id| id as u32)
            .collect();
        prop_assert_eq!(&map.regions.free_ids, &unused);
        prop_assert!(
            ids == 1 || map.regions.sizes[ids - 1] > 0,
            "the last number is not in use"
        );
        if exact {
            prop_assert_eq!(found, expected);
        }
        Ok(())
    }

    fn random_map(width: u32, height: u32, percent: u32, seed: u64) -> TileMap {
        let hash =
            |x: u32, y: u32| super::super::tiles::mix(seed ^ u64::from(y) << 32 ^ u64::from(x));
        TileMap::from_fn(width, height, |x, y| hash(x, y) % 100 < u64::from(percent)).unwrap()
    }

    fn maps() -> impl Strategy<Value = TileMap> {
        (
            1u32..140,
            1u32..40,
            prop::sample::select(vec![0, 10, 30, 40, 50, 70, 100]),
            any::<u64>(),
        )
            .prop_map(|(width, height, percent, seed)| random_map(width, height, percent, seed))
    }

    #[derive(Clone, Debug)]
    struct EditOp {
        corner: (u32, u32),
        size: (u32, u32),
        kind: u8,
        seed: u64,
    }

    impl EditOp {
        /// The edit, pushed into the map.
        fn on(&self, map: &TileMap) -> (TileRect, TileEdit) {
            let (x, y) = (self.corner.0 % map.width(), self.corner.1 % map.height());
            let (width, height) = (
                self.size.0.min(map.width() - x),
                self.size.1.min(map.height() - y),
            );
            let edit = match self.kind {
                0 => TileEdit::Block,
                1 => TileEdit::Free,
                2 => TileEdit::Toggle,
                _ => TileEdit::Write(TilePattern::from(&random_map(width, height, 40, self.seed))),
            };
            (TileRect::new(x, y, width, height), edit)
        }
    }

    fn edits() -> impl Strategy<Value = Vec<EditOp>> {
        let sizes = prop_oneof![
            (1u32..4, 1u32..4),
            (1u32..140, 1u32..2),
            (1u32..2, 1u32..40),
            (1u32..140, 1u32..40)
        ];
        let edit = (any::<(u32, u32)>(), sizes, 0u8..4, any::<u64>()).prop_map(
            |(corner, size, kind, seed)| EditOp {
                corner,
                size,
                kind,
                seed,
            },
        );
        prop::collection::vec(edit, 1..24)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(192))]

        #[test]
        fn built_regions_are_those_of_a_flood_in_order_of_first_tile(map in maps()) {
            check(&map, true)?;
        }

        #[test]
        fn edited_regions_are_those_of_a_flood(map in maps(), edits in edits()) {
            let (mut map, mut twin) = (map.clone(), map);
            for op in &edits {
                let (rect, edit) = op.on(&map);
                let before = map.clone();
                let changed = map.edit(rect, &edit).unwrap();
                check(&map, false)?;

                // The tiles are right, and nothing beyond the changed rectangle differs.
                let rebuilt = TileMap::from_fn(map.width(), map.height(), |x, y| {
                    let tile = IVec2::new(x as i32, y as i32);
                    let old = before.is_blocked(tile.x, tile.y);
                    match &edit {
                        _ if !rect.contains(tile) => old,
                        TileEdit::Block => true,
                        TileEdit::Free => false,
                        TileEdit::Toggle => !old,
                        TileEdit::Write(pattern) => {
                            pattern.is_blocked((x - rect.x) as i32, (y - rect.y) as i32)
                        }
                    }
                })
                .unwrap();
                prop_assert_eq!(&map, &rebuilt);
                prop_assert_eq!(&map.columns, &rebuilt.columns);
                prop_assert_eq!(map.fingerprint(), rebuilt.fingerprint());
                let differing: Vec<(u32, u32)> = (0..map.height())
                    .flat_map(|y| (0..map.width()).map(move |x| (x, y)))
                    .filter(|(x, y)| map.is_blocked(*x as i32, *y as i32) != before.is_blocked(*x as i32, *y as i32))
                    .collect();
                let bounds = differing.iter().fold(None, |bounds: Option<(u32, u32, u32, u32)>, (x, y)| {
                    let (left, top, right, bottom) = bounds.unwrap_or((*x, *y, *x, *y));
                    Some((left.min(*x), top.min(*y), right.max(*x), bottom.max(*y)))
                });
                let bounds = bounds.map(|(left, top, right, bottom)| {
                    TileRect::new(left, top, right - left + 1, bottom - top + 1)
                });
                prop_assert_eq!(changed, bounds);

                // Same edits, same numbers.
                twin.edit(rect, &edit).unwrap();
                prop_assert_eq!(format!("{:?}", map.regions), format!("{:?}", twin.regions));
            }
        }
    }

    #[test]
    fn labels_are_as_wide_as_the_number_of_regions_needs() {
        // Free tiles two apart: one region each.
        let dotted =
            |width, height| TileMap::from_fn(width, height, |x, y| x % 2 + y % 2 > 0).unwrap();
        let bytes_a_tile =
            |map: &TileMap| map.regions.labels.bytes() as u32 / (map.width() * map.height());
        let mut map = dotted(30, 34);
        assert_eq!((map.region_count(), bytes_a_tile(&map)), (255, 1));
        assert_eq!(
            (dotted(32, 32).region_count(), bytes_a_tile(&dotted(32, 32))),
            (256, 2)
        );
        assert_eq!(
            (
                dotted(512, 512).region_count(),
                bytes_a_tile(&dotted(512, 512))
            ),
            (65_536, 4)
        );
        map.edit(TileRect::new(1, 1, 1, 1), &TileEdit::Free)
            .unwrap();
        assert_eq!((map.region_count(), bytes_a_tile(&map)), (256, 2));
        check(&map, false).unwrap();
    }

    #[test]
    fn numbers_stay_bounded_under_endless_toggling() {
        let mut map = random_map(60, 60, 35, 1);
        let mut ids_max = 0;
        for i in 0..2_000u32 {
            let rect = TileRect::new(i * 7 % 50, i * 11 % 50, 1 + i % 10, 1 + i % 7);
            map.edit(rect, &TileEdit::Toggle).unwrap();
            ids_max = ids_max.max(map.regions.sizes.len());
        }
        check(&map, false).unwrap();
        // A map cannot have more regions than half its tiles, and an edit splits off no more than its outline touches.
        assert!(ids_max < 60 * 60 / 2 + 40, "{ids_max} numbers");
    }

    #[test]
    fn joined_regions_take_the_number_of_the_largest() {
        let mut map = TileMap::from_ascii(".@....\n.@....").unwrap();
        map.edit(TileRect::new(1, 0, 1, 1), &TileEdit::Free)
            .unwrap();
        assert_eq!(map.region(IVec2::ZERO), Some(RegionId(2)));
        assert_eq!((map.region_count(), map.region_size(RegionId(2))), (1, 11));
        // The smaller piece of a split takes the smallest number that is free.
        map.edit(TileRect::new(1, 0, 1, 1), &TileEdit::Block)
            .unwrap();
        assert_eq!(map.region_count(), 2);
        assert!(!map.connected(IVec2::ZERO, IVec2::new(2, 0)));
    }
}
