//! Promise: acknowledged saves are on disk, and no coin or item is duplicated or lost, whenever the program is killed.
//!
//! With `THRONG_KILLS=200`, the built-in `town` is killed that many times, preferably with `THRONG_PROGRAM=target/release/throng`; without
//! it, a small scenario is killed a few times.
#![cfg(unix)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use throng::store::{ClaimResult, ClaimTerms, RegistrationTerms, SqliteStore, StoreBackend};
use throng::world::PlayerId;
use throng_scenario::crowd::{START_COINS, START_ITEMS};

use crate::harness::{TempFolder, program, run_throng, send_signal};

/// A market whose players log in and out.
const MARKET: &str = r#"Scenario(name: "market", duration_s: 600000,
    scenes: [Scene(name: "a", map: Generate(Random(width_tiles: 60, height_tiles: 60, fill: 0)))],
    crowds: [Crowd(kind: "player", count: 60, client_share: 0.2, churn_per_s: 8, behaviour: Wander(radius_m: 10))])"#;

/// Number of kills by default.
const KILLS: u64 = 6;

/// Further kills if a slow machine stored too little before the first ones.
const EXTRA_KILLS_MAX: u64 = 100;

/// Checks the invariants of a store file with plain SQL. Returns the number of players.
fn audit(file: &Path, acknowledged: &BTreeMap<u64, u64>) -> u64 {
    let connection = Connection::open(file).unwrap();
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'player'";
    let tables: i64 = connection.query_row(tables, [], |row| row.get(0)).unwrap();
    if tables == 0 {
        assert!(acknowledged.is_empty());
        return 0;
    }
    let check = "PRAGMA integrity_check";
    let check: String = connection.query_row(check, [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    let mut players = connection
        .prepare("SELECT player, revision FROM player")
        .unwrap();
    let players = players
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    let revisions: BTreeMap<i64, i64> = players.map(Result::unwrap).collect();
    for (&player, &revision) in acknowledged {
        let stored = revisions.get(&(player as i64)).copied();
        assert!(
            stored >= Some(revision as i64),
            "player {player}: {revision} was acknowledged, found {stored:?}"
        );
    }
    let saved: BTreeSet<i64> = revisions
        .iter()
        .filter(|(_, revision)| **revision > 0)
        .map(|(player, _)| *player)
        .collect();
    let sum = "SELECT count(*), total(value) FROM value JOIN attribute ON attribute = id WHERE name = 'coins'";
    let (owners, coins): (i64, f64) = connection
        .query_row(sum, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap_or((0, 0.0));
    assert_eq!(owners as usize, saved.len());
    assert_eq!(
        coins,
        f64::from(START_COINS) * owners as f64,
        "coins of {owners} players"
    );
    let wares = "SELECT value FROM value JOIN attribute ON attribute = id WHERE name = 'wares'";
    let mut wares = connection.prepare(wares).unwrap();
    let wares = wares.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let mut found: Vec<String> = Vec::new();
    for owned in wares {
        found.extend(owned.unwrap().split_whitespace().map(str::to_owned));
    }
    found.sort_unstable();
    let ware = |&player: &i64| (0..START_ITEMS).map(move |nth| format!("{player:x}.{nth}"));
    let mut expected: Vec<String> = saved.iter().flat_map(ware).collect();
    expected.sort_unstable();
    assert_eq!(
        found, expected,
        "every ware exists once, and belongs to a player"
    );
    saved.len() as u64
}

/// Checks that every lease in a file can be recovered: at once by the same server, and after its expiry by another one. Returns their
/// number.
fn count_recoverable_leases(file: &Path, folder: &TempFolder) -> usize {
    let source = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let held =
        "SELECT player, epoch, expires_ms FROM player WHERE server IS NOT NULL ORDER BY player";
    let mut held = source.prepare(held).unwrap();
    let held = held
        .query_map([], |row| {
            let number = |column| row.get::<_, i64>(column).map(|number| number as u64);
            Ok((PlayerId(number(0)?), number(1)? + 1, number(2)?))
        })
        .unwrap();
    let held: Vec<(PlayerId, u64, u64)> = held.map(Result::unwrap).collect();
    let players: Vec<PlayerId> = held.iter().map(|lease| lease.0).collect();
    let first_ms = held.iter().map(|lease| lease.2).min().unwrap_or_default();
    let last_ms = held.iter().map(|lease| lease.2).max().unwrap_or_default();
    let next: Vec<Option<u64>> = held.iter().map(|lease| Some(lease.1)).collect();
    let copy = folder.path("copy.db");
    let claims = |name: &str, now_ms: u64| {
        let _ = fs::remove_file(&copy);
        source.execute("VACUUM INTO ?1", [&copy]).unwrap();
        let mut store = SqliteStore::open(Path::new(&copy)).unwrap();
        let take_over = RegistrationTerms {
            take_over: true,
            ..RegistrationTerms::default()
        };
        let server = store.register_server(name, take_over).unwrap();
        let terms = ClaimTerms {
            at_ms: Some(now_ms),
            lease_ms: 1_000,
            grace_ms: 5_000,
        };
        let claimed = store.claim(&server, &players, terms).unwrap();
        let epochs = claimed.into_iter().map(|claimed| match claimed {
            ClaimResult::Granted { epoch, .. } => Some(epoch),
            _ => None,
        });
        epochs.collect::<Vec<Option<u64>>>()
    };
    assert_eq!(
        claims("other", first_ms),
        vec![None; held.len()],
        "a lease is held until it expires"
    );
    assert_eq!(
        claims("other", last_ms + 5_001),
        next,
        "an expired lease is granted"
    );
    assert_eq!(claims("throng", 0), next, "a server gets its own leases");
    held.len()
}

/// Reads the lines of `--acknowledged`, without the last one if it is incomplete.
fn read_acknowledged(file: &str, into: &mut BTreeMap<u64, u64>) {
    let text = fs::read_to_string(file).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    for entry in whole.lines().flat_map(|line| line.split(' ').skip(1)) {
        let (player, revision) = entry.split_once('=').unwrap();
        let known = into.entry(player.parse().unwrap()).or_default();
        *known = revision.parse::<u64>().unwrap().max(*known);
    }
}

/// The program, or the build that `THRONG_PROGRAM` names.
fn killed_program(arguments: &[&str]) -> Command {
    match std::env::var_os("THRONG_PROGRAM") {
        Some(path) => {
            let mut command = Command::new(path);
            command.args(arguments).env("NO_COLOR", "1");
            command
        }
        None => program(arguments),
    }
}

#[test]
fn killed_server_loses_and_doubles_no_acknowledged_save() {
    let kills = std::env::var("THRONG_KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok());
    let folder = TempFolder::new();
    let market = folder.write("market.ron", MARKET);
    let scenario = if kills.is_some() { "town" } else { &market };
    let (db, log) = (folder.path("players.db"), folder.path("acknowledged"));
    let mut acknowledged = BTreeMap::new();
    let (mut stored, mut leases, mut random) = (0, 0, 0x9e37_79b9_7f4a_7c15_u64);
    let kills: u64 = kills.unwrap_or(KILLS);
    for kill in 0..kills + EXTRA_KILLS_MAX {
        if kill >= kills && stored > 20 && leases > 20 && acknowledged.len() > 20 {
            break;
        }
        let _ = fs::remove_file(&log);
        let run = [
            "run",
            scenario,
            "--duration",
            "100h",
            "--store",
            &db,
            "--take-over",
            "--acknowledged",
            &log,
            "--threads",
            "1",
            "--quiet",
        ];
        let mut child = killed_program(&run)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let most_ms = if kill % 4 == 0 { 100 } else { 2_500 };
        std::thread::sleep(Duration::from_millis((random >> 33) % most_ms));
        let ended = child.try_wait().unwrap();
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(ended.is_none() && errors.is_empty(), "{ended:?}: {errors}");
        read_acknowledged(&log, &mut acknowledged);
        if Path::new(&db).exists() {
            let now = audit(Path::new(&db), &acknowledged);
            assert!(now >= stored, "{stored} players were stored, then {now}");
            stored = now;
            if stored > 0 {
                leases += count_recoverable_leases(Path::new(&db), &folder);
            }
        }
    }
    assert!(
        stored > 20 && leases > 20 && acknowledged.len() > 20,
        "{stored} stored, {leases} leases, {} acknowledged",
        acknowledged.len()
    );
    // The server also stops normally, after which no player is leased.
    let output = run_throng(&[
        "run",
        scenario,
        "--ticks",
        "60",
        "--store",
        &db,
        "--take-over",
        "--quiet",
        "--no-timing",
    ]);
    assert!(output.code < 2 && output.err.is_empty(), "{}", output.err);
    let output = run_throng(&["db", "check", &db, "--json"]);
    assert_eq!(output.code, 0, "{}", output.out);
    assert_eq!(output.json()["leases"], serde_json::json!({}));
    audit(Path::new(&db), &acknowledged);
}

/// Players whose objects are removed and replaced, without a logout.
const WATCHERS: &str = r#"Scenario(name: "watchers", duration_s: 60,
    scenes: [Scene(name: "a", map: Generate(Random(width_tiles: 60, height_tiles: 60, fill: 0)))],
    crowds: [
        Crowd(tag: "people", kind: "player", count: 60, client_share: 0.2, churn_per_s: 2, behaviour: Wander(radius_m: 10)),
        Crowd(tag: "dogs", kind: "npc", count: 5, behaviour: Wander(radius_m: 10)),
    ],
    script: [
        Every(t_s: 2, run: Spectate(tag: "people", count: 20, follow: "dogs")),
        Every(t_s: 2, from_s: 3, run: Release(tag: "people", count: 15)),
    ])"#;

#[test]
fn spectator_keeps_its_inventory() {
    let folder = TempFolder::new();
    let (scenario, db) = (
        folder.write("watchers.ron", WATCHERS),
        folder.path("players.db"),
    );
    let arguments = [
        "run",
        &scenario,
        "--ticks",
        "150",
        "--store",
        &db,
        "--quiet",
        "--no-timing",
    ];
    for _ in 0..2 {
        let output = run_throng(&arguments);
        assert!(output.code == 0 && output.err.is_empty(), "{}", output.err);
        assert_eq!(audit(Path::new(&db), &BTreeMap::new()), 60);
    }
}

#[test]
fn full_disk_loses_no_acknowledged_save() {
    let folder = TempFolder::new();
    let market = folder.write("market.ron", MARKET);
    let (db, log) = (folder.path("players.db"), folder.path("acknowledged"));
    // The file size limit is 512 KiB. The first saves fit; later writes fail with an error, because the signal is ignored.
    let limited = "trap '' XFSZ; ulimit -f 1024; exec \"$0\" \"$@\"";
    let mut process = Command::new("sh")
        .args(["-c", limited, env!("CARGO_BIN_EXE_throng")])
        .args(["run", &market, "--duration", "100h", "--quiet"])
        .args(["--store", &db, "--acknowledged", &log])
        .env_remove("RUST_LOG")
        .env("NO_COLOR", "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(process.stderr.take().unwrap()).lines();
    let is_save_warning =
        |line: &io::Result<String>| matches!(line, Ok(line) if line.contains("saves wait"));
    let warning = errors
        .find(is_save_warning)
        .expect("the log reports waiting saves")
        .unwrap();
    assert!(warning.contains("players.db"), "{warning}");
    send_signal(&process, "-INT");
    let left: Vec<String> = errors.map_while(Result::ok).collect();
    let status = process.wait().unwrap();
    assert_eq!(status.code(), Some(130), "{left:?}");
    let mut acknowledged = BTreeMap::new();
    read_acknowledged(&log, &mut acknowledged);
    assert!(acknowledged.len() > 20, "{}", acknowledged.len());
    assert!(audit(Path::new(&db), &acknowledged) >= 60);
}

#[test]
fn audit_detects_extra_coins_doubled_items_and_lost_saves() {
    let folder = TempFolder::new();
    let market = folder.write("market.ron", MARKET);
    let db = folder.path("players.db");
    let output = run_throng(&[
        "run",
        &market,
        "--ticks",
        "60",
        "--store",
        &db,
        "--no-timing",
    ]);
    assert_eq!(output.code, 0, "{}", output.err);
    let db = Path::new(&db);
    assert!(audit(db, &BTreeMap::new()) >= 50);
    let spoilt = |change: &str| {
        let copy = folder.path("spoilt.db");
        fs::copy(db, &copy).unwrap();
        let connection = Connection::open(&copy).unwrap();
        assert_eq!(connection.execute(change, []).unwrap(), 1, "{change}");
        drop(connection);
        let seen = std::panic::catch_unwind(|| {
            audit(Path::new(&copy), &BTreeMap::from([(4_294_967_296, 1)]))
        });
        assert!(seen.is_err(), "{change}");
    };
    let one = "player = 4294967296";
    spoilt(&format!(
        "UPDATE value SET value = value + 1 WHERE {one} AND attribute = 900"
    ));
    spoilt(&format!(
        "UPDATE value SET value = value || ' 100000000.0' WHERE {one} AND attribute = 901"
    ));
    spoilt(&format!("UPDATE player SET revision = 0 WHERE {one}"));
}

#[test]
fn players_persist_between_deterministic_runs() {
    let folder = TempFolder::new();
    let market = folder.write("market.ron", MARKET);
    let play = |name: &str, threads: &str| {
        let (db, hashes) = (folder.path(&format!("{name}.db")), folder.path(name));
        for _ in 0..2 {
            let output = run_throng(&[
                "run",
                &market,
                "--ticks",
                "100",
                "--store",
                &db,
                "--threads",
                threads,
                "--hashes",
                &hashes,
                "--no-timing",
                "--json",
            ]);
            assert_eq!(output.code, 0, "{}", output.err);
            let player_store = output.json()["player_store"].clone();
            let counted = |name: &str| player_store[name].as_u64().unwrap();
            assert!(
                counted("loads") >= 60 && counted("leases") > 0,
                "{player_store}"
            );
            assert!(
                counted("saves") >= counted("transactions"),
                "{player_store}"
            );
            assert!(counted("transactions") > 0, "{player_store}");
        }
        let output = run_throng(&["db", "dump", &db]);
        assert_eq!(output.code, 0, "{}", output.err);
        let players: Vec<serde_json::Value> = output
            .out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let values: Vec<_> = players
            .iter()
            .map(|player| (player["player"].clone(), player["values"].clone()))
            .collect();
        assert!(values.len() == 60 && players.iter().all(|player| player["lease"].is_null()));
        (fs::read_to_string(hashes).unwrap(), values)
    };
    assert_eq!(play("one", "1"), play("other", "3"));
}

#[test]
fn invalid_store_is_refused_by_name_before_the_run() {
    let folder = TempFolder::new();
    let text = folder.write(
        "notes.db",
        "no database at all, but long enough to be read as one\n".repeat(40),
    );
    for arguments in [
        &["run", "town", "--ticks", "1", "--store", &text][..],
        &[
            "run",
            "town",
            "--ticks",
            "1",
            "--store",
            "postgres://127.0.0.1:1/a",
        ],
        &["run", "town", "--ticks", "1", "--server", "a"],
        &["db", "check", &text],
        &["db", "dump", &text],
        &["db", "migrate", &text],
        &["db", "check", "nowhere.db"],
    ] {
        let output = run_throng(arguments);
        assert_eq!(
            (output.code, output.out.as_str()),
            (2, ""),
            "{arguments:?}: {}",
            output.err
        );
        let is_named = output.err.contains("notes.db")
            || output.err.contains("nowhere.db")
            || output.err.contains("Postgres")
            || output.err.contains("--server");
        assert!(is_named, "{arguments:?}: {}", output.err);
    }
    let fresh = folder.path("fresh.db");
    let output = run_throng(&["db", "migrate", &fresh]);
    assert!(
        output.code == 0 && output.out.contains("0 → 3"),
        "{}",
        output.out
    );
    let output = run_throng(&["db", "migrate", &fresh]);
    assert!(
        output.code == 0 && output.out.contains("up to date"),
        "{}",
        output.out
    );
    let output = run_throng(&["db", "check", &fresh]);
    assert!(
        output.code == 0 && output.out.ends_with("no errors\n"),
        "{}",
        output.out
    );
}
