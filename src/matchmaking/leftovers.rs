//! A match for one party out of all that wait: for those past the wait bound, and for those left over after
//! packing.
//!
//! ```text
//! anchor ──▶ grow outwards in skill until a composition fits ──▶ the tightest window that holds one
//!                                                                     │
//!            parties of the match  ◀── longest-waiting first, as long as a composition remains
//! ```
//! A match of the anchor is a composition of parties, the anchor among them, whose skill spread is within the
//! anchor's window. Invariant: if there is one, one is found (unless the looks run out), and of all such
//! windows one of the smallest spread. Within it, the match is the lexicographically oldest: the second
//! longest-waiting party that can be in a match with the first is in it, and so on.
//!
//! Cost: O(parties in twice the spread found); a composition is asked for only when a count changes that
//! matters.

use super::compositions::{CompositionTable, Counts, players};
use super::pool::Pool;

/// Parties of the highest skill in a window that are considered beyond the first, in groups of K.
const TIES_MAX_GROUPS: usize = 8;

/// Finds matches party by party; keeps its buffers and counts its work.
#[derive(Clone, Debug, Default)]
pub struct Seeker {
    chosen: Vec<u32>,
    ids: Vec<u32>,
    looks: u64,
}

/// The counts of one party.
pub(super) fn only(size: u8) -> Counts {
    let mut counts = [0; 5];
    counts[usize::from(size) - 1] = 1;
    counts
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

    /// Finds a match that holds `anchor`, which is not taken, within its window. Returns the ids of its parties,
    /// the anchor first, or an empty slice when there is none or `looks_max` is reached.
    pub fn seek(
        &mut self,
        pool: &Pool,
        table: &mut CompositionTable,
        anchor: u32,
        looks_max: u64,
    ) -> &[u32] {
        self.chosen.clear();
        let window = self
            .grow(pool, table, anchor, looks_max)
            .and_then(|radius| self.tightest(pool, table, anchor, radius, looks_max));
        if let Some((low, high)) = window {
            self.choose(pool, table, anchor, low, high);
        }
        &self.chosen
    }

    /// The smallest distance in skill from the anchor within which a composition fits, up to its window.
    fn grow(
        &mut self,
        pool: &Pool,
        table: &mut CompositionTable,
        anchor: u32,
        looks_max: u64,
    ) -> Option<u32> {
        let me = *pool.candidate(anchor);
        let must = only(me.size);
        let mut counts = [0; 5];
        let (mut low, mut high) = (
            pool.previous(pool.place(anchor)),
            pool.next(pool.place(anchor)),
        );
        let distance = |place: u32| {
            (place != pool.end()).then(|| {
                (
                    pool.candidate(pool.at(place)).skill.abs_diff(me.skill),
                    pool.at(place),
                )
            })
        };
        while self.looks < looks_max {
            let below = distance(low);
            let above = distance(high);
            let (nearest, id) = [below, above].into_iter().flatten().min()?;
            if nearest > me.window {
                return None;
            }
            if below == Some((nearest, id)) {
                low = pool.previous(low);
            } else {
                high = pool.next(high);
            }
            if self.add(pool, table, &mut counts, id) && table.fits(&must, &counts) {
                return Some(nearest);
            }
        }
        None
    }

    /// The places of a window of the smallest spread that holds the anchor and a composition with it, the spread
    /// at most the anchor's window. What fits within `radius` on both sides fits within twice that spread.
    fn tightest(
        &mut self,
        pool: &Pool,
        table: &mut CompositionTable,
        anchor: u32,
        radius: u32,
        looks_max: u64,
    ) -> Option<(u32, u32)> {
        let me = *pool.candidate(anchor);
        let must = only(me.size);
        let reach = me.window.min(radius.saturating_mul(2));
        let skill = |place: u32| pool.candidate(pool.at(place)).skill;
        let mut counts = [0; 5];
        let mut low = pool.place(anchor);
        loop {
            let below = pool.previous(low);
            if below == pool.end() || me.skill.abs_diff(skill(below)) > reach {
                break;
            }
            low = below;
            self.add(pool, table, &mut counts, pool.at(low));
        }
        let mut high = pool.place(anchor);
        let mut best: Option<(u32, u32, u32)> = None;
        while self.looks < looks_max {
            let mut fits = table.fits(&must, &counts);
            while !fits {
                let above = pool.next(high);
                if above == pool.end() || skill(above).abs_diff(skill(low)) > reach {
                    break;
                }
                high = above;
                fits =
                    self.add(pool, table, &mut counts, pool.at(high)) && table.fits(&must, &counts);
            }
            let spread = skill(high).abs_diff(skill(low));
            if fits && best.is_none_or(|best| spread < best.0) {
                best = Some((spread, low, high));
            }
            // No window is tighter than the distance to its farther end.
            if low == pool.place(anchor) || best.is_some_and(|best| best.0 == radius) {
                break;
            }
            counts[usize::from(pool.candidate(pool.at(low)).size) - 1] -= 1;
            low = pool.next(low);
        }
        best.map(|(_, low, high)| (low, high))
    }

    /// Chooses the parties of the match among those from `low` to `high`, longest-waiting first.
    fn choose(
        &mut self,
        pool: &Pool,
        table: &mut CompositionTable,
        anchor: u32,
        low: u32,
        high: u32,
    ) {
        let group_size = usize::from(table.group_size());
        self.ids.clear();
        let (mut place, mut ties) = (low, 0);
        let top = pool.candidate(pool.at(high)).skill;
        while place != pool.end() && (place <= high || pool.candidate(pool.at(place)).skill == top)
        {
            ties += usize::from(place > high);
            if ties > TIES_MAX_GROUPS * group_size {
                break;
            }
            self.ids.push(pool.at(place));
            place = pool.next(place);
        }
        self.ids.retain(|&id| id != anchor);
        self.ids.sort_unstable();
        let size_of = |id: u32| usize::from(pool.candidate(id).size) - 1;
        let mut may = [0; 5];
        self.ids.iter().for_each(|&id| may[size_of(id)] += 1);
        let mut must = only(pool.candidate(anchor).size);
        let mut refused = [false; 5];
        self.chosen.push(anchor);
        for &id in &self.ids {
            if players(&must) == 2 * group_size as u64 {
                break;
            }
            let size = size_of(id);
            may[size] -= 1;
            if refused[size] {
                continue;
            }
            must[size] += 1;
            if table.fits(&must, &may) {
                self.chosen.push(id);
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

    /// Counts a party in; whether that can change what fits.
    fn add(&mut self, pool: &Pool, table: &CompositionTable, counts: &mut Counts, id: u32) -> bool {
        self.looks += 1;
        let size = pool.candidate(id).size;
        let count = &mut counts[usize::from(size) - 1];
        *count += 1;
        *count <= 2 * u32::from(table.group_size()) / u32::from(size)
    }
}

#[cfg(test)]
mod tests {
    use super::super::pool::tests::pool_of;
    use super::*;
    use proptest::prelude::*;

    /// The smallest spread of a match that holds party 0, by trying every subset.
    fn smallest_spread(parties: &[(u8, u32, i32, u32)], group_size: u8) -> Option<u32> {
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
                members().map(|p| p.2).min().unwrap(),
                members().map(|p| p.2).max().unwrap(),
            );
            let spread = high.abs_diff(low);
            if table.fits(&counts, &[0; 5])
                && spread <= parties[0].3
                && best.is_none_or(|best| spread < best)
            {
                best = Some(spread);
            }
        }
        best
    }

    #[test]
    fn a_party_of_five_finds_single_players() {
        let mut parties = vec![(5, 0, 100, u32::MAX)];
        parties.extend((0..9).map(|at| (1, 0, at * 1000, u32::MAX)));
        let pool = pool_of(&parties);
        let mut seeker = Seeker::default();
        let chosen = seeker
            .seek(&pool, &mut CompositionTable::new(5), 0, u64::MAX)
            .to_vec();
        assert_eq!(chosen, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn longest_waiting_parties_go_first_among_equals() {
        let parties: Vec<_> = [2, 2, 4, 1, 2, 3, 1, 1]
            .map(|size| (size, 0, 0, u32::MAX))
            .to_vec();
        let pool = pool_of(&parties);
        let mut seeker = Seeker::default();
        // 2 + 2 + 1 against 4 + 1: with the 2 of id 4 no split into fives would remain.
        let chosen = seeker
            .seek(&pool, &mut CompositionTable::new(5), 0, u64::MAX)
            .to_vec();
        assert_eq!(chosen, [0, 1, 2, 3, 6]);
    }

    #[test]
    fn without_looks_nothing_is_found() {
        let pool = pool_of(&[(1, 0, 0, u32::MAX), (1, 0, 0, u32::MAX)]);
        let mut seeker = Seeker::default();
        assert!(
            seeker
                .seek(&pool, &mut CompositionTable::new(1), 0, 0)
                .is_empty()
        );
    }

    proptest! {
        #[test]
        fn a_match_is_found_exactly_when_there_is_one_and_no_window_is_tighter(
            group_size in 1u8..=6,
            parties in prop::collection::vec((1u8..=5, 0u32..100, -12i32..12, 0u32..30), 1..11),
        ) {
            let parties: Vec<_> = parties.into_iter().filter(|party| party.0 <= group_size).collect();
            prop_assume!(!parties.is_empty());
            let pool = pool_of(&parties);
            let mut table = CompositionTable::new(group_size);
            let mut seeker = Seeker::default();
            let chosen = seeker.seek(&pool, &mut table, 0, u64::MAX).to_vec();
            let skills = || chosen.iter().map(|&id| parties[id as usize].2);
            let spread = skills().max().zip(skills().min()).map(|(high, low)| high.abs_diff(low));
            let smallest = smallest_spread(&parties, group_size);
            prop_assert_eq!(spread.is_some(), smallest.is_some());
            if let (Some(found), Some(smallest)) = (spread, smallest) {
                prop_assert!(found <= smallest, "{found} instead of {smallest}");
                let mut counts = [0; 5];
                chosen.iter().for_each(|&id| counts[usize::from(parties[id as usize].0) - 1] += 1);
                prop_assert!(table.fits(&counts, &[0; 5]));
                prop_assert_eq!(players(&counts), 2 * u64::from(group_size));
            }
        }
    }
}
