//! Makes packed sets tighter in skill, and then more even in power.
//!
//! ```text
//! sets by skill ──▶ a set wider than the target exchanges parties with a neighbour ──▶ tighter sets
//!               ──▶ bands of sets within the target: if gaps are large, groups are paired again by power
//! ```
//! The target is the spread that 99 % of the sets of 2K players in a row, parties aside, would have. The
//! sparse ends of the order need that spread anyway, so it counts as equally tight everywhere, and power decides below it.
//!
//! Invariants: parties stay whole, sets remain compositions, no set gets wider than both the target and its
//! previous spread, and it stays within the widest limits of its parties.
//!
//! Cost: at most [`REPARTITIONS_MAX`] repartitions of [`STEPS_MAX`] steps, and O(sets · log sets) for the bands.

use super::swap::{PartySwapper, split_of};
use super::sweep::{Sets, SweepSeat, spread, within_limits};
use crate::queue::compositions::{CompositionTable, Counts, player_count};

/// Neighbours on each side with which a set exchanges parties.
const NEIGHBOURS: usize = 4;

/// Passes over all sets: one repartition can enable another.
const PASSES: usize = 2;

/// Repartitions between neighbours per heartbeat.
pub const REPARTITIONS_MAX: usize = 512;

/// Steps of one repartition.
pub const STEPS_MAX: u32 = 20_000;

/// The maximum number of parties of two sets in a repartition.
const UNION_MAX: usize = 24;

/// A mean gap of this fraction of the groups' power is even enough: 1/256.
const EVEN_SHIFT: u32 = 8;

/// The spread of skill below which all sets count as tight: the 99th percentile over sets of 2K players in
/// a row. O(n log n) in the sets.
#[must_use]
pub fn target_spread(seats: &[SweepSeat], group_size: u8) -> u32 {
    let total = 2 * u32::from(group_size);
    let mut spreads = Vec::new();
    let (mut held, mut lowest) = (0, None);
    for seat in seats {
        let skill = seat.entry.skill();
        // A party can end a set and begin the next.
        let mut left = u32::from(seat.entry.size);
        while left > 0 {
            let low: i32 = *lowest.get_or_insert(skill);
            let joins = left.min(total - held);
            held += joins;
            left -= joins;
            if held == total {
                spreads.push(skill.abs_diff(low));
                (held, lowest) = (0, None);
            }
        }
    }
    if spreads.is_empty() {
        return 0;
    }
    let nth = (spreads.len() * 99).div_ceil(100) - 1;
    *spreads.select_nth_unstable(nth).1
}

fn counts(seats: &[SweepSeat], set: &[u32]) -> Counts {
    let mut counts = [0; 5];
    for &at in set {
        counts[usize::from(seats[at as usize].entry.size) - 1] += 1;
    }
    counts
}

/// Repartitions sets wider than `aim` with their neighbours while that makes them tighter.
/// The sets are sorted by their lowest seat.
pub fn tighten(seats: &[SweepSeat], sets: &mut Sets, table: &mut CompositionTable, aim: u32) {
    let (mut exchanges, count) = (0, sets.len());
    for wide in (0..PASSES).flat_map(|_| 0..count) {
        let from = wide.saturating_sub(NEIGHBOURS);
        for other in from..(wide + NEIGHBOURS + 1).min(count) {
            if spread(seats, sets.get(wide)) <= aim || exchanges >= REPARTITIONS_MAX {
                break;
            }
            if other != wide {
                exchanges += 1;
                repartition(seats, sets, table, aim, [wide.min(other), wide.max(other)]);
            }
        }
    }
}

/// Finds the division of two sets' parties that exceeds the target least.
fn repartition(
    seats: &[SweepSeat],
    sets: &mut Sets,
    table: &mut CompositionTable,
    aim: u32,
    pair: [usize; 2],
) {
    let mut union: Vec<u32> = pair
        .iter()
        .flat_map(|&set| sets.get(set).iter().copied())
        .collect();
    if union.len() > UNION_MAX {
        return;
    }
    union.sort_unstable();
    let excess = |set: &[u32]| u64::from(spread(seats, set).saturating_sub(aim));
    let mut division = Division {
        seats,
        table,
        target_spread: aim,
        union: &union,
        best: pair.iter().map(|&set| excess(sets.get(set))).sum(),
        found: None,
        steps: 0,
    };
    let players: u32 = sets
        .get(pair[0])
        .iter()
        .map(|&at| u32::from(seats[at as usize].entry.size))
        .sum();
    division.decide(
        1,
        1,
        players - u32::from(seats[union[0] as usize].entry.size),
        None,
    );
    if let Some(first) = division.found {
        let chosen = |bit: u32| {
            let union = &union;
            (0..union.len())
                .filter(move |at| first >> at & 1 == bit)
                .map(move |at| union[at])
        };
        sets.replace(pair[0], chosen(1));
        sets.replace(pair[1], chosen(0));
    }
}

/// The search for a tighter division of two sets, depth first.
struct Division<'a> {
    seats: &'a [SweepSeat],
    table: &'a mut CompositionTable,
    target_spread: u32,
    union: &'a [u32],
    best: u64,
    found: Option<u32>,
    steps: u32,
}

impl Division<'_> {
    /// Decides on the seats from `at` on. `first` are the seats of the first set, which lacks `missing` players;
    /// `low` is the lowest seat of the second.
    fn decide(&mut self, at: usize, first: u32, missing: u32, low: Option<usize>) {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return;
        }
        let skill = |at: usize| self.seats[self.union[at] as usize].entry.skill();
        let beyond = |low: usize, high: usize| {
            u64::from(
                skill(high)
                    .abs_diff(skill(low))
                    .saturating_sub(self.target_spread),
            )
        };
        let last = self.union.len() - 1;
        if missing == 0 {
            // All the others are the second set.
            let highest = (0..=last).rev().find(|at| first >> at & 1 == 0);
            let highest_first = 31 - first.leading_zeros() as usize;
            let low = low.unwrap_or(at);
            let excess = beyond(0, highest_first) + highest.map_or(0, |high| beyond(low, high));
            if excess < self.best && self.is_allowed(first) {
                (self.best, self.found) = (excess, Some(first));
            }
            return;
        }
        // The first set reaches at least to here, and the second to the last seat if it has not reached it.
        if at > last || beyond(0, at) >= self.best {
            return;
        }
        let size = u32::from(self.seats[self.union[at] as usize].entry.size);
        if size <= missing {
            self.decide(at + 1, first | 1 << at, missing - size, low);
        }
        self.decide(at + 1, first, missing, low.or(Some(at)));
    }

    fn is_allowed(&mut self, first: u32) -> bool {
        [1, 0].into_iter().all(|bit| {
            let of_set = |at: &usize| first >> at & 1 == bit;
            let set: Vec<u32> = (0..self.union.len())
                .filter(of_set)
                .map(|at| self.union[at])
                .collect();
            let counts = counts(self.seats, &set);
            within_limits(self.seats, &set)
                && player_count(&counts) == 2 * u64::from(self.table.group_size())
                && self.table.fits(&counts, &[0; 5])
        })
    }
}

/// Pairs groups again by power, and lets sets swap parties, within bands of sets whose joint spread is within
/// `aim`, if that makes gaps smaller. The sets are roughly in order of skill.
pub fn balance_power(seats: &[SweepSeat], sets: &mut Sets, table: &mut CompositionTable, aim: u32) {
    let mut start = 0;
    let (mut band, mut trader) = (Band::default(), PartySwapper::default());
    let skill = |at: Option<&u32>| at.map_or(0, |&at| seats[at as usize].entry.skill());
    while start < sets.len() {
        // Repartitioned sets can be slightly out of order.
        let (mut low, mut high) = (i32::MAX, i32::MIN);
        let within = (start..sets.len()).take_while(|&set| {
            low = low.min(skill(sets.get(set).first()));
            high = high.max(skill(sets.get(set).last()));
            high.abs_diff(low) <= aim
        });
        let end = start + within.count();
        if end > start + 1 {
            band.rebuild_pairs(seats, sets, table, start..end);
            trader.swap_parties(seats, sets, table, start..end);
        }
        start = end.max(start + 1);
    }
}

/// The groups of a band; reuses its buffers.
#[derive(Default)]
struct Band {
    groups: Vec<(u64, Vec<u32>)>,
}

impl Band {
    fn rebuild_pairs(
        &mut self,
        seats: &[SweepSeat],
        sets: &mut Sets,
        table: &mut CompositionTable,
        range: std::ops::Range<usize>,
    ) {
        self.groups.clear();
        let (mut gaps, mut power) = (0, 0);
        for set in range.clone() {
            let Some((split, by_size)) = split_of(seats, sets.get(set), table) else {
                return;
            };
            let group = |bit: u128| {
                let members = (0..by_size.len()).filter(|at| split.first >> at & 1 == bit);
                members.map(|at| by_size[at]).collect()
            };
            gaps += split.gap();
            power += split.power[0];
            self.groups.push((split.power[0], group(1)));
            self.groups.push((split.power[1], group(0)));
        }
        if gaps <= power >> EVEN_SHIFT {
            return;
        }
        self.groups.sort_unstable();
        let mut gaps_anew = 0;
        let mut pairs: Vec<Vec<u32>> = Vec::new();
        for two in self.groups.chunks_exact(2) {
            let mut pair: Vec<u32> = two
                .iter()
                .flat_map(|(_, group)| group.iter().copied())
                .collect();
            pair.sort_unstable();
            match split_of(seats, &pair, table) {
                Some((split, _)) if within_limits(seats, &pair) => gaps_anew += split.gap(),
                _ => return,
            }
            pairs.push(pair);
        }
        if gaps_anew < gaps {
            for (set, pair) in range.zip(pairs) {
                sets.replace(set, pair);
            }
        }
    }
}
