//! Migration of a client to another address: how its connection is found, and how the address is proven.
//!
//! ```text
//! client, new address ── its number, and a sealed packet ──▶  newest packet of the connection? then this may be its address
//!                     ◀── path challenge, sealed ───────────  (all other packets still go to the old address)
//!                     ── its number, and the response ─────▶  the address is proven
//! ```
//!
//! A client sends numbered packets when it no longer receives any, because its address may have changed without its knowledge. Until the
//! address is proven, the server sends at most one challenge per packet from it, and the challenge is not longer than that packet.
//!
//! | bytes | a packet with a number |
//! |---|---|
//! | 0 | 15 |
//! | 1–4 | number of the connection, from the first keep-alive packet, little endian |
//! | | a sealed packet |

use std::net::SocketAddr;

use throng_protocol::wire::ClientId;

/// Byte 0 of a packet with a number.
const NUMBERED: u8 = 15;

/// Bytes before the sealed packet.
pub(super) const NUMBERED_HEADER_BYTES: usize = 5;

/// The random content of a path challenge.
pub(super) type PathSecret = [u8; 8];

/// An address to which a client may have moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathCandidate {
    pub address: SocketAddr,
    pub secret: PathSecret,
}

/// Replaces `packet` by a packet with the number of its connection.
pub(super) fn write_numbered(number: u32, sealed: &[u8], packet: &mut Vec<u8>) {
    packet.clear();
    packet.push(NUMBERED);
    packet.extend_from_slice(&number.to_le_bytes());
    packet.extend_from_slice(sealed);
}

/// The client and the sealed packet inside a packet with a number; `None` for other packets.
pub(super) fn read_numbered(packet: &mut [u8]) -> Option<(ClientId, &mut [u8])> {
    let (head, sealed) = packet.split_first_chunk_mut::<NUMBERED_HEADER_BYTES>()?;
    let [NUMBERED, number @ ..] = *head else {
        return None;
    };
    Some((ClientId(u32::from_le_bytes(number)), sealed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_with_a_number_reads_back() {
        let mut packet = vec![9; 3];
        write_numbered(0x0102_0304, b"sealed", &mut packet);
        let (client, sealed) = read_numbered(&mut packet).unwrap();
        assert_eq!((client.0, &*sealed), (0x0102_0304, &b"sealed"[..]));
        assert!(read_numbered(&mut packet[..4]).is_none());
        packet[0] = 5;
        assert!(read_numbered(&mut packet).is_none());
    }
}
