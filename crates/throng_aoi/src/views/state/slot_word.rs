//! The masks of 64 slots of a cell, stored together, because code that reads one of these words usually reads others.

use super::bits::{bit, ones};
use super::object::UNCAPPED;

/// 64 slots.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlotWord {
    /// Taken slots, also those that were just vacated.
    pub(crate) taken: u64,
    /// Visible targets, by category. Hidden ones are in none.
    pub(crate) population: [u64; UNCAPPED],
    /// Targets whose visibility has to be checked even for viewers of the ordinary layer: because of their layers, or, in
    /// mutual mode, of the layers that they see.
    pub(crate) needs_check: u64,
    /// Mutual mode, by the list of the proposer: targets that may have a free slot, and all that need not agree.
    pub(crate) open: [u64; UNCAPPED],
    /// Slots vacated in this update.
    pub(crate) vacated: u64,
    /// The list of its viewers that each target is or was in, as a number of two bits.
    lists: [u64; 2],
}

impl SlotWord {
    /// The list of the current or last target of a slot.
    #[inline]
    pub(crate) const fn list(&self, slot: usize) -> usize {
        let [low, high] = self.lists;
        (low >> (slot % 64) & 1 | (high >> (slot % 64) & 1) << 1) as usize
    }

    /// Takes a slot.
    pub(crate) fn write(&mut self, slot: usize, list: usize, is_seen: bool, is_odd: bool) {
        let set = |mask: &mut u64, is_set: bool| {
            *mask = *mask & !bit(slot) | u64::from(is_set) << (slot % 64);
        };
        self.taken |= bit(slot);
        set(&mut self.population[list], is_seen);
        set(&mut self.needs_check, is_odd);
        set(&mut self.lists[0], list & 1 != 0);
        set(&mut self.lists[1], list & 2 != 0);
        self.set_open(slot);
    }

    /// Marks a slot's target as possibly having a free slot.
    pub(crate) fn set_open(&mut self, slot: usize) {
        for mask in &mut self.open {
            *mask |= bit(slot);
        }
    }

    /// Makes a slot's target invisible.
    pub(crate) const fn hide(&mut self, slot: usize, list: usize) {
        self.population[list] &= !bit(slot);
    }

    /// Frees a slot.
    pub(crate) const fn free(&mut self, slot: usize) {
        self.vacated &= !bit(slot);
        self.taken &= !bit(slot);
    }

    /// Takes the data of a slot out; the result has it in the first bit of each mask.
    pub(crate) fn remove(&mut self, slot: usize) -> Self {
        let mut taken = Self::default();
        let masks = self.masks().into_iter().zip(taken.masks());
        for (from, to) in masks {
            *to = *from >> (slot % 64) & 1;
            *from &= !bit(slot);
        }
        taken
    }

    /// Puts data that was taken out into a free slot.
    pub(crate) fn insert(&mut self, slot: usize, mut taken: Self) {
        for (to, from) in self.masks().into_iter().zip(taken.masks()) {
            *to = *to & !bit(slot) | *from << (slot % 64);
        }
    }

    /// The taken slots.
    pub(crate) fn taken_slots(&self) -> impl Iterator<Item = usize> + use<> {
        ones(self.taken)
    }

    fn masks(&mut self) -> [&mut u64; 11] {
        let Self {
            taken,
            population: [a, b, c],
            needs_check: odd,
            open: [d, e, f],
            vacated,
            lists: [low, high],
        } = self;
        [taken, a, b, c, odd, d, e, f, vacated, low, high]
    }
}
