//! The handshake, from a token to a connection: the client's side, and the server's side for addresses without a connection. The tokens
//! are those of netcode 1.02, and the request is the same except for its version; what follows is not, because the keys of a netcode
//! connection depend on the token only.
//!
//! ```text
//! client  ── request: the token's sealed part, 1,078 bytes ──▶  server: genuine, for this server, not expired, unused?
//!         ◀── challenge: 32 random bytes ──────────────────         (an entry in the table of half-open handshakes)
//!         ── response: these, and 32 random bytes of the client ──▶  the address is proven: the client is admitted
//!         ◀── keep alive, sealed with the connection's key ────
//! ```
//!
//! | bytes | a request |
//! |---|---|
//! | 0 | 0 |
//! | 1–13 | `THRONG NET\0`, and [`PROTOCOL_VERSION`](throng_protocol::wire::PROTOCOL_VERSION) in 2 bytes, little endian |
//! | 14–29 | protocol id and expiry, as in the token |
//! | 30–53 | nonce of the token. If it begins with `key\0`, the next 4 bytes are the id of the token's key, little endian |
//! | 54–1,077 | sealed part of the token |
//!
//! | file | contents |
//! |---|---|
//! | `server` | the server's side |
//! | `request_bucket` | the rate of requests |
//! | `used_tokens` | tokens that were used |
//! | `client` | the client's side |
//! | `version` | the refusal of other versions |
//!
//! A request of another version or with another protocol id is answered by a refusal, which is not sealed:
//!
//! | bytes | a refusal |
//! |---|---|
//! | 0 | 13 |
//! | 1–13 | as in a request, with the version of the server |
//! | 14–21 | protocol id of the server |
//! | 22–45 | bytes 30–53 of the request |
//!
//! Invariants: until an address is proven, the server sends fewer bytes to it than it received from it. A packet without a token costs one
//! hash lookup. Memory does not grow with packets of unauthenticated clients. A token admits one client once at each server; that client may
//! return with it after its connection was lost. The keys of a
//! connection are derived from the token and random bytes of both ends, so no packet number is used twice with a key, whatever happens to
//! the token.
//!
//! Cost: 4 µs for a request whose token has to be decrypted. At most [`ServerHandshakeSettings::half_open_max`] half-open handshakes of
//! about 500 bytes.

mod client;
mod request_bucket;
mod server;
#[cfg(test)]
mod tests;
mod used_tokens;
mod version;

pub use client::{ClientHandshake, ClientHandshakeError};
#[cfg(feature = "http")]
pub(crate) use request_bucket::RequestBucket;
pub(crate) use server::ClientReturns;
pub use server::{
    AcceptedClient, ServerHandshake, ServerHandshakeError, ServerHandshakeSettings, TokenIdentity,
};
pub(crate) use used_tokens::TokenUse;
pub use used_tokens::UsedTokens;

use std::net::IpAddr;

use super::token::PRIVATE_BYTES;

/// Length of a request, in bytes.
pub(super) const REQUEST_BYTES: usize = 1 + 13 + 8 + 8 + 24 + PRIVATE_BYTES;

/// The address by which rate limits count: an IPv4 address, or the 64-bit network of an IPv6 address. A socket on `[::]` reports IPv4 peers
/// as `::ffff:a.b.c.d`; these count as IPv4 addresses.
pub(super) fn network_of(ip: IpAddr) -> (bool, u64) {
    match ip.to_canonical() {
        IpAddr::V4(ip) => (true, u64::from(ip.to_bits())),
        IpAddr::V6(ip) => (false, (ip.to_bits() >> 64) as u64),
    }
}

/// The wider network by which rate limits count as well: the 24 bits of an IPv4 address, or the 48 bits of an IPv6 address that a site
/// usually has. Such a site has 65,536 networks of 64 bits, with which it could empty the buckets of everybody.
pub(super) fn site_of(ip: IpAddr) -> (bool, u64) {
    match network_of(ip) {
        (true, network) => (true, network >> 8),
        (false, network) => (false, network >> 16),
    }
}
