//! A* over single steps (Hart, Nilsson and Raphael, 1968): the reference for the other algorithms.
//!
//! It shares their open list, node index, integer costs and estimate, and reads the 3×3 tiles around a node as three
//! words, so the only difference is the number of nodes that it opens.

use super::run::SearchRun;
use crate::cost::PathCost;
use crate::direction::Direction;

/// Expands nodes until the goal is settled, the limit is reached or no nodes are left.
pub(super) fn expand_all<const CUT: bool>(run: &mut SearchRun) {
    while let Some(current) = run.next() {
        let rows = run.map.rows();
        let from = current.key.tile();
        let around = [
            rows.word_at(from.x - 1, from.y - 1),
            rows.word_at(from.x - 1, from.y),
            rows.word_at(from.x - 1, from.y + 1),
        ];
        let is_free = |dx: i32, dy: i32| around[(dy + 1) as usize] >> (dx + 1) & 1 == 0;
        for direction in Direction::ALL {
            let step = direction.step();
            // For a straight step one of the two is the target tile and the other the current one.
            let (beside_x, beside_y) = (is_free(step.x, 0), is_free(0, step.y));
            let is_corner_free = if CUT {
                beside_x || beside_y
            } else {
                beside_x && beside_y
            };
            if !(is_corner_free && is_free(step.x, step.y)) {
                continue;
            }
            let tile = from + step;
            let g = current.g
                + if direction.is_diagonal() {
                    PathCost::DIAGONAL
                } else {
                    PathCost::STRAIGHT
                };
            if tile == run.goal {
                run.relax_goal(current.node, g);
            } else {
                run.relax(current.node, tile, g, Some(direction));
            }
        }
    }
}
