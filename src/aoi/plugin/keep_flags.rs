//! Which objects of a scene stay known to clients out of view.

use fixedbitset::FixedBitSet;

use crate::memory::MemoryUse;

/// The objects of a scene with [`Viewable::keep`](super::Viewable::keep), by id, and the objects whose right to be kept, or to keep others,
/// may have changed in this tick. Costs nothing while no object has it.
#[derive(Debug, Default, MemoryUse)]
pub(super) struct KeepFlags {
    marked: FixedBitSet,
    count: usize,
    /// Objects that lost the mark since the last View.
    unmarked: Vec<u32>,
    /// All changes before the last View.
    changed: FixedBitSet,
    has_changes: bool,
}

impl KeepFlags {
    /// Whether an object is marked.
    pub fn contains(&self, id: u32) -> bool {
        self.marked.contains(id as usize)
    }

    /// Marks an object, or removes its mark.
    pub fn set(&mut self, id: u32, keep: bool) {
        if self.contains(id) == keep {
            return;
        }
        if keep {
            self.marked.grow_and_insert(id as usize);
            self.count += 1;
        } else {
            self.marked.set(id as usize, false);
            self.count -= 1;
            self.unmarked.push(id);
        }
    }

    /// Whether anything is marked, or was until now.
    pub fn is_used(&self) -> bool {
        self.count > 0 || self.has_changes || !self.unmarked.is_empty()
    }

    /// Replaces the changes: objects that lost their mark, and those whose traits changed.
    pub fn set_changes(&mut self, traits_changed: impl Iterator<Item = u32>) {
        self.changed.clear();
        self.has_changes = false;
        for id in self.unmarked.drain(..).chain(traits_changed) {
            self.changed.grow_and_insert(id as usize);
            self.has_changes = true;
        }
    }

    /// Whether there were any changes before the last View.
    pub const fn has_changes(&self) -> bool {
        self.has_changes
    }

    /// Whether something about an object changed before the last View.
    pub fn is_changed(&self, id: u32) -> bool {
        self.changed.contains(id as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_last_until_the_next_view() {
        let mut flags = KeepFlags::default();
        flags.set(3, false);
        assert!(!flags.is_used());
        flags.set(3, true);
        flags.set_changes([9].into_iter());
        assert!(flags.contains(3) && flags.is_changed(9) && !flags.is_changed(3));
        flags.set(3, false);
        assert!(flags.is_used(), "the loss is not handed over yet");
        flags.set_changes(std::iter::empty());
        assert!(!flags.contains(3) && flags.is_changed(3) && !flags.is_changed(9));
        flags.set_changes(std::iter::empty());
        assert!(!flags.has_changes() && !flags.is_used());
    }
}
