//! Golden hashes: the state of each built-in scenario after so many ticks, as it was when it was last meant to change.
//!
//! Whoever changes what a tick does, or a scenario, pastes the table that the failing test prints over the one below, and
//! says in the changelog why it changed.

use throng::scenario::{self, BUILT_IN};

use crate::rig::{Play, hashes};

/// Scenario, ticks, state hash after them.
const GOLDEN: [(&str, u64, &str); 8] = [
    ("town", 60, "c92aa62fd3130ebc"),
    ("siege", 140, "c9f8ee7227b79227"),
    ("boss", 60, "f674d4087ae93f53"),
    ("arena_night", 300, "3c4a63f31fceb6c5"),
    ("churn", 140, "197bfb068752242d"),
    ("auction", 60, "14e7d59a4f45055c"),
    ("royale", 60, "feec8e4bd15ea21a"),
    ("raid", 60, "e025aa0b6ee8f6e7"),
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
