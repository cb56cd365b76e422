//! What all cells of a scene read while they are worked side by side, and nobody writes then.

use glam::Vec2;

use super::cells::{TargetArrival, TargetCell};
use super::exceptions::{ExceptionIndex, ViewException};
use super::far_index::{FarChange, FarIndex};
use super::object::{NONE, Place, Ranking, TrackedObject, UNCAPPED};
use super::rows::AROUND;
use super::slot_positions::SlotPositions;
use crate::aoi::grid::{GridCell, SceneGrid};
use crate::aoi::priority::{OTHER, SCENERY};

/// A viewer that changed its cell: where it was, and where the row that it had there lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct MovedRow {
    pub(super) from: GridCell,
    pub(super) cell: u32,
    /// Where its words begin in [`Shared::moved_bits`], and where they end.
    pub(super) start: usize,
    pub(super) end: usize,
}

/// How those without a tie to their viewers are ranked in a list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Strangers {
    /// Their class; `None` while nobody was ever in the list.
    pub(super) class: Option<u8>,
    /// There were some of two classes.
    pub(super) are_mixed: bool,
}

/// What all cells of a scene read.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) grid: SceneGrid,
    pub(super) objects: Vec<TrackedObject>,
    pub(super) positions: Vec<Vec2>,
    pub(super) places: Vec<Place>,
    pub(super) ranking: Ranking,
    pub(super) exceptions: ExceptionIndex,
    /// The cells in use.
    pub(super) cells: Vec<TargetCell>,
    /// The index of each grid cell among those in use.
    pub(super) in_use: Vec<u32>,
    pub(super) far: FarIndex,
    pub(super) strangers: [Strangers; UNCAPPED],
    /// Who moved in this update, and the words of the rows that they had in which there was a bit, with their places: so
    /// what is laid aside is bounded by links, however long rows are.
    pub(super) moved: Vec<MovedRow>,
    pub(super) moved_words: Vec<u32>,
    pub(super) moved_bits: Vec<u64>,
    pub(super) far_changes: Vec<FarChange>,
    /// Of the cells around those in which somebody is re-ranked in this update.
    pub(super) slot_positions: SlotPositions,
    /// Somebody who may be seen already counts differently from this update on.
    pub(super) has_revised: bool,
}

impl Shared {
    /// Whether hiding, exceptions, layers and rules allow a link, range apart.
    #[inline]
    pub(super) fn allows(&self, viewer: &TrackedObject, target: &TrackedObject) -> bool {
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

    /// Whether whoever sees the ordinary layer sees everybody there who does not hide, exceptions apart, so that nobody need
    /// be asked.
    #[inline]
    pub(super) const fn is_plain(&self) -> bool {
        self.ranking.filter.is_none()
    }

    #[inline]
    pub(super) fn object(&self, id: u32) -> &TrackedObject {
        &self.objects[id as usize]
    }

    #[inline]
    pub(super) fn place(&self, id: u32) -> Place {
        self.places[id as usize]
    }

    #[inline]
    pub(super) fn position(&self, id: u32) -> Vec2 {
        self.positions[id as usize]
    }

    /// How near a target is to a viewer.
    #[inline]
    pub(super) fn nearness(&self, viewer: u32, target: u32) -> u8 {
        let (a, b) = (self.position(viewer), self.position(target));
        self.ranking.bands.nearness(a, b)
    }

    /// The class of a pair.
    #[inline]
    pub(super) fn class(&self, viewer: u32, target: u32) -> u8 {
        let (a, b) = (self.object(viewer), self.object(target));
        self.ranking.class(a, b)
    }

    /// Whether there ever was anybody in a list.
    #[inline]
    pub(super) const fn has_list(&self, list: usize) -> bool {
        self.strangers[list].class.is_some()
    }

    /// Whether those in a list have to be asked for their class one by one: any two may differ in it.
    #[inline]
    pub(super) const fn is_ranked(&self, list: usize) -> bool {
        list < UNCAPPED && (self.ranking.priority.is_some() || self.strangers[list].are_mixed)
    }

    /// The class of strangers in a list in which all of them are equal.
    #[inline]
    pub(super) fn stranger_class(&self, list: usize) -> u8 {
        self.strangers[list].class.unwrap_or(OTHER)
    }

    /// Whether a class goes before strangers, or has to be compared with theirs.
    #[inline]
    pub(super) fn goes_first(&self, list: usize, class: u8) -> bool {
        self.is_ranked(list) || class > self.stranger_class(list)
    }

    /// The class of an object to those without a tie to it, under the default ranking.
    pub(super) const fn class_to_strangers(object: &TrackedObject) -> u8 {
        if object.traits.scenery {
            SCENERY
        } else {
            OTHER
        }
    }

    /// The index of a cell that is in use.
    pub(super) fn index_of(&self, cell: GridCell) -> Option<usize> {
        let index = *self.in_use.get(self.grid.number(cell))?;
        (index != NONE).then_some(index as usize)
    }

    /// The cells in use around one of them, with their directions.
    pub(super) fn around(&self, index: usize) -> impl Iterator<Item = (usize, &TargetCell)> {
        let near = self.cells[index].near;
        (0..AROUND)
            .filter(move |&direction| near[direction] != NONE)
            .map(move |direction| (direction, &self.cells[near[direction] as usize]))
    }

    /// The word and the place of the bit by which a row of a cell sees a target, if the target stands near it.
    #[inline]
    pub(super) fn bit_of(&self, cell: &TargetCell, target: u32) -> Option<(usize, usize)> {
        let slot = self.place(target).slot;
        if slot == NONE {
            return None;
        }
        let direction = cell.at.direction_of(self.grid.home(target))?;
        Some((cell.word(direction, slot as usize), slot as usize % 64))
    }

    /// Whether an arrival is new to those who were in a cell before.
    #[inline]
    pub(super) fn is_new_to(arrival: &TargetArrival, cell: GridCell) -> bool {
        arrival.everywhere || !arrival.from.is_near(cell)
    }
}
