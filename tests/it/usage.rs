//! Usability of the command line: hints for typos, tables that fit a terminal, and early errors.

use std::fs;

use crate::harness::{TempFolder, run_throng};

/// A scenario with parameters, and more parties than fit in a line of the report.
const CROWDED: &str = r#"Scenario(
    name: "crowded", duration_s: 1, parameters: {"people": 40, "parties": 3000},
    scenes: [Scene(name: "a", map: Generate(Random(width_tiles: 60, height_tiles: 60, fill: 0)))],
    crowds: [Crowd(kind: "player", count: people, client_share: 0.5, messages_per_s: 2, behaviour: Wander(radius_m: 9))],
    queues: [Queue(mode: "arena", settings: Groups(group_size: 2), parties: parties)],
    expect: [TicketsConserved],
)"#;

#[test]
fn scenario_as_subcommand_gets_a_hint() {
    for (name, is_scenario) in [("square.ron", true), ("siege", true), ("runn", false)] {
        let output = run_throng(&[name]);
        assert_eq!((output.code, output.out.as_str()), (2, ""), "{name}");
        let tip = format!("tip: a scenario is played by `throng run {name}`");
        assert_eq!(output.err.contains(&tip), is_scenario, "{}", output.err);
    }
    let output = run_throng(&["runn"]);
    assert!(output.err.contains("'run'"), "{}", output.err);
}

#[test]
fn negative_number_error_names_the_expected_range() {
    for (arguments, expected) in [
        (["run", "--seed", "-1"], "expected a whole number from 0"),
        (["run", "--ticks", "-1"], "expected a whole number from 0"),
        (["run", "--duration", "-10s"], "expected a time of up to"),
        (["run", "--threads", "-2"], "-2 is not in 1..=1024"),
        (["bench", "--players", "-5"], "-5 is not in 1..="),
    ] {
        let output = run_throng(&arguments);
        assert_eq!((output.code, output.out.as_str()), (2, ""), "{arguments:?}");
        assert!(output.err.contains(expected), "{}", output.err);
        assert!(!output.err.contains("tip:"), "{}", output.err);
    }
}

#[test]
fn run_table_names_set_parameters_in_eighty_columns() {
    let folder = TempFolder::new();
    let scenario = folder.write("crowded.ron", CROWDED);
    let output = run_throng(&["run", &scenario, "--set", "people=300", "--threads", "1"]);
    assert_eq!(output.code, 0, "{}\n{}", output.out, output.err);
    let second = output.out.lines().nth(1).unwrap();
    assert_eq!(second, "parameters  parties = 3000, people = 300");
    for line in output.out.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let words: Vec<&str> = output.out.split_whitespace().collect();
    let words = words.join(" ");
    assert!(words.contains("ok parties conserved: "), "{words}");
    assert!(words.ends_with("path requests"), "{words}");
    let last = output.out.lines().last().unwrap();
    assert!(
        last.starts_with("        "),
        "the continuation line is indented: {last:?}"
    );
}

#[test]
fn unwritable_output_is_reported_before_the_work() {
    let folder = TempFolder::new();
    let scenario = folder.write("crowded.ron", CROWDED);
    let hashes = folder.path("hashes");
    let lost = folder.path("absent/crowd.png");
    let output = run_throng(&["run", &scenario, "--hashes", &hashes, "--picture", &lost]);
    assert_eq!(
        (output.code, output.out.as_str()),
        (2, ""),
        "{}",
        output.err
    );
    assert!(output.err.contains("could not create `"), "{}", output.err);
    assert!(fs::metadata(&hashes).is_err(), "no tick was run");
    let existing = folder.write("kept.png", "kept");
    let output = run_throng(&[
        "run",
        &scenario,
        "--set",
        "nobody=1",
        "--picture",
        &existing,
    ]);
    assert_eq!(output.code, 2, "{}", output.err);
    assert_eq!(fs::read_to_string(&existing).unwrap(), "kept");
}
