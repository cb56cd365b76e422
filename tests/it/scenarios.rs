//! Promise: bad input does no harm. Through the program: exit code 2, the place, the line, the fix, and no more memory than a
//! good file takes.

use std::process::Stdio;

use crate::harness::{TempFolder, program, run_throng};

/// The error of a bad scenario.
struct BadScenario {
    what: &'static str,
    /// With a `^` in front of the character at which the error must point.
    text: &'static str,
    expected: &'static [&'static str],
}

const BAD_SCENARIOS: [BadScenario; 19] = [
    BadScenario {
        what: "an unknown field",
        text: "Scenario(name: \"x\",\n  scenes: [Scene(name: \"a\", ^view_capp: 100)])",
        expected: &["unknown field `view_capp`, did you mean `view_cap`?"],
    },
    BadScenario {
        what: "an unknown variant",
        text: "Scenario(name: \"x\", scenes: [Scene(name: \"a\")], crowds: [Crowd(behaviour: ^Wandr(radius_m: 1))])",
        expected: &["did you mean `Wander`?"],
    },
    BadScenario {
        what: "text for a number",
        text: "Scenario(name: \"x\", seed: ^\"seven\")",
        expected: &["expected"],
    },
    BadScenario {
        what: "a number for text",
        text: "Scenario(name: ^7)",
        expected: &["expected"],
    },
    BadScenario {
        what: "a list for one thing",
        text: "Scenario(name: \"x\", duration_s: ^[1])",
        expected: &["expected"],
    },
    BadScenario {
        what: "a map that is not there",
        text: "Scenario(name: \"x\", scenes: [\n\tScene(name: \"a\", map: File(^\"nowhere.map\"))])",
        expected: &["nowhere.map", "beside the scenario's file"],
    },
    BadScenario {
        what: "an attribute that does not exist",
        text: "Scenario(name: \"x\", scenes: [Scene(name: \"a\")], crowds: [Crowd(tag: \"t\")],\n script: [At(t_s: 1, run: SetAttribute(tag: \"t\", attribute: ^\"helth\", value: 1))])",
        expected: &["unknown attribute `helth`, did you mean `health`?"],
    },
    BadScenario {
        what: "a negative count",
        text: "Scenario(name: \"x\", scenes: [Scene(name: \"a\")], crowds: [Crowd(count: ^-5)])",
        expected: &["-5"],
    },
    BadScenario {
        what: "a count beyond all numbers",
        text: "Scenario(name: \"x\", scenes: [Scene(name: \"a\")], crowds: [Crowd(count: ^99999999999999999999)])",
        expected: &["out of range for `count`"],
    },
    BadScenario {
        what: "ten thousand million tiles",
        text: "Scenario(name: \"x\", scenes: [Scene(name: \"a\", map: ^Generate(Town(width_tiles: 100000, height_tiles: 100000)))])",
        expected: &["expected at most 268435456 tiles", "10000000000"],
    },
    BadScenario {
        what: "cells too small for their map",
        text: "Scenario(name: \"x\", scenes: [Scene(name: \"a\", cell_m: ^1, margin_m: 0, map: Generate(Random(width_tiles: 3000, height_tiles: 3000)))])",
        expected: &["expected at most 1048576 cells"],
    },
    BadScenario {
        what: "an edit outside its map",
        text: "Scenario(name: \"x\", scenes: [Scene(name: \"a\", map: Generate(Random(width_tiles: 30, height_tiles: 30)))],\n script: [At(t_s: 1, run: Block(rect_tiles: ^(20, 20, 11, 1)))])",
        expected: &["within the 30 × 30 tiles of scene `a`"],
    },
    BadScenario {
        what: "two scenes of one name",
        text: "Scenario(name: \"x\", scenes: [Scene(name: \"a\"), Scene(name: ^\"a\")])",
        expected: &["`a` twice"],
    },
    BadScenario {
        what: "more objects than a scene holds",
        text: "Scenario(name: \"x\", scenes: [Scene(name: \"a\", max_objects: 1)], crowds: [Crowd(count: ^5)])",
        expected: &["at most 1 objects"],
    },
    BadScenario {
        what: "a mode whose groups have nobody",
        text: "Scenario(name: \"x\", settings: (matchmaking: (modes: [Groups(group_size: ^0)])))",
        expected: &["group_size"],
    },
    BadScenario {
        what: "packets shorter than any line takes",
        text: "Scenario(name: \"x\", settings: (outbox: (mtu_bytes: ^100)))",
        expected: &["mtu_bytes from 500 to 65507 bytes, found 100"],
    },
    BadScenario {
        what: "threads, whose pace would decide",
        text: "Scenario(name: \"x\", settings: (outbox: (^shards: 2)))",
        expected: &["unknown field `shards`"],
    },
    BadScenario {
        what: "a bracket that is not closed",
        text: "Scenario(name: \"x\", scenes: ^[Scene(name: \"a\")",
        expected: &["expected a closing bracket for `[`"],
    },
    BadScenario {
        what: "something else altogether",
        text: "^{\"name\": \"x\"}",
        expected: &["expected the file to begin with `Scenario(`"],
    },
];

#[test]
fn bad_scenario_is_reported_with_location_line_and_hint() {
    let folder = TempFolder::new();
    for BadScenario {
        what,
        text,
        expected: told,
    } in BAD_SCENARIOS
    {
        let at = text.find('^').unwrap();
        let before = &text[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
        let file = folder.write("bad.ron", text.replacen('^', "", 1));
        for command in ["run", "check"] {
            let found = run_throng(&[command, &file]);
            let err = &found.err;
            assert_eq!(
                (found.code, found.out.as_str()),
                (2, ""),
                "{command} {what}: {err}"
            );
            let place = format!("--> {file}:{line}:{column}\n");
            assert!(
                err.contains(&place),
                "{command} {what}, expected {place}: {err}"
            );
            for text in told {
                assert!(err.contains(text), "{command} {what}: {err}");
            }
            // The line, or the part of a long one that is wrong, and a mark below it.
            let shown = err
                .lines()
                .find(|shown| shown.trim_start().starts_with(&format!("{line} |")));
            let shown =
                shown.map(|shown| shown.split_once('|').unwrap().1.trim().trim_matches('…'));
            let source = text.replacen('^', "", 1).replace('\t', " ");
            let source = source.lines().nth(line - 1).unwrap().to_owned();
            assert!(
                shown.is_some_and(|shown| source.contains(shown)),
                "{command} {what}: {err}"
            );
            assert!(
                err.lines()
                    .any(|line| line.contains("| ") && line.contains('^')),
                "{command} {what}: {err}"
            );
        }
    }
}

/// Bad maps: the file's name, its content, the place of the error (for text), and the message.
fn bad_maps() -> Vec<(&'static str, Vec<u8>, Option<&'static str>, &'static str)> {
    let octile = |rest: &str| format!("type octile\n{rest}").into_bytes();
    let mut image = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    image.extend([0, 1, 0x86, 0xa0, 0, 1, 0x86, 0xa0, 1, 0, 0, 0, 0]);
    vec![
        (
            "short.map",
            octile("height 3\nwidth 3\nmap\n...\n..\n...\n"),
            Some("6:3"),
            "the row has 2 tiles, expected 3",
        ),
        (
            "long.map",
            octile("height 2\nwidth 3\nmap\n...\n....\n"),
            Some("6:4"),
            "expected 3",
        ),
        (
            "few.map",
            octile("height 3\nwidth 3\nmap\n...\n...\n"),
            Some("7:1"),
            "the map has 2 rows, expected 3",
        ),
        (
            "many.map",
            octile("height 1\nwidth 3\nmap\n...\n...\n"),
            Some("6:1"),
            "rows, expected 1",
        ),
        (
            "letter.map",
            octile("height 1\nwidth 3\nmap\n.x.\n"),
            Some("5:2"),
            "found letter 'x'",
        ),
        (
            "huge.map",
            octile("height 100000\nwidth 100000\nmap\n...\n"),
            Some("3:7"),
            "map of 100000 × 100000 tiles",
        ),
        (
            "number.map",
            octile("height many\nwidth 3\nmap\n...\n"),
            Some("2:8"),
            "many",
        ),
        ("empty.map", Vec::new(), Some("1:1"), "type octile"),
        ("huge.100000x100000.raw", vec![0; 10], None, "100000"),
        ("huge.png", image, None, "PNG"),
        (
            "junk.tmap",
            b"TMAP\xff\xff\xff\xff".to_vec(),
            None,
            "expected",
        ),
        ("empty.tmap", Vec::new(), None, "expected \"TMAP\""),
        ("empty.raw", Vec::new(), None, "map of 0 × 0 tiles"),
    ]
}

#[test]
fn bad_map_is_reported_at_every_place_that_names_it() {
    let folder = TempFolder::new();
    for (name, content, place, told) in bad_maps() {
        let file = folder.write(name, content);
        let scenario = folder.write(
            "scenario.ron",
            format!("Scenario(name: \"x\", scenes: [Scene(name: \"a\", map: File(\"{name}\"))])"),
        );
        for arguments in [
            &["check", &file][..],
            &["map", "info", &file],
            &["map", "convert", &file, &folder.path("out.tmap")],
            &["run", "town", "--ticks", "1", "--map", &file],
            &["run", &scenario],
            &["check", &scenario],
        ] {
            let found = run_throng(arguments);
            assert_eq!(
                (found.code, found.out.as_str()),
                (2, ""),
                "{arguments:?}: {}",
                found.err
            );
            assert!(found.err.contains(told), "{arguments:?}: {}", found.err);
            if let Some(place) = place {
                assert!(
                    found.err.contains(&format!("{file}:{place}")),
                    "{arguments:?}: {}",
                    found.err
                );
            }
            if arguments.contains(&scenario.as_str()) {
                assert!(
                    found.err.contains(&format!("{scenario}:1:57\n")),
                    "{arguments:?}: {}",
                    found.err
                );
            }
        }
    }
}

/// Files that ask for far more than they hold: the program must refuse them within a gibibyte of address space.
#[test]
#[cfg(target_os = "linux")]
fn files_with_giant_sizes_are_refused_in_little_memory() {
    let folder = TempFolder::new();
    let mut files: Vec<String> = bad_maps()
        .into_iter()
        .map(|(name, content, ..)| folder.write(name, content))
        .collect();
    let scene = |nth: usize, map: &str| {
        format!("Scene(name: \"s{nth}\", cell_m: 1, margin_m: 0, max_objects: 1048576, map: {map})")
    };
    let grids: Vec<String> = (0..60)
        .map(|nth| {
            scene(
                nth,
                "Generate(Random(width_tiles: 2000, height_tiles: 2000))",
            )
        })
        .collect();
    let giant = "Generate(Random(width_tiles: 65536, height_tiles: 65536))";
    let nested = "[".repeat(1 << 20);
    for (name, scenes) in [
        ("grids.ron", grids.join(", ")),
        ("giant.ron", scene(0, giant)),
        ("nested.ron", nested),
    ] {
        files.push(folder.write(
            name,
            format!("Scenario(name: \"x\", duration_s: 0.05, scenes: [{scenes}])"),
        ));
    }
    for file in files {
        let arguments: &[&str] = if file.ends_with(".ron") {
            &["run", &file, "--threads", "1"]
        } else {
            &["map", "info", &file]
        };
        let plain = program(arguments);
        let mut limited = std::process::Command::new("sh");
        limited
            .args(["-c", "ulimit -v 1572864 && exec \"$@\"", "sh"])
            .arg(plain.get_program())
            .args(arguments);
        let output = limited
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{file}: {err}");
        assert!(
            err.contains("error: ") && !err.contains("panicked"),
            "{file}: {err}"
        );
    }
}

#[test]
fn malformed_texts_are_refused() {
    let folder = TempFolder::new();
    let open: String = "Scenario(name: \"x\", scenes: ".to_owned() + &"[(".repeat(20_000);
    let long = format!("Scenario(name: \"{}\")", "x".repeat(1 << 20));
    for (name, content) in [
        ("nothing.ron", Vec::new()),
        ("zeros.ron", vec![0; 1000]),
        ("latin1.ron", b"Scenario(name: \"caf\xe9\")".to_vec()),
        ("open.ron", open.into_bytes()),
        ("long.ron", long.into_bytes()),
        ("comment.ron", b"/* Scenario(name: \"x\")".to_vec()),
        ("twice.ron", b"Scenario(name: \"x\", name: \"y\")".to_vec()),
        ("after.ron", b"Scenario(name: \"x\") and more".to_vec()),
        ("large.ron", vec![b' '; (4 << 20) + 1]),
    ] {
        let file = folder.write(name, content);
        for command in ["run", "check"] {
            let found = run_throng(&[command, &file]);
            assert_eq!(
                (found.code, found.out.as_str()),
                (2, ""),
                "{name}: {}",
                found.err
            );
            assert!(
                found.err.starts_with("error: ") && found.err.contains(&file),
                "{name}: {}",
                found.err
            );
            assert!(
                found.err.len() < 4000,
                "{name}: {} bytes of errors",
                found.err.len()
            );
        }
    }
}

/// What is refused when it runs is refused before, too.
#[test]
fn check_refuses_what_run_refuses() {
    let folder = TempFolder::new();
    for (fields, expected) in [
        (
            "scenes: [Scene(name: \"a\", copies: 1000, cell_m: 5, map: Generate(Random(width_tiles: 1000, height_tiles: 1000)))]",
            "expected at most 4194304 grid cells in all open scenes",
        ),
        (
            "scenes: [Scene(name: \"a\", max_objects: 1048576)], crowds: [Crowd(kind: \"player\", count: 1000001)]",
            "expected at most 1000000 players in all crowds",
        ),
    ] {
        let file = folder.write(
            "x.ron",
            format!("Scenario(name: \"x\", duration_s: 1, {fields})"),
        );
        for command in ["check", "run"] {
            let told = run_throng(&[command, &file]);
            assert_eq!(told.code, 2, "{command} {fields}: {}{}", told.out, told.err);
            assert!(told.err.contains(expected), "{command}: {}", told.err);
        }
    }
}

/// Errors of the text and of its values, all in one answer.
#[test]
fn check_reports_all_errors_of_a_file() {
    let folder = TempFolder::new();
    let file = folder.write(
        "x.ron",
        "Scenario(name: \"x\", duration_s: \"long\",
scenes: [Scene(name: \"a\", colour: Red)],
crowds: [Crowd(tag: \"t\", speed: 3), Crowd(tag: \"u\", speed_m_s: -4)],
script: [At(t_s: 1, run: Despwan(tag: \"t\")), At(t_s: 2, run: Despawn(tag: \"nobody\"))])",
    );
    let told = run_throng(&["check", &file]);
    assert_eq!(told.code, 2);
    for part in [
        "expected a number in seconds for `duration_s`, found `\"long\"`",
        "unknown field `colour`",
        "unknown field `speed`, did you mean `speed_m_s`?",
        "expected crowds[1].speed_m_s from 0 to 1000 metres a second, found -4",
        "did you mean `Despawn`?",
        "unknown tag `nobody`",
    ] {
        assert!(told.err.contains(part), "{part}: {}", told.err);
    }
    assert!(
        !told.err.contains("is missing"),
        "a consequence: {}",
        told.err
    );
    assert_eq!(told.err.matches("error:").count(), 6, "{}", told.err);
    // Where a bracket is missing, all that follows is a consequence.
    let file = folder.write(
        "y.ron",
        "Scenario(name: \"x\", crowds: [Crowd(tag: \"t\", Crowd(colour: 3)], script: [At(t_s: 1, run: Despwan)])",
    );
    let told = run_throng(&["check", &file]);
    assert_eq!(told.err.matches("error:").count(), 1, "{}", told.err);
    assert!(
        told.err
            .contains("the bracket of `Crowd(` is not closed before `Crowd(`"),
        "{}",
        told.err
    );
}

#[test]
fn improbable_duration_is_a_warning_of_check() {
    let folder = TempFolder::new();
    let file = folder.write("x.ron", "Scenario(name: \"x\", duration_s: 75000)");
    let told = run_throng(&["check", &file]);
    assert_eq!(told.code, 0);
    assert!(
        told.err.contains("the run lasts 20 h 50 min"),
        "{}",
        told.err
    );
}

/// A wall that shuts in more and more of the crowd: how many still find a way is counted, not timed.
const SWEPT: &str = "Scenario(name: \"swept\", duration_s: 2, parameters: {\"npcs\": 10, \"walkers\": true},
scenes: [Scene(name: \"a\", map: Generate(Random(width_tiles: 80, height_tiles: 80, fill: 0)), max_objects: 9000)],
crowds: [Crowd(tag: \"t\", count: npcs, behaviour: Wander(radius_m: 5))], expect: [ViewsWithinCap])";

#[test]
fn sweep_finds_the_largest_value_that_meets_an_expectation() {
    let folder = TempFolder::new();
    let file = folder.write("x.ron", SWEPT);
    let until = "Counter(name: \"objects.npcs\", at_most: 777)";
    let told = run_throng(&[
        "run",
        &file,
        "--sweep",
        "npcs=100..5000",
        "--until",
        until,
        "--json",
    ]);
    assert_eq!(told.code, 0, "{}", told.err);
    let found = told.json();
    let (held, failed) = (&found["largest_passed"], &found["smallest_failed"]);
    let (held, failed) = (held.as_u64().unwrap(), failed.as_u64().unwrap());
    assert!(
        held <= 777 && failed > 777 && failed - held <= held / 20 + 10,
        "{found}"
    );
    assert!(
        found["tries"].as_array().unwrap().len() < 12,
        "each value once: {found}"
    );
    let told = run_throng(&["run", &file, "--sweep", "npcs=1000..5000", "--until", until]);
    assert_eq!(told.code, 1);
    assert!(
        told.out.contains("not even with npcs = 1000"),
        "{}",
        told.out
    );
    for (sweep, until, part) in [
        (
            "npcs=1..9",
            "Counter(name: \"objects.npc\", at_most: 5)",
            "--until: unknown counter",
        ),
        ("npc=1..9", until, "did you mean `npcs`?"),
        (
            "npcs=1..9",
            "NoUnreachabel",
            "did you mean `NoUnreachable`?",
        ),
        (
            "npcs=1..9",
            "MirrorsEqual",
            "has nothing to check with npcs = 1",
        ),
    ] {
        let told = run_throng(&["run", &file, "--sweep", sweep, "--until", until]);
        assert!(
            told.code == 2 && told.err.contains(part),
            "{part}: {} {}",
            told.code,
            told.err
        );
    }
}

#[test]
fn two_settings_are_shown_side_by_side() {
    let folder = TempFolder::new();
    let file = folder.write("x.ron", SWEPT.replace("ViewsWithinCap", ""));
    let set = [
        "--set",
        "npcs=20",
        "--set",
        "walkers=true",
        "--set",
        "npcs=50",
    ];
    let told = run_throng(&[&["run", &file, "--compare"], &set[..]].concat());
    assert_eq!((told.code, told.err.as_str()), (0, ""), "{}", told.out);
    for part in ["A npcs = 20: swept", "B npcs = 50: swept", "objects.npcs"] {
        assert!(told.out.contains(part), "{part}: {}", told.out);
    }
    let told = run_throng(&["run", &file, "--compare", "--set", "npcs=20"]);
    assert_eq!(told.code, 2);
    assert!(
        told.err.contains("expected a parameter with two values"),
        "{}",
        told.err
    );
}

#[test]
fn moves_of_players_are_figures_of_the_report() {
    let folder = TempFolder::new();
    let file = folder.write(
        "x.ron",
        "Scenario(name: \"x\", duration_s: 10, scenes: [Scene(name: \"a\")], crowds: [Crowd(kind: \"player\", count: 5, messages_per_s: 10, behaviour: Wander(radius_m: 10))],
expect: [Counter(name: \"movement.moves_accepted\", at_least: 10), Counter(name: \"movement.moves_refused\", at_most: 0),
Between(from_s: 9.9, until_s: 10, expect: Counter(name: \"movement.moves_accepted\", at_most: 9))])",
    );
    let told = run_throng(&["run", &file]);
    assert_eq!(told.code, 0, "{}{}", told.out, told.err);
    assert!(
        told.out.contains(" of players, 0 refused and corrected"),
        "{}",
        told.out
    );
}
