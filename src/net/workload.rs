//! Two endpoints with links between them, and what a town says to a client: for tests and benches.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::endpoint::{CountersStart, Delivery, Endpoint, EndpointSettings};
use super::link::{LinkModel, SimulatedLink};
use super::packet::{PacketStamp, StreamId};

/// The length of a tick of both ends, in microseconds.
pub const TICK_US: u64 = 33_000;

/// What IP, UDP and sealing with a short number add to a packet, in bytes.
pub const DATAGRAM_BYTES: u64 = 28 + 20;

/// One end of a connection, and the link away from it.
#[derive(Clone, Debug)]
pub struct LinkEnd {
    /// The end.
    pub endpoint: Endpoint,
    /// To the other end.
    pub link: SimulatedLink,
    packet: Vec<u8>,
}

impl LinkEnd {
    /// Sends what there is to send now.
    pub fn flush(&mut self, now_us: u64, tick: u16) {
        let Self {
            endpoint,
            link,
            packet,
        } = self;
        let stamp = PacketStamp {
            tick,
            ..PacketStamp::default()
        };
        endpoint.flush(now_us, stamp, usize::MAX, packet, |packet| {
            link.send(now_us, packet);
        });
    }

    /// Takes what arrived of the other end by now, each packet at its time; how many were refused.
    pub fn receive(
        &mut self,
        now_us: u64,
        from: &mut SimulatedLink,
        mut deliver: impl FnMut(u64, Delivery<'_>),
    ) -> usize {
        let mut refused = 0;
        while from.take(now_us, |at_us, packet| {
            let taken = self.endpoint.receive(at_us, packet, |delivery| {
                deliver(at_us, delivery);
            });
            refused += usize::from(taken.is_err());
        }) {}
        refused
    }
}

/// A server's end and a client's.
#[derive(Clone, Debug)]
pub struct Duplex {
    /// The server's end, with the link down.
    pub server: LinkEnd,
    /// The client's end, with the link up.
    pub client: LinkEnd,
    /// How often both ends spoke.
    pub ticks: u64,
}

impl Duplex {
    /// Two ends of a new connection, over a link that is the same both ways.
    #[must_use]
    pub fn new(
        settings: EndpointSettings,
        start: CountersStart,
        model: LinkModel,
        seed: u64,
    ) -> Self {
        let end = |settings, seed| LinkEnd {
            endpoint: Endpoint::starting_at(settings, start),
            link: SimulatedLink::new(model, seed),
            packet: Vec::new(),
        };
        Self {
            server: end(settings, seed),
            client: end(settings.client(), seed ^ 0x5eed),
            ticks: 0,
        }
    }

    /// When the next tick begins.
    #[must_use]
    pub const fn now_us(&self) -> u64 {
        self.ticks * TICK_US
    }

    /// One tick: the server speaks at its beginning and the client in its middle; what arrives is handed over with the time at
    /// which it does.
    pub fn tick(
        &mut self,
        mut to_client: impl FnMut(u64, Delivery<'_>),
        mut to_server: impl FnMut(u64, Delivery<'_>),
    ) {
        let (tick, begin_us) = (self.ticks as u16, self.now_us());
        let Self { server, client, .. } = self;
        server.receive(begin_us, &mut client.link, &mut to_server);
        client.receive(begin_us, &mut server.link, &mut to_client);
        server.flush(begin_us, tick);
        let middle_us = begin_us + TICK_US / 2;
        server.receive(middle_us, &mut client.link, &mut to_server);
        client.receive(middle_us, &mut server.link, &mut to_client);
        client.flush(middle_us, tick);
        self.ticks += 1;
    }
}

/// What came of a town's messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TownFigures {
    /// From the push of each message of the ordered stream to its delivery, in microseconds, ascending.
    pub latencies_us: Vec<u64>,
    /// Messages of the stream that did not come, or not in their order.
    pub missing: usize,
    /// Bytes down a tick, with what IP, UDP and sealing add.
    pub down_bytes: f64,
    /// The same up.
    pub up_bytes: f64,
}

impl TownFigures {
    /// The latency below which this share of the messages lies, in milliseconds.
    #[must_use]
    pub fn quantile_ms(&self, share: f64) -> f64 {
        let at = (self.latencies_us.len() as f64 * share) as usize;
        let last = self.latencies_us.len().saturating_sub(1);
        let us = self.latencies_us.get(at.min(last)).copied();
        us.map_or(f64::INFINITY, |us| us as f64 / 1e3)
    }

    /// The share of all messages that came within so many milliseconds.
    #[must_use]
    pub fn share_within(&self, ms: f64) -> f64 {
        let within = self
            .latencies_us
            .partition_point(|us| *us as f64 <= ms * 1e3);
        within as f64 / (self.latencies_us.len() + self.missing).max(1) as f64
    }
}

/// How long what is under way at the end of a town has to arrive, in ticks.
const SETTLING_TICKS: u64 = 150;

/// A town over so many ticks: in each 150 bytes of unreliable messages, and in about every second a message of 32 bytes on an
/// ordered stream; the client says 12 bytes a tick.
#[must_use]
pub fn town(settings: EndpointSettings, model: LinkModel, ticks: u64, seed: u64) -> TownFigures {
    let mut duplex = Duplex::new(settings, CountersStart::default(), model, seed);
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut pushed_us: Vec<u64> = Vec::new();
    let mut latencies_us = Vec::new();
    let mut is_in_order = true;
    let mut spoken = (0, 0);
    for tick in 0..ticks + SETTLING_TICKS {
        if tick == ticks {
            spoken = (said_bytes(&duplex.server), said_bytes(&duplex.client));
        }
        if tick < ticks {
            let server = &mut duplex.server.endpoint;
            if random.random_bool(0.5) {
                let mut message = [7; 32];
                message[..8].copy_from_slice(&(pushed_us.len() as u64).to_le_bytes());
                // What is refused is missed below.
                let _ = server.push(StreamId::World, &message);
                pushed_us.push(tick * TICK_US);
            }
            let _ = server.push_unreliable(&[9; 150]);
            let _ = duplex.client.endpoint.push_unreliable(&[5; 12]);
        }
        let to_client = |at_us: u64, delivery: Delivery<'_>| {
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
    TownFigures {
        latencies_us,
        missing,
        down_bytes: spoken.0 as f64 / ticks as f64,
        up_bytes: spoken.1 as f64 / ticks as f64,
    }
}

fn said_bytes(end: &LinkEnd) -> u64 {
    end.link.bytes + end.link.packets * DATAGRAM_BYTES
}
