//! The nodes that a gateway knows.

use std::collections::BTreeSet;

use crate::bus::BusPeer;
use crate::ids::ClusterNodeId;
use crate::presence::PeerDirectory;

/// The nodes that a gateway knows, and which of them take new players.
#[derive(Debug)]
pub(super) struct LoginNodes {
    pub directory: PeerDirectory,
    /// The nodes of the settings. They need no presence.
    fixed: BTreeSet<ClusterNodeId>,
}

impl LoginNodes {
    pub const fn new(directory: PeerDirectory, fixed: BTreeSet<ClusterNodeId>) -> Self {
        Self { directory, fixed }
    }

    /// The nodes that take new players, by ascending id.
    pub fn open(&self) -> BTreeSet<ClusterNodeId> {
        let is_open = |node: &ClusterNodeId| {
            let known = self.directory.get(BusPeer::Node(*node));
            known.is_none_or(|known| !known.presence.is_draining)
        };
        let fixed = self.fixed.iter().copied().filter(is_open);
        fixed.chain(self.directory.login_nodes()).collect()
    }

    /// All nodes that broadcast their presence or are in the settings, by ascending id.
    pub fn all(&self) -> BTreeSet<ClusterNodeId> {
        let present = self.directory.peers().filter_map(|(peer, _)| match peer {
            BusPeer::Node(node) => Some(node),
            _ => None,
        });
        self.fixed.iter().copied().chain(present).collect()
    }
}
