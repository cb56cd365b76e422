//! Promise: views are exact. The event log of a busy scenario is replayed against a brute-force model that knows cells, but no grids, links
//! or queues.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::harness::{
    RunConfig, TempFolder, assert_expectations, run_throng, run_to_end, scenario_of,
};

/// Scenes that open and close, logins and logouts, teleports, deaths and scene changes, with so few objects that no viewer waits in the
/// queue beyond its tick.
const RESTLESS: &str = r#"Scenario(
    name: "restless", seed: 11, duration_s: 20,
    scenes: [
        Scene(name: "yard", map: Generate(Random(width_tiles: 120, height_tiles: 80, fill: 0.2)), cell_m: 10, margin_m: 2,
            view_cap: 9, npc_cap: 4, thing_cap: 1),
        Scene(name: "cave", map: Generate(Cave(width_tiles: 100, height_tiles: 100)), cell_m: 8, margin_m: 0, view_cap: 5, npc_cap: 50),
    ],
    crowds: [
        Crowd(tag: "people", kind: "player", count: 90, party_size: 3, team: 1, client_share: 0.2, churn_per_s: 15, speed_m_s: 6,
            behaviour: Wander(radius_m: 20)),
        Crowd(tag: "rats", kind: "npc", count: 60, team: 2, speed_m_s: 5, behaviour: Flee(kind: "player", sight_m: 8)),
        Crowd(tag: "doors", kind: "door", count: 10),
        Crowd(tag: "boss", kind: "boss", behaviour: Chase(kind: "player", sight_m: 20)),
        Crowd(tag: "miners", kind: "player", scene: "cave", count: 40, churn_per_s: 5, behaviour: Wander(radius_m: 10)),
    ],
    script: [
        Every(t_s: 0.7, run: Teleport(tag: "people", count: 20, to: Share((0, 0), (1, 1)))),
        Every(t_s: 1.1, from_s: 1, run: ChangeScene(tag: "people", count: 15, to: "cave")),
        Every(t_s: 1.3, from_s: 2, run: ChangeScene(tag: "people", count: 25, to: "yard")),
        Every(t_s: 0.9, from_s: 1, run: SetTeam(tag: "people", count: 10, team: 3)),
        Every(t_s: 3, from_s: 2, run: Despawn(tag: "rats", count: 20)),
        Every(t_s: 3, from_s: 3, run: Spawn(tag: "rats", kind: "npc", count: 20, behaviour: Wander(radius_m: 10))),
        At(t_s: 4, run: Despawn(tag: "boss")),
        At(t_s: 6, run: Spawn(tag: "boss", kind: "boss")),
        Every(t_s: 6, from_s: 2, run: OpenScene(name: "island", map: Generate(Rooms(width_tiles: 60, height_tiles: 60)), cell_m: 15, view_cap: 7)),
        Every(t_s: 6, from_s: 2.5, run: ChangeScene(tag: "miners", to: "island")),
        Every(t_s: 6, from_s: 5, run: CloseScene(scene: "island")),
    ],
    expect: [ViewsWithinCap, ViewsStable, MirrorsEqual, NoObjectOnBlockedTile],
)"#;

/// An object of a scene in the model.
#[derive(Debug)]
struct SeenObject {
    generation: u64,
    class: usize,
    everywhere: bool,
    viewer: bool,
    cell: Option<(i64, i64)>,
}

/// A scene in the model.
#[derive(Debug, Default)]
struct LoggedScene {
    cell_m: f64,
    margin_m: f64,
    size_m: (f64, f64),
    caps: Vec<usize>,
    objects: BTreeMap<u64, SeenObject>,
    /// View links, as viewer and target.
    links: BTreeSet<(u64, u64)>,
    /// The last generation of each id, and the tick of its last despawn.
    last: BTreeMap<u64, (u64, u64)>,
}

impl LoggedScene {
    fn in_range(&self, viewer: u64, target: u64) -> bool {
        let (a, b) = (&self.objects[&viewer], &self.objects[&target]);
        let (Some(a), Some(at)) = (a.cell, b.cell) else {
            return false;
        };
        b.everywhere || ((a.0 - at.0).abs() <= 1 && (a.1 - at.1).abs() <= 1)
    }

    /// Checks the links, lists and caps at the end of a tick.
    fn check(&self, tick: u64) {
        let mut listed: BTreeMap<(u64, usize), usize> = BTreeMap::new();
        for &(viewer, target) in &self.links {
            assert!(viewer != target, "tick {tick}: {viewer} sees itself");
            assert!(
                self.objects[&viewer].viewer,
                "tick {tick}: {viewer} is not a viewer"
            );
            assert!(
                self.in_range(viewer, target),
                "tick {tick}: {viewer} sees {target} out of range"
            );
            let target = &self.objects[&target];
            if !target.everywhere {
                *listed.entry((viewer, target.class)).or_default() += 1;
            }
        }
        for (&(viewer, class), &count) in &listed {
            assert!(
                count <= self.caps[class],
                "tick {tick}: {viewer} sees {count} of class {class}"
            );
        }
        for (&viewer, _) in self.objects.iter().filter(|(_, object)| object.viewer) {
            for (&target, object) in &self.objects {
                if viewer == target
                    || !self.in_range(viewer, target)
                    || self.links.contains(&(viewer, target))
                {
                    continue;
                }
                let full = listed.get(&(viewer, object.class)) == Some(&self.caps[object.class]);
                assert!(
                    !object.everywhere && full,
                    "tick {tick}: {viewer} does not see {target}, but has a free slot"
                );
            }
        }
    }

    /// Checks that a position is in its object's cell, extended by the margin.
    fn check_position(&self, tick: u64, id: u64, (x, y): (f64, f64)) {
        let cell = self.objects[&id]
            .cell
            .unwrap_or_else(|| panic!("tick {tick}: {id} has no cell"));
        for (at, cell, size_m) in [(x, cell.0, self.size_m.0), (y, cell.1, self.size_m.1)] {
            let low = cell as f64 * self.cell_m - self.margin_m;
            let high = (cell + 1) as f64 * self.cell_m + self.margin_m;
            assert!(
                (0.0..=size_m).contains(&at),
                "tick {tick}: {id} at {at} is outside of the scene"
            );
            assert!(
                (low - 1e-4..=high + 1e-4).contains(&at),
                "tick {tick}: {id} at {at} is not in cell {cell}"
            );
        }
    }
}

impl SeenObject {
    fn from_event(event: &Value) -> Self {
        let class = match event["kind"].as_str().unwrap() {
            "player" => 0,
            "npc" | "boss" => 1,
            "door" => 2,
            other => panic!("unexpected kind {other}"),
        };
        Self {
            generation: event["gen"].as_u64().unwrap(),
            class,
            everywhere: event["visibility"] == "scene",
            viewer: event["viewer"].as_bool().unwrap(),
            cell: None,
        }
    }
}

impl LoggedScene {
    fn from_event(event: &Value) -> Self {
        let metres = |name: &str| event[name].as_f64().unwrap_or_else(|| panic!("{name}"));
        let tile_m = metres("tile_m");
        let caps = event["caps"].as_array().unwrap().iter();
        Self {
            cell_m: metres("cell_m"),
            margin_m: metres("margin_m"),
            size_m: (metres("width") * tile_m, metres("height") * tile_m),
            caps: caps.map(|cap| cap.as_u64().unwrap() as usize).collect(),
            ..Self::default()
        }
    }
}

impl LoggedScene {
    /// Adds an object. Returns whether its id was used before.
    fn spawn(&mut self, event: &Value) -> bool {
        let (id, seen) = (event["id"].as_u64().unwrap(), SeenObject::from_event(event));
        let before = self.last.insert(id, (seen.generation, 0));
        if let Some((generation, _)) = before {
            assert!(
                seen.generation > generation,
                "the generation is not new: {event}"
            );
        }
        assert!(
            self.objects.insert(id, seen).is_none(),
            "the id is in use: {event}"
        );
        before.is_some()
    }
}

/// Replays a log, and checks it. Returns the number of events by type.
fn replay(lines: &str) -> BTreeMap<String, u64> {
    let mut scenes: BTreeMap<u64, LoggedScene> = BTreeMap::new();
    let mut counts = BTreeMap::new();
    for line in lines.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let number = |name: &str| {
            event[name]
                .as_u64()
                .unwrap_or_else(|| panic!("{name} in {line}"))
        };
        let metres = |name: &str| {
            event[name]
                .as_f64()
                .unwrap_or_else(|| panic!("{name} in {line}"))
        };
        let (kind, tick) = (event["type"].as_str().unwrap(), number("tick"));
        let mut count = |what: String| *counts.entry(what).or_insert(0) += 1;
        count(kind.to_owned());
        let id = event["scene"].as_u64().unwrap_or(u64::MAX);
        if kind == "scene" {
            assert!(
                scenes.insert(id, LoggedScene::from_event(&event)).is_none(),
                "the scene id is in use: {line}"
            );
            continue;
        }
        if kind == "tick_end" {
            for scene in scenes.values_mut() {
                if scene.objects.is_empty() {
                    // The links of a closed scene end without events.
                    scene.links.clear();
                }
                scene.check(tick);
            }
            continue;
        }
        let Some(scene) = scenes.get_mut(&id) else {
            assert!(event["scene"].is_null(), "unknown scene: {line}");
            continue;
        };
        match kind {
            "spawn" => {
                let is_reused = scene.spawn(&event);
                is_reused.then(|| count("id reused".to_owned()));
            }
            "despawn" => {
                let object = scene
                    .objects
                    .remove(&number("id"))
                    .unwrap_or_else(|| panic!("unknown object: {line}"));
                assert_eq!(object.generation, number("gen"), "{line}");
            }
            "cell" => {
                let cell = (number("cx") as i64, number("cy") as i64);
                let seen = scene.objects.get_mut(&number("id")).unwrap();
                assert_ne!(
                    seen.cell.replace(cell),
                    Some(cell),
                    "the cell did not change: {line}"
                );
            }
            "enter" => {
                assert!(
                    scene.links.insert((number("viewer"), number("target"))),
                    "the link exists: {line}"
                );
            }
            "leave" => {
                count(format!("leave by {}", event["reason"].as_str().unwrap()));
                assert!(
                    scene.links.remove(&(number("viewer"), number("target"))),
                    "the link does not exist: {line}"
                );
            }
            "pos" => scene.check_position(tick, number("id"), (metres("x"), metres("y"))),
            _ => {}
        }
    }
    counts
}

#[test]
fn event_log_of_a_restless_scenario_has_exact_views() {
    let folder = TempFolder::new();
    let (scenario, events) = (
        folder.write("restless.ron", RESTLESS),
        folder.path("events.jsonl"),
    );
    let output = run_throng(&[
        "run",
        &scenario,
        "--no-timing",
        "--json",
        "--events",
        &events,
        "--positions",
    ]);
    let report = output.json();
    assert_eq!(output.code, 0, "{report:#}");
    let counts = replay(&fs::read_to_string(&events).unwrap());
    for what in [
        "leave by range",
        "leave by evicted",
        "leave by despawn",
        "leave by scene",
        "id reused",
        "team",
    ] {
        assert!(
            counts.get(what).is_some_and(|&count| count > 15),
            "{what} in {counts:#?}"
        );
    }
    assert_eq!(counts["scene"], 5, "{counts:#?}");
    for (event, figure) in [
        ("enter", "enters"),
        ("leave", "leaves"),
        ("leave by evicted", "evictions"),
    ] {
        assert_eq!(
            Some(counts[event]),
            report["views"][figure].as_u64(),
            "{event}"
        );
    }
    assert_eq!(report["script_errors"], serde_json::json!([]));
}

/// Crowds with view ranges below and above the cell size, and one that sees the whole scene.
const RANGES: &str = r#"Scenario(name: "ranges", seed: 5, duration_s: 10,
    scenes: [Scene(name: "field", map: Generate(Random(width_tiles: 600, height_tiles: 400, fill: 0.1)), cell_m: 20, margin_m: 2, view_cap: 30)],
    crowds: [
        Crowd(tag: "near", kind: "player", count: 20, client_share: 1, speed_m_s: 6, view_range_m: 12.5, behaviour: Wander(radius_m: 30)),
        Crowd(tag: "scopes", kind: "player", count: 20, client_share: 1, speed_m_s: 6, view_range_m: 80, behaviour: Wander(radius_m: 30)),
        Crowd(tag: "masters", kind: "player", count: 3, client_share: 1, view_range_m: 1000),
        Crowd(tag: "people", kind: "player", count: 20, client_share: 0.5, churn_per_s: 4, behaviour: Wander(radius_m: 30)),
    ],
    script: [Every(t_s: 2, run: Teleport(tag: "people", count: 5, to: Share((0, 0), (1, 1))))],
    expect: [ViewsWithinCap, ViewsStable, MirrorsEqual])"#;

#[test]
fn clients_with_a_view_range_have_equal_mirrors() {
    let play = RunConfig {
        ticks: 200,
        threads: 2,
        ..RunConfig::default()
    };
    let report = run_to_end(scenario_of(RANGES), play);
    assert_expectations(&report);
    assert!(report.views.enters > 500, "{:?}", report.views);
    let plain = RANGES
        .replace("view_range_m: 12.5, ", "")
        .replace("view_range_m: 80, ", "")
        .replace(", view_range_m: 1000", "");
    let other = run_to_end(scenario_of(&plain), play);
    assert_ne!(other.views.enters, report.views.enters);
}
