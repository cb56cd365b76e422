//! Promise: the output of a run is complete, overwrites no other file, and cannot control a terminal.

use std::collections::BTreeMap;
use std::fs;

use throng::outbox::{CaptureRecord, read_capture};
use throng::sync::Mirror;
use throng::wire::ClientId;

use crate::harness::{TempFolder, run_throng};

const SMALL: &str = r#"Scenario(name: "small", duration_s: 8,
    scenes: [Scene(name: "a", map: Generate(Random(width_tiles: 60, height_tiles: 60, fill: 0.05)))],
    crowds: [Crowd(kind: "player", count: 12, client_share: 0.5, churn_per_s: 0.5, attributes_per_s: 2, behaviour: Wander(radius_m: 9)),
        Crowd(count: 5, behaviour: Chase(kind: "player", sight_m: 20))],
    expect: [MirrorsEqual])"#;

#[test]
fn outputs_that_overwrite_files_are_refused_before_writing() {
    let folder = TempFolder::new();
    let scenario = folder.write("my.ron", SMALL);
    let (there, new) = (folder.write("there", "kept"), folder.path("new"));
    let (again, itself) = (folder.path("./new"), folder.path("./my.ron"));
    for (arguments, conflict) in [
        (vec!["--events", scenario.as_str()], "--events"),
        (vec!["--hashes", &there, "--capture", &itself], "--capture"),
        (vec!["--events", &new, "--hashes", &again], "--hashes"),
        (vec!["--map", &there, "--capture", &there], "--capture"),
    ] {
        let output = run_throng(&[&["run", "--ticks", "1", &scenario], &arguments[..]].concat());
        assert_eq!(output.code, 2, "{arguments:?}: {}", output.err);
        let expected = format!("error: {conflict} cannot write to `");
        assert!(output.err.starts_with(&expected), "{}", output.err);
        assert_eq!(fs::read_to_string(&scenario).unwrap(), SMALL);
        assert_eq!(fs::read_to_string(&there).unwrap(), "kept");
        assert!(fs::metadata(&new).is_err(), "{arguments:?}");
    }
}

#[test]
fn map_of_the_scenario_is_not_overwritten() {
    let folder = TempFolder::new();
    let map = folder.write("my.map", "type octile\nheight 1\nwidth 3\nmap\n...\n");
    let scenes = r#"Scenario(name: "x", scenes: [Scene(name: "a", map: File("my.map"))])"#;
    let scenario = folder.write("my.ron", scenes);
    let output = run_throng(&["run", &scenario, "--events", &map]);
    assert_eq!(output.code, 2, "{}", output.err);
    assert!(
        output.err.contains("a map of the scenario"),
        "{}",
        output.err
    );
    assert!(fs::read_to_string(&map).unwrap().starts_with("type octile"));
}

#[test]
fn invalid_scenario_keeps_earlier_outputs() {
    let folder = TempFolder::new();
    let scenario = folder.write("my.ron", SMALL.replace("count: 12", "client_share: 2"));
    let events = folder.write("events.jsonl", "from yesterday");
    let output = run_throng(&["run", &scenario, "--events", &events]);
    assert_eq!(output.code, 2, "{}", output.err);
    assert_eq!(fs::read_to_string(&events).unwrap(), "from yesterday");
    let (right, absent) = (folder.write("right.ron", SMALL), folder.path("absent.map"));
    let output = run_throng(&["run", &right, "--map", &absent, "--events", &events]);
    assert_eq!(output.code, 2, "{}", output.err);
    let no_folder = folder.path("absent/hashes");
    let output = run_throng(&["run", &right, "--events", &events, "--hashes", &no_folder]);
    assert_eq!(output.code, 2, "{}", output.err);
    assert_eq!(fs::read_to_string(&events).unwrap(), "from yesterday");
    let output = run_throng(&["run", &right, "--events", &events]);
    assert_eq!(output.code, 0, "{}", output.err);
    let written = fs::read_to_string(&events).unwrap();
    assert!(written.starts_with('{') && !written.contains("yesterday"));
}

#[test]
fn capture_holds_every_packet_as_it_was_sent() {
    let folder = TempFolder::new();
    let scenario = folder.write("my.ron", SMALL);
    let capture = folder.path("packets");
    let output = run_throng(&["run", &scenario, "--json", "--capture", &capture]);
    assert_eq!(output.code, 0, "{}", output.err);
    let report = output.json();
    let holds = &report["expectations"][0]["passed"];
    assert_eq!(*holds, true, "the captured packets update the mirrors");

    let bytes = fs::read(&capture).unwrap();
    let mut mirrors: BTreeMap<ClientId, Mirror> = BTreeMap::new();
    let (mut packets, mut sent_bytes) = (0, 0);
    for record in read_capture(&bytes) {
        match record.unwrap() {
            CaptureRecord::Packet(client, _, packet) => {
                packets += 1;
                sent_bytes += packet.len();
                let mirror = mirrors.entry(client).or_default();
                mirror.receive(packet).unwrap();
            }
            CaptureRecord::Closed(client, _) => _ = mirrors.remove(&client),
        }
    }
    assert_eq!(report["sync"]["packets"], packets);
    assert_eq!(report["sync"]["bytes"], sent_bytes);
    assert!(packets > 500, "{packets}");
    assert!(mirrors.values().all(|mirror| mirror.ids().len() > 5));

    // A capture does not affect the simulation.
    let without = run_throng(&["run", &scenario, "--json"]).json();
    assert_eq!(without["state_hash"], report["state_hash"]);
}

#[test]
fn control_characters_in_names_do_not_reach_the_terminal() {
    let folder = TempFolder::new();
    let text = SMALL.replace("\"small\"", "\"sm\u{1b}[2Jall\\n\\u{202e}\"");
    let scenario = folder.write("my\u{1b}[1m.ron", text);
    for arguments in [
        vec!["run", "--ticks", "1", &scenario],
        vec!["check", &scenario],
    ] {
        let output = run_throng(&arguments);
        assert_eq!(output.code, 0, "{}", output.err);
        let all = output.out + &output.err;
        assert!(!all.contains(['\u{1b}', '\u{202e}']), "{all}");
        assert!(all.contains("sm\\u{1b}[2Jall\\n\\u{202e}"), "{all}");
    }
    let wrong = SMALL.replace(
        "behaviour: Wander",
        "tag: \"\u{7}\u{1b}c\", behavior: Wander",
    );
    let output = run_throng(&["run", &folder.write("w\u{1b}.ron", wrong)]);
    assert_eq!(output.code, 2);
    assert!(!output.err.contains(['\u{1b}', '\u{7}']), "{}", output.err);
    let output = run_throng(&["run", "no\u{1b}[2J.ron"]);
    assert!(!output.err.contains('\u{1b}'), "{}", output.err);
}

#[test]
fn byte_order_mark_is_accepted() {
    let folder = TempFolder::new();
    let scenario = folder.write("my.ron", format!("\u{feff}{SMALL}"));
    assert_eq!(run_throng(&["check", &scenario]).code, 0);
    let wrong = SMALL.replace("Scenario(name", "Scenario(nam");
    let output = run_throng(&["check", &folder.write("w.ron", format!("\u{feff}{wrong}"))]);
    assert!(output.err.contains("w.ron:1:10"), "{}", output.err);
}

#[test]
fn trace_has_every_set_and_system_and_changes_nothing() {
    let folder = TempFolder::new();
    let scenario = folder.write("my.ron", SMALL);
    let (trace, plain, traced) = (
        folder.path("trace.json"),
        folder.path("plain"),
        folder.path("traced"),
    );
    let run = ["run", &scenario, "--quiet", "--ticks", "1003", "--hashes"];
    for more in [&[&plain[..]][..], &[&traced, "--trace", &trace]] {
        let output = run_throng(&[&run[..], more].concat());
        assert_eq!((output.code, output.err.as_str()), (0, ""));
    }
    assert_eq!(fs::read(&plain).unwrap(), fs::read(&traced).unwrap());
    let events: Vec<serde_json::Value> =
        serde_json::from_slice(&fs::read(&trace).unwrap()).unwrap();
    let mut threads: BTreeMap<u64, Vec<(&str, &str)>> = BTreeMap::new();
    let (mut sets, mut systems) = (BTreeMap::<&str, u32>::new(), BTreeMap::new());
    for event in &events {
        let text = |key: &str| event[key].as_str().unwrap();
        let open = threads.entry(event["tid"].as_u64().unwrap()).or_default();
        match text("ph") {
            "B" => {
                let set = open.iter().rev().find(|(kind, _)| *kind == "set");
                if text("cat") == "set" {
                    *sets.entry(text("name")).or_default() += 1;
                } else if let (Some((_, set)), "system") = (set, text("cat")) {
                    systems.insert(text("name"), *set);
                }
                open.push((text("cat"), text("name")));
            }
            "E" => assert_eq!(open.pop(), Some((text("cat"), text("name")))),
            other => assert!(["M", "i"].contains(&other), "{event}"),
        }
    }
    assert!(threads.values().all(Vec::is_empty), "{threads:?}");
    assert_eq!(sets.len(), 11);
    assert!(sets.values().all(|&ticks| ticks == 1_000), "{sets:?}");
    for (system, set) in [
        ("throng::sync::plugin::collect::collect", "replicate"),
        ("throng::outbox::plugin::send", "send"),
    ] {
        assert_eq!(systems.get(system), Some(&set), "{systems:#?}");
    }
}
