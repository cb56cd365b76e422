//! Promise: inspecting a running server shows why a party is not matched and what cells cost, without changing the simulation; a page can
//! request actions only if that is allowed, and only within the limits; a run can wait for its page, and ends with the same result as
//! without one.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::Stdio;

use serde_json::Value;
use throng::matchmaking::{MatchModeSettings, Matchmaker};
use throng::prelude::*;
use throng::world::PartyId;
use throng_inspect::{
    ActionPreset, InspectPlugin, InspectSettings, Inspector, PAGE_ACTIONS_MAX, open_inspector,
};
use tokio_tungstenite::tungstenite::Message;

use crate::harness::{TempFolder, program, run_throng};
use crate::inspect_page::{PageClient, inspected_server, wait_for};

#[test]
fn page_gets_wait_reasons_on_request_only() {
    let (mut server, address) = inspected_server();
    let world = server.world_mut();
    let mut matchmaker = Matchmaker::new(&[MatchModeSettings::groups("duel", 1)], 20.0).unwrap();
    // Far apart in skill, so that they wait until their limits widen.
    for nth in 0..30 {
        let player = PlayerId(100 + u64::from(nth));
        let mut ticket = Ticket::new(PartyId(nth), [player]);
        (ticket.since_tick, ticket.skill) = (u64::from(30 - nth), nth as i32 * 1_000);
        matchmaker.enqueue(ticket).unwrap();
    }
    world.insert_resource(matchmaker);
    let of = world
        .query::<&Object>()
        .iter(world)
        .next()
        .unwrap()
        .scene_entity();
    let at = Position(glam::vec2(5.0, 5.0));
    let body = (Player, PlayerId(107), InScene(of), at);
    let body = world.spawn(body).id();
    server.step(1);
    let mut page = PageClient::open(address, "", None).unwrap();
    page.receive(&mut server, |message| {
        let text = message.to_text().unwrap_or_default();
        assert!(
            !text.contains("wait_reasons"),
            "wait reasons without a request: {text}"
        );
        text.contains(r#""type":"state""#).then_some(())
    });
    page.send(r#"{"wait_reasons":true}"#);
    let answered = page.receive(&mut server, |message| {
        let reply: Value = serde_json::from_str(message.to_text().ok()?).ok()?;
        let parties = reply["parties"].as_array()?.clone();
        let is_all = parties.iter().all(|party| party["why"].is_string());
        is_all.then_some(parties)
    });
    // The parties that wait longest come first, up to the limit.
    let numbers: Vec<_> = answered.iter().map(|party| &party["party"]).collect();
    let expected: Vec<String> = (10..30).rev().map(|nth| nth.to_string()).collect();
    assert_eq!(numbers, expected.iter().collect::<Vec<_>>());
    for party in &answered {
        let why = party["why"].as_str().unwrap();
        assert!(why.contains("points of its skill; limits"), "{party}");
        assert_eq!(
            (&party["mode"], &party["size"]),
            (&"duel".into(), &1.into())
        );
    }
    // A party that is not listed is explained if its player is selected.
    let id = server.world().get::<Object>(body).unwrap().id().0;
    page.send(&format!(r#"{{"selected":{id}}}"#));
    page.receive(&mut server, |message| {
        let reply: Value = serde_json::from_str(message.to_text().ok()?).ok()?;
        let waits = &reply["wait_reason"];
        let is_right = waits["party"] == "7" && waits["why"].as_str()?.contains("skill");
        is_right.then_some(())
    });
}

#[test]
fn page_gets_heatmaps_and_the_state_hash_is_unchanged() {
    let (mut inspected, address) = inspected_server();
    let (mut other, _) = inspected_server();
    // Spawns a viewer with a path request.
    let spawn_walker = |server: &mut Server| {
        let world = server.world_mut();
        let of = world
            .query::<&Object>()
            .iter(world)
            .next()
            .unwrap()
            .scene_entity();
        let goal = glam::vec2(99.5, 90.0);
        let at = Position(glam::vec2(3.0, 3.0));
        let walker = (Npc, Viewer::default(), Walker, PathRequest::to(goal));
        world.spawn((walker, InScene(of), at));
    };
    let mut page = PageClient::open(address, "", None).unwrap();
    page.receive_section(&mut inspected, "hello");
    // The values of a heatmap, once some cell has one.
    let values = |message: Message, of: u32| match message {
        Message::Binary(bytes) if bytes[0] == 3 => {
            let word = |place: &[u8]| u32::from_le_bytes(place.try_into().unwrap());
            let words: Vec<u32> = bytes.chunks(4).map(word).collect();
            let cells = (words[3] * words[4]) as usize;
            assert_eq!((words[0], words.len()), (3, 6 + cells));
            let is_it = words[2] == of && words[6..].iter().any(|&value| value > 0);
            is_it.then(|| words[6..].to_vec())
        }
        _ => None,
    };
    page.send(r#"{"heat":"nodes"}"#);
    let mut spawn_ticks = Vec::new();
    let spawn_again = |_: &mut PageClient, server: &mut Server| {
        spawn_ticks.push(server.tick());
        spawn_walker(server);
    };
    let nodes = page.receive_while(&mut inspected, spawn_again, |message| values(message, 2));
    assert!(
        nodes[0] > 0,
        "nodes are counted where the path begins: {nodes:?}"
    );
    page.send(r#"{"heat":"links"}"#);
    let links = page.receive(&mut inspected, |message| values(message, 1));
    // Each new viewer sees the initial objects, and those spawned before it.
    assert!(links.iter().sum::<u32>() >= 30, "{links:?}");
    while other.tick() < inspected.tick() {
        if spawn_ticks.contains(&other.tick()) {
            spawn_walker(&mut other);
        }
        other.step(1);
    }
    assert_eq!(other.state_hash(), inspected.state_hash());
}

#[test]
fn page_actions_need_permission_and_are_limited() {
    let mut server = Server::builder().plugins(InspectPlugin).build();
    let settings = InspectSettings {
        page: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        action_presets: Some(vec![ActionPreset {
            name: "close the gate".into(),
            text: "Block(rect_tiles: (1, 2, 3, 4))".into(),
        }]),
        ..InspectSettings::default()
    };
    let address = open_inspector(server.world_mut(), settings).unwrap();
    server.step(1);
    let mut page = PageClient::open(address.page.unwrap(), "", None).unwrap();
    let hello = page.receive_section(&mut server, "hello");
    assert_eq!(hello["actions"][0]["name"], "close the gate", "{hello}");
    for nth in 0..PAGE_ACTIONS_MAX + 1 {
        page.send(&format!(r#"{{"action":"{nth}"}}"#));
    }
    let action_result = |message: Message| {
        let reply: Value = serde_json::from_str(message.to_text().ok()?).ok()?;
        (reply["type"] == "action").then_some(reply)
    };
    let more = |page: &mut PageClient, _: &mut Server| page.send(r#"{"action":"more"}"#);
    let refused = page.receive_while(&mut server, more, action_result);
    assert!(refused["error"].is_string(), "{refused}");
    let mut inspector = server.world_mut().resource_mut::<Inspector>();
    for nth in 0..PAGE_ACTIONS_MAX {
        assert_eq!(inspector.next_action(), Some(nth.to_string()));
    }
    let send_result = |_: &mut PageClient, server: &mut Server| {
        let mut inspector = server.world_mut().resource_mut::<Inspector>();
        inspector.send_action_result("0", 7, None);
    };
    page.receive_while(&mut server, send_result, |message| {
        let reply = action_result(message).filter(|reply| reply["text"] == "0")?;
        assert_eq!((&reply["tick"], &reply["error"]), (&7.into(), &Value::Null));
        Some(())
    });

    let (mut server, address) = inspected_server();
    let mut page = PageClient::open(address, "", None).unwrap();
    assert_eq!(
        page.receive_section(&mut server, "hello")["actions"],
        Value::Null
    );
    page.send(r#"{"action":"Drain"}"#);
    wait_for(&mut server, |stats| stats.junk == 1);
    let mut inspector = server.world_mut().resource_mut::<Inspector>();
    assert_eq!(inspector.next_action(), None);
}

#[test]
fn run_controlled_by_a_page_ends_with_the_same_hash() {
    let folder = TempFolder::new();
    let crowd = r#"Crowd(tag: "a", kind: "player", count: 20, behaviour: Wander(radius_m: 20))"#;
    let scenario = format!(
        r#"Scenario(name: "few", duration_s: 2, scenes: [Scene(name: "a", map: Generate(Random(width_tiles: 200, height_tiles: 200, fill: 0)))], crowds: [{crowd}])"#
    );
    let scenario = folder.write("few.ron", scenario);
    let [paced, free] = ["paced.txt", "free.txt"].map(|name| folder.path(name));
    let begin = ["run", &scenario, "--threads", "1", "--json"];
    let result = run_throng(&[&begin[..], &["--hashes", &free]].concat());
    assert_eq!(result.code, 0, "{}", result.err);
    let inspected = ["--inspect", "127.0.0.1:0", "--hashes", &paced];
    let mut run = program(&[&begin[..], &inspected].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut lines = BufReader::new(run.stderr.take().unwrap());
    lines.read_line(&mut line).unwrap();
    let address = line
        .split('/')
        .nth(2)
        .unwrap_or_else(|| panic!("an address in {line}"));
    let mut page = PageClient::open(address.parse().unwrap(), "", None).unwrap();
    let hello = page.receive_unrequested("hello").unwrap();
    assert_eq!(hello["pace"]["is_paused"], true, "{hello}");
    let tick = |page: &mut PageClient, expected: u64| {
        let is_there = |state: &Value| state["tick"] == expected;
        while !is_there(
            &page
                .receive_unrequested("state")
                .expect("the page gets the state"),
        ) {}
        // The state is sent again without a change.
        let again = page.receive_unrequested("state").unwrap();
        assert_eq!(again["tick"], expected);
    };
    tick(&mut page, 0);
    page.send(r#"{"pace":"step"}"#);
    tick(&mut page, 1);
    page.send(r#"{"pace":"step"}"#);
    page.send(r#"{"pace":"step"}"#);
    tick(&mut page, 3);
    page.send(r#"{"pace":{"speed":0}}"#);
    let result = page.receive_unrequested("pace").unwrap();
    assert_eq!(result["pace"]["speed_percent"], 0, "{result}");
    page.send(r#"{"pace":"resume"}"#);
    let ended = run.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    let [paced, free] = [paced, free].map(|path| fs::read_to_string(path).unwrap());
    assert_eq!((paced.lines().count(), &paced), (40, &free));
    let elsewhere = run_throng(&["run", &scenario, "--inspect", "0.0.0.0:0"]);
    assert_eq!(elsewhere.code, 2);
    assert!(
        elsewhere.err.contains("loopback address"),
        "{}",
        elsewhere.err
    );
}

#[test]
fn real_time_server_refuses_pace_requests() {
    let (mut server, address) = inspected_server();
    let mut page = PageClient::open(address, "", None).unwrap();
    assert_eq!(
        page.receive_section(&mut server, "hello")["pace"],
        Value::Null
    );
    page.send(r#"{"pace":"pause"}"#);
    wait_for(&mut server, |stats| stats.junk == 1);
    let mut inspector = server.world_mut().resource_mut::<Inspector>();
    assert_eq!(inspector.next_pace_request(), None);
}
