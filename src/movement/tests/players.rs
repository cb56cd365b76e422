//! Players' moves.

use super::*;
use crate::world::Heading;

fn reasons(app: &App) -> Vec<Refusal> {
    written::<MoveRefused>(app)
        .into_iter()
        .map(|refused| refused.reason)
        .collect()
}

#[test]
fn a_players_move_is_applied_with_its_velocity_and_heading_and_ends_at_rest() {
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
fn moves_too_far_through_walls_and_round_corners_are_refused_and_only_turn() {
    let mut app = app();
    let scene = ascii_scene(&mut app, ".@..........\n............");
    let someone = player(&mut app, scene, centre(0, 0), 2.0);
    (0..30).for_each(|_| app.update());
    let cases = [
        (centre(11, 0), Refusal::TooFar),
        (centre(1, 0), Refusal::Blocked),
        (centre(2, 0), Refusal::InTheWay),
        (centre(1, 1), Refusal::InTheWay),
        (Vec2::new(f32::NAN, 0.0), Refusal::Outside),
        (Vec2::new(-0.1, 0.0), Refusal::Outside),
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
    assert_eq!(reasons(&app), [Refusal::NotMovable; 3]);
    assert_eq!(
        (stats(&app).moves_accepted, stats(&app).moves_refused),
        (0, 9)
    );
}

#[test]
fn a_speed_hack_comes_no_farther_however_many_messages_it_sends() {
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

/// Sends short steps until one is refused; gives how far they have led.
fn go_as_far_as_allowed(app: &mut App, someone: Entity) -> f32 {
    let from = position(app, someone).x;
    for step in 1..=400 {
        let to = Vec2::new(from + 0.1 * step as f32, centre(0, 0).y);
        input(app, someone, to);
    }
    app.update();
    position(app, someone).x - from
}

#[test]
fn whoever_has_rested_comes_a_second_of_its_speed_in_a_burst_and_no_farther() {
    let mut app = app();
    let scene = scene(&mut app, TileMap::new(200, 4, false).unwrap());
    let someone = player(&mut app, scene, centre(0, 0), 4.0);
    // However long the rest: a second is saved up at most.
    for rest_ticks in [20, 40, 400] {
        (0..rest_ticks).for_each(|_| app.update());
        let come = go_as_far_as_allowed(&mut app, someone);
        assert!((4.3..=4.42).contains(&come), "{come} after {rest_ticks}");
    }
    // Right after it there is what a tick gives, and after half a second's rest what half a second gives.
    let come = go_as_far_as_allowed(&mut app, someone);
    assert!(come <= 0.4, "{come}");
    (0..10).for_each(|_| app.update());
    let come = go_as_far_as_allowed(&mut app, someone);
    assert!((2.1..=2.6).contains(&come), "{come}");
}

#[test]
fn how_far_a_burst_leads_is_a_setting_in_seconds() {
    let mut app = app();
    app.world_mut()
        .resource_mut::<MovementSettings>()
        .burst_s_max = 0.25;
    let scene = scene(&mut app, TileMap::new(200, 4, false).unwrap());
    let someone = player(&mut app, scene, centre(0, 0), 4.0);
    (0..100).for_each(|_| app.update());
    let come = go_as_far_as_allowed(&mut app, someone);
    assert!((1.0..=1.12).contains(&come), "{come}");
}
