//! The views of a scene: who is where, and how that is changed.
//!
//! ```text
//! insert, remove, locate, teleport,     ┌──────────────── update (View) ────────────────┐
//! set_traits, set_hidden, set_caps ──▶│ settle by id ▶ cells side by side (▶ pairs) ▶ end │──▶ ViewEvents, bit rows
//!        (noted, cheap)                 └───────────────────────────────────────────────┘
//! ```
//! Each viewer has its own top list for each [`ObjectCategory`], under its own cap. Whether a link also needs the other end's
//! consent is the scene's [`ViewLinkMode`]. Who sees whom near stands in rows of bits, a row for each viewer in its cell and a bit
//! for each slot of the nine cells around (cells.rs); who is seen from afar stands in plain lists (far.rs).
//!
//! Who is refused is not listed. Among those without a tie to the viewer nobody outranks another, so a full list has nothing
//! to gain from them, and one with a place takes any; of ties a bit says that some may have been refused. A scene with a
//! ranking of its own compares all.
//!
//! A rank is a class and a band of distance. Classes count at once. Bands decide at once whom a viewer takes that looks
//! around; members make way for the nearer of their own class when their viewer has its turn, which a fixed share of the
//! viewers has every tick (see [`set_rerank_ticks`](SceneViews::set_rerank_ticks)).
//!
//! Invariants, after [`update`](SceneViews::update): see [`validate`](SceneViews::validate), which checks them by brute
//! force.
//!
//! Changes take effect at the next update (what a viewer gains by moving perhaps later, see
//! [`set_full_scans_max`](SceneViews::set_full_scans_max)), in the order of ids, so the order of calls within a tick cannot
//! matter. Only [`remove`](SceneViews::remove) and the end of viewing take effect at once: call them in a fixed order.
//!
//! Cost: a change within a cell is a few comparisons; a change of cell costs its row, a look at its bit in the rows around
//! where it was, and a comparison of ties with the nine cells around where it is; 100 bytes an object beside the cells' share.

use std::collections::BTreeSet;

use fixedbitset::FixedBitSet;
use glam::Vec2;
use thiserror::Error;
use throng_core::kinds::{ObjectCategory, ViewRange};
use throng_core::memory::MemoryUse;

use super::choose::refill_queue::RefillQueue;
use super::events::{ViewCounters, ViewEvent, ViewLeaveReason};
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
use crate::priority::{DistanceBands, SCENERY, ViewFilter, ViewPriority, ViewTraits};

/// What an object is to those who may see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ViewProfile {
    /// Which cap of its viewers it counts against.
    pub class: ObjectCategory,
    /// How far it is seen.
    pub visibility: ViewRange,
    /// What ranks and hides it; also what it sees, as a viewer.
    pub traits: ViewTraits,
    /// Whether it can be seen at all; a spectator cannot.
    pub viewable: bool,
}

/// How many of each class a viewer sees at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect))]
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

    /// The caps by [`ObjectCategory::index`].
    #[must_use]
    pub const fn by_class(self) -> [u16; UNCAPPED] {
        [self.players, self.npcs, self.things]
    }
}

/// Why an object is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RemovalReason {
    /// It ceases to exist.
    Despawn,
    /// It goes to another scene.
    Scene,
}

/// Why an object cannot be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ViewInsertError {
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

/// Who sees whom in one scene.
#[derive(Clone, Debug, MemoryUse)]
pub struct SceneViews {
    pub(super) shared: SceneState,
    /// The rows of each cell in use.
    #[memory(each)]
    pub(super) viewers: Vec<ViewerCell>,
    pub(super) queue: RefillQueue,
    /// Each viewer is re-ranked every so many updates; 0 for never.
    pub(super) rerank_ticks: u32,
    /// How many viewers that came or changed their cell look around in one update.
    pub(super) full_scans_max: u32,
    /// Updates so far.
    pub(super) update_count: u32,
    /// Ids with pending changes; who is gone is passed over by the update.
    pub(super) changed: FixedBitSet,
    /// The same while they are settled.
    pub(super) applying: Vec<u32>,
    /// Who is tied to whom, as owned or aiming: the one that a tie leads to, then the one that has it.
    pub(super) relations: BTreeSet<(u32, u32)>,
    /// The leaves of removed objects, told at the next update.
    pub(super) pending_leaves: Vec<ViewEvent>,
    pub(super) counters: ViewCounters,
    /// Links that both ends may want, where sight is mutual, and who asked fewer than it found, in which list.
    pub(super) proposals: Vec<MutualProposal>,
    pub(super) lists_with_more_candidates: Vec<(u32, u8)>,
    /// Who had a full list and has a place now, and is to be queued.
    pub(super) freed: Vec<u32>,
    /// The cells in which slots were taken or left in this update, and those with anything to do.
    pub(super) touched_cells: Vec<u32>,
    pub(super) active_cells: Vec<u32>,
    /// Who was found to have no place for a stranger.
    pub(super) full_objects: Vec<u32>,
    /// What each worker needs.
    #[memory(each)]
    pub(super) scratch: Vec<CellScratch>,
    objects_max: u32,
}

impl SceneViews {
    /// Views for a scene over this grid, with object ids below `objects_max` (at most [`IDS_MAX`]) and the
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
    pub fn with_view_link_mode(mut self, sight: ViewLinkMode) -> Self {
        debug_assert!(
            self.shared.objects.is_empty(),
            "sight is chosen before anybody comes"
        );
        self.shared.ranking.mutual = sight == ViewLinkMode::Mutual;
        self
    }

    /// Whose lists a link must find a place in.
    #[must_use]
    pub const fn view_link_mode(&self) -> ViewLinkMode {
        if self.shared.ranking.mutual {
            ViewLinkMode::Mutual
        } else {
            ViewLinkMode::Directed
        }
    }

    /// Lets each viewer with a full list look at distances anew every so many updates, by its id; 0 for
    /// never. So a list holds nobody from a farther band while somebody of the same class stayed in a nearer
    /// one for that long ([`DistanceBands::HYSTERESIS`] apart).
    pub const fn set_rerank_ticks(&mut self, ticks: u32) {
        self.rerank_ticks = ticks;
    }

    /// Of the viewers that came or changed their cell, so many look around in the same update, the lower ids
    /// first; all of them unless told otherwise. So it is with those whose traits or exceptions changed. The others leave
    /// whom they left at once, wait in the queue and see nobody new until their look.
    pub const fn set_full_scans_max(&mut self, sweeps: u32) {
        self.full_scans_max = sweeps;
    }

    /// Replaces the rules of the scene: who may see whom beyond layers and hiding, and the classes of pairs; `None` for
    /// everybody and for [`by_relationship`](crate::by_relationship). All pairs are judged anew by the next update:
    /// links that cannot be any more end there, others begin as by looks. That costs as much as if everybody came anew.
    ///
    /// With classes of its own a scene passes nobody over: a full viewer compares itself with the whole population of
    /// the cells that differ, where by default it reads columns of ties; and a place that falls free waits for a look of the
    /// queue, from the next update on. So it is with a list in which scenery and others were ever mixed.
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

    /// Removes an object with all its links, at once; the next update tells of the leaves, in both
    /// directions. False if there is no such object. The id may be reused at once.
    ///
    /// Cost: who sees it is found in the rows of nine cells, or of all from which a far target is seen.
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

    /// Reports where an object is now. Cheap while its cell stays. Unknown ids are ignored.
    #[inline]
    pub fn locate(&mut self, id: u32, position: Vec2) {
        // Whoever is gone may be told of as well: an update passes over it, and an insert forgets it.
        if let Some(known) = self.shared.positions.get_mut(id as usize) {
            *known = position;
            if self.shared.grid.locate(id, position) {
                self.mark_changed(id);
            }
        }
    }

    /// Reports that an object is elsewhere without having walked there: its cell forgets its margin.
    /// Unknown ids are ignored.
    pub fn teleport(&mut self, id: u32, position: Vec2) {
        if self.contains(id) {
            self.shared.positions[id as usize] = position;
            if self.shared.grid.teleport(id, position) {
                self.mark_changed(id);
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
            self.update_relations(id, &before, &traits);
            self.mark_traits_changed(id);
            self.update_unrelated_rank(id);
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
            self.mark_traits_changed(viewer);
        }
    }

    /// Hides an object from everybody, or shows it again. Unknown ids are ignored.
    pub fn set_hidden(&mut self, id: u32, hidden: bool) {
        if let Some(traits) = self.traits(id) {
            self.set_traits(id, ViewTraits { hidden, ..traits });
        }
    }

    /// Changes a viewer's caps. `Some` makes a viewer of an object that was none; `None` ends its viewing,
    /// with leaves of reason [`ViewLeaveReason::Despawn`] at the next update. Unknown ids are ignored.
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

    /// Notes how an object ranks to those without a tie to it. When a list has them of two classes, it is ranked like one
    /// with classes of its own from now on.
    fn update_unrelated_rank(&mut self, id: u32) {
        let object = &self.shared.objects[id as usize];
        let class = SceneState::class_to_unrelated(object);
        let Some(strangers) = self.shared.unrelated_ranks.get_mut(object.list()) else {
            return;
        };
        let known = *strangers.class.get_or_insert(class);
        // A pair is never scenery to each other, whichever end is.
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
        object.caps = caps.by_class();
        object.pending.viewer = true;
        self.update_unrelated_rank(id);
        self.unlink_one_way_viewers(id);
    }

    /// Keeps up who is tied to whom.
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

    /// Whoever was tied to an object that is gone is tied to nobody, also not to the next one of its id.
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

    /// What the rules say of an object may have changed.
    fn mark_traits_changed(&mut self, id: u32) {
        self.shared.objects[id as usize].pending.traits = true;
        self.mark_changed(id);
    }

    fn mark_changed(&mut self, id: u32) {
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
