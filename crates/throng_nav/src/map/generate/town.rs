//! Towns: land is divided by streets, then by alleys, then into lots; public ground is cleared afterwards.
//!
//! ```text
//!  quarters between the avenues ──▶ streets ──▶ alleys ──▶ blocks ──▶ lots ──▶ houses, courtyards, gardens
//!                                                             └──▶ parks
//!  then, over them: the road along the wall, the wall, its towers and gates, the avenues, the square
//! ```
//! Invariant: the middle of the map is free; the wall is closed except for the gates; no free pocket has fewer than
//! `POCKET_TILES` tiles.

use rand_pcg::Pcg64Mcg;

use super::canvas::{Canvas, Chance, between, check_range, check_sides, fill_pockets};
use super::recipe::TownRecipe;
use crate::map::bit_plane::{BitPlane, TileRun};
use crate::map::error::MapError;
use crate::map::rect::SIDE_MAX;

/// The size below which pockets are filled: a courtyard whose door is blocked by a neighbour's house, gaps between houses.
const POCKET_TILES: u64 = 400;

/// The sides of a lot: divided until the longer one is in this range.
const LOT_TILES: (i32, i32) = (18, 32);

/// The minimum side of a lot for a house.
const HOUSE_TILES_MIN: i32 = 6;

/// A rectangle of land, in tiles.
#[derive(Clone, Copy)]
struct Land {
    x: i32,
    y: i32,
    width: i32,
    height: i32,
}

impl Land {
    /// The two parts that remain when a road is cut across the longer side, near its middle.
    fn cut(self, road: i32, rng: &mut Pcg64Mcg) -> [Land; 2] {
        let long = self.width.max(self.height);
        // Uneven parts, so that the roads of neighbouring parts do not line up.
        let first = (long - road).max(0) * between(36, 64, rng) / 100;
        let second = first + road.min(long);
        if self.width >= self.height {
            let right = Land {
                x: self.x + second,
                width: self.width - second,
                ..self
            };
            [
                Land {
                    width: first,
                    ..self
                },
                right,
            ]
        } else {
            let lower = Land {
                y: self.y + second,
                height: self.height - second,
                ..self
            };
            [
                Land {
                    height: first,
                    ..self
                },
                lower,
            ]
        }
    }
}

/// An octagon around the middle of the map: the core's outline.
#[derive(Clone, Copy)]
struct Octagon {
    middle: (i32, i32),
    /// Half of its width and height.
    half: (i32, i32),
    /// How far from a corner of the rectangle, along both sides together, the corner is cut off.
    cut: i32,
}

impl Octagon {
    fn grown(self, by: i32) -> Self {
        // Moving a diagonal edge out by one takes √2 along both sides together; 7/5 is close enough.
        let half = (self.half.0 + by, self.half.1 + by);
        Self {
            half,
            cut: self.cut + 2 * by - by * 7 / 5,
            ..self
        }
    }

    /// The tiles of a row inside the octagon, as start and length.
    fn row(self, y: i32) -> (i32, i32) {
        // The octagon covers half.1 tiles above its middle row and half.1 - 1 below, so that it is symmetric between tiles.
        let dy = if y < self.middle.1 {
            self.middle.1 - y
        } else {
            y - self.middle.1 + 1
        };
        let slack = self.half.1 - dy;
        let half = if slack < 0 {
            0
        } else {
            self.half.0.min(self.half.0 - self.cut + slack)
        };
        (self.middle.0 - half, 2 * half.max(0))
    }
}

struct Town<'a> {
    canvas: Canvas,
    recipe: &'a TownRecipe,
    core: Octagon,
    rng: &'a mut Pcg64Mcg,
    park: Chance,
}

pub(super) fn generate(recipe: &TownRecipe, rng: &mut Pcg64Mcg) -> Result<BitPlane, MapError> {
    check_sides(recipe.width_tiles, recipe.height_tiles)?;
    for (field, tiles) in [
        ("avenue_tiles", recipe.avenue_tiles),
        ("street_tiles", recipe.street_tiles),
        ("alley_tiles", recipe.alley_tiles),
        ("wall_tiles", recipe.wall_tiles),
    ] {
        check_range(field, tiles, 1, SIDE_MAX)?;
    }
    check_range("block_tiles", recipe.block_tiles, 16, SIDE_MAX)?;
    check_range("gates", recipe.gates, 0, 4)?;
    Chance::new("core_share", recipe.core_share)?;
    let park = Chance::new("park_share", recipe.park_share)?;

    let (width, height) = (recipe.width_tiles as i32, recipe.height_tiles as i32);
    let half = |side: i32| (f64::from(side) * recipe.core_share / 2.0) as i32;
    let half = (half(width), half(height));
    let core = Octagon {
        middle: (width / 2, height / 2),
        half,
        cut: half.0.min(half.1) * 3 / 5,
    };
    let mut plane = BitPlane::blocked(recipe.width_tiles, recipe.height_tiles);
    for y in 0..recipe.height_tiles {
        plane.set_run(
            TileRun {
                y,
                start: 0,
                end: recipe.width_tiles - 1,
            },
            false,
        );
    }
    let mut town = Town {
        canvas: Canvas { plane },
        recipe,
        core,
        rng,
        park,
    };
    town.build_quarters();
    if half.0 > 0 && half.1 > 0 {
        town.build_wall();
    }
    town.clear_middle();
    Ok(fill_pockets(town.canvas.plane, POCKET_TILES))
}

impl Town<'_> {
    /// The width of the avenues, at most an eighth of the map.
    fn avenue(&self) -> i32 {
        let side = self.recipe.width_tiles.min(self.recipe.height_tiles);
        self.recipe.avenue_tiles.min((side / 8).max(1)) as i32
    }

    fn build_quarters(&mut self) {
        let (width, height) = (
            self.recipe.width_tiles as i32,
            self.recipe.height_tiles as i32,
        );
        let (middle_x, middle_y) = self.core.middle;
        let before = self.avenue() / 2;
        let after = self.avenue() - before;
        let margin = self.recipe.street_tiles as i32;
        for (y, bottom) in [
            (margin, middle_y - before),
            (middle_y + after, height - margin),
        ] {
            for (x, right) in [
                (margin, middle_x - before),
                (middle_x + after, width - margin),
            ] {
                self.divide_into_blocks(Land {
                    x,
                    y,
                    width: right - x,
                    height: bottom - y,
                });
            }
        }
    }

    /// Divides land by streets, then by alleys, into blocks.
    fn divide_into_blocks(&mut self, land: Land) {
        let block = self.recipe.block_tiles as i32;
        let long = land.width.max(land.height);
        if land.width <= 0 || land.height <= 0 {
            return;
        }
        if long > block {
            let road = if long > 3 * block {
                self.recipe.street_tiles
            } else {
                self.recipe.alley_tiles
            };
            for part in land.cut(road as i32, self.rng) {
                self.divide_into_blocks(part);
            }
        } else if self.park.draw(self.rng) {
            self.plant_trees(land);
        } else {
            self.build_block(land);
        }
    }

    /// A park: a tree on about every fortieth tile.
    fn plant_trees(&mut self, land: Land) {
        for _ in 0..land.width * land.height / 40 {
            let x = land.x + between(0, land.width - 1, self.rng);
            let y = land.y + between(0, land.height - 1, self.rng);
            let size = between(1, 2, self.rng);
            self.canvas.fill(x, y, size, size, true);
        }
    }

    /// Divides a block into lots and builds on most of them: on nearly all in the core, on fewer towards the map's edge.
    fn build_block(&mut self, land: Land) {
        if land.width.max(land.height) > between(LOT_TILES.0, LOT_TILES.1, self.rng) {
            for part in land.cut(0, self.rng) {
                self.build_block(part);
            }
            return;
        }
        let (dx, dy) = (
            land.x + land.width / 2 - self.core.middle.0,
            land.y + land.height / 2 - self.core.middle.1,
        );
        let half_map = (
            self.recipe.width_tiles as i32 / 2 + 1,
            self.recipe.height_tiles as i32 / 2 + 1,
        );
        // From 0 in the middle to 100 at the edge of the map, along the axis with the larger value.
        let far = (dx.abs() * 100 / half_map.0)
            .max(dy.abs() * 100 / half_map.1)
            .clamp(0, 100);
        let is_core = dx.abs() < self.core.half.0 && dy.abs() < self.core.half.1;
        let built = if is_core { 96 } else { 108 - far * 6 / 10 };
        if Chance::percent(built.clamp(0, 100) as u64).draw(self.rng) {
            self.build_house(land, if is_core { 1 } else { 3 });
        } else if Chance::percent(50).draw(self.rng) {
            self.plant_trees(land);
        }
    }

    fn build_house(&mut self, lot: Land, gap_max: i32) {
        let [left, top, right, bottom] = [0; 4].map(|_| between(0, gap_max, self.rng));
        let (x, y) = (lot.x + left, lot.y + top);
        let (width, height) = (lot.width - left - right, lot.height - top - bottom);
        if width.min(height) < HOUSE_TILES_MIN {
            return;
        }
        self.canvas.fill(x, y, width, height, true);
        match between(0, 99, self.rng) {
            // A courtyard behind a door.
            0..=17 if width.min(height) >= 12 => {
                let wall = between(2, 4, self.rng);
                self.canvas.fill(
                    x + wall,
                    y + wall,
                    width - 2 * wall,
                    height - 2 * wall,
                    false,
                );
                let (door_x, door_y) = (
                    x + between(wall, width - wall - 3, self.rng),
                    y + between(wall, height - wall - 3, self.rng),
                );
                match between(0, 3, self.rng) {
                    0 => self.canvas.fill(door_x, y, 3, wall, false),
                    1 => self.canvas.fill(door_x, y + height - wall, 3, wall, false),
                    2 => self.canvas.fill(x, door_y, wall, 3, false),
                    _ => self.canvas.fill(x + width - wall, door_y, wall, 3, false),
                }
            }
            // A house with a corner left out.
            18..=45 => {
                let (cut_x, cut_y) = (
                    width * between(30, 60, self.rng) / 100,
                    height * between(30, 60, self.rng) / 100,
                );
                let (at_x, at_y) = (between(0, 1, self.rng), between(0, 1, self.rng));
                self.canvas.fill(
                    x + at_x * (width - cut_x),
                    y + at_y * (height - cut_y),
                    cut_x,
                    cut_y,
                    false,
                );
            }
            _ => {}
        }
    }

    /// The wall with a road on either side, towers at its corners, and the gates.
    fn build_wall(&mut self) {
        let street = self.recipe.street_tiles as i32;
        let (half_x, half_y) = self.core.half;
        let wall = (self.recipe.wall_tiles as i32).min(half_x).min(half_y);
        self.fill_octagon_ring(
            self.core.grown(street),
            self.core.grown(-wall - street),
            false,
        );
        self.fill_octagon_ring(self.core, self.core.grown(-wall), true);
        self.build_towers(wall);

        let (middle_x, middle_y) = self.core.middle;
        let avenue = self.avenue();
        let (left, top) = (middle_x - avenue / 2, middle_y - avenue / 2);
        let gates = [
            (left, middle_y - half_y, avenue, wall),
            (left, middle_y + half_y - wall, avenue, wall),
            (middle_x - half_x, top, wall, avenue),
            (middle_x + half_x - wall, top, wall, avenue),
        ];
        for (x, y, width, height) in gates.into_iter().take(self.recipe.gates as usize) {
            self.canvas.fill(x, y, width, height, false);
        }
    }

    /// Fills the area between an outer and an inner octagon.
    fn fill_octagon_ring(&mut self, outer: Octagon, inner: Octagon, blocked: bool) {
        for y in 0..self.recipe.height_tiles as i32 {
            let (outer_x, outer_width) = outer.row(y);
            let (inner_x, inner_width) = inner.row(y);
            if inner_width == 0 {
                self.canvas.fill(outer_x, y, outer_width, 1, blocked);
            } else {
                self.canvas.fill(outer_x, y, inner_x - outer_x, 1, blocked);
                let right = inner_x + inner_width;
                self.canvas
                    .fill(right, y, outer_x + outer_width - right, 1, blocked);
            }
        }
    }

    /// A square tower on each corner of the wall.
    fn build_towers(&mut self, wall: i32) {
        let (half_x, half_y) = self.core.half;
        let (middle_x, middle_y) = self.core.middle;
        let cut = self.core.cut;
        let side = 2 * wall + 2;
        // Towers may project from the wall, but must not block the road along it.
        if side + wall > cut || wall > self.recipe.street_tiles as i32 {
            return;
        }
        for (dx, dy) in [(half_x - cut, half_y), (half_x, half_y - cut)] {
            for (sign_x, sign_y) in [(-1, -1), (1, -1), (-1, 1), (1, 1)] {
                // The centre is moved inwards by half the wall.
                let x = middle_x + sign_x * (dx - wall / 2);
                let y = middle_y + sign_y * (dy - wall / 2);
                self.canvas
                    .fill(x - side / 2, y - side / 2, side, side, true);
            }
        }
    }

    /// The square where the avenues cross, with four statues.
    fn clear_middle(&mut self) {
        let (width, height) = (
            self.recipe.width_tiles as i32,
            self.recipe.height_tiles as i32,
        );
        let (middle_x, middle_y) = self.core.middle;
        let side = (width.min(height) * 8 / 100)
            .max(2 * self.avenue())
            .min(width.min(height));
        self.canvas
            .fill(middle_x - side / 2, middle_y - side / 2, side, side, false);
        let statue = side / 20;
        for (sign_x, sign_y) in [(-1, -1), (1, -1), (-1, 1), (1, 1)] {
            let (x, y) = (middle_x + sign_x * side / 4, middle_y + sign_y * side / 4);
            self.canvas
                .fill(x - statue / 2, y - statue / 2, statue, statue, true);
        }
    }
}
