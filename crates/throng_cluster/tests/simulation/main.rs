//! A cluster on a store and a bus that fail in all ways that networks and machines do. Each run is given by its seed.
#![allow(clippy::unwrap_used, reason = "a failed test ends")]

mod faults;
mod world;

use faults::FaultRates;
use world::{PLAYERS, SCENES, SimulatedCluster};

/// Runs with faults for so long, then without, and checks that all players are in the world again. Returns the hand-offs.
fn play(seed: u64, rates: FaultRates, faulty_ms: u64) -> u64 {
    let mut cluster = SimulatedCluster::new(seed, rates);
    while cluster.now_ms < faulty_ms {
        cluster.step();
    }
    cluster.heal();
    let healed_ms = cluster.now_ms;
    while cluster.now_ms < healed_ms + 5_000 {
        cluster.step();
    }
    cluster.check_recovery();
    cluster.handed_off()
}

#[test]
fn players_move_between_nodes_without_faults() {
    let handed_off = play(1, FaultRates::NONE, 20_000);
    assert!(handed_off > 10 * PLAYERS, "{handed_off} hand-offs");
}

/// `THRONG_HAND_OFFS=1000000 cargo test -p throng_cluster --test simulation` runs until that number of hand-offs is reached.
#[test]
fn no_fault_loses_or_doubles_a_player_or_an_item() {
    let wanted = std::env::var("THRONG_HAND_OFFS").ok();
    let wanted = wanted.map_or(5_000, |wanted| wanted.parse().unwrap());
    let (mut handed_off, mut seed) = (0, 0);
    while handed_off < wanted {
        handed_off += play(seed, FaultRates::ALL, 20_000);
        seed += 1;
        assert!(handed_off >= seed, "{handed_off} hand-offs in {seed} runs");
    }
}

#[test]
fn each_fault_alone_is_survived() {
    for (name, rates) in FaultRates::SINGLE {
        for seed in 100..103 {
            let handed_off = play(seed, rates, 15_000);
            assert!(handed_off > 0, "{name}");
        }
    }
}

#[test]
fn scenes_move_only_when_nodes_fail_or_drain() {
    let mut cluster = SimulatedCluster::new(1, FaultRates::NONE);
    while cluster.now_ms < 10_000 {
        cluster.step();
    }
    // Each was claimed once, whatever the loads have been.
    assert_eq!(cluster.scene_changes(), SCENES as u64);
    for (rates, least) in [(FaultRates::SINGLE[0].1, 2), (FaultRates::SINGLE[2].1, 5)] {
        let mut cluster = SimulatedCluster::new(1, rates);
        while cluster.now_ms < 20_000 {
            cluster.step();
        }
        let changes = cluster.scene_changes();
        assert!(changes > least * SCENES as u64, "{changes} changes");
    }
}

#[test]
fn run_is_reproducible_by_its_seed() {
    let trace = |seed| {
        let mut cluster = SimulatedCluster::new(seed, FaultRates::ALL);
        for _ in 0..1_000 {
            cluster.step();
        }
        (
            cluster.handed_off(),
            cluster.owners(),
            cluster.scene_changes(),
        )
    };
    assert_eq!(trace(5), trace(5));
    assert_ne!(trace(5), trace(6));
}
