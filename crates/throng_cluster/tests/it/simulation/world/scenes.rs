//! The scenes of the simulated cluster: random drains and loads, and the checks.

use rand::RngExt;
use throng_cluster::{
    ClusterNode, ClusterNodeId, ClusterRequest, NodeEntry, NodeRun, SceneDeclaration, SceneRequest,
};

use super::{NODES, SimulatedCluster};

pub const SCENES: usize = 12;

/// The scenes: two are pinned to nodes, one to a node that does not exist, and the others to none.
pub(super) fn declarations() -> impl Iterator<Item = SceneDeclaration> {
    (0..SCENES).map(|nth| SceneDeclaration {
        name: format!("s{nth:02}"),
        specification: vec![nth as u8],
        pinned_to: match nth {
            0 | 5 => Some(format!("n{}", nth % NODES)),
            7 => Some("n9".to_owned()),
            _ => None,
        },
    })
}

/// The owners and epochs of all scenes, as the rows have been after a step.
pub(super) type SceneOwners = Vec<(Option<NodeRun>, u64)>;

impl SimulatedCluster {
    /// Changes loads, and drains nodes: by the node itself, or by an operator.
    pub(super) fn change_nodes(&mut self) {
        let nth = self.rng.random_range(0..NODES);
        let load = self.rng.random_range(0..500);
        if let Some(node) = &mut self.processes[nth].node {
            node.set_load(load);
        }
        if self.happens(self.rates.drain) {
            let is_draining = self.rng.random_bool(0.5);
            match &mut self.processes[nth].node {
                Some(node) if load.is_multiple_of(2) => node.set_draining(is_draining),
                _ => self.set_draining(nth, is_draining),
            }
        }
    }

    fn set_draining(&mut self, nth: usize, is_draining: bool) {
        let name = format!("n{nth}");
        let request = SceneRequest::SetDraining { name, is_draining };
        self.rows
            .execute(ClusterRequest::Scene(request), self.now_ms);
    }

    /// Makes one node drain, and no other.
    pub(super) fn drain_one(&mut self) {
        let drained = self.rng.random_range(0..NODES);
        for nth in 0..NODES {
            self.set_draining(nth, nth == drained);
            if let Some(node) = &mut self.processes[nth].node {
                node.set_draining(nth == drained);
            }
        }
    }

    fn scene_owners(&self) -> SceneOwners {
        let table = self.rows.scene_table(self.now_ms);
        let scenes = table.scenes.iter();
        scenes.map(|scene| (scene.owner, scene.epoch)).collect()
    }

    /// Checks that each scene that a node runs belongs to it by the rows, and that each change of an owner raises the epoch.
    pub(super) fn check_scenes(&mut self) {
        let owners = self.scene_owners();
        let known = self.scene_owners_before.iter().zip(&owners);
        for (nth, (before, now)) in known.enumerate() {
            assert!(
                now == before || now.1 > before.1,
                "seed {}, {} ms: scene {nth} went from {before:?} to {now:?}",
                self.seed,
                self.now_ms
            );
        }
        let table = self.rows.scene_table(self.now_ms);
        for process in &self.processes {
            let Some(node) = &process.node else { continue };
            for scene in node.scenes(process.clock_ms(self.now_ms)) {
                let row = table.scene(&scene.name).unwrap();
                assert!(
                    row.owner == Some(node.run()) && row.epoch == scene.epoch,
                    "seed {}, {} ms: {:?} runs {scene:?}, row {row:?}",
                    self.seed,
                    self.now_ms,
                    node.run()
                );
            }
        }
        self.scene_owners_before = owners;
    }

    /// The node that runs a scene now.
    fn home_of_scene(&self, name: &str) -> Option<ClusterNodeId> {
        let is_home = |node: &ClusterNode, now_ms: u64| {
            let mut scenes = node.scenes(now_ms);
            scenes.any(|scene| scene.name == name)
        };
        let mut processes = self.processes.iter();
        processes.find_map(|process| {
            let node = process.node.as_ref()?;
            is_home(node, process.clock_ms(self.now_ms)).then(|| node.run().node)
        })
    }

    fn all_scenes_have_homes(&self) -> bool {
        let table = self.rows.scene_table(self.now_ms);
        table.scenes.iter().all(|scene| {
            let owner = table.alive_owner(&scene.name);
            owner.is_some_and(|owner| self.home_of_scene(&scene.name) == Some(owner.node))
        })
    }

    /// Checks that each scene runs on a node that does not drain, that pinned scenes run on their node, and that these
    /// do not move afterwards. Others may, because of the load.
    pub(super) fn check_recovery_of_scenes(&mut self) {
        // One may be on its way because of the load.
        let until_ms = self.now_ms + 1_000;
        while self.now_ms < until_ms && !self.all_scenes_have_homes() {
            self.step();
        }
        let table = self.rows.scene_table(self.now_ms);
        assert_eq!(table.scenes.len(), SCENES, "seed {}", self.seed);
        let drains = |entry: &&NodeEntry| entry.is_draining;
        assert!(
            table.nodes.iter().filter(drains).count() < NODES,
            "seed {}",
            self.seed
        );
        let mut at_home = Vec::new();
        for (nth, scene) in table.scenes.iter().enumerate() {
            let home = self.home_of_scene(&scene.name);
            let text = format!("seed {}, {} ms: {scene:?}", self.seed, self.now_ms);
            let owner = table.alive_owner(&scene.name);
            assert!(owner.is_some(), "no owner, {text}");
            assert_eq!(home, owner.map(|owner| owner.node), "{text}");
            let node = owner.and_then(|owner| table.alive_node(owner)).unwrap();
            assert!(!node.is_draining, "on a draining node, {text}");
            let mut nodes = table.nodes.iter();
            let pinned = nodes.find(|node| Some(&node.name) == scene.pinned_to.as_ref());
            if let Some(pinned) = pinned.filter(|pinned| !pinned.is_draining) {
                assert_eq!(node.run, pinned.run, "not where it is pinned to, {text}");
                at_home.push(nth);
            }
        }
        let before = self.scene_owners();
        let until_ms = self.now_ms + 2_000;
        while self.now_ms < until_ms {
            self.step();
        }
        let after = self.scene_owners();
        for nth in at_home {
            assert_eq!(before[nth], after[nth], "seed {}, scene {nth}", self.seed);
        }
    }

    /// Number of changes of owners of all scenes.
    pub fn scene_changes(&self) -> u64 {
        self.scene_owners().iter().map(|(_, epoch)| epoch).sum()
    }
}
