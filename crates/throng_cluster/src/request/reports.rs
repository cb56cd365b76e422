//! Reports of nodes about themselves, for operators.

use std::collections::BTreeMap;

use crate::ids::NodeRun;

/// Maximum number of scenes in a report: those whose names come first.
pub const REPORTED_SCENES_MAX: usize = 1_024;

/// Maximum number of gateways in a report: those with the lowest ids.
pub const REPORTED_GATEWAYS_MAX: usize = 256;

/// A report that is older than this, by the store's clock, is not read any more, in milliseconds.
pub const REPORT_OLD_AFTER_MS: u64 = 5_000;

/// The players of a scene.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScenePlayers {
    /// The name of the scene. It contains no zero byte.
    pub scene: String,
    /// The number of players in it.
    pub players: u32,
}

/// The clients of a gateway, as a node knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayClients {
    /// The name of the gateway. It contains no zero byte.
    pub gateway: String,
    /// The number of its clients, as its last presence says.
    pub connected: u32,
    /// The number of its clients that are routed to the node.
    pub routed: u32,
}

/// What a node reports about itself. It is for operators: no node decides anything by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeReport {
    /// The scenes that it runs and whose players the game has counted; at most [`REPORTED_SCENES_MAX`].
    pub scenes: Vec<ScenePlayers>,
    /// The gateways whose presence it receives; at most [`REPORTED_GATEWAYS_MAX`].
    pub gateways: Vec<GatewayClients>,
}

/// The last report of a node that is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportEntry {
    /// The name of the node.
    pub name: String,
    /// The run that has sent it.
    pub run: NodeRun,
    /// The report.
    pub report: NodeReport,
}

/// The clients of a gateway at a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteCount {
    /// The name of the node.
    pub node: String,
    /// The number of clients that are routed to it.
    pub clients: u64,
}

/// What the nodes report about a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayOverview {
    /// Its name.
    pub name: String,
    /// The number of its clients, as its presence says. Nodes receive it at different times: the highest number.
    pub clients: u64,
    /// The nodes to which its clients are routed: those with the most clients first, then by name. During a hand-off, a client may be
    /// missing, or be counted at two nodes.
    pub routes: Vec<RouteCount>,
}

/// The reports of all nodes that are alive, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportTable {
    /// The reports, by ascending id of the node.
    pub nodes: Vec<ReportEntry>,
}

impl ReportTable {
    /// The players of a scene that this run owns; `None` if it does not report them. O(log nodes + scenes of the node).
    #[must_use]
    pub fn scene_players(&self, owner: NodeRun, scene: &str) -> Option<u32> {
        let at = self
            .nodes
            .binary_search_by_key(&owner.node, |entry| entry.run.node);
        let entry = self.nodes.get(at.ok()?)?;
        let mut scenes = entry.report.scenes.iter();
        let found = scenes.find(|counted| counted.scene == scene)?;
        (entry.run == owner).then_some(found.players)
    }

    /// The gateways, by name. O(n · log(n)).
    #[must_use]
    pub fn gateways(&self) -> Vec<GatewayOverview> {
        let mut gateways: BTreeMap<&str, GatewayOverview> = BTreeMap::new();
        for entry in &self.nodes {
            for counted in &entry.report.gateways {
                let gateway = gateways
                    .entry(&counted.gateway)
                    .or_insert_with(|| GatewayOverview {
                        name: counted.gateway.clone(),
                        clients: 0,
                        routes: Vec::new(),
                    });
                gateway.clients = gateway.clients.max(u64::from(counted.connected));
                if counted.routed > 0 {
                    gateway.routes.push(RouteCount {
                        node: entry.name.clone(),
                        clients: u64::from(counted.routed),
                    });
                }
            }
        }
        let mut gateways = Vec::from_iter(gateways.into_values());
        for gateway in &mut gateways {
            gateway.routes.sort_by(|one, other| {
                let most = other.clients.cmp(&one.clients);
                most.then_with(|| one.node.cmp(&other.node))
            });
        }
        gateways
    }
}

/// A request about reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportRequest {
    /// Replaces the report of a node. Refused for a run that is late or has ended.
    Write {
        /// The run that sends the request.
        run: NodeRun,
        /// The report.
        report: NodeReport,
    },
    /// Reads the reports. Those of late and dead nodes, of former runs, and those older than [`REPORT_OLD_AFTER_MS`] are left out.
    Read,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ClusterNodeId;

    fn entry(node: u32, scenes: &[(&str, u32)], gateways: &[(&str, u32, u32)]) -> ReportEntry {
        let scenes = scenes.iter().map(|(scene, players)| ScenePlayers {
            scene: (*scene).to_owned(),
            players: *players,
        });
        let gateways = gateways
            .iter()
            .map(|(gateway, connected, routed)| GatewayClients {
                gateway: (*gateway).to_owned(),
                connected: *connected,
                routed: *routed,
            });
        let node = ClusterNodeId(node);
        ReportEntry {
            name: format!("n{}", node.0),
            run: NodeRun { node, run: 5 },
            report: NodeReport {
                scenes: scenes.collect(),
                gateways: gateways.collect(),
            },
        }
    }

    #[test]
    fn gateways_are_those_of_all_nodes_with_their_routes() {
        let table = ReportTable {
            nodes: vec![
                entry(1, &[], &[("g1", 70, 30), ("g2", 0, 0)]),
                entry(3, &[], &[("g1", 72, 42), ("g3", 9, 0)]),
                entry(4, &[], &[("g1", 71, 30)]),
            ],
        };
        let gateways = table.gateways().into_iter().map(|gateway| {
            let routes = gateway.routes.into_iter();
            let routes = routes.map(|route| (route.node, route.clients));
            (gateway.name, gateway.clients, Vec::from_iter(routes))
        });
        let node = |name: &str, clients| (name.to_owned(), clients);
        let expected = [
            (
                "g1".to_owned(),
                72,
                vec![node("n3", 42), node("n1", 30), node("n4", 30)],
            ),
            ("g2".to_owned(), 0, vec![]),
            ("g3".to_owned(), 9, vec![]),
        ];
        assert_eq!(Vec::from_iter(gateways), expected);
    }

    #[test]
    fn scene_has_the_players_that_its_owner_reports() {
        let table = ReportTable {
            nodes: vec![
                entry(1, &[("town", 7)], &[]),
                entry(3, &[("cave", 2), ("town", 8)], &[]),
            ],
        };
        let run = |node, run| NodeRun {
            node: ClusterNodeId(node),
            run,
        };
        assert_eq!(table.scene_players(run(1, 5), "town"), Some(7));
        assert_eq!(table.scene_players(run(3, 5), "town"), Some(8));
        // A node without a report, a scene that is not in it, and another run.
        assert_eq!(table.scene_players(run(2, 5), "town"), None);
        assert_eq!(table.scene_players(run(1, 5), "cave"), None);
        assert_eq!(table.scene_players(run(1, 6), "town"), None);
    }
}
