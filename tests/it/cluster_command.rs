//! `throng gateway`, `throng node` and `throng cluster`: errors of arguments and world files, and a whole cluster for a few seconds.
//!
//! The cluster needs `nats-server` and Postgres on this machine; without them it is skipped: `.ci/with_nats .ci/with_postgres cargo test`
//! installs them.

use std::fs;

use crate::harness::{ProgramOutput, TempFolder, run_throng};

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
    assert_refused(&output, &["short.key", "64 hexadecimal digits"]);
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
    assert_refused(&output, &["USER:PASSWORD"]);
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
    // A player that walks for eight seconds has been in two portals.
    let changes =
        number_before(" between nodes", &output) + number_before(" scene changes", &output);
    assert!(changes >= 8, "{}", output.out);
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
