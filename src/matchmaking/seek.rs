//! A match for one party out of all that wait: for those past the wait bound, for those left over after
//! packing, and for all when more wait than a heartbeat can pack.
//!
//! ```text
//! anchor ──▶ grow outwards in skill until a composition fits ──▶ the tightest window that holds one
//!                                                                     │
//!            parties of the match  ◀── longest-waiting first, as long as a composition remains
//!                    │ avoid lists, regions, levels, roles, rematches
//!                    └─ none refuses it ─▶ found;  else ─▶ search of all subsets of the window, within a bound
//! ```
//! A match of the anchor is a composition of parties, the anchor among them, that its limits and the
//! [`Terms`] allow. Invariant: if there is one, one is found, unless the looks run out, the search needs more
//! than [`STEPS_MAX`] steps, or it is among more than [`SEARCHED_MAX`] parties. Where nobody has wishes, it is
//! in a window of the smallest spread; within it the match is the lexicographically oldest: the second
//! longest-waiting party that can be in a match with the first is in it, and so on.
//!
//! Cost: O(parties in twice the spread found), where buckets of 256 parties, all of sizes of which there are
//! enough, count as one; a composition is asked for only when a count changes that matters.

use super::balance::Split;
use super::by_skill::{Entry, Place};
use super::compositions::{CompositionTable, Counts, players};
use super::terms::{Limits, Terms};

/// Parties of a size that are considered in a window, in the numbers that two groups hold.
const CHOICE_MAX: u32 = 4;

/// Parties that the search of all subsets considers: those nearest to the anchor.
pub const SEARCHED_MAX: usize = 48;

/// Steps of the search of all subsets.
pub const STEPS_MAX: u32 = 20_000;

/// Parties that are looked at before it is asked whether the whole window can hold a match.
const LOOKS_BEFORE_COUNTING: u64 = 64;

/// Finds matches party by party; keeps its buffers and counts its work.
#[derive(Clone, Debug, Default)]
pub struct Seeker {
    chosen: Vec<Entry>,
    nearby: Vec<Entry>,
    looks: u64,
}

/// The sizes of which fewer are counted than `times` as many as two groups hold.
fn wanted(table: &CompositionTable, counts: &Counts, times: u32) -> [bool; 5] {
    let total = times * 2 * u32::from(table.group_size());
    std::array::from_fn(|at| counts[at] < total / (at as u32 + 1))
}

/// The counts of one party.
pub(super) fn only(size: u8) -> Counts {
    let mut counts = [0; 5];
    counts[usize::from(size) - 1] = 1;
    counts
}

/// The anchor of a search and what it asks of a match.
struct Anchor<'a> {
    terms: &'a Terms<'a>,
    entry: Entry,
    place: Place,
    limits: Limits,
    looks_max: u64,
}

impl Anchor<'_> {
    fn distance(&self, entry: &Entry) -> u32 {
        entry.skill().abs_diff(self.entry.skill())
    }

    fn may_join(&self, entry: &Entry) -> bool {
        self.terms
            .together(&self.entry, entry, self.limits.level_band)
    }
}

impl Seeker {
    /// Parties looked at since [`reset_looks`](Self::reset_looks).
    #[must_use]
    pub const fn looks(&self) -> u64 {
        self.looks
    }

    /// Starts counting looks anew.
    pub const fn reset_looks(&mut self) {
        self.looks = 0;
    }

    /// Finds a match that holds the party in `slot`, within its limits but for the power gap. Returns its
    /// parties, sorted by size, and their most even split; `None` when there is none or `looks_max` is reached.
    pub fn seek(
        &mut self,
        terms: &Terms,
        table: &mut CompositionTable,
        slot: u32,
        looks_max: u64,
    ) -> Option<(&[Entry], Split)> {
        let entry = terms.pool.entry(slot)?;
        let anchor = Anchor {
            terms,
            entry,
            place: terms.pool.by_skill().find(&entry)?,
            limits: terms.limits(slot),
            looks_max,
        };
        self.chosen.clear();
        self.looks += 1;
        let radius = self.grow(&anchor, table)?;
        let (low, high) = self.tightest(&anchor, table, radius)?;
        self.choose(&anchor, table, low, high);
        let sorted = |chosen: &mut Vec<Entry>| {
            chosen.sort_unstable_by_key(|entry| (entry.size, terms.pool.age(entry.slot)));
        };
        sorted(&mut self.chosen);
        let level_band = anchor.limits.level_band;
        let mut split = None;
        if terms.all_together(&self.chosen, level_band) {
            split = terms.split(table, &self.chosen);
        }
        if split.is_none() {
            split = self.search(&anchor, table);
            sorted(&mut self.chosen);
            split = split.and_then(|_| terms.split(table, &self.chosen));
        }
        split.map(|split| (self.chosen.as_slice(), split))
    }

    /// The smallest distance in skill from the anchor within which a composition fits, up to its window.
    fn grow(&mut self, anchor: &Anchor, table: &mut CompositionTable) -> Option<u32> {
        let order = anchor.terms.pool.by_skill();
        let must = only(anchor.entry.size);
        let mut counts = [0; 5];
        let (mut low, mut high) = (order.previous(anchor.place), order.next(anchor.place));
        let distance = |place: Option<Place>| {
            let entry = order.at(place?);
            Some((anchor.distance(&entry), entry.party(), entry))
        };
        let mut nearby = 0;
        if table.fits(&must, &counts) {
            return Some(0);
        }
        while self.looks < anchor.looks_max {
            let (below, above) = (distance(low), distance(high));
            let is_below = match (&below, &above) {
                (Some(below), Some(above)) => (below.0, below.1) < (above.0, above.1),
                _ => below.is_some(),
            };
            let (nearest, _, entry) = if is_below { below } else { above }?;
            if nearest > anchor.limits.window {
                return None;
            }
            let wanted = wanted(table, &counts, 1);
            if is_below {
                low = low.and_then(|place| order.previous_wanted(place, wanted));
            } else {
                high = high.and_then(|place| order.next_wanted(place, wanted));
            }
            nearby += 1;
            if nearby == LOOKS_BEFORE_COUNTING {
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

    /// The places of a window of the smallest spread that holds the anchor and a composition with it, the spread
    /// at most the anchor's window. What fits within `radius` on both sides fits within twice that spread.
    fn tightest(
        &mut self,
        anchor: &Anchor,
        table: &mut CompositionTable,
        radius: u32,
    ) -> Option<(Place, Place)> {
        let order = anchor.terms.pool.by_skill();
        let must = only(anchor.entry.size);
        let reach = anchor.limits.window.min(radius.saturating_mul(2));
        let mut counts = [0; 5];
        let mut low = anchor.place;
        while let Some(below) = order.previous_wanted(low, wanted(table, &counts, 1)) {
            if anchor.distance(&order.at(below)) > reach {
                break;
            }
            low = below;
            self.add(anchor, table, &mut counts, &order.at(low));
        }
        let mut high = anchor.place;
        let mut best: Option<(u32, Place, Place)> = None;
        while self.looks < anchor.looks_max {
            let lowest = order.at(low);
            let mut fits = table.fits(&must, &counts);
            while !fits {
                let wanted = wanted(table, &counts, 1);
                let Some(above) = order.next_wanted(high, wanted) else {
                    break;
                };
                let entry = order.at(above);
                if entry.skill().abs_diff(lowest.skill()) > reach {
                    break;
                }
                high = above;
                fits = self.add(anchor, table, &mut counts, &entry) && table.fits(&must, &counts);
            }
            let spread = order.at(high).skill().abs_diff(lowest.skill());
            if fits && best.is_none_or(|best| spread < best.0) {
                best = Some((spread, low, high));
            }
            // No window is tighter than the distance to its farther end.
            if low == anchor.place || best.is_some_and(|best| best.0 == radius) {
                break;
            }
            if anchor.may_join(&lowest) {
                counts[usize::from(lowest.size) - 1] -= 1;
            }
            let Some(above) = order.next(low) else { break };
            low = above;
        }
        best.map(|(_, low, high)| (low, high))
    }

    /// Chooses the parties of the match among those from `low` to `high`, longest-waiting first.
    fn choose(&mut self, anchor: &Anchor, table: &mut CompositionTable, low: Place, high: Place) {
        let pool = anchor.terms.pool;
        let order = pool.by_skill();
        let group_size = usize::from(table.group_size());
        let top = order.at(high).skill();
        let mut counts = [0; 5];
        self.nearby.clear();
        let mut place = Some(low);
        while let Some(here) = place {
            let entry = order.at(here);
            if here > high && entry.skill() != top {
                break;
            }
            let wanted = wanted(table, &counts, CHOICE_MAX);
            let size = usize::from(entry.size) - 1;
            if wanted[size] && here != anchor.place && anchor.may_join(&entry) {
                counts[size] += 1;
                self.nearby.push(entry);
            }
            place = order.next_wanted(here, wanted);
        }
        self.nearby.sort_by_cached_key(|entry| pool.age(entry.slot));
        let size_of = |entry: &Entry| usize::from(entry.size) - 1;
        let mut may = counts;
        let mut must = only(anchor.entry.size);
        let mut refused = [false; 5];
        self.chosen.push(anchor.entry);
        for entry in &self.nearby {
            if players(&must) == 2 * group_size as u64 {
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
                // One more of this size never fits again: what must be there only grows, the rest shrinks.
                must[size] -= 1;
                refused[size] = true;
            }
        }
        debug_assert_eq!(
            players(&must),
            2 * group_size as u64,
            "a window that fits holds a match"
        );
    }

    /// Tries the subsets of the parties in the anchor's window, nearest first, until the terms allow one; leaves
    /// it in `chosen`.
    fn search(&mut self, anchor: &Anchor, table: &mut CompositionTable) -> Option<Split> {
        let order = anchor.terms.pool.by_skill();
        self.nearby.clear();
        let mut low = order.previous(anchor.place);
        let mut high = order.next(anchor.place);
        while self.nearby.len() < SEARCHED_MAX && self.looks < anchor.looks_max {
            let below = low.map(|place| anchor.distance(&order.at(place)));
            let above = high.map(|place| anchor.distance(&order.at(place)));
            let side = match (below, above) {
                (None, None) => break,
                (Some(below), Some(above)) if below < above => &mut low,
                (Some(_), None) => &mut low,
                _ => &mut high,
            };
            let Some(place) = *side else { break };
            let entry = order.at(place);
            if anchor.distance(&entry) > anchor.limits.window {
                break;
            }
            *side = if place < anchor.place {
                order.previous(place)
            } else {
                order.next(place)
            };
            self.looks += 1;
            if anchor.may_join(&entry) {
                self.nearby.push(entry);
            }
        }
        let mut rest = [[0; 5]; SEARCHED_MAX + 1];
        for (at, entry) in self.nearby.iter().enumerate().rev() {
            rest[at] = rest[at + 1];
            rest[at][usize::from(entry.size) - 1] += 1;
        }
        let mut search = Search {
            anchor,
            table,
            candidates: &self.nearby,
            rest: &rest,
            chosen: vec![anchor.entry],
            counts: only(anchor.entry.size),
            steps: 0,
        };
        let found = search.from(0, anchor.entry.skill(), anchor.entry.skill());
        self.looks += u64::from(search.steps);
        self.chosen.clone_from(&search.chosen);
        found
    }

    /// Counts a party in; whether that can change what fits.
    fn add(
        &mut self,
        anchor: &Anchor,
        table: &CompositionTable,
        counts: &mut Counts,
        entry: &Entry,
    ) -> bool {
        self.looks += 1;
        if !anchor.may_join(entry) {
            return false;
        }
        let count = &mut counts[usize::from(entry.size) - 1];
        *count += 1;
        *count <= 2 * u32::from(table.group_size()) / u32::from(entry.size)
    }
}

/// The search of all subsets, depth first.
struct Search<'a> {
    anchor: &'a Anchor<'a>,
    table: &'a mut CompositionTable,
    candidates: &'a [Entry],
    /// The counts of the candidates from each place on.
    rest: &'a [Counts],
    chosen: Vec<Entry>,
    counts: Counts,
    steps: u32,
}

impl Search<'_> {
    /// Decides on the candidates from `at` on; `chosen` holds the match when one is found.
    fn from(&mut self, at: usize, low: i32, high: i32) -> Option<Split> {
        self.steps += 1;
        if self.steps > STEPS_MAX || !self.table.fits(&self.counts, &self.rest[at]) {
            return None;
        }
        let (terms, limits) = (self.anchor.terms, &self.anchor.limits);
        if players(&self.counts) == 2 * u64::from(self.table.group_size()) {
            if !terms.all_together(&self.chosen, limits.level_band) {
                return None;
            }
            let mut by_size = self.chosen.clone();
            by_size.sort_unstable_by_key(|entry| (entry.size, terms.pool.age(entry.slot)));
            return terms.split(self.table, &by_size);
        }
        let entry = *self.candidates.get(at)?;
        let (lower, higher) = (low.min(entry.skill()), high.max(entry.skill()));
        let agrees = |other: &Entry| terms.together(other, &entry, limits.level_band);
        if higher.abs_diff(lower) <= limits.window && self.chosen.iter().all(agrees) {
            let size = usize::from(entry.size) - 1;
            self.counts[size] += 1;
            self.chosen.push(entry);
            let found = self.from(at + 1, lower, higher);
            if found.is_some() {
                return found;
            }
            self.chosen.pop();
            self.counts[size] -= 1;
        }
        self.from(at + 1, low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::super::mode::{ModeRules, ModeSettings};
    use super::super::pool::{Measure, Pool};
    use super::super::rematch::Rematches;
    use super::super::tests::{mode, ticket};
    use super::super::ticket::{Ticket, Wishes};
    use super::*;
    use proptest::prelude::*;

    const OPEN_TICK: u64 = 1_000_000;

    fn rules(group_size: u8, window: u32) -> ModeRules {
        let settings = ModeSettings {
            skill_window_start: window,
            skill_window_widen_per_s: 0,
            open_after_s: 1e9,
            ..mode(group_size)
        };
        settings.rules(20.0).unwrap()
    }

    /// A pool of (size, skill), oldest first; ids count from 0.
    fn pool_of(parties: &[(u8, i32)]) -> Pool {
        let mut pool = Pool::new(Measure::Skill);
        for (party, &(size, skill)) in (0..).zip(parties) {
            pool.insert(ticket(party, size, skill, u64::from(party)));
        }
        pool
    }

    /// The ids of the match of the party that came first.
    fn chosen(pool: &Pool, rules: &ModeRules, looks_max: u64) -> Vec<u32> {
        let terms = Terms {
            pool,
            rules,
            rematches: &Rematches::default(),
            now_tick: OPEN_TICK,
        };
        let mut seeker = Seeker::default();
        let mut table = CompositionTable::new(rules.group_size);
        let slot = pool.queue().first().unwrap();
        let found = seeker.seek(&terms, &mut table, slot, looks_max);
        let mut ids: Vec<u32> = found
            .map(|(entries, _)| entries.iter().map(Entry::party).collect())
            .unwrap_or_default();
        ids.sort_unstable();
        ids
    }

    /// The smallest spread of a match that holds party 0, by trying every subset.
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
    fn longest_waiting_parties_go_first_among_equals() {
        let parties = [2, 2, 4, 1, 2, 3, 1, 1].map(|size| (size, 0));
        // 2 + 2 + 1 against 4 + 1: with the 2 of id 4 no split into fives would remain.
        let found = chosen(&pool_of(&parties), &rules(5, u32::MAX), u64::MAX);
        assert_eq!(found, [0, 1, 2, 3, 6]);
    }

    #[test]
    fn without_looks_nothing_is_found() {
        let pool = pool_of(&[(1, 0), (1, 0)]);
        assert!(chosen(&pool, &rules(1, u32::MAX), 0).is_empty());
    }

    #[test]
    fn whom_a_party_avoids_others_can_replace() {
        let mut pool = Pool::new(Measure::Skill);
        for party in 0..5 {
            // 0 and 1 have no quarrel with each other; 1 would avoid 2.
            let avoid = (party == 1).then(|| {
                Box::new(Wishes {
                    avoid: [20].into_iter().collect(),
                    ..Wishes::default()
                })
            });
            let party = Ticket {
                wishes: avoid,
                ..ticket(party, 1, party as i32, u64::from(party))
            };
            pool.insert(party);
        }
        let rules = rules(2, u32::MAX);
        assert_eq!(chosen(&pool, &rules, u64::MAX), [0, 1, 3, 4]);
    }

    proptest! {
        #[test]
        fn a_match_is_found_exactly_when_there_is_one_and_no_window_is_tighter(
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
