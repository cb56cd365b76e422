//! The best set of matches of a small pool.
//!
//! Every subset of at most [`PARTIES_MAX`] parties is checked for an allowed match. Dynamic programming over the remaining
//! parties then combines the subsets: most matches first, then the
//! smallest sum of spreads beyond the initial window of a party, then the smallest sum of gaps. Within that
//! window all spreads count as equal; a wider window is open only because a party has waited.
//!
//! Cost: 2ⁿ subsets, each with 2K players split once; up to a millisecond at 14 parties.

use std::cmp::Reverse;

use super::terms::Terms;
use crate::mode::UNLIMITED;
use crate::queue::compositions::CompositionTable;
use crate::queue::skill_index::SkillEntry;

/// The largest pool that is solved exactly: parties.
pub const PARTIES_MAX: usize = 14;

/// The cost of a match: its spread beyond the initial window, and its gap.
type SplitCost = (u64, u64);

/// The most matches, and the least sum of costs with that many: greater is better.
type SplitValue = (u32, Reverse<SplitCost>);

/// The parties of each match of the best set of matches. Returns nothing for more than [`PARTIES_MAX`].
#[must_use]
pub fn best_matches(
    terms: &Terms,
    table: &mut CompositionTable,
    parties: &[SkillEntry],
) -> Vec<Vec<SkillEntry>> {
    if parties.len() > PARTIES_MAX {
        return Vec::new();
    }
    let mut parties = parties.to_vec();
    parties.sort_unstable_by_key(|entry| (entry.size, terms.pool.age(entry.slot)));
    let allowed = allowed_matches(terms, table, &parties);
    if allowed.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    let all = (1usize << parties.len()) - 1;
    let mut values: Vec<Option<SplitValue>> = vec![None; all + 1];
    let members = |set: usize| {
        let of_set = (0..parties.len()).filter(|at| set >> at & 1 == 1);
        of_set.map(|at| parties[at]).collect()
    };
    // Backtrack: whether the first of the remaining parties is in a match, and in which.
    let (mut left, mut matches) = (all, Vec::new());
    while left != 0 {
        let value = value(left, &allowed, &mut values);
        let first = left.trailing_zeros() as usize;
        let without = left & (left - 1);
        let chosen = allowed[first].iter().find(|&&(set, cost)| {
            set & left == set && value_with_match(set, cost, left, &allowed, &mut values) == value
        });
        left = match chosen {
            Some(&(set, _)) => {
                matches.push(members(set));
                left ^ set
            }
            None => without,
        };
    }
    matches
}

/// The allowed matches by their first party: the parties as bits, and the cost.
fn allowed_matches(
    terms: &Terms,
    table: &mut CompositionTable,
    parties: &[SkillEntry],
) -> Vec<Vec<(usize, SplitCost)>> {
    let wanted = 2 * u32::from(table.group_size());
    let limits: Vec<_> = parties
        .iter()
        .map(|entry| terms.limits(entry.slot))
        .collect();
    let mut allowed = vec![Vec::new(); parties.len()];
    let mut set_players = vec![0u32; 1 << parties.len()];
    let mut chosen: Vec<SkillEntry> = Vec::new();
    for set in 1..1usize << parties.len() {
        let first = set.trailing_zeros() as usize;
        set_players[set] = set_players[set & (set - 1)] + u32::from(parties[first].size);
        if set_players[set] != wanted {
            continue;
        }
        let members = || (0..parties.len()).filter(|at| set >> at & 1 == 1);
        // The oldest party has the widest limits.
        let widest = |of: fn(&super::terms::Limits) -> u32| {
            members().map(|at| of(&limits[at])).max().unwrap_or(0)
        };
        let skills = || members().map(|at| parties[at].skill());
        let spread = skills().max().zip(skills().min());
        let spread = spread.map_or(0, |(high, low)| high.abs_diff(low));
        if spread > widest(|limits| limits.window) {
            continue;
        }
        chosen.clear();
        chosen.extend(members().map(|at| parties[at]));
        if !terms.all_compatible(&chosen, widest(|limits| limits.level_band)) {
            continue;
        }
        let Some(split) = terms.split(table, &chosen, &mut 0) else {
            continue;
        };
        let limit = widest(|limits| limits.power_gap);
        if limit == UNLIMITED || split.gap() <= u64::from(limit) {
            let beyond = u64::from(spread.saturating_sub(terms.rules.skill_window.start));
            allowed[first].push((set, (beyond, split.gap())));
        }
    }
    allowed
}

/// The value of the rest after a match is taken out of `left`, the match included.
fn value_with_match(
    set: usize,
    cost: SplitCost,
    left: usize,
    allowed: &[Vec<(usize, SplitCost)>],
    values: &mut [Option<SplitValue>],
) -> SplitValue {
    let (matches, Reverse((beyond, gaps))) = value(left ^ set, allowed, values);
    (matches + 1, Reverse((beyond + cost.0, gaps + cost.1)))
}

/// The value of the remaining parties.
fn value(
    left: usize,
    allowed: &[Vec<(usize, SplitCost)>],
    values: &mut [Option<SplitValue>],
) -> SplitValue {
    if left == 0 {
        return (0, Reverse((0, 0)));
    }
    if let Some(known) = values[left] {
        return known;
    }
    let first = left.trailing_zeros() as usize;
    let mut best = value(left & (left - 1), allowed, values);
    for &(set, cost) in &allowed[first] {
        if set & left == set {
            best = best.max(value_with_match(set, cost, left, allowed, values));
        }
    }
    values[left] = Some(best);
    best
}
