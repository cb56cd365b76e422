//! The search of the subsets of a window for an allowed match.

use super::anchor::Anchor;
use super::balance::GroupSplit;
use crate::queue::compositions::{CompositionTable, Counts, player_count};
use crate::queue::skill_index::SkillEntry;
use crate::ticket::{ROLE_COUNT, add_roles, roles};

/// The search of subsets, depth first.
pub(super) struct SubsetSearch<'a> {
    pub anchor: &'a Anchor<'a>,
    pub table: &'a mut CompositionTable,
    pub candidates: &'a [SkillEntry],
    /// The counts of the candidates from each index on, and how many of their players play each role.
    pub remaining: &'a [(Counts, [u32; ROLE_COUNT])],
    pub chosen: Vec<SkillEntry>,
    pub counts: Counts,
    pub filled: [u32; ROLE_COUNT],
    pub examined: u64,
}

impl SubsetSearch<'_> {
    /// Decides on the candidates from `at` on; `chosen` holds the match when one is found.
    pub fn search_from(&mut self, at: usize, low: i32, high: i32) -> Option<GroupSplit> {
        let (terms, limits) = (self.anchor.terms, &self.anchor.limits);
        self.examined += 1 + self.chosen.len() as u64 / 8;
        let (sizes, filled) = &self.remaining[at];
        let filled = std::array::from_fn(|role| self.filled[role].saturating_add(filled[role]));
        if self.examined > self.anchor.sight_tests_max
            || !terms.can_fill_roles(&filled)
            || !self.table.fits(&self.counts, sizes)
        {
            return None;
        }
        if player_count(&self.counts) == 2 * u64::from(self.table.group_size()) {
            let mut set = self.chosen.clone();
            let split = self.anchor.split(self.table, &mut set, &mut self.examined);
            if split.is_some() {
                self.chosen = set;
            }
            return split;
        }
        let entry = *self.candidates.get(at)?;
        let (lower, higher) = (low.min(entry.skill()), high.max(entry.skill()));
        let agrees = |other: &SkillEntry| terms.are_compatible(other, &entry, limits.level_band);
        if higher.abs_diff(lower) <= limits.window && self.chosen.iter().all(agrees) {
            let size = usize::from(entry.size) - 1;
            let before = self.filled;
            if terms.rules.roles != [0; ROLE_COUNT] {
                let plays = terms.ticket(entry.slot).map_or([0; ROLE_COUNT], roles);
                self.filled = add_roles(before, &plays);
            }
            self.counts[size] += 1;
            self.chosen.push(entry);
            let found = self.search_from(at + 1, lower, higher);
            if found.is_some() {
                return found;
            }
            self.chosen.pop();
            self.counts[size] -= 1;
            self.filled = before;
        }
        self.search_from(at + 1, low, high)
    }
}
