//! Jump Point Search over any scanner.
//!
//! Scans do not look for the goal. A node with a clear path to it, first diagonally and then straight, ends
//! the search when it is taken off the open list: that path is as long as the estimate, so none is shorter. The last
//! node of a shortest path is such a node, and the path starts in one of the directions in which it would continue.
//!
//! The variants differ in the scanner ([`JumpScanner`]), and in whether a node's successors are pruned:
//! see `jump_scan`.

use super::run::SearchRun;
use crate::cost::octile;
use crate::jump_scan::{JumpScanner, for_each_successor};
use crate::rule::next_directions;

/// Expands nodes until the goal is settled, the limit is reached or no nodes are left.
pub(super) fn expand_all<W, const CUT: bool, const PRUNE: bool>(run: &mut SearchRun, walks: &W)
where
    W: JumpScanner<CUT>,
{
    while let Some(current) = run.next() {
        let (tile, goal) = (current.key.tile(), run.goal);
        let directions = next_directions::<CUT>(walks.rows(), tile, current.direction);
        if directions.lead_to(tile, goal) && walks.is_clear(tile, goal) {
            run.relax_goal(current.node, current.g + octile(tile, goal));
            return;
        }
        for_each_successor::<W, CUT, PRUNE>(walks, tile, directions, |successor, direction| {
            let g = current.g + octile(tile, successor);
            run.relax(current.node, successor, g, Some(direction));
        });
    }
}
