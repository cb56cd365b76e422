//! The views of a scene: who is where, who sees whom, and how that is asked and changed.
//!
//! ```text
//! insert, remove, locate, teleport,     ┌────────── update (View) ──────────┐
//! set_standing, set_hidden, set_caps ──▶│ settle ▶ part ▶ trim ▶ meet ▶ look │──▶ ViewEvents, links
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
//! tie to it never asks it (see meet.rs). A mutual pair is remembered by an end that refused it.
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

use glam::Vec2;
use thiserror::Error;

pub use super::events::{LeaveReason, ViewCounters, ViewEvent};
pub use super::object::Sight;
use super::{
    grid::{GridCell, GridError, SceneGrid},
    links::{IDS_MAX, LISTS, UNCAPPED, WatchedBy},
    object::{PendingChanges, Ranking, TrackedObject, ViewerState},
    priority::{Bands, CLASS_MAX, SCENERY, Standing, ViewPriority, class_of},
    queue::RefillQueue,
    shard::{Shared, ViewShard},
    share::Share,
};
use crate::world::kinds::{KindClass, Visibility};

/// What an object is to those who may see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// Which cap of its viewers it counts against.
    pub class: KindClass,
    /// How far it is seen.
    pub visibility: Visibility,
    /// What ranks and hides it; also what it sees, as a viewer.
    pub standing: Standing,
    /// Whether it can be seen at all; a spectator cannot.
    pub viewable: bool,
}

/// How many of each class a viewer sees at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ViewCaps {
    /// Of characters that players control.
    pub players: u16,
    /// Of characters that the server controls.
    pub npcs: u16,
    /// Of everything else.
    pub things: u16,
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
    /// Ids with news; stale and double entries are dropped by the update.
    pub(super) changed: Vec<u32>,
    /// The leaves of removed objects, told at the next update.
    pub(super) parted: Vec<ViewEvent>,
    /// Leaves told of removed objects, and looks; all else is counted by shards.
    pub(super) counters: ViewCounters,
    objects_max: u32,
}

impl SceneViews {
    /// Views for a scene over this grid, with object ids below `objects_max` (at most [`IDS_MAX`]) and the
    /// default priorities, [`by_relationship`](super::priority::by_relationship).
    #[must_use]
    pub fn new(grid: SceneGrid, objects_max: u32) -> Self {
        let ranking = Ranking {
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
                stranger_class: [SCENERY; UNCAPPED],
                changes: Vec::new(),
            },
            shards: Vec::new(),
            queue: RefillQueue::default(),
            rerank_ticks: RERANK_TICKS,
            sweeps_max: u32::MAX,
            turn: 0,
            changed: Vec::new(),
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

    /// Replaces the ranking. Every object is ranked anew by the next update.
    pub fn set_priority(&mut self, priority: ViewPriority) {
        self.shared.ranking.priority = Some(priority);
        // It may put anybody first, so nobody can be passed over.
        (0..UNCAPPED).for_each(|list| self.raise_stranger_class(list, CLASS_MAX));
        for id in 0..self.shared.objects.len() as u32 {
            if self.shared.objects[id as usize].alive {
                self.shared.objects[id as usize].news.standing = true;
                self.list_changed(id);
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
            standing: Standing {
                id,
                ..profile.standing
            },
            position,
            // Far(0..=255) and Scene make at most 256 layers, numbered 0..=255.
            layer: layer as u8,
            class: profile.class,
            uncapped: profile.visibility != Visibility::Near,
            alive: true,
            viewable: profile.viewable,
            news: PendingChanges {
                target: profile.viewable,
                ..PendingChanges::default()
            },
            ..TrackedObject::ABSENT
        };
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

    /// Changes what ranks and hides an object, and what it sees; its own id is filled in. Unknown ids are ignored.
    pub fn set_standing(&mut self, id: u32, standing: Standing) {
        let standing = Standing { id, ..standing };
        if let Some(object) = self
            .shared
            .objects
            .get_mut(id as usize)
            .filter(|object| object.alive)
            && object.standing != standing
        {
            object.standing = standing;
            object.news.standing = true;
            self.list_changed(id);
        }
    }

    /// Hides an object from everybody, or shows it again. Unknown ids are ignored.
    pub fn set_hidden(&mut self, id: u32, hidden: bool) {
        if let Some(standing) = self.standing(id) {
            self.set_standing(id, Standing { hidden, ..standing });
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
                self.shard_mut(id).viewer_mut(id).caps = caps.by_class();
                self.shared.objects[id as usize].news.caps = true;
            }
        }
        self.list_changed(id);
    }

    /// Whether there is an object of this id.
    #[must_use]
    pub fn contains(&self, id: u32) -> bool {
        self.object(id).is_some()
    }

    /// The reported cell of an object.
    #[must_use]
    pub fn cell(&self, id: u32) -> Option<GridCell> {
        self.object(id).map(|_| self.shared.grid.cell(id))
    }

    /// The last reported position of an object, in metres.
    #[must_use]
    pub fn position(&self, id: u32) -> Option<Vec2> {
        self.object(id).map(|object| object.position)
    }

    /// What ranks and hides an object.
    #[must_use]
    pub fn standing(&self, id: u32) -> Option<Standing> {
        self.object(id).map(|object| object.standing)
    }

    /// The caps of a viewer; `None` if it is no viewer.
    #[must_use]
    pub fn caps(&self, id: u32) -> Option<ViewCaps> {
        self.object(id).filter(|object| object.viewer)?;
        let [players, npcs, things] = self.shard(id).gaze(id).caps;
        Some(ViewCaps {
            players,
            npcs,
            things,
        })
    }

    /// Those that a viewer sees in one of its lists: (target, class), in place order. The list is that of a
    /// [`KindClass::index`], or [`UNCAPPED`].
    pub fn list(&self, viewer: u32, list: usize) -> impl ExactSizeIterator<Item = (u32, u8)> + '_ {
        let keys = self.shard(viewer).links.keys(viewer, list);
        keys.map(|key| (key.target(), class_of(key.rank())))
    }

    /// Those that a viewer sees: (target, class), list by list, in place order.
    pub fn seen_by(&self, viewer: u32) -> impl Iterator<Item = (u32, u8)> + '_ {
        (0..LISTS).flat_map(move |list| self.list(viewer, list))
    }

    /// Those who see a target: shard by shard the watchers in place order, then partners of mutual pairs.
    pub fn watchers(&self, target: u32) -> impl Iterator<Item = u32> + '_ {
        let one_way = self
            .shards
            .iter()
            .flat_map(move |shard| shard.links.watching(target));
        one_way.chain(self.shard(target).links.partners(target))
    }

    /// How many see a target.
    #[must_use]
    pub fn watchers_len(&self, target: u32) -> usize {
        let one_way = self
            .shards
            .iter()
            .map(|shard| shard.links.watchers_len(target));
        one_way.sum::<usize>() + self.shard(target).links.partners_len(target)
    }

    /// Whether a viewer sees a target. O(the shorter of the viewer's list and the target's watchers, eight at
    /// once), so at most the viewer's cap: with 100 links at each end 20 to 30 ns, or 70 to 105 ns among so many
    /// objects (10,000) that the arrays have to be fetched. Whoever asks for many targets of one viewer should
    /// go through [`seen_by`](Self::seen_by) once.
    #[must_use]
    pub fn visible(&self, viewer: u32, target: u32) -> bool {
        let links = &self.shard(viewer).links;
        self.object(target)
            .is_some_and(|object| links.contains(viewer, object.list(), target))
    }

    /// How many a viewer sees in the list of a class, those outside caps not counted.
    #[must_use]
    pub fn list_len(&self, viewer: u32, class: KindClass) -> usize {
        self.shard(viewer).links.list_len(viewer, class.index())
    }

    /// How many a viewer sees outside caps.
    #[must_use]
    pub fn uncapped_len(&self, viewer: u32) -> usize {
        self.shard(viewer).links.list_len(viewer, UNCAPPED)
    }

    /// How many links there are; "A sees B" is one.
    #[must_use]
    pub fn link_count(&self) -> usize {
        self.shards.iter().map(|shard| shard.links.len()).sum()
    }

    /// All links in a fixed order: (viewer, target, class), by viewer, then list, then place.
    pub fn links(&self) -> impl Iterator<Item = (u32, u32, u8)> + '_ {
        (0..self.shared.objects.len() as u32).flat_map(move |viewer| {
            self.seen_by(viewer)
                .map(move |(target, class)| (viewer, target, class))
        })
    }

    /// The viewers that wait for a look, the first to be served first.
    pub fn queued(&self) -> impl Iterator<Item = u32> + '_ {
        self.queue.iter()
    }

    /// How many viewers wait for a look.
    #[must_use]
    pub const fn queue_len(&self) -> usize {
        self.queue.len()
    }

    /// What was counted since the scene opened.
    #[must_use]
    pub fn counters(&self) -> ViewCounters {
        let shards = self.shards.iter().map(|shard| shard.counters);
        shards.fold(self.counters, ViewCounters::plus)
    }

    /// The interest grid.
    #[must_use]
    pub const fn grid(&self) -> &SceneGrid {
        &self.shared.grid
    }

    /// Collects the viewable objects of the chosen classes (one bit for each [`KindClass::index`]) within a
    /// radius by exact distance, sorted by id, hidden ones included. It knows last reported positions and the
    /// cells of the last update: whoever was inserted or teleported since may be missing. `out` is cleared
    /// first.
    pub fn nearby(&self, position: Vec2, radius_m: f32, classes: u8, out: &mut Vec<u32>) {
        out.clear();
        if radius_m.is_nan() || radius_m < 0.0 || position.is_nan() {
            return;
        }
        let Shared { grid, objects, .. } = &self.shared;
        out.extend(grid.targets_near(position, radius_m).filter(|&id| {
            let object = &objects[id as usize];
            classes >> object.class.index() & 1 != 0
                && object.position.distance_squared(position) <= radius_m * radius_m
        }));
        out.sort_unstable();
    }

    /// Feeds all state that later updates depend on to a hash, in a fixed order: cells, caps, what was
    /// refused, links in place order, the queue. Positions and standings belong to the world, which hashes
    /// them itself.
    pub fn digest(&self, fold: &mut impl FnMut(u64)) {
        let pack = |numbers: &[u16]| numbers.iter().fold(0, |bits, &n| bits << 16 | u64::from(n));
        for (id, object) in (0..)
            .zip(&self.shared.objects)
            .filter(|(_, object)| object.alive)
        {
            let ViewShard {
                links,
                viewer_index,
                ..
            } = self.shard(id);
            let cell = self.shared.grid.cell(id);
            let target_place = self.shared.grid.place_of(id);
            let (viewer_place, open_places) = viewer_index.places(id);
            fold(u64::from(id) << 32 | u64::from(cell.x) << 16 | u64::from(cell.y));
            fold(u64::from(target_place));
            // Where sight is directed nobody reads viewers in order, and shards would tell.
            if self.shared.ranking.mutual {
                let places = open_places.into_iter().chain([viewer_place]);
                places.for_each(|place| fold(u64::from(place)));
            }
            if object.viewer {
                let gaze = self.shard(id).gaze(id);
                fold(pack(&gaze.bound));
                fold(pack(&gaze.caps));
                for list in 0..LISTS {
                    fold(links.list_len(id, list) as u64);
                    links
                        .keys(id, list)
                        .for_each(|key| fold(u64::from(key.bits())));
                }
            }
        }
        fold(u64::from(self.turn));
        fold(self.queue.len() as u64);
        self.queue.iter().for_each(|id| fold(u64::from(id)));
    }

    /// The bytes held, slack included, the buffers of the update apart.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        // The queue has two numbers for each id.
        self.shared.grid.allocated_bytes()
            + self
                .shards
                .iter()
                .map(ViewShard::allocated_bytes)
                .sum::<usize>()
            + self.shared.objects.capacity() * (size_of::<TrackedObject>() + 2 * size_of::<u32>())
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
        object.news.viewer = true;
        let is_peer = object.is_peer();
        // Shut until the gates are known.
        *self.shard_mut(id).viewer_mut(id) = ViewerState {
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
        *shard.viewer_mut(id) = ViewerState::SHUT;
        let is_mutual = self.shared.ranking.mutual;
        let object = &mut self.shared.objects[id as usize];
        object.viewer = false;
        object.news.viewer = false;
        object.news.caps = false;
        // Its partners may see it one-way from now on.
        object.news.standing |= is_mutual;
    }

    fn list_changed(&mut self, id: u32) {
        let listed = &mut self.shared.objects[id as usize].news.listed;
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
