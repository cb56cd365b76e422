//! Checks in every tick of a run, for expectations that must hold during the whole run.

use bevy_ecs::prelude::*;

use super::schema::{Expectation, Scenario, TickLimit};
use throng::aoi::{SceneInterest, Viewer};
use throng::map::SceneMap;
use throng::memory::MemoryUse;
use throng::movement::MaxSpeed;
use throng::nav::{
    Algorithm, NavMap, NavPath, PathFailed, PathFailure, PathFound, PathQuery, PathSearch,
    SearchOutcome,
};
use throng::sim::{SimTick, TickTimings};
use throng::world::{Object, ObjectCategory, Position};

/// Number of paths of a run that are searched again by A* if the expectation requests no share.
const PATHS_SAMPLED: u64 = 50;

/// Maximum number of nodes of such a search; a path that needs more counts as not checked.
const PATH_NODES_MAX: u32 = 4_000_000;

/// The checks of every tick.
#[derive(Resource, Default, MemoryUse)]
pub(super) struct TickChecks {
    /// One per expectation, in their order.
    items: Vec<WatchedExpectation>,
    /// The current number of viewers.
    viewer_count: u64,
    path_failures: PathFailureCounts,
    /// Whether the run is over and comes to rest: the times of later ticks are not checked.
    is_over: bool,
    search: PathSearch,
}

/// Path requests that could not be searched, by reason.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathFailureCounts {
    /// The tile on which they start is blocked.
    pub blocked_at_start: u64,
    /// The start is free, and their goal is not.
    pub blocked_at_goal: u64,
    /// Their scene has no map.
    pub without_map: u64,
}

/// The result of the checks of one expectation.
#[derive(Debug)]
pub(super) struct WatchedExpectation {
    kind: WatchKind,
    span: TickSpan,
    /// Violations.
    pub violations: CheckCount,
    /// Number of checked items: views, objects, searches, ticks.
    pub checked: u64,
    /// Paths that were found.
    pub found: u64,
    /// Ticks that took less than the limit.
    pub below_limit: u64,
    /// The longest of the checked ticks.
    pub longest_ms: f64,
}

#[derive(Clone, Copy, Debug)]
enum WatchKind {
    Cap,
    Blocked,
    Paths {
        share: Option<f64>,
    },
    Ticks(TickLimit),
    /// Not checked in ticks; judged by figures at the end.
    Figures,
}

/// A range of ticks: `after` is excluded, `until` is included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TickSpan {
    /// The last tick before the window; 0 if it begins with the run.
    pub after: u64,
    /// The last tick of the window; `None` for the end of the run.
    pub until: Option<u64>,
}

impl TickSpan {
    /// The window of an expectation.
    pub fn from_expectation(expectation: &Expectation, tick_hz: f64) -> Self {
        // The cast saturates.
        let tick = |t_s: f64| (t_s * tick_hz).floor() as u64;
        let window = expectation.split_window().1;
        window.map_or_else(Self::default, |(from_s, until_s)| Self {
            after: tick(from_s),
            until: until_s.map(tick),
        })
    }

    fn contains(self, tick: u64) -> bool {
        tick > self.after && self.until.is_none_or(|until| tick <= until)
    }
}

/// The number of violations, and the text of the first.
#[derive(Debug, Default)]
pub(super) struct CheckCount {
    /// The number of violations.
    pub count: u64,
    first: Option<String>,
}

impl CheckCount {
    fn add(&mut self, what: impl FnOnce() -> String) {
        self.count += 1;
        self.first.get_or_insert_with(what);
    }

    /// The count and the first violation as text; `None` if there was none.
    pub fn describe(&self) -> Option<String> {
        let first = self.first.as_ref()?;
        Some(format!("{} times, first: {first}", self.count))
    }
}

impl TickChecks {
    pub fn new(scenario: &Scenario) -> Self {
        let watched = |expectation: &Expectation| {
            let (plain, _) = expectation.split_window();
            let kind = match (plain, plain.tick_limit()) {
                (_, Some(limit)) => WatchKind::Ticks(limit),
                (Expectation::ViewsWithinCap, _) => WatchKind::Cap,
                (Expectation::NoObjectOnBlockedTile, _) => WatchKind::Blocked,
                (&Expectation::PathsExact { share }, _) => WatchKind::Paths { share },
                _ => WatchKind::Figures,
            };
            let mut span = TickSpan::from_expectation(expectation, scenario.tick_hz);
            if let WatchKind::Ticks(limit) = kind {
                let warm_up = (limit.warm_up_s * scenario.tick_hz).ceil() as u64;
                span.after = span.after.max(warm_up);
            }
            WatchedExpectation {
                kind,
                span,
                violations: CheckCount::default(),
                checked: 0,
                found: 0,
                below_limit: 0,
                longest_ms: 0.0,
            }
        };
        Self {
            items: scenario.expect.iter().map(watched).collect(),
            ..Self::default()
        }
    }

    /// Starts the rest phase of the run.
    pub const fn stop(&mut self) {
        self.is_over = true;
    }

    /// The result of the expectation with this index.
    pub fn item(&self, nth: usize) -> Option<&WatchedExpectation> {
        self.items.get(nth)
    }

    /// The number of viewers.
    pub const fn viewer_count(&self) -> u64 {
        self.viewer_count
    }

    /// Path requests that could not be searched.
    pub const fn path_failures(&self) -> PathFailureCounts {
        self.path_failures
    }

    /// The expectations that check something in this tick.
    fn items_for(
        &mut self,
        tick: u64,
        is_kind: fn(WatchKind) -> bool,
    ) -> Vec<&mut WatchedExpectation> {
        let items = self.items.iter_mut();
        items
            .filter(|item| is_kind(item.kind) && item.span.contains(tick))
            .collect()
    }
}

/// Checks view caps, blocked tiles, path lengths against A*, and tick times.
pub(super) fn check_tick(
    mut watch: ResMut<TickChecks>,
    (tick, timings): (Res<SimTick>, Option<Res<TickTimings>>),
    objects: Query<(&Object, &Position, Has<MaxSpeed>)>,
    viewers: Query<(), With<Viewer>>,
    scenes: Query<(&SceneMap, Option<&SceneInterest>)>,
    (mut found, mut failed): (MessageReader<PathFound>, MessageReader<PathFailed>),
    paths: Query<&NavPath>,
) {
    let (tick, watch) = (tick.0, &mut *watch);
    watch.viewer_count = viewers.iter().len() as u64;
    for failure in failed.read() {
        count_path_failure(&mut watch.path_failures, failure, &scenes);
    }
    if let Some(timings) = timings.filter(|_| !watch.is_over) {
        check_times(watch, tick, &timings);
    }
    for item in watch.items_for(tick, |kind| matches!(kind, WatchKind::Blocked)) {
        // Objects that cannot move may be on blocked tiles, such as a door in its wall.
        for (object, position, _) in objects.iter().filter(|(.., can_move)| *can_move) {
            let Ok((map, _)) = scenes.get(object.scene_entity()) else {
                continue;
            };
            item.checked += 1;
            if !map.is_free_at(position.0) {
                let (id, at) = (object.id(), position.0);
                let describe = || format!("object {id} at {at} in tick {tick}");
                item.violations.add(describe);
            }
        }
    }
    for item in watch.items_for(tick, |kind| matches!(kind, WatchKind::Cap)) {
        for (object, ..) in &objects {
            if let Ok((_, Some(interest))) = scenes.get(object.scene_entity()) {
                check_cap(item, tick, interest, object);
            }
        }
    }
    let TickChecks { items, search, .. } = watch;
    let items = items.iter_mut().filter(|item| item.span.contains(tick));
    let of_paths = items.filter_map(|item| match item.kind {
        WatchKind::Paths { share } => Some((item, share)),
        _ => None,
    });
    let mut of_paths = of_paths.peekable();
    if of_paths.peek().is_none() {
        found.clear();
        return;
    }
    let answers: Vec<PathFound> = found.read().copied().collect();
    for (item, share) in of_paths {
        check_paths(item, share, (tick, &answers), search, &paths, &scenes);
    }
}

/// Counts the reason why a request could not be searched. The map is that of the search, since nothing edits a map between Navigate
/// and the end of the tick.
fn count_path_failure(
    ends: &mut PathFailureCounts,
    failure: &PathFailed,
    scenes: &Query<(&SceneMap, Option<&SceneInterest>)>,
) {
    match (failure.reason, scenes.get(failure.object.scene_entity())) {
        (PathFailure::OutOfBounds, Err(_)) => ends.without_map += 1,
        (PathFailure::Blocked, Ok((map, _))) if map.tiles().is_free(failure.from) => {
            ends.blocked_at_goal += 1;
        }
        (PathFailure::Blocked, _) => ends.blocked_at_start += 1,
        _ => {}
    }
}

fn check_times(watch: &mut TickChecks, tick: u64, timings: &TickTimings) {
    for item in watch.items_for(tick, |kind| matches!(kind, WatchKind::Ticks(_))) {
        let WatchKind::Ticks(limit) = item.kind else {
            continue;
        };
        let ms = timings.last_ms(limit.set);
        item.checked += 1;
        item.below_limit += u64::from(ms < limit.ms);
        item.longest_ms = item.longest_ms.max(ms);
    }
}

fn check_cap(item: &mut WatchedExpectation, tick: u64, interest: &SceneInterest, object: &Object) {
    let (views, id) = (interest.views(), object.id().0);
    let Some(caps) = views.caps(id) else { return };
    item.checked += 1;
    for class in ObjectCategory::ALL {
        let (found, cap) = (
            views.list_len(id, class),
            usize::from(caps.by_class()[class.index()]),
        );
        if found > cap {
            item.violations
                .add(|| format!("object {id} saw {found} of at most {cap} in tick {tick}"));
        }
    }
}

fn check_paths(
    item: &mut WatchedExpectation,
    share: Option<f64>,
    (tick, answers): (u64, &[PathFound]),
    search: &mut PathSearch,
    paths: &Query<&NavPath>,
    scenes: &Query<(&SceneMap, Option<&SceneInterest>)>,
) {
    // A search by A* takes milliseconds. Without a share, at most one path per tick is checked, the first that was found.
    let mut is_open = item.checked < PATHS_SAMPLED;
    for answer in answers {
        item.found += 1;
        let is_due = share.map_or(is_open, |share| {
            (item.checked as f64) < share * item.found as f64
        });
        if is_due && check_path(item, tick, answer, search, paths, scenes) {
            item.checked += 1;
            is_open = false;
        }
    }
}

/// Searches a found path again; returns whether it was checked.
fn check_path(
    item: &mut WatchedExpectation,
    tick: u64,
    answer: &PathFound,
    search: &mut PathSearch,
    paths: &Query<&NavPath>,
    scenes: &Query<(&SceneMap, Option<&SceneInterest>)>,
) -> bool {
    let Ok((map, _)) = scenes.get(answer.object.scene_entity()) else {
        return false;
    };
    // The map is that of the search, since nothing edits it between Navigate and the end of the tick. A path that was replaced
    // since is skipped.
    let is_current = paths
        .get(answer.entity)
        .is_ok_and(|path| path.goal() == Some(answer.to));
    if !is_current {
        return false;
    }
    let query = PathQuery::new(answer.from, answer.to).with_node_limit(PATH_NODES_MAX);
    let (tiles, nav_map) = (map.tiles(), NavMap::default());
    match search.find(tiles, &nav_map, Algorithm::AStar, query, &mut Vec::new()) {
        SearchOutcome::Capped => return false,
        SearchOutcome::Found(found)
            if (found.length_tiles() - answer.length_tiles).abs() < 1e-6 => {}
        other => {
            let (from, to, length) = (answer.from, answer.to, answer.length_tiles);
            item.violations.add(|| {
                format!("{from} to {to} is {length:.3} tiles, A* says {other:?} in tick {tick}")
            });
        }
    }
    true
}
