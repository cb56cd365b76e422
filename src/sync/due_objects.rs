//! Of which objects of a scene there is something to tell in this tick, and over which links.
//!
//! A motion is told over a link when the link's tier has its turn, and there is something to tell then if there were news since the
//! turn before. So nobody needs to remember of a link what was told over it, only of all objects when they last had news; a
//! motion is told once too often at most when a link's tier has just become a rarer one.

use super::motion::Tier;
use crate::memory::MemoryUse;

/// Ticks of which it is kept who had news: the most between two turns of the rarest tier, however often that time doubles.
const TICKS_KEPT: usize = 64;

/// What there is to tell of 64 objects, a bit each.
#[derive(Clone, Copy, Debug, Default)]
struct DueWords {
    /// News of the motion since the turn before, where the tier has its turn.
    by_tier: [u64; Tier::COUNT],
    /// News of the motion in this tick.
    now: u64,
    /// Anything but motions.
    besides: u64,
}

/// Of which objects there is something to tell.
#[derive(Clone, Debug, Default)]
pub struct DueObjects {
    words: Vec<DueWords>,
    /// News of the motion of as many objects in each of the last ticks.
    news: Vec<[u64; TICKS_KEPT]>,
    /// The tick in hand.
    tick: u64,
    /// How often tiers' time between turns doubled of late at most, and when it last did so.
    widest: (u8, u64),
}

impl DueObjects {
    /// Begins a tick, the one after the last one, in which there is nothing to tell yet. O(objects / 64).
    pub fn begin(&mut self, tick: u64) {
        self.tick = tick;
        self.words.fill(DueWords::default());
    }

    /// There is something to tell of an object besides its motion.
    pub fn insert(&mut self, id: u32) {
        self.words_of(id).besides |= bit(id);
    }

    /// There are news of an object's motion, to be told over each link at the next turn of its tier.
    pub fn insert_motion(&mut self, id: u32) {
        self.words_of(id).now |= bit(id);
    }

    /// Finds those of which a motion is to be told in this tick, in which tiers' time between turns is doubled so often, once
    /// all news are there; says how many. O(objects / 64 × ticks between the rarest tier's turns).
    pub fn find_motions(&mut self, doublings: u8) -> usize {
        let (tick, widest) = (self.tick, self.widen(doublings));
        let turns = Tier::ALL.map(|tier| tier.doubled(doublings).turns(tick));
        // Those that are told of since then were told before, whatever the time between turns was.
        let waits = Tier::ALL.map(|tier| tier.doubled(widest).ticks().min(TICKS_KEPT as u64));
        let mut count = 0;
        for (words, news) in self.words.iter_mut().zip(&mut self.news) {
            news[place_of(tick)] = words.now;
            let (mut since, mut ticks, mut all) = (0, 0, words.now);
            for ((due, turn), wait) in words.by_tier.iter_mut().zip(turns).zip(waits) {
                while ticks < wait {
                    since |= news[place_of(tick.wrapping_sub(ticks))];
                    ticks += 1;
                }
                *due = since & turn;
                all |= *due;
            }
            count += all.count_ones() as usize;
        }
        count
    }

    /// Those of which a motion is to be told in this tick, be it only to whoever controls them.
    pub fn motions(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.words).flat_map(|(nth, words)| {
            let tiers = words.by_tier.into_iter();
            let mut left = tiers.fold(words.now, |all, tier| all | tier);
            std::iter::from_fn(move || {
                let lowest = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(nth * u64::BITS + lowest)
            })
        })
    }

    /// The most doublings under which a link may have had its last turn.
    fn widen(&mut self, doublings: u8) -> u8 {
        let (widest, last) = self.widest;
        if doublings >= widest {
            self.widest = (doublings, self.tick);
        } else if self.tick >= last + (Tier::TICKS_MAX << widest) {
            self.widest = (widest - 1, self.tick);
        }
        self.widest.0
    }

    fn words_of(&mut self, id: u32) -> &mut DueWords {
        let nth = (id / u64::BITS) as usize;
        if self.words.len() <= nth {
            self.words.resize(nth + 1, DueWords::default());
            self.news.resize(nth + 1, [0; TICKS_KEPT]);
        }
        &mut self.words[nth]
    }

    /// What there is to tell of an object over links of this tier.
    #[inline]
    pub fn of(&self, tier: Tier, id: u32) -> DueNews {
        let Some(words) = self.words.get((id / u64::BITS) as usize) else {
            return DueNews::default();
        };
        DueNews {
            motion: words.by_tier[usize::from(tier.number())] & bit(id) != 0,
            besides: words.besides & bit(id) != 0,
        }
    }

    /// Whether there are news of its motion in this tick.
    #[inline]
    pub fn is_motion_now(&self, id: u32) -> bool {
        let words = self.words.get((id / u64::BITS) as usize);
        words.is_some_and(|words| words.now & bit(id) != 0)
    }
}

/// What there is to tell of an object over a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DueNews {
    /// Its motion.
    pub motion: bool,
    /// Anything else.
    pub besides: bool,
}

const fn bit(id: u32) -> u64 {
    1 << (id % u64::BITS)
}

/// The place of a tick's news among those that are kept.
const fn place_of(tick: u64) -> usize {
    tick as usize % TICKS_KEPT
}

impl MemoryUse for DueObjects {
    fn heap_bytes(&self) -> usize {
        self.words.heap_bytes() + self.news.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(draws!())]

        /// Over a link that is told at each of its turns what is new since the one before, whatever tier it gets then and however
        /// often the time between turns doubles, something is due in every turn in which it is behind; and, while neither its
        /// tier nor that time changes, in no other.
        #[test]
        fn whoever_is_behind_at_its_turn_is_due(
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
            let (mut due, mut tier, mut is_behind) = (DueObjects::default(), Tier::default(), false);
            let mut as_before = (0, 0);
            for (tick, ((is_new, (next, changes)), doublings)) in (start..).zip(news.into_iter().zip(tiers).zip(doublings)) {
                due.begin(tick);
                if is_new {
                    due.insert_motion(id);
                    is_behind = true;
                }
                let count = due.find_motions(doublings);
                let found = due.motions().any(|of| of == id);
                prop_assert_eq!((count, due.motions().count()), (usize::from(found), usize::from(found)));
                let is_due = due.of(tier, id).motion;
                prop_assert_eq!((due.is_motion_now(id), due.of(tier, id).besides), (is_new, false));
                prop_assert!(found || !(is_due || is_new));
                as_before = if as_before.1 == doublings { (as_before.0 + 1, doublings) } else { (0, doublings) };
                if tier.doubled(doublings).is_due(tick, id) {
                    prop_assert!(is_due || !is_behind, "at {tick}");
                    // As long as the longest turns take to be forgotten, and nobody changed tier meanwhile.
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
    fn who_has_no_news_is_not_due_and_old_news_are_forgotten() {
        let mut due = DueObjects::default();
        due.begin(100);
        due.insert_motion(5);
        let counts = (100..220).map(|tick| {
            due.begin(tick);
            if tick == 100 {
                due.insert_motion(5);
            }
            let count = due.find_motions(0);
            assert!(
                Tier::ALL
                    .iter()
                    .all(|&tier| due.of(tier, 6) == DueNews::default())
            );
            assert!(due.motions().eq(std::iter::repeat_n(5, count)));
            count
        });
        assert_eq!(
            counts.sum::<usize>(),
            4,
            "ticks with a turn of any tier that waited"
        );
        due.insert(40);
        let all = |due: &DueObjects, id| Tier::ALL.map(|tier| due.of(tier, id));
        let besides = DueNews {
            motion: false,
            besides: true,
        };
        assert_eq!(all(&due, 40), [besides; Tier::COUNT]);
        assert_eq!(all(&due, 41), [DueNews::default(); Tier::COUNT]);
        due.begin(220);
        assert_eq!(all(&due, 40), [DueNews::default(); Tier::COUNT]);
    }
}
