//! Agones: reports to the SDK server of the pod that this server is ready, healthy, allocated, or shutting down.
//!
//! ```text
//! serve loop ─ ticks, ready, first player (atomics) ─▶ thread ─ /ready, /health, /allocate ─▶ SDK server
//! end: players are saved ───────────────────────────▶ thread ─ /shutdown ─────────────────▶ SDK server
//! ```
//! | file | holds |
//! |---|---|
//! | `client` | HTTP requests |
//!
//! Invariants: the tick never waits for these requests. /health is only sent if a tick completed since the last one. A failed request is
//! repeated in the next pass, every [`PASS_INTERVAL`]; /shutdown is tried [`SHUTDOWN_TRIES_MAX`] times. A change from success to failure or
//! back is logged once, and all requests are counted.

mod client;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bevy_ecs::prelude::*;
use throng::sim::clock::Stopwatch;
use throng_inspect::{AppMetrics, MetricFamily, MetricType, ServerHealth};

use crate::CliError;
use crate::address::address;
use crate::http_client::http_request;
use client::public_addresses;

/// Time between two passes, and so between health reports. Agones expects one every five seconds by default.
const PASS_INTERVAL: Duration = Duration::from_secs(2);

/// Maximum number of /shutdown requests; after that, Agones detects the end of the process.
const SHUTDOWN_TRIES_MAX: u32 = 3;

/// Maximum time to wait at the start until Agones has assigned an address to the game server.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(60);

/// The environment variable with the port of the SDK server, and its default.
const SDK_PORT: &str = "AGONES_SDK_HTTP_PORT";
const SDK_PORT_DEFAULT: &str = "9358";

/// Options for Agones.
#[derive(Debug, clap::Args)]
pub(super) struct AgonesArguments {
    /// Report to Agones: ready, health, allocated at the first login, shutdown after the drain
    ///
    /// URL is that of the SDK server's HTTP port [default: http://127.0.0.1:${AGONES_SDK_HTTP_PORT:-9358}]. /ready is sent when
    /// /readyz would answer 200; /health every 2 s if a tick completed since; /allocate when the first player from the network logs in, so
    /// that a scaled-down fleet does not stop this server; /shutdown when all players are saved. Without --public, tokens contain the
    /// address and the ports that Agones has assigned to the game server.
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true, value_parser = sdk_address)]
    agones: Option<Option<SocketAddr>>,
}

/// Parses `http://HOST:PORT`.
fn sdk_address(url: &str) -> Result<SocketAddr, String> {
    let host = url.strip_prefix("http://").unwrap_or(url);
    address(host.strip_suffix('/').unwrap_or(host))
}

impl AgonesArguments {
    /// The SDK server; `None` without `--agones`.
    pub fn sdk_server(&self) -> Result<Option<AgonesSdk>, CliError> {
        let address = match self.agones {
            None => return Ok(None),
            Some(Some(address)) => address,
            Some(None) => {
                let port = std::env::var(SDK_PORT).unwrap_or_else(|_| SDK_PORT_DEFAULT.to_owned());
                let port = port.parse().map_err(|_| {
                    CliError::new(format!("{SDK_PORT}: expected a port, found `{port}`"))
                })?;
                SocketAddr::from(([127, 0, 0, 1], port))
            }
        };
        Ok(Some(AgonesSdk(address)))
    }
}

/// The SDK server, before reports start.
#[derive(Clone, Copy, Debug)]
pub(super) struct AgonesSdk(SocketAddr);

impl AgonesSdk {
    /// The addresses for clients, as soon as Agones has assigned them. Waits, because the SDK server may start later than this process.
    ///
    /// # Errors
    /// If there is no address within [`ADDRESS_TIMEOUT`].
    pub fn public_addresses(self) -> Result<Vec<SocketAddr>, CliError> {
        let clock = Stopwatch::start();
        loop {
            let reply = http_request(self.0, "GET", "/gameserver");
            let reply = reply.map_err(|error| error.to_string());
            let found = reply.and_then(|reply| public_addresses(&reply));
            let cause = match found {
                Ok(found) if !found.is_empty() => return Ok(found),
                Ok(_) => "the game server has no address yet".to_owned(),
                Err(error) => error,
            };
            if clock.elapsed() >= ADDRESS_TIMEOUT {
                return Err(CliError::new(format!(
                    "--agones: no public address from http://{}/gameserver: {cause}; set --public",
                    self.0
                )));
            }
            thread::sleep(Duration::from_millis(500));
        }
    }

    /// Starts the thread that sends reports.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start(self) -> std::io::Result<AgonesReports> {
        let state = Arc::new(AgonesState::default());
        let reporter = AgonesReporter::new(self.0, state.clone());
        // A capacity of one is enough: each pass sends everything that is due.
        let (wake, woken) = sync_channel(1);
        let thread = thread::Builder::new().name("agones".to_owned());
        let thread = thread.spawn(move || reporter.run(&woken))?;
        Ok(AgonesReports {
            state,
            wake,
            thread,
            counted: 0,
        })
    }
}

/// State shared by the serve loop, which writes the first fields, and the thread, which counts requests.
#[derive(Debug, Default)]
struct AgonesState {
    ticks: AtomicU64,
    is_ready: AtomicBool,
    has_player: AtomicBool,
    requests_done: AtomicU64,
    requests_failed: AtomicU64,
}

/// The handle of the serve loop.
#[derive(Debug)]
pub(super) struct AgonesReports {
    state: Arc<AgonesState>,
    wake: SyncSender<()>,
    thread: JoinHandle<()>,
    /// The number of requests shown in the metrics.
    counted: u64,
}

impl AgonesReports {
    /// Reports a completed tick. Does not wait.
    pub fn tick(&mut self, world: &mut World, has_player: bool) {
        let state = &self.state;
        state.ticks.fetch_add(1, Ordering::Relaxed);
        let health = world.resource::<ServerHealth>();
        let is_ready = health.not_ready_reason().is_none() && !health.is_stopping();
        let is_new = |flag: &AtomicBool, now: bool| now && !flag.swap(true, Ordering::Relaxed);
        // No short-circuit: both flags must be updated.
        if is_new(&state.is_ready, is_ready) | is_new(&state.has_player, has_player) {
            // If the channel is full, a pass follows anyway.
            let _ = self.wake.try_send(());
        }
        let results = [&state.requests_done, &state.requests_failed];
        let [done, failed] = results.map(|count| count.load(Ordering::Relaxed));
        if done + failed != self.counted {
            self.counted = done + failed;
            let family = MetricFamily::new(
                "throng_agones_requests_total",
                MetricType::Counter,
                "Requests to the SDK server of Agones by result.",
            );
            let by_result = [("done", done as f64), ("failed", failed as f64)];
            let family = family.by_label("result", by_result);
            world.resource_mut::<AppMetrics>().set(family);
        }
    }

    /// Requests the shutdown, and waits until the requests are done.
    pub fn finish(self) {
        drop(self.wake);
        let _ = self.thread.join();
    }
}

/// The thread that sends reports.
#[derive(Debug)]
struct AgonesReporter {
    sdk: SocketAddr,
    state: Arc<AgonesState>,
    is_ready: bool,
    is_allocated: bool,
    /// The number of ticks at the last health report.
    ticks: u64,
    /// Whether the last request failed, and how often this changed.
    is_failing: bool,
    changes: u64,
}

impl AgonesReporter {
    fn new(sdk: SocketAddr, state: Arc<AgonesState>) -> Self {
        Self {
            sdk,
            state,
            is_ready: false,
            is_allocated: false,
            ticks: 0,
            is_failing: false,
            changes: 0,
        }
    }

    fn run(mut self, woken: &Receiver<()>) {
        while woken.recv_timeout(PASS_INTERVAL) != Err(RecvTimeoutError::Disconnected) {
            self.pass();
        }
        self.shut_down();
    }

    /// Sends what is due; after a failure the remaining requests wait for the next pass.
    fn pass(&mut self) {
        if !self.is_ready && self.state.is_ready.load(Ordering::Relaxed) {
            self.is_ready = self.post("/ready");
            if !self.is_ready {
                return;
            }
        }
        let ticks = self.state.ticks.load(Ordering::Relaxed);
        if ticks != self.ticks {
            if !self.post("/health") {
                return;
            }
            self.ticks = ticks;
        }
        let is_wanted = self.state.has_player.load(Ordering::Relaxed);
        // Agones refuses /allocate before the game server is ready.
        if self.is_ready && is_wanted && !self.is_allocated {
            self.is_allocated = self.post("/allocate");
        }
    }

    fn shut_down(&mut self) {
        let _ = (0..SHUTDOWN_TRIES_MAX).any(|_| self.post("/shutdown"));
    }

    /// Sends a request. Returns whether it succeeded.
    fn post(&mut self, path: &'static str) -> bool {
        let result = http_request(self.sdk, "POST", path);
        let is_failing = result.is_err();
        let count = if is_failing {
            &self.state.requests_failed
        } else {
            &self.state.requests_done
        };
        count.fetch_add(1, Ordering::Relaxed);
        if is_failing != self.is_failing {
            self.is_failing = is_failing;
            self.changes += 1;
            let sdk = self.sdk;
            match result {
                Err(error) => {
                    tracing::warn!(%sdk, path, %error, "Agones request failed, will be retried");
                }
                Ok(_) => tracing::warn!(%sdk, path, "Agones requests succeed again"),
            }
        }
        !is_failing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::mpsc::{Sender, channel};

    /// A fake SDK server. Each status answers one request; the paths of all requests are sent to the receiver.
    fn stand_in() -> (AgonesReporter, Sender<u16>, Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sdk = listener.local_addr().unwrap();
        let (statuses, next_status) = channel::<u16>();
        let (paths, received) = channel();
        thread::spawn(move || {
            for status in next_status {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = Vec::new();
                let mut piece = [0; 256];
                while !request.ends_with(b"\r\n\r\n{}") {
                    let length = stream.read(&mut piece).unwrap();
                    request.extend_from_slice(&piece[..length]);
                }
                let request = String::from_utf8(request).unwrap();
                let line = request.lines().next().unwrap().to_owned();
                write!(stream, "HTTP/1.1 {status} x\r\n\r\n{{}}").unwrap();
                paths.send(line).unwrap();
            }
        });
        let reporter = AgonesReporter::new(sdk, Arc::new(AgonesState::default()));
        (reporter, statuses, received)
    }

    /// Runs one pass with these reply statuses; returns the requests in order.
    fn requests(
        (reporter, statuses, received): &mut (AgonesReporter, Sender<u16>, Receiver<String>),
        replies: &[u16],
        work: fn(&mut AgonesReporter),
    ) -> Vec<String> {
        replies
            .iter()
            .for_each(|&status| statuses.send(status).unwrap());
        work(reporter);
        let lines = received.try_iter();
        lines
            .map(|line| line.replace("POST ", "").replace(" HTTP/1.0", ""))
            .collect()
    }

    #[test]
    fn health_is_reported_only_after_a_tick() {
        let mut all = stand_in();
        let state = all.0.state.clone();
        let pass = AgonesReporter::pass;
        assert!(requests(&mut all, &[], pass).is_empty(), "nothing happened");
        state.ticks.store(1, Ordering::Relaxed);
        state.is_ready.store(true, Ordering::Relaxed);
        assert_eq!(requests(&mut all, &[200; 2], pass), ["/ready", "/health"]);
        assert!(
            requests(&mut all, &[], pass).is_empty(),
            "no tick completed"
        );
        state.ticks.store(5, Ordering::Relaxed);
        assert_eq!(requests(&mut all, &[200], pass), ["/health"]);
        state.has_player.store(true, Ordering::Relaxed);
        assert_eq!(requests(&mut all, &[200], pass), ["/allocate"]);
        assert!(requests(&mut all, &[], pass).is_empty(), "allocated once");
        let end = AgonesReporter::shut_down;
        assert_eq!(requests(&mut all, &[200], end), ["/shutdown"]);
        assert_eq!(state.requests_done.load(Ordering::Relaxed), 5);
        assert_eq!((all.0.changes, all.0.is_failing), (0, false));
    }

    #[test]
    fn failed_requests_are_repeated_and_logged_once() {
        let mut all = stand_in();
        let state = all.0.state.clone();
        let pass = AgonesReporter::pass;
        state.ticks.store(1, Ordering::Relaxed);
        state.is_ready.store(true, Ordering::Relaxed);
        state.has_player.store(true, Ordering::Relaxed);
        for _ in 0..3 {
            assert_eq!(requests(&mut all, &[500], pass), ["/ready"]);
        }
        assert_eq!(all.0.changes, 1, "one message for three failures");
        let found = requests(&mut all, &[200, 404], pass);
        assert_eq!(found, ["/ready", "/health"]);
        let found = requests(&mut all, &[200, 500], pass);
        assert_eq!(found, ["/health", "/allocate"]);
        assert_eq!(requests(&mut all, &[200], pass), ["/allocate"]);
        let end = AgonesReporter::shut_down;
        let found = requests(&mut all, &[500, 500, 500], end);
        assert_eq!(found, ["/shutdown"; 3], "gives up after three tries");
        let results = [&state.requests_done, &state.requests_failed];
        let counted = results.map(|count| count.load(Ordering::Relaxed));
        assert_eq!((counted, all.0.changes), ([3, 8], 7));
    }

    #[test]
    fn sdk_address_is_a_url_or_a_port_of_this_machine() {
        for url in [
            "http://127.0.0.1:9358",
            "http://127.0.0.1:9358/",
            "127.0.0.1:9358",
        ] {
            let address = sdk_address(url).map(|address| address.to_string());
            assert_eq!(address.as_deref(), Ok("127.0.0.1:9358"));
        }
        for wrong in ["http://127.0.0.1", "https://127.0.0.1:9358", "", "9358"] {
            assert!(sdk_address(wrong).is_err(), "{wrong}");
        }
    }
}
