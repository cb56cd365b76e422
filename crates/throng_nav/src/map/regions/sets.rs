//! Connected runs of tiles: union-find from row to row.
//!
//! Cost: almost O(1) per operation.

use crate::map::bit_plane::TileRun;

/// Union-find whose representative is always the set's smallest member (Tarjan 1975, with path halving).
#[derive(Clone, Debug, Default)]
pub(super) struct DisjointSets {
    parents: Vec<u32>,
}

impl DisjointSets {
    /// Adds members, each in a set of its own; returns the first.
    pub(super) fn extend_by(&mut self, count: usize) -> usize {
        let first = self.parents.len();
        self.parents.extend(first as u32..(first + count) as u32);
        first
    }

    pub(super) fn find(&mut self, member: usize) -> usize {
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

    /// Merges two sets; returns the representative.
    pub(super) fn union(&mut self, a: usize, b: usize) -> usize {
        let (a, b) = (self.find(a), self.find(b));
        self.parents[a.max(b)] = a.min(b) as u32;
        a.min(b)
    }

    /// Merges the runs of two adjacent rows that touch; each row's members are numbered from its first.
    pub(super) fn join_rows(
        &mut self,
        above: &[TileRun],
        above_first: usize,
        below: &[TileRun],
        below_first: usize,
    ) {
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
    pub(super) fn into_numbers(self) -> (Vec<u32>, u32) {
        let mut numbers = self.parents;
        let mut count = 0;
        for member in 0..numbers.len() {
            let parent = numbers[member] as usize;
            // A parent is never above its child, so a smaller one already has its number.
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

/// Numbers the groups of runs that touch from row to row, from 0 in the order of their first run.
///
/// The runs are sorted, and no two of one row touch. Returns each run's number and the number of groups.
pub(super) fn components(runs: &[TileRun]) -> (Vec<u32>, u32) {
    let mut sets = DisjointSets::default();
    sets.extend_by(runs.len());
    let mut above: &[TileRun] = &[];
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
