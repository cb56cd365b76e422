//! Promise: a server whose ticks take too long degrades in steps and recovers completely; and if one of the steps has no effect, an
//! expectation of the scenario fails.

use throng::sim::LoadMeasure;
use throng_scenario::{self as scenario, Report, RunOptions, Verdict};

use crate::harness::{RunConfig, TempFolder, run_to_end, shuffle};

/// The expectations that fail in a run of this length after a change of the settings.
fn failed_expectations(
    seconds: u64,
    change: impl FnOnce(&mut throng::sim::OverloadSettings),
) -> Vec<String> {
    let mut loaded = scenario::load("overload").unwrap();
    change(&mut loaded.scenario.settings.overload);
    let play = RunConfig {
        threads: 2,
        ticks: seconds * 20,
        ..RunConfig::default()
    };
    let report = run_to_end(loaded, play);
    let broken = report.expectations.into_iter();
    let broken = broken.filter(|judged| judged.verdict == Verdict::Failed);
    broken.map(|judged| judged.text).collect()
}

#[test]
fn overload_levels_are_equal_on_any_number_of_threads() {
    let whole = |play| run_to_end(scenario::load("overload").unwrap(), play);
    let alone = RunConfig {
        threads: 1,
        ticks: 1700,
        ..RunConfig::default()
    };
    let shuffled = RunConfig {
        threads: 4,
        configure: Some(shuffle),
        argument: 3,
        ..alone
    };
    let (one, four) = (whole(alone), whole(shuffled));
    assert!(one.is_ok(), "{:#?}", one.expectations);
    assert_eq!(one.state_hash, four.state_hash);
    let figures = |report: &Report| serde_json::to_value(report.overload).unwrap();
    assert_eq!(figures(&one), figures(&four));
}

#[test]
fn overload_level_without_effect_is_found() {
    let has = |broken: &[String], what: &str| broken.iter().any(|text| text.contains(what));
    let stretched = failed_expectations(21, |settings| settings.update_doublings = 0);
    assert!(has(&stretched, "sync.deltas at most"), "{stretched:?}");
    let deferred = failed_expectations(31, |settings| settings.deferred_budget_share = 1.0);
    assert!(has(&deferred, "paths.found at most"), "{deferred:?}");
    let dilated = failed_expectations(51, |settings| settings.time_share_min = 1.0);
    assert!(
        has(&dilated, "overload.time_percent at most"),
        "{dilated:?}"
    );
    // Logins are never refused: their thresholds are out of reach.
    let admitted = failed_expectations(51, |settings| {
        (settings.enter_at.refuse, settings.enter_at.dilate) = (9.0, 9.0);
    });
    assert!(has(&admitted, "clients.logins at most"), "{admitted:?}");
    let off = failed_expectations(21, |settings| settings.measure = LoadMeasure::Off);
    assert!(has(&off, "overload.level at least 1"), "{off:?}");
}

#[test]
fn each_overload_change_is_an_event() {
    let folder = TempFolder::new();
    let events = folder.write("events.jsonl", "");
    let to = std::fs::File::create(&events).unwrap();
    let options = RunOptions {
        ticks: Some(440),
        events: Some(Box::new(std::io::BufWriter::new(to))),
        ..RunOptions::default()
    };
    let loaded = scenario::load("overload").unwrap();
    let mut run = scenario::ScenarioRun::new(loaded, options).unwrap();
    while run.step().unwrap() {}
    run.finish().unwrap();
    let text = std::fs::read_to_string(&events).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let steps: Vec<[String; 2]> = lines
        .filter(|line: &serde_json::Value| line["type"] == "overload")
        .map(|line| ["from", "to"].map(|end| line[end].as_str().unwrap().to_owned()))
        .collect();
    let expected = [
        ["normal", "reduced_updates"],
        ["reduced_updates", "deferred_work"],
    ];
    assert_eq!(steps, expected);
}
