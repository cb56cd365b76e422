//! Golden hashes: the state of each built-in scenario after so many ticks, as it was when it was last meant to change.
//!
//! Whoever changes what a tick does, or a scenario, pastes the table that the failing test prints over the one below, and
//! says in the changelog why it changed.

use throng::scenario::{self, BUILT_IN};

use crate::rig::{Play, hashes};

/// Scenario, ticks, state hash after them.
const GOLDEN: [(&str, u64, &str); 9] = [
    ("town", 60, "95f9768153ce9291"),
    ("siege", 140, "aca5b79740fa3980"),
    ("boss", 60, "cd589331c07c508c"),
    ("arena_night", 300, "ba49e7bd50701654"),
    ("churn", 140, "a9b87a9ac9f45e0a"),
    ("auction", 60, "31f4f96db74e882f"),
    ("royale", 60, "b6435fe9ef4f1143"),
    ("raid", 60, "edcbe52beb7c1c71"),
    ("overload", 300, "66a6a795105746ed"),
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
        let play = Play {
            ticks,
            threads: 2,
            ..Play::default()
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
