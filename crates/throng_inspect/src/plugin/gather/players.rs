//! Of players: their connections and sessions, what they send and are sent, where they wait and are kept.

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};

use super::{Families, counter, each, gauge};
use crate::exposition::{MetricFamily, MetricType};
use throng::directory::{Directory, DirectoryStats};
use throng::inbox::Inbox;
use throng::matchmaking::Matchmaker;
use throng::net::ListeningSocket;
#[cfg(feature = "web")]
use throng::net::ListeningWeb;
use throng::outbox::{Outbox, OutboxStats};
use throng::session::{SessionState, SessionStats, Sessions};
use throng::sync::SyncStats;

/// Modes of matchmaking that are told apart, at most.
const MODES_MAX: usize = 32;

/// What the others go by.
const OTHER_MODES: &str = "(other)";

/// All states of a session, and what they are called.
const SESSION_STATES: [(SessionState, &str); 8] = [
    (SessionState::Connecting, "connecting"),
    (SessionState::Authenticating, "authenticating"),
    (SessionState::Authenticated, "authenticated"),
    (SessionState::Queued, "queued"),
    (SessionState::Entering, "entering"),
    (SessionState::Loading, "loading"),
    (SessionState::InWorld, "in_world"),
    (SessionState::LinkDead, "link_dead"),
];

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

pub(super) fn of_sessions(world: &World, families: &mut Families) {
    let (Some(sessions), Some(stats)) = (
        world.get_resource::<Sessions>(),
        world.get_resource::<SessionStats>(),
    ) else {
        return;
    };
    let states = count_states(sessions);
    let ends = stats.ends;
    families.extend([
        gauge("throng_sessions", "Open sessions by state.").by("state", each(states)),
        gauge(
            "throng_session_line_length",
            "Players that stand in the line for a place.",
        )
        .value(sessions.queued() as f64),
        counter("throng_session_logins_total", "Players that logged in.")
            .value(stats.logins as f64),
        counter(
            "throng_session_logouts_total",
            "Players whose session ended.",
        )
        .value(stats.logouts as f64),
        counter(
            "throng_session_refusals_total",
            "Connections and logins that were turned away.",
        )
        .value(stats.refused as f64),
        counter(
            "throng_session_links_lost_total",
            "Players whose connection was lost.",
        )
        .value(stats.links_lost as f64),
        counter(
            "throng_session_resumed_total",
            "Sessions that went on over another connection.",
        )
        .value(stats.resumed as f64),
        counter(
            "throng_session_bad_messages_total",
            "Messages of clients that made no sense.",
        )
        .value(stats.bad_messages as f64),
        counter(
            "throng_session_late_inputs_total",
            "Inputs that were older than one handled before.",
        )
        .value(stats.late_inputs as f64),
        counter(
            "throng_session_ends_total",
            "Sessions that ended, those without a player included.",
        )
        .by(
            "reason",
            each([
                ("requested", ends.requested),
                ("disconnected", ends.disconnected),
                ("replaced", ends.replaced),
                ("behind", ends.behind),
                ("kicked", ends.kicked),
                ("banned", ends.banned),
                ("idle", ends.idle),
                ("flooding", ends.flooding),
                ("unproved", ends.unproved),
                ("late", ends.late),
                ("full", ends.full),
                ("drained", ends.drained),
                ("resumed", ends.resumed),
                ("unavailable", ends.unavailable),
            ]),
        ),
    ]);
}

pub(super) fn of_inbox(world: &World, families: &mut Families) {
    let Some(inbox) = world.get_resource::<Inbox>() else {
        return;
    };
    let counters = inbox.counters();
    families.extend([
        gauge(
            "throng_inbox_backlog_messages",
            "Messages of clients that wait.",
        )
        .value(inbox.backlog() as f64),
        counter(
            "throng_inbox_received_messages_total",
            "Messages that clients sent.",
        )
        .value(counters.received as f64),
        counter(
            "throng_inbox_handled_messages_total",
            "Messages that were handled.",
        )
        .value(counters.handled as f64),
        counter(
            "throng_inbox_refused_messages_total",
            "Messages that were not, all reasons together.",
        )
        .value(counters.refused as f64),
        counter(
            "throng_inbox_floods_total",
            "Clients that were found flooding.",
        )
        .value(counters.floods as f64),
    ]);
}

pub(super) fn of_sync(world: &World, families: &mut Families) {
    let Some(sync) = world.get_resource::<SyncStats>() else {
        return;
    };
    let sent = sync.sent;
    let kinds = [
        ("snapshot", sent.snapshots),
        ("despawn", sent.despawns),
        ("delta", sent.deltas),
        ("remote", sent.remotes),
        ("motion", sent.motions),
        ("announce", sent.announces),
    ];
    families.extend([
        gauge(
            "throng_sync_links",
            "Pairs of a client and an object that it knows.",
        )
        .value(sync.links as f64),
        gauge(
            "throng_sync_objects_waiting",
            "Pairs of a client and an object that it sees and does not know yet.",
        )
        .value(sync.waiting as f64),
        counter(
            "throng_sync_attributes_changed_total",
            "Attributes that had changed when they were collected.",
        )
        .value(sync.attributes_changed as f64),
        counter("throng_sync_messages_total", "Messages to clients.").by(
            "kind",
            kinds.map(|(kind, count)| (kind, count.messages as f64)),
        ),
        counter(
            "throng_sync_message_bytes_total",
            "Bytes of messages to clients, without packets' heads.",
        )
        .by(
            "kind",
            kinds.map(|(kind, count)| (kind, count.bytes as f64)),
        ),
        counter(
            "throng_sync_motions_postponed_total",
            "Motions that the byte budget made wait, once a tick.",
        )
        .value(sent.postponed as f64),
    ]);
}

pub(super) fn of_outbox(world: &World, families: &mut Families) {
    if let Some(outbox) = world.get_resource::<Outbox>() {
        families.push(
            gauge(
                "throng_outbox_waiting_bytes",
                "Bytes that wait for modelled lines.",
            )
            .value(outbox.waiting_bytes() as f64),
        );
    }
    let Some(stats) = world.get_resource::<OutboxStats>() else {
        return;
    };
    families.extend([
        counter(
            "throng_outbox_packets_total",
            "Packets that were handed over to be sent.",
        )
        .value(stats.frames as f64),
        counter("throng_outbox_bytes_total", "Their bytes, heads included.")
            .value(stats.bytes as f64),
        counter("throng_outbox_messages_total", "Messages in them.").value(stats.messages as f64),
        counter(
            "throng_outbox_stalls_total",
            "How often a ring did not take a tick's news at once.",
        )
        .value(stats.stalls as f64),
        counter(
            "throng_outbox_dropped_messages_total",
            "Unreliable messages that were dropped then.",
        )
        .value(stats.dropped as f64),
        counter(
            "throng_outbox_spilled_messages_total",
            "Reliable messages that had to wait then.",
        )
        .value(stats.spilled as f64),
        counter(
            "throng_outbox_clients_closed_total",
            "Clients that were closed because too much waited for them.",
        )
        .value(stats.disconnected as f64),
    ]);
}

pub(super) fn of_net(world: &World, families: &mut Families) {
    let Some(socket) = world.get_resource::<ListeningSocket>() else {
        return;
    };
    let stats = socket.stats();
    families.extend([
        gauge("throng_net_clients", "Clients that are connected.").value(stats.clients as f64),
        counter(
            "throng_net_datagrams_total",
            "Datagrams from and to anybody.",
        )
        .by(
            "direction",
            each([("in", stats.datagrams_in), ("out", stats.datagrams_out)]),
        ),
        counter("throng_net_bytes_total", "Their bytes.").by(
            "direction",
            each([("in", stats.bytes_in), ("out", stats.bytes_out)]),
        ),
        counter(
            "throng_net_admitted_total",
            "Clients that proved their token and address.",
        )
        .value(stats.admitted as f64),
        counter(
            "throng_net_refused_datagrams_total",
            "Datagrams that were not heard.",
        )
        .by(
            "reason",
            each([
                ("stranger", stats.strangers),
                ("unsealed", stats.refused),
                ("throttled", stats.throttled),
                ("busy", stats.inbound_dropped),
            ]),
        ),
        counter(
            "throng_net_connections_ended_total",
            "Connections that ended.",
        )
        .by(
            "reason",
            each([
                ("left", stats.left),
                ("lost", stats.lost),
                ("closed", stats.closed),
                ("behind", stats.behind),
            ]),
        ),
        counter(
            "throng_net_send_errors_total",
            "Datagrams that the system did not take.",
        )
        .value(stats.send_errors as f64),
    ]);
}

#[cfg(feature = "web")]
pub(super) fn of_web(world: &World, families: &mut Families) {
    let Some(web) = world.get_resource::<ListeningWeb>() else {
        return;
    };
    let stats = web.stats();
    families.extend([
        gauge(
            "throng_web_clients",
            "Clients that are connected from browsers.",
        )
        .value(stats.clients as f64),
        counter(
            "throng_web_frames_total",
            "Messages from clients, and packets for them.",
        )
        .by(
            "direction",
            each([("in", stats.messages_in), ("out", stats.packets_out)]),
        ),
        counter("throng_web_bytes_total", "Their bytes.").by(
            "direction",
            each([("in", stats.bytes_in), ("out", stats.bytes_out)]),
        ),
        counter(
            "throng_web_datagrams_total",
            "Datagrams over WebTransport, with what was sent again.",
        )
        .by(
            "direction",
            each([("in", stats.datagrams_in), ("out", stats.datagrams_out)]),
        ),
        counter(
            "throng_web_admitted_total",
            "Clients that were let in by their token.",
        )
        .value(stats.admitted as f64),
        counter(
            "throng_web_refused_total",
            "Connections that became no client's.",
        )
        .by(
            "reason",
            each([
                ("crowded", stats.crowded),
                ("request", stats.refused),
                ("late", stats.late),
                ("token", stats.denied),
                ("full", stats.full),
            ]),
        ),
        counter(
            "throng_web_connections_ended_total",
            "Connections of clients that ended.",
        )
        .by(
            "reason",
            each([
                ("left", stats.left),
                ("lost", stats.lost),
                ("closed", stats.closed),
                ("behind", stats.behind),
                ("broken", stats.broken),
            ]),
        ),
    ]);
}

pub(super) fn of_matchmaking(world: &World, families: &mut Families) {
    let Some(matchmaker) = world.get_resource::<Matchmaker>() else {
        return;
    };
    let length_s = world
        .get_resource::<Time<Fixed>>()
        .map_or(0.0, |time| time.timestep().as_secs_f64());
    // Of each: waiting, queued, matches, cancelled, expired, parties that fought, seconds they waited.
    let mut modes: Vec<(&str, [f64; 7])> = Vec::new();
    for (name, mode) in matchmaker.names().iter().zip(matchmaker.modes()) {
        let stats = mode.stats();
        let counts = [
            mode.waiting(),
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
        "How long parties waited that fought.",
    );
    let waits = modes.iter().fold(waits, |waits, (name, numbers)| {
        waits.summary("mode", *name, numbers[6], numbers[5] as u64)
    });
    families.extend([
        gauge("throng_matchmaking_waiting_parties", "Parties that wait.").by("mode", by_mode(0)),
        counter(
            "throng_matchmaking_queued_parties_total",
            "Parties that queued.",
        )
        .by("mode", by_mode(1)),
        counter(
            "throng_matchmaking_matches_total",
            "Matches that were made.",
        )
        .by("mode", by_mode(2)),
        counter(
            "throng_matchmaking_cancelled_parties_total",
            "Parties that were cancelled.",
        )
        .by("mode", by_mode(3)),
        counter(
            "throng_matchmaking_expired_parties_total",
            "Parties that waited too long.",
        )
        .by("mode", by_mode(4)),
        waits,
    ]);
}

pub(super) fn of_directory(world: &World, families: &mut Families) {
    let (Some(directory), Some(stats)) = (
        world.get_resource::<Directory>(),
        world.get_resource::<DirectoryStats>(),
    ) else {
        return;
    };
    families.extend([
        gauge("throng_directory_leases", "Players that this server holds.")
            .value(directory.live_count() as f64),
        gauge(
            "throng_directory_unsaved_players",
            "Players that wait to be saved.",
        )
        .value(directory.unsaved() as f64),
        counter(
            "throng_directory_loaded_players_total",
            "Players whose record came.",
        )
        .value(stats.loaded as f64),
        counter(
            "throng_directory_saved_players_total",
            "Players that were saved.",
        )
        .value(stats.players_saved as f64),
        counter(
            "throng_directory_transactions_total",
            "Transactions that were acknowledged.",
        )
        .value(stats.transactions as f64),
        counter(
            "throng_directory_failures_total",
            "Attempts that the store failed.",
        )
        .value(stats.failures as f64),
        counter(
            "throng_directory_leases_lost_total",
            "Players that became another server's, or whose lease ran out.",
        )
        .value((stats.lost + stats.expired) as f64),
    ]);
    if let Some(cache) = directory.cache_stats() {
        families.extend([
            counter(
                "throng_directory_look_ups_total",
                "Looks at players who are elsewhere: answered at once, or not.",
            )
            .by(
                "result",
                each([
                    ("hit", cache.hits),
                    ("miss", cache.looks.saturating_sub(cache.hits)),
                ]),
            ),
            counter(
                "throng_directory_look_up_failures_total",
                "Looks that were not answered in time, or refused.",
            )
            .value(cache.failed as f64),
        ]);
    }
}
