//! Promise: a running server can be inspected: its metrics are correct and well-formed, it reports its readiness, and no client of the
//! inspector delays a tick, whatever it sends and however many there are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use bevy_ecs::world::World;
use serde_json::Value;
use throng::aoi::AoiStats;
use throng::nav::NavStats;
use throng::net::{ListenSettings, SecretKey, listen, listen_web};
use throng::outbox::OutboxStats;
use throng::prelude::*;
use throng::store::{MemoryDisk, PlayerStore, PlayerStorePlugin};
use throng_inspect::{
    CONNECTIONS_MAX, CONNECTIONS_PER_PEER_MAX, DOT_BYTES, DOTS_HEAD_BYTES, InspectPlugin,
    InspectSettings, InspectStats, Inspector, PAGES_MAX, open_inspector,
};
use throng_scenario::crowd::CrowdPlugin;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::HandshakeError;
use tokio_tungstenite::tungstenite::{self, Error, Message, WebSocket};

use crate::harness::root;

/// How long a test waits for another thread: much longer than necessary on a machine without other load.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A server with an inspector, and its address.
pub(crate) fn inspected_server() -> (Server, SocketAddr) {
    inspected_server_with(30, None)
}

/// The same with this many objects, and a token.
fn inspected_server_with(objects: u32, token: Option<&str>) -> (Server, SocketAddr) {
    let mut server = Server::builder()
        .timing()
        .strict_order()
        .plugins((CrowdPlugin, PlayerStorePlugin, InspectPlugin))
        .build();
    let world = server.world_mut();
    let spec = SceneSpec {
        // Room for objects that are spawned later.
        max_objects: objects + 2_000,
        ..SceneSpec::default()
    };
    // A wall along the right edge, with a gap at its upper end.
    let tiles = TileMap::from_fn(200, 200, |x, y| x == 196 && y > 10).unwrap();
    let scene = open_scene(world, spec, SceneMap::new(tiles.into(), 0.5)).unwrap();
    for nth in 0..objects {
        let at = Position(glam::vec2(
            10.0 + (nth % 80) as f32,
            90.0 - (nth % 70) as f32,
        ));
        world.spawn((Npc, InScene(scene), at, TeamId(nth * 100)));
    }
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let settings = InspectSettings {
        metrics: Some(any),
        page: Some(any),
        token: token.map(str::to_owned),
        ..InspectSettings::default()
    };
    let address = open_inspector(world, settings).unwrap();
    let page = address.page.unwrap();
    assert_eq!(
        address.metrics,
        Some(page),
        "page and metrics share one socket"
    );
    (server, page)
}

/// The least time between ticks with an open page. Pages that receive hundreds of updates per second would be closed as slow readers on a
/// busy machine.
pub(crate) const PAGE_TICK: Duration = Duration::from_millis(10);

/// Runs ticks until a condition on the statistics holds; returns the statistics.
pub(crate) fn wait_for(server: &mut Server, what: impl Fn(&InspectStats) -> bool) -> InspectStats {
    let started = Instant::now();
    loop {
        let stats = server.world().resource::<Inspector>().stats();
        if what(&stats) {
            return stats;
        }
        assert!(started.elapsed() < TIMEOUT, "{stats:?}");
        server.step(1);
        let has_page = stats.pages > 0;
        thread::sleep(if has_page {
            PAGE_TICK
        } else {
            Duration::from_millis(1)
        });
    }
}

/// Sends a request, and returns everything received until the connection ends. `is_all`: shuts down the sending side.
fn exchange(address: SocketAddr, request: &[u8], is_all: bool) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    // The server may have closed the connection before everything is written.
    let _ = stream.write_all(request);
    if is_all {
        let _ = stream.shutdown(Shutdown::Write);
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// The status and the body of a GET request.
pub(crate) fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let answer = exchange(address, request.as_bytes(), false);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.split(' ').nth(1).unwrap_or_default();
    (status.parse().unwrap_or(0), body.to_owned())
}

/// The status and the body of a request for metrics. On a busy machine, the server may reply that no tick has run in time.
pub(crate) fn get_metrics(address: SocketAddr, path: &str) -> (u16, String) {
    let replies = (0..20).map(|_| get(address, path));
    let in_time = { replies }.find(|(status, _)| *status != 503);
    in_time.expect("a tick in time")
}

/// Requests the metrics while ticks run. Also returns the value of `each_tick` after the tick that the metrics describe.
fn metrics<T>(
    server: &mut Server,
    address: SocketAddr,
    mut each_tick: impl FnMut(&mut World) -> T,
) -> (Metrics, T) {
    let asking = thread::spawn(move || get_metrics(address, "/metrics"));
    let mut noted = BTreeMap::new();
    while !asking.is_finished() {
        server.step(1);
        noted.insert(server.tick(), each_tick(server.world_mut()));
        thread::sleep(Duration::from_millis(1));
    }
    let (status, text) = asking.join().unwrap();
    assert_eq!(status, 200, "{text}");
    let metrics = Metrics::parse(&text);
    let tick = metrics.value("throng_ticks_total") as u64;
    let noted = noted
        .remove(&tick)
        .expect("the metrics are of a tick that ran meanwhile");
    (metrics, noted)
}

/// Metrics as Prometheus would read them.
struct Metrics {
    types: BTreeMap<String, String>,
    samples: BTreeMap<String, f64>,
}

impl Metrics {
    /// Parses the text format, at least as strictly as `promtool check metrics`.
    fn parse(text: &str) -> Self {
        let (mut types, mut samples) = (BTreeMap::new(), BTreeMap::new());
        let (mut help, mut family) = (BTreeSet::new(), String::new());
        assert!(text.ends_with('\n'));
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, words) = rest.split_once(' ').expect(line);
                assert!(
                    words.ends_with('.') && help.insert(name.to_owned()),
                    "{line}"
                );
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect(line);
                assert!(help.contains(name), "{line}: HELP comes before samples");
                let kinds = ["counter", "gauge", "histogram", "summary"];
                assert!(kinds.contains(&kind), "{line}");
                let first = types.insert(name.to_owned(), kind.to_owned());
                assert!(first.is_none(), "{line}: twice");
                family = name.to_owned();
            } else {
                let (sample, value) = line.rsplit_once(' ').expect(line);
                let name = sample.split('{').next().unwrap();
                let suffix = name.strip_prefix(family.as_str()).expect(line);
                let allowed: &[&str] = match types[&family].as_str() {
                    "histogram" => &["_bucket", "_sum", "_count"],
                    "summary" => &["_sum", "_count"],
                    _ => &[""],
                };
                assert!(allowed.contains(&suffix), "{line}");
                let value: f64 = value.parse().expect(line);
                let first = samples.insert(sample.to_owned(), value);
                assert!(first.is_none(), "{line}: twice");
            }
        }
        assert_eq!(help.len(), types.len());
        Self { types, samples }
    }

    fn value(&self, sample: &str) -> f64 {
        *self
            .samples
            .get(sample)
            .unwrap_or_else(|| panic!("{sample}"))
    }
}

#[test]
fn metrics_are_well_formed_and_match_the_server() {
    let (mut server, address) = inspected_server();
    server.step(30);
    let (found, (links, objects, paths, bytes)) = metrics(&mut server, address, |world| {
        let objects = world.query::<&Object>().iter(world).count();
        let (links, paths) = (
            world.resource::<AoiStats>().links,
            world.resource::<NavStats>().requested,
        );
        (links, objects, paths, world.resource::<OutboxStats>().bytes)
    });
    assert_eq!(objects, 30);
    for (sample, expected) in [
        (r#"throng_objects{class="npc"}"#, objects as u64),
        (r#"throng_objects{class="player"}"#, 0),
        (r#"throng_sessions{state="in_world"}"#, 0),
        ("throng_scenes", 1),
        ("throng_view_links", links),
        ("throng_path_requests_total", paths),
        ("throng_outbox_bytes_total", bytes),
        ("throng_overload_level", 0),
    ] {
        assert_eq!(found.value(sample), expected as f64, "{sample}");
    }
    assert_eq!(found.value("throng_tick_budget_seconds"), 0.05);
    let module = found.value(r#"throng_memory_bytes{module="aoi"}"#);
    assert!(module > 0.0);
    // All ticks are timed, and each is in one histogram bucket.
    let ticks = found.value("throng_ticks_total");
    let counted = found.value("throng_tick_duration_seconds_count");
    assert_eq!(counted, ticks);
    let all = found.value(r#"throng_tick_duration_seconds_bucket{le="+Inf"}"#);
    assert_eq!(all, ticks);
    let sets = found.samples.iter();
    let sets = sets.filter(|(name, _)| name.starts_with("throng_tick_set_seconds_total{"));
    let sum: f64 = sets.map(|(_, seconds)| seconds).sum();
    let whole = found.value("throng_tick_duration_seconds_sum");
    assert!(whole > 0.0 && (whole - sum).abs() < 1e-9, "{whole} {sum}");
    for (name, kind) in &found.types {
        let is_ours = name.starts_with("throng_") || name.starts_with("process_");
        assert!(is_ours && !name.contains("__"), "{name}");
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
    }
    assert!(found.samples.len() < 300, "{}", found.samples.len());
}

#[test]
fn dashboards_and_alerts_use_exported_metrics_only() {
    let (mut server, address) = inspected_server();
    let world = server.world_mut();
    let here = SocketAddr::from(([127, 0, 0, 1], 0));
    let settings = ListenSettings::default();
    listen_web(world, here, SecretKey::INSECURE, &settings, None).unwrap();
    listen(world, here, SecretKey::INSECURE, settings, None).unwrap();
    let mut directory = world.resource_mut::<PlayerStore>();
    directory.open(MemoryDisk::default()).unwrap();
    let (found, ()) = metrics(&mut server, address, |_| ());
    let mut exported: BTreeSet<String> = BTreeSet::new();
    for (name, kind) in &found.types {
        exported.insert(name.clone());
        if ["histogram", "summary"].contains(&kind.as_str()) {
            let parts = ["_bucket", "_sum", "_count"];
            exported.extend(parts.map(|part| format!("{name}{part}")));
        }
    }
    let text = fs::read_to_string(root().join("assets/grafana/throng.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut expressions: Vec<&str> = targets
        .map(|target| target["expr"].as_str().unwrap())
        .collect();
    let alerts = fs::read_to_string(root().join("deploy/alerts.yaml")).unwrap();
    let lines = alerts.lines().map(str::trim);
    let of_alerts = expressions.len();
    expressions.extend(lines.filter_map(|line| line.strip_prefix("expr: ")));
    assert!(expressions.len() > of_alerts + 5, "{alerts}");
    let mut used_metrics = BTreeSet::new();
    for expression in expressions {
        let words = expression.split(|c: char| !c.is_alphanumeric() && c != '_');
        let names = words.filter(|word| word.contains("throng_") || word.contains("process_"));
        used_metrics.extend(names.map(str::to_owned));
    }
    assert!(used_metrics.len() > 20, "{used_metrics:?}");
    let unknown: Vec<_> = used_metrics
        .iter()
        .filter(|name| !exported.contains(*name))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn server_is_ready_from_its_first_tick_until_it_drains() {
    let (mut server, address) = inspected_server();
    let (status, word) = get(address, "/readyz");
    assert_eq!(
        (status, word.as_str()),
        (503, "starting: no tick is done yet\n")
    );
    server.step(1);
    assert_eq!(get(address, "/readyz"), (200, "ready\n".into()));
    server.world_mut().resource_mut::<Sessions>().drain();
    server.step(1);
    let (status, word) = get(address, "/readyz");
    assert!(status == 503 && word.starts_with("draining"), "{word}");
    assert_eq!(get(address, "/healthz"), (200, "ok\n".into()));
    #[expect(clippy::disallowed_methods, reason = "the test ends the inspector")]
    server.world_mut().remove_resource::<Inspector>();
    assert!(TcpStream::connect(address).is_err(), "the port is closed");
}

#[test]
fn thousand_connections_and_junk_are_bounded_and_counted() {
    let (mut server, address) = inspected_server();
    server.step(1);
    // A silent connection keeps its slot until it times out.
    let idle: Vec<TcpStream> = (0..1_000)
        .map_while(|_| TcpStream::connect(address).ok())
        .collect();
    assert_eq!(idle.len(), 1_000);
    // On a busy machine, connections that timed out may have freed their slots.
    let most = CONNECTIONS_MAX as u64;
    let found = wait_for(&mut server, |stats| {
        assert!(stats.connections <= most, "{stats:?}");
        stats.accepted + stats.refused == 1_000
    });
    let of_peer = CONNECTIONS_PER_PEER_MAX as u64;
    assert!(found.accepted >= of_peer && found.refused > 0, "{found:?}");
    // Beyond the limit only probes are answered.
    assert_eq!(get(address, "/readyz"), (200, "ready\n".into()));
    assert_eq!(get(address, "/healthz").0, 200);
    assert_eq!(get(address, "/metrics").0, 503);
    drop(idle);
    let found = wait_for(&mut server, |stats| stats.connections == 0);
    assert_eq!(found.accepted + found.refused, 1_003, "{found:?}");
    let long = [b"GET / HTTP/1.1\r\nX: ", &[b'x'; 40_000][..], b"\r\n\r\n"].concat();
    let many = [b"GET / HTTP/1.1\r\n", &b"A: b\r\n".repeat(500)[..], b"\r\n"].concat();
    for junk in [
        b"\x16\x03\x01\x02\x00\x01\x00".as_slice(),
        b"\r\n\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /../../etc/passwd HTTP/1.1\r\n\r\n",
        b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        b"GET /metrics HTTP/9.9\r\n\r\n",
        &[0xff; 1_000],
        &long,
        &many,
    ] {
        let answer = exchange(address, junk, true);
        assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let found = wait_for(&mut server, |stats| stats.connections == 0);
    assert!(found.denied >= 1 && found.broken >= 4, "{found:?}");
    assert_eq!(get(address, "/readyz").0, 200);
    server.step(5);
}

#[test]
fn full_page_address_does_not_block_the_metrics_address() {
    let mut server = Server::builder().plugins(InspectPlugin).build();
    let settings = InspectSettings {
        metrics: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        page: Some(SocketAddr::from(([127, 0, 0, 2], 0))),
        ..InspectSettings::default()
    };
    let addresses = open_inspector(server.world_mut(), settings).unwrap();
    let (metrics, page) = (addresses.metrics.unwrap(), addresses.page.unwrap());
    server.step(1);
    let idle: Vec<TcpStream> = (0..CONNECTIONS_MAX + 1)
        .map(|_| TcpStream::connect(page).unwrap())
        .collect();
    wait_for(&mut server, |stats| stats.refused > 0);
    assert_eq!(get(metrics, "/readyz"), (200, "ready\n".into()));
    let rebound = b"GET /metrics HTTP/1.1\r\nHost: rebound.example\r\n\r\n";
    let answer = exchange(metrics, rebound, false);
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    drop(idle);
}

#[test]
fn public_inspect_page_requires_a_token() {
    let mut server = Server::builder().plugins(InspectPlugin).build();
    let open = |token: Option<&str>| InspectSettings {
        page: Some(SocketAddr::from(([0, 0, 0, 0], 0))),
        token: token.map(str::to_owned),
        ..InspectSettings::default()
    };
    for (token, part) in [
        (None, "not a loopback address"),
        (Some("short"), "8 to 128"),
        (Some("with spaces in it"), "8 to 128"),
    ] {
        let error = open_inspector(server.world_mut(), open(token)).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    assert!(open_inspector(server.world_mut(), open(Some("longenough"))).is_ok());
    // Without addresses in the settings, no port is open.
    let nothing = open_inspector(server.world_mut(), InspectSettings::default());
    assert_eq!(nothing.unwrap(), Default::default());
}

/// The client side of a page.
pub(crate) struct PageClient(WebSocket<TcpStream>);

impl PageClient {
    /// Connects to the live page; the HTTP status if the server refuses.
    pub(crate) fn open(
        address: SocketAddr,
        query: &str,
        origin: Option<&str>,
    ) -> Result<Self, u16> {
        let stream = TcpStream::connect(address).unwrap();
        let url = format!("ws://{address}/live{query}");
        let mut request = url.into_client_request().unwrap();
        if let Some(origin) = origin {
            let value = origin.parse().unwrap();
            request.headers_mut().insert("origin", value);
        }
        match tungstenite::client(request, stream) {
            Ok((socket, _)) => {
                let patience = Some(Duration::from_millis(2));
                socket.get_ref().set_read_timeout(patience).unwrap();
                Ok(Self(socket))
            }
            Err(HandshakeError::Failure(Error::Http(answer))) => Err(answer.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.0.send(Message::text(text.to_owned())).unwrap();
    }

    /// Runs ticks until a message is accepted by `wanted`.
    pub(crate) fn receive<T>(
        &mut self,
        server: &mut Server,
        wanted: impl FnMut(Message) -> Option<T>,
    ) -> T {
        self.receive_while(server, |_, _| {}, wanted)
    }

    /// The same. Calls `again` every hundred ticks, because messages that did not fit are not sent again.
    pub(crate) fn receive_while<T>(
        &mut self,
        server: &mut Server,
        mut again: impl FnMut(&mut Self, &mut Server),
        mut wanted: impl FnMut(Message) -> Option<T>,
    ) -> T {
        let (started, mut since_message) = (Instant::now(), 0);
        for nth in 0_u64.. {
            if started.elapsed() > TIMEOUT {
                break;
            }
            if nth.is_multiple_of(100) {
                again(self, server);
            }
            server.step(1);
            // An update is sent at least every ten ticks, so the thread of the page is late.
            if since_message > 12 {
                thread::sleep(PAGE_TICK);
            }
            since_message += 1;
            while let Ok(message) = self.0.read() {
                since_message = 0;
                if let Some(found) = wanted(message) {
                    return found;
                }
            }
        }
        panic!("the page did not receive the expected message");
    }

    /// The next message of a type, from a server in another process; `None` after a timeout.
    pub(crate) fn receive_unrequested(&mut self, of: &str) -> Option<Value> {
        let started = Instant::now();
        while started.elapsed() < TIMEOUT / 4 {
            let text = self.0.read().ok().map(|message| message.to_string());
            let value: Option<Value> = text.and_then(|text| serde_json::from_str(&text).ok());
            if let Some(value) = value.filter(|value| value["type"] == of) {
                return Some(value);
            }
        }
        None
    }

    /// The next message of a type.
    pub(crate) fn receive_section(&mut self, server: &mut Server, of: &str) -> Value {
        self.receive(server, |message| {
            let value: Value = serde_json::from_str(message.to_text().ok()?).ok()?;
            (value["type"] == of).then_some(value)
        })
    }
}

#[test]
fn page_receives_all_objects_with_positions() {
    let (mut server, address) = inspected_server();
    server.step(3);
    let mut page = PageClient::open(address, "", None).unwrap();
    let hello = page.receive_section(&mut server, "hello");
    assert_eq!(hello["sets"].as_array().unwrap().len(), 11);
    assert_eq!(hello["scenes"][0]["objects"], 30, "{hello}");
    let frame = page.receive(&mut server, |message| match message {
        Message::Binary(bytes) if bytes[0] == 1 => Some(bytes),
        _ => None,
    });
    let word = |at: usize| u32::from_le_bytes(frame[at..at + 4].try_into().unwrap());
    let world = server.world_mut();
    let mut objects = world.query::<(&Object, &Position, &TeamId)>();
    let expected: BTreeMap<u32, _> = objects
        .iter(world)
        .map(|(object, position, team)| {
            let team = (team.0 % 255) as u8 + 1;
            (object.id().0, (position.0, object.kind().0 as u8, team))
        })
        .collect();
    let count = word(24) as usize;
    assert_eq!(count, expected.len());
    assert_eq!(frame.len(), DOTS_HEAD_BYTES + count * DOT_BYTES);
    let size_m = glam::Vec2::from([16, 20].map(|at| f32::from_bits(word(at))));
    let share = |at: usize| {
        let share = u16::from_le_bytes(frame[at..at + 2].try_into().unwrap());
        f32::from(share) / 65_535.0
    };
    let mut found = BTreeSet::new();
    for nth in 0..count {
        // The frame has the ids of all dots, then all x, y, kinds and teams.
        let [x, y] = [4, 6].map(|before| share(DOTS_HEAD_BYTES + count * before + nth * 2));
        let [kind, team] = [8, 9].map(|before| frame[DOTS_HEAD_BYTES + count * before + nth]);
        let id = word(DOTS_HEAD_BYTES + nth * 4);
        let (at, expected_kind, expected_team) = expected[&id];
        let off = (glam::vec2(x, y) * size_m - at).abs();
        assert!(off.cmple(size_m / 65_535.0).all(), "{id}: {off}");
        assert_eq!((kind, team), (expected_kind, expected_team), "{id}");
        found.insert(id);
    }
    assert_eq!(found.len(), count);
    let state = page.receive_section(&mut server, "state");
    assert_eq!(state["objects"]["npcs"], 30, "{state}");
    assert!(!state["ticks"].as_array().unwrap().is_empty());
    // Details of one object, and why another one is visible or not.
    let ids: Vec<u32> = expected.into_keys().collect();
    page.send(&format!(r#"{{"selected":{},"other":{}}}"#, ids[0], ids[1]));
    let picked = page.receive_section(&mut server, "selected");
    assert_eq!(
        (&picked["id"], &picked["kind"]),
        (&ids[0].into(), &"npc".into())
    );
    assert_eq!(picked["why"]["sees"][1], "it is not a viewer", "{picked}");
    page.send(r#"{"selected":4000000000}"#);
    while page.receive_section(&mut server, "selected")["gone"] != true {}
    let stats = server.world().resource::<Inspector>().stats();
    assert_eq!((stats.pages, stats.dropped, stats.junk), (1, 0, 0));
}

#[test]
fn page_without_token_or_from_another_origin_is_refused() {
    let (mut server, address) = inspected_server_with(1, Some("opensesame"));
    server.step(1);
    for wrong in ["", "?token=", "?token=opensesamf"] {
        assert_eq!(
            PageClient::open(address, wrong, None).err(),
            Some(401),
            "{wrong}"
        );
    }
    let right = "?token=opensesame";
    let foreign = PageClient::open(address, right, Some("https://example.org"));
    assert_eq!(foreign.err(), Some(403));
    let own = format!("http://{address}");
    let mut page = PageClient::open(address, right, Some(&own)).ok().unwrap();
    page.receive_section(&mut server, "hello");
    assert_eq!(get(address, "/").0, 200, "the page itself needs no token");
}

#[test]
fn excess_pages_and_pages_that_send_junk_are_closed() {
    let (mut server, address) = inspected_server();
    server.step(1);
    let mut pages: Vec<PageClient> = (0..PAGES_MAX)
        .map(|_| PageClient::open(address, "", None).ok().unwrap())
        .collect();
    assert_eq!(PageClient::open(address, "", None).err(), Some(503));
    // The server counts a page after its handshake, which the page completes earlier.
    wait_for(&mut server, |stats| stats.pages == PAGES_MAX as u64);
    // Messages without meaning, bytes that are not a frame, and a message that is too long.
    for _ in 0..20 {
        let _ = pages[0].0.send(Message::text("{\"scene\":\"x\"}"));
    }
    pages[1].0.get_mut().write_all(&[0xff; 64]).unwrap();
    let _ = pages[2].0.send(Message::binary(vec![7; 100_000]));
    // No tick runs meanwhile: otherwise, pages that receive a thousand messages per second could be closed as slow readers first.
    let started = Instant::now();
    let junk = || server.world().resource::<Inspector>().stats().junk;
    while junk() < 11 {
        assert!(started.elapsed() < TIMEOUT, "{} of 11", junk());
        thread::sleep(Duration::from_millis(1));
    }
    wait_for(&mut server, |stats| stats.pages == PAGES_MAX as u64 - 3);
    pages[5].receive_section(&mut server, "state");
}

#[test]
fn page_that_never_reads_is_closed_without_blocking_a_tick() {
    let (mut server, address) = inspected_server_with(8_000, None);
    server.step(1);
    let idle = PageClient::open(address, "", None).ok().unwrap();
    let stats = |server: &Server| server.world().resource::<Inspector>().stats();
    let started = Instant::now();
    while stats(&server).pages_slow == 0 {
        assert!(started.elapsed() < TIMEOUT, "{:?}", stats(&server));
        let before = Instant::now();
        server.step(1);
        // A write to the page times out after five seconds: a tick that waits for it would take that long.
        let took = before.elapsed();
        assert!(took < Duration::from_secs(4), "{took:?}");
    }
    drop(idle);
}
