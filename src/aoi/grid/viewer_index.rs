//! Where a share of the viewers stand: by grid cell, and those that are open once more.
//!
//! Viewers that are *open* for a list, which would take a stranger into it, are kept apart, so that a stranger
//! passes over all others.
//!
//! Invariant: a viewer's place is `viewers[cell][places[id]] == id`; whoever is open stands in its own cell.
//! Cost: insert, remove, move O(1); 16 bytes an id, and 24 a viewer for what its ties are found by, before slack;
//! 32 bytes a cell and shard, and 24 more for each list for which there ever was somebody open.

use super::members::Members;
use super::scene_grid::{GridCell, NONE, SceneGrid, index};
use crate::aoi::links::UNCAPPED;
use crate::aoi::priority::ViewTraits;
use crate::aoi::share::Share;

/// A share of the viewers of a scene, by the cell in which they are at home.
#[derive(Clone, Debug)]
pub struct ViewerIndex {
    share: Share,
    columns: u16,
    viewers: Vec<Members>,
    places: Vec<u32>,
    /// By capped list, then by cell; no cells of a list for which nobody ever was open.
    open: [Vec<Vec<u32>>; UNCAPPED],
    open_places: Vec<[u32; UNCAPPED]>,
}

impl ViewerIndex {
    /// Nobody yet, on the cells of this grid.
    #[must_use]
    pub fn new(share: Share, grid: &SceneGrid) -> Self {
        let (columns, rows) = grid.size();
        let cell_count = usize::from(columns) * usize::from(rows);
        Self {
            share,
            columns,
            viewers: vec![Members::default(); cell_count],
            places: Vec::new(),
            open: Default::default(),
            open_places: Vec::new(),
        }
    }

    /// Makes room for the ids below `ids`.
    pub fn grow(&mut self, ids: usize) {
        let len = self.share.len_of(ids);
        if len > self.places.len() {
            self.places.resize(len, NONE);
            self.open_places.resize(len, [NONE; UNCAPPED]);
        }
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
        let cells = self.open[list].get(index(cell, self.columns));
        cells.map_or(&[], Vec::as_slice)
    }

    /// The place of a viewer in its cell, and its places among the open ones there, for state hashes: sweeps
    /// read them in this order.
    #[must_use]
    pub fn places(&self, id: u32) -> (u32, [u32; UNCAPPED]) {
        let place = self.share.place(id);
        (self.places[place], self.open_places[place])
    }

    /// Enters a viewer in a cell; it is open for no list.
    pub fn add(&mut self, id: u32, cell: GridCell, traits: &ViewTraits) {
        let place = &mut self.places[self.share.place(id)];
        debug_assert_eq!(*place, NONE, "{id} is a viewer");
        *place = self.viewers[index(cell, self.columns)].push(id, traits);
    }

    /// Takes a viewer out of the cell where it is, if it is in.
    pub fn remove(&mut self, id: u32, cell: GridCell) {
        let place = std::mem::replace(&mut self.places[self.share.place(id)], NONE);
        if place == NONE {
            return;
        }
        if let Some(moved) = self.viewers[index(cell, self.columns)].swap_remove(place) {
            self.places[self.share.place(moved)] = place;
        }
        for list in 0..UNCAPPED {
            self.close(id, list, cell);
        }
    }

    /// Moves a viewer, if it is in; for what it was open it stays open.
    pub fn settle(&mut self, id: u32, (from, to): (GridCell, GridCell), traits: &ViewTraits) {
        let place = self.share.place(id);
        if from == to || self.places[place] == NONE {
            return;
        }
        let open_places = self.open_places[place];
        self.remove(id, from);
        self.add(id, to, traits);
        for (list, place) in open_places.into_iter().enumerate() {
            self.set_open(id, list, to, place != NONE);
        }
    }

    /// Writes anew what ties a viewer to others, if it is in.
    pub fn write_ties(&mut self, id: u32, cell: GridCell, traits: &ViewTraits) {
        let place = self.places[self.share.place(id)];
        if place != NONE {
            self.viewers[index(cell, self.columns)].write(place, traits);
        }
    }

    /// Says whether a viewer in this cell is open for a capped list. Nothing happens while it is not in.
    #[inline]
    pub fn set_open(&mut self, id: u32, list: usize, cell: GridCell, is_open: bool) {
        let place = self.share.place(id);
        let was_open = self.open_places[place][list] != NONE;
        if was_open == is_open || self.places[place] == NONE {
            return;
        }
        if !is_open {
            return self.close(id, list, cell);
        }
        let cells = &mut self.open[list];
        if cells.is_empty() {
            cells.resize(self.viewers.len(), Vec::new());
        }
        let open = &mut cells[index(cell, self.columns)];
        self.open_places[place][list] = open.len() as u32;
        open.push(id);
    }

    fn close(&mut self, id: u32, list: usize, cell: GridCell) {
        let place = &mut self.open_places[self.share.place(id)][list];
        let place = std::mem::replace(place, NONE);
        if place == NONE {
            return;
        }
        let open = &mut self.open[list][index(cell, self.columns)];
        open.swap_remove(place as usize);
        if let Some(&moved) = open.get(place as usize) {
            self.open_places[self.share.place(moved)][list] = place;
        }
    }

    /// The bytes held, slack included.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        let viewers = self.viewers.iter().map(Members::allocated_bytes);
        let open = self.open.iter().flatten();
        let open = open.map(|cell| size_of::<Vec<u32>>() + cell.capacity() * size_of::<u32>());
        viewers.sum::<usize>()
            + open.sum::<usize>()
            + self.places.capacity() * size_of::<u32>()
            + self.open_places.capacity() * size_of::<[u32; UNCAPPED]>()
    }

    /// Checks that an id of this share stands in this cell if it is a viewer, and nowhere if not. O(1).
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn validate(&self, id: u32, cell: GridCell, is_viewer: bool) -> Result<(), String> {
        let (place, open_places) = self.places(id);
        let stands = |members: &[u32], place: u32| members.get(place as usize) == Some(&id);
        if is_viewer != (place != NONE) || is_viewer && !stands(self.viewers(cell).ids(), place) {
            return Err(format!("viewer {id} is not at its place in cell {cell:?}"));
        }
        for (list, &place) in open_places.iter().enumerate() {
            if place != NONE && (!is_viewer || !stands(self.open(list, cell), place)) {
                return Err(format!("{id} is not where it is open for list {list}"));
            }
        }
        Ok(())
    }

    /// How many viewers all cells have. O(cells).
    #[must_use]
    pub fn viewer_count(&self) -> usize {
        self.viewers.iter().map(Members::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_moves_stays_open_and_who_leaves_is_in_no_cell() {
        let grid = SceneGrid::new(95.0, 60.0, 10.0, 2.0).expect("a legal grid");
        let mut viewer_index = ViewerIndex::new(Share::default(), &grid);
        let traits = ViewTraits::default();
        let (first, third) = (GridCell { x: 0, y: 0 }, GridCell { x: 2, y: 0 });
        viewer_index.grow(8);
        for id in 0..3 {
            viewer_index.add(id, first, &traits);
            viewer_index.set_open(id, 1, first, id != 1);
        }
        assert_eq!(viewer_index.open(1, first), [0, 2]);
        viewer_index.settle(0, (first, third), &traits);
        assert_eq!(viewer_index.viewers(third).ids(), [0]);
        let open = [first, third].map(|cell| viewer_index.open(1, cell));
        assert_eq!(open, [[2], [0]]);
        viewer_index.remove(2, first);
        assert!(viewer_index.open(1, first).is_empty());
        viewer_index.set_open(2, 1, first, true);
        assert!(viewer_index.open(1, first).is_empty(), "it is not in");
        for (id, cell, is_in) in [(0, third, true), (1, first, true), (2, first, false)] {
            assert_eq!(viewer_index.validate(id, cell, is_in), Ok(()));
        }
        assert!(viewer_index.validate(0, first, true).is_err());
        assert_eq!(viewer_index.viewer_count(), 2);
    }
}
