//! The refusal of a client that speaks another version of the protocol. Its format, and that of the first 54 bytes of a request, are the
//! same in all versions; the [module page](super) has both.
//!
//! A refusal is not sealed, because the server cannot read the token of another version. So a client does not believe it at once: it waits
//! a while for the challenge of a server that understands it. Only someone who sees the request can make a refusal for it.

use throng_protocol::wire::PROTOCOL_VERSION;

use crate::cipher::{HANDSHAKE_VERSION, LONG_NONCE_BYTES, VERSION_BYTES, version_in};

/// Byte 0 of a refusal.
pub(super) const REFUSAL: u8 = 13;

/// Length of the part of a request that is the same in all versions, in bytes.
const COMMON_BYTES: usize = 1 + VERSION_BYTES + 8 + 8 + LONG_NONCE_BYTES;

/// Length of a refusal, in bytes. Later versions may append to it.
pub(super) const REFUSAL_BYTES: usize = 1 + VERSION_BYTES + 8 + LONG_NONCE_BYTES;

/// The shortest request of another version that is answered, in bytes.
pub(super) const OTHER_REQUEST_BYTES_MIN: usize = 256;

/// The protocol version and game of a client or a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpokenProtocol {
    /// Version of the protocol; 0 if it is no version of this protocol.
    pub version: u32,
    /// Id of the game and its version.
    pub id: u64,
}

impl SpokenProtocol {
    /// This version, with the id of a game.
    pub const fn of_game(id: u64) -> Self {
        Self {
            version: PROTOCOL_VERSION,
            id,
        }
    }

    /// The version and game of the client that sent a request; `None` if the packet is too short for a request of any version.
    pub fn of_request(packet: &[u8]) -> Option<Self> {
        let head = packet.first_chunk::<COMMON_BYTES>()?;
        (packet.len() >= OTHER_REQUEST_BYTES_MIN).then(|| Self::read(head))?
    }

    /// Reads version and id after byte 0.
    fn read(packet: &[u8]) -> Option<Self> {
        let (version, rest) = packet.get(1..)?.split_first_chunk()?;
        Some(Self {
            version: version_in(version).unwrap_or(0),
            id: u64::from_le_bytes(*rest.first_chunk()?),
        })
    }
}

/// Replaces `answer` by the refusal of a request, for which [`SpokenProtocol::of_request`] has a value.
pub(super) fn write_refusal(id: u64, request: &[u8], answer: &mut Vec<u8>) {
    answer.clear();
    answer.push(REFUSAL);
    answer.extend_from_slice(&HANDSHAKE_VERSION);
    answer.extend_from_slice(&id.to_le_bytes());
    answer.extend_from_slice(&request[COMMON_BYTES - LONG_NONCE_BYTES..COMMON_BYTES]);
    debug_assert!(answer.len() == REFUSAL_BYTES && answer.len() < request.len());
}

/// The version and game of the server, from its refusal of the request with this nonce; `None` for other packets.
pub(super) fn read_refusal(
    packet: &[u8],
    nonce: &[u8; LONG_NONCE_BYTES],
) -> Option<SpokenProtocol> {
    let refusal = packet.first_chunk::<REFUSAL_BYTES>()?;
    let is_ours = refusal[0] == REFUSAL && refusal.ends_with(nonce);
    SpokenProtocol::read(refusal).filter(|server| is_ours && server.version != 0)
}
