//! What goes into the packets of a tick.
//!
//! In this order, as far as the budget reaches: bytes of streams that have to be sent again, since without them nothing behind
//! them is of use; bytes that are new; copies on the safe side, up to a quarter of the budget unless losses come in bursts;
//! unreliable messages, the newest first. A quarter of the budget is kept for the last, so that what is long does not make the
//! world stand still.

use super::{DATAGRAM_HEAD_BYTES, ReliableEndpoint};
use crate::acks::{Carried, SentPacket};
use crate::packet::{HEAD_BYTES_MAX, PIECES_MAX, PacketHead, PacketStamp, StreamId, set_pieces};
use crate::repeat::UNTIL_ACKNOWLEDGED;
use crate::stream::{DueRules, PieceRoom};

/// The least room in a budget for which a packet is begun.
const PACKET_BYTES_LEAST: usize = 64;

/// Up to so many packets that came since the last one that went out, an answer tells only of the newest half.
const UNANSWERED_FEW: u8 = 4;

/// What is left for the packets of one flush, in bytes with what sealing and datagrams add.
struct FlushBudget {
    bytes: usize,
    /// Of those, what streams may not take.
    reserved: usize,
    copies: usize,
    /// What of `copies` was spent.
    copied: usize,
}

impl ReliableEndpoint {
    /// Makes the packets of a tick in `packet`, one after the other, and hands each to `send`: at most so many bytes as `budget_bytes`
    /// says and the connection's own budget has, in datagrams. Nothing where there is nothing to say. What is pushed between
    /// two calls travels together, so this is called once a tick.
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
        self.bucket.watch(now_us, self.estimate.recent_loss());
        let copies = self.estimate.copies(now_us);
        let reorder_us = self.estimate.reorder_us();
        let rules = DueRules {
            now_us,
            pto_us: self.estimate.pto_us(),
            passed_us: self
                .acknowledged_at_us
                .and_then(|at_us| at_us.checked_sub(reorder_us.max(1))),
            copies,
        };
        let mut allowance = self.allowance(budget_bytes, copies);
        let packets_max = if is_assured {
            usize::MAX
        } else {
            usize::from(self.settings.packets_per_flush_max)
        };
        for nth in 0..packets_max {
            let must = nth == 0 && !is_assured && self.must_speak(now_us);
            if !self.write_packet(stamp, &rules, &mut allowance, must, packet) {
                break;
            }
            send(packet);
        }
        self.stats.unreliable_dropped += self.tail.clear();
        if !is_assured {
            self.bucket.spend(0, allowance.copied);
            self.probe(now_us, stamp, packet, send);
        }
    }

    fn allowance(&self, budget_bytes: usize, copies: u8) -> FlushBudget {
        if self.settings.carrier_is_reliable {
            return FlushBudget {
                bytes: budget_bytes,
                reserved: 0,
                copies: 0,
                copied: 0,
            };
        }
        let bytes = self.bucket.bytes().min(budget_bytes);
        let unreliable = match self.tail.framed_bytes() {
            0 => 0,
            framed => framed + self.overhead() + HEAD_BYTES_MAX,
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

    /// What a packet takes in a datagram, beside itself.
    const fn overhead(&self) -> usize {
        DATAGRAM_HEAD_BYTES + self.settings.sealing_bytes as usize
    }

    /// Whether a packet is due though there may be nothing in it.
    const fn must_speak(&self, now_us: u64) -> bool {
        self.owes_ack || now_us.saturating_sub(self.last_sent_us) >= self.settings.keep_alive_us
    }

    /// Writes one packet; whether there is one.
    fn write_packet(
        &mut self,
        stamp: PacketStamp,
        rules: &DueRules,
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
        let has_room = most >= PACKET_BYTES_LEAST;
        if has_room {
            self.choose(rules, for_streams, allowance);
        }
        let is_keep_alive = must && !self.owes_ack;
        self.head(stamp, is_keep_alive)
            .write(packet_cleared(packet));
        let head_bytes = packet.len();
        let mut record = SentPacket {
            at_us: rules.now_us,
            ..SentPacket::default()
        };
        if has_room {
            self.write_pieces(rules.now_us, packet, &mut record);
            let room = most.saturating_sub(packet.len());
            let room_max = packet_max - HEAD_BYTES_MAX;
            self.stats.unreliable_dropped += self.tail.write(packet, room, room_max);
        }
        if packet.len() == head_bytes && !must {
            return false;
        }
        debug_assert!(packet.len() <= packet_max, "no packet is longer");
        allowance.bytes = allowance.bytes.saturating_sub(packet.len() + overhead);
        if self.tail.is_empty() {
            allowance.reserved = 0;
        }
        allowance.reserved = allowance.reserved.min(allowance.bytes);
        self.sent_one(record, packet.len());
        if self.settings.carrier_is_reliable {
            for stream in &mut self.outgoing {
                stream.acknowledge_all();
            }
        }
        true
    }

    /// Chooses what of the streams goes into a packet with so much room.
    fn choose(&mut self, rules: &DueRules, bytes: usize, allowance: &mut FlushBudget) {
        let mut room = PieceRoom {
            bytes: bytes.saturating_sub(HEAD_BYTES_MAX),
            pieces: 0,
        };
        let mut late = 0;
        for stream in &mut self.outgoing {
            late += stream.choose_needed(rules, &mut room);
        }
        if late > 0 {
            self.estimate.timed_out(rules.now_us);
            self.stats.timeouts += 1;
            self.path.unheard(rules.now_us, self.estimate.timeouts());
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

    fn head(&self, stamp: PacketStamp, wants_ack: bool) -> PacketHead {
        PacketHead {
            pieces: 0,
            wants_ack,
            stamp,
            number: self.sent.next(),
            newest: self.received.newest,
            before: self.received.before,
            // The rest was said before, in packets of which hardly all were lost.
            tells_all: self.unanswered > UNANSWERED_FEW,
        }
    }

    fn write_pieces(&mut self, now_us: u64, packet: &mut Vec<u8>, record: &mut SentPacket) {
        let mut pieces = 0;
        for id in StreamId::ALL {
            let carry = |carried: Carried| {
                debug_assert!(pieces < PIECES_MAX, "no more were chosen");
                record.carried[pieces] = carried;
                pieces += 1;
            };
            let stream = &mut self.outgoing[id.number()];
            let (new, again) = stream.write(now_us, id.number(), packet, carry);
            self.stats.stream_bytes_new += new as u64;
            self.stats.stream_bytes_retransmitted += again as u64;
        }
        record.pieces = pieces as u8;
        set_pieces(packet, pieces);
    }

    /// Takes note of a packet of so many bytes that is sent now.
    fn sent_one(&mut self, record: SentPacket, bytes: usize) {
        self.sent.record(SentPacket {
            bytes: bytes as u16,
            ..record
        });
        self.bucket.spend(bytes + self.overhead(), 0);
        self.last_sent_us = self.last_sent_us.max(record.at_us);
        self.owes_ack = false;
        self.unanswered = 0;
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += bytes as u64;
    }

    /// Sends a probe of the path, if it is time for one and there is something to spend.
    fn probe(
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
        self.head(stamp, true).write(packet_cleared(packet));
        packet.resize(datagram_bytes - usize::from(self.settings.sealing_bytes), 0);
        let record = SentPacket {
            at_us: now_us,
            is_probe: true,
            ..SentPacket::default()
        };
        self.sent_one(record, packet.len());
        send(packet);
    }

    /// What has to be left of the budget for a probe.
    const fn bucket_probe_bytes(&self) -> usize {
        self.settings.datagram_bytes_max as usize + DATAGRAM_HEAD_BYTES
    }
}

fn packet_cleared(packet: &mut Vec<u8>) -> &mut Vec<u8> {
    packet.clear();
    packet
}
