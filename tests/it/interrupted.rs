//! Promise: an interrupted run or bench reports the interruption with its results so far, and checks no expectation or target.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{ProgramOutput, TempFolder, program, send_signal};

/// A run that takes far too long to end.
const ENDLESS_SCENARIO: &str = r#"Scenario(name: "endless", duration_s: 600000,
    scenes: [Scene(name: "a", map: Generate(Random(width_tiles: 20, height_tiles: 20, fill: 0)))],
    crowds: [Crowd(count: 2)], expect: [NoObjectOnBlockedTile, MatchesAtLeast(1)])"#;

/// Runs the program for some hundred ticks, and sends a signal.
fn run_and_signal(signal: &str, arguments: &[&str]) -> ProgramOutput {
    let folder = TempFolder::new();
    let (scenario, hashes) = (
        folder.write("endless.ron", ENDLESS_SCENARIO),
        folder.path("hashes"),
    );
    let run = ["run", &scenario, "--threads", "1", "--hashes", &hashes];
    let mut command = program(&[&run, arguments].concat());
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the program starts");
    let started = Instant::now();
    // The first hashes reach the file when the writer's buffer is full, long after the program has started to handle signals.
    while fs::metadata(&hashes).map_or(0, |file| file.len()) == 0 {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "no tick completed in time"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    send_signal(&child, signal);
    let output = ProgramOutput::from(child.wait_with_output().expect("the program ends"));
    let written = fs::read_to_string(&hashes).unwrap();
    assert!(written.ends_with('\n') && written.lines().count() > 100);
    output
}

/// Starts to measure the tick, and interrupts it.
fn bench_and_signal(arguments: &[&str]) -> ProgramOutput {
    let mut command = program(&[&["bench", "tick", "nav", "-v"], arguments].concat());
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut err = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut log = String::new();
    // This line is logged after the signal handler is installed.
    while !log.contains("benchmark started") {
        let read = err.read_line(&mut log).expect("the output is UTF-8");
        assert!(read > 0, "the program ended: {log}");
    }
    send_signal(&child, "-INT");
    let mut output = ProgramOutput::from(child.wait_with_output().expect("the program ends"));
    err.read_to_string(&mut log).expect("the output is UTF-8");
    output.err = log;
    output
}

#[test]
fn interrupted_bench_says_so_and_has_no_largest_crowd() {
    let output = bench_and_signal(&["--threads", "1"]);
    assert_eq!(output.code, 130, "{}", output.err);
    assert!(!output.out.contains("largest crowd"), "{}", output.out);
    assert_eq!(
        output.out.lines().last(),
        Some("interrupted after 0 of 2 systems: targets of `tick` not checked")
    );
    let output = bench_and_signal(&["--threads", "1", "--json"]);
    assert_eq!(output.code, 130, "{}", output.err);
    let findings = output.json();
    let stopped = &findings["interrupted"];
    assert_eq!(
        (
            &stopped["system"],
            &stopped["systems_done"],
            &stopped["systems"]
        ),
        (&Value::from("tick"), &Value::from(0), &Value::from(2))
    );
    let rows = findings["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["system"] != "nav"), "{rows:?}");
    assert!(rows.iter().all(|row| row["case"] != "largest crowd"));
}

#[test]
fn interrupted_run_says_so_and_checks_nothing() {
    let output = run_and_signal("-INT", &["--json"]);
    assert_eq!(output.code, 130, "{}", output.err);
    let report = output.json();
    assert!(report["interrupted"].as_u64() > Some(100), "{report:#}");
    assert_eq!(report["interrupted"], report["ticks"]);
    let expectations = report["expectations"].as_array().unwrap();
    assert_eq!(expectations.len(), 2);
    for judged in expectations {
        assert_eq!(
            (&judged["verdict"], &judged["passed"]),
            (&Value::from("not_checked"), &Value::Null)
        );
    }
}

#[test]
fn terminated_run_has_exit_code_143() {
    let output = run_and_signal("-TERM", &[]);
    assert_eq!(output.code, 143, "{}", output.err);
    let last = output.out.lines().last().unwrap();
    assert!(
        last.starts_with("interrupted after tick ")
            && last.ends_with(" of 12000000: expectations not checked"),
        "{}",
        output.out
    );
    assert!(
        output
            .out
            .contains("not checked: nobody on a blocked tile: interrupted")
    );
    let quiet = run_and_signal("-TERM", &["--quiet"]);
    assert_eq!((quiet.code, quiet.out.as_str()), (143, ""));
    assert!(
        quiet.err.starts_with("interrupted after tick "),
        "{}",
        quiet.err
    );
}
