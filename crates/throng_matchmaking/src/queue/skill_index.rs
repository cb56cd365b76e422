//! The waiting parties in order of skill, updated with each request.
//!
//! ```text
//! directory   [first key | counts by size]  [first key | counts by size]  …
//!                    │                             │
//! bucket      ≤ 256 parties, sorted         ≤ 256 parties, sorted
//! ```
//! Invariants: positions ascend through all buckets; no bucket is empty. A bucket that loses a party is merged with the
//! one above when both together fill half a bucket at most. The order is (skill, number of the party, slot), so that
//! equal skills are ordered by party; the slot decides between a real and a synthetic party with the same number.
//!
//! Cost: an insertion or removal takes two binary searches and a move of at most 4 kB, plus, about once in a
//! hundred times, a split or merge of buckets; the step to a neighbour is O(1). Tried: one sort per heartbeat,
//! which costs 100 ms at a million parties.

use throng_core::memory::MemoryUse;

use super::compositions::Counts;

/// The maximum number of parties in a bucket.
const BUCKET_MAX: usize = 256;

/// A waiting party in the order of skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkillEntry {
    key: u64,
    /// Its slot in the queue.
    pub slot: u32,
    /// Players, 1–5.
    pub size: u8,
    /// Whether its ticket has preferences, so that other tickets need no lookup.
    pub has_preferences: bool,
    /// Its level.
    pub level: u16,
}

impl SkillEntry {
    /// Creates an entry of this skill, without preferences and of level 0. O(1).
    #[must_use]
    pub const fn new(skill: i32, party: u32, slot: u32, size: u8) -> Self {
        Self {
            key: key(skill, party),
            slot,
            size,
            has_preferences: false,
            level: 0,
        }
    }

    /// Its skill.
    #[must_use]
    pub const fn skill(&self) -> i32 {
        ((self.key >> 32) as u32 ^ 0x8000_0000) as i32
    }

    /// The number of its party, which orders equal skills.
    #[must_use]
    pub const fn party(&self) -> u32 {
        self.key as u32
    }

    /// Its key in the order; unique, since a slot is taken once.
    const fn order(&self) -> (u64, u32) {
        (self.key, self.slot)
    }
}

/// With the sign bit flipped, a signed skill sorts as an unsigned number.
const fn key(skill: i32, party: u32) -> u64 {
    ((skill as u32 ^ 0x8000_0000) as u64) << 32 | party as u64
}

const _: () = assert!(size_of::<SkillEntry>() == 16);

#[derive(Clone, Debug, MemoryUse)]
struct SkillBucket {
    entries: Vec<SkillEntry>,
    counts: Counts,
}

impl SkillBucket {
    fn of(entries: Vec<SkillEntry>) -> Self {
        let mut counts = [0; 5];
        for entry in &entries {
            counts[usize::from(entry.size) - 1] += 1;
        }
        Self { entries, counts }
    }

    fn contains_size(&self, wanted: [bool; 5]) -> bool {
        let sizes = self.counts.iter().zip(wanted);
        sizes
            .into_iter()
            .any(|(&count, wanted)| wanted && count > 0)
    }

    fn first(&self) -> (u64, u32) {
        let first = self.entries.first();
        first.map_or((u64::MAX, u32::MAX), SkillEntry::order)
    }
}

/// The waiting parties by skill.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct SkillIndex {
    /// The first key of each bucket in a separate array: the search for a bucket reads nothing else.
    firsts: Vec<(u64, u32)>,
    #[memory(each)]
    buckets: Vec<SkillBucket>,
    counts: Counts,
}

/// The position of a party in the order; valid until a party is inserted or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SkillPosition {
    bucket: usize,
    at: usize,
}

impl SkillIndex {
    /// The number of waiting parties of each size. O(1).
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// All parties, lowest skill first.
    pub fn iter(&self) -> impl Iterator<Item = SkillEntry> {
        self.buckets
            .iter()
            .flat_map(|bucket| bucket.entries.iter().copied())
    }

    /// Inserts an entry, whose slot is set; its key must be new.
    pub fn insert(&mut self, entry: SkillEntry) {
        self.counts[usize::from(entry.size) - 1] += 1;
        // A key before the first bucket goes into the first one.
        let at = self.bucket_of(entry.order());
        let Some(bucket) = self.buckets.get_mut(at) else {
            self.firsts.push(entry.order());
            self.buckets.push(SkillBucket::of(vec![entry]));
            return;
        };
        let within = bucket
            .entries
            .partition_point(|known| known.order() < entry.order());
        bucket.entries.insert(within, entry);
        self.firsts[at] = bucket.first();
        bucket.counts[usize::from(entry.size) - 1] += 1;
        if bucket.entries.len() > BUCKET_MAX {
            let upper = SkillBucket::of(bucket.entries.split_off(BUCKET_MAX / 2));
            let mut lower = Vec::with_capacity(BUCKET_MAX + 1);
            lower.append(&mut bucket.entries);
            *bucket = SkillBucket::of(lower);
            self.firsts.insert(at + 1, upper.first());
            self.buckets.insert(at + 1, upper);
        }
    }

    /// Removes an entry; returns whether it was there.
    pub fn remove(&mut self, entry: &SkillEntry) -> bool {
        let Some(place) = self.find(entry) else {
            return false;
        };
        let bucket = &mut self.buckets[place.bucket];
        bucket.entries.remove(place.at);
        bucket.counts[usize::from(entry.size) - 1] -= 1;
        self.counts[usize::from(entry.size) - 1] -= 1;
        let held = bucket.entries.len();
        self.firsts[place.bucket] = bucket.first();
        let after = self.buckets.get(place.bucket + 1);
        if held == 0 {
            self.firsts.remove(place.bucket);
            self.buckets.remove(place.bucket);
        } else if after.is_some_and(|after| held + after.entries.len() <= BUCKET_MAX / 2) {
            self.firsts.remove(place.bucket + 1);
            let after = self.buckets.remove(place.bucket + 1);
            let bucket = &mut self.buckets[place.bucket];
            bucket.entries.extend(after.entries);
            bucket.counts = std::array::from_fn(|size| bucket.counts[size] + after.counts[size]);
        }
        true
    }

    /// The position of a party.
    #[must_use]
    pub fn find(&self, entry: &SkillEntry) -> Option<SkillPosition> {
        let bucket = self.bucket_of(entry.order());
        let entries = &self.buckets.get(bucket)?.entries;
        let at = entries.binary_search_by_key(&entry.order(), SkillEntry::order);
        at.ok().map(|at| SkillPosition { bucket, at })
    }

    /// The party at a position.
    #[must_use]
    pub fn at(&self, place: SkillPosition) -> SkillEntry {
        self.buckets[place.bucket].entries[place.at]
    }

    /// The next higher position. O(1).
    #[must_use]
    pub fn next(&self, place: SkillPosition) -> Option<SkillPosition> {
        let SkillPosition { bucket, at } = place;
        if at + 1 < self.buckets.get(bucket)?.entries.len() {
            return Some(SkillPosition { bucket, at: at + 1 });
        }
        let bucket = bucket + 1;
        (bucket < self.buckets.len()).then_some(SkillPosition { bucket, at: 0 })
    }

    /// The next lower position. O(1).
    #[must_use]
    pub fn previous(&self, place: SkillPosition) -> Option<SkillPosition> {
        let SkillPosition { bucket, at } = place;
        if let Some(at) = at.checked_sub(1) {
            return Some(SkillPosition { bucket, at });
        }
        let bucket = bucket.checked_sub(1)?;
        let at = self.buckets[bucket].entries.len() - 1;
        Some(SkillPosition { bucket, at })
    }

    /// The highest position below a skill, and the lowest at or above it. O(log n).
    #[must_use]
    pub fn around(&self, skill: i32) -> (Option<SkillPosition>, Option<SkillPosition>) {
        let from = (key(skill, 0), 0);
        let bucket = self.bucket_of(from);
        let Some(found) = self.buckets.get(bucket) else {
            return (None, None);
        };
        let at = found.entries.partition_point(|entry| entry.order() < from);
        if let Some(below) = at.checked_sub(1) {
            let below = SkillPosition { bucket, at: below };
            return (Some(below), self.next(below));
        }
        let above = SkillPosition { bucket, at };
        (self.previous(above), Some(above))
    }

    /// The next higher position, skipping buckets without parties of a `wanted` size. O(buckets skipped).
    #[must_use]
    pub fn next_of_size(&self, place: SkillPosition, wanted: [bool; 5]) -> Option<SkillPosition> {
        let mut next = self.next(place)?;
        while next.at == 0 && !self.buckets[next.bucket].contains_size(wanted) {
            let bucket = next.bucket + 1;
            self.buckets.get(bucket)?;
            next = SkillPosition { bucket, at: 0 };
        }
        Some(next)
    }

    /// The next lower position, skipping buckets without parties of a `wanted` size. O(buckets skipped).
    #[must_use]
    pub fn previous_of_size(
        &self,
        place: SkillPosition,
        wanted: [bool; 5],
    ) -> Option<SkillPosition> {
        let mut previous = self.previous(place)?;
        while previous.bucket != place.bucket
            && !self.buckets[previous.bucket].contains_size(wanted)
        {
            let at = 0;
            previous = self.previous(SkillPosition { at, ..previous })?;
        }
        Some(previous)
    }

    /// The number of parties of each size whose skill is at most `radius` away from `skill`. O(buckets between).
    #[must_use]
    pub fn counts_within(&self, skill: i32, radius: u32) -> Counts {
        let low = i64::from(skill) - i64::from(radius);
        let high = i64::from(skill) + i64::from(radius);
        let clamp = |skill: i64| skill.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
        let (from, upto) = (
            (key(clamp(low), 0), 0),
            (key(clamp(high), u32::MAX), u32::MAX),
        );
        let mut counts: Counts = [0; 5];
        let first = self.bucket_of(from);
        for (at, bucket) in self.buckets.iter().enumerate().skip(first) {
            if self.firsts[at] > upto {
                break;
            }
            let whole = at > first && self.firsts.get(at + 1).is_some_and(|&next| next <= upto);
            if whole {
                counts = std::array::from_fn(|size| counts[size] + bucket.counts[size]);
                continue;
            }
            let start = bucket.entries.partition_point(|entry| entry.order() < from);
            let end = bucket
                .entries
                .partition_point(|entry| entry.order() <= upto);
            for entry in &bucket.entries[start.min(end)..end] {
                counts[usize::from(entry.size) - 1] += 1;
            }
        }
        counts
    }

    /// The bucket that has or would have a key.
    fn bucket_of(&self, order: (u64, u32)) -> usize {
        let after = self.firsts.partition_point(|&first| first <= order);
        after.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn skills_of_both_signs_are_kept_and_ordered() {
        let mut order = SkillIndex::default();
        for (party, skill) in (0..).zip([5, i32::MIN, i32::MAX, -5]) {
            order.insert(SkillEntry::new(skill, party, 0, 1));
        }
        let skills: Vec<i32> = order.iter().map(|entry| entry.skill()).collect();
        assert_eq!(skills, [i32::MIN, -5, 5, i32::MAX]);
        assert_eq!(order.counts_within(i32::MIN, u32::MAX), [4, 0, 0, 0, 0]);
        assert_eq!(order.counts_within(0, 5), [2, 0, 0, 0, 0]);
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn skill_order_matches_a_sorted_vector(
            script in prop::collection::vec((-40i32..40, 1u8..=5, 0usize..3, any::<prop::sample::Index>()), 0..1500),
            around in (-50i32..50, 0u32..60),
        ) {
            let (mut order, mut model) = (SkillIndex::default(), Vec::<SkillEntry>::new());
            // Every number occurs twice, for a real and a synthetic party.
            for (slot, (skill, size, keep, pick)) in (0u32..).zip(script) {
                if keep > 0 || model.is_empty() {
                    let entry = SkillEntry::new(skill, slot / 2, slot, size);
                    order.insert(entry);
                    model.insert(model.partition_point(|known| known.order() < entry.order()), entry);
                } else {
                    let gone = model.remove(pick.index(model.len()));
                    prop_assert!(order.remove(&gone));
                    prop_assert!(!order.remove(&gone));
                }
            }
            prop_assert_eq!(order.iter().collect::<Vec<_>>(), model.clone());
            let places = std::iter::successors(model.first().and_then(|first| order.find(first)), |&at| order.next(at));
            let places: Vec<SkillPosition> = places.collect();
            prop_assert_eq!(places.iter().map(|&at| order.at(at)).collect::<Vec<_>>(), model.clone());
            for pair in places.windows(2) {
                prop_assert_eq!(order.previous(pair[1]), Some(pair[0]));
            }
            let within = |entry: &&SkillEntry| entry.skill().abs_diff(around.0) <= around.1;
            let mut counts = [0; 5];
            model.iter().filter(within).for_each(|entry| counts[usize::from(entry.size) - 1] += 1);
            prop_assert_eq!(order.counts_within(around.0, around.1), counts);
        }
    }
}
