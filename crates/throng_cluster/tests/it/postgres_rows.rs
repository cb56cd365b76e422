//! The rows on a Postgres server do the same as those in memory, and keep their promises when connections are lost.
//!
//! The server is that of `THRONG_POSTGRES`; without it nothing is tested: `.ci/with_postgres cargo test -p throng_cluster` starts one.
//! Every test has its own schema there.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng_cluster::{
    Arrival, ClusterNodeId, ClusterRecord, ClusterReply, ClusterRequest, ClusterRows, ClusterSave,
    ClusterStore, ClusterStoreError, GatewayClients, NodeReport, NodeRun, PostgresRows, QuietNode,
    RefusedWrite, ReportRequest, ScenePlayers,
};
use throng_core::ids::PlayerId;
use throng_store::PostgresSource;
use throng_store::testing::{Operator, TestSchema, postgres_url};

use crate::patience::until;
use crate::servers::rows::{
    TIMEOUT, done, execute_both, heartbeat, name_of, opened, quiet_nodes, requests_wanted, started,
    wait_for_locks,
};

const PLAYERS: [PlayerId; 6] = [
    PlayerId(0),
    PlayerId(1),
    PlayerId(7),
    PlayerId(1 << 40),
    PlayerId(1 << 63),
    PlayerId(u64::MAX),
];

/// A player that a run has adopted with the epoch 1.
fn adopted(rows: &mut PostgresRows, run: NodeRun, player: PlayerId, at_ms: u64) {
    let log_in = ClusterRequest::LogIn {
        run,
        player,
        epoch: 0,
    };
    done(rows, &log_in, at_ms);
    let arrival = Arrival { player, epoch: 1 };
    let arrivals = vec![arrival];
    let adopt = ClusterRequest::Adopt { run, arrivals };
    let reply = rows.execute_at(&adopt, Some(at_ms)).unwrap();
    let record = ClusterRecord::default();
    assert_eq!(reply, ClusterReply::Adopted(vec![(arrival, record)]));
}

fn save(player: PlayerId, epoch: u64, revision: u64) -> ClusterSave {
    let bytes = vec![revision as u8; 3];
    ClusterSave {
        player,
        epoch,
        record: ClusterRecord { revision, bytes },
    }
}

fn owner(rows: &mut PostgresRows, player: PlayerId) -> (Option<NodeRun>, u64) {
    let players = vec![player];
    let request = ClusterRequest::ReadPlayers {
        players,
        with_records: false,
    };
    match rows.execute(&request) {
        Ok(ClusterReply::Players(found)) => found
            .first()
            .map_or((None, 0), |entry| (entry.owner, entry.epoch)),
        other => panic!("{other:?}"),
    }
}

/// Claims players of dead nodes.
fn claim(rows: &mut PostgresRows, run: NodeRun, at_ms: u64) {
    let players_max = 1_000;
    let request = ClusterRequest::ClaimLate {
        run,
        players_max,
        unheard: Vec::new(),
    };
    let reply = rows.execute_at(&request, Some(at_ms)).unwrap();
    assert!(matches!(reply, ClusterReply::Claimed { .. }), "{reply:?}");
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
        // Mostly one of the newest runs.
        let oldest = self.runs.len().saturating_sub(4);
        let first = if self.rng.random_bool(0.1) { 0 } else { oldest };
        if self.runs.is_empty() || self.rng.random_bool(0.02) {
            return unknown;
        }
        let mut run = self.runs[self.rng.random_range(first..self.runs.len())];
        // The next run of a process.
        run.run += u64::from(self.rng.random_bool(0.05));
        run
    }

    fn save(&mut self, rows: &ClusterRows, player: PlayerId) -> ClusterSave {
        let epoch = self.epoch(rows, player);
        let known = rows.records().find(|(of, _)| *of == player);
        let revision = known.map_or(0, |(_, record)| record.revision);
        let next = revision + self.rng.random_range(0..3);
        // Now and then an older state.
        let back = u64::from(self.rng.random_bool(0.3));
        save(player, epoch, next.saturating_sub(back))
    }

    fn epoch(&mut self, rows: &ClusterRows, player: PlayerId) -> u64 {
        let epoch = rows.owner(player).map_or(0, |(_, epoch)| epoch);
        epoch.saturating_sub(u64::from(self.rng.random_bool(0.1)))
    }

    /// The owner of a player, or any run.
    fn owner(&mut self, rows: &ClusterRows, player: PlayerId) -> NodeRun {
        let owner = rows.owner(player).and_then(|(owner, _)| owner);
        match owner.filter(|_| self.rng.random_bool(0.85)) {
            Some(owner) => owner,
            None => self.run(),
        }
    }

    fn report(&mut self) -> ReportRequest {
        if self.rng.random_bool(0.5) {
            return ReportRequest::Read;
        }
        let highest = if self.rng.random_bool(0.5) {
            9
        } else {
            u32::MAX
        };
        let [players, connected, routed] = [(); 3].map(|()| self.rng.random_range(0..=highest));
        let scenes = ["town", "größe <b>'\"{},"].into_iter();
        let scenes = scenes.take(self.rng.random_range(0..3));
        let gateways = ["g1", "", "g,2"].into_iter();
        let gateways = gateways.take(self.rng.random_range(0..4));
        let report = NodeReport {
            scenes: scenes
                .map(|scene| ScenePlayers {
                    scene: scene.to_owned(),
                    players,
                })
                .collect(),
            gateways: gateways
                .map(|gateway| GatewayClients {
                    gateway: gateway.to_owned(),
                    connected,
                    routed,
                })
                .collect(),
        };
        let run = self.run();
        ReportRequest::Write { run, report }
    }

    fn hand_off(
        &mut self,
        rows: &ClusterRows,
        (run, player): (NodeRun, PlayerId),
        mut saves: Vec<ClusterSave>,
    ) -> ClusterRequest {
        let mut players = vec![self.save(rows, player)];
        match self.rng.random_range(0..10) {
            0..3 => saves.clear(),
            // With all other players of the run.
            3..8 => {
                saves.clear();
                let own = |other: &&PlayerId| {
                    let owner = rows.owner(**other).and_then(|(owner, _)| owner);
                    **other != player && owner == Some(run)
                };
                for other in PLAYERS.iter().filter(own) {
                    players.push(self.save(rows, *other));
                }
            }
            _ => {}
        }
        let to = self.run();
        ClusterRequest::HandOff {
            run,
            players,
            to,
            saves,
        }
    }

    /// Quiet nodes, sometimes with another heartbeat than their last one.
    fn unheard(&mut self, rows: &ClusterRows, now_ms: u64) -> Vec<QuietNode> {
        let mut quiet = quiet_nodes(rows, &self.runs, now_ms);
        quiet.retain(|_| self.rng.random());
        if let Some(first) = quiet.first_mut().filter(|_| self.rng.random_bool(0.2)) {
            first.heartbeat_ms += 1;
        }
        quiet
    }

    fn next(&mut self, rows: &ClusterRows, now_ms: u64) -> ClusterRequest {
        let mut players = PLAYERS.to_vec();
        let player = players.swap_remove(self.rng.random_range(0..players.len()));
        let others = self.rng.random_range(0..3);
        let saves = players[..others]
            .iter()
            .map(|other| self.save(rows, *other));
        let saves: Vec<ClusterSave> = saves.collect();
        let run = self.owner(rows, player);
        let epoch = self.epoch(rows, player);
        match self.rng.random_range(0..18) {
            0 => ClusterRequest::StartRun {
                name: format!("n{}", self.rng.random_range(0..4)),
            },
            1 if self.rng.random_bool(0.2) => ClusterRequest::EndRun { run: self.run() },
            1 => ClusterRequest::ReadNodes,
            2..5 => ClusterRequest::Heartbeat {
                run: self.run(),
                load: self.rng.random(),
            },
            5 => ClusterRequest::Save { run, saves },
            6 => self.hand_off(rows, (run, player), saves),
            7 => ClusterRequest::Release {
                run,
                player: self.save(rows, player),
                saves: Vec::new(),
            },
            8 => ClusterRequest::RaiseEpoch { run, player, epoch },
            9 => ClusterRequest::ReadPlayers {
                players: vec![player],
                with_records: false,
            },
            10 => ClusterRequest::ReadArrivals { run },
            11 => {
                let also = players[..others].to_vec();
                let all = [player].into_iter().chain(also);
                let arrivals = all.map(|player| Arrival {
                    player,
                    epoch: self.epoch(rows, player),
                });
                let arrivals = arrivals.collect();
                ClusterRequest::Adopt { run, arrivals }
            }
            12 => ClusterRequest::TakeBack {
                run: self.run(),
                player,
                epoch,
            },
            14 => {
                let mut players = [&[player, PlayerId(99)], &players[..others]].concat();
                players.sort_unstable();
                ClusterRequest::ReadPlayers {
                    players,
                    with_records: self.rng.random(),
                }
            }
            13 => ClusterRequest::ClaimLate {
                run: self.run(),
                players_max: self.rng.random_range(0..4),
                unheard: self.unheard(rows, now_ms),
            },
            16 | 17 => ClusterRequest::Report(self.report()),
            _ => ClusterRequest::LogIn {
                run: self.run(),
                player,
                epoch,
            },
        }
    }
}

/// `THRONG_REQUESTS=100000` compares more of them.
#[test]
fn postgres_and_memory_give_the_same_replies() {
    let Some(url) = postgres_url() else { return };
    let wanted = requests_wanted(3_000);
    let mut kinds = std::collections::BTreeMap::new();
    for seed in 0..wanted.div_ceil(1_000) {
        let schema = TestSchema::new(&url);
        let (mut stored, mut model) = (opened(&schema), ClusterRows::default());
        let rng = Pcg64Mcg::seed_from_u64(seed);
        let mut source = RequestSource {
            rng,
            runs: Vec::new(),
        };
        let mut now_ms = 1_000_000;
        for _ in 0..1_000 {
            now_ms += source.rng.random_range(0..80);
            let request = source.next(&model, now_ms);
            let expected = execute_both(&mut stored, &mut model, &request, (seed, now_ms));
            if let ClusterReply::Started(run) = expected {
                source.runs.push(run);
            }
            let name = match &request {
                ClusterRequest::HandOff { players, .. } if players.len() > 1 => {
                    "HandOff of several".to_owned()
                }
                ClusterRequest::ClaimLate { unheard, .. } => match &expected {
                    ClusterReply::Claimed { quiet, .. }
                        if unheard.iter().any(|node| !quiet.contains(node)) =>
                    {
                        "ClaimLate of an unheard node".to_owned()
                    }
                    _ => "ClaimLate".to_owned(),
                },
                request => name_of(request),
            };
            let result = match expected {
                ClusterReply::Refused(refused) => format!("{refused:?}"),
                _ => "done".to_owned(),
            };
            *kinds.entry((name, result)).or_insert(0_u64) += 1;
        }
        let records = "SELECT format('%s %s %s', player, revision, record) FROM cluster_player ORDER BY player < 0, player";
        let records = schema.operator().query::<String>(records);
        let text = |(player, record): (PlayerId, &ClusterRecord)| {
            let bytes: String = record
                .bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            format!("{} {} \\x{bytes}", player.0 as i64, record.revision)
        };
        let expected: Vec<String> = model.records().map(text).collect();
        assert_eq!(records, expected, "seed {seed}");
    }
    // Every kind of request was executed, and every refusal occurred.
    let succeeded = kinds.keys().filter(|(_, result)| result == "done");
    assert_eq!(succeeded.count(), 18, "{kinds:?}");
    let refusals: std::collections::BTreeSet<&String> =
        kinds.keys().map(|(_, result)| result).collect();
    assert_eq!(refusals.len(), 8, "{kinds:?}");
}

#[test]
fn only_one_of_many_connections_gets_an_epoch() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let mut rows = opened(&schema);
    let runs: Vec<NodeRun> = (0..4)
        .map(|nth| started(&mut rows, &format!("n{nth}"), 0))
        .collect();
    wait_for_locks(&schema);
    let player = PlayerId(7);
    let barrier = Barrier::new(runs.len());
    let raised: u64 = thread::scope(|scope| {
        let works: Vec<_> = runs
            .iter()
            .map(|&run| {
                let (schema, barrier, runs) = (&schema, &barrier, &runs);
                scope.spawn(move || {
                    let mut rows = opened(schema);
                    rows.connect().unwrap();
                    barrier.wait();
                    let mut raised = 0;
                    for nth in 0..200 {
                        let (owner, epoch) = owner(&mut rows, player);
                        let request = match owner {
                            None => ClusterRequest::LogIn { run, player, epoch },
                            // In the name of the current owner. Another connection does the same at the same time.
                            Some(run) if nth % 3 == 0 => {
                                ClusterRequest::RaiseEpoch { run, player, epoch }
                            }
                            Some(run) if nth % 3 == 1 => ClusterRequest::Release {
                                run,
                                player: save(player, epoch, epoch),
                                saves: Vec::new(),
                            },
                            Some(run) => ClusterRequest::HandOff {
                                run,
                                players: vec![save(player, epoch, epoch)],
                                to: runs[nth % runs.len()],
                                saves: Vec::new(),
                            },
                        };
                        let reply = rows.execute_at(&request, Some(100)).unwrap();
                        raised += u64::from(reply == ClusterReply::Done);
                    }
                    raised
                })
            })
            .collect();
        works.into_iter().map(|work| work.join().unwrap()).sum()
    });
    assert!(raised >= 200, "{raised}");
    assert_eq!(owner(&mut rows, player).1, raised);
}

#[test]
fn heartbeat_and_claim_at_the_same_time_leave_one_owner() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let mut rows = opened(&schema);
    wait_for_locks(&schema);
    let mut at_ms = 10_000;
    let (mut kept, mut claimed) = (0, 0);
    for round in 0..30 {
        let player = PlayerId(round);
        let own = started(&mut rows, "own", at_ms);
        let other = started(&mut rows, "other", at_ms);
        adopted(&mut rows, own, player, at_ms);
        for _ in 0..3 {
            at_ms += 1_000;
            done(&mut rows, &heartbeat(other), at_ms);
        }
        at_ms += 200;
        let barrier = Barrier::new(2);
        let is_kept = thread::scope(|scope| {
            let sent = scope.spawn(|| {
                let mut rows = opened(&schema);
                rows.connect().unwrap();
                barrier.wait();
                rows.execute_at(&heartbeat(own), Some(at_ms))
            });
            let mut rows = opened(&schema);
            rows.connect().unwrap();
            barrier.wait();
            claim(&mut rows, other, at_ms);
            sent.join().unwrap().unwrap() == ClusterReply::Done
        });
        // Who could send a heartbeat is still the owner, and after another claim, too.
        for _ in 0..2 {
            let expected = if is_kept { own } else { other };
            assert_eq!(owner(&mut rows, player).0, Some(expected), "round {round}");
            claim(&mut rows, other, at_ms);
        }
        kept += u32::from(is_kept);
        claimed += u32::from(!is_kept);
        at_ms += 10_000;
    }
    assert_eq!(kept + claimed, 30);
}

/// A hand-off that waits for a locked row, in a thread of its own.
fn hand_off_of_two(run: NodeRun, to: NodeRun) -> ClusterRequest {
    ClusterRequest::HandOff {
        run,
        players: vec![save(PLAYERS[1], 1, 5)],
        to,
        saves: vec![save(PLAYERS[0], 1, 5)],
    }
}

#[test]
fn connection_killed_in_a_transaction_changes_nothing() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let mut rows = opened(&schema);
    let [run, to] = ["n0", "n1"].map(|name| started(&mut rows, name, 0));
    PLAYERS[..2]
        .iter()
        .for_each(|player| adopted(&mut rows, run, *player, 0));
    wait_for_locks(&schema);
    // The transaction has locked the first player, and waits for the second one.
    let (lock, operator) = (schema.operator(), Operator::new(&url));
    lock.execute("BEGIN; SELECT FROM cluster_player WHERE player = 1 FOR UPDATE");
    let mut victim = opened(&schema);
    victim.connect().unwrap();
    let work = thread::spawn(move || {
        let failed = victim.execute_at(&hand_off_of_two(run, to), Some(10));
        (victim, failed)
    });
    let kill = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%cluster_hand_off%'
            AND pid IN (SELECT pid FROM pg_locks WHERE relation = '{}.cluster_player'::regclass)",
        schema.name
    );
    until("the hand-off waits", || {
        !operator.query::<bool>(&kill).is_empty()
    });
    let (mut victim, failed) = work.join().unwrap();
    assert!(
        matches!(failed, Err(ClusterStoreError::Unknown(_))),
        "{failed:?}"
    );
    lock.execute("ROLLBACK");
    let revisions = lock.query::<i64>("SELECT revision FROM cluster_player ORDER BY player");
    assert_eq!(revisions, [0, 0]);
    assert_eq!(owner(&mut rows, PLAYERS[1]), (Some(run), 1));
    // The store connects again, and the same request succeeds.
    done(&mut victim, &hand_off_of_two(run, to), 20);
    assert_eq!(owner(&mut rows, PLAYERS[1]), (Some(to), 2));
}

/// A proxy in front of the server. On request it closes the connection instead of forwarding a reply.
struct CuttingProxy {
    port: u16,
    cuts: Arc<AtomicBool>,
}

impl CuttingProxy {
    fn new(url: &str) -> Self {
        let (_, host) = url.split_once('@').unwrap();
        let server: SocketAddr = host.split_once('/').unwrap().0.parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let cuts = Arc::new(AtomicBool::new(false));
        let is_cut = cuts.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(server).unwrap());
                for (from, to, is_reply) in [(&client, &server, false), (&server, &client, true)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let is_cut = is_cut.clone();
                    thread::spawn(move || forward(from, to, is_reply.then_some(&is_cut)));
                }
            }
        });
        Self { port, cuts }
    }

    fn source(&self, schema: &TestSchema) -> PostgresSource {
        let (user, host) = schema.url.split_once('@').unwrap();
        let (_, database) = host.split_once('/').unwrap();
        let url = format!("{user}@127.0.0.1:{}/{database}", self.port);
        PostgresSource::new(url).with_schema(&schema.name)
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, is_cut: Option<&Arc<AtomicBool>>) {
    let mut bytes = [0; 4_096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if is_cut.is_some_and(|is_cut| is_cut.swap(false, Ordering::Relaxed)) {
            break;
        }
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[test]
fn lost_reply_is_unknown_and_the_epoch_tells_what_happened() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let proxy = CuttingProxy::new(&url);
    let mut rows = PostgresRows::new(&proxy.source(&schema), TIMEOUT);
    let [run, to] = ["n0", "n1"].map(|name| started(&mut rows, name, 0));
    PLAYERS[..2]
        .iter()
        .for_each(|player| adopted(&mut rows, run, *player, 0));
    // Prepares the statement, so that the next reply is that of the transaction.
    let refused = ClusterRequest::HandOff {
        run,
        players: vec![save(PLAYERS[1], 9, 5)],
        to,
        saves: Vec::new(),
    };
    let reply = rows.execute_at(&refused, Some(1)).unwrap();
    assert_eq!(reply, ClusterReply::Refused(RefusedWrite::NotOwner));
    proxy.cuts.store(true, Ordering::Relaxed);
    let failed = rows.execute_at(&hand_off_of_two(run, to), Some(2));
    assert!(
        matches!(failed, Err(ClusterStoreError::Unknown(_))),
        "{failed:?}"
    );
    // It was done, so the former owner cannot raise the epoch.
    let raise = ClusterRequest::RaiseEpoch {
        run,
        player: PLAYERS[1],
        epoch: 1,
    };
    let reply = rows.execute_at(&raise, Some(3)).unwrap();
    assert_eq!(reply, ClusterReply::Refused(RefusedWrite::NotOwner));
    assert_eq!(owner(&mut rows, PLAYERS[1]), (Some(to), 2));
}

#[test]
fn server_that_is_silent_or_waits_executes_nothing() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let mut rows = opened(&schema);
    let run = started(&mut rows, "n0", 0);
    adopted(&mut rows, run, PLAYERS[0], 0);
    let save = ClusterRequest::Save {
        run,
        saves: vec![save(PLAYERS[0], 1, 5)],
    };
    // A server that never replies.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let source = PostgresSource::new(format!("postgres://throng@127.0.0.1:{port}/postgres"));
    let failed = PostgresRows::new(&source, Duration::from_secs(1)).execute(&save);
    assert!(
        matches!(failed, Err(ClusterStoreError::NotExecuted(_))),
        "{failed:?}"
    );
    // A row that an operator keeps locked: the server gives up after a second, and nothing was done.
    let lock = schema.operator();
    lock.execute("BEGIN; SELECT FROM cluster_player FOR UPDATE");
    let failed = rows.execute_at(&save, Some(1));
    let Err(ClusterStoreError::NotExecuted(cause)) = failed else {
        panic!("{failed:?}");
    };
    assert!(cause.contains("locked"), "{cause}");
    lock.execute("ROLLBACK");
    done(&mut rows, &save, 2);
}

#[test]
fn timeout_is_unknown_and_the_next_request_connects_again() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let mut rows = opened(&schema);
    let run = started(&mut rows, "n0", 0);
    adopted(&mut rows, run, PLAYERS[0], 0);
    wait_for_locks(&schema);
    let mut short = PostgresRows::new(&schema.source(), Duration::from_millis(400));
    let raise = |epoch| ClusterRequest::RaiseEpoch {
        run,
        player: PLAYERS[0],
        epoch,
    };
    // Connected and prepared, which may take longer than the timeout on a busy machine.
    until("a reply", || short.execute_at(&raise(9), None).is_ok());
    let lock = schema.operator();
    lock.execute("BEGIN; SELECT FROM cluster_player FOR UPDATE");
    // If this thread is late, it finds that the server has given up: then the request was not executed.
    until("an unknown outcome", || {
        let failed = short.execute_at(&raise(1), None).unwrap_err();
        matches!(failed, ClusterStoreError::Unknown(_))
    });
    lock.execute("ROLLBACK");
    // Whether it was done after all: then the second one is refused. It is never done twice.
    done_or_refused(&mut rows, &raise(1));
    let (found, epoch) = owner(&mut rows, PLAYERS[0]);
    assert_eq!((found, epoch), (Some(run), 2));
}

fn done_or_refused(rows: &mut PostgresRows, request: &ClusterRequest) {
    let reply = rows.execute(request).unwrap();
    let refused = ClusterReply::Refused(RefusedWrite::NotOwner);
    assert!(reply == ClusterReply::Done || reply == refused, "{reply:?}");
}

#[test]
fn time_is_that_of_the_server() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let mut rows = opened(&schema);
    let name = "n0".to_owned();
    let start = ClusterRequest::StartRun { name };
    let Ok(ClusterReply::Started(run)) = rows.execute(&start) else {
        panic!("it starts");
    };
    let is_alive = |rows: &mut PostgresRows| match rows.execute(&ClusterRequest::ReadNodes) {
        Ok(ClusterReply::Nodes(nodes)) => nodes[0].is_alive,
        other => panic!("{other:?}"),
    };
    let operator = schema.operator();
    for (age_ms, expected) in [(-5_000, true), (1_600, false)] {
        let age = format!(
            "UPDATE cluster_node SET heartbeat_ms = (extract(epoch FROM now()) * 1000)::BIGINT - {age_ms}"
        );
        operator.execute(&age);
        assert_eq!(is_alive(&mut rows), expected, "{age_ms} ms old");
    }
    assert_eq!(rows.execute(&heartbeat(run)), Ok(ClusterReply::Done));
    assert!(is_alive(&mut rows));
}

#[test]
fn role_without_rights_to_create_runs_a_node() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let (name, role) = (&schema.name, format!("{}_node", schema.name));
    let operator = Operator::new(&url);
    operator.execute(&format!("CREATE ROLE {role} LOGIN"));
    let (_, host) = url.split_once('@').unwrap();
    let source = PostgresSource::new(format!("postgres://{role}@{host}")).with_schema(name);
    let mut rows = PostgresRows::new(&source, TIMEOUT);
    let error = rows.connect().unwrap_err().to_string();
    assert!(error.contains("throng db migrate"), "{error}");
    schema.source().migrate().unwrap();
    operator.execute(&format!(
        "GRANT USAGE ON SCHEMA {name} TO {role};
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {name} TO {role}"
    ));
    let run = started(&mut rows, "n0", 0);
    let other = started(&mut rows, "n1", 0);
    adopted(&mut rows, run, PLAYERS[0], 0);
    adopted(&mut rows, run, PLAYERS[1], 0);
    done(&mut rows, &hand_off_of_two(run, other), 1);
    done(&mut rows, &ClusterRequest::EndRun { run }, 2);
    claim(&mut rows, other, 3);
    assert_eq!(owner(&mut rows, PLAYERS[0]), (Some(other), 2));
}
