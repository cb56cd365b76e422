//! Party sizes that make two groups of K, and the ways to split a set of parties into them.
//!
//! A *composition* is a count vector (n₁…n₅), nᵢ parties of i players, whose parties can be split into two
//! groups of exactly K players. There are this many of them:
//!
//! | K            | 1 | 5  | 10  | 15  | 20    | 40     | 50     |
//! |--------------|---|----|-----|-----|-------|--------|--------|
//! | compositions | 1 | 25 | 187 | 663 | 1,745 | 20,280 | 46,257 |
//!
//! The matchmaker never searches that list; only tests enumerate it.
//! Whether the counts of waiting parties contain a composition is decided by dynamic programming over the pair of group
//! sums, exactly and in the same way for every K: at most 2K·(1 + 1/2 + … + 1/5) parties, K + 1 words each, which is
//! 150 words for K = 5 and 12,000 for K = 50; [`CompositionTable`] caches the results.
//!
//! Splits are listed on demand and cached too, one list per composition, while there are at most [`SPLITS_MAX`];
//! `balance.rs` searches the larger ones within a stated bound.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use throng_core::memory::MemoryUse;

/// Parties of 1, 2, … 5 players: entry i counts parties of i + 1.
pub type Counts = [u32; 5];

/// The longest list of splits that is cached for a composition.
pub const SPLITS_MAX: usize = 4_096;

/// Cached results for counts, and cached splits over all compositions, before the cache is cleared.
const CACHED_ANSWERS_MAX: usize = 1 << 16;
const CACHED_SPLITS_MAX: usize = 1 << 20;

/// The number of players in parties of these counts. O(1).
#[must_use]
pub fn player_count(counts: &Counts) -> u64 {
    (1..)
        .zip(counts)
        .map(|(size, &count)| size * u64::from(count))
        .sum()
}

/// The counts of one party of 1 to 5 players. O(1).
#[must_use]
pub fn single_party(size: u8) -> Counts {
    let mut counts = [0; 5];
    counts[usize::from(size) - 1] = 1;
    counts
}

/// The counts with each entry limited to what two groups of `group_size` can hold, packed into 29 bits: 7, 6, 6, 5
/// and 5. Equal keys are equivalent for [`CompositionTable::fits`]. O(1).
#[must_use]
pub fn key(counts: &Counts, group_size: u8) -> u32 {
    let held = |at: usize| counts[at].min(2 * u32::from(group_size) / (at as u32 + 1));
    held(0) | held(1) << 7 | held(2) << 13 | held(3) << 19 | held(4) << 24
}

/// All compositions for groups of `group_size`, in lexicographic order of (n₅ … n₁). O(count vectors with 2K
/// players · 2K).
#[cfg(test)]
#[must_use]
pub fn enumerate(group_size: u8) -> Vec<Counts> {
    let total = 2 * u32::from(group_size);
    let mut found = Vec::new();
    for fives in 0..=total / 5 {
        for fours in 0..=(total - 5 * fives) / 4 {
            for threes in 0..=(total - 5 * fives - 4 * fours) / 3 {
                let left = total - 5 * fives - 4 * fours - 3 * threes;
                for twos in 0..=left / 2 {
                    let counts = [left - 2 * twos, twos, threes, fours, fives];
                    if splits_evenly(&counts, group_size) {
                        found.push(counts);
                    }
                }
            }
        }
    }
    found
}

/// Whether parties of 2K players hold a subset of exactly K; the rest is the other group.
#[cfg(test)]
fn splits_evenly(counts: &Counts, group_size: u8) -> bool {
    let mut sums = 1u64;
    for (at, &count) in counts.iter().enumerate() {
        for _ in 0..count {
            sums |= sums << (at + 1);
        }
    }
    player_count(counts) == 2 * u64::from(group_size) && sums >> group_size & 1 == 1
}

/// Whether some composition includes all the parties of `must` and otherwise only parties of `may`.
///
/// Bit b of row a says that the parties so far can be placed with a players in the first group and b
/// in the second; a party of `must` has to be placed, one of `may` can be left out.
fn can_compose(must: &Counts, may: &Counts, group_size: u8) -> bool {
    let k = usize::from(group_size);
    let mask = (1u64 << (k + 1)) - 1;
    let mut rows = [0u64; crate::mode::GROUP_SIZE_MAX as usize + 1];
    rows[0] = 1;
    let mut place = |size: usize, optional: bool| {
        for a in (0..=k).rev() {
            let kept = if optional { rows[a] } else { 0 };
            let first = if a >= size { rows[a - size] } else { 0 };
            rows[a] = kept | first | (rows[a] << size & mask);
        }
        rows[k] >> k & 1 == 1
    };
    let mut done = false;
    for (counts, optional) in [(must, false), (may, true)] {
        for size in (1..=5).rev() {
            let held = (2 * k / size) as u32;
            // More of `must` than two groups hold can never be placed; one above is enough to detect that.
            for _ in 0..counts[size - 1].min(held + 1) {
                done = place(size, optional);
                if done && optional {
                    return true;
                }
            }
        }
    }
    done
}

/// Cached facts about the compositions of one group size: results and splits, computed at first use.
///
/// The cache changes the speed, never the results.
#[derive(Clone, Debug, MemoryUse)]
pub struct CompositionTable {
    group_size: u8,
    answers: HashMap<u64, bool, FixedState>,
    #[memory(each_value)]
    splits: HashMap<u32, Option<Box<[u32]>>, FixedState>,
    cached_splits: usize,
}

impl CompositionTable {
    /// Creates an empty table for groups of `group_size` players, 1–50. O(1).
    #[must_use]
    pub fn new(group_size: u8) -> Self {
        debug_assert!((1..=crate::mode::GROUP_SIZE_MAX).contains(&group_size));
        Self {
            group_size,
            answers: HashMap::default(),
            splits: HashMap::default(),
            cached_splits: 0,
        }
    }

    /// K: players in a group. O(1).
    #[must_use]
    pub const fn group_size(&self) -> u8 {
        self.group_size
    }

    /// Whether some composition includes all the parties of `must` and otherwise only parties of `may`. O(1) when
    /// cached, else as the module describes.
    pub fn fits(&mut self, must: &Counts, may: &Counts) -> bool {
        let total = 2 * u64::from(self.group_size);
        let wanted = player_count(must);
        if wanted > total || wanted + player_count(may) < total {
            return false;
        }
        let key =
            u64::from(key(must, self.group_size)) << 32 | u64::from(key(may, self.group_size));
        if let Some(&known) = self.answers.get(&key) {
            return known;
        }
        if self.answers.len() >= CACHED_ANSWERS_MAX {
            self.answers.clear();
        }
        let fits = can_compose(must, may, self.group_size);
        self.answers.insert(key, fits);
        fits
    }

    /// Every way to split a composition into two groups of K, as masks over its parties sorted by size. A set
    /// bit puts a party into the first group; the first party is always in it, since the mirror image is
    /// the same split. `None` when there are more than [`SPLITS_MAX`] or more than 32 parties. O(1) when
    /// cached, else O(5·[`SPLITS_MAX`]) steps.
    pub fn splits(&mut self, composition: &Counts) -> Option<&[u32]> {
        let key = key(composition, self.group_size);
        if self.cached_splits >= CACHED_SPLITS_MAX {
            self.splits.clear();
            self.cached_splits = 0;
        }
        let list = self.splits.entry(key).or_insert_with(|| {
            let list = list_splits(composition, self.group_size);
            self.cached_splits += 1 + list.as_ref().map_or(0, |list| list.len());
            list
        });
        list.as_deref()
    }
}

/// All splits of a composition as masks in ascending order of the choice, or `None` above [`SPLITS_MAX`].
fn list_splits(composition: &Counts, group_size: u8) -> Option<Box<[u32]>> {
    let parties: u32 = composition.iter().sum();
    if parties == 0 || parties > 32 {
        return None;
    }
    let found = first_splits(composition, group_size);
    (found.len() <= SPLITS_MAX).then(|| found.into_boxed_slice())
}

/// The first splits of a composition as masks, at most one more than [`SPLITS_MAX`]; none if there are more parties
/// than a mask has bits. O(5·[`SPLITS_MAX`]) steps.
#[must_use]
pub fn first_splits(composition: &Counts, group_size: u8) -> Vec<u32> {
    let sizes: Vec<u32> = (1..)
        .zip(composition)
        .flat_map(|(size, &count)| std::iter::repeat_n(size, count.min(33) as usize))
        .collect();
    let mut found = Vec::new();
    let k = u32::from(group_size);
    let Some(missing) = sizes.first().and_then(|&first| k.checked_sub(first)) else {
        return found;
    };
    if sizes.len() > 32 {
        return found;
    }
    // Subset sums of the parties from each index on: branches that cannot reach K are not entered.
    let mut reach = vec![1u64; sizes.len() + 1];
    for at in (0..sizes.len()).rev() {
        reach[at] = reach[at + 1] | reach[at + 1] << sizes[at];
    }
    let reachable = |at: usize, missing: u32| reach[at] >> missing & 1 == 1;
    let mut open = vec![(1usize, 1u32, missing)];
    while let Some((at, mask, missing)) = open.pop() {
        if !reachable(at, missing) {
            continue;
        }
        if missing == 0 {
            found.push(mask);
            if found.len() > SPLITS_MAX {
                break;
            }
            continue;
        }
        open.push((at + 1, mask, missing));
        if missing >= sizes[at] {
            open.push((at + 1, mask | 1 << at, missing - sizes[at]));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Tries every sub-vector of the counts that contains `must`.
    fn fits_by_brute_force(must: &Counts, may: &Counts, group_size: u8) -> bool {
        enumerate(group_size)
            .iter()
            .any(|c| (0..5).all(|at| must[at] <= c[at] && c[at] <= must[at] + may[at]))
    }

    /// Whether the parties can be split, by trying every subset.
    fn splits_by_brute_force(counts: &Counts, group_size: u8) -> Vec<u32> {
        let sizes: Vec<u32> = (1..)
            .zip(counts)
            .flat_map(|(size, &count)| std::iter::repeat_n(size, count as usize))
            .collect();
        let sum = |mask: u32| {
            (0..sizes.len())
                .filter(|at| mask >> at & 1 == 1)
                .map(|at| sizes[at])
                .sum::<u32>()
        };
        let all = (1u32 << sizes.len()) - 1;
        let k = u32::from(group_size);
        (1..=all)
            .filter(|&mask| mask & 1 == 1 && sum(mask) == k && sum(all & !mask) == k)
            .collect()
    }

    #[test]
    fn the_number_of_compositions_is_as_documented() {
        let counts = [1, 5, 10, 15, 20, 40, 50].map(|k| enumerate(k).len());
        assert_eq!(counts, [1, 25, 187, 663, 1_745, 20_280, 46_257]);
    }

    #[test]
    fn enumerated_compositions_are_exactly_those_that_split() {
        for k in 1..=6u8 {
            let listed = enumerate(k);
            let n = 2 * u32::from(k);
            let mut expected = 0;
            for ones in 0..=n {
                for twos in 0..=n / 2 {
                    for threes in 0..=n / 3 {
                        for fours in 0..=n / 4 {
                            for fives in 0..=n / 5 {
                                let counts = [ones, twos, threes, fours, fives];
                                if player_count(&counts) == u64::from(n)
                                    && !splits_by_brute_force(&counts, k).is_empty()
                                {
                                    assert!(listed.contains(&counts), "{counts:?}");
                                    expected += 1;
                                }
                            }
                        }
                    }
                }
            }
            assert_eq!(listed.len(), expected);
        }
    }

    #[test]
    fn split_lists_match_brute_force() {
        for k in [1u8, 2, 5, 6, 7] {
            let mut table = CompositionTable::new(k);
            for composition in enumerate(k) {
                let mut listed = table.splits(&composition).expect("few splits").to_vec();
                listed.sort_unstable();
                assert_eq!(
                    listed,
                    splits_by_brute_force(&composition, k),
                    "{composition:?}"
                );
            }
        }
    }

    #[test]
    fn compositions_with_too_many_splits_have_no_list() {
        assert!(
            CompositionTable::new(10)
                .splits(&[20, 0, 0, 0, 0])
                .is_none()
        );
        assert!(
            CompositionTable::new(50)
                .splits(&[100, 0, 0, 0, 0])
                .is_none()
        );
        assert_eq!(
            CompositionTable::new(50)
                .splits(&[0, 0, 0, 0, 20])
                .map(<[u32]>::len),
            None
        );
    }

    #[test]
    fn more_mandatory_parties_than_two_groups_hold_never_fit() {
        let mut table = CompositionTable::new(5);
        assert!(!table.fits(&[u32::MAX; 5], &[0; 5]));
        assert!(table.fits(&[0; 5], &[u32::MAX; 5]));
        assert!(!table.fits(&[0, 0, 0, 1, 0], &[0, 0, 0, u32::MAX, 0]));
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn fits_agrees_with_the_list_of_compositions(
            k in 1u8..=12,
            must in prop::array::uniform5(0u32..2),
            may in prop::array::uniform5(0u32..5),
        ) {
            let mut table = CompositionTable::new(k);
            let expected = fits_by_brute_force(&must, &may, k);
            prop_assert_eq!(table.fits(&must, &may), expected);
            prop_assert_eq!(table.fits(&must, &may), expected, "remembered");
        }
    }
}
