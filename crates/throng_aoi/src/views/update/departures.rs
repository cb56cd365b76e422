//! Targets that left a slot in an update, as the rows of one cell see them; sorted by words, so that a long row is read only
//! once.

use throng_core::memory::MemoryUse;

use crate::views::state::bits::{bit, ones};
use crate::views::state::cells::TargetCell;

/// A target that left a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub(crate) target: u32,
    pub(crate) list: u8,
    /// The bit and the word by which it was seen.
    pub(crate) place: u8,
    pub(crate) word: u32,
    /// The word and the bit by which it is seen now; nothing if it is out of range.
    pub(crate) to: Option<(u32, u8)>,
}

impl Departure {
    /// The departures of a neighbour cell, seen from the cell being updated, by word and bit.
    #[inline]
    pub(crate) fn of<'a>(
        cell: &'a TargetCell,
        direction: usize,
        near: &'a TargetCell,
    ) -> impl Iterator<Item = Self> + 'a {
        near.departures.iter().map(move |leave| {
            let (slot, to_slot) = (leave.slot as usize, leave.to_slot as usize);
            let to = cell.grid_cell.direction_of(leave.to);
            Self {
                target: near.id(slot),
                list: near.list(slot) as u8,
                place: (slot % 64) as u8,
                word: cell.word(direction, slot) as u32,
                to: to.map(|to| (cell.word(to, to_slot) as u32, (to_slot % 64) as u8)),
            }
        })
    }
}

/// A word of the rows with vacated slots.
#[derive(Clone, Copy, Debug, Default)]
struct DepartedWord {
    slots: u64,
    /// The index of its first departure.
    first: u32,
}

/// All departures around a cell, by word.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(crate) struct Departures {
    all: Vec<Departure>,
    /// By word of a row.
    words: Vec<DepartedWord>,
}

impl Departures {
    /// Replaces the departures by these, for rows of this many words; returns their number.
    pub(crate) fn replace(&mut self, all: impl Iterator<Item = Departure>, words: usize) -> usize {
        self.all.clear();
        self.all.extend(all);
        let by_place = |departure: &Departure| (departure.word, departure.place);
        debug_assert!(self.all.is_sorted_by_key(by_place));
        if self.all.is_empty() {
            return 0;
        }
        self.words.clear();
        self.words.resize(words, DepartedWord::default());
        for (nth, departure) in (0..).zip(&self.all) {
            let word = &mut self.words[departure.word as usize];
            if word.slots == 0 {
                word.first = nth;
            }
            word.slots |= bit(departure.place.into());
        }
        self.all.len()
    }

    /// Lists the departures whose bits are set in these words of a row.
    #[inline]
    pub(crate) fn list_seen(
        &self,
        row: impl Iterator<Item = (usize, u64)>,
        seen: &mut Vec<Departure>,
    ) {
        for (word, bits) in row {
            let DepartedWord { slots, first } = self.words[word];
            for place in ones(slots & bits) {
                let before = (slots & (bit(place) - 1)).count_ones();
                seen.push(self.all[(first + before) as usize]);
            }
        }
    }
}
