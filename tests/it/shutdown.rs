//! Promise: a server that gets a stop signal reports it at once, lets its players finish for the configured time, and notifies its service
//! manager; secrets can be passed without the command line; a run fails if its store fails.
#![cfg(unix)]

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::harness::{TempFolder, program, run_throng, send_signal};
use crate::inspect_page::{get, get_metrics};

/// A yard for external players.
const YARD: &str = r#"Scenario(name: "yard", seed: 9, duration_s: 20, settings: (overload: (measure: Off)),
    scenes: [Scene(name: "yard", map: Generate(Random(width_tiles: 40, height_tiles: 40, fill: 0)))],
    crowds: [Crowd(tag: "people", kind: "player", count: 2)])"#;

/// How long a test waits for another process.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server, its UDP address, and the address of its probes.
struct TestServerProcess {
    process: Child,
    udp: String,
    metrics: std::net::SocketAddr,
    out: BufReader<std::process::ChildStdout>,
}

impl TestServerProcess {
    fn start(mut command: Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the program starts");
        let mut out = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut last_word = || {
            let mut line = String::new();
            out.read_line(&mut line).expect("the output is UTF-8");
            line.split_whitespace()
                .next_back()
                .unwrap_or_default()
                .to_owned()
        };
        let udp = last_word();
        let url = last_word();
        let metrics = url
            .strip_prefix("http://")
            .and_then(|url| url.split('/').next());
        let metrics = metrics.and_then(|address| address.parse().ok());
        let Some(metrics) = metrics else {
            let mut rest = String::new();
            let err = process
                .stderr
                .take()
                .expect("a pipe")
                .read_to_string(&mut rest);
            panic!("no address: {url} {rest} {err:?}");
        };
        let served = Self {
            process,
            udp,
            metrics,
            out,
        };
        served.wait_for_ready(200);
        served
    }

    fn wait_for_ready(&self, status: u16) -> String {
        let started = Instant::now();
        loop {
            let (found, word) = get(self.metrics, "/readyz");
            if found == status {
                return word;
            }
            assert!(started.elapsed() < TIMEOUT, "{found} {word}");
            sleep(Duration::from_millis(20));
        }
    }

    /// A metric; 0 if the server does not have it.
    fn metric(&self, name: &str) -> u64 {
        let (_, metrics) = get_metrics(self.metrics, "/metrics");
        let value = metrics.lines().find_map(|line| line.strip_prefix(name));
        value
            .and_then(|value| value.trim().parse().ok())
            .unwrap_or(0)
    }

    /// Waits until a metric has at least this value.
    fn wait_for_metric(&self, name: &str, value_min: u64) {
        for _ in 0..3_000 {
            if self.metric(name) >= value_min {
                return;
            }
            sleep(Duration::from_millis(20));
        }
        panic!("{name}: {}", self.metric(name));
    }

    /// Waits for the end of the process; returns its exit code and its log.
    fn wait_for_exit(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.out
            .read_to_string(&mut rest)
            .expect("the output is UTF-8");
        let mut log = String::new();
        let err = self.process.stderr.as_mut().expect("a pipe");
        err.read_to_string(&mut log).expect("the output is UTF-8");
        assert!(!log.contains("panicked"), "{log}");
        (self.process.wait().expect("it ends").code(), log)
    }
}

impl Drop for TestServerProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
    }
}

fn serve(yard: &str, more: &[&str]) -> Command {
    let any = "127.0.0.1:0";
    let listen = [
        "serve",
        yard,
        "--threads",
        "1",
        "--listen",
        any,
        "--metrics",
        any,
    ];
    program(&[&listen[..], more].concat())
}

#[test]
fn players_stay_until_the_drain_ends() {
    let folder = TempFolder::new();
    let yard = folder.write("yard.ron", YARD);
    let times = ["--drain-lead", "5s", "--drain", "60s"];
    let server = TestServerProcess::start(serve(&yard, &times));
    let walk = [
        "client",
        "2",
        "--json",
        "--connect",
        &server.udp,
        "--duration",
    ];
    let inside = program(&[&walk[..], &["12s"]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    server.wait_for_metric("throng_sessions{state=\"in_world\"}", 2);
    send_signal(&server.process, "-TERM");
    let word = server.wait_for_ready(503);
    assert!(word.starts_with("stopping"), "{word}");
    // During the lead time everything continues; after it new logins are refused, and open sessions continue.
    let early = run_throng(&[&walk[..], &["1s", "--first", "101"]].concat());
    assert_eq!(early.json()["in_world"], 2, "{} {}", early.out, early.err);
    let is_refused = (2..40).any(|nth| {
        let first = format!("{nth}01");
        let late = run_throng(&[&walk[..], &["1s", "--first", &first]].concat());
        late.json()["in_world"] == 0
    });
    assert!(is_refused);
    let inside = crate::harness::ProgramOutput::from(inside.wait_with_output().expect("it ends"));
    let found = inside.json();
    assert_eq!((inside.code, &found["in_world"]), (0, &2.into()), "{found}");
    // The players left, so the server does not wait for the whole minute.
    let (code, log) = server.wait_for_exit();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("server stops"), "{log}");
}

#[test]
fn second_signal_ends_a_drain_at_once() {
    let folder = TempFolder::new();
    let yard = folder.write("yard.ron", YARD);
    let server = TestServerProcess::start(serve(&yard, &["--drain-lead", "10m"]));
    send_signal(&server.process, "-INT");
    server.wait_for_ready(503);
    send_signal(&server.process, "-TERM");
    assert_eq!(server.wait_for_exit().0, Some(143));
}

#[test]
fn suspension_is_logged() {
    let folder = TempFolder::new();
    let yard = folder.write("yard.ron", YARD);
    let server = TestServerProcess::start(serve(&yard, &[]));
    send_signal(&server.process, "-STOP");
    sleep(Duration::from_secs(3));
    send_signal(&server.process, "-CONT");
    // The delay is noticed in the second tick after it.
    let ticks = server.metric("throng_ticks_total");
    server.wait_for_metric("throng_ticks_total", ticks + 3);
    send_signal(&server.process, "-INT");
    let (code, log) = server.wait_for_exit();
    assert_eq!(code, Some(0), "{log}");
    // A busy machine may suspend the process more than once.
    assert!(log.contains("server stood still for "), "{log}");
}

#[test]
fn service_manager_is_notified_of_start_ticks_and_stop() {
    let folder = TempFolder::new();
    let yard = folder.write("yard.ron", YARD);
    let path = folder.path("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    // The socket holds few states, and the server does not wait for room.
    let (states, received) = channel();
    thread::spawn(move || {
        let mut state = [0; 100];
        while let Ok(length) = socket.recv(&mut state) {
            let state = String::from_utf8_lossy(&state[..length]).into_owned();
            if states.send(state).is_err() {
                return;
            }
        }
    });
    let next = || received.recv_timeout(TIMEOUT).expect("a state");
    let mut command = serve(&yard, &[]);
    command
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "200000");
    let server = TestServerProcess::start(command);
    assert_eq!(next(), "READY=1");
    assert_eq!([next(), next()], ["WATCHDOG=1"; 2]);
    send_signal(&server.process, "-TERM");
    let mut state = next();
    while state == "WATCHDOG=1" {
        state = next();
    }
    assert_eq!(state, "STOPPING=1");
    assert_eq!(server.wait_for_exit().0, Some(0));
}

/// A fake Agones SDK server: it assigns this port to the game server, refuses the first two reports, and records all requests.
fn agones_sdk(port: u16) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (requests, received) = channel();
    thread::spawn(move || {
        let mut reports = 0;
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut line, mut header) = (String::new(), String::new());
            stream.read_line(&mut line).unwrap();
            while header != "\r\n" {
                header.clear();
                stream.read_line(&mut header).unwrap();
            }
            let is_report = line.starts_with("POST");
            reports += u32::from(is_report);
            let status = if is_report && reports <= 2 { 500 } else { 200 };
            if is_report {
                stream.read_exact(&mut [0; 2]).unwrap();
            }
            let game_server = format!(
                r#"{{"status": {{"address": "127.0.0.1", "ports": [{{"name": "default", "port": {port}}}]}}}}"#
            );
            write!(stream.get_mut(), "HTTP/1.1 {status} x\r\n\r\n{game_server}").unwrap();
            let line = line.trim().replace(" HTTP/1.0", "");
            if requests.send(line).is_err() {
                return;
            }
        }
    });
    (url, received)
}

#[test]
fn agones_follows_a_server_from_start_to_end() {
    let folder = TempFolder::new();
    let yard = folder.write("yard.ron", YARD);
    let port = {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap().port()
    };
    let (url, requests) = agones_sdk(port);
    let next = || requests.recv_timeout(TIMEOUT).expect("a request");
    let (agones, listen) = (format!("--agones={url}"), format!("127.0.0.1:{port}"));
    let any = "127.0.0.1:0";
    let options = [
        "--threads",
        "1",
        "--listen",
        &listen,
        "--metrics",
        any,
        "--drain",
        "60s",
    ];
    let command = program(&[&["serve", &yard, &agones][..], &options].concat());
    let server = TestServerProcess::start(command);
    assert_eq!(server.udp, listen);
    assert_eq!(next(), "GET /gameserver");
    assert_eq!(
        [next(), next(), next()],
        ["POST /ready"; 3],
        "two reports were refused"
    );
    assert_eq!(next(), "POST /health");
    server.wait_for_metric("throng_agones_requests_total{result=\"failed\"}", 2);
    server.wait_for_metric("throng_agones_requests_total{result=\"done\"}", 1);
    assert!(
        requests.try_iter().all(|line| line == "POST /health"),
        "no player has logged in"
    );
    let visit = ["client", "1", "--connect", &listen, "--duration", "1s"];
    let visited = run_throng(&visit);
    assert_eq!(visited.code, 0, "{} {}", visited.out, visited.err);
    let mut line = next();
    while line == "POST /health" {
        line = next();
    }
    assert_eq!(line, "POST /allocate");
    send_signal(&server.process, "-TERM");
    let (code, log) = server.wait_for_exit();
    assert_eq!(code, Some(0), "{log}");
    let rest: Vec<String> = requests.try_iter().collect();
    let (last, others) = rest.split_last().expect("a request");
    assert_eq!(last, "POST /shutdown");
    assert!(others.iter().all(|line| line == "POST /health"), "{rest:?}");
    let counts = ["Agones request failed", "Agones requests succeed again"];
    let counts = counts.map(|message| log.matches(message).count());
    assert_eq!(counts, [1, 1], "{log}");
}

#[test]
fn secrets_come_from_files_and_the_environment() {
    let folder = TempFolder::new();
    let (yard, store) = (folder.write("yard.ron", YARD), folder.path("players.db"));
    let token = folder.write("token", "abcdefgh\n");
    let look = [
        "--inspect",
        "127.0.0.1:0",
        "--inspect-token-file",
        &token,
        "--duration",
        "1s",
    ];
    fs::set_permissions(&token, Permissions::from_mode(0o644)).unwrap();
    let mut command = serve(&yard, &look);
    let output = command.output().expect("the program starts");
    let output = crate::harness::ProgramOutput::from(output);
    assert!(
        output.code == 2 && output.err.contains("chmod 600"),
        "{}",
        output.err
    );
    fs::set_permissions(&token, Permissions::from_mode(0o600)).unwrap();
    let mut command = serve(&yard, &look);
    command.env("THRONG_STORE", &store);
    let output = crate::harness::ProgramOutput::from(command.output().expect("the program starts"));
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(output.out.contains("#abcdefgh"), "{}", output.out);
    assert!(
        fs::metadata(&store).is_ok(),
        "the store from the environment is used"
    );
    let mut command = serve(&yard, &look[..2]);
    command
        .args(["--duration", "1s"])
        .env("THRONG_INSPECT_TOKEN", "ijklmnop");
    let output = crate::harness::ProgramOutput::from(command.output().expect("the program starts"));
    assert!(
        output.out.contains("#ijklmnop"),
        "{} {}",
        output.out,
        output.err
    );
    // An endless file is not a valid key.
    let output = run_throng(&[
        "serve",
        &yard,
        "--listen",
        "127.0.0.1:0",
        "--key",
        "/dev/zero",
    ]);
    assert!(
        output.code == 2 && output.err.contains("/dev/zero"),
        "{}",
        output.err
    );
    // `run` does not take the store from the environment, so it cannot write to a server's store by accident.
    let help = run_throng(&["run", "--help"]);
    assert!(!help.out.contains("THRONG_STORE"), "{}", help.out);
}

#[test]
fn run_whose_store_fails_exits_with_1() {
    let folder = TempFolder::new();
    let scenario = YARD.replace("count: 2", "count: 2, client_share: 1");
    let (scenario, store) = (folder.write("a.ron", scenario), folder.path("a.db"));
    let run = [
        "run",
        &scenario,
        "--ticks",
        "40",
        "--no-timing",
        "--store",
        &store,
    ];
    assert_eq!(run_throng(&run).code, 0);
    // From now on no claim and no save succeeds.
    let database = rusqlite::Connection::open(&store).unwrap();
    for change in ["INSERT", "UPDATE"] {
        let trigger = format!(
            "CREATE TRIGGER no_{change} BEFORE {change} ON player BEGIN SELECT RAISE(ABORT, 'no'); END"
        );
        database.execute_batch(&trigger).unwrap();
    }
    drop(database);
    let output = run_throng(&run);
    assert_eq!(output.code, 1, "{} {}", output.out, output.err);
    assert!(output.out.contains("store errors"), "{}", output.out);
}

/// A yard where players trade all the time.
const TRADERS: &str = r#"Scenario(name: "traders", seed: 9, duration_s: 600,
    scenes: [Scene(name: "yard", map: Generate(Random(width_tiles: 40, height_tiles: 40, fill: 0)))],
    crowds: [Crowd(tag: "people", kind: "player", count: 20, client_share: 1)])"#;

/// Waits until the file of `--acknowledged` has a line.
fn wait_for_save(log: &str) {
    let started = Instant::now();
    while fs::metadata(log).map_or(0, |log| log.len()) == 0 {
        assert!(started.elapsed() < TIMEOUT, "nothing is saved");
        sleep(Duration::from_millis(20));
    }
}

/// A run in real time whose store can be moved away.
struct RunWithStore {
    process: Child,
    err: std::io::Lines<BufReader<std::process::ChildStderr>>,
    /// The folder of the store, and where it is moved.
    places: [String; 2],
    log: String,
}

impl RunWithStore {
    fn start(folder: &TempFolder, name: &str, save_timeout: &str) -> Self {
        let scenario = folder.write(&format!("{name}.ron"), TRADERS);
        let places = [folder.path(name), folder.path(&format!("{name}_away"))];
        fs::create_dir(&places[0]).unwrap();
        let (store, log) = (
            format!("{}/players.db", places[0]),
            folder.path(&format!("{name}.log")),
        );
        let run = ["run", &scenario, "--realtime", "--duration", "12s"];
        let kept = ["--store", &store, "--acknowledged", &log, "--no-timing"];
        let command = &mut program(&[&run[..], &kept].concat());
        command.args(["--save-timeout", save_timeout]);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the program starts");
        let err = BufReader::new(process.stderr.take().expect("a pipe")).lines();
        Self {
            process,
            err,
            places,
            log,
        }
    }

    /// Moves the store away after the first save, and waits until that is noticed.
    fn lose_store(&mut self) {
        wait_for_save(&self.log);
        fs::rename(&self.places[0], &self.places[1]).unwrap();
        let is_noticed = |line: &std::io::Result<String>| matches!(line, Ok(line) if line.contains("saves wait"));
        self.err.find(is_noticed).expect("it says so").unwrap();
    }

    fn return_store(&self) {
        fs::rename(&self.places[1], &self.places[0]).unwrap();
    }

    /// Its exit code, its report and the rest of its log.
    fn wait(self) -> (Option<i32>, String, String) {
        let Self {
            mut process, err, ..
        } = self;
        let log: Vec<String> = err.map_while(Result::ok).collect();
        let mut report = String::new();
        let mut out = process.stdout.take().expect("a pipe");
        out.read_to_string(&mut report).expect("it is UTF-8");
        let code = process.wait().expect("it ends").code();
        (code, report, log.join("\n"))
    }
}

#[test]
fn run_whose_store_fails_in_the_middle_exits_with_1() {
    let folder = TempFolder::new();
    let mut back = RunWithStore::start(&folder, "back", "30s");
    let mut gone = RunWithStore::start(&folder, "gone", "1s");
    // At the same time, because both run only for a while.
    thread::scope(|scope| {
        scope.spawn(|| back.lose_store());
        gone.lose_store();
    });
    back.return_store();
    let (code, report, log) = back.wait();
    assert_eq!(code, Some(1), "{report} {log}");
    assert!(report.contains("store errors"), "{report}");
    assert!(!log.contains("not all players"), "{log}");
    let (code, report, log) = gone.wait();
    assert_eq!(code, Some(1), "{report} {log}");
    assert!(report.contains("store errors"), "{report}");
    assert!(log.contains("not all players could be saved"), "{log}");
}

#[test]
fn server_is_not_ready_while_its_store_is_moved_away() {
    let folder = TempFolder::new();
    let yard = folder.write("yard.ron", TRADERS);
    let [kept, away] = ["kept", "away"].map(|name| folder.path(name));
    fs::create_dir(&kept).unwrap();
    let store = format!("{kept}/players.db");
    let log = folder.path("acknowledged");
    let server = serve(&yard, &["--store", &store, "--acknowledged", &log]);
    let server = TestServerProcess::start(server);
    wait_for_save(&log);
    fs::rename(&kept, &away).unwrap();
    let word = server.wait_for_ready(503);
    assert!(word.starts_with("store unreachable"), "{word}");
    let health = get(server.metrics, "/healthz").0;
    assert_eq!(health, 200, "a restart would not help");
    fs::rename(&away, &kept).unwrap();
    server.wait_for_ready(200);
    send_signal(&server.process, "-TERM");
    let (code, log) = server.wait_for_exit();
    assert_eq!(code, Some(0), "{log}");
    for line in ["moved or deleted", "saves wait", "/readyz answers 503"] {
        assert!(log.contains(line), "{line}: {log}");
    }
}
