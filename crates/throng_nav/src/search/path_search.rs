//! Path search: the scratch that a thread reuses between searches, and the data that each algorithm reads.
//!
//! ```text
//! PathQuery ──▶ bounds, blocked, region ──▶ SearchRun (open list, nodes, best path to the goal) ──▶ SearchOutcome + waypoints
//!                                           ▲ astar, jump, jump_graph: the successors of a node └▶ paused, to be resumed
//! ```
//! Invariant: waypoints are the turning points of a path of the returned length.

use glam::IVec2;
use throng_core::memory::MemoryUse;

use super::nodes::{Index, NONE, Node, NodeId, Nodes};
use super::open_list::OpenList;
use super::query::{FoundPath, NODES_MAX, PathQuery, SearchOutcome, trivial_outcome};
use super::run::{SearchEnd, SearchProgress, SearchRun};
use super::waypoints::push_turn;
use super::{astar, jump, jump_graph};
use crate::algorithm::Algorithm;
use crate::cost::{PathCost, Steps, octile};
use crate::jump_scan::BitScanner;
use crate::key::Key;
use crate::map::TileMap;
use crate::prepared::{JumpGraph, NavMap, SignPlanes, SignScanner};
use crate::reference::{StepTable, TileScanner};
use crate::rule::Diagonal;

/// The scratch of a thread: created once, used for search after search on maps of any size, never shared.
///
/// After a few searches it has grown to the needed size and allocates nothing more. If all queries have
/// a node limit up to 800 it holds 31 kB, and more only if very many nodes got a cheaper path while they waited.
#[derive(Debug, Default, MemoryUse)]
pub struct PathSearch {
    nodes: Nodes,
    open: OpenList,
    expanded: u32,
    progress: SearchProgress,
    /// The data that the running search has read so far; `None` before its first step.
    inputs: Option<SearchInputs>,
}

/// What the nodes of a search refer to: it restarts when this changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SearchInputs {
    fingerprint: u64,
    size: (u32, u32),
    algorithm: Algorithm,
    is_graph: bool,
    is_loaded: bool,
}

impl PathSearch {
    /// Scratch without memory; it grows with the first searches.
    pub fn new() -> Self {
        Self::default()
    }

    /// Finds a shortest path and writes its turning points, both ends included, into `waypoints`.
    ///
    /// Between two waypoints the path is straight or diagonal; when start and goal are the same there is one
    /// waypoint. The list is cleared first and stays empty unless the outcome is [`SearchOutcome::Found`].
    ///
    /// If an algorithm is not [ready](NavMap::is_ready) on these tiles, [`Algorithm::JpsBitPrune`] is used instead.
    pub fn find(
        &mut self,
        tiles: &TileMap,
        nav_map: &NavMap,
        algorithm: Algorithm,
        query: PathQuery,
        waypoints: &mut Vec<IVec2>,
    ) -> SearchOutcome {
        self.inputs = None;
        self.resume(tiles, nav_map, algorithm, query, u32::MAX, waypoints)
            .unwrap_or(SearchOutcome::Capped)
    }

    /// Drops the search that [`PathSearch::resume`] is running, so that its next call starts another one and counts from zero.
    pub const fn abandon(&mut self) {
        (self.inputs, self.expanded) = (None, 0);
    }

    /// The same as [`PathSearch::find`] in slices: `None` if it is not finished after this many more expansions. The next call,
    /// with the same query and algorithm, continues. It restarts if the tiles were edited or the data of the algorithm
    /// was built meanwhile, so a result is exact on the current tiles.
    ///
    /// A result ends the search; [`PathSearch::abandon`] does too.
    pub fn resume(
        &mut self,
        tiles: &TileMap,
        nav_map: &NavMap,
        algorithm: Algorithm,
        query: PathQuery,
        expansions: u32,
        waypoints: &mut Vec<IVec2>,
    ) -> Option<SearchOutcome> {
        waypoints.clear();
        let ground = SearchMap::new(tiles, nav_map, algorithm);
        let PathQuery { from, to, .. } = query;
        let node_limit = query.node_limit.unwrap_or(NODES_MAX).min(NODES_MAX);
        let reads = Some(ground.inputs());
        let is_begun = self.inputs == reads;
        if !is_begun {
            self.inputs = None;
            self.reset(&ground, node_limit);
            if let Some(outcome) = trivial_outcome(tiles, from, to) {
                waypoints.extend(matches!(outcome, SearchOutcome::Found(_)).then_some(from));
                return Some(outcome);
            }
            self.inputs = reads;
        } else if !tiles.are_connected(from, to) {
            // The regions became final meanwhile.
            self.inputs = None;
            return Some(SearchOutcome::Unreachable);
        }
        let pause_at = self.expanded.saturating_add(expansions);
        let mut run = self.run(&ground, to, node_limit, pause_at);
        match nav_map.diagonal() {
            Diagonal::NoCut => expand::<false>(&mut run, &ground, (!is_begun).then_some(from)),
            Diagonal::Cut => expand::<true>(&mut run, &ground, (!is_begun).then_some(from)),
        }
        let progress = run.progress;
        if !run.is_over() {
            self.progress = progress;
            return None;
        }
        self.inputs = None;
        Some(match progress.end() {
            SearchEnd::Goal { cost, parent } => {
                let steps = self.write_waypoints(&ground, from, to, parent, waypoints);
                debug_assert!(ground.is_loaded || steps.cost() == cost);
                SearchOutcome::Found(FoundPath { steps })
            }
            SearchEnd::Capped => SearchOutcome::Capped,
            SearchEnd::Exhausted => {
                debug_assert!(
                    ground.is_loaded || !tiles.has_final_regions(),
                    "tiles of a region are connected"
                );
                SearchOutcome::Unreachable
            }
        })
    }

    /// The running search, from its current state.
    fn run<'a>(
        &'a mut self,
        ground: &SearchMap<'a>,
        goal: IVec2,
        node_limit: u32,
        pause_at: u32,
    ) -> SearchRun<'a> {
        SearchRun {
            map: ground.tiles,
            goal,
            is_loaded: ground.is_loaded,
            nodes: &mut self.nodes,
            open: &mut self.open,
            expanded: &mut self.expanded,
            progress: self.progress,
            node_limit,
            pause_at,
        }
    }

    fn reset(&mut self, ground: &SearchMap, node_limit: u32) {
        let index = match (ground.graph, ground.algorithm) {
            (Some((graph, _)), _) => Index::Paged(graph.points.len()),
            (None, Algorithm::AStar) => Index::Chunked {
                width: ground.tiles.width(),
                height: ground.tiles.height(),
            },
            _ => Index::Hashed,
        };
        self.nodes.reset(index, node_limit);
        self.open.reset(node_limit);
        self.expanded = 0;
        self.progress = SearchProgress::default();
    }

    /// The number of nodes that the last search expanded.
    pub fn expanded(&self) -> u32 {
        self.expanded
    }

    /// The number of nodes that the last search generated: with the start, unless it is not a jump point of the graph; without
    /// the goal.
    pub fn generated(&self) -> u32 {
        self.nodes.len()
    }

    /// The number of pushes to and pops from the open list in the last search.
    pub fn heap_operations(&self) -> u32 {
        self.open.operations()
    }

    /// The tiles that the last search put on its open list, and whether it expanded them. Map and algorithm must
    /// be those of that search.
    pub fn visited<'a>(
        &'a self,
        tiles: &'a TileMap,
        nav_map: &'a NavMap,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = (IVec2, bool)> + 'a {
        let ground = SearchMap::new(tiles, nav_map, algorithm);
        let nodes = self.nodes.iter();
        nodes.map(move |(_, node)| (ground.tile_of(node.key), node.is_closed()))
    }

    /// Writes the path to the tile nearest to the goal, by octile distance, that the last search reached before it ended
    /// as [`SearchOutcome::Capped`]: the start, if no tile was nearer. Everything else must be as in that search.
    /// O(nodes).
    pub fn write_partial(
        &self,
        tiles: &TileMap,
        nav_map: &NavMap,
        algorithm: Algorithm,
        query: PathQuery,
        waypoints: &mut Vec<IVec2>,
    ) {
        waypoints.clear();
        let ground = SearchMap::new(tiles, nav_map, algorithm);
        let nodes = self.nodes.iter().map(|(id, node)| {
            let tile = ground.tile_of(node.key);
            (octile(tile, query.to), node.g, Key::of_tile(tile), id)
        });
        match nodes.min() {
            Some((left, _, tile, id)) if left < octile(query.from, query.to) => {
                let tile = tile.tile();
                self.write_waypoints(&ground, query.from, tile, id, waypoints);
            }
            _ => waypoints.push(query.from),
        }
    }

    /// Goes back from the goal and writes the turning points from start to goal. Returns the steps of the path.
    ///
    /// A node is straight or diagonally ahead of its parent, or first diagonally and then straight: the bend is
    /// restored, and points where the path does not turn are left out.
    fn write_waypoints(
        &self,
        ground: &SearchMap,
        from: IVec2,
        to: IVec2,
        parent: NodeId,
        waypoints: &mut Vec<IVec2>,
    ) -> Steps {
        let mut steps = Steps::default();
        let mut tile = to;
        let mut next = parent;
        waypoints.push(to);
        while tile != from {
            let node = self.nodes.get(next);
            // A point without a node is reached from the start.
            let before = node.map_or(from, |node| ground.tile_of(node.key));
            next = node.map_or(NONE, Node::parent);
            let way = tile - before;
            let diagonal = way.x.abs().min(way.y.abs());
            let bend = before + way.signum() * diagonal;
            push_turn(waypoints, bend);
            push_turn(waypoints, before);
            steps.diagonal += diagonal as u32;
            steps.straight += way.x.abs().abs_diff(way.y.abs());
            tile = before;
        }
        waypoints.reverse();
        steps
    }
}

/// The data that a search reads: the tiles, and the prepared data for its algorithm.
#[derive(Clone, Copy)]
struct SearchMap<'m> {
    tiles: &'m TileMap,
    algorithm: Algorithm,
    planes: Option<&'m SignPlanes>,
    table: Option<&'m StepTable>,
    graph: Option<(&'m JumpGraph, &'m SignPlanes)>,
    is_loaded: bool,
}

impl<'m> SearchMap<'m> {
    fn new(tiles: &'m TileMap, nav_map: &'m NavMap, algorithm: Algorithm) -> Self {
        let algorithm = if nav_map.is_ready(tiles, algorithm) {
            algorithm
        } else {
            Algorithm::JpsBitPrune
        };
        let planes = nav_map.planes().filter(|_| nav_map.matches_tiles(tiles));
        let is_graph = algorithm == Algorithm::JpsGraph;
        Self {
            tiles,
            algorithm,
            planes,
            table: nav_map.table(),
            graph: nav_map.graph().filter(|_| is_graph).zip(planes),
            is_loaded: nav_map.is_loaded(),
        }
    }

    fn inputs(&self) -> SearchInputs {
        SearchInputs {
            fingerprint: self.tiles.fingerprint(),
            size: (self.tiles.width(), self.tiles.height()),
            algorithm: self.algorithm,
            is_graph: self.graph.is_some(),
            is_loaded: self.is_loaded,
        }
    }

    fn tile_of(&self, key: Key) -> IVec2 {
        match self.graph {
            Some((graph, _)) => graph.points.tile(key.0),
            None => key.tile(),
        }
    }
}

/// Runs the algorithm with the data that it reads. A search that begins has a start.
fn expand<const CUT: bool>(run: &mut SearchRun, ground: &SearchMap, start: Option<IVec2>) {
    if let Some((graph, planes)) = ground.graph {
        if let Some(start) = start {
            jump_graph::open_start::<CUT>(run, graph, planes, start);
        }
        jump_graph::expand_all::<CUT>(run, graph, planes);
        return;
    }
    if let Some(start) = start {
        run.relax(NONE, start, PathCost::ZERO, None);
    }
    let (tiles, rows) = (ground.tiles, ground.tiles.rows());
    match (ground.algorithm, ground.table, ground.planes) {
        (Algorithm::AStar, ..) => astar::expand_all::<CUT>(run),
        (Algorithm::Jps, ..) => jump::expand_all::<_, CUT, false>(run, &TileScanner(rows)),
        (Algorithm::JpsBit, ..) => jump::expand_all::<_, CUT, false>(run, &BitScanner(tiles)),
        (Algorithm::JpsBitPre, Some(table), _) => {
            jump::expand_all::<_, CUT, false>(run, &table.scanner(rows));
        }
        (Algorithm::JpsBitPrunePre, Some(table), _) => {
            jump::expand_all::<_, CUT, true>(run, &table.scanner(rows));
        }
        (_, _, Some(planes)) => {
            jump::expand_all::<_, CUT, true>(run, &SignScanner { tiles, planes });
        }
        _ => jump::expand_all::<_, CUT, true>(run, &BitScanner(tiles)),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
pub(super) mod tests;
