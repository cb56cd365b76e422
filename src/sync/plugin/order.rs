//! The order of replication within a tick.

use bevy_ecs::prelude::*;

/// What replication does in every tick, in this order, all within [`SimSystems::Replicate`](crate::sim::SimSystems::Replicate).
///
/// A system between two of these sees some of the tick's changes told and others not; what is to be told in this tick is
/// written before [`Mark`](Self::Mark).
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncSystems {
    /// Change detection marks what changed.
    Mark,
    /// Clients follow the sessions, what their objects see and whom they belong to; who is told in full is chosen.
    UpdateClients,
    /// Changed attributes that are due are encoded, the heartbeat's phased by object.
    Collect,
    /// The store is asked to keep what changed.
    Save,
    /// Motions, announcements and snapshots are encoded, each once for all who get it.
    Encode,
    /// Each client's list of messages is put together.
    Assemble,
}
