//! A server that restarts, and clients that come back.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use throng_protocol::wire::ClientId;

use crate::client::{ClientConnection, ConnectionError};
use crate::conditioner::{ConditionedPath, LossModel, NetworkConditioner};
use crate::connection::ServerConnection;
use crate::endpoint::EndpointSettings;
use crate::handshake::{ServerHandshake, ServerHandshakeSettings};
use crate::path::read_numbered;
use crate::server_endpoint::ConnectionLimits;
use crate::{ConnectToken, SecretKey, TokenClaims};

const KEY: SecretKey = SecretKey([9; 32]);
const TICK_US: u64 = 50_000;
const UNIX_S: u64 = 1_000;

fn server_address() -> SocketAddr {
    ([10, 0, 0, 1], 7_000).into()
}

fn client_address() -> SocketAddr {
    ([10, 0, 0, 2], 50_000).into()
}

fn token() -> ConnectToken {
    let claims = TokenClaims::new(7, vec![server_address()], UNIX_S);
    ConnectToken::issue(&claims, KEY).unwrap()
}

/// A server without sockets and threads.
struct SimulatedServer {
    handshake: ServerHandshake,
    connections: BTreeMap<SocketAddr, ServerConnection>,
    next: u32,
}

impl SimulatedServer {
    fn start() -> Self {
        let settings = ServerHandshakeSettings::new(crate::PROTOCOL_ID, vec![server_address()]);
        Self {
            handshake: ServerHandshake::new(settings, KEY).unwrap(),
            connections: BTreeMap::new(),
            next: 0,
        }
    }

    fn receive(&mut self, now_us: u64, datagram: &mut [u8]) -> Option<Vec<u8>> {
        let from = client_address();
        let is_handshake = [0, 3].contains(&(datagram[0] & 0xf));
        if !is_handshake && let Some(connection) = self.connections.get_mut(&from) {
            let sealed = match read_numbered(datagram) {
                Some(numbered) => numbered.sealed.to_vec(),
                None => datagram.to_vec(),
            };
            connection.receive(now_us, (from, &mut sealed.clone()), |_| ());
            return None;
        }
        let mut answer = Vec::new();
        let times = (now_us, UNIX_S);
        let received = self
            .handshake
            .receive(times, from, datagram, false, &mut answer);
        if let Ok(Some(mut admitted)) = received {
            self.next += 1;
            let client = ClientId(self.next);
            admitted.reset = self.handshake.reset_grant(client);
            let limits = ConnectionLimits {
                endpoint: EndpointSettings::default(),
                linger_us: 1_000_000,
                unacknowledged_us_max: 10_000_000,
            };
            let connection = ServerConnection::new(client, admitted, limits, now_us);
            self.connections.insert(from, connection);
            return None;
        }
        (!answer.is_empty()).then_some(answer)
    }

    fn flush(&mut self, now_us: u64, mut send: impl FnMut(&[u8])) {
        let (mut packet, mut sealed) = (Vec::new(), Vec::new());
        for connection in self.connections.values_mut() {
            connection.flush(now_us, (&mut packet, &mut sealed), &mut send);
        }
    }
}

/// A client, a server, and the network between them.
struct Simulation {
    client: ClientConnection,
    server: SimulatedServer,
    up: ConditionedPath,
    down: ConditionedPath,
    now_us: u64,
    /// Bytes of packets that answer other packets, and of those.
    answered: [usize; 2],
}

impl Simulation {
    fn new(loss: f64, seed: u64) -> Self {
        let model = NetworkConditioner::with_loss(LossModel::Independent(loss));
        Self {
            client: ClientConnection::new(token(), EndpointSettings::default()),
            server: SimulatedServer::start(),
            up: ConditionedPath::new(model, seed),
            down: ConditionedPath::new(model, seed + 1_000),
            now_us: 0,
            answered: [0; 2],
        }
    }

    fn tick(&mut self) -> Result<bool, ConnectionError> {
        self.now_us += TICK_US;
        let Self {
            client,
            server,
            up,
            down,
            now_us,
            answered,
        } = self;
        if client.is_open() == Ok(true) {
            client.send_unreliable(b"input").unwrap();
        }
        client.update(*now_us, |_, datagram| up.send(*now_us, datagram));
        while up.receive(*now_us, |at_us, datagram| {
            if let Some(answer) = server.receive(at_us, &mut datagram.to_vec()) {
                answered[0] += answer.len();
                answered[1] += datagram.len();
                down.send(at_us, &answer);
            }
        }) {}
        server.flush(*now_us, |datagram| down.send(*now_us, datagram));
        while down.receive(*now_us, |at_us, datagram| {
            let _ = client.receive(at_us, &mut datagram.to_vec(), |_| ());
        }) {}
        client.is_open()
    }

    /// Runs until the client is connected.
    fn connect(&mut self) {
        let connected = (0..200).any(|_| self.tick() == Ok(true));
        assert!(connected, "{:?}", self.client.is_open());
        // The server has received a packet of the client.
        for _ in 0..40 {
            assert_eq!(self.tick(), Ok(true));
        }
    }

    /// Ticks until the connection ends, and why.
    fn run_to_the_end(&mut self) -> (u64, ConnectionError) {
        let ends = (1..400).find_map(|tick| Some((tick, self.tick().err()?)));
        ends.expect("an end within the timeout")
    }
}

#[test]
fn client_of_a_restarted_server_learns_it_and_reconnects() {
    let mut ticks_of_all = Vec::new();
    for seed in 0..50 {
        let loss = if seed % 2 == 0 { 0.0 } else { 0.1 };
        let mut simulation = Simulation::new(loss, seed);
        simulation.connect();
        simulation.server = SimulatedServer::start();
        simulation.answered = [0; 2];
        let (ticks, end) = simulation.run_to_the_end();
        assert_eq!(end, ConnectionError::Restarted);
        assert!(end.to_string().starts_with("the server restarted"));
        let [answers, asked] = simulation.answered;
        assert!(answers < asked, "{answers} bytes for {asked}");
        ticks_of_all.push(ticks);
        simulation.client = ClientConnection::new(token(), EndpointSettings::default());
        simulation.connect();
        assert_eq!(simulation.client.is_open(), Ok(true));
    }
    ticks_of_all.sort_unstable();
    // 0.6 s of silence, two ways, and a tick; more if packets are lost. The timeout is 10 s.
    assert!(ticks_of_all[25] <= 20, "{ticks_of_all:?}");
    assert!(ticks_of_all[49] <= 40, "{ticks_of_all:?}");
}

#[test]
fn client_that_the_server_gave_up_is_lost_at_once() {
    let mut simulation = Simulation::new(0.0, 1);
    simulation.connect();
    simulation.server.connections.clear();
    let (ticks, end) = simulation.run_to_the_end();
    assert_eq!(end, ConnectionError::Lost);
    assert!(ticks <= 20, "{ticks}");
}

#[test]
fn silence_is_the_time_since_the_last_packet_of_the_server() {
    let mut simulation = Simulation::new(0.0, 1);
    assert_eq!(simulation.client.silent_us(5_000_000), 0, "not connected");
    simulation.connect();
    let keep_alive_us = EndpointSettings::default().keep_alive_us;
    for _ in 0..100 {
        assert_eq!(simulation.tick(), Ok(true));
        let silent_us = simulation.client.silent_us(simulation.now_us);
        assert!(silent_us <= keep_alive_us + TICK_US, "{silent_us}");
    }
    let before_us = simulation.client.silent_us(simulation.now_us);
    for _ in 0..5 {
        simulation.now_us += TICK_US;
    }
    let silent_us = simulation.client.silent_us(simulation.now_us);
    assert_eq!(silent_us, before_us + 5 * TICK_US);
}

#[test]
fn resets_are_limited_by_address_and_in_total() {
    let mut server = SimulatedServer::start().handshake;
    let numbered = [&[15][..], &[7; 40]].concat();
    let mut resets = |of: u32, from: u32, packet: &[u8]| {
        let mut answer = Vec::new();
        let answers = (0..of).filter(|_| {
            let from = SocketAddr::from((from.to_be_bytes(), 1_000));
            let received =
                server.receive((0, UNIX_S), from, &mut packet.to_vec(), false, &mut answer);
            assert!(received.is_err());
            assert!(answer.len() < packet.len());
            !answer.is_empty()
        });
        answers.count()
    };
    assert_eq!(resets(10, 0x0a00_0001, &numbered[..30]), 0, "too short");
    assert_eq!(resets(1_000, 0x0a00_0001, &numbered), 256);
    let of_all: usize = (0..200)
        .map(|nth| resets(100, 0x0b00_0000 + nth, &numbered))
        .sum();
    assert_eq!(of_all + 256, 4_000);
}
