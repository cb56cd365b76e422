//! Requests through an app: answered, replaced, cancelled, renewed, and the same with any number of workers.

use std::sync::Arc;

use bevy_app::App;
use bevy_ecs::prelude::*;
use bevy_tasks::{ComputeTaskPool, TaskPool};
use glam::{IVec2, Vec2};

use crate::map::{SceneMap, TileEdit, TileMap, TileRect, edit_map};
use crate::nav::{
    NavPlugin, NavSettings, NavStats, Path, PathAnswered, PathClass, PathRequest, PathResult,
};
use crate::sim::{Workers, clock, state_hash};
use crate::world::{KindId, SceneSpec, change_scene, open_scene, spawn_object, teleport};

fn app(settings: NavSettings) -> App {
    let mut app = App::new();
    app.add_plugins((bevy_time::TimePlugin, NavPlugin))
        .insert_resource(settings);
    clock::one_tick_an_update(&mut app);
    app
}

/// One search a tick, so that further requests wait.
fn slow() -> NavSettings {
    NavSettings {
        searches_per_tick_max: 1,
        ..Default::default()
    }
}

/// A scene of 1 m tiles.
fn scene(app: &mut App, ascii: &str) -> Entity {
    let map = SceneMap::new(Arc::new(TileMap::from_ascii(ascii).unwrap()), 1.0);
    let spec = SceneSpec {
        size_m: map.size_m(),
        ..Default::default()
    };
    open_scene(app.world_mut(), spec, map).unwrap()
}

fn npc(app: &mut App, scene: Entity, x: f32, y: f32) -> Entity {
    spawn_object(app.world_mut(), scene, KindId(1), Vec2::new(x, y), ()).unwrap()
}

fn ask(app: &mut App, entity: Entity, x: f32, y: f32) {
    let goal = Vec2::new(x, y);
    app.world_mut().write_message(PathRequest {
        entity,
        goal,
        class: PathClass::Npc,
    });
}

type Answer = (Entity, PathResult, (i32, i32));

/// Entity, result and goal of this tick's answers.
fn answers(app: &App) -> Vec<Answer> {
    let answers = app
        .world()
        .resource::<Messages<PathAnswered>>()
        .iter_current_update_messages();
    answers
        .map(|answer| (answer.entity, answer.result, answer.to.into()))
        .collect()
}

fn stats(app: &App) -> NavStats {
    app.world().resource::<NavStats>().clone()
}

fn path(app: &App, entity: Entity) -> Vec<IVec2> {
    app.world()
        .get::<Path>(entity)
        .map_or(Vec::new(), |path| path.remaining().to_vec())
}

#[test]
fn each_request_is_answered_with_its_result() {
    let mut app = app(NavSettings {
        npc_nodes_max: 2,
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
        ask(&mut app, npc, goal.0, goal.1);
    }
    app.update();
    use PathResult::{Blocked, Capped, Found, OutOfBounds, Unreachable};
    let results: Vec<_> = answers(&app)
        .into_iter()
        .map(|answer| (answer.0, answer.1))
        .collect();
    let expected = [
        Found,
        Unreachable,
        Blocked,
        OutOfBounds,
        OutOfBounds,
        Capped,
    ];
    assert_eq!(results, npcs.into_iter().zip(expected).collect::<Vec<_>>());
    assert_eq!(path(&app, npcs[0]), [IVec2::ZERO, IVec2::new(1, 0)]);
    assert!(npcs[1..].iter().all(|&npc| path(&app, npc).is_empty()));
    app.world_mut().write_message(PathRequest {
        entity: npcs[5],
        goal: Vec2::new(4.5, 3.5),
        class: PathClass::Travel,
    });
    app.update();
    let answer = *app
        .world()
        .resource::<Messages<PathAnswered>>()
        .iter_current_update_messages()
        .next()
        .unwrap();
    assert_eq!(
        (answer.result, answer.length_tiles),
        (Found, 7.0),
        "two down, two right, one down, two right"
    );
}

#[test]
fn a_newer_request_takes_the_place_of_the_older_which_is_cancelled() {
    let mut app = app(slow());
    let scene = scene(&mut app, "......");
    let [a, b, c] = [0.5, 1.5, 2.5].map(|x| npc(&mut app, scene, x, 0.5));
    [a, b, c]
        .into_iter()
        .for_each(|npc| ask(&mut app, npc, 5.5, 0.5));
    app.update();
    assert_eq!(answers(&app), [(a, PathResult::Found, (5, 0))]);
    ask(&mut app, b, 4.5, 0.5);
    app.update();
    assert_eq!(
        answers(&app),
        [
            (b, PathResult::Cancelled, (5, 0)),
            (b, PathResult::Found, (4, 0))
        ]
    );
    app.update();
    assert_eq!(answers(&app), [(c, PathResult::Found, (5, 0))]);
    let stats = stats(&app);
    assert_eq!(
        (stats.requested, stats.found, stats.cancelled, stats.waiting),
        (4, 3, 1, 0)
    );
}

#[test]
fn a_despawn_or_a_change_of_scene_cancels_what_waits() {
    let mut app = app(slow());
    let (here, there) = (scene(&mut app, "......"), scene(&mut app, "......"));
    let [a, b, c] = [0.5, 1.5, 2.5].map(|x| npc(&mut app, here, x, 0.5));
    [a, b, c]
        .into_iter()
        .for_each(|npc| ask(&mut app, npc, 5.5, 0.5));
    app.update();
    app.world_mut().despawn(b);
    change_scene(app.world_mut(), c, there, Vec2::splat(0.5)).unwrap();
    app.update();
    assert_eq!(
        answers(&app),
        [
            (b, PathResult::Cancelled, (5, 0)),
            (c, PathResult::Cancelled, (5, 0))
        ]
    );
    assert!(!path(&app, a).is_empty());
    change_scene(app.world_mut(), a, there, Vec2::splat(0.5)).unwrap();
    ask(&mut app, b, 1.5, 0.5);
    app.update();
    assert!(
        path(&app, a).is_empty(),
        "its way was one of the other scene"
    );
    assert_eq!(stats(&app).cancelled, 3, "a request of nobody is counted");
    assert_eq!(stats(&app).waiting, 0);
}

#[test]
fn a_full_queue_refuses_newcomers_and_not_replacements() {
    let mut app = app(NavSettings {
        queue_max: 1,
        ..Default::default()
    });
    let scene = scene(&mut app, "......");
    let [a, b] = [0.5, 1.5].map(|x| npc(&mut app, scene, x, 0.5));
    ask(&mut app, a, 5.5, 0.5);
    ask(&mut app, b, 5.5, 0.5);
    ask(&mut app, a, 4.5, 0.5);
    app.update();
    let expected = [
        (b, PathResult::Cancelled, (5, 0)),
        (a, PathResult::Cancelled, (5, 0)),
        (a, PathResult::Found, (4, 0)),
    ];
    assert_eq!(answers(&app), expected);
}

#[test]
fn an_edit_renews_exactly_the_paths_that_it_breaks() {
    let mut app = app(NavSettings::default());
    let scene = scene(&mut app, ".......\n.......\n.......");
    let [upper, lower, asking] = [0.5, 2.5, 0.5].map(|y| npc(&mut app, scene, 0.5, y));
    [(upper, 0.5), (lower, 2.5), (asking, 0.5)]
        .into_iter()
        .for_each(|(npc, y)| ask(&mut app, npc, 6.5, y));
    app.update();
    let wall = TileRect::new(3, 0, 1, 2);
    edit_map(app.world_mut(), scene, wall, &TileEdit::Block).unwrap();
    ask(&mut app, asking, 1.5, 0.5);
    app.update();
    assert_eq!(
        answers(&app),
        [
            (asking, PathResult::Found, (1, 0)),
            (upper, PathResult::Found, (6, 0))
        ],
        "one has other plans, and the lower path is whole"
    );
    assert_eq!(path(&app, upper).len(), 4, "round the wall");
    assert_eq!(app.world().get::<Path>(upper).unwrap().map_version(), 1);
    edit_map(app.world_mut(), scene, wall, &TileEdit::Free).unwrap();
    app.update();
    assert_eq!(
        (answers(&app), stats(&app).renewed),
        (Vec::new(), 1),
        "what opens breaks nothing"
    );
}

#[test]
fn a_teleport_ends_a_path_and_not_the_one_that_is_asked_for_behind_it() {
    let mut app = app(NavSettings::default());
    let scene = scene(&mut app, "......");
    let [a, b] = [(); 2].map(|()| npc(&mut app, scene, 0.5, 0.5));
    [a, b]
        .into_iter()
        .for_each(|npc| ask(&mut app, npc, 5.5, 0.5));
    app.update();
    [a, b]
        .into_iter()
        .for_each(|npc| teleport(app.world_mut(), npc, Vec2::new(3.5, 0.5)).unwrap());
    ask(&mut app, b, 5.5, 0.5);
    app.update();
    assert_eq!(path(&app, a), []);
    assert_eq!(path(&app, b), [IVec2::new(3, 0), IVec2::new(5, 0)]);
    app.update();
    assert_eq!(path(&app, b).len(), 2);
}

/// Answers of every tick and the final hash of a crowd on a maze of pillars, under a node budget that bites.
fn crowd(workers: usize) -> (Vec<Vec<Answer>>, u128) {
    let mut app = app(NavSettings {
        nodes_per_tick_max: 500,
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
        ask(
            &mut app,
            npc,
            (i * 7 % 20 * 2) as f32 + 0.5,
            (i * 3 % 20 * 2) as f32 + 0.5,
        );
    }
    let mut ticks = Vec::new();
    while ticks.is_empty() || stats(&app).waiting > 0 {
        app.update();
        ticks.push(answers(&app));
    }
    (ticks, state_hash(app.world_mut()).0)
}

#[test]
fn the_node_budget_ends_a_tick_at_the_same_request_with_any_number_of_workers() {
    ComputeTaskPool::get_or_init(TaskPool::default);
    let alone = crowd(1);
    assert!(
        alone.0.len() > 2,
        "the budget spreads the requests over ticks"
    );
    assert!(
        alone
            .0
            .iter()
            .all(|answers| answers.len() <= 400 && answers.len() % 64 <= 400 % 64)
    );
    assert_eq!(alone.0.iter().map(Vec::len).sum::<usize>(), 400);
    assert_eq!(alone, crowd(3));
}

#[test]
fn a_tick_without_budget_answers_one_batch_which_is_smaller_for_travel() {
    for (class, batch) in [(PathClass::Npc, 64), (PathClass::Travel, 8)] {
        let mut app = app(NavSettings {
            nodes_per_tick_max: 0,
            ..Default::default()
        });
        let scene = scene(&mut app, "......");
        for _ in 0..70 {
            let entity = npc(&mut app, scene, 0.5, 0.5);
            app.world_mut().write_message(PathRequest {
                entity,
                goal: Vec2::new(5.5, 0.5),
                class,
            });
        }
        app.update();
        assert_eq!(
            (answers(&app).len(), stats(&app).waiting),
            (batch, 70 - batch as u64)
        );
    }
}
