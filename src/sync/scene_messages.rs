//! The messages of a scene in this tick: encoded once, sent to all receivers.

use fixedbitset::FixedBitSet;
use glam::Vec2;
use prefetch_index::prefetch_index;

use super::announce::Announcements;
use super::membership::Memberships;
use super::motion::{DeadReckoning, MotionBase, MotionState};
use super::pending_updates::PendingUpdates;
use crate::memory::MemoryUse;
use crate::outbox::{MessageSpan, OutgoingBatch};
use crate::wire::{Motion, write_motion};

/// One message per object, each written once per tick into the bytes that all clients share.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct ObjectMessages {
    /// The position of each message; valid only if it is written.
    spans: Vec<MessageSpan>,
    /// One bit per id, so that a query for a missing message, which is the usual case, stays in the nearest cache.
    written: FixedBitSet,
}

impl ObjectMessages {
    /// Removes all messages. O(largest id / 64).
    pub fn clear(&mut self) {
        self.written.clear();
    }

    /// Sets the message of an object.
    pub fn set(&mut self, id: u32, span: MessageSpan) {
        let id = id as usize;
        if self.spans.len() <= id {
            self.spans.resize(id + 1, MessageSpan::shared(0, 0));
            self.written.grow(id + 1);
        }
        self.spans[id] = span;
        self.written.insert(id);
    }

    /// Prefetches an object's message position.
    #[inline]
    pub fn prefetch(&self, id: u32) {
        prefetch_index(&self.spans, id as usize);
    }

    /// The message of an object, if one was written.
    #[inline]
    pub fn get(&self, id: u32) -> Option<MessageSpan> {
        let id = id as usize;
        self.written.contains(id).then(|| self.spans[id])
    }
}

/// The attributes that a client receives of an object, by its relation to it: the number of a set of attributes that is the same
/// for all clients of that relation, so that one encoding serves them all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AudienceVariant(pub u8);

/// The changes of an object this tick apart from its motion, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectChanges(u8);

impl ObjectChanges {
    /// Attributes for its viewers changed.
    pub const DELTA: Self = Self(1);
    /// Attributes for clients that need not see it changed.
    pub const UNSEEN_DELTA: Self = Self(1 << 1);
    /// There is an announcement for its viewers.
    pub const ANNOUNCED: Self = Self(1 << 2);
    /// Its team, party, guild or membership in another audience changed since the last tick.
    pub const AFFILIATION: Self = Self(1 << 3);

    /// Whether it has these changes.
    #[inline]
    pub const fn contains(self, what: Self) -> bool {
        self.0 & what.0 != 0
    }
}

/// The team, party and guild of an object; 0 for none.
pub type Affiliation = [u32; 3];

/// The index of the party in an [`Affiliation`].
pub const PARTY: usize = 1;

/// All messages of a scene this tick. By object id.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct SceneMessages {
    /// The changes of each object.
    pub changes: Vec<ObjectChanges>,
    /// The bases from which clients extrapolate.
    pub bases: Vec<MotionBase>,
    /// The message of each base, encoded when it is created.
    encoded: Vec<EncodedMotion>,
    /// Recent motions that all clients share; others are written for each client.
    pub motions: ObjectMessages,
    /// The objects with pending messages.
    pub pending: PendingUpdates,
    /// Objects that come into a client's view, by variant.
    #[memory(each)]
    pub snapshots: Vec<ObjectMessages>,
    /// Changed attributes, by variant.
    #[memory(each)]
    pub deltas: Vec<ObjectMessages>,
    /// Objects for clients that need not see them, by variant.
    #[memory(each)]
    pub unseen: Vec<ObjectMessages>,
    /// Changed attributes of such objects, by variant.
    #[memory(each)]
    pub unseen_deltas: Vec<ObjectMessages>,
    /// Objects that all clients in the scene receive, and their generations; ascending.
    pub public: Vec<(u32, u32)>,
    /// Counts changes of that list.
    pub public_version: u32,
    /// One-time messages.
    pub announcements: Announcements,
    /// The generation of the object that clients know by each id, if any does: an id is reused only when all clients have
    /// removed the previous object.
    known_generations: Vec<u32>,
    /// The affiliations of objects.
    affiliations: Vec<Affiliation>,
    /// The memberships of objects in custom audiences; empty while there are none.
    memberships: Vec<Memberships>,
    /// Objects that changed this tick.
    changed: Vec<u32>,
}

impl SceneMessages {
    /// Begins a tick.
    pub fn begin_tick(&mut self, variants: usize, tick: u64) {
        for id in self.changed.drain(..) {
            self.changes[id as usize] = ObjectChanges::default();
        }
        self.pending.begin_tick(tick);
        self.announcements.clear();
        self.motions.clear();
        let all = [
            &mut self.snapshots,
            &mut self.deltas,
            &mut self.unseen,
            &mut self.unseen_deltas,
        ];
        for records in all {
            records.resize_with(variants, ObjectMessages::default);
            records.iter_mut().for_each(ObjectMessages::clear);
        }
    }

    /// From the next tick on, all clients in the scene receive this object.
    pub fn publish(&mut self, id: u32, generation: u32) {
        if let Err(place) = self.public.binary_search(&(id, generation)) {
            self.public.insert(place, (id, generation));
            self.public_version = self.public_version.wrapping_add(1);
        }
    }

    /// The object is gone.
    pub fn unpublish(&mut self, id: u32, generation: u32) {
        if let Ok(place) = self.public.binary_search(&(id, generation)) {
            self.public.remove(place);
            self.public_version = self.public_version.wrapping_add(1);
        }
    }

    /// Notes changes of an object in this tick.
    pub fn mark_changed(&mut self, id: u32, what: ObjectChanges) {
        self.reserve(id);
        self.changes[id as usize].0 |= what.0;
        self.changed.push(id);
        self.pending.insert(id);
    }

    /// The changes of an object.
    #[inline]
    pub fn changes(&self, id: u32) -> ObjectChanges {
        self.changes.get(id as usize).copied().unwrap_or_default()
    }

    /// Sets the full message of an object, for clients that see it or do not.
    pub fn set_full_message(
        &mut self,
        id: u32,
        (variant, is_remote): (AudienceVariant, bool),
        span: MessageSpan,
    ) {
        // An object that never moved has a slot for its base, too.
        self.reserve(id);
        let records = if is_remote {
            &mut self.unseen
        } else {
            &mut self.snapshots
        };
        records[usize::from(variant.0)].set(id, span);
    }

    /// A client will know an object from this tick on; no client knows an earlier one with its id any more.
    pub fn set_known_generation(&mut self, id: u32, generation: u32) {
        let places = id as usize + 1;
        if self.known_generations.len() < places {
            self.known_generations.resize(places, 0);
        }
        self.known_generations[id as usize] = generation;
    }

    /// The generation of the object that clients know by this id.
    #[inline]
    pub fn known_generation(&self, id: u32) -> u32 {
        self.known_generations
            .get(id as usize)
            .copied()
            .unwrap_or_default()
    }

    /// The motion base of an object.
    fn base_mut(&mut self, id: u32) -> &mut MotionBase {
        self.reserve(id);
        &mut self.bases[id as usize]
    }

    fn reserve(&mut self, id: u32) {
        let places = id as usize + 1;
        if self.bases.len() < places {
            self.changes.resize(places, ObjectChanges::default());
            self.bases.resize(places, MotionBase::default());
            self.encoded.resize(places, EncodedMotion::default());
        }
    }

    /// Samples the motion of an object. `written` is a scratch buffer.
    #[inline]
    pub fn sample(
        &self,
        (id, generation): (u32, u32),
        now: MotionState,
        (tick, reckoning): (u64, DeadReckoning),
        written: &mut Vec<u8>,
    ) -> SampledMotion {
        let none = MotionBase::default();
        let base = self.bases.get(id as usize).unwrap_or(&none);
        match base.next(generation, now, tick, reckoning) {
            Some(base) => SampledMotion::Update(MotionUpdate {
                base,
                encoded: EncodedMotion::of(id, generation, base.motion, written),
            }),
            None if base.last_position() != now.position => SampledMotion::Moved,
            None => SampledMotion::Unchanged,
        }
    }

    /// Sets the position of an object without other changes.
    pub fn set_position(&mut self, id: u32, position: Vec2) {
        if let Some(base) = self.bases.get_mut(id as usize) {
            base.set_position(position);
        }
    }

    /// Applies a motion change of an object, to be sent in this tick.
    pub fn apply_motion(&mut self, id: u32, news: &MotionUpdate) {
        *self.base_mut(id) = news.base;
        self.encoded[id as usize] = news.encoded;
        self.pending.insert_motion(id);
    }

    /// Finds the motions that are pending in this tick, with this number of doublings of the time between turns, and writes
    /// them as shared messages, if there are enough clients here to make that worthwhile.
    pub fn find_motions(&mut self, doublings: u8, clients: usize, batch: &mut OutgoingBatch) {
        let Self {
            pending: due,
            motions,
            encoded,
            ..
        } = self;
        if due.find_motions(doublings) <= clients * MOTIONS_PER_CLIENT {
            for id in due.motions() {
                let encoded = &encoded[id as usize];
                motions.set(id, batch.push_shared(|bytes| encoded.append(bytes)));
            }
        }
    }

    /// Sets the affiliation of an object, and returns the previous one.
    pub fn set_affiliation(&mut self, id: u32, affiliation: Affiliation) -> Affiliation {
        let place = id as usize;
        if self.affiliations.len() <= place {
            self.affiliations.resize(place + 1, Affiliation::default());
        }
        let before = std::mem::replace(&mut self.affiliations[place], affiliation);
        if before != affiliation {
            self.mark_changed(id, ObjectChanges::AFFILIATION);
        }
        before
    }

    /// The affiliation of an object.
    pub fn affiliation(&self, id: u32) -> Affiliation {
        self.affiliations
            .get(id as usize)
            .copied()
            .unwrap_or_default()
    }

    /// Sets the memberships of an object in custom audiences.
    pub fn set_memberships(&mut self, id: u32, memberships: Memberships) {
        let place = id as usize;
        if self.memberships(id) == memberships {
            return;
        }
        if self.memberships.len() <= place {
            self.memberships.resize(place + 1, Memberships::default());
        }
        self.memberships[place] = memberships;
        self.mark_changed(id, ObjectChanges::AFFILIATION);
    }

    /// The memberships of an object in custom audiences.
    pub fn memberships(&self, id: u32) -> Memberships {
        self.memberships
            .get(id as usize)
            .copied()
            .unwrap_or_default()
    }

    /// Prefetches the data of an object's motion.
    #[inline]
    pub fn prefetch_motion(&self, id: u32) {
        prefetch_index(&self.bases, id as usize);
        self.motions.prefetch(id);
    }

    /// Appends the motion of an object as a message.
    #[inline]
    pub fn write_motion(&self, id: u32, bytes: &mut Vec<u8>) {
        self.encoded[id as usize].append(bytes);
    }
}

/// The approximate number of motions per client: with more shared ones per client, most would be shared without use.
const MOTIONS_PER_CLIENT: usize = 16;

/// The result of sampling an object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SampledMotion {
    /// It is where it was.
    Unchanged,
    /// It is where it is extrapolated, and was not there before.
    Moved,
    /// The change has to be sent to clients.
    Update(MotionUpdate),
}

/// A change of an object's motion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MotionUpdate {
    base: MotionBase,
    encoded: EncodedMotion,
}

/// The longest *Motion*: kind, id and generation, tick and flags, position, heading, velocity, floor.
const MOTION_BYTES_MAX: usize = 1 + 5 + 5 + 2 + 10 + 1 + 4 + 1;

/// An encoded motion.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct EncodedMotion {
    length: u8,
    bytes: [u8; MOTION_BYTES_MAX],
}

impl EncodedMotion {
    /// `written` is a scratch buffer.
    fn of(id: u32, generation: u32, motion: Motion, written: &mut Vec<u8>) -> Self {
        written.clear();
        write_motion(written, id, generation, motion);
        debug_assert!(written.len() <= MOTION_BYTES_MAX);
        let length = written.len().min(MOTION_BYTES_MAX);
        let mut bytes = [0; MOTION_BYTES_MAX];
        bytes[..length].copy_from_slice(&written[..length]);
        Self {
            length: length as u8,
            bytes,
        }
    }

    #[inline]
    fn append(&self, bytes: &mut Vec<u8>) {
        // A copy of a fixed length is a few instructions, a copy of any length is a call: the surplus is truncated.
        let end = bytes.len() + usize::from(self.length);
        bytes.extend_from_slice(&self.bytes);
        bytes.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use glam::Vec2;

    use super::*;

    #[test]
    fn shared_motions_equal_single_ones() {
        let reckoning = DeadReckoning {
            tick_s: 0.05,
            tolerance_m: 0.05,
            update_doublings: 0,
        };
        let moving = |x| MotionState {
            position: Vec2::new(x, 3.0),
            velocity: Vec2::X,
            heading: 0,
            floor: 0,
            jumped: false,
        };
        for (clients, is_shared) in [(0, false), (1, true)] {
            let (mut records, mut batch) = (SceneMessages::default(), OutgoingBatch::default());
            records.begin_tick(1, 8);
            let look_at = |records: &SceneMessages, x| {
                records.sample((4, 1), moving(x), (8, reckoning), &mut Vec::new())
            };
            let SampledMotion::Update(news) = look_at(&records, 2.0) else {
                panic!("no message about it was sent");
            };
            records.apply_motion(4, &news);
            records.find_motions(0, clients, &mut batch);
            assert_eq!(look_at(&records, 2.0), SampledMotion::Unchanged);
            assert_eq!(look_at(&records, 2.01), SampledMotion::Moved);
            let mut alone = Vec::new();
            records.write_motion(4, &mut alone);
            let span = records.motions.get(4);
            assert_eq!(span.is_some(), is_shared);
            assert!(span.is_none_or(|span| span.bytes(&batch.shared, &[]) == alone));
            records.begin_tick(1, 9);
            assert_eq!(records.motions.get(4), None);
        }
    }

    #[test]
    fn messages_last_until_the_next_tick() {
        let mut records = SceneMessages::default();
        records.begin_tick(2, 0);
        records.mark_changed(3, ObjectChanges::DELTA);
        records.set_affiliation(5, [1, 0, 0]);
        let span = MessageSpan::shared(3, 9);
        records.deltas[1].set(3, span);
        let has = |records: &SceneMessages, id, what| records.changes(id).contains(what);
        assert!(
            has(&records, 3, ObjectChanges::DELTA) && !has(&records, 3, ObjectChanges::ANNOUNCED)
        );
        assert!(
            has(&records, 5, ObjectChanges::AFFILIATION) && !has(&records, 9, ObjectChanges::DELTA)
        );
        assert_eq!(
            (records.deltas[1].get(3), records.deltas[0].get(3)),
            (Some(span), None)
        );
        records.begin_tick(2, 1);
        records.set_affiliation(5, [1, 0, 0]);
        assert!(
            !has(&records, 3, ObjectChanges::DELTA)
                && !has(&records, 5, ObjectChanges::AFFILIATION)
        );
        assert_eq!(
            (records.deltas[1].get(3), records.deltas[1].get(99)),
            (None, None)
        );
    }
}
