//! A table of fixed size of live allocations and their callers, for a hook that must not allocate.
//!
//! A block's address determines its row; in a full row the smallest block is evicted and counted as lost. So nothing is ever
//! moved, and every call accesses one row: O([`ROW_BLOCKS`]).

/// The number of blocks per row.
pub(super) const ROW_BLOCKS: usize = 8;

/// The number of recorded callers per block, from the innermost on.
pub(super) const FRAMES_MAX: usize = 32;

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LiveBlock {
    /// 0 if the entry is free.
    pub address: usize,
    pub bytes: usize,
    pub thread: u32,
    /// Return addresses of its callers; 0 after the last.
    pub frames: [usize; FRAMES_MAX],
}

impl LiveBlock {
    pub(super) const NONE: Self = Self {
        address: 0,
        bytes: 0,
        thread: 0,
        frames: [0; FRAMES_MAX],
    };
}

/// Live blocks in this many rows, a power of two.
pub(super) struct LiveBlocks<const ROWS: usize> {
    rows: [[LiveBlock; ROW_BLOCKS]; ROWS],
    /// Blocks that were evicted, or not inserted, since the table was cleared.
    dropped: u64,
}

impl<const ROWS: usize> LiveBlocks<ROWS> {
    /// An empty table; all zeros, so that a static one takes no memory until it is used.
    pub(super) const fn new() -> Self {
        assert!(ROWS.is_power_of_two());
        Self {
            rows: [[LiveBlock::NONE; ROW_BLOCKS]; ROWS],
            dropped: 0,
        }
    }

    /// Inserts a block. `frames` is called only if there is room for it.
    pub(super) fn insert(
        &mut self,
        address: usize,
        bytes: usize,
        thread: u32,
        frames: impl FnOnce(&mut [usize; FRAMES_MAX]),
    ) {
        debug_assert_ne!(address, 0);
        let row = self.row(address);
        let free = row
            .iter()
            .position(|place| place.address == 0 || place.address == address);
        let smallest = (0..ROW_BLOCKS).min_by_key(|&nth| row[nth].bytes);
        let place = match (free, smallest) {
            (Some(nth), _) => nth,
            (None, Some(nth)) if row[nth].bytes < bytes => {
                self.dropped += 1;
                nth
            }
            _ => {
                self.dropped += 1;
                return;
            }
        };
        let place = &mut self.row(address)[place];
        *place = LiveBlock {
            address,
            bytes,
            thread,
            ..LiveBlock::NONE
        };
        frames(&mut place.frames);
    }

    /// Removes a block, if it is in the table.
    pub(super) fn remove(&mut self, address: usize) {
        let row = self.row(address);
        if let Some(place) = row.iter_mut().find(|place| place.address == address) {
            place.address = 0;
            place.bytes = 0;
        }
    }

    /// The live blocks.
    pub(super) fn iter(&self) -> impl Iterator<Item = &LiveBlock> {
        let all = self.rows.iter().flatten();
        all.filter(|place| place.address != 0)
    }

    /// Blocks that were evicted, or not inserted.
    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Removes all.
    pub(super) fn clear(&mut self) {
        for place in self.rows.iter_mut().flatten() {
            // Rows that were never used are not touched.
            if place.address != 0 {
                *place = LiveBlock::NONE;
            }
        }
        self.dropped = 0;
    }

    fn row(&mut self, address: usize) -> &mut [LiveBlock; ROW_BLOCKS] {
        // The upper half of a multiplication by the golden ratio moves adjacent addresses to distant rows.
        let mixed = (address as u64 >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &mut self.rows[(mixed >> 32) as usize & (ROWS - 1)]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn block_sizes<const ROWS: usize>(blocks: &LiveBlocks<ROWS>) -> BTreeMap<usize, usize> {
        let pairs = blocks.iter().map(|block| (block.address, block.bytes));
        pairs.collect()
    }

    proptest! {
        #[test]
        fn table_holds_live_blocks_and_evicts_the_smallest(
            steps in prop::collection::vec((1..60usize, 0..50usize, any::<bool>()), 0..200)
        ) {
            let mut blocks = Box::new(LiveBlocks::<2>::new());
            let (mut model, mut lost) = (BTreeMap::new(), 0);
            for (nth, bytes, is_new) in steps {
                let address = nth * 16;
                if is_new && !model.contains_key(&address) {
                    let before = block_sizes(&blocks);
                    blocks.insert(address, bytes, 1, |frames| frames[0] = nth);
                    model.insert(address, bytes);
                    let after = block_sizes(&blocks);
                    if after.len() == before.len() {
                        // One of a full row, or the new one itself, was evicted: the smallest of them.
                        lost += 1;
                        let gone = before.iter().find(|(address, _)| !after.contains_key(address));
                        prop_assert!(gone.is_none_or(|(_, gone)| *gone < bytes));
                    }
                } else if !is_new {
                    blocks.remove(address);
                    model.remove(&address);
                }
                let kept = block_sizes(&blocks);
                prop_assert!(kept.iter().all(|(address, bytes)| model.get(address) == Some(bytes)));
                prop_assert!(kept.len() + blocks.dropped() as usize >= model.len());
                prop_assert_eq!(blocks.dropped(), lost);
                prop_assert!(blocks.iter().all(|block| block.frames[0] * 16 == block.address));
            }
            blocks.clear();
            prop_assert_eq!((blocks.iter().count(), blocks.dropped()), (0, 0));
        }
    }

    #[test]
    fn largest_blocks_are_kept() {
        let mut blocks = Box::new(LiveBlocks::<1>::new());
        for bytes in 1..=100 {
            blocks.insert(bytes * 64, bytes, 1, |_| {});
        }
        let bytes: Vec<usize> = block_sizes(&blocks).into_values().collect();
        assert_eq!(bytes, Vec::from_iter(93..=100));
        assert_eq!(blocks.dropped(), 92);
    }
}
