//! Which two full groups meet.
//!
//! ```text
//! groups by skill ──▶ bands: neighbours in skill, any two of which may meet ──▶ by power, neighbours meet
//!                                                       └▶ who is left of each band: neighbours in skill meet
//! ```
//! Within a band the power decides, so that rigid groups (one party of K) meet their like; across bands the
//! skill, so that the spread of a match stays near the least. Under [`Packing::Arrival`] all skills are equal
//! and one band holds everybody: groups sorted by power, as in the reference design.
//!
//! Invariant: the joint spread of a pair is within the window of its longest-waiting party, and no group is in
//! two pairs. Cost: O(g log g) with g groups.

use super::mode::Packing;
use super::packing::Bucket;
use super::pool::Pool;

/// Groups in a band under [`Packing::Windows`]: more narrow the power gap and widen the spread.
const BAND_GROUPS: usize = 16;

/// Two groups that meet, as places in the list of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The groups.
    pub groups: [u32; 2],
    /// The longest-waiting party of both.
    pub oldest: u32,
}

/// Pairs groups; keeps its buffers.
#[derive(Clone, Debug, Default)]
pub struct Pairer {
    order: Vec<u32>,
    rest: Vec<u32>,
    pairs: Vec<Pair>,
}

impl Pairer {
    /// Pairs groups and returns the pairs, longest-waiting first. O(g log g).
    pub fn pair(&mut self, groups: &[Bucket], pool: &Pool, packing: Packing) -> &[Pair] {
        let group = |at: u32| &groups[at as usize];
        let pair = |a: u32, b: u32| Pair {
            groups: [a, b],
            oldest: group(a).oldest.min(group(b).oldest),
        };
        let band_groups = match packing {
            Packing::Arrival => usize::MAX,
            Packing::Windows => BAND_GROUPS,
        };
        self.order.clear();
        self.order.extend(0..groups.len() as u32);
        let middle = |group: &Bucket| i64::from(group.low) + i64::from(group.high);
        self.order
            .sort_unstable_by_key(|&at| (middle(group(at)), group(at).oldest));
        self.pairs.clear();
        self.rest.clear();
        let mut start = 0;
        while start < self.order.len() {
            let end = start + band_length(&self.order[start..], groups, pool, band_groups);
            let band = &mut self.order[start..end];
            band.sort_unstable_by_key(|&at| (group(at).power, group(at).oldest));
            let (two, odd) = band.as_chunks::<2>();
            self.pairs.extend(two.iter().map(|&[a, b]| pair(a, b)));
            self.rest.extend(odd);
            start = end;
        }
        let mut at = 0;
        while at + 1 < self.rest.len() {
            let (a, b) = (self.rest[at], self.rest[at + 1]);
            let spread = group(a)
                .high
                .max(group(b).high)
                .abs_diff(group(a).low.min(group(b).low));
            let meet = spread <= pool.candidate(pair(a, b).oldest).window;
            if meet {
                self.pairs.push(pair(a, b));
            }
            at += if meet { 2 } else { 1 };
        }
        self.pairs.sort_unstable_by_key(|pair| pair.oldest);
        &self.pairs
    }

    /// The pairs made last, longest-waiting first.
    #[must_use]
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }
}

/// How many groups from the first of `order` on lie within the narrowest window of theirs, at most `band_groups`.
fn band_length(order: &[u32], groups: &[Bucket], pool: &Pool, band_groups: usize) -> usize {
    let (mut low, mut high, mut window) = (i32::MAX, i32::MIN, u32::MAX);
    let within = order.iter().take(band_groups).take_while(|&&at| {
        let group = &groups[at as usize];
        (low, high) = (low.min(group.low), high.max(group.high));
        window = window.min(pool.candidate(group.oldest).window);
        high.abs_diff(low) <= window
    });
    // A group by itself is within its window, so that every band has at least one.
    within.count().max(1)
}

#[cfg(test)]
mod tests {
    use super::super::packing::Packer;
    use super::super::pool::tests::pool_of;
    use super::*;
    use proptest::prelude::*;

    /// Single players as groups of one: (power, skill, window).
    fn pairs(parties: &[(u32, i32, u32)], packing: Packing) -> Vec<[u32; 2]> {
        let pool = pool_of(
            &parties
                .iter()
                .map(|&(power, skill, window)| (1, power, skill, window))
                .collect::<Vec<_>>(),
        );
        let mut packer = Packer::default();
        let groups = packer.pack(&pool, 1, u64::MAX).to_vec();
        let mut pairer = Pairer::default();
        let pairs = pairer.pair(&groups, &pool, packing);
        pairs
            .iter()
            .map(|pair| pair.groups.map(|at| groups[at as usize].oldest))
            .collect()
    }

    #[test]
    fn under_arrival_the_closest_powers_meet_longest_waiting_first() {
        let open = u32::MAX;
        let parties = [
            (10, 0, open),
            (90, 0, open),
            (12, 0, open),
            (95, 0, open),
            (50, 0, open),
        ];
        assert_eq!(pairs(&parties, Packing::Arrival), [[0, 2], [4, 1]]);
    }

    #[test]
    fn under_windows_neighbours_in_skill_meet_when_the_oldest_allows_it() {
        let parties = [
            (1, 0, 5),
            (1, 100, 5),
            (1, 3, 0),
            (1, 104, 200),
            (1, 300, 500),
        ];
        assert_eq!(pairs(&parties, Packing::Windows), [[0, 2], [1, 3]]);
        assert_eq!(
            pairs(&[(1, 0, 4), (1, 5, 500)], Packing::Windows),
            [[0; 2]; 0]
        );
    }

    #[test]
    fn within_a_window_the_closest_powers_meet() {
        let parties = [(10, 0, 50), (90, 1, 50), (12, 2, 50), (95, 3, 50)];
        assert_eq!(pairs(&parties, Packing::Windows), [[0, 2], [1, 3]]);
    }

    proptest! {
        #[test]
        fn pairs_share_no_group_and_stay_within_the_window_of_their_oldest(
            parties in prop::collection::vec((0u32..100, -60i32..60, 0u32..80), 0..60),
            packing in prop::sample::select(vec![Packing::Arrival, Packing::Windows]),
        ) {
            // Under arrival the pool holds equal skills and open windows.
            let arrival = packing == Packing::Arrival;
            let seen_as = |p: (u32, i32, u32)| if arrival { (p.0, 0, u32::MAX) } else { p };
            let parties: Vec<_> = parties.into_iter().map(seen_as).collect();
            let pairs = pairs(&parties, packing);
            let mut met: Vec<u32> = pairs.iter().flatten().copied().collect();
            for &[a, b] in &pairs {
                let (a, b) = (a.min(b) as usize, a.max(b) as usize);
                prop_assert!(parties[a].1.abs_diff(parties[b].1) <= parties[a].2);
            }
            if arrival {
                prop_assert_eq!(pairs.len(), parties.len() / 2);
            }
            prop_assert!(pairs.is_sorted_by_key(|pair| pair.iter().min().copied()));
            met.sort_unstable();
            prop_assert!(met.is_sorted_by(|a, b| a < b));
        }
    }
}
