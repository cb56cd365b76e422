//! How often a node repeats requests that have no effect.

use std::collections::BTreeMap;

use crate::ids::NodeRun;
use crate::node::{ClusterNode, NodeOutput, NodeSettings};
use crate::request::{Arrival, ClusterReply, ClusterRequest};
use crate::rows::ClusterRows;
use throng_core::ids::PlayerId;

/// A node that is polled every millisecond, and another one that adopts nobody.
struct PolledNode {
    rows: ClusterRows,
    node: ClusterNode,
    other: NodeRun,
    now_ms: u64,
    is_away: bool,
    /// The requests since `run_until` was called, by kind.
    sent: BTreeMap<String, u64>,
}

impl PolledNode {
    /// The node holds the players 0 to 3.
    fn new() -> Self {
        let mut rows = ClusterRows::default();
        let [own, other] = ["n1", "n2"].map(|name| {
            let name = name.to_owned();
            match rows.execute(ClusterRequest::StartRun { name }, 0) {
                ClusterReply::Started(run) => run,
                reply => panic!("{reply:?}"),
            }
        });
        let mut node = ClusterNode::new(own, NodeSettings::default(), Vec::new());
        (0..4).for_each(|player| node.log_in(PlayerId(player)));
        let mut polled = Self {
            rows,
            node,
            other,
            now_ms: 0,
            is_away: false,
            sent: BTreeMap::new(),
        };
        polled.run_until(500);
        assert_eq!(polled.node.live_players(500).count(), 4);
        polled
    }

    fn run_until(&mut self, end_ms: u64) {
        self.sent.clear();
        while self.now_ms < end_ms {
            let (run, load) = (self.other, 0);
            let heartbeat = ClusterRequest::Heartbeat { run, load };
            self.rows.execute(heartbeat, self.now_ms);
            let mut outputs = self.node.poll(self.now_ms);
            while let Some(output) = outputs.pop() {
                let NodeOutput::Store(id, request) = output else {
                    continue;
                };
                let kind = format!("{request:?}");
                let kind = kind.split([' ', '{', '(']).next().unwrap();
                *self.sent.entry(kind.to_owned()).or_default() += 1;
                let reply = if self.is_away {
                    ClusterReply::Away
                } else {
                    self.rows.execute(request, self.now_ms)
                };
                outputs.extend(self.node.on_reply(self.now_ms, id, reply));
            }
            self.now_ms += 1;
        }
    }

    fn sent(&self, kind: &str) -> u64 {
        self.sent.get(kind).copied().unwrap_or(0)
    }

    fn begin_move(&mut self, player: u64) {
        let (player, to) = (PlayerId(player), self.other);
        assert!(self.node.begin_move(player, to, self.now_ms));
    }
}

#[test]
fn no_request_is_repeated_at_once_while_the_store_is_away() {
    let mut polled = PolledNode::new();
    polled.begin_move(0);
    polled.run_until(1_400);
    polled.is_away = true;
    let (player, epoch) = (PlayerId(9), 1);
    let arrivals = [Arrival { player, epoch }];
    polled.node.on_arrivals(polled.now_ms, &arrivals);
    polled.begin_move(1);
    assert!(polled.node.log_out(PlayerId(2)));
    polled.node.log_in(PlayerId(50));
    polled.run_until(2_400);
    for kind in ["Adopt", "HandOff", "Release", "ReadPlayers", "Scene"] {
        assert!(polled.sent(kind) > 0, "{kind}: {:?}", polled.sent);
    }
    let most = polled.sent.values().max();
    assert!(most.is_some_and(|most| *most <= 21), "{:?}", polled.sent);
}

#[test]
fn move_that_cannot_be_taken_back_delays_no_other_write() {
    let mut polled = PolledNode::new();
    polled.begin_move(0);
    polled.begin_move(1);
    polled.run_until(600);
    assert_eq!(polled.node.stats().handed_off, 2);
    // The other node is alive, but adopts nobody.
    polled.run_until(1_700);
    polled.begin_move(2);
    polled.run_until(4_700);
    assert_eq!(polled.node.stats().handed_off, 3);
    assert_eq!(polled.sent("HandOff"), 1);
    // Three players, once per second.
    let attempts = polled.sent("TakeBack");
    assert!((3..=9).contains(&attempts), "{attempts}");
}
