//! Packets: a header and whole messages, merged up to the longest packet a path takes, or one part of a long message.
//!
//! ```text
//! messages ─▶ PacketWriter ─▶ packets of at most mtu bytes ─▶ (a transport) ─▶ Reassembler ─▶ messages
//! ```
//! The [module's page](super) has the bytes. Invariants: no packet is longer than the limit; a message that fits into a packet
//! is never cut; messages keep their order within a channel; the parts of a message are consecutive packets of their channel.
//! What is absent: retransmission and order of the reliable channel, which are the transport's.
//!
//! Cost: one copy a message, no allocation after warm-up.

use throng_core::memory::MemoryUse;

use super::codec::{WireError, WireReader, write_varint};
use super::{ClientId, PROTOCOL_VERSION};

/// Bytes of a packet's header.
pub const PACKET_HEADER_BYTES: usize = 8;

/// The longest packet unless set otherwise, in bytes.
pub const MTU_DEFAULT_BYTES: usize = 1_200;

/// The least that the longest packet may be, in bytes.
pub const MTU_MIN_BYTES: usize = 500;

/// The most that the longest packet may be, in bytes: what a UDP datagram carries over IPv4.
pub const MTU_MAX_BYTES: usize = 65_507;

/// The longest message of the reliable channel, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// The kind byte of [`Hello`].
pub const HELLO: u8 = 7;

/// The kind byte of a part of a long message.
pub const FRAGMENT: u8 = 8;

/// The most that stands before the bytes of a part: kind, number, total and offset.
const FRAGMENT_HEADER_BYTES_MAX: usize = 1 + 2 + 3 + 3;

/// By how much a reassembler's buffer grows at a time, and what it keeps between messages, in bytes.
const GROWTH_BYTES: usize = 1 << 16;

/// How a packet travels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Channel {
    /// Every packet arrives, once and in order.
    #[default]
    Reliable,
    /// A packet may get lost, come twice or late; what is newest wins.
    Unreliable,
}

impl Channel {
    /// Its bit in a packet's first byte.
    #[must_use]
    pub const fn bit(self) -> u8 {
        self as u8
    }
}

/// What stands before a packet's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketHeader {
    /// The channel that it belongs to; each counts its own packets.
    pub channel: Channel,
    /// Counts scene changes and resumes of the client, modulo 256.
    pub epoch: u8,
    /// Counts the packets of this client and channel, modulo 65,536.
    pub sequence: u16,
    /// The server's tick, modulo 65,536.
    pub tick: u16,
    /// The last input of the client that the server handled, modulo 65,536.
    pub input: u16,
}

impl PacketHeader {
    /// The header's bytes.
    #[inline]
    #[must_use]
    pub const fn to_bytes(self) -> [u8; PACKET_HEADER_BYTES] {
        let [s0, s1] = self.sequence.to_le_bytes();
        let [t0, t1] = self.tick.to_le_bytes();
        let [i0, i1] = self.input.to_le_bytes();
        [self.channel.bit(), self.epoch, s0, s1, t0, t1, i0, i1]
    }

    /// Reads a header.
    ///
    /// # Errors
    /// [`WireError::Truncated`], or [`WireError::UnknownFlags`] where a bit is set that this version does not know.
    pub fn read(reader: &mut WireReader) -> Result<Self, WireError> {
        let bytes = reader.bytes(PACKET_HEADER_BYTES)?;
        let channel = match bytes[0] {
            0 => Channel::Reliable,
            1 => Channel::Unreliable,
            found => return Err(WireError::UnknownFlags { found }),
        };
        Ok(Self {
            channel,
            epoch: bytes[1],
            sequence: u16::from_le_bytes([bytes[2], bytes[3]]),
            tick: u16::from_le_bytes([bytes[4], bytes[5]]),
            input: u16::from_le_bytes([bytes[6], bytes[7]]),
        })
    }
}

/// Whether sequence `a` is newer than `b`, both modulo 65,536: at most 32,767 ahead of it.
#[must_use]
pub const fn is_newer(a: u16, b: u16) -> bool {
    a != b && a.wrapping_sub(b) < 1 << 15
}

/// The number nearest to `near` whose lowest 16 bits are `low`: a whole tick out of a header's. Never below 0.
#[must_use]
pub const fn expand_counter(near: u64, low: u16) -> u64 {
    let ahead = low.wrapping_sub(near as u16);
    let behind = (1 << 16) - ahead as u64;
    if ahead < 1 << 15 || near < behind {
        near.saturating_add(ahead as u64)
    } else {
        near - behind
    }
}

/// How many ticks of so many seconds there are in a thousand seconds, as [`Hello`] tells it.
#[must_use]
pub fn tick_millihertz(tick_s: f32) -> u32 {
    (1000.0 / tick_s).round() as u32
}

/// The length of a tick in seconds, as clients reckon it from [`Hello`]. What both ends have to work out alike goes by it.
#[must_use]
pub fn wire_tick_s(tick_millihertz: u32) -> f32 {
    1000.0 / tick_millihertz.max(1) as f32
}

/// The first message that a client gets, and the only one that names the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The client's number.
    pub client: u32,
    /// Ticks in a thousand seconds: 20,000 at 20 Hz.
    pub tick_millihertz: u32,
    /// The server's tick, whole; headers have its lowest 16 bits.
    pub tick: u64,
    /// The longest packet that the server sends, in bytes.
    pub mtu_bytes: u32,
}

impl Hello {
    /// The same to another client.
    #[must_use]
    pub const fn for_client(self, client: ClientId) -> Self {
        let client = client.0;
        Self { client, ..self }
    }

    /// Appends the message, kind byte included.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(HELLO);
        write_varint(bytes, u64::from(PROTOCOL_VERSION));
        write_varint(bytes, u64::from(self.client));
        write_varint(bytes, u64::from(self.tick_millihertz));
        write_varint(bytes, self.tick);
        write_varint(bytes, u64::from(self.mtu_bytes));
    }

    /// Reads what follows the kind byte.
    ///
    /// # Errors
    /// [`WireError::VersionMismatch`] before anything of another version is read, or where the bytes end or do not fit.
    pub fn read(reader: &mut WireReader) -> Result<Self, WireError> {
        let found = reader.varint_u32()?;
        if found != PROTOCOL_VERSION {
            let expected = PROTOCOL_VERSION;
            return Err(WireError::VersionMismatch { found, expected });
        }
        Ok(Self {
            client: reader.varint_u32()?,
            tick_millihertz: reader.varint_u32()?,
            tick: reader.varint_u64()?,
            mtu_bytes: reader.varint_u32()?,
        })
    }
}

/// Numbers of one client's channel, kept by whoever writes its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelState {
    /// The number of the next packet.
    pub sequence: u16,
    /// The number of the next message that is cut.
    pub long_message: u16,
}

/// What a [`PacketWriter`] made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketTotals {
    /// How many packets were made.
    pub packets: u64,
    /// Their bytes, headers included.
    pub bytes: u64,
    /// Messages in them; one that was cut counts once.
    pub messages: u64,
    /// Messages that were dropped: longer than a packet on the unreliable channel, or than [`MESSAGE_BYTES_MAX`].
    pub too_long: u64,
}

impl PacketTotals {
    /// Adds another count.
    pub const fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.messages += other.messages;
        self.too_long += other.too_long;
    }
}

/// Makes packets out of messages.
#[derive(Clone, Debug, MemoryUse)]
pub struct PacketWriter {
    packet: Vec<u8>,
    mtu_bytes: usize,
}

impl Default for PacketWriter {
    /// With packets of at most [`MTU_DEFAULT_BYTES`].
    fn default() -> Self {
        Self::new(MTU_DEFAULT_BYTES)
    }
}

impl PacketWriter {
    /// With packets of at most `mtu_bytes`, which is brought between [`MTU_MIN_BYTES`] and [`MTU_MAX_BYTES`].
    #[must_use]
    pub fn new(mtu_bytes: usize) -> Self {
        let mut writer = Self {
            packet: Vec::new(),
            mtu_bytes: 0,
        };
        writer.set_mtu_bytes(mtu_bytes);
        writer
    }

    /// Packets are at most this long from now on, brought between the same limits.
    pub fn set_mtu_bytes(&mut self, mtu_bytes: usize) {
        self.mtu_bytes = mtu_bytes.clamp(MTU_MIN_BYTES, MTU_MAX_BYTES);
        self.packet.reserve_exact(self.mtu_bytes);
    }

    /// The longest packet, in bytes.
    #[must_use]
    pub const fn mtu_bytes(&self) -> usize {
        self.mtu_bytes
    }

    /// Hands `deliver` the packets of one client and channel: `messages` in their order, as many in a packet as fit.
    ///
    /// Each item is one message, or several that stay together; an empty one is none. An item that does not fit into a packet
    /// is cut into parts, if the channel is reliable. `header` is that of all packets but for the sequence, which comes from
    /// `state` and goes on there. Without messages there are no packets. O(bytes).
    pub fn write<'m>(
        &mut self,
        header: PacketHeader,
        state: &mut ChannelState,
        messages: impl IntoIterator<Item = &'m [u8]>,
        mut deliver: impl FnMut(&[u8]),
    ) -> PacketTotals {
        let mut written = PacketTotals::default();
        self.packet.clear();
        for message in messages {
            if message.len() > self.mtu_bytes - PACKET_HEADER_BYTES {
                if header.channel == Channel::Unreliable || message.len() > MESSAGE_BYTES_MAX {
                    written.too_long += 1;
                    continue;
                }
                self.finish_packet(&mut written, &mut deliver);
                self.write_fragments(header, state, message, &mut written, &mut deliver);
            } else if !message.is_empty() {
                if self.packet.len() + message.len() > self.mtu_bytes {
                    self.finish_packet(&mut written, &mut deliver);
                }
                if self.packet.is_empty() {
                    self.start_packet(header, state);
                }
                self.packet.extend_from_slice(message);
                written.messages += 1;
            }
        }
        self.finish_packet(&mut written, &mut deliver);
        written
    }

    #[inline]
    fn start_packet(&mut self, header: PacketHeader, state: &mut ChannelState) {
        let sequence = state.sequence;
        state.sequence = sequence.wrapping_add(1);
        let header = PacketHeader { sequence, ..header };
        self.packet.extend_from_slice(&header.to_bytes());
    }

    #[inline]
    fn finish_packet(&mut self, written: &mut PacketTotals, deliver: &mut impl FnMut(&[u8])) {
        if !self.packet.is_empty() {
            debug_assert!(self.packet.len() <= self.mtu_bytes, "no packet is longer");
            written.packets += 1;
            written.bytes += self.packet.len() as u64;
            deliver(&self.packet);
            self.packet.clear();
        }
    }

    fn write_fragments(
        &mut self,
        header: PacketHeader,
        state: &mut ChannelState,
        message: &[u8],
        written: &mut PacketTotals,
        deliver: &mut impl FnMut(&[u8]),
    ) {
        let number = state.long_message;
        state.long_message = number.wrapping_add(1);
        let capacity = self.mtu_bytes - PACKET_HEADER_BYTES - FRAGMENT_HEADER_BYTES_MAX;
        for (nth, part) in message.chunks(capacity).enumerate() {
            self.start_packet(header, state);
            self.packet.push(FRAGMENT);
            self.packet.extend_from_slice(&number.to_le_bytes());
            write_varint(&mut self.packet, message.len() as u64);
            write_varint(&mut self.packet, (nth * capacity) as u64);
            self.packet.extend_from_slice(part);
            self.finish_packet(written, deliver);
        }
        written.messages += 1;
    }
}

/// What came with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodedPacket<'a> {
    /// The packet's header.
    pub header: PacketHeader,
    /// Whole messages until the end; none while the parts of a long one are still coming.
    pub messages: &'a [u8],
}

/// Reads packets and puts parts together again.
///
/// Takes the packets of the reliable channel in order, as its transport gives them; those of the unreliable channel in
/// between as they come. Holds at most [`MESSAGE_BYTES_MAX`], and never more than 64 KiB above what came of a message.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct Reassembler {
    bytes: Vec<u8>,
    pending: Option<PendingMessage>,
}

/// The message of which parts are still missing.
#[derive(Clone, Copy, Debug)]
struct PendingMessage {
    number: u16,
    epoch: u8,
    total: usize,
}

/// A part's head.
struct FragmentHeader {
    number: u16,
    total: usize,
    offset: usize,
}

impl FragmentHeader {
    /// Reads what follows the kind byte, but for the bytes of the message.
    fn read(reader: &mut WireReader) -> Result<Self, WireError> {
        let number = reader.bytes(2)?;
        let number = u16::from_le_bytes([number[0], number[1]]);
        let at = reader.at();
        let total = reader.varint_u32()?;
        if total as usize > MESSAGE_BYTES_MAX {
            return Err(WireError::TooLong {
                at,
                found: total,
                max: MESSAGE_BYTES_MAX as u32,
            });
        }
        Ok(Self {
            number,
            total: total as usize,
            offset: reader.varint_u32()? as usize,
        })
    }
}

impl Reassembler {
    /// Takes a packet and gives its messages, or those of the long one that it completes. O(its bytes).
    ///
    /// # Errors
    /// [`WireError`] where the header or a part does not fit. What was pending is lost then: on a reliable channel that is
    /// a fault of the other side, and nothing can be made of what follows.
    pub fn accept<'a>(&'a mut self, packet: &'a [u8]) -> Result<DecodedPacket<'a>, WireError> {
        let mut reader = WireReader::new(packet);
        let header = PacketHeader::read(&mut reader)?;
        let body = &packet[PACKET_HEADER_BYTES..];
        let is_part = body.first() == Some(&FRAGMENT);
        let messages = match (header.channel, is_part) {
            (Channel::Unreliable, true) => {
                return Err(WireError::FragmentUnreliable {
                    at: PACKET_HEADER_BYTES,
                });
            }
            (Channel::Unreliable, false) => body,
            (Channel::Reliable, true) => {
                let taken = self.add_fragment(header, &mut reader);
                if taken.is_err() {
                    self.reset();
                }
                if taken? { &self.bytes[..] } else { &[] }
            }
            (Channel::Reliable, false) => {
                let pending = self.pending;
                self.reset();
                if let Some(pending) = pending.filter(|pending| pending.epoch == header.epoch) {
                    return Err(WireError::FragmentMissing {
                        number: pending.number,
                    });
                }
                body
            }
        };
        Ok(DecodedPacket { header, messages })
    }

    /// Forgets what is pending.
    pub fn reset(&mut self) {
        self.pending = None;
        self.bytes.clear();
        self.bytes.shrink_to(GROWTH_BYTES);
    }

    /// Bytes of memory held.
    #[must_use]
    pub const fn buffer_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Takes a part and says whether its message is whole.
    fn add_fragment(
        &mut self,
        header: PacketHeader,
        reader: &mut WireReader,
    ) -> Result<bool, WireError> {
        let kind_at = reader.at();
        reader.byte()?;
        let part = FragmentHeader::read(reader)?;
        let at = reader.at();
        let bytes = reader.remaining();
        // A new epoch ends what an older one left unfinished: its connection is gone.
        let pending = self.pending.filter(|pending| pending.epoch == header.epoch);
        match pending {
            Some(pending) if (pending.number, pending.total) != (part.number, part.total) => {
                return Err(WireError::FragmentMissing {
                    number: pending.number,
                });
            }
            Some(_) => {}
            None => self.reset(),
        }
        let expected = self.bytes.len();
        if part.offset != expected {
            return Err(WireError::FragmentOffset {
                at: kind_at,
                found: part.offset,
                expected,
            });
        }
        if bytes.is_empty() {
            return Err(WireError::Truncated { at, wanted: 1 });
        }
        let left = part.total.saturating_sub(expected);
        if bytes.len() > left {
            return Err(WireError::Trailing {
                at: at + left,
                found: bytes.len() - left,
            });
        }
        if self.bytes.capacity() < expected + bytes.len() {
            self.bytes
                .reserve_exact(bytes.len().max(GROWTH_BYTES.min(left)));
        }
        self.bytes.extend_from_slice(bytes);
        let whole = self.bytes.len() == part.total;
        self.pending = (!whole).then_some(PendingMessage {
            number: part.number,
            epoch: header.epoch,
            total: part.total,
        });
        Ok(whole)
    }
}

#[cfg(test)]
mod tests;
