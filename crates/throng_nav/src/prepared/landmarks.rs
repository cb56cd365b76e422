//! Landmarks: four jump points in the corners of a map, and how far every jump point is from each of them.
//!
//! As a way never spares more than it is long, two tiles are at least as far apart as their distances from a landmark differ
//! (Goldberg and Harrelson, "Computing the shortest path: A* search meets graph theory", SODA 2005). Where walls make ways
//! longer than they look, that says more of what is left to a goal than the octile distance does.
//!
//! Distances are in [coarse units](coarse_octile) and exact in them, so an estimate by them is consistent: it is the difference
//! of two shortest ways, in a measure that counts no step for more than it costs. What is not connected to a landmark, or too
//! far for 32 bits, stands as farthest; all that is lost by that is the estimate.
//!
//! Why they are exact. The first leg of a shortest way from a tile, walked diagonally first and straight after, ends at a jump
//! point out of [`for_each_successor`] in all directions, or at the landmark. So a distance is the least of those of the jump
//! points that follow, with the leg; a search from the landmark over these legs backwards finds all. A leg is as long one way as
//! the other. The legs of the graph would not do: what is reached in a direction goes on only where it may have to turn, and a
//! way from a landmark may pass a jump point where it does not turn.
//!
//! Cost: a walk in all directions from each jump point, and a look at each leg for each landmark: a graph with landmarks takes three
//! times the time of one without, of which all but a tenth can be done side by side. Memory: 16 bytes a jump point; while they
//! are built up to 12 a leg, and 16 a jump point and 12 for each search that runs.
//!
//! Tried: eight landmarks, with the middles of the sides, expand a tenth less in towns and take as long; sixteen the same. Following a
//! leg back only to where a shortest way goes on in a direction that its arrival allows, and asking ahead for what is looked at,
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

/// Where the landmarks stand: as far in these directions as there are jump points.
const CORNERS: [IVec2; LANDMARKS] = [
    IVec2::new(-1, -1),
    IVec2::new(1, -1),
    IVec2::new(-1, 1),
    IVec2::new(1, 1),
];

pub(super) const LANDMARKS: usize = 4;

/// How far a tile is from each landmark, in coarse units.
pub(crate) type LandmarkDistances = [u32; LANDMARKS];

/// Farther than anything, and what no way leads to.
const UNREACHABLE: u32 = u32::MAX;

/// The distances of all jump points from the landmarks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Landmarks {
    /// The jump points that are landmarks, which may be the same; none on a map without any.
    pub(crate) numbers: Vec<u32>,
    /// By the numbers of the jump points.
    pub(crate) distances: Vec<LandmarkDistances>,
}

impl Landmarks {
    /// Chooses landmarks, and searches from each over the legs out of all jump points in all directions.
    pub(super) fn build<const CUT: bool>(
        walks: &SignScanner,
        points: &JumpPoints,
        legs: Vec<Legs>,
        spread: impl ParallelExecutor,
    ) -> Self {
        let (mut numbers, mut by_end) = (Vec::new(), LegsByEnd::default());
        // Each reads all legs, and takes a tenth of the time.
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

    /// The distances of a tile that may be any; `None` where no way leads to a landmark. O(jump points around it).
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

    /// What a way from a jump point to a tile costs at least, by the distances of that tile.
    #[inline(always)]
    pub(crate) fn lower_bound(&self, number: u32, to: &LandmarkDistances) -> PathCost {
        let distances = self.distances[number as usize].iter().zip(to);
        let differences = distances.map(|(from, to)| from.abs_diff(*to));
        PathCost::of_coarse(differences.max().unwrap_or(0))
    }

    /// Asks for the memory that [`Landmarks::lower_bound`] reads.
    #[inline(always)]
    pub(crate) fn prefetch(&self, number: u32) {
        prefetch_index(&self.distances, number as usize);
    }

    /// Bytes that those of so many jump points hold on the heap.
    pub(super) const fn memory_bytes_of(points: u32) -> usize {
        points as usize * size_of::<LandmarkDistances>()
    }
}

/// The jump points that lie farthest in each corner, of those that legs join: the most, with the lowest numbers among equals. This
/// asks for no region of the map, as the numbers of those tell of edits and a graph is to follow from the tiles alone.
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

/// The lowest number that is joined with one; what is looked up on the way is brought nearer to it.
fn root(joined: &mut [u32], mut number: u32) -> u32 {
    while joined[number as usize] != number {
        let next = joined[number as usize];
        joined[number as usize] = joined[next as usize];
        number = joined[next as usize];
    }
    number
}

/// The first legs of ways out of jump points in all directions, one jump point after the other.
pub(super) struct Legs {
    /// The number of the first of these jump points.
    first: u32,
    /// How many legs lead out of each.
    pub(super) counts: Vec<u32>,
    /// The numbers of the jump points at which they end.
    pub(super) ends: Vec<u32>,
}

impl Legs {
    /// None yet, of the jump points from one on.
    pub(super) const fn out_of(first: u32) -> Self {
        Self {
            first,
            counts: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// The numbers of the jump points that each leads out of and to.
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

/// Legs by the jump points at which they end.
#[derive(Default)]
struct LegsByEnd {
    /// Where those to each jump point begin; they end where the next ones begin.
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

    /// The jump points out of which legs lead to one.
    fn to(&self, number: u32) -> &[u32] {
        let ends = [number, number + 1].map(|number| self.first[number as usize] as usize);
        &self.from[ends[0]..ends[1]]
    }
}

/// A jump point, and how far from a landmark it is: side by side, as both are looked at.
struct Reached {
    tile: Key,
    distance: u32,
}

/// Finds the distances of all jump points from a landmark: a search by Dijkstra, against the direction of the legs.
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

/// What waits in a search, by distance in steps of [`BUCKET_UNITS`]: what waits in the same bucket is in no order, as no leg
/// leads from one of them to another.
struct Buckets {
    /// A ring: from the one at hand to as far as a leg leads, each with the place of its first entry.
    first: Vec<u32>,
    /// Numbers, each with the place of the next in its bucket.
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

    /// One of those that wait nearest.
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

    /// Whether that is the distance with which the last one waited, and not one at which it came out before.
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

        /// The model is a plain list: what comes out waits in the first bucket of all that wait, and what is put in then is
        /// at least a step and at most the longest leg farther.
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
