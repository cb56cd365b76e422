//! Limits of an endpoint, what it counts, and why it refuses something.

use thiserror::Error;
use throng_protocol::wire::{CLIENT_MESSAGE_BYTES_MAX, MESSAGE_BYTES_MAX, WireError};

use crate::packet::{PACKET_BYTES_MAX, StreamId};
use crate::stream::WINDOW_BYTES_MAX;

/// The most that sealing may add to a packet, in bytes: the shortest datagram still has room for a chunk and all heads.
const SEALING_BYTES_MAX: u16 = 40;

/// Limits of an endpoint. The windows are part of the protocol: what one end may send ahead the other has to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointSettings {
    /// Bytes a second that are sent at most, with the heads of IP and UDP and what sealing adds.
    pub bytes_per_s: u32,
    /// The least to which that goes on a link that loses much.
    pub bytes_per_s_min: u32,
    /// Bytes that may be sent at once after a pause.
    pub burst_bytes: u32,
    /// Packets of one [`flush`](super::Endpoint::flush).
    pub packets_per_flush_max: u16,
    /// The longest datagram that is tried, in bytes. 1,200 is taken to arrive, 1,400 is probed.
    pub datagram_bytes_max: u16,
    /// What sealing adds to a packet, in bytes, up to 40.
    pub sealing_bytes: u16,
    /// Bytes that wait to be acknowledged, over all streams; with more the connection is behind.
    pub backlog_bytes_max: usize,
    /// Bytes of unreliable messages between two flushes; the oldest give way.
    pub unreliable_bytes_max: usize,
    /// The longest message that may be pushed to a stream, in bytes.
    pub send_message_bytes_max: usize,
    /// The longest message that is received on a stream, in bytes; a longer one ends the connection. At the server this bounds what a
    /// client can make it keep of a message that is not whole.
    pub receive_message_bytes_max: usize,
    /// How far a stream is sent ahead of what is acknowledged, in bytes.
    pub send_window_bytes: usize,
    /// How far a stream may come ahead of what is in order, in bytes.
    pub receive_window_bytes: usize,
    /// After how long without a packet one is sent all the same, in microseconds.
    pub keep_alive_us: u64,
    /// For what carries packets surely and in order, as a file, memory or a WebSocket does: everything is sent once, at once,
    /// and counts as acknowledged. What is sent does then not depend on time.
    pub is_assured: bool,
}

/// The window towards a client, and towards the server, in bytes.
const DOWN_WINDOW_BYTES: usize = 1 << 16;
const UP_WINDOW_BYTES: usize = 1 << 13;

impl Default for EndpointSettings {
    /// The server's end.
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
            is_assured: false,
        }
    }
}

impl EndpointSettings {
    /// The client's end of a connection whose server's end has these.
    #[must_use]
    pub fn client(self) -> Self {
        Self {
            send_message_bytes_max: self.receive_message_bytes_max,
            receive_message_bytes_max: self.send_message_bytes_max,
            send_window_bytes: self.receive_window_bytes,
            receive_window_bytes: self.send_window_bytes,
            ..self
        }
    }

    /// The same, without carrier losses: see [`is_assured`](Self::is_assured).
    #[must_use]
    pub fn assured(self) -> Self {
        Self {
            is_assured: true,
            ..self
        }
    }

    /// Brought into what works.
    pub(super) fn sane(self) -> Self {
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

/// What happened at an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointStats {
    /// Packets that were sent, and their bytes.
    pub packets_sent: u64,
    /// Bytes of those, without what sealing and datagrams add.
    pub bytes_sent: u64,
    /// Bytes of streams that were sent for the first time.
    pub stream_bytes_new: u64,
    /// Bytes of streams that were sent again.
    pub stream_bytes_again: u64,
    /// Unreliable messages for which there was no room.
    pub unreliable_dropped: u64,
    /// Packets that came and were taken.
    pub packets_received: u64,
    /// Packets that came and were not, whyever.
    pub packets_refused: u64,
    /// Packets that are known to have arrived at the other end.
    pub packets_arrived: u64,
    /// Packets that seemed to be lost; some arrived later.
    pub packets_lost: u64,
    /// How often bytes were sent again because nothing was heard.
    pub timeouts: u64,
}

/// Why a message is not taken.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PushRefused {
    /// A message of no bytes.
    #[error("an empty message, expected at least one byte")]
    Empty,
    /// It is longer than may be.
    #[error("a message of {found} bytes, at most {most} are allowed")]
    TooLong {
        /// How long it is.
        found: usize,
        /// How long it may be.
        most: usize,
    },
    /// The other end does not take as much as is said to it.
    #[error("{waiting} bytes are not acknowledged; the connection is to be closed as behind")]
    Behind {
        /// What waits, in bytes.
        waiting: usize,
    },
}

/// Why a packet is not taken. Nothing of it counts, but for what is said at [`Full`](Self::Full).
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketRefused {
    /// Its bytes are no packet.
    #[error(transparent)]
    Malformed(#[from] WireError),
    /// It came before, or is too old to tell.
    #[error("packet {number} came before or is too old, the newest is {newest}")]
    NotNew {
        /// Its number.
        number: u16,
        /// The newest that came.
        newest: u16,
    },
    /// It acknowledges what was never sent.
    #[error("packet {found} is acknowledged, the newest that was sent is {sent}")]
    NeverSent {
        /// What it says was received.
        found: u16,
        /// The newest that was sent.
        sent: u16,
    },
    /// It has more of a stream ahead of what is in order than is kept. What was in order was taken, and it is not acknowledged.
    #[error("stream {stream:?} came further ahead than is kept")]
    Full {
        /// The stream.
        stream: StreamId,
    },
    /// A stream says that a message has a length which none may have: nothing of this connection can be read any more.
    #[error("stream {stream:?} has a message of {found} bytes, expected 1 to {most}")]
    Broken {
        /// The stream.
        stream: StreamId,
        /// The length that it says, as far as it was read.
        found: u32,
        /// The longest.
        most: usize,
    },
}

impl PacketRefused {
    /// Whether the connection is to be closed: the other end breaks the protocol, or is another one.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Broken { .. })
    }
}
