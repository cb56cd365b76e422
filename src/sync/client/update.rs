//! The update of one client in a tick: pending messages are written to the batch, within the client's budget.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use glam::Vec2;

use crate::memory::MemoryUse;
use crate::outbox::{BatchPart, MessageSpan};
use crate::sync::announce::ResolvedAnnouncement;
use crate::sync::client_objects::{ClientObject, PendingIndexes, Turn};
use crate::sync::counters::SentCounters;
use crate::sync::scene_messages::{AudienceVariant, ObjectChanges, SceneMessages};
use crate::sync::send_budget::SendBudget;
use crate::wire::{Hello, write_controlled_object, write_despawn, write_scene};
use crate::world::SceneId;

use super::{
    ClientState, PENDING_ANNOUNCEMENTS_MAX, PendingAnnouncement, SPARE_CAPACITY, ViewEntry,
    has_object,
};

/// The inputs of a client's update.
#[derive(Clone, Copy, Debug)]
pub struct ClientUpdateInput<'a, R, C> {
    /// The messages of its object's scene.
    pub messages: &'a SceneMessages,
    /// The messages of all scenes.
    pub scenes: &'a BTreeMap<SceneId, SceneMessages>,
    /// The messages that all clients share.
    pub shared: &'a [u8],
    /// The scene's size, in metres.
    pub size_m: Vec2,
    /// The tick of the update; motions are extrapolated to it.
    pub tick: u64,
    /// The number of the client's last input that was handled or refused.
    pub last_input: u16,
    /// Whether the client chose that number.
    pub has_input_numbers: bool,
    /// Its send budget.
    pub budget: SendBudget,
    /// The first message of a connection, without the client's id.
    pub hello: &'a Hello,
    /// The relation of the client to an object.
    pub relation: R,
    /// Appends those attributes of a known object (id and generation) that the second variant has and the first has not, as one
    /// message, if there are any.
    pub catch_up: C,
}

/// Buffers of one worker.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct UpdateScratch {
    pub(super) order: Vec<(Reverse<u8>, u32, ViewEntry)>,
    /// The objects with pending messages.
    pending: PendingIndexes,
    /// The number of clients that each announcement of the tick was sent to, or is stored for until they know its object.
    pub receivers: Vec<u32>,
}

impl ClientState {
    /// Writes this tick's update. O(links), about a nanosecond for each without changes.
    pub fn write_update<R, C>(
        &mut self,
        part: &mut BatchPart,
        around: &ClientUpdateInput<R, C>,
        scratch: &mut UpdateScratch,
        counters: &mut SentCounters,
    ) where
        R: Fn(u32) -> AudienceVariant,
        C: Fn((u32, u32), [AudienceVariant; 2], &mut Vec<u8>),
    {
        let greeting = self.initial_snapshot(around);
        if self.starts_scene && greeting.is_none() {
            // It disappeared in the middle of the tick.
            self.end_scene();
        }
        if self.controlled.is_none() {
            return self.write_scene_end(part, around.last_input, around.hello, counters);
        }
        part.begin_client(self.client, self.epoch, around.last_input);
        let (greeted, client) = (&mut self.is_hello_sent, self.client);
        let mut spent = self.notices.write(greeted, part, around.hello, client);
        self.write_missed(part, true);
        if let Some(snapshot) = greeting {
            let bytes = self.write_scene_start(part, around, snapshot);
            counters.snapshots.add_one(bytes);
            spent += bytes;
        }
        self.write_missed(part, false);
        for (id, generation) in self.despawns.drain(..) {
            let bytes = part.write_reliable(|bytes| write_despawn(bytes, id, generation));
            counters.despawns.add_one(bytes);
            spent += bytes;
        }
        self.despawns.shrink_to(SPARE_CAPACITY);
        spent += self.unseen.write_leaving(part, counters);
        let known = self.objects.len();
        spent += self.write_snapshots(part, around, counters);
        spent += self.unseen.write(part, around.scenes, counters);
        self.find_pending((known, greeting.is_some()), around, &mut scratch.pending);
        let new_own = greeting.and(self.controlled).map(|(_, own, _)| own);
        let changed = &scratch.pending.changed;
        spent += self.write_deltas((known, new_own), changed, part, around, counters);
        spent += self.write_announcements(part, around, &mut scratch.receivers, counters);
        spent += self.own_speed.write(part);
        spent += self.write_controlled_position(part, around);
        spent += self.write_motions(&mut scratch.pending.motions, spent, part, around, counters);
        // After any burst, motions continue within a second.
        let least = -i64::from(around.budget.bytes_max);
        self.credit = (self.credit - spent as i64).max(least);
        part.end_client();
    }

    /// Writes the update of a client that controls no object: once, that its object is gone; and the notices about its
    /// session.
    pub fn write_scene_end(
        &mut self,
        part: &mut BatchPart,
        input: u16,
        hello: &Hello,
        counters: &mut SentCounters,
    ) {
        part.begin_client(self.client, self.epoch, input);
        let (greeted, client) = (&mut self.is_hello_sent, self.client);
        let spent = self.notices.write(greeted, part, hello, client);
        self.write_missed(part, true);
        if let Some((id, generation)) = self.sent_controlled.take() {
            let bytes = part.write_reliable(|bytes| write_despawn(bytes, id, generation));
            counters.despawns.add_one(bytes);
        }
        self.credit -= spent as i64;
        part.end_client();
    }

    /// Writes the snapshots of entering objects; returns the bytes.
    fn write_snapshots<R, C>(
        &mut self,
        part: &mut BatchPart,
        around: &ClientUpdateInput<R, C>,
        counters: &mut SentCounters,
    ) -> usize
    where
        R: Fn(u32) -> AudienceVariant,
    {
        let scene = around.messages;
        let mut spent = 0;
        for waiting in self.entering.drain(..) {
            let variant = (around.relation)(waiting.id);
            let record = scene.snapshots[usize::from(variant.0)].get(waiting.id);
            // Despawned since the view list was built: the next list will not have it.
            let Some(span) = record else {
                self.pending.push(waiting);
                continue;
            };
            part.reliable(span);
            counters.snapshots.add_one(span.len());
            spent += span.len();
            let link = ClientObject::new(waiting.id, variant, waiting.class);
            self.objects.push(link);
        }
        self.entering.shrink_to(SPARE_CAPACITY);
        spent
    }

    /// Finds the objects among the first `known` that have pending messages. A client whose scene starts with this update already
    /// has the newest motion of its own object.
    fn find_pending<R, C>(
        &self,
        (known, is_greeted): (usize, bool),
        around: &ClientUpdateInput<R, C>,
        found: &mut PendingIndexes,
    ) {
        let (scene, doublings) = (around.messages, around.budget.update_doublings);
        let turn = Turn {
            tick: around.tick,
            doublings,
        };
        self.objects
            .find_pending(known, &scene.pending, turn, found);
        let links = self.objects.as_slice();
        for &place in &found.changed {
            let link = &links[place as usize];
            scene.deltas[usize::from(link.variant.0)].prefetch(link.id);
        }
        for &place in &found.motions {
            scene.prefetch_motion(links[place as usize].id);
        }
        if is_greeted && found.motions.first() == Some(&0) {
            found.motions.remove(0);
        }
        let own = self.controlled.map_or(0, |(_, own, _)| own);
        if scene.changes(own).contains(ObjectChanges::AFFILIATION) {
            // The client's relation to each of them may have changed.
            found.changed.clear();
            found.changed.extend(0..known as u32);
        }
    }

    /// Writes the changed attributes of the objects at these indices, and finds the announcements about them; returns the bytes. The
    /// snapshot of `new_own`, the own object of a scene that starts with this update, has them already.
    fn write_deltas<R, C>(
        &mut self,
        (known, new_own): (usize, Option<u32>),
        places: &[u32],
        part: &mut BatchPart,
        around: &ClientUpdateInput<R, C>,
        counters: &mut SentCounters,
    ) -> usize
    where
        R: Fn(u32) -> AudienceVariant,
        C: Fn((u32, u32), [AudienceVariant; 2], &mut Vec<u8>),
    {
        let scene = around.messages;
        let own = self.controlled.map_or(0, |(_, own, _)| own);
        let own_affiliation = scene.changes(own).contains(ObjectChanges::AFFILIATION);
        let (links, kept) = (self.objects.as_mut_slice(), self.kept.as_deref());
        // Only viewers receive announcements about an object.
        let is_in_view = |id| kept.is_none_or(|kept| !kept.contains(id));
        let mut spent = 0;
        for &place in places {
            let link = &mut links[place as usize];
            let news = scene.changes(link.id);
            if news.contains(ObjectChanges::AFFILIATION) || own_affiliation {
                let variant = (around.relation)(link.id);
                if variant != link.variant {
                    let object = (link.id, scene.known_generation(link.id));
                    let variants = [link.variant, variant];
                    let bytes =
                        part.write_reliable(|bytes| (around.catch_up)(object, variants, bytes));
                    if bytes > 0 {
                        counters.deltas.add_one(bytes);
                    }
                    spent += bytes;
                    link.variant = variant;
                }
            }
            if news.contains(ObjectChanges::DELTA)
                && new_own != Some(link.id)
                && let Some(span) = scene.deltas[usize::from(link.variant.0)].get(link.id)
            {
                part.reliable(span);
                counters.deltas.add_one(span.len());
                spent += span.len();
            }
            if news.contains(ObjectChanges::ANNOUNCED) && is_in_view(link.id) {
                self.announcements
                    .extend(scene.announcements.for_object(link.id));
            }
        }
        for link in &links[known..] {
            if scene.changes(link.id).contains(ObjectChanges::ANNOUNCED) && is_in_view(link.id) {
                self.announcements
                    .extend(scene.announcements.for_object(link.id));
            }
        }
        spent
    }

    /// Writes the position of its own object, for a client that numbers its inputs; returns the bytes.
    fn write_controlled_position<R, C>(
        &mut self,
        part: &mut BatchPart,
        around: &ClientUpdateInput<R, C>,
    ) -> usize {
        let own = self.controlled.filter(|_| around.has_input_numbers);
        let base = own.and_then(|(_, id, _)| around.messages.bases.get(id as usize));
        let (own_position, input, tick) = (&mut self.own_position, around.last_input, around.tick);
        base.map_or(0, |base| {
            own_position.write_update(part, input, base.last_position(), tick)
        })
    }

    /// Writes announcements, each after the snapshot of its object. Usually there are none, and then the client's own
    /// object, which is far away in memory, is not read.
    fn write_announcements<R, C>(
        &mut self,
        part: &mut BatchPart,
        around: &ClientUpdateInput<R, C>,
        receivers: &mut Vec<u32>,
        counters: &mut SentCounters,
    ) -> usize {
        let scene = around.messages;
        if scene.announcements.is_empty()
            && self.announcements.is_empty()
            && self.pending_announcements.is_empty()
        {
            return 0;
        }
        self.collect_announcements(around);
        let (waiting, links) = (&self.pending, &self.objects);
        let (credit, mut spent) = (self.credit, 0);
        let is_waiting = |from: Option<(u32, u32)>| {
            from.is_some_and(|(id, generation)| {
                let mut waiting = waiting.iter();
                waiting.any(|waiting| (waiting.id, waiting.generation) == (id, generation))
            })
        };
        self.pending_announcements.retain(|held| {
            if held.announced.expires_tick < around.tick {
                counters.expired += 1;
                return false;
            }
            let waits = is_waiting(held.announced.about);
            // An object that left before it was known does not exist for this client, and neither do its announcements.
            let from = held.announced.about;
            let is_known = from.is_some_and(|from| has_object(links, scene, from));
            if !waits && !is_known {
                counters.expired += 1;
            } else if !waits {
                let write = |bytes: &mut Vec<u8>| bytes.extend_from_slice(&held.bytes);
                if held.announced.reliable {
                    part.write_reliable(write);
                } else {
                    part.write_unreliable(write);
                }
                counters.announcements.add_one(held.bytes.len());
                spent += held.bytes.len();
            }
            waits
        });
        let mut received = |announced: &ResolvedAnnouncement| {
            let nth = announced.index as usize;
            receivers.resize(receivers.len().max(nth + 1), 0);
            receivers[nth] += 1;
        };
        for announced in self.announcements.drain(..) {
            if is_waiting(announced.about) {
                if self.pending_announcements.len() < PENDING_ANNOUNCEMENTS_MAX {
                    received(&announced);
                    let bytes = announced.span.bytes(around.shared, &[]).to_vec();
                    self.pending_announcements
                        .push(PendingAnnouncement { announced, bytes });
                } else {
                    counters.expired += 1;
                }
                continue;
            }
            if announced.reliable {
                part.reliable(announced.span);
            } else if spent as i64 <= credit {
                part.unreliable(announced.span);
            } else {
                counters.expired += 1;
                continue;
            }
            received(&announced);
            counters.announcements.add_one(announced.span.len());
            spent += announced.span.len();
        }
        spent
    }

    /// Adds the announcements about objects without a snapshot yet, and those at the position of the controlled object.
    fn collect_announcements<R, C>(&mut self, around: &ClientUpdateInput<R, C>) {
        let scene = around.messages;
        for waiting in &self.pending {
            let is_announced = scene.changes(waiting.id).contains(ObjectChanges::ANNOUNCED);
            if is_announced && !self.keeps(waiting.id) {
                let about = scene.announcements.for_object(waiting.id);
                self.announcements.extend(about);
            }
        }
        let controlled = self.controlled.map(|(_, id, _)| id as usize);
        if let Some(base) = controlled.and_then(|id| scene.bases.get(id)) {
            let near = scene.announcements.for_position(base.last_position());
            self.announcements.extend(near);
        }
    }

    /// The snapshot of its own object at the start of a scene, if the scene starts and the object exists.
    fn initial_snapshot<R, C>(&self, around: &ClientUpdateInput<R, C>) -> Option<MessageSpan> {
        let (_, id, _) = self.controlled.filter(|_| self.starts_scene)?;
        let variant = usize::from(self.objects.as_slice().first()?.variant.0);
        around.messages.bases.get(id as usize)?;
        around.messages.snapshots.get(variant)?.get(id)
    }

    /// Writes the start of a scene before all other messages: the scene, and its own object with all attributes of an owner;
    /// returns the bytes.
    fn write_scene_start<R, C>(
        &mut self,
        part: &mut BatchPart,
        around: &ClientUpdateInput<R, C>,
        snapshot: MessageSpan,
    ) -> usize {
        let Some((scene, id, generation)) = self.controlled else {
            return 0;
        };
        let bytes = part.write_reliable(|bytes| {
            if !self.is_hello_sent {
                around.hello.for_client(self.client).write(bytes);
            }
            write_scene(bytes, scene, around.size_m);
            write_controlled_object(bytes, id, generation);
        });
        part.reliable(snapshot);
        let base = &around.messages.bases[id as usize];
        let (own_position, at) = (&mut self.own_position, base.last_position());
        let exactly = own_position.write_initial(part, around.last_input, at, around.tick)
            + self.own_speed.write(part);
        (self.starts_scene, self.is_hello_sent) = (false, true);
        self.sent_controlled = Some((id, generation));
        bytes + snapshot.len() + exactly
    }
}
