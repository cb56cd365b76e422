//! The reply to a request about players on any node.

use throng_core::ids::PlayerId;

use crate::ids::{ClusterRecord, NodeRun};

/// What the store knows about a player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerEntry {
    /// The player.
    pub player: PlayerId,
    /// The run that owns it, which may have ended since then; `None`: it is logged out.
    pub owner: Option<NodeRun>,
    /// The epoch of its owner.
    pub epoch: u64,
    /// Whether the owner has adopted it.
    pub is_adopted: bool,
    /// Its saved state, if it was requested.
    pub record: Option<ClusterRecord>,
}
