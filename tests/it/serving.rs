//! Promise: a listening server, and players in another process who lose a tenth of their packets, change their ports and restart,
//! have the same state at rest, and nothing reliable is lost or duplicated; the same holds behind a relay that loses packets; a
//! client without a valid token is refused; a stopped server sends close messages.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, ChildStdout, Stdio};

use serde_json::Value;

use crate::harness::{ProgramOutput, TempFolder, program, run_throng, send_signal, wait_for_log};
use crate::inspect_page::{PageClient, get};
use crate::tls::{CertificateFiles, tls_get};

/// Crowds among which players come.
const YARD: &str = r#"Scenario(name: "yard", seed: 9, duration_s: 20,
    scenes: [Scene(name: "yard", map: Generate(Random(width_tiles: 120, height_tiles: 120, fill: 0.02)), cell_m: 20, view_cap: 60)],
    crowds: [
        Crowd(tag: "people", kind: "player", count: 10, client_share: 1, speed_m_s: 3, attributes_per_s: 4, behaviour: Wander(radius_m: 10)),
        Crowd(tag: "folk", kind: "npc", count: 20, attributes_per_s: 3, behaviour: Wander(radius_m: 10)),
    ])"#;

/// A server process that listens until it is stopped.
struct ServerProcess {
    process: Child,
    out: BufReader<ChildStdout>,
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It has ended, unless a test failed.
        let _ = self.process.kill();
    }
}

impl ServerProcess {
    fn start(arguments: &[&str]) -> Self {
        Self::spawn(&[&["serve"], arguments].concat())
    }

    fn spawn(arguments: &[&str]) -> Self {
        let mut command = program(arguments);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the program starts");
        let out = BufReader::new(process.stdout.take().expect("a pipe"));
        Self { process, out }
    }

    /// The address at the end of its next line.
    fn address(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("it is UTF-8");
        let last = line.split_whitespace().next_back();
        last.unwrap_or_else(|| panic!("it ended early")).to_owned()
    }

    /// Ctrl-C, and what it printed last.
    fn stop(mut self) -> Value {
        send_signal(&self.process, "-INT");
        let status = self.process.wait().expect("the program ends");
        assert_eq!(status.code(), Some(0), "Ctrl-C is how it ends");
        let last = self.out.by_ref().lines().map_while(Result::ok).last();
        serde_json::from_str(&last.expect("a report")).expect("an object")
    }
}

#[test]
fn remote_players_on_bad_networks_mirror_the_server() {
    let folder = TempFolder::new();
    let yard = folder.write("yard.ron", YARD);
    let (key, store) = (folder.path("key"), folder.path("players.db"));
    assert_eq!(run_throng(&["token", "--new-key", &key]).code, 0);
    let listen = [
        "--listen",
        "127.0.0.1:0",
        "--mirror-check",
        "127.0.0.1:0",
        "--key",
        &key,
    ];
    let kept = [&yard, "--json", "--threads", "1", "--store", &store];
    let mut server = ServerProcess::start(&[&listen[..], &kept].concat());
    let (address, truth) = (server.address(), server.address());
    let link = ["--loss", "10%", "--delay-ms", "20", "--jitter-ms", "4"];
    let walk = [
        "client",
        "12",
        "--json",
        "--connect",
        &address,
        "--duration",
        "2s",
        "--rebinds",
        "30",
        "--restarts",
        "6",
    ];
    let asking = ["--key", &key, "--mirror-check", &truth];
    let walked: ProgramOutput = run_throng(&[&walk[..], &link, &asking].concat());
    assert_eq!(walked.code, 0, "{} {}", walked.out, walked.err);
    let found = walked.json();
    assert_eq!(found["in_world"], 12, "{found}");
    assert_eq!(found["mirrors"]["same"], 12, "{found}");
    // Reliable packets and inputs are numbered: none was lost or came twice.
    assert_eq!(
        (&found["faults"], &found["unanswered"]),
        (&0.into(), &0.into())
    );
    let survived = |name: &str| found[name]["survived"].as_u64();
    assert_eq!(
        (survived("rebinds"), survived("restarts")),
        (Some(30), Some(6))
    );
    // Without the key no client is admitted, and few get a reply.
    let other = folder.path("other");
    assert_eq!(run_throng(&["token", "--new-key", &other]).code, 0);
    let stranger = ["client", "--json", "--connect", &address, "--key", &other];
    let refused = run_throng(&[&stranger[..], &["--timeout", "1s"]].concat());
    assert_eq!((refused.code, &refused.json()["connected"]), (1, &0.into()));
    let served = server.stop();
    let counted = ["admitted", "left", "moved", "lost"].map(|name| served[name].as_u64());
    assert_eq!(counted, [18, 12, 30, 0].map(Some), "{served}");
    assert!(served["strangers"].as_u64() >= Some(5), "{served}");
    let bytes = |name: &str| served[name].as_u64().expect("a number");
    let (asked, answered) = (bytes("stranger_bytes_in"), bytes("answer_bytes_out"));
    assert!((12 * 73..asked / 3).contains(&answered), "{served}");
    // Twelve from outside and ten of the scenario's own are kept.
    let kept = run_throng(&["db", "check", &store, "--json"]).json();
    assert_eq!(kept["players"], 22, "{kept}");
}

#[test]
fn relay_simulates_a_bad_network() {
    let folder = TempFolder::new();
    let yard = folder.write("yard.ron", YARD);
    let any = "127.0.0.1:0";
    // Tokens name the relay, so the server knows where it will be.
    let free = UdpSocket::bind(any).and_then(|socket| socket.local_addr());
    let relayed = free.expect("a port").to_string();
    let listen = ["--listen", any, "--public", &relayed, "--mirror-check", any];
    let mut server = ServerProcess::start(&[&listen[..], &[&yard, "--json"]].concat());
    let (address, truth) = (server.address(), server.address());
    let link = ["--loss", "20%", "--bursts-ms", "30", "--delay-ms", "20"];
    let between = ["relay", "--json", "--listen", &relayed, "--to", &address];
    let mut relay = ServerProcess::spawn(&[&between[..], &link].concat());
    assert_eq!(relay.address(), relayed);
    let walk = [
        "client",
        "8",
        "--json",
        "--duration",
        "2s",
        "--rebinds",
        "8",
    ];
    let to = ["--connect", &relayed, "--mirror-check", &truth];
    let walked = run_throng(&[&walk[..], &to].concat());
    assert_eq!(walked.code, 0, "{} {}", walked.out, walked.err);
    let found = walked.json();
    assert_eq!(found["mirrors"]["same"], 8, "{found}");
    assert!(
        found["round_trip_ms"].as_f64() >= Some(40.0),
        "both ways take 20 ms at least: {found}"
    );
    let passed = relay.stop();
    // Each at its first port and at those that it changed to.
    assert_eq!(
        (&passed["clients"], &passed["refused"]),
        (&16.into(), &0.into())
    );
    let lost = |way: &str| {
        let count = |what: &str| passed[way][what].as_f64().expect("a number");
        1.0 - count("arrived") / count("datagrams")
    };
    for way in ["up", "down"] {
        assert!((0.05..0.5).contains(&lost(way)), "{way}: {passed}");
    }
    server.stop();
    let told = run_throng(&["relay", "--loss", "2"]);
    assert!(told.code == 2 && told.err.contains("10%"), "{}", told.err);
    let told = run_throng(&["relay", "--listen", "203.0.113.5:7100"]);
    assert!(
        told.code == 2 && told.err.contains("203.0.113.5"),
        "{}",
        told.err
    );
}

#[test]
fn inspect_page_works_while_serving() {
    let folder = TempFolder::new();
    let yard = folder.write("yard.ron", YARD);
    let any = "127.0.0.1:0";
    let looked_at = ["--listen", any, "--inspect", any, "--metrics", any];
    let mut server = ServerProcess::start(&[&looked_at[..], &[&yard, "--json"]].concat());
    let (_, page, metrics) = (server.address(), server.address(), server.address());
    let of = |url: &str| {
        let (address, path) = url.strip_prefix("http://")?.split_once('/')?;
        Some((address.parse().ok()?, format!("/{path}")))
    };
    let (address, path) = of(&metrics).expect("where metrics are");
    let (status, text) = get(address, &path);
    assert_eq!(status, 200, "{text}");
    for expected in ["throng_net_clients 0", "throng_objects{class=\"npc\"} 20"] {
        assert!(text.contains(expected), "{text}");
    }
    assert_eq!(get(address, "/readyz").0, 200);
    assert_eq!(
        of(&page).expect("where the page is").0,
        address,
        "one socket"
    );
    server.stop();
    let quietly = [
        "serve",
        "--quiet",
        "--inspect",
        "0.0.0.0:0",
        "--listen",
        any,
    ];
    let told = run_throng(&quietly);
    assert!(
        told.code == 2 && told.err.contains("needs --inspect-token"),
        "{}",
        told.err
    );
    let told = run_throng(&["serve", "--inspect", "203.0.113.5:7777", "--listen", any]);
    assert!(
        told.code == 2 && told.err.contains("203.0.113.5:7777"),
        "{}",
        told.err
    );
}

#[test]
fn page_edits_need_permission_and_are_in_the_summary() {
    let folder = TempFolder::new();
    let yard = folder.write("yard.ron", YARD);
    let any = "127.0.0.1:0";
    let looked_at = ["--listen", any, "--inspect", any, "--inspect-actions"];
    let mut server = ServerProcess::start(&[&looked_at[..], &[&yard, "--json"]].concat());
    let (_, page) = (server.address(), server.address());
    let address = page.strip_prefix("http://").unwrap().trim_end_matches('/');
    let mut page = PageClient::open(address.parse().unwrap(), "", None).unwrap();
    let hello = page.receive_unrequested("hello").expect("a greeting");
    let proposals = hello["actions"].as_array().expect("proposals");
    let more = proposals
        .iter()
        .find(|cue| cue["name"].to_string().contains("folk"));
    let more = more.expect("more of a crowd")["text"].as_str().unwrap();
    let more = more
        .replace("{at}", "30.0, 30.0")
        .replace("{scene}", "\"yard\"");
    for (cue, is_done) in [
        ("Block(scene: \"yard\", rect_tiles: (40, 40, 4, 4))", true),
        ("Block(scene: \"yrad\", rect_tiles: (40, 40, 4, 4))", false),
        (more.as_str(), true),
    ] {
        // On a busy machine an answer may find no room.
        let mut answers = (0..4).filter_map(|_| {
            page.send(&serde_json::json!({ "action": cue }).to_string());
            page.receive_unrequested("action")
        });
        let told = answers.next().expect("an answer");
        assert_eq!(told["text"], cue);
        assert_eq!(told["error"].is_null(), is_done, "{told}");
    }
    let state = page.receive_unrequested("state").expect("figures");
    assert!(state["objects"]["npcs"].as_u64() >= Some(70), "{state}");
    assert!(server.stop()["external_actions"].as_u64() >= Some(2));
    let told = run_throng(&["serve", "--inspect-actions", "--listen", any]);
    assert!(
        told.code == 2 && told.err.contains("--inspect "),
        "{}",
        told.err
    );
}

#[test]
fn browsers_get_a_page_to_play_in() {
    let folder = TempFolder::new();
    let yard = folder.write("yard.ron", YARD);
    let mut server = ServerProcess::start(&["--web", "127.0.0.1:0", &yard, "--json"]);
    let page = server.address();
    let address = page
        .strip_prefix("http://")
        .and_then(|url| url.strip_suffix('/'));
    let address = address.expect("where the page is").parse().unwrap();
    let (status, text) = get(address, "/");
    assert!(status == 200 && text.contains("page.js"), "{status} {text}");
    assert_eq!(get(address, "/map?scene=99").0, 404);
    assert_eq!(get(address, "/map?scene=0").0, 200);
    let served = server.stop();
    assert_eq!(served["web"]["answered"], 2, "{served}");
    let told = run_throng(&["serve", "--web", "0.0.0.0:0"]);
    assert!(
        told.code == 2 && told.err.contains("pass --key FILE"),
        "{}",
        told.err
    );
}

#[test]
fn certificate_is_read_again_on_sighup() {
    let folder = TempFolder::new();
    let yard = folder.write("yard.ron", YARD);
    let (files, trusted) = CertificateFiles::new();
    let [certificate, key] = files.paths();
    let mut server = ServerProcess::start(&[
        "--web",
        "127.0.0.1:0",
        "--inspect",
        "127.0.0.1:0",
        "--tls-certificate",
        &certificate,
        "--tls-key",
        &key,
        "--inspect-origin",
        "https://ops.example.com",
        &yard,
        "--json",
    ]);
    let page = server.address();
    let address = page.strip_prefix("https://").unwrap().trim_end_matches('/');
    let address = address.parse().unwrap();
    let link = loop {
        let word = server.address();
        if word.starts_with("https") {
            break word;
        }
    };
    assert_eq!(link, "https://ops.example.com/");
    assert_eq!(tls_get(address, &trusted, "/").unwrap().0, 200);
    // Files that cannot be used change nothing. Each signal tries them, changed or not.
    let mut log = BufReader::new(server.process.stderr.take().expect("a pipe"));
    fs::write(&certificate, "junk").unwrap();
    for _ in 0..2 {
        send_signal(&server.process, "-HUP");
        wait_for_log(&mut log, "TLS certificate not reloaded");
    }
    assert_eq!(tls_get(address, &trusted, "/").unwrap().0, 200);
    let new = files.replace();
    send_signal(&server.process, "-HUP");
    while tls_get(address, &new, "/").is_err() {
        std::thread::yield_now();
    }
    assert!(tls_get(address, &trusted, "/").is_err());
    let served = server.stop();
    assert!(served["web"]["tls_failed"].as_u64() > Some(0), "{served}");
}

#[test]
fn unusable_port_options_are_explained() {
    let (files, _) = CertificateFiles::new();
    let [certificate, key] = files.paths();
    let tls = |certificate, key| {
        [
            ["--web", "127.0.0.1:0"],
            ["--tls-certificate", certificate],
            ["--tls-key", key],
        ]
        .concat()
    };
    for (arguments, reason) in [
        (tls("/nowhere/chain.pem", &key), "/nowhere/chain.pem"),
        (tls(&key, &certificate), "are both files interchanged?"),
        (
            [tls(&certificate, &key), vec!["--tls-ports", "admin"]].concat(),
            "give --admin, too",
        ),
        (
            vec!["--tls-certificate", &certificate, "--tls-key", &key],
            "expected --web",
        ),
        (
            vec![
                "--web",
                "127.0.0.1:0",
                "--public-origin",
                "play.example.com",
            ],
            "https://play.example.com",
        ),
        (
            vec!["--web", "127.0.0.1:0", "--proxy-protocol", "web"],
            "--trusted-proxy",
        ),
    ] {
        let told = run_throng(&[vec!["serve"], arguments].concat());
        assert_eq!(told.code, 2, "{}", told.err);
        assert!(told.err.contains(reason), "{reason}: {}", told.err);
    }
}

#[test]
fn public_test_key_is_for_loopback_only() {
    for arguments in [
        &["serve", "--listen", "0.0.0.0:0"][..],
        &[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--public",
            "203.0.113.5:7000",
        ],
        &["client", "--connect", "203.0.113.5:7000"],
        &["token", "--player", "7", "--server", "203.0.113.5:7000"],
    ] {
        let told = run_throng(arguments);
        assert_eq!(told.code, 2, "{}", told.err);
        assert!(told.err.contains("pass --key FILE"), "{}", told.err);
    }
    let told = run_throng(&["token", "--player", "7", "--server", "127.0.0.1:7000"]);
    assert_eq!((told.code, told.out.trim().len()), (0, 4_096));
    let mut brief = ["token", "--player", "7", "--server", "127.0.0.1:7000"].to_vec();
    brief.extend(["--lifetime", "0.2s"]);
    assert_eq!(run_throng(&brief).code, 0, "rounded up to a second");
    let told = run_throng(&[
        "serve",
        "--mirror-check",
        "0.0.0.0:0",
        "--listen",
        "127.0.0.1:0",
    ]);
    assert!(
        told.code == 2 && told.err.contains("loopback"),
        "{}",
        told.err
    );
}
