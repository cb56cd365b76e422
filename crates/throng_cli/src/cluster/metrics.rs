//! Figures of gateways and nodes for Prometheus.

use throng_cluster::{
    BusPeer, BusStats, ClientGateway, GatewayPort, KnownPeer, LinkStats, NodeDriver,
};
use throng_inspect::{MetricFamily, MetricType};

fn counter(name: &'static str, help: &'static str, value: u64) -> MetricFamily {
    MetricFamily::new(name, MetricType::Counter, help).value(value as f64)
}

fn gauge(name: &'static str, help: &'static str, value: usize) -> MetricFamily {
    MetricFamily::new(name, MetricType::Gauge, help).value(value as f64)
}

/// Figures of a gateway.
pub(super) fn of_gateway(gateway: &ClientGateway) -> Vec<MetricFamily> {
    let stats = gateway.stats();
    let mut families = vec![
        gauge(
            "throng_gateway_clients",
            "Connected clients.",
            gateway.client_count(),
        ),
        counter(
            "throng_gateway_clients_total",
            "Clients that were given to a node.",
            stats.connected,
        ),
        counter(
            "throng_gateway_packets_total",
            "Packets of nodes passed to clients.",
            stats.packets,
        ),
        counter(
            "throng_gateway_inputs_total",
            "Messages of clients passed to nodes.",
            stats.inputs,
        ),
        MetricFamily::new(
            "throng_gateway_clients_closed_total",
            MetricType::Counter,
            "Clients refused or closed by the gateway, by reason.",
        )
        .by_label(
            "reason",
            [
                ("no_node", stats.refused as f64),
                ("node_lost", stats.lost as f64),
                ("node_behind", stats.stuck as f64),
            ],
        ),
    ];
    families.extend(of_bus(
        gateway.bus_stats(),
        gateway.link_stats(),
        &gateway.peers(),
    ));
    families
}

/// Figures of a node, besides those of its server.
pub(super) fn of_node(
    driver: &NodeDriver,
    port: &GatewayPort,
    players: usize,
) -> Vec<MetricFamily> {
    let (node, stats, clients) = (
        driver.with_node(|node, _| node.stats()),
        driver.stats(),
        port.stats(),
    );
    let mut families = vec![
        gauge(
            "throng_node_scenes",
            "Scenes that this node runs.",
            driver.scenes().len(),
        ),
        gauge("throng_node_players", "Players on this node.", players),
        MetricFamily::new(
            "throng_node_player_changes_total",
            MetricType::Counter,
            "Players that came and went, by way.",
        )
        .by_label(
            "way",
            [
                ("adopted", node.adopted as f64),
                ("handed_off", node.handed_off as f64),
                ("logged_out", node.released as f64),
                ("taken_back", node.taken_back as f64),
            ],
        ),
        counter(
            "throng_node_runs_ended_total",
            "How often this node had to give up all players: it was cut off from the store.",
            node.runs_ended,
        ),
        MetricFamily::new(
            "throng_node_store_requests_total",
            MetricType::Counter,
            "Requests to the store, and those that were not executed or whose outcome is unknown.",
        )
        .by_label(
            "outcome",
            [
                ("sent", stats.requests as f64),
                ("not_executed", stats.not_executed as f64),
                ("unknown", node.unknown_outcomes as f64),
            ],
        ),
        counter(
            "throng_node_clients_total",
            "Clients at gateways that were given to this node.",
            clients.connected,
        ),
        MetricFamily::new(
            "throng_node_clients_closed_total",
            MetricType::Counter,
            "Clients at gateways that ended otherwise than by their own doing, by reason.",
        )
        .by_label(
            "reason",
            [
                ("no_room", clients.refused as f64),
                ("behind", clients.behind as f64),
                ("gateway_lost", clients.lost as f64),
            ],
        ),
    ];
    families.extend(of_bus(
        driver.bus_stats(),
        port.link_stats(),
        &driver.peers(),
    ));
    families
}

/// Figures of an end of the bus.
fn of_bus(bus: BusStats, links: LinkStats, peers: &[(BusPeer, KnownPeer)]) -> Vec<MetricFamily> {
    let count = |is_node: bool| {
        let matching = peers.iter();
        let matching = matching.filter(|(peer, _)| matches!(peer, BusPeer::Node(_)) == is_node);
        matching.count() as f64
    };
    vec![
        MetricFamily::new(
            "throng_cluster_peers",
            MetricType::Gauge,
            "Nodes and gateways whose presence was received in the last 1.5 s, without this one.",
        )
        .by_label("kind", [("node", count(true)), ("gateway", count(false))]),
        MetricFamily::new(
            "throng_cluster_bus_messages_total",
            MetricType::Counter,
            "Messages of the bus, by outcome.",
        )
        .by_label(
            "outcome",
            [
                ("sent", bus.sent as f64),
                ("not_sent", bus.not_sent as f64),
                ("received", bus.received as f64),
                ("missing", bus.missing as f64),
                ("dropped", bus.dropped as f64),
                ("other_version", bus.other_versions as f64),
                ("forged", bus.forged as f64),
                ("refused", bus.refused as f64),
            ],
        ),
        counter(
            "throng_cluster_bus_disconnects_total",
            "Lost connections to the NATS server.",
            bus.disconnects,
        ),
        counter(
            "throng_cluster_link_bytes_total",
            "Bytes sent on links between gateways and nodes.",
            links.bytes_sent,
        ),
        counter(
            "throng_cluster_link_resent_total",
            "Messages on links that were sent again.",
            links.resent,
        ),
    ]
}
