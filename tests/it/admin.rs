//! Promise: operators with a token list, kick and ban players of a running server over HTTP, and nobody else can; bans survive a restart;
//! each change is in the audit log with its requester, as are actions of the live page and take-overs.
#![cfg(unix)]

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;

use serde_json::{Value, json};
use throng::net::PortSettings;
use throng::prelude::*;
use throng::session::{Authentication, ConnectionInfo, SessionPlugin, TransportHandle};
use throng::wire::ClientMessage;
use throng_inspect::{
    AdminServer, AdminSettings, AdminTokens, AuditLog, InspectPlugin, InspectSettings, Inspector,
    open_admin, open_inspector,
};

use crate::harness::{TempFolder, program, run_throng};
use crate::inspect_page::{PageClient, wait_for};

const TOKEN: &str = "0123456789abcdef";

/// A server with the administration API.
struct AdminTestServer {
    server: Server,
    address: SocketAddr,
}

impl AdminTestServer {
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

    /// Opens the live page, which allows actions, and sends all further requests to its address.
    fn open_page(&mut self) {
        let settings = InspectSettings {
            page: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            action_presets: Some(Vec::new()),
            ..InspectSettings::default()
        };
        let opened = open_inspector(self.server.world_mut(), settings).unwrap();
        self.address = opened.page.unwrap();
    }

    /// Sends a request while ticks continue; returns the status and the body.
    fn request(&mut self, line: &str, token: &str, body: &str) -> (u16, Value) {
        let headers = format!("Host: a\r\nAuthorization: Bearer {token}\r\n");
        self.request_with(line, &headers, body)
    }

    fn request_with(&mut self, line: &str, headers: &str, body: &str) -> (u16, Value) {
        let head = format!(
            "{line} HTTP/1.1\r\n{headers}Content-Length: {}\r\n\r\n{body}",
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
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    fn call(&mut self, line: &str, body: &str) -> (u16, Value) {
        self.request(line, TOKEN, body)
    }
}

#[test]
fn operator_lists_kicks_and_bans_players() {
    let folder = TempFolder::new();
    let mut admin = AdminTestServer::open(&folder);
    (7..=9).for_each(|player| admin.log_in(player));
    let (status, page) = admin.call("GET /players?limit=2", "");
    assert_eq!((status, &page["next"]), (200, &json!(8)), "{page}");
    let row = &page["players"][0];
    let expected = [json!(7), json!("192.0.2.7:9"), json!("Entering")];
    assert_eq!(
        ["player", "address", "state"].map(|key| row[key].clone()),
        expected
    );
    let (_, page) = admin.call("GET /players?limit=2&after=8", "");
    assert_eq!(
        (&page["players"][0]["player"], &page["next"]),
        (&json!(9), &Value::Null)
    );
    assert_eq!(admin.call("GET /players/9", "").1["player"], 9);
    let kicked = admin.call("POST /players/9/kick", r#"{"reason": "asleep"}"#);
    assert_eq!(kicked, (200, json!({ "sessions_ended": 1 })));
    assert_eq!(admin.call("GET /players/9", "").0, 404);
    assert_eq!(admin.call("POST /players/9/kick", "").0, 404);
    // A kicked player may log in again, a banned one may not.
    admin.log_in(9);
    assert_eq!(admin.players(), [7, 8, 9]);
    let range = r#"{"addresses": "192.0.2.8/31", "reason": "bots", "for_s": 3600}"#;
    assert_eq!(
        admin.call("POST /bans", range),
        (200, json!({ "sessions_ended": 2 }))
    );
    admin.log_in(8);
    assert_eq!(admin.players(), [7]);
    let (_, bans) = admin.call("GET /bans", "");
    let ban = &bans["bans"][0];
    assert_eq!(ban["addresses"], "192.0.2.8/31");
    let seconds = |key: &str| ban[key].as_u64().unwrap();
    assert_eq!(seconds("until_unix_s") - seconds("issued_unix_s"), 3600);
    assert_eq!(ban["issued_by"], "alice");
    let stored: Value =
        serde_json::from_str(&fs::read_to_string(folder.path("bans.json")).unwrap()).unwrap();
    assert_eq!(stored, bans["bans"]);
    assert_eq!(bans["next"], Value::Null);
    assert_eq!(admin.call("POST /bans", r#"{"player": 77}"#).0, 200);
    let (_, first) = admin.call("GET /bans?limit=1", "");
    assert_eq!(
        (&first["bans"][0]["player"], &first["next"]),
        (&json!(77), &json!(1))
    );
    let (_, second) = admin.call("GET /bans?skip=1&limit=1", "");
    assert_eq!(
        (&second["bans"], &second["next"]),
        (&bans["bans"], &Value::Null)
    );
    assert_eq!(admin.call("DELETE /bans?player=77", "").0, 200);
    let lifted = admin.call("DELETE /bans?addresses=192.0.2.8/31", "");
    assert_eq!(lifted, (200, json!({ "bans_lifted": 1 })));
    assert_eq!(admin.call("DELETE /bans?player=3", "").0, 404);
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
fn live_page_sends_the_same_requests_from_its_own_origin() {
    let folder = TempFolder::new();
    let mut admin = AdminTestServer::open(&folder);
    admin.open_page();
    (7..=8).for_each(|player| admin.log_in(player));
    let kick = ("POST /admin/players/7/kick", r#"{"reason": "asleep"}"#);
    let host = format!("Host: {}\r\n", admin.address);
    let token = format!("{host}Authorization: Bearer {TOKEN}\r\n");
    let foreign = format!("{token}Origin: http://other.example\r\n");
    let rebound = token.replace("127.0.0.1", "rebound.example");
    let cookie = format!("{host}Cookie: token={TOKEN}\r\n");
    let wrong = format!("{host}Authorization: Bearer 0123456789abcdeg\r\n");
    for (headers, expected) in [
        (foreign, 403),
        (rebound, 403),
        (host, 401),
        (cookie, 401),
        (wrong, 401),
    ] {
        let (status, _) = admin.request_with(kick.0, &headers, kick.1);
        assert_eq!((status, admin.players()), (expected, vec![7, 8]));
    }
    let own = format!("{token}Origin: http://{}\r\n", admin.address);
    let kicked = admin.request_with(kick.0, &own, kick.1);
    assert_eq!(kicked, (200, json!({ "sessions_ended": 1 })));
    let ban = r#"{"player": 8, "reason": "bots", "for_s": 60}"#;
    assert_eq!(admin.request_with("POST /admin/bans", &own, ban).0, 200);
    assert!(admin.players().is_empty());
    let (_, bans) = admin.request_with("GET /admin/bans?limit=1", &own, "");
    assert_eq!(bans["bans"][0]["issued_by"], "alice");
    let lines = audit(&folder);
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["target"], "player 7");
    assert_eq!(lines[1]["reason"], "bots");
    // Without the API, its path answers 503.
    let mut other = AdminTestServer::open(&TempFolder::new());
    #[expect(clippy::disallowed_methods, reason = "no hook needs the API")]
    let api = other.server.world_mut().remove_resource::<AdminServer>();
    drop(api);
    other.open_page();
    let own = own.replace(&admin.address.to_string(), &other.address.to_string());
    let (status, _) = other.request_with(kick.0, &own, kick.1);
    assert_eq!(status, 503, "the API is closed");
}

#[test]
fn page_actions_are_audited_with_the_operator() {
    let folder = TempFolder::new();
    let mut admin = AdminTestServer::open(&folder);
    admin.open_page();
    let log = AuditLog::open(Path::new(&folder.path("audit.log"))).unwrap();
    admin.server.world_mut().insert_resource(log);
    admin.server.step(1);
    let mut page = PageClient::open(admin.address, "", None).unwrap();
    page.receive_section(&mut admin.server, "hello");
    for (action, operator) in [
        ("Drain", None),
        ("Reopen", Some(TOKEN)),
        ("Crash", Some("0123456789abcdeg")),
    ] {
        let message = match operator {
            Some(token) => json!({ "action": action, "operator": token }),
            None => json!({ "action": action }),
        };
        page.send(&message.to_string());
    }
    wait_for(&mut admin.server, |stats| stats.junk == 1);
    admin.server.step(1);
    let world = admin.server.world_mut();
    let mut inspector = world.resource_mut::<Inspector>();
    let taken: Vec<String> = std::iter::from_fn(|| inspector.next_action()).collect();
    assert_eq!(
        taken,
        ["Drain", "Reopen"],
        "an action with an invalid operator token is refused"
    );
    inspector.send_action_result("Reopen", 9, None);
    inspector.send_action_result("Drain", 9, Some("no such action"));
    // The result of an action of the script has no requester, so it is not audited.
    inspector.send_action_result("Block", 9, None);
    admin.server.step(1);
    drop(admin);
    let lines = audit(&folder);
    let lines = lines.iter().map(|line| {
        assert!(line["from"].as_str().unwrap().starts_with("127.0.0.1:"));
        ["who", "action", "target", "outcome"].map(|key| line[key].as_str().unwrap())
    });
    let expected = [
        ["alice", "cue", "Reopen", "done after tick 9"],
        ["page", "cue", "Drain", "no such action"],
    ];
    assert_eq!(lines.collect::<Vec<_>>(), expected);
}

#[test]
fn takeover_of_a_server_name_is_audited() {
    let folder = TempFolder::new();
    let (store, log) = (folder.path("players.db"), folder.path("audit.log"));
    let serve = [
        "serve",
        "town",
        "--listen",
        "127.0.0.1:0",
        "--duration",
        "1s",
        "--threads",
        "1",
        "--store",
        &store,
        "--server",
        "town-1",
        "--audit-log",
        &log,
    ];
    let output = run_throng(&serve);
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(audit(&folder).is_empty());
    let mut command = program(&[&serve[..], &["--take-over"]].concat());
    command.env_remove("SUDO_USER").env("USER", "carol");
    assert!(command.output().unwrap().status.success());
    let lines = audit(&folder);
    assert_eq!(lines.len(), 1);
    assert_eq!(
        (&lines[0]["who"], &lines[0]["from"]),
        (&json!("carol"), &Value::Null)
    );
    let what = (&lines[0]["action"], &lines[0]["target"]);
    assert_eq!(what, (&json!("take_over"), &json!("server town-1")));
}

/// The lines of the audit log.
fn audit(folder: &TempFolder) -> Vec<Value> {
    let text = fs::read_to_string(folder.path("audit.log")).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn bans_survive_a_restart() {
    let folder = TempFolder::new();
    let mut first = AdminTestServer::open(&folder);
    first.log_in(7);
    assert_eq!(first.call("POST /bans", r#"{"player": 7}"#).0, 200);
    drop(first);
    let mut second = AdminTestServer::open(&folder);
    second.log_in(7);
    second.log_in(8);
    assert_eq!(second.players(), [8]);
}

#[test]
fn requests_without_a_valid_token_change_nothing() {
    let folder = TempFolder::new();
    let mut admin = AdminTestServer::open(&folder);
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
    assert_eq!(admin.call("POST /bans", &long).0, 413);
    assert_eq!(fs::read_to_string(folder.path("audit.log")).unwrap(), "");
}

#[test]
fn readable_or_invalid_token_files_are_refused() {
    let folder = TempFolder::new();
    let tokens = folder.write("tokens", format!("alice {TOKEN}\nbob"));
    let any = "127.0.0.1:0";
    let serve = [
        "serve",
        "arena_night",
        "--listen",
        any,
        "--admin",
        any,
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
    let alone = run_throng(&["serve", "arena_night", "--listen", any, "--admin", any]);
    assert!(alone.err.contains("--admin-tokens"), "{}", alone.err);
}
