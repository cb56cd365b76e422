//! Matches in a cluster whose store, bus and machines fail in simulated time. A seed determines each run.

mod ledger;
mod scenarios;
mod world;

use world::{MatchCluster, MatchFigures};

use crate::simulation::faults::FaultRates;

/// Runs with faults for `faulty_ms`, then without, and checks that all tickets were matched and all players are at home.
fn play(seed: u64, rates: FaultRates, faulty_ms: u64) -> MatchFigures {
    let mut cluster = MatchCluster::new(seed, rates);
    cluster.plays = true;
    while cluster.now_ms < faulty_ms {
        cluster.step();
    }
    cluster.heal();
    let healed_ms = cluster.now_ms;
    while cluster.now_ms < healed_ms + 5_000 {
        cluster.step();
    }
    cluster.check_queue();
    // The last matches end, and their players go home.
    while cluster.now_ms < healed_ms + 16_000 {
        cluster.step();
    }
    cluster.check_homes();
    cluster.figures()
}

#[test]
fn tickets_become_matches_without_faults() {
    let figures = play(1, FaultRates::NONE, 20_000);
    assert!(figures.ended > 50, "{figures:?}");
    assert!(figures.cancelled > 10, "{figures:?}");
    assert!(figures.home > 2 * figures.ended, "{figures:?}");
    assert_eq!(figures.roles_taken, 1, "{figures:?}");
}

/// `THRONG_MATCHES=1000000 cargo test --release -p throng_cluster --test it faults_never_double` runs until that number of matches is
/// formed.
#[test]
fn faults_never_double_a_match_or_lose_a_ticket() {
    let wanted = std::env::var("THRONG_MATCHES").ok();
    let wanted = wanted.map_or(1_500, |wanted| wanted.parse().unwrap());
    let (mut sum, mut seed) = (MatchFigures::default(), 0);
    while sum.formed < wanted {
        sum += play(seed, FaultRates::ALL, 20_000);
        seed += 1;
        assert!(sum.formed >= seed, "{sum:?} in {seed} runs");
    }
    // Each kind of event has happened.
    assert!(sum.ended > 0 && sum.aborted > 0 && sum.requeued > 0 && sum.cancelled > 0);
    assert!(sum.roles_taken > seed, "{sum:?} in {seed} runs");
}

#[test]
fn matches_survive_each_fault_alone() {
    for (name, rates) in FaultRates::SINGLE {
        for seed in 100..102 {
            let figures = play(seed, rates, 15_000);
            assert!(figures.ended > 0, "{name}: {figures:?}");
        }
    }
}

#[test]
fn run_is_reproducible_by_its_seed() {
    let trace = |seed| {
        let mut cluster = MatchCluster::new(seed, FaultRates::ALL);
        cluster.plays = true;
        for _ in 0..1_000 {
            cluster.step();
        }
        (cluster.figures(), cluster.trace())
    };
    assert_eq!(trace(5), trace(5));
    assert_ne!(trace(5), trace(6));
}
