//! Invariants of two endpoints over any network; used by the fuzzer, and by the test that replays its corpus.
//!
//! The input is a script with two bytes per step: an event, and the length of a message, the index of a packet, or a time. Packets are
//! lost, duplicated, delayed, reordered and changed; without changes every reliable message arrives once and in order.

use crate::net::{
    EndpointSettings, PACKET_BYTES_MAX, PacketStamp, ReceivedMessage, ReliableEndpoint, SendError,
    StreamId,
};

/// Maximum number of steps of a script; the rest of the input is ignored.
const STEPS_MAX: usize = 400;

/// Maximum number of packets in flight per direction; the oldest are lost.
const IN_FLIGHT_MAX: usize = 16;

/// Maximum number of lossless rounds until all messages have arrived.
const ROUNDS_MAX: usize = 400;

/// An endpoint, its packets in flight, and its messages.
struct TestEnd {
    endpoint: ReliableEndpoint,
    /// Packets in flight to the other end.
    in_flight: Vec<Vec<u8>>,
    sent: [Vec<Vec<u8>>; 4],
    /// Number of messages of the other end received here, by stream.
    received: [usize; 4],
    unreliable: Vec<Vec<u8>>,
}

struct Script {
    ends: [TestEnd; 2],
    now_us: u64,
    /// Number of messages pushed so far.
    count: u32,
    /// Whether a packet was changed: then the received messages may be anything.
    is_changed: bool,
}

impl TestEnd {
    fn new(settings: EndpointSettings) -> Self {
        Self {
            endpoint: ReliableEndpoint::new(settings),
            in_flight: Vec::new(),
            sent: Default::default(),
            received: [0; 4],
            unreliable: Vec::new(),
        }
    }
}

impl Script {
    /// A unique message with a minimum length.
    fn message(&mut self, length: u8) -> Vec<u8> {
        self.count += 1;
        let mut message = self.count.to_le_bytes().to_vec();
        // Some messages need several packets.
        let length = usize::from(length) * if length > 240 { 16 } else { 1 };
        message.resize(4 + length, self.count as u8);
        message
    }

    fn push(&mut self, end: usize, stream: StreamId, length: u8) {
        let message = self.message(length);
        match self.ends[end].endpoint.push(stream, &message) {
            Ok(()) => self.ends[end].sent[stream.number()].push(message),
            // The server accepts only shorter messages from a client.
            Err(SendError::TooLong { most, .. }) => assert!(end == 1 && message.len() > most),
            Err(refused) => assert!(
                matches!(refused, SendError::SendQueueFull { .. }),
                "{refused}"
            ),
        }
    }

    fn push_unreliable(&mut self, end: usize, length: u8) {
        let message = self.message(length);
        let end = &mut self.ends[end];
        match end.endpoint.push_unreliable(&message) {
            Ok(()) => end.unreliable.push(message),
            Err(refused) => assert!(matches!(refused, SendError::TooLong { .. }), "{refused}"),
        }
    }

    fn flush(&mut self, end: usize) {
        let TestEnd {
            endpoint,
            in_flight: flying,
            ..
        } = &mut self.ends[end];
        let mut packet = Vec::new();
        let stamp = PacketStamp::default();
        endpoint.flush(self.now_us, stamp, usize::MAX, &mut packet, |packet| {
            assert!(packet.len() <= PACKET_BYTES_MAX);
            if flying.len() == IN_FLIGHT_MAX {
                flying.remove(0);
            }
            flying.push(packet.to_vec());
        });
    }

    /// Delivers a packet in flight from an end to the other one.
    fn deliver(&mut self, from: usize, packet: &[u8]) {
        let (now_us, is_changed) = (self.now_us, self.is_changed);
        let [first, second] = &mut self.ends;
        let (sender, receiver) = if from == 0 {
            (first, second)
        } else {
            (second, first)
        };
        let TestEnd {
            endpoint,
            received: received_counts,
            ..
        } = receiver;
        let taken = endpoint.receive(now_us, packet, |delivery: ReceivedMessage<'_>| {
            if is_changed {
                return;
            }
            let Some(stream) = delivery.stream else {
                let place = sender.unreliable.iter().position(|it| it == delivery.bytes);
                sender
                    .unreliable
                    .remove(place.expect("the message was pushed, and not received before"));
                return;
            };
            let received_counts = &mut received_counts[stream.number()];
            assert_eq!(
                delivery.bytes,
                sender.sent[stream.number()][*received_counts]
            );
            *received_counts += 1;
        });
        if !is_changed && let Err(refused) = taken {
            assert!(!refused.is_fatal(), "{refused}");
        }
    }

    fn step(&mut self, event: u8, value: u8) {
        let end = usize::from(event & 1);
        let flying = self.ends[end].in_flight.len();
        let nth = usize::from(value) % flying.max(1);
        match event >> 1 & 7 {
            0 => self.push(end, StreamId::ALL[usize::from(event >> 4 & 3)], value),
            1 => self.push_unreliable(end, value),
            2 | 3 => {
                self.now_us += u64::from(value) * 500;
                self.flush(end);
            }
            4 | 5 if flying > 0 => {
                // A packet to be duplicated stays in flight.
                let packet = if event & 0x80 == 0 {
                    self.ends[end].in_flight.remove(nth)
                } else {
                    self.ends[end].in_flight[nth].clone()
                };
                self.deliver(end, &packet);
            }
            6 if flying > 0 => drop(self.ends[end].in_flight.remove(nth)),
            7 if flying > 0 && event & 0xf0 == 0xf0 => {
                self.is_changed = true;
                let mut packet = self.ends[end].in_flight.remove(nth);
                let at = usize::from(value) % packet.len();
                packet[at] ^= value | 1;
                self.deliver(end, &packet);
            }
            _ => {}
        }
    }

    /// Delivers everything without further losses.
    fn run_until_idle(&mut self) {
        for _ in 0..ROUNDS_MAX {
            self.now_us += 50_000;
            for end in 0..2 {
                self.flush(end);
                for packet in std::mem::take(&mut self.ends[end].in_flight) {
                    self.deliver(end, &packet);
                }
            }
            let waits = |end: &TestEnd| end.endpoint.pending_bytes() > 0;
            if !self.ends.iter().any(waits) {
                return;
            }
        }
        panic!("a message never arrived");
    }
}

pub fn check(input: &[u8]) {
    let settings = EndpointSettings::default();
    let mut script = Script {
        ends: [TestEnd::new(settings), TestEnd::new(settings.for_client())],
        now_us: 1_000_000,
        count: 0,
        is_changed: false,
    };
    let (steps, _) = input.as_chunks::<2>();
    for &[event, value] in steps.iter().take(STEPS_MAX) {
        script.step(event, value);
    }
    if script.is_changed {
        return;
    }
    script.run_until_idle();
    let [first, second] = &script.ends;
    for (sender, receiver) in [(first, second), (second, first)] {
        let pushed = sender.sent.each_ref().map(Vec::len);
        assert_eq!(receiver.received, pushed);
    }
}
