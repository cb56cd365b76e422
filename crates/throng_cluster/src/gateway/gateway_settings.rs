//! Settings of a gateway.

use std::collections::BTreeSet;

use crate::ids::ClusterNodeId;
use crate::link::LinkSettings;

/// Settings of a [`ClientGateway`](super::ClientGateway).
///
/// ```
/// use throng_cluster::{ClusterNodeId, GatewaySettings};
///
/// // New players log in at these two nodes.
/// let settings = GatewaySettings { login_nodes: [ClusterNodeId(1), ClusterNodeId(2)].into(), ..GatewaySettings::default() };
/// assert_eq!(settings.links.piece_bytes, 30_000);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewaySettings {
    /// Its name, for other peers and for people.
    pub name: String,
    /// The id of the game and its version, as in connect tokens. Nodes with another one get no clients.
    pub protocol_id: u64,
    /// Nodes for clients without a route to their player, in addition to the nodes that broadcast their presence.
    pub login_nodes: BTreeSet<ClusterNodeId>,
    /// Times and limits of the links to nodes.
    pub links: LinkSettings,
    /// How long messages of clients and nodes are collected before they are passed on together, in milliseconds. It is the longest delay
    /// that the gateway itself adds in each direction, and saves most of the work of the bus.
    pub batch_ms: u64,
    /// How long a client waits for a node, in milliseconds, for example until another node has claimed its player. Then it is closed.
    pub node_wait_ms: u64,
    /// Maximum number of messages of a client that wait for its next node. At the limit, the oldest *Input* is dropped. If there is none, the
    /// client is closed.
    pub waiting_messages_max: usize,
    /// The same in bytes.
    pub waiting_bytes_max: usize,
}

impl Default for GatewaySettings {
    /// Only nodes that broadcast their presence. Messages are collected for 4 ms. Clients wait for 5 s, with up to 256 messages and 64 KiB.
    fn default() -> Self {
        Self {
            name: String::new(),
            protocol_id: 0,
            login_nodes: BTreeSet::new(),
            links: LinkSettings::default(),
            batch_ms: 4,
            node_wait_ms: 5_000,
            waiting_messages_max: 256,
            waiting_bytes_max: 64 << 10,
        }
    }
}
