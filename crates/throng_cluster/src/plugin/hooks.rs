//! The hooks of a game for its players.

use std::sync::Arc;

use bevy_ecs::prelude::*;
use throng_core::ids::PlayerId;

use crate::ids::ClusterRecord;

/// Why a player leaves a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveReason {
    /// It was handed off to another node.
    Moved,
    /// It has logged out, and is saved.
    LoggedOut,
    /// This node does not own it any more: its run was declared dead while it could not reach the store, a write was refused, or the player has
    /// been on another node in the meantime. Changes that were not saved are lost. Also sent when the node was closed.
    Lost,
}

/// The hooks of a game. They are called in the tick, on the thread of the schedule.
pub trait PlayerHooks: Send + Sync + 'static {
    /// Encodes the state of a player that is saved and goes with it to another node. It is called often, so it should be fast. It should return
    /// equal bytes for equal states.
    fn on_collect(&self, world: &World, player: Entity) -> Vec<u8>;

    /// Spawns a player from its record, never from default values. A new player has revision 0 and no bytes.
    fn on_receive(&self, world: &mut World, player: PlayerId, record: &ClusterRecord) -> Entity;

    /// A player leaves. Its entity still exists, and is despawned after this call.
    fn on_leave(&self, world: &mut World, player: Entity, reason: LeaveReason) {
        let _ = (world, player, reason);
    }

    /// A player has arrived, and its entity is complete.
    fn on_arrive(&self, world: &mut World, player: Entity) {
        let _ = (world, player);
    }
}

/// The hooks, and the interval of collections.
#[derive(Resource, Clone)]
pub(super) struct SharedHooks {
    pub hooks: Arc<dyn PlayerHooks>,
    pub collect_interval_ticks: u32,
}
