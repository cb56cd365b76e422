//! `throng bench` as used by people and scripts: its output, comparisons and errors.

use std::fs;

use serde_json::Value;

use crate::harness::{TempFolder, run_throng};

/// The fields of every row.
const FIELDS: [&str; 19] = [
    "system",
    "case",
    "description",
    "value",
    "unit",
    "spread",
    "reference",
    "reference_value",
    "reference_spread",
    "ratio",
    "compared",
    "results_agree",
    "target",
    "meets_target",
    "more_is_better",
    "baseline_ratio",
    "baseline_spread",
    "baseline_best_ratio",
    "is_within_spread",
];

/// The rows of a run. Checks that each is unique and has a description.
fn rows(findings: &Value) -> &[Value] {
    let rows = findings["rows"].as_array().unwrap();
    let mut cases = Vec::new();
    for row in rows {
        for field in FIELDS {
            assert!(row.get(field).is_some(), "{field} in {row}");
        }
        let about = row["description"].as_str().unwrap();
        assert!(about.len() > 20 && about.ends_with('.'), "{row}");
        let case = (&row["system"], &row["case"]);
        assert!(!cases.contains(&case), "{case:?} is not unique");
        cases.push(case);
    }
    rows
}

#[test]
fn bench_names_its_machine_and_compares_with_a_baseline() {
    let folder = TempFolder::new();
    let first = run_throng(&["bench", "outbox", "--quick", "--json"]);
    assert_eq!((first.code, first.err.as_str()), (0, ""));
    let mut findings = first.json();
    assert!(findings["interrupted"].is_null());
    let machine = &findings["machine"];
    for field in ["throng", "cpu", "os", "date"] {
        assert!(
            machine[field].as_str().is_some_and(|text| !text.is_empty()),
            "{machine}"
        );
    }
    assert!(machine["cores"].as_u64() >= Some(1) && machine["threads"].as_u64() >= Some(1));
    let all = rows(&findings);
    assert!(
        all.iter()
            .any(|row| row["results_agree"] == true && row["ratio"].is_number())
    );
    assert!(
        all.iter()
            .any(|row| row["spread"]["repeats"].as_u64() > Some(1))
    );
    // Targets hold for the machine on which they were set; without the flag they are not checked.
    assert!(
        all.iter()
            .all(|row| row["meets_target"].is_null() && row["target"].is_null())
    );
    for kernel in ["core", "memory"] {
        let is_kernel = |row: &&Value| row["system"] == "calibration" && row["case"] == kernel;
        let row = all.iter().find(is_kernel).unwrap();
        assert!(
            row["value"].as_f64() > Some(0.0) && row["spread"].is_object(),
            "{row}"
        );
    }
    // An earlier run on another machine, in which one row took half as long.
    let old = all[0]["value"].as_f64().unwrap();
    let case = all[0]["case"].as_str().unwrap().to_owned();
    findings["machine"]["cpu"] = "abacus".into();
    findings["rows"][0]["value"] = (old / 2.0).into();
    let baseline = folder.write("before.json", findings.to_string());
    let page = folder.path("now.html");
    let output = run_throng(&[
        "bench",
        "outbox",
        "--quick",
        "--check-targets",
        "--baseline",
        &baseline,
        "--report",
        &page,
    ]);
    let missed = output.out.contains("MISSED");
    assert_eq!(output.code, i32::from(missed), "{}", output.out);
    assert!(
        missed || output.out.contains("    ok      "),
        "{}",
        output.out
    );
    // Where a line is wrapped depends on the name of the CPU.
    let words: Vec<&str> = output.out.split_whitespace().collect();
    let text = words.join(" ");
    assert_eq!(missed, text.contains("Misses its target: `"), "{text}");
    assert!(text.contains("`abacus` in the"), "{text}");
    assert!(text.contains("; baseline: "), "{text}");
    assert!(output.out.contains(" less") || output.out.contains(" more"));
    for line in output.out.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains(&case) && page.contains("abacus"), "{page}");
}

#[test]
fn unused_flags_and_bad_baseline_are_refused_before_measuring() {
    let folder = TempFolder::new();
    let broken = folder.write("broken.json", "{\n  \"machine\": 5\n}");
    let rows = folder.write("rows.json", "[]");
    let page = folder.path("before.html");
    fs::write(&page, "{}").unwrap();
    for (arguments, part) in [
        (
            vec!["aoi", "sync", "--players", "20"],
            "--players does nothing for `aoi`, `sync`",
        ),
        (
            vec!["outbox", "--threads", "2"],
            "--threads does nothing for `outbox`",
        ),
        (
            vec!["tick", "--threads", "1,2"],
            "several values of --threads need `tick` with --players",
        ),
        (
            vec!["outbox", "--baseline", "none.json"],
            "could not read --baseline none.json",
        ),
        (vec!["outbox", "--baseline", &broken], "line 2 column"),
        (
            vec!["outbox", "--baseline", &rows],
            "expected what `throng bench --json` prints",
        ),
        (
            vec!["outbox", "--report", "now.htm"],
            "expected a page FILE.html",
        ),
        (
            vec!["outbox", "--baseline", &page, "--report", &page],
            "which is --baseline as well",
        ),
        (
            vec!["outbox", "--report", "absent/now.html"],
            "could not create `absent/now.html`",
        ),
        (
            vec!["outbox", "--peers", &rows],
            "--peers needs --report or --readme",
        ),
        (
            vec!["outbox", "--report", "now.html", "--peers", &broken],
            "expected the rows that benches/peers prints",
        ),
        (
            vec!["outbox", "--readme", &rows],
            "--readme does nothing for `outbox`: it is for `nav`",
        ),
        (vec!["nav", "--readme", &rows], "expected the lines `<!--"),
        (vec!["otubox"], "a similar value exists: 'outbox'"),
        (vec!["tick", "--players", "0"], "--players"),
    ] {
        let output = run_throng(&[&["bench"], arguments.as_slice()].concat());
        assert_eq!((output.code, output.out.as_str()), (2, ""), "{arguments:?}");
        assert!(output.err.contains(part), "{arguments:?}: {}", output.err);
    }
}
