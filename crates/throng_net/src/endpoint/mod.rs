//! One end of a connection: what is pushed comes out of packets at the other end. No sockets, no clock, no keys.
//!
//! | file | holds |
//! |---|---|
//! | `settings` | limits, what is counted, and why something is refused |
//! | `sending` | what goes into the packets of a tick |
//! | `receiving` | what comes out of a packet |
//!
//! Time is a number of microseconds since any moment that is the same for all calls; it does not run backwards, and if it does,
//! nothing breaks.

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

/// What a datagram of IPv4 and UDP has before the packet, in bytes.
const DATAGRAM_HEADER_BYTES: usize = 28;

/// Where the counters of a connection begin; other than at 0 only to see them wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountersStart {
    /// The number of the first packet.
    pub packet: u16,
    /// The offset of the first byte of every stream.
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
    /// When the newest of the acknowledged packets was sent.
    acknowledged_at_us: Option<u64>,
    last_sent_us: u64,
    last_received_us: u64,
    /// A packet asked for an answer.
    owes_ack: bool,
    /// Packets that came since the last one that went out.
    packets_since_ack: u8,
    is_send_queue_full: bool,
    /// A stream said a length that cannot be.
    broken: Option<StreamId>,
    stats: EndpointStats,
}

impl ReliableEndpoint {
    /// One end of a new connection.
    #[must_use]
    pub fn new(settings: EndpointSettings) -> Self {
        Self::starting_at(settings, CountersStart::default())
    }

    /// The same, with counters that begin elsewhere, at both ends alike.
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

    /// Appends a message to a stream: it arrives once, and in order with all that is pushed there.
    ///
    /// # Errors
    /// [`SendError`]: where it is empty or too long, and where more waits than may. In the last case everything that follows is
    /// refused, too, since a stream with a hole is none: the connection is to be closed.
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

    /// Takes a message that may get lost. It goes with the next [`flush`](Self::flush) or never.
    ///
    /// # Errors
    /// [`SendError`] where it is empty or longer than a packet.
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

    /// The longest packet that this path takes, in bytes.
    #[must_use]
    pub fn packet_bytes_max(&self) -> usize {
        let bytes = self.path.bytes() - usize::from(self.settings.sealing_bytes);
        bytes.min(PACKET_BYTES_MAX)
    }

    /// Bytes that were pushed and are not acknowledged.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        let waiting = self.outgoing.iter().map(OutgoingStream::pending_bytes);
        waiting.sum()
    }

    /// Whether more waited than may: the connection is to be closed.
    #[must_use]
    pub const fn is_send_queue_full(&self) -> bool {
        self.is_send_queue_full
    }

    /// The smoothed round trip, the other end's tick included, in microseconds; 0 before there is any.
    #[must_use]
    pub const fn round_trip_us(&self) -> u64 {
        self.estimate.round_trip_us()
    }

    /// The share of packets that do not arrive at the other end, estimated.
    #[must_use]
    pub fn loss(&self) -> f32 {
        self.estimate.loss()
    }

    /// Bytes a second that may be sent, as the link has it now.
    #[must_use]
    pub const fn bytes_per_s(&self) -> u32 {
        self.bucket.rate()
    }

    /// When the last packet came that was one, in microseconds; 0 before the first.
    #[must_use]
    pub const fn last_received_us(&self) -> u64 {
        self.last_received_us
    }

    /// What happened so far.
    #[must_use]
    pub const fn stats(&self) -> &EndpointStats {
        &self.stats
    }
}
