//! One end of a connection: messages that are pushed here are delivered from packets at the other end. No sockets, no clock, no keys.
//!
//! | file | contents |
//! |---|---|
//! | `settings` | limits, counters and errors |
//! | `sending` | builds the packets of a tick |
//! | `receiving` | reads a packet |
//!
//! Times are microseconds since any moment that is the same for all calls. They should not run backwards; if they do, nothing breaks.

mod receiving;
mod sending;
mod settings;

use throng_core::memory::MemoryUse;

pub use receiving::ReceivedMessage;
pub use settings::{EndpointSettings, EndpointStats, PacketError, SendError};

use super::acks::{ReceivedPackets, SentPackets};
use super::bucket::ByteBucket;
use super::mtu::PathMtu;
use super::packet::{
    HEADER_BYTES_MAX, PACKET_BYTES_MAX, STREAMS, StreamId, framed_bytes, length_bytes,
};
use super::retransmit::PathEstimate;
use super::stream::{IncomingStream, OutgoingStream};
use super::unreliable::UnreliableQueue;

/// Bytes of the IPv4 and UDP headers before a packet.
const DATAGRAM_HEADER_BYTES: usize = 28;

/// Initial values of the counters of a connection. Values other than 0 are for tests of the wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountersStart {
    /// Number of the first packet.
    pub packet: u16,
    /// Offset of the first byte of every stream.
    pub offset: u32,
}

/// One end of a connection.
#[derive(Clone, Debug, MemoryUse)]
pub struct ReliableEndpoint {
    settings: EndpointSettings,
    outgoing: [OutgoingStream; STREAMS],
    incoming: [IncomingStream; STREAMS],
    unreliable: UnreliableQueue,
    sent: SentPackets,
    received: ReceivedPackets,
    estimate: PathEstimate,
    bucket: ByteBucket,
    path: PathMtu,
    /// Time at which the newest acknowledged packet was sent.
    acknowledged_at_us: Option<u64>,
    last_sent_us: u64,
    last_received_us: u64,
    /// A packet requested a reply.
    owes_ack: bool,
    /// Packets received since the last one that was sent.
    packets_since_ack: u8,
    is_send_queue_full: bool,
    /// A stream had a message with an invalid length.
    broken: Option<StreamId>,
    stats: EndpointStats,
}

impl ReliableEndpoint {
    /// One end of a new connection.
    #[must_use]
    pub fn new(settings: EndpointSettings) -> Self {
        Self::starting_at(settings, CountersStart::default())
    }

    /// The same, with other initial counters. Both ends need the same ones.
    #[must_use]
    pub fn starting_at(settings: EndpointSettings, start: CountersStart) -> Self {
        let settings = settings.clamped();
        let rates = (
            settings.bytes_per_s,
            settings.bytes_per_s_min,
            settings.burst_bytes,
        );
        Self {
            outgoing: std::array::from_fn(|_| OutgoingStream::starting_at(start.offset)),
            incoming: std::array::from_fn(|_| IncomingStream::starting_at(start.offset)),
            unreliable: UnreliableQueue::default(),
            sent: SentPackets::starting_at(start.packet),
            received: ReceivedPackets::starting_at(start.packet),
            estimate: PathEstimate::default(),
            bucket: ByteBucket::new(rates.0, rates.1, rates.2),
            path: PathMtu::new(usize::from(settings.datagram_bytes_max)),
            acknowledged_at_us: None,
            last_sent_us: 0,
            last_received_us: 0,
            owes_ack: false,
            packets_since_ack: 0,
            is_send_queue_full: false,
            broken: None,
            stats: EndpointStats::default(),
            settings,
        }
    }

    /// Appends a message to a stream. It arrives once, and in order with all messages of that stream.
    ///
    /// # Errors
    /// [`SendError`] if the message is empty or too long, or if the send queue is full. After a full queue every push is refused,
    /// since a stream cannot have a gap: close the connection.
    pub fn push(&mut self, stream: StreamId, message: &[u8]) -> Result<(), SendError> {
        let (found, most) = (message.len(), self.settings.send_message_bytes_max);
        match found {
            0 => return Err(SendError::Empty),
            _ if found > most => return Err(SendError::TooLong { found, most }),
            _ => {}
        }
        let waiting = self.pending_bytes();
        if self.is_send_queue_full
            || waiting + framed_bytes(found) > self.settings.backlog_bytes_max
        {
            self.is_send_queue_full = true;
            return Err(SendError::SendQueueFull { waiting });
        }
        self.outgoing[stream.number()].push(message);
        Ok(())
    }

    /// Queues a message that may be lost. It is sent with the next [`flush`](Self::flush) or never.
    ///
    /// # Errors
    /// [`SendError`] if it is empty or longer than a packet.
    pub fn push_unreliable(&mut self, message: &[u8]) -> Result<(), SendError> {
        let (found, most) = (message.len(), self.unreliable_bytes_max());
        match found {
            0 => return Err(SendError::Empty),
            _ if found > most => {
                self.stats.unreliable_dropped += 1;
                return Err(SendError::TooLong { found, most });
            }
            _ => {}
        }
        let dropped = self
            .unreliable
            .push(message, self.settings.unreliable_bytes_max.max(found));
        self.stats.unreliable_dropped += dropped;
        Ok(())
    }

    /// The longest unreliable message that fits into a packet of this path, in bytes.
    #[must_use]
    pub fn unreliable_bytes_max(&self) -> usize {
        let room = self.packet_bytes_max() - HEADER_BYTES_MAX;
        room - length_bytes(room)
    }

    /// The longest packet that this path carries, in bytes.
    #[must_use]
    pub fn packet_bytes_max(&self) -> usize {
        let bytes = self.path.bytes() - usize::from(self.settings.sealing_bytes);
        bytes.min(PACKET_BYTES_MAX)
    }

    /// Bytes pushed to streams and not acknowledged.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        let waiting = self.outgoing.iter().map(OutgoingStream::pending_bytes);
        waiting.sum()
    }

    /// Whether the send queue was full once: close the connection.
    #[must_use]
    pub const fn is_send_queue_full(&self) -> bool {
        self.is_send_queue_full
    }

    /// Smoothed round trip time, including the other end's tick, in microseconds; 0 before the first measurement.
    #[must_use]
    pub const fn round_trip_us(&self) -> u64 {
        self.estimate.round_trip_us()
    }

    /// Share of lost packets among about the last 250, by the acknowledgements of the other end; 0 before the first one.
    #[must_use]
    pub fn loss(&self) -> f32 {
        self.estimate.measured_loss()
    }

    /// Current rate limit, in bytes per second.
    #[must_use]
    pub const fn bytes_per_s(&self) -> u32 {
        self.bucket.rate()
    }

    /// Time of the last valid packet, in microseconds; 0 before the first.
    #[must_use]
    pub const fn last_received_us(&self) -> u64 {
        self.last_received_us
    }

    /// Counters so far.
    #[must_use]
    pub const fn stats(&self) -> &EndpointStats {
        &self.stats
    }
}
