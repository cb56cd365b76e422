//! Pages and tables of a run: errors before the run, and their content after it.

use std::fs;

use crate::harness::{TempFolder, run_throng};

const SMALL: &str = r#"Scenario(
    name: "small", duration_s: 2,
    scenes: [Scene(name: "a", map: Generate(Random(width_tiles: 60, height_tiles: 60, fill: 0)))],
    crowds: [Crowd(kind: "player", count: 20, client_share: 0.5, behaviour: Wander(radius_m: 9))],
    expect: [ViewsWithinCap],
)"#;

#[test]
fn unwritable_page_or_table_is_refused_before_the_run() {
    let folder = TempFolder::new();
    let scenario = folder.write("small.ron", SMALL);
    let (page, text) = (folder.path("page.html"), folder.path("page.txt"));
    let lost = folder.path("absent/page.html");
    for (arguments, expected) in [
        (vec!["--report", &text], "expected a page FILE.html"),
        (vec!["--report", &lost], "could not create"),
        (vec!["--csv", &lost], "could not create"),
        (vec!["--report", &page, "--csv", &page], "as well"),
        (vec!["--csv", &scenario], "which is the scenario as well"),
    ] {
        let output = run_throng(&[&["run", &scenario][..], &arguments].concat());
        assert_eq!((output.code, output.out.as_str()), (2, ""), "{arguments:?}");
        assert!(output.err.contains(expected), "{}", output.err);
    }
    assert!(fs::metadata(&page).is_err(), "no file is left behind");
    assert_eq!(fs::read_to_string(&scenario).unwrap(), SMALL);
}

#[test]
fn page_and_csv_do_not_change_the_run() {
    let folder = TempFolder::new();
    let scenario = folder.write("small.ron", SMALL);
    let (page, csv) = (folder.path("page.html"), folder.path("ticks.csv"));
    let plain = run_throng(&["run", &scenario, "--json"]).json();
    let output = run_throng(&["run", &scenario, "--json", "--report", &page, "--csv", &csv]);
    assert_eq!(output.code, 0, "{}", output.err);
    let report = output.json();
    assert_eq!(report["state_hash"], plain["state_hash"]);
    assert!(plain.get("record").is_none() && report["record"]["ticks"] == 40);
    assert_eq!(plain["machine"]["throng"], env!("CARGO_PKG_VERSION"));
    assert_eq!(plain["command"][1], "run");

    let written = fs::read_to_string(&page).unwrap();
    let hash = report["state_hash"].as_str().unwrap();
    assert!(written.starts_with("<!DOCTYPE html>") && written.contains(hash));
    for external in ["src=", "url(", "@import", "http:", "https:"] {
        assert!(
            !written.contains(external),
            "a page is self-contained: {external}"
        );
    }

    let ticks = fs::read_to_string(&csv).unwrap();
    let lines: Vec<Vec<&str>> = ticks
        .lines()
        .map(|line| line.split(',').collect())
        .collect();
    assert_eq!(lines.len(), 41);
    assert!(lines.iter().all(|fields| fields.len() == lines[0].len()));
    let column = |name: &str| lines[0].iter().position(|head| *head == name).unwrap();
    let sum = |name: &str| {
        let fields = lines[1..].iter().map(|fields| fields[column(name)]);
        fields
            .map(|field| field.parse::<f64>().unwrap())
            .sum::<f64>()
    };
    assert_eq!(Some(sum("sent_bytes")), report["sync"]["bytes"].as_f64());
    assert_eq!(Some(sum("enters")), report["views"]["enters"].as_f64());
    assert_eq!((lines[40][0], lines[40][1]), ("40", "2"));
}

#[test]
fn picture_and_animation_of_a_run_are_inside_its_page() {
    let folder = TempFolder::new();
    let scenario = folder.write("small.ron", SMALL);
    let [page, picture, animation] =
        ["page.html", "last.png", "film.png"].map(|name| folder.path(name));
    let files = [
        "--report",
        &page,
        "--picture",
        &picture,
        "--animation",
        &animation,
    ];
    let output = run_throng(&[&["run", &scenario][..], &files].concat());
    assert_eq!(output.code, 0, "{}", output.err);
    let written = fs::read_to_string(&page).unwrap();
    let images: Vec<&str> = written
        .split("src=\"data:image/png;base64,")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    // The animation, then the picture; each as long as its file, and with the PNG signature.
    let expected =
        [&animation, &picture].map(|file| fs::metadata(file).unwrap().len().div_ceil(3) * 4);
    let found: Vec<u64> = images.iter().map(|image| image.len() as u64).collect();
    assert_eq!(found, expected);
    assert!(images.iter().all(|image| image.starts_with("iVBORw0KGgo")));
    assert!(written.contains("<a href=\"#images\">Images</a>"));
}

#[test]
fn two_runs_are_compared_and_one_becomes_a_page() {
    let folder = TempFolder::new();
    let scenario = folder.write("small.ron", SMALL);
    let page = folder.path("page.html");
    let run = |more: &[&str]| {
        let output = run_throng(&[&["run", &scenario, "--json"][..], more].concat());
        assert_eq!(output.code, 0, "{}", output.err);
        output.out
    };
    let before = folder.write("before.json", run(&["--report", &page]));
    let after = folder.write("after.json", run(&["--seed", "9"]));
    let moved = folder.path("moved.html");
    let output = run_throng(&["report", &before, &after, "--report", &moved]);
    assert_eq!((output.code, output.err.as_str()), (0, ""));
    // Which times changed most varies from run to run.
    for expected in [
        "Different seed: ",
        "state hashes differ",
        "times and memory",
    ] {
        assert!(output.out.contains(expected), "{}", output.out);
    }
    let all = run_throng(&["report", &before, &after, "--all"]);
    assert!(all.out.contains("tick_ms.mean"), "{}", all.out);
    for line in output.out.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let shown = fs::read_to_string(&moved).unwrap();
    assert!(shown.contains("Changes") && shown.contains("tick_ms.mean"));
    let again = folder.path("again.html");
    let output = run_throng(&["report", &before, "--report", &again]);
    assert_eq!(
        (output.code, output.out.as_str()),
        (0, ""),
        "{}",
        output.err
    );
    assert_eq!(fs::read(&again).unwrap(), fs::read(&page).unwrap());
    let same = run_throng(&["report", &before, &before]);
    assert!(same.out.contains("counted: no change"), "{}", same.out);
    assert!(
        same.out.contains("The state hash is the same"),
        "{}",
        same.out
    );
}

#[test]
fn incomparable_files_are_refused() {
    let folder = TempFolder::new();
    let (text, bench) = (
        folder.write("a.txt", "no json"),
        folder.write("b.json", BENCH),
    );
    let run = folder.write("run.json", RUN);
    let other = folder.write("other.json", RUN.replace("town", "siege"));
    let absent = folder.path("absent.json");
    for (arguments, expected) in [
        (
            vec![text.as_str(), &run],
            "a.txt: expected what `throng run --json`",
        ),
        (vec![&absent, &run], "absent.json: "),
        (
            vec![&run, &bench],
            "two files of the same kind, found a run in",
        ),
        (vec![&run], "needs --report FILE.html"),
        (
            vec![&run, &bench, "--report", &run],
            "expected a page FILE.html",
        ),
        (vec![&run, "--all"], "--all"),
    ] {
        let output = run_throng(&[&["report"], arguments.as_slice()].concat());
        assert_eq!((output.code, output.out.as_str()), (2, ""), "{arguments:?}");
        assert!(output.err.contains(expected), "{}", output.err);
    }
    let output = run_throng(&["report", &run, &other]);
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(
        output.out.contains("Different scenario: `town` → `siege`."),
        "{}",
        output.out
    );
    assert!(
        output.out.contains("does not contain its machine"),
        "{}",
        output.out
    );
}

/// The minimum output of a run.
const RUN: &str = r#"{"scenario": "town", "seed": 1, "threads": 1, "ticks": 9, "state_hash": "0", "tick_ms": {"p99": 1.0}, "systems": {}}"#;

/// The minimum output of a bench.
const BENCH: &str = r#"{"machine": {}, "is_quick": true, "interrupted": null, "rows": []}"#;
