//! Walkers and map edits.

use bevy_tasks::{ComputeTaskPool, TaskPool};
use proptest::prelude::*;

use super::*;
use crate::map::{TileEdit, TileRect, edit_map};
use crate::nav::{NavPath, NavStats, PathFailed, PathFailure, PathFound, smooth_path};
use crate::sim::{SimSystems, SimTick, Workers, state_hash};
use crate::world::{Heading, ObjectTeleported, TeamId};

#[test]
fn walker_goes_round_a_wall_and_arrives_at_its_path_length() {
    let mut app = app();
    let scene = ascii_scene(&mut app, ".........\n....@....\n....@....\n....@....");
    let npc = walker(&mut app, scene, centre(1, 3), 3.0);
    send(&mut app, npc, centre(7, 3));
    app.update();
    let waypoints = app
        .world()
        .get::<NavPath>(npc)
        .unwrap()
        .waypoints()
        .to_vec();
    let map = app.world().get::<SceneMap>(scene).unwrap().clone();
    let mut smoothed = Vec::new();
    smooth_path(map.tiles(), &waypoints, &mut smoothed);
    let length: f32 = smoothed
        .windows(2)
        .map(|ends| (ends[1] - ends[0]).as_vec2().length() * TILE_M)
        .sum();
    assert!(
        (4.5..5.6).contains(&length),
        "over the wall and down again: {length}"
    );
    let (mut walked, mut ticks, mut before) = (
        centre(1, 3).distance(position(&app, npc)),
        1,
        position(&app, npc),
    );
    while written::<WalkerArrived>(&app).is_empty() {
        assert!((velocity(&app, npc).length() - 3.0).abs() < 1e-4);
        app.update();
        assert!(map.is_free_at(position(&app, npc)));
        walked += before.distance(position(&app, npc));
        before = position(&app, npc);
        ticks += 1;
        assert!(ticks < 100, "it should have arrived");
    }
    assert_eq!(ticks, (length / (3.0 * TICK_S)).ceil() as u32);
    // Chords across the bends are slightly shorter than the path.
    assert!(
        (length - 0.2..=length + 1e-3).contains(&walked),
        "{walked} of {length}"
    );
    assert_eq!(
        (position(&app, npc), velocity(&app, npc)),
        (centre(7, 3), Vec2::ZERO)
    );
    assert_eq!(
        written::<WalkerArrived>(&app),
        [WalkerArrived { entity: npc }]
    );
    assert!(app.world().get::<NavPath>(npc).unwrap().is_empty());
    assert_eq!(
        (stats(&app).arrived, stats(&app).walker_steps),
        (1, u64::from(ticks))
    );
}

#[test]
fn walker_faces_its_direction_and_stands_without_path_or_speed() {
    let mut app = app();
    let scene = ascii_scene(&mut app, "....\n....\n....");
    let [down, lame, idle] = [(0, 4.0), (1, f32::NAN), (2, 4.0)]
        .map(|(x, speed)| walker(&mut app, scene, centre(x, 0), speed));
    send(&mut app, down, centre(0, 2));
    send(&mut app, lame, centre(1, 2));
    app.update();
    assert_eq!(app.world().get::<Heading>(down), Some(&Heading(64)));
    assert_eq!(velocity(&app, down), Vec2::new(0.0, 4.0));
    for (npc, x) in [(lame, 1), (idle, 2)] {
        assert_eq!(
            (position(&app, npc), velocity(&app, npc)),
            (centre(x, 0), Vec2::ZERO)
        );
    }
    send(&mut app, down, Vec2::splat(99.0));
    app.update();
    assert_eq!(
        velocity(&app, down),
        Vec2::ZERO,
        "an answer without a way ends the walk"
    );
}

#[test]
fn edit_on_the_path_reroutes_a_walker_before_it_arrives() {
    let mut app = app();
    let scene = ascii_scene(&mut app, ".......\n.......\n.......");
    let npc = walker(&mut app, scene, centre(0, 0), 2.0);
    send(&mut app, npc, centre(6, 0));
    (0..3).for_each(|_| app.update());
    edit_map(
        app.world_mut(),
        scene,
        TileRect::new(4, 0, 1, 2),
        &TileEdit::Block,
    )
    .unwrap();
    while written::<WalkerArrived>(&app).is_empty() {
        app.update();
        assert!(
            app.world()
                .get::<SceneMap>(scene)
                .unwrap()
                .is_free_at(position(&app, npc))
        );
        assert!(
            app.world().resource::<SimTick>().0 < 200,
            "it should have arrived"
        );
    }
    assert_eq!(
        (position(&app, npc), stats(&app).blocked),
        (centre(6, 0), 0)
    );
}

#[test]
fn edit_after_navigate_stops_a_walker_and_replans() {
    fn close(world: &mut World) {
        if world.resource::<SimTick>().0 == 3 {
            let scene = world
                .query_filtered::<Entity, With<SceneMap>>()
                .single(world)
                .unwrap();
            edit_map(world, scene, TileRect::new(3, 0, 1, 1), &TileEdit::Block).unwrap();
        }
    }
    let mut app = app();
    app.add_systems(
        FixedUpdate,
        close.after(SimSystems::Navigate).before(SimSystems::Move),
    );
    let scene = ascii_scene(&mut app, ".....\n.....");
    let npc = walker(&mut app, scene, centre(0, 0), 9.0);
    send(&mut app, npc, centre(4, 0));
    while stats(&app).blocked == 0 {
        app.update();
        assert!(
            app.world().resource::<SimTick>().0 < 9,
            "it should have come to the wall"
        );
    }
    assert_eq!(app.world().resource::<SimTick>().0, 3);
    assert!(position(&app, npc).x < 3.0 * TILE_M);
    assert_eq!(velocity(&app, npc), Vec2::ZERO);
    app.update();
    assert_eq!(written::<PathFound>(&app).len(), 1);
    (0..12).for_each(|_| app.update());
    assert_eq!(position(&app, npc), centre(4, 0));
}

#[test]
fn object_on_a_blocked_tile_is_pushed_and_a_walker_continues() {
    let mut app = app();
    let scene = ascii_scene(&mut app, "......\n......");
    let npc = walker(&mut app, scene, centre(1, 0), 1.0);
    let someone = player(&mut app, scene, centre(1, 1), 1.0);
    let door = spawn_object(app.world_mut(), scene, KindId(4), centre(1, 0), ()).unwrap();
    send(&mut app, npc, centre(5, 0));
    app.update();
    edit_map(
        app.world_mut(),
        scene,
        TileRect::new(1, 0, 1, 2),
        &TileEdit::Block,
    )
    .unwrap();
    app.update();
    assert_eq!(
        (position(&app, npc), position(&app, someone)),
        (centre(0, 0), centre(0, 1))
    );
    assert_eq!(position(&app, door), centre(1, 0), "furniture stays");
    assert_eq!(written::<ObjectTeleported>(&app).len(), 2);
    app.update();
    assert_eq!(
        written::<PathFailed>(&app)[0].reason,
        PathFailure::Unreachable,
        "asked from where it is now"
    );
    let late = walker(&mut app, scene, centre(1, 1), 1.0);
    app.update();
    assert_eq!(
        position(&app, late),
        centre(0, 1),
        "spawned on a blocked tile"
    );
    assert_eq!((stats(&app).pushed, stats(&app).push_failures), (3, 0));
    edit_map(
        app.world_mut(),
        scene,
        TileRect::new(0, 0, 6, 2),
        &TileEdit::Block,
    )
    .unwrap();
    app.update();
    assert_eq!(
        (stats(&app).pushed, stats(&app).push_failures),
        (3, 3),
        "nowhere to go"
    );
}

#[test]
fn pushed_walker_continues_to_its_goal() {
    let mut app = app();
    let scene = ascii_scene(&mut app, "......\n......");
    let npc = walker(&mut app, scene, centre(1, 0), 1.0);
    send(&mut app, npc, centre(5, 0));
    app.update();
    edit_map(
        app.world_mut(),
        scene,
        TileRect::new(1, 0, 1, 1),
        &TileEdit::Block,
    )
    .unwrap();
    (0..80).for_each(|_| app.update());
    assert_eq!(
        (position(&app, npc), stats(&app).pushed, stats(&app).arrived),
        (centre(5, 0), 1, 1)
    );
}

#[test]
fn arrival_messages_are_ordered_by_object_key() {
    let mut app = app();
    let scene = ascii_scene(&mut app, "...\n...");
    let [first, second] = [0, 1].map(|y| walker(&mut app, scene, centre(0, y), 3.0));
    for (npc, y) in [(first, 0), (second, 1)] {
        send(&mut app, npc, centre(2, y));
    }
    app.update();
    // Swaps the storage order of the two without changing their components.
    app.world_mut()
        .entity_mut(first)
        .insert(TeamId(1))
        .remove::<TeamId>();
    while written::<WalkerArrived>(&app).is_empty() {
        app.update();
        assert!(
            app.world().resource::<SimTick>().0 < 20,
            "they should have arrived"
        );
    }
    assert_eq!(
        written::<WalkerArrived>(&app),
        [first, second].map(|entity| WalkerArrived { entity })
    );
}

/// A gate in a wall toggles while a crowd goes to and fro: positions and hash after every tick.
fn siege(workers: usize) -> (Vec<u128>, NavStats) {
    let mut app = app();
    app.insert_resource(Workers::new(workers));
    let tiles = TileMap::from_fn(40, 40, |x, y| x == 20 && y != 19 && y != 3).unwrap();
    let scene = scene(&mut app, tiles);
    let crowd: Vec<Entity> = (0..120)
        .map(|i| {
            walker(
                &mut app,
                scene,
                centre(i % 18, i / 6 + 9),
                2.0 + (i % 5) as f32,
            )
        })
        .collect();
    let mut hashes = Vec::new();
    for tick in 0..120 {
        if tick % 40 == 0 {
            for (i, &npc) in crowd.iter().enumerate() {
                send(
                    &mut app,
                    npc,
                    centre(
                        if tick % 80 == 0 {
                            22 + i as i32 % 17
                        } else {
                            i as i32 % 19
                        },
                        i as i32 % 40,
                    ),
                );
            }
        }
        if tick % 10 == 5 {
            edit_map(
                app.world_mut(),
                scene,
                TileRect::new(20, 19, 1, 1),
                &TileEdit::Toggle,
            )
            .unwrap();
        }
        app.update();
        hashes.push(state_hash(app.world_mut()).0);
    }
    (hashes, app.world().resource::<NavStats>().clone())
}

#[test]
fn siege_is_the_same_with_any_number_of_workers() {
    ComputeTaskPool::get_or_init(TaskPool::default);
    let alone = siege(1);
    assert_eq!(alone, siege(3));
    assert!(alone.1.replanned > 0 && alone.1.found >= 360);
}

#[derive(Clone, Debug)]
enum WalkCommand {
    Toggle(TileRect),
    Send(usize, i32, i32),
    Tick,
}

fn step() -> impl Strategy<Value = WalkCommand> {
    prop_oneof![
        2 => (0u32..20, 0u32..20, 1u32..5, 1u32..5).prop_map(|(x, y, w, h)| WalkCommand::Toggle(TileRect::new(x, y, w, h))),
        2 => (0usize..20, 0i32..24, 0i32..24).prop_map(|(who, x, y)| WalkCommand::Send(who, x, y)),
        5 => Just(WalkCommand::Tick),
    ]
}

proptest! {
    #![proptest_config(draws!(48))]

    #[test]
    fn objects_never_stand_on_blocked_tiles_or_jump(
        blocked in prop::collection::vec(prop::bool::weighted(0.2), 576),
        spawns in prop::collection::vec((0.0f32..12.0, 0.0f32..12.0, 3.0f32..14.0), 1..20),
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let mut app = app();
        let tiles = TileMap::from_fn(24, 24, |x, y| blocked[(y * 24 + x) as usize]).unwrap();
        let scene = scene(&mut app, tiles);
        let crowd: Vec<(Entity, f32)> = spawns
            .into_iter()
            .map(|(x, y, speed)| (walker(&mut app, scene, Vec2::new(x, y), speed), speed))
            .collect();
        for step in steps {
            match step {
                WalkCommand::Toggle(rect) => {
                    edit_map(app.world_mut(), scene, rect, &TileEdit::Toggle).unwrap();
                }
                WalkCommand::Send(who, x, y) => send(&mut app, crowd[who % crowd.len()].0, centre(x, y)),
                WalkCommand::Tick => {
                    let before: Vec<Vec2> = crowd.iter().map(|&(npc, _)| position(&app, npc)).collect();
                    app.update();
                    let jumped: Vec<Entity> = written::<ObjectTeleported>(&app).iter().map(|jump| jump.entity).collect();
                    let map = app.world().get::<SceneMap>(scene).unwrap();
                    for (&(npc, speed), from) in crowd.iter().zip(before) {
                        let to = position(&app, npc);
                        prop_assert!(map.is_free_at(to) || map.tiles().free_count() == 0, "{npc} stands at {to}");
                        if jumped.contains(&npc) {
                            continue;
                        }
                        prop_assert!(from.distance(to) <= speed * TICK_S + 1e-4, "{npc} from {from} to {to}");
                        let path = app.world().get::<NavPath>(npc);
                        prop_assert!(path.is_none_or(|path| path.is_empty() || path.next() < path.waypoints().len()));
                    }
                }
            }
        }
        // Without further edits all walkers come to rest: no walker requests paths forever.
        let is_walking = |app: &App| {
            let nav = app.world().resource::<NavStats>();
            nav.waiting > 0
                || crowd.iter().any(|&(npc, _)| app.world().get::<NavPath>(npc).is_some_and(|path| !path.is_empty()))
        };
        // A request of this tick waits from the next one on, so one quiet tick is not enough.
        let (mut quiet, mut ticks) = (0, 0);
        while quiet < 3 {
            app.update();
            quiet = if is_walking(&app) { 0 } else { quiet + 1 };
            ticks += 1;
            prop_assert!(ticks < 900, "a walker never arrives");
        }
        let requested = app.world().resource::<NavStats>().requested;
        app.update();
        let nav = app.world().resource::<NavStats>();
        prop_assert_eq!(nav.requested, requested);
        let answered = nav.found + nav.unreachable + nav.blocked + nav.out_of_bounds + nav.capped + nav.cancelled;
        prop_assert_eq!((nav.requested, nav.waiting), (answered, 0));
        prop_assert!(crowd.iter().all(|&(npc, _)| velocity(&app, npc) == Vec2::ZERO));
    }
}
