//! Golden hashes: the state of each built-in scenario after so many ticks, as it was when it was last meant to change.
//!
//! Whoever changes what a tick does, or a scenario, pastes the table that the failing test prints over the one below, and
//! says in the changelog why it changed.

use throng::scenario::{self, BUILT_IN};

use crate::rig::{Play, hashes};

/// Scenario, ticks, state hash after them.
const GOLDEN: [(&str, u64, &str); 9] = [
    ("town", 60, "b0aaaec580efe118"),
    ("siege", 140, "6b1b21fb7bf0aef8"),
    ("boss", 60, "be269027535053b2"),
    ("arena_night", 300, "15da72d73ca88aa4"),
    ("churn", 140, "3230e95d986cd526"),
    ("auction", 60, "20b466de624002be"),
    ("royale", 60, "7ede6eca9e67b30d"),
    ("raid", 60, "5599afde86227bc6"),
    ("overload", 300, "46be54926f9f3609"),
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
