//! Packing parties into groups of K in one pass.
//!
//! ```text
//! parties by skill ──▶ the open bucket with the least room that suffices ──▶ full groups
//!                      else a new bucket
//! ```
//! Open buckets are kept by room left, with a bit a room, so that finding one is O(1) and the pass is O(n).
//! A party joins only when the bucket's skill spread stays within the window of its longest-waiting party and
//! the bucket was opened not long ago in the order of skill; a bucket that has fallen behind is closed as it
//! is, and its parties are left over. Buckets are plain chains through the parties: no allocation once warm.
//!
//! Under [`Packing::Arrival`](super::mode::Packing) all skills are equal, so that the order is that of arrival
//! and nothing falls behind.

use super::pool::Pool;

/// No party.
const NONE: u32 = u32::MAX;

/// A bucket of parties; a group once its room is 0.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    /// Players still missing.
    pub room: u8,
    /// The lowest skill in it.
    pub low: i32,
    /// The highest skill in it.
    pub high: i32,
    /// The longest-waiting party in it.
    pub oldest: u32,
    /// The power of all its parties.
    pub power: u64,
    /// It takes parties until this many players have passed.
    open_until: u64,
    /// Its latest party; the chain leads to the others.
    latest: u32,
}

/// The buckets of a pass.
#[derive(Clone, Debug, Default)]
pub struct Packer {
    buckets: Vec<Bucket>,
    chain: Vec<u32>,
    open: Vec<Vec<u32>>,
    full: Vec<Bucket>,
}

impl Packer {
    /// Packs all parties not taken into groups of `group_size` and returns the full ones, in the order in which
    /// they became full. A bucket takes parties until `reach_players` have passed since it was opened. O(n).
    pub fn pack(&mut self, pool: &Pool, group_size: u8, reach_players: u64) -> &[Bucket] {
        self.buckets.clear();
        self.full.clear();
        self.chain.clear();
        self.chain.resize(pool.candidates().len(), NONE);
        self.open.iter_mut().for_each(Vec::clear);
        self.open.resize(usize::from(group_size) + 1, Vec::new());
        // Bit r: a bucket with room r is open.
        let mut rooms = 0u64;
        let mut passed = 0;
        let mut place = pool.next(pool.end());
        while place != pool.end() {
            let id = pool.at(place);
            let bucket = self
                .bucket_for(pool, id, passed, &mut rooms)
                .unwrap_or_else(|| {
                    let skill = pool.candidate(id).skill;
                    let room = group_size;
                    self.buckets.push(Bucket {
                        room,
                        low: skill,
                        high: skill,
                        oldest: id,
                        power: 0,
                        open_until: passed.saturating_add(reach_players),
                        latest: NONE,
                    });
                    self.buckets.len() as u32 - 1
                });
            self.join(pool, id, bucket, &mut rooms);
            passed += u64::from(pool.candidate(id).size);
            place = pool.next(place);
        }
        &self.full
    }

    /// The full groups of the latest pass, in the order in which they became full.
    #[must_use]
    pub fn full(&self) -> &[Bucket] {
        &self.full
    }

    /// The parties of a group, latest joined first.
    pub fn members(&self, group: &Bucket) -> impl Iterator<Item = u32> {
        let before = |&id: &u32| {
            self.chain
                .get(id as usize)
                .copied()
                .filter(|&id| id != NONE)
        };
        std::iter::successors(Some(group.latest), before)
    }

    /// Takes out the open bucket that a party should join: that with the least room, and of those the one that
    /// was touched last, so that its skills are near.
    fn bucket_for(&mut self, pool: &Pool, id: u32, passed: u64, rooms: &mut u64) -> Option<u32> {
        let party = pool.candidate(id);
        loop {
            let enough = *rooms & (u64::MAX << party.size);
            if enough == 0 {
                return None;
            }
            let room = enough.trailing_zeros() as usize;
            let bucket = self.open[room].pop()?;
            let Bucket {
                low,
                oldest,
                open_until,
                ..
            } = self.buckets[bucket as usize];
            let window = pool.candidate(oldest.min(id)).window;
            let fits = passed <= open_until && party.skill.abs_diff(low) <= window;
            if !fits {
                // Those below it in the stack were touched earlier still. Each is dropped once, so this stays
                // linear over the pass.
                self.open[room].clear();
            }
            if self.open[room].is_empty() {
                *rooms &= !(1 << room);
            }
            if fits {
                return Some(bucket);
            }
        }
    }

    fn join(&mut self, pool: &Pool, id: u32, at: u32, rooms: &mut u64) {
        let party = pool.candidate(id);
        let bucket = &mut self.buckets[at as usize];
        bucket.room -= party.size;
        bucket.high = party.skill;
        bucket.oldest = bucket.oldest.min(id);
        bucket.power += u64::from(party.power);
        self.chain[id as usize] = std::mem::replace(&mut bucket.latest, id);
        if bucket.room == 0 {
            self.full.push(*bucket);
        } else {
            self.open[usize::from(bucket.room)].push(at);
            *rooms |= 1 << bucket.room;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pool::tests::pool_of;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parties_in_arrival_order_fill_buckets_with_room() {
        let pool = pool_of(&[3, 4, 2, 1, 5, 1].map(|size| (size, 10, 0, u32::MAX)));
        let mut packer = Packer::default();
        let groups = packer.pack(&pool, 5, u64::MAX).to_vec();
        let members: Vec<Vec<u32>> = groups
            .iter()
            .map(|group| packer.members(group).collect())
            .collect();
        assert_eq!(members, [vec![2, 0], vec![3, 1], vec![4]]);
    }

    #[test]
    fn a_bucket_that_has_fallen_behind_is_closed() {
        let pool = pool_of(&[(1, 0, 0, 9), (1, 0, 10, 9), (1, 0, 11, 9)]);
        let mut packer = Packer::default();
        let groups = packer.pack(&pool, 2, u64::MAX).to_vec();
        assert_eq!(groups.len(), 1);
        assert_eq!(
            (groups[0].low, groups[0].high, groups[0].oldest),
            (10, 11, 1)
        );
    }

    #[test]
    fn the_window_is_that_of_the_longest_waiting_party() {
        let pool = pool_of(&[(1, 0, 10, 10), (1, 0, 0, 0)]);
        let mut packer = Packer::default();
        assert_eq!(packer.pack(&pool, 2, u64::MAX).len(), 1);
    }

    proptest! {
        #[test]
        fn groups_are_full_within_their_window_and_share_no_party(
            group_size in 1u8..=12,
            parties in prop::collection::vec((1u8..=5, 0u32..100, -60i32..60, 0u32..80), 0..120),
            reach in prop::sample::select(vec![0u64, 5, 40, 1 << 40]),
        ) {
            let parties: Vec<_> = parties.into_iter().filter(|party| party.0 <= group_size).collect();
            let pool = pool_of(&parties);
            let mut packer = Packer::default();
            let groups = packer.pack(&pool, group_size, reach).to_vec();
            let mut seen = vec![false; parties.len()];
            for group in &groups {
                let ids: Vec<u32> = packer.members(group).collect();
                for &id in &ids {
                    prop_assert!(!std::mem::replace(&mut seen[id as usize], true));
                }
                let of = |id: &u32| parties[*id as usize];
                prop_assert_eq!(ids.iter().map(|id| of(id).0).sum::<u8>(), group_size);
                prop_assert_eq!(ids.iter().map(|id| u64::from(of(id).1)).sum::<u64>(), group.power);
                prop_assert_eq!(ids.iter().min(), Some(&group.oldest));
                prop_assert_eq!(ids.iter().map(|id| of(id).2).min(), Some(group.low));
                prop_assert_eq!(ids.iter().map(|id| of(id).2).max(), Some(group.high));
                prop_assert!(group.high.abs_diff(group.low) <= of(&group.oldest).3);
            }
        }
    }
}
