//! Queries and results, and the results that need no search.
//!
//! Two tiles are connected exactly if straight steps connect them, under both movement rules, so the regions show an
//! unreachable goal before any search. While the regions are not final after a split, it may take a search of
//! all reachable tiles.

use glam::IVec2;

use super::nodes::NONE;
use crate::cost::{PathCost, Steps};
use crate::map::TileMap;

/// The maximum number of nodes of any search, whatever its query allows: about 2 GB of scratch.
pub const NODES_MAX: u32 = 1 << 26;

const _: () = assert!(NODES_MAX < NONE);

/// A query for a path between two tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathQuery {
    /// The start of the path.
    pub from: IVec2,
    /// The end of the path.
    pub to: IVec2,
    /// The number of nodes, the start included, after which the search stops; `None` for [`NODES_MAX`].
    pub node_limit: Option<u32>,
}

impl PathQuery {
    /// A query without a limit.
    pub const fn new(from: IVec2, to: IVec2) -> Self {
        Self {
            from,
            to,
            node_limit: None,
        }
    }

    /// The same query, limited to `nodes` generated nodes.
    pub const fn with_node_limit(self, nodes: u32) -> Self {
        Self {
            node_limit: Some(nodes),
            ..self
        }
    }
}

/// The result of a [`PathQuery`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SearchOutcome {
    /// A shortest path; its turning points are in the list given to [`PathSearch::find`](crate::PathSearch::find).
    Found(FoundPath),
    /// Start and goal are free, and there is no path.
    Unreachable,
    /// The start or the goal is blocked.
    Blocked,
    /// The start or the goal is outside the map.
    OutOfBounds,
    /// The search reached its node limit: there is a path, if the [regions are final](TileMap::has_final_regions), but it was
    /// not found. [`PathSearch::write_partial`](crate::PathSearch::write_partial) writes the
    /// path to the reached tile that is nearest to the goal.
    Capped,
}

/// The length of a shortest path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FoundPath {
    /// The numbers of straight and diagonal steps of the path.
    pub steps: Steps,
}

impl FoundPath {
    /// The exact cost, to compare paths by.
    pub const fn cost(&self) -> PathCost {
        self.steps.cost()
    }

    /// The length in tiles.
    pub fn length_tiles(&self) -> f64 {
        self.steps.length_tiles()
    }
}

/// The result, if it is known without a search.
pub(super) fn trivial_outcome(tiles: &TileMap, from: IVec2, to: IVec2) -> Option<SearchOutcome> {
    if !is_inside(tiles, from) || !is_inside(tiles, to) {
        Some(SearchOutcome::OutOfBounds)
    } else if !tiles.is_free(from) || !tiles.is_free(to) {
        Some(SearchOutcome::Blocked)
    } else if !tiles.are_connected(from, to) {
        Some(SearchOutcome::Unreachable)
    } else {
        (from == to).then(|| SearchOutcome::Found(FoundPath::default()))
    }
}

fn is_inside(map: &TileMap, tile: IVec2) -> bool {
    tile.x >= 0 && tile.y >= 0 && (tile.x as u32) < map.width() && (tile.y as u32) < map.height()
}
