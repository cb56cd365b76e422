//! The event log: one JSON object per line, in the order of events. docs/event_log.md describes every line.
//!
//! Within a tick, events follow the order of the tick's sets, and within a set that of scenes and object ids. Enters and leaves are
//! ordered by scene; those of one viewer are in the order in which they happened. State without a message of its own (teams, caps,
//! hiding, cells) is detected by comparing each object with its last logged state, so a log costs a check of every object per tick;
//! without a log there is no cost.
//!
//! A run in real time writes `{"type":"late_build","name","clearance","late_ticks"}` when the search data of a scene is adopted,
//! with the number of ticks of delay: from this tick on, searches may return different paths of the same length.
//!
//! | file | holds |
//! |---|---|
//! | `line` | the lines |
//! | `tickets` | queued parties, and their matches |
//! | here | all other events, and the log itself |

mod line;
mod tickets;

use std::collections::BTreeMap;
use std::io::{self, Write};

use self::line::{Blocked, Event, EventLine};
pub(super) use self::tickets::log_matches;
use super::scenario_world::ScenarioWorld;
use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use throng::aoi::GridCell;
use throng::aoi::ViewEvent;
use throng::aoi::{
    SceneAoiSettings, SceneInterest, ViewCaps, ViewLeaveReason, ViewLinkMode, Viewable, Viewer,
};
use throng::map::{MapEdited, SceneMap};
use throng::nav::{NavBuildLate, NavPath, PathFailed, PathFound};
use throng::session::{ConnectionLost, LoggedIn, LoggedOut, SessionResumed};
use throng::sim::{OverloadChanged, SimTick, state_hash};
use throng::sync::{AnnouncementScope, AnnouncementSent};
use throng::world::{
    Object, ObjectDespawned, ObjectKinds, ObjectRef, ObjectSpawned, Position, SceneId, SceneOpened,
    Scenes, SimScene, TeamId, ViewRange,
};

/// Writes the event log.
#[derive(Resource)]
pub struct EventLog {
    writer: Box<dyn Write + Send + Sync>,
    logs_positions: bool,
    logged: BTreeMap<ObjectRef, LoggedObject>,
    /// Cursors of spawns and despawns: these are logged several times per tick, and the cursors make each appear once.
    spawned: MessageCursor<ObjectSpawned>,
    despawned: MessageCursor<ObjectDespawned>,
    error: Option<io::Error>,
}

/// The last logged state of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct LoggedObject {
    team: Option<u32>,
    hidden: bool,
    cap: Option<u16>,
    cell: Option<GridCell>,
}

const fn visibility_name(visibility: ViewRange) -> &'static str {
    match visibility {
        ViewRange::Near => "near",
        ViewRange::Far(_) => "far",
        ViewRange::Scene => "scene",
    }
}

const fn reason_name(reason: ViewLeaveReason) -> &'static str {
    match reason {
        ViewLeaveReason::Range => "range",
        ViewLeaveReason::Evicted => "evicted",
        ViewLeaveReason::Despawn => "despawn",
        ViewLeaveReason::Scene => "scene",
        ViewLeaveReason::Hidden => "hidden",
    }
}

impl EventLog {
    /// Creates a log that writes to `to`; with `positions`, also a line per tick for the position of every object.
    #[must_use]
    pub fn new(to: Box<dyn Write + Send + Sync>, positions: bool) -> Self {
        Self {
            writer: to,
            logs_positions: positions,
            logged: BTreeMap::new(),
            spawned: MessageCursor::default(),
            despawned: MessageCursor::default(),
            error: None,
        }
    }

    /// Flushes buffered lines.
    ///
    /// # Errors
    /// The first write error; nothing was written after it.
    pub fn finish(mut self) -> io::Result<()> {
        self.error.map_or_else(|| self.writer.flush(), Err)
    }

    fn write(&mut self, tick: u64, scene: Option<SceneId>, event: Event) {
        if self.error.is_some() {
            return;
        }
        let line = EventLine {
            event,
            tick,
            scene: scene.map(|scene| scene.0),
        };
        let written = serde_json::to_writer(&mut self.writer, &line).map_err(io::Error::from);
        self.error = written.and_then(|()| self.writer.write_all(b"\n")).err();
    }
}

/// Logs opened scenes.
pub(in crate::scenario) fn log_scenes(
    mut log: ResMut<EventLog>,
    tick: Res<SimTick>,
    mut opened: MessageReader<SceneOpened>,
    scenes: Query<(&SimScene, Option<&SceneMap>, Option<&SceneAoiSettings>)>,
    stage: Option<Res<ScenarioWorld>>,
) {
    let tick = tick.0;
    for opened in opened.read() {
        let Ok((scene, map, interest)) = scenes.get(opened.entity) else {
            continue;
        };
        let caps = stage
            .as_ref()
            .and_then(|stage| stage.caps(opened.entity))
            .map_or([0; 3], ViewCaps::by_class);
        log.write(
            tick,
            Some(scene.id()),
            Event::Scene {
                name: scene.name(),
                map: stage
                    .as_ref()
                    .and_then(|stage| stage.map_name(opened.entity))
                    .unwrap_or(""),
                width: map.map_or(0, |map| map.tiles().width()),
                height: map.map_or(0, |map| map.tiles().height()),
                tile_m: map.map_or(0.0, SceneMap::tile_m),
                cell_m: interest.map_or(0.0, |interest| interest.cell_m),
                margin_m: interest.map_or(0.0, |interest| interest.margin_m),
                view_cap: caps[0],
                caps,
                mode: match interest
                    .map_or(ViewLinkMode::Directed, |interest| interest.view_link_mode)
                {
                    ViewLinkMode::Directed => "directed",
                    ViewLinkMode::Mutual => "mutual",
                },
            },
        );
    }
}

/// Logs changes of the overload level.
pub(in crate::scenario) fn log_overload(
    mut log: ResMut<EventLog>,
    tick: Res<SimTick>,
    mut changed: MessageReader<OverloadChanged>,
) {
    for OverloadChanged { change, load } in changed.read() {
        let event = Event::Overload {
            from: change.from.name(),
            to: change.to.name(),
            time_percent: change.time_percent,
            load: *load,
        };
        log.write(tick.0, None, event);
    }
}

/// Logs logins, logouts, lost connections and resumed sessions.
pub(in crate::scenario) fn log_sessions(
    mut log: ResMut<EventLog>,
    tick: Res<SimTick>,
    mut logged_in: MessageReader<LoggedIn>,
    mut connections: (MessageReader<ConnectionLost>, MessageReader<SessionResumed>),
    mut logged_out: MessageReader<LoggedOut>,
) {
    let tick = tick.0;
    for lost in connections.0.read() {
        let (client, player) = (lost.client.0, lost.player.0);
        log.write(tick, None, Event::ConnectionLost { client, player });
    }
    for resumed in connections.1.read() {
        let SessionResumed {
            client,
            previous_client: before,
            player,
            ..
        } = resumed;
        let event = Event::Resume {
            client: client.0,
            before: before.0,
            player: player.0,
        };
        log.write(tick, None, event);
    }
    for login in logged_in.read() {
        log.write(
            tick,
            None,
            Event::Login {
                client: login.client.0,
                player: login.player.0,
            },
        );
    }
    for logout in logged_out.read() {
        let reason = logout.reason.name();
        log.write(
            tick,
            None,
            Event::Logout {
                client: logout.client.0,
                player: logout.player.0,
                reason,
            },
        );
    }
}

/// Logs objects that spawned or despawned since the last call. Runs before each system that logs object ids, so that no line about
/// an object precedes its `spawn`.
pub(in crate::scenario) fn log_spawns(
    mut log: ResMut<EventLog>,
    tick: Res<SimTick>,
    kinds: Res<ObjectKinds>,
    (spawned, despawned): (Res<Messages<ObjectSpawned>>, Res<Messages<ObjectDespawned>>),
    objects: Query<(Option<&TeamId>, Option<&Viewer>, Has<Viewable>)>,
) {
    let tick = tick.0;
    let mut spawns: Vec<ObjectSpawned> = log.spawned.read(&spawned).copied().collect();
    spawns.sort_by_key(|spawned| spawned.object.reference());
    let despawns = log.despawned.read(&despawned);
    let mut removed: Vec<Object> = despawns.map(|despawned| despawned.object).collect();
    removed.sort_by_key(|object| object.reference());
    let is_new = |object: &Object| {
        spawns
            .binary_search_by_key(&object.reference(), |spawned| spawned.object.reference())
            .is_ok()
    };
    // Order: despawns of older objects, then spawns, then despawns of objects that are among these spawns.
    let (short_lived, before): (Vec<Object>, Vec<Object>) = removed.into_iter().partition(is_new);
    before
        .into_iter()
        .for_each(|object| log_despawn(&mut log, tick, object));
    for spawned in &spawns {
        let object = spawned.object;
        let found = objects.get(spawned.entity);
        let (team, viewer, viewable) = found.unwrap_or((None, None, false));
        let kind = kinds.get(object.kind());
        let team = team.map(|team| team.0);
        let cap = viewer.map(|viewer| viewer.caps.players);
        log.logged.insert(
            object.reference(),
            LoggedObject {
                team,
                hidden: false,
                cap,
                cell: None,
            },
        );
        log.write(
            tick,
            Some(object.scene()),
            Event::Spawn {
                id: object.id().0,
                generation: object.generation().0,
                kind: kind.map_or("", |kind| &kind.name),
                visibility: kind.map_or("near", |kind| visibility_name(kind.visibility)),
                viewable,
                viewer: viewer.is_some(),
                team,
                x: spawned.position.x,
                y: spawned.position.y,
            },
        );
    }
    short_lived
        .into_iter()
        .for_each(|object| log_despawn(&mut log, tick, object));
}

/// Logs map edits.
pub(in crate::scenario) fn log_edits(
    mut log: ResMut<EventLog>,
    tick: Res<SimTick>,
    mut edited: MessageReader<MapEdited>,
    maps: Query<&SceneMap>,
) {
    let tick = tick.0;
    for edited in edited.read() {
        let rect = edited.rect;
        let Ok(map) = maps.get(edited.scene_entity) else {
            continue;
        };
        let tiles = (rect.y..rect.bottom())
            .flat_map(|y| (rect.x..rect.right()).map(move |x| (x as i32, y as i32)));
        let blocked = tiles
            .filter(|&(x, y)| map.tiles().is_blocked((x, y).into()))
            .count() as u64;
        let blocked = match blocked {
            0 => Blocked::All(false),
            all if all == rect.tile_count() => Blocked::All(true),
            _ => Blocked::Mixed("pattern"),
        };
        let event = Event::Edit {
            x: rect.x,
            y: rect.y,
            w: rect.width,
            h: rect.height,
            blocked,
        };
        log.write(tick, Some(edited.scene), event);
    }
}

fn log_despawn(log: &mut EventLog, tick: u64, object: Object) {
    log.logged.remove(&object.reference());
    let event = Event::Despawn {
        id: object.id().0,
        generation: object.generation().0,
    };
    log.write(tick, Some(object.scene()), event);
}

/// Logs search data that was adopted late, before the first paths that use it.
pub(in crate::scenario) fn log_late_builds(
    mut log: ResMut<EventLog>,
    tick: Res<SimTick>,
    mut late: MessageReader<NavBuildLate>,
    scenes: Query<&SimScene>,
) {
    for late in late.read() {
        let Ok(scene) = scenes.get(late.scene) else {
            continue;
        };
        let event = Event::LateBuild {
            name: scene.name(),
            clearance: late.clearance,
            late_ticks: late.late_ticks,
        };
        log.write(tick.0, Some(scene.id()), event);
    }
}

/// Logs path replies. Runs before walkers move, since an object that arrives in the same tick has no path afterwards.
pub(in crate::scenario) fn log_paths(
    mut log: ResMut<EventLog>,
    tick: Res<SimTick>,
    mut found: MessageReader<PathFound>,
    mut failed: MessageReader<PathFailed>,
    paths: Query<&NavPath>,
) {
    let failed = failed.read().map(|answer| {
        let event = Event::Path {
            id: answer.object.id().0,
            from: answer.from,
            to: answer.to,
            result: answer.reason.name(),
            length: 0.0,
            waypoints: &[],
        };
        (answer.object, event)
    });
    let found = found.read().map(|answer| {
        let path = paths.get(answer.entity);
        let event = Event::Path {
            id: answer.object.id().0,
            from: answer.from,
            to: answer.to,
            result: "found",
            length: answer.length_tiles,
            waypoints: path.map_or(&[], NavPath::waypoints),
        };
        (answer.object, event)
    });
    let mut answers: Vec<_> = failed.chain(found).collect();
    answers.sort_by_key(|(object, _)| object.reference());
    for (object, event) in answers {
        log.write(tick.0, Some(object.scene()), event);
    }
}

/// Logs changes of team, cap, hiding and cell.
pub(in crate::scenario) fn log_objects(
    mut log: ResMut<EventLog>,
    tick: Res<SimTick>,
    objects: Query<(&Object, Option<&TeamId>, Option<&Viewer>, Option<&Viewable>)>,
    interests: Query<&SceneInterest>,
) {
    let tick = tick.0;
    let mut all: Vec<_> = objects.iter().collect();
    all.sort_unstable_by_key(|(object, ..)| object.key());
    for (object, team, viewer, viewable) in all {
        let cell = interests
            .get(object.scene_entity())
            .ok()
            .and_then(|i| i.views().cell(object.id().0));
        let now = LoggedObject {
            team: team.map(|team| team.0),
            hidden: viewable.is_some_and(|viewable| viewable.hidden),
            cap: viewer.map(|viewer| viewer.caps.players),
            cell,
        };
        let known = log.logged.entry(object.reference()).or_default();
        let before = std::mem::replace(known, now);
        if before == now {
            continue;
        }
        let (id, scene) = (object.id().0, Some(object.scene()));
        if before.team != now.team {
            log.write(tick, scene, Event::Team { id, team: now.team });
        }
        if before.hidden != now.hidden {
            log.write(
                tick,
                scene,
                Event::Hide {
                    id,
                    hidden: now.hidden,
                },
            );
        }
        if before.cap != now.cap {
            log.write(
                tick,
                scene,
                Event::Cap {
                    id,
                    view_cap: now.cap,
                },
            );
        }
        if let Some(cell) = now.cell.filter(|_| before.cell != now.cell) {
            log.write(
                tick,
                scene,
                Event::Cell {
                    id,
                    cx: cell.x,
                    cy: cell.y,
                },
            );
        }
    }
}

/// Logs enters and leaves of views.
pub(in crate::scenario) fn log_views(
    mut log: ResMut<EventLog>,
    tick: Res<SimTick>,
    scenes: Res<Scenes>,
    interests: Query<&SceneInterest>,
) {
    let tick = tick.0;
    for (scene, entity) in scenes.iter() {
        let events = interests.get(entity).map_or(&[][..], SceneInterest::events);
        for &event in events {
            let event = match event {
                ViewEvent::Enter {
                    viewer,
                    target,
                    priority,
                    ..
                } => Event::Enter {
                    viewer,
                    target,
                    priority,
                },
                ViewEvent::Leave {
                    viewer,
                    target,
                    reason,
                    ..
                } => Event::Leave {
                    viewer,
                    target,
                    reason: reason_name(reason),
                },
            };
            log.write(tick, Some(scene), event);
        }
    }
}

/// Logs announcements, with the number of recipients.
pub(in crate::scenario) fn log_announcements(
    mut log: ResMut<EventLog>,
    tick: Res<SimTick>,
    mut announced: MessageReader<AnnouncementSent>,
) {
    for announced in announced.read() {
        let from = announced.about;
        let (scope, scene) = match announced.scope {
            AnnouncementScope::Viewers(of) => ("viewers", Some(of.scene)),
            AnnouncementScope::Radius { scene, .. } => ("radius", Some(scene)),
            AnnouncementScope::Party(_) => ("party", None),
            AnnouncementScope::Scene(scene) => ("scene", Some(scene)),
            AnnouncementScope::Client(_) => ("client", None),
        };
        let event = Event::Announce {
            from: from.map(|from| from.id.0),
            scope,
            receivers: announced.receivers,
        };
        log.write(tick.0, scene.or(from.map(|from| from.scene)), event);
    }
}

/// Logs positions, if requested, and the state hash of the tick.
pub(in crate::scenario) fn log_tick_end(world: &mut World) {
    let tick = world.resource::<SimTick>().0;
    let hash = format!("{:016x}", state_hash(world).fold());
    let mut all: Vec<(Object, glam::Vec2)> = Vec::new();
    if world.resource::<EventLog>().logs_positions {
        let mut query = world.query::<(&Object, &Position)>();
        let objects = query.iter(world);
        all.extend(objects.map(|(object, position)| (*object, position.0)));
        all.sort_unstable_by_key(|(object, _)| object.key());
    }
    let mut log = world.resource_mut::<EventLog>();
    for (object, at) in all {
        let event = Event::Pos {
            id: object.id().0,
            x: at.x,
            y: at.y,
        };
        log.write(tick, Some(object.scene()), event);
    }
    log.write(tick, None, Event::TickEnd { hash });
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use bevy_app::{App, Update};

    use super::*;
    use throng::world::{SceneSpec, WorldPlugin, open_scene};

    #[test]
    fn late_builds_are_logged_with_scene_and_delay() {
        let (mut app, (mut read, written)) = (App::new(), io::pipe().unwrap());
        app.add_plugins((bevy_time::TimePlugin, WorldPlugin))
            .insert_resource(EventLog::new(Box::new(written), false))
            .add_message::<NavBuildLate>()
            .add_systems(Update, log_late_builds);
        let spec = SceneSpec {
            name: "cave".to_owned(),
            ..SceneSpec::default()
        };
        let scene = open_scene(app.world_mut(), spec, ()).unwrap();
        for scene in [scene, Entity::PLACEHOLDER] {
            app.world_mut().write_message(NavBuildLate {
                scene,
                clearance: 2,
                late_ticks: 17,
            });
        }
        app.update();
        let line = r#"{"type":"late_build","name":"cave","clearance":2,"late_ticks":17,"tick":0,"scene":0}"#;
        #[expect(clippy::disallowed_methods, reason = "closes the pipe")]
        app.world_mut().remove_resource::<EventLog>();
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        assert_eq!(text, format!("{line}\n"));
    }
}
