//! Which two full groups meet.
//!
//! Groups are sorted and neighbours meet: by power under [`Packing::Arrival`], as in the reference design; by
//! skill under [`Packing::Windows`], where the spread of a match comes before its power gap and the split of
//! the pair's parties (`balance.rs`) evens out the power.
//!
//! Invariant: the joint spread of a pair is within the window of its longest-waiting party, and no group is in
//! two pairs. Cost: O(g log g) with g groups.

use super::mode::Packing;
use super::packing::Bucket;
use super::pool::Pool;

/// Two groups that meet, as places in the list of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The groups.
    pub groups: [u32; 2],
    /// The longest-waiting party of both.
    pub oldest: u32,
}

/// Pairs neighbouring groups into `pairs`, longest-waiting first. `order` is scratch. O(g log g).
pub fn pair_neighbours(groups: &[Bucket], pool: &Pool, packing: Packing, order: &mut Vec<u32>, pairs: &mut Vec<Pair>) {
    order.clear();
    order.extend(0..groups.len() as u32);
    let group = |at: u32| &groups[at as usize];
    match packing {
        Packing::Arrival => order.sort_unstable_by_key(|&at| (group(at).power, group(at).oldest)),
        Packing::Windows => {
            order.sort_unstable_by_key(|&at| (i64::from(group(at).low) + i64::from(group(at).high), group(at).oldest));
        }
    }
    pairs.clear();
    let mut at = 0;
    while at + 1 < order.len() {
        let (a, b) = (group(order[at]), group(order[at + 1]));
        let oldest = a.oldest.min(b.oldest);
        let spread = a.high.max(b.high).abs_diff(a.low.min(b.low));
        let meet = spread <= pool.candidate(oldest).window;
        if meet {
            pairs.push(Pair { groups: [order[at], order[at + 1]], oldest });
        }
        at += if meet { 2 } else { 1 };
    }
    pairs.sort_unstable_by_key(|pair| pair.oldest);
}

#[cfg(test)]
mod tests {
    use super::super::packing::Packer;
    use super::super::pool::tests::pool_of;
    use super::*;

    /// Single players as groups of one: (power, skill, window).
    fn pairs(parties: &[(u32, i32, u32)], packing: Packing) -> Vec<[u32; 2]> {
        let pool = pool_of(&parties.iter().map(|&(power, skill, window)| (1, power, skill, window)).collect::<Vec<_>>());
        let mut packer = Packer::default();
        let groups = packer.pack(&pool, 1, u64::MAX).to_vec();
        let (mut order, mut pairs) = (Vec::new(), Vec::new());
        pair_neighbours(&groups, &pool, packing, &mut order, &mut pairs);
        pairs.iter().map(|pair| pair.groups.map(|at| groups[at as usize].oldest)).collect()
    }

    #[test]
    fn under_arrival_the_closest_powers_meet_longest_waiting_first() {
        let open = u32::MAX;
        let parties = [(10, 0, open), (90, 0, open), (12, 0, open), (95, 0, open), (50, 0, open)];
        assert_eq!(pairs(&parties, Packing::Arrival), [[0, 2], [4, 1]]);
    }

    #[test]
    fn under_windows_neighbours_in_skill_meet_when_the_oldest_allows_it() {
        let parties = [(1, 0, 5), (1, 100, 5), (1, 3, 0), (1, 104, 200), (1, 300, 500)];
        assert_eq!(pairs(&parties, Packing::Windows), [[0, 2], [1, 3]]);
        assert_eq!(pairs(&[(1, 0, 4), (1, 5, 500)], Packing::Windows), [[0; 2]; 0]);
    }
}
