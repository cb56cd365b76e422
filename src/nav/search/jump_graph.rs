//! Search over the graph of jump points: nodes are numbers, and successors are read from lists.
//!
//! The start is no jump point as a rule, so it alone walks over the map.
//!
//! What a node's successors and the head of the open list read is asked for ahead: a large map's graph is more than caches hold.
//! In a town of 4,096 tiles a side that, and numbers that go by blocks, take a fifth to a quarter off a long way.
//!
//! Deliberately absent, here and in `jump`: a successor is not left out because its leg passes a known node that reaches it
//! for less. That is sound, and such successors are a fifth to a twentieth of all, but the look at every new node costs about
//! what they do: it won a twentieth to a seventh on some maps of games, and lost up to a tenth in rooms and towns, and more
//! on random tiles.

use glam::IVec2;

use super::nodes::NONE;
use super::run::SearchRun;
use crate::nav::cost::octile;
use crate::nav::direction::Directions;
use crate::nav::key::Key;
use crate::nav::prepared::{JumpGraph, SignPlanes, SignWalks};
use crate::nav::walks::{Walks, for_each_successor};

/// Opens the jump points to which the start leads, or finds the goal from there.
pub(super) fn open_start<const CUT: bool>(
    run: &mut SearchRun,
    graph: &JumpGraph,
    planes: &SignPlanes,
    from: IVec2,
) {
    let walks = SignWalks {
        tiles: run.map,
        planes,
    };
    let goal = run.goal;
    if Walks::<CUT>::is_clear(&walks, from, goal) {
        run.reach_goal(NONE, octile(from, goal));
        return;
    }
    for_each_successor::<_, CUT, true>(&walks, from, Directions::ALL, |tile, direction| {
        // Every one is a jump point, unless what is prepared came out of a file that was tampered with.
        if let Some(number) = graph.number(tile) {
            let way = octile(from, tile);
            run.reach_key(NONE, Key(number), tile, way, Some(direction));
        }
    });
}

/// Expands nodes until the goal is settled, the limit is hit or nothing is left. Nodes are jump points by number.
pub(super) fn expand_all<const CUT: bool>(
    run: &mut SearchRun,
    graph: &JumpGraph,
    planes: &SignPlanes,
) {
    let walks = SignWalks {
        tiles: run.map,
        planes,
    };
    let goal = run.goal;
    while let Some(current) = run.next() {
        let tile = graph.tile(current.key.0);
        let Some(direction) = current.direction else {
            continue;
        };
        let (directions, successors) = graph.onward(current.key.0, direction);
        if directions.lead_to(tile, goal) && Walks::<CUT>::is_clear(&walks, tile, goal) {
            run.reach_goal(current.node, current.g + octile(tile, goal));
            return;
        }
        for successor in successors {
            graph.prefetch_tile(successor.number());
            run.nodes.prefetch(Key(successor.number()));
        }
        if let Some((key, direction)) = run.head() {
            graph.prefetch_onward(key.0, direction);
        }
        for &successor in successors {
            let key = Key(successor.number());
            let to = graph.tile(key.0);
            let g = current.g + octile(tile, to);
            run.reach_key(current.node, key, to, g, Some(successor.direction()));
        }
    }
}
