//! The routes of a gateway: the node for the inputs of each player.

use std::collections::BTreeMap;

use throng_core::ids::PlayerId;

use crate::ids::ClusterNodeId;

/// The node for the inputs of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerRoute {
    /// The player.
    pub player: PlayerId,
    /// The epoch of the owner.
    pub epoch: u64,
    /// The node of the owner.
    pub node: ClusterNodeId,
}

/// The routes of a gateway. The route with the highest epoch of a player is valid, in any order of arrival.
#[derive(Clone, Debug, Default)]
pub struct PlayerRoutes(BTreeMap<PlayerId, PlayerRoute>);

impl PlayerRoutes {
    /// No routes.
    #[must_use]
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Handles the route that a node has sent. Returns the epoch to acknowledge: the highest that this gateway knows. O(log n).
    pub fn on_route(&mut self, route: PlayerRoute) -> u64 {
        let known = self.0.entry(route.player).or_insert(route);
        if route.epoch > known.epoch {
            *known = route;
        }
        known.epoch
    }

    /// The route of a player; `None` before the first.
    #[must_use]
    pub fn get(&self, player: PlayerId) -> Option<PlayerRoute> {
        self.0.get(&player).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn highest_epoch_is_the_route_in_any_order() {
        let route = |epoch| PlayerRoute {
            player: PlayerId(7),
            epoch,
            node: ClusterNodeId(epoch as u32),
        };
        let mut routes = PlayerRoutes::default();
        assert_eq!(routes.get(PlayerId(7)), None);
        let acknowledged = [2, 1, 3, 3, 2].map(|epoch| routes.on_route(route(epoch)));
        assert_eq!(acknowledged, [2, 2, 3, 3, 3]);
        assert_eq!(routes.get(PlayerId(7)), Some(route(3)));
    }
}
