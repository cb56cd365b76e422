//! Promises: clients converge, and nothing accepted is lost. Scenarios without a natural end are brought to rest and then checked.

use throng_scenario::{self as scenario, Expectation};

use crate::harness::{RunConfig, assert_expectations, run_to_end, scenario_of};

#[test]
fn churn_scenario_ends_with_equal_mirrors() {
    // Runs until the island has opened and closed; expectations for later times are removed.
    let mut loaded = scenario::load("churn").unwrap();
    let is_played = |expectation: &Expectation| {
        let (_, window) = expectation.split_window();
        window.is_none_or(|(from_s, _)| from_s < 20.0)
    };
    loaded.scenario.expect.retain(is_played);
    let report = run_to_end(
        loaded,
        RunConfig {
            ticks: 400,
            threads: 2,
            ..RunConfig::default()
        },
    );
    assert_expectations(&report);
    assert!(
        report.clients.logouts > 500 && report.sync.despawns > 1000,
        "{report:?}"
    );
    // Every session has either ended or is open; players in the login queue do not count as logged in.
    assert_eq!(
        report.clients.logins + report.sessions.login_queue,
        report.clients.logouts + report.clients.now
    );
}

#[test]
fn siege_scenario_passes_while_its_gate_changes() {
    let report = run_to_end(
        scenario::load("siege").unwrap(),
        RunConfig {
            ticks: 260,
            threads: 2,
            ..RunConfig::default()
        },
    );
    assert_expectations(&report);
}

#[test]
fn every_party_that_queued_is_accounted_for() {
    let text = r#"Scenario(name: "parties", seed: 4,
        queues: [
            Queue(mode: "arena", settings: Groups(group_size: 5, expire_after_s: 4, accept_timeout_s: 2), parties: 300, parties_per_s: 200, cancels_per_s: 60),
            Queue(mode: "yard", settings: Rooms(side_size: 3, expire_after_s: 4), parties: 60, size_weights: (3, 2, 1, 0, 0)),
            Queue(mode: "raid", settings: Groups(group_size: 50, expire_after_s: 4), parties: 9),
            Queue(mode: "duel", settings: Groups(group_size: 1, tickets_max: 50), parties: 100, size_weights: (1, 0, 0, 0, 0)),
        ],
        script: [At(t_s: 3, run: Cancel(mode: "raid", parties: 4)), At(t_s: 4, run: Queue(mode: "arena", parties: 9, size: 4))],
        expect: [TicketsConserved, MatchesAtLeast(50)],
    )"#;
    let report = run_to_end(
        scenario_of(text),
        RunConfig {
            ticks: 200,
            threads: 1,
            ..RunConfig::default()
        },
    );
    assert_expectations(&report);
    let figures = &report.matchmaking;
    assert!(figures.cancelled > 0 && figures.expired > 0, "{figures:?}");
}
