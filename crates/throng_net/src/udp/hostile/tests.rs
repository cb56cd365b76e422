//! A server under hostile clients, over real sockets: what it counts, and what it holds.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use throng_core::clock::{Pacer, unix_ms};
use throng_protocol::wire::{ClientId, ClientMessage};

use super::{HostileKind, HostileMemoryPeer, HostilePackets, request_of};
use crate::client::ClientConnection;
use crate::endpoint::EndpointSettings;
use crate::handshake::{ServerHandshake, ServerHandshakeSettings};
use crate::inbox::{ConnectionInfo, DisconnectReason};
use crate::{
    ConnectToken, ConnectionHandler, PROTOCOL_ID, SecretKey, ServerSocket, TokenClaims, UdpServer,
    UdpSettings, UdpStats,
};

/// Datagrams that are sent before the server has to have read them, so that none is dropped for lack of buffers.
const BATCH: usize = 32;

/// Waits of 1 ms before a test fails.
const WAITS_MAX: usize = 60_000;

/// A game that admits all clients and ignores their messages.
#[derive(Default)]
struct AdmitAll(AtomicU32);

impl ConnectionHandler for AdmitAll {
    fn connect(&self, _: ConnectionInfo) -> Option<ClientId> {
        Some(ClientId(self.0.fetch_add(1, Ordering::Relaxed) + 1))
    }

    fn receive(&self, _: ClientId, _: &[u8]) {}

    fn disconnect(&self, _: ClientId, _: DisconnectReason) {}
}

struct TestSocketServer(UdpServer);

impl TestSocketServer {
    fn start() -> Self {
        Self::with_game(Arc::new(AdmitAll::default()), UdpSettings::default())
    }

    fn with_game(game: Arc<dyn ConnectionHandler>, settings: UdpSettings) -> Self {
        let socket = ServerSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let handshake = ServerHandshakeSettings {
            half_open_us_max: 300_000_000,
            ..ServerHandshakeSettings::new(PROTOCOL_ID, vec![socket.address()])
        };
        let handshake = ServerHandshake::new(handshake, SecretKey::INSECURE).unwrap();
        Self(UdpServer::start(socket, settings, handshake, &game).unwrap())
    }

    /// A token of a client that may be silent for any time.
    fn token(&self, client: u64) -> ConnectToken {
        let claims = TokenClaims {
            timeout_s: -1,
            ..TokenClaims::new(client, vec![self.0.address()], unix_ms() / 1_000)
        };
        ConnectToken::issue(&claims, SecretKey::INSECURE).unwrap()
    }

    fn client_socket(&self) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(self.0.address()).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    }

    /// Waits until the counters are as they should be.
    fn wait_for(&self, is_done: impl Fn(&UdpStats) -> bool) -> UdpStats {
        let mut pacer = Pacer::new(std::time::Duration::from_millis(1));
        for _ in 0..WAITS_MAX {
            let stats = self.0.stats();
            if is_done(&stats) {
                return stats;
            }
            pacer.wait();
        }
        panic!("{:?}", self.0.stats());
    }

    /// Sends this many datagrams, and returns the counters when all of them are accounted for.
    fn attack(
        &self,
        socket: &UdpSocket,
        packets: &mut HostilePackets,
        kind: HostileKind,
        count: usize,
    ) -> UdpStats {
        let mut stats = self.0.stats();
        for batch in 0..count.div_ceil(BATCH) {
            let sent = BATCH.min(count - batch * BATCH) as u64;
            for _ in 0..sent {
                socket.send(packets.next(kind)).unwrap();
            }
            let due = stats.datagrams_in + sent;
            stats = self
                .wait_for(|stats| stats.datagrams_in == due && stats.datagrams_accounted() == due);
        }
        stats
    }
}

/// A connected client: its connection, its socket, and some datagrams that it sent.
fn connected(
    server: &TestSocketServer,
    client: u64,
) -> (ClientConnection, UdpSocket, Vec<Vec<u8>>) {
    let socket = server.client_socket();
    let mut connection = ClientConnection::new(server.token(client), EndpointSettings::default());
    let (mut sent, mut buffer) = (Vec::new(), [0; 2_100]);
    let mut pacer = Pacer::new(std::time::Duration::from_millis(1));
    for ms in 0..WAITS_MAX as u64 {
        while let Ok(length) = socket.recv(&mut buffer) {
            let _ = connection.receive(ms * 1_000, &mut buffer[..length], |_| ());
        }
        let is_open = connection.is_open().unwrap();
        connection.update(ms * 1_000, |_, datagram| {
            socket.send(datagram).unwrap();
            if is_open {
                sent.push(datagram.to_vec());
            }
        });
        if !sent.is_empty() && server.0.stats().clients > 0 {
            return (connection, socket, sent);
        }
        pacer.wait();
    }
    panic!("not connected");
}

fn reasons(stats: &UdpStats) -> [u64; 7] {
    [
        stats.no_request,
        stats.unknown_connection,
        stats.other_version,
        stats.invalid_token,
        stats.requests_throttled,
        stats.handshake_datagrams(),
        stats.invalid_response,
    ]
}

#[test]
fn hostile_datagrams_are_counted_by_reason() {
    // So few that a slow machine exceeds the rate, too.
    let settings = UdpSettings {
        datagrams_per_s: 32,
        ..UdpSettings::default()
    };
    let server = TestSocketServer::with_game(Arc::new(AdmitAll::default()), settings);
    // The server allows the first datagrams of a client once it has run for as long as they take at that rate.
    let mut pacer = Pacer::new(std::time::Duration::from_millis(1));
    for _ in 0..200 {
        pacer.wait();
    }
    let (connection, victim, sent) = connected(&server, 1);
    let mut numbered = Vec::new();
    connection.number_datagram(&sent[0], &mut numbered);
    let requests = vec![request_of(server.token(2))];
    let expires_s = unix_ms() / 1_000 + 3_600;
    let mut packets = HostilePackets::new(7, requests, vec![sent[0].clone(), numbered], expires_s);
    let host = server.client_socket();
    let settled = |stats: &UdpStats| stats.client_datagrams >= sent.len() as u64;
    let mut before = server.wait_for(settled);
    // The reasons of a kind, the typical one first.
    for (kind, count, of) in [
        (HostileKind::RandomBytes, 320, &[0, 1, 2][..]),
        (HostileKind::ForgedRequests, 160, &[3, 4]),
        (HostileKind::OtherVersions, 64, &[2]),
        (HostileKind::ReplayedRequests, 64, &[5, 4]),
        (HostileKind::WrongAnswers, 512, &[6, 5, 4, 0]),
    ] {
        let after = server.attack(&host, &mut packets, kind, count);
        let (was, is) = (reasons(&before), reasons(&after));
        let found: u64 = of.iter().map(|&at| is[at] - was[at]).sum();
        // The victim sends nothing in this time.
        assert_eq!(found, count as u64, "{}: {after:?}", kind.name());
        assert!(is[of[0]] > was[of[0]], "{}: {after:?}", kind.name());
        before = after;
    }
    // From the address of the victim: what is not throttled is a replay.
    let after = server.attack(&victim, &mut packets, HostileKind::ReplayedData, 640);
    let [refused, throttled] = [
        after.refused - before.refused,
        after.throttled - before.throttled,
    ];
    assert_eq!(refused + throttled, 640);
    assert!(refused > 0 && throttled > 0, "{after:?}");
    assert_eq!((after.clients, after.lost), (1, 0));
}

/// A game with a bug.
struct PanicsAtConnect;

impl ConnectionHandler for PanicsAtConnect {
    fn connect(&self, _: ConnectionInfo) -> Option<ClientId> {
        panic!("a bug of the game")
    }

    fn receive(&self, _: ClientId, _: &[u8]) {}

    fn disconnect(&self, _: ClientId, _: DisconnectReason) {}
}

#[test]
fn server_knows_that_its_thread_has_panicked() {
    let server = TestSocketServer::with_game(Arc::new(PanicsAtConnect), UdpSettings::default());
    let socket = server.client_socket();
    let mut connection = ClientConnection::new(server.token(1), EndpointSettings::default());
    assert!(server.0.is_running());
    let mut pacer = Pacer::new(std::time::Duration::from_millis(1));
    let mut buffer = [0; 2_100];
    for ms in 0..WAITS_MAX as u64 {
        while let Ok(length) = socket.recv(&mut buffer) {
            let _ = connection.receive(ms * 1_000, &mut buffer[..length], |_| ());
        }
        connection.update(ms * 1_000, |_, datagram| {
            let _ = socket.send(datagram);
        });
        if !server.0.is_running() {
            return;
        }
        pacer.wait();
    }
    panic!("expected the receiver to have ended");
}

#[test]
fn hostile_memory_peer_stays_within_the_protocol() {
    let server = TestSocketServer::start();
    let socket = server.client_socket();
    let login = ClientMessage::login_by_token().to_bytes();
    let ready = ClientMessage::Ready { scene: 1 }.to_bytes();
    let mut peer = HostileMemoryPeer::new(server.token(1), &login, &ready);
    let (mut sent, mut buffer) = (0, [0; 2_100]);
    let mut pacer = Pacer::new(std::time::Duration::from_millis(1));
    for ms in 0..WAITS_MAX as u64 {
        while let Ok(length) = socket.recv(&mut buffer) {
            peer.receive(ms * 1_000, &mut buffer[..length]);
        }
        // Slower than the rate of a client, whose allowance is small while the server is young.
        if ms.is_multiple_of(4)
            && let Some(datagram) = peer.next_datagram(ms * 1_000)
        {
            socket.send(datagram).unwrap();
            sent += 1;
        }
        if peer.is_complete() && !peer.is_inside() {
            peer.release();
        }
        if peer.is_inside() {
            break;
        }
        pacer.wait();
    }
    assert!(peer.is_inside() && !peer.has_failed());
    let stats = server.wait_for(|stats| stats.datagrams_accounted() == sent);
    assert_eq!((stats.refused, stats.throttled), (0, 0), "{stats:?}");
    assert!(stats.client_datagrams > 80);
}
