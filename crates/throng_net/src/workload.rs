//! Two endpoints with simulated paths between them, and the traffic of a town, for tests and benches.

use std::collections::VecDeque;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng_core::memory::MemoryUse;

use super::conditioner::{ConditionedPath, NetworkConditioner};
use super::endpoint::{
    CountersStart, EndpointSettings, PacketError, ReceivedMessage, ReliableEndpoint,
};
use super::packet::{PacketStamp, StreamId};

/// Length of a tick at both ends, in microseconds.
pub const TICK_US: u64 = 33_000;

/// Bytes that IP, UDP and encryption with a short packet number add to a packet.
pub const DATAGRAM_BYTES: u64 = 28 + 20;

/// One end of a connection, and the path from it.
#[derive(Clone, Debug)]
pub struct ConditionedEndpoint {
    /// The endpoint.
    pub endpoint: ReliableEndpoint,
    /// The path to the other end.
    pub path: ConditionedPath,
    /// Packets that were refused, except duplicates and packets that are too old.
    pub refused: u64,
    packet: Vec<u8>,
}

impl ConditionedEndpoint {
    /// Sends the packets that are pending now.
    pub fn flush(&mut self, now_us: u64, tick: u16) {
        let Self {
            endpoint,
            path: link,
            packet,
            ..
        } = self;
        let stamp = PacketStamp {
            tick,
            ..PacketStamp::default()
        };
        endpoint.flush(now_us, stamp, usize::MAX, packet, |packet| {
            link.send(now_us, packet);
        });
    }

    /// Handles the packets that have arrived by now, each at its time of arrival.
    pub fn receive(
        &mut self,
        now_us: u64,
        from: &mut ConditionedPath,
        mut deliver: impl FnMut(u64, ReceivedMessage<'_>),
    ) {
        while from.receive(now_us, |at_us, packet| {
            let taken = self.endpoint.receive(at_us, packet, |delivery| {
                deliver(at_us, delivery);
            });
            let is_fault = taken.is_err_and(|why| !matches!(why, PacketError::Duplicate { .. }));
            self.refused += u64::from(is_fault);
        }) {}
    }
}

/// The endpoints of a server and a client.
#[derive(Clone, Debug)]
pub struct Duplex {
    /// The server's endpoint, with the path to the client.
    pub server: ConditionedEndpoint,
    /// The client's endpoint, with the path to the server.
    pub client: ConditionedEndpoint,
    /// Number of ticks so far.
    pub ticks: u64,
}

impl Duplex {
    /// Both ends of a new connection, with the same conditions in both directions.
    #[must_use]
    pub fn new(
        settings: EndpointSettings,
        start: CountersStart,
        model: NetworkConditioner,
        seed: u64,
    ) -> Self {
        let end = |settings, seed| ConditionedEndpoint {
            endpoint: ReliableEndpoint::starting_at(settings, start),
            path: ConditionedPath::new(model, seed),
            refused: 0,
            packet: Vec::new(),
        };
        Self {
            server: end(settings, seed),
            client: end(settings.for_client(), seed ^ 0x5eed),
            ticks: 0,
        }
    }

    /// Start of the next tick.
    #[must_use]
    pub const fn now_us(&self) -> u64 {
        self.ticks * TICK_US
    }

    /// Runs one tick: the server sends at its start and the client in its middle. Passes what arrives on, with its time of arrival.
    pub fn tick(
        &mut self,
        mut to_client: impl FnMut(u64, ReceivedMessage<'_>),
        mut to_server: impl FnMut(u64, ReceivedMessage<'_>),
    ) {
        let (tick, begin_us) = (self.ticks as u16, self.now_us());
        let Self { server, client, .. } = self;
        server.receive(begin_us, &mut client.path, &mut to_server);
        client.receive(begin_us, &mut server.path, &mut to_client);
        server.flush(begin_us, tick);
        let middle_us = begin_us + TICK_US / 2;
        server.receive(middle_us, &mut client.path, &mut to_server);
        client.receive(middle_us, &mut server.path, &mut to_client);
        client.flush(middle_us, tick);
        self.ticks += 1;
    }
}

/// Delivery of a town's messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TownResult {
    /// Time from the push of each message of the ordered stream to its delivery, in microseconds, ascending.
    pub latencies_us: Vec<u64>,
    /// Messages of the stream that were not delivered, or not in order.
    pub missing: usize,
    /// Bytes per tick to the client, with IP, UDP and encryption.
    pub down_bytes: f64,
    /// Bytes per tick to the server, likewise.
    pub up_bytes: f64,
}

impl TownResult {
    /// The latency of this quantile of the messages, in milliseconds.
    #[must_use]
    pub fn quantile_ms(&self, share: f64) -> f64 {
        let at = (self.latencies_us.len() as f64 * share) as usize;
        let last = self.latencies_us.len().saturating_sub(1);
        let us = self.latencies_us.get(at.min(last)).copied();
        us.map_or(f64::INFINITY, |us| us as f64 / 1e3)
    }

    /// Share of all messages delivered within this many milliseconds.
    #[must_use]
    pub fn share_within(&self, ms: f64) -> f64 {
        let within = self
            .latencies_us
            .partition_point(|us| *us as f64 <= ms * 1e3);
        within as f64 / (self.latencies_us.len() + self.missing).max(1) as f64
    }
}

/// How long a simulation continues after its last message, in ticks, so that packets in flight arrive.
const DRAIN_TICKS: u64 = 150;

/// Simulates a town for a number of ticks. The server sends 150 bytes of unreliable messages per tick and, in about every second tick, a
/// message of 32 bytes on an ordered stream. The client sends 12 bytes per tick.
#[must_use]
pub fn simulate_town(
    settings: EndpointSettings,
    model: NetworkConditioner,
    ticks: u64,
    seed: u64,
) -> TownResult {
    let mut duplex = Duplex::new(settings, CountersStart::default(), model, seed);
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut pushed_us: Vec<u64> = Vec::new();
    let mut latencies_us = Vec::new();
    let mut is_in_order = true;
    let mut spoken = (0, 0);
    for tick in 0..ticks + DRAIN_TICKS {
        if tick == ticks {
            spoken = (sent_bytes(&duplex.server), sent_bytes(&duplex.client));
        }
        if tick < ticks {
            let server = &mut duplex.server.endpoint;
            if random.random_bool(0.5) {
                let mut message = [7; 32];
                message[..8].copy_from_slice(&(pushed_us.len() as u64).to_le_bytes());
                // A refused message is counted as missing below.
                let _ = server.push(StreamId::World, &message);
                pushed_us.push(tick * TICK_US);
            }
            let _ = server.push_unreliable(&[9; 150]);
            let _ = duplex.client.endpoint.push_unreliable(&[5; 12]);
        }
        let to_client = |at_us: u64, delivery: ReceivedMessage<'_>| {
            if delivery.stream.is_some() {
                let nth = delivery
                    .bytes
                    .first_chunk()
                    .map(|nth| u64::from_le_bytes(*nth));
                is_in_order &= nth == Some(latencies_us.len() as u64);
                let pushed = pushed_us.get(latencies_us.len());
                latencies_us.extend(pushed.map(|pushed| at_us - pushed));
            }
        };
        duplex.tick(to_client, |_, _| ());
    }
    let missing = if is_in_order {
        pushed_us.len() - latencies_us.len()
    } else {
        pushed_us.len()
    };
    latencies_us.sort_unstable();
    TownResult {
        latencies_us,
        missing,
        down_bytes: spoken.0 as f64 / ticks as f64,
        up_bytes: spoken.1 as f64 / ticks as f64,
    }
}

fn sent_bytes(end: &ConditionedEndpoint) -> u64 {
    end.path.bytes + end.path.packets * DATAGRAM_BYTES
}

/// Number of unreliable messages and of stream messages, 12 bytes each, that a client of a [`ConnectedCrowd`] receives per tick.
pub const CROWD_MESSAGES: (usize, usize) = (20, 2);

/// Round trip time of a [`ConnectedCrowd`], in ticks.
const CROWD_ROUND_TRIP_TICKS: usize = 3;

/// Many connections of one server, without simulated paths, to measure the cost of a tick. Each step can be timed separately.
#[derive(Debug)]
pub struct ConnectedCrowd {
    servers: Vec<ReliableEndpoint>,
    clients: Vec<ReliableEndpoint>,
    /// Packet to each client in this tick; empty if lost.
    down: Vec<Vec<u8>>,
    /// Packets of the clients in the last ticks, oldest first.
    up: VecDeque<Vec<Vec<u8>>>,
    /// One in this many packets is lost, in both directions.
    lost_one_in: Option<usize>,
    tick: usize,
    scratch: Vec<u8>,
    /// Messages delivered to clients.
    pub delivered: u64,
    /// Packets to clients.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl ConnectedCrowd {
    /// A crowd of this many new connections.
    #[must_use]
    pub fn new(count: usize, lost_one_in: Option<usize>) -> Self {
        let settings = EndpointSettings::default();
        let ends = |settings| {
            (0..count)
                .map(|_| ReliableEndpoint::new(settings))
                .collect()
        };
        Self {
            servers: ends(settings),
            clients: ends(settings.for_client()),
            down: vec![Vec::new(); count],
            up: VecDeque::new(),
            lost_one_in,
            tick: 0,
            scratch: Vec::new(),
            delivered: 0,
            packets: 0,
            bytes: 0,
        }
    }

    fn is_lost(&self, client: usize, salt: usize) -> bool {
        let nth = client * 31 + self.tick * 7 + salt;
        self.lost_one_in
            .is_some_and(|one_in| nth.is_multiple_of(one_in))
    }

    /// The server pushes the messages of a tick to each client and builds its packets.
    pub fn send(&mut self) {
        let (unreliable, reliable) = CROWD_MESSAGES;
        let now_us = self.tick as u64 * TICK_US;
        let stamp = PacketStamp {
            tick: self.tick as u16,
            ..PacketStamp::default()
        };
        for (server, down) in self.servers.iter_mut().zip(&mut self.down) {
            // A refused message is missing in `delivered`.
            for _ in 0..reliable {
                let _ = server.push(StreamId::World, &[7; 12]);
            }
            for _ in 0..unreliable {
                let _ = server.push_unreliable(&[9; 12]);
            }
            down.clear();
            server.flush(now_us, stamp, usize::MAX, &mut self.scratch, |packet| {
                self.packets += 1;
                self.bytes += packet.len() as u64;
                // A second packet in the same tick is a probe, and is lost.
                if down.is_empty() {
                    down.extend_from_slice(packet);
                }
            });
        }
    }

    /// The clients handle their packets and reply.
    pub fn run_clients(&mut self) {
        let now_us = self.tick as u64 * TICK_US + TICK_US / 2;
        let is_full = self.up.len() > CROWD_ROUND_TRIP_TICKS;
        let spare = if is_full { self.up.pop_front() } else { None };
        let mut ups = spare.unwrap_or_else(|| vec![Vec::new(); self.clients.len()]);
        for (nth, up) in ups.iter_mut().enumerate() {
            let is_lost = [self.is_lost(nth, 0), self.is_lost(nth, 3)];
            let client = &mut self.clients[nth];
            if !is_lost[0] {
                let came = &mut self.delivered;
                let _ = client.receive(now_us, &self.down[nth], |_| *came += 1);
            }
            let _ = client.push_unreliable(&[5; 12]);
            up.clear();
            let stamp = PacketStamp::default();
            client.flush(now_us, stamp, usize::MAX, &mut self.scratch, |packet| {
                if !is_lost[1] && up.is_empty() {
                    up.extend_from_slice(packet);
                }
            });
        }
        self.up.push_back(ups);
        self.tick += 1;
    }

    /// The server handles the replies of some ticks ago. Returns the number of messages received.
    pub fn receive(&mut self) -> u64 {
        let now_us = self.tick as u64 * TICK_US;
        if self.up.len() <= CROWD_ROUND_TRIP_TICKS {
            return 0;
        }
        let mut came = 0;
        for (server, up) in self.servers.iter_mut().zip(&self.up[0]) {
            // An empty packet is invalid and is refused.
            let _ = server.receive(now_us, up, |_| came += 1);
        }
        came
    }

    /// Memory of the server per client, in bytes.
    #[must_use]
    pub fn client_bytes(&self) -> usize {
        let heap: usize = self.servers.iter().map(MemoryUse::heap_bytes).sum();
        size_of::<ReliableEndpoint>() + heap / self.servers.len().max(1)
    }
}
