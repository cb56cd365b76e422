//! Distances, and what a viewer can reach.

use glam::Vec2;
use throng_core::memory::MemoryUse;

use crate::grid::{GridCell, SceneGrid};
use crate::views::events::ViewLeaveReason;
use crate::views::state::object::{NONE, TrackedObject};
use crate::views::state::scene_state::SceneState;

/// The square of the distance of two positions, in m². NaN if a coordinate is NaN.
#[inline]
fn distance_m2(a: Vec2, b: Vec2) -> f64 {
    let (dx, dy) = (
        f64::from(a.x) - f64::from(b.x),
        f64::from(a.y) - f64::from(b.y),
    );
    dx * dx + dy * dy
}

/// The square of a radius.
fn reach_m2(radius_m: f32) -> f64 {
    f64::from(radius_m) * f64::from(radius_m)
}

/// Whether a distance is at most a radius, both given as squares. An infinite radius contains every position, also an unknown one.
#[inline]
fn is_within(reach_m2: f64, distance_m2: f64) -> bool {
    distance_m2 <= reach_m2 || reach_m2 == f64::INFINITY
}

/// The cells in which objects moved or changed in this update.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(crate) struct ChangedCells {
    /// Whether each cell in use is among them.
    is_changed: Vec<bool>,
    cells: Vec<u32>,
    /// A far target moved or changed.
    has_far: bool,
}

impl ChangedCells {
    /// Notes an object that moved or changed.
    pub(crate) fn note(&mut self, shared: &SceneState, id: u32) {
        let object = shared.object(id);
        let cell = shared.location(id).cell;
        if !object.alive || !object.viewable {
            return;
        }
        if object.uncapped {
            self.has_far = true;
            return;
        }
        if cell as usize >= self.is_changed.len() {
            self.is_changed.resize(shared.cells.len(), false);
        }
        if let Some(is_changed) = self.is_changed.get_mut(cell as usize) {
            if !*is_changed {
                self.cells.push(cell);
            }
            *is_changed = true;
        }
    }

    pub(crate) fn clear(&mut self) {
        for cell in self.cells.drain(..) {
            self.is_changed[cell as usize] = false;
        }
        self.has_far = false;
    }

    fn contains(&self, cell: u32) -> bool {
        self.is_changed.get(cell as usize).is_some_and(|&is| is)
    }

    /// Whether anything moved or changed within reach.
    pub(crate) fn touch(&self, shared: &SceneState, viewer: u32, radius_m: Option<f32>) -> bool {
        if self.has_far {
            return true;
        }
        let Some(radius_m) = radius_m else {
            let cell = shared.location(viewer).cell as usize;
            let near = shared.cells.get(cell).map(|cell| cell.neighbours);
            return near.is_some_and(|near| near.iter().any(|&cell| self.contains(cell)));
        };
        let area = CellArea::around(&shared.grid, shared.position(viewer), radius_m);
        if area.len() < self.cells.len() {
            area.iter()
                .filter_map(|at| shared.index_of(at))
                .any(|cell| self.contains(cell as u32))
        } else {
            let at = |&cell: &u32| shared.cells[cell as usize].grid_cell;
            self.cells.iter().any(|cell| area.contains(at(cell)))
        }
    }
}

/// A rectangle of cells, its last column and row included.
#[derive(Clone, Copy, Debug)]
struct CellArea {
    low: GridCell,
    high: GridCell,
}

impl CellArea {
    /// The cells that can have an object in a circle. The margin of the cells is included, and rounding errors.
    fn around(grid: &SceneGrid, centre: Vec2, radius_m: f32) -> Self {
        let (columns, rows) = grid.size();
        let axis = |centre: f32, count: u16| {
            let last = count - 1;
            if radius_m == f32::INFINITY {
                return (0, last);
            }
            let (centre, cell_m) = (f64::from(centre), f64::from(grid.cell_m()));
            let reach_m = f64::from(radius_m) + f64::from(grid.margin_m());
            // Cells are computed in single precision.
            let reach_m = reach_m + cell_m * 1e-3 + (centre.abs() + reach_m) * 1e-6;
            let cell = |m: f64| ((m / cell_m) as i64).clamp(0, last.into()) as u16;
            (cell(centre - reach_m), cell(centre + reach_m))
        };
        let (x, y) = (axis(centre.x, columns), axis(centre.y, rows));
        Self {
            low: GridCell { x: x.0, y: y.0 },
            high: GridCell { x: x.1, y: y.1 },
        }
    }

    fn len(&self) -> usize {
        usize::from(self.high.x - self.low.x + 1) * usize::from(self.high.y - self.low.y + 1)
    }

    fn contains(&self, at: GridCell) -> bool {
        (self.low.x..=self.high.x).contains(&at.x) && (self.low.y..=self.high.y).contains(&at.y)
    }

    fn iter(self) -> impl Iterator<Item = GridCell> {
        let columns = self.low.x..=self.high.x;
        (self.low.y..=self.high.y)
            .flat_map(move |y| columns.clone().map(move |x| GridCell { x, y }))
    }
}

impl SceneState {
    /// Calls `visit` for every target that an exact viewer may be able to reach, itself included.
    pub(crate) fn visit_reach(
        &self,
        viewer: u32,
        radius_m: Option<f32>,
        mut visit: impl FnMut(u32),
    ) {
        let mut visit_cell = |ids: &[u32]| {
            for &id in ids.iter().filter(|&&id| id != NONE) {
                visit(id);
            }
        };
        if let Some(radius_m) = radius_m {
            let area = CellArea::around(&self.grid, self.position(viewer), radius_m);
            if area.len() < self.cells.len() {
                let cells = area.iter().filter_map(|at| self.index_of(at));
                cells.for_each(|cell| visit_cell(self.cells[cell].relations.ids()));
            } else {
                let cells = self.cells.iter();
                let cells = cells.filter(|cell| area.contains(cell.grid_cell));
                cells.for_each(|cell| visit_cell(cell.relations.ids()));
            }
        } else {
            let cells = self.neighbours(self.location(viewer).cell as usize);
            cells.for_each(|(_, cell)| visit_cell(cell.relations.ids()));
        }
        self.far.iter().for_each(visit);
    }
}

/// What one exact viewer can see now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExactSight<'a> {
    shared: &'a SceneState,
    me: &'a TrackedObject,
    here: Vec2,
    /// The square of its radius; infinite without one.
    reach_m2: f64,
    /// Its cell, if it has no radius.
    cell: Option<GridCell>,
    has_rules: bool,
}

impl<'a> ExactSight<'a> {
    pub(crate) fn new(shared: &'a SceneState, viewer: u32, radius_m: Option<f32>) -> Self {
        Self {
            shared,
            me: shared.object(viewer),
            here: shared.position(viewer),
            reach_m2: radius_m.map_or(f64::INFINITY, reach_m2),
            cell: radius_m
                .is_none()
                .then(|| shared.grid.committed_cell(viewer)),
            has_rules: !shared.distance_rules.is_empty(),
        }
    }

    /// Why the viewer cannot see a target now; `None` if it can.
    #[inline]
    pub(crate) fn obstacle(&self, target: u32) -> Option<ViewLeaveReason> {
        let shared = self.shared;
        let distance_m2 = distance_m2(self.here, shared.position(target));
        if !is_within(self.reach_m2, distance_m2) {
            return Some(ViewLeaveReason::Range);
        }
        let (a, b) = (self.me, shared.object(target));
        if let Some(here) = self.cell {
            let there = shared.grid.committed_cell(target);
            if !shared.grid.in_range(usize::from(b.layer), here, there) {
                return Some(ViewLeaveReason::Range);
            }
        }
        let is_near_enough = || {
            let rules = &shared.distance_rules;
            rules.allow(&a.traits, &b.traits, distance_m2) || shared.is_shown(a, b)
        };
        let is_allowed = shared.allows(a, b) && (!self.has_rules || is_near_enough());
        (!is_allowed).then_some(ViewLeaveReason::Hidden)
    }
}

#[cfg(test)]
mod tests {
    use glam::vec2;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(draws!())]

        /// Every object within the radius has its cell in the area, also far outside the scene and at large coordinates.
        #[test]
        fn cell_area_covers_the_whole_circle(
            scale in prop_oneof![Just(1f32), Just(1e4)],
            walk in prop::collection::vec((-2f32..12.0, -2f32..8.0), 1..6),
            centre in (-2f32..12.0, -2f32..8.0),
        ) {
            let cell_m = 10.0 * scale;
            let mut grid = SceneGrid::new(9.5 * cell_m, 6.0 * cell_m, cell_m, cell_m / 5.0).unwrap();
            grid.grow(1);
            let at = |&(x, y): &(f32, f32)| vec2(x, y) * cell_m;
            grid.teleport(0, at(&walk[0]));
            walk.iter().for_each(|step| { grid.locate(0, at(step)); });
            let (here, there) = (at(&centre), at(&walk[walk.len() - 1]));
            let radius_m = distance_m2(here, there).sqrt() as f32;
            let is_enough = is_within(reach_m2(radius_m), distance_m2(here, there));
            let radius_m = if is_enough { radius_m } else { radius_m.next_up() };
            let area = CellArea::around(&grid, here, radius_m);
            prop_assert!(area.contains(grid.cell(0)));
            prop_assert_eq!(area.iter().count(), area.len());
            prop_assert!(area.iter().all(|at| area.contains(at)));
        }
    }

    #[test]
    fn radius_includes_its_own_distance_and_nothing_beyond() {
        let far = distance_m2(vec2(0.0, 0.0), vec2(3.0, 4.0));
        let contains = |radius_m: f32, distance_m2: f64| is_within(reach_m2(radius_m), distance_m2);
        assert!(contains(5.0, far) && !contains(5f32.next_down(), far));
        // In single precision, this distance is 50 m.
        let just_beyond = distance_m2(vec2(0.0, 0.0), vec2(50.0, 0.001));
        assert!(!contains(50.0, just_beyond));
        assert!(contains(f32::INFINITY, f64::NAN) && !contains(f32::MAX, f64::NAN));
    }
}
