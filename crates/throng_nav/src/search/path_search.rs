//! Finding a path: the scratch that a thread keeps between searches, and which algorithm reads what of a map.
//!
//! ```text
//! PathQuery ──▶ bounds, blocked, region ──▶ SearchRun (open list, nodes, best way to the goal) ──▶ SearchOutcome + waypoints
//!                                        ▲ astar, jump, jump_graph: which successors a node has   └▶ paused, to be resumed
//! ```
//! Invariant: waypoints are turning points of a walk whose length is the answer's.

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

/// The scratch of a thread: made once, used for search after search on maps of any size, never shared.
///
/// After a few searches it has grown to what they need and allocates nothing more. One that only ever answers queries
/// with a node limit up to 800 holds 31 kB, and some more only where very many ways got cheaper while they waited.
#[derive(Debug, Default, MemoryUse)]
pub struct PathSearch {
    nodes: Nodes,
    open: OpenList,
    expanded: u32,
    progress: SearchProgress,
    /// What the search under way has read so far; `None` before its first step.
    inputs: Option<SearchInputs>,
}

/// What the nodes of a search stand for: it begins anew when this changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SearchInputs {
    fingerprint: u64,
    size: (u32, u32),
    algorithm: Algorithm,
    is_graph: bool,
    is_loaded: bool,
}

impl PathSearch {
    /// Scratch that holds no memory yet; it grows with the first searches.
    pub fn new() -> Self {
        Self::default()
    }

    /// Finds a shortest path and writes its turning points, both ends included, into `waypoints`.
    ///
    /// Between two waypoints the walk is straight or diagonal; when start and goal are the same there is one
    /// waypoint. The list is emptied first and stays empty unless the outcome is [`SearchOutcome::Found`].
    ///
    /// An algorithm that is not [ready](NavMap::is_ready) on these tiles is answered by [`Algorithm::JpsBitPrune`].
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

    /// Forgets the search that [`PathSearch::resume`] has under way, so that its next call begins another and counts from zero.
    pub const fn abandon(&mut self) {
        (self.inputs, self.expanded) = (None, 0);
    }

    /// The same as [`PathSearch::find`] in slices: `None` when it is not done after so many expansions more. The next call, with
    /// the same query and algorithm, goes on from there. It begins anew when the tiles were edited or what the algorithm
    /// reads was built meanwhile, so that an answer is exact on the tiles with which it is given.
    ///
    /// An answer ends the search; [`PathSearch::abandon`] does too.
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
            // The tiles were settled meanwhile.
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

    /// The search under way, from where it stands.
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

    /// How many nodes the last search expanded.
    pub fn expanded(&self) -> u32 {
        self.expanded
    }

    /// How many nodes the last search generated: the start included, unless it is no jump point of the graph; the goal not.
    pub fn generated(&self) -> u32 {
        self.nodes.len()
    }

    /// How often the last search put something on its open list or took it off.
    pub fn heap_operations(&self) -> u32 {
        self.open.operations()
    }

    /// The tiles the last search put on its open list, and whether it expanded them. Map and algorithm must
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

    /// Writes the way to the tile nearest to the goal, by octile distance, that the last search reached before it gave up
    /// as [`SearchOutcome::Capped`]: the start, if nothing was nearer. Everything else must be as it was for that search.
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

    /// Walks back from the goal and writes the turning points in the order of walking. Returns the steps walked.
    ///
    /// A node lies straight or diagonally ahead of its parent, or first diagonally and then straight: the bend is
    /// put back in, and points at which the walk does not turn are left out.
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
            // What has no node is reached from the start.
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

/// What a search reads: the tiles, and what is prepared of them for its algorithm.
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

/// Which algorithm reads what of the ground. A search that begins is given its start.
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
