//! One search for many starts with one goal.
//!
//! ```text
//! goal ─▶ search towards one start ─▶ … towards the next, with the same nodes ─▶ SearchOutcome of each ─▶ waypoints on demand
//!         nodes: closed (expanded) or open, each with the cheapest known path from the goal
//! ```
//! Both movement rules allow a step exactly if they allow the reverse step, so a path from the goal to a start is, reversed,
//! a path from the start to the goal. The search is Jump Point Search with pruned diagonals as in `jump`, from
//! the goal towards one start after the other, and continues from its last state: nodes that were expanded for one start are
//! known for all later ones. The starts are sorted by cells of 16 by 16 tiles, as neighbours usually turn last at the same
//! node.
//!
//! Why every result is a shortest path. For a start s let f(n) = g(n) + octile(n, s).
//!
//! - Take the open node n with the least f, and assume that a cheaper path leads to n. It leaves the closed nodes at an open
//!   node m whose g is minimal. The rest of the path, from m to n, is at least octile(m, s) − octile(n, s) long,
//!   so f(m) < f(n), and n was not the one with the least f. Hence g is final when a node is closed, whichever start the
//!   search went towards, and no closed node is ever expanded again.
//! - A shortest path to s either turns last at a closed node with a clear path to s, and all of these are
//!   checked; or it passes an open node n, and is at least f(n) long. So the best known path is a shortest one as soon as
//!   no open node has a lesser f, and at once if the path to s is clear from the open node with the least f.
//! - A node whose successors did not all fit under the limit stays open, so this also holds for later starts.
//!
//! Cost: the nodes expanded are, except for equal ones, those of the single searches from the goal, each once. In addition, a
//! start checks every node, which takes about a nanosecond each. Memory: nodes and open list as in `search`, 24 bytes more per
//! closed node, 20 per start; reused between searches.

use glam::IVec2;
use throng_core::memory::MemoryUse;

use super::nodes::{Index, NONE, Node, NodeId, Nodes};
use super::open_list::OpenList;
use super::query::{FoundPath, NODES_MAX, SearchOutcome, trivial_outcome};
use super::waypoints::push_turn;
use crate::cost::{PathCost, octile};
use crate::direction::Directions;
use crate::jump_scan::{BitScanner, JumpScanner, for_each_successor};
use crate::key::Key;
use crate::map::TileMap;
use crate::prepared::{JumpGraph, NavMap, SignScanner};
use crate::rule::{Diagonal, next_directions};

/// The side of a cell of starts, as a power of two.
const CELL_BITS: u32 = 4;

/// The scratch of a thread for searches with many starts, as [`PathSearch`](super::PathSearch) is for single ones.
#[derive(Debug, Default, MemoryUse)]
pub struct MultiStartSearch {
    nodes: Nodes,
    open: OpenList,
    closed: Vec<Closed>,
    starts: Vec<StartEntry>,
    /// The indices of the starts that need a search, in the order in which they are searched.
    search_order: Vec<u32>,
    node_limit: u32,
    is_capped: bool,
}

/// A node that was expanded, and the directions in which paths continue from it.
#[derive(Clone, Copy, Debug)]
struct Closed {
    g: PathCost,
    key: Key,
    node: NodeId,
    onward: Directions,
}

/// A start and the first node of its path; [`NONE`] if it is the goal.
#[derive(Clone, Copy, Debug)]
struct StartEntry {
    start: IVec2,
    node: NodeId,
    is_found: bool,
}

/// The result for a start.
enum StartPath {
    /// The cost of a shortest path and the last node on it.
    Found(PathCost, NodeId),
    /// There is no path.
    None,
    /// The limit was reached first.
    Unknown,
}

impl MultiStartSearch {
    /// Scratch without memory; it grows with the first searches.
    pub fn new() -> Self {
        Self::default()
    }

    /// Finds a shortest path from each of the starts to the goal.
    ///
    /// The results are in the order of the starts, and equal to those of [`PathSearch::find`](super::PathSearch::find). The node
    /// limit is for all starts together, the goal's node included; starts without a result are [`SearchOutcome::Capped`].
    /// Without planes and graph of these tiles in `nav_map` it is slower, and as exact. Cost: see the module.
    pub fn find(
        &mut self,
        tiles: &TileMap,
        nav_map: &NavMap,
        goal: IVec2,
        starts: &[IVec2],
        node_limit: Option<u32>,
        answers: &mut Vec<SearchOutcome>,
    ) {
        self.node_limit = node_limit.unwrap_or(NODES_MAX).min(NODES_MAX);
        self.is_capped = false;
        self.nodes.reset(Index::Hashed, self.node_limit);
        self.closed.clear();
        self.starts.clear();
        self.search_order.clear();
        answers.clear();
        for (nth, &start) in (0..).zip(starts) {
            let trivial = trivial_outcome(tiles, goal, start);
            answers.push(trivial.unwrap_or(SearchOutcome::Capped));
            self.starts.push(StartEntry {
                start,
                node: NONE,
                is_found: matches!(trivial, Some(SearchOutcome::Found(_))),
            });
            if trivial.is_none() {
                self.search_order.push(nth);
            }
        }
        let planes = nav_map.planes().filter(|_| nav_map.matches_tiles(tiles));
        let graph = nav_map.graph().filter(|_| nav_map.matches_tiles(tiles));
        match (nav_map.diagonal(), planes) {
            (Diagonal::NoCut, Some(planes)) => {
                self.find_all::<_, false>(&SignScanner { tiles, planes }, graph, goal, answers);
            }
            (Diagonal::Cut, Some(planes)) => {
                self.find_all::<_, true>(&SignScanner { tiles, planes }, graph, goal, answers);
            }
            (Diagonal::NoCut, None) => {
                self.find_all::<_, false>(&BitScanner(tiles), None, goal, answers)
            }
            (Diagonal::Cut, None) => {
                self.find_all::<_, true>(&BitScanner(tiles), None, goal, answers)
            }
        }
        debug_assert!(
            nav_map.is_loaded()
                || !tiles.has_final_regions()
                || (self.search_order.iter())
                    .all(|nth| answers[*nth as usize] != SearchOutcome::Unreachable),
            "tiles of a region are connected"
        );
    }

    /// Writes the waypoints of the nth start's path, from start to goal, as [`PathSearch::find`](super::PathSearch::find) does:
    /// none unless it was found. O(nodes on the path).
    pub fn write_path(&self, nth: usize, waypoints: &mut Vec<IVec2>) {
        waypoints.clear();
        let Some(end) = self.starts.get(nth).filter(|end| end.is_found) else {
            return;
        };
        let mut tile = end.start;
        waypoints.push(tile);
        let mut next = end.node;
        while let Some(node) = self.nodes.get(next) {
            // The path from the node to the tile is diagonal first and then straight.
            let to = node.key.tile();
            let way = tile - to;
            push_turn(waypoints, to + way.signum() * way.abs().min_element());
            push_turn(waypoints, to);
            (tile, next) = (to, node.parent());
        }
    }

    /// The number of nodes that the last search expanded.
    pub fn expanded(&self) -> u32 {
        self.closed.len() as u32
    }

    /// The number of nodes that the last search generated, the goal's included.
    pub fn generated(&self) -> u32 {
        self.nodes.len()
    }

    /// Searches for the starts of `order`.
    fn find_all<W, const CUT: bool>(
        &mut self,
        walks: &W,
        graph: Option<&JumpGraph>,
        goal: IVec2,
        answers: &mut [SearchOutcome],
    ) where
        W: JumpScanner<CUT>,
    {
        let Some(root) = self.relax(Node::new(Key::of_tile(goal), PathCost::ZERO, NONE, None))
        else {
            return;
        };
        let Self {
            search_order: order,
            starts: ends,
            ..
        } = self;
        order.retain(|&nth| {
            let end = &mut ends[nth as usize];
            let is_clear = walks.is_clear(goal, end.start);
            if is_clear {
                answers[nth as usize] = found(octile(goal, end.start));
                (end.node, end.is_found) = (root, true);
            }
            !is_clear
        });
        order.sort_unstable_by_key(|&nth| {
            let IVec2 { x, y } = ends[nth as usize].start;
            (y >> CELL_BITS, x >> CELL_BITS, y, x, nth)
        });
        let mut before: Option<(StartEntry, SearchOutcome)> = None;
        for place in 0..self.search_order.len() {
            let nth = self.search_order[place] as usize;
            let start = self.starts[nth].start;
            match before {
                Some((end, answer)) if end.start == start => {
                    (self.starts[nth], answers[nth]) = (end, answer);
                }
                _ => {
                    let hint = before.map_or(root, |(end, _)| end.node);
                    answers[nth] = match self.find_one(walks, graph, start, hint) {
                        StartPath::Found(cost, node) => {
                            (self.starts[nth].node, self.starts[nth].is_found) = (node, true);
                            found(cost)
                        }
                        StartPath::None => SearchOutcome::Unreachable,
                        StartPath::Unknown => SearchOutcome::Capped,
                    };
                }
            }
            before = Some((self.starts[nth], answers[nth]));
        }
    }

    /// A shortest path to a start. `hint` is tried first.
    fn find_one<W, const CUT: bool>(
        &mut self,
        walks: &W,
        graph: Option<&JumpGraph>,
        start: IVec2,
        hint: NodeId,
    ) -> StartPath
    where
        W: JumpScanner<CUT>,
    {
        let (best, best_node) = self.best_from_closed(walks, start, hint);
        // The keys of the last start are not valid for this one.
        self.open.reset(self.node_limit);
        for (id, node) in self.nodes.iter() {
            let f = node.g + octile(node.key.tile(), start);
            if f < best && !node.is_closed() {
                self.open.push(id, f);
            }
        }
        while let Some((id, f)) = self.open.pop()
            && f < best
        {
            let node = *self.nodes.get_mut(id);
            if node.is_closed() {
                continue;
            }
            let tile = node.key.tile();
            let onward = next_directions::<CUT>(walks.rows(), tile, node.direction());
            if onward.lead_to(tile, start) && walks.is_clear(tile, start) {
                return StartPath::Found(f, id);
            }
            if self.is_capped {
                return StartPath::Unknown;
            }
            let offer = |successor: IVec2, direction| {
                let g = node.g + octile(tile, successor);
                let successor_node = Node::new(Key::of_tile(successor), g, id, Some(direction));
                if let Some(reached) = self.relax(successor_node) {
                    self.open.push(reached, g + octile(successor, start));
                }
            };
            match (graph, node.direction()) {
                (Some(graph), Some(direction)) => graph.for_each_successor(tile, direction, offer),
                _ => for_each_successor::<W, CUT, true>(walks, tile, onward, offer),
            }
            if self.is_capped {
                return StartPath::Unknown;
            }
            self.nodes.get_mut(id).close();
            self.closed.push(Closed {
                g: node.g,
                key: node.key,
                node: id,
                onward,
            });
        }
        match best {
            // Only while the regions are not final.
            PathCost::MAX => StartPath::None,
            _ => StartPath::Found(best, best_node),
        }
    }

    /// The best path to a start among those that turn last at a closed node, or at `hint`, and that node.
    fn best_from_closed<W, const CUT: bool>(
        &self,
        walks: &W,
        start: IVec2,
        hint: NodeId,
    ) -> (PathCost, NodeId)
    where
        W: JumpScanner<CUT>,
    {
        let (mut best, mut best_node) = (PathCost::MAX, NONE);
        if let Some(node) = self.nodes.get(hint)
            && walks.is_clear(node.key.tile(), start)
        {
            (best, best_node) = (node.g + octile(node.key.tile(), start), hint);
        }
        // The latest are the farthest from the goal, and so more often near a start.
        for closed in self.closed.iter().rev() {
            let tile = closed.key.tile();
            let f = closed.g + octile(tile, start);
            if f < best && closed.onward.lead_to(tile, start) && walks.is_clear(tile, start) {
                (best, best_node) = (f, closed.node);
            }
        }
        (best, best_node)
    }

    /// Stores a path to a node if it is the cheapest so far, and returns its number then.
    #[inline]
    fn relax(&mut self, way: Node) -> Option<NodeId> {
        let id = match self.nodes.find(way.key) {
            Ok(id) => {
                let node = self.nodes.get_mut(id);
                if way.g >= node.g {
                    return None;
                }
                debug_assert!(!node.is_closed(), "a closed node got cheaper");
                *node = way;
                id
            }
            Err(_) if self.nodes.len() >= self.node_limit => {
                self.is_capped = true;
                return None;
            }
            Err(vacancy) => self.nodes.add(vacancy, way),
        };
        Some(id)
    }
}

fn found(cost: PathCost) -> SearchOutcome {
    SearchOutcome::Found(FoundPath {
        steps: cost.steps(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Algorithm, PathQuery, PathSearch};

    #[test]
    fn starts_share_expansions_and_warm_search_keeps_its_memory() {
        let tiles = TileMap::from_fn(200, 200, |x, y| x % 7 == 3 && y % 5 < 3).unwrap();
        let (nav_map, goal) = (NavMap::default(), IVec2::new(100, 103));
        let starts: Vec<IVec2> = (0..240)
            .map(|i| IVec2::new(i % 120 * 37 % 200, i % 120 / 2 * 53 % 199))
            .collect();
        let (mut shared, mut search) = (MultiStartSearch::new(), PathSearch::new());
        let (mut answers, mut waypoints) = (Vec::new(), Vec::new());
        shared.find(&tiles, &nav_map, goal, &starts, None, &mut answers);
        let (expanded, warm_bytes) = (shared.expanded(), shared.heap_bytes());
        let mut expanded_by_single = 0;
        for (&start, &answer) in starts.iter().zip(&answers) {
            let (query, algorithm) = (PathQuery::new(start, goal), Algorithm::JpsBitPrune);
            let single = search.find(&tiles, &nav_map, algorithm, query, &mut waypoints);
            assert_eq!(single, answer);
            expanded_by_single += search.expanded();
        }
        assert!(expanded * 4 < expanded_by_single);
        let first = answers.clone();
        shared.find(&tiles, &nav_map, goal, &starts, None, &mut answers);
        assert_eq!((shared.heap_bytes(), answers), (warm_bytes, first));
    }

    #[test]
    fn cut_off_starts_are_unreachable_before_splits_finish() {
        let (tiles, [left, right, far_left]) =
            crate::search::path_search::tests::comb_with_pending_split();
        let mut shared = MultiStartSearch::new();
        let starts = [right, far_left, right + IVec2::Y];
        let mut nav_map = NavMap::default();
        for _ in 0..2 {
            let mut find = |limit| {
                let mut answers = Vec::new();
                shared.find(&tiles, &nav_map, left, &starts, limit, &mut answers);
                answers
            };
            let answers = find(None);
            assert_eq!([answers[0], answers[2]], [SearchOutcome::Unreachable; 2]);
            assert!(matches!(answers[1], SearchOutcome::Found(_)));
            assert_eq!(find(Some(9)), [SearchOutcome::Capped; 3]);
            nav_map.prepare(&tiles, Algorithm::JpsGraph);
        }
    }

    #[test]
    fn outside_blocked_and_unreachable_ends_are_distinguished() {
        let tiles = TileMap::from_ascii("....@.\n....@.\n....@.\n").unwrap();
        let (nav_map, mut shared) = (NavMap::default(), MultiStartSearch::new());
        let starts = [(-1, 0), (i32::MAX, 2), (4, 1), (5, 1), (0, 0), (2, 0)];
        let starts = starts.map(|(x, y)| IVec2::new(x, y));
        let mut find = |(x, y), node_limit| {
            let mut answers = Vec::new();
            let (goal, limit) = (IVec2::new(x, y), Some(node_limit));
            shared.find(&tiles, &nav_map, goal, &starts, limit, &mut answers);
            let mut lengths = answers.iter().enumerate().map(|(nth, _)| {
                let mut waypoints = vec![IVec2::MAX];
                shared.write_path(nth, &mut waypoints);
                waypoints.len()
            });
            let lengths = [(); 6].map(|()| lengths.next().unwrap());
            (answers, lengths)
        };
        use SearchOutcome::{Blocked, Capped, OutOfBounds, Unreachable};
        let two_steps = found(PathCost::straight(2));
        let known = [OutOfBounds, OutOfBounds, Blocked, Unreachable];
        let on_it = found(PathCost::ZERO);
        let expected = [&known[..], &[on_it, two_steps]].concat();
        assert_eq!(find((0, 0), 1), (expected, [0, 0, 0, 0, 1, 2]));
        let expected = [&known[..], &[on_it, Capped]].concat();
        assert_eq!(find((0, 0), 0), (expected, [0, 0, 0, 0, 1, 0]));
        let expected = [OutOfBounds, OutOfBounds, Blocked, Blocked, Blocked, Blocked];
        assert_eq!(find((4, 0), 9), (expected.to_vec(), [0; 6]));
        assert_eq!(find((0, 3), 9), (vec![OutOfBounds; 6], [0; 6]));
    }
}
