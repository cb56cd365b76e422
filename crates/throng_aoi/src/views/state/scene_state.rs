//! The state that all cells of a scene read while they run in parallel, and that no cell writes then.

use glam::Vec2;
use throng_core::memory::MemoryUse;

use super::cells::{TargetArrival, TargetCell};
use super::exceptions::{ExceptionIndex, ViewException};
use super::far_index::{FarChange, FarIndex};
use super::object::{CellLocation, NONE, Ranking, TrackedObject, UNCAPPED};
use super::rows::NEIGHBOURHOOD_CELLS;
use super::slot_positions::SlotPositions;
use crate::grid::{GridCell, SceneGrid};
use crate::priority::{DistanceRules, SCENERY, UNRELATED};

/// A viewer that changed its cell: its old cell, and where its old row is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MovedRow {
    pub(crate) from: GridCell,
    pub(crate) cell: u32,
    /// The range of its words in [`SceneState::moved_bits`].
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The rank of the targets of a list for viewers without a relation to them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnrelatedRank {
    /// Their class; `None` while the list was never used.
    pub(crate) class: Option<u8>,
    /// There were targets of two classes.
    pub(crate) are_mixed: bool,
}

/// The state that all cells of a scene read.
#[derive(Clone, Debug, MemoryUse)]
pub(crate) struct SceneState {
    pub(crate) grid: SceneGrid,
    pub(crate) objects: Vec<TrackedObject>,
    pub(crate) positions: Vec<Vec2>,
    pub(crate) locations: Vec<CellLocation>,
    pub(crate) ranking: Ranking,
    pub(crate) distance_rules: DistanceRules,
    pub(crate) exceptions: ExceptionIndex,
    /// The cells in use.
    #[memory(each)]
    pub(crate) cells: Vec<TargetCell>,
    /// For each grid cell, its index among the cells in use.
    pub(crate) cell_index: Vec<u32>,
    pub(crate) far: FarIndex,
    pub(crate) unrelated_ranks: [UnrelatedRank; UNCAPPED],
    /// The viewers that moved in this update, and the words with a bit of their old rows, with their indices. So the size
    /// is bounded by links, however long rows are.
    pub(crate) moved_rows: Vec<MovedRow>,
    pub(crate) moved_words: Vec<u32>,
    pub(crate) moved_bits: Vec<u64>,
    pub(crate) far_changes: Vec<FarChange>,
    /// The positions in the cells around those that re-rank a viewer in this update.
    pub(crate) slot_positions: SlotPositions,
    /// A target that may already be seen has changed in this update.
    pub(crate) has_revised: bool,
}

impl SceneState {
    /// Whether hiding, exceptions, layers and rules allow a link, regardless of range.
    #[inline]
    pub(crate) fn allows(&self, viewer: &TrackedObject, target: &TrackedObject) -> bool {
        self.may_see(viewer, target)
            && (!self.ranking.is_pair(viewer, target) || self.may_see(target, viewer))
    }

    #[inline]
    fn may_see(&self, viewer: &TrackedObject, target: &TrackedObject) -> bool {
        if viewer.has_exceptions || self.ranking.filter.is_some() {
            self.may_see_by_rules(viewer, target)
        } else {
            viewer.traits.can_see(&target.traits)
        }
    }

    fn may_see_by_rules(&self, viewer: &TrackedObject, target: &TrackedObject) -> bool {
        let (a, b) = (&viewer.traits, &target.traits);
        if b.hidden {
            return false;
        }
        let exception = viewer
            .has_exceptions
            .then(|| self.exceptions.get(a.id, b.id));
        match exception.flatten() {
            Some(ViewException::Show) => true,
            Some(ViewException::Hide) => false,
            None => a.can_see(b) && self.ranking.filter.is_none_or(|allows| allows(a, b)),
        }
    }

    /// Whether layers and rules do not apply to a pair, because the target is shown to the viewer.
    pub(crate) fn is_shown(&self, viewer: &TrackedObject, target: &TrackedObject) -> bool {
        let exception = || self.exceptions.get(viewer.traits.id, target.traits.id);
        viewer.has_exceptions && exception() == Some(ViewException::Show)
    }

    /// Whether a viewer of the ordinary layer sees every target there that is not hidden, exceptions apart, so that no filter
    /// has to be called.
    #[inline]
    pub(crate) const fn has_default_rules(&self) -> bool {
        self.ranking.filter.is_none()
    }

    #[inline]
    pub(crate) fn object(&self, id: u32) -> &TrackedObject {
        &self.objects[id as usize]
    }

    #[inline]
    pub(crate) fn location(&self, id: u32) -> CellLocation {
        self.locations[id as usize]
    }

    #[inline]
    pub(crate) fn position(&self, id: u32) -> Vec2 {
        self.positions[id as usize]
    }

    /// The nearness of a target to a viewer.
    #[inline]
    pub(crate) fn nearness(&self, viewer: u32, target: u32) -> u8 {
        let (a, b) = (self.position(viewer), self.position(target));
        self.ranking.bands.nearness(a, b)
    }

    /// The class of a pair.
    #[inline]
    pub(crate) fn class(&self, viewer: u32, target: u32) -> u8 {
        let (a, b) = (self.object(viewer), self.object(target));
        self.ranking.class(a, b)
    }

    /// Whether a list was ever used.
    #[inline]
    pub(crate) const fn has_list(&self, list: usize) -> bool {
        self.unrelated_ranks[list].class.is_some()
    }

    /// Whether the targets of a list have to be compared one by one: any two may differ in class.
    #[inline]
    pub(crate) const fn is_ranked(&self, list: usize) -> bool {
        list < UNCAPPED && (self.ranking.priority.is_some() || self.unrelated_ranks[list].are_mixed)
    }

    /// The class of unrelated targets in a list in which all of them are equal.
    #[inline]
    pub(crate) fn unrelated_class(&self, list: usize) -> u8 {
        self.unrelated_ranks[list].class.unwrap_or(UNRELATED)
    }

    /// Whether a class goes before unrelated targets, or has to be compared with theirs.
    #[inline]
    pub(crate) fn outranks_unrelated(&self, list: usize, class: u8) -> bool {
        self.is_ranked(list) || class > self.unrelated_class(list)
    }

    /// The class of an object for unrelated viewers, under the default ranking.
    pub(crate) const fn class_to_unrelated(object: &TrackedObject) -> u8 {
        if object.traits.scenery {
            SCENERY
        } else {
            UNRELATED
        }
    }

    /// The index of a cell that is in use.
    pub(crate) fn index_of(&self, cell: GridCell) -> Option<usize> {
        let index = *self.cell_index.get(self.grid.cell_index(cell))?;
        (index != NONE).then_some(index as usize)
    }

    /// The cells in use around one of them, with their directions.
    pub(crate) fn neighbours(&self, index: usize) -> impl Iterator<Item = (usize, &TargetCell)> {
        let near = self.cells[index].neighbours;
        (0..NEIGHBOURHOOD_CELLS)
            .filter(move |&direction| near[direction] != NONE)
            .map(move |direction| (direction, &self.cells[near[direction] as usize]))
    }

    /// The word and the bit by which a row of a cell sees a target, if the target is near it.
    #[inline]
    pub(crate) fn bit_of(&self, cell: &TargetCell, target: u32) -> Option<(usize, usize)> {
        let slot = self.location(target).slot;
        if slot == NONE {
            return None;
        }
        let direction = cell
            .grid_cell
            .direction_of(self.grid.committed_cell(target))?;
        Some((cell.word(direction, slot as usize), slot as usize % 64))
    }

    /// Whether an arrival is new to viewers that were in a cell before.
    #[inline]
    pub(crate) fn is_new_to(arrival: &TargetArrival, cell: GridCell) -> bool {
        arrival.is_new_everywhere || !arrival.from.is_near(cell)
    }
}
