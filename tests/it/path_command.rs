//! `throng path` as used by people and scripts: correct and wrong results, edits, images, and invalid arguments.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{ProgramOutput, TempFolder, run_throng};

/// Three rows with a wall that leaves one way around it.
const MAP: &str = "type octile\nheight 3\nwidth 4\nmap\n..@.\n....\n@@..\n";

/// Queries with correct lengths; and one with a length that is too large.
const SCEN: &str =
    "version 1\n0\ta.map\t4\t3\t0\t0\t0\t1\t1\n0\ta.map\t4\t3\t0\t0\t3\t1\t3.41421\n";
const WRONG: &str = "1\ta.map\t4\t3\t0\t0\t3\t0\t5.5\n";

/// An empty room, a wall that divides it, and the removal of the wall.
const DYNAMIC: &str = "version 2\nheight 3\nwidth 3\ncost 1 octile\npatch d.patch\ncommands\n\
                       Q 0 0 0 2 0 2\nP 0 0 1 0\nQ 0 0 0 2 0 -1\nP 1 1 1 2\nQ 1 0 0 2 0 6\nP 1 0 1 0\n";
const PATCHES: &str = "type patch\npatches 2\npatch 0\nheight 3\nwidth 1\nmap\n@\n@\n@\npatch 1\nheight 1\nwidth 1\nmap\n.\n";

fn path(arguments: &[&str]) -> ProgramOutput {
    run_throng(&[&["path"], arguments].concat())
}

fn numbers(value: &Value, names: &[&str]) -> Vec<u64> {
    let number = |name: &&str| value[*name].as_u64().unwrap_or_else(|| panic!("{name}"));
    names.iter().map(number).collect()
}

#[test]
fn every_algorithm_finds_the_same_path() {
    let folder = TempFolder::new();
    let map = folder.write("a.map", MAP);
    let arguments = ["--map", &map, "--from", "0,0", "--to", "3,0"];
    let output = path(
        &[
            &arguments[..],
            &["--algorithm", "all", "--json", "--repeat", "2"],
        ]
        .concat(),
    );
    assert_eq!((output.code, output.err.as_str()), (0, ""));
    let report = output.json();
    assert_eq!(numbers(&report, &["width", "height", "queries"]), [4, 3, 1]);
    let algorithms = report["algorithms"].as_array().unwrap();
    assert!(algorithms.len() >= 3);
    assert_eq!(algorithms[0]["algorithm"], "astar");
    for one in algorithms {
        let counts = numbers(one, &["answered", "unreachable", "capped", "optimal"]);
        assert_eq!(counts, [1, 0, 0, 1], "{one}");
        assert_eq!(one["wrong"], json!([]));
        let length = one["length"].as_f64().unwrap();
        assert!((length - 3.0 - 2f64.sqrt()).abs() < 1e-9, "{length}");
        let waypoints = one["waypoints"].as_array().unwrap();
        assert_eq!(waypoints.first(), Some(&json!([0, 0])));
        assert_eq!(waypoints.last(), Some(&json!([3, 0])));
        for name in ["mean", "p50", "p99", "max"] {
            assert!(one["us"][name].as_f64() > Some(0.0), "{name}");
        }
        for name in ["expanded_mean", "generated_mean", "scratch_bytes"] {
            assert!(one[name].as_f64() > Some(0.0), "{name}");
        }
        assert!(one["prepare_ms"].is_number() && one["prepared_bytes"].is_u64());
    }
    let table = path(&[&arguments[..], &["--algorithm", "astar,jps-bit"]].concat());
    assert!(table.out.contains("4.41421 tiles") && table.out.contains("(3, 1)"));
    assert!(table.out.lines().all(|line| line.chars().count() <= 80));
    let quiet = path(&[&arguments[..], &["-q"]].concat());
    assert_eq!((quiet.code, quiet.out.as_str()), (0, ""));
}

#[test]
fn corners_are_cut_on_request() {
    let folder = TempFolder::new();
    let map = folder.write("a.map", MAP);
    let wrong = folder.write("wrong.scen", format!("{SCEN}{WRONG}"));
    let more = ["--diagonal", "cut", "--algorithm", "all", "--json"];
    let output = path(&[&["--map", &map, "--from", "0,0", "--to", "3,0"], &more[..]].concat());
    assert_eq!(output.code, 0, "{}", output.err);
    for one in output.json()["algorithms"].as_array().unwrap() {
        let length = one["length"].as_f64().unwrap();
        assert!((length - 1.0 - 2.0 * 2f64.sqrt()).abs() < 1e-9, "{one}");
    }
    // The lengths of the file are for the other rule, so they are not checked.
    let output = path(&[&["--map", &map, "--scen", &wrong], &more[..]].concat());
    assert_eq!(output.code, 0, "{}", output.err);
}

#[test]
fn unreachable_is_an_answer_and_a_capped_search_is_none() {
    let folder = TempFolder::new();
    let map = folder.write("a.map", MAP.replace("....", "..@."));
    for (to, more, code, result) in [("3,0", "none", 0, "unreachable"), ("1,1", "1", 0, "found")] {
        let limit = ["--node-limit", more, "--json"];
        let output = path(&[&["--map", &map, "--from", "0,0", "--to", to], &limit[..]].concat());
        let one = &output.json()["algorithms"][0];
        assert_eq!((output.code, one["result"].as_str()), (code, Some(result)));
        assert_eq!(one["length"].is_null(), result == "unreachable");
        let found = u64::from(result == "found");
        let counts = numbers(one, &["answered", "unreachable", "capped", "optimal"]);
        assert_eq!(counts, [found, 1 - found, 0, 1]);
    }
}

#[test]
fn invalid_path_end_is_bad_input_that_names_the_end() {
    let folder = TempFolder::new();
    let map = folder.write("a.map", MAP);
    for (from, to, parts) in [
        (
            "-1,0",
            "0,0",
            ["--from -1,0", "outside the map's 4 × 3 tiles"],
        ),
        ("0,0", "4,0", ["--to 4,0", "outside the map's 4 × 3 tiles"]),
        ("0,0", "0,3", ["--to 0,3", "outside the map's 4 × 3 tiles"]),
        ("2,0", "0,0", ["--from 2,0", "blocked"]),
        ("0,0", "1,2", ["--to 1,2", "blocked"]),
    ] {
        let output = path(&["--map", &map, "--from", from, "--to", to, "--json"]);
        assert_eq!((output.code, output.out.as_str()), (2, ""), "{from} {to}");
        for part in parts {
            assert!(output.err.contains(part), "{part}: {}", output.err);
        }
    }
}

#[test]
fn unanswered_queries_are_not_called_optimal() {
    let folder = TempFolder::new();
    let map = folder.write("a.map", MAP);
    let empty = folder.write("empty.scen", "version 1\n");
    let single = ["--from", "0,0", "--to", "3,0", "--node-limit", "1"];
    for (arguments, capped) in [(&single[..], 1), (&["--scen", &empty], 0)] {
        let arguments = [&["--map", &map], arguments].concat();
        let output = path(&[&arguments[..], &["--json"]].concat());
        assert_eq!(output.code, 1, "{arguments:?}: {}", output.err);
        let one = &output.json()["algorithms"][0];
        let counts = numbers(one, &["answered", "unreachable", "capped", "optimal"]);
        assert_eq!(counts, [0, 0, capped, 0]);
        let output = path(&arguments);
        assert!(
            output.out.contains("no query was answered"),
            "{}",
            output.out
        );
        assert_eq!(output.code, 1);
    }
    // Queries without a result are reported, and do not affect the check of the others.
    let hard = "1\ta.map\t4\t3\t0\t0\t3\t0\t4.41421\n";
    let some = folder.write("some.scen", format!("{SCEN}{hard}"));
    let output = path(&[
        "--map",
        &map,
        "--scen",
        &some,
        "--node-limit",
        "1",
        "--json",
    ]);
    let counts = numbers(
        &output.json()["algorithms"][0],
        &["answered", "capped", "optimal"],
    );
    assert_eq!((output.code, counts), (0, vec![2, 1, 2]));
}

#[test]
fn wrong_map_size_is_reported_with_its_line() {
    let folder = TempFolder::new();
    let map = folder.write("a.map", MAP);
    folder.write("d.patch", PATCHES);
    let other = folder.write("other.scen", SCEN.replace("\t4\t3\t", "\t5\t3\t"));
    let dynamic = folder.write("d.scen", DYNAMIC);
    let none = folder.write("none.scen", SCEN.replace("\t4\t3\t", "\t4\t0\t"));
    let empty = folder.write("empty.scen", DYNAMIC.replace("width 3", "width 0"));
    let large = DYNAMIC
        .replace("width 3", "width 65536")
        .replace("height 3", "height 65536");
    let large = folder.write("large.scen", large);
    for (arguments, parts) in [
        (
            vec!["--map", &map, "--scen", &other],
            ["other.scen:2:", "5 × 3"],
        ),
        (
            vec!["--map", &map, "--scen", &dynamic],
            ["d.scen:3:", "3 × 3"],
        ),
        (
            vec!["--map", &map, "--scen", &none],
            ["none.scen:2:", "4 × 0"],
        ),
        (vec!["--scen", &empty], ["empty.scen:3:", "0 × 3"]),
        (vec!["--scen", &large], ["large.scen:3:", "65536 × 65536"]),
    ] {
        let output = path(&arguments);
        assert_eq!((output.code, output.out.as_str()), (2, ""), "{arguments:?}");
        for part in parts {
            assert!(output.err.contains(part), "{part}: {}", output.err);
        }
    }
}

#[test]
fn files_may_begin_with_a_byte_order_mark() {
    let folder = TempFolder::new();
    let map = folder.write("a.map", format!("\u{feff}{MAP}"));
    let scen = folder.write("a.scen", format!("\u{feff}{SCEN}"));
    let output = path(&["--map", &map, "--scen", &scen]);
    assert_eq!((output.code, output.err.as_str()), (0, ""));
    folder.write("d.patch", format!("\u{feff}{PATCHES}"));
    let dynamic = folder.write("d.scen", format!("\u{feff}{DYNAMIC}"));
    let output = path(&["--scen", &dynamic]);
    assert_eq!((output.code, output.err.as_str()), (0, ""));
}

#[test]
fn image_does_not_overwrite_an_input() {
    let folder = TempFolder::new();
    let map = folder.write("a.map", MAP);
    let image = folder.path("a.png");
    assert_eq!(run_throng(&["map", "convert", &map, &image]).code, 0);
    let before = fs::read(&image).unwrap();
    let arguments = ["--map", &image, "--from", "0,0", "--to", "3,0", "--render"];
    let same = image.replace("a.png", "./a.png");
    let output = path(&[&arguments[..], &[&same]].concat());
    assert_eq!((output.code, output.out.as_str()), (2, ""));
    assert!(
        output.err.contains("which is the input as well"),
        "{}",
        output.err
    );
    assert_eq!(fs::read(&image).unwrap(), before);
}

#[test]
fn control_characters_in_names_are_escaped() {
    let folder = TempFolder::new();
    let map = folder.write("a\u{1b}[31m.map", MAP);
    let arguments = ["--map", &map, "--from", "0,0", "--to"];
    let scen = folder.write("a\u{7}.scen", SCEN.replace("3.41421", "3\u{1b}[2J"));
    for output in [
        path(&[&arguments[..], &["3,0"]].concat()),
        path(&["--map", &map, "--scen", &scen]),
        path(&["--map", &folder.path("none\u{1b}.map"), "--scen", &scen]),
        run_throng(&["map", "info", &map]),
        run_throng(&["check", &map]),
        run_throng(&["check", &folder.path("none\u{1b}\n.map")]),
    ] {
        let shown = output.out + &output.err;
        assert!(!shown.contains(['\u{1b}', '\u{7}']), "{shown:?}");
        assert!(
            shown.contains("\\u{1b}") || shown.contains("\\u{7}"),
            "{shown:?}"
        );
        assert!(!shown.contains("\n.map"), "{shown:?}");
    }
}

#[test]
fn wrong_length_is_reported_and_gives_exit_code_1() {
    let folder = TempFolder::new();
    let map = folder.write("a.map", MAP);
    let right = folder.write("right.scen", SCEN);
    let wrong = folder.write("wrong.scen", format!("{SCEN}{WRONG}"));
    let ask = |scen: &str, more: &[&str]| {
        path(&[&["--map", &map, "--scen", scen, "--json"], more].concat())
    };
    for threads in ["1", "3"] {
        let output = ask(&right, &["--threads", threads]);
        let one = &output.json()["algorithms"][0];
        assert_eq!(
            (output.code, numbers(one, &["answered", "optimal"])),
            (0, vec![2, 2])
        );
        let output = ask(&wrong, &["--threads", threads, "--algorithm", "all"]);
        assert_eq!(output.code, 1);
        for one in output.json()["algorithms"].as_array().unwrap() {
            assert_eq!(numbers(one, &["answered", "optimal"]), [3, 2]);
            assert_eq!(one["wrong"].as_array().unwrap().len(), 1);
            let wrong = &one["wrong"][0];
            assert_eq!(
                (&wrong["index"], &wrong["expected"]),
                (&json!(2), &json!(5.5))
            );
            assert!((wrong["found"].as_f64().unwrap() - 4.41421).abs() < 1e-4);
        }
    }
    // Every third query, beginning with the first: the wrong one is skipped.
    let output = ask(&wrong, &["--stride", "3"]);
    assert_eq!((output.code, &output.json()["queries"]), (0, &json!(1)));
    let table = path(&["--map", &map, "--scen", &wrong]);
    assert_eq!(table.code, 1);
    assert!(
        table
            .out
            .contains("query 2: expected 5.50000 tiles, found 4.41421 tiles")
    );
}

#[test]
fn edits_between_queries_are_applied() {
    let folder = TempFolder::new();
    let scen = folder.write("d.scen", DYNAMIC);
    folder.write("d.patch", PATCHES);
    let output = path(&["--scen", &scen, "--algorithm", "all", "--json"]);
    assert_eq!((output.code, output.err.as_str()), (0, ""));
    for one in output.json()["algorithms"].as_array().unwrap() {
        assert_eq!(
            numbers(one, &["answered", "unreachable", "optimal"]),
            [2, 1, 3]
        );
    }
    // With a map given, the file starts from that map.
    let blocked = folder.write(
        "b.map",
        "type octile\nheight 3\nwidth 3\nmap\n.@.\n.@.\n.@.\n",
    );
    let output = path(&["--scen", &scen, "--map", &blocked, "--json"]);
    assert_eq!(
        (
            output.code,
            &output.json()["algorithms"][0]["wrong"][0]["index"]
        ),
        (1, &json!(0))
    );
}

#[test]
fn bad_arguments_and_files_are_reported_with_a_hint() {
    let folder = TempFolder::new();
    let map = folder.write("a.map", MAP);
    let scen = folder.write("a.scen", SCEN);
    let dynamic = folder.write("d.scen", DYNAMIC);
    let lost = folder.write("lost.scen", DYNAMIC.replace("d.patch", "lost.patch"));
    let far = folder.write("far.scen", DYNAMIC.replace("P 0 0 1 0", "P 0 0 1 1"));
    let broken = folder.write("broken.scen", SCEN.replace("3.41421", "long"));
    folder.write("d.patch", PATCHES);
    let arguments = ["--map", &map, "--from", "0,0", "--to", "3,0"];
    let with = |more: &[&'static str]| [&arguments[..], more].concat();
    for (arguments, part) in [
        (vec![], "--map <FILE>"),
        (vec!["--map", &map], "--from <X,Y>"),
        (vec!["--map", &map, "--from", "0,0"], "--to <X,Y>"),
        (with(&["--scen", "x.scen"]), "cannot be used with"),
        (with(&["--algorithm", "dijkstra"]), "`jps-bit-prune`"),
        (with(&["--diagonal", "maybe"]), "`no-cut` or `cut`"),
        (with(&["--node-limit", "0"]), "from 1, or `none`"),
        (with(&["--stride", "0"]), "stride"),
        (
            with(&["--stride", "2"]),
            "--stride does nothing for one path",
        ),
        (
            with(&["--threads", "2"]),
            "--threads does nothing for one path",
        ),
        (
            with(&["--render", "a.jpg"]),
            "expected an image file OUT.png",
        ),
        (
            vec!["--map", &map, "--from", "0", "--to", "1,1"],
            "such as 12,34",
        ),
        (vec!["--scen", &scen], "--map FILE is needed"),
        (
            vec!["--map", &map, "--scen", &dynamic],
            "names a map of 3 × 3 tiles",
        ),
        (vec!["--scen", &lost], "lost.patch"),
        (vec!["--scen", &far], "outside the map of 3 × 3 tiles"),
        (vec!["--scen", &far], "far.scen:8:1"),
        (vec!["--map", &map, "--scen", &broken], "broken.scen:3:21"),
        (
            vec!["--map", &map, "--scen", "none.scen"],
            "could not read none.scen",
        ),
    ] {
        let output = path(&arguments);
        assert_eq!((output.code, output.out.as_str()), (2, ""), "{arguments:?}");
        assert!(output.err.contains(part), "{arguments:?}: {}", output.err);
    }
}

/// A path through a swamp, around trees and water.
const SWAMP: &str = "type octile\nheight 3\nwidth 5\nmap\n.SS.G\n@TWT@\n.....\n";

#[test]
fn swamp_is_free_and_summaries_list_letters() {
    let folder = TempFolder::new();
    let map = folder.write("s.map", SWAMP);
    let output = path(&["--map", &map, "--from", "0,0", "--to", "4,0", "--json"]);
    assert_eq!(output.json()["algorithms"][0]["length"].as_f64(), Some(4.0));
    let scen = folder.write(
        "s.map.scen",
        "\nVersion 1\n1\ts.map\t5\t3\t0\t0\t4\t0\t4\t\n0 s.map 5 3 1 2 1 2 0 \n",
    );
    let output = path(&["--map", &map, "--scen", &scen]);
    assert_eq!(
        (output.code, output.err.as_str()),
        (0, ""),
        "{}",
        output.out
    );
    let lines = [
        "  free    7 . ground, 1 G ground, 2 S swamp\n",
        "  blocked 2 @ out of bounds, 2 T trees, 1 W water\n",
    ];
    assert!(
        lines.iter().all(|line| output.out.contains(line)),
        "{}",
        output.out
    );
    let info = run_throng(&["map", "info", &map]);
    assert!(
        info.out
            .contains("  free          7 . ground, 1 G ground, 2 S swamp\n"),
        "{}",
        info.out
    );
    let info = run_throng(&["map", "info", "--json", &map]).json();
    let swamp = json!({ "letter": "S", "meaning": "swamp", "free": true, "tiles": 2 });
    assert_eq!(info["letters"][2], swamp);
    let tmap = folder.path("s.tmap");
    run_throng(&["map", "convert", &map, &tmap]);
    let info = run_throng(&["map", "info", "--json", &tmap]).json();
    assert_eq!(info["letters"], json!([]));
}

#[test]
fn known_lengths_are_checked_without_a_search() {
    let folder = TempFolder::new();
    folder.write("a.map", MAP);
    let scen = folder.write("a.map.scen", SCEN);
    let output = run_throng(&["check", &scen]);
    assert_eq!((output.code, output.err.as_str()), (0, ""));
    assert!(
        output.out.contains("ok, 2 queries, 0 edits, map "),
        "{}",
        output.out
    );
    let shut = folder.write(
        "a.map.scen",
        format!("{SCEN}0\ta.map\t4\t3\t2\t0\t3\t0\t1\n"),
    );
    let output = run_throng(&["check", &shut, "--strict"]);
    assert_eq!(output.code, 2);
    assert!(
        output
            .err
            .contains("1 of 3 queries begin or end on a blocked tile"),
        "{}",
        output.err
    );
    let other = folder.write("a.map.scen", SCEN.replace("\t4\t3\t", "\t4\t4\t"));
    let output = run_throng(&["check", &other]);
    assert_eq!(output.code, 2);
    assert!(
        output.err.contains("names a map of 4 × 4 tiles"),
        "{}",
        output.err
    );
    folder.write("d.patch", PATCHES);
    let edits = folder.write("d.scen", DYNAMIC);
    let output = run_throng(&["check", &edits]);
    assert!(
        output.out.ends_with("ok, 3 queries, 3 edits\n"),
        "{}",
        output.out
    );
}
