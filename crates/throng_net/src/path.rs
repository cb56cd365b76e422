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
//! | 5–12 | run of the server, from the same packet |
//! | | a sealed packet |

use std::net::SocketAddr;

use throng_protocol::wire::ClientId;

use super::reset::RunId;

/// Byte 0 of a packet with a number.
const NUMBERED: u8 = 15;

/// Bytes before the sealed packet.
pub(super) const NUMBERED_HEADER_BYTES: usize = 5 + size_of::<RunId>();

/// The random content of a path challenge.
pub(super) type PathSecret = [u8; 8];

/// An address to which a client may have moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathCandidate {
    pub address: SocketAddr,
    pub secret: PathSecret,
}

/// Replaces `packet` by a packet with the number of its connection in a run of the server.
pub(super) fn write_numbered(number: u32, run: RunId, sealed: &[u8], packet: &mut Vec<u8>) {
    packet.clear();
    packet.push(NUMBERED);
    packet.extend_from_slice(&number.to_le_bytes());
    packet.extend_from_slice(&run);
    packet.extend_from_slice(sealed);
}

/// A packet with a number.
#[derive(Debug)]
pub(super) struct NumberedPacket<'p> {
    pub client: ClientId,
    pub run: RunId,
    pub sealed: &'p mut [u8],
}

/// Reads a packet with a number; `None` for other packets.
pub(super) fn read_numbered(packet: &mut [u8]) -> Option<NumberedPacket<'_>> {
    let (head, sealed) = packet.split_first_chunk_mut::<NUMBERED_HEADER_BYTES>()?;
    let [NUMBERED, n0, n1, n2, n3, run @ ..] = *head else {
        return None;
    };
    Some(NumberedPacket {
        client: ClientId(u32::from_le_bytes([n0, n1, n2, n3])),
        run,
        sealed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_with_a_number_reads_back() {
        let mut packet = vec![9; 3];
        write_numbered(0x0102_0304, [7; 8], b"sealed", &mut packet);
        let read = read_numbered(&mut packet).unwrap();
        assert_eq!((read.client.0, read.run), (0x0102_0304, [7; 8]));
        assert_eq!(&*read.sealed, b"sealed");
        assert!(read_numbered(&mut packet[..12]).is_none());
        packet[0] = 5;
        assert!(read_numbered(&mut packet).is_none());
    }
}
