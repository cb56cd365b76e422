//! What is asked and what is answered, and the answers that need no search.
//!
//! Two tiles are connected exactly if they are connected by straight steps, under both movement rules, so an unreachable
//! goal is known from the regions before any search; while the tiles are not settled after a cut, it may take a search of
//! all that can be reached.

use glam::IVec2;

use super::nodes::NONE;
use crate::cost::{PathCost, Steps};
use crate::map::TileMap;

/// No search generates more nodes than this, whatever its query says: about 2 GB of scratch.
pub const NODES_MAX: u32 = 1 << 26;

const _: () = assert!(NODES_MAX < NONE);

/// A question for a path between two tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathQuery {
    /// The tile where the walk starts.
    pub from: IVec2,
    /// The tile where it ends.
    pub to: IVec2,
    /// How many nodes may be generated, the start included, before the search gives up; `None` for [`NODES_MAX`].
    pub node_limit: Option<u32>,
}

impl PathQuery {
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

/// The answer to a [`PathQuery`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SearchOutcome {
    /// A shortest path; its turning points are in the list given to [`PathSearch::find`](crate::PathSearch::find).
    Found(FoundPath),
    /// Start and goal are free, and no walk joins them.
    Unreachable,
    /// The start or the goal is blocked.
    Blocked,
    /// The start or the goal lies outside the map.
    OutOfBounds,
    /// The search gave up at its node limit: there is a path, if the tiles are [settled](TileMap::has_final_regions), and it was
    /// not found. [`PathSearch::write_partial`](crate::PathSearch::write_partial) gives the
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
    pub const fn cost(&self) -> PathCost {
        self.steps.cost()
    }

    /// The length in tiles.
    pub fn length_tiles(&self) -> f64 {
        self.steps.length_tiles()
    }
}

/// What is known without a search.
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
