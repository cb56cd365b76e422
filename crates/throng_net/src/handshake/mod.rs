//! From a token to a connection, by netcode 1.02's standard: the client's part, and the server's for addresses of which it knows
//! nothing yet.
//!
//! ```text
//! client  ── request: the token's sealed part, 1,078 bytes ──▶  gate: is it genuine, for here, in time, unused?
//!         ◀── challenge, 333 bytes at most ───────────────────         (an entry among the half open)
//!         ── response: the challenge, sealed with the token's key ──▶  the address is proven: the client is admitted
//!         ◀── keep alive ─────────────────────────────────────
//! ```
//! | file | holds |
//! |---|---|
//! | `gate` | the server's part |
//! | `seen` | tokens that were seen |
//! | `client` | the client's |
//!
//! Invariants: until an address is proven, what is sent there is less than what came from it; who has no token takes a look at
//! a hash and no more; nothing grows with what strangers send. A token admits once: the keys in it belong to one connection, so
//! that no number is used twice on a key.
//!
//! Cost: a request that gets as far as its seal 4 µs; half open are at most [`ServerHandshakeSettings::half_open_max`], of about 200 bytes.

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

/// Bytes of a request.
pub(super) const REQUEST_BYTES: usize = 1 + 13 + 8 + 8 + 24 + PRIVATE_BYTES;

/// Bytes of a challenge, sealed.
const CHALLENGE_BYTES: usize = 300;

/// The address that limits count: an IPv4 address, or the 64-bit network of an IPv6 address. A socket on `[::]` reports IPv4 peers
/// as `::ffff:a.b.c.d`; these count as the IPv4 address that they are.
pub(super) fn network_of(ip: IpAddr) -> (bool, u64) {
    match ip.to_canonical() {
        IpAddr::V4(ip) => (true, u64::from(ip.to_bits())),
        IpAddr::V6(ip) => (false, (ip.to_bits() >> 64) as u64),
    }
}
