//! Promise: the Postgres store behaves like any other store, and reports clear errors about unsuitable servers.
//!
//! The server is `THRONG_POSTGRES`; without it these tests are skipped: `.ci/with_postgres cargo test postgres` starts one. Each test uses
//! schemas of its own.

use std::sync::Arc;

use throng::store::conformance::check_store;
use throng::store::{
    ClaimResult, PostgresStore, SaveBatch, SqliteStore, StoreBackend, StoreErrorKind, StoreReply,
    StoreRequest, StoreSupervisor, StoredAttribute,
};
use throng::wire::Encoding;
use throng::world::PlayerId;
use throng_store::testing::{FIRST_MINUTE, Operator, TAKE_OVER, TestSchema, postgres_url};

use crate::harness::{TempFolder, new_database, run_throng};

/// The server's address; `None` without a server.
#[allow(clippy::print_stdout, reason = "reports that a test is skipped")]
fn url() -> Option<String> {
    let url = postgres_url();
    if url.is_none() {
        println!("skipped: THRONG_POSTGRES does not name a server");
    }
    url
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

/// A store with this many saved players, from player 1 on; each has as much gold as its id.
fn filled_store(schema: &TestSchema, count: u64) -> PostgresStore {
    let mut store = schema.open();
    store.register_attributes(&gold()).unwrap();
    let server = store.register_server("a", TAKE_OVER).unwrap();
    let players: Vec<PlayerId> = (1..=count).map(PlayerId).collect();
    let mut batch = SaveBatch::new(1, 7);
    for claimed in store.claim(&server, &players, FIRST_MINUTE).unwrap() {
        let ClaimResult::Granted { epoch, record } = claimed else {
            panic!("{claimed:?}");
        };
        let gold = (record.player.0 as u16).to_le_bytes();
        let values = [(2, Some(&gold[..])), (3, Some(&b"carpe diem\0"[..]))];
        batch.add((record.player, epoch, 7), values.into_iter());
    }
    let outcome = store.save(&server, &batch, Some(2_000)).unwrap();
    assert_eq!(outcome.revisions.len() as u64, count);
    store
}

/// The error of opening a store, which must not contain a password.
fn open_error(url: &str, schema: &str) -> StoreErrorKind {
    let error = PostgresStore::open(url, schema)
        .err()
        .expect("opening the store fails");
    assert!(!error.to_string().contains("hidden"), "{error}");
    assert!(!error.cause.is_empty(), "{error}");
    error.kind
}

#[test]
fn postgres_server_is_a_store() {
    let Some(url) = url() else { return };
    check_store(|| TestSchema::new(&url).source()).unwrap();
}

#[test]
fn dump_shows_the_saved_values() {
    let Some(url) = url() else { return };
    let schema = TestSchema::new(&url);
    drop(filled_store(&schema, 50));
    let operator = schema.operator();
    let value = |name: &str| {
        let value = format!("SELECT shown FROM player_value WHERE player = 42 AND name = '{name}'");
        operator.query::<Option<String>>(&value)
    };
    assert_eq!(value("gold"), [Some("42".to_owned())]);
    assert_eq!(
        value("motto"),
        [None],
        "Postgres cannot store a text with a zero byte"
    );
    let lease = "SELECT server FROM held_lease WHERE player = 42";
    assert_eq!(operator.query::<String>(lease), ["a"]);
}

#[test]
fn unsavable_record_does_not_block_other_saves() {
    let Some(url) = url() else { return };
    let schema = TestSchema::new(&url);
    let mut store = filled_store(&schema, 20);
    let operator = schema.operator();
    operator.execute("UPDATE player SET revision = 9223372036854775807 WHERE player = 7");
    let server = store.register_server("a", TAKE_OVER).unwrap();
    let players: Vec<PlayerId> = (1..=20).map(PlayerId).collect();
    let claimed = store.claim(&server, &players, FIRST_MINUTE).unwrap();
    let is_next = |claimed: &ClaimResult| matches!(claimed, ClaimResult::Granted { epoch: 2, .. });
    assert!(claimed.iter().all(is_next));
    let batch = |number: u64, players: std::ops::RangeInclusive<u64>| {
        let mut batch = SaveBatch::new(number, 8);
        for player in players {
            let id = if player == 9 { 3 } else { 2 };
            let value = std::iter::once((id, Some(&[1, 1][..])));
            batch.add((PlayerId(player), 2, 8), value);
        }
        batch.join(PlayerId(7), PlayerId(8));
        batch
    };
    let outcome = store.save(&server, &batch(1, 1..=20), Some(3_000)).unwrap();
    assert_eq!(outcome.refused, [PlayerId(7), PlayerId(8)]);
    let faults: Vec<StoreErrorKind> = outcome.errors.iter().map(|fault| fault.1.kind).collect();
    assert_eq!(faults, [StoreErrorKind::ValueRejected]);
    assert_eq!(outcome.revisions.len(), 18);
    // After an attribute was deleted, only the saves of players that have it fail.
    operator.execute("DELETE FROM value WHERE attribute = 3; DELETE FROM attribute WHERE id = 3");
    let outcome = store.save(&server, &batch(2, 9..=20), Some(3_000)).unwrap();
    assert_eq!(outcome.refused, [PlayerId(9)]);
    assert_eq!(outcome.revisions.len(), 11);
}

#[test]
fn invalid_too_new_or_unreachable_store_is_reported() {
    let Some(url) = url() else { return };
    let foreign = TestSchema::new(&url);
    let name = &foreign.name;
    foreign.operator().execute(&format!(
        "CREATE SCHEMA {name}; CREATE TABLE {name}.player (name TEXT)"
    ));
    assert_eq!(open_error(&url, name), StoreErrorKind::NotAPlayerStore);
    let newer = TestSchema::new(&url);
    drop(filled_store(&newer, 1));
    newer
        .operator()
        .execute("UPDATE store_version SET version = 99");
    let fault = open_error(&url, &newer.name);
    assert!(matches!(
        fault,
        StoreErrorKind::NewerSchema { found: 99, .. }
    ));
    for (url, schema) in [
        ("postgres://a:hidden@127.0.0.1:1/b", "a"),
        ("postgres://a:hidden@[x", "a"),
        (url.as_str(), "a; DROP SCHEMA b"),
    ] {
        assert_eq!(open_error(url, schema), StoreErrorKind::Unreachable);
    }
}

#[test]
fn save_is_done_once_after_a_reconnect() {
    let Some(url) = url() else { return };
    let schema = TestSchema::new(&url);
    drop(filled_store(&schema, 3));
    let mut supervisor =
        StoreSupervisor::new(Box::new(schema.source()), "a".to_owned(), gold().to_vec());
    let claim = StoreRequest::Claim {
        players: vec![PlayerId(1)],
        terms: FIRST_MINUTE,
    };
    let Ok(StoreReply::Claimed(_, Ok(claimed))) = supervisor.execute(&claim, 0) else {
        panic!("the player is claimed");
    };
    let ClaimResult::Granted { epoch, .. } = claimed[0] else {
        panic!("{claimed:?}");
    };
    let mut batch = SaveBatch::new(1, 9);
    let value = std::iter::once((2, Some(&[9, 0][..])));
    batch.add((PlayerId(1), epoch, 9), value);
    let save = StoreRequest::Save {
        batch: Arc::new(batch),
    };
    // The save waits for the locked row until its connection is cut off.
    let holder = schema.operator();
    holder.execute("BEGIN; SELECT 1 FROM player WHERE player = 1 FOR UPDATE");
    let waits = "SELECT pg_terminate_backend(waiting.pid) FROM pg_stat_activity AS waiting
        WHERE pg_backend_pid() = ANY(pg_blocking_pids(waiting.pid))";
    let mut now_ms = 0;
    let error = loop {
        let first = std::thread::scope(|scope| {
            let saving = scope.spawn(|| supervisor.execute(&save, now_ms));
            while !saving.is_finished() && holder.query::<bool>(waits).is_empty() {}
            saving.join().unwrap()
        });
        let error = first.unwrap_err();
        // The server ends the wait after a second, in which a busy machine may not cut it off.
        if error.kind != StoreErrorKind::Locked {
            break error;
        }
        now_ms += 10_000;
    };
    holder.execute("ROLLBACK");
    assert_eq!(error.kind, StoreErrorKind::Unreachable, "{error}");
    for when in ["store reconnected", "done before"] {
        let Ok(StoreReply::Saved(outcome)) = supervisor.execute(&save, now_ms + 10_000) else {
            panic!("{when}");
        };
        assert_eq!(outcome.revisions, [(PlayerId(1), 2)], "{when}");
    }
}

#[test]
fn concurrent_claims_give_a_player_to_one_server() {
    let Some(url) = url() else { return };
    let schema = TestSchema::new(&url);
    drop(filled_store(&schema, 1));
    let players: Vec<PlayerId> = (1..=200).map(PlayerId).collect();
    let claim_all = |nth: usize| {
        let mut store = schema.open();
        let server = store
            .register_server(&format!("server {nth}"), TAKE_OVER)
            .unwrap();
        let mut players = players.clone();
        if nth % 2 == 1 {
            players.reverse();
        }
        let mut granted = Vec::new();
        for _ in 0..10_000 {
            let claimed = store.claim(&server, &players, FIRST_MINUTE).unwrap();
            players.clear();
            for claimed in claimed {
                match claimed {
                    ClaimResult::Granted { record, .. } => granted.push(record.player),
                    ClaimResult::Refused { .. } => {}
                    // Another server is claiming it, and may be slow.
                    ClaimResult::Unreadable { player, .. } => players.push(player),
                }
            }
            if players.is_empty() {
                break;
            }
        }
        granted
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
    // Player 1 is leased by the server that filled the store.
    assert_eq!(granted, players[1..]);
}

/// Saves players with values of every encoding: those shown as numbers or text, and those shown as bytes. The last player is leased.
fn save_all_kinds(store: &mut dyn StoreBackend) {
    let values: [(Encoding, &[&[u8]]); 5] = [
        (Encoding::U16, &[&[1, 1], &[0, 0]]),
        (
            Encoding::Varint,
            &[
                &[0x80, 0],
                &[255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
            ],
        ),
        (Encoding::Zigzag, &[&[3], &[4]]),
        (
            Encoding::F32,
            &[&[0, 0, 192, 63], &[0, 0, 0, 128], &[0, 0, 192, 127]],
        ),
        (
            Encoding::Bytes { max: 40 },
            &["Zoë \"the\" 1st".as_bytes(), b"a\0b", &[255, 254], b""],
        ),
    ];
    let attributes = (0..)
        .zip(&values)
        .map(|(id, (encoding, _))| StoredAttribute {
            id,
            name: format!("value {id}"),
            encoding: *encoding,
        });
    let attributes: Vec<StoredAttribute> = attributes.collect();
    store.register_attributes(&attributes).unwrap();
    let server = store.register_server("a", TAKE_OVER).unwrap();
    let players = [1, 2, 3, 1 << 40, u64::MAX].map(PlayerId);
    let mut batch = SaveBatch::new(1, 7);
    for (nth, claimed) in store
        .claim(&server, &players, FIRST_MINUTE)
        .unwrap()
        .iter()
        .enumerate()
    {
        let ClaimResult::Granted { epoch, record } = claimed else {
            panic!("{claimed:?}");
        };
        let values = (0..).zip(&values);
        let values = values.filter_map(|(id, (_, all))| Some((id, Some(*all.get(nth)?))));
        batch.add((record.player, *epoch, 7), values);
        if nth > 0 {
            batch.release(record.player, *epoch);
        }
    }
    let outcome = store.save(&server, &batch, Some(2_000)).unwrap();
    assert_eq!(outcome.revisions.len(), players.len());
}

#[test]
fn db_commands_print_the_same_for_server_and_file() {
    let Some(server) = url() else { return };
    let (folder, url) = (TempFolder::new(), new_database(&server));
    let file = folder.path("players.db");
    let schemas = [&file, &url].map(|store| {
        let made = run_throng(&["db", "migrate", store]);
        let newest = made.out.trim_end().rsplit_once("schema 0 → ");
        let (_, newest) = newest.unwrap_or_else(|| panic!("{}", made.out));
        assert!(made.code == 0 && newest.parse::<u32>().is_ok(), "{newest}");
        let known = run_throng(&["db", "migrate", store]);
        assert!(known.out.ends_with(", up to date\n"), "{}", known.out);
        newest.to_owned()
    });
    save_all_kinds(&mut SqliteStore::open(file.as_ref()).unwrap());
    save_all_kinds(&mut PostgresStore::open(&url, "throng").unwrap());
    let dumped = run_throng(&["db", "dump", &file]);
    assert_eq!((dumped.code, dumped.out.lines().count()), (0, 5));
    let of_server = run_throng(&["db", "dump", &url]);
    assert_eq!((of_server.code, of_server.out), (0, dumped.out));
    // File and server count their schema versions separately.
    let of_file_schema = |text: String| {
        let shown = |prefix: &str| schemas.each_ref().map(|schema| format!("{prefix}{schema}"));
        let [of_file, of_server] = shown("schema      ");
        let [of_file_json, of_server_json] = shown("\"schema\":");
        text.replace(&of_server, &of_file)
            .replace(&of_server_json, &of_file_json)
    };
    for arguments in [&["db", "check"][..], &["db", "check", "--json"]] {
        let [of_file, of_server] = [&file, &url].map(|store| {
            let output = run_throng(&[arguments, &[store.as_str()][..]].concat());
            assert_eq!(output.code, 0, "{}", output.err);
            of_file_schema(output.out)
        });
        assert_eq!(of_file, of_server);
        let is_counted = ["players     5\n", "\"players\":5"];
        assert!(
            is_counted.iter().any(|line| of_file.contains(line)),
            "{of_file}"
        );
    }
}

#[test]
fn server_errors_are_reported_and_other_databases_untouched() {
    let Some(server) = url() else { return };
    let url = new_database(&server);
    for action in ["check", "dump"] {
        let output = run_throng(&["db", action, &url]);
        assert_eq!((output.code, output.out.as_str()), (2, ""));
        assert!(output.err.contains("no tables"), "{}", output.err);
    }
    let operator = Operator::new(&url);
    assert!(
        operator
            .query::<String>("SELECT nspname::TEXT FROM pg_namespace WHERE nspname = 'throng'")
            .is_empty()
    );
    save_all_kinds(&mut PostgresStore::open(&url, "throng").unwrap());
    operator.execute("SET search_path TO throng; UPDATE value SET shown = '258' WHERE player = 1 AND attribute = 0");
    operator.execute("UPDATE attribute SET encoding = 'u99' WHERE id = 3");
    let output = run_throng(&["db", "check", &url]);
    assert_eq!(output.code, 1, "{}", output.err);
    for wrong in [
        "attribute `value 3`: no encoding `u99` is known",
        "player 1: `value 0` is shown as `258`, and kept as `257`, which counts",
    ] {
        assert!(output.out.contains(wrong), "{}", output.out);
    }
    operator.execute("UPDATE store_version SET version = 99");
    for action in ["migrate", "check", "dump"] {
        let output = run_throng(&["db", action, &url]);
        assert_eq!((output.code, output.out.as_str()), (2, ""));
        assert!(
            output.err.contains("schema version 99") && output.err.contains("test_db"),
            "{}",
            output.err
        );
    }
    operator.execute("DROP TABLE store_version");
    for url in [&url, "postgres://a:hidden@127.0.0.1:1/b"] {
        let output = run_throng(&["db", "check", url]);
        assert_eq!((output.code, output.out.as_str()), (2, ""));
        assert!(
            output.err.contains("Postgres `") && !output.err.contains("hidden"),
            "{}",
            output.err
        );
    }
}
