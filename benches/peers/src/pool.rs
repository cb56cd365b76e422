//! Pools like the reference's compared with `slotmap`, `slab` and plain slot arrays, as throng uses them for pending messages (inbox) and
//! for the objects of a scene.
//!
//! - *chunks* is the reference's pool: chunks of 60, O(1) take and return, a list of used items in which the last item fills the gap
//!   of a returned one, generations, and a walk over all items during which items may be returned.
//! - *arrays* is throng's: a vector of slots with generations and a free list.
//! - `slab` has no generations, so a stale key finds the next value in the slot.
//!
//! All hold 4,096 values of 48 bytes. *leave* returns random values and takes as many new ones; *look* reads values by random keys; *walk*
//! reads all values, returns every eighth on the way, and then takes as many new ones.

use std::hint::black_box;
use std::time::Instant;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use slab::Slab;
use slotmap::{DefaultKey, SlotMap};

use crate::Row;

const VALUES: usize = 4_096;
const ROUNDS: usize = 301;

/// As large as a pending message.
#[derive(Clone, Copy)]
struct Value([u64; 6]);

/// The measured operations on values with keys.
trait Pool: Default {
    type Key: Copy;
    fn take(&mut self, value: Value) -> Self::Key;
    fn give_back(&mut self, key: Self::Key) -> bool;
    fn get(&self, key: Self::Key) -> Option<&Value>;
    /// Sums up all values, and returns those whose first word is a multiple of eight.
    fn walk(&mut self) -> u64;
}

const CHUNK: usize = 60;

#[derive(Default)]
struct Chunks {
    chunks: Vec<Box<[ChunkSlot; CHUNK]>>,
    free: Vec<u32>,
    used: Vec<u32>,
}

#[derive(Clone, Copy)]
struct ChunkSlot {
    value: Value,
    generation: u32,
    /// Its index in `used`; `u32::MAX` while it is free.
    place: u32,
}

impl Chunks {
    fn slot(&mut self, number: u32) -> &mut ChunkSlot {
        &mut self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }

    fn end(&mut self, number: u32) {
        let slot = self.slot(number);
        slot.generation = slot.generation.wrapping_add(1);
        let place = std::mem::replace(&mut slot.place, u32::MAX);
        self.used.swap_remove(place as usize);
        if let Some(&moved) = self.used.get(place as usize) {
            self.slot(moved).place = place;
        }
        self.free.push(number);
    }
}

impl Pool for Chunks {
    type Key = (u32, u32);

    fn take(&mut self, value: Value) -> Self::Key {
        if self.free.is_empty() {
            let first = (self.chunks.len() * CHUNK) as u32;
            let empty = ChunkSlot {
                value,
                generation: 0,
                place: u32::MAX,
            };
            self.chunks.push(Box::new([empty; CHUNK]));
            self.free.extend((first..first + CHUNK as u32).rev());
        }
        let number = self.free.pop().expect("there is a free place now");
        let place = self.used.len() as u32;
        self.used.push(number);
        let slot = self.slot(number);
        (slot.value, slot.place) = (value, place);
        (number, slot.generation)
    }

    fn give_back(&mut self, (number, generation): Self::Key) -> bool {
        let is_there = self.slot(number).generation == generation;
        if is_there {
            self.end(number);
        }
        is_there
    }

    fn get(&self, (number, generation): Self::Key) -> Option<&Value> {
        let slot = &self.chunks[number as usize / CHUNK][number as usize % CHUNK];
        (slot.generation == generation).then_some(&slot.value)
    }

    fn walk(&mut self) -> u64 {
        let mut sum = 0u64;
        // Backwards: the value that fills the gap of a returned one was visited before.
        for place in (0..self.used.len()).rev() {
            let number = self.used[place];
            let first = self.slot(number).value.0[0];
            sum = sum.wrapping_add(first);
            if first.is_multiple_of(8) {
                self.end(number);
            }
        }
        sum
    }
}

#[derive(Default)]
struct Arrays {
    slots: Vec<(u32, Option<Value>)>,
    free: Vec<u32>,
}

impl Pool for Arrays {
    type Key = (u32, u32);

    fn take(&mut self, value: Value) -> Self::Key {
        let Some(number) = self.free.pop() else {
            self.slots.push((0, Some(value)));
            return (self.slots.len() as u32 - 1, 0);
        };
        let slot = &mut self.slots[number as usize];
        slot.1 = Some(value);
        (number, slot.0)
    }

    fn give_back(&mut self, (number, generation): Self::Key) -> bool {
        let slot = &mut self.slots[number as usize];
        let is_there = slot.0 == generation && slot.1.take().is_some();
        if is_there {
            slot.0 = slot.0.wrapping_add(1);
            self.free.push(number);
        }
        is_there
    }

    fn get(&self, (number, generation): Self::Key) -> Option<&Value> {
        let slot = &self.slots[number as usize];
        slot.1.as_ref().filter(|_| slot.0 == generation)
    }

    fn walk(&mut self) -> u64 {
        let mut sum = 0u64;
        for (number, slot) in self.slots.iter_mut().enumerate() {
            let Some(value) = &slot.1 else { continue };
            let first = value.0[0];
            sum = sum.wrapping_add(first);
            if first.is_multiple_of(8) {
                *slot = (slot.0.wrapping_add(1), None);
                self.free.push(number as u32);
            }
        }
        sum
    }
}

impl Pool for SlotMap<DefaultKey, Value> {
    type Key = DefaultKey;

    fn take(&mut self, value: Value) -> Self::Key {
        self.insert(value)
    }

    fn give_back(&mut self, key: Self::Key) -> bool {
        self.remove(key).is_some()
    }

    fn get(&self, key: Self::Key) -> Option<&Value> {
        SlotMap::get(self, key)
    }

    fn walk(&mut self) -> u64 {
        let mut sum = 0u64;
        self.retain(|_, value| {
            sum = sum.wrapping_add(value.0[0]);
            !value.0[0].is_multiple_of(8)
        });
        sum
    }
}

impl Pool for Slab<Value> {
    type Key = usize;

    fn take(&mut self, value: Value) -> Self::Key {
        self.insert(value)
    }

    fn give_back(&mut self, key: Self::Key) -> bool {
        self.try_remove(key).is_some()
    }

    fn get(&self, key: Self::Key) -> Option<&Value> {
        Slab::get(self, key)
    }

    fn walk(&mut self) -> u64 {
        let mut sum = 0u64;
        self.retain(|_, value| {
            sum = sum.wrapping_add(value.0[0]);
            !value.0[0].is_multiple_of(8)
        });
        sum
    }
}

/// The time of each operation, in nanoseconds per value, the minimum over all rounds; and its result, which must be equal for all pools.
struct Measured {
    ns: [f64; 3],
    found: u64,
}

fn measure_one<P: Pool>() -> Measured {
    let mut random = Pcg64Mcg::seed_from_u64(7);
    let (mut pool, mut keys) = (P::default(), Vec::new());
    let mut next = 0u64;
    let mut value = || {
        next += 1;
        Value([next; 6])
    };
    keys.extend((0..VALUES).map(|_| pool.take(value())));
    let (mut ns, mut found, mut free_slots) = ([f64::MAX; 3], 0u64, Vec::new());
    for _ in 0..ROUNDS {
        let drawn: Vec<usize> = (0..VALUES)
            .map(|_| random.random_range(0..VALUES))
            .collect();
        let mut least = |nth: usize, start: Instant| {
            let taken: f64 = start.elapsed().as_nanos() as f64 / VALUES as f64;
            ns[nth] = ns[nth].min(taken);
        };
        let start = Instant::now();
        for &nth in &drawn {
            assert!(pool.give_back(keys[nth]));
            keys[nth] = pool.take(value());
        }
        least(0, start);
        let start = Instant::now();
        let values_read = drawn.iter().filter_map(|&nth| pool.get(keys[nth]));
        let sum = values_read.fold(0u64, |sum, value| sum.wrapping_add(value.0[3]));
        least(1, start);
        let start = Instant::now();
        let walked = pool.walk();
        // All reads first: without generations a stale key would find a newer value.
        free_slots.extend((0..VALUES).filter(|&nth| pool.get(keys[nth]).is_none()));
        for nth in free_slots.drain(..) {
            keys[nth] = pool.take(value());
        }
        least(2, start);
        found = found.wrapping_mul(31).wrapping_add(black_box(sum ^ walked));
    }
    Measured { ns, found }
}

pub fn measure() -> Vec<Row> {
    let arrays = measure_one::<Arrays>();
    let others = [
        ("chunks of 60, as the reference's", measure_one::<Chunks>()),
        ("slotmap 1", measure_one::<SlotMap<DefaultKey, Value>>()),
        (
            "slab 0.4, without generations",
            measure_one::<Slab<Value>>(),
        ),
    ];
    let mut rows = Vec::new();
    for (nth, case) in ["leave", "look", "walk"].into_iter().enumerate() {
        for (name, other) in &others {
            assert_eq!(other.found, arrays.found, "{name} found other values");
            let values = [arrays.ns[nth], other.ns[nth]];
            let case = format!("{case}/{VALUES}");
            rows.push(Row::beside("pool", case, values, "ns", name));
        }
    }
    rows
}
