//! What one client knows, and what it is sent next. Independent of the ECS: slices in, spans and bytes out.
//!
//! ```text
//! view list ────────follow──▶ despawns, waiting ──admit──▶ entering ─┐
//! party, public objects ────▶ unseen objects ────────────────────────┤
//! changes of the scene's objects ────────────────────────────────────┼─fill─▶ client update in the batch
//! announcements ─────────────────────────────────────────────────────┘
//! ```
//! A [*link*](super::links) is an object that the client knows, stored separately from the view list and in no order. The scene's records
//! identify the object among those that had its id. An object that comes into view waits until it is admitted; the number of admissions
//! per tick is limited. If it leaves the view before, the client never receives it.
//!
//! The byte budget is a token bucket: at most one second's worth, refilled every tick. Messages that keep the client correct (despawns,
//! deltas, rests and jumps, reliable announcements) are always sent and may overdraw it. A motion that does not fit is deferred by keeping
//! its old number, so the newest motion is sent later. More important objects, and those that waited longer, go first.

mod away;
mod digest;
mod motions;
mod prefetch;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use glam::Vec2;

use super::allowance::Allowance;
use super::announce::PlacedAnnounce;
use super::counters::SentCounters;
use super::kept::{KeptMessages, Missed};
use super::links::{DuePlaces, Link, Links, Turn};
use super::notices::ClientNotices;
use super::own_position::OwnPositionTold;
use super::records::{LinkNews, SceneRecords, Variant};
use super::remotes::Remotes;
use crate::memory::MemoryUse;
use crate::outbox::{BatchPart, MessageSpan};
use crate::wire::CloseReason;
use crate::wire::{ClientId, Hello, SessionNotice, write_despawn, write_own, write_scene};
use crate::world::SceneId;

/// An object of a view list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewedAs {
    /// Its number.
    pub id: u32,
    /// Its generation.
    pub generation: u32,
    /// How much it matters.
    pub class: u8,
}

/// What a snapshot and a motion are reckoned to cost, in bytes, before they are counted.
const SNAPSHOT_BYTES: i64 = 48;
const MOTION_BYTES: i64 = 20;

/// Room for those who come and go that stays while few do: many do so after a login or a teleport alone.
const PASSING_KEPT: usize = 4;

/// Announcements that wait for a snapshot, a client, at most.
const HELD_MAX: usize = 64;

/// What a client knows and is owed.
#[derive(Clone, Debug, PartialEq, MemoryUse)]
pub struct ClientState {
    /// The client whose state this is; nobody else has one for it.
    pub client: ClientId,
    /// Counts scene changes and resumes.
    pub epoch: u8,
    /// The object that it knows to control: scene, id, generation.
    pub own: Option<(u32, u32, u32)>,
    /// The objects that it knows, its own included.
    pub links: Links,
    /// The objects that it sees and does not know yet.
    pub waiting: Vec<ViewedAs>,
    /// Those that are told this tick.
    pub entering: Vec<ViewedAs>,
    /// Those that it forgets this tick.
    despawns: Vec<(u32, u32)>,
    /// What it is told of without seeing it.
    pub remotes: Remotes,
    /// What is announced to this client alone, or to its party.
    pub announced: Vec<PlacedAnnounce>,
    /// Announcements about objects that it is to be told of first.
    #[memory(each)]
    held: Vec<Held>,
    /// Bytes that it may be sent; negative when overdrawn.
    pub credit: i64,
    /// It begins anew with the next line.
    begins: bool,
    /// The object that it was last told to control, until it is told that this is gone: number and generation.
    told_own: Option<(u32, u32)>,
    /// It was told which version this is.
    greeted: bool,
    /// What it is told about its session with the next line.
    notices: ClientNotices,
    /// Where it was told that its own object is.
    own_position: OwnPositionTold,
    /// What it was told of late.
    kept: KeptMessages,
    /// What it missed while it was away, to be told with the next line.
    missed: Option<Box<Missed>>,
    /// Its connection begins with the next line; whether with nothing of what was known before it.
    restarts: Option<bool>,
    /// Its connection is lost: its lines are kept and not sent.
    is_away: bool,
    /// More was to be kept for it than may; its session is to be ended.
    pub is_behind: bool,
    /// Bytes and number of the snapshots that it was sent.
    snapshots: [u32; 2],
}

/// The bytes of what replication keeps of a client, without its lists.
pub const CLIENT_STATE_BYTES: usize = size_of::<ClientState>();

/// An announcement that waits for its object's snapshot, with its bytes.
#[derive(Clone, Debug, PartialEq, MemoryUse)]
struct Held {
    announced: PlacedAnnounce,
    bytes: Vec<u8>,
}

/// What a client's line is made from.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a, R, C> {
    /// What the scene of its own object has to tell.
    pub records: &'a SceneRecords,
    /// What all scenes have to tell.
    pub scenes: &'a BTreeMap<SceneId, SceneRecords>,
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
    pub allowance: Allowance,
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
    order: Vec<(Reverse<u8>, u32, ViewedAs)>,
    /// Over which links there is something to tell.
    due: DuePlaces,
    /// Clients that each announcement of the tick was sent to, or is kept for until they know whom it is about.
    pub receivers: Vec<u32>,
}

impl ClientState {
    /// A client that knows nothing.
    #[must_use]
    pub fn new(client: ClientId) -> Self {
        Self {
            client,
            epoch: 0,
            own: None,
            links: Links::default(),
            waiting: Vec::new(),
            entering: Vec::new(),
            despawns: Vec::new(),
            remotes: Remotes::default(),
            announced: Vec::new(),
            held: Vec::new(),
            credit: 0,
            begins: false,
            told_own: None,
            greeted: false,
            notices: ClientNotices::default(),
            own_position: OwnPositionTold::default(),
            kept: KeptMessages::default(),
            missed: None,
            restarts: None,
            is_away: false,
            is_behind: false,
            snapshots: [0; 2],
        }
    }

    /// It is told something about its session with the next line.
    pub fn tell(&mut self, notice: SessionNotice) {
        if matches!(notice, SessionNotice::Welcome { .. }) {
            self.restarts = self.restarts.or(Some(false));
        }
        self.notices.tell(notice);
    }

    /// Whether something about its session waits to be told.
    #[must_use]
    pub const fn has_notices(&self) -> bool {
        !self.notices.is_empty()
    }

    /// The last line of a client whose session ended, with what it is told of that.
    pub fn close(&mut self, part: &mut BatchPart, reason: CloseReason, hello: &Hello) {
        let number = reason.number();
        self.tell(SessionNotice::Closed { reason: number });
        part.begin(self.client, self.epoch, 0);
        let client = self.client;
        self.notices.fill(&mut self.greeted, part, hello, client);
        part.close(reason);
        part.end();
    }

    /// The client controls another object, or comes to another scene: what it knew is forgotten at both ends.
    pub fn begin(&mut self, own: (u32, u32, u32), variant: Variant) {
        self.own = Some(own);
        if !std::mem::replace(&mut self.begins, true) {
            self.epoch = self.epoch.wrapping_add(1);
        }
        self.forget();
        // It is told of itself whatever the view list holds, and before all others.
        self.links.push(Link::new(own.1, variant, u8::MAX));
    }

    /// The client controls nothing any more: its object is gone, or was taken from it. What it knew is forgotten at both
    /// ends; [`fill`](Self::fill) tells it so.
    pub fn end(&mut self) {
        if self.own.take().is_none() {
            return;
        }
        if std::mem::take(&mut self.begins) {
            // Of the scene that was to begin it was told nothing, so the number is not used up.
            self.epoch = self.epoch.wrapping_sub(1);
        }
        self.forget();
    }

    /// Whether it controls nothing and was not told so yet.
    #[must_use]
    pub const fn is_to_part(&self) -> bool {
        self.own.is_none() && self.told_own.is_some()
    }

    fn forget(&mut self) {
        self.links.clear();
        self.waiting.clear();
        self.entering.clear();
        self.despawns.clear();
        self.held.clear();
        self.announced.clear();
        self.remotes.clear();
        self.own_position = OwnPositionTold::default();
    }

    /// Follows what changed in the view list: an object is seen now, or not. `known` is the generation of that which clients know
    /// by this number. O(links).
    pub fn follow(&mut self, (id, known): (u32, u32), now: Option<ViewedAs>) {
        if self.own.is_some_and(|(_, own, _)| own == id) {
            return;
        }
        // Of an id that was given to another object meanwhile, the old bearer is forgotten and the new one waits. That is of those who
        // wait: an id has no new bearer before all have lost the old one.
        let same = |generation| now.filter(|now| now.generation == generation);
        if let Some(place) = self.links.place_of(id) {
            if let Some(now) = same(known) {
                let link = &mut self.links.as_mut_slice()[place];
                link.class = link.class.max(now.class);
                return;
            }
            debug_assert!(now.is_none(), "{id} has another bearer too soon");
            self.despawns.push((id, known));
            self.links.swap_remove(place);
        } else if let Some(place) = self.waiting.iter().position(|waiting| waiting.id == id) {
            if same(self.waiting[place].generation).is_some() {
                return;
            }
            self.waiting.swap_remove(place);
        }
        self.waiting.extend(now);
    }

    /// Whether it knows an object (number and generation) of the scene that it is in, or will after this tick. O(links).
    pub fn knows(&self, object: (u32, u32), scene: &SceneRecords) -> bool {
        let mut entering = self.entering.iter();
        has_link(&self.links, scene, object)
            || entering.any(|seen| (seen.id, seen.generation) == object)
    }

    /// Chooses who of the waiting is told this tick: those who matter most first, then the nearest, as many as the
    /// allowance has room for and one at least. O(waiting log waiting).
    pub fn admit(
        &mut self,
        allowance: Allowance,
        own: u32,
        position: impl Fn(u32) -> Vec2,
        scratch: &mut FillScratch,
    ) {
        self.credit =
            (self.credit + i64::from(allowance.bytes_per_tick)).min(i64::from(allowance.bytes_max));
        self.entering.clear();
        let room = (self.credit / SNAPSHOT_BYTES).clamp(1, i64::from(allowance.enters_per_tick));
        if self.waiting.len() > room as usize {
            scratch.order.clear();
            let own = position(own);
            let keyed = self.waiting.drain(..).map(|waiting| {
                let distance = position(waiting.id).distance_squared(own);
                (Reverse(waiting.class), distance.to_bits(), waiting)
            });
            scratch.order.extend(keyed);
            // Distances are not negative, so their bits are in their order.
            scratch
                .order
                .sort_unstable_by_key(|&(class, distance, waiting)| (class, distance, waiting.id));
            self.waiting
                .extend(scratch.order.iter().map(|&(.., waiting)| waiting));
        }
        let count = self.waiting.len().min(room as usize);
        self.entering.extend(self.waiting.drain(..count));
        if self.waiting.is_empty() {
            self.waiting.shrink_to(PASSING_KEPT);
        }
    }

    /// Puts this tick's line together. O(links), about a nanosecond for each of which nothing is new.
    pub fn fill<R, C>(
        &mut self,
        part: &mut BatchPart,
        around: &Surroundings<R, C>,
        scratch: &mut FillScratch,
        counters: &mut SentCounters,
    ) where
        R: Fn(u32) -> Variant,
        C: Fn((u32, u32), [Variant; 2], &mut Vec<u8>),
    {
        let greeting = self.greeting(around);
        if self.begins && greeting.is_none() {
            // It went away in the middle of the tick.
            self.end();
        }
        if self.own.is_none() {
            return self.fill_parting(part, around.input, around.hello, counters);
        }
        part.begin(self.client, self.epoch, around.input);
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
        part.end();
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
        part.begin(self.client, self.epoch, input);
        let (greeted, client) = (&mut self.greeted, self.client);
        let spent = self.notices.fill(greeted, part, hello, client);
        self.fill_missed(part, true);
        if let Some((id, generation)) = self.told_own.take() {
            let bytes = part.write_reliable(|bytes| write_despawn(bytes, id, generation));
            counters.despawns.one(bytes);
        }
        self.credit -= spent as i64;
        part.end();
    }

    /// Those that come to be known; gives the bytes.
    fn fill_snapshots<R, C>(
        &mut self,
        part: &mut BatchPart,
        around: &Surroundings<R, C>,
        counters: &mut SentCounters,
    ) -> usize
    where
        R: Fn(u32) -> Variant,
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
            let link = Link::new(waiting.id, variant, waiting.class);
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
        around: &Surroundings<R, C>,
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
        around: &Surroundings<R, C>,
        counters: &mut SentCounters,
    ) -> usize
    where
        R: Fn(u32) -> Variant,
        C: Fn((u32, u32), [Variant; 2], &mut Vec<u8>),
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
        around: &Surroundings<R, C>,
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
        around: &Surroundings<R, C>,
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
                    self.held.push(Held { announced, bytes });
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
    fn greeting<R, C>(&self, around: &Surroundings<R, C>) -> Option<MessageSpan> {
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
        around: &Surroundings<R, C>,
        snapshot: MessageSpan,
    ) -> usize {
        let Some((scene, id, generation)) = self.own else {
            return 0;
        };
        let bytes = part.write_reliable(|bytes| {
            if !self.greeted {
                around.hello.to(self.client).write(bytes);
            }
            write_scene(bytes, scene, around.size_m);
            write_own(bytes, id, generation);
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

/// Whether one of these links is that of this object (number and generation), and not of another that has its number. O(links).
fn has_link(links: &Links, scene: &SceneRecords, (id, generation): (u32, u32)) -> bool {
    generation == scene.known_generation(id) && links.place_of(id).is_some()
}
