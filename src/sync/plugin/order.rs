//! The order of replication within a tick.

use bevy_ecs::prelude::*;

/// The steps of replication in every tick, in this order, all within [`SimSystems::Replicate`](crate::sim::SimSystems::Replicate).
///
/// A system between two of these finds some of the tick's changes sent and others not; write changes for this tick
/// before [`Mark`](Self::Mark).
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncSystems {
    /// Change detection marks what changed.
    Mark,
    /// Client states are updated from sessions, views and affiliations; objects to be sent in full are selected.
    UpdateClients,
    /// Scheduled attributes are encoded, those of the heartbeat phased by object.
    Collect,
    /// Changes are requested to be saved.
    Save,
    /// Motions, announcements and snapshots are encoded, each once for all receivers.
    Encode,
    /// Each client's list of messages is assembled.
    Assemble,
}
