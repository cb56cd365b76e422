//! Scenes of a few nodes on a store that replies at once.

use super::*;
use crate::node::{NODE_VALID_MS, NodeSettings, RequestId};
use crate::rows::ClusterRows;

struct TestCluster {
    rows: ClusterRows,
    nodes: Vec<Option<ClusterNode>>,
    now_ms: u64,
    /// Replies to these requests are lost.
    loses: fn(&ClusterRequest) -> bool,
    /// The nodes that were told of a free scene. Nothing is delivered.
    hints: Vec<crate::ids::ClusterNodeId>,
}

impl TestCluster {
    fn new() -> Self {
        Self {
            rows: ClusterRows::default(),
            nodes: Vec::new(),
            now_ms: 0,
            loses: |_| false,
            hints: Vec::new(),
        }
    }

    /// Starts the node of this number, or its next process.
    fn start(&mut self, nth: usize) {
        let name = format!("n{nth}");
        let reply = self
            .rows
            .execute(ClusterRequest::StartRun { name }, self.now_ms);
        let ClusterReply::Started(run) = reply else {
            panic!("{reply:?}");
        };
        self.nodes.resize(self.nodes.len().max(nth + 1), None);
        self.nodes[nth] = Some(ClusterNode::new(run, NodeSettings::default(), Vec::new()));
    }

    /// Ends the process of a node in order.
    fn stop(&mut self, nth: usize) {
        let run = self.nodes[nth].take().map(|node| node.run());
        let run = run.expect("it runs");
        self.rows
            .execute(ClusterRequest::EndRun { run }, self.now_ms);
    }

    fn declare(&mut self, nth: usize, scenes: &[(&str, Option<usize>)]) {
        let scenes = scenes.iter().map(|(name, pinned_to)| SceneDeclaration {
            name: (*name).to_owned(),
            specification: Vec::new(),
            pinned_to: pinned_to.map(|nth| format!("n{nth}")),
        });
        let node = self.nodes[nth].as_mut().expect("it runs");
        node.declare_scenes(scenes);
    }

    fn execute(&mut self, nth: usize, id: RequestId, request: ClusterRequest) -> Vec<NodeOutput> {
        let is_lost = (self.loses)(&request);
        let reply = self.rows.execute(request, self.now_ms);
        let Some(node) = self.nodes[nth].as_mut() else {
            return Vec::new();
        };
        if is_lost {
            node.on_lost_reply(id);
            return Vec::new();
        }
        node.on_reply(self.now_ms, id, reply)
    }

    fn run_until(&mut self, end_ms: u64) {
        while self.now_ms < end_ms {
            self.now_ms += 10;
            for nth in 0..self.nodes.len() {
                let node = self.nodes[nth].as_mut();
                let outputs = node.map(|node| node.poll(self.now_ms));
                for output in outputs.into_iter().flatten() {
                    match output {
                        NodeOutput::Store(id, request) => _ = self.execute(nth, id, request),
                        NodeOutput::FreeScene(to) => self.hints.push(to),
                        _ => {}
                    }
                }
            }
        }
    }

    /// The names of the scenes that a node runs.
    fn scenes(&self, nth: usize) -> Vec<&str> {
        let node = self.nodes[nth].as_ref().expect("it runs");
        let scenes = node.scenes(self.now_ms);
        scenes.map(|scene| scene.name.as_str()).collect()
    }
}

#[test]
fn nodes_that_start_together_share_scenes() {
    let mut cluster = TestCluster::new();
    cluster.start(0);
    let all = ["a", "b", "c", "d", "e"].map(|name| (name, None));
    cluster.declare(0, &all);
    cluster.run_until(600);
    cluster.start(1);
    cluster.run_until(900);
    assert_eq!(cluster.scenes(0), [""; 0]);
    cluster.run_until(2_500);
    assert_eq!(cluster.scenes(0), ["a", "c", "e"]);
    assert_eq!(cluster.scenes(1), ["b", "d"]);
    let owner = |nth: usize, name: &str| {
        let node = cluster.nodes[nth].as_ref()?;
        node.scene_owner(name, cluster.now_ms)
    };
    for name in ["a", "b"] {
        assert_eq!(owner(0, name), owner(1, name));
        assert!(owner(0, name).is_some());
    }
    assert_eq!(owner(0, "z"), None);
}

#[test]
fn node_that_comes_back_at_once_claims_without_delay() {
    let mut cluster = TestCluster::new();
    (0..2).for_each(|nth| cluster.start(nth));
    cluster.declare(0, &[("a", None), ("b", None)]);
    cluster.run_until(2_500);
    assert_eq!(cluster.scenes(0), ["a"]);
    // It is the one with the least load, so the other one leaves the scene to it.
    cluster.stop(0);
    cluster.start(0);
    let settings = NodeSettings::default();
    cluster.run_until(2_500 + settings.scene_read_interval_ms);
    assert_eq!(cluster.scenes(0), ["a"]);
    assert_eq!(cluster.scenes(1), ["b"]);
}

#[test]
fn scenes_are_read_at_once_after_a_refused_hand_off() {
    let mut cluster = TestCluster::new();
    (0..2).for_each(|nth| cluster.start(nth));
    let player = throng_core::ids::PlayerId(7);
    let node = cluster.nodes[0].as_mut();
    node.expect("it runs").log_in(player);
    cluster.declare(0, &[("a", Some(1))]);
    cluster.run_until(3_000);
    let dead = cluster.nodes[1].as_ref().expect("it runs").run();
    // Just after a read.
    let owner = |cluster: &TestCluster| {
        let node = cluster.nodes[0].as_ref();
        node.and_then(|node| node.scene_owner("a", cluster.now_ms))
    };
    while cluster.nodes[0].as_ref().map(|node| node.scenes.read_ms) != Some(cluster.now_ms) {
        cluster.run_until(cluster.now_ms + 10);
    }
    cluster.stop(1);
    assert_eq!(owner(&cluster), Some(dead));
    let now_ms = cluster.now_ms;
    let node = cluster.nodes[0].as_mut().expect("it runs");
    assert!(node.begin_move(player, dead, now_ms));
    cluster.run_until(now_ms + 80);
    let own = cluster.nodes[0].as_ref().map(ClusterNode::run);
    assert_eq!(owner(&cluster), own);
}

#[test]
fn node_for_a_free_scene_gets_a_hint_and_reads() {
    let mut cluster = TestCluster::new();
    (0..3).for_each(|nth| cluster.start(nth));
    let busy = cluster.nodes[0].as_mut().expect("it runs");
    busy.set_load(1_000);
    cluster.declare(0, &[("a", Some(2))]);
    cluster.run_until(3_000);
    assert_eq!(cluster.scenes(2), ["a"]);
    // It reads only after a hint.
    let node = cluster.nodes[1].as_mut().expect("it runs");
    node.scenes.next_read_ms = u64::MAX;
    cluster.hints.clear();
    cluster.stop(2);
    let target = cluster.nodes[1].as_ref().expect("it runs").run().node;
    while cluster.hints.is_empty() {
        cluster.run_until(cluster.now_ms + 10);
    }
    assert_eq!(cluster.hints, [target]);
    assert_eq!(cluster.scenes(1), [""; 0]);
    let node = cluster.nodes[1].as_mut().expect("it runs");
    node.on_free_scene();
    cluster.run_until(cluster.now_ms + NodeSettings::default().busy_read_interval_ms);
    assert_eq!(cluster.scenes(1), ["a"]);
    // The other node does not wait for its next regular read to learn of the new owner.
    let node = cluster.nodes[0].as_ref().expect("it runs");
    let owner = node.scene_owner("a", cluster.now_ms);
    assert_eq!(owner.map(|run| run.node), Some(target));
}

#[test]
fn load_decides_who_claims_the_next_scene() {
    let mut cluster = TestCluster::new();
    (0..2).for_each(|nth| cluster.start(nth));
    for (nth, load) in [(0, 1_000), (1, 750)] {
        let node = cluster.nodes[nth].as_mut();
        node.expect("it runs").set_load(load);
    }
    cluster.declare(0, &["a", "b", "c", "d"].map(|name| (name, None)));
    cluster.run_until(2_500);
    // A scene adds 100.
    assert_eq!(cluster.scenes(1), ["a", "b", "c"]);
}

#[test]
fn node_with_too_much_load_gives_up_scenes() {
    let mut cluster = TestCluster::new();
    cluster.start(0);
    let all = [
        ("a", Some(0)),
        ("b", None),
        ("c", None),
        ("d", Some(9)),
        ("e", None),
    ];
    cluster.declare(0, &all);
    cluster.run_until(2_500);
    assert_eq!(cluster.scenes(0).len(), 5);
    cluster.start(1);
    // Each scene counts 100. The first one stays, because its node is there.
    for (end_ms, on_other) in [
        (15_000, &[][..]),
        (16_500, &["b", "c"]),
        (60_000, &["b", "c"]),
    ] {
        cluster.run_until(end_ms);
        assert_eq!(cluster.scenes(1), on_other, "after {end_ms} ms");
    }
    // The load of the game counts, too. One of two scenes is half of it, which would only change sides.
    let node = cluster.nodes[0].as_mut();
    node.expect("it runs").set_load(100_000);
    cluster.run_until(120_000);
    assert_eq!(cluster.scenes(0), ["a", "e"]);
    assert_eq!(cluster.scenes(1), ["b", "c", "d"]);
}

#[test]
fn load_that_is_high_for_a_short_time_moves_no_scene() {
    let mut cluster = TestCluster::new();
    (0..3).for_each(|nth| cluster.start(nth));
    let all = ["a", "b", "c", "d", "e", "f", "g", "h", "i"].map(|name| (name, None));
    cluster.declare(0, &all);
    cluster.run_until(2_500);
    let scenes: Vec<Vec<String>> = (0..3)
        .map(|nth| cluster.scenes(nth).into_iter().map(str::to_owned).collect())
        .collect();
    for step in 0..10 {
        for load in [100_000, 0] {
            let node = cluster.nodes[1].as_mut();
            node.expect("it runs").set_load(load);
            let now_ms = cluster.now_ms;
            cluster.run_until(now_ms + 9_000);
        }
        for (nth, scenes) in scenes.iter().enumerate() {
            assert_eq!(cluster.scenes(nth), *scenes, "step {step}");
        }
    }
}

#[test]
fn node_without_heartbeats_runs_no_scenes() {
    let mut cluster = TestCluster::new();
    cluster.start(0);
    cluster.declare(0, &[("a", None)]);
    cluster.run_until(2_000);
    assert_eq!(cluster.scenes(0), ["a"]);
    // Not polled, like the process of a machine that was suspended.
    cluster.now_ms += NODE_VALID_MS;
    assert_eq!(cluster.scenes(0), [""; 0]);
    let node = cluster.nodes[0].as_ref();
    let owner = node.and_then(|node| node.scene_owner("a", cluster.now_ms));
    assert_eq!(owner, None);
}

#[test]
fn pinned_scene_goes_home_when_its_node_is_back_for_long() {
    let mut cluster = TestCluster::new();
    (0..2).for_each(|nth| cluster.start(nth));
    cluster.declare(0, &[("a", None), ("b", Some(1))]);
    cluster.run_until(2_500);
    assert_eq!(cluster.scenes(1), ["b"]);
    cluster.stop(1);
    cluster.run_until(4_000);
    assert_eq!(cluster.scenes(0), ["a", "b"]);
    // It is back twice, the first time not for long enough.
    cluster.start(1);
    cluster.run_until(8_500);
    cluster.stop(1);
    cluster.start(1);
    cluster.run_until(13_000);
    assert_eq!(cluster.scenes(0), ["a", "b"]);
    cluster.run_until(15_000);
    assert_eq!(cluster.scenes(0), ["a"]);
    assert_eq!(cluster.scenes(1), ["b"]);
}

#[test]
fn drained_node_gives_up_its_scenes_if_another_can_run_them() {
    let mut cluster = TestCluster::new();
    cluster.start(0);
    cluster.declare(0, &[("a", None), ("b", Some(0))]);
    cluster.run_until(1_500);
    let node = cluster.nodes[0].as_mut();
    node.expect("it runs").set_draining(true);
    cluster.run_until(5_000);
    let is_draining = |cluster: &TestCluster| {
        let node = cluster.nodes[0].as_ref();
        node.is_some_and(ClusterNode::is_draining)
    };
    assert!(is_draining(&cluster));
    assert_eq!(cluster.scenes(0), ["a", "b"]);
    cluster.start(1);
    cluster.run_until(7_000);
    assert_eq!(cluster.scenes(0), [""; 0]);
    assert_eq!(cluster.scenes(1), ["a", "b"]);
    // Its pinned scene comes back with the end of the drain, and the other one does not.
    let node = cluster.nodes[0].as_mut();
    node.expect("it runs").set_draining(false);
    cluster.run_until(13_000);
    assert!(!is_draining(&cluster));
    assert_eq!(cluster.scenes(0), ["b"]);
    assert_eq!(cluster.scenes(1), ["a"]);
}

#[test]
fn drain_that_ends_before_the_reply_to_its_start_ends() {
    let mut cluster = TestCluster::new();
    cluster.start(0);
    cluster.run_until(1_500);
    let node = cluster.nodes[0].as_mut();
    node.expect("it runs").set_draining(true);
    let mut is_sent = false;
    while !is_sent {
        cluster.now_ms += 10;
        assert!(cluster.now_ms < 2_500, "no drain was sent");
        let node = cluster.nodes[0].as_mut().expect("it runs");
        for output in node.poll(cluster.now_ms) {
            let NodeOutput::Store(id, request) = output else {
                continue;
            };
            if let ClusterRequest::Scene(SceneRequest::SetDraining { .. }) = request {
                let node = cluster.nodes[0].as_mut();
                node.expect("it runs").set_draining(false);
                is_sent = true;
            }
            cluster.execute(0, id, request);
        }
    }
    cluster.run_until(cluster.now_ms + 2_000);
    let node = cluster.nodes[0].as_ref();
    assert!(!node.expect("it runs").is_draining());
}

#[test]
fn draining_node_claims_no_players_of_others() {
    let mut cluster = TestCluster::new();
    (0..2).for_each(|nth| cluster.start(nth));
    let player = throng_core::ids::PlayerId(7);
    let node = cluster.nodes[1].as_mut();
    node.expect("it runs").log_in(player);
    let node = cluster.nodes[0].as_mut();
    node.expect("it runs").set_draining(true);
    cluster.run_until(1_000);
    cluster.start(2);
    cluster.run_until(2_000);
    let owner = cluster.rows.owner(player).and_then(|(owner, _)| owner);
    assert_eq!(owner.map(|run| run.node.0), Some(1));
    cluster.stop(1);
    cluster.run_until(3_000);
    let owner = cluster.rows.owner(player).and_then(|(owner, _)| owner);
    assert_eq!(owner.map(|run| run.node.0), Some(2));
}

#[test]
fn lost_replies_delay_scenes_and_lose_none() {
    let mut cluster = TestCluster::new();
    cluster.start(0);
    cluster.loses = |request| {
        let ClusterRequest::Scene(request) = request else {
            return false;
        };
        !matches!(request, SceneRequest::Read)
    };
    cluster.declare(0, &[("a", None), ("b", None)]);
    cluster.run_until(2_000);
    assert_eq!(cluster.scenes(0), ["a", "b"]);
    cluster.loses = |_| false;
    cluster.run_until(2_500);
    let node = cluster.nodes[0].as_ref();
    assert!(node.is_some_and(|node| node.scenes.undeclared.is_empty()));
}
