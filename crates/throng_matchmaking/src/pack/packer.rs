//! Packs all waiting parties into as many matches as a heartbeat may make, tightest windows first.
//!
//! ```text
//! seats by skill ──▶ sweep ──▶ tighten ──▶ balance power ──▶ sets by the age of their oldest party
//!                                  windows fully open: ──▶ repair until no plan makes more groups
//! ```
//! If every window holds the whole pool, only sizes decide what is possible, and [`plan`] computes
//! the number of matches. If the sweep made fewer, its latest sets are dissolved, twice as many each
//! time, and rebuilt together with the left-over parties as planned. So most sets stay as tight as they were, and
//! as many players are matched as the integer program over compositions allows.
//!
//! Cost: as documented in the parts; the repair computes a plan O(log sets) times for each set that it adds.

use throng_core::memory::MemoryUse;

use super::plan::{self, PlannedGroups};
use super::sweep::{Sets, SweepSeat, Sweeper};
use super::terms::Terms;
use super::tighten::{balance_power, target_spread, tighten};
use crate::queue::compositions::{CompositionTable, Counts};
use crate::queue::skill_index::SkillEntry;
use crate::ticket::regions;

/// Packs pools; reuses its buffers.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct Packer {
    seats: Vec<SweepSeat>,
    sweeper: Sweeper,
}

impl Packer {
    /// Packs all parties of a pool into sets that fit two groups of K, and returns their number. Preferences,
    /// roles and rematches can still refuse a set.
    pub fn pack(&mut self, terms: &Terms, table: &mut CompositionTable) -> usize {
        self.seats.clear();
        let (mut widest, mut narrowest) = (0, u32::MAX);
        for entry in terms.pool.skill_index().iter() {
            let limits = terms.limits(entry.slot);
            widest = widest.max(limits.window);
            narrowest = narrowest.min(limits.window);
            self.seats.push(SweepSeat {
                entry,
                power: terms.ticket(entry.slot).map_or(0, |ticket| ticket.power),
                window: limits.window,
                level_band: limits.level_band,
                regions: terms.ticket(entry.slot).map_or(u32::MAX, regions),
            });
        }
        let (seats, k) = (&self.seats, table.group_size());
        let sets = self.sweeper.sweep(seats, k, Some(terms));
        let aim = target_spread(seats, k).min(widest);
        tighten(seats, sets, table, aim);
        balance_power(seats, sets, table, aim);
        let skill = |seat: Option<&SweepSeat>| seat.map_or(0, |seat| seat.entry.skill());
        if skill(seats.last()).abs_diff(skill(seats.first())) <= narrowest {
            repair(seats, sets, k);
        }
        sets.len()
    }

    /// The parties of a set of the latest pass.
    pub fn parties(&self, set: usize) -> impl Iterator<Item = SkillEntry> {
        let seats = self.sweeper.sets().get(set).iter();
        seats.map(|&at| self.seats[at as usize].entry)
    }
}

/// The number of parties of each size among these seats.
fn counts(seats: &[SweepSeat], of: impl Iterator<Item = u32>) -> Counts {
    let mut counts = [0; 5];
    for at in of {
        counts[usize::from(seats[at as usize].entry.size) - 1] += 1;
    }
    counts
}

/// Dissolves and rebuilds sets until there are as many as a plan of all parties has.
pub fn repair(seats: &[SweepSeat], sets: &mut Sets, group_size: u8) {
    let all = counts(seats, 0..seats.len() as u32);
    let most = plan::groups(&plan::plan(&all, group_size)) as usize / 2;
    let mut apart = 1;
    while sets.len() < most {
        let kept = sets.len().saturating_sub(apart);
        let mut free = vec![true; seats.len()];
        for set in 0..kept {
            sets.get(set)
                .iter()
                .for_each(|&at| free[at as usize] = false);
        }
        let free: Vec<u32> = (0..seats.len() as u32)
            .filter(|&at| free[at as usize])
            .collect();
        let planned = plan::plan(&counts(seats, free.iter().copied()), group_size);
        let made = plan::groups(&planned) as usize / 2;
        if kept + made > sets.len() {
            sets.truncate(kept);
            make_as_planned(seats, sets, &free, planned, made);
            apart = 1;
        } else if kept == 0 {
            // The search for the whole plan reached its limit; no better plan is known.
            break;
        } else {
            apart *= 2;
        }
    }
}

/// Makes matches out of free seats in the order of skill, group by group as planned.
fn make_as_planned(
    seats: &[SweepSeat],
    sets: &mut Sets,
    free: &[u32],
    mut planned: Vec<PlannedGroups>,
    matches: usize,
) {
    // The seats of each size, lowest last.
    let mut of_size: [Vec<u32>; 5] = Default::default();
    for &at in free.iter().rev() {
        of_size[usize::from(seats[at as usize].entry.size) - 1].push(at);
    }
    for _ in 0..matches {
        let mut set = Vec::new();
        for _ in 0..2 {
            // Of the remaining groups, the one whose highest party is lowest.
            let highest = |make: &PlannedGroups| {
                let reach = |(size, &count): (usize, &u32)| {
                    let at = of_size[size].len().checked_sub(count as usize)?;
                    of_size[size].get(at).copied()
                };
                make.sizes.iter().enumerate().filter_map(reach).max()
            };
            let makes = planned
                .iter()
                .enumerate()
                .filter(|(_, make)| make.groups > 0);
            let Some((at, _)) = makes.min_by_key(|(at, make)| (highest(make), *at)) else {
                return;
            };
            planned[at].groups -= 1;
            for (size, &count) in planned[at].sizes.iter().enumerate() {
                let left = of_size[size].len().saturating_sub(count as usize);
                set.extend(of_size[size].drain(left..));
            }
        }
        sets.push(set);
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::most_groups;
    use super::super::swap::split_of;
    use super::*;
    use proptest::prelude::*;

    fn seats(parties: &[(u8, i32)]) -> Vec<SweepSeat> {
        let mut parties = parties.to_vec();
        parties.sort_by_key(|party| party.1);
        let seat = |(at, &(size, skill)): (u32, &(u8, i32))| SweepSeat {
            entry: SkillEntry::new(skill, at, at, size),
            power: u32::from(size) * (100 + (skill.unsigned_abs() * 37 + at * 101) % 997),
            window: u32::MAX,
            level_band: u32::MAX,
            regions: u32::MAX,
        };
        (0..).zip(&parties).map(seat).collect()
    }

    /// The widest spread of skill and the sum of the gaps.
    fn widest_and_gaps(
        seats: &[SweepSeat],
        sets: &Sets,
        table: &mut CompositionTable,
    ) -> (u32, u64) {
        let skill = |at: Option<&u32>| seats[*at.unwrap() as usize].entry.skill();
        let spread = |set: &[u32]| skill(set.last()).abs_diff(skill(set.first()));
        let widest = (0..sets.len()).map(|set| spread(sets.get(set))).max();
        let mut gap = |set: usize| split_of(seats, sets.get(set), table).unwrap().0.gap();
        (widest.unwrap_or(0), (0..sets.len()).map(&mut gap).sum())
    }

    /// The sets after all steps but the repair; each step is checked not to worsen the result.
    fn packed(seats: &[SweepSeat], group_size: u8) -> Sets {
        let mut sweeper = Sweeper::default();
        let sets = sweeper.sweep(seats, group_size, None);
        let mut table = CompositionTable::new(group_size);
        let aim = target_spread(seats, group_size);
        let swept = widest_and_gaps(seats, sets, &mut table);
        tighten(seats, sets, &mut table, aim);
        let tight = widest_and_gaps(seats, sets, &mut table);
        assert!(tight.0 <= 2 * swept.0.max(aim), "{tight:?} after {swept:?}");
        balance_power(seats, sets, &mut table, aim);
        let even = widest_and_gaps(seats, sets, &mut table);
        assert!(
            even.0 <= tight.0.max(aim) && even.1 <= tight.1,
            "{even:?} after {tight:?}"
        );
        sets.clone()
    }

    #[test]
    fn set_takes_the_lowest_parties_that_fit() {
        let seats = seats(&[
            (4, 0),
            (4, 1),
            (2, 2),
            (1, 3),
            (1, 4),
            (1, 5),
            (4, 6),
            (4, 7),
            (1, 8),
        ]);
        let mut sweeper = Sweeper::default();
        let sets = sweeper.sweep(&seats, 5, None);
        let all: Vec<&[u32]> = (0..sets.len()).map(|set| sets.get(set)).collect();
        assert_eq!(all, [[0, 1, 3, 4], [5, 6, 7, 8]]);
    }

    #[test]
    fn ten_ones_and_four_fours_make_two_matches() {
        let parties: Vec<(u8, i32)> = (0..14)
            .map(|at| (if at < 10 { 1 } else { 4 }, at))
            .collect();
        let seats = seats(&parties);
        let mut sets = packed(&seats, 5);
        repair(&seats, &mut sets, 5);
        assert_eq!(sets.len(), 2);
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn repaired_sets_are_valid_disjoint_and_optimal_in_number(
            ten in any::<bool>(),
            weights in prop::array::uniform5(0u32..6),
            picks in prop::collection::vec((0u32..1000, -300i32..300), 0..60),
        ) {
            let group_size = if ten { 10 } else { 5 };
            let total: u32 = weights.iter().sum();
            prop_assume!(total > 0);
            let parties: Vec<(u8, i32)> = picks.into_iter().map(|(pick, skill)| {
                let mut pick = pick % total;
                let size = weights.iter().position(|&weight| {
                    let here = pick < weight;
                    pick = pick.wrapping_sub(weight);
                    here
                });
                (size.unwrap() as u8 + 1, skill)
            }).collect();
            let seats = seats(&parties);
            let mut sets = packed(&seats, group_size);
            let check = |sets: &Sets| {
                let mut table = CompositionTable::new(group_size);
                let mut seen = vec![false; seats.len()];
                for set in 0..sets.len() {
                    let set = sets.get(set);
                    prop_assert!(set.iter().all(|&at| !std::mem::replace(&mut seen[at as usize], true)));
                    prop_assert!(table.fits(&counts(&seats, set.iter().copied()), &[0; 5]));
                }
                Ok(())
            };
            check(&sets)?;
            repair(&seats, &mut sets, group_size);
            check(&sets)?;
            let all = counts(&seats, 0..seats.len() as u32);
            prop_assume!(all.iter().all(|&count| count < 20));
            prop_assert_eq!(sets.len(), most_groups(&all, group_size) as usize / 2);
        }
    }
}
