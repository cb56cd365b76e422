//! `throng path` as its users see it: right and wrong answers, edits, images, and arguments that do not fit.

use std::fs;

use serde_json::{Value, json};

use crate::rig::{Folder, Told, throng};

/// Three rows with a wall that leaves one way round.
const MAP: &str = "type octile\nheight 3\nwidth 4\nmap\n..@.\n....\n@@..\n";

/// Queries on it, with the right lengths; the last with one that is too long.
const SCEN: &str =
    "version 1\n0\ta.map\t4\t3\t0\t0\t0\t1\t1\n0\ta.map\t4\t3\t0\t0\t3\t1\t3.41421\n";
const WRONG: &str = "1\ta.map\t4\t3\t0\t0\t3\t0\t5.5\n";

/// An empty room that a wall parts, and the wall taken away again.
const DYNAMIC: &str = "version 2\nheight 3\nwidth 3\ncost 1 octile\npatch d.patch\ncommands\n\
                       Q 0 0 0 2 0 2\nP 0 0 1 0\nQ 0 0 0 2 0 -1\nP 1 1 1 2\nQ 1 0 0 2 0 6\nP 1 0 1 0\n";
const PATCHES: &str = "type patch\npatches 2\npatch 0\nheight 3\nwidth 1\nmap\n@\n@\n@\npatch 1\nheight 1\nwidth 1\nmap\n.\n";

fn path(arguments: &[&str]) -> Told {
    throng(&[&["path"], arguments].concat())
}

fn numbers(value: &Value, names: &[&str]) -> Vec<u64> {
    let number = |name: &&str| value[*name].as_u64().unwrap_or_else(|| panic!("{name}"));
    names.iter().map(number).collect()
}

#[test]
fn one_path_is_found_by_every_algorithm() {
    let folder = Folder::new();
    let map = folder.write("a.map", MAP);
    let asked = ["--map", &map, "--from", "0,0", "--to", "3,0"];
    let told = path(
        &[
            &asked[..],
            &["--algorithm", "all", "--json", "--repeat", "2"],
        ]
        .concat(),
    );
    assert_eq!((told.code, told.err.as_str()), (0, ""));
    let report = told.json();
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
    let table = path(&[&asked[..], &["--algorithm", "astar,jps-bit"]].concat());
    assert!(table.out.contains("4.41421 tiles") && table.out.contains("(3, 1)"));
    assert!(table.out.lines().all(|line| line.chars().count() <= 80));
    let quiet = path(&[&asked[..], &["-q"]].concat());
    assert_eq!((quiet.code, quiet.out.as_str()), (0, ""));
}

#[test]
fn a_corner_may_be_cut_on_demand() {
    let folder = Folder::new();
    let map = folder.write("a.map", MAP);
    let wrong = folder.write("wrong.scen", format!("{SCEN}{WRONG}"));
    let more = ["--diagonal", "cut", "--algorithm", "all", "--json"];
    let told = path(&[&["--map", &map, "--from", "0,0", "--to", "3,0"], &more[..]].concat());
    assert_eq!(told.code, 0, "{}", told.err);
    for one in told.json()["algorithms"].as_array().unwrap() {
        let length = one["length"].as_f64().unwrap();
        assert!((length - 1.0 - 2.0 * 2f64.sqrt()).abs() < 1e-9, "{one}");
    }
    // The file's lengths are those of the other rule: nothing is judged by them.
    let told = path(&[&["--map", &map, "--scen", &wrong], &more[..]].concat());
    assert_eq!(told.code, 0, "{}", told.err);
}

#[test]
fn what_has_no_path_is_an_answer_and_what_gave_up_is_none() {
    let folder = Folder::new();
    let map = folder.write("a.map", MAP);
    for (to, more, result) in [
        ("2,0", "none", "blocked"),
        ("-1,0", "none", "out_of_bounds"),
        ("3,0", "1", "capped"),
    ] {
        let told = path(&[
            "--map",
            &map,
            "--from",
            "0,0",
            "--to",
            to,
            "--node-limit",
            more,
            "--json",
        ]);
        let one = &told.json()["algorithms"][0];
        assert_eq!((told.code, one["result"].as_str()), (0, Some(result)));
        assert_eq!(
            (&one["length"], &one["waypoints"]),
            (&Value::Null, &json!([]))
        );
        let expected = if result == "capped" {
            [0, 0, 1]
        } else {
            [0, 1, 0]
        };
        assert_eq!(
            numbers(one, &["answered", "unreachable", "capped"]),
            expected
        );
    }
}

#[test]
fn a_wrong_length_is_told_and_gives_exit_code_1() {
    let folder = Folder::new();
    let map = folder.write("a.map", MAP);
    let right = folder.write("right.scen", SCEN);
    let wrong = folder.write("wrong.scen", format!("{SCEN}{WRONG}"));
    let ask = |scen: &str, more: &[&str]| {
        path(&[&["--map", &map, "--scen", scen, "--json"], more].concat())
    };
    for threads in ["1", "3"] {
        let told = ask(&right, &["--threads", threads]);
        let one = &told.json()["algorithms"][0];
        assert_eq!(
            (told.code, numbers(one, &["answered", "optimal"])),
            (0, vec![2, 2])
        );
        let told = ask(&wrong, &["--threads", threads, "--algorithm", "all"]);
        assert_eq!(told.code, 1);
        for one in told.json()["algorithms"].as_array().unwrap() {
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
    // Every third query from the first on: the wrong one is not asked.
    let told = ask(&wrong, &["--stride", "3"]);
    assert_eq!((told.code, &told.json()["queries"]), (0, &json!(1)));
    let table = path(&["--map", &map, "--scen", &wrong]);
    assert_eq!(table.code, 1);
    assert!(
        table
            .out
            .contains("query 2: expected 5.50000 tiles, found 4.41421 tiles")
    );
}

#[test]
fn edits_between_queries_are_followed() {
    let folder = Folder::new();
    let scen = folder.write("d.scen", DYNAMIC);
    folder.write("d.patch", PATCHES);
    let told = path(&["--scen", &scen, "--algorithm", "all", "--json"]);
    assert_eq!((told.code, told.err.as_str()), (0, ""));
    for one in told.json()["algorithms"].as_array().unwrap() {
        assert_eq!(
            numbers(one, &["answered", "unreachable", "optimal"]),
            [2, 1, 3]
        );
    }
    // On a map of one's own the file starts from that.
    let blocked = folder.write(
        "b.map",
        "type octile\nheight 3\nwidth 3\nmap\n.@.\n.@.\n.@.\n",
    );
    let told = path(&["--scen", &scen, "--map", &blocked, "--json"]);
    assert_eq!(
        (
            told.code,
            &told.json()["algorithms"][0]["wrong"][0]["index"]
        ),
        (1, &json!(0))
    );
}

#[test]
fn a_search_is_drawn_with_small_maps_enlarged() {
    let folder = Folder::new();
    let map = folder.write("a.map", MAP);
    let scen = folder.write("a.scen", SCEN);
    let image = folder.path("a.png");
    for asked in [&["--from", "0,0", "--to", "3,0"][..], &["--scen", &scen]] {
        let told = path(&[&["--map", &map, "--render", &image], asked].concat());
        assert_eq!((told.code, told.err.as_str()), (0, ""));
        let file = std::io::BufReader::new(fs::File::open(&image).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        assert_eq!((reader.info().width, reader.info().height), (64, 48));
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        // The ends, the tile on the way between them, and the wall are four colours.
        let color = |x: usize, y: usize| &pixels[(y * 16 * 64 + x * 16) * 3..][..3];
        let colors = [color(0, 0), color(1, 1), color(2, 0), color(0, 1)];
        for (nth, one) in colors.iter().enumerate() {
            assert!(!colors[..nth].contains(one), "{colors:?}");
        }
        fs::remove_file(&image).unwrap();
    }
}

#[test]
fn bad_arguments_and_files_are_told_with_what_would_be_right() {
    let folder = Folder::new();
    let map = folder.write("a.map", MAP);
    let scen = folder.write("a.scen", SCEN);
    let dynamic = folder.write("d.scen", DYNAMIC);
    let lost = folder.write("lost.scen", DYNAMIC.replace("d.patch", "lost.patch"));
    let far = folder.write("far.scen", DYNAMIC.replace("P 0 0 1 0", "P 0 0 1 1"));
    let broken = folder.write("broken.scen", SCEN.replace("3.41421", "long"));
    folder.write("d.patch", PATCHES);
    let asked = ["--map", &map, "--from", "0,0", "--to", "3,0"];
    let with = |more: &[&'static str]| [&asked[..], more].concat();
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
            with(&["--render", "a.jpg"]),
            "expected an image file OUT.png",
        ),
        (
            vec!["--map", &map, "--from", "0", "--to", "1,1"],
            "such as 12,34",
        ),
        (vec!["--scen", &scen], "expected --map FILE as well"),
        (
            vec!["--map", &map, "--scen", &dynamic],
            "expected a map of 3 × 3 tiles",
        ),
        (vec!["--scen", &lost], "lost.patch"),
        (vec!["--scen", &far], "within the map's 3 × 3 tiles"),
        (vec!["--scen", &far], "far.scen:8:1"),
        (vec!["--map", &map, "--scen", &broken], "broken.scen:3:21"),
        (
            vec!["--map", &map, "--scen", "none.scen"],
            "could not read none.scen",
        ),
    ] {
        let told = path(&arguments);
        assert_eq!((told.code, told.out.as_str()), (2, ""), "{arguments:?}");
        assert!(told.err.contains(part), "{arguments:?}: {}", told.err);
    }
}
