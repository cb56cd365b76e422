//! Limits, counters and errors of an endpoint.

use thiserror::Error;
use throng_protocol::wire::{CLIENT_MESSAGE_BYTES_MAX, MESSAGE_BYTES_MAX, WireError};

use crate::packet::{PACKET_BYTES_MAX, StreamId};
use crate::stream::WINDOW_BYTES_MAX;

/// The most that encryption may add to a packet, in bytes. The shortest datagram still has room for a chunk and all headers.
const SEALING_BYTES_MAX: u16 = 40;

/// Limits of an endpoint. The windows are part of the protocol: each end has to buffer what the other may send ahead.
///
/// ```
/// use throng_net::EndpointSettings;
///
/// // Both ends need the same limits; a client derives its own.
/// let server = EndpointSettings { bytes_per_s: 64_000, ..EndpointSettings::default() };
/// let client = server.for_client();
/// assert_eq!(client.receive_window_bytes, server.send_window_bytes);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointSettings {
    /// Bytes sent per second at most, including the headers of IP, UDP and encryption.
    pub bytes_per_s: u32,
    /// The lowest rate on a path that loses many packets.
    pub bytes_per_s_min: u32,
    /// Bytes that may be sent at once after a pause.
    pub burst_bytes: u32,
    /// Packets of one [`flush`](super::ReliableEndpoint::flush).
    pub packets_per_flush_max: u16,
    /// The longest datagram that is probed, in bytes. Datagrams of 1,200 bytes are assumed to arrive.
    pub datagram_bytes_max: u16,
    /// What encryption adds to a packet, in bytes, up to 40.
    pub sealing_bytes: u16,
    /// Unacknowledged bytes of all streams; above it the send queue is full and the connection is closed.
    pub backlog_bytes_max: usize,
    /// Bytes of unreliable messages between two flushes; above it the oldest are dropped.
    pub unreliable_bytes_max: usize,
    /// The longest message that may be pushed to a stream, in bytes.
    pub send_message_bytes_max: usize,
    /// The longest message that is received on a stream, in bytes; a longer one ends the connection. At the server this bounds the memory
    /// for incomplete messages of a client.
    pub receive_message_bytes_max: usize,
    /// How far a stream is sent ahead of the acknowledged bytes.
    pub send_window_bytes: usize,
    /// How far a stream may arrive ahead of the bytes in order.
    pub receive_window_bytes: usize,
    /// After this many microseconds without a packet, an empty one is sent.
    pub keep_alive_us: u64,
    /// For a transport without loss and reordering, such as a file, memory or a WebSocket: everything is sent once, at once, and counts as
    /// acknowledged. Then the packets do not depend on time.
    pub carrier_is_reliable: bool,
}

/// The window towards a client and towards the server, in bytes.
const DOWN_WINDOW_BYTES: usize = 1 << 16;
const UP_WINDOW_BYTES: usize = 1 << 13;

impl Default for EndpointSettings {
    /// The server's side.
    fn default() -> Self {
        Self {
            bytes_per_s: 128_000,
            bytes_per_s_min: 8_000,
            burst_bytes: 32_000,
            packets_per_flush_max: 8,
            datagram_bytes_max: 1_400,
            sealing_bytes: 25,
            backlog_bytes_max: MESSAGE_BYTES_MAX + (1 << 18),
            unreliable_bytes_max: 4_096,
            send_message_bytes_max: MESSAGE_BYTES_MAX,
            receive_message_bytes_max: CLIENT_MESSAGE_BYTES_MAX,
            send_window_bytes: DOWN_WINDOW_BYTES,
            receive_window_bytes: UP_WINDOW_BYTES,
            keep_alive_us: 1_000_000,
            carrier_is_reliable: false,
        }
    }
}

impl EndpointSettings {
    /// The client's settings for a server with these settings.
    #[must_use]
    pub fn for_client(self) -> Self {
        Self {
            send_message_bytes_max: self.receive_message_bytes_max,
            receive_message_bytes_max: self.send_message_bytes_max,
            send_window_bytes: self.receive_window_bytes,
            receive_window_bytes: self.send_window_bytes,
            ..self
        }
    }

    /// The same for a transport without loss: see [`carrier_is_reliable`](Self::carrier_is_reliable).
    #[must_use]
    pub fn for_reliable_carrier(self) -> Self {
        Self {
            carrier_is_reliable: true,
            ..self
        }
    }

    /// The settings, clamped to valid values.
    pub(super) fn clamped(self) -> Self {
        let window = |bytes: usize| bytes.clamp(PACKET_BYTES_MAX, WINDOW_BYTES_MAX);
        let message = |bytes: usize| bytes.clamp(1, MESSAGE_BYTES_MAX);
        Self {
            packets_per_flush_max: self.packets_per_flush_max.max(1),
            sealing_bytes: self.sealing_bytes.min(SEALING_BYTES_MAX),
            send_message_bytes_max: message(self.send_message_bytes_max),
            receive_message_bytes_max: message(self.receive_message_bytes_max),
            send_window_bytes: window(self.send_window_bytes),
            receive_window_bytes: window(self.receive_window_bytes),
            ..self
        }
    }
}

/// Counters of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointStats {
    /// Packets sent.
    pub packets_sent: u64,
    /// Their bytes, without encryption and datagram headers.
    pub bytes_sent: u64,
    /// Stream bytes sent for the first time.
    pub stream_bytes_new: u64,
    /// Stream bytes sent again.
    pub stream_bytes_retransmitted: u64,
    /// Unreliable messages dropped for lack of room.
    pub unreliable_dropped: u64,
    /// Packets received and accepted.
    pub packets_received: u64,
    /// Packets received and refused.
    pub packets_refused: u64,
    /// Packets acknowledged by the other end.
    pub packets_arrived: u64,
    /// Packets that counted as lost; some arrived later.
    pub packets_lost: u64,
    /// Retransmissions because no acknowledgement arrived in time.
    pub timeouts: u64,
}

/// Why a message is refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// An empty message.
    #[error("the message is empty, expected at least one byte")]
    Empty,
    /// Longer than the limit.
    #[error("the message has {found} bytes, at most {most} are allowed")]
    TooLong {
        /// Its length, in bytes.
        found: usize,
        /// The limit, in bytes.
        most: usize,
    },
    /// The send queue is full: the other side does not acknowledge fast enough.
    #[error("{waiting} bytes are unacknowledged: close the connection as behind")]
    SendQueueFull {
        /// Unacknowledged bytes.
        waiting: usize,
    },
}

/// Why a packet is refused. It changes nothing, except as described at [`WindowExceeded`](Self::WindowExceeded).
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketError {
    /// It cannot be decoded.
    #[error(transparent)]
    Malformed(#[from] WireError),
    /// It was received before, or is too old to be checked.
    #[error("packet {number} was received before or is too old, the newest is {newest}")]
    Duplicate {
        /// Its number.
        number: u16,
        /// The newest received.
        newest: u16,
    },
    /// It acknowledges a packet that was never sent.
    #[error("packet {found} is acknowledged, but the newest packet sent is {sent}")]
    AckOfUnsent {
        /// The packet that it acknowledges.
        found: u16,
        /// The newest packet sent.
        sent: u16,
    },
    /// It has bytes of a stream beyond the receive window. Its bytes in order were received; the packet is not acknowledged.
    #[error("stream {stream:?} has bytes beyond the receive window")]
    WindowExceeded {
        /// The stream.
        stream: StreamId,
    },
    /// A message in a stream has an invalid length. Nothing more of this connection can be read.
    #[error("stream {stream:?} has a message of {found} bytes, expected 1 to {most}")]
    InvalidLength {
        /// The stream.
        stream: StreamId,
        /// The length, as far as it was read.
        found: u32,
        /// The limit.
        most: usize,
    },
}

impl PacketError {
    /// Whether the connection must be closed, because the other side breaks the protocol.
    #[must_use]
    pub const fn is_fatal(self) -> bool {
        matches!(self, Self::InvalidLength { .. })
    }
}
