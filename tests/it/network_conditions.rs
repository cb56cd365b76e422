//! Promise: under any network conditions mirrors equal the server at rest, and a run is equal on any number of threads.

use std::fs;

use throng_scenario::crowd::CrowdNetworkConditions;
use throng_scenario::{self as scenario, BUILT_IN, Expectation};

use crate::harness::{RunConfig, TempFolder, assert_expectations, run_throng, run_to_end};

/// Every client's connection loses, duplicates, reorders and delays packets, and has low bandwidth.
const BAD_NETWORK: CrowdNetworkConditions = CrowdNetworkConditions {
    loss: 0.2,
    duplicate: 0.1,
    reorder: 0.2,
    delay_ms: 120,
    jitter_ms: 100,
    bytes_per_s: 3_000,
    share: 1.0,
};

/// Each built-in scenario. On a perfect network, the expectations of the scenarios check their mirrors.
#[test]
fn mirrors_are_equal_at_rest_on_a_bad_network() {
    for built_in in BUILT_IN {
        let name = built_in.name;
        assert!(drops_packets(name, BAD_NETWORK), "{name}");
    }
    assert!(!drops_packets("raid", CrowdNetworkConditions::default()));
}

/// Whether a run on this network drops packets; fails if a mirror differs at its end.
fn drops_packets(name: &str, network: CrowdNetworkConditions) -> bool {
    let mut loaded = scenario::load(name).unwrap();
    loaded.scenario.network = network;
    loaded.scenario.expect = vec![Expectation::MirrorsEqual];
    let play = RunConfig {
        ticks: 120,
        threads: 2,
        ..RunConfig::default()
    };
    let report = run_to_end(loaded, play);
    assert_expectations(&report);
    report.outbox.dropped > 0
}

/// Half of the clients have a bandwidth far below their traffic, and small queues.
const LOW_BANDWIDTH: &str = r#"Scenario(
    name: "narrow", seed: 9, duration_s: 20,
    settings: (outbox: (spill_client_bytes_max: 2500)),
    scenes: [Scene(name: "yard", map: Generate(Rooms(width_tiles: 60, height_tiles: 60)), cell_m: 20, view_cap: 30)],
    crowds: [Crowd(tag: "people", kind: "player", count: 60, party_size: 3, client_share: 1, attributes_per_s: 20,
        behaviour: Wander(radius_m: 10))],
    script: [At(t_s: 15, run: SetNetwork(share: 0))],
    network: (bytes_per_s: 300, delay_ms: 60, jitter_ms: 40, share: 0.5),
    expect: [ViewsWithinCap, MirrorsEqual, TicketsConserved],
)"#;

#[test]
fn slow_consumers_are_logged_out_alike_on_any_thread_count() {
    let folder = TempFolder::new();
    let scenario = folder.write("narrow.ron", LOW_BANDWIDTH);
    let mut hashes = Vec::new();
    for threads in ["1", "3"] {
        let events = folder.path(&format!("events{threads}.jsonl"));
        let run = run_throng(&[
            "run",
            &scenario,
            "--no-timing",
            "--json",
            "--threads",
            threads,
            "--events",
            &events,
        ]);
        assert_eq!(run.code, 0, "{}{}", run.out, run.err);
        let report = run.json();
        assert!(report["outbox"]["dropped"].as_u64() > Some(0), "{report}");
        hashes.push(report["state_hash"].clone());
        let events = fs::read_to_string(events).unwrap();
        let behind = events
            .lines()
            .filter(|line| line.contains("\"reason\":\"slow_consumer\""))
            .count();
        let logins = events
            .lines()
            .filter(|line| line.contains("\"type\":\"login\""))
            .count();
        assert!(behind > 10, "{behind} fell behind");
        assert!(logins > 60 + behind / 2, "{logins} logins");
    }
    assert_eq!(hashes[0], hashes[1]);
}
