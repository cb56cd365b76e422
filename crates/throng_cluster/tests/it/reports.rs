//! Promise: an operator sees in the rows which gateways there are, to which nodes their clients are routed, and how many players each scene has.

use throng_cluster::{
    ClusterPlayers, ClusterReply, ClusterRequest, ClusterStore, GatewayId, LocalBus, NodeDriver,
    ReportRequest, ReportTable, SceneDeclaration,
};

use crate::play::nodes::Carrier;
use crate::play::{Cluster, GATEWAY};

fn reports(cluster: &mut Cluster) -> ReportTable {
    let read = ClusterRequest::Report(ReportRequest::Read);
    match cluster.engines.store.execute(&read) {
        Ok(ClusterReply::Reports(table)) => table,
        other => panic!("{other:?}"),
    }
}

/// Waits until the rows have these gateways: name, clients, and the clients of each node that has some.
fn until_gateways(cluster: &mut Cluster, expected: &[&str]) {
    cluster.until(&format!("{expected:?}"), |cluster| {
        let gateways = reports(cluster).gateways().into_iter().map(|gateway| {
            let routes = gateway.routes.iter();
            let routes = routes.map(|route| format!(" {}:{}", route.node, route.clients));
            format!(
                "{} {}{}",
                gateway.name,
                gateway.clients,
                String::from_iter(routes)
            )
        });
        gateways.eq(expected.iter().copied())
    });
}

fn driver(cluster: &Cluster, node: usize) -> &NodeDriver {
    let players = cluster.nodes[node].server.world();
    players.resource::<ClusterPlayers>().driver().unwrap()
}

#[test]
fn gateways_are_reported_with_the_nodes_of_their_clients() {
    let mut cluster = Cluster::start(Carrier::Memory(LocalBus::default()), &[GATEWAY]);
    until_gateways(&mut cluster, &["g1 0"]);
    cluster.add_gateway(GatewayId(2));
    until_gateways(&mut cluster, &["g1 0", "g2 0"]);
    cluster.connect();
    cluster.until_plays(0, 0);
    until_gateways(&mut cluster, &["g1 1 a:1", "g2 0"]);
    cluster.move_player(0, 1);
    cluster.until_plays(1, 0);
    until_gateways(&mut cluster, &["g1 1 b:1", "g2 0"]);
    // The second gateway dies.
    drop(cluster.gateways.pop());
    until_gateways(&mut cluster, &["g1 1 b:1"]);
}

#[test]
fn players_of_a_scene_are_reported_by_its_node() {
    let mut cluster = Cluster::start(Carrier::Memory(LocalBus::default()), &[GATEWAY]);
    let scenes = ["cave", "town"];
    driver(&cluster, 0).declare_scenes(scenes.map(|name| SceneDeclaration {
        name: name.to_owned(),
        ..SceneDeclaration::default()
    }));
    // Each node has counted all scenes. Only the numbers of those that it runs count.
    for (node, players) in [(0, 7), (1, 8)] {
        let counted = scenes.map(|name| (name.to_owned(), players));
        driver(&cluster, node).set_scene_players(counted);
    }
    cluster.until("the players of both scenes", |cluster| {
        let table = reports(cluster);
        scenes.into_iter().all(|name| {
            let owner = driver(cluster, 0).scene_owner(name);
            let players = owner.and_then(|owner| table.scene_players(owner, name));
            let expected = owner.map(|owner| 7 + owner.node.0);
            players.is_some() && players == expected
        })
    });
}
