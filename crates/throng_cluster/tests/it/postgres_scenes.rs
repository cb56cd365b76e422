//! The rows of scenes on a Postgres server do the same as those in memory, and a scene has one owner when nodes claim it together.
//!
//! The server is that of `THRONG_POSTGRES`; without it nothing is tested: `.ci/with_postgres cargo test -p throng_cluster` starts one.
//! Every test has its own schema there.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::thread;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng_cluster::{
    ClusterNodeId, ClusterReply, ClusterRequest, ClusterRows, NodeRun, PostgresRows,
    SceneDeclaration, SceneReply, SceneRequest, SceneTable,
};
use throng_store::testing::{Operator, TestSchema, postgres_url};

use crate::patience::until;
use crate::servers::rows::{
    execute_both, heartbeat, name_of, opened, requests_wanted, started, wait_for_locks,
};

/// In the order of their bytes, which is not that of a dictionary.
const NAMES: [&str; 6] = ["", "Town", "cave", "cave-2", "cave2", "über'\"; --"];

fn execute(rows: &mut PostgresRows, request: SceneRequest, at_ms: u64) -> ClusterReply {
    let request = ClusterRequest::Scene(request);
    rows.execute_at(&request, Some(at_ms)).unwrap()
}

fn read(rows: &mut PostgresRows, at_ms: u64) -> SceneTable {
    match execute(rows, SceneRequest::Read, at_ms) {
        ClusterReply::Scene(SceneReply::Table(table)) => table,
        other => panic!("{other:?}"),
    }
}

/// Draws requests that often make sense, and often do not.
struct RequestSource {
    rng: Pcg64Mcg,
    runs: Vec<NodeRun>,
}

impl RequestSource {
    fn run(&mut self) -> NodeRun {
        let unknown = NodeRun {
            node: ClusterNodeId(9),
            run: 1,
        };
        if self.runs.is_empty() || self.rng.random_bool(0.02) {
            return unknown;
        }
        // Mostly one of the newest runs.
        let oldest = self.runs.len().saturating_sub(4);
        let first = if self.rng.random_bool(0.1) { 0 } else { oldest };
        let mut run = self.runs[self.rng.random_range(first..self.runs.len())];
        // The next run of a process.
        run.run += u64::from(self.rng.random_bool(0.05));
        run
    }

    fn name(&mut self) -> String {
        NAMES[self.rng.random_range(0..NAMES.len())].to_owned()
    }

    fn node_name(&mut self) -> String {
        format!("n{}", self.rng.random_range(0..4))
    }

    fn declarations(&mut self) -> Vec<SceneDeclaration> {
        let count = self.rng.random_range(0..4);
        // Mostly an unknown one, and now and then twice.
        let new = format!("s{}", self.rng.random_range(0..1_000));
        let declarations = (0..count).map(|_| SceneDeclaration {
            name: if self.rng.random_bool(0.5) {
                new.clone()
            } else {
                self.name()
            },
            specification: vec![self.rng.random(); self.rng.random_range(0..3)],
            pinned_to: self.rng.random_bool(0.5).then(|| self.node_name()),
        });
        declarations.collect()
    }

    fn next(&mut self, table: &SceneTable) -> ClusterRequest {
        let (run, scene) = (self.run(), self.name());
        let entry = table.scene(&scene);
        let epoch = entry.map_or(0, |entry| entry.epoch);
        let epoch = epoch.saturating_sub(u64::from(self.rng.random_bool(0.1)));
        let owner = entry.and_then(|entry| entry.owner);
        match self.rng.random_range(0..15) {
            0 => ClusterRequest::StartRun {
                name: self.node_name(),
            },
            1 if self.rng.random_bool(0.2) => ClusterRequest::EndRun { run },
            1 => ClusterRequest::ReadNodes,
            2..6 => ClusterRequest::Heartbeat {
                run,
                load: self.rng.random(),
            },
            6 => ClusterRequest::ClaimLate {
                run,
                players_max: 1,
                unheard: Vec::new(),
            },
            7 => ClusterRequest::Scene(SceneRequest::Declare {
                run,
                scenes: self.declarations(),
            }),
            8..10 => ClusterRequest::Scene(SceneRequest::Read),
            10..12 => ClusterRequest::Scene(SceneRequest::Claim { run, scene, epoch }),
            12..14 => {
                let run = owner.filter(|_| self.rng.random_bool(0.8)).unwrap_or(run);
                ClusterRequest::Scene(SceneRequest::GiveUp { run, scene, epoch })
            }
            _ => ClusterRequest::Scene(SceneRequest::SetDraining {
                name: format!("n{}", self.rng.random_range(0..5)),
                is_draining: self.rng.random_bool(0.3),
            }),
        }
    }
}

/// `THRONG_REQUESTS=100000` compares more of them.
#[test]
fn postgres_and_memory_give_the_same_replies_about_scenes() {
    let Some(url) = postgres_url() else { return };
    let wanted = requests_wanted(3_000);
    let mut kinds = BTreeMap::new();
    for seed in 0..wanted.div_ceil(1_000) {
        let schema = TestSchema::new(&url);
        let (mut stored, mut model) = (opened(&schema), ClusterRows::default());
        let rng = Pcg64Mcg::seed_from_u64(seed);
        let runs = Vec::new();
        let mut source = RequestSource { rng, runs };
        let mut now_ms = 1_000_000;
        for _ in 0..1_000 {
            now_ms += source.rng.random_range(0..120);
            let request = source.next(&model.scene_table(now_ms));
            let expected = execute_both(&mut stored, &mut model, &request, (seed, now_ms));
            if let ClusterReply::Started(run) = expected {
                source.runs.push(run);
            }
            let ClusterRequest::Scene(request) = request else {
                continue;
            };
            let name = name_of(&request);
            let result = match expected {
                ClusterReply::Refused(refused) => format!("{refused:?}"),
                _ => "done".to_owned(),
            };
            *kinds.entry((name, result)).or_insert(0_u64) += 1;
        }
        assert_eq!(read(&mut stored, now_ms), model.scene_table(now_ms));
    }
    let found: Vec<(&str, &str)> = kinds
        .keys()
        .map(|(name, result)| (name.as_str(), result.as_str()))
        .collect();
    // Every kind of request was executed, and every refusal occurred.
    let expected = [
        ("Claim", "NodeDrains"),
        ("Claim", "NotLate"),
        ("Claim", "NotOwner"),
        ("Claim", "RunEnded"),
        ("Claim", "done"),
        ("Declare", "RunEnded"),
        ("Declare", "done"),
        ("GiveUp", "NotOwner"),
        ("GiveUp", "done"),
        ("Read", "done"),
        ("SetDraining", "UnknownNode"),
        ("SetDraining", "done"),
    ];
    assert_eq!(found, expected, "{kinds:?}");
}

fn town(run: NodeRun) -> SceneRequest {
    let scene = SceneDeclaration {
        name: "town".to_owned(),
        ..SceneDeclaration::default()
    };
    let scenes = vec![scene];
    SceneRequest::Declare { run, scenes }
}

#[test]
fn scene_that_many_nodes_claim_together_has_one_owner() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let mut rows = opened(&schema);
    let runs: Vec<NodeRun> = (0..4)
        .map(|nth| started(&mut rows, &format!("n{nth}"), 0))
        .collect();
    execute(&mut rows, town(runs[0]), 0);
    wait_for_locks(&schema);
    let barrier = Barrier::new(runs.len());
    let changes: u64 = thread::scope(|scope| {
        let works: Vec<_> = runs
            .iter()
            .map(|&run| {
                let (schema, barrier) = (&schema, &barrier);
                scope.spawn(move || {
                    let mut rows = opened(schema);
                    rows.connect().unwrap();
                    barrier.wait();
                    let mut changes = 0;
                    for _ in 0..100 {
                        let table = read(&mut rows, 100);
                        let scene = table.scene("town").unwrap();
                        let (owner, epoch) = (scene.owner, scene.epoch);
                        let scene = "town".to_owned();
                        // In the name of the current owner. Another connection does the same at the same time.
                        let request = match owner {
                            None => SceneRequest::Claim { run, scene, epoch },
                            Some(run) => SceneRequest::GiveUp { run, scene, epoch },
                        };
                        let reply = execute(&mut rows, request, 100);
                        changes += u64::from(reply == ClusterReply::Done);
                    }
                    changes
                })
            })
            .collect();
        works.into_iter().map(|work| work.join().unwrap()).sum()
    });
    assert!(changes >= 100, "{changes}");
    let table = read(&mut rows, 100);
    assert_eq!(table.scene("town").unwrap().epoch, changes);
}

#[test]
fn claims_that_wait_for_each_other_do_not_both_succeed() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let mut rows = opened(&schema);
    let runs = ["n0", "n1"].map(|name| started(&mut rows, name, 0));
    execute(&mut rows, town(runs[0]), 0);
    wait_for_locks(&schema);
    let (lock, operator) = (schema.operator(), Operator::new(&url));
    lock.execute("BEGIN; SELECT FROM cluster_scene FOR UPDATE");
    let claims = runs.map(|run| {
        let mut rows = opened(&schema);
        rows.connect().unwrap();
        let (scene, epoch) = ("town".to_owned(), 0);
        thread::spawn(move || execute(&mut rows, SceneRequest::Claim { run, scene, epoch }, 10))
    });
    let waiting = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
            AND pid IN (SELECT pid FROM pg_locks WHERE relation = '{}.cluster_scene'::regclass)",
        schema.name
    );
    until("both claims wait", || {
        operator.query::<i64>(&waiting) == [2]
    });
    lock.execute("ROLLBACK");
    let replies = claims.map(|claim| claim.join().unwrap());
    let done = replies.iter().filter(|reply| **reply == ClusterReply::Done);
    assert_eq!(done.count(), 1, "{replies:?}");
    assert_eq!(read(&mut rows, 10).scene("town").unwrap().epoch, 1);
}

#[test]
fn heartbeat_and_claim_of_a_scene_leave_one_owner() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let mut rows = opened(&schema);
    wait_for_locks(&schema);
    let mut at_ms = 10_000;
    for round in 0..20 {
        let own = started(&mut rows, "own", at_ms);
        let other = started(&mut rows, "other", at_ms);
        execute(&mut rows, town(own), at_ms);
        let claim = |run: NodeRun, rows: &mut PostgresRows, at_ms| {
            let epoch = read(rows, at_ms).scene("town").unwrap().epoch;
            let scene = "town".to_owned();
            execute(rows, SceneRequest::Claim { run, scene, epoch }, at_ms)
        };
        assert_eq!(claim(own, &mut rows, at_ms), ClusterReply::Done);
        at_ms += 1_400;
        rows.execute_at(&heartbeat(other), Some(at_ms)).unwrap();
        at_ms += 200;
        let barrier = Barrier::new(2);
        let is_kept = thread::scope(|scope| {
            let sent = scope.spawn(|| {
                let mut rows = opened(&schema);
                rows.connect().unwrap();
                barrier.wait();
                rows.execute_at(&heartbeat(own), Some(at_ms)).unwrap()
            });
            let mut rows = opened(&schema);
            rows.connect().unwrap();
            barrier.wait();
            claim(other, &mut rows, at_ms);
            sent.join().unwrap() == ClusterReply::Done
        });
        let found = read(&mut rows, at_ms);
        let expected = if is_kept { own } else { other };
        assert_eq!(found.alive_owner("town"), Some(expected), "round {round}");
        at_ms += 10_000;
    }
}
