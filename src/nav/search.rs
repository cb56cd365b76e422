//! One search: what is asked, what is answered, and the scratch that a thread keeps between searches.
//!
//! ```text
//! Query ──▶ bounds, blocked, region ──▶ Run (open list, nodes, best way to the goal) ──▶ Outcome + waypoints
//!                                        ▲ astar.rs, jps_bit.rs: which successors a node has
//! ```
//! Every algorithm is best-first search over [`Run`] and differs only in the successors it offers. The goal is kept
//! apart from the nodes, as the cheapest way to it so far; the search ends when nothing that waits can beat it.
//!
//! Movement: eight neighbours; a diagonal step needs both straight neighbours free. Under this rule two tiles are
//! connected exactly if they are connected by straight steps, so an unreachable goal is known from the regions
//! before any search.
//!
//! Invariants: estimates are consistent and nodes leave the open list in the order of f, so a closed node never gets
//! cheaper; waypoints are turning points of a walk whose length is the answer's.

use std::fmt;
use std::str::FromStr;

use glam::IVec2;
use thiserror::Error;

use super::cost::{Cost, Steps, octile};
use super::direction::Direction;
use super::nodes::{NONE, Node, NodeId, Nodes, TileId};
use super::open_list::OpenList;
use super::{astar, jps_bit};
use crate::map::TileMap;

/// No search generates more nodes than this, whatever its query says: about 2.7 GB of scratch.
pub const NODES_MAX: u32 = 1 << 26;

/// How a path is searched. All are exact; they differ in speed and, among equally short paths, in which they find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Textbook A* over single steps, the reference for the others.
    AStar,
    /// Jump Point Search that scans 64 tiles at a time.
    JpsBit,
    /// The same without opening diagonal jump points: what their straight runs find follows the expanded node.
    #[default]
    JpsBitPrune,
}

impl Algorithm {
    /// All algorithms, the simplest first.
    pub const ALL: [Algorithm; 3] = [Algorithm::AStar, Algorithm::JpsBit, Algorithm::JpsBitPrune];

    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::AStar => "astar",
            Algorithm::JpsBit => "jps-bit",
            Algorithm::JpsBitPrune => "jps-bit-prune",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        Self::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
            .ok_or_else(|| UnknownAlgorithm(name.into()))
    }
}

/// A name that no [`Algorithm`] has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown algorithm `{0}`, expected one of `astar`, `jps-bit`, `jps-bit-prune`")]
pub struct UnknownAlgorithm(
    /// The name that was given.
    pub String,
);

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
    /// The search gave up at its node limit: there is a path, and it was not found.
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
/// After a few searches it has grown to what they need and allocates nothing more.
#[derive(Debug, Default)]
pub struct Search {
    nodes: Nodes,
    open: OpenList,
    expanded: u32,
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
    pub fn find(
        &mut self,
        map: &TileMap,
        algorithm: Algorithm,
        query: Query,
        waypoints: &mut Vec<IVec2>,
    ) -> Outcome {
        waypoints.clear();
        self.nodes.reset(map.width(), map.height());
        self.open.clear();
        self.expanded = 0;
        let Query {
            from,
            to,
            node_limit,
        } = query;
        if !is_inside(map, from) || !is_inside(map, to) {
            return Outcome::OutOfBounds;
        }
        let (Some(region_from), Some(region_to)) = (map.region(from), map.region(to)) else {
            return Outcome::Blocked;
        };
        if region_from != region_to {
            return Outcome::Unreachable;
        }
        if from == to {
            waypoints.push(from);
            return Outcome::Found(FoundPath::default());
        }
        let node_limit = node_limit.unwrap_or(NODES_MAX).min(NODES_MAX);
        let mut run = Run::new(self, map, to, node_limit);
        run.reach(NONE, from, Cost::ZERO, None);
        match algorithm {
            Algorithm::AStar => astar::expand_all(&mut run),
            Algorithm::JpsBit => jps_bit::expand_all::<false>(&mut run),
            Algorithm::JpsBitPrune => jps_bit::expand_all::<true>(&mut run),
        }
        match run.end() {
            End::Goal { cost, parent } => {
                let steps = self.write_waypoints(to, parent, waypoints);
                debug_assert_eq!(steps.cost(), cost);
                Outcome::Found(FoundPath { steps })
            }
            End::Capped => Outcome::Capped,
            End::Exhausted => {
                debug_assert!(false, "tiles of one region are connected: {query:?}");
                Outcome::Unreachable
            }
        }
    }

    /// How many nodes the last search expanded.
    pub fn expanded(&self) -> u32 {
        self.expanded
    }

    /// How many nodes the last search generated, the start included, the goal not.
    pub fn generated(&self) -> u32 {
        self.nodes.len()
    }

    /// The tiles the last search put on its open list, in that order, and whether it expanded them.
    pub fn touched(&self) -> impl Iterator<Item = (IVec2, bool)> + '_ {
        self.nodes
            .as_slice()
            .iter()
            .map(|node| (node.tile.tile(), node.place == NONE))
    }

    /// Bytes this scratch holds.
    pub fn memory_bytes(&self) -> usize {
        self.nodes.memory_bytes() + self.open.memory_bytes()
    }

    /// Walks back from the goal and writes the turning points in the order of walking. Returns the steps walked.
    ///
    /// A node lies straight or diagonally ahead of its parent, or first diagonally and then straight: the bend is
    /// put back in, and points at which the walk does not turn are left out.
    fn write_waypoints(&self, goal: IVec2, parent: NodeId, waypoints: &mut Vec<IVec2>) -> Steps {
        let mut steps = Steps::default();
        let mut tile = goal;
        let mut next = parent;
        waypoints.push(goal);
        while let Some(node) = self.nodes.as_slice().get(next as usize) {
            let parent = node.tile.tile();
            let way = tile - parent;
            let diagonal = way.x.abs().min(way.y.abs());
            let bend = parent + way.signum() * diagonal;
            push_turn(waypoints, bend);
            push_turn(waypoints, parent);
            steps.diagonal += diagonal as u32;
            steps.straight += way.x.abs().abs_diff(way.y.abs());
            (tile, next) = (parent, node.parent);
        }
        waypoints.reverse();
        steps
    }
}

/// Appends a point, which replaces the last one when the walk goes straight on through that, or stands on it.
fn push_turn(waypoints: &mut Vec<IVec2>, point: IVec2) {
    match waypoints[..] {
        [.., last] if last == point => {}
        [.., before, last] if (last - before).signum() == (point - last).signum() => {
            waypoints.pop();
            waypoints.push(point);
        }
        _ => waypoints.push(point),
    }
}

fn is_inside(map: &TileMap, tile: IVec2) -> bool {
    tile.x >= 0 && tile.y >= 0 && (tile.x as u32) < map.width() && (tile.y as u32) < map.height()
}

/// How a run ended.
enum End {
    Goal { cost: Cost, parent: NodeId },
    Exhausted,
    Capped,
}

/// A node that was taken off the open list to be expanded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Current {
    pub(super) node: NodeId,
    pub(super) tile: IVec2,
    pub(super) g: Cost,
    pub(super) direction: Option<Direction>,
}

/// A search under way: what an algorithm uses to take nodes and to offer their successors.
pub(super) struct Run<'a> {
    pub(super) map: &'a TileMap,
    pub(super) goal: IVec2,
    nodes: &'a mut Nodes,
    open: &'a mut OpenList,
    expanded: &'a mut u32,
    node_limit: u32,
    is_capped: bool,
    /// The f of the node being expanded: no path is shorter.
    least_f: Cost,
    /// The cost of the best way to the goal so far, and the node it comes from.
    goal_cost: Cost,
    goal_parent: NodeId,
}

impl<'a> Run<'a> {
    fn new(search: &'a mut Search, map: &'a TileMap, goal: IVec2, node_limit: u32) -> Self {
        let Search {
            nodes,
            open,
            expanded,
        } = search;
        Self {
            map,
            goal,
            nodes,
            open,
            expanded,
            node_limit,
            is_capped: false,
            least_f: Cost::ZERO,
            goal_cost: Cost::MAX,
            goal_parent: NONE,
        }
    }

    /// Takes the next node to expand; `None` when the search is over.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Current> {
        if self.is_capped || self.open.least_f()? >= self.goal_cost {
            return None;
        }
        let (id, f) = self.open.pop(self.nodes.as_mut_slice())?;
        debug_assert!(f >= self.least_f);
        self.least_f = f;
        *self.expanded += 1;
        let Node {
            g, tile, direction, ..
        } = self.nodes.as_slice()[id as usize];
        Some(Current {
            node: id,
            tile: tile.tile(),
            g,
            direction,
        })
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
        let f = g + octile(tile, self.goal);
        if f >= self.goal_cost {
            return;
        }
        match self.nodes.find(TileId::new(tile)) {
            Ok(id) => {
                let node = &mut self.nodes.as_mut_slice()[id as usize];
                if g < node.g {
                    debug_assert!(node.place != NONE, "a closed node got cheaper");
                    (node.g, node.parent, node.direction) = (g, parent, direction);
                    self.open.decrease(self.nodes.as_mut_slice(), id, f);
                }
            }
            Err(_) if self.nodes.len() >= self.node_limit => self.is_capped = true,
            Err(vacancy) => {
                let node = Node {
                    g,
                    tile: TileId::new(tile),
                    parent,
                    place: NONE,
                    direction,
                };
                let id = self.nodes.add(vacancy, node);
                self.open.push(self.nodes.as_mut_slice(), id, f);
            }
        }
    }

    /// Offers a way of cost `g` from a node to the goal.
    #[inline]
    pub(super) fn reach_goal(&mut self, parent: NodeId, g: Cost) {
        if g < self.goal_cost {
            (self.goal_cost, self.goal_parent) = (g, parent);
        }
    }

    /// Whether the best way to the goal is known to be a shortest path, so that more successors are of no use.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        self.goal_cost <= self.least_f
    }

    /// A way to the goal counts as an answer only where nothing that was given up could have beaten it.
    fn end(&self) -> End {
        if self.is_capped && !self.is_settled() {
            End::Capped
        } else if self.goal_cost < Cost::MAX {
            End::Goal {
                cost: self.goal_cost,
                parent: self.goal_parent,
            }
        } else {
            End::Exhausted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(map: &str, query: Query) -> Vec<(Outcome, Vec<IVec2>)> {
        let map = TileMap::from_ascii(map).unwrap();
        let mut search = Search::new();
        let mut answer = |algorithm| {
            let mut waypoints = vec![IVec2::MAX];
            (
                search.find(&map, algorithm, query, &mut waypoints),
                waypoints,
            )
        };
        Algorithm::ALL.into_iter().map(&mut answer).collect()
    }

    const WALLED: &str = "....@.\n....@.\n....@.\n";

    #[test]
    fn ends_outside_blocked_or_apart_are_told_from_each_other() {
        let free = IVec2::ZERO;
        let cases = [
            (IVec2::new(-1, 0), Outcome::OutOfBounds),
            (IVec2::new(6, 0), Outcome::OutOfBounds),
            (IVec2::new(0, i32::MAX), Outcome::OutOfBounds),
            (IVec2::MIN, Outcome::OutOfBounds),
            (IVec2::new(4, 1), Outcome::Blocked),
            (IVec2::new(5, 1), Outcome::Unreachable),
        ];
        for (tile, expected) in cases {
            for query in [Query::new(free, tile), Query::new(tile, free)] {
                for (outcome, waypoints) in find(WALLED, query) {
                    assert_eq!(outcome, expected, "{query:?}");
                    assert!(waypoints.is_empty());
                }
            }
        }
    }

    #[test]
    fn start_and_goal_the_same_is_one_waypoint_of_length_zero() {
        for (outcome, waypoints) in find(
            WALLED,
            Query::new(IVec2::ONE, IVec2::ONE).with_node_limit(0),
        ) {
            assert_eq!(outcome, Outcome::Found(FoundPath::default()));
            assert_eq!(waypoints, [IVec2::ONE]);
        }
    }

    #[test]
    fn a_path_is_its_turning_points_and_its_step_counts() {
        for (outcome, waypoints) in find(
            "......\n.@@@@.\n......\n",
            Query::new(IVec2::new(0, 1), IVec2::new(5, 1)),
        ) {
            let Outcome::Found(path) = outcome else {
                panic!("{outcome:?}")
            };
            assert_eq!(
                path.steps,
                Steps {
                    straight: 7,
                    diagonal: 0
                }
            );
            assert_eq!(path.length_tiles(), 7.0);
            assert_eq!(
                (waypoints.len(), waypoints[0], waypoints[3]),
                (4, IVec2::new(0, 1), IVec2::new(5, 1))
            );
        }
    }

    #[test]
    fn a_search_at_its_limit_says_so_and_not_that_there_is_no_path() {
        let query = Query::new(IVec2::new(0, 1), IVec2::new(5, 1));
        for node_limit in [0, 1] {
            for (outcome, waypoints) in find(
                "......\n.@@@@.\n......\n",
                query.with_node_limit(node_limit),
            ) {
                assert_eq!(outcome, Outcome::Capped);
                assert!(waypoints.is_empty());
            }
        }
    }

    #[test]
    fn a_way_to_the_goal_found_before_the_limit_counts_only_when_nothing_can_beat_it() {
        let map = TileMap::new(9, 9, false).unwrap();
        let (start, goal) = (IVec2::ZERO, IVec2::new(8, 0));
        for (steps, is_answer) in [(8, true), (10, false)] {
            let mut search = Search::new();
            search.nodes.reset(9, 9);
            let mut run = Run::new(&mut search, &map, goal, 1);
            run.reach(NONE, start, Cost::ZERO, None);
            let current = run.next().unwrap();
            run.reach_goal(current.node, Cost::straight(steps));
            run.reach(
                current.node,
                IVec2::X,
                Cost::STRAIGHT,
                Some(Direction::East),
            );
            assert!(run.next().is_none());
            assert_eq!(matches!(run.end(), End::Goal { .. }), is_answer);
            assert_eq!(matches!(run.end(), End::Capped), !is_answer);
        }
    }

    #[test]
    fn pruning_opens_fewer_nodes_and_a_warm_search_keeps_its_memory() {
        let map = TileMap::from_fn(200, 200, |x, y| x % 7 == 3 && y % 5 < 3).unwrap();
        let query = Query::new(IVec2::new(0, 5), IVec2::new(199, 188));
        let mut search = Search::new();
        let mut waypoints = Vec::new();
        let mut expanded = Vec::new();
        for algorithm in Algorithm::ALL {
            search.find(&map, algorithm, query, &mut waypoints);
            expanded.push(search.expanded());
            assert_eq!(
                search
                    .touched()
                    .filter(|&(_, is_expanded)| is_expanded)
                    .count() as u32,
                search.expanded()
            );
            assert_eq!(search.touched().count() as u32, search.generated());
        }
        assert!(
            expanded[0] > expanded[1] && expanded[1] > expanded[2],
            "{expanded:?}"
        );
        let warm_bytes = search.memory_bytes();
        for algorithm in Algorithm::ALL {
            search.find(&map, algorithm, query, &mut waypoints);
        }
        assert_eq!(search.memory_bytes(), warm_bytes);
    }

    #[test]
    fn names_are_read_back() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }
        let error = "dijkstra".parse::<Algorithm>().unwrap_err();
        for algorithm in Algorithm::ALL {
            assert!(error.to_string().contains(algorithm.name()));
        }
    }
}
