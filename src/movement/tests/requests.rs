//! Path requests in an app: answered, replaced, cancelled and renewed, with equal results for any number of workers.

use std::sync::Arc;

use bevy_app::App;
use bevy_ecs::prelude::*;
use bevy_tasks::{ComputeTaskPool, TaskPool};
use glam::{IVec2, Vec2};

use crate::map::{SceneMap, TileEdit, TileMap, TileRect, edit_map};
use crate::nav::{
    Algorithm, Diagonal, NavMap, NavPath, NavPlugin, NavSettings, NavStats, Navigator, PathFailed,
    PathFailure, PathFound, PathRequest,
};
use crate::sim::{Workers, clock, logged_warnings, single_threaded, state_hash};
use crate::world::{KindId, SceneSpec, change_scene, open_scene, spawn_object, teleport};

pub(super) fn app(settings: NavSettings) -> App {
    let mut app = App::new();
    app.add_plugins((bevy_time::TimePlugin, NavPlugin))
        .insert_resource(settings);
    clock::one_tick_per_update(&mut app);
    app
}

/// One search per tick, so that further requests wait.
fn slow() -> NavSettings {
    NavSettings {
        searches_per_tick_max: 1,
        ..Default::default()
    }
}

/// A scene of 1 m tiles.
pub(super) fn scene(app: &mut App, ascii: &str) -> Entity {
    scene_on(app, TileMap::from_ascii(ascii).unwrap())
}

fn scene_on(app: &mut App, tiles: TileMap) -> Entity {
    let map = SceneMap::new(Arc::new(tiles), 1.0);
    let spec = SceneSpec {
        size_m: map.size_m(),
        ..Default::default()
    };
    open_scene(app.world_mut(), spec, map).unwrap()
}

pub(super) fn npc(app: &mut App, scene: Entity, x: f32, y: f32) -> Entity {
    spawn_object(app.world_mut(), scene, KindId(1), Vec2::new(x, y), ()).unwrap()
}

pub(super) fn request_path(app: &mut App, entity: Entity, x: f32, y: f32) {
    let request = PathRequest::to(Vec2::new(x, y));
    app.world_mut().entity_mut(entity).insert(request);
}

/// Entity, reason of failure and goal of a result.
pub(super) type PathAnswer = (Entity, Option<PathFailure>, (i32, i32));

pub(super) const FOUND: Option<PathFailure> = None;

/// This tick's results: the failures first, both in the order in which they were written.
pub(super) fn path_results(app: &App) -> Vec<PathAnswer> {
    let failed = app.world().resource::<Messages<PathFailed>>();
    let found = app.world().resource::<Messages<PathFound>>();
    let failed = failed
        .iter_current_update_messages()
        .map(|answer| (answer.entity, Some(answer.reason), answer.to.into()));
    let found = found
        .iter_current_update_messages()
        .map(|answer| (answer.entity, FOUND, answer.to.into()));
    failed.chain(found).collect()
}

pub(super) fn stats(app: &App) -> NavStats {
    app.world().resource::<NavStats>().clone()
}

pub(super) fn path(app: &App, entity: Entity) -> Vec<IVec2> {
    app.world()
        .get::<NavPath>(entity)
        .map_or(Vec::new(), |path| path.remaining().to_vec())
}

#[test]
fn requests_get_their_results() {
    let mut app = app(NavSettings {
        short_nodes_max: 2,
        ..Default::default()
    });
    let scene = scene(&mut app, "...@.\n.@.@.\n...@@\n.@...");
    let npcs = [(); 6].map(|()| npc(&mut app, scene, 0.5, 0.5));
    let goals = [
        (1.5, 0.5),
        (4.5, 0.5),
        (3.5, 0.5),
        (9.5, 0.5),
        (f32::NAN, 0.5),
        (4.5, 3.5),
    ];
    for (npc, goal) in npcs.into_iter().zip(goals) {
        request_path(&mut app, npc, goal.0, goal.1);
    }
    app.update();
    use PathFailure::{Blocked, Capped, OutOfBounds, Unreachable};
    let mut results: Vec<_> = path_results(&app)
        .into_iter()
        .map(|answer| (answer.0, answer.1))
        .collect();
    results.sort_unstable_by_key(|result| npcs.iter().position(|npc| *npc == result.0));
    let expected = [
        FOUND,
        Some(Unreachable),
        Some(Blocked),
        Some(OutOfBounds),
        Some(OutOfBounds),
        Some(Capped),
    ];
    assert_eq!(results, npcs.into_iter().zip(expected).collect::<Vec<_>>());
    assert_eq!(path(&app, npcs[0]), [IVec2::ZERO, IVec2::new(1, 0)]);
    assert!(npcs[1..].iter().all(|&npc| path(&app, npc).is_empty()));
    for npc in npcs {
        let request = app.world().get::<PathRequest>(npc);
        assert_eq!(request, None, "removed with its answer");
    }
    let request = PathRequest::long_to(Vec2::new(4.5, 3.5));
    app.world_mut().entity_mut(npcs[5]).insert(request);
    app.update();
    let found = app.world().resource::<Messages<PathFound>>();
    let found = found.iter_current_update_messages().next().unwrap();
    let way = "two down, two right, one down, two right";
    assert_eq!(found.length_tiles, 7.0, "{way}");
}

#[test]
fn path_ends_snap_as_far_as_the_request_allows() {
    let mut app = app(NavSettings {
        short_nodes_max: 1,
        ..Default::default()
    });
    let scene = scene(&mut app, "...@.\n.@.@.\n...@@\n.@.@.");
    let to = |x, y| PathRequest::to(Vec2::new(x, y));
    let cases = [
        (
            PathRequest {
                snap_tiles: 1,
                ..to(1.5, 1.5)
            },
            FOUND,
            (1, 0),
        ),
        (
            PathRequest {
                nearest_tiles: 3,
                ..to(4.5, 0.5)
            },
            FOUND,
            (2, 0),
        ),
        (
            PathRequest {
                nearest_tiles: 1,
                ..to(4.5, 0.5)
            },
            Some(PathFailure::Unreachable),
            (4, 0),
        ),
        (
            PathRequest {
                partial: true,
                ..to(2.5, 3.5)
            },
            Some(PathFailure::Capped),
            (2, 3),
        ),
    ];
    for (request, failure, end) in cases {
        let npc = npc(&mut app, scene, 0.5, 0.5);
        app.world_mut().entity_mut(npc).insert(request);
        app.update();
        assert_eq!(path_results(&app), [(npc, failure, end)]);
        let has_way = failure.is_none() || request.partial;
        assert_eq!(!path(&app, npc).is_empty(), has_way, "{request:?}");
    }
}

#[test]
fn equal_requests_of_a_tick_share_a_search() {
    let mut app = app(NavSettings::default());
    let scene = scene(&mut app, "...@.\n.@.@.\n.....\n.@.@.");
    let npcs = [0.2, 0.5, 0.7, 2.5].map(|x| npc(&mut app, scene, x, 0.5));
    for npc in npcs {
        request_path(&mut app, npc, 4.5, 0.5);
    }
    app.update();
    assert_eq!(path_results(&app), npcs.map(|npc| (npc, FOUND, (4, 0))));
    assert_eq!((stats(&app).found, stats(&app).shared), (4, 2));
    let ways = npcs.map(|npc| path(&app, npc));
    assert!(ways[0] == ways[1] && ways[1] == ways[2] && ways[2] != ways[3]);
}

/// Path lengths, in tiles, of a crowd of `npcs` with one goal, and the nodes expanded for them.
fn crowd_to_one_goal(npcs: usize, workers: usize) -> (Vec<f64>, u64, u64) {
    let mut app = app(NavSettings::default());
    app.insert_resource(Workers::new(workers));
    let row = |odd: bool| if odd { ".@".repeat(20) } else { ".".repeat(40) };
    let ascii: Vec<String> = (0..40).map(|y| row(y % 2 == 1)).collect();
    let scene = scene(&mut app, &ascii.join("\n"));
    for nth in 0..npcs {
        let (x, y) = ((nth * 7 % 40) as f32, (nth * 11 % 20 * 2) as f32);
        let npc = npc(&mut app, scene, x + 0.5, y + 0.5);
        request_path(&mut app, npc, 20.5, 20.5);
    }
    app.update();
    let found = app.world().resource::<Messages<PathFound>>();
    let found = found.iter_current_update_messages();
    let lengths = found.map(|found| {
        let way = path(&app, found.entity);
        let tiles = app.world().get::<SceneMap>(scene).unwrap().tiles();
        assert!(
            way.windows(2)
                .all(|ends| tiles.is_line_free(ends[0], ends[1]))
        );
        assert_eq!((way[0], way.last().copied()), (found.from, Some(found.to)));
        found.length_tiles
    });
    let lengths = lengths.collect();
    (lengths, stats(&app).expanded, stats(&app).shared)
}

#[test]
fn sixteen_requests_to_one_goal_share_a_search_fewer_do_not() {
    ComputeTaskPool::get_or_init(TaskPool::default);
    let (few, few_expanded, few_shared) = crowd_to_one_goal(15, 1);
    let (many, expanded, shared) = crowd_to_one_goal(120, 1);
    assert_eq!((few.len(), few_shared), (15, 0));
    assert_eq!((many.len(), shared), (120, 119));
    assert_eq!(few, many[..15], "as short either way");
    assert!(expanded < 3 * few_expanded, "{expanded} {few_expanded}");
    assert_eq!(crowd_to_one_goal(120, 3), (many, expanded, shared));
}

#[test]
fn withdrawn_request_is_cancelled() {
    let mut app = app(slow());
    let scene = scene(&mut app, "......");
    let [a, b, c] = [0.5, 1.5, 2.5].map(|x| npc(&mut app, scene, x, 0.5));
    for npc in [a, b, c] {
        request_path(&mut app, npc, 5.5, 0.5);
    }
    app.update();
    app.world_mut().entity_mut(b).remove::<PathRequest>();
    app.update();
    let expected = [
        (b, Some(PathFailure::Cancelled), (5, 0)),
        (c, FOUND, (5, 0)),
    ];
    assert_eq!(path_results(&app), expected);
}

#[test]
fn newer_request_replaces_and_cancels_the_older_one() {
    let mut app = app(slow());
    let scene = scene(&mut app, "......");
    let [a, b, c] = [0.5, 1.5, 2.5].map(|x| npc(&mut app, scene, x, 0.5));
    [a, b, c]
        .into_iter()
        .for_each(|npc| request_path(&mut app, npc, 5.5, 0.5));
    app.update();
    assert_eq!(path_results(&app), [(a, FOUND, (5, 0))]);
    request_path(&mut app, b, 4.5, 0.5);
    app.update();
    assert_eq!(
        path_results(&app),
        [
            (b, Some(PathFailure::Cancelled), (5, 0)),
            (b, FOUND, (4, 0))
        ]
    );
    app.update();
    assert_eq!(path_results(&app), [(c, FOUND, (5, 0))]);
    let stats = stats(&app);
    assert_eq!(
        (stats.requested, stats.found, stats.cancelled, stats.waiting),
        (4, 3, 1, 0)
    );
}

#[test]
fn despawn_or_scene_change_cancels_queued_requests() {
    let mut app = app(slow());
    let (here, there) = (scene(&mut app, "......"), scene(&mut app, "......"));
    let [a, b, c] = [0.5, 1.5, 2.5].map(|x| npc(&mut app, here, x, 0.5));
    [a, b, c]
        .into_iter()
        .for_each(|npc| request_path(&mut app, npc, 5.5, 0.5));
    app.update();
    app.world_mut().despawn(b);
    change_scene(app.world_mut(), c, there, Vec2::splat(0.5)).unwrap();
    app.update();
    assert_eq!(
        path_results(&app),
        [
            (b, Some(PathFailure::Cancelled), (5, 0)),
            (c, Some(PathFailure::Cancelled), (5, 0))
        ]
    );
    assert!(!path(&app, a).is_empty());
    change_scene(app.world_mut(), a, there, Vec2::splat(0.5)).unwrap();
    let nobody = app.world_mut().spawn(PathRequest::default()).id();
    app.update();
    assert!(app.world().get::<PathRequest>(nobody).is_none());
    assert!(
        path(&app, a).is_empty(),
        "its way was one of the other scene"
    );
    assert_eq!(
        stats(&app).cancelled,
        2,
        "a request without an object is ignored"
    );
    assert_eq!(stats(&app).waiting, 0);
}

#[test]
fn full_queue_refuses_new_requests_but_not_replacements() {
    let mut app = app(NavSettings {
        queue_max: 1,
        ..Default::default()
    });
    let scene = scene(&mut app, "......");
    let [a, b] = [0.5, 1.5].map(|x| npc(&mut app, scene, x, 0.5));
    request_path(&mut app, a, 5.5, 0.5);
    request_path(&mut app, b, 5.5, 0.5);
    request_path(&mut app, a, 4.5, 0.5);
    app.update();
    let expected = [
        (b, Some(PathFailure::Cancelled), (5, 0)),
        (a, Some(PathFailure::Cancelled), (4, 0)),
        (a, FOUND, (4, 0)),
    ];
    assert_eq!(path_results(&app), expected);
    assert!(app.world().get::<PathRequest>(b).is_none());
}

#[test]
fn edit_replans_exactly_the_paths_that_it_breaks() {
    let mut app = app(NavSettings::default());
    let scene = scene(&mut app, ".......\n.......\n.......");
    let [upper, lower, asking] = [0.5, 2.5, 0.5].map(|y| npc(&mut app, scene, 0.5, y));
    [(upper, 0.5), (lower, 2.5), (asking, 0.5)]
        .into_iter()
        .for_each(|(npc, y)| request_path(&mut app, npc, 6.5, y));
    app.update();
    let wall = TileRect::new(3, 0, 1, 2);
    edit_map(app.world_mut(), scene, wall, &TileEdit::Block).unwrap();
    request_path(&mut app, asking, 1.5, 0.5);
    app.update();
    assert_eq!(
        path_results(&app),
        [(asking, FOUND, (1, 0)), (upper, FOUND, (6, 0))],
        "one has other plans, and the lower path is whole"
    );
    assert_eq!(path(&app, upper).len(), 4, "round the wall");
    assert_eq!(app.world().get::<NavPath>(upper).unwrap().map_version(), 1);
    edit_map(app.world_mut(), scene, wall, &TileEdit::Free).unwrap();
    app.update();
    assert_eq!(
        (path_results(&app), stats(&app).replanned),
        (Vec::new(), 1),
        "what opens breaks nothing"
    );
}

#[test]
fn teleport_ends_the_path_but_not_a_later_request() {
    let mut app = app(NavSettings::default());
    let scene = scene(&mut app, "......");
    let [a, b] = [(); 2].map(|()| npc(&mut app, scene, 0.5, 0.5));
    [a, b]
        .into_iter()
        .for_each(|npc| request_path(&mut app, npc, 5.5, 0.5));
    app.update();
    [a, b]
        .into_iter()
        .for_each(|npc| teleport(app.world_mut(), npc, Vec2::new(3.5, 0.5)).unwrap());
    request_path(&mut app, b, 5.5, 0.5);
    app.update();
    assert_eq!(path(&app, a), []);
    assert_eq!(path(&app, b), [IVec2::new(3, 0), IVec2::new(5, 0)]);
    app.update();
    assert_eq!(path(&app, b).len(), 2);
}

/// The results of every tick and the final hash of a crowd on a maze of pillars, under a tight budget.
fn crowd(workers: usize) -> (Vec<Vec<PathAnswer>>, u128) {
    let mut app = app(NavSettings {
        expansions_per_tick_max: 500,
        ..Default::default()
    });
    app.insert_resource(Workers::new(workers));
    let row = |odd: bool| if odd { ".@".repeat(20) } else { ".".repeat(40) };
    let ascii: Vec<String> = (0..40).map(|y| row(y % 2 == 1)).collect();
    let scene = scene(&mut app, &ascii.join("\n"));
    for i in 0..400 {
        let npc = npc(
            &mut app,
            scene,
            (i % 20 * 2) as f32 + 0.5,
            (i / 20 * 2) as f32 + 0.5,
        );
        request_path(
            &mut app,
            npc,
            (i * 7 % 20 * 2) as f32 + 0.5,
            (i * 3 % 20 * 2) as f32 + 0.5,
        );
    }
    let mut ticks = Vec::new();
    while ticks.is_empty() || stats(&app).waiting > 0 {
        app.update();
        ticks.push(path_results(&app));
    }
    (ticks, state_hash(app.world_mut()).0)
}

#[test]
fn budget_ends_at_the_same_request_for_any_worker_count() {
    ComputeTaskPool::get_or_init(TaskPool::default);
    let alone = crowd(1);
    assert!(
        alone.0.len() > 2,
        "the budget spreads the requests over ticks"
    );
    assert_eq!(alone.0.iter().map(Vec::len).sum::<usize>(), 400);
    assert_eq!(alone, crowd(3));
}

#[test]
fn tick_without_budget_runs_one_search() {
    for expansions_per_tick_max in [0, 1] {
        let mut app = app(NavSettings {
            expansions_per_tick_max,
            ..Default::default()
        });
        let scene = scene(&mut app, "......");
        for nth in 0..5 {
            let entity = npc(&mut app, scene, nth as f32 + 0.5, 0.5);
            request_path(&mut app, entity, 5.5, 0.5);
        }
        app.update();
        assert_eq!((path_results(&app).len(), stats(&app).waiting), (1, 4));
    }
}

#[test]
fn oldest_request_is_served_without_time_and_none_is_lost() {
    let mut app = app(NavSettings {
        budget_ms: Some(0.0),
        ..Default::default()
    });
    let scene = scene(&mut app, "......");
    let npcs = [0.5, 1.5, 2.5].map(|x| npc(&mut app, scene, x, 0.5));
    for npc in npcs {
        request_path(&mut app, npc, 5.5, 0.5);
    }
    let found = |npc| (npc, FOUND, (5, 0));
    app.update();
    assert_eq!(path_results(&app), [found(npcs[0])]);
    assert_eq!(stats(&app).waiting, 2);
    app.world_mut().resource_mut::<NavSettings>().budget_ms = None;
    app.update();
    assert_eq!(path_results(&app), [npcs[1], npcs[2]].map(found));
}

/// The results of a scene with these tiles before and after an edit; the number of builds that used data from the map's file.
fn paths_on(tiles: TileMap) -> (Vec<Vec<IVec2>>, u128, u64) {
    let mut app = app(NavSettings::default());
    let scene = scene_on(&mut app, tiles);
    let npc = npc(&mut app, scene, 1.5, 0.5);
    let mut paths = Vec::new();
    for tick in 0..40 {
        request_path(&mut app, npc, 69.5, 0.5 + (tick * 7 % 39) as f32);
        app.update();
        paths.push(path(&app, npc));
        if tick == 5 {
            let rect = TileRect::new(30, 10, 3, 20);
            edit_map(app.world_mut(), scene, rect, &TileEdit::Toggle).unwrap();
        }
    }
    let hash = state_hash(app.world_mut()).fold();
    let builds = app.world().resource::<Navigator>().build_stats();
    assert_eq!(builds.adopted, 2, "one for the edit");
    (paths, hash.into(), builds.loaded)
}

#[test]
fn loaded_map_sections_give_the_same_paths_as_a_build() {
    let tiles = TileMap::from_fn(70, 40, |x, y| (x * 7 + y * 13) % 11 == 0).unwrap();
    let mut nav_map = NavMap::new(Diagonal::default());
    nav_map.prepare(&tiles, Algorithm::JpsGraph);
    let parts = nav_map.to_sections(&tiles);
    let (paths, hash, loaded) = paths_on(tiles.clone());
    assert!(loaded == 0 && paths.iter().any(|path| path.len() > 3));
    assert_eq!(paths_on(tiles.with_sections(parts)), (paths, hash, 2));
}

#[test]
fn impossible_requests_are_logged_once_per_scene_and_cause() {
    let mut app = app(NavSettings::default());
    // Warnings are collected on this thread.
    single_threaded(&mut app);
    let spec = SceneSpec::default();
    let bare = open_scene(app.world_mut(), spec, ()).unwrap();
    let walled = scene(&mut app, "...\n.@.\n...");
    let [lost, other] = [1.5, 2.5].map(|x| npc(&mut app, bare, x, 0.5));
    let walker = npc(&mut app, walled, 0.5, 0.5);
    let warnings = logged_warnings(|| {
        for _ in 0..3 {
            request_path(&mut app, lost, 9.0, 9.0);
            request_path(&mut app, other, 8.0, 9.0);
            request_path(&mut app, walker, 1.5, 1.5);
            app.update();
            request_path(&mut app, walker, 3.5, 1.5);
            app.update();
            let snapped = PathRequest {
                snap_tiles: 1,
                ..PathRequest::to(Vec2::new(1.2, 1.2))
            };
            app.world_mut().entity_mut(walker).insert(snapped);
            app.update();
        }
    });
    let expected = [
        "path request fails: its scene has no map (`SceneMap`)",
        "path request fails: its goal is on a blocked tile (`snap_tiles` moves it to a free one)",
        "path request fails: its goal is outside the map",
    ];
    let messages: Vec<&str> = warnings
        .iter()
        .filter_map(|line| line.split(';').next())
        .collect();
    assert_eq!(messages, expected, "{warnings:?}");
    assert!(
        warnings[2].contains("goal=[3.5, 1.5]; size_m=[3, 3]"),
        "{warnings:?}"
    );
}

#[test]
fn walker_whose_goal_was_blocked_on_its_way_is_not_logged() {
    let mut app = app(NavSettings::default());
    single_threaded(&mut app);
    let scene = scene(&mut app, "......");
    let walker = npc(&mut app, scene, 0.5, 0.5);
    request_path(&mut app, walker, 5.5, 0.5);
    app.update();
    let rect = TileRect::new(5, 0, 1, 1);
    edit_map(app.world_mut(), scene, rect, &TileEdit::Block).unwrap();
    let warnings = logged_warnings(|| {
        request_path(&mut app, walker, 5.5, 0.5);
        app.update();
    });
    assert_eq!(warnings, Vec::<String>::new());
}
