//! Metrics of players: connections, sessions, messages in both directions, waits and records.

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};

use super::{Families, counter, gauge, to_f64};
use crate::exposition::{MetricFamily, MetricType};
use throng::inbox::Inbox;
use throng::matchmaking::Matchmaker;
#[cfg(feature = "web")]
use throng::net::WebListener;
use throng::net::{UdpListener, UdpStats};
use throng::outbox::{Outbox, OutboxStats};
use throng::session::{LogoutReason, SessionState, SessionStats, Sessions};
use throng::store::{PlayerStore, PlayerStoreStats};
use throng::sync::SyncStats;

/// Maximum number of matchmaking modes with their own label.
const MODES_MAX: usize = 32;

/// The label of all other modes.
const OTHER_MODES: &str = "(other)";

/// All session states and their labels.
const SESSION_STATES: [(SessionState, &str); 8] = [
    (SessionState::Connecting, "connecting"),
    (SessionState::Authenticating, "authenticating"),
    (SessionState::Authenticated, "authenticated"),
    (SessionState::Queued, "queued"),
    (SessionState::Entering, "entering"),
    (SessionState::Loading, "loading"),
    (SessionState::InWorld, "in_world"),
    (SessionState::AwaitingReconnect, "awaiting_reconnect"),
];

/// The label of a state.
pub fn state_name(state: SessionState) -> &'static str {
    let found = SESSION_STATES.iter().find(|(of, _)| *of == state);
    found.map_or("", |(_, name)| name)
}

/// Sessions by state. O(sessions).
pub fn count_states(sessions: &Sessions) -> [(&'static str, u64); SESSION_STATES.len()] {
    let mut counts = SESSION_STATES.map(|(_, name)| (name, 0));
    for (_, session) in sessions.iter() {
        let place = SESSION_STATES
            .iter()
            .position(|(state, _)| *state == session.state);
        if let Some(place) = place {
            counts[place].1 += 1;
        }
    }
    counts
}

/// Refused logins by cause.
fn login_refusals(stats: &SessionStats) -> MetricFamily {
    counter(
        "throng_session_login_refusals_total",
        "Logins refused by the game's rule, by cause.",
    )
    .by_label(
        "cause",
        to_f64([
            ("by_game", stats.login_refusals.by_game),
            ("unverified", stats.login_refusals.unverified),
            ("wrong_player", stats.login_refusals.wrong_player),
        ]),
    )
}

pub(super) fn add_session_metrics(world: &World, families: &mut Families) {
    let (Some(sessions), Some(stats)) = (
        world.get_resource::<Sessions>(),
        world.get_resource::<SessionStats>(),
    ) else {
        return;
    };
    let states = count_states(sessions);
    let ends = stats.ends;
    families.extend([
        gauge("throng_sessions", "Open sessions by state.").by_label("state", to_f64(states)),
        gauge("throng_login_queue_length", "Players in the login queue.")
            .value(sessions.queue_len() as f64),
        counter("throng_session_logins_total", "Players that logged in.")
            .value(stats.logins as f64),
        counter(
            "throng_session_logouts_total",
            "Players whose session ended.",
        )
        .value(stats.logouts as f64),
        counter(
            "throng_session_refusals_total",
            "Refused connections and logins.",
        )
        .value(stats.refused as f64),
        login_refusals(stats),
        counter(
            "throng_session_connections_lost_total",
            "Players whose connection was lost.",
        )
        .value(stats.connections_lost as f64),
        counter(
            "throng_session_resumed_total",
            "Sessions resumed over a new connection.",
        )
        .value(stats.resumed as f64),
        counter(
            "throng_session_bad_messages_total",
            "Client messages refused: malformed, unexpected, or not allowed.",
        )
        .value(stats.bad_messages as f64),
        counter(
            "throng_session_outdated_inputs_total",
            "Inputs refused as duplicate or out of order.",
        )
        .value(stats.late_inputs as f64),
        counter(
            "throng_session_ends_total",
            "Ended sessions by reason, including sessions without a login.",
        )
        .by_label(
            "reason",
            LogoutReason::ALL.map(|reason| (reason.label(), ends.of(reason) as f64)),
        ),
    ]);
}

pub(super) fn add_inbox_metrics(world: &World, families: &mut Families) {
    let Some(inbox) = world.get_resource::<Inbox>() else {
        return;
    };
    let counters = inbox.counters();
    families.extend([
        gauge(
            "throng_inbox_backlog_messages",
            "Client messages that wait to be handled.",
        )
        .value(inbox.backlog() as f64),
        counter(
            "throng_inbox_received_messages_total",
            "Client messages received.",
        )
        .value(counters.received as f64),
        counter(
            "throng_inbox_handled_messages_total",
            "Client messages handled.",
        )
        .value(counters.handled as f64),
        counter(
            "throng_inbox_refused_messages_total",
            "Client messages refused, for any reason.",
        )
        .value(counters.refused as f64),
        counter(
            "throng_inbox_flooding_clients_total",
            "Clients found flooding.",
        )
        .value(counters.floods as f64),
    ]);
}

pub(super) fn add_sync_metrics(world: &World, families: &mut Families) {
    let Some(sync) = world.get_resource::<SyncStats>() else {
        return;
    };
    let sent = sync.sent;
    let kinds = [
        ("snapshot", sent.snapshots),
        ("despawn", sent.despawns),
        ("delta", sent.deltas),
        ("unseen", sent.unseen),
        ("motion", sent.motions),
        ("announce", sent.announcements),
    ];
    families.extend([
        gauge(
            "throng_sync_known_objects",
            "Pairs of a client and an object whose snapshot it has received.",
        )
        .value(sync.links as f64),
        gauge(
            "throng_sync_kept_objects",
            "Pairs of a client and an object that it knows and keeps out of view.",
        )
        .value(sync.kept as f64),
        counter(
            "throng_sync_kept_evicted_total",
            "Kept objects despawned at a client because it kept too many.",
        )
        .value(sent.kept_evicted as f64),
        gauge(
            "throng_sync_pending_snapshots",
            "Pairs of a client and an object in view that wait for a snapshot.",
        )
        .value(sync.pending_snapshots as f64),
        counter(
            "throng_sync_attributes_changed_total",
            "Changed attribute values collected.",
        )
        .value(sync.attributes_changed as f64),
        counter("throng_sync_messages_total", "Messages to clients by kind.").by_label(
            "kind",
            kinds.map(|(kind, count)| (kind, count.messages as f64)),
        ),
        counter(
            "throng_sync_message_bytes_total",
            "Bytes of messages to clients by kind, without packet headers.",
        )
        .by_label(
            "kind",
            kinds.map(|(kind, count)| (kind, count.bytes as f64)),
        ),
        counter(
            "throng_sync_motions_postponed_total",
            "Motion updates deferred by the byte budget, counted once per tick.",
        )
        .value(sent.deferred as f64),
    ]);
}

pub(super) fn add_outbox_metrics(world: &World, families: &mut Families) {
    if let Some(outbox) = world.get_resource::<Outbox>() {
        families.push(
            gauge(
                "throng_outbox_simulated_backlog_bytes",
                "Bytes queued behind simulated bandwidth limits.",
            )
            .value(outbox.deferred_bytes() as f64),
        );
    }
    let Some(stats) = world.get_resource::<OutboxStats>() else {
        return;
    };
    families.extend([
        counter("throng_outbox_packets_total", "Packets sent.").value(stats.packets as f64),
        counter(
            "throng_outbox_bytes_total",
            "Bytes of packets sent, including headers.",
        )
        .value(stats.bytes as f64),
        counter("throng_outbox_messages_total", "Messages in packets sent.")
            .value(stats.messages as f64),
        counter(
            "throng_outbox_ring_full_total",
            "Ticks in which a sender ring was full.",
        )
        .value(stats.stalls as f64),
        counter(
            "throng_outbox_dropped_messages_total",
            "Unreliable messages dropped because a sender ring was full.",
        )
        .value(stats.dropped as f64),
        counter(
            "throng_outbox_spilled_messages_total",
            "Reliable messages deferred because a sender ring was full.",
        )
        .value(stats.spilled as f64),
        counter(
            "throng_outbox_slow_consumers_total",
            "Clients closed as slow consumers.",
        )
        .value(stats.disconnected as f64),
    ]);
}

pub(super) fn add_net_metrics(world: &World, families: &mut Families) {
    let Some(socket) = world.get_resource::<UdpListener>() else {
        return;
    };
    let stats = socket.stats();
    families.extend([
        gauge("throng_net_clients", "Connected clients.").value(stats.clients as f64),
        counter("throng_net_datagrams_total", "Datagrams by direction.").by_label(
            "direction",
            to_f64([("in", stats.datagrams_in), ("out", stats.datagrams_out)]),
        ),
        counter("throng_net_bytes_total", "Bytes of datagrams by direction.").by_label(
            "direction",
            to_f64([("in", stats.bytes_in), ("out", stats.bytes_out)]),
        ),
        counter(
            "throng_net_handshakes_completed_total",
            "Clients that completed the handshake.",
        )
        .value(stats.clients_accepted as f64),
        refused_datagrams(&stats),
        counter(
            "throng_net_resets_total",
            "Connection resets sent to clients whose connection the server does not know.",
        )
        .value(stats.resets as f64),
        counter(
            "throng_net_versions_refused_total",
            "Refusals sent to clients with another protocol version.",
        )
        .value(stats.versions_refused as f64),
        counter(
            "throng_net_accepted_datagrams_total",
            "Accepted datagrams; of ended connections those that came late.",
        )
        .by_label(
            "kind",
            to_f64([
                ("handshake", stats.handshake_datagrams()),
                ("client", stats.client_datagrams),
                ("ended", stats.after_end),
            ]),
        ),
        counter(
            "throng_net_connections_ended_total",
            "Ended connections by reason.",
        )
        .by_label(
            "reason",
            to_f64([
                ("left", stats.left),
                ("lost", stats.lost),
                ("closed", stats.closed),
                ("slow_consumer", stats.slow_consumers),
            ]),
        ),
        counter(
            "throng_net_send_errors_total",
            "Datagrams that could not be sent.",
        )
        .value(stats.send_errors as f64),
    ]);
}

fn refused_datagrams(stats: &UdpStats) -> MetricFamily {
    let reasons = [
        ("no_connection", stats.no_request),
        ("unknown_connection", stats.unknown_connection),
        ("other_version", stats.other_version),
        ("token_expired", stats.expired),
        ("requests_rate_limited", stats.requests_throttled),
        (
            "invalid_token",
            stats.invalid_token.saturating_sub(stats.unknown_keys),
        ),
        ("unknown_token_key", stats.unknown_keys),
        ("other_server", stats.other_server),
        ("token_used", stats.token_used),
        ("no_room", stats.no_room),
        ("invalid_response", stats.invalid_response),
        ("decrypt_failed", stats.refused),
        ("rate_limited", stats.throttled),
        ("queue_full", stats.inbound_dropped),
    ];
    counter(
        "throng_net_refused_datagrams_total",
        "Rejected datagrams by reason.",
    )
    .by_label("reason", to_f64(reasons))
}

#[cfg(feature = "web")]
pub(super) fn add_web_metrics(world: &World, families: &mut Families) {
    let Some(web) = world.get_resource::<WebListener>() else {
        return;
    };
    let stats = web.stats();
    families.extend([
        gauge("throng_web_clients", "Clients connected from browsers.").value(stats.clients as f64),
        counter(
            "throng_web_frames_total",
            "Browser messages and packets by direction.",
        )
        .by_label(
            "direction",
            to_f64([("in", stats.messages_in), ("out", stats.packets_out)]),
        ),
        counter(
            "throng_web_bytes_total",
            "Bytes of browser messages and packets by direction.",
        )
        .by_label(
            "direction",
            to_f64([("in", stats.bytes_in), ("out", stats.bytes_out)]),
        ),
        counter(
            "throng_web_datagrams_total",
            "WebTransport datagrams, including retransmissions.",
        )
        .by_label(
            "direction",
            to_f64([("in", stats.datagrams_in), ("out", stats.datagrams_out)]),
        ),
        counter(
            "throng_web_handshakes_completed_total",
            "Browser clients admitted by a valid token.",
        )
        .value(stats.clients_accepted as f64),
        counter(
            "throng_web_refused_total",
            "Refused browser connections by reason.",
        )
        .by_label(
            "reason",
            to_f64([
                ("too_many_unauthenticated", stats.refused_unauthenticated),
                ("proxy_header", stats.proxy_header_refused),
                ("tls_handshake", stats.tls_failed),
                ("bad_request", stats.refused),
                ("timed_out", stats.timed_out),
                (
                    "token_rejected",
                    stats.denied.saturating_sub(stats.unknown_keys),
                ),
                ("unknown_token_key", stats.unknown_keys),
                ("server_full", stats.full),
            ]),
        ),
        counter(
            "throng_web_connections_ended_total",
            "Ended browser connections by reason.",
        )
        .by_label(
            "reason",
            to_f64([
                ("left", stats.left),
                ("lost", stats.lost),
                ("closed", stats.closed),
                ("slow_consumer", stats.slow_consumers),
                ("protocol_error", stats.broken),
            ]),
        ),
    ]);
}

pub(super) fn add_matchmaking_metrics(world: &World, families: &mut Families) {
    let Some(matchmaker) = world.get_resource::<Matchmaker>() else {
        return;
    };
    let length_s = world
        .get_resource::<Time<Fixed>>()
        .map_or(0.0, |time| time.timestep().as_secs_f64());
    // Per mode: waiting, queued, matches, cancelled, expired, parties that fought, seconds they waited.
    let mut modes: Vec<(&str, [f64; 7])> = Vec::new();
    for (name, mode) in matchmaker.names().iter().zip(matchmaker.modes()) {
        let stats = mode.stats();
        let counts = [
            mode.waiting_parties(),
            stats.queued,
            stats.matches,
            stats.cancelled,
            stats.expired,
            stats.wait_ticks.count(),
        ];
        let [a, b, c, d, e, f] = counts.map(|count| count as f64);
        let numbers = [a, b, c, d, e, f, stats.wait_ticks.sum() as f64 * length_s];
        if modes.len() < MODES_MAX {
            modes.push((name, numbers));
            continue;
        }
        if modes.len() == MODES_MAX {
            modes.push((OTHER_MODES, [0.0; 7]));
        }
        if let Some((_, others)) = modes.last_mut() {
            let sums = others.iter_mut().zip(numbers);
            sums.for_each(|(sum, number)| *sum += number);
        }
    }
    let by_mode = |nth: usize| {
        modes
            .iter()
            .map(move |(name, numbers)| (*name, numbers[nth]))
    };
    let waits = MetricFamily::new(
        "throng_matchmaking_wait_seconds",
        MetricType::Summary,
        "Waiting time of matched parties.",
    );
    let waits = modes.iter().fold(waits, |waits, (name, numbers)| {
        waits.summary("mode", *name, numbers[6], numbers[5] as u64)
    });
    families.extend([
        gauge(
            "throng_matchmaking_waiting_parties",
            "Parties in the queue.",
        )
        .by_label("mode", by_mode(0)),
        counter(
            "throng_matchmaking_queued_parties_total",
            "Parties that entered the queue.",
        )
        .by_label("mode", by_mode(1)),
        counter("throng_matchmaking_matches_total", "Matches formed.").by_label("mode", by_mode(2)),
        counter(
            "throng_matchmaking_cancelled_parties_total",
            "Tickets cancelled.",
        )
        .by_label("mode", by_mode(3)),
        counter(
            "throng_matchmaking_expired_parties_total",
            "Tickets expired.",
        )
        .by_label("mode", by_mode(4)),
        waits,
    ]);
}

pub(super) fn add_player_store_metrics(world: &World, families: &mut Families) {
    let (Some(directory), Some(stats)) = (
        world.get_resource::<PlayerStore>(),
        world.get_resource::<PlayerStoreStats>(),
    ) else {
        return;
    };
    families.extend([
        gauge("throng_store_leases", "Player leases held by this server.")
            .value(directory.live_count() as f64),
        gauge(
            "throng_store_unsaved_players",
            "Players that wait to be saved.",
        )
        .value(directory.unsaved() as f64),
        gauge(
            "throng_store_unsaved_play_players",
            "Players that play on after the end of their leases, because the store is away.",
        )
        .value(directory.unsaved_play_count() as f64),
        counter(
            "throng_store_loaded_players_total",
            "Player records loaded.",
        )
        .value(stats.loaded as f64),
        counter("throng_store_saved_players_total", "Player records saved.")
            .value(stats.players_saved as f64),
        counter(
            "throng_store_transactions_total",
            "Committed save transactions.",
        )
        .value(stats.transactions as f64),
        counter("throng_store_errors_total", "Failed store requests.").value(stats.failures as f64),
        counter(
            "throng_store_leases_lost_total",
            "Leases taken over by another server or expired.",
        )
        .value((stats.lost + stats.expired) as f64),
    ]);
    if let Some(cache) = directory.cache_stats() {
        families.extend([
            counter(
                "throng_store_lookups_total",
                "Lookups of players on other servers by cache result.",
            )
            .by_label(
                "result",
                to_f64([
                    ("hit", cache.hits),
                    ("miss", cache.lookups.saturating_sub(cache.hits)),
                ]),
            ),
            counter(
                "throng_store_lookup_errors_total",
                "Lookups that timed out or were refused.",
            )
            .value(cache.failed as f64),
        ]);
    }
}
