//! Promise: the store on a Postgres server is one, and says what is wrong with servers that will not have it.
//!
//! The server is that of `THRONG_POSTGRES`, without which nothing is tested: `.ci/with_postgres cargo test postgres` starts one.
//! Every test has schemas of its own there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use throng::directory::conformance::check_store;
use throng::directory::{
    ClaimTerms, Claimed, PostgresSource, PostgresStore, SaveBatch, Store, StoreFault, StoreOrder,
    StoreReport, StoreSupervisor, StoredAttribute,
};
use throng::wire::Encoding;
use throng::world::PlayerId;
use tokio_postgres::types::FromSqlOwned;
use tokio_postgres::{Client, NoTls};

const TERMS: ClaimTerms = ClaimTerms {
    now_ms: 1_000,
    until_ms: 61_000,
    grace_ms: 0,
};

/// The server's address, if there is a server.
#[allow(
    clippy::print_stdout,
    reason = "who reads what was tested should see what was not"
)]
fn url() -> Option<String> {
    let url = std::env::var("THRONG_POSTGRES").ok();
    if url.is_none() {
        println!("skipped: THRONG_POSTGRES does not say where a server is");
    }
    url
}

/// A connection of an operator's.
struct Operator {
    runtime: tokio::runtime::Runtime,
    client: Client,
}

impl Operator {
    fn new(url: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
            tokio::spawn(connection);
            client
        });
        Self { runtime, client }
    }

    fn say(&self, statement: &str) {
        let said = self.client.batch_execute(statement);
        self.runtime.block_on(said).unwrap();
    }

    /// The first column of all rows.
    fn ask<T: FromSqlOwned>(&self, statement: &str) -> Vec<T> {
        let rows = self.runtime.block_on(self.client.query(statement, &[]));
        rows.unwrap().iter().map(|row| row.get(0)).collect()
    }
}

/// A schema of a test's own.
struct TestSchema {
    url: String,
    name: String,
}

impl TestSchema {
    fn new(url: &str) -> Self {
        static NTH: AtomicU32 = AtomicU32::new(0);
        let nth = NTH.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{nth}", std::process::id());
        let url = url.to_owned();
        Self { url, name }
    }

    fn source(&self) -> PostgresSource {
        PostgresSource::new(&self.url).in_schema(&self.name)
    }

    fn open(&self) -> PostgresStore {
        PostgresStore::open(&self.url, &self.name).unwrap()
    }

    /// Somebody who works in it by hand.
    fn operator(&self) -> Operator {
        let operator = Operator::new(&self.url);
        operator.say(&format!("SET search_path TO {}", self.name));
        operator
    }
}

fn gold() -> [StoredAttribute; 2] {
    let attribute = |id, name: &str, encoding| StoredAttribute {
        id,
        name: name.to_owned(),
        encoding,
    };
    [
        attribute(2, "gold", Encoding::U16),
        attribute(3, "motto", Encoding::Bytes { max: 40 }),
    ]
}

/// A store in which players 1 to so many are saved with as much gold.
fn filled(schema: &TestSchema, count: u64) -> PostgresStore {
    let mut store = schema.open();
    store.learn(&gold()).unwrap();
    let server = store.enroll("a").unwrap();
    let players: Vec<PlayerId> = (1..=count).map(PlayerId).collect();
    let mut batch = SaveBatch::new(1, 7);
    for claimed in store.claim(&server, &players, TERMS).unwrap() {
        let Claimed::Granted { epoch, record } = claimed else {
            panic!("{claimed:?}");
        };
        let gold = (record.player.0 as u16).to_le_bytes();
        let values = [(2, Some(&gold[..])), (3, Some(&b"carpe diem\0"[..]))];
        batch.add((record.player, epoch, 7), values.into_iter());
    }
    let outcome = store.save(&server, &batch, 2_000).unwrap();
    assert_eq!(outcome.revisions.len() as u64, count);
    store
}

/// What opening a store fails of; errors never tell a password.
fn refused(url: &str, schema: &str) -> StoreFault {
    let error = PostgresStore::open(url, schema)
        .err()
        .expect("it is refused");
    assert!(!error.to_string().contains("hidden"), "{error}");
    assert!(!error.cause.is_empty(), "{error}");
    error.fault
}

#[test]
fn a_server_is_a_store() {
    let Some(url) = url() else { return };
    check_store(|| TestSchema::new(&url).source()).unwrap();
}

#[test]
fn what_an_operator_sees_is_what_was_saved() {
    let Some(url) = url() else { return };
    let schema = TestSchema::new(&url);
    drop(filled(&schema, 50));
    let operator = schema.operator();
    let value = |name: &str| {
        let value = format!("SELECT shown FROM player_value WHERE player = 42 AND name = '{name}'");
        operator.ask::<Option<String>>(&value)
    };
    assert_eq!(value("gold"), [Some("42".to_owned())]);
    assert_eq!(value("motto"), [None], "there is a zero in it");
    let lease = "SELECT server FROM held_lease WHERE player = 42";
    assert_eq!(operator.ask::<String>(lease), ["a"]);
}

#[test]
fn one_record_that_cannot_be_kept_keeps_nobody_else_from_being_saved() {
    let Some(url) = url() else { return };
    let schema = TestSchema::new(&url);
    let mut store = filled(&schema, 20);
    let operator = schema.operator();
    operator.say("UPDATE player SET revision = 9223372036854775807 WHERE player = 7");
    let server = store.enroll("a").unwrap();
    let players: Vec<PlayerId> = (1..=20).map(PlayerId).collect();
    let claimed = store.claim(&server, &players, TERMS).unwrap();
    let is_next = |claimed: &Claimed| matches!(claimed, Claimed::Granted { epoch: 2, .. });
    assert!(claimed.iter().all(is_next));
    let batch = |number: u64, players: std::ops::RangeInclusive<u64>| {
        let mut batch = SaveBatch::new(number, 8);
        for player in players {
            let id = if player == 9 { 3 } else { 2 };
            let value = std::iter::once((id, Some(&[1, 1][..])));
            batch.add((PlayerId(player), 2, 8), value);
        }
        batch.tie(PlayerId(7), PlayerId(8));
        batch
    };
    let outcome = store.save(&server, &batch(1, 1..=20), 3_000).unwrap();
    assert_eq!(outcome.refused, [PlayerId(7), PlayerId(8)]);
    let faults: Vec<StoreFault> = outcome.faults.iter().map(|fault| fault.1.fault).collect();
    assert_eq!(faults, [StoreFault::Value]);
    assert_eq!(outcome.revisions.len(), 18);
    // An attribute that somebody took out spoils those who have it, and them alone.
    operator.say("DELETE FROM value WHERE attribute = 3; DELETE FROM attribute WHERE id = 3");
    let outcome = store.save(&server, &batch(2, 9..=20), 3_000).unwrap();
    assert_eq!(outcome.refused, [PlayerId(9)]);
    assert_eq!(outcome.revisions.len(), 11);
}

#[test]
fn what_is_no_store_or_too_new_or_out_of_reach_is_told() {
    let Some(url) = url() else { return };
    let foreign = TestSchema::new(&url);
    let name = &foreign.name;
    foreign.operator().say(&format!(
        "CREATE SCHEMA {name}; CREATE TABLE {name}.player (name TEXT)"
    ));
    assert_eq!(refused(&url, name), StoreFault::Foreign);
    let newer = TestSchema::new(&url);
    drop(filled(&newer, 1));
    newer
        .operator()
        .say("UPDATE store_version SET version = 99");
    let fault = refused(&url, &newer.name);
    assert!(matches!(fault, StoreFault::Newer { found: 99, .. }));
    for (url, schema) in [
        ("postgres://a:hidden@127.0.0.1:1/b", "a"),
        ("postgres://a:hidden@[x", "a"),
        (url.as_str(), "a; DROP SCHEMA b"),
    ] {
        assert_eq!(refused(url, schema), StoreFault::Unreachable);
    }
}

#[test]
fn a_connection_that_is_cut_in_a_save_is_opened_again_and_the_save_is_done_once() {
    let Some(url) = url() else { return };
    let schema = TestSchema::new(&url);
    drop(filled(&schema, 3));
    let mut supervisor =
        StoreSupervisor::new(Box::new(schema.source()), "a".to_owned(), gold().to_vec());
    let claim = StoreOrder::Claim {
        players: vec![PlayerId(1)],
        terms: TERMS,
    };
    let Ok(StoreReport::Claimed(_, Ok(claimed))) = supervisor.work(&claim, 0) else {
        panic!("it is claimed");
    };
    let Claimed::Granted { epoch, .. } = claimed[0] else {
        panic!("{claimed:?}");
    };
    let mut batch = SaveBatch::new(1, 9);
    let value = std::iter::once((2, Some(&[9, 0][..])));
    batch.add((PlayerId(1), epoch, 9), value);
    let save = StoreOrder::Save {
        batch: Arc::new(batch),
        now_ms: 5,
    };
    // The save waits for the row until it is cut off.
    let holder = schema.operator();
    holder.say("BEGIN; SELECT 1 FROM player WHERE player = 1 FOR UPDATE");
    let waits = "SELECT pg_terminate_backend(waiting.pid) FROM pg_stat_activity AS waiting
        WHERE pg_backend_pid() = ANY(pg_blocking_pids(waiting.pid))";
    let (first, mut supervisor) = std::thread::scope(|scope| {
        let saving = scope.spawn(|| (supervisor.work(&save, 0), supervisor));
        while !saving.is_finished() && holder.ask::<bool>(waits).is_empty() {}
        saving.join().unwrap()
    });
    holder.say("ROLLBACK");
    let error = first.unwrap_err();
    assert_eq!(error.fault, StoreFault::Unreachable, "{error}");
    for when in ["the store is back", "done before"] {
        let Ok(StoreReport::Saved(outcome)) = supervisor.work(&save, 10_000) else {
            panic!("{when}");
        };
        assert_eq!(outcome.revisions, [(PlayerId(1), 2)], "{when}");
    }
}

#[test]
fn servers_that_ask_at_the_same_time_never_have_a_player_both() {
    let Some(url) = url() else { return };
    let schema = TestSchema::new(&url);
    drop(filled(&schema, 1));
    let players: Vec<PlayerId> = (1..=200).map(PlayerId).collect();
    let claim_all = |nth: usize| {
        let mut store = schema.open();
        let server = store.enroll(&format!("server {nth}")).unwrap();
        let mut players = players.clone();
        if nth % 2 == 1 {
            players.reverse();
        }
        let claimed = store.claim(&server, &players, TERMS).unwrap();
        let granted = claimed.into_iter().filter_map(|claimed| match claimed {
            Claimed::Granted { record, .. } => Some(record.player),
            _ => None,
        });
        granted.collect::<Vec<PlayerId>>()
    };
    let mut granted = std::thread::scope(|scope| {
        let claim_all = &claim_all;
        let servers: Vec<_> = (0..6)
            .map(|nth| scope.spawn(move || claim_all(nth)))
            .collect();
        let granted = servers.into_iter().map(|server| server.join().unwrap());
        granted.collect::<Vec<_>>().concat()
    });
    granted.sort_unstable();
    // One is held by who filled it.
    assert_eq!(granted, players[1..]);
}
