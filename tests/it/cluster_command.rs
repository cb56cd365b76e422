//! `throng gateway`, `throng node` and `throng cluster`: errors of arguments and world files, and a whole cluster for a few seconds.
//!
//! The cluster needs `nats-server` and Postgres on this machine; without them it is skipped: `.ci/with_nats .ci/with_postgres cargo test`
//! installs them.

use std::fs;
use std::io::BufReader;
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use throng_store::testing::{Operator, postgres_url};

use crate::harness::{ProgramOutput, TempFolder, new_database, program, run_throng, wait_for_log};
use crate::inspect_page::get;

/// How long a test waits for another process: much longer than necessary on a machine without other load.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Fails unless the program refuses its input with these texts.
fn assert_refused(output: &ProgramOutput, expected: &[&str]) {
    assert_eq!(output.code, 2, "{}", output.err);
    for text in expected {
        assert!(output.err.contains(text), "{text}: {}", output.err);
    }
}

/// A file with a secret, which only its owner can read.
fn secret(folder: &TempFolder, name: &str, text: &str) -> String {
    let path = folder.write(name, text);
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&path, mode).unwrap();
    }
    path
}

#[test]
fn gateway_without_its_secrets_is_refused() {
    let folder = TempFolder::new();
    let key = secret(&folder, "cluster.key", &"0a".repeat(32));
    let run = |more: &[&str]| {
        let listen = ["gateway", "--name", "g1", "--listen", "127.0.0.1:0"];
        run_throng(&[&listen[..], more].concat())
    };
    assert_refused(&run(&[]), &["--bus <URL>", "--cluster-key <FILE>"]);
    let short = secret(&folder, "short.key", "0a0a");
    let local = "nats://127.0.0.1:1";
    let output = run(&["--bus", local, "--cluster-key", &short]);
    assert_refused(
        &output,
        &["--cluster-key", "short.key", "64 hexadecimal digits"],
    );
    let missing = folder.path("missing.key");
    let output = run(&["--bus", local, "--cluster-key", &missing]);
    assert_refused(&output, &["--cluster-key: ", "missing.key"]);
    let output = run(&["--bus", "nats://10.0.0.7:4222", "--cluster-key", &key]);
    assert_refused(&output, &["--bus", "credentials are required"]);
    let user = secret(&folder, "user", "throng: hidden");
    let output = run(&[
        "--bus",
        local,
        "--bus-user-file",
        &user,
        "--cluster-key",
        &key,
    ]);
    assert_refused(&output, &["--bus-user-file: ", "USER:PASSWORD"]);
    assert!(!output.err.contains("hidden"), "{}", output.err);
    // No server listens there.
    let output = run(&["--bus", local, "--cluster-key", &key]);
    assert_refused(&output, &["--bus", "127.0.0.1 not reached"]);
    let output = run_throng(&[
        "gateway",
        "--name",
        "g 1",
        "--listen",
        "127.0.0.1:0",
        "--bus",
        local,
        "--cluster-key",
        &key,
    ]);
    assert_refused(&output, &["--name", "letters, digits"]);
    let output = run_throng(&[
        "gateway",
        "--name",
        "g1",
        "--listen",
        "0.0.0.0:0",
        "--bus",
        local,
        "--cluster-key",
        &key,
    ]);
    assert_refused(&output, &["not a loopback address", "--key FILE"]);
}

#[test]
fn node_with_a_file_as_its_store_or_a_wrong_world_is_refused() {
    let folder = TempFolder::new();
    let key = secret(&folder, "cluster.key", &"0a".repeat(32));
    let run = |world: &str, store: &str| {
        let bus = ["--bus", "nats://127.0.0.1:1", "--cluster-key", &*key];
        let own = ["node", world, "--name", "n1", "--store", store];
        run_throng(&[&own[..], &bus].concat())
    };
    let output = run("three_towns", "players.db");
    assert_refused(&output, &["expected a Postgres server", "players.db"]);
    let store = "postgres://throng@127.0.0.1:1/game";
    let output = run("four_towns", store);
    assert_refused(&output, &["four_towns", "three_towns"]);
    let text = "World(\n    start: \"a\", start_at_m: (5, 5),\n    scenes: [\n        Scene(name: \"a\", size_m: (20, 20), portals: [\n            Portal(at_m: (15, 10), radius_m: 2, to: \"moon\", arrive_at_m: (5, 5)),\n        ]),\n    ],\n)";
    let world = folder.write("w.ron", text);
    let output = run(&world, store);
    assert_refused(&output, &["w.ron:5:53", "no scene has that name", "^^^^^^"]);
    let world = folder.write("w2.ron", "World(start: \"a\", size: 3)");
    assert_refused(&run(&world, store), &["w2.ron:1:", "size"]);
    // The world is valid, and no server listens at the address of the store.
    assert_refused(&run("three_towns", store), &["--store"]);
}

#[test]
fn status_and_drain_name_the_store_that_they_cannot_read() {
    for arguments in [
        &[
            "cluster",
            "status",
            "--store",
            "postgres://throng:hidden@127.0.0.1:1/game",
        ][..],
        &[
            "cluster",
            "drain",
            "n1",
            "--store",
            "postgres://throng:hidden@127.0.0.1:1/game",
        ],
    ] {
        let output = run_throng(arguments);
        assert_refused(&output, &["--store", "127.0.0.1"]);
        assert!(!output.err.contains("hidden"), "{}", output.err);
    }
    let output = run_throng(&["cluster", "demo", "--nodes", "0"]);
    assert_refused(&output, &["1..=16"]);
}

#[test]
fn status_page_without_its_token_or_its_address_is_refused() {
    let folder = TempFolder::new();
    let short = secret(&folder, "page.token", "abc");
    let store = ["--store", "postgres://throng@127.0.0.1:1/game"];
    let run = |more: &[&str]| run_throng(&[&["cluster", "status"], &store[..], more].concat());
    let output = run(&["--serve-token-file", &short]);
    assert_refused(&output, &["--serve <ADDR:PORT>"]);
    let output = run(&["--serve", "127.0.0.1:0", "--json"]);
    assert_refused(&output, &["--json", "--serve"]);
    let output = run(&["--tls-certificate", &short, "--tls-key", &short]);
    assert_refused(&output, &["--tls-certificate", "--serve"]);
    // No server listens there.
    let output = run(&["--serve", "127.0.0.1:0"]);
    assert_refused(&output, &["--store", "127.0.0.1"]);
}

/// The state of the page, as soon as it fulfils a condition.
fn page_state(address: SocketAddr, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let started = Instant::now();
    loop {
        let (status, body) = get(address, "/cluster.json");
        assert_eq!(status, 200, "{body}");
        let state = serde_json::from_str(&body).unwrap();
        if is_wanted(&state) {
            return state;
        }
        assert!(started.elapsed() < TIMEOUT, "{state}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Nodes of an older version that run cannot open updated tables again.
#[test]
fn status_and_drain_leave_missing_and_older_tables_as_they_are() {
    let Some(url) = postgres_url() else { return };
    let url = new_database(&url);
    let check = |expected: &[&str]| {
        for arguments in [&["cluster", "status"][..], &["cluster", "drain", "n1"]] {
            let output = run_throng(&[arguments, &["--store", &*url]].concat());
            assert_refused(&output, expected);
        }
    };
    check(&["there are no tables yet", "throng db migrate"]);
    let rows = Operator::new(&url);
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'throng'";
    assert_eq!(rows.query::<i64>(tables), [0]);
    assert_eq!(run_throng(&["db", "migrate", &url]).code, 0);
    rows.execute("UPDATE throng.store_version SET version = version - 1");
    check(&["is older than", "throng db migrate"]);
    rows.execute("UPDATE throng.store_version SET version = version + 1");
    assert_eq!(run_throng(&["cluster", "status", "--store", &url]).code, 0);
}

/// The program reads the tables again and again, and keeps the last state when the database is gone.
#[cfg(unix)]
#[test]
fn status_page_shows_rows_and_outlives_its_store() {
    let Some(url) = postgres_url() else { return };
    let server = Operator::new(&url);
    let url = new_database(&url);
    let (_, database) = url.rsplit_once('/').unwrap();
    assert_eq!(run_throng(&["db", "migrate", &url]).code, 0);
    let arguments = ["cluster", "status", "--serve", "127.0.0.1:0", "--store"];
    let mut command = program(&[&arguments[..], &[&*url]].concat());
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    let link = wait_for_log(&mut output, "cluster page: http://");
    let address = link.split("http://").nth(1).unwrap();
    let address: SocketAddr = address.trim().trim_end_matches('/').parse().unwrap();

    let (status, page) = get(address, "/");
    assert_eq!(status, 200);
    assert!(page.contains("cluster.js"), "{page}");
    assert_eq!(get(address, "/nodes").0, 404);
    assert_eq!(get(address, "/cluster.json?rows=1").0, 400);
    assert_eq!(page_state(address, |_| true)["cluster"]["nodes_total"], 0);

    // The heartbeat is in time for an hour.
    let rows = Operator::new(&url);
    rows.execute(
        "SET search_path TO throng;
         INSERT INTO cluster_node (node, name, run, heartbeat_ms, load, is_dead) VALUES
            (0, '<b>n1</b>', 1, cluster_now_ms(NULL) + 3600000, 9, FALSE), (1, 'n2', 1, 0, 0, TRUE);
         INSERT INTO cluster_scene (name, specification, node, run, epoch) VALUES ('town', '', 0, 1, 3), ('cave', '', NULL, NULL, 0);
         INSERT INTO cluster_player (player, node, run, is_adopted, given_by, given_ms) VALUES
            (1, 0, 1, TRUE, NULL, 0), (-9223372036854775808, 0, 1, FALSE, 1, cluster_now_ms(NULL));
         INSERT INTO cluster_report (node, run, reported_ms, scenes, players, gateways, connected, routed) VALUES
            (0, 1, cluster_now_ms(NULL) + 3600000, '{town}', '{7}', '{<i>g1</i>}', '{9}', '{8}');",
    );
    let state = page_state(address, |state| state["cluster"]["nodes_total"] == 2);
    assert_eq!(state["error"], Value::Null);
    let cluster = &state["cluster"];
    let node = json!({
        "name": "<b>n1</b>", "state": "up", "heartbeat_age_ms": 0, "load": 9, "players": 2, "scenes": 1,
    });
    assert_eq!(cluster["nodes"][0], node);
    assert_eq!(cluster["nodes"][1]["state"], "gone");
    let cave = json!({
        "name": "cave", "node": null, "is_running": false, "pinned_to": null, "epoch": 0, "players": null,
    });
    assert_eq!(cluster["scenes"][0], cave);
    assert_eq!(cluster["scenes"][1]["players"], 7);
    let gateway = json!({
        "name": "<i>g1</i>", "clients": 9, "routes": [{ "node": "<b>n1</b>", "clients": 8 }], "routes_total": 1,
    });
    assert_eq!(cluster["gateways"], json!([gateway]));
    assert_eq!(cluster["gateways_total"], 1);
    assert_eq!(cluster["scenes"][1]["node"], "<b>n1</b>");
    let hand_off = &cluster["hand_offs"][0];
    assert_eq!(hand_off["player"], "9223372036854775808");
    let (from, to) = (&hand_off["from"], &hand_off["to"]);
    assert_eq!((from, to), (&json!("n2"), &json!("<b>n1</b>")));
    assert_eq!(cluster["hand_offs_total"], 1);

    server.execute(&format!("DROP DATABASE {database} WITH (FORCE)"));
    let state = page_state(address, |state| state["error"] != Value::Null);
    let error = state["error"].as_str().unwrap();
    assert!(error.contains("--store"), "{error}");
    assert_eq!(state["cluster"]["nodes"][0]["name"], "<b>n1</b>");

    crate::harness::send_signal(&process, "-INT");
    assert!(process.wait().unwrap().success());
}

/// Runs the demo; `None` if a server is missing here.
fn demo(arguments: &[&str]) -> Option<ProgramOutput> {
    let output = run_throng(&[&["cluster", "demo"], arguments].concat());
    let is_missing = output.code == 2 && output.err.contains("is missing");
    if is_missing && std::env::var_os("THRONG_NATS_SERVER").is_none() {
        return None;
    }
    Some(output)
}

/// The number before a text in the output.
fn number_before(text: &str, output: &ProgramOutput) -> u64 {
    let before = output.out.split(text).next().unwrap();
    let word = before.split_whitespace().next_back().unwrap();
    word.parse()
        .unwrap_or_else(|_| panic!("{text}: {}", output.out))
}

#[test]
fn demo_hands_players_off_and_loses_no_gold() {
    let Some(output) = demo(&[
        "--nodes",
        "2",
        "--gateways",
        "2",
        "--clients",
        "8",
        "--seconds",
        "8",
    ]) else {
        return;
    };
    assert_eq!(output.code, 0, "{}\n{}", output.out, output.err);
    assert!(output.out.lines().all(|line| line.chars().count() <= 80));
    assert!(
        output.out.contains("8 of 8 in the world at the end"),
        "{}",
        output.out
    );
    assert!(
        output
            .out
            .contains("800 of 800 in the store; 8 of 8 players saved"),
        "{}",
        output.out
    );
    // On a quiet machine, a player that walks for eight seconds has been in two portals.
    let changes =
        number_before(" between nodes", &output) + number_before(" scene changes", &output);
    assert!(changes >= 1, "{}", output.out);
}

#[cfg(unix)]
#[test]
fn demo_survives_the_kill_of_each_process() {
    let Some(output) = demo(&[
        "--nodes",
        "2",
        "--gateways",
        "2",
        "--clients",
        "6",
        "--kill",
    ]) else {
        return;
    };
    assert_eq!(output.code, 0, "{}\n{}", output.out, output.err);
    for name in ["n1", "n2", "g1", "g2", "NATS", "Postgres"] {
        assert!(
            output.out.contains(&format!("killed {name}")),
            "{}",
            output.out
        );
    }
    assert!(
        output
            .out
            .contains("600 of 600 in the store; 6 of 6 players saved"),
        "{}",
        output.out
    );
}
