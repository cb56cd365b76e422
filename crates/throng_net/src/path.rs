//! A client that speaks from another address than before: by which connection it is known, and how the address is proven.
//!
//! ```text
//! client, from anywhere ── its number, and a sealed packet ──▶  newest of the connection? then this may be where it is now
//!                       ◀── path challenge, sealed ──────────   (all else still goes to where it was)
//!                       ── its number, and the answer ───────▶  it is there
//! ```
//! A client does so when it hears nothing any more, since its address may be another one without its knowing. Until the address is proven, it is sent
//! one challenge a packet that came from it, which is no longer than that.
//!
//! | bytes | a packet with a number |
//! |---|---|
//! | 0 | 15 |
//! | 1–4 | the number of the connection, as the first keep-alive told it, little endian |
//! | | a sealed packet |

use std::net::SocketAddr;

use throng_protocol::wire::ClientId;

/// What byte 0 of a packet with a number is.
const NUMBERED: u8 = 15;

/// Bytes before the sealed packet.
pub(super) const NUMBERED_HEADER_BYTES: usize = 5;

/// What a challenge holds, so that nobody guesses the answer.
pub(super) type PathSecret = [u8; 8];

/// An address at which a client may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathCandidate {
    pub address: SocketAddr,
    pub secret: PathSecret,
}

/// Writes a packet with its connection's number over what `packet` holds.
pub(super) fn write_numbered(number: u32, sealed: &[u8], packet: &mut Vec<u8>) {
    packet.clear();
    packet.push(NUMBERED);
    packet.extend_from_slice(&number.to_le_bytes());
    packet.extend_from_slice(sealed);
}

/// The client and the sealed packet of one with a number; `None` where it is none.
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
