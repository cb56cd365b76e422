//! Golden hashes: the state of each built-in scenario after so many ticks, as it was when it was last meant to change.
//!
//! Whoever changes what a tick does, or a scenario, pastes the table that the failing test prints over the one below, and
//! says in the changelog why it changed.

use throng::scenario::{self, BUILT_IN};

use crate::rig::{Play, hashes};

/// Scenario, ticks, state hash after them.
const GOLDEN: [(&str, u64, &str); 9] = [
    ("town", 60, "e9e87239fdfded93"),
    ("siege", 140, "e5541dda7dc9cfc6"),
    ("boss", 60, "68f55f195d285a2f"),
    ("arena_night", 300, "d422dd05eef22615"),
    ("churn", 140, "20405385cbf3eb34"),
    ("auction", 60, "f0a9a24f8e269fe8"),
    ("royale", 60, "25c1797b2f0d3e2a"),
    ("raid", 60, "4e455138b9b9d566"),
    ("overload", 300, "0000000000000000"),
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
