//! Dirty masks: one bit per attribute of each object, and one bit per object, so that clean objects are skipped.
//!
//! Both are iterated by trailing zeros. A mark is two `or`s. Collecting costs one word for every 64 slots and, for each dirty object, one
//! word for every 64 attributes and one step per set bit.

use crate::memory::MemoryUse;

/// Bits in a word.
pub const WORD_BITS: usize = u64::BITS as usize;

/// A mask for each slot, with enough words for all attributes.
#[derive(Clone, Debug, PartialEq, Eq, MemoryUse)]
pub struct SlotMasks {
    /// The number of words of each mask.
    words: usize,
    masks: Vec<u64>,
    /// A bit for each slot whose mask may not be empty.
    dirty: Vec<u64>,
}

impl Default for SlotMasks {
    fn default() -> Self {
        Self::new(1)
    }
}

impl SlotMasks {
    /// Creates masks of this many words, at least one, without slots.
    #[must_use]
    pub fn new(words: usize) -> Self {
        Self {
            words: words.max(1),
            masks: Vec::new(),
            dirty: Vec::new(),
        }
    }

    /// The number of words of each mask.
    #[must_use]
    pub const fn words(&self) -> usize {
        self.words
    }

    /// The number of slots.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.masks.len() / self.words
    }

    /// Makes room for this many slots; keeps existing masks.
    pub fn grow(&mut self, slots: usize) {
        if slots > self.slots() {
            self.masks.resize(slots * self.words, 0);
            self.dirty.resize(slots.div_ceil(WORD_BITS), 0);
        }
    }

    /// Makes the masks wider. O(slots).
    pub fn widen(&mut self, words: usize) {
        if words <= self.words {
            return;
        }
        let mut masks = vec![0; self.slots() * words];
        for (slot, mask) in self.masks.chunks(self.words).enumerate() {
            masks[slot * words..][..mask.len()].copy_from_slice(mask);
        }
        (self.words, self.masks) = (words, masks);
    }

    /// Sets a bit; a bit out of range belongs to no attribute and is ignored.
    #[inline]
    pub fn mark(&mut self, slot: u32, bit: u32) {
        let (slot, bit) = (slot as usize, bit as usize);
        let word = bit / WORD_BITS;
        if word < self.words
            && let Some(mask) = self.masks.get_mut(slot * self.words + word)
        {
            *mask |= 1 << (bit % WORD_BITS);
            self.dirty[slot / WORD_BITS] |= 1 << (slot % WORD_BITS);
        }
    }

    /// The mask of a slot.
    #[must_use]
    pub fn mask_of(&self, slot: u32) -> &[u64] {
        let start = slot as usize * self.words;
        self.masks
            .get(start..start + self.words)
            .unwrap_or_default()
    }

    /// Whether any bit of a slot may be set.
    #[must_use]
    pub fn is_dirty(&self, slot: u32) -> bool {
        let slot = slot as usize;
        self.dirty
            .get(slot / WORD_BITS)
            .is_some_and(|word| word >> (slot % WORD_BITS) & 1 == 1)
    }

    /// Clears the mask of a slot.
    pub fn clear(&mut self, slot: u32) {
        let slot = slot as usize;
        let start = slot * self.words;
        if let Some(mask) = self.masks.get_mut(start..start + self.words) {
            mask.fill(0);
            self.dirty[slot / WORD_BITS] &= !(1 << (slot % WORD_BITS));
        }
    }

    /// Calls `take` with every dirty slot and its mask, ascending. Bits that `take` leaves in the mask stay dirty.
    #[inline]
    pub fn drain(&mut self, mut take: impl FnMut(u32, &mut [u64])) {
        for (nth, dirty) in self.dirty.iter_mut().enumerate() {
            let (mut left, mut stay) = (*dirty, 0);
            while left != 0 {
                let slot = nth * WORD_BITS + left.trailing_zeros() as usize;
                let lowest = left & left.wrapping_neg();
                let mask = &mut self.masks[slot * self.words..][..self.words];
                take(slot as u32, mask);
                if mask.iter().any(|&word| word != 0) {
                    stay |= lowest;
                }
                left &= left - 1;
            }
            *dirty = stay;
        }
    }
}

/// The bits that are set, lowest first.
#[inline]
#[must_use]
pub const fn bits(mask: &[u64]) -> SetBits<'_> {
    SetBits {
        mask,
        word: 0,
        left: 0,
    }
}

/// See [`bits`].
#[derive(Clone, Debug)]
pub struct SetBits<'a> {
    mask: &'a [u64],
    /// The number of words begun.
    word: usize,
    /// The remaining bits of the last one.
    left: u64,
}

impl Iterator for SetBits<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.left == 0 {
            self.left = *self.mask.get(self.word)?;
            self.word += 1;
        }
        let bit = self.left.trailing_zeros() as usize;
        self.left &= self.left - 1;
        Some((self.word - 1) * WORD_BITS + bit)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum MaskStep {
        Mark(u32, u32),
        Clear(u32),
        /// Takes the bits whose number is divisible by this.
        Drain(usize),
        Widen(usize),
        Grow(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<MaskStep>> {
        let step = prop_oneof![
            8 => (0..200u32, 0..200u32).prop_map(|(slot, bit)| MaskStep::Mark(slot, bit)),
            1 => (0..200u32).prop_map(MaskStep::Clear),
            1 => (1..3usize).prop_map(MaskStep::Drain),
            1 => (1..4usize).prop_map(MaskStep::Widen),
            1 => (0..200usize).prop_map(MaskStep::Grow),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn masks_match_a_set_of_pairs(steps in steps()) {
            let mut masks = SlotMasks::default();
            let mut model = BTreeSet::new();
            for step in steps {
                match step {
                    MaskStep::Mark(slot, bit) => {
                        masks.mark(slot, bit);
                        if (slot as usize) < masks.slots() && (bit as usize) < masks.words() * WORD_BITS {
                            model.insert((slot, bit as usize));
                        }
                    }
                    MaskStep::Clear(slot) => {
                        masks.clear(slot);
                        model.retain(|&(other, _)| other != slot);
                    }
                    MaskStep::Drain(modulus) => {
                        let mut seen = Vec::new();
                        masks.drain(|slot, mask| {
                            let due: Vec<usize> = bits(mask).filter(|bit| bit % modulus == 0).collect();
                            for bit in due {
                                seen.push((slot, bit));
                                mask[bit / WORD_BITS] &= !(1 << (bit % WORD_BITS));
                            }
                        });
                        let (taken, left) = model.into_iter().partition(|&(_, bit)| bit % modulus == 0);
                        prop_assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), taken);
                        model = left;
                    }
                    MaskStep::Widen(words) => masks.widen(words),
                    MaskStep::Grow(slots) => masks.grow(slots),
                }
            }
            let all: BTreeSet<_> = (0..masks.slots() as u32)
                .flat_map(|slot| bits(masks.mask_of(slot)).map(move |bit| (slot, bit)))
                .collect();
            prop_assert!(all.iter().all(|&(slot, _)| masks.is_dirty(slot)));
            prop_assert_eq!(&all, &model);
            let mut collected = Vec::new();
            masks.drain(|slot, mask| {
                collected.extend(bits(mask).map(|bit| (slot, bit)));
                mask.fill(0);
            });
            prop_assert_eq!(collected, model.into_iter().collect::<Vec<_>>());
            masks.drain(|slot, mask| panic!("{slot} {mask:?} is forgotten"));
        }
    }
}
