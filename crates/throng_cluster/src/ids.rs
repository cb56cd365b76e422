//! Nodes, their runs, gateways and records.

use ring::digest::{SHA256, digest};

/// A node of the cluster. It keeps its id when it restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterNodeId(pub u32);

/// A run of a node. A new run begins when the process starts, and when the store has declared the former run dead or has refused one of its
/// writes. A pause does not end a run. Runs own players and scenes; nodes do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeRun {
    /// The node.
    pub node: ClusterNodeId,
    /// Counts the runs of the node. A process begins at a multiple of [`RUNS_PER_PROCESS`](crate::RUNS_PER_PROCESS).
    pub run: u64,
}

/// A gateway of the cluster. No two gateways that run have the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GatewayId(pub u32);

impl GatewayId {
    /// The id of a gateway with this name: the first four bytes of its SHA-256, in little endian. Two names of a cluster with 100 gateways have
    /// the same id once in a million clusters; then the gateway that started first stops with an error.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        let digest = digest(&SHA256, name.as_bytes());
        let first = digest.as_ref().first_chunk().copied();
        Self(u32::from_le_bytes(first.unwrap_or_default()))
    }
}

/// The state of a player as the store keeps it, and as a hand-off carries it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterRecord {
    /// Counts the changes. A record with a lower revision never replaces one with a higher revision.
    pub revision: u64,
    /// The state, as the game encodes it.
    pub bytes: Vec<u8>,
}
