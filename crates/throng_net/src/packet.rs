//! Encoding of packets: a header, stream frames, and unreliable messages. The [crate documentation](super) has the format.
//!
//! Invariant: a packet is decoded completely before any of it takes effect, so a malformed packet changes nothing.

use throng_protocol::wire::{WireError, WireReader, write_varint};

/// Length of the shortest header, in bytes.
pub(super) const HEADER_BYTES: usize = 8;

/// Length of the longest header: with the bitmap and the number of an input.
pub(super) const HEADER_BYTES_MAX: usize = HEADER_BYTES + 4 + 2;

/// Length of a stream frame's header, in bytes.
pub(super) const FRAME_HEADER_BYTES: usize = 2 + 3;

/// The most stream frames in a packet.
pub(super) const FRAMES_MAX: usize = 3;

/// The longest packet and the longest stream frame, in bytes: the maximum of eleven bits.
pub const PACKET_BYTES_MAX: usize = 2_047;

/// Number of streams.
pub(super) const STREAMS: usize = 4;

/// The bits of the first byte.
const FRAME_COUNT: u8 = 0b11;
const HAS_BITMAP: u8 = 1 << 2;
const HAS_INPUT: u8 = 1 << 3;
const WANTS_ACK: u8 = 1 << 4;
const LONG_BITMAP: u8 = 1 << 5;

/// One of the four ordered byte streams of a direction. Each stream keeps its own order. If there is not room for all, the lower number is
/// sent first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StreamId {
    /// The state of the world for the client.
    #[default]
    World,
    /// Announcements.
    Announcements,
    /// Messages of the game to its own client.
    Game,
    /// Long messages, sent after all others.
    Bulk,
}

impl StreamId {
    /// All streams, by number.
    pub const ALL: [Self; STREAMS] = [Self::World, Self::Announcements, Self::Game, Self::Bulk];

    /// Number of the stream in a stream frame.
    #[must_use]
    pub const fn number(self) -> usize {
        self as usize
    }
}

/// Values that the sender adds to a packet and the receiver reads. This crate does not use them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketStamp {
    /// The sender's tick, modulo 65,536.
    pub tick: u16,
    /// The epoch of the unreliable messages.
    pub epoch: u8,
    /// The last input that was handled. `None` takes no bytes.
    pub input: Option<u16>,
}

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TransportHeader {
    pub frames: usize,
    pub wants_ack: bool,
    pub stamp: PacketStamp,
    /// Counts the packets of a direction, modulo 65,536.
    pub number: u16,
    /// The newest packet that was received.
    pub newest: u16,
    /// Which of the 32 packets before the newest were received: bit 0 is the one just before it. A bit of 0 makes no statement.
    pub before: u32,
    /// Whether the bitmap includes the older half of them, unless all were received.
    pub has_long_bitmap: bool,
}

/// A stream frame of a packet that is being read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StreamFrame<'p> {
    pub stream: usize,
    /// The lowest 24 bits of the stream offset of its first byte.
    pub offset: u32,
    pub bytes: &'p [u8],
}

/// A decoded packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ParsedPacket<'p> {
    pub header: TransportHeader,
    frames: [StreamFrame<'p>; FRAMES_MAX],
    messages: &'p [u8],
}

impl TransportHeader {
    /// Appends the header to an empty packet. The number of stream frames can be set later with [`set_frames`].
    pub fn write(&self, packet: &mut Vec<u8>) {
        debug_assert!(packet.is_empty(), "a packet begins with its head");
        let has = |bit: u8, is: bool| if is { bit } else { 0 };
        let is_told = self.before != u32::MAX;
        let flags = self.frames as u8
            | has(HAS_BITMAP, is_told)
            | has(LONG_BITMAP, is_told && self.has_long_bitmap)
            | has(HAS_INPUT, self.stamp.input.is_some())
            | has(WANTS_ACK, self.wants_ack);
        let [n0, n1] = self.number.to_le_bytes();
        let [t0, t1] = self.stamp.tick.to_le_bytes();
        let [a0, a1] = self.newest.to_le_bytes();
        packet.extend_from_slice(&[flags, self.stamp.epoch, n0, n1, t0, t1, a0, a1]);
        if is_told {
            let bytes = if self.has_long_bitmap { 4 } else { 2 };
            packet.extend_from_slice(&self.before.to_le_bytes()[..bytes]);
        }
        if let Some(input) = self.stamp.input {
            packet.extend_from_slice(&input.to_le_bytes());
        }
    }

    fn read(reader: &mut WireReader) -> Result<Self, WireError> {
        let [flags, epoch, n0, n1, t0, t1, a0, a1] = reader.array()?;
        let is_known =
            flags & !(FRAME_COUNT | HAS_BITMAP | HAS_INPUT | WANTS_ACK | LONG_BITMAP) == 0;
        let before = match flags & (HAS_BITMAP | LONG_BITMAP) {
            _ if !is_known => return Err(WireError::UnknownFlags { found: flags }),
            0 => u32::MAX,
            HAS_BITMAP => u32::from(u16::from_le_bytes(reader.array()?)),
            LONG_BITMAP => return Err(WireError::UnknownFlags { found: flags }),
            _ => u32::from_le_bytes(reader.array()?),
        };
        let input = if flags & HAS_INPUT == 0 {
            None
        } else {
            Some(u16::from_le_bytes(reader.array()?))
        };
        Ok(Self {
            frames: usize::from(flags & FRAME_COUNT),
            wants_ack: flags & WANTS_ACK != 0,
            stamp: PacketStamp {
                tick: u16::from_le_bytes([t0, t1]),
                epoch,
                input,
            },
            number: u16::from_le_bytes([n0, n1]),
            newest: u16::from_le_bytes([a0, a1]),
            before,
            has_long_bitmap: flags & LONG_BITMAP != 0,
        })
    }
}

/// Sets the number of stream frames in a packet's header, and the flag that requests an acknowledgement.
pub(super) fn set_frames(packet: &mut [u8], pieces: usize) {
    debug_assert!(pieces <= FRAMES_MAX, "two bits count the pieces");
    if let Some(flags) = packet.first_mut()
        && pieces > 0
    {
        *flags = *flags & !FRAME_COUNT | pieces as u8 | WANTS_ACK;
    }
}

/// Appends the header of a stream frame.
pub(super) fn write_frame_header(packet: &mut Vec<u8>, stream: usize, offset: u32, length: usize) {
    debug_assert!(length <= PACKET_BYTES_MAX && stream < STREAMS);
    let [l0, l1] = (length as u16 | (stream as u16) << 11).to_le_bytes();
    let [o0, o1, o2, _] = offset.to_le_bytes();
    packet.extend_from_slice(&[l0, l1, o0, o1, o2]);
}

impl<'p> ParsedPacket<'p> {
    /// Decodes a packet. O(number of unreliable messages).
    ///
    /// # Errors
    /// [`WireError`] if the packet is truncated or has a flag that this version does not know.
    pub fn read(packet: &'p [u8]) -> Result<Self, WireError> {
        let mut reader = WireReader::new(packet);
        let head = TransportHeader::read(&mut reader)?;
        let mut pieces = [StreamFrame::default(); FRAMES_MAX];
        for piece in &mut pieces[..head.frames] {
            let [l0, l1, o0, o1, o2] = reader.array()?;
            let word = u16::from_le_bytes([l0, l1]);
            if word >> 13 != 0 {
                return Err(WireError::UnknownFlags { found: l1 });
            }
            *piece = StreamFrame {
                stream: usize::from(word >> 11),
                offset: u32::from_le_bytes([o0, o1, o2, 0]),
                bytes: reader.bytes(usize::from(word & 0x7ff))?,
            };
        }
        let tail = reader.remaining();
        let mut rest = WireReader::new(tail);
        while next_message(&mut rest)?.is_some() {}
        Ok(Self {
            header: head,
            frames: pieces,
            messages: tail,
        })
    }

    /// Its stream frames, in order.
    pub fn frames(&self) -> &[StreamFrame<'p>] {
        &self.frames[..self.header.frames]
    }

    /// Its unreliable messages, in order.
    pub fn unreliable(&self) -> impl Iterator<Item = &'p [u8]> + use<'p> {
        let mut rest = WireReader::new(self.messages);
        // It was decoded before without an error.
        std::iter::from_fn(move || next_message(&mut rest).ok().flatten())
    }
}

/// The next message after its length; `None` at the end, or at the padding that a length of 0 starts.
fn next_message<'p>(tail: &mut WireReader<'p>) -> Result<Option<&'p [u8]>, WireError> {
    if tail.is_empty() {
        return Ok(None);
    }
    match tail.varint_u32()? as usize {
        0 => Ok(None),
        length => tail.bytes(length).map(Some),
    }
}

/// Appends an unreliable message after its length.
pub(super) fn write_message(packet: &mut Vec<u8>, message: &[u8]) {
    debug_assert!(!message.is_empty(), "a length of 0 says filling");
    write_varint(packet, message.len() as u64);
    packet.extend_from_slice(message);
}

/// Bytes of a message, with the length before it.
pub(super) const fn framed_bytes(length: usize) -> usize {
    length + length_bytes(length)
}

/// Bytes of a length.
pub(super) const fn length_bytes(length: usize) -> usize {
    match length {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn header() -> impl Strategy<Value = TransportHeader> {
        let stamp = (any::<u16>(), any::<u8>(), any::<Option<u16>>());
        let before = prop_oneof![Just(u32::MAX), any::<u32>()];
        let acknowledgement = (any::<u16>(), before, any::<bool>());
        (any::<bool>(), stamp, any::<u16>(), acknowledgement).prop_map(
            |(wants_ack, (tick, epoch, input), number, (newest, before, tells_all))| {
                TransportHeader {
                    frames: 0,
                    wants_ack,
                    stamp: PacketStamp { tick, epoch, input },
                    number,
                    newest,
                    before,
                    has_long_bitmap: tells_all,
                }
            },
        )
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn a_packet_reads_back(
            head in header(),
            pieces in vec((0..STREAMS, 0_u32..1 << 24, vec(any::<u8>(), 0..50)), 0..=FRAMES_MAX),
            messages in vec(vec(any::<u8>(), 1..200), 0..5),
            filling in vec(any::<u8>(), 0..5),
        ) {
            let mut packet = Vec::new();
            head.write(&mut packet);
            prop_assert!(packet.len() <= HEADER_BYTES_MAX);
            for (stream, offset, bytes) in &pieces {
                write_frame_header(&mut packet, *stream, *offset, bytes.len());
                packet.extend_from_slice(bytes);
            }
            set_frames(&mut packet, pieces.len());
            for message in &messages {
                let before = packet.len();
                write_message(&mut packet, message);
                prop_assert_eq!(packet.len() - before, framed_bytes(message.len()));
            }
            packet.push(0);
            packet.extend(&filling);
            let read = ParsedPacket::read(&packet).unwrap();
            let wants_ack = head.wants_ack || !pieces.is_empty();
            let is_told = head.before != u32::MAX;
            let before = head.before & if is_told && !head.has_long_bitmap { 0xffff } else { u32::MAX };
            let has_long_bitmap = is_told && head.has_long_bitmap;
            let expected = TransportHeader { frames: pieces.len(), wants_ack, before, has_long_bitmap, ..head };
            prop_assert_eq!(read.header, expected);
            let found: Vec<_> = read.frames().iter().map(|p| (p.stream, p.offset, p.bytes.to_vec())).collect();
            prop_assert_eq!(found, pieces);
            prop_assert_eq!(read.unreliable().collect::<Vec<_>>(), messages);
        }

        #[test]
        fn any_bytes_are_a_packet_or_an_error(bytes in vec(any::<u8>(), 0..100)) {
            if let Ok(read) = ParsedPacket::read(&bytes) {
                prop_assert!(read.unreliable().map(<[u8]>::len).sum::<usize>() < bytes.len());
            }
        }
    }

    #[test]
    fn unknown_flag_bits_are_an_error() {
        assert_eq!(
            ParsedPacket::read(&[0x40; 8]),
            Err(WireError::UnknownFlags { found: 0x40 })
        );
        assert_eq!(
            ParsedPacket::read(&[0x20; 8]),
            Err(WireError::UnknownFlags { found: 0x20 })
        );
        let mut packet = vec![1, 0, 0, 0, 0, 0, 0, 0];
        packet.extend([0, 0x20, 0, 0, 0]);
        assert_eq!(
            ParsedPacket::read(&packet),
            Err(WireError::UnknownFlags { found: 0x20 })
        );
    }
}
