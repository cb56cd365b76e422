//! A match for one party out of all waiting parties: for those past the wait bound, for those left over after
//! packing, and for all parties when more wait than a heartbeat can pack.
//!
//! ```text
//! anchor ──▶ grow outwards in skill until a composition fits ──▶ the tightest window that holds one
//!                                                                     │
//!            parties of the match  ◀── longest-waiting first, as long as a composition remains
//!                    │ avoid lists, regions, levels, roles, rematches, the power gap
//!                    └─ not refused ─▶ found;  else ─▶ search of the subsets of the window, nearest first
//! ```
//! A match of the anchor is a composition of parties that includes the anchor and that its limits and the
//! [`Terms`] allow. Invariant: if there is one, one is found, unless the search steps run out or it needs parties beyond
//! the [`CONSIDERED_MIN`] nearest of their size (twice as many as two groups hold, if that is more). If there are no
//! preferences and the gap is within its limit, the match is in a window of the smallest spread. Of each size, the lowest
//! parties in it are considered, [`CONSIDERED_MAX`] times as many as two groups hold: the longest-waiting that can
//! be in a match with those chosen before is chosen, and so on.
//!
//! Cost: all work is counted in search steps: one for a party examined, for a step of the search, or for eight splits of a
//! set. Finding a match takes O(parties in twice the spread found); buckets of 256 parties whose sizes are all counted
//! sufficiently are skipped. The composition is checked only when a relevant count changes.

use std::cell::Cell;

use throng_core::memory::MemoryUse;

use super::anchor::Anchor;
use super::balance::GroupSplit;
use super::subsets::SubsetSearch;
use super::terms::{Limits, Terms};
use crate::queue::compositions::{CompositionTable, Counts, player_count, single_party};
use crate::queue::skill_index::{SkillEntry, SkillPosition};
use crate::ticket::{ROLE_COUNT, add_roles, roles};

/// Parties of a size that are considered in a window, as a multiple of what two groups hold.
pub const CONSIDERED_MAX: u32 = 4;

/// The minimum number of parties of each size that the search of subsets considers: those nearest to the anchor.
pub const CONSIDERED_MIN: u32 = 48;

/// The number of parties to examine before checking whether the whole window can hold a match.
const CANDIDATES_BEFORE_COUNTING: u64 = 64;

/// Finds matches party by party; reuses its buffers and counts its work.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct PartnerSearch {
    chosen: Vec<SkillEntry>,
    nearby: Vec<SkillEntry>,
    lows: Vec<SkillPosition>,
    examined: u64,
    gap_refusals: u64,
}

/// The sizes with fewer parties than `least`, and than `times` as many as two groups hold.
fn missing_sizes(table: &CompositionTable, counts: &Counts, times: u32, least: u32) -> [bool; 5] {
    let total = times * 2 * u32::from(table.group_size());
    std::array::from_fn(|at| counts[at] < (total / (at as u32 + 1)).max(least))
}

impl PartnerSearch {
    /// Search steps since [`reset_examined`](Self::reset_examined).
    #[must_use]
    pub const fn examined(&self) -> u64 {
        self.examined
    }

    /// Resets the count of search steps.
    pub const fn reset_examined(&mut self) {
        self.examined = 0;
    }

    /// Counts a search step.
    pub const fn count_candidate(&mut self) {
        self.examined += 1;
    }

    /// Sets that were refused only because of their gap, since this search was created.
    #[must_use]
    pub const fn gap_refusals(&self) -> u64 {
        self.gap_refusals
    }

    /// The parties of the last match found, sorted by size.
    #[must_use]
    pub fn chosen(&self) -> &[SkillEntry] {
        &self.chosen
    }

    /// Finds a match that includes the party in `slot`, within these limits, and returns the most even split of its
    /// parties, which are [`chosen`](Self::chosen); `None` when there is none or the search steps are used up: then
    /// [`examined`](Self::examined) has risen by `share` or more.
    pub fn find_match(
        &mut self,
        terms: &Terms,
        table: &mut CompositionTable,
        slot: u32,
        limits: Limits,
        share: u64,
    ) -> Option<GroupSplit> {
        let entry = terms.pool.entry(slot)?;
        let anchor = Anchor {
            terms,
            entry,
            position: terms.pool.skill_index().find(&entry)?,
            limits,
            sight_tests_max: self.examined.saturating_add(share),
            gap_refusals: Cell::new(0),
        };
        self.chosen.clear();
        self.examined += 1;
        if !terms
            .pool
            .could_match(terms.ticket(slot)?, terms.rules.roles, table)
        {
            return None;
        }
        let radius = self.smallest_radius(&anchor, table)?;
        let (low, high) = self.tightest_window(&anchor, table, radius)?;
        if !self.choose_parties(&anchor, table, low, high) {
            return None;
        }
        let mut split = anchor.split(table, &mut self.chosen, &mut self.examined);
        if split.is_none() {
            split = self.search_subsets(&anchor, table);
        }
        self.gap_refusals += anchor.gap_refusals.get();
        split
    }

    /// The smallest distance in skill from the anchor within which a composition fits, up to its window.
    fn smallest_radius(&mut self, anchor: &Anchor, table: &mut CompositionTable) -> Option<u32> {
        let order = anchor.terms.pool.skill_index();
        let must = single_party(anchor.entry.size);
        let mut counts = [0; 5];
        let (mut low, mut high) = (order.previous(anchor.position), order.next(anchor.position));
        let distance = |place: Option<SkillPosition>| {
            let entry = order.at(place?);
            Some((anchor.distance(&entry), entry.party(), entry))
        };
        let mut nearby = 0;
        if table.fits(&must, &counts) {
            return Some(0);
        }
        while self.examined < anchor.sight_tests_max {
            let (below, above) = (distance(low), distance(high));
            let is_below = match (&below, &above) {
                (Some(below), Some(above)) => (below.0, below.1) < (above.0, above.1),
                _ => below.is_some(),
            };
            let (nearest, _, entry) = if is_below { below } else { above }?;
            if nearest > anchor.limits.window {
                return None;
            }
            let wanted = missing_sizes(table, &counts, 1, 0);
            if is_below {
                low = low.and_then(|place| order.previous_of_size(place, wanted));
            } else {
                high = high.and_then(|place| order.next_of_size(place, wanted));
            }
            nearby += 1;
            if nearby == CANDIDATES_BEFORE_COUNTING {
                let all = order.counts_within(anchor.entry.skill(), anchor.limits.window);
                let others = std::array::from_fn(|size| all[size] - must[size]);
                if !table.fits(&must, &others) {
                    return None;
                }
            }
            if self.add(anchor, table, &mut counts, &entry) && table.fits(&must, &counts) {
                return Some(nearest);
            }
        }
        None
    }

    /// The range of a window of the smallest spread that holds the anchor and a composition with it; the spread is
    /// at most the anchor's window. What fits within `radius` on both sides fits within twice that spread.
    fn tightest_window(
        &mut self,
        anchor: &Anchor,
        table: &mut CompositionTable,
        radius: u32,
    ) -> Option<(SkillPosition, SkillPosition)> {
        let order = anchor.terms.pool.skill_index();
        let must = single_party(anchor.entry.size);
        let reach = anchor.limits.window.min(radius.saturating_mul(2));
        // Each side is counted separately, so that a side has enough of a size before its buckets are
        // skipped: while the window moves up, they stay enough as long as any skipped ones are in it.
        let (mut below, mut above) = ([0; 5], [0; 5]);
        let mut low = anchor.position;
        self.lows.clear();
        while let Some(lower) = order.previous_of_size(low, missing_sizes(table, &below, 1, 0)) {
            let entry = order.at(lower);
            if anchor.distance(&entry) > reach || self.examined >= anchor.sight_tests_max {
                break;
            }
            self.lows.push(low);
            low = lower;
            self.add(anchor, table, &mut below, &entry);
        }
        let mut high = anchor.position;
        let mut best: Option<(u32, SkillPosition, SkillPosition)> = None;
        while self.examined < anchor.sight_tests_max {
            let lowest = order.at(low);
            let mut fits = table.fits(&must, &sum(&below, &above));
            while !fits && self.examined < anchor.sight_tests_max {
                let Some(higher) = order.next_of_size(high, missing_sizes(table, &above, 1, 0))
                else {
                    break;
                };
                let entry = order.at(higher);
                if entry.skill().abs_diff(lowest.skill()) > reach {
                    break;
                }
                high = higher;
                fits = self.add(anchor, table, &mut above, &entry)
                    && table.fits(&must, &sum(&below, &above));
            }
            let spread = order.at(high).skill().abs_diff(lowest.skill());
            if fits && best.is_none_or(|best| spread < best.0) {
                best = Some((spread, low, high));
            }
            // No window is tighter than the distance to its farther end.
            let Some(next) = self.lows.pop() else { break };
            if best.is_some_and(|best| best.0 == radius) {
                break;
            }
            self.examined += 1;
            if anchor.may_join(&lowest) {
                below[usize::from(lowest.size) - 1] -= 1;
            }
            low = next;
        }
        best.map(|(_, low, high)| (low, high))
    }

    /// Chooses the parties of the match among those from `low` to `high`, longest-waiting first; returns whether it
    /// succeeded before the search steps ran out.
    fn choose_parties(
        &mut self,
        anchor: &Anchor,
        table: &mut CompositionTable,
        low: SkillPosition,
        high: SkillPosition,
    ) -> bool {
        let pool = anchor.terms.pool;
        let order = pool.skill_index();
        let group_size = usize::from(table.group_size());
        let top = order.at(high).skill();
        let mut counts = [0; 5];
        self.nearby.clear();
        let mut place = Some(low);
        while let Some(here) = place {
            let entry = order.at(here);
            if here > high && (entry.skill() != top || self.examined >= anchor.sight_tests_max) {
                break;
            }
            if self.examined >= anchor.sight_tests_max {
                return false;
            }
            self.examined += 1;
            let wanted = missing_sizes(table, &counts, CONSIDERED_MAX, 0);
            let size = usize::from(entry.size) - 1;
            if wanted[size] && here != anchor.position && anchor.may_join(&entry) {
                counts[size] += 1;
                self.nearby.push(entry);
            }
            place = order.next_of_size(here, wanted);
        }
        self.nearby.sort_by_cached_key(|entry| pool.age(entry.slot));
        let size_of = |entry: &SkillEntry| usize::from(entry.size) - 1;
        let mut may = counts;
        let mut must = single_party(anchor.entry.size);
        let mut refused = [false; 5];
        self.chosen.push(anchor.entry);
        for entry in &self.nearby {
            if player_count(&must) == 2 * group_size as u64 {
                break;
            }
            let size = size_of(entry);
            may[size] -= 1;
            if refused[size] {
                continue;
            }
            must[size] += 1;
            if table.fits(&must, &may) {
                self.chosen.push(*entry);
            } else {
                // One more of this size never fits again: the required parties only grow, the optional ones shrink.
                must[size] -= 1;
                refused[size] = true;
            }
        }
        let full = player_count(&must) == 2 * group_size as u64;
        debug_assert!(full, "a window that fits holds a match");
        full
    }

    /// Tries the subsets of the parties in the anchor's window, nearest first, until one is allowed, and stores it in
    /// `chosen`.
    fn search_subsets(
        &mut self,
        anchor: &Anchor,
        table: &mut CompositionTable,
    ) -> Option<GroupSplit> {
        let terms = anchor.terms;
        let order = terms.pool.skill_index();
        self.nearby.clear();
        let mut counts = [0; 5];
        let mut low = order.previous(anchor.position);
        let mut high = order.next(anchor.position);
        while self.examined < anchor.sight_tests_max {
            let below = low.map(|place| anchor.distance(&order.at(place)));
            let above = high.map(|place| anchor.distance(&order.at(place)));
            let wanted = missing_sizes(table, &counts, 2, CONSIDERED_MIN);
            let is_below = match (below, above) {
                (Some(below), Some(above)) => below < above,
                _ => below.is_some(),
            };
            let Some(place) = (if is_below { low } else { high }) else {
                break;
            };
            let entry = order.at(place);
            if anchor.distance(&entry) > anchor.limits.window {
                break;
            }
            if is_below {
                low = order.previous_of_size(place, wanted);
            } else {
                high = order.next_of_size(place, wanted);
            }
            self.examined += 1;
            let size = usize::from(entry.size) - 1;
            if wanted[size] && anchor.may_join(&entry) {
                counts[size] += 1;
                self.nearby.push(entry);
            }
        }
        let plays = |entry: &SkillEntry| terms.ticket(entry.slot).map_or([0; ROLE_COUNT], roles);
        let mut rest = vec![([0; 5], [0; ROLE_COUNT]); self.nearby.len() + 1];
        for (at, entry) in self.nearby.iter().enumerate().rev() {
            let (mut sizes, filled) = rest[at + 1];
            sizes[usize::from(entry.size) - 1] += 1;
            rest[at] = (sizes, add_roles(filled, &plays(entry)));
        }
        let mut search = SubsetSearch {
            anchor,
            table,
            candidates: &self.nearby,
            remaining: &rest,
            chosen: vec![anchor.entry],
            counts: single_party(anchor.entry.size),
            filled: add_roles([0; ROLE_COUNT], &plays(&anchor.entry)),
            examined: self.examined,
        };
        let found = search.search_from(0, anchor.entry.skill(), anchor.entry.skill());
        self.examined = search.examined;
        self.chosen = search.chosen;
        found
    }

    /// Adds a party to the counts; returns whether that can change what fits.
    fn add(
        &mut self,
        anchor: &Anchor,
        table: &CompositionTable,
        counts: &mut Counts,
        entry: &SkillEntry,
    ) -> bool {
        self.examined += 1;
        if !anchor.may_join(entry) {
            return false;
        }
        let count = &mut counts[usize::from(entry.size) - 1];
        *count += 1;
        *count <= 2 * u32::from(table.group_size()) / u32::from(entry.size)
    }
}

/// The sum of both counts.
fn sum(one: &Counts, other: &Counts) -> Counts {
    std::array::from_fn(|at| one[at] + other[at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::{GroupModeSettings, GroupModeTickSettings};
    use crate::queue::pool::{Pool, SkillMeasure};
    use crate::rematch::Rematches;
    use crate::tests::{mode, ticket};
    use crate::ticket::{Ticket, TicketPreferences};
    use proptest::prelude::*;

    const OPEN_TICK: u64 = 1_000_000;

    fn rules(group_size: u8, window: u32) -> GroupModeTickSettings {
        let settings = GroupModeSettings {
            skill_window_start: window,
            skill_window_widen_per_s: 0,
            power_gap_widen_per_s: 0,
            limits_off_after_s: 1e9,
            ..mode(group_size)
        };
        settings.tick_settings(20.0).unwrap()
    }

    /// A pool of (size, skill), oldest first; ids count from 0.
    fn pool_of(parties: &[(u8, i32)]) -> Pool {
        let mut pool = Pool::new(SkillMeasure::Skill);
        for (party, &(size, skill)) in (0..).zip(parties) {
            pool.insert(ticket(party, size, skill, u64::from(party)));
        }
        pool
    }

    /// The ids of the match of the party that arrived first.
    fn chosen(pool: &Pool, rules: &GroupModeTickSettings, sight_tests_max: u64) -> Vec<u32> {
        let rematches = Rematches::default();
        let terms = Terms::new(pool, rules, &rematches, OPEN_TICK);
        let mut seeker = PartnerSearch::default();
        let mut table = CompositionTable::new(rules.group_size);
        let slot = pool.queue().first().unwrap();
        let found = seeker.find_match(
            &terms,
            &mut table,
            slot,
            terms.limits(slot),
            sight_tests_max,
        );
        let chosen = seeker.chosen().iter().map(SkillEntry::party);
        let mut ids: Vec<u32> = chosen.filter(|_| found.is_some()).collect();
        ids.sort_unstable();
        ids
    }

    /// The smallest spread of a match that includes party 0, by trying every subset.
    fn smallest_spread(parties: &[(u8, i32)], window: u32, group_size: u8) -> Option<u32> {
        let mut table = CompositionTable::new(group_size);
        let mut best = None;
        for mask in (1u32..1 << parties.len()).step_by(2) {
            let members = || {
                (0..parties.len())
                    .filter(|at| mask >> at & 1 == 1)
                    .map(|at| parties[at])
            };
            let mut counts = [0; 5];
            members().for_each(|party| counts[usize::from(party.0) - 1] += 1);
            let (low, high) = (
                members().map(|p| p.1).min().unwrap(),
                members().map(|p| p.1).max().unwrap(),
            );
            let spread = high.abs_diff(low);
            if table.fits(&counts, &[0; 5])
                && spread <= window
                && best.is_none_or(|best| spread < best)
            {
                best = Some(spread);
            }
        }
        best
    }

    #[test]
    fn a_party_of_five_finds_single_players() {
        let mut parties = vec![(5, 100)];
        parties.extend((0..9).map(|at| (1, at * 1000)));
        let found = chosen(&pool_of(&parties), &rules(5, u32::MAX), u64::MAX);
        assert_eq!(found, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn longest_waiting_parties_win_ties() {
        let parties = [2, 2, 4, 1, 2, 3, 1, 1].map(|size| (size, 0));
        // 2 + 2 + 1 against 4 + 1: with the 2 of id 4 no split into fives would remain.
        let found = chosen(&pool_of(&parties), &rules(5, u32::MAX), u64::MAX);
        assert_eq!(found, [0, 1, 2, 3, 6]);
    }

    #[test]
    fn zero_candidate_limit_finds_nothing() {
        let pool = pool_of(&[(1, 0), (1, 0)]);
        assert!(chosen(&pool, &rules(1, u32::MAX), 0).is_empty());
    }

    #[test]
    fn window_that_skipped_buckets_moves_back_up() {
        // A party of four far below the longest-waiting one, thousands of others between them and two single players.
        let mut parties = vec![(4, 0)];
        parties.extend((1..=6_000).map(|at| (4, -at)));
        parties.extend([(1, -5_990), (1, 6_000)]);
        let found = chosen(&pool_of(&parties), &rules(5, u32::MAX), u64::MAX);
        assert_eq!(found.len(), 4);
        assert!(found.contains(&0) && found.contains(&6_001) && found.contains(&6_002));
    }

    #[test]
    fn rare_party_sizes_are_found_among_many_others() {
        // The gap of the nearest pair of fours is above the limit; the farther one comes after a hundred twos.
        let mut pool = Pool::new(SkillMeasure::Skill);
        let mut parties = vec![(4, 0, 4_000), (4, 1, 9_000), (1, 0, 10), (1, 0, 10)];
        parties.extend((0..100).map(|at| (2, at, 20)));
        parties.push((4, 200, 4_000));
        for (party, (size, skill, power)) in (0..).zip(parties) {
            pool.insert(Ticket {
                power,
                ..ticket(party, size, skill, u64::from(party))
            });
        }
        let mut rules = rules(5, u32::MAX);
        rules.power_gap.start = 500;
        let found = chosen(&pool, &rules, u64::MAX);
        assert!(
            found.contains(&0) && !found.contains(&1) && !found.is_empty(),
            "{found:?}"
        );
        rules.power_gap.start = 0;
        assert_eq!(chosen(&pool, &rules, u64::MAX), [0, 2, 3, 104]);
    }

    #[test]
    fn avoided_party_is_replaced_by_another() {
        let mut pool = Pool::new(SkillMeasure::Skill);
        for party in 0..5 {
            // 0 and 1 do not avoid each other; 1 avoids 2.
            let avoid = (party == 1).then(|| {
                Box::new(TicketPreferences {
                    avoid: [20u64].into_iter().map(Into::into).collect(),
                    ..TicketPreferences::default()
                })
            });
            let party = Ticket {
                preferences: avoid,
                ..ticket(party, 1, party as i32, u64::from(party))
            };
            pool.insert(party);
        }
        let rules = rules(2, u32::MAX);
        assert_eq!(chosen(&pool, &rules, u64::MAX), [0, 1, 3, 4]);
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn match_is_found_iff_one_exists_with_the_tightest_window(
            group_size in 1u8..=6,
            window in 0u32..30,
            parties in prop::collection::vec((1u8..=5, -12i32..12), 1..11),
        ) {
            let parties: Vec<_> = parties.into_iter().filter(|party| party.0 <= group_size).collect();
            prop_assume!(!parties.is_empty());
            let found = chosen(&pool_of(&parties), &rules(group_size, window), u64::MAX);
            let skills = || found.iter().map(|&id| parties[id as usize].1);
            let spread = skills().max().zip(skills().min()).map(|(high, low)| high.abs_diff(low));
            let smallest = smallest_spread(&parties, window, group_size);
            prop_assert_eq!(spread.is_some(), smallest.is_some());
            if let (Some(found), Some(smallest)) = (spread, smallest) {
                prop_assert!(found <= smallest, "{} instead of {}", found, smallest);
            }
            let players: u32 = found.iter().map(|&id| u32::from(parties[id as usize].0)).sum();
            prop_assert!(found.is_empty() || players == 2 * u32::from(group_size));
        }
    }
}
