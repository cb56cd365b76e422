//! The server's numbers, as metrics.
//!
//! Names begin with `throng_` and end with their unit, counters with `_total` after it; process metrics have the names that all
//! exporters use. Labels have values from fixed lists, except `mode`, which has at most 32; further modes are counted as
//! `(other)`.
//!
//! | file | holds |
//! |---|---|
//! | `players` | players: connections, sessions, messages, matchmaking, records |
//! | `app_metrics` | metrics that the app adds |

mod app_metrics;
mod players;

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};

#[cfg(feature = "web")]
use players::add_web_metrics;
use players::{
    add_inbox_metrics, add_matchmaking_metrics, add_net_metrics, add_outbox_metrics,
    add_player_store_metrics, add_session_metrics, add_sync_metrics,
};
pub(super) use players::{count_states, state_name};

pub use app_metrics::AppMetrics;

use super::RecordedTicks;
use crate::exposition::{MetricFamily, MetricType};
use crate::protocol::InspectStats;
use throng::aoi::AoiStats;
use throng::instance::{InstanceStats, Instances};
use throng::memory::process_memory;
use throng::movement::MovementStats;
use throng::nav::NavStats;
use throng::sim::{Overload, OverloadLevel, OverloadStats, SimSystems, SimTick};
use throng::world::{Object, ObjectCategory, ObjectKinds, Scenes};

type Families = Vec<MetricFamily>;

const fn counter(name: &'static str, help: &'static str) -> MetricFamily {
    MetricFamily::new(name, MetricType::Counter, help)
}

const fn gauge(name: &'static str, help: &'static str) -> MetricFamily {
    MetricFamily::new(name, MetricType::Gauge, help)
}

/// Whole numbers beyond 2⁵³ lose their last digits, as they do in Prometheus.
fn to_f64<const N: usize>(values: [(&'static str, u64); N]) -> [(&'static str, f64); N] {
    values.map(|(of, value)| (of, value as f64))
}

/// All numbers of a server; none for plugins that are missing. O(objects + sessions).
pub(super) fn gather_metrics(world: &mut World, inspected: InspectStats) -> Families {
    let mut families = Vec::with_capacity(128);
    add_tick_metrics(world, &mut families);
    add_overload_metrics(world, &mut families);
    add_world_metrics(world, &mut families);
    add_session_metrics(world, &mut families);
    add_inbox_metrics(world, &mut families);
    add_path_metrics(world, &mut families);
    add_view_metrics(world, &mut families);
    add_sync_metrics(world, &mut families);
    add_outbox_metrics(world, &mut families);
    add_net_metrics(world, &mut families);
    #[cfg(feature = "web")]
    add_web_metrics(world, &mut families);
    add_matchmaking_metrics(world, &mut families);
    add_instance_metrics(world, &mut families);
    add_player_store_metrics(world, &mut families);
    add_inspect_metrics(inspected, &mut families);
    if let Some(app) = world.get_resource::<AppMetrics>() {
        families.extend(app.families().cloned());
    }
    families
}

/// Memory of the process, and by module.
pub(super) fn memory_metrics(modules: &[(&'static str, usize)]) -> Families {
    let mut families = Vec::new();
    if let Some(process) = process_memory() {
        families.push(
            gauge(
                "process_resident_memory_bytes",
                "Memory of the process that is in RAM.",
            )
            .value(process.resident_bytes as f64),
        );
    }
    let help = "Heap memory by module, as the module reports it; updated every 15 seconds.";
    let modules = modules
        .iter()
        .map(|&(module, bytes)| (module, bytes as f64));
    families.push(gauge("throng_memory_bytes", help).by_label("module", modules));
    families
}

fn add_tick_metrics(world: &World, families: &mut Families) {
    let history = &world.resource::<RecordedTicks>().history;
    let sets_s = history.sets_s();
    let (buckets, count) = history.buckets();
    let sets = SimSystems::ALL
        .map(SimSystems::name)
        .into_iter()
        .zip(sets_s);
    let length_s = world
        .get_resource::<Time<Fixed>>()
        .map_or(0.0, |time| time.timestep().as_secs_f64());
    families.extend([
        gauge(
            "throng_build_info",
            "Always 1; the label is the version of throng.",
        )
        .by_label("version", [(env!("CARGO_PKG_VERSION"), 1.0)]),
        counter("throng_ticks_total", "Completed ticks.")
            .value(world.resource::<SimTick>().0 as f64),
        gauge(
            "throng_tick_budget_seconds",
            "Tick interval, which is also the time budget of a tick.",
        )
        .value(length_s),
        MetricFamily::new(
            "throng_tick_duration_seconds",
            MetricType::Histogram,
            "Duration of ticks.",
        )
        .histogram(&buckets, sets_s.iter().sum(), count),
        counter(
            "throng_tick_set_seconds_total",
            "Tick time by set of systems.",
        )
        .by_label("set", sets),
        counter(
            "throng_slow_ticks_total",
            "Ticks that exceeded their time budget.",
        )
        .value(history.slow_count() as f64),
    ]);
}

fn add_overload_metrics(world: &World, families: &mut Families) {
    let (Some(overload), Some(stats)) = (
        world.get_resource::<Overload>(),
        world.get_resource::<OverloadStats>(),
    ) else {
        return;
    };
    let levels = OverloadLevel::ALL.map(OverloadLevel::name);
    // A level counts at all lower levels as well.
    let ticks = levels.into_iter().enumerate().map(|(nth, level)| {
        let higher = stats.ticks.get(nth + 1).copied().unwrap_or(0);
        (level, stats.ticks[nth].saturating_sub(higher) as f64)
    });
    families.extend([
        gauge(
            "throng_overload_level",
            "Overload level: 0 normal, 1 reduced updates, 2 deferred view enters and paths, 3 queued logins, 4 time dilation.",
        )
        .value(overload.level().number() as f64),
        gauge(
            "throng_overload_load_ratio",
            "Smoothed tick time divided by the tick budget.",
        )
        .value(f64::from(overload.load())),
        gauge(
            "throng_time_dilation_ratio",
            "Simulated seconds per real second.",
        )
        .value(f64::from(overload.time_percent()) / 100.0),
        counter("throng_overload_ticks_total", "Ticks at each overload level.").by_label("level", ticks),
        counter(
            "throng_overload_changes_total",
            "Overload level changes by direction.",
        )
        .by_label(
            "direction",
            to_f64([("up", stats.rises), ("down", stats.falls)]),
        ),
    ]);
}

/// Players, NPCs and things of all scenes. O(objects).
pub(super) fn count_categories(world: &mut World) -> [u64; 3] {
    let mut counts = [0u64; 3];
    let mut objects = world.query::<&Object>();
    let kinds = world.get_resource::<ObjectKinds>();
    for object in objects.iter(world) {
        let kind = kinds.and_then(|kinds| kinds.get(object.kind()));
        counts[kind
            .map_or(ObjectCategory::Thing, |kind| kind.class)
            .index()] += 1;
    }
    counts
}

fn add_world_metrics(world: &mut World, families: &mut Families) {
    let counts = count_categories(world);
    let [players, npcs, things] = counts;
    families.push(gauge("throng_objects", "Objects in all scenes.").by_label(
        "class",
        to_f64([("player", players), ("npc", npcs), ("thing", things)]),
    ));
    if let Some(scenes) = world.get_resource::<Scenes>() {
        families.push(gauge("throng_scenes", "Open scenes.").value(scenes.iter().count() as f64));
    }
}

fn add_path_metrics(world: &World, families: &mut Families) {
    if let Some(nav) = world.get_resource::<NavStats>() {
        families.extend([
            counter("throng_path_requests_total", "Path requests.").value(nav.requested as f64),
            counter(
                "throng_path_results_total",
                "Finished path requests by result.",
            )
            .by_label(
                "result",
                to_f64([
                    ("found", nav.found),
                    ("unreachable", nav.unreachable),
                    ("blocked", nav.blocked),
                    ("out_of_bounds", nav.out_of_bounds),
                    ("capped", nav.capped),
                    ("cancelled", nav.cancelled),
                ]),
            ),
            counter(
                "throng_path_results_shared_total",
                "Path requests that shared another request's search.",
            )
            .value(nav.shared as f64),
            counter(
                "throng_path_nodes_expanded_total",
                "Nodes expanded by path searches.",
            )
            .value(nav.expanded as f64),
            gauge("throng_path_requests_waiting", "Queued path requests.")
                .value(nav.waiting as f64),
        ]);
    }
    if let Some(movement) = world.get_resource::<MovementStats>() {
        families.extend([
            counter(
                "throng_walker_steps_total",
                "Walker steps, one per walker and tick.",
            )
            .value(movement.walker_steps as f64),
            counter(
                "throng_player_moves_total",
                "Validated player moves by result.",
            )
            .by_label(
                "result",
                to_f64([
                    ("accepted", movement.moves_accepted),
                    ("refused", movement.moves_refused),
                ]),
            ),
            counter(
                "throng_player_moves_corrected_total",
                "Accepted player moves that ended elsewhere than the input asked for.",
            )
            .value(movement.moves_corrected as f64),
        ]);
    }
}

fn add_view_metrics(world: &World, families: &mut Families) {
    let Some(aoi) = world.get_resource::<AoiStats>() else {
        return;
    };
    let counters = aoi.counters;
    families.extend([
        gauge(
            "throng_view_links",
            "View links: pairs of a viewer and an object that it sees.",
        )
        .value(aoi.links as f64),
        gauge("throng_view_queue_length", "Viewers that wait for a scan.").value(aoi.queued as f64),
        counter(
            "throng_view_link_changes_total",
            "View links added or removed.",
        )
        .by_label(
            "change",
            to_f64([("enter", counters.enters), ("leave", counters.leaves)]),
        ),
        counter(
            "throng_view_evictions_total",
            "View links removed for a target of higher priority.",
        )
        .value(counters.evictions as f64),
        counter("throng_view_scans_total", "Scans of queued viewers.").value(counters.scans as f64),
        counter(
            "throng_view_exact_scans_total",
            "Scans of viewers with a range of their own, or under rules by distance.",
        )
        .by_label(
            "result",
            to_f64([
                ("done", counters.exact_scans),
                ("deferred", counters.exact_scans_deferred),
            ]),
        ),
    ]);
}

fn add_instance_metrics(world: &World, families: &mut Families) {
    let (Some(instances), Some(stats)) = (
        world.get_resource::<Instances>(),
        world.get_resource::<InstanceStats>(),
    ) else {
        return;
    };
    families.extend([
        gauge("throng_instances", "Running match instances.").value(instances.len() as f64),
        counter("throng_instances_opened_total", "Match instances opened.")
            .value(stats.opened as f64),
    ]);
}

fn add_inspect_metrics(inspected: InspectStats, families: &mut Families) {
    families.extend([
        gauge(
            "throng_inspect_connections",
            "Open connections to the inspect page and metrics.",
        )
        .value(inspected.connections as f64),
        gauge("throng_inspect_pages", "Open inspect pages.").value(inspected.pages as f64),
        counter(
            "throng_inspect_connections_total",
            "Inspect connections by result.",
        )
        .by_label(
            "result",
            to_f64([
                ("accepted", inspected.accepted),
                ("refused", inspected.refused),
            ]),
        ),
        counter(
            "throng_inspect_connection_errors_total",
            "Inspect connections closed by a timeout or a protocol error.",
        )
        .value(inspected.broken as f64),
        counter(
            "throng_inspect_requests_total",
            "Inspect requests by result.",
        )
        .by_label(
            "result",
            to_f64([
                ("answered", inspected.answered),
                ("denied", inspected.denied),
            ]),
        ),
        counter(
            "throng_inspect_slow_pages_total",
            "Inspect pages closed as slow consumers.",
        )
        .value(inspected.pages_slow as f64),
        counter(
            "throng_inspect_bad_messages_total",
            "Malformed messages from inspect pages.",
        )
        .value(inspected.junk as f64),
        counter(
            "throng_inspect_dropped_messages_total",
            "Messages to inspect pages dropped because a queue was full.",
        )
        .value(inspected.dropped as f64),
        counter(
            "throng_inspect_tick_seconds_total",
            "Tick time spent on inspection.",
        )
        .value(inspected.spent_ns as f64 / 1e9),
    ]);
}
