//! Golden hashes: the state hash of each built-in scenario after a number of ticks, as of its last intended change.
//!
//! After a change to a tick's work or to a scenario, set the hashes that the failing tests print, and name the reason in the commit.

use throng_scenario::BUILT_IN;

/// Scenario, number of ticks, state hash after them.
pub const GOLDEN: [(&str, u64, &str); 9] = [
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

/// Fails if the golden hash of a built-in scenario differs. `hashes` has the hash after each tick of a run.
pub fn assert_golden(name: &str, hashes: &[u64]) {
    let row = GOLDEN.into_iter().find(|(of, ..)| *of == name);
    let (_, ticks, golden) = row.expect("each built-in scenario has a row");
    let found = format!("{:016x}", hashes[ticks as usize - 1]);
    assert_eq!(
        found, golden,
        "{name}: the hash after {ticks} ticks changed. If that is intended, set it in the table of tests/it/golden.rs"
    );
}

#[test]
fn each_scenario_has_a_golden_hash() {
    assert_eq!(
        GOLDEN.map(|(name, ..)| name),
        BUILT_IN.map(|built_in| built_in.name)
    );
}
