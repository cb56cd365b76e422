//! The reference design's packing: parties in the order of arrival, whatever their skill.
//!
//! ```text
//! parties by age ──▶ the open bucket with the least sufficient room, else a new one ──▶ full groups of K
//!                ──▶ groups sorted by power, neighbours play each other
//! ```
//! Open buckets are stored by remaining room, with one bit per room, so that finding one is O(1) and the pass is O(n).
//! This is [`Packing::Arrival`](crate::mode::Packing), the reference for the benches.

use throng_core::memory::MemoryUse;

/// No party.
const NONE: u32 = u32::MAX;

/// A bucket of parties; a group once its room is 0.
#[derive(Clone, Copy, Debug)]
struct ArrivalBucket {
    room: u8,
    power: u64,
    /// Its latest party; the chain leads to the others.
    latest: u32,
}

/// The buckets of a pass; reuses its buffers.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct ArrivalPacker {
    buckets: Vec<ArrivalBucket>,
    chain: Vec<u32>,
    #[memory(each)]
    open: Vec<Vec<u32>>,
    full: Vec<ArrivalBucket>,
}

impl ArrivalPacker {
    /// Packs parties of (size, power), each no larger than `group_size`, and returns the number of pairs of groups.
    /// O(n + g log g) with g groups.
    pub fn pack(&mut self, parties: impl Iterator<Item = (u8, u32)>, group_size: u8) -> usize {
        self.buckets.clear();
        self.full.clear();
        self.chain.clear();
        self.open.iter_mut().for_each(Vec::clear);
        self.open.resize(usize::from(group_size) + 1, Vec::new());
        // Bit r: a bucket with room r is open.
        let mut rooms = 0u64;
        for (id, (size, power)) in (0u32..).zip(parties) {
            let enough = rooms & (u64::MAX << size);
            let found = self.open.get_mut(enough.trailing_zeros() as usize);
            let at = found.and_then(Vec::pop).unwrap_or_else(|| {
                let (room, power) = (group_size, 0);
                self.buckets.push(ArrivalBucket {
                    room,
                    power,
                    latest: NONE,
                });
                self.buckets.len() as u32 - 1
            });
            let bucket = &mut self.buckets[at as usize];
            if self.open[usize::from(bucket.room)].is_empty() {
                rooms &= !(1 << bucket.room);
            }
            bucket.room -= size;
            bucket.power += u64::from(power);
            self.chain.push(std::mem::replace(&mut bucket.latest, id));
            if bucket.room == 0 {
                self.full.push(*bucket);
            } else {
                self.open[usize::from(bucket.room)].push(at);
                rooms |= 1 << bucket.room;
            }
        }
        self.full
            .sort_unstable_by_key(|group| (group.power, group.latest));
        self.full.len() / 2
    }

    /// The parties of a pair of groups, as indices in the order of arrival.
    pub fn pair_parties(&self, pair: usize) -> impl Iterator<Item = u32> {
        let before = |&id: &u32| {
            let before = self.chain.get(id as usize).copied();
            before.filter(|&id| id != NONE)
        };
        self.full[2 * pair..2 * pair + 2]
            .iter()
            .flat_map(move |group| std::iter::successors(Some(group.latest), before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parties_fill_the_fullest_bucket_and_close_powers_pair() {
        let sizes = [3, 4, 2, 1, 5, 1, 5];
        let powers = [30, 10, 10, 10, 21, 10, 90];
        let mut arrival = ArrivalPacker::default();
        assert_eq!(arrival.pack(sizes.into_iter().zip(powers), 5), 2);
        // 4 + 1 of power 20 play 5 of 21; 3 + 2 of 40 play 5 of 90; a single player is left over.
        let pairs = [0, 1].map(|pair| arrival.pair_parties(pair).collect::<Vec<_>>());
        assert_eq!(pairs, [vec![3, 1, 4], vec![2, 0, 6]]);
    }
}
