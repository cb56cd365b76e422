//! The memory trial: connections that each make the server buffer as much as the protocol allows.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::honest::HOSTILE_PLAYERS;
use super::server_process::{ServerObserver, ServerProcess, TokenIssuer};
use crate::{CliError, is_interrupted};
use throng::net::ClientConnection;
use throng::net::EndpointSettings;
use throng::wire::ClientMessage;
use throng_net::bot_client::BotClient;
use throng_net::hostile::HostileMemoryPeer;

/// Peers that connect per second.
const ARRIVALS_PER_S: f64 = 500.0;

/// Datagrams that one peer sends per round, and that all peers send per second.
const DATAGRAMS_PER_ROUND: usize = 8;
const DATAGRAMS_PER_S: f64 = 40_000.0;

/// Maximum time for the peers to send their junk. Meanwhile they have not entered the scene, which the server allows for 60 s.
const RAMP_S_MAX: f64 = 50.0;

/// How long the memory is observed after all peers entered the scene. The server drops connections that acknowledge nothing after 5 to 10
/// seconds.
const OBSERVED_S: f64 = 15.0;

/// Time between two samples of the server's memory.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// The result of the trial.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MemoryResult {
    pub connections: usize,
    /// Number of peers whose junk the server holds, and of peers that entered the scene.
    pub complete: usize,
    pub inside: usize,
    /// Resident memory of the server, in bytes: without connections, after all junk was sent, and at its peak.
    pub before: u64,
    pub loaded: u64,
    pub peak: u64,
    /// The largest number of simultaneous connections.
    pub clients: u64,
    /// Datagrams that the system dropped.
    pub dropped: u64,
}

/// Samples of the server, taken by another thread.
#[derive(Default)]
struct MemoryWatch {
    is_over: AtomicBool,
    peak: AtomicU64,
    clients: AtomicU64,
}

impl MemoryWatch {
    fn run(&self, observer: ServerObserver) {
        let mut nth = 0_u32;
        while !self.is_over.load(Ordering::Acquire) {
            self.peak
                .fetch_max(observer.resident_bytes(), Ordering::Relaxed);
            // The metrics are only read every tenth time, because a request occupies a tick of the server.
            if nth.is_multiple_of(10)
                && let Ok(counters) = observer.counters()
            {
                self.clients.fetch_max(counters.clients, Ordering::Relaxed);
            }
            nth = nth.wrapping_add(1);
            std::thread::sleep(SAMPLE_INTERVAL);
        }
    }
}

/// All peers, with their sockets.
struct HostileCrowd {
    peers: Vec<(HostileMemoryPeer, UdpSocket)>,
    issuer: TokenIssuer,
    server: SocketAddr,
    ready: Vec<u8>,
    clock: Instant,
    sent: u64,
}

/// Runs the trial against its own server process.
pub(super) fn run(connections: usize) -> Result<MemoryResult, CliError> {
    let server = ServerProcess::start()?;
    let (issuer, observer) = (server.issuer(), server.observer());
    let scene = scene_of(&issuer, server.address)?;
    let before = observer.resident_bytes();
    let mut crowd = HostileCrowd {
        peers: Vec::new(),
        issuer,
        server: server.address,
        ready: ClientMessage::Ready { scene }.to_bytes(),
        clock: Instant::now(),
        sent: 0,
    };
    let watch = MemoryWatch::default();
    let (played, loaded) = std::thread::scope(|scope| {
        scope.spawn(|| watch.run(observer));
        let played = crowd.fill(connections);
        let loaded = observer.resident_bytes();
        let played = played.map(|complete| (complete, crowd.enter()));
        watch.is_over.store(true, Ordering::Release);
        (played, loaded)
    });
    let (complete, inside) = played?;
    Ok(MemoryResult {
        connections,
        complete,
        inside,
        before,
        loaded,
        peak: watch.peak.load(Ordering::Relaxed).max(loaded),
        clients: watch.clients.load(Ordering::Relaxed),
        dropped: observer.dropped(),
    })
}

/// The scene that players enter, found out by logging in as an honest client.
fn scene_of(issuer: &TokenIssuer, server: SocketAddr) -> Result<u32, CliError> {
    let failed = |error: std::io::Error| CliError::new(format!("could not open a socket: {error}"));
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    socket.connect(server).map_err(failed)?;
    socket
        .set_read_timeout(Some(Duration::from_millis(20)))
        .map_err(failed)?;
    let token = issuer.token(HOSTILE_PLAYERS - 1)?;
    let mut connection = ClientConnection::new(token, EndpointSettings::default());
    let mut bot = BotClient::new(HOSTILE_PLAYERS - 1, 1);
    let clock = Instant::now();
    let mut buffer = [0; 2_100];
    while clock.elapsed().as_secs_f64() < RAMP_S_MAX && !is_interrupted() {
        let now_us = clock.elapsed().as_micros() as u64;
        if let Ok(length) = socket.recv(&mut buffer) {
            let _ = connection.receive(now_us, &mut buffer[..length], |packet| bot.receive(packet));
        }
        if matches!(connection.is_open(), Ok(true)) {
            bot.update(|message| _ = connection.send(message));
        }
        if let Some(scene) = bot.mirror().scene() {
            connection.leave(|_, datagram| _ = socket.send(datagram));
            return Ok(scene);
        }
        connection.update(now_us, |_, datagram| _ = socket.send(datagram));
    }
    Err(CliError::new("a client could not enter the town in time"))
}

impl HostileCrowd {
    /// Connects all peers, and waits until they have sent their junk. Returns the number of peers that have.
    fn fill(&mut self, connections: usize) -> Result<usize, CliError> {
        loop {
            let elapsed_s = self.clock.elapsed().as_secs_f64();
            let due = (elapsed_s * ARRIVALS_PER_S) as usize + 1;
            while self.peers.len() < due.min(connections) {
                self.add_peer()?;
            }
            self.poll();
            let complete = self.peers.iter().filter(|(peer, _)| peer.is_complete());
            let complete = complete.count();
            let is_done = self.peers.len() == connections
                && self
                    .peers
                    .iter()
                    .all(|(peer, _)| peer.is_complete() || peer.has_failed());
            if is_done || elapsed_s >= RAMP_S_MAX || is_interrupted() {
                return Ok(complete);
            }
        }
    }

    fn add_peer(&mut self) -> Result<(), CliError> {
        let nth = self.peers.len();
        // Each peer has its own address.
        let address = Ipv4Addr::new(127, 1, (nth / 250) as u8, 1 + (nth % 250) as u8);
        let opened = UdpSocket::bind((address, 0)).and_then(|socket| {
            socket.connect(self.server)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        let socket = opened.map_err(|error| {
            CliError::new(format!(
                "could not open socket {nth}: {error}; `ulimit -n` has to be above the number of connections"
            ))
        })?;
        let token = self.issuer.token(HOSTILE_PLAYERS + nth as u64)?;
        let login = ClientMessage::login_by_token().to_bytes();
        let peer = HostileMemoryPeer::new(token, &login, &self.ready);
        self.peers.push((peer, socket));
        Ok(())
    }

    /// Receives and sends once for each peer.
    fn poll(&mut self) {
        let mut buffer = [0; 2_100];
        for (peer, socket) in &mut self.peers {
            while let Ok(length) = socket.recv(&mut buffer) {
                let now_us = self.clock.elapsed().as_micros() as u64;
                peer.receive(now_us, &mut buffer[..length]);
            }
            let now_us = self.clock.elapsed().as_micros() as u64;
            for _ in 0..DATAGRAMS_PER_ROUND {
                let Some(datagram) = peer.next_datagram(now_us) else {
                    break;
                };
                // A datagram that the system refuses counts as lost.
                let _ = socket.send(datagram);
                self.sent += 1;
            }
        }
        let due_s = self.sent as f64 / DATAGRAMS_PER_S;
        let early_s = due_s - self.clock.elapsed().as_secs_f64();
        // At least a short pause, so that the server gets CPU time.
        std::thread::sleep(Duration::from_secs_f64(early_s.clamp(0.002, 0.1)));
    }

    /// Lets all peers enter the scene and send nothing more. Returns the number of peers that entered.
    fn enter(&mut self) -> usize {
        for (peer, _) in &mut self.peers {
            peer.release();
        }
        let released = self.clock.elapsed().as_secs_f64();
        while self.clock.elapsed().as_secs_f64() < released + OBSERVED_S && !is_interrupted() {
            self.poll();
        }
        self.peers
            .iter()
            .filter(|(peer, _)| peer.is_inside())
            .count()
    }
}
