//! The views of a scene: who is where, who sees whom, and how that is asked and changed.
//!
//! ```text
//! insert, remove, locate, teleport,     ┌────────── update (View) ──────────┐
//! set_traits, set_hidden, set_caps ──▶│ settle ▶ part ▶ trim ▶ meet ▶ look │──▶ ViewEvents, links
//!        (noted, cheap)                 └───────────────────────────────────┘
//!                                         settle and the queue in turn, all else shard by shard (shard.rs)
//! ```
//! Each viewer has its own top list for each [`KindClass`], under its own cap. Whether a link also needs the
//! other end's consent is the scene's [`Sight`].
//!
//! Who is refused is not listed but bounded: for each viewer and list, `bound` is one above the highest rank
//! that may have been refused, and `gate` the lowest class that could enter now. A viewer *has something to
//! gain* if the class of its bound could pass its gate; then it waits in a first-in-first-out queue for a
//! look, a sweep of its surroundings. A full viewer with nothing to gain never scans cells, and whoever has no
//! tie to it never asks it (see enter.rs). A mutual pair is remembered by an end that refused it.
//!
//! A rank is a class and a band of distance. Classes count at once. Bands decide at once who takes a free
//! place and who is evicted for a higher class; members make way for the nearer of their own class when their
//! viewer has its turn, which a fixed share of the viewers with a full list has every tick (see
//! [`set_rerank_ticks`](SceneViews::set_rerank_ticks)).
//!
//! Invariants, after [`update`](SceneViews::update): see [`validate`](SceneViews::validate), which checks
//! them by brute force.
//!
//! Changes take effect at the next update (what a viewer gains by moving perhaps later, see
//! [`set_sweeps_max`](SceneViews::set_sweeps_max)), in the order of ids, so the order of calls within a tick cannot
//! matter. Only [`remove`](SceneViews::remove) and the end of viewing take effect at once: call them in a
//! fixed order.
//!
//! Cost: a change within a cell is a few comparisons; a change of cell costs its own list and watchers, and a
//! comparison of ties with the targets and viewers of the cells that differ; 90 bytes an object, and 4 a shard,
//! beside the grid's and the links' share.

use std::collections::BTreeSet;

use glam::Vec2;
use thiserror::Error;

use super::events::{LeaveReason, ViewCounters, ViewEvent};
use super::exceptions::{ExceptionIndex, ViewException};
use super::object::{PendingChanges, Ranking, Sight, TrackedObject, ViewerState};
use super::refill_queue::RefillQueue;
use super::shard::{Shared, ViewShard};
use crate::aoi::grid::{GridError, SceneGrid};
use crate::aoi::links::{IDS_MAX, LISTS, UNCAPPED, WatchedBy};
use crate::aoi::priority::{Bands, CLASS_MAX, SCENERY, ViewFilter, ViewPriority, ViewTraits};
use crate::aoi::share::Share;
use crate::world::{KindClass, Visibility};

/// What an object is to those who may see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// Which cap of its viewers it counts against.
    pub class: KindClass,
    /// How far it is seen.
    pub visibility: Visibility,
    /// What ranks and hides it; also what it sees, as a viewer.
    pub traits: ViewTraits,
    /// Whether it can be seen at all; a spectator cannot.
    pub viewable: bool,
}

/// How many of each class a viewer sees at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect))]
pub struct ViewCaps {
    /// Of characters that players control.
    pub players: u16,
    /// Of characters that the server controls.
    pub npcs: u16,
    /// Of everything else.
    pub things: u16,
}

impl Default for ViewCaps {
    /// What a client screen and line of today take: 100 players, 50 NPCs, 50 things.
    fn default() -> Self {
        Self {
            players: 100,
            npcs: 50,
            things: 50,
        }
    }
}

impl ViewCaps {
    /// The same cap for all classes.
    #[must_use]
    pub const fn all(cap: u16) -> Self {
        Self {
            players: cap,
            npcs: cap,
            things: cap,
        }
    }

    /// The caps by [`KindClass::index`].
    #[must_use]
    pub const fn by_class(self) -> [u16; UNCAPPED] {
        [self.players, self.npcs, self.things]
    }
}

/// Why an object is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Removal {
    /// It ceases to exist.
    Despawn,
    /// It goes to another scene.
    Scene,
}

/// Why an object cannot be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InsertError {
    /// The id lies outside the scene's range.
    #[error("expected an object id below {limit}, found {id}")]
    IdBeyondLimit {
        /// The id asked for.
        id: u32,
        /// The scene's `max_objects`.
        limit: u32,
    },
    /// The id is in use.
    #[error("object id {id} is in use")]
    IdInUse {
        /// The id asked for.
        id: u32,
    },
}

/// After how many updates a viewer with a full list is re-ranked, unless told otherwise: 6.4 s at 20 Hz.
pub const RERANK_TICKS: u32 = 128;

/// A scene has a shard for so many objects that it is made for.
const OBJECTS_A_SHARD: u32 = 8192;

/// A cell should have so many objects for each shard: every shard has to visit the cells of a change.
const OBJECTS_A_CELL_AND_SHARD: u32 = 4;

/// The most shards a scene has unless asked for more.
const SHARDS_MAX: u32 = 16;

/// How many shards suit a scene. On one thread, at 2.5 m a tick, two shards cost 10,000 objects a seventh; for
/// 50,000 from two to eight gain a tenth to a fifth.
fn shards_for(objects_max: u32, (columns, rows): (u16, u16)) -> usize {
    let cells = (u32::from(columns) * u32::from(rows)).max(1);
    let by_cells = objects_max / cells / OBJECTS_A_CELL_AND_SHARD;
    let shards = by_cells.min(objects_max / OBJECTS_A_SHARD);
    1 << shards.clamp(1, SHARDS_MAX).ilog2()
}

/// Who sees whom in one scene.
#[derive(Clone, Debug)]
pub struct SceneViews {
    pub(super) shared: Shared,
    pub(super) shards: Vec<ViewShard>,
    pub(super) queue: RefillQueue,
    /// Each viewer is re-ranked every so many updates; 0 for never.
    pub(super) rerank_ticks: u32,
    /// How many viewers that came or changed their cell sweep in one update.
    pub(super) sweeps_max: u32,
    /// Updates so far.
    pub(super) turn: u32,
    /// Ids with pending changes; stale and double entries are dropped by the update.
    pub(super) changed: Vec<u32>,
    /// Who is tied to whom, as owned or aiming: the one that a tie leads to, then the one that has it.
    ties: BTreeSet<(u32, u32)>,
    /// The leaves of removed objects, told at the next update.
    pub(super) parted: Vec<ViewEvent>,
    /// Leaves told of removed objects, and looks; all else is counted by shards.
    pub(super) counters: ViewCounters,
    objects_max: u32,
}

impl SceneViews {
    /// Views for a scene over this grid, with object ids below `objects_max` (at most [`IDS_MAX`]) and the
    /// default priorities, [`by_relationship`](crate::aoi::by_relationship).
    #[must_use]
    pub fn new(grid: SceneGrid, objects_max: u32) -> Self {
        let ranking = Ranking {
            filter: None,
            priority: None,
            bands: Bands::new(grid.cell_m()),
            mutual: false,
        };
        let objects_max = objects_max.min(IDS_MAX);
        let shards = shards_for(objects_max, grid.size());
        let views = Self {
            shared: Shared {
                grid,
                objects: Vec::new(),
                ranking,
                exceptions: ExceptionIndex::default(),
                stranger_class: [SCENERY; UNCAPPED],
                changes: Vec::new(),
            },
            shards: Vec::new(),
            queue: RefillQueue::default(),
            rerank_ticks: RERANK_TICKS,
            sweeps_max: u32::MAX,
            turn: 0,
            changed: Vec::new(),
            ties: BTreeSet::new(),
            parted: Vec::new(),
            counters: ViewCounters::default(),
            objects_max,
        };
        views.with_shards(shards)
    }

    /// Views for a scene of this size; see [`SceneGrid::new`].
    ///
    /// # Errors
    /// See [`GridError`].
    pub fn with_size(
        (width_m, height_m): (f32, f32),
        cell_m: f32,
        margin_m: f32,
        objects_max: u32,
    ) -> Result<Self, GridError> {
        Ok(Self::new(
            SceneGrid::new(width_m, height_m, cell_m, margin_m)?,
            objects_max,
        ))
    }

    /// The same with this sight, for a scene without objects.
    #[must_use]
    pub fn with_sight(mut self, sight: Sight) -> Self {
        debug_assert!(
            self.shared.objects.is_empty(),
            "sight is chosen before anybody comes"
        );
        self.shared.ranking.mutual = sight == Sight::Mutual;
        let shards = self.shards.len();
        self.with_shards(shards)
    }

    /// The same with its viewers divided into so many shards (rounded up to a power of two), for a scene
    /// without objects. Mutual sight has one whatever is asked for. The links that come out are the same for
    /// any number.
    #[must_use]
    pub fn with_shards(mut self, count: usize) -> Self {
        debug_assert!(
            self.shared.objects.is_empty(),
            "shards are made before anybody comes"
        );
        let count = if self.shared.ranking.mutual { 1 } else { count };
        let shards = Share::all(count).map(|share| ViewShard::new(share, &self.shared.grid));
        self.shards = shards.collect();
        self
    }

    /// Into how many shards the viewers are divided.
    #[must_use]
    pub const fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// Whose lists a link must find a place in.
    #[must_use]
    pub const fn sight(&self) -> Sight {
        if self.shared.ranking.mutual {
            Sight::Mutual
        } else {
            Sight::Directed
        }
    }

    /// Lets each viewer with a full list look at distances anew every so many updates, by its id; 0 for
    /// never. So a list holds nobody from a farther band while somebody of the same class stayed in a nearer
    /// one for that long ([`Bands::HYSTERESIS`] apart).
    pub const fn set_rerank_ticks(&mut self, ticks: u32) {
        self.rerank_ticks = ticks;
    }

    /// Of the viewers that came or changed their cell, so many look around in the same update, the lower ids
    /// first; all of them unless told otherwise. The others leave whom they left at once, wait in the queue and
    /// see nobody new until their look. What a crowd that is teleported or logs in at once costs all the same
    /// is a comparison of ties with each other, in columns.
    pub const fn set_sweeps_max(&mut self, sweeps: u32) {
        self.sweeps_max = sweeps;
    }

    /// Replaces the rules of the scene: who may see whom beyond layers and hiding, and the classes of pairs; `None` for
    /// everybody and for [`by_relationship`](crate::aoi::by_relationship). All pairs are judged anew by the next update:
    /// links that cannot be any more end there, others begin as by looks. That costs as much as if everybody came anew.
    ///
    /// With classes of its own a scene passes nobody over: a full viewer compares itself with the whole population of
    /// the cells that differ, where by default it reads columns of ties.
    pub fn set_rules(&mut self, filter: Option<ViewFilter>, priority: Option<ViewPriority>) {
        self.shared.ranking.filter = filter;
        self.shared.ranking.priority = priority;
        // An own ranking may put anybody first, so nobody can be passed over.
        let stranger = if priority.is_some() {
            CLASS_MAX
        } else {
            SCENERY
        };
        self.shared.stranger_class = [stranger; UNCAPPED];
        for id in 0..self.shared.objects.len() as u32 {
            let object = self.shared.objects[id as usize];
            if !object.alive {
                continue;
            }
            if priority.is_none() {
                let class = Shared::class_to_strangers(&object);
                if let Some(highest) = self.shared.stranger_class.get_mut(object.list()) {
                    *highest = class.max(*highest);
                }
            }
            self.note_traits(id);
        }
        for id in 0..self.shared.objects.len() as u32 {
            if self.shared.objects[id as usize].viewer {
                (0..UNCAPPED).for_each(|list| self.refresh_open(id, list));
            }
        }
    }

    /// Adds an object; it is seen, and sees if it has caps, from the next update on.
    ///
    /// # Errors
    /// See [`InsertError`].
    pub fn insert(
        &mut self,
        id: u32,
        position: Vec2,
        profile: Profile,
        viewer: Option<ViewCaps>,
    ) -> Result<(), InsertError> {
        if id >= self.objects_max {
            return Err(InsertError::IdBeyondLimit {
                id,
                limit: self.objects_max,
            });
        }
        self.grow(id as usize + 1);
        if self.shared.objects[id as usize].alive {
            return Err(InsertError::IdInUse { id });
        }
        self.shared.grid.place(id, position);
        let layer = if profile.viewable {
            self.shared.grid.layer_of(profile.visibility)
        } else {
            0
        };
        self.shared.objects[id as usize] = TrackedObject {
            traits: ViewTraits {
                id,
                class: profile.class,
                ..profile.traits
            },
            position,
            // Far(0..=255) and Scene make at most 256 layers, numbered 0..=255.
            layer: layer as u8,
            uncapped: profile.visibility != Visibility::Near,
            alive: true,
            viewable: profile.viewable,
            pending: PendingChanges {
                target: profile.viewable,
                ..PendingChanges::default()
            },
            ..TrackedObject::ABSENT
        };
        let traits = self.shared.objects[id as usize].traits;
        self.tie(id, &ViewTraits::default(), &traits);
        if let Some(caps) = viewer {
            self.become_viewer(id, caps);
        }
        self.list_changed(id);
        Ok(())
    }

    /// Removes an object with all its links, at once; the next update tells of the leaves, in both
    /// directions. False if there is no such object. The id may be reused at once.
    pub fn remove(&mut self, id: u32, removal: Removal) -> bool {
        let Some(object) = self.object(id).copied() else {
            return false;
        };
        let reason = match removal {
            Removal::Despawn => LeaveReason::Despawn,
            Removal::Scene => LeaveReason::Scene,
        };
        self.cease_viewing(id, reason);
        for shard in 0..self.shards.len() {
            for place in (0..self.shards[shard].links.watchers_len(id)).rev() {
                if let Some(watcher) = self.shards[shard].links.watcher_at(id, place) {
                    self.part_at_once(watcher, reason);
                }
            }
        }
        if object.viewable {
            self.shared.grid.remove_target(id);
        }
        self.shared.objects[id as usize] = TrackedObject::ABSENT;
        self.tie(id, &object.traits, &ViewTraits::default());
        self.end_ties_to(id);
        self.end_exceptions_of(id);
        true
    }

    /// Reports where an object is now. Cheap while its cell stays. Unknown ids are ignored.
    #[inline]
    pub fn locate(&mut self, id: u32, position: Vec2) {
        if let Some(object) = self
            .shared
            .objects
            .get_mut(id as usize)
            .filter(|object| object.alive)
        {
            object.position = position;
            if self.shared.grid.locate(id, position) {
                self.list_changed(id);
            }
        }
    }

    /// Reports that an object is elsewhere without having walked there: its cell forgets its margin.
    /// Unknown ids are ignored.
    pub fn teleport(&mut self, id: u32, position: Vec2) {
        if let Some(object) = self
            .shared
            .objects
            .get_mut(id as usize)
            .filter(|object| object.alive)
        {
            object.position = position;
            if self.shared.grid.place(id, position) {
                self.list_changed(id);
            }
        }
    }

    /// Changes what the rules read of an object; its own id and class are filled in. Unknown ids are ignored. A tie to
    /// another object ends when that one is removed.
    pub fn set_traits(&mut self, id: u32, traits: ViewTraits) {
        let Some(object) = self.shared.objects.get_mut(id as usize) else {
            return;
        };
        let before = object.traits;
        let traits = ViewTraits {
            id,
            class: before.class,
            ..traits
        };
        if object.alive && before != traits {
            object.traits = traits;
            self.tie(id, &before, &traits);
            self.note_traits(id);
        }
    }

    /// Shows a target to a viewer, or hides it from it, against the rules; `None` ends the exception. It ends as well when
    /// either is removed. Unknown ids, and a viewer as its own target, are ignored. What the viewer sees is judged anew by
    /// the next update.
    pub fn set_exception(&mut self, viewer: u32, target: u32, exception: Option<ViewException>) {
        if viewer == target || !self.contains(viewer) || !self.contains(target) {
            return;
        }
        if self.shared.exceptions.set(viewer, target, exception) {
            let has_any = self.shared.exceptions.has_any(viewer);
            self.shared.objects[viewer as usize].has_exceptions = has_any;
            self.note_traits(viewer);
        }
    }

    /// Hides an object from everybody, or shows it again. Unknown ids are ignored.
    pub fn set_hidden(&mut self, id: u32, hidden: bool) {
        if let Some(traits) = self.traits(id) {
            self.set_traits(id, ViewTraits { hidden, ..traits });
        }
    }

    /// Changes a viewer's caps. `Some` makes a viewer of an object that was none; `None` ends its viewing,
    /// with leaves of reason [`LeaveReason::Despawn`] at the next update. Unknown ids are ignored.
    pub fn set_caps(&mut self, id: u32, caps: Option<ViewCaps>) {
        let Some(object) = self.object(id) else {
            return;
        };
        match caps {
            None => self.cease_viewing(id, LeaveReason::Despawn),
            Some(caps) if !object.viewer => self.become_viewer(id, caps),
            Some(caps) => {
                self.shard_mut(id).viewer_state_mut(id).caps = caps.by_class();
                self.shared.objects[id as usize].pending.caps = true;
            }
        }
        self.list_changed(id);
    }

    pub(super) fn object(&self, id: u32) -> Option<&TrackedObject> {
        self.shared
            .objects
            .get(id as usize)
            .filter(|object| object.alive)
    }

    pub(super) fn shard(&self, viewer: u32) -> &ViewShard {
        &self.shards[Share::index_of(viewer, self.shards.len())]
    }

    fn shard_mut(&mut self, viewer: u32) -> &mut ViewShard {
        let count = self.shards.len();
        &mut self.shards[Share::index_of(viewer, count)]
    }

    /// Recomputes the lowest class that could enter a list.
    fn refresh_gate(&mut self, viewer: u32, list: usize) {
        let count = self.shards.len();
        self.shards[Share::index_of(viewer, count)].refresh_gate(&self.shared, viewer, list);
    }

    /// See [`ViewShard::refresh_open`].
    pub(super) fn refresh_open(&mut self, viewer: u32, list: usize) {
        let count = self.shards.len();
        self.shards[Share::index_of(viewer, count)].refresh_open(&self.shared, viewer, list);
    }

    /// Remembers that strangers of this class may stand in a list.
    pub(super) fn raise_stranger_class(&mut self, list: usize, class: u8) {
        let highest = self.shared.stranger_class.get_mut(list);
        let Some(highest) = highest.filter(|highest| class > **highest) else {
            return;
        };
        *highest = class;
        for viewer in 0..self.shared.objects.len() {
            if self.shared.objects[viewer].viewer {
                self.refresh_open(viewer as u32, list);
            }
        }
    }

    fn become_viewer(&mut self, id: u32, caps: ViewCaps) {
        let object = &mut self.shared.objects[id as usize];
        object.viewer = true;
        object.pending.viewer = true;
        let is_peer = object.is_peer();
        // Shut until the gates are known.
        *self.shard_mut(id).viewer_state_mut(id) = ViewerState {
            caps: caps.by_class(),
            ..ViewerState::SHUT
        };
        for list in 0..LISTS {
            self.refresh_gate(id, list);
            self.refresh_open(id, list);
        }
        if !self.shared.ranking.mutual || !is_peer {
            return;
        }
        // Who saw it one-way must now agree with it.
        for place in (0..self.shard(id).links.watchers_len(id)).rev() {
            if let Some(watcher) = self.shard(id).links.watcher_at(id, place)
                && self.shared.objects[watcher.viewer as usize].is_peer()
            {
                self.part_at_once(watcher, LeaveReason::Despawn);
            }
        }
    }

    /// Ends a link outside an update, which will tell of it.
    fn part_at_once(&mut self, link: WatchedBy, reason: LeaveReason) {
        let WatchedBy {
            viewer,
            list,
            place,
        } = link;
        let Some((key, twin)) = self.shard_mut(viewer).links.remove(viewer, list, place) else {
            return;
        };
        let target = key.target();
        self.parted.push(ViewEvent::leave(link, target, reason));
        if let Some((list, place)) = twin {
            let link = WatchedBy {
                viewer: target,
                list,
                place,
            };
            self.parted.push(ViewEvent::leave(link, viewer, reason));
            self.refresh_gate(target, list);
            self.shard_mut(target).set_freed(target, true);
        }
        self.refresh_gate(viewer, list);
        self.shard_mut(viewer).set_freed(viewer, true);
    }

    fn cease_viewing(&mut self, id: u32, reason: LeaveReason) {
        if !self.shared.objects[id as usize].viewer {
            return;
        }
        for list in 0..LISTS {
            for place in (0..self.shard(id).links.list_len(id, list)).rev() {
                let link = WatchedBy {
                    viewer: id,
                    list,
                    place,
                };
                self.part_at_once(link, reason);
            }
        }
        let home = self.shared.grid.home(id);
        self.queue.remove(id);
        let shard = self.shard_mut(id);
        shard.viewer_index.remove(id, home);
        shard.set_freed(id, false);
        *shard.viewer_state_mut(id) = ViewerState::SHUT;
        let is_mutual = self.shared.ranking.mutual;
        let object = &mut self.shared.objects[id as usize];
        object.viewer = false;
        object.pending.viewer = false;
        object.pending.caps = false;
        // Its partners may see it one-way from now on.
        object.pending.traits |= is_mutual;
    }

    /// Keeps up who is tied to whom.
    fn tie(&mut self, id: u32, before: &ViewTraits, after: &ViewTraits) {
        let (before, after) = ([before.owner, before.target], [after.owner, after.target]);
        if before == after {
            return;
        }
        for to in before {
            self.ties.remove(&(to, id));
        }
        for to in after.into_iter().filter(|&to| to != 0) {
            self.ties.insert((to, id));
        }
    }

    /// Whoever was tied to an object that is gone is tied to nobody, also not to the next one of its id.
    fn end_ties_to(&mut self, id: u32) {
        let tied = self.ties.range((id, 0)..=(id, u32::MAX));
        let tied: Vec<u32> = tied.map(|&(_, tied)| tied).collect();
        for other in tied {
            let Some(mut traits) = self.traits(other) else {
                continue;
            };
            for tie in [&mut traits.owner, &mut traits.target] {
                if *tie == id {
                    *tie = 0;
                }
            }
            self.set_traits(other, traits);
        }
    }

    fn end_exceptions_of(&mut self, id: u32) {
        let exceptions = &mut self.shared.exceptions;
        let targets: Vec<u32> = exceptions.of(id).map(|(target, _)| target).collect();
        let viewers: Vec<u32> = exceptions.viewers_of(id).collect();
        for target in targets {
            exceptions.set(id, target, None);
        }
        for viewer in viewers {
            exceptions.set(viewer, id, None);
            self.shared.objects[viewer as usize].has_exceptions = exceptions.has_any(viewer);
        }
    }

    /// What the rules say of an object may have changed.
    fn note_traits(&mut self, id: u32) {
        self.shared.objects[id as usize].pending.traits = true;
        self.list_changed(id);
    }

    fn list_changed(&mut self, id: u32) {
        let listed = &mut self.shared.objects[id as usize].pending.listed;
        if !std::mem::replace(listed, true) {
            self.changed.push(id);
        }
    }

    fn grow(&mut self, ids: usize) {
        if ids > self.shared.objects.len() {
            self.shared.grid.grow(ids);
            self.shared.objects.resize(ids, TrackedObject::ABSENT);
            self.queue.grow(ids);
            self.shards.iter_mut().for_each(|shard| shard.grow(ids));
        }
    }
}
