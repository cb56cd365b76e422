//! Search over the graph of jump points: nodes are numbers, and successors are read from lists.
//!
//! The start is usually not a jump point, so it alone scans the map. If the goal is far, the estimate also uses
//! landmarks, for which the goal scans once.
//!
//! The memory for a node's successors and for the head of the open list is prefetched: a large map's graph is larger than the
//! caches. In a town of 4,096 tiles per side this, and numbering by blocks, take a fifth to a quarter off a long search.
//!
//! Deliberately absent, here and in `jump`: a successor is not skipped because its leg passes a known node that reaches it
//! for less. That is sound, and such successors are a fifth to a twentieth of all, but the check of every new node costs about
//! as much as they do: it won a twentieth to a seventh on some game maps, and lost up to a tenth in rooms and towns, and more
//! on random tiles.

use glam::IVec2;

use super::nodes::{NONE, NodeId};
use super::run::SearchRun;
use crate::cost::{PathCost, octile};
use crate::direction::{Direction, Directions};
use crate::jump_scan::{JumpScanner, for_each_successor};
use crate::key::Key;
use crate::prepared::{JumpGraph, SignPlanes, SignScanner};

/// Nearer goals are usually found before the goal's scans pay off: paths of up to 80 tiles took 8 % more.
/// Tests of small maps use landmarks, too.
const LANDMARK_DISTANCE_MIN: PathCost = PathCost::straight(if cfg!(test) { 6 } else { 96 });

/// Opens the jump points that the start leads to, or finds the goal from there.
pub(super) fn open_start<const CUT: bool>(
    run: &mut SearchRun,
    graph: &JumpGraph,
    planes: &SignPlanes,
    from: IVec2,
) {
    let walks = SignScanner {
        tiles: run.map,
        planes,
    };
    let goal = run.goal;
    if JumpScanner::<CUT>::is_clear(&walks, from, goal) {
        run.relax_goal(NONE, octile(from, goal));
        return;
    }
    if octile(from, goal) >= LANDMARK_DISTANCE_MIN {
        let landmarks = &graph.landmarks;
        run.progress.goal_distances = landmarks.of_tile::<CUT>(&walks, &graph.points, goal);
    }
    for_each_successor::<_, CUT, true>(&walks, from, Directions::ALL, |tile, direction| {
        // Every one is a jump point, unless the data was loaded from a file that was tampered with.
        if let Some(number) = graph.points.number(tile) {
            let way = octile(from, tile);
            relax_jump_point(run, graph, NONE, number, way, direction);
        }
    });
}

/// Expands nodes until the goal is settled, the limit is reached or no nodes are left. Nodes are jump points by number.
pub(super) fn expand_all<const CUT: bool>(
    run: &mut SearchRun,
    graph: &JumpGraph,
    planes: &SignPlanes,
) {
    let walks = SignScanner {
        tiles: run.map,
        planes,
    };
    let goal = run.goal;
    let asks_landmarks = run.progress.goal_distances.is_some();
    while let Some(current) = run.next() {
        let tile = graph.points.tile(current.key.0);
        let Some(direction) = current.direction else {
            continue;
        };
        let (directions, successors) = graph.onward(current.key.0, direction);
        if directions.lead_to(tile, goal) && JumpScanner::<CUT>::is_clear(&walks, tile, goal) {
            run.relax_goal(current.node, current.g + octile(tile, goal));
            return;
        }
        for successor in successors {
            graph.points.prefetch(successor.number());
            run.nodes.prefetch(Key(successor.number()));
            if asks_landmarks {
                graph.landmarks.prefetch(successor.number());
            }
        }
        if let Some((key, direction)) = run.head() {
            graph.prefetch_onward(key.0, direction);
        }
        for &successor in successors {
            let number = successor.number();
            let g = current.g + octile(tile, graph.points.tile(number));
            relax_jump_point(run, graph, current.node, number, g, successor.direction());
        }
    }
}

/// Offers a path to a jump point.
#[inline(always)]
fn relax_jump_point(
    run: &mut SearchRun,
    graph: &JumpGraph,
    parent: NodeId,
    number: u32,
    g: PathCost,
    direction: Direction,
) {
    let goal_distances = run.progress.goal_distances;
    let bound = || {
        goal_distances.map_or(PathCost::ZERO, |distances| {
            graph.landmarks.lower_bound(number, &distances)
        })
    };
    let tile = graph.points.tile(number);
    run.relax_key(parent, Key(number), tile, g, Some(direction), bound);
}
