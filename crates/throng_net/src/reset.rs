//! Stateless resets: a server that does not know a connection, because it restarted or gave the connection up, notifies the client. The
//! client need not wait for its timeout.
//!
//! ```text
//! handshake:  client ◀── run of the server, token of the connection ── server: HMAC(its secret, run and number of the connection)
//! later:      client ── its number and the run, a sealed packet ──▶ the server, restarted: it has no such connection
//!             client ◀── reset: the same token ────────────────────
//! ```
//!
//! The secret is derived from the private key and the addresses of the server, so it survives a restart, and other servers with the same
//! key have other secrets: a server that never had the connection cannot be made to reset it. The server stores nothing for a reset.
//! Only the two ends know the token, until it is sent; then the connection is over.
//!
//! | bytes | a reset |
//! |---|---|
//! | 0 | 14 |
//! | 1 | 0: the server restarted. 1: it gave the connection up |
//! | 2–17 | token of the connection |

use std::net::SocketAddr;

use ring::hmac;
use throng_protocol::wire::ClientId;

use super::cipher::{RandomnessUnavailable, SecretKey, random_bytes};

/// Byte 0 of a reset.
const RESET: u8 = 14;

const TOKEN_BYTES: usize = 16;

/// Length of a reset, in bytes. It is shorter than any packet that causes one.
pub(super) const RESET_BYTES: usize = 2 + TOKEN_BYTES;

/// Random number of a server's run, from its start to its end.
pub(super) type RunId = [u8; 8];

/// The data with which a client recognises a reset of its connection. Keep-alive packets of the server contain it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ResetGrant {
    pub run: RunId,
    token: [u8; TOKEN_BYTES],
}

/// Why a server resets a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResetCause {
    /// It restarted.
    Restarted,
    /// It has ended the connection.
    Ended,
}

impl ResetGrant {
    /// Length of its encoding, in bytes.
    pub const BYTES: usize = size_of::<RunId>() + TOKEN_BYTES;

    /// Encodes it.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let (run, token) = bytes.split_at_mut(self.run.len());
        run.copy_from_slice(&self.run);
        token.copy_from_slice(&self.token);
        bytes
    }

    /// Decodes it; `None` if the bytes end too early.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (run, token) = bytes.split_first_chunk()?;
        Some(Self {
            run: *run,
            token: *token.first_chunk()?,
        })
    }

    /// Why the server has reset this connection; `None` if the packet is no reset of it.
    pub fn read_reset(&self, packet: &[u8]) -> Option<ResetCause> {
        let [RESET, cause, token @ ..] = packet else {
            return None;
        };
        let token: &[u8; TOKEN_BYTES] = token.try_into().ok()?;
        // In constant time, so that the token cannot be found byte by byte.
        let different = token.iter().zip(&self.token);
        let different = different.fold(0, |all, (one, other)| all | (one ^ other));
        (different == 0 && self.token != [0; _]).then_some(match cause {
            0 => ResetCause::Restarted,
            _ => ResetCause::Ended,
        })
    }
}

/// The secret of a server, and its run.
#[derive(Debug)]
pub(super) struct ResetKey {
    secret: hmac::Key,
    run: RunId,
}

impl ResetKey {
    /// The secret of the server with this private key at these addresses, in a new run.
    ///
    /// # Errors
    /// [`RandomnessUnavailable`] if the system provides no random bytes.
    pub fn new(
        private_key: &SecretKey,
        addresses: &[SocketAddr],
    ) -> Result<Self, RandomnessUnavailable> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &private_key.0);
        let mut server = hmac::Context::with_key(&key);
        server.update(b"throng reset");
        let mut addresses: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
        addresses.sort_unstable();
        for address in addresses {
            server.update(address.as_bytes());
            server.update(b"\n");
        }
        Ok(Self {
            secret: hmac::Key::new(hmac::HMAC_SHA256, server.sign().as_ref()),
            run: random_bytes()?,
        })
    }

    /// The run of the server.
    pub const fn run(&self) -> RunId {
        self.run
    }

    /// The data for the client of a connection.
    pub fn grant(&self, client: ClientId) -> ResetGrant {
        self.grant_of_run(self.run, client)
    }

    fn grant_of_run(&self, run: RunId, client: ClientId) -> ResetGrant {
        let [c0, c1, c2, c3] = client.0.to_le_bytes();
        let [r0, r1, r2, r3, r4, r5, r6, r7] = run;
        let of = [r0, r1, r2, r3, r4, r5, r6, r7, c0, c1, c2, c3];
        let signed = hmac::sign(&self.secret, &of);
        let token = signed.as_ref().first_chunk().copied();
        ResetGrant {
            run,
            token: token.unwrap_or_default(),
        }
    }

    /// Replaces `packet` by the reset of a connection of some run, which this server does not know.
    pub fn write_reset(&self, run: RunId, client: ClientId, packet: &mut Vec<u8>) {
        let cause = u8::from(run == self.run);
        packet.clear();
        packet.extend_from_slice(&[RESET, cause]);
        packet.extend_from_slice(&self.grant_of_run(run, client).token);
        debug_assert_eq!(packet.len(), RESET_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(private: u8, address: &str) -> ResetKey {
        ResetKey::new(&SecretKey([private; 32]), &[address.parse().unwrap()]).unwrap()
    }

    /// What the client of a connection to one server reads in the reset of another server.
    fn cause(of: &ResetKey, by: &ResetKey, client: u32) -> Option<ResetCause> {
        let grant = ResetGrant::read(&of.grant(ClientId(7)).to_bytes()).unwrap();
        let mut packet = Vec::new();
        by.write_reset(of.run(), ClientId(client), &mut packet);
        grant.read_reset(&packet)
    }

    #[test]
    fn only_the_same_server_resets_a_connection() {
        let server = key(1, "10.0.0.1:7000");
        let restarted = key(1, "10.0.0.1:7000");
        assert_ne!(server.run(), restarted.run());
        assert_eq!(cause(&server, &restarted, 7), Some(ResetCause::Restarted));
        assert_eq!(cause(&server, &server, 7), Some(ResetCause::Ended));
        assert_eq!(cause(&server, &restarted, 8), None, "another connection");
        let elsewhere = key(1, "10.0.0.1:7001");
        assert_eq!(cause(&server, &elsewhere, 7), None, "another server");
        let other_key = key(2, "10.0.0.1:7000");
        assert_eq!(cause(&server, &other_key, 7), None, "another key");
    }

    #[test]
    fn malformed_reset_is_ignored() {
        let server = key(1, "10.0.0.1:7000");
        let grant = server.grant(ClientId(7));
        let mut packet = Vec::new();
        server.write_reset(server.run(), ClientId(7), &mut packet);
        for at in [0, 2, RESET_BYTES - 1] {
            let mut changed = packet.clone();
            changed[at] ^= 0x80;
            assert_eq!(grant.read_reset(&changed), None);
        }
        assert_eq!(grant.read_reset(&packet[..RESET_BYTES - 1]), None);
        // Before the server has sent a token, nothing is a reset.
        let nothing = [&[RESET, 0][..], &[0; TOKEN_BYTES]].concat();
        assert_eq!(ResetGrant::default().read_reset(&nothing), None);
    }
}
