//! Which nodes and gateways are there: each broadcasts its presence over the bus.
//!
//! ```text
//! every 500 ms: PeerPresence ─▶ bus, to all ═▶ PeerDirectory ─▶ Appeared, Gone
//!                                               gateways: nodes for logins · nodes: gateways that need routes
//! ```
//!
//! | file | contains |
//! |---|---|
//! | `peer_presence` | what a peer says about itself, and its bytes |
//! | `peer_directory` | what a peer knows about the others |
//!
//! A peer that is silent for 1.5 s is gone; one that ends in order says so. Presence is a hint, as everything on the bus: rows decide which
//! node is alive and who owns a player.
//!
//! The id of a gateway follows from its name ([`GatewayId::of_name`](crate::GatewayId::of_name)). If two processes have the same id, the one
//! that started later goes on, and the other one stops ([`PeerDirectory::clash`]).

mod peer_directory;
mod peer_presence;

pub use peer_directory::{KnownPeer, PeerChange, PeerClash, PeerDirectory};
pub use peer_presence::{PEER_NAME_BYTES_MAX, PeerPresence};
