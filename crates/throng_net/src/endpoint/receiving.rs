//! Reads packets: acknowledgements, stream frames, unreliable messages.

use super::{PacketError, ReliableEndpoint};
use crate::acks::PacketOutcome;
use crate::packet::{PacketStamp, ParsedPacket, StreamId};
use crate::stream::StreamLimits;

/// A received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedMessage<'m> {
    /// Its stream; `None` if it is unreliable.
    pub stream: Option<StreamId>,
    /// The stamp of the packet that contained the message or completed it. A stream message may have been sent earlier, so a time to which
    /// it refers has to be in its own bytes.
    pub stamp: PacketStamp,
    /// The message.
    pub bytes: &'m [u8],
}

/// Received packets after which a reply is sent, even if none requested it.
const ACK_AFTER_PACKETS: u8 = 8;

impl ReliableEndpoint {
    /// Handles a packet, and passes on the messages that it completes: those of streams once and in order, then the unreliable ones, each
    /// at most once.
    ///
    /// # Errors
    /// [`PacketError`], which is counted. After an error that [`is_fatal`](PacketError::is_fatal), every packet returns it.
    pub fn receive(
        &mut self,
        now_us: u64,
        packet: &[u8],
        deliver: impl FnMut(ReceivedMessage<'_>),
    ) -> Result<(), PacketError> {
        let taken = self.receive_packet(now_us, packet, deliver);
        match taken {
            Ok(()) => self.stats.packets_received += 1,
            Err(_) => self.stats.packets_refused += 1,
        }
        taken
    }

    fn receive_packet(
        &mut self,
        now_us: u64,
        packet: &[u8],
        mut deliver: impl FnMut(ReceivedMessage<'_>),
    ) -> Result<(), PacketError> {
        if let Some(stream) = self.broken {
            return Err(self.stream_error(stream, 0));
        }
        let packet = ParsedPacket::read(packet)?;
        let head = packet.header;
        if !self.received.expects(head.number) {
            return Err(PacketError::Duplicate {
                number: head.number,
                newest: self.received.newest,
            });
        }
        if !self.sent.may_acknowledge(head.newest) {
            return Err(PacketError::AckOfUnsent {
                found: head.newest,
                sent: self.sent.next().wrapping_sub(1),
            });
        }
        self.last_received_us = self.last_received_us.max(now_us);
        self.acknowledge(now_us, head.newest, head.before);
        let limits = StreamLimits {
            window_bytes: self.settings.receive_window_bytes,
            message_bytes_max: self.settings.receive_message_bytes_max,
        };
        let mut full = None;
        for piece in packet.frames() {
            let stream = StreamId::ALL[piece.stream];
            let mut hand_over = |bytes: &[u8]| {
                deliver(ReceivedMessage {
                    stream: Some(stream),
                    stamp: head.stamp,
                    bytes,
                });
            };
            let incoming = &mut self.incoming[piece.stream];
            match incoming.receive(piece.offset, piece.bytes, &limits, &mut hand_over) {
                Ok(true) => {}
                Ok(false) => full = Some(stream),
                Err(found) => {
                    self.broken = Some(stream);
                    return Err(self.stream_error(stream, found));
                }
            }
        }
        if let Some(stream) = full {
            return Err(PacketError::WindowExceeded { stream });
        }
        self.received.record(head.number);
        self.packets_since_ack = self.packets_since_ack.saturating_add(1);
        self.owes_ack |= head.wants_ack || self.packets_since_ack >= ACK_AFTER_PACKETS;
        for bytes in packet.unreliable() {
            deliver(ReceivedMessage {
                stream: None,
                stamp: head.stamp,
                bytes,
            });
        }
        Ok(())
    }

    const fn stream_error(&self, stream: StreamId, found: u32) -> PacketError {
        PacketError::InvalidLength {
            stream,
            found,
            most: self.settings.receive_message_bytes_max,
        }
    }

    /// Handles the acknowledgement of a packet.
    fn acknowledge(&mut self, now_us: u64, newest: u16, before: u32) {
        let Self {
            sent,
            outgoing,
            estimate,
            path,
            acknowledged_at_us,
            settings,
            stats,
            ..
        } = self;
        if settings.carrier_is_reliable {
            return;
        }
        let reorder_us = estimate.reorder_us();
        let overhead = usize::from(settings.sealing_bytes);
        sent.acknowledge(newest, before, reorder_us, |packet, fate| {
            let datagram_bytes = usize::from(packet.bytes) + overhead;
            match fate {
                PacketOutcome::Arrived {
                    is_newest,
                    was_lost,
                } => {
                    stats.packets_arrived += 1;
                    let round_trip_us = is_newest.then(|| now_us.saturating_sub(packet.at_us));
                    estimate.on_arrived(now_us, round_trip_us, was_lost);
                    path.on_arrived(datagram_bytes, packet.is_probe);
                    *acknowledged_at_us = (*acknowledged_at_us).max(Some(packet.at_us));
                    for &carried in packet.carried() {
                        outgoing[usize::from(carried.stream)].acknowledge(carried);
                    }
                }
                PacketOutcome::Lost { after_another } => {
                    stats.packets_lost += 1;
                    if !packet.is_probe {
                        estimate.on_lost(after_another);
                    }
                    path.on_lost(now_us, datagram_bytes, packet.is_probe, estimate.loss());
                }
            }
        });
    }
}
