//! What is known of 64 slots of a cell, a bit for each, side by side: who asks for one of these words mostly asks for others.

use super::bits::{bit, ones};
use super::object::UNCAPPED;

/// 64 slots.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlotWord {
    /// Slots of somebody, also of who just left.
    pub(crate) taken: u64,
    /// Who may be seen, by class. Who hides is in none.
    pub(crate) population: [u64; UNCAPPED],
    /// Who has to be asked whether it may be seen even by those who see the ordinary layer: because of its layers, or of
    /// whom it sees where sight is mutual.
    pub(crate) needs_check: u64,
    /// Where sight is mutual, by the list of who asks: those who may have a place, and all who need not agree.
    pub(crate) open: [u64; UNCAPPED],
    /// Who left in this update.
    pub(crate) vacated: u64,
    /// The list of its viewers in which each stands, or stood, as a number of two bits.
    lists: [u64; 2],
}

impl SlotWord {
    /// The list in which whoever is in a slot stands, or stood.
    #[inline]
    pub(crate) const fn list(&self, slot: usize) -> usize {
        let [low, high] = self.lists;
        (low >> (slot % 64) & 1 | (high >> (slot % 64) & 1) << 1) as usize
    }

    /// Somebody has a slot.
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

    /// Whoever is in a slot may have a place from now on.
    pub(crate) fn set_open(&mut self, slot: usize) {
        for mask in &mut self.open {
            *mask |= bit(slot);
        }
    }

    /// Nobody sees whoever is in a slot from now on.
    pub(crate) const fn hide(&mut self, slot: usize, list: usize) {
        self.population[list] &= !bit(slot);
    }

    /// Nobody has a slot from now on.
    pub(crate) const fn free(&mut self, slot: usize) {
        self.vacated &= !bit(slot);
        self.taken &= !bit(slot);
    }

    /// Takes somebody out of a slot; what is known of it is the first bit of each mask.
    pub(crate) fn remove(&mut self, slot: usize) -> Self {
        let mut taken = Self::default();
        let masks = self.masks().into_iter().zip(taken.masks());
        for (from, to) in masks {
            *to = *from >> (slot % 64) & 1;
            *from &= !bit(slot);
        }
        taken
    }

    /// Puts somebody who was taken out of a slot into one that is free.
    pub(crate) fn insert(&mut self, slot: usize, mut taken: Self) {
        for (to, from) in self.masks().into_iter().zip(taken.masks()) {
            *to = *to & !bit(slot) | *from << (slot % 64);
        }
    }

    /// The slots that somebody has.
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
