//! The handshake of netcode 1.02, from a token to a connection: the client's side, and the server's side for addresses without a
//! connection.
//!
//! ```text
//! client  ── request: the token's sealed part, 1,078 bytes ──▶  server: genuine, for this server, not expired, unused?
//!         ◀── challenge, at most 333 bytes ────────────────         (an entry in the table of half-open handshakes)
//!         ── response: the challenge, sealed with the token's key ──▶  the address is proven: the client is admitted
//!         ◀── keep alive ──────────────────────────────────
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `server` | the server's side |
//! | `used_tokens` | tokens that were used |
//! | `client` | the client's side |
//!
//! Invariants: until an address is proven, the server sends fewer bytes to it than it received from it. A packet without a token costs one
//! hash lookup. Memory does not grow with packets of unauthenticated clients. A token admits one client once, because its keys belong to
//! one connection; so no packet number is used twice with a key.
//!
//! Cost: 4 µs for a request whose token has to be decrypted. At most [`ServerHandshakeSettings::half_open_max`] half-open handshakes of
//! about 200 bytes.

mod client;
mod server;
#[cfg(test)]
mod tests;
mod used_tokens;

pub use client::{ClientHandshake, ClientHandshakeError};
#[cfg(feature = "webtransport")]
pub(crate) use server::RequestBucket;
pub use server::{
    AcceptedClient, ServerHandshake, ServerHandshakeError, ServerHandshakeSettings, TokenIdentity,
};
pub use used_tokens::UsedTokens;

use std::net::IpAddr;

use super::token::PRIVATE_BYTES;

/// Length of a request, in bytes.
pub(super) const REQUEST_BYTES: usize = 1 + 13 + 8 + 8 + 24 + PRIVATE_BYTES;

/// Length of the sealed content of a challenge, in bytes.
const CHALLENGE_BYTES: usize = 300;

/// The address by which rate limits count: an IPv4 address, or the 64-bit network of an IPv6 address. A socket on `[::]` reports IPv4 peers
/// as `::ffff:a.b.c.d`; these count as IPv4 addresses.
pub(super) fn network_of(ip: IpAddr) -> (bool, u64) {
    match ip.to_canonical() {
        IpAddr::V4(ip) => (true, u64::from(ip.to_bits())),
        IpAddr::V6(ip) => (false, (ip.to_bits() >> 64) as u64),
    }
}
