//! Promise: the event log contains enough to check every match, from the lines of its tickets.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::harness::{TempFolder, run_throng};

/// Parties with roles and lists of avoided players; some leave their matches, and others join.
const ARENA: &str = r#"Scenario(name: "arena", seed: 5, duration_s: 40,
    scenes: [Scene(name: "lobby", map: Generate(Rooms(width_tiles: 60, height_tiles: 60)))],
    crowds: [Crowd(tag: "guests", kind: "player", count: 24, party_size: 2, behaviour: Wander(radius_m: 9))],
    queues: [Queue(mode: "arena", settings: Groups(group_size: 3, roles: (1, 0, 0, 0), limits_off_after_s: 1000, priority_after_s: 1000, skill_window_start: 3000),
        parties: 40, parties_per_s: 6, size_weights: (4, 1, 1, 0, 0), avoid_share: 0.5, role_weights: (1, 2, 1, 0, 0), cancels_per_s: 1,
        crowd_tag: "guests", match_duration_s: 8, requeue_delay_s: 1, leaves_per_s: 3, requeue_share: 0.5,
        match_scene: Scene(name: "arena", map: Generate(Rooms(width_tiles: 60, height_tiles: 60))))],
    script: [Every(t_s: 2, from_s: 5, run: Logout(tag: "guests", count: 3)), Every(t_s: 2, from_s: 6, run: Login(tag: "guests"))],
)"#;

/// Players per group, and the number of them that must play the first role.
const GROUP: u64 = 3;
const HEALERS: u64 = 1;

fn numbers(value: &Value) -> Vec<i64> {
    let list = value.as_array().expect("a list");
    list.iter().map(|n| n.as_i64().expect("a number")).collect()
}

/// What is known from the lines read so far.
#[derive(Default)]
struct LogReader {
    /// Waiting tickets, by party.
    waiting: BTreeMap<i64, Value>,
    /// The two sides of each match, as tickets; members who left are removed from their ticket.
    matches: BTreeMap<u64, [Vec<Value>; 2]>,
    filled: usize,
    /// Number of synthetic and of real players who left.
    left: [usize; 2],
}

impl LogReader {
    fn read_ticket(&mut self, line: Value) {
        let party = line["party"].as_i64().unwrap();
        assert_eq!(numbers(&line["members"]).len() as u64, line["size"]);
        let before = self.waiting.insert(party, line);
        assert!(before.is_none(), "party {party} is queued twice");
    }

    fn take_ticket(&mut self, party: i64) -> Value {
        let ticket = self.waiting.remove(&party);
        ticket.unwrap_or_else(|| panic!("party {party} does not wait"))
    }

    fn read_match(&mut self, line: &Value) {
        let mut sides: [Vec<Value>; 2] = Default::default();
        let groups = line["groups"].as_array().unwrap();
        for (side, group) in groups.iter().enumerate() {
            for party in numbers(group) {
                let ticket = self.take_ticket(party);
                assert_eq!(ticket["mode"], line["mode"]);
                sides[side].push(ticket);
            }
            let sum = |of: &dyn Fn(&Value) -> u64| sides[side].iter().map(of).sum::<u64>();
            assert_eq!(sum(&|ticket| ticket["size"].as_u64().unwrap()), GROUP);
            let power = sum(&|ticket| ticket["power"].as_u64().unwrap());
            assert_eq!(line["power"][side], power);
            let healers = sum(&|ticket| ticket["roles"][0].as_u64().unwrap());
            assert!(healers >= HEALERS, "{line}");
        }
        let all: Vec<&Value> = sides.iter().flatten().collect();
        let skills = all.iter().map(|ticket| ticket["skill"].as_i64().unwrap());
        let spread = skills.clone().max().unwrap() - skills.min().unwrap();
        assert_eq!(line["spread"], spread);
        check_avoided(&all);
        let id = line["id"].as_u64().unwrap();
        assert!(self.matches.insert(id, sides).is_none(), "match {id} twice");
    }

    fn read_backfill(&mut self, line: &Value) {
        let ticket = self.take_ticket(line["party"].as_i64().unwrap());
        let group = line["group"].as_u64().unwrap() as usize;
        let sides = self.sides(line);
        let mode = sides.iter().flatten().next().map(|other| &other["mode"]);
        assert!(mode.is_none_or(|mode| *mode == ticket["mode"]), "{line}");
        assert!((1..=GROUP).contains(&ticket["size"].as_u64().unwrap()));
        sides[group].push(ticket);
        let members = |ticket: &Value| numbers(&ticket["members"]).len() as u64;
        let players: u64 = sides[group].iter().map(members).sum();
        assert!(players <= GROUP, "{players} players with {line}");
        check_avoided(&sides.iter().flatten().collect::<Vec<_>>());
        self.filled += 1;
    }

    /// Removes a player from its party, and an empty party from its side.
    fn read_left(&mut self, line: &Value) {
        let is_of = |ticket: &&mut Value| ticket["party"] == line["party"];
        let sides = self.sides(line);
        let ticket = sides.iter_mut().flatten().find(is_of);
        let ticket = ticket.unwrap_or_else(|| panic!("the player is not in the match: {line}"));
        let members = ticket["members"].as_array_mut().unwrap();
        let at = members.iter().position(|player| *player == line["player"]);
        members.remove(at.unwrap_or_else(|| panic!("the player is not in its party: {line}")));
        for side in sides {
            side.retain(|ticket| !numbers(&ticket["members"]).is_empty());
        }
        self.left[usize::from(line["party"].as_i64().unwrap() > 0)] += 1;
    }

    /// The sides of the match that a line refers to.
    fn sides(&mut self, line: &Value) -> &mut [Vec<Value>; 2] {
        let id = line["match"].as_u64().unwrap();
        self.matches.get_mut(&id).expect("a match of the log")
    }
}

/// Fails if a player of a match avoids a player of another party in it.
fn check_avoided(tickets: &[&Value]) {
    for one in tickets {
        let avoided: BTreeSet<i64> = numbers(&one["avoid"]).into_iter().collect();
        for other in tickets
            .iter()
            .filter(|other| other["party"] != one["party"])
        {
            let met = numbers(&other["members"]);
            assert!(
                met.iter().all(|player| !avoided.contains(player)),
                "{one} plays with the avoided {other}"
            );
        }
    }
}

#[test]
#[should_panic(expected = "plays with the avoided")]
fn match_with_an_avoided_player_is_detected() {
    let one = serde_json::json!({ "party": 1, "members": [10], "avoid": [21] });
    let other = serde_json::json!({ "party": 2, "members": [20, 21], "avoid": [] });
    check_avoided(&[&other, &one]);
}

#[test]
fn match_log_suffices_to_check_every_match() {
    let folder = TempFolder::new();
    let (scenario, events) = (
        folder.write("arena.ron", ARENA),
        folder.path("events.jsonl"),
    );
    let output = run_throng(&[
        "run",
        &scenario,
        "--no-timing",
        "--json",
        "--events",
        &events,
    ]);
    assert_eq!(output.code, 0, "{}{}", output.out, output.err);
    let mut reader = LogReader::default();
    let (mut avoiders, mut real) = (0, 0);
    for line in fs::read_to_string(&events).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        match line["type"].as_str().unwrap() {
            "ticket" => {
                avoiders += usize::from(!numbers(&line["avoid"]).is_empty());
                real += usize::from(line["party"].as_i64().unwrap() > 0);
                reader.read_ticket(line);
            }
            "cancel" | "expire" => drop(reader.take_ticket(line["party"].as_i64().unwrap())),
            "match" => reader.read_match(&line),
            "left" => reader.read_left(&line),
            "backfill" => reader.read_backfill(&line),
            _ => {}
        }
    }
    let report = output.json();
    let figures = &report["matchmaking"];
    assert_eq!(figures["matches"], reader.matches.len());
    assert_eq!(figures["waiting"], reader.waiting.len());
    assert!(reader.matches.len() > 30 && avoiders > 50 && real > 5);
    assert!(reader.filled > 10, "{} joined", reader.filled);
    assert!(
        reader.left.iter().all(|&left| left > 5),
        "{:?}",
        reader.left
    );
}
