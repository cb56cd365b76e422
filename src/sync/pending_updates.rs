//! Objects of a scene with pending messages in this tick, and the clients that receive them.
//!
//! A motion is sent to a client when it is the turn of the object's tier there, if the object changed since the tier's previous turn. So
//! only the last change of each object is stored, not what was sent to each client. A motion is sent at most once more than necessary,
//! when an object has just moved to a slower tier.

use std::slice;

use super::masks::bits;
use super::motion::Tier;
use crate::memory::MemoryUse;

/// The number of ticks for which changes are stored: the longest time between two turns of the slowest tier, with all doublings.
const HISTORY_TICKS: usize = 64;

/// The kinds of pending messages of an object in a tick, one bit each; or those that a client receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingMask(u8);

impl PendingMask {
    /// The motion changed since the previous turn of any tier.
    pub const MOTIONS: Self = Self((1 << Tier::COUNT) - 1);
    /// Anything but a motion.
    pub const OTHER: Self = Self(1 << Tier::COUNT);
    /// A motion that could not be sent to the client in an earlier turn: possible for every object.
    pub const MISSED: Self = Self(2 << Tier::COUNT);
    /// The motion changed in this tick, for any turn.
    const NOW: Self = Self(4 << Tier::COUNT);

    /// The motion changed since the tier's previous turn, in its turn.
    pub const fn motion(tier: Tier) -> Self {
        Self(1 << tier.number())
    }

    /// The kinds that an object of a tier receives, depending on whether turns were missed.
    pub const fn for_link(tier: Tier, is_missed: bool) -> Self {
        let missed = if is_missed { Self::MISSED.0 } else { 0 };
        Self(Self::OTHER.0 | Self::motion(tier).0 | missed)
    }

    /// The tier of this mask.
    pub const fn tier(self) -> Tier {
        Tier::from_number(self.0.trailing_zeros() as u8)
    }

    /// The bits in both.
    #[inline]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether any bit is in both.
    #[inline]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// For 64 objects, those whose motion changed, one bit each.
#[derive(Clone, Copy, Debug, Default)]
struct PendingWords {
    /// Since the previous turn, if it is the turn of any tier, or in this tick.
    any: u64,
    /// In this tick.
    now: u64,
}

/// The objects with pending messages.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct PendingUpdates {
    /// By object: one byte each, since every client tests it.
    masks: Vec<PendingMask>,
    words: Vec<PendingWords>,
    /// The objects whose motion changed in each of the last ticks.
    history: Vec<[u64; HISTORY_TICKS]>,
    /// The current tick.
    tick: u64,
    /// The recent maximum of doublings of the time between turns, and its last tick.
    widest: (u8, u64),
}

impl PendingUpdates {
    /// Begins the next tick, without pending messages. O(objects), by the width of a register.
    pub fn begin_tick(&mut self, tick: u64) {
        self.tick = tick;
        self.masks.fill(PendingMask::MISSED);
        self.words.fill(PendingWords::default());
    }

    /// Marks an object as pending for other messages than its motion.
    pub fn insert(&mut self, id: u32) {
        self.reserve(id);
        self.masks[id as usize].0 |= PendingMask::OTHER.0;
    }

    /// Marks an object's motion as changed; it is sent to each client at the next turn of its tier.
    pub fn insert_motion(&mut self, id: u32) {
        self.reserve(id);
        self.masks[id as usize].0 |= PendingMask::NOW.0;
        self.words[(id / u64::BITS) as usize].now |= 1 << (id % u64::BITS);
    }

    /// Finds the objects whose motion is pending in this tick with this number of doublings, after all changes were
    /// inserted; returns their number. O(objects / 64 × ticks between the slowest tier's turns + those found).
    pub fn find_motions(&mut self, doublings: u8) -> usize {
        let (tick, widest) = (self.tick, self.widen(doublings));
        let turns = Tier::ALL.map(|tier| tier.doubled(doublings).turn_mask(tick));
        // Earlier changes were sent before, whatever the time between turns was.
        let waits = Tier::ALL.map(|tier| tier.doubled(widest).ticks().min(HISTORY_TICKS as u64));
        let mut count = 0;
        let masks = self.masks.chunks_mut(u64::BITS as usize);
        for ((words, news), masks) in self.words.iter_mut().zip(&mut self.history).zip(masks) {
            news[history_index(tick)] = words.now;
            let (mut since, mut ticks, mut any) = (0, 0, words.now);
            for ((tier, turn), wait) in Tier::ALL.into_iter().zip(turns).zip(waits) {
                while ticks < wait {
                    since |= news[history_index(tick.wrapping_sub(ticks))];
                    ticks += 1;
                }
                let due = since & turn;
                bits(&[due]).for_each(|nth| masks[nth].0 |= PendingMask::motion(tier).0);
                any |= due;
            }
            words.any = any;
            count += any.count_ones() as usize;
        }
        count
    }

    /// Whether a motion changed so recently that, since then, it was not the turn of every tier. Call it after the tick's
    /// [`find_motions`](Self::find_motions). O(objects / 64 × ticks between the slowest tier's turns).
    pub fn has_recent_motions(&self) -> bool {
        let ticks = (Tier::TICKS_MAX << self.widest.0).min(HISTORY_TICKS as u64);
        let recent = |news: &[u64; HISTORY_TICKS]| {
            let mut ago = 0..ticks - 1;
            ago.any(|ago| news[history_index(self.tick.wrapping_sub(ago))] != 0)
        };
        self.history.iter().any(recent)
    }

    /// The objects whose motion is pending in this tick, even if only for their own client.
    pub fn motions(&self) -> impl Iterator<Item = u32> {
        let words = (0..).step_by(u64::BITS as usize).zip(&self.words);
        words.flat_map(|(first, words)| {
            bits(slice::from_ref(&words.any)).map(move |nth| first + nth as u32)
        })
    }

    /// The maximum number of doublings at the last turn of any tier.
    fn widen(&mut self, doublings: u8) -> u8 {
        let (widest, last) = self.widest;
        if doublings >= widest {
            self.widest = (doublings, self.tick);
        } else if self.tick >= last + (Tier::TICKS_MAX << widest) {
            self.widest = (widest - 1, self.tick);
        }
        self.widest.0
    }

    fn reserve(&mut self, id: u32) {
        if self.masks.len() <= id as usize {
            let words = (id / u64::BITS) as usize + 1;
            self.masks
                .resize(words * u64::BITS as usize, PendingMask::MISSED);
            self.words.resize(words, PendingWords::default());
            self.history.resize(words, [0; HISTORY_TICKS]);
        }
    }

    /// The pending messages of an object.
    #[inline]
    pub fn mask_of(&self, id: u32) -> PendingMask {
        let mask = self.masks.get(id as usize);
        mask.copied().unwrap_or(PendingMask::MISSED)
    }

    /// Whether its motion changed in this tick.
    #[inline]
    pub fn is_motion_now(&self, id: u32) -> bool {
        self.mask_of(id).intersects(PendingMask::NOW)
    }
}

/// The index of a tick in the stored history.
const fn history_index(tick: u64) -> usize {
    tick as usize % HISTORY_TICKS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(draws!())]

        /// If an object is sent at each of its turns whatever changed since the turn before, whatever tier it has then and however
        /// often the time between turns doubles, it is pending in every turn in which the client is behind; and, while neither
        /// tier nor time changes, in no other turn.
        #[test]
        fn object_with_unsent_motion_is_pending_at_its_turn(
            news in prop::collection::vec(prop::bool::weighted(0.2), 300),
            tiers in prop::collection::vec((0..Tier::COUNT as u8, prop::bool::weighted(0.2)), 300),
            doublings in prop::collection::vec((0..4_u8, 1..100_usize), 1..20),
            id in 0..200_u32,
            start in 0..1_000_u64,
        ) {
            let doublings = doublings
                .into_iter()
                .cycle()
                .flat_map(|(doublings, ticks)| std::iter::repeat_n(doublings, ticks));
            let (mut due, mut tier, mut is_behind) = (PendingUpdates::default(), Tier::default(), false);
            let mut as_before = (0, 0);
            for (tick, ((is_new, (next, changes)), doublings)) in (start..).zip(news.into_iter().zip(tiers).zip(doublings)) {
                due.begin_tick(tick);
                if is_new {
                    due.insert_motion(id);
                    is_behind = true;
                }
                let count = due.find_motions(doublings);
                let found = due.motions().any(|of| of == id);
                prop_assert_eq!((count, due.motions().count()), (usize::from(found), usize::from(found)));
                let is_due = due.mask_of(id).intersects(PendingMask::motion(tier));
                let is_besides = due.mask_of(id).intersects(PendingMask::OTHER);
                prop_assert_eq!((due.is_motion_now(id), is_besides), (is_new, false));
                prop_assert!(found || !(is_due || is_new));
                as_before = if as_before.1 == doublings { (as_before.0 + 1, doublings) } else { (0, doublings) };
                prop_assert!(due.has_recent_motions() || !is_behind || tier.doubled(doublings).is_due(tick, id));
                if tier.doubled(doublings).is_due(tick, id) {
                    prop_assert!(is_due || !is_behind, "at {tick}");
                    // After the longest turns are out of the history, if no tier changed meanwhile.
                    prop_assert!(!is_due || is_behind || as_before.0 < 200, "at {tick}");
                    is_behind = false;
                    if changes {
                        tier = Tier::from_number(next);
                        as_before.0 = 0;
                    }
                } else {
                    prop_assert!(!is_due, "no turn at {tick}");
                }
            }
        }
    }

    #[test]
    fn unchanged_object_is_not_pending_and_history_expires() {
        let mut due = PendingUpdates::default();
        due.begin_tick(100);
        due.insert_motion(5);
        let counts = (100..220).map(|tick| {
            due.begin_tick(tick);
            if tick == 100 {
                due.insert_motion(5);
            }
            let count = due.find_motions(0);
            assert_eq!(due.mask_of(6), PendingMask::MISSED);
            let is_recent = tick < 100 + Tier::TICKS_MAX - 1;
            assert_eq!(due.has_recent_motions(), is_recent, "at {tick}");
            assert!(due.motions().eq(std::iter::repeat_n(5, count)));
            count
        });
        assert_eq!(
            counts.sum::<usize>(),
            4,
            "ticks with a turn of any tier that waited"
        );
        due.insert(40);
        assert_eq!(
            due.mask_of(40),
            PendingMask(PendingMask::MISSED.0 | PendingMask::OTHER.0)
        );
        assert_eq!(
            [41, 10_000].map(|id| due.mask_of(id)),
            [PendingMask::MISSED; 2]
        );
        due.begin_tick(220);
        assert_eq!(due.mask_of(40), PendingMask::MISSED);
    }
}
