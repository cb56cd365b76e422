//! Reports of a node, with a store that this test controls.

use super::*;
use crate::ids::NodeRun;
use crate::node::{NodeSettings, RequestId};
use crate::request::{ClusterReply, RefusedWrite, SceneDeclaration};
use crate::rows::ClusterRows;

/// What happens to the requests of a node.
#[derive(Clone, Copy, Debug)]
enum ReportFate {
    Replied,
    /// The reply to a report never comes.
    Pending,
    /// The outcome of a report is unknown at once.
    Lost,
    /// A report is refused.
    Refused,
}

struct ReportingNode {
    rows: ClusterRows,
    node: ClusterNode,
    now_ms: u64,
    fate: ReportFate,
    /// The reports that it has sent, with their times.
    reports: Vec<(u64, NodeReport)>,
    pending: Vec<RequestId>,
}

impl ReportingNode {
    fn new() -> Self {
        let mut rows = ClusterRows::default();
        let name = "n1".to_owned();
        let ClusterReply::Started(run) = rows.execute(ClusterRequest::StartRun { name }, 0) else {
            panic!("not started");
        };
        Self {
            rows,
            node: ClusterNode::new(run, NodeSettings::default(), Vec::new()),
            now_ms: 0,
            fate: ReportFate::Replied,
            reports: Vec::new(),
            pending: Vec::new(),
        }
    }

    fn run_until(&mut self, end_ms: u64) {
        while self.now_ms < end_ms {
            for output in self.node.poll(self.now_ms) {
                if let NodeOutput::Store(id, request) = output {
                    self.execute(id, request);
                }
            }
            self.now_ms += 10;
        }
    }

    fn execute(&mut self, id: RequestId, request: ClusterRequest) {
        let now_ms = self.now_ms;
        if let ClusterRequest::Report(ReportRequest::Write { report, .. }) = &request {
            self.reports.push((now_ms, report.clone()));
            let refused = ClusterReply::Refused(RefusedWrite::RunEnded);
            match self.fate {
                ReportFate::Replied => {}
                ReportFate::Pending => return self.pending.push(id),
                ReportFate::Lost => return self.node.on_lost_reply(id),
                ReportFate::Refused => {
                    self.node.on_reply(now_ms, id, refused);
                    return;
                }
            }
        }
        let reply = self.rows.execute(request, now_ms);
        self.node.on_reply(now_ms, id, reply);
    }

    fn times_ms(&self) -> Vec<u64> {
        self.reports.iter().map(|(at_ms, _)| *at_ms).collect()
    }
}

#[test]
fn report_is_sent_once_per_second() {
    let mut test = ReportingNode::new();
    test.run_until(3_500);
    // The first heartbeat makes the node valid.
    assert_eq!(test.times_ms(), [10, 1_010, 2_010, 3_010]);
}

#[test]
fn report_is_not_sent_while_one_is_pending() {
    let mut test = ReportingNode::new();
    test.node.settings.report_interval_ms = 100;
    test.fate = ReportFate::Pending;
    test.run_until(400);
    assert_eq!(test.times_ms(), [10]);
    // Its time is over.
    test.run_until(800);
    assert_eq!(test.times_ms(), [10, 460]);
    // The reply to the first one arrives late: the second one is still pending.
    test.node.on_reply(800, test.pending[0], ClusterReply::Done);
    test.run_until(900);
    assert_eq!(test.times_ms(), [10, 460]);
}

#[test]
fn lost_and_refused_reports_do_no_harm() {
    for fate in [ReportFate::Pending, ReportFate::Lost, ReportFate::Refused] {
        let mut test = ReportingNode::new();
        let run: NodeRun = test.node.run();
        test.fate = fate;
        test.run_until(3_500);
        assert_eq!(test.times_ms(), [10, 1_010, 2_010, 3_010], "{fate:?}");
        let stats = test.node.stats();
        assert_eq!((stats.pauses, stats.runs_ended), (0, 0), "{fate:?}");
        assert!(test.node.is_valid(test.now_ms) && test.node.run() == run);
    }
}

#[test]
fn node_that_pauses_sends_no_report_and_then_one_at_once() {
    let mut test = ReportingNode::new();
    test.run_until(500);
    // No request is executed from here on.
    let mut requests = 0;
    for now_ms in (500..3_000).step_by(10) {
        for output in test.node.poll(now_ms) {
            let is_report = |request: &ClusterRequest| matches!(request, ClusterRequest::Report(_));
            match output {
                NodeOutput::Store(_, request) => requests += u32::from(is_report(&request)),
                NodeOutput::Echo(number) => test.node.on_echo(now_ms, number),
                _ => {}
            }
        }
    }
    // The one at 1,010 ms, before the pause.
    assert_eq!(requests, 1);
    test.now_ms = 3_000;
    test.run_until(4_000);
    let [_, (after_ms, _)] = &test.reports[..] else {
        panic!("{:?}", test.reports);
    };
    assert!((3_000..3_500).contains(after_ms), "{after_ms}");
}

#[test]
fn report_has_the_counted_scenes_of_the_node_and_its_gateways() {
    let mut test = ReportingNode::new();
    let scenes = ["cave", "forest", "town"].map(|name| SceneDeclaration {
        name: name.to_owned(),
        ..SceneDeclaration::default()
    });
    test.node.declare_scenes(scenes);
    let counted = [("town", 7), ("cave", 0), ("elsewhere", 9)];
    let counted = counted.map(|(name, players)| (name.to_owned(), players));
    test.node.set_scene_players(counted);
    let gateway = |name: &str, connected, routed| GatewayClients {
        gateway: name.to_owned(),
        connected,
        routed,
    };
    let gateways = [
        gateway("g1", 9, 7),
        gateway("bad\0", 1, 1),
        gateway("g2", 0, 0),
    ];
    test.node.set_gateway_clients(gateways.clone());
    // It settles before it claims scenes.
    test.run_until(3_500);
    let last = test.reports.last().map(|(_, report)| report.clone());
    let [town, cave] = [("town", 7), ("cave", 0)].map(|(scene, players)| ScenePlayers {
        scene: scene.to_owned(),
        players,
    });
    let [one, _, two] = gateways;
    let expected = NodeReport {
        scenes: vec![cave, town],
        gateways: vec![one, two],
    };
    assert_eq!(last, Some(expected));
    let read = test
        .rows
        .execute(ClusterRequest::Report(ReportRequest::Read), test.now_ms);
    let ClusterReply::Reports(table) = read else {
        panic!("{read:?}");
    };
    assert_eq!(table.scene_players(test.node.run(), "town"), Some(7));
}

#[test]
fn report_is_bounded() {
    let mut test = ReportingNode::new();
    let names = |count: usize| (0..count).map(|nth| format!("{nth:05}"));
    let scenes = names(REPORTED_SCENES_MAX + 3).map(|name| SceneDeclaration {
        name,
        ..SceneDeclaration::default()
    });
    test.node.declare_scenes(scenes);
    test.node
        .set_scene_players(names(REPORTED_SCENES_MAX + 3).map(|name| (name, 1)));
    let gateways = names(REPORTED_GATEWAYS_MAX + 3).map(|gateway| GatewayClients {
        gateway,
        ..GatewayClients::default()
    });
    test.node.set_gateway_clients(gateways);
    test.run_until(30_000);
    assert_eq!(test.node.scenes(29_990).count(), REPORTED_SCENES_MAX + 3);
    let (_, last) = test.reports.last().expect("it reports");
    assert_eq!(last.scenes.len(), REPORTED_SCENES_MAX);
    assert_eq!(last.scenes[0].scene, "00000");
    assert_eq!(last.gateways.len(), REPORTED_GATEWAYS_MAX);
}
