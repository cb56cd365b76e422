//! Many connections of one server, without a network: the server's cost per client and tick, and its memory.

use std::collections::VecDeque;
use std::time::Duration;

use cpu_time::ThreadTime;
use throng::memory::allocation_count;
use throng_net::workload::{CROWD_MESSAGES, TICK_US};

use super::end::{End, Transport};
use crate::heap::lent_bytes;

/// Warm-up ticks of buffers and estimates, and the same number of measured ticks.
const ROUNDS: usize = 100;

/// Ticks until a reply.
const ROUND_TRIP_TICKS: usize = 3;

/// The cost of a client per tick: medians over the ticks, except for allocations, which are the mean.
pub struct Cost {
    /// Processor time of sending, from message to packet.
    pub send_ns: f64,
    /// Processor time of receiving.
    pub receive_ns: f64,
    /// Allocations of both.
    pub allocations: f64,
    /// Bytes of memory of the server's end.
    pub bytes: f64,
    /// Datagrams down.
    pub packets: f64,
}

/// Packets of one end and tick.
#[derive(Default)]
struct Bundle {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Bundle {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn push(&mut self, packet: &[u8]) {
        self.bytes.extend_from_slice(packet);
        self.ends.push(self.bytes.len());
    }

    /// Those that arrive, of a number that no other tick, client and direction has.
    fn packets(&self, loss: CrowdLoss, number: usize) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        let packets = begins.zip(&self.ends).enumerate();
        packets
            .filter(move |(nth, _)| !loss.takes(number * PACKETS_MAX + nth))
            .map(|(_, (begin, end))| &self.bytes[begin..*end])
    }
}

/// At most this many packets with numbers of their own, for one end and tick.
const PACKETS_MAX: usize = 16;

/// About one packet in this many is lost, both ways.
#[derive(Clone, Copy)]
pub struct CrowdLoss(pub Option<u64>);

impl CrowdLoss {
    /// Without a pattern that a timer could match.
    fn takes(self, number: usize) -> bool {
        let mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.0.is_some_and(|one_in| mixed.is_multiple_of(one_in))
    }
}

/// Sends the messages of a tick to each client and from each client, and measures the time.
///
/// # Panics
/// Where less comes than was said, but for what the loss takes.
pub fn crowd<T: Transport>(transport: &T, clients: usize, loss: CrowdLoss) -> Cost {
    let (mut servers, mut others) = transport.connect(clients);
    let bundles = || (0..clients).map(|_| Bundle::default()).collect::<Vec<_>>();
    let mut down = bundles();
    let mut up: VecDeque<Vec<Bundle>> = VecDeque::new();
    let mut scratch = Vec::with_capacity(4_096);
    let (mut sent_ns, mut received_ns) = (Vec::new(), Vec::new());
    let (mut allocated, mut packets, mut came, mut heard) = (0, 0, [0; 2], 0);
    for round in 0..2 * ROUNDS {
        if round == ROUNDS {
            (allocated, packets, came, heard) = (0, 0, [0; 2], 0);
        }
        let now_us = round as u64 * TICK_US;
        down.iter_mut().for_each(Bundle::clear);
        let before = allocation_count();
        let took = timed(|| say(&mut servers, now_us, &mut down, &mut scratch));
        allocated += allocation_count() - before;
        packets += down.iter().map(|bundle| bundle.ends.len()).sum::<usize>();
        let middle_us = now_us + TICK_US / 2;
        let number = |nth: usize| 2 * (round * clients + nth);
        let is_full = up.len() > ROUND_TRIP_TICKS;
        let spare = if is_full { up.pop_front() } else { None };
        let mut answers = spare.unwrap_or_else(bundles);
        for (nth, (client, answer)) in others.iter_mut().zip(&mut answers).enumerate() {
            for packet in down[nth].packets(loss, number(nth)) {
                client.receive(middle_us, packet, &mut scratch, |ordered, _| {
                    came[usize::from(ordered)] += 1;
                });
            }
            client.push_unreliable(middle_us, &[5; 12]);
            answer.clear();
            client.flush(middle_us, &mut scratch, |packet| answer.push(packet));
        }
        up.push_back(answers);
        if up.len() <= ROUND_TRIP_TICKS {
            continue;
        }
        let next_us = now_us + TICK_US;
        let before = allocation_count();
        let received = timed(|| {
            for (nth, (server, answer)) in servers.iter_mut().zip(&up[0]).enumerate() {
                for packet in answer.packets(loss, number(nth) + 1) {
                    server.receive(next_us, packet, &mut scratch, |_, _| heard += 1);
                }
            }
        });
        if round >= ROUNDS {
            allocated += allocation_count() - before;
            sent_ns.push(took.as_nanos() as f64);
            received_ns.push(received.as_nanos() as f64);
        }
    }
    let of_all = (clients * ROUNDS) as f64;
    let [unreliable, ordered] = came.map(|came| came as f64 / of_all);
    let least = if loss.0.is_some() { 0.85 } else { 0.99 };
    assert!(
        unreliable >= least * CROWD_MESSAGES.0 as f64
            && ordered >= 0.9 * CROWD_MESSAGES.1 as f64
            && f64::from(heard) >= least * of_all,
        "{}: came {unreliable} and {ordered} a client and tick, {heard} back",
        transport.name()
    );
    let with_servers = lent_bytes();
    drop(servers);
    Cost {
        send_ns: median(&mut sent_ns) / clients as f64,
        receive_ns: median(&mut received_ns) / clients as f64,
        allocations: allocated as f64 / of_all,
        bytes: (with_servers - lent_bytes()) as f64 / clients as f64,
        packets: packets as f64 / of_all,
    }
}

/// The server says what there is to say to each, and makes its packets.
fn say<E: End>(servers: &mut [E], now_us: u64, down: &mut [Bundle], scratch: &mut Vec<u8>) {
    let (unreliable, ordered) = CROWD_MESSAGES;
    for (server, down) in servers.iter_mut().zip(down) {
        for _ in 0..ordered {
            server.push_ordered(now_us, &[7; 12]);
        }
        for _ in 0..unreliable {
            server.push_unreliable(now_us, &[9; 12]);
        }
        server.flush(now_us, scratch, |packet| down.push(packet));
    }
}

/// The processor time of this thread.
fn timed(work: impl FnOnce()) -> Duration {
    let start = ThreadTime::now();
    work();
    start.elapsed()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
