//! Promise: players in another process who lose a tenth of their packets, change their ports and restart have the same state as the server
//! at rest, and no reliable message is lost or duplicated; the same holds behind a relay that loses packets; a client without a valid token
//! is refused; a stopped server sends close messages.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, ChildStdout, Stdio};

use serde_json::Value;

use crate::harness::{ProgramOutput, TempFolder, program, run_throng, send_signal, wait_for_log};
use crate::inspect_page::{PageClient, get, get_metrics};
use crate::tls::{CertificateFiles, tls_get};

/// A yard with crowds, which external players join.
const YARD: &str = r#"Scenario(name: "yard", seed: 9, duration_s: 20, settings: (overload: (measure: Off)),
    scenes: [Scene(name: "yard", map: Generate(Random(width_tiles: 120, height_tiles: 120, fill: 0.02)), cell_m: 20, view_cap: 60)],
    crowds: [
        Crowd(tag: "people", kind: "player", count: 10, client_share: 1, speed_m_s: 3, attributes_per_s: 4, behaviour: Wander(radius_m: 10)),
        Crowd(tag: "folk", kind: "npc", count: 20, attributes_per_s: 3, behaviour: Wander(radius_m: 10)),
    ])"#;

/// A server process that runs until it is stopped.
struct ServerProcess {
    process: Child,
    out: BufReader<ChildStdout>,
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // The process has ended already, unless a test failed.
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

    /// The address at the end of the next line of its output.
    fn address(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("the output is UTF-8");
        let last = line.split_whitespace().next_back();
        last.unwrap_or_else(|| panic!("the server ended early"))
            .to_owned()
    }

    /// Sends SIGINT, and returns the last line of the output as JSON.
    fn stop(mut self) -> Value {
        send_signal(&self.process, "-INT");
        let status = self.process.wait().expect("the program ends");
        assert_eq!(status.code(), Some(0), "SIGINT ends the server normally");
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
    // Reliable packets and inputs are numbered, so a lost or duplicated one would be counted.
    assert_eq!(
        (&found["faults"], &found["unanswered"]),
        (&0.into(), &0.into())
    );
    let survived = |name: &str| found[name]["survived"].as_u64();
    assert_eq!(
        (survived("rebinds"), survived("restarts")),
        (Some(30), Some(6))
    );
    // Without the right key no client is admitted, and only few datagrams get a reply.
    let other = folder.path("other");
    assert_eq!(run_throng(&["token", "--new-key", &other]).code, 0);
    let stranger = ["client", "--json", "--connect", &address, "--key", &other];
    let refused = run_throng(&[&stranger[..], &["--timeout", "1s"]].concat());
    assert_eq!((refused.code, &refused.json()["connected"]), (1, &0.into()));
    let served = server.stop();
    let counted = ["left", "moved", "lost"].map(|name| served[name].as_u64());
    assert_eq!(counted, [12, 30, 0].map(Some), "{served}");
    // A client that waits too long for a late reply requests again.
    assert!(served["admitted"].as_u64() >= Some(18), "{served}");
    assert!(served["strangers"].as_u64() >= Some(1), "{served}");
    let bytes = |name: &str| served[name].as_u64().expect("a number");
    let (asked, answered) = (bytes("stranger_bytes_in"), bytes("answer_bytes_out"));
    assert!((12 * 73..asked / 3).contains(&answered), "{served}");
    // Twelve external players and ten of the scenario are stored.
    let kept = run_throng(&["db", "check", &store, "--json"]).json();
    assert_eq!(kept["players"], 22, "{kept}");
}

#[test]
fn relay_simulates_a_bad_network() {
    let folder = TempFolder::new();
    let yard = folder.write("yard.ron", YARD);
    let any = "127.0.0.1:0";
    // Tokens contain the relay's address, so it must be known before the server starts.
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
        "a round trip takes at least 20 ms: {found}"
    );
    let passed = relay.stop();
    // Each client at its first port, and at the ports that it changed to.
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
    let output = run_throng(&["relay", "--loss", "2"]);
    assert!(
        output.code == 2 && output.err.contains("10%"),
        "{}",
        output.err
    );
    let output = run_throng(&["relay", "--listen", "203.0.113.5:7100"]);
    assert!(
        output.code == 2 && output.err.contains("203.0.113.5"),
        "{}",
        output.err
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
    let (address, path) = of(&metrics).expect("the address of the metrics");
    let (status, text) = get_metrics(address, &path);
    assert_eq!(status, 200, "{text}");
    for expected in ["throng_net_clients 0", "throng_objects{class=\"npc\"} 20"] {
        assert!(text.contains(expected), "{text}");
    }
    assert_eq!(get(address, "/readyz").0, 200);
    assert_eq!(
        of(&page).expect("the address of the page").0,
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
    let output = run_throng(&quietly);
    assert!(
        output.code == 2 && output.err.contains("needs --inspect-token"),
        "{}",
        output.err
    );
    let output = run_throng(&["serve", "--inspect", "203.0.113.5:7777", "--listen", any]);
    assert!(
        output.code == 2 && output.err.contains("203.0.113.5:7777"),
        "{}",
        output.err
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
    let more = more.expect("a preset that spawns a crowd")["text"]
        .as_str()
        .unwrap();
    let more = more
        .replace("{at}", "30.0, 30.0")
        .replace("{scene}", "\"yard\"");
    for (cue, is_done) in [
        ("Block(scene: \"yard\", rect_tiles: (40, 40, 4, 4))", true),
        ("Block(scene: \"yrad\", rect_tiles: (40, 40, 4, 4))", false),
        (more.as_str(), true),
    ] {
        // On a busy machine a result may be dropped, so the request is repeated.
        let mut answers = (0..4).filter_map(|_| {
            page.send(&serde_json::json!({ "action": cue }).to_string());
            page.receive_unrequested("action")
        });
        let reply = answers.next().expect("an answer");
        assert_eq!(reply["text"], cue);
        assert_eq!(reply["error"].is_null(), is_done, "{reply}");
    }
    let state = page.receive_unrequested("state").expect("figures");
    assert!(state["objects"]["npcs"].as_u64() >= Some(70), "{state}");
    assert!(server.stop()["external_actions"].as_u64() >= Some(2));
    let reply = run_throng(&["serve", "--inspect-actions", "--listen", any]);
    assert!(
        reply.code == 2 && reply.err.contains("--inspect "),
        "{}",
        reply.err
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
    let address = address.expect("the address of the page").parse().unwrap();
    let (status, text) = get(address, "/");
    assert!(status == 200 && text.contains("page.js"), "{status} {text}");
    assert_eq!(get(address, "/map?scene=99").0, 404);
    assert_eq!(get(address, "/map?scene=0").0, 200);
    let served = server.stop();
    assert_eq!(served["web"]["answered"], 2, "{served}");
    let output = run_throng(&["serve", "--listen", "127.0.0.1:0", "--web", "0.0.0.0:0"]);
    assert!(
        output.code == 2 && output.err.contains("pass --key FILE"),
        "{}",
        output.err
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
            "--admin is missing",
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
        let output = run_throng(&[vec!["serve", "--listen", "127.0.0.1:0"], arguments].concat());
        assert_eq!(output.code, 2, "{}", output.err);
        assert!(output.err.contains(reason), "{reason}: {}", output.err);
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
        let output = run_throng(arguments);
        assert_eq!(output.code, 2, "{}", output.err);
        assert!(output.err.contains("pass --key FILE"), "{}", output.err);
    }
    let output = run_throng(&["token", "--player", "7", "--server", "127.0.0.1:7000"]);
    assert_eq!((output.code, output.out.trim().len()), (0, 4_096));
    let mut brief = ["token", "--player", "7", "--server", "127.0.0.1:7000"].to_vec();
    brief.extend(["--lifetime", "0.2s"]);
    assert_eq!(
        run_throng(&brief).code,
        0,
        "a timeout is rounded up to a second"
    );
    let output = run_throng(&[
        "serve",
        "--mirror-check",
        "0.0.0.0:0",
        "--listen",
        "127.0.0.1:0",
    ]);
    assert!(
        output.code == 2 && output.err.contains("loopback"),
        "{}",
        output.err
    );
}
