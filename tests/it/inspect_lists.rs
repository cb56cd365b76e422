//! Promise: a page can search for players, objects and sessions, and list sessions, matches and parties; every list is limited, and
//! includes the total number.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use serde_json::{Value, json};
use throng::inbox::DisconnectReason;
use throng::matchmaking::{MatchModeSettings, Matchmaker};
use throng::prelude::*;
use throng::session::{ConnectionInfo, TransportHandle};
use throng::wire::{ClientId, ClientMessage};
use throng::world::{Parties, join_party};

use crate::inspect_page::{PageClient, inspected_server};

/// More sessions than a page lists.
const PLAYERS: u64 = 60;

fn encoded(message: ClientMessage) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}

/// Connects and logs in the players from 1,001 on; the first half of them has an object in the server's scene.
fn log_in(server: &mut Server) -> BTreeMap<u64, ClientId> {
    let transport = server.world().resource::<TransportHandle>().clone();
    let clients: BTreeMap<u64, ClientId> = (1..=PLAYERS)
        .map(|nth| {
            let player = 1_000 + nth;
            let connected = ConnectionInfo::player(player).without_loading();
            let client = transport.connect(connected).unwrap();
            let login = encoded(ClientMessage::login(player));
            transport.receive(client, &login).unwrap();
            (player, client)
        })
        .collect();
    server.step(3);
    let scene = scene(server);
    for (&player, &client) in clients.iter().take(PLAYERS as usize / 2) {
        let at = Position(glam::vec2(20.0, 20.0));
        let session = server.world().resource::<Sessions>().client_entity(client);
        let body = (Player, PlayerId(player), ControlledBy(session.unwrap()));
        let body = (body, InScene(scene), at);
        server.world_mut().spawn(body);
    }
    server.step(3);
    clients
}

fn scene(server: &Server) -> Entity {
    let scenes = server.world().resource::<throng::world::Scenes>();
    scenes.iter().next().unwrap().1
}

/// The next session list in this order.
fn sessions(page: &mut PageClient, server: &mut Server, by: &str, is_descending: bool) -> Value {
    page.send(&json!({"sessions": {"by": by, "is_descending": is_descending}}).to_string());
    // Lists in the former order may still be in flight.
    page.receive(server, |message| {
        let reply: Value = serde_json::from_str(message.to_text().ok()?).ok()?;
        (reply["type"] == "sessions" && reply["by"] == by).then_some(reply)
    })
}

#[test]
fn session_list_is_sorted_limited_and_has_errors_and_ends() {
    let (mut server, address) = inspected_server();
    let clients = log_in(&mut server);
    let mut page = PageClient::open(address, "", None).unwrap();
    let list = sessions(&mut page, &mut server, "player", true);
    assert_eq!(list["total"], PLAYERS, "{list}");
    let rows = list["rows"].as_array().unwrap();
    let players: Vec<&str> = rows
        .iter()
        .map(|row| row["player"].as_str().unwrap())
        .collect();
    let expected: Vec<String> = (1_011..=1_000 + PLAYERS)
        .rev()
        .map(|nth| nth.to_string())
        .collect();
    assert_eq!(players, expected);
    // In this order, the first players have no object, and the last ones do.
    assert_eq!(rows[0]["state"], "entering");
    assert_eq!(
        (&rows[0]["object"], &rows[0]["ping_ms"]),
        (&Value::Null, &Value::Null)
    );
    let last = &rows[rows.len() - 1];
    let own = server.world().resource::<throng::world::Players>();
    let own = own.entity(PlayerId(1_011)).unwrap();
    let own = server.world().get::<Object>(own).unwrap().id().0;
    assert_eq!(
        (&last["state"], &last["object"]),
        (&"in_world".into(), &own.into())
    );
    // Causes an error, and two ended sessions.
    let transport = server.world().resource::<TransportHandle>().clone();
    transport.receive(clients[&1_002], &[255, 1, 2]).unwrap();
    transport
        .receive(clients[&1_003], &encoded(ClientMessage::Logout))
        .unwrap();
    server.step(2);
    transport.disconnect(clients[&1_060], DisconnectReason::Lost);
    // The page is closed before so many ticks: they would send it more updates than it can read.
    drop(page);
    server.step(700);
    let mut page = PageClient::open(address, "", None).unwrap();
    let list = sessions(&mut page, &mut server, "error", true);
    let first = &list["rows"][0];
    assert_eq!(
        (&first["player"], &first["error"][1]),
        (&"1002".into(), &"malformed message".into())
    );
    assert_eq!(list["total"], PLAYERS - 2);
    let ended: Vec<_> = list["ended"]
        .as_array()
        .unwrap()
        .iter()
        .map(|end| (&end["player"], &end["reason"]))
        .collect();
    assert_eq!(
        ended[0],
        (&"1060".into(), &"connection lost".into()),
        "{list}"
    );
    assert_eq!(ended[1], (&"1003".into(), &"logged out".into()), "{list}");
    // Sections that the page does not show are not sent.
    page.send("{}");
    // The reply comes after everything sent before the query was handled.
    page.send(r#"{"find":"1001"}"#);
    page.receive_section(&mut server, "found");
    for _ in 0..6 {
        page.receive(&mut server, |message| {
            let text = message.to_text().unwrap_or_default().to_owned();
            assert!(!text.contains(r#""type":"sessions""#), "{text}");
            text.contains(r#""type":"state""#).then_some(())
        });
    }
}

#[test]
fn search_finds_players_objects_sessions_and_kinds() {
    let (mut server, address) = inspected_server();
    let clients = log_in(&mut server);
    let other = open_scene(server.world_mut(), SceneSpec::default(), ()).unwrap();
    let at = Position(glam::vec2(5.0, 5.0));
    let far = server.world_mut().spawn((Npc, InScene(other), at)).id();
    server.step(1);
    let far = *server.world().get::<Object>(far).unwrap();
    let mut page = PageClient::open(address, "", None).unwrap();
    page.receive_section(&mut server, "hello");
    let mut find = |text: &str| -> Vec<Value> {
        page.send(&json!({"find": text}).to_string());
        let found = page.receive_section(&mut server, "found");
        assert_eq!(found["text"], text);
        found["results"].as_array().unwrap().clone()
    };
    let found = find("1001");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (&found[0]["of"], &found[0]["player"]),
        (&"player".into(), &"1001".into())
    );
    assert_eq!(found[0]["client"], clients[&1_001].0);
    assert!(found[0]["object"].is_u64(), "{found:?}");
    // A player without an object.
    let found = find("player 1060");
    assert_eq!(
        (&found[0]["of"], &found[0]["object"]),
        (&"player".into(), &Value::Null)
    );
    let session = clients[&1_060].0;
    let found = find(&format!("session {session}"));
    assert_eq!((found.len(), &found[0]["player"]), (1, &"1060".into()));
    // Objects with the same id in two scenes; the one in the shown scene comes first.
    let found = find(&format!("#{}", far.id().0));
    assert_eq!(found.len(), 2, "{found:?}");
    assert_ne!(found[0]["scene"], far.scene().0);
    assert_eq!(
        (&found[1]["scene"], &found[1]["kind_name"]),
        (&far.scene().0.into(), &"npc".into())
    );
    let found = find("NPC");
    assert!(found.len() > 2 && found.iter().all(|one| one["kind_name"] == "npc"));
    for text in ["4000000000", "player 9", "nobody", ""] {
        assert_eq!(find(text), [Value::Null; 0], "{text}");
    }
}

#[test]
fn overlong_search_is_junk_and_answers_nothing() {
    let (mut server, address) = inspected_server();
    let mut page = PageClient::open(address, "", None).unwrap();
    page.receive_section(&mut server, "hello");
    page.send(&json!({"find": "x".repeat(65)}).to_string());
    page.send(&json!({"find": "x".repeat(64)}).to_string());
    let found = page.receive_section(&mut server, "found");
    assert_eq!(found["text"].as_str().map(str::len), Some(64));
    let stats = server
        .world()
        .resource::<throng_inspect::Inspector>()
        .stats();
    assert_eq!(stats.junk, 1);
}

#[test]
fn matches_queues_and_parties_are_listed_with_totals() {
    let (mut server, address) = inspected_server();
    log_in(&mut server);
    let world = server.world_mut();
    let mut matchmaker = Matchmaker::new(&[MatchModeSettings::groups("duel", 2)], 20.0).unwrap();
    for nth in 0..30_u64 {
        let party = world.resource_mut::<Parties>().create().unwrap();
        join_party(world, party, PlayerId(1_001 + nth)).unwrap();
        if nth < 3 {
            let ticket = Ticket::new(party, [PlayerId(1_001 + nth)]);
            // Far apart, so that they wait.
            let ticket = ticket.skill(nth as i32 * 100_000).waiting_since(1);
            matchmaker.enqueue(ticket).unwrap();
        }
    }
    world.insert_resource(matchmaker);
    let mut page = PageClient::open(address, "", None).unwrap();
    page.send(r#"{"matches":true}"#);
    let reply = page.receive_section(&mut server, "matches");
    let mode = &reply["modes"][0];
    assert_eq!(
        (&mode["name"], &mode["parties"], &mode["players"]),
        (&"duel".into(), &3.into(), &3.into())
    );
    assert!(mode["longest_wait_s"].as_f64().unwrap() > 0.0, "{mode}");
    assert_eq!(
        (&reply["mode_count"], &reply["running_count"]),
        (&1.into(), &0.into())
    );
    assert_eq!(reply["party_count"], 30);
    let parties = reply["parties"].as_array().unwrap();
    assert_eq!(parties.len(), 20);
    assert_eq!(
        (&parties[0]["waits_for"], &parties[3]["waits_for"]),
        (&"duel".into(), &Value::Null)
    );
    assert_eq!(parties[0]["members"][0]["player"], "1001");
    assert!(
        parties[0]["members"][0]["object"].is_u64(),
        "{}",
        parties[0]
    );
}
