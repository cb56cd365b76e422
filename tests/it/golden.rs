//! Golden hashes: the state hash of each built-in scenario after a number of ticks, as of its last intended change.
//!
//! After a change to a tick's work or to a scenario, replace the table below by the one that the failing test prints, and state the reason
//! in the changelog.

use throng_scenario::{self as scenario, BUILT_IN};

use crate::harness::{RunConfig, hashes};

/// Scenario, number of ticks, state hash after them.
const GOLDEN: [(&str, u64, &str); 9] = [
    ("town", 60, "e4a9b98e3592fd2a"),
    ("siege", 140, "ef76c9831f3c9a34"),
    ("boss", 60, "c7acdccfbe95e6db"),
    ("arena_night", 300, "b162160e8d7ec247"),
    ("churn", 140, "35ac2b4d8c99e728"),
    ("auction", 60, "1ceebab334170e81"),
    ("royale", 60, "ee9d6aafae5e261c"),
    ("raid", 60, "42d53a35d312e3ad"),
    ("overload", 300, "97ee180d800b10cd"),
];

#[test]
fn every_scenario_ends_in_its_golden_hash() {
    assert_eq!(
        GOLDEN.map(|(name, ..)| name),
        BUILT_IN.map(|built_in| built_in.name)
    );
    let mut table = String::new();
    let mut differs = Vec::new();
    for (name, ticks, golden) in GOLDEN {
        let play = RunConfig {
            ticks,
            threads: 2,
            ..RunConfig::default()
        };
        let last = hashes(scenario::load(name).unwrap(), play)
            .pop()
            .unwrap_or_default();
        let found = format!("{last:016x}");
        table += &format!("    (\"{name}\", {ticks}, \"{found}\"),\n");
        if found != golden {
            differs.push(name);
        }
    }
    assert!(
        differs.is_empty(),
        "the hashes of {differs:?} changed. If that is intended, replace the table by:\n{table}"
    );
}
