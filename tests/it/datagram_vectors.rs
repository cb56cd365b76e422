//! Test vectors for the browser client over datagrams: how this library's endpoint handles another endpoint's packets, some of which are
//! lost, duplicated, late or changed.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use serde_json::{Value, json};
use throng::net::{CountersStart, EndpointSettings, PacketStamp, ReliableEndpoint, StreamId};

/// Just below the values at which all counters wrap.
const START: CountersStart = CountersStart {
    packet: 65_500,
    offset: (1 << 24) - 500,
};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Both endpoints, and the random source.
struct EndpointPair {
    server: ReliableEndpoint,
    client: ReliableEndpoint,
    random: Pcg64Mcg,
}

impl EndpointPair {
    fn new(seed: u64) -> Self {
        let settings = EndpointSettings {
            // No path probes, because the other client does not send any.
            datagram_bytes_max: 1_200,
            ..EndpointSettings::default()
        };
        Self {
            server: ReliableEndpoint::starting_at(settings, START),
            client: ReliableEndpoint::starting_at(settings.for_client(), START),
            random: Pcg64Mcg::seed_from_u64(seed),
        }
    }

    fn random_below(&mut self, most: usize) -> usize {
        self.random.next_u32() as usize % most
    }

    fn random_bytes(&mut self, most: usize) -> Vec<u8> {
        let (length, first) = (1 + self.random_below(most), self.random_below(256));
        (0..length).map(|nth| (first + nth) as u8).collect()
    }

    /// The server pushes random messages, and returns the packets that are due.
    fn exchange_messages(&mut self, now_us: u64) -> Vec<Vec<u8>> {
        for _ in 0..self.random_below(4) {
            let most = [10, 20, 60, 200][self.random_below(4)];
            let (stream, message) = (StreamId::ALL[self.random_below(4)], self.random_bytes(most));
            self.server.push(stream, &message).unwrap();
        }
        for _ in 0..self.random_below(3) {
            let message = self.random_bytes(30);
            self.server.push_unreliable(&message).unwrap();
        }
        let stamp = PacketStamp {
            tick: (now_us / 50_000) as u16,
            epoch: 3,
            input: (self.random_below(2) == 0).then_some(77),
        };
        flush(&mut self.server, now_us, stamp)
    }
}

fn flush(endpoint: &mut ReliableEndpoint, now_us: u64, stamp: PacketStamp) -> Vec<Vec<u8>> {
    let (mut packet, mut packets) = (Vec::new(), Vec::new());
    endpoint.flush(now_us, stamp, usize::MAX, &mut packet, |packet| {
        packets.push(packet.to_vec());
    });
    packets
}

/// Receives a packet at the client: the messages that it completes, and whether it is taken, refused or fatal.
fn received_json(client: &mut ReliableEndpoint, now_us: u64, packet: &[u8]) -> Value {
    let mut messages = Vec::new();
    let result = client.receive(now_us, packet, |it| messages.push(hex(it.bytes)));
    let fate = match result {
        Ok(()) => "taken",
        Err(refused) if refused.is_fatal() => "broken",
        Err(_) => "refused",
    };
    let now_ms = now_us / 1_000;
    json!({ "ms": now_ms, "packet": hex(packet), "messages": messages, "fate": fate })
}

/// The acknowledgements in a client packet: the newest packet, the number of earlier ones that it reports on, and which of them arrived.
fn acks_json(packet: &[u8]) -> Value {
    let newest = u16::from_le_bytes([packet[6], packet[7]]);
    let (bits, before) = match packet[0] >> 2 & 0b1001 {
        0 => (32, u32::MAX),
        1 => (16, u32::from(u16::from_le_bytes([packet[8], packet[9]]))),
        _ => (32, u32::from_le_bytes(*packet[8..].first_chunk().unwrap())),
    };
    json!([newest, bits, before])
}

/// Packets of a server as they arrive at a client, and the client's acknowledgements in between.
pub fn datagrams() -> Vec<Value> {
    let mut ends = EndpointPair::new(7);
    let (mut steps, mut late) = (Vec::new(), Vec::new());
    for now_us in (0..80).map(|tick| tick * 50_000) {
        if now_us == 1_000_000 {
            // A message that takes several packets.
            let message = vec![7; 3_000];
            ends.server.push(StreamId::Bulk, &message).unwrap();
        }
        let mut packets = std::mem::take(&mut late);
        for packet in ends.exchange_messages(now_us) {
            match ends.random_below(10) {
                0 => {}
                1 => late.push(packet),
                2 => packets.extend([packet.clone(), packet]),
                _ => packets.insert(0, packet),
            }
        }
        for packet in packets {
            steps.push(received_json(&mut ends.client, now_us, &packet));
        }
        for packet in flush(&mut ends.client, now_us, PacketStamp::default()) {
            steps.push(json!({ "ms": now_us / 1_000, "acknowledged": acks_json(&packet) }));
            if ends.random_below(8) > 0 {
                ends.server.receive(now_us, &packet, |_| ()).unwrap();
            }
        }
    }
    let refused = steps.iter().filter(|step| step["fate"] == "refused");
    assert!(refused.count() > 3, "some packets are duplicates");
    steps
}

/// Packets with changed bytes, each received by a new endpoint.
pub fn changed_datagrams() -> Vec<Value> {
    let mut ends = EndpointPair::new(8);
    let sent: Vec<Vec<u8>> = (0..80)
        .flat_map(|tick| ends.exchange_messages(tick * 1_000))
        .collect();
    let mut steps = Vec::new();
    while steps.len() < 300 {
        // In the first packets, streams begin at the position that a new endpoint expects.
        let pool = [3, sent.len()][ends.random_below(2)];
        let mut packet = sent[ends.random_below(pool)].clone();
        for _ in 0..=ends.random_below(2) {
            let at = ends.random_below(packet.len().min(20));
            packet[at] =
                [packet[at] ^ (1 << ends.random_below(8)), 0, 0xff, 1][ends.random_below(4)];
        }
        // Behind the packet header, with or without an input, and the header of a fragment: the length of a message, if one begins here.
        let first = 13 + usize::from(packet[0] >> 3 & 1) * 2;
        if ends.random_below(8) == 0 && first < packet.len() {
            packet[first] = 0;
        }
        packet.truncate(
            packet.len() - [0, 0, 0, ends.random_below(packet.len())][ends.random_below(4)],
        );
        if packet.len() < 150 {
            let mut client = EndpointPair::new(0).client;
            steps.push(received_json(&mut client, 0, &packet));
        }
    }
    let count = |fate: &str| steps.iter().filter(|step| step["fate"] == fate).count();
    let counts = ["taken", "refused", "broken"].map(count);
    assert!(counts.iter().all(|&count| count >= 3), "{counts:?}");
    steps
}

/// The first packet of a client with messages, and the messages.
pub fn first_datagram() -> Vec<Value> {
    let mut ends = EndpointPair::new(9);
    let sent: Vec<Vec<u8>> = (0..3).map(|_| ends.random_bytes(60)).collect();
    for message in &sent {
        ends.client.push(StreamId::World, message).unwrap();
    }
    let packets = flush(&mut ends.client, 1_000, PacketStamp::default());
    assert_eq!(packets.len(), 1);
    let sent: Vec<String> = sent.iter().map(|message| hex(message)).collect();
    vec![json!({ "said": sent, "packet": hex(&packets[0]) })]
}
