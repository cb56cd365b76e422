//! Long searches: sliced over ticks, exact, and equal for any number of workers.

use bevy_app::App;
use bevy_ecs::prelude::*;
use bevy_tasks::{ComputeTaskPool, TaskPool};
use glam::{IVec2, Vec2};

use super::requests::{
    FOUND, PathAnswer, app, npc, path, path_results, request_path, scene, stats,
};
use crate::map::{SceneMap, TileEdit, TileRect, edit_map};
use crate::nav::{Algorithm, NavMap, NavSettings, NavStats, PathFailure, PathFound, PathRequest};
use crate::nav::{PathQuery, PathSearch, SearchOutcome};
use crate::sim::{Workers, state_hash};
use crate::world::teleport;

/// Two searches at once, with two expansions per slice, and one round of slices per tick.
fn sliced() -> NavSettings {
    NavSettings {
        long_searches_max: 2,
        long_search_expansions_per_tick: 1,
        long_search_slice_expansions: 2,
        ..Default::default()
    }
}

fn request_long_path(app: &mut App, entity: Entity, x: f32, y: f32) {
    let request = PathRequest::long_to(Vec2::new(x, y));
    app.world_mut().entity_mut(entity).insert(request);
}

/// Walls with gaps at alternate ends.
fn winding() -> String {
    winding_of(20)
}

fn winding_of(side: usize) -> String {
    let row = |y: usize| match y % 4 {
        1 => format!("{}.", "@".repeat(side - 1)),
        3 => format!(".{}", "@".repeat(side - 1)),
        _ => ".".repeat(side),
    };
    (0..side).map(row).collect::<Vec<_>>().join("\n")
}

/// The length of a shortest path, from a single search.
fn length(app: &App, scene: Entity, from: IVec2, to: IVec2) -> Option<f64> {
    let tiles = app.world().get::<SceneMap>(scene).unwrap().tiles();
    let (nav_map, query) = (NavMap::default(), PathQuery::new(from, to));
    let mut waypoints = Vec::new();
    match PathSearch::new().find(tiles, &nav_map, Algorithm::AStar, query, &mut waypoints) {
        SearchOutcome::Found(path) => Some(path.length_tiles()),
        _ => None,
    }
}

fn found_length(app: &App) -> Option<f64> {
    let found = app.world().resource::<Messages<PathFound>>();
    let mut found = found.iter_current_update_messages();
    found.next().map(|found| found.length_tiles)
}

#[test]
fn long_search_spans_ticks_without_delaying_short_ones() {
    let mut app = app(sliced());
    let scene = scene(&mut app, &winding());
    let [traveller, other] = [0.5, 1.5].map(|x| npc(&mut app, scene, x, 0.5));
    request_long_path(&mut app, traveller, 0.5, 18.5);
    let mut ticks = 0;
    let length = length(&app, scene, IVec2::ZERO, IVec2::new(0, 18)).unwrap();
    loop {
        request_path(&mut app, other, 3.5, 0.5);
        app.update();
        ticks += 1;
        let answers = path_results(&app);
        assert_eq!(answers[0], (other, FOUND, (3, 0)));
        if answers.len() == 2 {
            assert_eq!(answers[1], (traveller, FOUND, (0, 18)));
            break;
        }
        assert_eq!(stats(&app).waiting, 1);
    }
    assert!(ticks > 3, "{ticks}");
    let messages = app.world().resource::<Messages<PathFound>>();
    let mut messages = messages.iter_current_update_messages();
    let found = messages.find(|found| found.entity == traveller).unwrap();
    assert_eq!(found.length_tiles, length);
    assert!(app.world().get::<PathRequest>(traveller).is_none());
    assert_eq!(path(&app, traveller).last(), Some(&IVec2::new(0, 18)));
}

#[test]
fn expansions_per_tick_stay_near_the_limit() {
    let (may, searches) = (1_000, 8);
    let settings = NavSettings {
        algorithm: Algorithm::AStar,
        long_search_expansions_per_tick: may,
        ..NavSettings::default()
    };
    let mut app = app(settings);
    let scene = scene(&mut app, &winding_of(60));
    for _ in 0..searches {
        let traveller = npc(&mut app, scene, 0.5, 0.5);
        request_long_path(&mut app, traveller, 0.5, 58.5);
    }
    let mut ticks = 0;
    while stats(&app).found < searches && ticks < 100 {
        app.update();
        ticks += 1;
    }
    let NavStats {
        found, expanded, ..
    } = stats(&app);
    assert_eq!(found, searches);
    assert!(expanded > 8 * may, "{expanded}");
    assert!(expanded <= ticks * (may + searches * 64), "{ticks} ticks");
}

#[test]
fn long_search_is_exact_on_a_map_edited_every_tick() {
    let mut app = app(sliced());
    let scene = scene(&mut app, &winding());
    let traveller = npc(&mut app, scene, 0.5, 0.5);
    request_long_path(&mut app, traveller, 0.5, 18.5);
    let mut ticks = 0;
    while found_length(&app).is_none() {
        // A gap that opens and closes: the path lengths differ by far.
        edit_map(
            app.world_mut(),
            scene,
            TileRect::new(5, 1, 1, 1),
            &TileEdit::Toggle,
        )
        .unwrap();
        app.update();
        ticks += 1;
        assert!(ticks < 20, "a slice that doubles comes to an end");
    }
    assert!(ticks > 2, "{ticks}");
    let expected = length(&app, scene, IVec2::ZERO, IVec2::new(0, 18));
    assert_eq!(found_length(&app), expected);
}

#[test]
fn long_search_stops_on_teleport_new_request_or_despawn() {
    let mut app = app(sliced());
    let scene = scene(&mut app, &winding());
    let npcs = [0.5, 1.5, 2.5, 3.5].map(|x| npc(&mut app, scene, x, 0.5));
    let [put, changed, gone, last] = npcs;
    npcs.iter()
        .for_each(|&npc| request_long_path(&mut app, npc, 0.5, 18.5));
    app.update();
    assert!(path_results(&app).is_empty());
    teleport(app.world_mut(), put, Vec2::new(2.5, 18.5)).unwrap();
    request_path(&mut app, changed, 4.5, 0.5);
    app.world_mut().despawn(gone);
    let mut given: Vec<PathAnswer> = Vec::new();
    while stats(&app).waiting > 0 || given.is_empty() {
        app.update();
        given.extend(path_results(&app));
    }
    let cancelled = Some(PathFailure::Cancelled);
    let of = |entity| -> Vec<_> {
        let of = |answer: &&PathAnswer| answer.0 == entity;
        given
            .iter()
            .filter(of)
            .map(|answer| (answer.1, answer.2))
            .collect()
    };
    assert_eq!(of(put), [(FOUND, (0, 18))]);
    assert_eq!(of(changed), [(cancelled, (0, 18)), (FOUND, (4, 0))]);
    assert_eq!(of(gone), [(cancelled, (0, 18))]);
    assert_eq!(of(last), [(FOUND, (0, 18))]);
    assert_eq!(path(&app, put), [IVec2::new(2, 18), IVec2::new(0, 18)]);
    let stats = stats(&app);
    assert_eq!((stats.requested, stats.found, stats.cancelled), (5, 3, 2));
}

fn run_long_searches(workers: usize) -> (Vec<Vec<PathAnswer>>, Vec<u128>) {
    let mut app = app(NavSettings {
        long_searches_max: 5,
        ..sliced()
    });
    app.insert_resource(Workers::new(workers));
    let scene = scene(&mut app, &winding());
    for nth in 0..30 {
        let npc = npc(&mut app, scene, nth as f32 % 20.0 + 0.5, 0.5);
        request_long_path(
            &mut app,
            npc,
            (nth * 7 % 20) as f32 + 0.5,
            (nth / 4 * 2) as f32 + 0.5,
        );
    }
    let (mut ticks, mut hashes) = (Vec::new(), Vec::new());
    while ticks.is_empty() || stats(&app).waiting > 0 {
        app.update();
        ticks.push(path_results(&app));
        hashes.push(state_hash(app.world_mut()).0);
    }
    (ticks, hashes)
}

#[test]
fn long_searches_end_in_the_same_tick_for_any_worker_count() {
    ComputeTaskPool::get_or_init(TaskPool::default);
    let alone = run_long_searches(1);
    assert_eq!(alone.0.iter().map(Vec::len).sum::<usize>(), 30);
    assert_eq!(alone, run_long_searches(3));
}
