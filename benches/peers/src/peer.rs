//! A* of the crate `pathfinding`, under throng's movement rule.

use glam::IVec2;
use throng::map::TileMap;
use throng::nav::Steps;

/// The costs of a straight and of a diagonal step: their ratio is a convergent of √2.
const STRAIGHT: u32 = 2_378;
const DIAGONAL: u32 = 3_363;

/// The steps of a shortest path; `None` if there is no path.
pub fn find(map: &TileMap, from: IVec2, to: IVec2) -> Option<Steps> {
    let successors = |&(x, y): &(i32, i32)| {
        // Three tiles of each row, as words of the bitmap.
        let rows = [y - 1, y, y + 1].map(|y| map.rows().word_at(x - 1, y));
        let is_free = move |dx: i32, dy: i32| rows[(dy + 1) as usize] >> (dx + 1) & 1 == 0;
        let around = (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (dx, dy)));
        let steps = around.filter(move |&(dx, dy)| {
            // A diagonal step needs both straight neighbours free.
            (dx, dy) != (0, 0) && is_free(dx, dy) && is_free(dx, 0) && is_free(0, dy)
        });
        let cost = move |dx: i32, dy: i32| {
            if dx == 0 || dy == 0 {
                STRAIGHT
            } else {
                DIAGONAL
            }
        };
        steps.map(move |(dx, dy)| ((x + dx, y + dy), cost(dx, dy)))
    };
    let estimate = |&(x, y): &(i32, i32)| {
        let (dx, dy) = (x.abs_diff(to.x), y.abs_diff(to.y));
        dx.min(dy) * DIAGONAL + dx.abs_diff(dy) * STRAIGHT
    };
    let goal = (to.x, to.y);
    let (path, _) = pathfinding::prelude::astar(&(from.x, from.y), successors, estimate, |tile| {
        *tile == goal
    })?;
    let is_diagonal = |pair: &&[(i32, i32)]| pair[0].0 != pair[1].0 && pair[0].1 != pair[1].1;
    let diagonal = path.windows(2).filter(is_diagonal).count() as u32;
    Some(Steps {
        straight: path.len() as u32 - 1 - diagonal,
        diagonal,
    })
}
