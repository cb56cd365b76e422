//! The positions of the slots of some cells, in columns, so that distances are compared for 32 slots at once.
//!
//! ```text
//! block    x [ . . . …  32 ]      one for each half of a word of slots, those of a cell contiguous
//!          y [ . . . …  32 ]
//! ```
//! Positions change with every step, slots hardly ever. So each update gathers the columns again, for the cells
//! around those that re-rank a viewer.
//!
//! Cost: one read of each position in these cells; then three comparisons per slot, four slots at once.

use glam::Vec2;
use throng_core::memory::MemoryUse;

use super::object::NONE;

/// The number of slots that are compared at once: half a word.
const LANES: usize = 32;

/// The number of band ends.
const BAND_ENDS: usize = 3;

/// The positions of half a word of slots.
#[derive(Clone, Copy, Debug)]
struct PositionBlock {
    x: [f32; LANES],
    y: [f32; LANES],
}

/// The positions of the targets in some cells, by slot.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(crate) struct SlotPositions {
    blocks: Vec<PositionBlock>,
    /// For each cell, where its blocks begin; [`NONE`] if it was not gathered.
    first: Vec<u32>,
    /// The cells that were gathered.
    gathered: Vec<u32>,
}

impl SlotPositions {
    /// Gathers the positions of a cell with these ids in its slots, once.
    pub(crate) fn gather(&mut self, cell: u32, ids: &[u32], positions: &[Vec2]) {
        if cell as usize >= self.first.len() {
            self.first.resize(cell as usize + 1, NONE);
        }
        if self.first[cell as usize] != NONE {
            return;
        }
        self.first[cell as usize] = self.blocks.len() as u32;
        self.gathered.push(cell);
        for ids in ids.chunks(LANES) {
            let mut block = PositionBlock {
                x: [0.0; LANES],
                y: [0.0; LANES],
            };
            for ((x, y), &id) in block.x.iter_mut().zip(&mut block.y).zip(ids) {
                // The caller knows which slots are free.
                let position = positions.get(id as usize).copied().unwrap_or_default();
                (*x, *y) = (position.x, position.y);
            }
            self.blocks.push(block);
        }
    }

    /// For a word of slots of a gathered cell, the slots that are nearer to a position than each of these distances, given as
    /// squares. Free slots have an arbitrary position.
    #[inline]
    pub(crate) fn nearer(
        &self,
        cell: u32,
        word: usize,
        here: Vec2,
        ends_m2: &[f32; BAND_ENDS],
    ) -> [u64; BAND_ENDS] {
        let first = self.first.get(cell as usize).map_or(0, |&first| first);
        debug_assert!(first != NONE && !self.first.is_empty(), "it was gathered");
        let blocks = self.blocks.get(first as usize + word * 2..);
        let mut nearer = [0; BAND_ENDS];
        for (half, block) in (0..2).zip(blocks.unwrap_or_default()) {
            let found = block.nearer(here, ends_m2);
            for (nearer, found) in nearer.iter_mut().zip(found) {
                *nearer |= u64::from(found) << (half * LANES);
            }
        }
        nearer
    }

    /// Clears all gathered positions.
    pub(crate) fn clear(&mut self) {
        for cell in self.gathered.drain(..) {
            self.first[cell as usize] = NONE;
        }
        self.blocks.clear();
    }
}

impl PositionBlock {
    /// A bit for each nearer slot, by distance.
    #[inline]
    fn nearer(&self, here: Vec2, ends_m2: &[f32; BAND_ENDS]) -> [u32; BAND_ENDS] {
        // Each lane has its own bit, so that lanes are combined once, at the end.
        let mut nearer = [0; BAND_ENDS];
        for ((&x, &y), &bit) in self.x.iter().zip(&self.y).zip(&BITS) {
            let distance_m2 = here.distance_squared(Vec2::new(x, y));
            for (nearer, &end) in nearer.iter_mut().zip(ends_m2) {
                *nearer |= if distance_m2 < end { bit } else { 0 };
            }
        }
        nearer
    }
}

/// The bit of each lane.
const BITS: [u32; LANES] = {
    let mut bits = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        bits[lane] = 1 << lane;
        lane += 1;
    }
    bits
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn nearer_slots_are_found(
            slots in prop::collection::vec(prop::option::of((-9i8..9, -9i8..9)), 0..150),
            others in 0usize..70,
            here in (-9i8..9, -9i8..9),
        ) {
            let at = |(x, y): (i8, i8)| Vec2::new(f32::from(x), f32::from(y));
            let positions: Vec<Vec2> = slots.iter().map(|slot| slot.map_or(Vec2::NAN, at)).collect();
            let id = |(id, slot): (usize, &Option<_>)| if slot.is_some() { id as u32 } else { NONE };
            let ids: Vec<u32> = slots.iter().enumerate().map(id).collect();
            let (here, ends) = (at(here), [4.0, 25.0, 100.0]);
            let mut columns = SlotPositions::default();
            for turn in 0..2 {
                columns.gather(7, &vec![0; others * turn], &[Vec2::ZERO]);
                columns.gather(3, &ids, &positions);
                columns.gather(3, &[], &[]);
                for (slot, id) in ids.iter().enumerate().filter(|(_, id)| **id != NONE) {
                    let distance_m2 = here.distance_squared(positions[*id as usize]);
                    let nearer = columns.nearer(3, slot / 64, here, &ends);
                    for (nearer, end) in nearer.into_iter().zip(ends) {
                        prop_assert_eq!(nearer >> (slot % 64) & 1 != 0, distance_m2 < end);
                    }
                }
                columns.clear();
            }
        }
    }
}
