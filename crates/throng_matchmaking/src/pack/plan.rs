//! The maximum number of groups of K that the parties of a pool can make, and their sizes.
//!
//! The integer program: as many groups as possible, each with K players in total, no more parties of a size than
//! there are. Parties of two and one need no search: with g groups of parties of three and more, whose rooms together
//! are R and of which O are odd, they fill the rooms if and only if O ≤ n₁ and R ≤ n₁ + 2·n₂. What remains is
//! the number of groups for each *core* (parties of five, four and three; 12 cores for K = 10, 4 for K = 5), found
//! depth first, fullest cores first, with bounds on what the rest can still reach.
//!
//! Exact unless the search takes more than [`STEPS_MAX`] steps, which needs hundreds of large parties and
//! hardly any small ones; then the best plan found is used. Cost: a dive of O(cores) steps if there are many single players.

use crate::queue::compositions::{Counts, player_count};

/// Steps of the search for a plan.
pub const STEPS_MAX: u32 = 50_000;

/// Groups with the same number of parties of each size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedGroups {
    /// The sizes of a group's parties.
    pub sizes: Counts,
    /// The number of such groups.
    pub groups: u32,
}

/// The parties of three and more of a group.
#[derive(Clone, Copy, Debug)]
struct GroupCore {
    fives: u32,
    fours: u32,
    threes: u32,
    /// The number of missing players.
    room: u32,
}

/// The parties that are left.
#[derive(Clone, Copy, Debug)]
struct Remainder {
    fives: u32,
    fours: u32,
    threes: u32,
    /// Single players reserved for groups whose room is odd.
    ones: u32,
    /// Players in parties of one and two.
    small: u32,
}

impl Remainder {
    fn players(&self) -> u32 {
        5 * self.fives + 4 * self.fours + 3 * self.threes + self.small
    }

    /// The maximum number of groups with a core.
    fn max_groups(&self, core: &GroupCore) -> u32 {
        let by = |has: u32, needs: u32| has.checked_div(needs).unwrap_or(u32::MAX);
        self.max_cores(core)
            .min(by(self.small, core.room))
            .min(by(self.ones, core.room % 2))
    }

    /// The maximum number of cores, whether or not their rooms can be filled.
    fn max_cores(&self, core: &GroupCore) -> u32 {
        let by = |has: u32, needs: u32| has.checked_div(needs).unwrap_or(u32::MAX);
        by(self.fives, core.fives)
            .min(by(self.fours, core.fours))
            .min(by(self.threes, core.threes))
    }

    fn without(&self, core: &GroupCore, groups: u32) -> Self {
        Self {
            fives: self.fives - groups * core.fives,
            fours: self.fours - groups * core.fours,
            threes: self.threes - groups * core.threes,
            ones: self.ones - groups * (core.room % 2),
            small: self.small - groups * core.room,
        }
    }
}

/// The cores of groups of `group_size`, fullest first, then with the rarest sizes first.
fn cores(group_size: u32) -> Vec<GroupCore> {
    let mut cores = Vec::new();
    for fives in 0..=group_size / 5 {
        for fours in 0..=(group_size - 5 * fives) / 4 {
            for threes in 0..=(group_size - 5 * fives - 4 * fours) / 3 {
                let room = group_size - 5 * fives - 4 * fours - 3 * threes;
                cores.push(GroupCore {
                    fives,
                    fours,
                    threes,
                    room,
                });
            }
        }
    }
    cores.sort_by_key(|core| (core.room, std::cmp::Reverse((core.fives, core.fours))));
    cores
}

struct PlanSearch<'a> {
    cores: &'a [GroupCore],
    group_size: u32,
    made: Vec<u32>,
    best: (u32, Vec<u32>),
    most: u32,
    steps: u32,
}

impl PlanSearch<'_> {
    /// Decides how many groups have each core from `at` on, after `groups` groups.
    fn decide(&mut self, at: usize, left: Remainder, groups: u32) {
        self.steps += 1;
        if groups > self.best.0 {
            self.best = (groups, self.made.clone());
        }
        let Some(core) = self.cores.get(at) else {
            return;
        };
        let bound = groups + self.bound(at, &left);
        if bound <= self.best.0 {
            return;
        }
        for count in (0..=left.max_groups(core)).rev() {
            if self.best.0 >= self.most.min(bound) || self.steps > STEPS_MAX {
                break;
            }
            self.made[at] = count;
            self.decide(at + 1, left.without(core, count), groups + count);
        }
        self.made[at] = 0;
    }

    /// An upper bound of the groups that can be made of the cores from `at` on, without the single players for odd rooms.
    fn bound(&self, at: usize, left: &Remainder) -> u32 {
        // As if each core had all the larger parties to itself, the smallest rooms are filled first.
        let (mut groups, mut small) = (0u32, left.small);
        for core in &self.cores[at..] {
            let by_room = small.checked_div(core.room).unwrap_or(u32::MAX);
            let most = left.max_cores(core).min(by_room);
            groups = groups.saturating_add(most);
            if most < left.max_cores(core) {
                // The rest of the small parties fills at most a part of one more.
                groups = groups.saturating_add(1);
                break;
            }
            small -= most.saturating_mul(core.room).min(small);
        }
        groups.min(left.players() / self.group_size)
    }
}

/// The largest number of groups of `group_size` that parties of these counts make. Cost as the module describes.
#[must_use]
pub fn plan(counts: &Counts, group_size: u8) -> Vec<PlannedGroups> {
    let group_size = u32::from(group_size);
    let fits = |size: u32, count: u32| if size <= group_size { count } else { 0 };
    let [ones, twos, threes, fours, fives]: [u32; 5] =
        std::array::from_fn(|at| fits(at as u32 + 1, counts[at]));
    let left = Remainder {
        fives,
        fours,
        threes,
        ones,
        small: ones.saturating_add(twos.saturating_mul(2)),
    };
    let cores = cores(group_size);
    let most = player_count(&[ones, twos, threes, fours, fives]) / u64::from(group_size.max(1));
    let mut search = PlanSearch {
        cores: &cores,
        group_size,
        made: vec![0; cores.len()],
        best: (0, vec![0; cores.len()]),
        most: u32::try_from(most).unwrap_or(u32::MAX),
        steps: 0,
    };
    search.decide(0, left, 0);
    fill(&cores, &search.best.1, ones, twos)
}

/// Fills the rooms of the cores with twos while there are any, else with ones.
fn fill(cores: &[GroupCore], made: &[u32], mut ones: u32, mut twos: u32) -> Vec<PlannedGroups> {
    let mut planned: Vec<PlannedGroups> = Vec::new();
    for (core, &groups) in cores.iter().zip(made) {
        let mut left = groups;
        while left > 0 {
            let pairs = (core.room / 2).min(twos);
            // All groups that can have this many twos are alike.
            let alike = twos.checked_div(pairs).unwrap_or(left).min(left);
            let singles = core.room - 2 * pairs;
            debug_assert!(ones >= singles * alike, "a plan fills its rooms");
            ones = ones.saturating_sub(singles * alike);
            twos -= pairs * alike;
            planned.push(PlannedGroups {
                sizes: [singles, pairs, core.threes, core.fours, core.fives],
                groups: alike,
            });
            left -= alike;
        }
    }
    planned
}

/// The number of groups of a plan.
#[must_use]
pub fn groups(planned: &[PlannedGroups]) -> u32 {
    planned.iter().map(|planned| planned.groups).sum()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::HashMap;

    use super::*;
    use proptest::prelude::*;

    /// All ways to make a group of K.
    fn makes(group_size: u32) -> Vec<Counts> {
        let mut makes = Vec::new();
        for fives in 0..=group_size / 5 {
            for fours in 0..=group_size / 4 {
                for threes in 0..=group_size / 3 {
                    for twos in 0..=group_size / 2 {
                        let held = 5 * fives + 4 * fours + 3 * threes + 2 * twos;
                        if let Some(ones) = group_size.checked_sub(held) {
                            makes.push([ones, twos, threes, fours, fives]);
                        }
                    }
                }
            }
        }
        makes
    }

    /// The optimum of the integer program, by trying every kind of group for each state of the counts.
    pub fn most_groups(counts: &Counts, group_size: u8) -> u32 {
        fn best(counts: Counts, makes: &[Counts], known: &mut HashMap<Counts, u32>) -> u32 {
            if let Some(&best) = known.get(&counts) {
                return best;
            }
            let mut most = 0;
            for make in makes {
                let left: Option<Vec<u32>> =
                    (0..5).map(|at| counts[at].checked_sub(make[at])).collect();
                if let Some(left) = left {
                    let left = std::array::from_fn(|at| left[at]);
                    most = most.max(1 + best(left, makes, known));
                }
            }
            known.insert(counts, most);
            most
        }
        best(*counts, &makes(u32::from(group_size)), &mut HashMap::new())
    }

    fn check(counts: &Counts, group_size: u8) -> Result<u32, TestCaseError> {
        let planned = plan(counts, group_size);
        let mut used = [0; 5];
        for make in &planned {
            prop_assert_eq!(player_count(&make.sizes), u64::from(group_size));
            used = std::array::from_fn(|at| used[at] + make.groups * make.sizes[at]);
        }
        prop_assert!(
            (0..5).all(|at| used[at] <= counts[at]),
            "{:?} of {:?}",
            used,
            counts
        );
        Ok(groups(&planned))
    }

    #[test]
    fn ten_ones_and_four_fours_make_four_groups_of_five() {
        assert_eq!(groups(&plan(&[10, 0, 0, 4, 0], 5)), 5);
        assert_eq!(groups(&plan(&[4, 0, 0, 4, 0], 5)), 4);
    }

    #[test]
    fn large_pools_are_planned() {
        for counts in [
            [10, 0, 0, 100_000, 0],
            [6_000, 2_000, 800, 400, 800],
            [7, 9, 50_000, 50_001, 3],
        ] {
            for k in [5, 10] {
                assert!(check(&counts, k).is_ok());
            }
        }
        assert_eq!(groups(&plan(&[10, 0, 0, 100_000, 0], 5)), 10);
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn plans_are_the_optimum_for_groups_of_five_and_ten(
            five in prop::array::uniform5(0u32..12),
            ten in prop::array::uniform5(0u32..9),
        ) {
            prop_assert_eq!(check(&five, 5)?, most_groups(&five, 5));
            prop_assert_eq!(check(&ten, 10)?, most_groups(&ten, 10));
        }

        #[test]
        fn plans_are_the_optimum_for_all_small_groups(k in 1u8..=12, counts in prop::array::uniform5(0u32..5)) {
            prop_assert_eq!(check(&counts, k)?, most_groups(&counts, k));
        }
    }
}
