//! The messages of a town over a network that loses packets, in simulated time: delivery times and bytes.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng_net::conditioner::{ConditionedPath, NetworkConditioner};
use throng_net::workload::{TICK_US, TownResult};

use super::end::{End, Transport};

/// Ticks after the last message, in which packets in flight arrive.
const SETTLING_TICKS: u64 = 600;

/// The result of a town.
pub struct Town {
    /// The figures that throng's own bench reports.
    pub figures: TownResult,
    /// The share of unreliable messages that arrived.
    pub unreliable_arrived: f64,
    /// Datagrams from the server per tick.
    pub down_packets: f64,
}

/// One end, and the network path away from it.
struct Side<E> {
    end: E,
    link: ConditionedPath,
}

impl<E: End> Side<E> {
    fn flush(&mut self, now_us: u64, scratch: &mut Vec<u8>) {
        let Self { end, link } = self;
        end.flush(now_us, scratch, |packet| link.send(now_us, packet));
    }

    /// Receives the next packet of the other end's path.
    fn receive_next(
        &mut self,
        from: &mut ConditionedPath,
        scratch: &mut Vec<u8>,
        mut deliver: impl FnMut(u64, bool, &[u8]),
    ) {
        let mut now_us = None;
        from.receive(u64::MAX, |at_us, packet| {
            now_us = Some(at_us);
            self.end
                .receive(at_us, packet, scratch, |ordered, message| {
                    deliver(at_us, ordered, message);
                });
        });
        if let Some(now_us) = now_us
            && self.end.answers_at_once()
        {
            self.flush(now_us, scratch);
        }
    }

    fn bytes(&self, datagram_bytes: u64) -> u64 {
        self.link.bytes + self.link.packets * datagram_bytes
    }
}

/// The messages received by a client.
struct ReceivedMessages {
    /// When each ordered message was pushed, and how long its delivery took.
    pushed_us: Vec<u64>,
    latencies_us: Vec<u64>,
    is_in_order: bool,
    /// Whether each unreliable message arrived.
    arrived: Vec<bool>,
}

impl ReceivedMessages {
    fn record(&mut self, at_us: u64, ordered: bool, message: &[u8]) {
        let nth = message
            .first_chunk()
            .map_or(u64::MAX, |nth| u64::from_le_bytes(*nth));
        if ordered {
            let next = self.latencies_us.len();
            let pushed_us = self.pushed_us.get(next).copied();
            self.is_in_order &= nth == next as u64 && message.len() == 32 && pushed_us.is_some();
            self.latencies_us
                .push(at_us - pushed_us.unwrap_or_default());
        } else {
            let arrived = self.arrived.get_mut(nth as usize);
            let arrived = arrived.expect("an unreliable message that was sent");
            assert!(
                !*arrived && message.len() == 150,
                "a message arrived twice, or with another length"
            );
            *arrived = true;
        }
    }
}

/// Plays the town of [`throng_net::workload::town`] over any transport: per tick, 150 bytes of unreliable messages down and 12 up, and in
/// about every second tick a message of 32 bytes on the ordered stream. The server sends at the beginning of a tick and the client in its
/// middle. Packets are handed over when they arrive, and timers of a transport fire when they are due.
///
/// # Panics
/// If an ordered message is lost, duplicated or out of order.
pub fn town<T: Transport>(transport: &T, model: NetworkConditioner, ticks: u64, seed: u64) -> Town {
    let (mut servers, mut clients) = transport.connect(1);
    let side = |ends: &mut Vec<T::End>, seed| Side {
        end: ends.pop().expect("a connection"),
        link: ConditionedPath::new(model, seed),
    };
    let mut server = side(&mut servers, seed);
    let mut client = side(&mut clients, seed ^ 0x5eed);
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut received = ReceivedMessages {
        pushed_us: Vec::new(),
        latencies_us: Vec::new(),
        is_in_order: true,
        arrived: Vec::new(),
    };
    let mut scratch = Vec::new();
    let (mut sent_bytes, mut down_packets) = ((0, 0), 0);
    for half in 0..2 * (ticks + SETTLING_TICKS) {
        let now_us = half * TICK_US / 2;
        pass(
            now_us,
            &mut server,
            &mut client,
            &mut received,
            &mut scratch,
        );
        let tick = half / 2;
        if half == 2 * ticks {
            let bytes = transport.datagram_bytes();
            sent_bytes = (server.bytes(bytes), client.bytes(bytes));
            down_packets = server.link.packets;
        }
        if half % 2 == 1 {
            if tick < ticks {
                client.end.push_unreliable(now_us, &[5; 12]);
            }
            client.flush(now_us, &mut scratch);
            continue;
        }
        if tick < ticks {
            if random.random_bool(0.5) {
                let mut message = [7; 32];
                let nth = received.pushed_us.len() as u64;
                message[..8].copy_from_slice(&nth.to_le_bytes());
                server.end.push_ordered(now_us, &message);
                received.pushed_us.push(now_us);
            }
            let mut message = [9; 150];
            message[..8].copy_from_slice(&tick.to_le_bytes());
            server.end.push_unreliable(now_us, &message);
            received.arrived.push(false);
        }
        server.flush(now_us, &mut scratch);
    }
    let missing = received.pushed_us.len() - received.latencies_us.len();
    assert!(
        received.is_in_order && missing == 0,
        "{}: expected each ordered message once and in order, {missing} did not arrive",
        transport.name()
    );
    let mut latencies_us = received.latencies_us;
    latencies_us.sort_unstable();
    let arrived = received.arrived.iter().filter(|arrived| **arrived).count();
    Town {
        figures: TownResult {
            latencies_us,
            missing,
            down_bytes: sent_bytes.0 as f64 / ticks as f64,
            up_bytes: sent_bytes.1 as f64 / ticks as f64,
        },
        unreliable_arrived: arrived as f64 / ticks as f64,
        down_packets: down_packets as f64 / ticks as f64,
    }
}

/// Handles all events up to now, in order: arriving packets and due timers.
fn pass<E: End>(
    now_us: u64,
    server: &mut Side<E>,
    client: &mut Side<E>,
    received: &mut ReceivedMessages,
    scratch: &mut Vec<u8>,
) {
    loop {
        let (down, up) = (server.link.next_arrival_us(), client.link.next_arrival_us());
        let (at_server, at_client) = (server.end.wakes_us(), client.end.wakes_us());
        let next = [down, up, at_server, at_client].into_iter().flatten().min();
        let Some(at_us) = next.filter(|at_us| *at_us <= now_us) else {
            return;
        };
        if down == Some(at_us) {
            client.receive_next(&mut server.link, scratch, |at_us, ordered, message| {
                received.record(at_us, ordered, message);
            });
        } else if up == Some(at_us) {
            server.receive_next(&mut client.link, scratch, |_, _, _| ());
        } else if at_server == Some(at_us) {
            server.flush(at_us, scratch);
        } else {
            client.flush(at_us, scratch);
        }
    }
}
