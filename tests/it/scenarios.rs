//! Promise: bad input does no harm. The program exits with code 2, reports the location, the line and a hint, and takes no more memory than
//! for a valid file.

use std::process::Stdio;

use crate::harness::{TempFolder, program, run_throng};

/// An invalid scenario, with its expected error.
struct BadScenario {
    what: &'static str,
    /// A `^` marks the character at which the error must point; it is removed before the test.
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
        what: "a list for a single value",
        text: "Scenario(name: \"x\", duration_s: ^[1])",
        expected: &["expected"],
    },
    BadScenario {
        what: "a map that does not exist",
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
        what: "a count that no integer can hold",
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
        what: "two scenes with one name",
        text: "Scenario(name: \"x\", scenes: [Scene(name: \"a\"), Scene(name: ^\"a\")])",
        expected: &["`a` twice"],
    },
    BadScenario {
        what: "more objects than a scene holds",
        text: "Scenario(name: \"x\", scenes: [Scene(name: \"a\", max_objects: 1)], crowds: [Crowd(count: ^5)])",
        expected: &["at most 1 objects"],
    },
    BadScenario {
        what: "a mode with empty groups",
        text: "Scenario(name: \"x\", settings: (matchmaking: (modes: [Groups(group_size: ^0)])))",
        expected: &["group_size"],
    },
    BadScenario {
        what: "packets below the minimum size",
        text: "Scenario(name: \"x\", settings: (outbox: (mtu_bytes: ^100)))",
        expected: &["mtu_bytes from 500 to 65507 bytes, found 100"],
    },
    BadScenario {
        what: "sender threads, which would make the run depend on their timing",
        text: "Scenario(name: \"x\", settings: (outbox: (^shards: 2)))",
        expected: &["unknown field `shards`"],
    },
    BadScenario {
        what: "an unclosed bracket",
        text: "Scenario(name: \"x\", scenes: ^[Scene(name: \"a\")",
        expected: &["expected a closing bracket for `[`"],
    },
    BadScenario {
        what: "a text that is not a scenario",
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
        expected: messages,
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
            for text in messages {
                assert!(err.contains(text), "{command} {what}: {err}");
            }
            // The line, or the part of a long line around the error, with a mark below it.
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

/// Invalid maps: file name, content, location of the error (for text formats), and message.
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
    for (name, content, place, message) in bad_maps() {
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
            assert!(found.err.contains(message), "{arguments:?}: {}", found.err);
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

/// Files whose header claims far more data than they contain must be refused within 1.5 GiB of address space.
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

/// Scenarios that `run` refuses are refused by `check`, too.
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
            let output = run_throng(&[command, &file]);
            assert_eq!(
                output.code, 2,
                "{command} {fields}: {}{}",
                output.out, output.err
            );
            assert!(output.err.contains(expected), "{command}: {}", output.err);
        }
    }
}

/// All syntax and value errors are reported at once.
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
    let output = run_throng(&["check", &file]);
    assert_eq!(output.code, 2);
    for part in [
        "expected a number in seconds for `duration_s`, found `\"long\"`",
        "unknown field `colour`",
        "unknown field `speed`, did you mean `speed_m_s`?",
        "expected crowds[1].speed_m_s from 0 to 1000 metres a second, found -4",
        "did you mean `Despawn`?",
        "unknown tag `nobody`",
    ] {
        assert!(output.err.contains(part), "{part}: {}", output.err);
    }
    assert!(
        !output.err.contains("is missing"),
        "a consequence: {}",
        output.err
    );
    assert_eq!(output.err.matches("error:").count(), 6, "{}", output.err);
    // After a missing bracket, all further errors would be consequences.
    let file = folder.write(
        "y.ron",
        "Scenario(name: \"x\", crowds: [Crowd(tag: \"t\", Crowd(colour: 3)], script: [At(t_s: 1, run: Despwan)])",
    );
    let output = run_throng(&["check", &file]);
    assert_eq!(output.err.matches("error:").count(), 1, "{}", output.err);
    assert!(
        output
            .err
            .contains("the bracket of `Crowd(` is not closed before `Crowd(`"),
        "{}",
        output.err
    );
}

#[test]
fn improbable_duration_is_a_warning_of_check() {
    let folder = TempFolder::new();
    let file = folder.write("x.ron", "Scenario(name: \"x\", duration_s: 75000)");
    let output = run_throng(&["check", &file]);
    assert_eq!(output.code, 0);
    assert!(
        output.err.contains("the run lasts 20 h 50 min"),
        "{}",
        output.err
    );
}

#[test]
fn value_in_a_wrong_unit_is_a_warning_of_check() {
    let folder = TempFolder::new();
    let text = "Scenario(name: \"x\", scenes: [Scene(name: \"a\",\n    tile_m: 50, map: Generate(Random(width_tiles: 30, height_tiles: 30)))],\n    crowds: [Crowd(count: 1, at: Ring(center_m: (9, 9), radius_m: 1), speed_m_s: 300)])";
    let file = folder.write("x.ron", text);
    let output = run_throng(&["check", &file]);
    assert_eq!(output.code, 0, "{}", output.err);
    for part in [
        "`tile_m` is usually 0.1 to 5 metres, found `50`",
        "x.ron:2:13",
        "`speed_m_s` is usually 0.05 to 60 metres a second, found `300`",
    ] {
        assert!(output.err.contains(part), "{part}: {}", output.err);
    }
}

#[test]
fn missing_comma_is_one_error_and_hides_no_other() {
    let folder = TempFolder::new();
    let text = "Scenario(\n    name: \"x\"\n    duration_s: 9,\n    scenes: [Scene(name: \"a\")]\n    crowds: [Crowd(count: 1), Crowd(countt: 2)],\n)";
    let file = folder.write("x.ron", text);
    let output = run_throng(&["check", &file]);
    assert_eq!(output.code, 2);
    for part in [
        "expected `,` or a closing bracket, found `duration_s`",
        "add a comma after `\"x\"`",
        "expected `,` or a closing bracket, found `crowds`",
        "unknown field `countt`",
    ] {
        assert!(output.err.contains(part), "{part}: {}", output.err);
    }
    assert_eq!(output.err.matches("error: ").count(), 3, "{}", output.err);
    // Where a comma alone does not help, nothing that follows is reported.
    let file = folder.write(
        "y.ron",
        "Scenario(name: \"y\" 5, seed: 1 7, crowds: [Crowd(countt: 2)])",
    );
    let output = run_throng(&["check", &file]);
    assert_eq!(output.err.matches("error: ").count(), 1, "{}", output.err);
}

/// A wall encloses more and more of the crowd; the count of NPCs that still find a path does not depend on the machine.
const SWEPT: &str = "Scenario(name: \"swept\", duration_s: 2, parameters: {\"npcs\": 10, \"walkers\": true},
scenes: [Scene(name: \"a\", map: Generate(Random(width_tiles: 80, height_tiles: 80, fill: 0)), max_objects: 9000)],
crowds: [Crowd(tag: \"t\", count: npcs, behaviour: Wander(radius_m: 5))], expect: [ViewsWithinCap])";

#[test]
fn sweep_finds_the_largest_value_that_meets_an_expectation() {
    let folder = TempFolder::new();
    let file = folder.write("x.ron", SWEPT);
    let until = "Counter(name: \"objects.npcs\", at_most: 777)";
    let output = run_throng(&[
        "run",
        &file,
        "--sweep",
        "npcs=100..5000",
        "--until",
        until,
        "--json",
    ]);
    assert_eq!(output.code, 0, "{}", output.err);
    let found = output.json();
    let (held, failed) = (&found["largest_passed"], &found["smallest_failed"]);
    let (held, failed) = (held.as_u64().unwrap(), failed.as_u64().unwrap());
    assert!(
        held <= 777 && failed > 777 && failed - held <= held / 20 + 10,
        "{found}"
    );
    assert!(
        found["tries"].as_array().unwrap().len() < 12,
        "each value is tried once: {found}"
    );
    let output = run_throng(&["run", &file, "--sweep", "npcs=700..900", "--until", until]);
    assert_eq!(output.code, 0, "{}", output.err);
    for part in [
        "held in every run up to     npcs = 775 (1 of 1 run)",
        "failed in every run from    npcs = 800 (0 of 1 run)",
        "the result is the same in every run, so each value was run once",
    ] {
        assert!(output.out.contains(part), "{part}: {}", output.out);
    }
    let output = run_throng(&["run", &file, "--sweep", "npcs=1000..5000", "--until", until]);
    assert_eq!(output.code, 1);
    assert!(
        output
            .out
            .contains("not even with npcs = 1000 (0 of 1 run)"),
        "{}",
        output.out
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
        let output = run_throng(&["run", &file, "--sweep", sweep, "--until", until]);
        assert!(
            output.code == 2 && output.err.contains(part),
            "{part}: {} {}",
            output.code,
            output.err
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
    let output = run_throng(&[&["run", &file, "--compare"], &set[..]].concat());
    assert_eq!(
        (output.code, output.err.as_str()),
        (0, ""),
        "{}",
        output.out
    );
    for part in ["A npcs = 20: swept", "B npcs = 50: swept", "objects.npcs"] {
        assert!(output.out.contains(part), "{part}: {}", output.out);
    }
    let output = run_throng(&["run", &file, "--compare", "--set", "npcs=20"]);
    assert_eq!(output.code, 2);
    assert!(
        output.err.contains("expected a parameter with two values"),
        "{}",
        output.err
    );
}

#[test]
fn moves_of_players_are_figures_of_the_report() {
    let folder = TempFolder::new();
    let file = folder.write(
        "x.ron",
        "Scenario(name: \"x\", duration_s: 10, scenes: [Scene(name: \"a\")], crowds: [Crowd(kind: \"player\", count: 5, messages_per_s: 10, behaviour: Wander(radius_m: 10))],
expect: [Counter(name: \"movement.moves_accepted\", at_least: 10), Counter(name: \"movement.moves_refused\", at_most: 0), Counter(name: \"movement.moves_corrected\", at_most: 0),
Between(from_s: 9.9, until_s: 10, expect: Counter(name: \"movement.moves_accepted\", at_most: 9))])",
    );
    let output = run_throng(&["run", &file]);
    assert_eq!(output.code, 0, "{}{}", output.out, output.err);
    assert!(
        output.out.contains(" of players, 0 refused, 0 corrected"),
        "{}",
        output.out
    );
}
