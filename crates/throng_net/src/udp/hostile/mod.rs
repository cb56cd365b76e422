//! Hostile clients, for the trial `throng bench hostile` and for tests. No part of a server.
//!
//! | file | contents |
//! |---|---|
//! | `packets` | datagrams that a server has to refuse |
//! | `memory_peer` | a client that makes the server hold as much memory as the protocol allows |
//! | `any_source` | a socket that sends from any address of this machine |

#[cfg(target_os = "linux")]
mod any_source;
mod memory_peer;
mod packets;
#[cfg(test)]
mod tests;

#[cfg(target_os = "linux")]
pub use any_source::AnySource;
pub use memory_peer::HostileMemoryPeer;
pub use packets::{HostileKind, HostilePackets, request_of};
