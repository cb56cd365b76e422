//! Golden hashes: the state of each built-in scenario after so many ticks, as it was when it was last meant to change.
//!
//! Whoever changes what a tick does, or a scenario, pastes the table that the failing test prints over the one below, and
//! says in the changelog why it changed.

use throng::scenario::{self, BUILT_IN};

use crate::rig::{Play, hashes};

/// Scenario, ticks, state hash after them.
const GOLDEN: [(&str, u64, &str); 9] = [
    ("town", 60, "008360041068a638"),
    ("siege", 140, "1d2a7265213cb82b"),
    ("boss", 60, "d68e042e6202b813"),
    ("arena_night", 300, "92f222a281f357d9"),
    ("churn", 140, "f3f1aee81b5b23f0"),
    ("auction", 60, "5036a9900a9cf40e"),
    ("royale", 60, "dd38284febd556f9"),
    ("raid", 60, "55d887ed27ef1e29"),
    ("overload", 300, "78a1d0ab31a32cfa"),
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
