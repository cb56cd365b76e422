//! A reference design for comparison: pairs in a pool, two nodes each, doubly linked lists, and a
//! bit for each pair of ids.
//!
//! On a change of cell, the update tags the old list, scans the new nine cells, links untagged objects, and
//! unlinks those that were not found. A full list evicts its lowest class for a higher one. A viewer that lost a
//! member scans for others at the end of the tick. Sight is mutual; both ends must accept before any eviction.
//! Memory: objects²/8 bytes for the bits, 28 bytes per pair.

use glam::Vec2;

use super::priority::{ViewTraits, by_relationship};

const NONE: u32 = u32::MAX;

/// One end of a pair: node `2 p` and `2 p + 1` are those of pair `p`.
#[derive(Clone, Copy, Debug)]
struct PairEnd {
    /// The object that is seen through this end.
    other: u32,
    previous: u32,
    next: u32,
}

/// The lists of all objects in a square scene.
#[derive(Clone, Debug)]
pub struct PooledViews {
    columns: i32,
    cell_m: f32,
    cap: u32,
    traits: Vec<ViewTraits>,
    cells: Vec<i32>,
    member_indices: Vec<u32>,
    members: Vec<Vec<u32>>,
    heads: Vec<u32>,
    lengths: Vec<u32>,
    nodes: Vec<PairEnd>,
    /// The class of each pair.
    classes: Vec<u8>,
    free: Vec<u32>,
    bits: Vec<u64>,
    words: usize,
    /// The last scan that found each id in range.
    tags: Vec<u32>,
    sweep: u32,
    rows_to_refill: Vec<u32>,
    /// Enters and leaves so far; each direction counts.
    pub event_count: u64,
}

impl PooledViews {
    /// Creates lists of at most `cap` for objects without links, in a square of this side.
    #[must_use]
    pub fn new(side_m: f32, cell_m: f32, cap: u32, traits: Vec<ViewTraits>) -> Self {
        let columns = (side_m / cell_m).ceil() as i32;
        let count = traits.len();
        let words = count.div_ceil(64);
        Self {
            columns,
            cell_m,
            cap,
            traits,
            cells: vec![-1; count],
            member_indices: vec![NONE; count],
            members: vec![Vec::new(); (columns * columns) as usize],
            heads: vec![NONE; count],
            lengths: vec![0; count],
            nodes: Vec::new(),
            classes: Vec::new(),
            free: Vec::new(),
            bits: vec![0; words * count],
            words,
            tags: vec![0; count],
            sweep: 0,
            rows_to_refill: Vec::new(),
            event_count: 0,
        }
    }

    /// Whether two objects see each other. O(1).
    #[must_use]
    pub fn sees(&self, a: u32, b: u32) -> bool {
        self.bits[a as usize * self.words + b as usize / 64] >> (b % 64) & 1 == 1
    }

    /// The objects that an object sees.
    pub fn seen_by(&self, id: u32) -> impl Iterator<Item = u32> + '_ {
        let node = |at: u32| (at != NONE).then_some(at);
        std::iter::successors(node(self.heads[id as usize]), move |&at| {
            node(self.nodes[at as usize].next)
        })
        .map(|at| self.nodes[at as usize].other)
    }

    /// Sets the new positions of all objects, in metres.
    pub fn update(&mut self, positions: &[Vec2]) {
        for (id, &position) in (0..).zip(positions) {
            let axis = |metres: f32| ((metres / self.cell_m) as i32).clamp(0, self.columns - 1);
            let cell = axis(position.y) * self.columns + axis(position.x);
            if cell != self.cells[id as usize] {
                self.move_to(id, cell);
            }
        }
        let mut hungry = std::mem::take(&mut self.rows_to_refill);
        hungry.sort_unstable();
        hungry.dedup();
        for id in hungry.drain(..) {
            if self.lengths[id as usize] < self.cap {
                let cell = self.cells[id as usize];
                self.scan(id, cell);
            }
        }
        // Objects that these evicted scan in the next tick.
        hungry.append(&mut self.rows_to_refill);
        self.rows_to_refill = hungry;
    }

    fn move_to(&mut self, id: u32, cell: i32) {
        let from = std::mem::replace(&mut self.cells[id as usize], cell);
        if from >= 0 {
            let place = self.member_indices[id as usize] as usize;
            let members = &mut self.members[from as usize];
            members.swap_remove(place);
            if let Some(&moved) = members.get(place) {
                self.member_indices[moved as usize] = place as u32;
            }
        }
        self.member_indices[id as usize] = self.members[cell as usize].len() as u32;
        self.members[cell as usize].push(id);
        self.scan(id, cell);
    }

    /// Tags all objects in range and links those that can enter, higher classes first.
    fn scan(&mut self, id: u32, cell: i32) {
        self.sweep += 1;
        let mut entrants: [Vec<u32>; 8] = Default::default();
        let (x, y) = (cell % self.columns, cell / self.columns);
        for y in (y - 1).max(0)..=(y + 1).min(self.columns - 1) {
            for x in (x - 1).max(0)..=(x + 1).min(self.columns - 1) {
                for &other in &self.members[(y * self.columns + x) as usize] {
                    self.tags[other as usize] = self.sweep;
                    if other != id && !self.sees(id, other) {
                        entrants[usize::from(self.class(id, other))].push(other);
                    }
                }
            }
        }
        // Objects that were not found leave first and free their slots.
        let mut at = self.heads[id as usize];
        while at != NONE {
            let PairEnd { other, next, .. } = self.nodes[at as usize];
            if self.tags[other as usize] != self.sweep {
                self.unlink(at / 2);
                self.rows_to_refill.push(other);
            }
            at = next;
        }
        for class in (0..8u8).rev() {
            for &other in &entrants[usize::from(class)] {
                let (mine, theirs) = (self.find_lowest(id, class), self.find_lowest(other, class));
                if let (Some(mine), Some(theirs)) = (mine, theirs) {
                    for evicted in [mine, theirs].into_iter().filter(|&pair| pair != NONE) {
                        let ends = [0, 1].map(|end| self.nodes[(2 * evicted + end) as usize].other);
                        self.unlink(evicted);
                        self.rows_to_refill.extend(ends);
                    }
                    self.link(id, other, class);
                } else if mine.is_none() {
                    break;
                }
            }
        }
    }

    fn class(&self, a: u32, b: u32) -> u8 {
        let (a, b) = (&self.traits[a as usize], &self.traits[b as usize]);
        by_relationship(a, b).max(by_relationship(b, a))
    }

    /// The pair to evict for an object of this class; [`NONE`] if there is a free slot, nothing if the list refuses it.
    fn find_lowest(&self, id: u32, class: u8) -> Option<u32> {
        if self.lengths[id as usize] < self.cap {
            return Some(NONE);
        }
        let (mut at, mut lowest) = (self.heads[id as usize], None);
        while at != NONE {
            let pair = at / 2;
            if lowest.is_none_or(|(least, _)| self.classes[pair as usize] < least) {
                lowest = Some((self.classes[pair as usize], pair));
            }
            at = self.nodes[at as usize].next;
        }
        lowest
            .filter(|&(least, _)| least < class)
            .map(|(_, pair)| pair)
    }

    fn link(&mut self, a: u32, b: u32, class: u8) {
        let pair = self.free.pop().unwrap_or_else(|| {
            let empty = PairEnd {
                other: NONE,
                previous: NONE,
                next: NONE,
            };
            self.nodes.extend([empty; 2]);
            self.classes.push(0);
            self.classes.len() as u32 - 1
        });
        self.classes[pair as usize] = class;
        for (node, me, other) in [(2 * pair, a, b), (2 * pair + 1, b, a)] {
            let next = std::mem::replace(&mut self.heads[me as usize], node);
            self.nodes[node as usize] = PairEnd {
                other,
                previous: NONE,
                next,
            };
            if next != NONE {
                self.nodes[next as usize].previous = node;
            }
            self.lengths[me as usize] += 1;
            self.bits[me as usize * self.words + other as usize / 64] |= 1 << (other % 64);
        }
        self.event_count += 2;
    }

    fn unlink(&mut self, pair: u32) {
        for node in [2 * pair, 2 * pair + 1] {
            let PairEnd {
                other,
                previous,
                next,
            } = self.nodes[node as usize];
            let me = self.nodes[(node ^ 1) as usize].other;
            match previous {
                NONE => self.heads[me as usize] = next,
                previous => self.nodes[previous as usize].next = next,
            }
            if next != NONE {
                self.nodes[next as usize].previous = previous;
            }
            self.lengths[me as usize] -= 1;
            self.bits[me as usize * self.words + other as usize / 64] &= !(1 << (other % 64));
        }
        self.free.push(pair);
        self.event_count += 2;
    }
}
