//! The party for which a match is searched, and what it requires of a match.

use std::cell::Cell;

use super::balance::GroupSplit;
use super::terms::{Limits, Terms};
use crate::mode::UNLIMITED;
use crate::queue::compositions::CompositionTable;
use crate::queue::skill_index::{SkillEntry, SkillPosition};

/// The anchor of a search and what it requires of a match.
pub(super) struct Anchor<'a> {
    pub terms: &'a Terms<'a>,
    pub entry: SkillEntry,
    pub position: SkillPosition,
    pub limits: Limits,
    /// The search ends at this many search steps.
    pub sight_tests_max: u64,
    /// Sets refused only because of their gap.
    pub gap_refusals: Cell<u64>,
}

impl Anchor<'_> {
    pub fn distance(&self, entry: &SkillEntry) -> u32 {
        entry.skill().abs_diff(self.entry.skill())
    }

    pub fn may_join(&self, entry: &SkillEntry) -> bool {
        self.terms
            .are_compatible(&self.entry, entry, self.limits.level_band)
    }

    /// The most even split of a set, if the set and the gap are allowed. Sorts the set by size.
    pub fn split(
        &self,
        table: &mut CompositionTable,
        set: &mut [SkillEntry],
        looks: &mut u64,
    ) -> Option<GroupSplit> {
        let terms = self.terms;
        *looks += set.len() as u64;
        if !terms.all_compatible(set, self.limits.level_band) {
            return None;
        }
        set.sort_unstable_by_key(|entry| (entry.size, terms.pool.age(entry.slot)));
        let limit = self.limits.power_gap;
        let split = terms.split(table, set, looks)?;
        if limit != UNLIMITED && split.gap() > u64::from(limit) {
            self.gap_refusals.set(self.gap_refusals.get() + 1);
            return None;
        }
        Some(split)
    }
}
