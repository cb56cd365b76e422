//! Saves, hand-offs, log-outs and logins are written one after the other. None waits for the end of a long queue of others.

use throng_cluster::{
    ClusterNode, ClusterReply, ClusterRequest, ClusterRows, NodeOutput, NodeRun, NodeSettings,
};
use throng_core::ids::PlayerId;

/// The time of a write, in milliseconds.
const STEP_MS: u64 = 10;

/// A node on a store whose replies take 10 ms.
struct SlowStore {
    rows: ClusterRows,
    node: ClusterNode,
    other: NodeRun,
    now_ms: u64,
}

impl SlowStore {
    /// A node with this number of players.
    fn new(players: u64, settings: NodeSettings) -> Self {
        let mut rows = ClusterRows::default();
        let [run, other] = ["n1", "n2"].map(|name| {
            let name = name.to_owned();
            match rows.execute(ClusterRequest::StartRun { name }, 0) {
                ClusterReply::Started(run) => run,
                other => panic!("{other:?}"),
            }
        });
        let mut node = ClusterNode::new(run, settings, Vec::new());
        (0..players).for_each(|player| node.log_in(PlayerId(player)));
        let mut this = Self {
            rows,
            node,
            other,
            now_ms: 0,
        };
        this.play(players * 2 * STEP_MS + 1_000);
        assert_eq!(this.node.live_players(this.now_ms).count() as u64, players);
        this
    }

    fn play(&mut self, time_ms: u64) {
        for _ in 0..time_ms / STEP_MS {
            self.now_ms += STEP_MS;
            // The other node is alive, and adopts nobody.
            let (run, load) = (self.other, 0);
            self.execute(ClusterRequest::Heartbeat { run, load });
            for output in self.node.poll(self.now_ms) {
                if let NodeOutput::Store(id, request) = output {
                    let reply = self.execute(request);
                    self.node.on_reply(self.now_ms, id, reply);
                }
            }
        }
    }

    fn execute(&mut self, request: ClusterRequest) -> ClusterReply {
        self.rows.execute(request, self.now_ms)
    }

    /// Changes the state of all live players.
    fn change_all(&mut self, state: u8) {
        let now_ms = self.now_ms;
        let players: Vec<PlayerId> = self.node.live_players(now_ms).collect();
        for player in players {
            *self.node.edit(player, now_ms).unwrap() = vec![state];
        }
    }

    /// The number of players whose saved state is this one.
    fn saved(&self, state: u8) -> usize {
        let records = self.rows.records();
        records
            .filter(|(_, record)| record.bytes == [state])
            .count()
    }
}

fn settings() -> NodeSettings {
    NodeSettings {
        save_interval_ms: 500,
        saved_players_max: 16,
        ..NodeSettings::default()
    }
}

#[test]
fn log_outs_and_logins_do_not_delay_saves() {
    let mut store = SlowStore::new(200, settings());
    store.change_all(1);
    // They take 3 s: half of the players log out, and as many others log in.
    (0..100).for_each(|player| assert!(store.node.log_out(PlayerId(player))));
    (1_000..1_200).for_each(|player| store.node.log_in(PlayerId(player)));
    store.play(500 + 2 * 200 / 16 * STEP_MS + 100);
    assert_eq!(store.saved(1), 200);
    assert!(store.node.stats().released < 100);
    store.play(5_000);
    assert_eq!(store.node.stats().released, 100);
    assert_eq!(store.node.live_players(store.now_ms).count(), 300);
}

#[test]
fn players_that_change_all_the_time_are_all_saved() {
    let mut store = SlowStore::new(200, settings());
    for state in 1..100 {
        store.change_all(state);
        store.play(STEP_MS);
    }
    // A round of saves takes 130 ms.
    assert_eq!(store.saved(0), 0);
    let records = store.rows.records();
    assert!(records.into_iter().all(|(_, record)| record.revision > 0));
}

#[test]
fn players_that_nobody_adopts_do_not_delay_log_outs() {
    let mut store = SlowStore::new(200, settings());
    let now_ms = store.now_ms;
    for player in 0..150 {
        assert!(store.node.begin_move(PlayerId(player), store.other, now_ms));
    }
    // From now on they are taken back again and again, in vain.
    store.play(1_500);
    assert_eq!(store.node.stats().handed_off, 150);
    (150..160).for_each(|player| assert!(store.node.log_out(PlayerId(player))));
    store.play(2 * 10 * STEP_MS + 50);
    assert_eq!(store.node.stats().released, 10);
}
