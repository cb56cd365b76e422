//! Discovery of nodes and gateways: each broadcasts its presence over the bus.
//!
//! ```text
//! every 500 ms: PeerPresence ─▶ bus, to all ═▶ PeerDirectory ─▶ Appeared, Gone
//!                                               gateways: nodes for logins · nodes: gateways that need routes
//! ```
//!
//! | file | contains |
//! |---|---|
//! | `peer_presence` | the presence of a peer, and its bytes |
//! | `peer_directory` | the peers that a peer knows |
//!
//! A peer that sends nothing for 1.5 s is gone. A peer that stops sends a last message. Presence is a hint, like everything on the bus: the rows
//! decide which node is alive and which one owns a player.
//!
//! The id of a gateway is computed from its name ([`GatewayId::of_name`](crate::GatewayId::of_name)). If two processes have the same id, the one
//! that started later goes on, and the other one stops ([`PeerDirectory::clash`]).

mod peer_directory;
mod peer_presence;

pub use peer_directory::{KnownPeer, PeerChange, PeerClash, PeerDirectory};
pub use peer_presence::{PEER_NAME_BYTES_MAX, PeerPresence};
