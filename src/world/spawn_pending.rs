//! Marker of an entity whose spawn is pending.

use bevy_ecs::component::Component;

/// Is on an entity as long as its [`SpawnRequest`](super::SpawnRequest) waits for an answer. Whatever an object would take
/// from others (a player's name in the list, a client's control) it takes when this is gone, so that who is refused takes
/// nothing.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[component(clone_behavior = Ignore)]
pub struct SpawnPending;
