//! Marker of an entity whose spawn is pending.

use bevy_ecs::component::Component;

/// On an entity while its [`SpawnRequest`](super::SpawnRequest) is pending. What an object takes over from others (a player's
/// entry in the list, a client's control) it takes over when this is removed, so a refused entity takes over nothing.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[component(clone_behavior = Ignore)]
pub struct SpawnPending;
