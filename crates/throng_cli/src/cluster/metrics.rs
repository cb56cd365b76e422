//! Figures of gateways and nodes for Prometheus.

use throng_cluster::{
    BusPeer, BusStats, ClientGateway, GatewayPort, InputTimes, KnownPeer, LinkStats, NodeDriver,
};
use throng_inspect::{MetricFamily, MetricType};

fn counter(name: &'static str, help: &'static str, value: u64) -> MetricFamily {
    MetricFamily::new(name, MetricType::Counter, help).value(value as f64)
}

fn gauge(name: &'static str, help: &'static str, value: usize) -> MetricFamily {
    MetricFamily::new(name, MetricType::Gauge, help).value(value as f64)
}

/// A counter with one value per label.
fn counters<const N: usize>(
    (name, help): (&'static str, &'static str),
    label: &'static str,
    values: [(&'static str, u64); N],
) -> MetricFamily {
    let values = values.map(|(of, value)| (of, value as f64));
    MetricFamily::new(name, MetricType::Counter, help).by_label(label, values)
}

/// Figures of a gateway.
pub(super) fn of_gateway(gateway: &ClientGateway) -> Vec<MetricFamily> {
    let stats = gateway.stats();
    let clients = gateway.client_count();
    let mut families = vec![
        gauge("throng_gateway_clients", "Connected clients.", clients),
        counter(
            "throng_gateway_clients_total",
            "Clients that were given to a node.",
            stats.connected,
        ),
        counter(
            "throng_gateway_takeovers_total",
            "How often another node took a connected client over: its player was handed off, or its node died.",
            stats.taken_over,
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
        counters(
            (
                "throng_gateway_clients_closed_total",
                "Clients refused or closed by the gateway, by reason.",
            ),
            "reason",
            [
                ("no_node", stats.refused),
                ("node_lost", stats.lost),
                ("node_behind", stats.stuck),
                ("replaced", stats.replaced),
            ],
        ),
    ];
    let (bus, links) = (gateway.bus_stats(), gateway.link_stats());
    families.extend(of_bus(bus, links, &gateway.peers()));
    families
}

/// Figures of a node as a part of the cluster. Those of its server are served beside them.
pub(super) fn of_node(
    driver: &NodeDriver,
    port: &GatewayPort,
    players: usize,
) -> Vec<MetricFamily> {
    let (node, stats) = (driver.with_node(|node, _| node.stats()), driver.stats());
    let clients = port.stats();
    let mut families = vec![
        gauge(
            "throng_node_scenes",
            "Scenes that this node runs.",
            driver.scenes().len(),
        ),
        gauge("throng_node_players", "Players on this node.", players),
        counters(
            (
                "throng_node_player_changes_total",
                "Players that came and went, by way.",
            ),
            "way",
            [
                ("adopted", node.adopted),
                ("handed_off", node.handed_off),
                ("logged_out", node.released),
                ("taken_back", node.taken_back),
            ],
        ),
        counter(
            "throng_node_pauses_total",
            "How often this node paused, because its heartbeat did not reach the store in time.",
            node.pauses,
        ),
        counter(
            "throng_node_runs_ended_total",
            "How often this node gave up all its players: others had claimed them, or the store refused what it wrote.",
            node.runs_ended,
        ),
        counters(
            (
                "throng_node_store_requests_total",
                "Requests to the store, and those that were not executed or whose outcome is unknown.",
            ),
            "outcome",
            [
                ("sent", stats.requests),
                ("not_executed", stats.not_executed),
                ("unknown", node.unknown_outcomes),
            ],
        ),
        counter(
            "throng_node_clients_total",
            "Clients at gateways that were given to this node.",
            clients.connected,
        ),
        counters(
            (
                "throng_node_clients_closed_total",
                "Clients at gateways that this node refused, closed or lost, by reason.",
            ),
            "reason",
            [
                ("no_room", clients.refused),
                ("behind", clients.behind),
                ("gateway_lost", clients.lost),
            ],
        ),
        of_inputs(port.input_times()),
    ];
    let (bus, links) = (driver.bus_stats(), port.link_stats());
    families.extend(of_bus(bus, links, &driver.peers()));
    families
}

/// How long inputs took from a gateway to this node.
fn of_inputs(times: InputTimes) -> MetricFamily {
    MetricFamily::new(
        "throng_node_input_seconds",
        MetricType::Histogram,
        "Time of inputs from their arrival at a gateway to their arrival at this node: their wait at the gateway, and half of the round trip.",
    )
    .histogram(&times.cumulative_s(), times.sum_s(), times.count())
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
            "Other nodes and gateways whose presence was received in the last 1.5 s.",
        )
        .by_label("kind", [("node", count(true)), ("gateway", count(false))]),
        counters(
            (
                "throng_cluster_bus_messages_total",
                "Messages of the bus, by outcome.",
            ),
            "outcome",
            [
                ("sent", bus.sent),
                ("not_sent", bus.not_sent),
                ("received", bus.received),
                ("missing", bus.missing),
                ("dropped", bus.dropped),
                ("other_version", bus.other_versions),
                ("forged", bus.forged),
                ("refused", bus.refused),
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

#[cfg(test)]
mod tests {
    use super::*;

    use throng_cluster::{ClusterKey, GatewayId, GatewaySettings, LocalBus, MessageBus};

    #[test]
    fn figures_of_a_gateway_are_exposed() {
        let own = BusPeer::Gateway(GatewayId(1));
        let bus = Box::new(LocalBus::default().join(own));
        let bus = MessageBus::new(bus, ClusterKey::new(&[7; 32]), own, 1);
        let gateway = ClientGateway::new(GatewaySettings::default(), bus, 1);
        let text = throng_inspect::exposition(&of_gateway(&gateway));
        for name in ["throng_gateway_takeovers_total 0", "reason=\"replaced\"} 0"] {
            assert!(text.contains(name), "{name}: {text}");
        }
    }
}
