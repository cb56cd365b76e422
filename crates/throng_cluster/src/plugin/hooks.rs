//! What a game does when players come and go.

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
    /// This node does not own it any more: the node was cut off from the store, or the player has been elsewhere in the meantime. What was
    /// not saved is lost.
    Lost,
}

/// The hooks of a game. They are called in the tick, on the thread of the schedule.
pub trait PlayerHooks: Send + Sync + 'static {
    /// Encodes a player: everything that goes with it to another node, and is saved. Called often, so it should be fast, and it should return
    /// equal bytes for equal states.
    fn on_collect(&self, world: &World, player: Entity) -> Vec<u8>;

    /// Spawns a player from its record, never from default values. The revision 0 is that of a new player, with no bytes.
    fn on_receive(&self, world: &mut World, player: PlayerId, record: &ClusterRecord) -> Entity;

    /// A player leaves; its entity still exists, and is despawned after this.
    fn on_leave(&self, world: &mut World, player: Entity, reason: LeaveReason) {
        let _ = (world, player, reason);
    }

    /// A player has arrived, and its entity is complete.
    fn on_arrive(&self, world: &mut World, player: Entity) {
        let _ = (world, player);
    }
}

/// The hooks, and how often players are collected.
#[derive(Resource, Clone)]
pub(super) struct SharedHooks {
    pub hooks: Arc<dyn PlayerHooks>,
    pub collect_interval_ticks: u32,
}
