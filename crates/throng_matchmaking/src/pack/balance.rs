//! Splitting the parties of a match into two groups of exactly K with the smallest gap in power.
//!
//! If a composition has up to [`SPLITS_MAX`](crate::queue::compositions::SPLITS_MAX) splits, all of them are tried, and
//! the result is optimal. Otherwise a bounded search is used: parties go, strongest first, to the weaker
//! group as long as both groups can still become full; then parties of equal size change sides, one pair or two
//! pairs at a time, while that narrows the gap, for at most [`ROUNDS_MAX`] rounds. A round sorts at most K²
//! exchanges (2,500 for K = 50), so the bound is O(`ROUNDS_MAX` · K² log K). The result is never worse than
//! the first split, but not always optimal.
//!
//! Among equal splits the first one wins, in an order that depends only on sizes, powers and the given order.

use crate::queue::compositions::{CompositionTable, Counts, first_splits};

/// Rounds of the bounded search.
pub const ROUNDS_MAX: usize = 16;

/// The most parties in a match: single players in two groups of 50.
pub const PARTIES_MAX: usize = 100;

/// A party to be split: (players, power).
pub type Weight = (u8, u32);

/// Two groups of equal size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSplit {
    /// Bit i: party i is in the first group.
    pub first: u128,
    /// The groups' power.
    pub power: [u64; 2],
}

impl GroupSplit {
    fn new(parties: &[Weight], first: u128) -> Self {
        let mut power = [0; 2];
        for (at, party) in parties.iter().enumerate() {
            power[usize::from(first >> at & 1 == 0)] += u64::from(party.1);
        }
        Self { first, power }
    }

    /// The gap in power between the groups. O(1).
    #[must_use]
    pub const fn gap(&self) -> u64 {
        self.power[0].abs_diff(self.power[1])
    }
}

/// Splits parties, sorted by size, into two groups of the table's K with the smallest gap found. `None` when
/// they cannot be split into two groups of K. Exact up to [`SPLITS_MAX`](crate::queue::compositions::SPLITS_MAX)
/// splits, else bounded as the module describes.
pub fn balance(table: &mut CompositionTable, parties: &[Weight]) -> Option<GroupSplit> {
    balance_where(table, parties, |_| true, &mut 0)
}

/// [`balance`] among the splits that are `allowed`, each given as the parties of its first group. If there are too many
/// for a list, it tries the one found by the search, then the first
/// [`SPLITS_MAX`](crate::queue::compositions::SPLITS_MAX) others, so it can miss an allowed one; with more than
/// 32 parties it tries only the one found by the search. Adds to the step count: one, one for every eight splits, and one for
/// each call of `allowed`.
pub fn balance_where(
    table: &mut CompositionTable,
    parties: &[Weight],
    allowed: impl Fn(u128) -> bool,
    looks: &mut u64,
) -> Option<GroupSplit> {
    debug_assert!(
        parties.is_sorted_by_key(|party| party.0),
        "masks are over parties sorted by size"
    );
    if parties.len() > PARTIES_MAX {
        return None;
    }
    let mut counts: Counts = [0; 5];
    for &(size, _) in parties {
        *counts.get_mut(usize::from(size).checked_sub(1)?)? += 1;
    }
    *looks += 1;
    if !table.fits(&counts, &[0; 5]) {
        return None;
    }
    if let Some(masks) = table.splits(&counts) {
        return best_of(parties, masks, allowed, looks);
    }
    let found = improve(parties, initial_split(parties, table.group_size())?);
    if allowed(found.first) {
        return Some(found);
    }
    let masks = first_splits(&counts, table.group_size());
    *looks += masks.len() as u64;
    best_of(parties, &masks, allowed, looks)
}

/// The allowed split of the smallest gap among the listed masks; the first among equals.
fn best_of(
    parties: &[Weight],
    masks: &[u32],
    allowed: impl Fn(u128) -> bool,
    looks: &mut u64,
) -> Option<GroupSplit> {
    *looks += masks.len() as u64 / 8;
    let total: u64 = parties.iter().map(|party| u64::from(party.1)).sum();
    let gap = |mask: u32| {
        let (mut rest, mut first) = (mask, 0u64);
        while rest != 0 {
            first += u64::from(parties[rest.trailing_zeros() as usize].1);
            rest &= rest - 1;
        }
        (2 * first).abs_diff(total)
    };
    let mut best: Option<(u64, u128)> = None;
    for &mask in masks {
        let (gap, first) = (gap(mask), u128::from(mask));
        if best.is_none_or(|best| gap < best.0) {
            *looks += 1;
            if allowed(first) {
                best = Some((gap, first));
            }
        }
    }
    best.map(|(_, first)| GroupSplit::new(parties, first))
}

/// The initial split for the search: strongest party first, each to the weaker group if K stays reachable.
fn initial_split(parties: &[Weight], group_size: u8) -> Option<GroupSplit> {
    let mut order: Vec<usize> = (0..parties.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(parties[at].1));
    // Bit s of entry i: some of the parties from index i of the order on have s players together.
    let mut reach = vec![1u64; order.len() + 1];
    for (place, &at) in order.iter().enumerate().rev() {
        reach[place] = reach[place + 1] | reach[place + 1] << parties[at].0;
    }
    let mut missing = group_size;
    let (mut first, mut power) = (0u128, [0u64; 2]);
    for (place, &at) in order.iter().enumerate() {
        let (size, strength) = parties[at];
        let can_join = missing >= size && reach[place + 1] >> (missing - size) & 1 == 1;
        let can_stay_out = reach[place + 1] >> missing & 1 == 1;
        let joins = can_join && (power[0] <= power[1] || !can_stay_out);
        if joins {
            first |= 1 << at;
            missing -= size;
        }
        power[usize::from(!joins)] += u64::from(strength);
    }
    (missing == 0).then(|| GroupSplit::new(parties, first))
}

/// One party of each group that could change sides, and by how much less power the first group would then have.
#[derive(Clone, Copy)]
struct Exchange {
    less: i64,
    from_first: u8,
    from_second: u8,
}

/// Exchanges parties of equal size while that narrows the gap, at most [`ROUNDS_MAX`] times.
fn improve(parties: &[Weight], mut split: GroupSplit) -> GroupSplit {
    let mut exchanges = Vec::new();
    for _ in 0..ROUNDS_MAX {
        list_exchanges(parties, split.first, &mut exchanges);
        let lead = split.power[0] as i64 - split.power[1] as i64;
        let Some(flips) = best_exchange(&exchanges, lead) else {
            break;
        };
        split = GroupSplit::new(parties, split.first ^ flips);
    }
    split
}

/// All exchanges of two parties of equal size, sorted from those that weaken the first group least (or strengthen it
/// most).
fn list_exchanges(parties: &[Weight], first: u128, exchanges: &mut Vec<Exchange>) {
    let in_first = |at: usize| first >> at & 1 == 1;
    exchanges.clear();
    for a in (0..parties.len()).filter(|&at| in_first(at)) {
        for b in (0..parties.len()).filter(|&at| !in_first(at) && parties[at].0 == parties[a].0) {
            let less = i64::from(parties[a].1) - i64::from(parties[b].1);
            exchanges.push(Exchange {
                less,
                from_first: a as u8,
                from_second: b as u8,
            });
        }
    }
    exchanges.sort_unstable_by_key(|exchange| {
        (exchange.less, exchange.from_first, exchange.from_second)
    });
}

/// The parties that change sides in the single or double exchange that best narrows a lead of the first group;
/// `None` when none does. O(e) with e exchanges.
fn best_exchange(exchanges: &[Exchange], lead: i64) -> Option<u128> {
    let left_over = |less: i64| (lead - 2 * less).unsigned_abs();
    let flips = |exchange: &Exchange| 1u128 << exchange.from_first | 1u128 << exchange.from_second;
    let mut best = (lead.unsigned_abs(), None);
    let mut offer = |gap: u64, flips: u128| {
        if gap < best.0 {
            best = (gap, Some(flips));
        }
    };
    for exchange in exchanges {
        offer(left_over(exchange.less), flips(exchange));
    }
    // Two indices approach each other along the pairs of exchanges whose sum is nearest to half the lead.
    let (mut low, mut high) = (0, exchanges.len());
    while low + 1 < high {
        let (a, b) = (&exchanges[low], &exchanges[high - 1]);
        if flips(a) & flips(b) == 0 {
            offer(left_over(a.less + b.less), flips(a) | flips(b));
        }
        if 2 * (a.less + b.less) < lead {
            low += 1;
        } else {
            high -= 1;
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::compositions::enumerate;
    use proptest::prelude::*;

    fn players_in_first(parties: &[Weight], split: &GroupSplit) -> u32 {
        (0..parties.len())
            .filter(|at| split.first >> at & 1 == 1)
            .map(|at| u32::from(parties[at].0))
            .sum()
    }

    fn smallest_gap_by_brute_force(parties: &[Weight], group_size: u8) -> Option<u64> {
        let splits = (0..1u128 << parties.len()).map(|first| GroupSplit::new(parties, first));
        let halves =
            splits.filter(|split| players_in_first(parties, split) == u32::from(group_size));
        halves.map(|split| split.gap()).min()
    }

    fn parties(composition: &Counts, powers: &[u32]) -> Vec<Weight> {
        let sizes = (1u8..)
            .zip(composition)
            .flat_map(|(size, &count)| std::iter::repeat_n(size, count as usize));
        sizes.zip(powers.iter().copied().cycle()).collect()
    }

    #[test]
    fn parties_that_do_not_form_two_groups_are_refused() {
        let mut table = CompositionTable::new(5);
        assert_eq!(balance(&mut table, &[(2, 1), (4, 1), (4, 1)]), None);
        assert_eq!(balance(&mut table, &[(1, 1)]), None);
        assert_eq!(balance(&mut table, &[]), None);
        assert_eq!(balance(&mut table, &[(1, 1); 101]), None);
    }

    #[test]
    fn largest_powers_do_not_overflow() {
        let split = balance(&mut CompositionTable::new(50), &[(1, u32::MAX); 100]).unwrap();
        assert_eq!(split.power, [50 * u64::from(u32::MAX); 2]);
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn short_lists_of_splits_give_the_smallest_gap(
            group_size in prop::sample::select(vec![1u8, 5, 6, 10]),
            pick in any::<prop::sample::Index>(),
            powers in prop::collection::vec(0u32..10_000, 14),
        ) {
            let few: Vec<Counts> =
                enumerate(group_size).into_iter().filter(|c| c.iter().sum::<u32>() <= 14).collect();
            let parties = parties(pick.get(&few), &powers);
            let split = balance(&mut CompositionTable::new(group_size), &parties).unwrap();
            prop_assert_eq!(players_in_first(&parties, &split), u32::from(group_size));
            prop_assert_eq!(Some(split.gap()), smallest_gap_by_brute_force(&parties, group_size));
        }

        #[test]
        fn bounded_search_splits_evenly_and_never_worsens_its_start(
            group_size in 1u8..=50,
            pick in any::<prop::sample::Index>(),
            powers in prop::collection::vec(0u32..10_000, 100),
        ) {
            // Any composition will do; those of single players and pairs are the longest.
            let total = 2 * u32::from(group_size);
            let twos = pick.index(total as usize / 2 + 1) as u32;
            let composition = [total - 2 * twos, twos, 0, 0, 0];
            prop_assume!(CompositionTable::new(group_size).fits(&composition, &[0; 5]));
            let parties = parties(&composition, &powers);
            let start = initial_split(&parties, group_size).unwrap();
            let split = improve(&parties, start);
            prop_assert_eq!(players_in_first(&parties, &start), u32::from(group_size));
            prop_assert_eq!(players_in_first(&parties, &split), u32::from(group_size));
            prop_assert!(split.gap() <= start.gap());
            prop_assert_eq!(split, GroupSplit::new(&parties, split.first));
        }

        #[test]
        fn bounded_search_comes_near_the_smallest_gap(powers in prop::collection::vec(0u32..10_000, 14)) {
            let parties: Vec<Weight> = powers.iter().map(|&power| (1, power)).collect();
            let found = improve(&parties, initial_split(&parties, 7).unwrap()).gap();
            let smallest = smallest_gap_by_brute_force(&parties, 7).unwrap();
            prop_assert!(found <= smallest + 1_000, "{found} against {smallest}");
        }
    }
}
