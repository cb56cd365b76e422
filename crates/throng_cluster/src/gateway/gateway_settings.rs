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
    /// Nodes for clients whose player is not known to be on a node, in addition to those that broadcast their presence.
    pub login_nodes: BTreeSet<ClusterNodeId>,
    /// Times and limits of the links to nodes.
    pub links: LinkSettings,
    /// How long a client whose node is gone waits for another one to claim its player, in milliseconds. Then it is closed.
    pub node_wait_ms: u64,
    /// Maximum number of messages of a client that wait for its next node. Beyond it, older *Inputs* are dropped; a client without any is
    /// closed.
    pub waiting_messages_max: usize,
    /// The same in bytes.
    pub waiting_bytes_max: usize,
}

impl Default for GatewaySettings {
    /// No nodes for logins; clients wait for five seconds, with 256 messages or 64 KiB.
    fn default() -> Self {
        Self {
            name: String::new(),
            protocol_id: 0,
            login_nodes: BTreeSet::new(),
            links: LinkSettings::default(),
            node_wait_ms: 5_000,
            waiting_messages_max: 256,
            waiting_bytes_max: 64 << 10,
        }
    }
}
