//! Figures of the whole server, for pages: JSON.

use bevy_ecs::prelude::*;
use serde_json::{Value, json};

use super::RecordedTicks;
use super::metrics::{count_categories, count_states};
use crate::protocol::{ActionPreset, InspectStats, RunPace};
use crate::ticks::{SlowTick, TimedTick};
use throng::aoi::{AoiSettings, AoiStats, SceneAoiSettings};
use throng::inbox::Inbox;
use throng::map::SceneMap;
use throng::matchmaking::Matchmaker;
use throng::memory::process_memory;
use throng::nav::NavStats;
use throng::net::UdpListener;
#[cfg(feature = "web")]
use throng::net::WebListener;
use throng::outbox::OutboxStats;
use throng::session::{SessionStats, Sessions};
use throng::sim::{Overload, SimSystems, SimTick};
use throng::store::PlayerStore;
use throng::sync::SyncStats;
use throng::world::{ObjectKinds, Parties, SceneIds, Scenes, SimScene};

/// Maximum number of scenes and modes listed.
const LISTED_MAX: usize = 64;

/// The greeting that a page receives once, with the kept ticks up to one.
pub(super) fn hello_json(
    world: &World,
    told_tick: u64,
    (proposals, pace): (&Option<Vec<ActionPreset>>, Option<RunPace>),
) -> String {
    let kinds = world.get_resource::<ObjectKinds>().into_iter();
    let kinds = kinds.flat_map(ObjectKinds::iter);
    let kinds = kinds.map(|kind| json!({ "name": kind.name, "class": kind.class.index() }));
    let tick_ms = super::tick_s(world) * 1e3;
    let history = &world.resource::<RecordedTicks>().history;
    let known = history.since(0).take_while(|kept| kept.tick <= told_tick);
    let slow = history.slow().filter(|slow| slow.times.tick <= told_tick);
    // The address of the browser client, if there is one.
    #[cfg(feature = "web")]
    let browser_client =
        world
            .get_resource::<throng::net::WebListener>()
            .map(|web| match web.public_origin() {
                Some(origin) => json!({ "origin": origin.as_str() }),
                None => json!({ "port": web.address().port(), "tls": web.has_tls() }),
            });
    #[cfg(not(feature = "web"))]
    let browser_client: Option<serde_json::Value> = None;
    let hello = json!({
        "type": "hello",
        "version": env!("CARGO_PKG_VERSION"),
        "tick_ms": tick_ms,
        "sets": SimSystems::ALL.map(SimSystems::name),
        "kinds": kinds.collect::<Vec<_>>(),
        "scenes": scenes_json(world),
        "ticks": known.map(tick_json).collect::<Vec<_>>(),
        "slow": slow.map(slow_tick_json).collect::<Vec<_>>(),
        "actions": proposals,
        "pace": pace,
        "browser_client": browser_client,
    });
    hello.to_string()
}

/// The update for all pages twice a second: current figures, and the ticks after one.
pub(super) fn state_json(
    world: &mut World,
    told_tick: u64,
    (memory, looks): (&[(&'static str, usize)], InspectStats),
) -> String {
    let [players, npcs, things] = count_categories(world);
    let history = &world.resource::<RecordedTicks>().history;
    let slow = history.slow().filter(|slow| slow.times.tick > told_tick);
    let ticks: Vec<Value> = history.since(told_tick).map(tick_json).collect();
    let slow: Vec<Value> = slow.map(slow_tick_json).collect();
    let mut state = json!({
        "type": "state",
        "tick": world.resource::<SimTick>().0,
        "ticks": ticks,
        "slow": slow,
        "slow_count": history.slow_count(),
        "objects": { "players": players, "npcs": npcs, "things": things },
        "scenes": scenes_json(world),
        "queues": queues_json(world),
        "modes": modes_json(world),
        "has_parties": world.get_resource::<Parties>().is_some_and(|parties| parties.iter().next().is_some()),
        "memory": memory.iter().map(|(name, bytes)| json!([name, bytes])).collect::<Vec<_>>(),
        "rss": process_memory().map(|process| process.resident_bytes),
        "pages": looks.pages,
        "spent_ns": looks.spent_ns,
    });
    if let Some(sessions) = world.get_resource::<Sessions>() {
        let stats = world.get_resource::<SessionStats>();
        state["sessions"] = count_states(sessions)
            .iter()
            .map(|(name, count)| json!([name, count]))
            .collect();
        state["draining"] = sessions.is_draining().into();
        state["logins"] = stats.map_or(0, |stats| stats.logins).into();
    }
    if let Some(sync) = world.get_resource::<SyncStats>() {
        let sent = sync.sent;
        state["bytes"] = json!([
            ["new objects", sent.snapshots.bytes],
            ["objects out of view", sent.despawns.bytes],
            ["attributes", sent.deltas.bytes],
            ["motion", sent.motions.bytes],
            ["members out of view", sent.unseen.bytes],
            ["announcements", sent.announcements.bytes],
        ]);
    }
    if let Some(outbox) = world.get_resource::<OutboxStats>() {
        state["packets"] = json!([outbox.packets, outbox.bytes]);
    }
    if let Some(socket) = world.get_resource::<UdpListener>() {
        let stats = socket.stats();
        state["net"] = json!({
            "clients": stats.clients,
            "bytes_in": stats.bytes_in,
            "bytes_out": stats.bytes_out,
            "resets": stats.resets,
            "versions_refused": stats.versions_refused,
        });
    }
    #[cfg(feature = "web")]
    if let Some(web) = world.get_resource::<WebListener>() {
        let stats = web.stats();
        state["web"] = json!({ "clients": stats.clients, "bytes_in": stats.bytes_in, "bytes_out": stats.bytes_out });
    }
    if let Some(overload) = world.get_resource::<Overload>() {
        state["overload"] = json!({
            "level": overload.level().number(),
            "name": overload.level().name(),
            "load": overload.load(),
            "time_percent": overload.time_percent(),
        });
    }
    state.to_string()
}

/// A tick: its number, and the time of each set in microseconds.
fn tick_json(tick: &TimedTick) -> Value {
    let sets = tick.sets_ms.map(|ms| (ms * 1e3).round() as u64);
    json!([tick.tick, sets])
}

fn slow_tick_json(slow: &SlowTick) -> Value {
    let deeds = slow.work;
    json!({
        "tick": tick_json(&slow.times),
        "deeds": {
            "messages": deeds.messages,
            "logins": deeds.logins,
            "paths": deeds.paths,
            "nodes": deeds.nodes,
            "links": deeds.links,
            "snapshots": deeds.snapshots,
            "bytes": deeds.bytes,
        },
    })
}

fn scenes_json(world: &World) -> Vec<Value> {
    let Some(scenes) = world.get_resource::<Scenes>() else {
        return Vec::new();
    };
    let settings = world.get_resource::<AoiSettings>();
    let listed = scenes.iter().take(LISTED_MAX).filter_map(|(id, entity)| {
        let scene = world.get::<SimScene>(entity)?;
        let spec = world.get::<SceneAoiSettings>(entity);
        let cell_m = spec
            .map(|spec| spec.cell_m)
            .or(settings.map(|settings| settings.cell_m));
        let size_m = scene.size_m();
        Some(json!({
            "id": id.0,
            "name": scene.name(),
            "size_m": [size_m.x, size_m.y],
            "cell_m": cell_m,
            "tile_m": world.get::<SceneMap>(entity).map(SceneMap::tile_m),
            "objects": world.get::<SceneIds>(entity).map_or(0, SceneIds::len),
        }))
    });
    listed.collect()
}

/// Pending work: name, count.
fn queues_json(world: &World) -> Vec<Value> {
    let mut queues = Vec::new();
    let mut push = |name: &str, waiting: u64| queues.push(json!([name, waiting]));
    if let Some(inbox) = world.get_resource::<Inbox>() {
        push("client messages", inbox.backlog() as u64);
    }
    if let Some(sessions) = world.get_resource::<Sessions>() {
        push("login queue", sessions.queue_len() as u64);
    }
    if let Some(nav) = world.get_resource::<NavStats>() {
        push("path requests", nav.waiting);
    }
    if let Some(aoi) = world.get_resource::<AoiStats>() {
        push("view scans", aoi.queued);
    }
    if let Some(sync) = world.get_resource::<SyncStats>() {
        push("objects not sent yet", sync.pending_snapshots);
    }
    if let Some(directory) = world
        .get_resource::<PlayerStore>()
        .filter(|directory| directory.has_store())
    {
        push("players not saved yet", directory.unsaved() as u64);
    }
    queues
}

fn modes_json(world: &World) -> Vec<Value> {
    let Some(matchmaker) = world.get_resource::<Matchmaker>() else {
        return Vec::new();
    };
    let modes = matchmaker.names().iter().zip(matchmaker.modes());
    let modes = modes.take(LISTED_MAX);
    modes
        .map(|(name, mode)| json!([name, mode.waiting_parties(), mode.stats().matches]))
        .collect()
}
