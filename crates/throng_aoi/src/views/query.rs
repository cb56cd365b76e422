//! Queries on views, and the hash of their state.

use glam::Vec2;
use smallvec::SmallVec;
use throng_core::kinds::ObjectCategory;

use super::events::ViewCounters;
use super::scene_views::{SceneViews, ViewCaps};
use super::state::bits::ones;
use super::state::cells::{TargetCell, ViewerCell};
use super::state::exceptions::ViewException;
use super::state::object::{CellLocation, NONE, TrackedObject, UNCAPPED};
use super::state::rows::NEIGHBOURHOOD_CELLS;
use super::state::scene_state::SceneState;
use crate::grid::{GridCell, SceneGrid};
use crate::priority::ViewTraits;

impl SceneViews {
    /// Whether an object has this id.
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
    #[inline]
    pub fn position(&self, id: u32) -> Option<Vec2> {
        self.object(id).map(|_| self.shared.position(id))
    }

    /// The traits of an object that rank and hide it.
    #[must_use]
    pub fn traits(&self, id: u32) -> Option<ViewTraits> {
        self.object(id).map(|object| object.traits)
    }

    /// The exceptions of a viewer, by ascending target.
    pub fn exceptions(&self, viewer: u32) -> impl Iterator<Item = (u32, ViewException)> + '_ {
        self.shared.exceptions.of(viewer)
    }

    /// The viewers that have an exception for a target, ascending.
    pub fn viewers_with_exception(&self, target: u32) -> impl Iterator<Item = u32> + '_ {
        self.shared.exceptions.viewers_of(target)
    }

    /// The caps of a viewer; `None` if the object is not a viewer.
    #[must_use]
    pub fn caps(&self, id: u32) -> Option<ViewCaps> {
        let object = self.object(id).filter(|object| object.viewer)?;
        let [players, npcs, things] = object.caps;
        Some(ViewCaps {
            players,
            npcs,
            things,
        })
    }

    /// Whether two objects see either each other or not at all: see [`ViewLinkMode::Mutual`](super::ViewLinkMode::Mutual).
    #[must_use]
    pub fn is_pair(&self, a: u32, b: u32) -> bool {
        let (a, b) = (self.object(a), self.object(b));
        a.zip(b)
            .is_some_and(|(a, b)| self.shared.ranking.is_pair(a, b))
    }

    /// The cell of a viewer, its rows, and the index of its own row.
    fn row_of(&self, viewer: u32) -> Option<(&TargetCell, &ViewerCell, usize)> {
        let &CellLocation { cell, row, .. } = self.shared.locations.get(viewer as usize)?;
        let (target, viewers) = (
            self.shared.cells.get(cell as usize)?,
            self.viewers.get(cell as usize)?,
        );
        (row != NONE).then_some((target, viewers, row as usize))
    }

    /// The near targets of a viewer, cell by cell, by slot.
    pub(super) fn seen_near(&self, viewer: u32) -> impl Iterator<Item = u32> + '_ {
        self.row_of(viewer)
            .into_iter()
            .flat_map(move |(cell, viewers, row)| {
                (0..NEIGHBOURHOOD_CELLS).flat_map(move |direction| {
                    let near = self.shared.cells.get(cell.neighbours[direction] as usize);
                    near.into_iter().flat_map(move |near| {
                        let words = viewers.rows.range(row, cell.words_in(direction));
                        words.enumerate().flat_map(move |(nth, word)| {
                            ones(word).map(move |place| near.id(nth * 64 + place))
                        })
                    })
                })
            })
    }

    fn seen_far(&self, viewer: u32) -> &[u32] {
        let row = self.row_of(viewer);
        row.map_or(&[], |(_, viewers, row)| viewers.far(row))
    }

    fn with_class(&self, viewer: u32, target: u32) -> (u32, u8) {
        (target, self.shared.class(viewer, target))
    }

    /// The targets in one of the lists of a viewer: (target, class), in a fixed order. The list is that of an
    /// [`ObjectCategory::index`], or [`UNCAPPED`].
    pub fn list(&self, viewer: u32, list: usize) -> impl Iterator<Item = (u32, u8)> + '_ {
        let seen = self.seen_by(viewer);
        seen.filter(move |&(target, _)| self.shared.object(target).list() == list)
    }

    /// The targets of a viewer: (target, class), in a fixed order: cell by cell, by slot, then those outside caps. For a viewer
    /// whose links depend on exact distances: list by list, by id.
    pub fn seen_by(&self, viewer: u32) -> impl Iterator<Item = (u32, u8)> + '_ {
        let seen = self
            .seen_near(viewer)
            .chain(self.seen_far(viewer).iter().copied())
            .chain(self.exact.seen_by(viewer));
        seen.map(move |target| self.with_class(viewer, target))
    }

    /// The viewers of a target, cell by cell, by row, then those whose links depend on exact distances. O(viewers in the nine
    /// cells around it); for a far target, O(viewers in range of it). Plus a search in the list of each viewer of the scene whose
    /// links depend on exact distances.
    pub fn watchers(&self, target: u32) -> impl Iterator<Item = u32> + '_ {
        let near = self.watchers_near(target);
        let list = self.object(target).map(TrackedObject::list);
        let exact = list
            .into_iter()
            .flat_map(move |list| self.exact.watchers(list, target));
        near.chain(self.watchers_far(target)).chain(exact)
    }

    fn watchers_near(&self, target: u32) -> impl Iterator<Item = u32> + '_ {
        let place = self.shared.locations.get(target as usize).copied();
        let place = place.filter(|place| place.slot != NONE);
        place.into_iter().flat_map(move |place| {
            let around = self.shared.neighbours(place.cell as usize);
            around.flat_map(move |(direction, cell)| {
                let word = cell.word(NEIGHBOURHOOD_CELLS - 1 - direction, place.slot as usize);
                let index = self.shared.cells[place.cell as usize].neighbours[direction];
                let viewers = &self.viewers[index as usize];
                (0..viewers.len())
                    .filter(move |&row| viewers.rows.has(row, word, place.slot as usize))
                    .map(|row| viewers.id(row))
            })
        })
    }

    fn watchers_far(&self, target: u32) -> impl Iterator<Item = u32> + '_ {
        let object = self.object(target).filter(|object| object.uncapped);
        let cells = object.map_or(&[][..], |_| &self.viewers);
        let layer = object.map_or(0, |object| usize::from(object.layer));
        let grid = &self.shared.grid;
        let in_range = move |viewers: &&ViewerCell| {
            let at = self.shared.cells[viewers.cell as usize].grid_cell;
            grid.in_range(layer, at, grid.committed_cell(target))
        };
        cells.iter().filter(in_range).flat_map(move |viewers| {
            (0..viewers.len())
                .filter(move |&row| viewers.far(row).binary_search(&target).is_ok())
                .map(|row| viewers.id(row))
        })
    }

    /// The number of viewers of a target. Same cost as [`watchers`](Self::watchers).
    #[must_use]
    pub fn watchers_len(&self, target: u32) -> usize {
        self.watchers(target).count()
    }

    /// Whether a viewer sees a target. O(1), in a crowd O(log seen); O(log far targets) for one outside caps.
    #[must_use]
    pub fn visible(&self, viewer: u32, target: u32) -> bool {
        let Some(object) = self.object(target) else {
            return false;
        };
        let Some((cell, viewers, row)) = self.row_of(viewer) else {
            return self.exact.sees(viewer, object.list(), target);
        };
        if object.uncapped {
            return viewers.far(row).binary_search(&target).is_ok();
        }
        let bit = self.shared.bit_of(cell, target);
        bit.is_some_and(|(word, place)| viewers.rows.has(row, word, place))
    }

    /// The number of targets of a viewer in the list of a category, without those outside caps.
    #[must_use]
    pub fn list_len(&self, viewer: u32, class: ObjectCategory) -> usize {
        match self.row_of(viewer) {
            Some((_, viewers, row)) => usize::from(viewers.states[row].count[class.index()]),
            None => self.exact.list_len(viewer, class.index()),
        }
    }

    /// The number of targets of a viewer outside caps.
    #[must_use]
    pub fn uncapped_len(&self, viewer: u32) -> usize {
        self.seen_far(viewer).len() + self.exact.list_len(viewer, UNCAPPED)
    }

    /// The number of links; "A sees B" is one.
    #[must_use]
    pub const fn link_count(&self) -> usize {
        // Links that ended since the last update are not counted as leaves yet.
        (self.counters.enters - self.counters.leaves) as usize - self.pending_leaves.len()
    }

    /// All links in a fixed order: (viewer, target, class), by viewer.
    pub fn links(&self) -> impl Iterator<Item = (u32, u32, u8)> + '_ {
        (0..self.shared.objects.len() as u32).flat_map(move |viewer| {
            self.seen_by(viewer)
                .map(move |(target, class)| (viewer, target, class))
        })
    }

    /// The viewers that wait for a scan, in the order in which they are served; then those whose links depend on exact distances,
    /// in their order.
    pub fn queued(&self) -> impl Iterator<Item = u32> + '_ {
        self.queue.iter().chain(self.exact.waiting())
    }

    /// The number of viewers that wait for a scan.
    #[must_use]
    pub fn queue_len(&self) -> usize {
        self.queue.len() + self.exact.waiting().len()
    }

    /// The counters since the scene opened.
    #[must_use]
    pub const fn counters(&self) -> ViewCounters {
        self.counters
    }

    /// The interest grid.
    #[must_use]
    pub const fn grid(&self) -> &SceneGrid {
        &self.shared.grid
    }

    /// Collects the viewable objects of the selected categories (one bit for each [`ObjectCategory::index`]) within a
    /// radius by exact distance, sorted by id, hidden ones included. It uses the last reported positions and the
    /// cells of the last update: objects that were inserted or teleported since may be missing. Clears `out`
    /// first.
    pub fn nearby(&self, position: Vec2, radius_m: f32, classes: u8, out: &mut Vec<u32>) {
        out.clear();
        if radius_m.is_nan() || radius_m < 0.0 || position.is_nan() {
            return;
        }
        let SceneState {
            grid,
            cells,
            objects,
            far,
            ..
        } = &self.shared;
        let (low, high) = grid.bounding_cells(position, radius_m);
        let touched =
            (low.y..=high.y).flat_map(|y| (low.x..=high.x).map(move |x| GridCell { x, y }));
        let touched = touched.filter_map(|cell| Some(&cells[self.shared.index_of(cell)?]));
        let near = touched.flat_map(|cell| cell.relations.ids().iter().copied());
        out.extend(near.chain(far.iter()).filter(|&id| {
            let Some(object) = objects.get(id as usize) else {
                return false;
            };
            classes >> object.traits.class.index() & 1 != 0
                && self.shared.position(id).distance_squared(position) <= radius_m * radius_m
        }));
        out.sort_unstable();
    }

    /// The nearest viewable object within a radius for which `is_wanted` is true; among equally near ones, the one with the
    /// lowest id. It uses the same positions and cells as [`nearby`](Self::nearby), and calls `is_wanted` rarely: only for an
    /// object that is nearer than all accepted ones before.
    ///
    /// Cost: the distances of all objects in the cells that are nearer than the result.
    #[must_use]
    pub fn nearest(
        &self,
        position: Vec2,
        radius_m: f32,
        mut is_wanted: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        if radius_m.is_nan() || radius_m < 0.0 || position.is_nan() {
            return None;
        }
        let shared = &self.shared;
        let (low, high) = shared.grid.bounding_cells(position, radius_m);
        let touched =
            (low.y..=high.y).flat_map(|y| (low.x..=high.x).map(move |x| GridCell { x, y }));
        let mut touched: SmallVec<[(f32, usize); 16]> = touched
            .filter_map(|at| {
                let nearest_m = shared.nearest_in_cell(position, at).distance(position);
                // Allow a rounding error at the border of a cell.
                let from_m = (nearest_m - shared.grid.cell_m() * 1e-3).max(0.0);
                Some((from_m, shared.index_of(at)?))
            })
            .collect();
        touched.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut best = (radius_m * radius_m, NONE);
        let mut visit = |id: u32, best: &mut (f32, u32)| {
            let Some(&at) = shared.positions.get(id as usize) else {
                return;
            };
            let found = (at.distance_squared(position), id);
            if found < *best && is_wanted(id) {
                *best = found;
            }
        };
        shared.far.iter().for_each(|id| visit(id, &mut best));
        for (from_m, cell) in touched {
            if from_m * from_m > best.0 {
                break;
            }
            let ids = shared.cells[cell].relations.ids();
            ids.iter().for_each(|&id| visit(id, &mut best));
        }
        (best.1 != NONE).then_some(best.1)
    }

    /// Hashes all state that later updates depend on, in a fixed order: cells, slots and rows, caps, noted refusals, links,
    /// the queue. Positions and traits belong to the world, which hashes them itself.
    pub fn hash_state(&self, fold: &mut impl FnMut(u64)) {
        let pack = |numbers: &[u16]| numbers.iter().fold(0, |bits, &n| bits << 16 | u64::from(n));
        let ids = 0..self.shared.objects.len() as u32;
        for id in ids.filter(|&id| self.contains(id)) {
            let (cell, place) = (self.shared.grid.cell(id), self.shared.location(id));
            fold(u64::from(id) << 32 | u64::from(cell.x) << 16 | u64::from(cell.y));
            fold(u64::from(place.cell));
            fold(u64::from(place.slot) << 32 | u64::from(place.row));
            let Some((_, viewers, row)) = self.row_of(id) else {
                continue;
            };
            let state = viewers.states[row];
            fold(
                pack(&state.caps) << 16
                    | u64::from(state.refused_lists) << 8
                    | u64::from(state.tasks),
            );
            fold(pack(&state.count) << 16 | u64::from(state.refill_lists));
            let classes = state.lowest_class.into_iter().chain(state.lowest_rank);
            fold(classes.fold(0, |bits, class| bits << 8 | u64::from(class)));
            self.seen_near(id)
                .for_each(|target| fold(u64::from(target)));
            let far = self.seen_far(id);
            far.iter().for_each(|&target| fold(u64::from(target)));
        }
        for (cell, viewers) in self.shared.cells.iter().zip(&self.viewers) {
            fold(
                u64::from(cell.grid_cell.x) << 48
                    | u64::from(cell.grid_cell.y) << 32
                    | cell.words as u64,
            );
            fold((viewers.len() as u64) << 32 | viewers.free_rows().len() as u64);
            let free = viewers.free_rows().iter();
            free.for_each(|&row| fold(u64::from(row)));
        }
        for list in 0..UNCAPPED {
            // The first class counts only while all are equal.
            let is_ranked = self.shared.is_ranked(list);
            let class = self.shared.unrelated_ranks[list]
                .class
                .filter(|_| !is_ranked);
            fold(u64::from(is_ranked) << 8 | class.map_or(0xff, u64::from));
        }
        self.exact.hash_state(fold);
        fold(u64::from(self.update_count));
        fold(self.queue.len() as u64);
        self.queue.iter().for_each(|id| fold(u64::from(id)));
    }
}
