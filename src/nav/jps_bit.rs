//! Jump Point Search with whole words of tiles at a time (Harabor and Grastien, "Improving Jump Point Search",
//! ICAPS 2014), for the movement rule without corner cutting.
//!
//! Of all equally short paths only those are followed that go diagonally first and straight after; a straight walk
//! turns only where a wall beside it ends:
//!
//! ```text
//! # # # . .      going east from p, x is the first tile past the wall's end: a jump point;
//! p ─ ─ x .      from there the search goes on east, and also north and north-east
//! ```
//! - Straight, a tile is a jump point if behind-beside is blocked and beside is free, on either side; its successors
//!   lie ahead and, on such a side, beside and diagonally ahead. A diagonal move forces nothing.
//! - A diagonal walk checks at every step that the tile and both straight neighbours are free, and looks along both
//!   of its straight parts. With `PRUNE` what they find becomes a successor of the node being expanded, and the walk
//!   goes on to the wall; the bend is put back when the path is written. Without, the first tile from which they find
//!   something is opened as a diagonal jump point and looks again when expanded.
//! - The goal may lie in the middle of any walk, also one that ends at a wall.
//!
//! A straight walk reads a row and its two neighbours as words, lowest bit first, bit 0 the current tile: walls are
//! the row's own bits, and a neighbour's wall `b` ends before bit i where `(b << 1) & !b` has bit i. North and south
//! read the transposed map. Words overlap by one tile, so that no wall's end falls between two of them.
//!
//! Tried without gain: looking for the goal in plain view from every node (a fifth slower), testing a diagonal step in
//! two words rather than three tiles (no difference).
//!
//! Cost: a word triple for up to 63 tiles of a straight walk, two straight walks a step of a diagonal one.

use glam::IVec2;

use super::cost::{Cost, octile};
use super::direction::Direction;
use super::search::{Current, Run};
use crate::map::BitPlane;

/// Expands nodes until the goal is settled, the limit is hit or nothing is left.
pub(super) fn expand_all<const PRUNE: bool>(run: &mut Run) {
    while let Some(current) = run.next() {
        let mut jumps = Jumps::<PRUNE> {
            run: &mut *run,
            current,
        };
        match current.direction {
            None => jumps.start(),
            Some(Direction::North) => jumps.straight_on::<0, -1>(),
            Some(Direction::East) => jumps.straight_on::<1, 0>(),
            Some(Direction::South) => jumps.straight_on::<0, 1>(),
            Some(Direction::West) => jumps.straight_on::<-1, 0>(),
            Some(Direction::NorthEast) => jumps.diagonal_on::<1, -1>(),
            Some(Direction::SouthEast) => jumps.diagonal_on::<1, 1>(),
            Some(Direction::SouthWest) => jumps.diagonal_on::<-1, 1>(),
            Some(Direction::NorthWest) => jumps.diagonal_on::<-1, -1>(),
        }
    }
}

/// Where a straight walk ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reach {
    /// Free tiles walked, the jump point included.
    steps: u32,
    /// Whether the walk ends at a jump point rather than before a wall.
    is_jump_point: bool,
}

/// The jumps out of the node being expanded.
struct Jumps<'r, 'a, const PRUNE: bool> {
    run: &'r mut Run<'a>,
    current: Current,
}

impl<const PRUNE: bool> Jumps<'_, '_, PRUNE> {
    /// Goes from the start in all directions, unless the goal is in plain view: on open ground most searches of a
    /// crowd end here. Looking for it from every node costs more than it saves.
    #[inline(never)]
    fn start(&mut self) {
        if self.sees_goal() {
            let length = octile(self.current.tile, self.run.goal);
            self.run
                .reach_goal(self.current.node, self.current.g + length);
        } else {
            Direction::ALL
                .into_iter()
                .for_each(|direction| self.go(direction));
        }
    }

    /// Whether the way to the goal is free, first diagonally and then straight, as far as both go. Its length is the
    /// estimate, so no other way can be shorter.
    fn sees_goal(&self) -> bool {
        let rows = self.run.map.rows();
        let mut tile = self.current.tile;
        while tile != self.run.goal {
            let step = (self.run.goal - tile).signum();
            if !is_step_free(rows, tile.x, tile.y, step.x, step.y) {
                return false;
            }
            tile += step;
        }
        true
    }

    /// Goes on from a node that was reached by a straight walk in the direction (`DX`, `DY`).
    #[inline]
    fn straight_on<const DX: i32, const DY: i32>(&mut self) {
        let (x, y) = (self.current.tile.x, self.current.tile.y);
        self.straight_from_current::<DX, DY>();
        for side in [-1, 1] {
            let (side_x, side_y) = (DY * side, DX * side);
            let rows = self.run.map.rows();
            let is_forced = rows.is_blocked(x - DX + side_x, y - DY + side_y)
                && !rows.is_blocked(x + side_x, y + side_y);
            if is_forced {
                self.go_step(side_x, side_y);
                self.go_step(DX + side_x, DY + side_y);
            }
        }
    }

    /// Goes on from a node that was reached by a diagonal walk in the direction (`DX`, `DY`).
    #[inline]
    fn diagonal_on<const DX: i32, const DY: i32>(&mut self) {
        self.straight_from_current::<DX, 0>();
        self.straight_from_current::<0, DY>();
        self.diagonal::<DX, DY>();
    }

    fn go_step(&mut self, dx: i32, dy: i32) {
        if let Some(direction) = Direction::of_step(dx, dy) {
            self.go(direction);
        }
    }

    /// Walks from the current node in one direction.
    #[inline]
    fn go(&mut self, direction: Direction) {
        match direction {
            Direction::North => self.straight_from_current::<0, -1>(),
            Direction::East => self.straight_from_current::<1, 0>(),
            Direction::South => self.straight_from_current::<0, 1>(),
            Direction::West => self.straight_from_current::<-1, 0>(),
            Direction::NorthEast => self.diagonal::<1, -1>(),
            Direction::SouthEast => self.diagonal::<1, 1>(),
            Direction::SouthWest => self.diagonal::<-1, 1>(),
            Direction::NorthWest => self.diagonal::<-1, -1>(),
        }
    }

    #[inline]
    fn straight_from_current<const DX: i32, const DY: i32>(&mut self) {
        self.straight::<DX, DY>(self.current.tile.x, self.current.tile.y, self.current.g);
    }

    /// Walks straight from (`x`, `y`), which is `g` from the start, and offers the goal or the jump point met.
    #[inline]
    fn straight<const DX: i32, const DY: i32>(&mut self, x: i32, y: i32, g: Cost) {
        let reach = self.scan::<DX, DY>(x, y);
        if let Some(steps) = self.steps_to_goal::<DX, DY>(x, y, reach) {
            self.run
                .reach_goal(self.current.node, g + Cost::straight(steps));
        } else if reach.is_jump_point {
            let steps = reach.steps as i32;
            let tile = IVec2::new(x + DX * steps, y + DY * steps);
            let g = g + Cost::straight(reach.steps);
            self.run
                .reach(self.current.node, tile, g, Direction::of_step(DX, DY));
        }
    }

    /// Walks diagonally from the current node, looking along both straight parts at every step.
    fn diagonal<const DX: i32, const DY: i32>(&mut self) {
        let rows = self.run.map.rows();
        let Current {
            node, tile, mut g, ..
        } = self.current;
        let (mut x, mut y) = (tile.x, tile.y);
        while is_step_free(rows, x, y, DX, DY) {
            x += DX;
            y += DY;
            g = g + Cost::DIAGONAL;
            if self.run.goal == IVec2::new(x, y) {
                self.run.reach_goal(node, g);
                return;
            }
            if PRUNE {
                self.straight::<DX, 0>(x, y, g);
                self.straight::<0, DY>(x, y, g);
            } else if self.leads_somewhere::<DX, 0>(x, y) || self.leads_somewhere::<0, DY>(x, y) {
                self.run
                    .reach(node, IVec2::new(x, y), g, Direction::of_step(DX, DY));
                return;
            }
            if self.run.is_settled() {
                return;
            }
        }
    }

    /// Whether a straight walk from (`x`, `y`) meets the goal or a jump point.
    #[inline]
    fn leads_somewhere<const DX: i32, const DY: i32>(&self, x: i32, y: i32) -> bool {
        let reach = self.scan::<DX, DY>(x, y);
        reach.is_jump_point || self.steps_to_goal::<DX, DY>(x, y, reach).is_some()
    }

    /// How many steps along a straight walk the goal lies, if the walk meets it.
    #[inline]
    fn steps_to_goal<const DX: i32, const DY: i32>(
        &self,
        x: i32,
        y: i32,
        reach: Reach,
    ) -> Option<u32> {
        let goal = self.run.goal;
        let (ahead, beside) = if DX != 0 {
            ((goal.x - x) * DX, goal.y - y)
        } else {
            ((goal.y - y) * DY, goal.x - x)
        };
        (beside == 0 && ahead > 0 && ahead as u32 <= reach.steps).then_some(ahead as u32)
    }

    #[inline]
    fn scan<const DX: i32, const DY: i32>(&self, x: i32, y: i32) -> Reach {
        let (rows, columns) = (self.run.map.rows(), self.run.map.columns());
        match (DX, DY) {
            (1, _) => scan_up(rows, x, y),
            (-1, _) => scan_down(rows, x, y),
            (_, 1) => scan_up(columns, y, x),
            _ => scan_down(columns, y, x),
        }
    }
}

/// Whether a step's tile and, for a diagonal step, both straight neighbours beside it are free.
#[inline(always)]
fn is_step_free(rows: &BitPlane, x: i32, y: i32, dx: i32, dy: i32) -> bool {
    !(rows.is_blocked(x + dx, y) || rows.is_blocked(x, y + dy) || rows.is_blocked(x + dx, y + dy))
}

/// Walks along a line of a plane from `position` to higher positions.
///
/// The walk stops before a wall, so a word is read only from a free tile's position, which lies on the map.
#[inline]
fn scan_up(plane: &BitPlane, position: i32, line: i32) -> Reach {
    let mut walked = 0;
    loop {
        let from = position + walked;
        let own = plane.word_at(from, line);
        let (above, below) = (plane.word_at(from, line - 1), plane.word_at(from, line + 1));
        let jump_points = (above << 1 & !above) | (below << 1 & !below);
        // Bit 0 is the tile walked from, where no walk ends.
        let stops = (own | jump_points) & !1;
        if stops != 0 {
            let steps = stops.trailing_zeros();
            return reach_at(walked as u32 + steps, own >> steps & 1 != 0);
        }
        // The last tile is read again as bit 0 of the next word: a wall beside it may end just past it.
        walked += 63;
    }
}

/// Walks along a line of a plane from `position` to lower positions; the mirror image of [`scan_up`].
#[inline]
fn scan_down(plane: &BitPlane, position: i32, line: i32) -> Reach {
    let mut walked = 0;
    loop {
        let from = position - walked - 63;
        let own = plane.word_at(from, line);
        let (above, below) = (plane.word_at(from, line - 1), plane.word_at(from, line + 1));
        let jump_points = (above >> 1 & !above) | (below >> 1 & !below);
        let stops = (own | jump_points) & !(1 << 63);
        if stops != 0 {
            let steps = stops.leading_zeros();
            return reach_at(walked as u32 + steps, own << steps >> 63 != 0);
        }
        walked += 63;
    }
}

#[inline]
fn reach_at(stop: u32, is_wall: bool) -> Reach {
    Reach {
        steps: stop - u32::from(is_wall),
        is_jump_point: !is_wall,
    }
}
