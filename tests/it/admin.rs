//! Promise: operators with a token list, kick and ban players of a running server over HTTP; others cannot; bans survive a restart;
//! each change is in the audit log.
#![cfg(unix)]

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::thread;

use serde_json::{Value, json};
use throng::net::PortSettings;
use throng::prelude::*;
use throng::session::{Authentication, ConnectionInfo, SessionPlugin, TransportHandle};
use throng::wire::ClientMessage;
use throng_inspect::{AdminSettings, AdminTokens, InspectPlugin, open_admin};

use crate::harness::{TempFolder, run_throng};

const TOKEN: &str = "0123456789abcdef";

/// A server with the administration API.
struct Administered {
    server: Server,
    address: SocketAddr,
}

impl Administered {
    fn open(folder: &TempFolder) -> Self {
        let plugins = (SessionPlugin, InspectPlugin);
        let mut server = Server::builder().strict_order().plugins(plugins).build();
        let world = server.world_mut();
        world.insert_resource(Authentication::from_fn(|login| Some(login.player)));
        let settings = AdminSettings {
            port: PortSettings::default(),
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            tokens: format!("alice {TOKEN}").parse::<AdminTokens>().unwrap(),
            ban_file: Some(PathBuf::from(folder.path("bans.json"))),
            audit_log: Some(PathBuf::from(folder.path("audit.log"))),
        };
        let address = open_admin(world, settings).unwrap();
        Self { server, address }
    }

    /// Connects a client that logs in as this player.
    fn log_in(&mut self, player: u64) {
        let transport = self.server.world().resource::<TransportHandle>().clone();
        let address = SocketAddr::from(([192, 0, 2, player as u8], 9));
        let connected = ConnectionInfo {
            address: Some(address),
            ..ConnectionInfo::player(player).without_loading()
        };
        let client = transport.connect(connected).unwrap();
        let mut bytes = Vec::new();
        ClientMessage::login(player).encode(&mut bytes);
        transport.receive(client, &bytes).unwrap();
        self.server.step(2);
    }

    fn players(&self) -> Vec<u64> {
        let sessions = self.server.world().resource::<Sessions>();
        let players = sessions.iter().filter_map(|(_, session)| session.player);
        players.map(|player| player.0).collect()
    }

    /// Sends a request while ticks go on; the status and the body.
    fn request(&mut self, line: &str, token: &str, body: &str) -> (u16, Value) {
        let head = format!(
            "{line} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let address = self.address;
        let request = thread::spawn(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(head.as_bytes()).unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).unwrap();
            reply
        });
        while !request.is_finished() {
            self.server.step(1);
            thread::yield_now();
        }
        let reply = request.join().unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap())
    }

    fn ask(&mut self, line: &str, body: &str) -> (u16, Value) {
        self.request(line, TOKEN, body)
    }
}

#[test]
fn operator_lists_kicks_and_bans_players() {
    let folder = TempFolder::new();
    let mut admin = Administered::open(&folder);
    (7..=9).for_each(|player| admin.log_in(player));
    let (status, page) = admin.ask("GET /players?limit=2", "");
    assert_eq!((status, &page["next"]), (200, &json!(8)), "{page}");
    let row = &page["players"][0];
    let expected = [json!(7), json!("192.0.2.7:9"), json!("Entering")];
    assert_eq!(
        ["player", "address", "state"].map(|key| row[key].clone()),
        expected
    );
    let (_, page) = admin.ask("GET /players?limit=2&after=8", "");
    assert_eq!(
        (&page["players"][0]["player"], &page["next"]),
        (&json!(9), &Value::Null)
    );
    assert_eq!(admin.ask("GET /players/9", "").1["player"], 9);
    let kicked = admin.ask("POST /players/9/kick", r#"{"reason": "asleep"}"#);
    assert_eq!(kicked, (200, json!({ "sessions_ended": 1 })));
    assert_eq!(admin.ask("GET /players/9", "").0, 404);
    assert_eq!(admin.ask("POST /players/9/kick", "").0, 404);
    // A kicked player may return, a banned one may not.
    admin.log_in(9);
    assert_eq!(admin.players(), [7, 8, 9]);
    let range = r#"{"addresses": "192.0.2.8/31", "reason": "bots", "for_s": 3600}"#;
    assert_eq!(
        admin.ask("POST /bans", range),
        (200, json!({ "sessions_ended": 2 }))
    );
    admin.log_in(8);
    assert_eq!(admin.players(), [7]);
    let (_, bans) = admin.ask("GET /bans", "");
    let ban = &bans["bans"][0];
    assert_eq!(ban["addresses"], "192.0.2.8/31");
    let seconds = |key: &str| ban[key].as_u64().unwrap();
    assert_eq!(seconds("until_unix_s") - seconds("issued_unix_s"), 3600);
    assert_eq!(ban["issued_by"], "alice");
    let stored: Value =
        serde_json::from_str(&fs::read_to_string(folder.path("bans.json")).unwrap()).unwrap();
    assert_eq!(stored, bans["bans"]);
    assert_eq!(bans["next"], Value::Null);
    assert_eq!(admin.ask("POST /bans", r#"{"player": 77}"#).0, 200);
    let (_, first) = admin.ask("GET /bans?limit=1", "");
    assert_eq!(
        (&first["bans"][0]["player"], &first["next"]),
        (&json!(77), &json!(1))
    );
    let (_, second) = admin.ask("GET /bans?skip=1&limit=1", "");
    assert_eq!(
        (&second["bans"], &second["next"]),
        (&bans["bans"], &Value::Null)
    );
    assert_eq!(admin.ask("DELETE /bans?player=77", "").0, 200);
    let lifted = admin.ask("DELETE /bans?addresses=192.0.2.8/31", "");
    assert_eq!(lifted, (200, json!({ "bans_lifted": 1 })));
    assert_eq!(admin.ask("DELETE /bans?player=3", "").0, 404);
    admin.log_in(8);
    assert_eq!(admin.players(), [7, 8]);
    let audit = fs::read_to_string(folder.path("audit.log")).unwrap();
    let audit = audit.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["who"], "alice");
        assert!(line["from"].as_str().unwrap().starts_with("127.0.0.1:"));
        ["action", "target", "reason"].map(|key| line[key].as_str().unwrap().to_owned())
    });
    let audit: Vec<[String; 3]> = audit.collect();
    let expected = [
        ["kick", "player 9", "asleep"],
        ["kick", "player 9", ""],
        ["ban", "addresses 192.0.2.8/31", "bots"],
        ["ban", "player 77", ""],
        ["lift", "player 77", ""],
        ["lift", "addresses 192.0.2.8/31", ""],
        ["lift", "player 3", ""],
    ];
    assert_eq!(audit, expected.map(|line| line.map(str::to_owned)));
}

#[test]
fn bans_survive_a_restart() {
    let folder = TempFolder::new();
    let mut first = Administered::open(&folder);
    first.log_in(7);
    assert_eq!(first.ask("POST /bans", r#"{"player": 7}"#).0, 200);
    drop(first);
    let mut second = Administered::open(&folder);
    second.log_in(7);
    second.log_in(8);
    assert_eq!(second.players(), [8]);
}

#[test]
fn requests_without_a_valid_token_change_nothing() {
    let folder = TempFolder::new();
    let mut admin = Administered::open(&folder);
    admin.log_in(7);
    for token in ["", "0123456789abcdeg", "alice"] {
        for (line, body) in [
            ("GET /players", ""),
            ("POST /players/7/kick", ""),
            ("POST /bans", r#"{"player": 7}"#),
        ] {
            let (status, body) = admin.request(line, token, body);
            assert_eq!(status, 401, "{line} {body}");
        }
    }
    assert_eq!(admin.players(), [7]);
    let (status, described) = admin.request("GET /openapi.json", "", "");
    assert_eq!((status, &described["openapi"]), (200, &json!("3.1.0")));
    let long = "x".repeat(20_000);
    assert_eq!(admin.ask("POST /bans", &long).0, 413);
    assert_eq!(fs::read_to_string(folder.path("audit.log")).unwrap(), "");
}

#[test]
fn readable_or_invalid_token_files_are_refused() {
    let folder = TempFolder::new();
    let tokens = folder.write("tokens", format!("alice {TOKEN}\nbob"));
    let serve = [
        "serve",
        "arena_night",
        "--admin",
        "127.0.0.1:0",
        "--admin-tokens",
        &tokens,
    ];
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = run_throng(&serve);
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("chmod 600"), "{}", refused.err);
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
    let refused = run_throng(&serve);
    assert!(
        refused.err.contains("line 2: expected a name"),
        "{}",
        refused.err
    );
    let alone = run_throng(&["serve", "arena_night", "--admin", "127.0.0.1:0"]);
    assert!(alone.err.contains("--admin-tokens"), "{}", alone.err);
}
