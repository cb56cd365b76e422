//! Landmarks: four jump points in the corners of a map, and the distance of every jump point from each of them.
//!
//! By the triangle inequality, two tiles are at least as far apart as their distances from a landmark differ
//! (Goldberg and Harrelson, "Computing the shortest path: A* search meets graph theory", SODA 2005). Where walls make paths
//! longer than the straight distance, this is a better estimate than the octile distance.
//!
//! Distances are in [coarse units](coarse_octile) and exact in them, so an estimate from them is consistent: it is the
//! difference of two shortest paths, in a measure that counts no step for more than it costs. A jump point that is not
//! connected to a landmark, or too far for 32 bits, is stored as farthest; only the estimate is lost by that.
//!
//! Why they are exact. The first leg of a shortest path from a tile, diagonally first and then straight, ends at a jump
//! point from [`for_each_successor`] in all directions, or at the landmark. So a distance is the minimum over the following
//! jump points of their distance plus the leg; a search from the landmark backwards over these legs finds all. A leg has the
//! same length in both directions. The legs of the graph are not sufficient: from a direction of arrival they continue only
//! where a path may have to turn, and a path from a landmark may pass a jump point where it does not turn.
//!
//! Cost: a scan in all directions from each jump point, and a visit of each leg for each landmark: a graph with landmarks takes
//! three times the time of one without; nine tenths of it can run in parallel. Memory: 16 bytes per jump point; while they
//! are built up to 12 per leg, and for each running search 16 per jump point and 12.
//!
//! Tried: eight landmarks, with the middles of the sides, expand a tenth less in towns and take as long; sixteen the same.
//! Following a leg back only to where a shortest path continues in a direction that its arrival allows, and prefetching,
//! made building no faster; a heap in place of buckets takes a fifth more.

use glam::{IVec2, UVec2};
use prefetch_index::prefetch_index;

use super::jump_points::JumpPoints;
use super::planes::SignScanner;
use crate::cost::{PathCost, coarse_octile};
use crate::direction::Directions;
use crate::jump_scan::{JumpScanner, for_each_successor};
use crate::key::Key;
use throng_core::parallel::ParallelExecutor;

/// The positions of the landmarks: as far in these directions as there are jump points.
const CORNERS: [IVec2; LANDMARKS] = [
    IVec2::new(-1, -1),
    IVec2::new(1, -1),
    IVec2::new(-1, 1),
    IVec2::new(1, 1),
];

pub(super) const LANDMARKS: usize = 4;

/// The distances of a tile from each landmark, in coarse units.
pub(crate) type LandmarkDistances = [u32; LANDMARKS];

/// Farther than any distance: there is no path.
const UNREACHABLE: u32 = u32::MAX;

/// The distances of all jump points from the landmarks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Landmarks {
    /// The jump points that are landmarks, with possible duplicates; empty on a map without jump points.
    pub(crate) numbers: Vec<u32>,
    /// By the numbers of the jump points.
    pub(crate) distances: Vec<LandmarkDistances>,
}

impl Landmarks {
    /// Chooses landmarks, and searches from each over the legs from all jump points in all directions.
    pub(super) fn build<const CUT: bool>(
        walks: &SignScanner,
        points: &JumpPoints,
        legs: Vec<Legs>,
        spread: impl ParallelExecutor,
    ) -> Self {
        let (mut numbers, mut by_end) = (Vec::new(), LegsByEnd::default());
        // Each search reads all legs and takes a tenth of the time.
        let choose = || numbers = corners(points, &legs);
        let sort = || by_end = LegsByEnd::of(points.len(), &legs);
        let mut parts: [Box<dyn FnMut() + Send>; 2] = [Box::new(sort), Box::new(choose)];
        spread.for_each_item(&mut parts, |part| part());
        drop(parts);
        drop(legs);
        let mut searches: Vec<(u32, Vec<u32>)> =
            numbers.iter().map(|&number| (number, Vec::new())).collect();
        spread.for_each_item(&mut searches, |(landmark, distances)| {
            *distances = search::<CUT>(walks, points, &by_end, points.tile(*landmark));
        });
        let mut distances = vec![[UNREACHABLE; LANDMARKS]; points.len() as usize];
        for (nth, (_, of_landmark)) in searches.into_iter().enumerate() {
            for (distances, distance) in distances.iter_mut().zip(of_landmark) {
                distances[nth] = distance;
            }
        }
        Self { numbers, distances }
    }

    /// The distances of any tile; `None` if there is no path to a landmark. O(jump points around it).
    pub(crate) fn of_tile<const CUT: bool>(
        &self,
        walks: &SignScanner,
        points: &JumpPoints,
        tile: IVec2,
    ) -> Option<LandmarkDistances> {
        let mut least = [UNREACHABLE; LANDMARKS];
        for_each_successor::<_, CUT, true>(walks, tile, Directions::ALL, |to, _| {
            if let Some(number) = points.number(to) {
                let leg = coarse_octile(tile, to);
                for (least, distance) in least.iter_mut().zip(self.distances[number as usize]) {
                    *least = (*least).min(distance.saturating_add(leg));
                }
            }
        });
        for (least, &landmark) in least.iter_mut().zip(&self.numbers) {
            let landmark = points.tile(landmark);
            let leg = coarse_octile(tile, landmark);
            if leg < *least && JumpScanner::<CUT>::is_clear(walks, tile, landmark) {
                *least = leg;
            }
        }
        let is_known = least.iter().any(|distance| *distance < UNREACHABLE);
        is_known.then_some(least)
    }

    /// A lower bound of the cost from a jump point to a tile, from the distances of that tile.
    #[inline(always)]
    pub(crate) fn lower_bound(&self, number: u32, to: &LandmarkDistances) -> PathCost {
        let distances = self.distances[number as usize].iter().zip(to);
        let differences = distances.map(|(from, to)| from.abs_diff(*to));
        PathCost::of_coarse(differences.max().unwrap_or(0))
    }

    /// Prefetches the memory that [`Landmarks::lower_bound`] reads.
    #[inline(always)]
    pub(crate) fn prefetch(&self, number: u32) {
        prefetch_index(&self.distances, number as usize);
    }

    /// The heap memory of the landmarks of this many jump points, in bytes.
    pub(super) const fn memory_bytes_of(points: u32) -> usize {
        points as usize * size_of::<LandmarkDistances>()
    }
}

/// The farthest jump points in each corner, among the largest connected group (the lowest numbers among equals). This
/// does not read the map's regions, since region ids depend on edits and a graph must follow from the tiles alone.
fn corners(points: &JumpPoints, legs: &[Legs]) -> Vec<u32> {
    let mut joined: Vec<u32> = (0..points.len()).collect();
    legs.iter().flat_map(Legs::iter).for_each(|(number, end)| {
        let (a, b) = (root(&mut joined, number), root(&mut joined, end));
        joined[a.max(b) as usize] = a.min(b);
    });
    let mut sizes = vec![0; joined.len()];
    for number in 0..points.len() {
        sizes[root(&mut joined, number) as usize] += 1;
    }
    let by_size = |number: &u32| sizes[*number as usize];
    let Some(largest) = (0..points.len()).rev().max_by_key(by_size) else {
        return Vec::new();
    };
    let mut farthest = [(i32::MIN, 0); LANDMARKS];
    for number in (0..points.len()).filter(|number| root(&mut joined, *number) == largest) {
        for (farthest, corner) in farthest.iter_mut().zip(CORNERS) {
            *farthest = (*farthest).max((points.tile(number).dot(corner), number));
        }
    }
    farthest.map(|(_, number)| number).to_vec()
}

/// The lowest number connected with one; compresses the path on the way.
fn root(joined: &mut [u32], mut number: u32) -> u32 {
    while joined[number as usize] != number {
        let next = joined[number as usize];
        joined[number as usize] = joined[next as usize];
        number = joined[next as usize];
    }
    number
}

/// The first legs of paths from jump points in all directions, one jump point after the other.
pub(super) struct Legs {
    /// The number of the first of these jump points.
    first: u32,
    /// The number of legs from each.
    pub(super) counts: Vec<u32>,
    /// The numbers of the jump points at their ends.
    pub(super) ends: Vec<u32>,
}

impl Legs {
    /// Creates an empty list for jump points from `first` on.
    pub(super) const fn out_of(first: u32) -> Self {
        Self {
            first,
            counts: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// The numbers of the jump points at the start and end of each leg.
    fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        let mut to = 0;
        let counts = (self.first..).zip(&self.counts);
        counts.flat_map(move |(number, &count)| {
            let from = to;
            to += count as usize;
            self.ends[from..to].iter().map(move |&end| (number, end))
        })
    }
}

/// Legs by the jump points at their ends.
#[derive(Default)]
struct LegsByEnd {
    /// Where the legs to each jump point begin; they end where the next ones begin.
    first: Vec<u32>,
    from: Vec<u32>,
}

impl LegsByEnd {
    fn of(points: u32, legs: &[Legs]) -> Self {
        let mut first = vec![0; points as usize + 1];
        for end in legs.iter().flat_map(|legs| &legs.ends) {
            first[*end as usize] += 1;
        }
        let mut sum = 0;
        for first in &mut first {
            sum += *first;
            *first = sum;
        }
        let mut from = vec![0; sum as usize];
        legs.iter().flat_map(Legs::iter).for_each(|(number, end)| {
            let place = &mut first[end as usize];
            *place -= 1;
            from[*place as usize] = number;
        });
        Self { first, from }
    }

    /// The jump points with a leg to this one.
    fn to(&self, number: u32) -> &[u32] {
        let ends = [number, number + 1].map(|number| self.first[number as usize] as usize);
        &self.from[ends[0]..ends[1]]
    }
}

/// A jump point and its distance from a landmark: stored together, as both are read together.
struct Reached {
    tile: Key,
    distance: u32,
}

/// Finds the distances of all jump points from a landmark: Dijkstra's search, against the direction of the legs.
fn search<const CUT: bool>(
    walks: &SignScanner,
    points: &JumpPoints,
    legs: &LegsByEnd,
    landmark: IVec2,
) -> Vec<u32> {
    let tiles = walks.tiles;
    let corner = UVec2::new(tiles.width(), tiles.height()).as_ivec2();
    let mut open = Buckets::new(coarse_octile(IVec2::ZERO, corner));
    let first_look = (0..points.len()).map(|number| {
        let tile = points.tile(number);
        let mut distance = UNREACHABLE;
        if JumpScanner::<CUT>::is_clear(walks, tile, landmark) {
            distance = coarse_octile(tile, landmark);
            open.push(distance, number);
        }
        let tile = Key::of_tile(tile);
        Reached { tile, distance }
    });
    let mut reached: Vec<Reached> = first_look.collect();
    while let Some(number) = open.pop() {
        let Reached { tile, distance } = reached[number as usize];
        if !open.is_current(distance) {
            continue;
        }
        let tile = tile.tile();
        for &from in legs.to(number) {
            let before = &mut reached[from as usize];
            let distance = distance.saturating_add(coarse_octile(before.tile.tile(), tile));
            if distance < before.distance {
                before.distance = distance;
                open.push(distance, from);
            }
        }
    }
    let distances = reached.iter().map(|reached| reached.distance);
    distances.collect()
}

/// The queue of a search, by distance in steps of [`BUCKET_UNITS`]: entries of one bucket are in no order, as no leg
/// leads from one of them to another.
struct Buckets {
    /// A ring: from the current bucket to as far as a leg leads, each with the index of its first entry.
    first: Vec<u32>,
    /// Numbers, each with the index of the next in its bucket.
    entries: Vec<(u32, u32)>,
    waiting: usize,
    current: u32,
}

/// The shortest leg, a straight step, leads out of a bucket.
const BUCKET_UNITS: u32 = 128;
const NO_ENTRY: u32 = u32::MAX;

const _: () = assert!(coarse_octile(IVec2::ZERO, IVec2::X) >= BUCKET_UNITS);

impl Buckets {
    fn new(leg_max: u32) -> Self {
        let ring = (leg_max / BUCKET_UNITS + 2).next_power_of_two();
        Self {
            first: vec![NO_ENTRY; ring as usize],
            entries: Vec::new(),
            waiting: 0,
            current: 0,
        }
    }

    fn push(&mut self, distance: u32, number: u32) {
        let place = self.ring_index(distance / BUCKET_UNITS);
        let first = std::mem::replace(&mut self.first[place], self.entries.len() as u32);
        self.entries.push((number, first));
        self.waiting += 1;
    }

    /// Removes one of the nearest entries.
    fn pop(&mut self) -> Option<u32> {
        self.waiting = self.waiting.checked_sub(1)?;
        loop {
            let place = self.ring_index(self.current);
            let first = self.first[place];
            if let Some(&(number, next)) = self.entries.get(first as usize) {
                self.first[place] = next;
                return Some(number);
            }
            self.current += 1;
        }
    }

    /// Whether that is the last queued distance, and not an earlier one.
    fn is_current(&self, distance: u32) -> bool {
        distance / BUCKET_UNITS == self.current
    }

    fn ring_index(&self, bucket: u32) -> usize {
        bucket as usize & (self.first.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(draws!())]

        /// The model is a plain list: a popped entry was in the first non-empty bucket, and a new entry is then
        /// farther by at least a step and at most the longest leg.
        #[test]
        fn buckets_pop_the_nearest_first(
            steps in prop::collection::vec(prop::option::weighted(0.6, 0u32..=20_000), 0..300),
        ) {
            let mut open = Buckets::new(20_169);
            let mut model: Vec<(u32, u32)> = Vec::new();
            let mut reached = 0;
            for (number, step) in (0..).zip(steps) {
                if let Some(farther) = step {
                    let distance = reached + COARSE_STEP + farther;
                    open.push(distance, number);
                    model.push((distance, number));
                    continue;
                }
                let nearest = model.iter().map(|(distance, _)| distance / BUCKET_UNITS).min();
                let popped = open.pop();
                prop_assert_eq!(popped.is_some(), nearest.is_some());
                if let Some(popped) = popped {
                    let place = model.iter().position(|(_, number)| *number == popped).unwrap();
                    let (distance, _) = model.swap_remove(place);
                    prop_assert_eq!(Some(distance / BUCKET_UNITS), nearest);
                    prop_assert!(open.is_current(distance));
                    reached = distance;
                }
            }
        }
    }

    const COARSE_STEP: u32 = coarse_octile(IVec2::ZERO, IVec2::X);
}
