//! The choice of the node for a scene. All nodes compute it from the same rows, so usually exactly one claims a scene. If two do, the epoch
//! decides.

use std::collections::BTreeMap;

use crate::ids::{ClusterNodeId, NodeRun};
use crate::request::{NodeEntry, SceneTable};

/// A node that may get scenes.
#[derive(Clone, Copy, Debug)]
struct SceneCandidate<'t> {
    entry: &'t NodeEntry,
    /// The load that it reports, and that of its scenes.
    load: u64,
}

/// The nodes that may get scenes: alive, and not draining.
#[derive(Clone, Debug)]
pub(super) struct Placement<'t> {
    table: &'t SceneTable,
    scene_load: u64,
    candidates: BTreeMap<ClusterNodeId, SceneCandidate<'t>>,
}

impl<'t> Placement<'t> {
    /// `scene_load` is the load that a scene adds to its node. O(nodes + scenes · log(nodes)).
    pub fn new(table: &'t SceneTable, scene_load: u32) -> Self {
        let nodes = table.nodes.iter().filter(|entry| entry.is_available());
        let candidates = nodes.map(|entry| {
            let load = u64::from(entry.load);
            (entry.run.node, SceneCandidate { entry, load })
        });
        let mut placement = Self {
            table,
            scene_load: scene_load.into(),
            candidates: candidates.collect(),
        };
        for owner in table.scenes.iter().filter_map(|scene| scene.owner) {
            placement.add_scene(owner);
        }
        placement
    }

    fn add_scene(&mut self, owner: NodeRun) {
        let candidate = self.candidates.get_mut(&owner.node);
        if let Some(candidate) = candidate.filter(|candidate| candidate.entry.run == owner) {
            candidate.load += self.scene_load;
        }
    }

    /// The node for a scene: the node that it is pinned to, if that is available; otherwise the steady node with the least load and, among
    /// equal ones, the lowest id. Without a steady node, any. `None`: no node may get scenes. O(nodes).
    pub fn target(&self, pinned_to: Option<&str>) -> Option<NodeRun> {
        let pinned = pinned_to.and_then(|name| self.available(name));
        pinned.or_else(|| {
            let candidates = self.candidates.values();
            // A node that has just started would open the scenes of a dead node later than those that run.
            let least = candidates.min_by_key(|it| (!it.entry.is_steady, it.load));
            least.map(|candidate| candidate.entry.run)
        })
    }

    /// The number of scenes that a node should give to nodes with less load: as many as make it equal with the steady node with the least. A scene
    /// counts as the average of its node. 0 unless it has the most load of all nodes, and keeps a scene. O(nodes + scenes).
    pub fn surplus(&self, run: NodeRun) -> usize {
        let own = self.candidates.get(&run.node);
        let Some(own) = own.filter(|own| own.entry.run == run && own.load > 0) else {
            return 0;
        };
        let owners = self.table.scenes.iter().map(|scene| scene.owner);
        let scenes = owners.filter(|owner| *owner == Some(run)).count();
        let others = self.candidates.iter().filter(|(id, _)| **id != run.node);
        let steady = others.clone().filter(|(_, other)| other.entry.is_steady);
        let least = steady.map(|(_, other)| other.load).min();
        let is_most = others
            .into_iter()
            .all(|(id, other)| other.load < own.load || (other.load == own.load && *id > run.node));
        let more = own.load.saturating_sub(least.unwrap_or(own.load));
        let surplus = more.saturating_mul(scenes as u64) / (2 * own.load);
        if is_most { surplus as usize } else { 0 }
    }

    /// The run of a node that may get scenes, by its name. O(nodes).
    pub fn available(&self, name: &str) -> Option<NodeRun> {
        let mut candidates = self.candidates.values();
        let found = candidates.find(|candidate| candidate.entry.name == name);
        found.map(|candidate| candidate.entry.run)
    }

    /// The scenes without a living owner, in the order of their names: each with its epoch and the node for it. O(free scenes · nodes).
    pub fn place_free_scenes(mut self) -> Vec<(&'t str, u64, NodeRun)> {
        let mut placed = Vec::new();
        for scene in &self.table.scenes {
            let owner = scene.owner.and_then(|owner| self.table.alive_node(owner));
            if owner.is_some() {
                continue;
            }
            let Some(target) = self.target(scene.pinned_to.as_deref()) else {
                break;
            };
            self.add_scene(target);
            placed.push((scene.name.as_str(), scene.epoch, target));
        }
        placed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::SceneEntry;

    /// A node, with its id, its load, and whether it is alive and drains.
    fn node(id: u32, load: u32, is_alive: bool, is_draining: bool) -> NodeEntry {
        NodeEntry {
            name: format!("n{id}"),
            run: run(id),
            is_alive,
            is_steady: is_alive,
            load,
            is_draining,
        }
    }

    const fn run(id: u32) -> NodeRun {
        let node = ClusterNodeId(id);
        NodeRun { node, run: 1 }
    }

    fn scene(name: &str, pinned_to: Option<u32>, owner: Option<u32>) -> SceneEntry {
        SceneEntry {
            name: name.to_owned(),
            specification: Vec::new(),
            pinned_to: pinned_to.map(|id| format!("n{id}")),
            owner: owner.map(run),
            epoch: 3,
        }
    }

    fn placed(table: &SceneTable) -> Vec<(&str, u32)> {
        let placed = Placement::new(table, 100).place_free_scenes();
        let placed = placed.into_iter();
        placed.map(|(name, _, to)| (name, to.node.0)).collect()
    }

    #[test]
    fn free_scenes_go_to_the_least_loaded_node() {
        let nodes = vec![
            node(0, 150, true, false),
            node(1, 0, true, false),
            node(2, 0, true, true),
            node(3, 0, false, false),
        ];
        // Node 1 begins with 100 and node 0 with 150, so they alternate from "b" on.
        let scenes = vec![
            scene("a", None, Some(1)),
            scene("b", None, None),
            scene("c", None, Some(3)),
            scene("d", None, None),
            scene("e", None, Some(2)),
        ];
        let table = SceneTable { nodes, scenes };
        // "e" still runs on the draining node.
        assert_eq!(placed(&table), [("b", 1), ("c", 0), ("d", 1)]);
    }

    #[test]
    fn only_the_node_with_the_most_load_has_a_surplus() {
        let surplus = |loads: [u32; 3], owners: &[u32]| {
            let nodes = (0..3).map(|id| node(id, loads[id as usize], true, false));
            let nodes = nodes.collect();
            let scenes = owners.iter().map(|owner| scene("s", None, Some(*owner)));
            let scenes = scenes.collect();
            let table = SceneTable { nodes, scenes };
            let placement = Placement::new(&table, 100);
            [0, 1, 2].map(|id| placement.surplus(run(id)))
        };
        for (loads, owners, expected) in [
            ([0; 3], &[][..], [0, 0, 0]),
            ([900, 0, 0], &[], [0, 0, 0]),
            ([900, 0, 0], &[0], [0, 0, 0]),
            // One of two scenes is half of the load, which would only change sides.
            ([900, 0, 0], &[0, 0, 1, 2], [0, 0, 0]),
            ([0; 3], &[0, 0, 1], [1, 0, 0]),
            ([0; 3], &[0, 0, 1, 2], [0, 0, 0]),
            ([0; 3], &[0, 0, 0, 1, 2], [1, 0, 0]),
            ([0; 3], &[2, 2, 2, 2, 2, 2, 2, 0, 1], [0, 0, 3]),
            // Of equal ones, only that with the lowest id.
            ([0; 3], &[1, 1, 1, 2, 2, 2], [0, 1, 0]),
            // A scene of node 1 counts 150.
            ([100, 200, 300], &[1, 1, 1, 1], [0, 1, 0]),
            ([310, 200, 310], &[1, 1, 1, 1], [0, 0, 0]),
        ] {
            assert_eq!(surplus(loads, owners), expected, "{loads:?} {owners:?}");
        }
    }

    #[test]
    fn node_that_drains_or_has_a_newer_run_has_no_surplus() {
        let scenes = || (0..4).map(|_| scene("s", None, Some(0))).collect();
        let nodes = vec![node(0, 0, true, true), node(1, 0, true, false)];
        let table = SceneTable {
            nodes,
            scenes: scenes(),
        };
        assert_eq!(Placement::new(&table, 100).surplus(run(0)), 0);
        let nodes = vec![node(0, 0, true, false), node(1, 0, true, false)];
        let table = SceneTable {
            nodes,
            scenes: scenes(),
        };
        assert_eq!(Placement::new(&table, 100).surplus(run(0)), 2);
        let newer = NodeRun { run: 2, ..run(0) };
        assert_eq!(Placement::new(&table, 100).surplus(newer), 0);
    }

    #[test]
    fn node_that_has_just_started_gets_no_scene_of_others() {
        let started = |id| NodeEntry {
            is_steady: false,
            ..node(id, 0, true, false)
        };
        let scenes = || vec![scene("a", None, None), scene("b", Some(1), None)];
        let table = SceneTable {
            nodes: vec![node(0, 500, true, false), started(1)],
            scenes: scenes(),
        };
        assert_eq!(placed(&table), [("a", 0), ("b", 1)]);
        let owners = [0; 4].map(|owner| scene("s", None, Some(owner)));
        let loaded = SceneTable {
            scenes: owners.to_vec(),
            ..table
        };
        assert_eq!(Placement::new(&loaded, 100).surplus(run(0)), 0);
        // If all have just started, they share the scenes.
        let nodes = vec![started(0), started(1)];
        let scenes = scenes();
        assert_eq!(placed(&SceneTable { nodes, scenes }), [("a", 0), ("b", 1)]);
    }

    #[test]
    fn lowest_id_gets_a_scene_of_equally_loaded_nodes() {
        let nodes = (0..3).map(|id| node(id, 7, true, false)).collect();
        let scenes = vec![scene("a", None, None)];
        assert_eq!(placed(&SceneTable { nodes, scenes }), [("a", 0)]);
    }

    #[test]
    fn pinned_scene_waits_for_no_dead_or_draining_node() {
        for (is_alive, is_draining, expected) in
            [(true, false, 1), (false, false, 0), (true, true, 0)]
        {
            let nodes = vec![
                node(0, 0, true, false),
                node(1, 1_000, is_alive, is_draining),
            ];
            let scenes = vec![scene("a", Some(1), None), scene("b", Some(9), None)];
            let table = SceneTable { nodes, scenes };
            assert_eq!(placed(&table), [("a", expected), ("b", 0)]);
        }
    }

    #[test]
    fn scenes_stay_free_while_all_nodes_drain() {
        let nodes = vec![node(0, 0, true, true)];
        let scenes = vec![scene("a", Some(0), None)];
        assert_eq!(placed(&SceneTable { nodes, scenes }), []);
    }
}
