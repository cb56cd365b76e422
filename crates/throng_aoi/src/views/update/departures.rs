//! Who left a slot in an update, as the rows of one cell see it; and all of them by words, so that a long row is gone through
//! once.

use throng_core::memory::MemoryUse;

use crate::views::state::bits::{bit, ones};
use crate::views::state::cells::TargetCell;

/// Who left a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub(crate) target: u32,
    pub(crate) list: u8,
    /// The place and the word of the bit by which it was seen.
    pub(crate) place: u8,
    pub(crate) word: u32,
    /// The word and the place of the bit by which it is seen now; nothing if it is out of range.
    pub(crate) to: Option<(u32, u8)>,
}

impl Departure {
    /// Those who left a cell in a direction from the one whose rows are in work, by word and place.
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

/// A word of the rows in which slots were left.
#[derive(Clone, Copy, Debug, Default)]
struct DepartedWord {
    slots: u64,
    /// Where its departures begin.
    first: u32,
}

/// All who left slots around a cell, by word.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(crate) struct Departures {
    all: Vec<Departure>,
    /// By word of a row.
    words: Vec<DepartedWord>,
}

impl Departures {
    /// Forgets those before, and notes these, of rows of so many words; gives how many they are.
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

    /// Lists those whom a row sees, of which these words have bits.
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
