//! Players' moves.

use super::*;
use crate::world::Heading;

fn reasons(app: &App) -> Vec<MoveError> {
    written::<MoveRefused>(app)
        .into_iter()
        .map(|refused| refused.reason)
        .collect()
}

#[test]
fn player_move_sets_velocity_and_heading_and_ends_at_rest() {
    let mut app = app();
    let scene = ascii_scene(&mut app, "........\n........");
    let someone = player(&mut app, scene, centre(0, 0), 5.0);
    (0..4).for_each(|_| app.update());
    let from = centre(0, 0);
    for step in 1..=3 {
        input(&mut app, someone, from + Vec2::new(0.25 * step as f32, 0.0));
        app.update();
    }
    assert_eq!(position(&app, someone), from + Vec2::new(0.75, 0.0));
    assert!((velocity(&app, someone) - Vec2::new(5.0, 0.0)).length() < 1e-3);
    assert_eq!(app.world().get::<Heading>(someone), Some(&Heading(7)));
    (0..3).for_each(|_| app.update());
    assert_ne!(velocity(&app, someone), Vec2::ZERO);
    app.update();
    assert_eq!(velocity(&app, someone), Vec2::ZERO);
    app.world_mut().write_message(MoveInput {
        entity: someone,
        motion: PlayerMotion::Turn,
        heading: 200,
    });
    app.update();
    assert_eq!(app.world().get::<Heading>(someone), Some(&Heading(200)));
    assert_eq!(
        (stats(&app).moves_accepted, stats(&app).moves_refused),
        (3, 0)
    );
}

#[test]
fn moves_too_far_or_through_walls_are_refused_and_only_turn() {
    let mut app = app();
    let scene = ascii_scene(&mut app, ".@..........\n............");
    let someone = player(&mut app, scene, centre(0, 0), 2.0);
    (0..30).for_each(|_| app.update());
    let cases = [
        (centre(11, 0), MoveError::TooFar),
        (centre(1, 0), MoveError::Blocked),
        (centre(2, 0), MoveError::PathBlocked),
        (centre(1, 1), MoveError::PathBlocked),
        (Vec2::new(f32::NAN, 0.0), MoveError::Outside),
        (Vec2::new(-0.1, 0.0), MoveError::Outside),
    ];
    for (to, reason) in cases {
        input(&mut app, someone, to);
        app.update();
        assert_eq!(reasons(&app), [reason], "{to}");
        assert_eq!(
            (position(&app, someone), velocity(&app, someone)),
            (centre(0, 0), Vec2::ZERO)
        );
        assert_eq!(app.world().get::<Heading>(someone), Some(&Heading(7)));
    }
    let npc = walker(&mut app, scene, centre(5, 1), 2.0);
    let door = spawn_object(app.world_mut(), scene, KindId(4), centre(5, 1), ()).unwrap();
    for entity in [npc, door, scene] {
        input(&mut app, entity, centre(5, 1));
    }
    app.update();
    assert_eq!(reasons(&app), [MoveError::NotMovable; 3]);
    assert_eq!(
        (stats(&app).moves_accepted, stats(&app).moves_refused),
        (0, 9)
    );
}

#[test]
fn speed_hack_gains_no_distance_from_extra_messages() {
    let mut app = app();
    let scene = scene(&mut app, TileMap::new(200, 4, false).unwrap());
    let someone = player(&mut app, scene, centre(0, 0), 4.0);
    for _ in 0..100 {
        for step in 1..=20 {
            let to = position(&app, someone) + Vec2::new(0.02 * step as f32, 0.0);
            input(&mut app, someone, to);
        }
        app.update();
    }
    let allowed = 100.0 * TICK_S * 4.0 * 1.1 + 1.0 / 64.0;
    let come = position(&app, someone).x - centre(0, 0).x;
    assert!(
        (allowed * 0.7..=allowed + 0.01).contains(&come),
        "{come} of {allowed}"
    );
    assert!(stats(&app).moves_refused >= 800);
    assert!(velocity(&app, someone).length() <= 4.4 + 1e-3);
}

/// Sends short steps until one is refused; returns the distance that they covered.
fn step_until_refused(app: &mut App, someone: Entity) -> f32 {
    let from = position(app, someone).x;
    for step in 1..=400 {
        let to = Vec2::new(from + 0.1 * step as f32, centre(0, 0).y);
        input(app, someone, to);
    }
    app.update();
    position(app, someone).x - from
}

#[test]
fn rested_player_bursts_at_most_one_second_of_its_speed() {
    let mut app = app();
    let scene = scene(&mut app, TileMap::new(200, 4, false).unwrap());
    let someone = player(&mut app, scene, centre(0, 0), 4.0);
    // However long the rest: at most a second is saved up.
    for rest_ticks in [20, 40, 400] {
        (0..rest_ticks).for_each(|_| app.update());
        let come = step_until_refused(&mut app, someone);
        assert!((4.3..=4.42).contains(&come), "{come} after {rest_ticks}");
    }
    // Directly afterwards there is one tick's distance, and after half a second's rest half a second's.
    let come = step_until_refused(&mut app, someone);
    assert!(come <= 0.4, "{come}");
    (0..10).for_each(|_| app.update());
    let come = step_until_refused(&mut app, someone);
    assert!((2.1..=2.6).contains(&come), "{come}");
}

#[test]
fn burst_distance_follows_the_setting_in_seconds() {
    let mut app = app();
    app.world_mut()
        .resource_mut::<MovementSettings>()
        .burst_s_max = 0.25;
    let scene = scene(&mut app, TileMap::new(200, 4, false).unwrap());
    let someone = player(&mut app, scene, centre(0, 0), 4.0);
    (0..100).for_each(|_| app.update());
    let come = step_until_refused(&mut app, someone);
    assert!((1.0..=1.12).contains(&come), "{come}");
}

#[test]
fn object_placed_on_a_blocked_tile_is_pushed_in_the_same_tick() {
    #[derive(Resource)]
    struct Put(Entity);
    let mut app = app();
    let scene = ascii_scene(&mut app, "....\n.@@.\n....");
    let someone = player(&mut app, scene, centre(0, 0), 3.0);
    app.insert_resource(Put(someone));
    let put = |put: Option<Res<Put>>, mut commands: Commands| {
        if let Some(put) = put {
            commands.entity(put.0).insert(Position(centre(1, 1)));
            commands.remove_resource::<Put>();
        }
    };
    let between = put
        .in_set(sim::SimSystems::Move)
        .after(MovementSystems::Push)
        .before(MovementSystems::Players);
    app.add_systems(FixedUpdate, between);
    for _ in 0..3 {
        app.update();
    }
    assert!(!app.world().contains_resource::<Put>(), "it was put there");
    assert_eq!(stats(&app).pushed, 1);
    assert_ne!(position(&app, someone), centre(1, 1));
}

/// If few of many objects move they are looked up, otherwise all rows are processed; also on several threads.
#[test]
fn moves_are_equal_by_lookup_by_rows_and_on_many_threads() {
    use rand::{RngExt, SeedableRng};

    let run = |idle: usize, workers: usize| {
        bevy_tasks::ComputeTaskPool::get_or_init(bevy_tasks::TaskPool::default);
        let mut app = app();
        app.insert_resource(sim::Workers::new(workers));
        let scene = scene(
            &mut app,
            TileMap::from_fn(60, 60, |x, y| (x * 7 + y * 5) % 13 == 0).unwrap(),
        );
        let players: Vec<Entity> = (0..40)
            .map(|nth| player(&mut app, scene, centre(nth, (nth * 7 + 1) % 60), 3.0))
            .collect();
        let npc = walker(&mut app, scene, centre(1, 0), 1.0);
        let gone = player(&mut app, scene, centre(2, 0), 3.0);
        app.world_mut().despawn(gone);
        for nth in 0..idle {
            player(&mut app, scene, centre(nth as i32 % 60, 30), 3.0);
        }
        let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(5);
        let mut refusals = Vec::new();
        for _ in 0..40 {
            for _ in 0..random.random_range(0..60) {
                let nth = random.random_range(0..players.len() + 2);
                let entity = *players
                    .get(nth)
                    .unwrap_or(if nth % 2 == 0 { &npc } else { &gone });
                let motion = match random.random_range(0..8) {
                    0 => PlayerMotion::Turn,
                    1 => PlayerMotion::Stand,
                    2 => PlayerMotion::To(Vec2::new(random.random_range(0.0..30.0), 9.0)),
                    _ => PlayerMotion::Towards(random.random()),
                };
                app.world_mut().write_message(MoveInput {
                    entity,
                    motion,
                    heading: random.random(),
                });
            }
            app.update();
            let place = |entity| players.iter().position(|&player| player == entity);
            let refused = written::<MoveRefused>(&app).into_iter();
            refusals.extend(refused.map(|refused| (place(refused.entity), refused.reason)));
        }
        let world = app.world();
        let poses: Vec<_> = players
            .iter()
            .map(|&player| {
                let heading = world.get::<crate::world::Heading>(player).copied();
                let last = world.get::<LastMove>(player).copied();
                (
                    position(&app, player),
                    velocity(&app, player),
                    heading,
                    last,
                )
            })
            .collect();
        let counts = [
            stats(&app).moves_accepted,
            stats(&app).moves_refused,
            stats(&app).moves_corrected,
        ];
        assert!(counts.iter().all(|&count| count > 20), "{counts:?}");
        (poses, refusals, counts)
    };
    let looked_up = run(3_000, 1);
    assert_eq!(looked_up, run(0, 1));
    assert_eq!(looked_up, run(0, 3));
}
