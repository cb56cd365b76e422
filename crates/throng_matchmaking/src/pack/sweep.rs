//! Packs parties into matches in one pass in the order of skill.
//!
//! ```text
//! parties by skill ──▶ the lowest one left is the anchor ──▶ add the next ones until two groups of K fit
//!                      out of these, the lowest that do  ──▶ a set of parties of 2K players
//! ```
//! A party that is skipped is the anchor of the next set, so no party falls behind and spreads stay near the
//! minimum: 2K players in a row. A set includes its anchor, its spread is within the anchor's window, its levels are
//! within the anchor's band, and all its parties share a region: each added party must fit those added before.
//!
//! Whether two groups fit is updated while parties are added: bit b of row a says that some of them can be
//! placed with a players in the first group and b in the second. The rows after each party are stored, and
//! backtracking through them chooses the parties.
//!
//! Cost: O(K) words per added party and one step per skipped party, at most [`SKIPPED_GROUPS_MAX`] groups of K per anchor; so
//! O(n · K) with n parties if adjacent parties may meet, and at worst that many times more. Tried: filling groups and pairing
//! these, which leaves the spread of two groups to chance, and sweeping from both ends or from the middle, which is no
//! tighter.

use throng_core::memory::MemoryUse;

use super::terms::Terms;
use crate::queue::skill_index::SkillEntry;

/// Parties that an anchor skips before it is left over, in groups of K.
pub const SKIPPED_GROUPS_MAX: usize = 16;

/// A party to be packed.
#[derive(Clone, Copy, Debug)]
pub struct SweepSeat {
    /// The party.
    pub entry: SkillEntry,
    /// The power of its players.
    pub power: u32,
    /// The largest spread of a match in which it is the oldest.
    pub window: u32,
    /// The largest difference in level of such a match.
    pub level_band: u32,
    /// The regions where it can play, one bit each.
    pub regions: u32,
}

/// Sets of seats, each a match if the terms allow it.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct Sets {
    members: Vec<u32>,
    ranges: Vec<(u32, u32)>,
}

impl Sets {
    /// The number of sets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether there is none.
    #[cfg(any(test, feature = "bench"))]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The seats of a set, as ascending indices in the list of seats.
    #[must_use]
    pub fn get(&self, set: usize) -> &[u32] {
        let (start, end) = self.ranges[set];
        &self.members[start as usize..end as usize]
    }

    /// Adds a set; its seats are sorted.
    pub fn push(&mut self, seats: impl IntoIterator<Item = u32>) {
        let range = self.store(seats);
        self.ranges.push(range);
    }

    /// Replaces a set.
    pub fn replace(&mut self, set: usize, seats: impl IntoIterator<Item = u32>) {
        self.ranges[set] = self.store(seats);
    }

    /// Drops all sets but the first `kept`.
    pub fn truncate(&mut self, kept: usize) {
        self.ranges.truncate(kept);
    }

    fn store(&mut self, seats: impl IntoIterator<Item = u32>) -> (u32, u32) {
        let start = self.members.len();
        self.members.extend(seats);
        self.members[start..].sort_unstable();
        (start as u32, self.members.len() as u32)
    }

    fn clear(&mut self) {
        self.members.clear();
        self.ranges.clear();
    }
}

/// Packs parties; reuses its buffers.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct Sweeper {
    /// For each seat, the next higher seat that is in no set.
    next: Vec<u32>,
    previous: Vec<u32>,
    /// K + 1 words after each seat that was added.
    rows: Vec<u64>,
    added: Vec<u32>,
    sets: Sets,
}

impl Sweeper {
    /// Packs seats, sorted by skill, into sets of two groups of `group_size`. With terms, only parties that
    /// are compatible with the anchor join it.
    pub fn sweep(
        &mut self,
        seats: &[SweepSeat],
        group_size: u8,
        terms: Option<&Terms>,
    ) -> &mut Sets {
        let n = seats.len() as u32;
        self.sets.clear();
        // The seats form a ring through index n, which is before the first and after the last.
        self.next.clear();
        self.next.extend((1..=n).chain([0]));
        self.previous.clear();
        self.previous.extend([n].into_iter().chain(0..n));
        let mut anchor = self.next[n as usize];
        while anchor < n {
            if self.build_set(seats, anchor, group_size, terms) {
                self.choose(seats, anchor, group_size);
                // The seats that this anchor skipped come next.
                let before = self.previous[anchor as usize];
                self.unlink(anchor);
                anchor = self.next[before as usize];
            } else {
                anchor = self.next[anchor as usize];
            }
        }
        &mut self.sets
    }

    /// The sets of the latest pass.
    #[must_use]
    pub const fn sets(&self) -> &Sets {
        &self.sets
    }

    /// Adds seats above the anchor until two groups fit; returns whether they do.
    fn build_set(
        &mut self,
        seats: &[SweepSeat],
        anchor: u32,
        group_size: u8,
        terms: Option<&Terms>,
    ) -> bool {
        let (k, n) = (usize::from(group_size), seats.len() as u32);
        let words = k + 1;
        let mask = (1u64 << words) - 1;
        let me = &seats[anchor as usize];
        let mut room: [u32; 5] =
            std::array::from_fn(|at| 2 * u32::from(group_size) / (at as u32 + 1));
        self.added.clear();
        self.rows.clear();
        self.rows.resize(words, 0);
        self.rows[usize::from(me.entry.size)] = 1;
        let mut place = self.next[anchor as usize];
        let mut passed = 0;
        let (mut lowest, mut highest) = (me.entry.level, me.entry.level);
        let mut regions = me.regions;
        while place < n && passed < SKIPPED_GROUPS_MAX * k {
            let seat = &seats[place as usize];
            if seat.entry.skill().abs_diff(me.entry.skill()) > me.window {
                break;
            }
            passed += 1;
            let size = usize::from(seat.entry.size);
            let low = lowest.min(seat.entry.level);
            let high = highest.max(seat.entry.level);
            let joins = room[size - 1] > 0
                && u32::from(high - low) <= me.level_band
                && regions & seat.regions != 0
                && terms.is_none_or(|terms| {
                    terms.are_compatible(&me.entry, &seat.entry, me.level_band)
                });
            if joins {
                room[size - 1] -= 1;
                (lowest, highest) = (low, high);
                regions &= seat.regions;
                self.added.push(place);
                let from = self.rows.len() - words;
                for a in 0..words {
                    let row = self.rows[from + a];
                    let first = if a >= size {
                        self.rows[from + a - size]
                    } else {
                        0
                    };
                    self.rows.push(row | first | (row << size & mask));
                }
                if self.rows[from + words + k] >> k & 1 == 1 {
                    return true;
                }
            }
            place = self.next[place as usize];
        }
        false
    }

    /// Chooses the lowest of the added seats that make two groups with the anchor, and takes them.
    fn choose(&mut self, seats: &[SweepSeat], anchor: u32, group_size: u8) {
        let words = usize::from(group_size) + 1;
        let (mut a, mut b) = (words - 1, words - 1);
        let mut chosen = 0;
        // From the highest down, a seat is left out if the others suffice without it.
        for at in (0..self.added.len()).rev() {
            let before = &self.rows[at * words..(at + 1) * words];
            if before[a] >> b & 1 == 1 {
                continue;
            }
            let size = usize::from(seats[self.added[at] as usize].entry.size);
            if a >= size && before[a - size] >> b & 1 == 1 {
                a -= size;
            } else {
                b -= size;
            }
            // The chosen seats gather at the front, after those that are still to be decided.
            let last = self.added.len() - 1 - chosen;
            self.added.swap(at, last);
            chosen += 1;
        }
        let from = self.added.len() - chosen;
        for at in from..self.added.len() {
            self.unlink(self.added[at]);
        }
        self.sets
            .push(self.added[from..].iter().copied().chain([anchor]));
    }

    fn unlink(&mut self, place: u32) {
        let (previous, next) = (self.previous[place as usize], self.next[place as usize]);
        self.next[previous as usize] = next;
        self.previous[next as usize] = previous;
    }
}

/// The spread of skill of seats that are in order.
pub(super) fn spread(seats: &[SweepSeat], set: &[u32]) -> u32 {
    match (set.first(), set.last()) {
        (Some(&low), Some(&high)) => {
            let skill = |at: u32| seats[at as usize].entry.skill();
            skill(high).abs_diff(skill(low))
        }
        _ => 0,
    }
}

/// Whether a set is within the window and the level band of its longest-waiting party, which has the widest limits, and
/// shares a region.
pub(super) fn within_limits(seats: &[SweepSeat], set: &[u32]) -> bool {
    let (mut window, mut band, mut regions) = (0, 0, u32::MAX);
    let (mut lowest, mut highest) = (u16::MAX, 0);
    for &at in set {
        let seat = &seats[at as usize];
        (window, band) = (seat.window.max(window), seat.level_band.max(band));
        lowest = seat.entry.level.min(lowest);
        highest = seat.entry.level.max(highest);
        regions &= seat.regions;
    }
    regions != 0
        && spread(seats, set) <= window
        && u32::from(highest.saturating_sub(lowest)) <= band
}
