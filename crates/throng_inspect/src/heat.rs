//! Values per cell of a scene, and their binary frame for pages.
//!
//! All numbers are little endian.
//!
//! ```text
//! heat: u32 3 · u32 scene · u32 of what: 1 links, 2 nodes · u32 columns · u32 rows · f32 cell_m · u32 value × columns × rows
//! ```

use glam::Vec2;

use super::protocol::HeatOf;

/// Maximum number of cells along a side: in larger scenes, blocks of four cells are merged.
const SIDE_MAX: f32 = 128.0;

/// A value for each cell of a scene.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HeatGrid {
    columns: u32,
    rows: u32,
    cell_m: f32,
    /// Row by row from the top.
    values: Vec<f32>,
}

impl HeatGrid {
    /// All zeros. Invalid sizes count as one cell.
    pub fn new(size_m: Vec2, cell_m: f32) -> Self {
        let size_m = size_m.max(Vec2::splat(f32::MIN_POSITIVE));
        let mut cell_m = cell_m;
        if !(cell_m.is_finite() && cell_m > 0.0) {
            cell_m = size_m.max_element();
        }
        while (size_m / cell_m).max_element() > SIDE_MAX {
            cell_m *= 2.0;
        }
        let sides = (size_m / cell_m).ceil().max(Vec2::ONE).as_uvec2();
        Self {
            columns: sides.x,
            rows: sides.y,
            cell_m,
            values: vec![0.0; (sides.x * sides.y) as usize],
        }
    }

    /// Adds to the cell of a position; positions outside count for the nearest cell.
    pub fn add(&mut self, at_m: Vec2, value: f32) {
        // The cast saturates, and turns NaN into 0.
        let along = |at: f32, sides: u32| ((at / self.cell_m) as u32).min(sides - 1);
        let (x, y) = (along(at_m.x, self.columns), along(at_m.y, self.rows));
        self.values[(y * self.columns + x) as usize] += value;
    }

    /// Multiplies all values by a factor.
    pub fn fade(&mut self, kept: f32) {
        self.values.iter_mut().for_each(|value| *value *= kept);
    }
}

/// The frame of a scene's heat. O(cells).
pub(super) fn heat_frame(scene: u32, of: HeatOf, grid: &HeatGrid) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(24 + grid.values.len() * 4);
    for word in [3, scene, of as u32, grid.columns, grid.rows] {
        bytes.extend(u32::to_le_bytes(word));
    }
    bytes.extend(grid.cell_m.to_le_bytes());
    let rounded = grid.values.iter().map(|value| value.round() as u32);
    rounded.for_each(|value| bytes.extend(value.to_le_bytes()));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_positions_count_for_the_nearest_cell() {
        let mut grid = HeatGrid::new(Vec2::new(100.0, 45.0), 20.0);
        for (x, y, value) in [(5.0, 5.0, 1.0), (99.0, 44.0, 2.0), (1e9, -3.0, 4.0)] {
            grid.add(Vec2::new(x, y), value);
        }
        grid.add(Vec2::NAN, 8.0);
        let frame = heat_frame(7, HeatOf::Nodes, &grid);
        let words: Vec<u32> = frame
            .chunks(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        assert_eq!(words[..6], [3, 7, 2, 5, 3, 20f32.to_bits()]);
        assert_eq!(words[6..11], [9, 0, 0, 0, 4]);
        assert_eq!(words[16..], [0, 0, 0, 0, 2]);
    }

    #[test]
    fn cell_count_is_bounded_for_any_scene() {
        for (size, cell_m) in [
            (1e5, 0.5),
            (1e30, 1e-30),
            (0.0, 0.0),
            (f32::NAN, f32::NAN),
            (40.0, f32::INFINITY),
        ] {
            let grid = HeatGrid::new(Vec2::splat(size), cell_m);
            assert!(
                (1..=128 * 128).contains(&grid.values.len()),
                "{size} {cell_m}"
            );
        }
    }
}
