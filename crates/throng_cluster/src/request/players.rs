//! What a request about players elsewhere finds.

use throng_core::ids::PlayerId;

use crate::ids::{ClusterRecord, NodeRun};

/// What the store knows about a player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerEntry {
    /// The player.
    pub player: PlayerId,
    /// The run that owns it, which may have ended since; `None`: it is logged out.
    pub owner: Option<NodeRun>,
    /// Its saved state, if it was requested.
    pub record: Option<ClusterRecord>,
}
