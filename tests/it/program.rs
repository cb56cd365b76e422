//! The program as used by people and scripts: names in its output, exit codes, files, closed pipes.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::harness::{TempFolder, program, root, run_throng, run_throng_with_input};

/// A small scenario that uses every system.
pub const SMALL: &str = r#"Scenario(
    name: "small", seed: 3, duration_s: 5,
    scenes: [
        Scene(name: "yard", map: Generate(Rooms(width_tiles: 60, height_tiles: 60)), cell_m: 10, margin_m: 2, view_cap: 8),
        Scene(name: "cave", map: Generate(Cave(width_tiles: 60, height_tiles: 60)), cell_m: 10, margin_m: 2, view_cap: 8),
    ],
    crowds: [
        Crowd(tag: "people", kind: "player", count: 40, party_size: 3, client_share: 0.5, attributes_per_s: 2,
            churn_per_s: 4, behaviour: Wander(radius_m: 10)),
        Crowd(tag: "rats", kind: "npc", count: 20, behaviour: Flee(kind: "player", sight_m: 5)),
        Crowd(tag: "boss", kind: "boss", behaviour: Chase(kind: "player", sight_m: 20)),
    ],
    queues: [Queue(mode: "arena", settings: Groups(group_size: 2), parties: 30, parties_per_s: 10, cancels_per_s: 5)],
    script: [
        Every(t_s: 0.5, run: Toggle(rect_tiles: (10, 10, 4, 4))),
        At(t_s: 0.7, run: ChangeScene(tag: "people", count: 10, to: "cave")),
        At(t_s: 1, run: Teleport(tag: "people", count: 10, to: Share((0, 0), (1, 1)))),
        At(t_s: 1.5, run: SetSceneAttribute(attribute: "weather", value: 2)),
        Every(t_s: 0.4, run: Announce(tag: "people", count: 5, scope: Party, text: "Over here!")),
    ],
    expect: [ViewsWithinCap, NoObjectOnBlockedTile, MirrorsEqual, TicketsConserved],
)"#;

/// The groups of figures in a report, with their names.
const FIGURES: [(&str, &str); 12] = [
    ("tick_ms", "mean p50 p99 max"),
    ("objects", "players npcs other peak"),
    ("clients", "now peak logins logouts refused"),
    (
        "sessions",
        "login_queue max_login_queue max_admitted connections_lost resumed possessing spectating end_notices",
    ),
    (
        "paths",
        "requested found unreachable blocked out_of_bounds capped cancelled mean_us p99_us",
    ),
    ("builds", "adopted loaded waited waited_ms late late_ticks"),
    (
        "views",
        "cap links enters leaves evictions refills full_list_attempts longest_list",
    ),
    (
        "sync",
        "attributes_dirty deltas snapshots despawns moves unseen_updates announcements packets bytes bytes_per_client_s",
    ),
    (
        "matchmaking",
        "queued cancelled expired matches waiting mean_power_gap max_power_gap mean_spread p99_spread mean_wait_s max_wait_s",
    ),
    ("inbox", "received handled refused max_backlog max_lag_ms"),
    ("outbox", "packets bytes"),
    ("memory", "rss_bytes peak_rss_bytes"),
];

/// The timed sets of a tick.
const SETS: &str = "ingest think navigate move locate view heartbeat replicate send";

fn lines_of(path: &str) -> Vec<String> {
    fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn report_has_every_documented_counter() {
    let folder = TempFolder::new();
    let output = run_throng(&[
        "run",
        &folder.write("small.ron", SMALL),
        "--ticks",
        "40",
        "--json",
        "--no-timing",
    ]);
    assert_eq!(output.code, 0, "{}{}", output.out, output.err);
    let report = output.json();
    for name in [
        "scenario",
        "seed",
        "threads",
        "ticks",
        "sim_seconds",
        "wall_seconds",
        "state_hash",
    ] {
        assert!(report.get(name).is_some(), "{name}");
    }
    for (group, names) in FIGURES {
        for name in names.split(' ') {
            assert!(
                report[group][name].is_number(),
                "{group}.{name} in {report:#}"
            );
        }
    }
    for set in SETS.split(' ') {
        for name in ["mean_ms", "p99_ms", "max_ms"] {
            assert!(
                report["systems"][set][name].is_number(),
                "systems.{set}.{name}"
            );
        }
    }
    for expectation in report["expectations"].as_array().unwrap() {
        assert!(
            expectation["text"].is_string() && expectation["found"].is_string(),
            "{expectation}"
        );
        assert_eq!(expectation["passed"], Value::Bool(true), "{expectation}");
    }
    let hash = report["state_hash"].as_str().unwrap();
    assert!(
        hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{hash}"
    );
    assert_eq!(
        (report["ticks"].as_u64(), report["sim_seconds"].as_f64()),
        (Some(40), Some(2.0))
    );
    // The events that the scenario is made for have happened.
    for (group, name) in [
        ("paths", "found"),
        ("views", "enters"),
        ("views", "evictions"),
        ("sync", "deltas"),
        ("sync", "moves"),
        ("matchmaking", "matches"),
        ("inbox", "handled"),
        ("outbox", "packets"),
        ("clients", "logouts"),
        ("objects", "npcs"),
    ] {
        assert!(
            report[group][name].as_f64() > Some(0.0),
            "{group}.{name} in {report:#}"
        );
    }
}

#[test]
fn exit_code_separates_failed_expectations_from_bad_input() {
    let folder = TempFolder::new();
    let with = |expectation: &str| {
        let name = format!("{}.ron", expectation.len());
        let scenes_and_crowds = "scenes: [Scene(name: \"a\")], crowds: [Crowd(kind: \"player\")], queues: [Queue(parties: 1)]";
        folder.write(
            &name,
            format!("Scenario(name: \"x\", duration_s: 1.1, {scenes_and_crowds}, expect: [{expectation}])"),
        )
    };
    assert_eq!(run_throng(&["run", &with("TicketsConserved")]).code, 0);
    let broken = run_throng(&["run", &with("MatchesAtLeast(1)")]);
    assert_eq!(broken.code, 1);
    assert!(broken.out.contains("BROKEN"), "{}", broken.out);
    // Fails on any machine; its result is shown even if it is not checked.
    let timed = with("TickP99UnderMs(0.0)");
    assert_eq!(run_throng(&["run", &timed, "--check-timing"]).code, 1);
    let unjudged = run_throng(&["run", &timed, "--no-timing", "--json"]);
    assert_eq!(
        (unjudged.code, &unjudged.json()["expectations"][0]["passed"]),
        (0, &Value::Null)
    );
    assert_eq!(run_throng(&["run", &with("Nothing")]).code, 2);
    for usage in [
        &["run", "--ticks"][..],
        &["run", "--ticks", "-1"],
        &["run", "town", "--threads", "0"],
        &["run", "town", "--duration", "soon"],
        &["run", "town", "--ticks", "1", "--duration", "1s"],
        &["run", "town", "--positions"],
        &["run", "twon"],
        &["fly"],
        &["check"],
        &["check", "nowhere.ron"],
        &["map", "info", "nowhere.map"],
        &["map", "info", "Cargo.toml"],
    ] {
        let output = run_throng(usage);
        assert_eq!((output.code, output.out.as_str()), (2, ""), "{usage:?}");
        assert!(output.err.contains("error"), "{usage:?}: {}", output.err);
    }
    assert!(
        run_throng(&["run", "twon"])
            .err
            .contains("did you mean `town`?")
    );
}

#[test]
fn hashes_and_events_are_equal_on_one_and_four_threads() {
    let folder = TempFolder::new();
    let scenario = folder.write("small.ron", SMALL);
    let play = |threads: &str| {
        let (hashes, events) = (
            folder.path(&format!("{threads}.hashes")),
            folder.path(&format!("{threads}.jsonl")),
        );
        let result = run_throng(&[
            "run",
            &scenario,
            "--ticks",
            "60",
            "--threads",
            threads,
            "--no-timing",
            "--json",
            "--hashes",
            &hashes,
            "--events",
            &events,
            "--positions",
        ]);
        assert_eq!(result.code, 0, "{}{}", result.out, result.err);
        (
            result.json()["state_hash"].as_str().unwrap().to_owned(),
            lines_of(&hashes),
            lines_of(&events),
        )
    };
    let (last, hashes, events) = play("1");
    let (last_of_four, hashes_of_four, events_of_four) = play("4");
    assert_eq!((&last, &hashes), (&last_of_four, &hashes_of_four));
    assert!(events == events_of_four, "the events are equal");
    assert_eq!(hashes.len(), 60);
    let result: Vec<(u64, &str)> = hashes
        .iter()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(tick, hash)| (tick.parse().unwrap(), hash))
        .collect();
    assert_eq!(
        result.iter().map(|(tick, _)| *tick).collect::<Vec<_>>(),
        Vec::from_iter(1..=60)
    );
    assert_eq!(result.last().unwrap().1, last);
    let events: Vec<Value> = events
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ends = events.iter().filter(|event| event["type"] == "tick_end");
    let ends: Vec<(u64, &str)> = ends
        .map(|event| {
            (
                event["tick"].as_u64().unwrap(),
                event["hash"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(ends, result);
    // A run without outputs gives the same result.
    let plain = run_throng(&["run", &scenario, "--ticks", "60", "--no-timing", "--json"]).json();
    assert_eq!(plain["state_hash"], Value::String(last));
}

/// The fields of each event type, besides its tick and scene.
const FIELDS: [(&str, &str); 24] = [
    ("scene", "name map width height tile_m cell_m view_cap mode"),
    ("spawn", "id gen kind visibility viewer team x y"),
    ("despawn", "id gen"),
    ("team", "id team"),
    ("cap", "id view_cap"),
    ("hide", "id hidden"),
    ("cell", "id cx cy"),
    ("enter", "viewer target priority"),
    ("leave", "viewer target reason"),
    ("path", "id from to result length waypoints"),
    ("edit", "x y w h blocked"),
    ("late_build", "name clearance late_ticks"),
    ("announce", "from scope receivers"),
    ("ticket", "party size power skill mode roles avoid members"),
    ("left", "match party player"),
    ("backfill", "match party group"),
    ("expire", "party"),
    ("cancel", "party"),
    ("match", "id mode groups power spread quality"),
    ("login", "client player"),
    ("logout", "client player reason"),
    ("connection_lost", "client player"),
    ("resume", "client before player"),
    ("pos", "id x y"),
];

/// Events that the test's scenario cannot cause.
const UNSEEN: [&str; 5] = ["cap", "hide", "late_build", "left", "backfill"];

#[test]
fn every_event_has_tick_scene_and_its_fields() {
    let folder = TempFolder::new();
    let events = folder.path("events.jsonl");
    let text = SMALL
        .replace(
            "script: [",
            "script: [At(t_s: 1, run: SetTeam(tag: \"rats\", count: 3, team: 5)),
            At(t_s: 1, run: Disconnect(tag: \"people\", count: 3, for_s: 1)),",
        )
        // A match needs groups of four, so no match is found.
        .replace(
            "queues: [",
            "queues: [Queue(mode: \"late\", settings: Groups(group_size: 4, expire_after_s: 1), parties: 1, size_weights: (1, 0, 0, 0, 0)), ",
        );
    let scenario = folder.write("small.ron", text);
    let output = run_throng(&[
        "run",
        &scenario,
        "--ticks",
        "60",
        "--no-timing",
        "--events",
        &events,
        "--positions",
    ]);
    assert_eq!(output.code, 0, "{}{}", output.out, output.err);
    let mut seen = BTreeSet::new();
    let mut last_tick = 0;
    for (nth, line) in lines_of(&events).iter().enumerate() {
        let event: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
        let kind = event["type"].as_str().unwrap().to_owned();
        let tick = event["tick"].as_u64().unwrap();
        assert!(tick >= last_tick, "{line} after tick {last_tick}");
        last_tick = tick;
        assert!(
            event
                .get("scene")
                .is_some_and(|scene| scene.is_null() || scene.is_u64()),
            "{line}"
        );
        if nth < 2 {
            assert_eq!(kind, "scene", "a scene event comes before others: {line}");
        }
        if kind != "tick_end" {
            let fields = FIELDS
                .iter()
                .find(|(name, _)| *name == kind)
                .unwrap_or_else(|| panic!("unknown: {line}"))
                .1;
            for field in fields.split(' ') {
                assert!(event.get(field).is_some(), "{field} is missing in {line}");
            }
        }
        seen.insert(kind);
    }
    let unseen: Vec<_> = FIELDS
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !seen.contains(*name))
        .collect();
    assert_eq!(unseen, UNSEEN);
}

#[test]
fn map_option_replaces_the_map_of_the_first_scene() {
    let village = root()
        .join("assets/maps/village.tmap")
        .display()
        .to_string();
    let berlin = root().join("../shared/movingai/Berlin_0_1024.map");
    let berlin = berlin.is_file().then(|| berlin.display().to_string());
    for map in [Some(village), berlin].into_iter().flatten() {
        let output = run_throng(&[
            "run",
            "town",
            "--map",
            &map,
            "--ticks",
            "10",
            "--json",
            "--no-timing",
        ]);
        assert!(output.code < 2, "{}", output.err);
        let report = output.json();
        assert!(
            report["clients"]["logins"].as_u64() > Some(1000),
            "{report:#}"
        );
        let on_blocked = report["expectations"]
            .as_array()
            .unwrap()
            .iter()
            .find(|e| e["text"] == "nobody on a blocked tile");
        assert_eq!(on_blocked.unwrap()["passed"], Value::Bool(true));
    }
}

#[test]
fn check_describes_files_and_continues_after_a_bad_one() {
    let folder = TempFolder::new();
    let bad = folder.write("bad.ron", "Scenario(nam: \"x\")");
    let map = root()
        .join("assets/maps/village.tmap")
        .display()
        .to_string();
    let output = run_throng(&["check", "town", &bad, "siege", &map]);
    assert_eq!(output.code, 2);
    let lines: Vec<&str> = output.out.lines().collect();
    assert_eq!(lines.len(), 3, "{}", output.out);
    assert!(
        lines[0].starts_with("town: ok, ")
            && lines[1].starts_with("siege: ok, ")
            && lines[2].contains("tiles")
    );
    assert!(
        output.err.contains("did you mean `name`?"),
        "{}",
        output.err
    );
    assert_eq!(
        run_throng(&[
            "check",
            "town",
            "siege",
            "boss",
            "arena_night",
            "churn",
            "auction",
            "royale",
            "raid",
            "overload"
        ])
        .code,
        0
    );
    let quiet = run_throng(&["check", "-q", "town"]);
    assert_eq!(
        (quiet.code, quiet.out.as_str(), quiet.err.as_str()),
        (0, "", "")
    );
}

#[test]
fn map_without_a_free_tile_gives_a_warning() {
    let folder = TempFolder::new();
    let solid = folder.write("solid.map", "type octile\nheight 1\nwidth 2\nmap\n@T\n");
    let output = run_throng(&["check", &solid]);
    assert_eq!(output.code, 0);
    assert!(output.out.contains("2 × 1 tiles"), "{}", output.out);
    assert!(
        output.err.contains("warning") && output.err.contains("no free tile"),
        "{}",
        output.err
    );
    let scenario =
        "Scenario(name: \"solid\", scenes: [Scene(name: \"a\", map: File(\"solid.map\"))])";
    let scenario = folder.write("solid.ron", scenario);
    let output = run_throng(&["check", &scenario]);
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(output.err.contains("no free tile"), "{}", output.err);
}

#[test]
fn map_output_does_not_overwrite_its_input() {
    let folder = TempFolder::new();
    let map = folder.write("a.map", "type octile\nheight 1\nwidth 2\nmap\n@.\n");
    let image = folder.path("a.png");
    assert_eq!(run_throng(&["map", "convert", &map, &image]).code, 0);
    let dotted = image.replace("a.png", "./a.png");
    for arguments in [
        ["map", "convert", &map, &map],
        ["map", "convert", &image, &dotted],
        ["map", "render", &image, &dotted],
    ] {
        let before = fs::read(arguments[2]).unwrap();
        let output = run_throng(&arguments);
        assert_eq!(output.code, 2, "{arguments:?}");
        assert!(
            output.err.contains("which is the input as well"),
            "{}",
            output.err
        );
        assert_eq!(fs::read(arguments[2]).unwrap(), before);
    }
}

#[test]
fn maps_are_shown_converted_and_drawn() {
    let folder = TempFolder::new();
    let drawn = folder.write(
        "a.map",
        "type octile\nheight 3\nwidth 4\nmap\n..@.\n..@.\n@@@.\n",
    );
    let info = run_throng(&["map", "info", &drawn, "--json"]);
    let figures = info.json();
    for (name, value) in [
        ("width", 4),
        ("height", 3),
        ("tiles", 12),
        ("free_tiles", 7),
        ("regions", 2),
        ("largest_region_tiles", 4),
    ] {
        assert_eq!(figures[name].as_u64(), Some(value), "{name} in {figures}");
    }
    assert!(
        figures["memory"]["regions_bytes"].is_u64() && figures["load_ms"].is_number(),
        "{figures}"
    );
    assert!(
        run_throng(&["map", "info", &drawn])
            .out
            .contains("4 × 3 tiles")
    );
    // Converts the map through all formats back to the first one.
    let mut from = drawn.clone();
    for name in ["b.tmap", "c.png", "d.4x3.raw", "e.map"] {
        let to = folder.path(name);
        let output = run_throng(&["map", "convert", &from, &to]);
        assert_eq!(
            (output.code, output.err.as_str()),
            (0, ""),
            "{from} to {to}"
        );
        from = to;
    }
    assert_eq!(fs::read(&from).unwrap(), fs::read(&drawn).unwrap());
    let image = folder.path("a.png");
    assert_eq!(run_throng(&["map", "render", &drawn, &image]).code, 0);
    assert!(fs::read(&image).unwrap().starts_with(b"\x89PNG"));
    assert_eq!(
        run_throng(&["map", "render", &drawn, &folder.path("a.jpg")]).code,
        2
    );
    assert_eq!(
        run_throng(&["map", "convert", &drawn, &folder.path("a.raw")]).code,
        2
    );
    assert_eq!(
        run_throng(&["map", "convert", &drawn, &folder.path("no/such/folder.map")]).code,
        2
    );
}

#[test]
fn every_subcommand_has_help() {
    for command in [
        &[][..],
        &["run"],
        &["check"],
        &["map"],
        &["map", "info"],
        &["map", "convert"],
        &["map", "render"],
        &["map", "generate"],
        &["path"],
        &["bench"],
        &["completions"],
        &["man"],
    ] {
        for flag in ["--help", "-h"] {
            let output = run_throng(&[command, &[flag]].concat());
            assert_eq!((output.code, output.err.as_str()), (0, ""), "{command:?}");
            assert!(
                output.out.contains("Usage: throng") && output.out.contains("Example"),
                "{command:?}: {}",
                output.out
            );
            for line in output.out.lines() {
                assert!(line.chars().count() <= 80, "{command:?}: {line}");
            }
        }
    }
    let version = run_throng(&["-V"]);
    assert_eq!(
        version.out.trim(),
        concat!("throng ", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn closed_pipes_are_no_errors() {
    let folder = TempFolder::new();
    let scenario = folder.write("small.ron", SMALL);
    for arguments in [
        &["run", &scenario, "--ticks", "5", "--no-timing"][..],
        &["run", &scenario, "--ticks", "5", "--no-timing", "--json"],
        &["check", "town", "siege", "boss"],
        &["map", "info", "assets/maps/village.tmap"],
        &["--help"],
    ] {
        let mut command = program(arguments);
        command
            .current_dir(root())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Closes the pipe before the program writes to it.
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {err}");
        assert!(!err.contains("panicked"), "{err}");
    }
    let mut command = program(&["check", "twon"]);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert_eq!(
        run_throng_with_input(&["check", "town"], "what is this?\n").code,
        0
    );
}

#[test]
fn unwritable_output_is_an_error_with_a_reason() {
    let folder = TempFolder::new();
    let scenario = folder.write("small.ron", SMALL);
    for flag in ["--events", "--hashes"] {
        let nowhere = folder.path("no/such/file");
        let output = run_throng(&["run", &scenario, "--ticks", "5", flag, &nowhere]);
        assert_eq!(output.code, 2, "{flag}");
        assert!(output.err.contains(&nowhere), "{flag}: {}", output.err);
    }
    if cfg!(target_os = "linux") {
        for flag in ["--events", "--hashes", "--trace"] {
            let output = run_throng(&[
                "run",
                &scenario,
                "--ticks",
                "60",
                "--no-timing",
                flag,
                "/dev/full",
            ]);
            assert_eq!(output.code, 2, "{flag}");
            assert!(
                output.err.contains("could not write"),
                "{flag}: {}",
                output.err
            );
        }
        let full = fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let output = program(&["check", "town"])
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
    }
}
