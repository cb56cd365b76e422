//! Rows of bits: the targets that each viewer of a cell sees.
//!
//! ```text
//! short   row 0 [ word word word … ]    all words of all rows contiguous: a word is found by its index
//!         row 1 [ word word word … ]
//! long    row 0 [ (3, word) (17, word) … ]     only words with a set bit, in index order
//!         row 1 [ (0, word) … ]
//! ```
//! A row has a bit for each slot around, so full rows are quadratic in the size of a crowd, while a viewer's links are
//! bounded by its caps. If there are more than [`LONG_WORDS`] words, hardly any has more than one bit, and words without a
//! bit are not stored.
//!
//! Cost: 8 bytes per word of a short row; 12 per word with a bit of a long one, found by binary search.

use std::ops::Range;

use throng_core::memory::MemoryUse;

use super::bits::bit;

/// The number of cells around one, itself included.
pub(crate) const NEIGHBOURHOOD_CELLS: usize = 9;

/// Rows with more words are long: those of a cell with about 1,500 targets in each cell around, whose viewers see a hundred.
const LONG_WORDS: usize = if cfg!(test) { 5 } else { 256 };

/// Where the words of each neighbour cell begin in a row, and their number.
pub(crate) type RowLayout = [u32; NEIGHBOURHOOD_CELLS + 1];

/// A word of a long row with a set bit.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
struct IndexedWord {
    word: u32,
    bits: u64,
}

/// The rows of a cell, all with the same number of words.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(crate) struct ViewRows {
    len: usize,
    words: usize,
    short: Vec<u64>,
    #[memory(each)]
    long: Vec<Vec<IndexedWord>>,
}

impl ViewRows {
    /// Creates an empty set of rows of this many words.
    pub(crate) fn with_width(words: usize) -> Self {
        Self {
            words,
            ..Self::default()
        }
    }

    /// The number of rows.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The number of words of a row.
    pub(crate) const fn words(&self) -> usize {
        self.words
    }

    #[inline]
    pub(crate) const fn are_long(&self) -> bool {
        self.words > LONG_WORDS
    }

    /// Appends a row without set bits.
    pub(crate) fn push(&mut self) {
        self.len += 1;
        if self.are_long() {
            reserve_with_spare(&mut self.long, self.len);
            self.long.resize_with(self.len, Vec::new);
        } else {
            let words = self.len * self.words;
            reserve_with_spare(&mut self.short, words);
            self.short.resize(words, 0);
        }
    }

    /// A word of a row.
    #[inline(always)]
    pub(crate) fn get(&self, row: usize, word: usize) -> u64 {
        if self.are_long() {
            self.get_long(row, word)
        } else {
            self.short[row * self.words + word]
        }
    }

    fn get_long(&self, row: usize, word: usize) -> u64 {
        let long = &self.long[row];
        find_word(long, word).map_or(0, |nth| long[nth].bits)
    }

    /// Whether a bit is set.
    #[inline(always)]
    pub(crate) fn has(&self, row: usize, word: usize, place: usize) -> bool {
        self.get(row, word) & bit(place) != 0
    }

    /// Sets bits.
    #[inline(always)]
    pub(crate) fn insert(&mut self, row: usize, word: usize, bits: u64) {
        if !self.are_long() {
            self.short[row * self.words + word] |= bits;
        } else if bits != 0 {
            self.insert_long(row, word, bits);
        }
    }

    fn insert_long(&mut self, row: usize, word: usize, bits: u64) {
        let long = &mut self.long[row];
        match find_word(long, word) {
            Ok(nth) => long[nth].bits |= bits,
            Err(nth) => {
                reserve_with_spare(long, long.len() + 1);
                let word = word as u32;
                long.insert(nth, IndexedWord { word, bits });
            }
        }
    }

    /// Clears bits.
    #[inline(always)]
    pub(crate) fn remove(&mut self, row: usize, word: usize, bits: u64) {
        if self.are_long() {
            self.remove_long(row, word, bits);
        } else {
            self.short[row * self.words + word] &= !bits;
        }
    }

    fn remove_long(&mut self, row: usize, word: usize, bits: u64) {
        let long = &mut self.long[row];
        if let Ok(nth) = find_word(long, word) {
            long[nth].bits &= !bits;
            if long[nth].bits == 0 {
                long.remove(nth);
                // The capacity follows the number of targets seen.
                if long.len() * 4 < long.capacity() {
                    long.shrink_to(long.len() * 2);
                }
            }
        }
    }

    /// The words of a row in a range.
    #[inline]
    pub(crate) fn range(&self, row: usize, words: Range<usize>) -> RowWords<'_> {
        if self.are_long() {
            let long = &self.long[row];
            let before = |end: usize| long.partition_point(|placed| (placed.word as usize) < end);
            RowWords {
                short: &[],
                long: &long[before(words.start)..before(words.end)],
                words,
            }
        } else {
            let first = row * self.words;
            RowWords {
                short: &self.short[first + words.start..first + words.end],
                long: &[],
                words,
            }
        }
    }

    /// The words of a row with a set bit, with their indices.
    #[inline]
    pub(crate) fn set_words(&self, row: usize) -> impl Iterator<Item = (usize, u64)> + '_ {
        let (short, long) = if self.are_long() {
            (&[][..], &self.long[row][..])
        } else {
            (&self.short[row * self.words..][..self.words], &[][..])
        };
        let short = short.iter().copied().enumerate();
        let long = long
            .iter()
            .map(|&IndexedWord { word, bits }| (word as usize, bits));
        short.filter(|word| word.1 != 0).chain(long)
    }

    /// Makes room for this many words with a bit in a row.
    pub(crate) fn reserve(&mut self, row: usize, words: usize) {
        if let Some(long) = self.long.get_mut(row) {
            long.reserve_exact(words);
        }
    }

    /// Clears a row.
    pub(crate) fn clear(&mut self, row: usize) {
        if self.are_long() {
            self.long[row] = Vec::new();
        } else {
            self.short[row * self.words..][..self.words].fill(0);
        }
    }

    /// Of the 64 rows from `first` on, a bit for each in which the given bit is set.
    #[inline(always)]
    pub(crate) fn rows_with_bit(&self, first: usize, word: usize, place: usize) -> u64 {
        if self.are_long() {
            return self.long_rows_with_bit(first, word, place);
        }
        // Without a branch that depends on the links.
        let mut rows_with = 0;
        if word < self.words {
            let rows = self.short[first * self.words..].chunks_exact(self.words);
            for (nth, row) in (0..64).zip(rows) {
                rows_with |= (row[word] >> (place % 64) & 1) << nth;
            }
        }
        rows_with
    }

    fn long_rows_with_bit(&self, first: usize, word: usize, place: usize) -> u64 {
        let rows = (first..self.len).zip(0..64);
        rows.fold(0, |rows, (row, nth)| {
            rows | (self.get_long(row, word) >> (place % 64) & 1) << nth
        })
    }

    /// Moves a row to the index of another.
    pub(crate) fn relocate(&mut self, from: usize, to: usize) {
        if self.are_long() {
            self.long[to] = std::mem::take(&mut self.long[from]);
        } else {
            let from = from * self.words..(from + 1) * self.words;
            self.short.copy_within(from, to * self.words);
        }
    }

    /// Keeps the first `len` rows.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = len;
        self.short.truncate(len * self.words);
        self.short.shrink_to_fit();
        self.long.truncate(len);
        self.long.shrink_to_fit();
    }

    /// Rebuilds the rows from the old layout of neighbour cells to the new one.
    pub(crate) fn rebuild_rows(&mut self, old: &RowLayout, new: &RowLayout) {
        let mut rows = Self::with_width(new[NEIGHBOURHOOD_CELLS] as usize);
        rows.len = self.len;
        if rows.are_long() {
            rows.long.resize_with(self.len, Vec::new);
        } else {
            rows.short = vec![0; self.len * rows.words];
        }
        for (row, long) in self.long.iter().enumerate() {
            rows.reserve(row, long.len());
        }
        for row in 0..self.len {
            let mut direction = 0;
            for (word, bits) in self.set_words(row) {
                while old[direction + 1] as usize <= word {
                    direction += 1;
                }
                let word = word as u32 - old[direction] + new[direction];
                if word < new[direction + 1] {
                    rows.insert(row, word as usize, bits);
                }
            }
        }
        *self = rows;
    }

    /// Whether rows are stored as they should be, for checks.
    pub(crate) fn is_consistent(&self) -> bool {
        let is_sound = |long: &Vec<IndexedWord>| {
            let in_order = long.is_sorted_by(|a, b| { a.word } < b.word);
            let in_range = long
                .last()
                .is_none_or(|last| (last.word as usize) < self.words);
            in_order && in_range && long.iter().all(|placed| placed.bits != 0)
        };
        let (short, long) = if self.are_long() {
            (0, self.len)
        } else {
            (self.len * self.words, 0)
        };
        self.short.len() == short && self.long.len() == long && self.long.iter().all(is_sound)
    }
}

/// The words of a row in order, those without a bit included.
#[derive(Clone, Debug)]
pub(crate) struct RowWords<'a> {
    short: &'a [u64],
    long: &'a [IndexedWord],
    words: Range<usize>,
}

impl Iterator for RowWords<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let word = self.words.next()?;
        if let Some((&bits, rest)) = self.short.split_first() {
            self.short = rest;
            return Some(bits);
        }
        match self.long.split_first() {
            Some((&placed, rest)) if placed.word as usize == word => {
                self.long = rest;
                Some(placed.bits)
            }
            _ => Some(0),
        }
    }

    #[inline]
    fn nth(&mut self, skipped: usize) -> Option<u64> {
        self.words.start = (self.words.start + skipped).min(self.words.end);
        if let Some((_, rest)) = self.short.split_at_checked(skipped) {
            self.short = rest;
        }
        let before = |placed: &IndexedWord| (placed.word as usize) < self.words.start;
        while let Some((_, rest)) = self.long.split_first().filter(|(first, _)| before(first)) {
            self.long = rest;
        }
        self.next()
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.words.size_hint()
    }
}

impl DoubleEndedIterator for RowWords<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<u64> {
        let word = self.words.next_back()?;
        if let Some((&bits, rest)) = self.short.split_last() {
            self.short = rest;
            return Some(bits);
        }
        match self.long.split_last() {
            Some((&placed, rest)) if placed.word as usize == word => {
                self.long = rest;
                Some(placed.bits)
            }
            _ => Some(0),
        }
    }
}

impl ExactSizeIterator for RowWords<'_> {}

/// The index of a word of a long row, or where it would be inserted.
#[inline]
fn find_word(long: &[IndexedWord], word: usize) -> Result<usize, usize> {
    long.binary_search_by_key(&(word as u32), |placed| placed.word)
}

/// Reserves a quarter more than needed instead of twice as much: this is most of the memory of a crowd.
fn reserve_with_spare<T>(items: &mut Vec<T>, len: usize) {
    if len > items.capacity() {
        items.reserve_exact((len + len / 4).saturating_sub(items.len()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The row layout from the number of words of each neighbour cell.
    fn layout(words: [u32; NEIGHBOURHOOD_CELLS]) -> RowLayout {
        let mut layout = [0; NEIGHBOURHOOD_CELLS + 1];
        for (nth, words) in words.into_iter().enumerate() {
            layout[nth + 1] = layout[nth] + words;
        }
        layout
    }

    fn check(rows: &ViewRows, model: &[Vec<u64>], [from, to, skip]: [usize; 3]) {
        assert_eq!(rows.len(), model.len());
        for (row, words) in model.iter().enumerate() {
            let set = words.iter().copied().enumerate().filter(|word| word.1 != 0);
            assert!(rows.set_words(row).eq(set));
            assert!((0..words.len()).all(|word| rows.get(row, word) == words[word]));
            let (from, to) = (from.min(words.len()), to.min(words.len()));
            let (some, range) = (&words[from.min(to)..to], from.min(to)..to);
            assert!(rows.range(row, range.clone()).eq(some.iter().copied()));
            assert!(
                rows.range(row, range.clone())
                    .rev()
                    .eq(some.iter().rev().copied())
            );
            let skipped = rows.range(row, range.clone()).step_by(skip + 1);
            assert!(skipped.eq(some.iter().copied().step_by(skip + 1)));
            // From both ends in turn.
            let mut both = rows.range(row, range);
            let mut left = some.iter();
            while let Some(word) = both.next() {
                assert_eq!(Some(&word), left.next());
                assert_eq!(both.next_back(), left.next_back().copied());
            }
            assert_eq!(left.next(), None);
        }
        for (word, place) in [(from, skip * 13), (to, to * 7)] {
            for first in (0..model.len()).step_by(64) {
                let with =
                    |row: &&Vec<u64>| row.get(word).is_some_and(|bits| bits & bit(place) != 0);
                let rows_with = rows.rows_with_bit(first, word, place);
                let expected = (0..).zip(model[first..].iter().take(64));
                let expected = expected.filter(|(_, row)| with(row));
                assert_eq!(
                    rows_with,
                    expected.fold(0, |rows, (nth, _)| rows | 1_u64 << nth)
                );
            }
        }
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn short_and_long_rows_hold_the_same_bits(
            layouts in prop::collection::vec(prop::array::uniform9(0u32..3), 1..4),
            ops in prop::collection::vec((0u8..12, any::<usize>(), any::<usize>(), any::<u64>()), 0..120),
            asked in prop::array::uniform3(0usize..20),
        ) {
            let mut at = layout(layouts[0]);
            let mut rows = ViewRows::with_width(at[NEIGHBOURHOOD_CELLS] as usize);
            let mut model: Vec<Vec<u64>> = Vec::new();
            for (what, row, word, bits) in ops {
                // Few bits, as in real rows.
                let bits = bits & bits.rotate_left(7) & bits.rotate_left(23);
                let words = rows.words();
                if what < 3 || model.is_empty() {
                    rows.push();
                    model.push(vec![0; words]);
                    continue;
                }
                let row = row % model.len();
                match what {
                    // To another row, which is free; the row itself is reused only after it is cleared.
                    3 if word % model.len() != row => {
                        let to = word % model.len();
                        rows.clear(to);
                        rows.relocate(row, to);
                        rows.clear(row);
                        model[to] = std::mem::replace(&mut model[row], vec![0; words]);
                    }
                    3 => {}
                    4 => {
                        rows.truncate(row);
                        model.truncate(row);
                    }
                    5 => {
                        rows.clear(row);
                        model[row].fill(0);
                    }
                    6 => {
                        let new = layout(layouts[word % layouts.len()]);
                        rows.rebuild_rows(&at, &new);
                        for row in &mut model {
                            let mut laid = vec![0; new[NEIGHBOURHOOD_CELLS] as usize];
                            for direction in 0..NEIGHBOURHOOD_CELLS {
                                let (from, to) = (at[direction], new[direction]);
                                let words = (at[direction + 1] - from).min(new[direction + 1] - to);
                                for nth in 0..words {
                                    laid[(to + nth) as usize] = row[(from + nth) as usize];
                                }
                            }
                            *row = laid;
                        }
                        at = new;
                    }
                    _ if words == 0 => {}
                    7 | 8 => {
                        rows.remove(row, word % words, bits);
                        model[row][word % words] &= !bits;
                    }
                    _ => {
                        rows.insert(row, word % words, bits);
                        model[row][word % words] |= bits;
                    }
                }
                prop_assert_eq!(rows.are_long(), rows.words() > LONG_WORDS);
            }
            prop_assert!(rows.is_consistent());
            check(&rows, &model, asked);
        }
    }
}
