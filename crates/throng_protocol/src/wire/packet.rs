//! Packets: a header and whole messages, as many as fit, or one fragment of a long message.
//!
//! ```text
//! messages ─▶ PacketWriter ─▶ packets of at most mtu bytes ─▶ (a transport) ─▶ Reassembler ─▶ messages
//! ```
//!
//! The [module documentation](super) has the format. Invariants: no packet is longer than the limit; a message that fits into a packet is
//! never split; messages keep their order within a channel; the fragments of a message are consecutive packets of their channel. Not
//! provided: retransmission and order of the reliable channel, which are tasks of the transport.
//!
//! Cost: one copy per message, no allocation after warm-up.

use throng_core::memory::MemoryUse;

use super::codec::{WireError, WireReader, write_varint};
use super::{ClientId, PROTOCOL_VERSION};

/// Length of a packet's header, in bytes.
pub const PACKET_HEADER_BYTES: usize = 8;

/// The default maximum length of packets, in bytes.
pub const MTU_DEFAULT_BYTES: usize = 1_200;

/// The lower bound of the maximum length of packets, in bytes.
pub const MTU_MIN_BYTES: usize = 500;

/// The upper bound of the maximum length of packets, in bytes: the payload of a UDP datagram over IPv4.
pub const MTU_MAX_BYTES: usize = 65_507;

/// The longest message of the reliable channel, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// The kind byte of [`Hello`].
pub const HELLO: u8 = 7;

/// The kind byte of a fragment of a long message.
pub const FRAGMENT: u8 = 8;

/// The longest header of a fragment: kind, number, total and offset.
const FRAGMENT_HEADER_BYTES_MAX: usize = 1 + 2 + 3 + 3;

/// By how much a reassembler's buffer grows at a time, and what it retains between messages, in bytes.
const GROWTH_BYTES: usize = 1 << 16;

/// The channel of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Channel {
    /// Every packet arrives, once and in order.
    #[default]
    Reliable,
    /// A packet may be lost, duplicated or delayed; the newest data counts.
    Unreliable,
}

impl Channel {
    /// Bit of the channel in the first byte of a packet.
    #[must_use]
    pub const fn bit(self) -> u8 {
        self as u8
    }
}

/// The header of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketHeader {
    /// The channel. Each channel counts its own packets.
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
    /// Encodes the header.
    #[inline]
    #[must_use]
    pub const fn to_bytes(self) -> [u8; PACKET_HEADER_BYTES] {
        let [s0, s1] = self.sequence.to_le_bytes();
        let [t0, t1] = self.tick.to_le_bytes();
        let [i0, i1] = self.input.to_le_bytes();
        [self.channel.bit(), self.epoch, s0, s1, t0, t1, i0, i1]
    }

    /// Decodes a header.
    ///
    /// # Errors
    /// [`WireError::Truncated`], or [`WireError::UnknownFlags`] if a bit is set that this version does not know.
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

/// The number nearest to `near` whose lowest 16 bits are `low`: recovers a full tick from a header. Never below 0.
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

/// Number of ticks of this length in a thousand seconds, for [`Hello`].
#[must_use]
pub fn tick_millihertz(tick_s: f32) -> u32 {
    (1000.0 / tick_s).round() as u32
}

/// Length of a tick in seconds, as clients compute it from [`Hello`]. Both ends use it for all computations that must give the same result.
#[must_use]
pub fn wire_tick_s(tick_millihertz: u32) -> f32 {
    1000.0 / tick_millihertz.max(1) as f32
}

/// The first message to a client, and the only one with the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The client's id.
    pub client: u32,
    /// Ticks in a thousand seconds: 20,000 at 20 Hz.
    pub tick_millihertz: u32,
    /// The server's full tick; headers contain its lowest 16 bits.
    pub tick: u64,
    /// The longest packet that the server sends, in bytes.
    pub mtu_bytes: u32,
}

impl Hello {
    /// The same message for another client.
    #[must_use]
    pub const fn for_client(self, client: ClientId) -> Self {
        let client = client.0;
        Self { client, ..self }
    }

    /// Appends the message, including the kind byte.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(HELLO);
        write_varint(bytes, u64::from(PROTOCOL_VERSION));
        write_varint(bytes, u64::from(self.client));
        write_varint(bytes, u64::from(self.tick_millihertz));
        write_varint(bytes, self.tick);
        write_varint(bytes, u64::from(self.mtu_bytes));
    }

    /// Decodes what follows the kind byte.
    ///
    /// # Errors
    /// [`WireError::VersionMismatch`] before anything of another version is read, or another error if the bytes are malformed.
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

/// Sequence numbers of one channel of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelState {
    /// Number of the next packet.
    pub sequence: u16,
    /// Number of the next message that is split.
    pub long_message: u16,
}

/// Counters of a [`PacketWriter`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketTotals {
    /// Packets written.
    pub packets: u64,
    /// Their bytes, headers included.
    pub bytes: u64,
    /// Messages in them; a split one counts once.
    pub messages: u64,
    /// Dropped messages: longer than a packet on the unreliable channel, or than [`MESSAGE_BYTES_MAX`].
    pub too_long: u64,
}

impl PacketTotals {
    /// Adds other counters.
    pub const fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.messages += other.messages;
        self.too_long += other.too_long;
    }
}

/// Assembles packets from messages.
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
    /// With packets of at most `mtu_bytes`, which is clamped to [`MTU_MIN_BYTES`] and [`MTU_MAX_BYTES`].
    #[must_use]
    pub fn new(mtu_bytes: usize) -> Self {
        let mut writer = Self {
            packet: Vec::new(),
            mtu_bytes: 0,
        };
        writer.set_mtu_bytes(mtu_bytes);
        writer
    }

    /// Changes the maximum length of packets, clamped to the same bounds.
    pub fn set_mtu_bytes(&mut self, mtu_bytes: usize) {
        self.mtu_bytes = mtu_bytes.clamp(MTU_MIN_BYTES, MTU_MAX_BYTES);
        self.packet.reserve_exact(self.mtu_bytes);
    }

    /// The longest packet, in bytes.
    #[must_use]
    pub const fn mtu_bytes(&self) -> usize {
        self.mtu_bytes
    }

    /// Passes the packets of one client and channel to `deliver`: `messages` in order, as many per packet as fit.
    ///
    /// Each item is one message, or several that stay together; empty items are skipped. On the reliable channel, an item that does not fit
    /// into a packet is split into fragments. All packets have the given `header`, with sequence numbers from `state`, which is updated.
    /// Without messages there are no packets. O(bytes).
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

/// The content of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodedPacket<'a> {
    /// The packet's header.
    pub header: PacketHeader,
    /// Complete messages; empty while the fragments of a long one are incomplete.
    pub messages: &'a [u8],
}

/// Decodes packets and reassembles fragments.
///
/// Requires the packets of the reliable channel in order, as its transport delivers them; those of the unreliable channel may be mixed in
/// as they arrive. Stores at most [`MESSAGE_BYTES_MAX`], and at most 64 KiB more than was received of a message.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct Reassembler {
    bytes: Vec<u8>,
    pending: Option<PendingMessage>,
}

/// A message with missing fragments.
#[derive(Clone, Copy, Debug)]
struct PendingMessage {
    number: u16,
    epoch: u8,
    total: usize,
}

/// The header of a fragment.
struct FragmentHeader {
    number: u16,
    total: usize,
    offset: usize,
}

impl FragmentHeader {
    /// Decodes what follows the kind byte, up to the bytes of the message.
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
    /// Handles a packet and returns its messages, or the long message that it completes. O(its bytes).
    ///
    /// # Errors
    /// [`WireError`] if the header or a fragment is malformed. Then the pending message is lost; on a reliable channel that is an error of
    /// the other side, and the following packets cannot be used.
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

    /// Drops the pending message.
    pub fn reset(&mut self) {
        self.pending = None;
        self.bytes.clear();
        self.bytes.shrink_to(GROWTH_BYTES);
    }

    /// Memory of the buffers, in bytes.
    #[must_use]
    pub const fn buffer_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Adds a fragment. Returns whether its message is complete.
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
        // A new epoch drops an incomplete message of an older one: its connection has ended.
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
