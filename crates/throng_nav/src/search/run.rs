//! A running search: the loop of all algorithms. They differ only in the successors that they offer.
//!
//! The goal is stored separately from the nodes, as the cheapest path to it so far; the search ends when no open node can
//! improve it.
//!
//! Invariants: estimates, by octile distance and by landmarks, are consistent and nodes leave the open list in the order of f,
//! so a closed node never gets cheaper.

use glam::IVec2;

use super::nodes::{NONE, Node, NodeId, Nodes};
use super::open_list::OpenList;
use crate::cost::{PathCost, octile};
use crate::direction::Direction;
use crate::key::Key;
use crate::map::TileMap;
use crate::prepared::LandmarkDistances;

/// How a run ended.
pub(super) enum SearchEnd {
    Goal { cost: PathCost, parent: NodeId },
    Exhausted,
    Capped,
}

/// A node that was taken off the open list to be expanded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Current {
    pub(super) node: NodeId,
    pub(super) key: Key,
    pub(super) g: PathCost,
    pub(super) direction: Option<Direction>,
}

/// The progress of a search, apart from its nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct SearchProgress {
    is_capped: bool,
    /// The f of the node being expanded: no path is shorter.
    least_f: PathCost,
    /// The cost of the best path to the goal so far, and the node before the goal.
    goal_cost: PathCost,
    goal_parent: NodeId,
    /// The distances of the goal from the landmarks, if they are used.
    pub(super) goal_distances: Option<LandmarkDistances>,
}

impl Default for SearchProgress {
    fn default() -> Self {
        Self {
            is_capped: false,
            least_f: PathCost::ZERO,
            goal_cost: PathCost::MAX,
            goal_parent: NONE,
            goal_distances: None,
        }
    }
}

impl SearchProgress {
    /// A path to the goal counts as a result only if no node dropped at the limit could have improved it.
    pub(super) fn end(&self) -> SearchEnd {
        let is_settled = self.goal_cost <= self.least_f;
        if self.is_capped && !is_settled {
            SearchEnd::Capped
        } else if self.goal_cost < PathCost::MAX {
            SearchEnd::Goal {
                cost: self.goal_cost,
                parent: self.goal_parent,
            }
        } else {
            SearchEnd::Exhausted
        }
    }
}

/// A running search: an algorithm uses it to take nodes and to offer their successors.
pub(super) struct SearchRun<'a> {
    pub(super) map: &'a TileMap,
    pub(super) goal: IVec2,
    pub(super) nodes: &'a mut Nodes,
    pub(super) open: &'a mut OpenList,
    pub(super) expanded: &'a mut u32,
    pub(super) progress: SearchProgress,
    /// Whether the data was loaded from a file; then estimates may be wrong, and nothing can be asserted about them.
    pub(super) is_loaded: bool,
    /// The maximum number of generated nodes.
    pub(super) node_limit: u32,
    /// The number of expanded nodes at which the run pauses.
    pub(super) pause_at: u32,
}

impl SearchRun<'_> {
    /// Whether no open node can be part of the result.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        let SearchProgress {
            is_capped,
            goal_cost,
            ..
        } = self.progress;
        is_capped || self.open.least_f().is_none_or(|f| f >= goal_cost)
    }

    /// Takes the next node to expand; `None` when the search is over or has to pause.
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
            debug_assert!(f >= self.progress.least_f || self.is_loaded);
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

    /// The key at the head of the open list and its direction of arrival: usually the next node to be expanded.
    #[inline]
    pub(super) fn head(&mut self) -> Option<(Key, Direction)> {
        let node = self.nodes.get_mut(self.open.head()?);
        Some((node.key, node.direction()?))
    }

    /// Offers a path of cost `g` from a node to a tile that is not the goal.
    #[inline]
    pub(super) fn relax(
        &mut self,
        parent: NodeId,
        tile: IVec2,
        g: PathCost,
        direction: Option<Direction>,
    ) {
        let key = Key::of_tile(tile);
        self.relax_key(parent, key, tile, g, direction, || PathCost::ZERO);
    }

    /// The same for a tile with a key of its own and an additional lower bound of the remaining cost:
    /// `bound` is called only if the path is stored.
    #[inline]
    pub(super) fn relax_key(
        &mut self,
        parent: NodeId,
        key: Key,
        tile: IVec2,
        g: PathCost,
        direction: Option<Direction>,
        bound: impl FnOnce() -> PathCost,
    ) {
        let octile = octile(tile, self.goal);
        if g + octile >= self.progress.goal_cost {
            return;
        }
        match self.nodes.find(key) {
            Ok(id) => {
                let node = self.nodes.get_mut(id);
                // Wrong estimates must not make a search run forever.
                if g < node.g && !node.is_closed() {
                    *node = Node::new(key, g, parent, direction);
                    self.open.push(id, g + octile.max(bound()));
                } else {
                    debug_assert!(g >= node.g || self.is_loaded, "a closed node got cheaper");
                }
            }
            Err(_) if self.nodes.len() >= self.node_limit => self.progress.is_capped = true,
            Err(vacancy) => {
                let id = self
                    .nodes
                    .add(vacancy, Node::new(key, g, parent, direction));
                self.open.push(id, g + octile.max(bound()));
            }
        }
    }

    /// Offers a path of cost `g` from a node to the goal.
    #[inline]
    pub(super) fn relax_goal(&mut self, parent: NodeId, g: PathCost) {
        if g < self.progress.goal_cost {
            (self.progress.goal_cost, self.progress.goal_parent) = (g, parent);
        }
    }
}
