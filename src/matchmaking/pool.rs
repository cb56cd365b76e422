//! What a heartbeat looks at: the waiting parties as plain numbers, by age and by skill.
//!
//! A party's *id* in a pool is its rank by age: 0 has waited longest. Every tie goes to the lower id, so no
//! decision depends on where a ticket lies in memory. Its *place* is its rank by skill; the places of parties
//! not yet taken form a ring through [`END`](Pool::end), so that neighbours are found in O(1).
//!
//! Cost: a sort a heartbeat, O(n log n) with n parties, and buffers that are kept.

use super::compositions::Counts;
use super::mode::{ModeRules, Packing};
use super::queue::Queue;

/// A waiting party, as the algorithms see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its slot in the queue.
    pub slot: u32,
    /// Players, 1–5.
    pub size: u8,
    /// Power of all its players.
    pub power: u32,
    /// What the window is measured on: the skill, or 0 for all under [`Packing::Arrival`].
    pub skill: i32,
    /// The largest spread of a match in which it is the oldest.
    pub window: u32,
    /// The largest power gap of a match in which it is the oldest.
    pub power_gap: u32,
}

/// The parties that wait, by age and by skill.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    candidates: Vec<Candidate>,
    by_skill: Vec<u32>,
    sort_keys: Vec<u64>,
    place: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    taken: Vec<bool>,
    counts: Counts,
    overdue: usize,
}

impl Pool {
    /// Fills the pool with all that wait in a queue at `now_tick`. O(n log n).
    pub fn fill(&mut self, queue: &Queue, rules: &ModeRules, now_tick: u64) {
        self.candidates.clear();
        self.overdue = 0;
        for (slot, ticket) in queue.iter() {
            let waited = ticket.waited_ticks(now_tick);
            self.overdue += usize::from(waited >= rules.open_after_ticks);
            self.candidates.push(Candidate {
                slot,
                size: ticket.size,
                power: ticket.power,
                skill: if rules.packing == Packing::Arrival {
                    0
                } else {
                    ticket.skill
                },
                window: rules.window_at(waited),
                power_gap: rules.power_gap_at(waited),
            });
        }
        self.link();
    }

    /// Sorts the candidates by skill and puts all of them into the ring.
    fn link(&mut self) {
        let n = self.candidates.len() as u32;
        // The sign bit flipped, a signed skill sorts as an unsigned number; ids break ties.
        let sortable = |skill: i32| u64::from(skill as u32 ^ 0x8000_0000);
        self.sort_keys.clear();
        self.sort_keys.extend(
            (0u64..)
                .zip(&self.candidates)
                .map(|(id, c)| sortable(c.skill) << 32 | id),
        );
        self.sort_keys.sort_unstable();
        self.by_skill.clear();
        self.by_skill
            .extend(self.sort_keys.iter().map(|&key| key as u32));
        self.place.clear();
        self.place.resize(n as usize, 0);
        for (place, &id) in (0u32..).zip(&self.by_skill) {
            self.place[id as usize] = place;
        }
        self.next.clear();
        self.next.extend((0..n).map(|place| place + 1).chain([0]));
        self.previous.clear();
        self.previous.extend([n].into_iter().chain(0..n));
        self.taken.clear();
        self.taken.resize(n as usize, false);
        self.counts = [0; 5];
        for candidate in &self.candidates {
            self.counts[usize::from(candidate.size) - 1] += 1;
        }
    }

    /// All parties, taken or not, by id.
    #[must_use]
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// How many parties wait beyond `open_after`: the ids below this number.
    #[must_use]
    pub const fn overdue(&self) -> usize {
        self.overdue
    }

    /// How many parties of each size are not taken.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The party with this id.
    #[must_use]
    pub fn candidate(&self, id: u32) -> &Candidate {
        &self.candidates[id as usize]
    }

    /// Whether a party has been taken.
    #[must_use]
    pub fn is_taken(&self, id: u32) -> bool {
        self.taken[id as usize]
    }

    /// Takes a party out of the ring. O(1).
    pub fn take(&mut self, id: u32) {
        debug_assert!(!self.is_taken(id), "a party is taken once");
        self.taken[id as usize] = true;
        self.counts[usize::from(self.candidate(id).size) - 1] -= 1;
        let place = self.place(id) as usize;
        let (previous, next) = (self.previous[place], self.next[place]);
        self.next[previous as usize] = next;
        self.previous[next as usize] = previous;
    }

    /// The place that is none: before the first and behind the last.
    #[must_use]
    pub fn end(&self) -> u32 {
        self.candidates.len() as u32
    }

    /// A party's place by skill.
    #[must_use]
    pub fn place(&self, id: u32) -> u32 {
        self.place[id as usize]
    }

    /// The party at a place other than [`end`](Self::end).
    #[must_use]
    pub fn at(&self, place: u32) -> u32 {
        self.by_skill[place as usize]
    }

    /// The next place upwards that is not taken, or [`end`](Self::end); behind the end, the first.
    #[must_use]
    pub fn next(&self, place: u32) -> u32 {
        self.next[place as usize]
    }

    /// The next place downwards that is not taken, or [`end`](Self::end); before the end, the last.
    #[must_use]
    pub fn previous(&self, place: u32) -> u32 {
        self.previous[place as usize]
    }

    /// The places, taken or not, whose skill is at most `radius` away from `skill`, as a half-open range.
    /// O(log n).
    #[must_use]
    pub fn places_within(&self, skill: i32, radius: u32) -> (u32, u32) {
        let skill_at = |id: &u32| i64::from(self.candidate(*id).skill);
        let (skill, radius) = (i64::from(skill), i64::from(radius));
        let low = self
            .by_skill
            .partition_point(|id| skill_at(id) < skill - radius);
        let high = self
            .by_skill
            .partition_point(|id| skill_at(id) <= skill + radius);
        (low as u32, high as u32)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A pool of candidates given as (size, power, skill, window), oldest first, without a gap limit.
    pub fn pool_of(parties: &[(u8, u32, i32, u32)]) -> Pool {
        let candidates = (0u32..)
            .zip(parties)
            .map(|(slot, &(size, power, skill, window))| Candidate {
                slot,
                size,
                power,
                skill,
                window,
                power_gap: u32::MAX,
            });
        let mut pool = Pool {
            candidates: candidates.collect(),
            ..Pool::default()
        };
        pool.link();
        pool
    }

    fn ring(pool: &Pool) -> Vec<i32> {
        let mut place = pool.next(pool.end());
        let mut skills = Vec::new();
        while place != pool.end() {
            skills.push(pool.candidate(pool.at(place)).skill);
            place = pool.next(place);
        }
        skills
    }

    #[test]
    fn the_ring_runs_by_skill_and_skips_who_is_taken() {
        let mut pool = pool_of(&[
            (1, 0, 5, 0),
            (2, 0, i32::MIN, 0),
            (3, 0, i32::MAX, 0),
            (1, 0, -5, 0),
        ]);
        assert_eq!(ring(&pool), [i32::MIN, -5, 5, i32::MAX]);
        pool.take(3);
        pool.take(2);
        assert_eq!(ring(&pool), [i32::MIN, 5]);
        assert_eq!(pool.counts(), [1, 1, 0, 0, 0]);
        assert_eq!(pool.previous(pool.end()), pool.place(0));
    }

    #[test]
    fn places_within_a_radius_reach_over_the_whole_range() {
        let pool = pool_of(&[
            (1, 0, i32::MIN, 0),
            (1, 0, 0, 0),
            (1, 0, 7, 0),
            (1, 0, i32::MAX, 0),
        ]);
        assert_eq!(pool.places_within(i32::MIN, u32::MAX), (0, 4));
        assert_eq!(pool.places_within(0, 7), (1, 3));
        assert_eq!(pool.places_within(0, 6), (1, 2));
    }
}
