//! Figures of gateways and nodes for Prometheus.

use throng_cluster::{
    BusPeer, BusStats, ClientGateway, CountedTimes, GatewayPort, KnownPeer, LinkStats,
    MatcherStats, MessengerStats, NodeDriver,
};
use throng_inspect::{MetricFamily, MetricType};

/// The times of hand-offs, of a gateway.
pub(super) const HAND_OFF_SECONDS: &str = "throng_gateway_hand_off_seconds";

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
        histogram(
            HAND_OFF_SECONDS,
            "Time of hand-offs of connected clients: from the freeze of the player to the first packet of its scene at the new node.",
            gateway.hand_off_times(),
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
    let messages = driver.with_messages(|messenger, _, _| messenger.stats());
    families.extend(of_messages(messages));
    if let Some(matches) = driver.with_matches(|matches| matches.stats()) {
        families.extend(of_matches(matches));
    }
    let (bus, links) = (driver.bus_stats(), port.link_stats());
    families.extend(of_bus(bus, links, &driver.peers()));
    families
}

/// How long inputs took from a gateway to this node.
fn of_inputs(times: CountedTimes) -> MetricFamily {
    histogram(
        "throng_node_input_seconds",
        "Time of inputs from their arrival at a gateway to their arrival at this node: their wait at the gateway, and half of the round trip.",
        times,
    )
}

fn histogram(name: &'static str, help: &'static str, times: CountedTimes) -> MetricFamily {
    MetricFamily::new(name, MetricType::Histogram, help).histogram(
        &times.cumulative_s(),
        times.sum_s(),
        times.count(),
    )
}

/// Figures of messages to players on other nodes.
fn of_messages(stats: MessengerStats) -> Vec<MetricFamily> {
    vec![
        counters(
            (
                "throng_node_messages_total",
                "Messages to players on other nodes, by outcome: returned ones found their players on another node, and are sent again; \
                 too large ones and those without room in a queue are dropped.",
            ),
            "outcome",
            [
                ("sent", stats.sent),
                ("announced", stats.announced),
                ("returned", stats.returned),
                ("too_large", stats.too_large),
                ("full", stats.full),
            ],
        ),
        counters(
            (
                "throng_node_message_players_total",
                "Players to whom such messages were delivered, or were not: logged out or unknown, on a dead node, or not found in time.",
            ),
            "outcome",
            [
                ("delivered", stats.delivered),
                ("offline", stats.offline),
                ("node_dead", stats.dead),
                ("late", stats.late),
            ],
        ),
        counter(
            "throng_node_message_reads_total",
            "Reads of rows to find the nodes of players.",
            stats.reads,
        ),
    ]
}

/// Figures of the node's part in matches.
fn of_matches(stats: MatcherStats) -> Vec<MetricFamily> {
    vec![
        counter(
            "throng_node_matcher_roles_total",
            "How often this node became the matcher.",
            stats.roles_taken,
        ),
        counters(
            (
                "throng_node_matches_total",
                "Matches that this node formed or tried to form as the matcher, and those that it got to open, by outcome.",
            ),
            "outcome",
            [
                ("formed", stats.formed),
                ("ticket_gone", stats.unavailable),
                ("host_late", stats.host_late),
                ("opened", stats.opened),
            ],
        ),
        counter(
            "throng_node_tickets_rejected_total",
            "Tickets that this node cancelled as the matcher, because they waited too long or do not fit the modes.",
            stats.rejected,
        ),
        counter(
            "throng_node_match_moves_total",
            "Hand-offs of players to a match or home, repeated ones included.",
            stats.moves,
        ),
        counter(
            "throng_node_match_requests_repeated_total",
            "Requests about matches that were repeated, because their outcome was unknown or the node was late.",
            stats.unknown_outcomes,
        ),
    ]
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
        for name in [
            "throng_gateway_takeovers_total 0",
            "reason=\"replaced\"} 0",
            "throng_gateway_hand_off_seconds_bucket{le=\"0.15\"} 0",
        ] {
            assert!(text.contains(name), "{name}: {text}");
        }
    }

    #[test]
    fn figures_of_messages_and_matches_are_exposed() {
        let messages = MessengerStats {
            sent: 1,
            announced: 2,
            delivered: 3,
            returned: 4,
            reads: 5,
            too_large: 6,
            full: 7,
            offline: 8,
            dead: 9,
            late: 10,
        };
        let matches = MatcherStats {
            roles_taken: 11,
            formed: 12,
            unavailable: 13,
            host_late: 14,
            rejected: 15,
            unknown_outcomes: 16,
            opened: 17,
            moves: 18,
        };
        let families = [of_messages(messages), of_matches(matches)].concat();
        let text = throng_inspect::exposition(&families);
        let values = text.lines().filter(|line| !line.starts_with('#'));
        let values = values.filter_map(|line| line.rsplit(' ').next()?.parse().ok());
        // Each counter once.
        let mut values: Vec<u64> = values.collect();
        values.sort_unstable();
        assert_eq!(values, Vec::from_iter(1..=18), "{text}");
        for line in [
            "throng_node_messages_total{outcome=\"returned\"} 4",
            "throng_node_message_players_total{outcome=\"node_dead\"} 9",
            "throng_node_message_reads_total 5",
            "throng_node_matches_total{outcome=\"host_late\"} 14",
            "throng_node_match_moves_total 18",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
