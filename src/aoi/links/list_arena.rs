//! Many short lists in one allocation.
//!
//! ```text
//! entries  [ a a a a · · │ b b b b b b · · │ (free) │ c c · · │ … ]
//! ListRange { start, len, capacity } ─▲
//! ```
//! A list that is full moves to a larger block; the block it leaves waits for another list of that size. When
//! there is no more room and more than a fifth of it holds no entry, all lists are moved together, each to a
//! block no larger than it needs.
//!
//! Invariant: blocks do not overlap; what lies beyond a list's length is of no meaning.
//! Cost: push O(1) amortized, swap-remove O(1); 12 bytes a list; of long lists up to two fifths of slack beside
//! the entries. No block holds less than eight.

/// Where a list lies.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListRange {
    start: u32,
    len: u32,
    capacity: u32,
}

impl ListRange {
    /// How many entries the list has.
    #[must_use]
    #[inline]
    pub const fn len(self) -> usize {
        self.len as usize
    }

    /// Whether the list has no entries.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// The entries of many lists.
#[derive(Clone, Debug, Default)]
pub struct ListArena<T> {
    entries: Vec<T>,
    /// Starts of blocks without a list, by size class.
    free: Vec<Vec<u32>>,
    /// How many entries those have.
    free_len: usize,
    /// How many entries all lists have.
    used: usize,
}

/// The size classes: every eighth up to 64, then four to a doubling.
const fn capacity_of(class: usize) -> usize {
    if class < 8 {
        8 * (class + 1)
    } else {
        let (doubling, quarter) = ((class - 8) / 4, (class - 8) % 4);
        (64 << doubling) / 4 * (5 + quarter)
    }
}

/// The smallest class that holds this many.
fn class_of(len: usize) -> usize {
    if len <= 64 {
        return len.div_ceil(8).max(1) - 1;
    }
    let doubling = (len - 1).ilog2() as usize - 6;
    let quarter = (len - 1 - (64 << doubling)) / ((64 << doubling) / 4);
    8 + 4 * doubling + quarter
}

impl<T: Copy + Default> ListArena<T> {
    /// The entries of a list.
    #[must_use]
    #[inline]
    pub fn list(&self, run: ListRange) -> &[T] {
        &self.entries[run.start as usize..][..run.len as usize]
    }

    /// The entries of a list.
    #[inline]
    pub fn list_mut(&mut self, run: ListRange) -> &mut [T] {
        &mut self.entries[run.start as usize..][..run.len as usize]
    }

    /// Whether a push needs room first; see [`reserve`](Self::reserve).
    #[must_use]
    #[inline]
    pub const fn is_full(run: ListRange) -> bool {
        run.len == run.capacity
    }

    /// Adds an entry at the end of a list that is not full; returns its place.
    #[inline]
    pub fn push(&mut self, run: &mut ListRange, entry: T) -> usize {
        debug_assert!(run.len < run.capacity);
        let place = run.len as usize;
        self.entries[run.start as usize + place] = entry;
        run.len += 1;
        self.used += 1;
        place
    }

    /// Removes the entry at a place; the last one moves there.
    #[inline]
    pub fn swap_remove(&mut self, run: &mut ListRange, place: usize) -> T {
        let list = self.list_mut(*run);
        let removed = list[place];
        list[place] = list[list.len() - 1];
        run.len -= 1;
        self.used -= 1;
        removed
    }

    /// Moves a list to a larger block. False if there is no room: then the lists must be moved together.
    #[must_use]
    pub fn reserve(&mut self, run: &mut ListRange) -> bool {
        let class = class_of(run.capacity as usize + 1);
        let capacity = capacity_of(class);
        let start = if let Some(start) = self.free.get_mut(class).and_then(Vec::pop) {
            self.free_len -= capacity;
            start as usize
        } else {
            let start = self.entries.len();
            let is_beyond = start + capacity > self.entries.capacity();
            if is_beyond && self.used + self.used / 4 < self.entries.len() {
                return false;
            }
            if is_beyond {
                // An eighth more rather than twice as much: this is most of the memory of a large scene.
                self.entries.reserve_exact((start / 8).max(capacity));
            }
            self.entries.resize(start + capacity, T::default());
            start
        };
        let from = run.start as usize;
        self.entries
            .copy_within(from..from + run.len as usize, start);
        if run.capacity > 0 {
            let class = class_of(run.capacity as usize);
            if self.free.len() <= class {
                self.free.resize_with(class + 1, Vec::new);
            }
            self.free[class].push(run.start);
            self.free_len += run.capacity as usize;
        }
        (run.start, run.capacity) = (start as u32, capacity as u32);
        true
    }

    /// Moves all lists together, in their order, to blocks of the sizes they need for one entry more. Those that
    /// had no block get none, but there is room for one.
    pub fn compact<'a>(&mut self, runs: impl Iterator<Item = &'a mut ListRange>) {
        let runs: Vec<_> = runs.filter(|run| run.capacity > 0).collect();
        let sizes = runs.iter().map(|run| capacity_of(class_of(run.len() + 1)));
        let total: usize = sizes.sum();
        let mut entries = Vec::with_capacity(total + total / 4 + 64);
        for run in runs {
            let list = &self.entries[run.start as usize..][..run.len as usize];
            run.start = entries.len() as u32;
            entries.extend_from_slice(list);
            run.capacity = capacity_of(class_of(run.len() + 1)) as u32;
            entries.resize((run.start + run.capacity) as usize, T::default());
        }
        self.entries = entries;
        self.free.iter_mut().for_each(Vec::clear);
        self.free_len = 0;
    }

    /// The bytes held, slack included.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        let free: usize = self.free.iter().map(Vec::capacity).sum();
        self.entries.capacity() * size_of::<T>() + free * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_length_has_the_smallest_class_that_holds_it() {
        for len in 1..5_000 {
            let class = class_of(len);
            assert!(capacity_of(class) >= len, "{len}");
            assert!(class == 0 || capacity_of(class - 1) < len, "{len}");
        }
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn lists_keep_apart(ops in prop::collection::vec((0usize..5, 0usize..7, any::<u8>()), 0..900)) {
            let mut arena = ListArena::<u8>::default();
            let mut runs = [ListRange::default(); 5];
            let mut model: [Vec<u8>; 5] = Default::default();
            for (list, what, entry) in ops {
                if what == 0 && !model[list].is_empty() {
                    let place = usize::from(entry) % model[list].len();
                    let removed = arena.swap_remove(&mut runs[list], place);
                    prop_assert_eq!(removed, model[list].swap_remove(place));
                } else if what == 1 && entry < 9 {
                    arena.compact(runs.iter_mut());
                } else {
                    if ListArena::<u8>::is_full(runs[list]) && !arena.reserve(&mut runs[list]) {
                        arena.compact(runs.iter_mut());
                        if ListArena::<u8>::is_full(runs[list]) {
                            prop_assert!(arena.reserve(&mut runs[list]));
                        }
                    }
                    prop_assert_eq!(arena.push(&mut runs[list], entry), model[list].len());
                    model[list].push(entry);
                }
                for (run, model) in runs.iter().zip(&model) {
                    prop_assert_eq!(arena.list(*run), &model[..]);
                }
            }
        }
    }
}
