//! The output of `throng serve` at its end, as lines and as JSON.

use bevy_ecs::prelude::*;
use serde_json::json;
use throng::net::{UdpStats, WebStats};
use throng::sim::{SimTick, TickTimings};

use crate::wrapped;

/// Columns of a line's name, which is also the indentation of its continuation lines.
const INDENT: usize = 12;

/// Statistics of each listener.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ListenStats {
    pub udp: Option<UdpStats>,
    pub web: Option<WebStats>,
}

/// The number of completed ticks, and the mean and the 99th percentile of their times.
pub(super) fn tick_times(world: &World) -> (u64, [f64; 2]) {
    let tick = world.resource::<TickTimings>().tick();
    (world.resource::<SimTick>().0, [tick.mean_ms, tick.p99_ms])
}

pub(super) fn lines(
    stats: &ListenStats,
    ticks: u64,
    [mean_ms, p99_ms]: [f64; 2],
    cues: u64,
) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(udp) = &stats.udp {
        lines.extend(udp_lines(udp));
    }
    if let Some(web) = &stats.web {
        lines.extend(web_lines(web));
    }
    lines.push(format!(
        "ticks       {ticks}, mean {mean_ms:.2} ms, p99 {p99_ms:.2} ms"
    ));
    if cues > 0 {
        lines.push(format!(
            "cues        {cues} actions from pages: this run cannot be reproduced"
        ));
    }
    lines
}

fn udp_lines(stats: &UdpStats) -> [String; 4] {
    let UdpStats {
        clients_accepted: admitted,
        left,
        lost,
        closed,
        slow_consumers: behind,
        unauthenticated,
        refused,
        throttled,
        ..
    } = stats;
    let ended = left + lost + closed + behind;
    [
        format!(
            "clients     {admitted} accepted; {ended} ended: {left} left, {lost} timed out, {behind} too slow, {closed} closed"
        ),
        format!(
            "datagrams   {} in, {} kB; {} out, {} kB",
            stats.datagrams_in,
            stats.bytes_in / 1_000,
            stats.datagrams_out,
            stats.bytes_out / 1_000
        ),
        format!(
            "refused     {unauthenticated} without a connection, {refused} invalid, {throttled} over the rate limit"
        ),
        format!(
            "lost        {} of {} packets",
            stats.packets_lost, stats.packets_sent
        ),
    ]
}

fn web_lines(stats: &WebStats) -> [String; 3] {
    let WebStats {
        clients_accepted: admitted,
        left,
        lost,
        closed,
        slow_consumers: behind,
        broken,
        webtransport,
        ..
    } = stats;
    let ended = left + lost + closed + behind + broken;
    [
        wrapped(
            &format!(
                "browsers    {admitted} accepted, {webtransport} over WebTransport; {ended} ended: {left} left, {lost} timed out, {behind} too slow, {broken} protocol errors, {closed} closed"
            ),
            INDENT,
        ),
        format!(
            "frames      {} in, {} kB; {} out, {} kB; {} dropped",
            stats.messages_in,
            stats.bytes_in / 1_000,
            stats.packets_out,
            stats.bytes_out / 1_000,
            stats.dropped
        ),
        format!(
            "refused     {} invalid tokens, {} bad requests, {} timeouts, {} over the limit",
            stats.denied,
            stats.refused + stats.proxy_header_refused + stats.tls_failed,
            stats.timed_out,
            stats.refused_unauthenticated + stats.full
        ),
    ]
}

pub(super) fn as_json(
    stats: &ListenStats,
    ticks: u64,
    [mean_ms, p99_ms]: [f64; 2],
    cues: u64,
) -> serde_json::Value {
    let web = stats.web;
    let stats = stats.udp.unwrap_or_default();
    json!({
        "admitted": stats.clients_accepted,
        "left": stats.left,
        "lost": stats.lost,
        "closed": stats.closed,
        "behind": stats.slow_consumers,
        "replaced": stats.replaced,
        "moved": stats.moved,
        "datagrams_in": stats.datagrams_in,
        "bytes_in": stats.bytes_in,
        "datagrams_out": stats.datagrams_out,
        "bytes_out": stats.bytes_out,
        "strangers": stats.unauthenticated,
        "unknown_keys": stats.unknown_keys,
        "stranger_bytes_in": stats.unauthenticated_bytes_in,
        "answers_out": stats.answers_out,
        "answer_bytes_out": stats.answer_bytes_out,
        "refused": stats.refused,
        "throttled": stats.throttled,
        "dropped": stats.inbound_dropped + stats.outbound_dropped,
        "packets_lost": stats.packets_lost,
        "packets_sent": stats.packets_sent,
        "web": web.map(|web| web_json(&web)),
        "ticks": ticks,
        "external_actions": cues,
        "tick_ms": { "mean": mean_ms, "p99": p99_ms },
    })
}

fn web_json(stats: &WebStats) -> serde_json::Value {
    json!({
        "accepted": stats.accepted,
        "crowded": stats.refused_unauthenticated,
        "proxy_header_refused": stats.proxy_header_refused,
        "tls_failed": stats.tls_failed,
        "answered": stats.answered,
        "refused": stats.refused,
        "late": stats.timed_out,
        "denied": stats.denied,
        "unknown_keys": stats.unknown_keys,
        "full": stats.full,
        "admitted": stats.clients_accepted,
        "webtransport": stats.webtransport,
        "datagrams_in": stats.datagrams_in,
        "datagrams_out": stats.datagrams_out,
        "datagrams_refused": stats.datagrams_refused,
        "left": stats.left,
        "lost": stats.lost,
        "closed": stats.closed,
        "behind": stats.slow_consumers,
        "broken": stats.broken,
        "messages_in": stats.messages_in,
        "bytes_in": stats.bytes_in,
        "packets_out": stats.packets_out,
        "bytes_out": stats.bytes_out,
        "throttled": stats.throttled,
        "dropped": stats.dropped,
    })
}
