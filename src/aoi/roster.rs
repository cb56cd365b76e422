//! Who is in a cell: targets by layer and list, viewers, those of them that are open, and who just arrived.
//!
//! Targets of one list lie together, so that a viewer whose list is full passes over them all. Viewers that
//! are *open* for a list, which would take a stranger into it, are kept apart once more for the same reason.
//!
//! Invariant: a member's place is `members[places[id]] == id`, in the cell that is its home.
//! Cost: insert, remove, move O(1).

use super::{
    grid::{GridCell, NONE, SceneGrid, index},
    links::UNCAPPED,
    members::Members,
    priority::Standing,
};

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

    /// The viewers in a grid cell.
    #[must_use]
    #[inline]
    pub fn viewers(&self, cell: GridCell) -> &Members {
        &self.viewers[index(cell, self.columns)]
    }

    /// The viewers in a grid cell that are open for a capped list.
    #[must_use]
    #[inline]
    pub fn open(&self, list: usize, cell: GridCell) -> &[u32] {
        &self.open[list][index(cell, self.columns)]
    }

    /// Whether targets of a capped list in a grid cell are no viewers.
    #[must_use]
    pub fn has_sightless(&self, list: usize, cell: GridCell) -> bool {
        self.sightless[list][index(cell, self.columns)] > 0
    }

    /// Enters a target into its layer and list, in its reported cell, which becomes its home.
    pub fn add_target(&mut self, id: u32, layer: usize, list: usize, standing: &Standing) {
        let cell = self.cells[id as usize];
        self.homes[id as usize] = cell;
        self.target_lists[id as usize] = (layer as u8, list as u8);
        let coarse = self.coarse(layer, cell);
        let layer = &mut self.layers[layer];
        let members = &mut layer.members[list];
        if members.is_empty() {
            members.resize(layer.arrivals.len(), Members::default());
        }
        let members = &mut members[index(coarse, layer.columns)];
        debug_assert_eq!(self.target_places[id as usize], NONE, "{id} is a target");
        self.target_places[id as usize] = members.push(id, standing);
        if list != UNCAPPED && self.viewer_places[id as usize] == NONE {
            self.sightless[list][index(cell, self.columns)] += 1;
        }
    }

    /// Enters a viewer in its reported cell, which becomes its home; it is open for no list.
    pub fn add_viewer(&mut self, id: u32, standing: &Standing) {
        let cell = self.cells[id as usize];
        self.homes[id as usize] = cell;
        let at = index(cell, self.columns);
        debug_assert_eq!(self.viewer_places[id as usize], NONE, "{id} is a viewer");
        self.viewer_places[id as usize] = self.viewers[at].push(id, standing);
        if let Some(list) = self.capped_list(id) {
            self.sightless[list][at] -= 1;
        }
    }

    /// Takes a target out of its layer, if it is in.
    pub fn remove_target(&mut self, id: u32) {
        let home = self.homes[id as usize];
        if let Some(list) = self.capped_list(id)
            && self.viewer_places[id as usize] == NONE
        {
            self.sightless[list][index(home, self.columns)] -= 1;
        }
        let place = std::mem::replace(&mut self.target_places[id as usize], NONE);
        if place != NONE {
            let (layer, list) = self.target_lists[id as usize];
            let coarse = self.coarse(usize::from(layer), home);
            let layer = &mut self.layers[usize::from(layer)];
            let members = &mut layer.members[usize::from(list)];
            if let Some(moved) = members[index(coarse, layer.columns)].swap_remove(place) {
                self.target_places[moved as usize] = place;
            }
        }
    }

    /// Takes a viewer out, if it is in.
    pub fn remove_viewer(&mut self, id: u32) {
        let cell = index(self.homes[id as usize], self.columns);
        let place = std::mem::replace(&mut self.viewer_places[id as usize], NONE);
        if place == NONE {
            return;
        }
        if let Some(moved) = self.viewers[cell].swap_remove(place) {
            self.viewer_places[moved as usize] = place;
        }
        for list in 0..UNCAPPED {
            self.close(id, list);
        }
        if let Some(list) = self.capped_list(id) {
            self.sightless[list][cell] += 1;
        }
    }

    /// Says whether a viewer is open for a capped list. Nothing happens while it is not in the grid.
    #[inline]
    pub fn set_open(&mut self, id: u32, list: usize, is_open: bool) {
        let was_open = self.open_places[id as usize][list] != NONE;
        if was_open == is_open || self.viewer_places[id as usize] == NONE {
            return;
        }
        if is_open {
            let open = &mut self.open[list][index(self.homes[id as usize], self.columns)];
            self.open_places[id as usize][list] = open.len() as u32;
            open.push(id);
        } else {
            self.close(id, list);
        }
    }

    /// Whether a viewer is open for a capped list.
    #[must_use]
    pub fn is_open(&self, id: u32, list: usize) -> bool {
        self.open_places[id as usize][list] != NONE
    }

    /// The place of an id among those open for a list in its cell, for state hashes.
    #[must_use]
    pub fn open_place(&self, id: u32, list: usize) -> u32 {
        self.open_places[id as usize][list]
    }

    fn close(&mut self, id: u32, list: usize) {
        let place = std::mem::replace(&mut self.open_places[id as usize][list], NONE);
        if place == NONE {
            return;
        }
        let open = &mut self.open[list][index(self.homes[id as usize], self.columns)];
        open.swap_remove(place as usize);
        if let Some(&moved) = open.get(place as usize) {
            self.open_places[moved as usize][list] = place;
        }
    }

    /// The list of a target, if it is capped.
    fn capped_list(&self, id: u32) -> Option<usize> {
        let list = usize::from(self.target_lists[id as usize].1);
        (self.target_places[id as usize] != NONE && list != UNCAPPED).then_some(list)
    }

    /// Writes anew what ties an id to others, in whatever arrays it stands.
    pub fn write_ties(&mut self, id: u32, standing: &Standing) {
        let home = self.homes[id as usize];
        let place = self.target_places[id as usize];
        if place != NONE {
            let (layer, list) = self.target_lists[id as usize];
            let coarse = self.coarse(usize::from(layer), home);
            let layer = &mut self.layers[usize::from(layer)];
            layer.members[usize::from(list)][index(coarse, layer.columns)].write(place, standing);
        }
        let place = self.viewer_places[id as usize];
        if place != NONE {
            self.viewers[index(home, self.columns)].write(place, standing);
        }
    }

    /// Moves an id in all arrays from its home to its reported cell.
    pub fn settle(&mut self, id: u32, standing: &Standing) {
        let (home, cell) = (self.homes[id as usize], self.cells[id as usize]);
        if home == cell {
            return;
        }
        let is_target = self.target_places[id as usize] != NONE;
        let is_viewer = self.viewer_places[id as usize] != NONE;
        let open: [bool; UNCAPPED] = std::array::from_fn(|list| self.is_open(id, list));
        let (layer, list) = self.target_lists[id as usize];
        let (layer, list) = (usize::from(layer), usize::from(list));
        if is_viewer {
            self.remove_viewer(id);
        }
        if is_target && self.coarse(layer, home) != self.coarse(layer, cell) {
            self.remove_target(id);
            self.add_target(id, layer, list, standing);
        }
        self.homes[id as usize] = cell;
        if is_viewer {
            self.add_viewer(id, standing);
            for (list, is_open) in open.into_iter().enumerate() {
                self.set_open(id, list, is_open);
            }
        }
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
        let standing = Standing::default();
        grid.grow(8);
        for id in 0..3 {
            grid.place(id, vec2(5.0, 5.0));
            grid.add_target(id, 0, 1, &standing);
            grid.add_viewer(id, &standing);
            grid.set_open(id, 1, id != 1);
        }
        assert!(grid.locate(0, vec2(25.0, 5.0)));
        let (first, third) = (GridCell { x: 0, y: 0 }, GridCell { x: 2, y: 0 });
        assert_eq!(grid.targets(0, 1, first).ids(), [0, 1, 2]);
        assert_eq!(grid.open(1, first), [0, 2]);
        grid.settle(0, &standing);
        assert_eq!(grid.targets(0, 1, first).ids(), [2, 1]);
        assert_eq!(grid.viewers(third).ids(), [0]);
        assert_eq!([grid.open(1, first), grid.open(1, third)], [[2], [0]]);
        assert!(!grid.has_sightless(1, first));
        assert!((0..3).all(|id| grid.validate(id, 0, true, true).is_ok()));
        grid.remove_viewer(2);
        assert!(grid.has_sightless(1, first) && grid.open(1, first).is_empty());
        grid.add_viewer(2, &standing);
        assert!(!grid.has_sightless(1, first));
        grid.remove_target(1);
        grid.remove_viewer(1);
        assert!(grid.validate(1, 0, false, false).is_ok());
        assert_eq!(grid.member_counts(), (2, 2));
    }
}
