//! The party for which a match is sought, and what it asks of a match.

use std::cell::Cell;

use super::balance::GroupSplit;
use super::terms::{Limits, Terms};
use crate::mode::OPEN;
use crate::queue::by_skill::{SkillEntry, SkillPlace};
use crate::queue::compositions::CompositionTable;

/// The anchor of a search and what it asks of a match.
pub(super) struct Anchor<'a> {
    pub terms: &'a Terms<'a>,
    pub entry: SkillEntry,
    pub place: SkillPlace,
    pub limits: Limits,
    /// The search ends at this many looks.
    pub sight_tests_max: u64,
    /// Sets refused for their gap alone.
    pub uneven: Cell<u64>,
}

impl Anchor<'_> {
    pub fn distance(&self, entry: &SkillEntry) -> u32 {
        entry.skill().abs_diff(self.entry.skill())
    }

    pub fn may_join(&self, entry: &SkillEntry) -> bool {
        self.terms
            .together(&self.entry, entry, self.limits.level_band)
    }

    /// The most even split of a set, if the set and the gap are allowed. Orders the set by size.
    pub fn split(
        &self,
        table: &mut CompositionTable,
        set: &mut [SkillEntry],
        looks: &mut u64,
    ) -> Option<GroupSplit> {
        let terms = self.terms;
        *looks += set.len() as u64;
        if !terms.all_together(set, self.limits.level_band) {
            return None;
        }
        set.sort_unstable_by_key(|entry| (entry.size, terms.pool.age(entry.slot)));
        let limit = self.limits.power_gap;
        let split = terms.split(table, set, looks)?;
        if limit != OPEN && split.gap() > u64::from(limit) {
            self.uneven.set(self.uneven.get() + 1);
            return None;
        }
        Some(split)
    }
}
