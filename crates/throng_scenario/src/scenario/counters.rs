//! The figures of a report by name, as expectations use them: `paths.found` is the JSON report's `"paths": {"found": …}`. A mode
//! of matchmaking has its name in the path, `matchmaking.modes.arena.matches`, and so has the number of objects with a tag,
//! `tags.wolves`.
//!
//! Invariant: the names equal those of the report; a test compares them.

use serde_json::Value;
use throng::sim::SimSystems;

/// A group of the report, its monotonic counters, and its other figures.
type CounterGroup = (&'static str, &'static str, &'static str);

/// The names of the figures of each set, and of ticks.
const TIMES: &str = "mean_ms p50_ms p99_ms max_ms";

/// The prefix of a mode's name.
const MODES: &str = "matchmaking.modes.";

/// The prefix of a tag.
const TAGS: &str = "tags.";

/// The figures of each mode.
const MODE_GROUP: CounterGroup = (
    MODES,
    "matches",
    "waiting left_over_players mean_power_gap p95_power_gap max_power_gap mean_wait_s p95_wait_s max_wait_s",
);

const GROUPS: [CounterGroup; 19] = [
    (
        "",
        "ticks sim_seconds wall_seconds script_cues_run script_error_count",
        "",
    ),
    ("tick_ms.", "", "mean p50 p99 max"),
    ("start_up.", "", "ticks mean_ms max_ms"),
    ("objects.", "", "players npcs other peak"),
    (
        "clients.",
        "logins logouts refused mirror_seconds",
        "now mirrors peak",
    ),
    (
        "sessions.",
        "queue_positions_sent connections_lost resumed resumed_by_token end_notices bad_messages late_inputs",
        "login_queue max_login_queue max_admitted awaiting_reconnect possessing spectating addresses_banned",
    ),
    (
        "sessions.ended.",
        "requested disconnected replaced slow_consumer kicked banned idle flooding authentication_failed timed_out full server_stopping resumed moved unavailable taken",
        "",
    ),
    (
        "paths.",
        "requested found unreachable blocked blocked_at_start blocked_at_goal out_of_bounds without_map capped cancelled shared",
        "mean_us p99_us",
    ),
    (
        "builds.",
        "adopted loaded waited waited_ms late late_ticks",
        "",
    ),
    (
        "views.",
        "enters leaves evictions refills full_list_attempts",
        "cap links longest_list",
    ),
    (
        "movement.",
        "arrived blocked_steps pushed moves_accepted moves_refused moves_corrected",
        "",
    ),
    (
        "sync.",
        "attributes_dirty attributes_clamped deltas snapshots despawns moves unseen_updates announcements postponed kept_evicted motions_encoded packets bytes",
        "client_objects kept bytes_per_client_s",
    ),
    (
        "sync.message_bytes.",
        "snapshots despawns deltas moves unseen_updates announcements",
        "",
    ),
    (
        "matchmaking.",
        "queued cancelled expired matches",
        "waiting mean_power_gap max_power_gap mean_spread p99_spread mean_wait_s max_wait_s waiting_for_s",
    ),
    (
        "match_scenes.",
        "opened without_scene moved returned missing left joined",
        "",
    ),
    (
        "inbox.",
        "received handled refused",
        "max_backlog max_lag_ms",
    ),
    ("outbox.", "packets bytes stalls dropped", ""),
    (
        "overload.",
        "rises falls reduced_update_ticks deferred_work_ticks queued_login_ticks dilated_ticks",
        "level max_level load time_percent login_queue paths_waiting",
    ),
    // Only in a run with a store.
    (
        "player_store.",
        "loads leases_lost leases_expired logins_refused transactions saves saves_refused transfers_refused store_failures lookups lookup_hits lookup_loads lookup_failures",
        "leases unsaved max_unsaved",
    ),
];

/// Figures of the process.
const PROCESS_GROUP: CounterGroup = ("memory.", "", "rss_bytes peak_rss_bytes grown_bytes");

/// The memory of each module.
const MODULE_GROUP: CounterGroup = (
    "memory.by_module.",
    "",
    "aoi crowd store ecs inbox instance map matchmaking movement nav nav_maps outbox scenario session sim sync world",
);

/// The names of all figures of a run with these modes of matchmaking and these tags.
pub(super) fn counter_names<'a>(
    modes: impl IntoIterator<Item = &'a str>,
    tags: impl IntoIterator<Item = &'a str>,
) -> Vec<String> {
    let groups = GROUPS.iter().chain([&PROCESS_GROUP, &MODULE_GROUP]);
    let plain = groups.flat_map(|&(group, growing, others)| {
        let names = growing.split_whitespace().chain(others.split_whitespace());
        names.map(move |name| format!("{group}{name}"))
    });
    let sets = SimSystems::STEPS.iter().flat_map(|set| {
        let names = TIMES.split(' ');
        names.map(move |name| format!("systems.{}.{name}", set.name()))
    });
    let (_, growing, others) = MODE_GROUP;
    let of_modes = modes.into_iter().flat_map(|mode| {
        let names = growing.split(' ').chain(others.split(' '));
        names.map(move |name| format!("{MODES}{mode}.{name}"))
    });
    let of_tags = tags.into_iter().map(|tag| format!("{TAGS}{tag}"));
    plain.chain(sets).chain(of_modes).chain(of_tags).collect()
}

/// Whether a figure is a monotonic counter, so that a window's value is the difference of its ends.
pub(super) fn only_grows(name: &str) -> bool {
    if let Some(of_mode) = name.strip_prefix(MODES) {
        let last = of_mode.rsplit_once('.').map_or("", |(_, last)| last);
        return MODE_GROUP.1.split(' ').any(|growing| growing == last);
    }
    GROUPS.iter().any(|(group, growing, _)| {
        let rest = name.strip_prefix(group);
        rest.is_some_and(|rest| growing.split(' ').any(|growing| growing == rest))
    })
}

/// Whether a figure of a report, by its JSON path, depends on the load of the machine.
#[must_use]
pub fn is_wall_time(name: &str) -> bool {
    let groups = [
        "tick_ms.",
        "systems.",
        "start_up.",
        "builds.waited",
        "builds.late",
    ];
    groups.iter().any(|group| name.starts_with(group))
        || ["wall_seconds", "paths.mean_us", "paths.p99_us"].contains(&name)
}

/// Former names of counters, which scenario files and stored reports may still use.
pub(super) const FORMER_NAMES: [(&str, &str); 49] = [
    ("memory.by_module.directory", "memory.by_module.store"),
    ("sessions.ended.behind", "sessions.ended.slow_consumer"),
    ("sessions.ended.drained", "sessions.ended.server_stopping"),
    ("sessions.ended.late", "sessions.ended.timed_out"),
    (
        "sessions.ended.unproved",
        "sessions.ended.authentication_failed",
    ),
    ("script_fault_count", "script_error_count"),
    ("sessions.in_line", "sessions.login_queue"),
    ("sessions.max_in_line", "sessions.max_login_queue"),
    ("sessions.places_told", "sessions.queue_positions_sent"),
    ("sessions.links_lost", "sessions.connections_lost"),
    ("sessions.link_dead", "sessions.awaiting_reconnect"),
    ("sessions.watching", "sessions.spectating"),
    ("sessions.ends_told", "sessions.end_notices"),
    ("views.refused", "views.full_list_attempts"),
    ("views.max_list", "views.longest_list"),
    ("sync.remotes", "sync.unseen_updates"),
    ("sync.announces", "sync.announcements"),
    ("sync.links", "sync.client_objects"),
    ("sync.bases", "sync.motions_encoded"),
    (
        "sync.message_bytes.remotes",
        "sync.message_bytes.unseen_updates",
    ),
    (
        "sync.message_bytes.announces",
        "sync.message_bytes.announcements",
    ),
    ("outbox.frames", "outbox.packets"),
    ("overload.in_line", "overload.login_queue"),
    ("overload.stretched_ticks", "overload.reduced_update_ticks"),
    ("overload.deferred_ticks", "overload.deferred_work_ticks"),
    ("overload.refused_ticks", "overload.queued_login_ticks"),
    ("battles.opened", "match_scenes.opened"),
    ("battles.unseen", "match_scenes.without_scene"),
    ("battles.moved", "match_scenes.moved"),
    ("battles.returned", "match_scenes.returned"),
    ("battles.lost", "match_scenes.missing"),
    ("battles.left", "match_scenes.left"),
    ("battles.joined", "match_scenes.joined"),
    ("directory.loads", "player_store.loads"),
    ("directory.leases_lost", "player_store.leases_lost"),
    ("directory.leases_expired", "player_store.leases_expired"),
    ("directory.logins_refused", "player_store.logins_refused"),
    ("directory.transactions", "player_store.transactions"),
    ("directory.saves", "player_store.saves"),
    ("directory.saves_refused", "player_store.saves_refused"),
    (
        "directory.transfers_refused",
        "player_store.transfers_refused",
    ),
    ("directory.store_failures", "player_store.store_failures"),
    ("directory.look_ups", "player_store.lookups"),
    ("directory.look_up_hits", "player_store.lookup_hits"),
    ("directory.look_up_loads", "player_store.lookup_loads"),
    ("directory.look_up_failures", "player_store.lookup_failures"),
    ("directory.leases", "player_store.leases"),
    ("directory.unsaved", "player_store.unsaved"),
    ("directory.max_unsaved", "player_store.max_unsaved"),
];

/// The current name of a counter.
pub(super) fn current_name(name: &str) -> &str {
    let former = FORMER_NAMES.iter().find(|(former, _)| *former == name);
    former.map_or(name, |(_, current)| current)
}

/// A figure of a report in JSON; `None` if the report has no value for it, such as process memory that was not measured.
pub(super) fn counter_value(report: &Value, name: &str) -> Option<f64> {
    let name = current_name(name);
    if let Some((mode, figure)) = name
        .strip_prefix(MODES)
        .and_then(|of_mode| of_mode.rsplit_once('.'))
    {
        let mut modes = report["matchmaking"]["modes"].as_array()?.iter();
        return modes.find(|found| found["name"] == mode)?[figure].as_f64();
    }
    if let Some(tag) = name.strip_prefix(TAGS) {
        return report["tags"].get(tag)?.as_f64();
    }
    name.split('.')
        .try_fold(report, |at, step| at.get(step))?
        .as_f64()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::scenario::{LoadedScenario, RunOptions, ScenarioRun};
    use throng::memory::ProcessMemory;
    use throng::store::{MemoryDisk, PlayerStore, PlayerStorePlugin};

    /// The report of a run of 1.5 s with one mode of matchmaking and a store.
    fn report() -> Value {
        let text = r#"Scenario(name: "x", scenes: [Scene(name: "a")], queues: [Queue(mode: "q.r")], crowds: [Crowd(tag: "t.u", count: 3)])"#;
        let loaded = LoadedScenario::from_text("x.ron", text).unwrap();
        let options = RunOptions {
            ticks: Some(30),
            memory: Some(|| {
                Some(ProcessMemory {
                    resident_bytes: 7,
                    ..ProcessMemory::default()
                })
            }),
            configure: vec![Box::new(|app| {
                app.add_plugins(PlayerStorePlugin);
                let mut store = app.world_mut().resource_mut::<PlayerStore>();
                store.open(MemoryDisk::default()).unwrap();
            })],
            ..RunOptions::default()
        };
        let mut run = ScenarioRun::new(loaded, options).unwrap();
        while run.step().unwrap() {}
        serde_json::to_value(run.finish().unwrap()).unwrap()
    }

    /// The paths to all numbers of a report.
    fn numbers(value: &Value, place: &str, found: &mut BTreeSet<String>) {
        match value {
            Value::Number(_) => _ = found.insert(place.to_owned()),
            Value::Object(fields) => fields.iter().for_each(|(name, value)| {
                let dot = if place.is_empty() { "" } else { "." };
                numbers(value, &format!("{place}{dot}{name}"), found);
            }),
            Value::Array(modes) => modes.iter().for_each(|mode| {
                let name = mode["name"].as_str().unwrap();
                numbers(mode, &format!("{place}.{name}"), found);
            }),
            _ => {}
        }
    }

    #[test]
    fn counter_names_are_those_of_the_report() {
        let report = report();
        let mut found = BTreeSet::new();
        numbers(&report, "", &mut found);
        // Inputs of a run are not figures.
        assert!(found.remove("seed") && found.remove("threads"));
        let names: BTreeSet<String> = counter_names(["q.r"], ["t.u"]).into_iter().collect();
        let differ: Vec<_> = names.symmetric_difference(&found).collect();
        assert!(differ.is_empty(), "{differ:#?}");
        for name in &names {
            assert!(counter_value(&report, name).is_some(), "{name}");
        }
        for (former, current) in FORMER_NAMES {
            assert!(names.contains(current) && !names.contains(former));
            assert!(counter_value(&report, former).is_some(), "{former}");
        }
        assert_eq!(counter_value(&report, "ticks"), Some(30.0));
        assert_eq!(counter_value(&report, "memory.rss_bytes"), Some(7.0));
        assert_eq!(counter_value(&report, "tags.t.u"), Some(3.0));
        assert_eq!(counter_value(&report, "matchmaking.modes.q.matches"), None);
    }

    #[test]
    fn growing_counters_are_distinguished_from_gauges() {
        for growing in ["ticks", "paths.found", "matchmaking.modes.a.b.matches"] {
            assert!(only_grows(growing), "{growing}");
        }
        for other in [
            "objects.npcs",
            "paths.mean_us",
            "matchmaking.waiting",
            "matchmaking.modes.a.waiting",
            "sync.links",
        ] {
            assert!(!only_grows(other), "{other}");
        }
    }
}
