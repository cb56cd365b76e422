//! The objects that a client knows, and which of them may have pending messages.
//!
//! Every tick tests every object of every client, and usually nothing is pending. So the data for this test is stored separately, eight
//! bytes per object, contiguous for each client. The answer is in [`PendingUpdates`], which fits into the first-level cache. Sending a
//! motion or a delta touches nothing else of an object: the cost is dominated by cache misses, since the data of all clients exceeds the
//! caches.
//!
//! Cost: about one nanosecond per object and tick; 8 bytes per object, in no order.

use prefetch_index::prefetch_index;

use super::masks::{WORD_BITS, bits};
use super::motion::Tier;
use super::pending_updates::{PendingMask, PendingUpdates};
use super::scene_messages::AudienceVariant;
use crate::memory::MemoryUse;

/// An object that a client knows: the data that every tick needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientObject {
    /// Its id.
    pub id: u32,
    /// The kinds of pending messages that are sent to this client.
    mask: PendingMask,
    /// The attributes that the client receives.
    pub variant: AudienceVariant,
    /// Its class, as in the view list.
    pub class: u8,
    /// The number of turns of its tier in which its motion could not be sent.
    turns_missed: u8,
}

impl ClientObject {
    /// An object whose changes are all sent at once.
    pub const fn new(id: u32, variant: AudienceVariant, class: u8) -> Self {
        Self {
            id,
            mask: PendingMask::for_link(Tier::ALL[0], false),
            variant,
            class,
            turns_missed: 0,
        }
    }

    /// The ticks in which its motion is sent.
    #[inline]
    pub const fn tier(&self) -> Tier {
        self.mask.tier()
    }

    /// The number of turns of its tier in which its motion could not be sent.
    #[inline]
    pub const fn turns_missed(&self) -> u8 {
        self.turns_missed
    }

    /// Notes that its motion could not be sent in this turn.
    pub const fn mark_missed(&mut self) {
        self.turns_missed = self.turns_missed.saturating_add(1);
        self.mask = PendingMask::for_link(self.tier(), true);
    }

    /// Notes that its motion was sent, and moves it to this tier.
    #[inline]
    pub const fn mark_sent(&mut self, tier: Tier) {
        self.turns_missed = 0;
        self.mask = PendingMask::for_link(tier, false);
    }
}

const _: () = assert!(size_of::<ClientObject>() == 8);

/// The objects that a client knows, each once, its own first.
#[derive(Clone, Debug, Default, PartialEq, Eq, MemoryUse)]
pub struct ClientObjects {
    objects: Vec<ClientObject>,
}

impl ClientObjects {
    /// The number of objects.
    pub const fn len(&self) -> usize {
        self.objects.len()
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.objects.clear();
    }

    /// Adds an object that is not in the list.
    pub fn push(&mut self, link: ClientObject) {
        if self.objects.len() == self.objects.capacity() {
            // Doubling would cost half a kilobyte more per client.
            self.objects.reserve_exact(GROW_OBJECTS);
        }
        self.objects.push(link);
    }

    /// Removes one; the last one takes its index.
    pub fn swap_remove(&mut self, place: usize) {
        self.objects.swap_remove(place);
    }

    /// The index of an object. O(links).
    pub fn index_of(&self, id: u32) -> Option<usize> {
        self.objects.iter().position(|link| link.id == id)
    }

    /// The objects by index.
    pub fn as_slice(&self) -> &[ClientObject] {
        &self.objects
    }

    /// The objects by index, for changes other than their ids.
    pub fn as_mut_slice(&mut self) -> &mut [ClientObject] {
        &mut self.objects
    }

    /// Finds which of the first `known` objects have pending messages in this turn.
    // Its caller has more values than there are registers.
    #[inline(never)]
    pub fn find_pending(
        &self,
        known: usize,
        due: &PendingUpdates,
        turn: Turn,
        found: &mut PendingIndexes,
    ) {
        let PendingIndexes {
            changed: news,
            motions: behind,
        } = found;
        news.clear();
        behind.clear();
        let Some((own, others)) = self.objects[..known].split_first() else {
            return;
        };
        if due.mask_of(own.id).intersects(PendingMask::OTHER) {
            news.push(0);
        }
        // Its own motion is sent in every tick, whatever the turns of the others.
        if due.is_motion_now(own.id) || own.turns_missed > 0 {
            behind.push(0);
        }
        for (first, links) in (1..).step_by(WORD_BITS).zip(others.chunks(WORD_BITS)) {
            // One bit each, without a branch: which ones are pending is unpredictable.
            let some = links.iter().rev().fold(0, |some, link| {
                some << 1 | u64::from(due.mask_of(link.id).intersects(link.mask))
            });
            for nth in bits(&[some]) {
                let (link, place) = (&links[nth], first + nth as u32);
                let met = due.mask_of(link.id).intersection(link.mask);
                if met.intersects(PendingMask::OTHER) {
                    news.push(place);
                }
                if met.intersects(PendingMask::MOTIONS)
                    || link.turns_missed > 0 && turn.is_turn_of(link)
                {
                    behind.push(place);
                }
            }
        }
    }

    /// Prefetches the first part of the memory that [`find_pending`](Self::find_pending) reads; the processor prefetches the rest itself.
    pub fn prefetch(&self) {
        let a_line = CACHE_LINE_BYTES / size_of::<ClientObject>();
        for nth in (0..self.objects.len())
            .step_by(a_line)
            .take(LINES_PREFETCHED)
        {
            prefetch_index(&self.objects, nth);
        }
    }
}

/// A tick, with the number of doublings of the time between turns.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// The tick's number.
    pub tick: u64,
    /// How often the time between turns is doubled.
    pub doublings: u8,
}

impl Turn {
    /// Whether it is the turn of this object.
    const fn is_turn_of(self, link: &ClientObject) -> bool {
        link.tier()
            .doubled(self.doublings)
            .is_due(self.tick, link.id)
    }
}

/// Indices of objects with pending messages, ascending.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct PendingIndexes {
    /// With anything but a motion.
    pub changed: Vec<u32>,
    /// With a motion, or with one that could not be sent in an earlier turn.
    pub motions: Vec<u32>,
}

/// The list grows by this many objects.
const GROW_OBJECTS: usize = 16;

const CACHE_LINE_BYTES: usize = 64;
const LINES_PREFETCHED: usize = 12;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn link(id: u32, tier: u8, turns_missed: u8) -> ClientObject {
        let mut link = ClientObject::new(id, AudienceVariant::default(), 2);
        link.mark_sent(Tier::from_number(tier));
        (0..turns_missed).for_each(|_| link.mark_missed());
        link
    }

    #[test]
    fn client_object_keeps_its_tier_while_turns_are_missed() {
        for tier in Tier::ALL {
            let mut link = link(7, tier.number(), 0);
            for missed in (1..=u8::MAX).chain([u8::MAX]) {
                link.mark_missed();
                assert_eq!((link.tier(), link.turns_missed()), (tier, missed));
            }
            link.mark_sent(Tier::default());
            assert_eq!(link, ClientObject::new(7, AudienceVariant::default(), 2));
        }
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn objects_are_found_by_id(
            ids in prop::collection::btree_set(0..100_u32, 1..20),
            removed in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
        ) {
            let mut all: Vec<u32> = ids.into_iter().collect();
            let mut links = ClientObjects::default();
            all.iter().for_each(|&id| links.push(link(id, 0, 0)));
            for removed in removed {
                if all.is_empty() {
                    break;
                }
                let place = removed.index(all.len());
                let gone = all.swap_remove(place);
                links.swap_remove(place);
                prop_assert!(links.index_of(gone).is_none());
            }
            prop_assert!(links.as_slice().iter().map(|link| link.id).eq(all.iter().copied()));
            for (place, &id) in all.iter().enumerate() {
                prop_assert_eq!(links.index_of(id), Some(place));
            }
        }

        #[test]
        fn pending_objects_are_due_in_their_tier_or_missed_a_turn(
            sent in prop::collection::vec((0..200_u32, any::<bool>()), 0..30),
            tiers in prop::collection::vec((0..Tier::COUNT as u8, 0..2_u8), 200),
            known in 0..200_usize,
            doublings in 0..3_u8,
        ) {
            let (mut due, mut links) = (PendingUpdates::default(), ClientObjects::default());
            let now: Vec<u32> = sent.iter().filter(|(_, is_motion)| *is_motion).map(|&(id, _)| id).collect();
            due.begin_tick(8);
            for (id, is_motion) in sent {
                if is_motion {
                    due.insert_motion(id);
                } else {
                    due.insert(id);
                }
            }
            due.find_motions(doublings);
            (0..).zip(&tiers).for_each(|(id, &(tier, missed))| links.push(link(id, tier, missed)));
            let mut found = PendingIndexes { changed: vec![9; 3], motions: vec![9; 300] };
            links.find_pending(known, &due, Turn { tick: 8, doublings }, &mut found);
            let behind = |id: u32| {
                let (tier, missed) = tiers[id as usize];
                let tier = Tier::from_number(tier);
                match id {
                    0 => missed > 0 || now.contains(&0),
                    _ => due.mask_of(id).intersects(PendingMask::motion(tier)) || missed > 0 && tier.doubled(doublings).is_due(8, id),
                }
            };
            let all = 0..known as u32;
            let news = all.clone().filter(|&id| due.mask_of(id).intersects(PendingMask::OTHER));
            prop_assert_eq!(found.changed, Vec::from_iter(news));
            prop_assert_eq!(found.motions, Vec::from_iter(all.filter(|&id| behind(id))));
        }
    }
}
