//! Expectations: what is watched while a scenario plays, and how it is judged when it is over.

use bevy_ecs::prelude::*;

use super::report::{Judged, Report};
use super::schema::{Expectation, Scenario};
use crate::aoi::{AoiStats, SceneInterest, validate_views};
use crate::crowd::{SyntheticClients, mirror_errors};
use crate::inbox::Inbox;
use crate::map::SceneMap;
use crate::matchmaking::Matchmaker;
use crate::movement::Speed;
use crate::nav::{
    Algorithm, NavMap, NavStats, Outcome, Path, PathFound, Query as PathQuery, Search,
};
use crate::outbox::Outbox;
use crate::session::{SessionStats, Sessions};
use crate::sim::SimTick;
use crate::sync::SyncStats;
use crate::world::{KindClass, Object, Position, SceneId};

/// Paths of a run that are searched anew by A*, spread over its ticks.
const PATHS_CHECKED_MAX: u64 = 50;

/// Nodes that such a search may generate; a longer one counts as not checked.
const PATH_NODES_MAX: u32 = 4_000_000;

/// What is watched every tick.
#[derive(Resource, Default)]
pub(super) struct Watch {
    cap: bool,
    blocked: bool,
    paths: bool,
    over_cap: CheckCount,
    on_blocked: CheckCount,
    inexact: CheckCount,
    found_paths: u64,
    checked_paths: u64,
    search: Search,
}

/// How often something happened that should not, and the first time in words.
#[derive(Debug, Default)]
struct CheckCount {
    count: u64,
    first: Option<String>,
}

impl CheckCount {
    fn add(&mut self, what: impl FnOnce() -> String) {
        self.count += 1;
        self.first.get_or_insert_with(what);
    }

    fn judged(&self, nothing: String) -> (bool, String) {
        match &self.first {
            None => (true, nothing),
            Some(first) => (false, format!("{} times, first: {first}", self.count)),
        }
    }
}

impl Watch {
    pub fn new(scenario: &Scenario) -> Self {
        let expects = |expectation| scenario.expect.contains(&expectation);
        Self {
            cap: expects(Expectation::ViewsWithinCap),
            blocked: expects(Expectation::NobodyOnBlocked),
            paths: expects(Expectation::PathsExact),
            ..Self::default()
        }
    }
}

/// Nobody over cap, nobody on a blocked tile, paths as short as A* finds them.
pub(super) fn watch(
    mut watch: ResMut<Watch>,
    tick: Res<SimTick>,
    objects: Query<(&Object, &Position, Has<Speed>)>,
    scenes: Query<(&SceneMap, Option<&SceneInterest>)>,
    mut found: MessageReader<PathFound>,
    paths: Query<&Path>,
) {
    let tick = tick.0;
    if watch.cap || watch.blocked {
        for (object, position, can_move) in &objects {
            let Ok((map, interest)) = scenes.get(object.scene_entity()) else {
                continue;
            };
            // A door may stand in its own wall.
            if watch.blocked && can_move && !map.is_free_at(position.0) {
                let (id, at) = (object.id(), position.0);
                watch
                    .on_blocked
                    .add(|| format!("object {id} at {at} in tick {tick}"));
            }
            if watch.cap
                && let Some(interest) = interest
            {
                watch_cap(&mut watch, tick, interest, object);
            }
        }
    }
    // A search by A* takes milliseconds; one a tick, of the first found, is spread evenly enough.
    let mut one = watch.paths;
    for answer in found.read() {
        watch.found_paths += 1;
        if one && watch.checked_paths < PATHS_CHECKED_MAX {
            one = !check_path(&mut watch, tick, answer, &paths, &scenes);
        }
    }
}

fn watch_cap(watch: &mut Watch, tick: u64, interest: &SceneInterest, object: &Object) {
    let (views, id) = (interest.views(), object.id().0);
    let Some(caps) = views.caps(id) else { return };
    for class in KindClass::ALL {
        let (found, cap) = (
            views.list_len(id, class),
            usize::from(caps.by_class()[class.index()]),
        );
        if found > cap {
            watch
                .over_cap
                .add(|| format!("object {id} saw {found} of at most {cap} in tick {tick}"));
        }
    }
}

/// Searches a found path anew; whether it was checked.
fn check_path(
    watch: &mut Watch,
    tick: u64,
    answer: &PathFound,
    paths: &Query<&Path>,
    scenes: &Query<(&SceneMap, Option<&SceneInterest>)>,
) -> bool {
    let Ok((map, _)) = scenes.get(answer.object.scene_entity()) else {
        return false;
    };
    // The map as it was searched: nothing edits it between Navigate and the end of the tick.
    let is_kept = paths
        .get(answer.entity)
        .is_ok_and(|path| path.goal() == Some(answer.to));
    if !is_kept {
        return false;
    }
    let query = PathQuery::new(answer.from, answer.to).with_node_limit(PATH_NODES_MAX);
    let (tiles, nav_map) = (map.tiles(), NavMap::default());
    let search = &mut watch.search;
    match search.find(tiles, &nav_map, Algorithm::AStar, query, &mut Vec::new()) {
        Outcome::Capped => return false,
        Outcome::Found(found) if (found.length_tiles() - answer.length_tiles).abs() < 1e-6 => {}
        other => {
            let (from, to, length) = (answer.from, answer.to, answer.length_tiles);
            watch.inexact.add(|| {
                format!("{from} to {to} is {length:.3} tiles, A* says {other:?} in tick {tick}")
            });
        }
    }
    watch.checked_paths += 1;
    true
}

/// Judges every expectation, now that everything is at rest. Expectations on time are shown and not judged when
/// `judge_timing` is off.
pub(super) fn judge(
    world: &mut World,
    scenario: &Scenario,
    report: &Report,
    at_rest: bool,
    judge_timing: bool,
) -> Vec<Judged> {
    let judge = |expectation: &Expectation| {
        let (holds, found) = find(world, expectation, report, at_rest);
        let skipped = expectation.is_timing() && !judge_timing;
        Judged {
            text: expectation.to_string(),
            holds: (!skipped).then_some(holds),
            found,
        }
    };
    scenario.expect.iter().map(judge).collect()
}

fn find(
    world: &World,
    expectation: &Expectation,
    report: &Report,
    at_rest: bool,
) -> (bool, String) {
    let watch = world.resource::<Watch>();
    match expectation {
        Expectation::ViewsWithinCap => watch
            .over_cap
            .judged(format!("longest list {}", report.views.max_list)),
        Expectation::NobodyOnBlocked => watch.on_blocked.judged("nobody".into()),
        Expectation::PathsExact => {
            let (checked, found) = (watch.checked_paths, watch.found_paths);
            let (holds, text) = watch
                .inexact
                .judged(format!("{checked} of {found} checked against A*"));
            (holds && checked > 0, text)
        }
        Expectation::ViewsStable => views_stable(world, at_rest),
        Expectation::MirrorsEqual => {
            let (mirrors, errors) = mirror_errors(world, 1);
            match errors.into_iter().next() {
                Some(error) => (false, error),
                None if !at_rest => (false, "the run did not come to rest".into()),
                None => (mirrors > 0, format!("{mirrors} mirrors")),
            }
        }
        Expectation::NoUnreachable => (
            report.paths.unreachable == 0,
            format!("{} of {}", report.paths.unreachable, report.paths.requested),
        ),
        Expectation::MatchesAtLeast(count) => (
            report.matchmaking.matches >= *count,
            format!("{} matches", report.matchmaking.matches),
        ),
        Expectation::WaitUnderS(seconds) => {
            let longest = report.matchmaking.max_wait_s;
            (longest < *seconds, format!("{longest:.1} s"))
        }
        Expectation::Conserved => conserved(world, report),
        Expectation::TickP99UnderMs(ms) => (
            report.tick_ms.p99 < *ms,
            format!("{:.2} ms", report.tick_ms.p99),
        ),
        Expectation::SetP99UnderMs(set, ms) => {
            let p99 = report
                .systems
                .get(set.name())
                .map_or(f64::INFINITY, |set| set.p99_ms);
            (p99 < *ms, format!("{p99:.2} ms"))
        }
        Expectation::BytesPerClientUnder(bytes) => {
            let found = report.sync.bytes_per_client_s;
            (found < *bytes, format!("{found:.0} bytes/s"))
        }
        Expectation::HashIs(hash) => (report.state_hash == *hash, report.state_hash.clone()),
    }
}

fn views_stable(world: &World, at_rest: bool) -> (bool, String) {
    if !at_rest {
        return (false, "the run did not come to rest".into());
    }
    let mut links = 0;
    for (id, scene) in world.resource::<crate::world::Scenes>().iter() {
        let Some(interest) = world.get::<SceneInterest>(scene) else {
            continue;
        };
        links += interest.views().link_count();
        if let Err(fault) = validate_views(world, scene) {
            let SceneId(id) = id;
            return (false, format!("scene {id}: {fault}"));
        }
    }
    (true, format!("{links} links as they should be"))
}

/// Nothing is lost: every party, message, session and path request is accounted for.
fn conserved(world: &World, report: &Report) -> (bool, String) {
    let inbox = &report.inbox;
    let backlog = world.resource::<Inbox>().backlog() as u64;
    let parties = world.resource::<Matchmaker>().conserved();
    // The figures are of the end of the run; what came in while it came to rest is counted on both sides.
    let counters = world.resource::<Inbox>().counters();
    let messages = counters.received == counters.handled + counters.refused + backlog;
    let stats = world.resource::<SessionStats>();
    let sessions = world
        .resource::<Sessions>()
        .iter()
        .filter(|(_, session)| session.player.is_some());
    let logins = stats.logins == stats.logouts + sessions.count() as u64;
    let nav = world.resource::<NavStats>();
    let answered =
        nav.found + nav.unreachable + nav.blocked + nav.out_of_bounds + nav.capped + nav.cancelled;
    let paths = nav.requested == answered + nav.waiting;
    let found = format!(
        "{} parties, {} messages, {} logins, {} path requests",
        report.matchmaking.queued, inbox.received, stats.logins, nav.requested
    );
    (parties && messages && logins && paths, found)
}

/// Whether nothing waits any more that could still change what clients hold.
pub(super) fn is_quiet(world: &World) -> bool {
    world.resource::<AoiStats>().queued == 0
        && world.resource::<Inbox>().backlog() == 0
        && world.resource::<NavStats>().waiting == 0
        && world.resource::<SyncStats>().waiting == 0
        && world.resource::<Outbox>().waiting_bytes() == 0
        && !world.resource::<SyntheticClients>().is_under_way()
}
