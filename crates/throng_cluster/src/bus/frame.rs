//! The bytes around a message.
//!
//! | bytes | contents |
//! |---|---|
//! | 0–3 | `THRB` |
//! | 4–5 | [`BUS_VERSION`] |
//! | 6–10 | sender: 0 node or 1 gateway, and its id in 4 bytes |
//! | 11–18 | the run of the sender |
//! | 19–23 | receiver: as the sender, or 2 for all, with the id 0 |
//! | 24–31 | sequence number for this receiver, from 1 on |
//! | 32– | the message |
//! | the last 32 | HMAC-SHA-256 over all bytes before, with the key of the cluster |
//!
//! Numbers are little endian. All versions have the same first six bytes.

use std::fmt;

use ring::hmac;
use thiserror::Error;

use super::BusPeer;
use crate::ids::{ClusterNodeId, GatewayId};

/// The version of frames and messages. Both ends must have the same.
pub const BUS_VERSION: u16 = 1;

const MAGIC: &[u8; 4] = b"THRB";
const HEADER_BYTES: usize = 32;
const TAG_BYTES: usize = 32;

/// The bytes that a frame adds to its message.
pub const FRAME_OVERHEAD_BYTES: usize = HEADER_BYTES + TAG_BYTES;

/// The longest message, in bytes. A NATS server accepts 1 MiB.
pub const MESSAGE_BYTES_MAX: usize = 512 * 1_024;

/// The secret key of a cluster, shared by all its members.
#[derive(Clone)]
pub struct ClusterKey(hmac::Key);

impl fmt::Debug for ClusterKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ClusterKey(secret)")
    }
}

/// A text is not a cluster key.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "cluster key has {found} characters or others than 0–9 and a–f; expected 64 hexadecimal digits, such as the output of `openssl rand -hex 32`"
)]
pub struct InvalidClusterKey {
    /// The number of characters found.
    pub found: usize,
}

impl ClusterKey {
    /// A key of 32 random bytes.
    #[must_use]
    pub fn new(bytes: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// Reads a key of 64 hexadecimal digits. White space around them is ignored.
    ///
    /// # Errors
    /// [`InvalidClusterKey`], which does not contain the text.
    pub fn from_hex(text: &str) -> Result<Self, InvalidClusterKey> {
        let digits = text.trim();
        let found = digits.chars().count();
        let mut bytes = [0; 32];
        if found != 64 || !digits.chars().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(InvalidClusterKey { found });
        }
        for (byte, digits) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
            let value = |digit: u8| (digit as char).to_digit(16).unwrap_or(0) as u8;
            *byte = value(digits[0]) << 4 | value(digits[1]);
        }
        Ok(Self::new(&bytes))
    }
}

/// Why bytes of the bus are not a message for this receiver.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum BusRefusal {
    /// The bytes are not a frame.
    #[error("bus message of {0} bytes is not one of throng")]
    Malformed(usize),
    /// The sender has another version.
    #[error(
        "bus message has version {found}, expected {BUS_VERSION}: update the older of the two programs"
    )]
    Version {
        /// The version of the sender.
        found: u16,
    },
    /// The authenticator is wrong.
    #[error(
        "bus message is not authentic: the sender has another cluster key, or the message is forged"
    )]
    Forged,
    /// It is for another receiver.
    #[error("bus message is for {0}")]
    WrongReceiver(BusPeer),
    /// The sender has restarted since.
    #[error("bus message of an earlier run of {0}")]
    FormerRun(BusPeer),
    /// The message or a later one of the sender has arrived before.
    #[error("bus message of {0} arrived twice or late")]
    Late(BusPeer),
    /// The message is authentic, but its contents are invalid.
    #[error("bus message of {0} cannot be read")]
    Unreadable(BusPeer),
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub from: BusPeer,
    pub run: u64,
    pub to: BusPeer,
    pub sequence: u64,
}

fn write_peer(peer: BusPeer, bytes: &mut Vec<u8>) {
    let (kind, id) = match peer {
        BusPeer::Node(node) => (0, node.0),
        BusPeer::Gateway(gateway) => (1, gateway.0),
        BusPeer::All => (2, 0),
    };
    bytes.push(kind);
    bytes.extend_from_slice(&id.to_le_bytes());
}

fn read_peer(bytes: &[u8]) -> Option<BusPeer> {
    let id = u32::from_le_bytes(*bytes.get(1..)?.first_chunk()?);
    match bytes.first()? {
        0 => Some(BusPeer::Node(ClusterNodeId(id))),
        1 => Some(BusPeer::Gateway(GatewayId(id))),
        2 if id == 0 => Some(BusPeer::All),
        _ => None,
    }
}

fn read_number(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// Puts a frame around a message.
pub(super) fn seal(key: &ClusterKey, header: FrameHeader, message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(message.len() + FRAME_OVERHEAD_BYTES);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&BUS_VERSION.to_le_bytes());
    write_peer(header.from, &mut bytes);
    bytes.extend_from_slice(&header.run.to_le_bytes());
    write_peer(header.to, &mut bytes);
    bytes.extend_from_slice(&header.sequence.to_le_bytes());
    bytes.extend_from_slice(message);
    let tag = hmac::sign(&key.0, &bytes);
    bytes.extend_from_slice(tag.as_ref());
    bytes
}

/// Checks a frame, and returns its header and the message in it.
pub(super) fn open<'b>(
    key: &ClusterKey,
    bytes: &'b [u8],
) -> Result<(FrameHeader, &'b [u8]), BusRefusal> {
    let malformed = BusRefusal::Malformed(bytes.len());
    let rest = bytes.strip_prefix(MAGIC).ok_or(malformed)?;
    let version = rest.first_chunk().ok_or(malformed)?;
    let found = u16::from_le_bytes(*version);
    if found != BUS_VERSION {
        return Err(BusRefusal::Version { found });
    }
    let (signed, tag) = bytes.split_last_chunk::<TAG_BYTES>().ok_or(malformed)?;
    let (header, message) = signed
        .split_first_chunk::<HEADER_BYTES>()
        .ok_or(malformed)?;
    hmac::verify(&key.0, signed, tag).map_err(|_| BusRefusal::Forged)?;
    let read = || {
        Some(FrameHeader {
            from: read_peer(&header[6..11]).filter(|from| *from != BusPeer::All)?,
            run: read_number(&header[11..])?,
            to: read_peer(&header[19..24])?,
            sequence: read_number(&header[24..])?,
        })
    };
    Ok((read().ok_or(malformed)?, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(first: u8) -> ClusterKey {
        let mut bytes = [7; 32];
        bytes[0] = first;
        ClusterKey::new(&bytes)
    }

    fn header() -> FrameHeader {
        FrameHeader {
            from: BusPeer::Node(ClusterNodeId(3)),
            run: 1 << 33,
            to: BusPeer::Gateway(GatewayId(0x0102_0304)),
            sequence: 9,
        }
    }

    #[test]
    fn sealed_message_opens_with_the_same_key_only() {
        for message in [&b""[..], b"hello"] {
            let bytes = seal(&key(1), header(), message);
            assert_eq!(bytes.len(), message.len() + FRAME_OVERHEAD_BYTES);
            assert_eq!(open(&key(1), &bytes), Ok((header(), message)));
            assert_eq!(open(&key(2), &bytes), Err(BusRefusal::Forged));
        }
    }

    #[test]
    fn all_is_a_receiver_and_no_sender() {
        let to_all = FrameHeader {
            to: BusPeer::All,
            ..header()
        };
        let bytes = seal(&key(1), to_all, b"");
        assert_eq!(open(&key(1), &bytes), Ok((to_all, &b""[..])));
        let from_all = FrameHeader {
            from: BusPeer::All,
            ..header()
        };
        let bytes = seal(&key(1), from_all, b"");
        let malformed = BusRefusal::Malformed(bytes.len());
        assert_eq!(open(&key(1), &bytes), Err(malformed));
    }

    #[test]
    fn any_changed_bit_and_any_length_is_refused() {
        let bytes = seal(&key(1), header(), b"gold: 3");
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let expected = match bit / 8 {
                0..4 => BusRefusal::Malformed(bytes.len()),
                4..6 => BusRefusal::Version {
                    found: BUS_VERSION ^ 1 << (bit - 32),
                },
                _ => BusRefusal::Forged,
            };
            assert_eq!(open(&key(1), &changed), Err(expected), "bit {bit}");
        }
        for length in 0..bytes.len() {
            let refused = open(&key(1), &bytes[..length]).unwrap_err();
            let is_short = length < FRAME_OVERHEAD_BYTES;
            assert_eq!(refused == BusRefusal::Malformed(length), is_short);
        }
    }

    #[test]
    fn keys_are_read_from_hexadecimal_digits_and_not_shown() {
        let text = format!(" 01{}\n", "07".repeat(31));
        let read = ClusterKey::from_hex(&text).unwrap();
        let bytes = seal(&read, header(), b"");
        assert!(open(&key(1), &bytes).is_ok());
        assert_eq!(format!("{read:?}"), "ClusterKey(secret)");
        for (text, found) in [("", 0), ("07", 2), (&"0g".repeat(32), 64)] {
            assert_eq!(
                ClusterKey::from_hex(text).unwrap_err(),
                InvalidClusterKey { found }
            );
        }
    }
}
