//! The update of one client in a tick: what it knows and is to know becomes messages in the batch, within its budget.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use glam::Vec2;

use crate::memory::MemoryUse;
use crate::outbox::{BatchPart, MessageSpan};
use crate::sync::allowance::SendBudget;
use crate::sync::announce::PlacedAnnounce;
use crate::sync::counters::SentCounters;
use crate::sync::links::{ClientObject, DuePlaces, Turn};
use crate::sync::records::{AudienceVariant, LinkNews, SceneMessages};
use crate::wire::{Hello, write_controlled_object, write_despawn, write_scene};
use crate::world::SceneId;

use super::{ClientState, HELD_MAX, PASSING_KEPT, PendingAnnouncement, ViewedAs, has_link};

/// What a client's line is made from.
#[derive(Clone, Copy, Debug)]
pub struct ClientUpdateInput<'a, R, C> {
    /// What the scene of its own object has to tell.
    pub records: &'a SceneMessages,
    /// What all scenes have to tell.
    pub scenes: &'a BTreeMap<SceneId, SceneMessages>,
    /// The messages that all clients share.
    pub shared: &'a [u8],
    /// The scene's size, in metres.
    pub size_m: Vec2,
    /// The tick that the line is of; motions are reckoned on to it.
    pub tick: u64,
    /// The number of the client's last input that was handled or refused.
    pub input: u16,
    /// Whether that is a number of the client's own.
    pub is_numbered: bool,
    /// How much it may be told.
    pub allowance: SendBudget,
    /// What it is told before anything else, but for its number.
    pub hello: &'a Hello,
    /// What it is told of an object.
    pub relation: R,
    /// Appends those attributes of a known object (number and generation) that the second variant has and the first has not, as one
    /// message, if any.
    pub catch_up: C,
}

/// Buffers of one worker.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct FillScratch {
    pub(super) order: Vec<(Reverse<u8>, u32, ViewedAs)>,
    /// Over which links there is something to tell.
    due: DuePlaces,
    /// Clients that each announcement of the tick was sent to, or is kept for until they know whom it is about.
    pub receivers: Vec<u32>,
}

impl ClientState {
    /// Puts this tick's line together. O(links), about a nanosecond for each of which nothing is new.
    pub fn fill<R, C>(
        &mut self,
        part: &mut BatchPart,
        around: &ClientUpdateInput<R, C>,
        scratch: &mut FillScratch,
        counters: &mut SentCounters,
    ) where
        R: Fn(u32) -> AudienceVariant,
        C: Fn((u32, u32), [AudienceVariant; 2], &mut Vec<u8>),
    {
        let greeting = self.greeting(around);
        if self.begins && greeting.is_none() {
            // It went away in the middle of the tick.
            self.end();
        }
        if self.own.is_none() {
            return self.fill_parting(part, around.input, around.hello, counters);
        }
        part.begin_client(self.client, self.epoch, around.input);
        let (greeted, client) = (&mut self.greeted, self.client);
        let mut spent = self.notices.fill(greeted, part, around.hello, client);
        self.fill_missed(part, true);
        if let Some(snapshot) = greeting {
            let bytes = self.greet(part, around, snapshot);
            counters.snapshots.one(bytes);
            spent += bytes;
        }
        self.fill_missed(part, false);
        for (id, generation) in self.despawns.drain(..) {
            let bytes = part.write_reliable(|bytes| write_despawn(bytes, id, generation));
            counters.despawns.one(bytes);
            spent += bytes;
        }
        self.despawns.shrink_to(PASSING_KEPT);
        spent += self.remotes.fill_forgotten(part, counters);
        let known = self.links.len();
        spent += self.fill_snapshots(part, around, counters);
        spent += self.remotes.fill(part, around.scenes, counters);
        self.find_due((known, greeting.is_some()), around, &mut scratch.due);
        spent += self.fill_deltas(known, &scratch.due.news, part, around, counters);
        spent += self.announce(part, around, &mut scratch.receivers, counters);
        spent += self.fill_own_position(part, around);
        spent += self.fill_motions(&mut scratch.due.behind, spent, part, around, counters);
        // Whatever came at once, motions go on after a second.
        let least = -i64::from(around.allowance.bytes_max);
        self.credit = (self.credit - spent as i64).max(least);
        part.end_client();
    }

    /// The line of a client that controls nothing: once, that what it controlled is gone; and what it is told about its
    /// session.
    pub fn fill_parting(
        &mut self,
        part: &mut BatchPart,
        input: u16,
        hello: &Hello,
        counters: &mut SentCounters,
    ) {
        part.begin_client(self.client, self.epoch, input);
        let (greeted, client) = (&mut self.greeted, self.client);
        let spent = self.notices.fill(greeted, part, hello, client);
        self.fill_missed(part, true);
        if let Some((id, generation)) = self.told_own.take() {
            let bytes = part.write_reliable(|bytes| write_despawn(bytes, id, generation));
            counters.despawns.one(bytes);
        }
        self.credit -= spent as i64;
        part.end_client();
    }

    /// Those that come to be known; gives the bytes.
    fn fill_snapshots<R, C>(
        &mut self,
        part: &mut BatchPart,
        around: &ClientUpdateInput<R, C>,
        counters: &mut SentCounters,
    ) -> usize
    where
        R: Fn(u32) -> AudienceVariant,
    {
        let scene = around.records;
        let mut spent = 0;
        for waiting in self.entering.drain(..) {
            let variant = (around.relation)(waiting.id);
            let record = scene.snapshots[usize::from(variant.0)].get(waiting.id);
            // Gone since the view list was made: the next one will not have it.
            let Some(span) = record else {
                self.waiting.push(waiting);
                continue;
            };
            part.reliable(span);
            counters.snapshots.one(span.len());
            spent += span.len();
            let link = ClientObject::new(waiting.id, variant, waiting.class);
            self.links.push(link);
        }
        self.entering.shrink_to(PASSING_KEPT);
        spent
    }

    /// Over which of the links that were `known` before this tick there is something to tell. Of its own object, who was greeted
    /// with this line has the newest motion.
    fn find_due<R, C>(
        &self,
        (known, is_greeted): (usize, bool),
        around: &ClientUpdateInput<R, C>,
        found: &mut DuePlaces,
    ) {
        let (scene, doublings) = (around.records, around.allowance.update_doublings);
        let turn = Turn {
            tick: around.tick,
            doublings,
        };
        self.links.find_due(known, &scene.due, turn, found);
        let links = self.links.as_slice();
        for &place in &found.news {
            let link = &links[place as usize];
            scene.deltas[usize::from(link.variant.0)].prefetch(link.id);
        }
        for &place in &found.behind {
            scene.prefetch_motion(links[place as usize].id);
        }
        if is_greeted && found.behind.first() == Some(&0) {
            found.behind.remove(0);
        }
        let own = self.own.map_or(0, |(_, own, _)| own);
        if scene.news(own).has(LinkNews::AFFILIATION) {
            // What each of them is to the client may be another.
            found.news.clear();
            found.news.extend(0..known as u32);
        }
    }

    /// What changed of those at these places, and which announcements are about any; gives the bytes.
    fn fill_deltas<R, C>(
        &mut self,
        known: usize,
        places: &[u32],
        part: &mut BatchPart,
        around: &ClientUpdateInput<R, C>,
        counters: &mut SentCounters,
    ) -> usize
    where
        R: Fn(u32) -> AudienceVariant,
        C: Fn((u32, u32), [AudienceVariant; 2], &mut Vec<u8>),
    {
        let scene = around.records;
        let own = self.own.map_or(0, |(_, own, _)| own);
        let own_affiliation = scene.news(own).has(LinkNews::AFFILIATION);
        let links = self.links.as_mut_slice();
        let mut spent = 0;
        for &place in places {
            let link = &mut links[place as usize];
            let news = scene.news(link.id);
            if news.has(LinkNews::AFFILIATION) || own_affiliation {
                let variant = (around.relation)(link.id);
                if variant != link.variant {
                    let object = (link.id, scene.known_generation(link.id));
                    let variants = [link.variant, variant];
                    let bytes =
                        part.write_reliable(|bytes| (around.catch_up)(object, variants, bytes));
                    if bytes > 0 {
                        counters.deltas.one(bytes);
                    }
                    spent += bytes;
                    link.variant = variant;
                }
            }
            if news.has(LinkNews::DELTA)
                && let Some(span) = scene.deltas[usize::from(link.variant.0)].get(link.id)
            {
                part.reliable(span);
                counters.deltas.one(span.len());
                spent += span.len();
            }
            if news.has(LinkNews::ANNOUNCED) {
                self.announced.extend(scene.announcements.of(link.id));
            }
        }
        for link in &links[known..] {
            if scene.news(link.id).has(LinkNews::ANNOUNCED) {
                self.announced.extend(scene.announcements.of(link.id));
            }
        }
        spent
    }

    /// Where its own object stands, for who numbers its inputs; gives the bytes.
    fn fill_own_position<R, C>(
        &mut self,
        part: &mut BatchPart,
        around: &ClientUpdateInput<R, C>,
    ) -> usize {
        let own = self.own.filter(|_| around.is_numbered);
        let base = own.and_then(|(_, id, _)| around.records.bases.get(id as usize));
        let (told, input, tick) = (&mut self.own_position, around.input, around.tick);
        base.map_or(0, |base| told.fill(part, input, base.seen(), tick))
    }

    /// Announcements, each after the snapshot of whom it is about. Where there is none, as mostly, nothing is asked of the client's own
    /// object, which lies far away.
    fn announce<R, C>(
        &mut self,
        part: &mut BatchPart,
        around: &ClientUpdateInput<R, C>,
        receivers: &mut Vec<u32>,
        counters: &mut SentCounters,
    ) -> usize {
        let scene = around.records;
        if scene.announcements.is_empty() && self.announced.is_empty() && self.held.is_empty() {
            return 0;
        }
        for waiting in &self.waiting {
            if scene.news(waiting.id).has(LinkNews::ANNOUNCED) {
                self.announced.extend(scene.announcements.of(waiting.id));
            }
        }
        if let Some(base) = self.own.and_then(|(_, id, _)| scene.bases.get(id as usize)) {
            self.announced.extend(scene.announcements.at(base.seen()));
        }
        let (waiting, links) = (&self.waiting, &self.links);
        let (credit, mut spent) = (self.credit, 0);
        let is_waiting = |from: Option<(u32, u32)>| {
            from.is_some_and(|(id, generation)| {
                let mut waiting = waiting.iter();
                waiting.any(|waiting| (waiting.id, waiting.generation) == (id, generation))
            })
        };
        self.held.retain(|held| {
            if held.announced.expires < around.tick {
                counters.expired += 1;
                return false;
            }
            let waits = is_waiting(held.announced.from);
            // Who left before it was known is nobody to this client, and so is what it said.
            let from = held.announced.from;
            let is_known = from.is_some_and(|from| has_link(links, scene, from));
            if !waits && !is_known {
                counters.expired += 1;
            } else if !waits {
                let write = |bytes: &mut Vec<u8>| bytes.extend_from_slice(&held.bytes);
                if held.announced.reliable {
                    part.write_reliable(write);
                } else {
                    part.write_unreliable(write);
                }
                counters.announces.one(held.bytes.len());
                spent += held.bytes.len();
            }
            waits
        });
        let mut received = |announced: &PlacedAnnounce| {
            let nth = announced.nth as usize;
            receivers.resize(receivers.len().max(nth + 1), 0);
            receivers[nth] += 1;
        };
        for announced in self.announced.drain(..) {
            if is_waiting(announced.from) {
                if self.held.len() < HELD_MAX {
                    received(&announced);
                    let bytes = announced.span.bytes(around.shared, &[]).to_vec();
                    self.held.push(PendingAnnouncement { announced, bytes });
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
            counters.announces.one(announced.span.len());
            spent += announced.span.len();
        }
        spent
    }

    /// The snapshot of its own object with which a client begins that has to, if the object is there.
    fn greeting<R, C>(&self, around: &ClientUpdateInput<R, C>) -> Option<MessageSpan> {
        let (_, id, _) = self.own.filter(|_| self.begins)?;
        let variant = usize::from(self.links.as_slice().first()?.variant.0);
        around.records.bases.get(id as usize)?;
        around.records.snapshots.get(variant)?.get(id)
    }

    /// What stands before all else when the client begins: the scene, and its own object with all that an owner learns;
    /// gives the bytes.
    fn greet<R, C>(
        &mut self,
        part: &mut BatchPart,
        around: &ClientUpdateInput<R, C>,
        snapshot: MessageSpan,
    ) -> usize {
        let Some((scene, id, generation)) = self.own else {
            return 0;
        };
        let bytes = part.write_reliable(|bytes| {
            if !self.greeted {
                around.hello.for_client(self.client).write(bytes);
            }
            write_scene(bytes, scene, around.size_m);
            write_controlled_object(bytes, id, generation);
        });
        part.reliable(snapshot);
        let base = &around.records.bases[id as usize];
        let (told, at) = (&mut self.own_position, base.seen());
        let exactly = told.begin(part, around.input, at, around.tick);
        (self.begins, self.greeted) = (false, true);
        self.told_own = Some((id, generation));
        bytes + snapshot.len() + exactly
    }
}
