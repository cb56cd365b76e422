//! What a node reports to others: its load, and routes to its players.

use throng_core::ids::PlayerId;

use super::held_player::HeldState;
use super::{ClusterNode, NodeOutput};
use crate::ids::{ClusterNodeId, GatewayId};
use crate::routes::PlayerRoute;

/// A route that a gateway has not acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueuedRoute {
    route: PlayerRoute,
    /// When this node froze the player to hand it off.
    frozen_since_ms: Option<u64>,
    /// When it is sent next.
    next_ms: u64,
}

impl ClusterNode {
    /// Its load, as it was set last.
    #[must_use]
    pub const fn load(&self) -> u32 {
        self.scenes.load
    }

    /// Adds a gateway that has appeared or restarted, and queues routes for it to all players that this node owns. O(players).
    pub fn add_gateway(&mut self, gateway: GatewayId) {
        if !self.gateways.contains(&gateway) {
            self.gateways.push(gateway);
        }
        let node = self.run.node;
        // If the owner of a player is uncertain, the route of the real owner has a higher epoch and replaces this one.
        let owned = self.players.0.iter();
        let owned = owned.filter(|(_, held)| !matches!(held.state, HeldState::Moved { .. }));
        for (&player, held) in owned {
            let route = PlayerRoute {
                player,
                epoch: held.epoch,
                node,
            };
            let queued = QueuedRoute {
                route,
                frozen_since_ms: None,
                next_ms: 0,
            };
            self.routes.insert((gateway, player), queued);
        }
    }

    /// Removes a gateway that has disappeared, and its routes. O(routes that are not acknowledged).
    pub fn remove_gateway(&mut self, gateway: GatewayId) {
        self.gateways.retain(|known| *known != gateway);
        self.routes.retain(|(to, _), _| *to != gateway);
    }

    /// Handles the acknowledgement of a gateway: it knows the route of a player with this epoch.
    pub fn on_route_acknowledged(&mut self, gateway: GatewayId, player: PlayerId, epoch: u64) {
        let sent = self.routes.get(&(gateway, player));
        if sent.is_some_and(|sent| epoch >= sent.route.epoch) {
            self.routes.remove(&(gateway, player));
        }
    }

    pub(super) fn send_routes(&mut self, now_ms: u64, outputs: &mut Vec<NodeOutput>) {
        for ((gateway, _), queued) in &mut self.routes {
            if now_ms >= queued.next_ms {
                queued.next_ms = now_ms + self.settings.route_interval_ms;
                let frozen_ms = queued.frozen_since_ms;
                let frozen_ms = frozen_ms.map(|since| now_ms.saturating_sub(since));
                outputs.push(NodeOutput::Route {
                    gateway: *gateway,
                    route: queued.route,
                    frozen_ms: frozen_ms.map(|ms| u32::try_from(ms).unwrap_or(u32::MAX)),
                });
            }
        }
    }

    /// Queues a route to this node for all gateways.
    pub(super) fn route(&mut self, player: PlayerId, epoch: u64) {
        self.route_to(player, (epoch, self.run.node), None);
    }

    /// Queues a route to the node that has a player for all gateways. `frozen_since_ms`: this node has handed the player off.
    pub(super) fn route_to(
        &mut self,
        player: PlayerId,
        (epoch, node): (u64, ClusterNodeId),
        frozen_since_ms: Option<u64>,
    ) {
        for &gateway in &self.gateways {
            let queued = QueuedRoute {
                route: PlayerRoute {
                    player,
                    epoch,
                    node,
                },
                frozen_since_ms,
                next_ms: 0,
            };
            self.routes.insert((gateway, player), queued);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClusterReply, ClusterRequest, ClusterRows, NodeSettings};

    /// Polls the node, whose requests are executed at once. Returns the routes that it sends.
    fn routes(
        node: &mut ClusterNode,
        rows: &mut ClusterRows,
        times_ms: std::ops::Range<u64>,
    ) -> Vec<(GatewayId, PlayerId)> {
        let mut sent = Vec::new();
        for now_ms in times_ms.step_by(10) {
            for output in node.poll(now_ms) {
                match output {
                    NodeOutput::Store(id, request) => {
                        let reply = rows.execute(request, now_ms);
                        node.on_reply(now_ms, id, reply);
                    }
                    NodeOutput::Route { gateway, route, .. } => {
                        node.on_route_acknowledged(gateway, route.player, route.epoch);
                        sent.push((gateway, route.player));
                    }
                    _ => {}
                }
            }
        }
        sent
    }

    #[test]
    fn gateway_that_appears_gets_the_routes_of_all_players() {
        let mut rows = ClusterRows::default();
        let start = ClusterRequest::StartRun {
            name: "n1".to_owned(),
        };
        let ClusterReply::Started(run) = rows.execute(start, 0) else {
            panic!("not started")
        };
        let mut node = ClusterNode::new(run, NodeSettings::default(), Vec::new());
        let (one, other) = (GatewayId(1), GatewayId(2));
        let players = [7, 8].map(PlayerId);
        for player in players {
            node.log_in(player);
        }
        assert_eq!(routes(&mut node, &mut rows, 0..500), []);
        for gateway in [one, other, one] {
            // The last time it has restarted.
            node.add_gateway(gateway);
            let sent = routes(&mut node, &mut rows, 500..600);
            assert_eq!(sent, players.map(|player| (gateway, player)));
        }
        node.remove_gateway(one);
        node.log_in(PlayerId(9));
        let sent = routes(&mut node, &mut rows, 600..1_100);
        assert_eq!(sent, [(other, PlayerId(9))]);
        // What it did not acknowledge is dropped with it.
        node.add_gateway(one);
        node.remove_gateway(one);
        assert_eq!(routes(&mut node, &mut rows, 1_100..1_200), []);
    }

    #[test]
    fn former_node_sends_the_route_to_the_new_one() {
        let mut rows = ClusterRows::default();
        let runs = ["n1", "n2"].map(|name| {
            let name = name.to_owned();
            match rows.execute(ClusterRequest::StartRun { name }, 0) {
                ClusterReply::Started(run) => run,
                other => panic!("{other:?}"),
            }
        });
        let (gateway, player) = (GatewayId(1), PlayerId(7));
        let mut node = ClusterNode::new(runs[0], NodeSettings::default(), vec![gateway]);
        node.log_in(player);
        routes(&mut node, &mut rows, 0..500);
        assert!(node.begin_move(player, runs[1], 500));
        let mut sent = Vec::new();
        for now_ms in [500, 530, 600] {
            for output in node.poll(now_ms) {
                match output {
                    NodeOutput::Store(id, request) => {
                        let reply = rows.execute(request, now_ms);
                        node.on_reply(now_ms, id, reply);
                    }
                    NodeOutput::Route {
                        route, frozen_ms, ..
                    } => sent.push((route, frozen_ms)),
                    _ => {}
                }
            }
        }
        // The new node has not adopted the player yet.
        let expected = PlayerRoute {
            player,
            epoch: 2,
            node: runs[1].node,
        };
        assert_eq!(sent, [(expected, Some(30))]);
    }
}
