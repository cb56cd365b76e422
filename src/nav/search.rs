//! One search: what is asked, what is answered, and the scratch that a thread keeps between searches.
//!
//! ```text
//! Query ──▶ bounds, blocked, region ──▶ Run (open list, nodes, best way to the goal) ──▶ Outcome + waypoints
//!                                        ▲ astar, jump, graph: which successors a node has     └▶ paused, to be resumed
//! ```
//! Every algorithm is best-first search over [`SearchRun`] and differs only in the successors it offers. The goal is kept
//! apart from the nodes, as the cheapest way to it so far; the search ends when nothing that waits can beat it.
//!
//! Two tiles are connected exactly if they are connected by straight steps, under both movement rules, so an unreachable
//! goal is known from the regions before any search; while the tiles are not settled after a cut, it may take a search of
//! all that can be reached.
//!
//! Invariants: estimates are consistent and nodes leave the open list in the order of f, so a closed node never gets
//! cheaper; waypoints are turning points of a walk whose length is the answer's.

use glam::IVec2;

use super::algorithm::Algorithm;
use super::bits::TileBits;
use super::cost::{Cost, Steps, octile};
use super::direction::Direction;
use super::graph::JumpGraph;
use super::nav_map::NavMap;
use super::nodes::{Index, Key, NONE, Node, NodeId, Nodes};
use super::open_list::OpenList;
use super::planes::{SignPlanes, SignWalks};
use super::rule::Diagonal;
use super::table::StepTable;
use super::tiles::Tiles;
use super::{astar, graph, jump};
use crate::map::TileMap;

/// No search generates more nodes than this, whatever its query says: about 2 GB of scratch.
pub const NODES_MAX: u32 = 1 << 26;

const _: () = assert!(NODES_MAX < NONE);

/// A question for a path between two tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Query {
    /// The tile where the walk starts.
    pub from: IVec2,
    /// The tile where it ends.
    pub to: IVec2,
    /// How many nodes may be generated, the start included, before the search gives up; `None` for [`NODES_MAX`].
    pub node_limit: Option<u32>,
}

impl Query {
    /// A question without a limit.
    pub const fn new(from: IVec2, to: IVec2) -> Self {
        Self {
            from,
            to,
            node_limit: None,
        }
    }

    /// The same question, given up after `nodes` generated nodes.
    pub const fn with_node_limit(self, nodes: u32) -> Self {
        Self {
            node_limit: Some(nodes),
            ..self
        }
    }
}

/// The answer to a [`Query`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A shortest path; its turning points are in the list given to [`Search::find`].
    Found(FoundPath),
    /// Start and goal are free, and no walk joins them.
    Unreachable,
    /// The start or the goal is blocked.
    Blocked,
    /// The start or the goal lies outside the map.
    OutOfBounds,
    /// The search gave up at its node limit: there is a path, if the tiles are [settled](TileMap::is_settled), and it was
    /// not found. [`Search::write_partial`] gives the
    /// way to the tile nearest to the goal that was reached.
    Capped,
}

/// The length of a shortest path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FoundPath {
    /// How many straight and diagonal steps the path takes.
    pub steps: Steps,
}

impl FoundPath {
    /// The exact cost, to compare paths by.
    pub const fn cost(&self) -> Cost {
        self.steps.cost()
    }

    /// The length in tiles.
    pub fn length_tiles(&self) -> f64 {
        self.steps.length_tiles()
    }
}

/// The scratch of a thread: made once, used for search after search on maps of any size, never shared.
///
/// After a few searches it has grown to what they need and allocates nothing more. One that only ever answers queries
/// with a node limit up to 800 holds 31 kB, and some more only where very many ways got cheaper while they waited.
#[derive(Debug, Default)]
pub struct Search {
    nodes: Nodes,
    open: OpenList,
    expanded: u32,
    progress: SearchProgress,
    /// What the search under way has read so far; `None` before its first step.
    reads: Option<Reads>,
}

/// What the nodes of a search stand for: it begins anew when this changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reads {
    fingerprint: u64,
    size: (u32, u32),
    algorithm: Algorithm,
    is_graph: bool,
}

impl Search {
    /// Empty scratch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Finds a shortest path and writes its turning points, both ends included, into `waypoints`.
    ///
    /// Between two waypoints the walk is straight or diagonal; when start and goal are the same there is one
    /// waypoint. The list is emptied first and stays empty unless the outcome is [`Outcome::Found`].
    ///
    /// An algorithm that is not [ready](NavMap::is_ready) on these tiles is answered by [`Algorithm::JpsBitPrune`].
    pub fn find(
        &mut self,
        tiles: &TileMap,
        nav_map: &NavMap,
        algorithm: Algorithm,
        query: Query,
        waypoints: &mut Vec<IVec2>,
    ) -> Outcome {
        self.reads = None;
        self.resume(tiles, nav_map, algorithm, query, u32::MAX, waypoints)
            .unwrap_or(Outcome::Capped)
    }

    /// Forgets the search that [`Search::resume`] has under way, so that its next call begins another.
    pub const fn abandon(&mut self) {
        self.reads = None;
    }

    /// The same as [`Search::find`] in slices: `None` when it is not done after so many expansions more. The next call, with
    /// the same query and algorithm, goes on from there. It begins anew when the tiles were edited or what the algorithm
    /// reads was built meanwhile, so that an answer is exact on the tiles with which it is given.
    ///
    /// An answer ends the search; [`Search::abandon`] does too.
    pub fn resume(
        &mut self,
        tiles: &TileMap,
        nav_map: &NavMap,
        algorithm: Algorithm,
        query: Query,
        expansions: u32,
        waypoints: &mut Vec<IVec2>,
    ) -> Option<Outcome> {
        waypoints.clear();
        let ground = SearchGround::new(tiles, nav_map, algorithm);
        let Query { from, to, .. } = query;
        let node_limit = query.node_limit.unwrap_or(NODES_MAX).min(NODES_MAX);
        let reads = Some(ground.reads());
        let is_begun = self.reads == reads;
        if !is_begun {
            self.reads = None;
            self.reset(&ground, node_limit);
            if let Some(outcome) = answer_at_once(tiles, from, to) {
                waypoints.extend(matches!(outcome, Outcome::Found(_)).then_some(from));
                return Some(outcome);
            }
            self.reads = reads;
        } else if !tiles.connected(from, to) {
            // The tiles were settled meanwhile.
            self.reads = None;
            return Some(Outcome::Unreachable);
        }
        let pause_at = self.expanded.saturating_add(expansions);
        let mut run = SearchRun::new(self, tiles, to, node_limit, pause_at);
        match nav_map.diagonal() {
            Diagonal::NoCut => expand::<false>(&mut run, &ground, (!is_begun).then_some(from)),
            Diagonal::Cut => expand::<true>(&mut run, &ground, (!is_begun).then_some(from)),
        }
        let progress = run.progress;
        if !run.is_over() {
            self.progress = progress;
            return None;
        }
        self.reads = None;
        Some(match progress.end() {
            SearchEnd::Goal { cost, parent } => {
                let steps = self.write_waypoints(&ground, from, to, parent, waypoints);
                debug_assert_eq!(steps.cost(), cost);
                Outcome::Found(FoundPath { steps })
            }
            SearchEnd::Capped => Outcome::Capped,
            SearchEnd::Exhausted => {
                debug_assert!(!tiles.is_settled(), "tiles of a region are connected");
                Outcome::Unreachable
            }
        })
    }

    fn reset(&mut self, ground: &SearchGround, node_limit: u32) {
        let index = match (ground.graph, ground.algorithm) {
            (Some((graph, _)), _) => Index::Direct(graph.len()),
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

    /// The tiles the last search put on its open list, in that order, and whether it expanded them. Map and algorithm must
    /// be those of that search.
    pub fn touched<'a>(
        &'a self,
        tiles: &'a TileMap,
        nav_map: &'a NavMap,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = (IVec2, bool)> + 'a {
        let ground = SearchGround::new(tiles, nav_map, algorithm);
        let nodes = self.nodes.as_slice().iter();
        nodes.map(move |node| (ground.tile_of(node.key), node.is_closed()))
    }

    /// Bytes this scratch holds.
    pub fn memory_bytes(&self) -> usize {
        self.nodes.memory_bytes() + self.open.memory_bytes()
    }

    /// Writes the way to the tile nearest to the goal, by octile distance, that the last search reached before it gave up
    /// as [`Outcome::Capped`]: the start, if nothing was nearer. Everything else must be as it was for that search.
    /// O(nodes).
    pub fn write_partial(
        &self,
        tiles: &TileMap,
        nav_map: &NavMap,
        algorithm: Algorithm,
        query: Query,
        waypoints: &mut Vec<IVec2>,
    ) {
        waypoints.clear();
        let ground = SearchGround::new(tiles, nav_map, algorithm);
        let nodes = (0..).zip(self.nodes.as_slice());
        let nearest = nodes
            .map(|(id, node)| (octile(ground.tile_of(node.key), query.to), node.g, id))
            .min();
        match nearest {
            Some((left, _, id)) if left < octile(query.from, query.to) => {
                let tile = ground.tile_of(self.nodes.as_slice()[id as usize].key);
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
        ground: &SearchGround,
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
            let node = self.nodes.as_slice().get(next as usize);
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
struct SearchGround<'m> {
    tiles: &'m TileMap,
    algorithm: Algorithm,
    planes: Option<&'m SignPlanes>,
    table: Option<&'m StepTable>,
    graph: Option<(&'m JumpGraph, &'m SignPlanes)>,
}

impl<'m> SearchGround<'m> {
    fn new(tiles: &'m TileMap, nav_map: &'m NavMap, algorithm: Algorithm) -> Self {
        let algorithm = if nav_map.is_ready(tiles, algorithm) {
            algorithm
        } else {
            Algorithm::JpsBitPrune
        };
        let planes = nav_map.planes().filter(|_| nav_map.is_of(tiles));
        let is_graph = algorithm == Algorithm::JpsGraph;
        Self {
            tiles,
            algorithm,
            planes,
            table: nav_map.table(),
            graph: nav_map.graph().filter(|_| is_graph).zip(planes),
        }
    }

    fn reads(&self) -> Reads {
        Reads {
            fingerprint: self.tiles.fingerprint(),
            size: (self.tiles.width(), self.tiles.height()),
            algorithm: self.algorithm,
            is_graph: self.graph.is_some(),
        }
    }

    fn tile_of(&self, key: Key) -> IVec2 {
        match self.graph {
            Some((graph, _)) => graph.tile(key.0),
            None => key.tile(),
        }
    }
}

/// What is known without a search.
fn answer_at_once(tiles: &TileMap, from: IVec2, to: IVec2) -> Option<Outcome> {
    if !is_inside(tiles, from) || !is_inside(tiles, to) {
        Some(Outcome::OutOfBounds)
    } else if !tiles.is_free(from) || !tiles.is_free(to) {
        Some(Outcome::Blocked)
    } else if !tiles.connected(from, to) {
        Some(Outcome::Unreachable)
    } else {
        (from == to).then(|| Outcome::Found(FoundPath::default()))
    }
}

/// Which algorithm reads what of the ground. A search that begins is given its start.
fn expand<const CUT: bool>(run: &mut SearchRun, ground: &SearchGround, start: Option<IVec2>) {
    if let Some((graph, planes)) = ground.graph {
        if let Some(start) = start {
            graph::open_start::<CUT>(run, graph, planes, start);
        }
        graph::expand_all::<CUT>(run, graph, planes);
        return;
    }
    if let Some(start) = start {
        run.reach(NONE, start, Cost::ZERO, None);
    }
    let (tiles, rows) = (ground.tiles, ground.tiles.rows());
    match (ground.algorithm, ground.table, ground.planes) {
        (Algorithm::AStar, ..) => astar::expand_all::<CUT>(run),
        (Algorithm::Jps, ..) => jump::expand_all::<_, CUT, false>(run, &Tiles(rows)),
        (Algorithm::JpsBit, ..) => jump::expand_all::<_, CUT, false>(run, &TileBits(tiles)),
        (Algorithm::JpsBitPre, Some(table), _) => {
            jump::expand_all::<_, CUT, false>(run, &table.walks(rows));
        }
        (Algorithm::JpsBitPrunePre, Some(table), _) => {
            jump::expand_all::<_, CUT, true>(run, &table.walks(rows));
        }
        (_, _, Some(planes)) => {
            jump::expand_all::<_, CUT, true>(run, &SignWalks { tiles, planes });
        }
        _ => jump::expand_all::<_, CUT, true>(run, &TileBits(tiles)),
    }
}

/// Appends a point, which replaces the last one when the walk goes straight on through that, or stands on it.
pub(super) fn push_turn(waypoints: &mut Vec<IVec2>, point: IVec2) {
    match waypoints[..] {
        [.., last] if last == point => {}
        [.., before, last] if (last - before).signum() == (point - last).signum() => {
            waypoints.pop();
            waypoints.push(point);
        }
        _ => waypoints.push(point),
    }
}

pub(super) fn is_inside(map: &TileMap, tile: IVec2) -> bool {
    tile.x >= 0 && tile.y >= 0 && (tile.x as u32) < map.width() && (tile.y as u32) < map.height()
}

/// How a run ended.
enum SearchEnd {
    Goal { cost: Cost, parent: NodeId },
    Exhausted,
    Capped,
}

/// A node that was taken off the open list to be expanded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Current {
    pub(super) node: NodeId,
    pub(super) key: Key,
    pub(super) g: Cost,
    pub(super) direction: Option<Direction>,
}

/// How far a search has come, besides its nodes.
#[derive(Clone, Copy, Debug)]
struct SearchProgress {
    is_capped: bool,
    /// The f of the node being expanded: no path is shorter.
    least_f: Cost,
    /// The cost of the best way to the goal so far, and the node it comes from.
    goal_cost: Cost,
    goal_parent: NodeId,
}

impl Default for SearchProgress {
    fn default() -> Self {
        Self {
            is_capped: false,
            least_f: Cost::ZERO,
            goal_cost: Cost::MAX,
            goal_parent: NONE,
        }
    }
}

impl SearchProgress {
    /// A way to the goal counts as an answer only where nothing that was given up could have beaten it.
    fn end(&self) -> SearchEnd {
        let is_settled = self.goal_cost <= self.least_f;
        if self.is_capped && !is_settled {
            SearchEnd::Capped
        } else if self.goal_cost < Cost::MAX {
            SearchEnd::Goal {
                cost: self.goal_cost,
                parent: self.goal_parent,
            }
        } else {
            SearchEnd::Exhausted
        }
    }
}

/// A search under way: what an algorithm uses to take nodes and to offer their successors.
pub(super) struct SearchRun<'a> {
    pub(super) map: &'a TileMap,
    pub(super) goal: IVec2,
    nodes: &'a mut Nodes,
    open: &'a mut OpenList,
    expanded: &'a mut u32,
    progress: SearchProgress,
    node_limit: u32,
    pause_at: u32,
}

impl<'a> SearchRun<'a> {
    fn new(
        search: &'a mut Search,
        map: &'a TileMap,
        goal: IVec2,
        node_limit: u32,
        pause_at: u32,
    ) -> Self {
        Self {
            map,
            goal,
            nodes: &mut search.nodes,
            open: &mut search.open,
            expanded: &mut search.expanded,
            progress: search.progress,
            node_limit,
            pause_at,
        }
    }

    /// Whether nothing that waits can be part of the answer.
    #[inline]
    fn is_over(&self) -> bool {
        let SearchProgress {
            is_capped,
            goal_cost,
            ..
        } = self.progress;
        is_capped || self.open.least_f().is_none_or(|f| f >= goal_cost)
    }

    /// Takes the next node to expand; `None` when the search is over or is to pause.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Current> {
        loop {
            if self.is_over() || *self.expanded >= self.pause_at {
                return None;
            }
            let (id, f) = self.open.pop()?;
            let node = self.nodes.get_mut(id);
            if node.is_closed() {
                continue;
            }
            debug_assert!(f >= self.progress.least_f);
            self.progress.least_f = f;
            *self.expanded += 1;
            let current = Current {
                node: id,
                key: node.key,
                g: node.g,
                direction: node.direction(),
            };
            node.close();
            return Some(current);
        }
    }

    /// Offers a way of cost `g` from a node to a tile that is not the goal.
    #[inline]
    pub(super) fn reach(
        &mut self,
        parent: NodeId,
        tile: IVec2,
        g: Cost,
        direction: Option<Direction>,
    ) {
        self.reach_key(parent, Key::of_tile(tile), tile, g, direction);
    }

    /// The same for a tile with a key of its own.
    #[inline]
    pub(super) fn reach_key(
        &mut self,
        parent: NodeId,
        key: Key,
        tile: IVec2,
        g: Cost,
        direction: Option<Direction>,
    ) {
        let f = g + octile(tile, self.goal);
        if f >= self.progress.goal_cost {
            return;
        }
        match self.nodes.find(key) {
            Ok(id) => {
                let node = self.nodes.get_mut(id);
                if g < node.g {
                    debug_assert!(!node.is_closed(), "a closed node got cheaper");
                    *node = Node::new(key, g, parent, direction);
                    self.open.push(id, f);
                }
            }
            Err(_) if self.nodes.len() >= self.node_limit => self.progress.is_capped = true,
            Err(vacancy) => {
                let id = self
                    .nodes
                    .add(vacancy, Node::new(key, g, parent, direction));
                self.open.push(id, f);
            }
        }
    }

    /// Offers a way of cost `g` from a node to the goal.
    #[inline]
    pub(super) fn reach_goal(&mut self, parent: NodeId, g: Cost) {
        if g < self.progress.goal_cost {
            (self.progress.goal_cost, self.progress.goal_parent) = (g, parent);
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
