//! Who is in a cell to be seen: targets by layer and list, and who just arrived.
//!
//! Targets of one list lie together, so that a viewer whose list is full passes over them all.
//!
//! Invariant: a member's place is `members[places[id]] == id`, in the cell that is its home.
//! Cost: insert, remove, move O(1).

use super::members::Members;
use super::scene_grid::{GridCell, NONE, SceneGrid, index};
use crate::aoi::links::UNCAPPED;
use crate::aoi::priority::ViewTraits;

impl SceneGrid {
    /// The targets of a layer that stand in a list of their viewers, in one of its cells.
    #[must_use]
    #[inline]
    pub fn targets(&self, layer: usize, list: usize, coarse: GridCell) -> &Members {
        const NOBODY: &Members = &Members::new();
        let layer = &self.layers[layer];
        layer.members[list]
            .get(index(coarse, layer.columns))
            .unwrap_or(NOBODY)
    }

    /// Whether there ever was a target of the finest layer in a list.
    #[must_use]
    pub fn has_list(&self, list: usize) -> bool {
        !self.layers[0].members[list].is_empty()
    }

    /// Whether targets of a capped list in a grid cell are no viewers.
    #[must_use]
    pub fn has_sightless(&self, list: usize, cell: GridCell) -> bool {
        self.sightless[list][index(cell, self.columns)] > 0
    }

    /// Says whether a target is no viewer.
    pub fn set_sightless(&mut self, id: u32, is_sightless: bool) {
        let (_, list, was_sightless) = self.target_lists[id as usize];
        if usize::from(list) == UNCAPPED || was_sightless == is_sightless {
            return;
        }
        self.target_lists[id as usize].2 = is_sightless;
        let home = index(self.homes[id as usize], self.columns);
        let count = &mut self.sightless[usize::from(list)][home];
        *count = if is_sightless { *count + 1 } else { *count - 1 };
    }

    /// Enters a target into its layer and list, in its reported cell, which becomes its home.
    pub fn add_target(&mut self, id: u32, layer: usize, list: usize, traits: &ViewTraits) {
        let cell = self.cells[id as usize];
        self.homes[id as usize] = cell;
        self.target_lists[id as usize] = (layer as u8, list as u8, false);
        let coarse = self.coarse(layer, cell);
        let layer = &mut self.layers[layer];
        let members = &mut layer.members[list];
        if members.is_empty() {
            members.resize(layer.arrivals.len(), Members::default());
        }
        let members = &mut members[index(coarse, layer.columns)];
        debug_assert_eq!(self.target_places[id as usize], NONE, "{id} is a target");
        self.target_places[id as usize] = members.push(id, traits);
    }

    /// Takes a target out of its layer, if it is in.
    pub fn remove_target(&mut self, id: u32) {
        let place = self.target_places[id as usize];
        if place == NONE {
            return;
        }
        self.set_sightless(id, false);
        self.target_places[id as usize] = NONE;
        let (layer, list, _) = self.target_lists[id as usize];
        let coarse = self.coarse(usize::from(layer), self.homes[id as usize]);
        let layer = &mut self.layers[usize::from(layer)];
        let members = &mut layer.members[usize::from(list)];
        if let Some(moved) = members[index(coarse, layer.columns)].swap_remove(place) {
            self.target_places[moved as usize] = place;
        }
    }

    /// Writes anew what ties a target to others, if it is in.
    pub fn write_ties(&mut self, id: u32, traits: &ViewTraits) {
        let place = self.target_places[id as usize];
        if place != NONE {
            let (layer, list, _) = self.target_lists[id as usize];
            let coarse = self.coarse(usize::from(layer), self.homes[id as usize]);
            let layer = &mut self.layers[usize::from(layer)];
            layer.members[usize::from(list)][index(coarse, layer.columns)].write(place, traits);
        }
    }

    /// Makes an id's reported cell its home; a target moves there.
    pub fn settle(&mut self, id: u32, traits: &ViewTraits) {
        let (home, cell) = (self.homes[id as usize], self.cells[id as usize]);
        if home == cell {
            return;
        }
        let (layer, list, is_sightless) = self.target_lists[id as usize];
        let (layer, list) = (usize::from(layer), usize::from(list));
        if self.target_places[id as usize] != NONE {
            self.set_sightless(id, false);
            if self.coarse(layer, home) != self.coarse(layer, cell) {
                self.remove_target(id);
                self.add_target(id, layer, list, traits);
            }
            self.homes[id as usize] = cell;
            self.set_sightless(id, is_sightless);
        }
        self.homes[id as usize] = cell;
    }

    /// Notes a target as new to those around its home in this update; once an update.
    pub fn note_arrival(&mut self, id: u32, layer: usize) {
        let coarse = self.coarse(layer, self.homes[id as usize]);
        let layer = &mut self.layers[layer];
        let first = &mut layer.arrivals[index(coarse, layer.columns)];
        self.next_arrival[id as usize] = *first;
        *first = id;
        layer.arrival_count += 1;
    }

    /// Whether any target was noted in a layer in this update.
    #[must_use]
    pub fn has_arrivals(&self, layer: usize) -> bool {
        self.layers[layer].arrival_count > 0
    }

    /// The targets noted in a layer's cell in this update, the last first.
    pub fn arrivals(&self, layer: usize, coarse: GridCell) -> impl Iterator<Item = u32> + '_ {
        let layer = &self.layers[layer];
        let some = |id: u32| (id != NONE).then_some(id);
        let first = some(layer.arrivals[index(coarse, layer.columns)]);
        std::iter::successors(first, move |&id| some(self.next_arrival[id as usize]))
    }

    /// Forgets the arrivals of the cell in which this one was noted.
    pub fn forget_arrival(&mut self, id: u32, layer: usize) {
        let coarse = self.coarse(layer, self.homes[id as usize]);
        let layer = &mut self.layers[layer];
        layer.arrivals[index(coarse, layer.columns)] = NONE;
        layer.arrival_count = 0;
    }
}

#[cfg(test)]
mod tests {
    use glam::vec2;

    use super::*;

    #[test]
    fn members_follow_their_cell_when_settled() {
        let mut grid = SceneGrid::new(95.0, 60.0, 10.0, 2.0).expect("a legal grid");
        let traits = ViewTraits::default();
        grid.grow(8);
        for id in 0..3 {
            grid.place(id, vec2(5.0, 5.0));
            grid.add_target(id, 0, 1, &traits);
            grid.set_sightless(id, id == 0);
        }
        assert!(grid.locate(0, vec2(25.0, 5.0)));
        let (first, third) = (GridCell { x: 0, y: 0 }, GridCell { x: 2, y: 0 });
        assert_eq!(grid.targets(0, 1, first).ids(), [0, 1, 2]);
        grid.settle(0, &traits);
        assert_eq!(grid.targets(0, 1, first).ids(), [2, 1]);
        assert_eq!(grid.targets(0, 1, third).ids(), [0]);
        assert!(!grid.has_sightless(1, first) && grid.has_sightless(1, third));
        assert!((0..3).all(|id| grid.validate(id, 0, true).is_ok()));
        grid.remove_target(0);
        assert!(!grid.has_sightless(1, third));
        assert!(grid.validate(0, 0, false).is_ok());
        assert_eq!(grid.target_count(), 2);
    }
}
