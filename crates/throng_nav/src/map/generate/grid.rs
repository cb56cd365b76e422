//! Mazes and rooms: a grid of square cells with walls between them, opened along a random spanning tree.
//!
//! The tree is a depth-first walk that turns at random. It needs no stack: each cell stores the side through which it was
//! entered, one byte per cell.

use rand_pcg::Pcg64Mcg;

use super::canvas::{Canvas, Chance, between, check_range, check_sides};
use super::recipe::{MazeRecipe, RoomsRecipe};
use crate::map::bit_plane::BitPlane;
use crate::map::error::MapError;
use crate::map::rect::SIDE_MAX;

pub(super) fn generate_maze(recipe: &MazeRecipe, rng: &mut Pcg64Mcg) -> Result<BitPlane, MapError> {
    let (width, height) = (recipe.width_tiles, recipe.height_tiles);
    check_sides(width, height)?;
    let grid = Grid::new("corridor_tiles", width, height, recipe.corridor_tiles)?;
    let mut canvas = grid.carve_cells();
    let _closed = grid.open_tree(&mut canvas, grid.cell, rng);
    Ok(canvas.plane)
}

pub(super) fn generate_rooms(
    recipe: &RoomsRecipe,
    rng: &mut Pcg64Mcg,
) -> Result<BitPlane, MapError> {
    let (width, height) = (recipe.width_tiles, recipe.height_tiles);
    check_sides(width, height)?;
    let grid = Grid::new("room_tiles", width, height, recipe.room_tiles)?;
    check_range("door_tiles", recipe.door_tiles, 1, recipe.room_tiles)?;
    let extra = Chance::new("extra_doors", recipe.extra_doors)?;
    let mut canvas = grid.carve_cells();
    let door = recipe.door_tiles as i32;
    let closed = grid.open_tree(&mut canvas, door, rng);
    for (cell, side) in closed {
        if extra.draw(rng) {
            grid.open_wall(&mut canvas, cell, side, door, rng);
        }
    }
    Ok(canvas.plane)
}

/// A side of a cell: the step to the cell behind it.
#[derive(Clone, Copy, PartialEq)]
struct Side {
    dx: i32,
    dy: i32,
}

/// East, south, west, north; the opposite of a side is two further.
const SIDES: [Side; 4] = [
    Side { dx: 1, dy: 0 },
    Side { dx: 0, dy: 1 },
    Side { dx: -1, dy: 0 },
    Side { dx: 0, dy: -1 },
];

/// Marks a cell that was not entered yet, and the first cell of the walk.
const NOT_VISITED: u8 = 4;
const START: u8 = 5;

struct Grid {
    width: u32,
    height: u32,
    /// The side of a cell, without walls.
    cell: i32,
    columns: i32,
    rows: i32,
}

impl Grid {
    fn new(field: &'static str, width: u32, height: u32, cell: u32) -> Result<Self, MapError> {
        // There must be room for at least one cell and the walls around it.
        let cell_max = width.min(height).saturating_sub(2);
        if cell_max == 0 {
            let narrow = if width < height {
                "width_tiles"
            } else {
                "height_tiles"
            };
            check_range(narrow, width.min(height), 3, SIDE_MAX)?;
        }
        check_range(field, cell, 1, cell_max)?;
        let count = |side: u32| ((side - 1) / (cell + 1)) as i32;
        Ok(Self {
            width,
            height,
            cell: cell as i32,
            columns: count(width),
            rows: count(height),
        })
    }

    fn carve_cells(&self) -> Canvas {
        let mut canvas = Canvas {
            plane: BitPlane::blocked(self.width, self.height),
        };
        for row in 0..self.rows {
            for column in 0..self.columns {
                let (x, y) = self.corner(row * self.columns + column);
                canvas.fill(x, y, self.cell, self.cell, false);
            }
        }
        canvas
    }

    /// The top left tile of a cell.
    fn corner(&self, cell: i32) -> (i32, i32) {
        let pitch = self.cell + 1;
        (
            1 + cell % self.columns * pitch,
            1 + cell / self.columns * pitch,
        )
    }

    /// The cell behind a side.
    fn neighbour(&self, cell: i32, side: Side) -> Option<i32> {
        let (column, row) = (cell % self.columns + side.dx, cell / self.columns + side.dy);
        let inside = (0..self.columns).contains(&column) && (0..self.rows).contains(&row);
        inside.then_some(row * self.columns + column)
    }

    /// Opens doors until all cells are connected, in exactly one way. Returns the east and south walls still closed.
    fn open_tree(
        &self,
        canvas: &mut Canvas,
        door: i32,
        rng: &mut Pcg64Mcg,
    ) -> impl Iterator<Item = (i32, Side)> + use<'_> {
        let mut entered_from = vec![NOT_VISITED; (self.columns * self.rows) as usize];
        entered_from[0] = START;
        let mut cell = 0;
        loop {
            let is_open = |side: &u8| {
                let neighbour = self.neighbour(cell, SIDES[*side as usize]);
                neighbour.is_some_and(|neighbour| entered_from[neighbour as usize] == NOT_VISITED)
            };
            let open: arrayvec::ArrayVec<u8, 4> = (0..4).filter(is_open).collect();
            if open.is_empty() {
                // Back to the previous cell; the walk ends where it began.
                let back = entered_from[cell as usize];
                let Some(side) = SIDES.get(back as usize) else {
                    break;
                };
                cell = self.neighbour(cell, *side).unwrap_or(0);
                continue;
            }
            let side = open[between(0, open.len() as i32 - 1, rng) as usize];
            self.open_wall(canvas, cell, SIDES[side as usize], door, rng);
            cell = self.neighbour(cell, SIDES[side as usize]).unwrap_or(0);
            entered_from[cell as usize] = (side + 2) % 4;
        }
        // A wall is open when one of its two cells was entered through it.
        let walls = (0..self.columns * self.rows).flat_map(|cell| [(cell, 0u8), (cell, 1u8)]);
        walls.filter_map(move |(cell, side)| {
            let neighbour = self.neighbour(cell, SIDES[side as usize])?;
            let is_open =
                entered_from[cell as usize] == side || entered_from[neighbour as usize] == side + 2;
            (!is_open).then_some((cell, SIDES[side as usize]))
        })
    }

    /// Opens a door at a random position in the wall on one side of a cell.
    fn open_wall(&self, canvas: &mut Canvas, cell: i32, side: Side, door: i32, rng: &mut Pcg64Mcg) {
        let (x, y) = self.corner(cell);
        let at = between(0, self.cell - door, rng);
        match side {
            Side { dx: 0, dy } => {
                canvas.fill(
                    x + at,
                    if dy > 0 { y + self.cell } else { y - 1 },
                    door,
                    1,
                    false,
                );
            }
            Side { dx, .. } => {
                canvas.fill(
                    if dx > 0 { x + self.cell } else { x - 1 },
                    y + at,
                    1,
                    door,
                    false,
                );
            }
        }
    }
}
