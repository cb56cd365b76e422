//! Golden hashes: the state of each built-in scenario after a number of ticks, as of its last intended change.
//!
//! After a change of a tick's work or of a scenario, paste the table printed by the failing test over the one below, and state
//! the reason in the changelog.

use throng_scenario::{self as scenario, BUILT_IN};

use crate::harness::{RunConfig, hashes};

/// Scenario, ticks, state hash after them.
const GOLDEN: [(&str, u64, &str); 9] = [
    ("town", 60, "4239f419470c9cf1"),
    ("siege", 140, "cda1c04bb77c078b"),
    ("boss", 60, "d7520958878dbdb5"),
    ("arena_night", 300, "29b17fede8d2ea4d"),
    ("churn", 140, "7776dbdcad93a4be"),
    ("auction", 60, "b514640a90656ae7"),
    ("royale", 60, "8567709aa7773ad4"),
    ("raid", 60, "5d4a664679aa3092"),
    ("overload", 300, "088dd1d8c3c5aa20"),
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
        "{differs:?} ended in another state than before. If that is meant, this is the new table:\n{table}"
    );
}
