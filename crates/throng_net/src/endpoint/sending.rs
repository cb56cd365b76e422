//! Builds the packets of a tick.
//!
//! Order, within the budget: stream bytes that have to be sent again, because later bytes depend on them; new stream bytes; redundant
//! copies, up to a quarter of the budget unless losses come in bursts; unreliable messages, the newest first. A quarter of the budget is
//! reserved for the last group, so that long messages do not stop world updates.

use super::{DATAGRAM_HEADER_BYTES, ReliableEndpoint};
use crate::acks::{CarriedRange, SentPacket};
use crate::packet::{
    FRAMES_MAX, HEADER_BYTES_MAX, PacketStamp, StreamId, TransportHeader, set_frames,
};
use crate::retransmit::UNTIL_ACKNOWLEDGED;
use crate::stream::{FrameRoom, RetransmitRules};

/// The smallest budget for which a packet is started.
const PACKET_BYTES_MIN: usize = 64;

/// If at most this many packets were received since the last one sent, the bitmap of an acknowledgement has only its newer half.
const SHORT_ACK_PACKETS: u8 = 4;

/// The budget left for the packets of one flush, in bytes including encryption and datagram headers.
struct FlushBudget {
    bytes: usize,
    /// The part that streams may not use.
    reserved: usize,
    copies: usize,
    /// The part of `copies` that was used.
    copied: usize,
}

impl ReliableEndpoint {
    /// Builds the packets of a tick in `packet`, one after the other, and passes each to `send`. Their datagrams use at most `budget_bytes`
    /// and the connection's own budget. Sends nothing if nothing is pending. Call this once per tick: what is pushed between two calls
    /// shares packets.
    pub fn flush(
        &mut self,
        now_us: u64,
        stamp: PacketStamp,
        budget_bytes: usize,
        packet: &mut Vec<u8>,
        mut send: impl FnMut(&[u8]),
    ) {
        let is_assured = self.settings.carrier_is_reliable;
        self.bucket.fill(now_us);
        self.bucket.adapt_rate(now_us, self.estimate.recent_loss());
        let copies = self.estimate.copies(now_us);
        let reorder_us = self.estimate.reorder_us();
        let rules = RetransmitRules {
            now_us,
            pto_us: self.estimate.pto_us(),
            newest_acknowledged_us: self
                .acknowledged_at_us
                .and_then(|at_us| at_us.checked_sub(reorder_us.max(1))),
            copies,
        };
        let mut allowance = self.flush_budget(budget_bytes, copies);
        let packets_max = if is_assured {
            usize::MAX
        } else {
            usize::from(self.settings.packets_per_flush_max)
        };
        for nth in 0..packets_max {
            let must = nth == 0 && !is_assured && self.must_send(now_us);
            if !self.write_packet(stamp, &rules, &mut allowance, must, packet) {
                break;
            }
            send(packet);
        }
        self.stats.unreliable_dropped += self.unreliable.clear();
        if !is_assured {
            self.bucket.spend(0, allowance.copied);
            self.send_probe(now_us, stamp, packet, send);
        }
    }

    fn flush_budget(&self, budget_bytes: usize, copies: u8) -> FlushBudget {
        if self.settings.carrier_is_reliable {
            return FlushBudget {
                bytes: budget_bytes,
                reserved: 0,
                copies: 0,
                copied: 0,
            };
        }
        let bytes = self.bucket.bytes().min(budget_bytes);
        let unreliable = match self.unreliable.framed_bytes() {
            0 => 0,
            framed => framed + self.overhead() + HEADER_BYTES_MAX,
        };
        FlushBudget {
            bytes,
            reserved: unreliable.min(bytes / 4),
            copies: match copies {
                UNTIL_ACKNOWLEDGED => bytes,
                _ => self.bucket.copies_bytes(),
            },
            copied: 0,
        }
    }

    /// Bytes that encryption and datagram headers add to a packet.
    const fn overhead(&self) -> usize {
        DATAGRAM_HEADER_BYTES + self.settings.sealing_bytes as usize
    }

    /// Whether a packet has to be sent even if it is empty.
    const fn must_send(&self, now_us: u64) -> bool {
        self.owes_ack || now_us.saturating_sub(self.last_sent_us) >= self.settings.keep_alive_us
    }

    /// Writes one packet. Returns whether there was something to write.
    fn write_packet(
        &mut self,
        stamp: PacketStamp,
        rules: &RetransmitRules,
        allowance: &mut FlushBudget,
        must: bool,
        packet: &mut Vec<u8>,
    ) -> bool {
        let overhead = self.overhead();
        let packet_max = self.packet_bytes_max();
        let room = |bytes: usize| packet_max.min(bytes.saturating_sub(overhead));
        let (most, for_streams) = (
            room(allowance.bytes),
            room(allowance.bytes - allowance.reserved),
        );
        let has_room = most >= PACKET_BYTES_MIN;
        if has_room {
            self.choose(rules, for_streams, allowance);
        }
        let is_keep_alive = must && !self.owes_ack;
        self.header(stamp, is_keep_alive).write(cleared(packet));
        let head_bytes = packet.len();
        let mut record = SentPacket {
            at_us: rules.now_us,
            ..SentPacket::default()
        };
        if has_room {
            self.write_frames(rules.now_us, packet, &mut record);
            let room = most.saturating_sub(packet.len());
            let room_max = packet_max - HEADER_BYTES_MAX;
            self.stats.unreliable_dropped += self.unreliable.write(packet, room, room_max);
        }
        if packet.len() == head_bytes && !must {
            return false;
        }
        debug_assert!(packet.len() <= packet_max, "no packet is longer");
        allowance.bytes = allowance.bytes.saturating_sub(packet.len() + overhead);
        if self.unreliable.is_empty() {
            allowance.reserved = 0;
        }
        allowance.reserved = allowance.reserved.min(allowance.bytes);
        self.record_sent(record, packet.len());
        if self.settings.carrier_is_reliable {
            for stream in &mut self.outgoing {
                stream.acknowledge_all();
            }
        }
        true
    }

    /// Chooses the stream bytes of a packet with this much room.
    fn choose(&mut self, rules: &RetransmitRules, bytes: usize, allowance: &mut FlushBudget) {
        let mut room = FrameRoom {
            bytes: bytes.saturating_sub(HEADER_BYTES_MAX),
            frames: 0,
        };
        let mut late = 0;
        for stream in &mut self.outgoing {
            late += stream.choose_retransmissions(rules, &mut room);
        }
        if late > 0 {
            self.estimate.on_timeout(rules.now_us);
            self.stats.timeouts += 1;
            self.path
                .on_timeouts(rules.now_us, self.estimate.timeouts());
        }
        let window_bytes = match self.settings.carrier_is_reliable {
            true => usize::MAX,
            false => self.settings.send_window_bytes,
        };
        for stream in &mut self.outgoing {
            stream.choose_new(&mut room, window_bytes);
        }
        if rules.copies > 1 {
            let before = allowance.copies;
            for stream in &mut self.outgoing {
                stream.choose_copies(rules, &mut room, &mut allowance.copies);
            }
            allowance.copied += before - allowance.copies;
        }
    }

    fn header(&self, stamp: PacketStamp, wants_ack: bool) -> TransportHeader {
        TransportHeader {
            frames: 0,
            wants_ack,
            stamp,
            number: self.sent.next(),
            newest: self.received.newest,
            before: self.received.before,
            // The older half was sent before, in packets of which at least one has probably arrived.
            has_long_bitmap: self.packets_since_ack > SHORT_ACK_PACKETS,
        }
    }

    fn write_frames(&mut self, now_us: u64, packet: &mut Vec<u8>, record: &mut SentPacket) {
        let mut pieces = 0;
        for id in StreamId::ALL {
            let carry = |carried: CarriedRange| {
                debug_assert!(pieces < FRAMES_MAX, "no more were chosen");
                record.carried[pieces] = carried;
                pieces += 1;
            };
            let stream = &mut self.outgoing[id.number()];
            let (new, again) = stream.write(now_us, id.number(), packet, carry);
            self.stats.stream_bytes_new += new as u64;
            self.stats.stream_bytes_retransmitted += again as u64;
        }
        record.frames = pieces as u8;
        set_frames(packet, pieces);
    }

    /// Records a packet of this length that is sent now.
    fn record_sent(&mut self, record: SentPacket, bytes: usize) {
        self.sent.record(SentPacket {
            bytes: bytes as u16,
            ..record
        });
        self.bucket.spend(bytes + self.overhead(), 0);
        self.last_sent_us = self.last_sent_us.max(record.at_us);
        self.owes_ack = false;
        self.packets_since_ack = 0;
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += bytes as u64;
    }

    /// Sends an MTU probe, if one is pending and the budget allows it.
    fn send_probe(
        &mut self,
        now_us: u64,
        stamp: PacketStamp,
        packet: &mut Vec<u8>,
        mut send: impl FnMut(&[u8]),
    ) {
        if self.estimate.round_trip_us() == 0 || self.bucket.bytes() < self.bucket_probe_bytes() {
            return;
        }
        let Some(datagram_bytes) = self.path.probe(now_us) else {
            return;
        };
        self.header(stamp, true).write(cleared(packet));
        packet.resize(datagram_bytes - usize::from(self.settings.sealing_bytes), 0);
        let record = SentPacket {
            at_us: now_us,
            is_probe: true,
            ..SentPacket::default()
        };
        self.record_sent(record, packet.len());
        send(packet);
    }

    /// Budget that has to be left for a probe.
    const fn bucket_probe_bytes(&self) -> usize {
        self.settings.datagram_bytes_max as usize + DATAGRAM_HEADER_BYTES
    }
}

fn cleared(packet: &mut Vec<u8>) -> &mut Vec<u8> {
    packet.clear();
    packet
}
