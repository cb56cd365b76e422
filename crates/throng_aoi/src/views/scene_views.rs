//! The views of a scene: all objects, and the calls that change them.
//!
//! ```text
//! insert, remove, locate, teleport,     ┌────────────────── update (View) ──────────────────┐
//! set_traits, set_hidden, set_caps ───▶ │ apply by id ▶ cells in parallel (▶ pairs) ▶ finish │ ──▶ ViewEvents, bit rows
//!        (noted, cheap)                 └────────────────────────────────────────────────────┘
//! ```
//! Each viewer has its own top list for each [`ObjectCategory`], under its own cap. The scene's [`ViewLinkMode`] decides
//! whether a link also needs the other end's consent. Near links are bits in rows: a row for each viewer in its cell, a bit
//! for each slot of the nine cells around (cells.rs). Far links are plain lists (far.rs).
//!
//! Refused targets are not stored. Among targets without a relation to the viewer no one outranks another, so a full list
//! has nothing to gain from them, and a list with a free slot takes any. For related targets, one bit notes that some may
//! have been refused. A scene with a custom ranking compares all.
//!
//! A rank is a class and a distance band. Classes count at once. Bands count at once for a viewer that scans; members are
//! replaced by nearer targets of their own class when it is their viewer's turn, which a fixed share of the viewers has
//! every tick (see [`set_rerank_ticks`](SceneViews::set_rerank_ticks)).
//!
//! Invariants, after [`update`](SceneViews::update): see [`validate`](SceneViews::validate), which checks them by brute
//! force.
//!
//! Changes take effect at the next update (what a viewer gains by moving perhaps later, see
//! [`set_full_scans_max`](SceneViews::set_full_scans_max)), in the order of ids, so the order of calls within a tick cannot
//! matter. Only [`remove`](SceneViews::remove) and the end of viewing take effect at once: call them in a fixed order.
//!
//! Cost: a change within a cell is a few comparisons; a change of cell costs its row, a test of its bit in the rows around
//! the old cell, and a comparison of relations with the nine cells around the new one; 100 bytes per object plus the cells'
//! memory.

use std::collections::BTreeSet;

use fixedbitset::FixedBitSet;
use glam::Vec2;
use thiserror::Error;
use throng_core::kinds::{ObjectCategory, ViewRange};
use throng_core::memory::MemoryUse;

use super::choose::refill_queue::RefillQueue;
use super::events::{ViewCounters, ViewEvent, ViewLeaveReason};
use super::exact::ExactViews;
use super::pairs::proposal::MutualProposal;
use super::state::cells::ViewerCell;
use super::state::exceptions::{ExceptionIndex, ViewException};
use super::state::far_index::FarIndex;
use super::state::object::{
    CellLocation, IDS_MAX, PendingChanges, Ranking, TrackedObject, UNCAPPED, ViewLinkMode,
};
use super::state::scene_state::{SceneState, UnrelatedRank};
use super::state::slot_positions::SlotPositions;
use super::update::cell_pass::CellScratch;
use crate::grid::{GridError, SceneGrid};
use crate::priority::{
    DistanceBands, DistanceRules, SCENERY, ViewFilter, ViewPriority, ViewTraits,
};

/// How an object takes part in the views of others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ViewProfile {
    /// The category that selects the cap of its viewers.
    pub class: ObjectCategory,
    /// From how far away it is visible.
    pub visibility: ViewRange,
    /// The traits that rank and hide it, and the layers that it sees as a viewer.
    pub traits: ViewTraits,
    /// Whether it can be seen at all; a spectator cannot.
    pub viewable: bool,
}

/// The maximum number of targets of each category for a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect))]
pub struct ViewCaps {
    /// For characters that players control.
    pub players: u16,
    /// For characters that the server controls.
    pub npcs: u16,
    /// For everything else.
    pub things: u16,
}

impl Default for ViewCaps {
    /// What a current client screen and connection can handle: 100 players, 50 NPCs, 50 things.
    fn default() -> Self {
        Self {
            players: 100,
            npcs: 50,
            things: 50,
        }
    }
}

impl ViewCaps {
    /// The same cap for all categories.
    #[must_use]
    pub const fn all(cap: u16) -> Self {
        Self {
            players: cap,
            npcs: cap,
            things: cap,
        }
    }

    /// The caps by [`ObjectCategory::index`].
    #[must_use]
    pub const fn by_class(self) -> [u16; UNCAPPED] {
        [self.players, self.npcs, self.things]
    }
}

/// Why an object is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RemovalReason {
    /// It is despawned.
    Despawn,
    /// It moves to another scene.
    Scene,
}

/// Why an object cannot be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ViewInsertError {
    /// The id is outside the scene's range.
    #[error("expected an object id below {limit}, found {id}")]
    IdBeyondLimit {
        /// The requested id.
        id: u32,
        /// The scene's `max_objects`.
        limit: u32,
    },
    /// The id is in use.
    #[error("object id {id} is in use")]
    IdInUse {
        /// The requested id.
        id: u32,
    },
}

/// The default number of updates after which a viewer with a full list is re-ranked: 6.4 s at 20 Hz.
pub const RERANK_TICKS: u32 = 128;

/// The view links of one scene.
#[derive(Clone, Debug, MemoryUse)]
pub struct SceneViews {
    pub(super) shared: SceneState,
    /// The rows of each cell in use.
    #[memory(each)]
    pub(super) viewers: Vec<ViewerCell>,
    pub(super) queue: RefillQueue,
    /// The viewers without a row, whose links depend on exact distances.
    pub(super) exact: ExactViews,
    /// Each viewer is re-ranked once in this many updates; 0 for never.
    pub(super) rerank_ticks: u32,
    /// The number of viewers that came or changed their cell and scan in one update.
    pub(super) full_scans_max: u32,
    /// The number of updates so far.
    pub(super) update_count: u32,
    /// Ids with pending changes; the update skips ids that are gone.
    pub(super) changed: FixedBitSet,
    /// The same while the update applies them.
    pub(super) applying: Vec<u32>,
    /// Relations, as owner or target: the object that is referred to, then the one that refers to it.
    pub(super) relations: BTreeSet<(u32, u32)>,
    /// The leaves of removed objects, emitted by the next update.
    pub(super) pending_leaves: Vec<ViewEvent>,
    pub(super) counters: ViewCounters,
    /// Mutual mode: possible links, and the viewers that proposed fewer than they found, with the list.
    pub(super) proposals: Vec<MutualProposal>,
    pub(super) lists_with_more_candidates: Vec<(u32, u8)>,
    /// Viewers that had a full list and have a free slot now; to be queued.
    pub(super) freed: Vec<u32>,
    /// The cells whose slots changed in this update, and the cells with any work.
    pub(super) touched_cells: Vec<u32>,
    pub(super) active_cells: Vec<u32>,
    /// Objects that were found to have no slot for an unrelated viewer.
    pub(super) full_objects: Vec<u32>,
    /// The scratch memory of each worker.
    #[memory(each)]
    pub(super) scratch: Vec<CellScratch>,
    objects_max: u32,
}

impl SceneViews {
    /// Creates views for a scene over this grid, with object ids below `objects_max` (at most [`IDS_MAX`]) and the
    /// default priorities, [`by_relationship`](crate::by_relationship).
    #[must_use]
    pub fn new(grid: SceneGrid, objects_max: u32) -> Self {
        let ranking = Ranking {
            filter: None,
            priority: None,
            bands: DistanceBands::new(grid.cell_m()),
            mutual: false,
        };
        Self {
            shared: SceneState {
                grid,
                objects: Vec::new(),
                positions: Vec::new(),
                locations: Vec::new(),
                ranking,
                distance_rules: DistanceRules::NONE,
                exceptions: ExceptionIndex::default(),
                cells: Vec::new(),
                cell_index: Vec::new(),
                far: FarIndex::default(),
                unrelated_ranks: [UnrelatedRank::default(); UNCAPPED],
                moved_rows: Vec::new(),
                moved_words: Vec::new(),
                moved_bits: Vec::new(),
                far_changes: Vec::new(),
                slot_positions: SlotPositions::default(),
                has_revised: false,
            },
            viewers: Vec::new(),
            queue: RefillQueue::default(),
            exact: ExactViews::default(),
            rerank_ticks: RERANK_TICKS,
            full_scans_max: u32::MAX,
            update_count: 0,
            changed: FixedBitSet::new(),
            applying: Vec::new(),
            relations: BTreeSet::new(),
            pending_leaves: Vec::new(),
            counters: ViewCounters::default(),
            proposals: Vec::new(),
            lists_with_more_candidates: Vec::new(),
            freed: Vec::new(),
            full_objects: Vec::new(),
            touched_cells: Vec::new(),
            active_cells: Vec::new(),
            scratch: vec![CellScratch::default()],
            objects_max: objects_max.min(IDS_MAX),
        }
    }

    /// Creates views for a scene of this size; see [`SceneGrid::new`].
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

    /// The same with this link mode, for a scene without objects.
    #[must_use]
    pub fn with_view_link_mode(mut self, sight: ViewLinkMode) -> Self {
        debug_assert!(
            self.shared.objects.is_empty(),
            "sight is chosen before anybody comes"
        );
        self.shared.ranking.mutual = sight == ViewLinkMode::Mutual;
        self
    }

    /// Whether a link needs a slot in the lists of both ends.
    #[must_use]
    pub const fn view_link_mode(&self) -> ViewLinkMode {
        if self.shared.ranking.mutual {
            ViewLinkMode::Mutual
        } else {
            ViewLinkMode::Directed
        }
    }

    /// Re-ranks each viewer with a full list once in this many updates, by its id; 0 for never. So a list has no
    /// member from a farther band while a target of the same class stayed in a nearer band for that long
    /// ([`DistanceBands::HYSTERESIS`] apart).
    pub const fn set_rerank_ticks(&mut self, ticks: u32) {
        self.rerank_ticks = ticks;
    }

    /// Limits the viewers that scan in the same update after they came, changed their cell, or had their traits or exceptions
    /// changed; the lower ids go first. The default is all of them. The others lose at once the targets that they left, wait in
    /// the queue and see no new targets until their scan.
    pub const fn set_full_scans_max(&mut self, sweeps: u32) {
        self.full_scans_max = sweeps;
    }

    /// Replaces the rules of the scene: the filter beyond layers and hiding, and the classes of pairs; `None` allows
    /// every pair, and selects [`by_relationship`](crate::by_relationship). The next update checks all pairs again:
    /// links that are no longer allowed end there, others begin as after scans. That costs as much as if every object arrived.
    ///
    /// With a custom priority no target can be skipped: a full viewer compares itself with the whole population of
    /// the cells that differ, where by default it reads columns of relations; and a slot that becomes free waits for a scan of
    /// the queue, from the next update on. The same holds for a list that ever had scenery and other targets.
    pub fn set_rules(&mut self, filter: Option<ViewFilter>, priority: Option<ViewPriority>) {
        self.shared.ranking.filter = filter;
        self.shared.ranking.priority = priority;
        for id in 0..self.shared.objects.len() as u32 {
            if self.shared.objects[id as usize].alive {
                self.mark_traits_changed(id);
            }
        }
    }

    /// Adds an object; it is seen, and sees if it has caps, from the next update on.
    ///
    /// # Errors
    /// See [`ViewInsertError`].
    pub fn insert(
        &mut self,
        id: u32,
        position: Vec2,
        profile: ViewProfile,
        viewer: Option<ViewCaps>,
    ) -> Result<(), ViewInsertError> {
        if id >= self.objects_max {
            return Err(ViewInsertError::IdBeyondLimit {
                id,
                limit: self.objects_max,
            });
        }
        self.grow(id as usize + 1);
        if self.shared.objects[id as usize].alive {
            return Err(ViewInsertError::IdInUse { id });
        }
        self.shared.grid.teleport(id, position);
        let layer = if profile.viewable {
            self.shared.grid.ensure_layer(profile.visibility)
        } else {
            0
        };
        self.shared.positions[id as usize] = position;
        self.shared.locations[id as usize] = CellLocation::NONE;
        self.shared.objects[id as usize] = TrackedObject {
            traits: ViewTraits {
                id,
                class: profile.class,
                ..profile.traits
            },
            // Far(0..=255) and Scene make at most 256 layers, numbered 0..=255.
            layer: layer as u8,
            uncapped: profile.visibility != ViewRange::Near,
            alive: true,
            viewable: profile.viewable,
            pending: PendingChanges {
                target: profile.viewable,
                ..PendingChanges::default()
            },
            ..TrackedObject::ABSENT
        };
        let traits = self.shared.objects[id as usize].traits;
        self.update_relations(id, &ViewTraits::default(), &traits);
        self.update_unrelated_rank(id);
        if let Some(caps) = viewer {
            self.add_viewer(id, caps);
        }
        self.mark_changed(id);
        Ok(())
    }

    /// Removes an object with all its links, at once; the next update emits the leaves, in both
    /// directions. False if there is no such object. The id may be reused at once.
    ///
    /// Cost: its viewers are found in the rows of nine cells, or of all cells in range for a far target.
    pub fn remove(&mut self, id: u32, removal: RemovalReason) -> bool {
        let Some(object) = self.object(id).copied() else {
            return false;
        };
        let reason = match removal {
            RemovalReason::Despawn => ViewLeaveReason::Despawn,
            RemovalReason::Scene => ViewLeaveReason::Scene,
        };
        self.remove_viewer(id, reason);
        if object.viewable {
            self.remove_target(id, reason);
        }
        self.shared.objects[id as usize] = TrackedObject::ABSENT;
        self.shared.locations[id as usize] = CellLocation::NONE;
        self.update_relations(id, &object.traits, &ViewTraits::default());
        self.clear_relations_to(id);
        self.clear_exceptions_of(id);
        true
    }

    /// Reports the position of an object. Cheap while its cell stays the same. Unknown ids are ignored.
    #[inline]
    pub fn locate(&mut self, id: u32, position: Vec2) {
        // An id that is gone is accepted: an update skips it, and an insert resets it.
        if let Some(known) = self.shared.positions.get_mut(id as usize) {
            *known = position;
            if self.shared.grid.locate(id, position) {
                self.mark_changed(id);
            }
        }
    }

    /// Reports that an object was moved without walking: the margin of its cell does not apply.
    /// Unknown ids are ignored.
    pub fn teleport(&mut self, id: u32, position: Vec2) {
        if self.contains(id) {
            self.shared.positions[id as usize] = position;
            if self.shared.grid.teleport(id, position) {
                self.mark_changed(id);
            }
        }
    }

    /// Changes the traits that the rules read of an object; its own id and category are filled in. Unknown ids are ignored. A
    /// relation to another object ends when that one is removed.
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
            self.update_relations(id, &before, &traits);
            self.mark_traits_changed(id);
            self.update_unrelated_rank(id);
        }
    }

    /// Shows a target to a viewer, or hides it from it, against the rules; `None` ends the exception. It also ends when
    /// either is removed. Unknown ids, and a viewer as its own target, are ignored. The next update checks all links of the
    /// viewer again.
    pub fn set_exception(&mut self, viewer: u32, target: u32, exception: Option<ViewException>) {
        if viewer == target || !self.contains(viewer) || !self.contains(target) {
            return;
        }
        if self.shared.exceptions.set(viewer, target, exception) {
            let has_any = self.shared.exceptions.has_any(viewer);
            self.shared.objects[viewer as usize].has_exceptions = has_any;
            self.mark_traits_changed(viewer);
        }
    }

    /// Hides an object from every viewer, or shows it again. Unknown ids are ignored.
    pub fn set_hidden(&mut self, id: u32, hidden: bool) {
        if let Some(traits) = self.traits(id) {
            self.set_traits(id, ViewTraits { hidden, ..traits });
        }
    }

    /// Changes a viewer's caps. `Some` turns an object into a viewer; `None` ends its viewing, with leaves of reason
    /// [`ViewLeaveReason::Despawn`] at the next update. Unknown ids are ignored.
    pub fn set_caps(&mut self, id: u32, caps: Option<ViewCaps>) {
        let Some(object) = self.object(id) else {
            return;
        };
        match caps {
            None => self.remove_viewer(id, ViewLeaveReason::Despawn),
            Some(caps) if !object.viewer => self.add_viewer(id, caps),
            Some(caps) => {
                let object = &mut self.shared.objects[id as usize];
                object.caps = caps.by_class();
                object.pending.caps = true;
            }
        }
        self.mark_changed(id);
    }

    #[inline]
    pub(super) fn object(&self, id: u32) -> Option<&TrackedObject> {
        self.shared
            .objects
            .get(id as usize)
            .filter(|object| object.alive)
    }

    /// Notes the class of an object for viewers without a relation to it. Once a list has had two such classes, it is ranked
    /// like one with a custom ranking from now on.
    fn update_unrelated_rank(&mut self, id: u32) {
        let object = &self.shared.objects[id as usize];
        let class = SceneState::class_to_unrelated(object);
        let Some(strangers) = self.shared.unrelated_ranks.get_mut(object.list()) else {
            return;
        };
        let known = *strangers.class.get_or_insert(class);
        // A mutual pair is never scenery to each other, whichever end is.
        let is_both = class == SCENERY && self.shared.ranking.mutual && object.is_peer();
        if known == class && !is_both || strangers.are_mixed {
            return;
        }
        strangers.are_mixed = true;
        for id in 0..self.shared.objects.len() as u32 {
            if self.shared.objects[id as usize].viewer {
                self.mark_traits_changed(id);
            }
        }
    }

    fn add_viewer(&mut self, id: u32, caps: ViewCaps) {
        let object = &mut self.shared.objects[id as usize];
        object.viewer = true;
        object.has_row = true;
        object.caps = caps.by_class();
        object.pending.viewer = true;
        self.exact.note_new_viewer(id, &self.shared.distance_rules);
        self.update_unrelated_rank(id);
        self.unlink_one_way_viewers(id);
    }

    /// Updates the index of relations.
    fn update_relations(&mut self, id: u32, before: &ViewTraits, after: &ViewTraits) {
        let (before, after) = ([before.owner, before.target], [after.owner, after.target]);
        if before == after {
            return;
        }
        for to in before {
            self.relations.remove(&(to, id));
        }
        for to in after.into_iter().filter(|&to| to != 0) {
            self.relations.insert((to, id));
        }
    }

    /// Clears all relations to an object that is gone, so that the next object with its id does not inherit them.
    fn clear_relations_to(&mut self, id: u32) {
        let tied = self.relations.range((id, 0)..=(id, u32::MAX));
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

    fn clear_exceptions_of(&mut self, id: u32) {
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

    /// Notes that the traits of an object changed.
    fn mark_traits_changed(&mut self, id: u32) {
        self.shared.objects[id as usize].pending.traits = true;
        self.mark_changed(id);
    }

    pub(super) fn mark_changed(&mut self, id: u32) {
        self.changed.insert(id as usize);
    }

    fn grow(&mut self, ids: usize) {
        if ids > self.shared.objects.len() {
            self.shared.grid.grow(ids);
            self.shared.objects.resize(ids, TrackedObject::ABSENT);
            self.shared.positions.resize(ids, Vec2::ZERO);
            self.shared.locations.resize(ids, CellLocation::NONE);
            self.changed.grow(ids);
            self.queue.grow(ids);
        }
    }
}
