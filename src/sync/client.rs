//! The state of one client, and the messages it is sent next. Independent of the ECS: slices in, spans and bytes out.
//!
//! ```text
//! view list ────────follow──▶ despawns, waiting ──admit──▶ entering ─┐
//! party, public objects ────▶ unseen objects ────────────────────────┤
//! changes of the scene's objects ────────────────────────────────────┼─fill─▶ client update in the batch
//! announcements ─────────────────────────────────────────────────────┘
//! ```
//! A [*client object*](super::client_objects) is an object that the client knows, stored separately from the view list and in no order.
//! The scene's messages identify the object among those that had its id. An object that comes into view waits until it is admitted; the
//! number of admissions per tick is limited. If it leaves the view before, the client never receives it.
//!
//! The byte budget is a token bucket: at most one second's worth, refilled every tick. Messages that keep the client correct (despawns,
//! deltas, rests and jumps, reliable announcements) are always sent and may overdraw it. A motion that does not fit is deferred by keeping
//! its old number, so the newest motion is sent later. More important objects, and those that waited longer, go first.

mod disconnected;
mod kept;
mod motions;
mod prefetch;
mod state_hash;
mod update;

pub use update::{ClientUpdateInput, UpdateScratch};

use std::cmp::Reverse;

use glam::Vec2;

use super::announce::ResolvedAnnouncement;
use super::client_objects::{ClientObject, ClientObjects};
use super::kept_objects::KeptObjects;
use super::notices::ClientNotices;
use super::own_position::OwnPositionSent;
use super::own_speed::OwnSpeedSent;
use super::resume_buffer::{MissedMessages, ResumeBuffer};
use super::scene_messages::{AudienceVariant, SceneMessages};
use super::send_budget::SendBudget;
use super::unseen::UnseenObjects;
use crate::memory::MemoryUse;
use crate::outbox::BatchPart;
use crate::wire::CloseReason;
use crate::wire::{ClientId, Hello, LoginRefusal, SessionNotice};

/// An object of a view list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewEntry {
    /// Its id.
    pub id: u32,
    /// Its generation.
    pub generation: u32,
    /// Its class; a higher one goes first.
    pub class: u8,
}

/// The estimated size of a snapshot and of a motion, in bytes, before they are counted.
const SNAPSHOT_BYTES: i64 = 48;
const MOTION_BYTES: i64 = 20;

/// The capacity that lists of entering and leaving objects keep: many only enter or leave after a login or a teleport.
const SPARE_CAPACITY: usize = 4;

/// The maximum number of announcements per client that wait for a snapshot.
const PENDING_ANNOUNCEMENTS_MAX: usize = 64;

/// What a client knows, and its pending messages.
#[derive(Clone, Debug, PartialEq, MemoryUse)]
pub struct ClientState {
    /// The client of this state; no other state belongs to it.
    pub client: ClientId,
    /// Counts scene changes and resumes.
    pub epoch: u8,
    /// The object that the client knows to control: scene, id, generation.
    pub controlled: Option<(u32, u32, u32)>,
    /// The objects that it knows, its own included.
    pub objects: ClientObjects,
    /// The objects that it sees and does not know yet.
    pub pending: Vec<ViewEntry>,
    /// The objects that it is sent this tick.
    pub entering: Vec<ViewEntry>,
    /// The objects that it has to forget this tick.
    despawns: Vec<(u32, u32)>,
    /// Those of the known and pending objects that left its view and are kept.
    kept: Option<Box<KeptObjects>>,
    /// The objects that it receives without seeing them: of its party, and public ones.
    pub unseen: UnseenObjects,
    /// Announcements for this client alone, or for its party.
    pub announcements: Vec<ResolvedAnnouncement>,
    /// Announcements about objects whose snapshots have to be sent first.
    #[memory(each)]
    pending_announcements: Vec<PendingAnnouncement>,
    /// The bytes that it may be sent; negative when overdrawn.
    pub credit: i64,
    /// The next update starts a scene.
    starts_scene: bool,
    /// The object that it was last sent as its own, until its removal is sent: id and generation.
    sent_controlled: Option<(u32, u32)>,
    /// Whether the *Hello* was sent.
    is_hello_sent: bool,
    /// Notices about its session for the next update.
    notices: ClientNotices,
    /// The last sent position of its own object.
    own_position: OwnPositionSent,
    /// The last sent speed of its own object. Not hashed: it follows from the object's `MaxSpeed`.
    own_speed: OwnSpeedSent,
    /// Recent messages for a resumed connection.
    resume_buffer: ResumeBuffer,
    /// The messages that it missed while disconnected, for the next update.
    missed: Option<Box<MissedMessages>>,
    /// A new connection begins with the next update; whether the state known before is discarded.
    restarts: Option<bool>,
    /// Its connection is lost: its updates are stored and not sent.
    is_disconnected: bool,
    /// The resume buffer is full; its session has to end.
    pub is_slow_consumer: bool,
    /// The total bytes and number of the snapshots that it was sent.
    snapshot_totals: [u32; 2],
}

/// The memory of a client's replication state, in bytes, without its lists.
pub const CLIENT_STATE_BYTES: usize = size_of::<ClientState>();

/// An announcement that waits for its object's snapshot, with its bytes.
#[derive(Clone, Debug, PartialEq, MemoryUse)]
struct PendingAnnouncement {
    announced: ResolvedAnnouncement,
    bytes: Vec<u8>,
}

impl ClientState {
    /// Creates a client that knows nothing.
    #[must_use]
    pub fn new(client: ClientId) -> Self {
        Self {
            client,
            epoch: 0,
            controlled: None,
            objects: ClientObjects::default(),
            pending: Vec::new(),
            entering: Vec::new(),
            despawns: Vec::new(),
            kept: None,
            unseen: UnseenObjects::default(),
            announcements: Vec::new(),
            pending_announcements: Vec::new(),
            credit: 0,
            starts_scene: false,
            sent_controlled: None,
            is_hello_sent: false,
            notices: ClientNotices::default(),
            own_position: OwnPositionSent::default(),
            own_speed: OwnSpeedSent::default(),
            resume_buffer: ResumeBuffer::default(),
            missed: None,
            restarts: None,
            is_disconnected: false,
            is_slow_consumer: false,
            snapshot_totals: [0; 2],
        }
    }

    /// Adds a notice about its session to the next update.
    pub fn add_notice(&mut self, notice: SessionNotice) {
        if matches!(notice, SessionNotice::Welcome { .. }) {
            self.restarts = self.restarts.or(Some(false));
        }
        self.notices.push(notice);
    }

    /// Whether there are pending notices about its session.
    #[must_use]
    pub const fn has_notices(&self) -> bool {
        !self.notices.is_empty()
    }

    /// Writes the last update of a client whose session ended, with the reason.
    pub fn close(
        &mut self,
        part: &mut BatchPart,
        (reason, refusal): (CloseReason, Option<LoginRefusal>),
        hello: &Hello,
    ) {
        let number = reason.number();
        self.add_notice(SessionNotice::Closed {
            reason: number,
            refusal,
        });
        part.begin_client(self.client, self.epoch, 0);
        let client = self.client;
        self.notices
            .write(&mut self.is_hello_sent, part, hello, client);
        part.close(reason);
        part.end_client();
    }

    /// The client controls another object, or comes to another scene: the objects that it knew are removed at both ends.
    pub fn start_scene(&mut self, own: (u32, u32, u32), variant: AudienceVariant) {
        self.controlled = Some(own);
        if !std::mem::replace(&mut self.starts_scene, true) {
            self.epoch = self.epoch.wrapping_add(1);
        }
        self.clear();
        // It receives its own object whatever the view list holds, and before all others.
        self.objects
            .push(ClientObject::new(own.1, variant, u8::MAX));
    }

    /// The client controls no object any more: its object is gone, or was taken from it. The objects that it knew are removed at
    /// both ends; [`write_scene_end`](Self::write_scene_end) notifies it.
    pub fn end_scene(&mut self) {
        if self.controlled.take().is_none() {
            return;
        }
        if std::mem::take(&mut self.starts_scene) {
            // Nothing was sent of the scene that was to start, so its number is not used up.
            self.epoch = self.epoch.wrapping_sub(1);
        }
        self.clear();
    }

    /// Whether it controls nothing and was not notified yet.
    #[must_use]
    pub const fn has_pending_scene_end(&self) -> bool {
        self.controlled.is_none() && self.sent_controlled.is_some()
    }

    fn clear(&mut self) {
        self.objects.clear();
        self.pending.clear();
        self.entering.clear();
        self.despawns.clear();
        self.kept = None;
        self.pending_announcements.clear();
        self.announcements.clear();
        self.unseen.clear();
        self.own_position = OwnPositionSent::default();
        self.own_speed = OwnSpeedSent::default();
    }

    /// Whether the speed of its own object is not known yet: at the start of a scene.
    #[must_use]
    pub const fn needs_own_speed(&self) -> bool {
        self.own_speed.is_unknown()
    }

    /// Sets the speed of its own object, in metres per second; a change is sent with the next update.
    pub const fn set_own_speed(&mut self, speed_m_s: f32) {
        self.own_speed.set(speed_m_s);
    }

    /// Applies a change of the view list: an object is seen now, or not any more. `known` is the generation of the object that
    /// clients know by this id; `is_kept` is whether the client keeps it when it leaves the view. O(links).
    pub fn apply_view_change(
        &mut self,
        (id, known): (u32, u32),
        now: Option<ViewEntry>,
        is_kept: bool,
    ) {
        if self.controlled.is_some_and(|(_, own, _)| own == id) {
            return;
        }
        let was_kept = now.is_some() && self.end_keeping(id);
        let was_known = now.is_none() && self.had_before_resume(id);
        // If the id was given to another object meanwhile, the old one is removed and the new one waits. This applies only to
        // waiting objects: an id is not reused before all clients have removed the old object.
        let same = |generation| now.filter(|now| now.generation == generation);
        if let Some(place) = self.objects.index_of(id) {
            if let Some(now) = same(known) {
                let link = &mut self.objects.as_mut_slice()[place];
                link.class = link.class.max(now.class);
                return;
            }
            if now.is_none() && is_kept {
                return self.keep(place);
            }
            debug_assert!(now.is_none(), "{id} has another bearer too soon");
            self.despawns.push((id, known));
            self.objects.swap_remove(place);
        } else if let Some(place) = self.pending.iter().position(|waiting| waiting.id == id) {
            if let Some(now) = same(self.pending[place].generation) {
                if was_kept {
                    self.pending[place].class = now.class;
                }
                return;
            }
            if is_kept && was_known {
                return self.keep_pending(place);
            }
            self.pending.swap_remove(place);
        }
        self.pending.extend(now);
    }

    /// Whether it knows an object (id and generation) of its scene, or will after this tick. O(links).
    pub fn knows(&self, object: (u32, u32), scene: &SceneMessages) -> bool {
        let mut entering = self.entering.iter();
        has_object(&self.objects, scene, object)
            || entering.any(|seen| (seen.id, seen.generation) == object)
    }

    /// Selects the waiting objects that are sent this tick: the highest class first, then the nearest, as many as the
    /// budget has room for and at least one. O(waiting log waiting).
    pub fn select_entering(
        &mut self,
        allowance: SendBudget,
        own: u32,
        position: impl Fn(u32) -> Vec2,
        scratch: &mut UpdateScratch,
    ) {
        self.credit =
            (self.credit + i64::from(allowance.bytes_per_tick)).min(i64::from(allowance.bytes_max));
        self.entering.clear();
        let room =
            (self.credit / SNAPSHOT_BYTES).clamp(1, i64::from(allowance.enters_per_tick_max));
        if self.pending.len() > room as usize {
            scratch.order.clear();
            let own = position(own);
            let keyed = self.pending.drain(..).map(|waiting| {
                let distance = position(waiting.id).distance_squared(own);
                (Reverse(waiting.class), distance.to_bits(), waiting)
            });
            scratch.order.extend(keyed);
            // Distances are not negative, so their bits sort in the same order.
            scratch
                .order
                .sort_unstable_by_key(|&(class, distance, waiting)| (class, distance, waiting.id));
            self.pending
                .extend(scratch.order.iter().map(|&(.., waiting)| waiting));
        }
        let count = self.pending.len().min(room as usize);
        self.entering.extend(self.pending.drain(..count));
        if self.pending.is_empty() {
            self.pending.shrink_to(SPARE_CAPACITY);
        }
    }
}

/// Whether one of these entries is this object (id and generation), and not another with the same id. O(links).
fn has_object(links: &ClientObjects, scene: &SceneMessages, (id, generation): (u32, u32)) -> bool {
    generation == scene.known_generation(id) && links.index_of(id).is_some()
}
