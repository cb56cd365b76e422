//! The interest grid of a scene: which cell an object is in, and which cells are in range of each other.
//!
//! ```text
//! position ──locate──▶ sticky GridCell ──commit_cell──▶ committed cell: the cell that has the object's slot and row
//! ```
//! Cells are *sticky*: each axis of an object's cell changes only when its position leaves `[c·s − m, (c +
//! 1)·s + m)` for cell size s and margin m, and then becomes ⌊p/s⌋. So an object that walks along a border does not
//! flicker, and the range test depends on the reported cells alone.
//!
//! Targets that are visible from afar are in a coarser *layer*, whose cells are `scale` grid cells wide (`ViewRange::Far`),
//! up to one cell for the whole scene (`ViewRange::Scene`). In range means at most one cell apart on both axes in the layer
//! of the target.
//!
//! [`locate`](SceneGrid::locate) changes the reported cell at once; [`commit_cell`](SceneGrid::commit_cell) changes the
//! committed cell. So the order of the calls to `locate` cannot affect game state. Positions outside the scene, NaN and the
//! infinities included, count for the border cells.
//!
//! Cost: O(1) each; 8 bytes an object.

use glam::Vec2;
use thiserror::Error;
use throng_core::kinds::ViewRange;
use throng_core::memory::MemoryUse;

/// The maximum number of cells of a grid.
pub const CELLS_MAX: u64 = 1 << 20;

/// The offsets of the nine cells around one cell (itself included), row by row.
pub(super) const NEIGHBOURHOOD_STEPS: [(i32, i32); 9] = [
    (-1, -1),
    (0, -1),
    (1, -1),
    (-1, 0),
    (0, 0),
    (1, 0),
    (-1, 1),
    (0, 1),
    (1, 1),
];

/// A square of the interest grid, or of a coarser layer of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GridCell {
    /// Column, from the left.
    pub x: u16,
    /// Row, from the top.
    pub y: u16,
}

impl GridCell {
    /// Whether two cells of one layer are at most one apart on both axes.
    #[must_use]
    #[inline]
    pub const fn is_near(self, other: Self) -> bool {
        // Branch-free, because both results are likely in scans; the widest grid is too narrow to wrap around.
        (self.x.wrapping_sub(other.x).wrapping_add(1) <= 2)
            & (self.y.wrapping_sub(other.y).wrapping_add(1) <= 2)
    }

    /// Which of the nine cells around this one `other` is, counted row by row; `None` if it is farther away.
    #[must_use]
    #[inline]
    pub(super) const fn direction_of(self, other: Self) -> Option<usize> {
        let dx = other.x.wrapping_sub(self.x).wrapping_add(1);
        let dy = other.y.wrapping_sub(self.y).wrapping_add(1);
        if dx <= 2 && dy <= 2 {
            Some((dy * 3 + dx) as usize)
        } else {
            None
        }
    }

    /// The cell in one of the nine directions from this one, in a grid of this size.
    #[must_use]
    pub(super) fn neighbour(self, direction: usize, (columns, rows): (u16, u16)) -> Option<Self> {
        let (dx, dy) = NEIGHBOURHOOD_STEPS[direction];
        let axis = |at: u16, step: i32, count: u16| {
            u16::try_from(i32::from(at) + step)
                .ok()
                .filter(|&at| at < count)
        };
        Some(Self {
            x: axis(self.x, dx, columns)?,
            y: axis(self.y, dy, rows)?,
        })
    }
}

/// Why a grid cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum GridError {
    /// The scene has no area.
    #[error("expected a scene with positive sides, found {width_m} m × {height_m} m")]
    Size {
        /// The scene's width in metres.
        width_m: f32,
        /// The scene's height in metres.
        height_m: f32,
    },
    /// The cells have no area.
    #[error("expected a cell size above 0 m, found {cell_m} m")]
    Cell {
        /// The cell size in metres.
        cell_m: f32,
    },
    /// The margin is negative or too wide.
    #[error("expected a margin from 0 m to a quarter of the cell size ({} m), found {margin_m} m", cell_m / 4.0)]
    Margin {
        /// The cell size in metres.
        cell_m: f32,
        /// The margin in metres.
        margin_m: f32,
    },
    /// There would be too many cells.
    #[error(
        "expected at most {CELLS_MAX} cells and 65535 on a side, found {columns} × {rows}: use larger cells"
    )]
    TooManyCells {
        /// The number of columns that the grid would have.
        columns: u64,
        /// The number of rows that the grid would have.
        rows: u64,
    },
}

/// The cell size that suits a client's screen of this size, all in metres: nine cells have one and a half times the
/// screen's area.
///
/// With sides w and h, nine cells of side s cover one to two screens when √(w·h)/3 ≤ s ≤ √(2·w·h)/3. From
/// anywhere in its cell a viewer sees at least s in every direction. On a long, narrow screen (w > 2s) the
/// short ends look emptier. 150 m × 100 m gives 50 m.
#[must_use]
pub fn cell_m_for_screen(width_m: f32, height_m: f32) -> f32 {
    (1.5 * width_m * height_m).sqrt() / 3.0
}

/// A layer of cells: their width in grid cells, and their number.
#[derive(Clone, Copy, Debug)]
struct Layer {
    scale: u32,
    columns: u16,
    rows: u16,
}

/// The cells of all objects, indexed by dense object id.
#[derive(Clone, Debug, MemoryUse)]
pub struct SceneGrid {
    cell_m: f32,
    margin_m: f32,
    columns: u16,
    rows: u16,
    layers: Vec<Layer>,
    /// The reported cell of each id.
    cells: Vec<GridCell>,
    /// The cell of each id as of the last update.
    committed_cells: Vec<GridCell>,
}

impl SceneGrid {
    /// Creates a grid for a scene of this size, all in metres; `margin_m` is from 0 to a quarter of `cell_m`.
    ///
    /// # Errors
    /// See [`GridError`].
    pub fn new(width_m: f32, height_m: f32, cell_m: f32, margin_m: f32) -> Result<Self, GridError> {
        let (columns, rows) = Self::columns_and_rows(width_m, height_m, cell_m, margin_m)?;
        let mut grid = Self {
            cell_m,
            margin_m,
            columns,
            rows,
            layers: Vec::new(),
            cells: Vec::new(),
            committed_cells: Vec::new(),
        };
        grid.ensure_layer_of_scale(1);
        Ok(grid)
    }

    /// The number of columns and rows that such a grid would have; allocates nothing. See [`new`](Self::new).
    ///
    /// # Errors
    /// See [`GridError`].
    pub fn columns_and_rows(
        width_m: f32,
        height_m: f32,
        cell_m: f32,
        margin_m: f32,
    ) -> Result<(u16, u16), GridError> {
        let is_length = |metres: f32| metres > 0.0 && metres.is_finite();
        if !is_length(width_m) || !is_length(height_m) {
            return Err(GridError::Size { width_m, height_m });
        }
        if !is_length(cell_m) {
            return Err(GridError::Cell { cell_m });
        }
        if !(0.0..=cell_m / 4.0).contains(&margin_m) {
            return Err(GridError::Margin { cell_m, margin_m });
        }
        let count = |metres: f32| (metres / cell_m).ceil().max(1.0) as u64;
        let (columns, rows) = (count(width_m), count(height_m));
        if columns > u64::from(u16::MAX) || rows > u64::from(u16::MAX) || columns * rows > CELLS_MAX
        {
            return Err(GridError::TooManyCells { columns, rows });
        }
        Ok((columns as u16, rows as u16))
    }

    /// Columns and rows.
    #[must_use]
    pub const fn size(&self) -> (u16, u16) {
        (self.columns, self.rows)
    }

    /// The side of a cell in metres.
    #[must_use]
    pub const fn cell_m(&self) -> f32 {
        self.cell_m
    }

    /// How far beyond its cell an object may be before its cell changes, in metres.
    #[must_use]
    pub const fn margin_m(&self) -> f32 {
        self.margin_m
    }

    /// Makes room for the ids below `ids`.
    pub fn grow(&mut self, ids: usize) {
        if ids > self.cells.len() {
            self.cells.resize(ids, GridCell::default());
            self.committed_cells.resize(ids, GridCell::default());
        }
    }

    /// The reported cell of an id; the first cell for an id without a position.
    #[must_use]
    pub fn cell(&self, id: u32) -> GridCell {
        self.cells.get(id as usize).copied().unwrap_or_default()
    }

    /// The committed cell of an id: its reported cell at the last [`commit_cell`](Self::commit_cell).
    #[must_use]
    #[inline]
    pub fn committed_cell(&self, id: u32) -> GridCell {
        self.committed_cells
            .get(id as usize)
            .copied()
            .unwrap_or_default()
    }

    /// The cell that contains a position, without the margin.
    #[must_use]
    pub fn floor_cell(&self, position: Vec2) -> GridCell {
        GridCell {
            x: floor_axis(position.x, self.cell_m, self.columns),
            y: floor_axis(position.y, self.cell_m, self.rows),
        }
    }

    /// The cell of an object that was in `cell` and is now at `position`.
    #[must_use]
    #[inline]
    pub fn sticky_cell(&self, cell: GridCell, position: Vec2) -> GridCell {
        let axis = |cell: u16, p: f32, count: u16| {
            let (low, size) = (f32::from(cell) * self.cell_m, self.cell_m);
            let stays = p >= low - self.margin_m && p < low + size + self.margin_m;
            if stays {
                cell
            } else {
                floor_axis(p, size, count)
            }
        };
        GridCell {
            x: axis(cell.x, position.x, self.columns),
            y: axis(cell.y, position.y, self.rows),
        }
    }

    /// Reports a new position of an id below the grown number; true if the reported cell now differs from the
    /// committed cell.
    #[inline]
    pub fn locate(&mut self, id: u32, position: Vec2) -> bool {
        let cell = self.sticky_cell(self.cells[id as usize], position);
        self.cells[id as usize] = cell;
        cell != self.committed_cells[id as usize]
    }

    /// Sets the position of an id regardless of its last cell (spawn, teleport); true if the reported cell
    /// now differs from the committed cell.
    pub fn teleport(&mut self, id: u32, position: Vec2) -> bool {
        let cell = self.floor_cell(position);
        self.cells[id as usize] = cell;
        cell != self.committed_cells[id as usize]
    }

    /// Copies an id's reported cell to its committed cell.
    pub fn commit_cell(&mut self, id: u32) {
        self.committed_cells[id as usize] = self.cells[id as usize];
    }

    /// The index of a cell, row by row.
    #[must_use]
    pub fn cell_index(&self, cell: GridCell) -> usize {
        usize::from(cell.y) * usize::from(self.columns) + usize::from(cell.x)
    }

    /// The layer of targets with this view range; created at the first call.
    pub fn ensure_layer(&mut self, visibility: ViewRange) -> usize {
        let whole = u32::from(self.columns.max(self.rows));
        match visibility {
            ViewRange::Near => 0,
            ViewRange::Far(cells) => self.ensure_layer_of_scale(u32::from(cells).clamp(1, whole)),
            ViewRange::Scene => self.ensure_layer_of_scale(whole),
        }
    }

    /// The number of layers; layer 0 has the grid's own cells.
    #[must_use]
    pub fn layer_count(&self) -> usize {
        self.layers.len()
    }

    /// The cell of a layer that contains a grid cell.
    #[must_use]
    #[inline]
    pub fn coarse_cell(&self, layer: usize, cell: GridCell) -> GridCell {
        match self.layers[layer].scale {
            1 => cell,
            scale => GridCell {
                x: (u32::from(cell.x) / scale) as u16,
                y: (u32::from(cell.y) / scale) as u16,
            },
        }
    }

    /// Whether two grid cells are at most one cell of this layer apart on both axes.
    #[must_use]
    #[inline]
    pub fn in_range(&self, layer: usize, a: GridCell, b: GridCell) -> bool {
        self.coarse_cell(layer, a)
            .is_near(self.coarse_cell(layer, b))
    }

    /// The cells of a layer around one of its cells, without those outside the scene.
    pub fn cells_around(
        &self,
        layer: usize,
        coarse: GridCell,
    ) -> impl Iterator<Item = GridCell> + use<> {
        let Layer { columns, rows, .. } = self.layers[layer];
        (0..NEIGHBOURHOOD_STEPS.len()).filter_map(move |nth| coarse.neighbour(nth, (columns, rows)))
    }

    /// The rectangle of cells that a circle touches, as its first and last cell. Every object in the circle has its cell there,
    /// margin included.
    #[must_use]
    pub fn bounding_cells(&self, centre: Vec2, radius_m: f32) -> (GridCell, GridCell) {
        // An object may be outside its cell by the margin, plus a rounding error.
        let reach = Vec2::splat(radius_m + self.margin_m + self.cell_m * 1e-3);
        (
            self.floor_cell(centre - reach),
            self.floor_cell(centre + reach),
        )
    }

    fn ensure_layer_of_scale(&mut self, scale: u32) -> usize {
        if let Some(layer) = self.layers.iter().position(|layer| layer.scale == scale) {
            return layer;
        }
        let columns = u32::from(self.columns).div_ceil(scale);
        let rows = u32::from(self.rows).div_ceil(scale);
        self.layers.push(Layer {
            scale,
            columns: columns as u16,
            rows: rows as u16,
        });
        self.layers.len() - 1
    }
}

/// ⌊p/s⌋, clamped to the scene; NaN counts as 0.
#[inline]
fn floor_axis(p: f32, cell_m: f32, count: u16) -> u16 {
    // The cast saturates and maps NaN to 0, so no position is outside the grid. It rounds up negative values only, which become 0 anyway.
    ((p / cell_m) as i64).clamp(0, i64::from(count) - 1) as u16
}

#[cfg(test)]
mod tests {
    use glam::vec2;
    use proptest::prelude::*;

    use super::*;

    fn grid() -> SceneGrid {
        let mut grid = SceneGrid::new(95.0, 60.0, 10.0, 2.0).expect("a legal grid");
        grid.grow(8);
        grid
    }

    #[test]
    fn cell_changes_only_beyond_the_margin() {
        let mut grid = grid();
        grid.teleport(0, vec2(15.0, 15.0));
        for (x, cell) in [
            (8.0, 1),
            (21.9, 1),
            (22.0, 2),
            (18.0, 2),
            (17.9, 1),
            (45.0, 4),
            (55.0, 5),
        ] {
            grid.locate(0, vec2(x, 15.0));
            assert_eq!(grid.cell(0), GridCell { x: cell, y: 1 }, "at {x}");
        }
        grid.teleport(0, vec2(49.9, 15.0));
        assert_eq!(grid.cell(0).x, 4, "placing has no memory");
    }

    #[test]
    fn positions_outside_the_scene_map_to_border_cells() {
        let grid = grid();
        assert_eq!(grid.size(), (10, 6));
        let cases = [
            (vec2(-1e9, 1e9), (0, 5)),
            (vec2(f32::INFINITY, f32::NEG_INFINITY), (9, 0)),
            (vec2(f32::NAN, 59.0), (0, 5)),
            (vec2(99.0, 0.0), (9, 0)),
        ];
        for (position, (x, y)) in cases {
            assert_eq!(grid.floor_cell(position), GridCell { x, y }, "{position}");
            assert_eq!(
                grid.sticky_cell(GridCell { x: 3, y: 3 }, position),
                GridCell { x, y },
                "{position}"
            );
        }
    }

    #[test]
    fn grid_has_at_most_the_maximal_number_of_cells() {
        let made = |w, h| SceneGrid::columns_and_rows(w, h, 1.0, 0.0);
        assert_eq!(made(1024.0, 1024.0), Ok((1024, 1024)));
        assert_eq!(made(65_535.0, 16.0), Ok((65_535, 16)));
        for (columns, rows) in [(1025, 1024), (65_536, 1), (65_535, 17)] {
            let error = GridError::TooManyCells { columns, rows };
            assert_eq!(made(columns as f32, rows as f32), Err(error));
        }
    }

    #[test]
    fn impossible_grids_are_errors() {
        let made = |w, h, s, m| SceneGrid::new(w, h, s, m).map(|grid| grid.size());
        assert!(matches!(
            made(0.0, 1.0, 1.0, 0.0),
            Err(GridError::Size { .. })
        ));
        assert!(matches!(
            made(1.0, f32::NAN, 1.0, 0.0),
            Err(GridError::Size { .. })
        ));
        assert!(matches!(
            made(1.0, 1.0, -1.0, 0.0),
            Err(GridError::Cell { .. })
        ));
        assert!(matches!(
            made(1.0, 1.0, 1.0, 0.26),
            Err(GridError::Margin { .. })
        ));
        assert!(matches!(
            made(1.0, 1.0, 1.0, f32::NAN),
            Err(GridError::Margin { .. })
        ));
        assert!(matches!(
            made(1e9, 1e9, 1e-9, 0.0),
            Err(GridError::TooManyCells { .. })
        ));
        assert!(matches!(
            made(70_000.0, 1.0, 1.0, 0.0),
            Err(GridError::TooManyCells { .. })
        ));
        assert_eq!(made(1.0, 1.0, 50.0, 12.5), Ok((1, 1)));
    }

    #[test]
    fn scene_layer_has_one_cell_and_far_layers_are_clamped() {
        let mut grid = grid();
        let everyone = grid.ensure_layer(ViewRange::Scene);
        assert_eq!(grid.ensure_layer(ViewRange::Far(200)), everyone);
        assert_eq!(grid.ensure_layer(ViewRange::Far(0)), 0);
        let corner = GridCell { x: 9, y: 5 };
        assert!(grid.in_range(everyone, GridCell::default(), corner));
        let far = grid.ensure_layer(ViewRange::Far(4));
        assert!(grid.in_range(far, GridCell { x: 3, y: 0 }, GridCell { x: 7, y: 5 }));
        assert!(!grid.in_range(far, GridCell { x: 3, y: 0 }, GridCell { x: 8, y: 0 }));
    }

    #[test]
    fn nine_cells_cover_one_to_two_screens() {
        assert_eq!(cell_m_for_screen(150.0, 100.0), 50.0);
        for (width_m, height_m) in [(40.0, 30.0), (120.0, 68.0), (200.0, 50.0)] {
            let screens = 9.0 * cell_m_for_screen(width_m, height_m).powi(2) / (width_m * height_m);
            assert!((1.0..=2.0).contains(&screens), "{screens}");
        }
    }

    proptest! {
        #![proptest_config(draws!())]

        /// For each layer and each pair of cells, `cells_around` agrees with `in_range`.
        #[test]
        fn cells_around_agree_with_in_range(far in 1u8..12, x in 0u16..10, y in 0u16..6) {
            let mut grid = grid();
            let layer = grid.ensure_layer(ViewRange::Far(far));
            let here = GridCell { x, y };
            let coarse: Vec<_> = grid.cells_around(layer, grid.coarse_cell(layer, here)).collect();
            for y in 0..6 {
                for x in 0..10 {
                    let there = GridCell { x, y };
                    let near = grid.in_range(layer, here, there);
                    prop_assert_eq!(coarse.contains(&grid.coarse_cell(layer, there)), near);
                    let direction = here.direction_of(there);
                    prop_assert_eq!(direction.is_some(), here.is_near(there));
                    if let Some(direction) = direction {
                        prop_assert_eq!(here.neighbour(direction, (10, 6)), Some(there));
                    }
                }
            }
        }

        /// Every object within the radius has a cell that the circle touches, margin included.
        #[test]
        fn bounding_cells_cover_the_whole_circle(
            walk in prop::collection::vec((-20f32..120.0, -20f32..80.0), 1..6),
            centre in (-20f32..120.0, -20f32..80.0),
            slack in 0f32..1.0,
        ) {
            let mut grid = grid();
            let at = |&(x, y): &(f32, f32)| vec2(x, y);
            grid.teleport(0, at(&walk[0]));
            for step in &walk {
                grid.locate(0, at(step));
            }
            let distance = at(&walk[walk.len() - 1]).distance(at(&centre));
            let (low, high) = grid.bounding_cells(at(&centre), distance + slack);
            let GridCell { x, y } = grid.cell(0);
            prop_assert!((low.x..=high.x).contains(&x) && (low.y..=high.y).contains(&y));
        }
    }
}
