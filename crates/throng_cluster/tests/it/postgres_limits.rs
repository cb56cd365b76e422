//! How many hand-offs and saves a Postgres server executes for nodes that write at the same time. Every player is then where it should be.
//!
//! The server is that of `THRONG_POSTGRES`; without it nothing is tested. The figures, on a machine that is otherwise idle:
//! `THRONG_FIGURES=1 .ci/with_postgres cargo test -p throng_cluster --all-features --test postgres_limits -- --nocapture`

use std::thread;

use throng_cluster::{
    Arrival, ClusterRecord, ClusterReply, ClusterRequest, ClusterSave, ClusterStore, NodeRun,
    PlayerEntry, PostgresRows,
};
use throng_core::clock::Stopwatch;
use throng_core::ids::PlayerId;
use throng_store::testing::{TestSchema, postgres_url};

use crate::servers::rows::{done, opened, started};

/// As of a player of `throng node`.
const RECORD_BYTES: usize = 120;

/// Players of one hand-off, as in `NodeSettings`.
const AT_ONCE: usize = 64;

/// All requests are at this time of the store, so no node is ever late.
const AT_MS: u64 = 1;

/// A node with its own connection and players.
struct WritingNode {
    rows: PostgresRows,
    run: NodeRun,
    /// The run that gets its players, and gives them back.
    other: NodeRun,
    players: Vec<PlayerId>,
    epoch: u64,
    revision: u64,
}

impl WritingNode {
    fn new(mut rows: PostgresRows, nth: u64, players: u64) -> Self {
        let run = started(&mut rows, &format!("n{nth}"), AT_MS);
        let other = started(&mut rows, &format!("m{nth}"), AT_MS);
        let players = (0..players).map(|player| PlayerId(nth << 32 | player));
        let players: Vec<PlayerId> = players.collect();
        for &player in &players {
            let epoch = 0;
            let log_in = ClusterRequest::LogIn { run, player, epoch };
            done(&mut rows, &log_in, AT_MS);
        }
        let mut node = Self {
            rows,
            run,
            other,
            players,
            epoch: 1,
            revision: 0,
        };
        node.adopt(run, &node.players.clone(), 1);
        node
    }

    fn adopt(&mut self, run: NodeRun, players: &[PlayerId], epoch: u64) {
        let arrivals = players.iter().map(|&player| Arrival { player, epoch });
        let arrivals = arrivals.collect();
        let adopt = ClusterRequest::Adopt { run, arrivals };
        let reply = self.rows.execute_at(&adopt, Some(AT_MS)).unwrap();
        let ClusterReply::Adopted(adopted) = reply else {
            panic!("{reply:?}");
        };
        assert_eq!(adopted.len(), players.len());
    }

    fn save(&self, player: PlayerId) -> ClusterSave {
        let bytes = vec![self.revision as u8; RECORD_BYTES];
        ClusterSave {
            player,
            epoch: self.epoch,
            record: ClusterRecord {
                revision: self.revision,
                bytes,
            },
        }
    }

    /// Hands all players to the other run, or back, this many at once: a hand-off and an adoption for each group, as in a game.
    fn hand_off_all(&mut self, at_once: usize) {
        self.revision += 1;
        let (run, to) = (self.run, self.other);
        for group in self.players.clone().chunks(at_once) {
            let players = group.iter().map(|player| self.save(*player));
            let players = players.collect();
            let saves = Vec::new();
            let hand_off = ClusterRequest::HandOff {
                run,
                players,
                to,
                saves,
            };
            done(&mut self.rows, &hand_off, AT_MS);
            self.adopt(to, group, self.epoch + 1);
        }
        self.epoch += 1;
        (self.run, self.other) = (to, run);
    }

    /// Saves all players in one request.
    fn save_all(&mut self) {
        self.revision += 1;
        let saves = self.players.iter().map(|player| self.save(*player));
        let (run, saves) = (self.run, saves.collect());
        let request = ClusterRequest::Save { run, saves };
        done(&mut self.rows, &request, AT_MS);
    }

    fn check(&mut self) {
        let request = ClusterRequest::ReadPlayers {
            players: self.players.clone(),
            with_records: true,
        };
        let reply = self.rows.execute(&request).unwrap();
        let ClusterReply::Players(found) = reply else {
            panic!("{reply:?}");
        };
        let revisions = found.iter().map(|entry| entry.record.as_ref());
        let mut revisions = revisions.map(|record| record.unwrap().revision);
        assert!(revisions.all(|revision| revision == self.revision));
        assert_eq!(found.len(), self.players.len());
        let is_own = |entry: &PlayerEntry| entry.owner == Some(self.run) && entry.is_adopted;
        assert!(found.iter().all(is_own));
    }
}

/// Lets all nodes work at the same time. Returns the seconds that it took.
fn together(nodes: &mut [WritingNode], work: impl Fn(&mut WritingNode) + Sync) -> f64 {
    let clock = Stopwatch::start();
    thread::scope(|scope| {
        for node in nodes {
            scope.spawn(|| work(node));
        }
    });
    clock.elapsed().as_secs_f64()
}

#[test]
fn nodes_that_write_at_the_same_time_lose_nothing() {
    let Some(url) = postgres_url() else { return };
    let has_figures = std::env::var_os("THRONG_FIGURES").is_some();
    let (players, rounds) = if has_figures { (256, 4) } else { (4, 3) };
    if has_figures {
        println!("nodes  hand-offs/s  {AT_ONCE} at once  players saved/s");
    }
    for count in [1, 2, 4, 8, 16] {
        let schema = TestSchema::new(&url);
        let nodes = (0..count).map(|nth| WritingNode::new(opened(&schema), nth, players));
        let mut nodes: Vec<WritingNode> = nodes.collect();
        let handed_s = together(&mut nodes, |node| {
            (0..rounds).for_each(|_| node.hand_off_all(1));
        });
        let together_s = together(&mut nodes, |node| {
            (0..rounds).for_each(|_| node.hand_off_all(AT_ONCE));
        });
        let saved_s = together(&mut nodes, |node| {
            (0..rounds * 4).for_each(|_| node.save_all());
        });
        nodes.iter_mut().for_each(WritingNode::check);
        if has_figures {
            let all = (count * players * rounds) as f64;
            let [handed, at_once] = [handed_s, together_s].map(|seconds| all / seconds);
            let saved = all * 4.0 / saved_s;
            println!("{count:>5}  {handed:>11.0}  {at_once:>10.0}  {saved:>15.0}");
        }
    }
}
