//! Viewers with a range of their own, and rules by distance.

use super::*;
use crate::world::{InScene, Npc};

fn set_range(app: &mut App, viewer: Entity, range_m: Option<f32>) {
    app.world_mut().get_mut::<Viewer>(viewer).unwrap().range_m = range_m;
    app.update();
}

fn ids(seen: &[(u32, u8)]) -> Vec<u32> {
    seen.iter().map(|seen| seen.0).collect()
}

#[test]
fn range_of_a_viewer_applies_in_the_same_tick() {
    let mut app = app();
    let scene = scene(&mut app);
    let [a, b, _c] = [100.0, 130.0, 400.0].map(|x| player(&mut app, scene, x));
    set_range(&mut app, a, Some(30.0));
    assert_eq!(ids(&seen_by(&app, scene, 1)), [2], "exactly 30 m");
    // The cell stays.
    app.world_mut().get_mut::<Position>(b).unwrap().0.x = 130.01;
    app.update();
    assert_eq!(changes(&app).1, [(1, 2, ViewLeaveReason::Range)]);
    set_range(&mut app, a, Some(300.0));
    assert_eq!(ids(&seen_by(&app, scene, 1)), [2, 3]);
    assert_eq!(ids(&seen_by(&app, scene, 2)), [1], "others see as before");
    set_range(&mut app, a, None);
    assert_eq!(changes(&app).1, [(1, 3, ViewLeaveReason::Range)]);
    assert_eq!(ids(&seen_by(&app, scene, 1)), [2]);
    assert_eq!(validate_views(app.world(), scene), Ok(()));
}

#[test]
fn range_survives_a_change_of_scene() {
    let mut app = app();
    let scenes = [(); 2].map(|()| scene(&mut app));
    let a = player(&mut app, scenes[0], 100.0);
    player(&mut app, scenes[1], 400.0);
    set_range(&mut app, a, Some(f32::INFINITY));
    change_scene(app.world_mut(), a, scenes[1], Vec2::new(100.0, 500.0)).unwrap();
    app.update();
    let id = app.world().get::<Object>(a).unwrap().id().0;
    assert_eq!(seen_by(&app, scenes[1], id).len(), 1);
    assert_eq!(validate_views(app.world(), scenes[1]), Ok(()));
}

#[test]
fn invalid_ranges_are_counted_and_count_as_none() {
    let mut app = app();
    let scene = scene(&mut app);
    let [a, _b] = [100.0, 130.0].map(|x| player(&mut app, scene, x));
    set_range(&mut app, a, Some(1.0));
    assert!(ids(&seen_by(&app, scene, 1)).is_empty());
    for (count, range_m) in (1..).zip([-1.0, f32::NAN]) {
        set_range(&mut app, a, Some(range_m));
        assert_eq!(ids(&seen_by(&app, scene, 1)), [2]);
        assert_eq!(app.world().resource::<AoiStats>().invalid_ranges, count);
        assert_eq!(validate_views(app.world(), scene), Ok(()));
    }
}

#[test]
fn rule_by_distance_applies_when_the_distance_is_crossed() {
    let mut app = app();
    let scene = scene(&mut app);
    let rules = ViewRules::team_beyond(20.0);
    app.world_mut().entity_mut(scene).insert(rules);
    let [a, friend, foe] = [100.0, 125.0, 120.0].map(|x| player(&mut app, scene, x));
    for entity in [a, friend] {
        app.world_mut().entity_mut(entity).insert(TeamId(3));
    }
    app.world_mut().entity_mut(foe).insert(TeamId(4));
    app.update();
    assert_eq!(ids(&seen_by(&app, scene, 1)), [2, 3], "20 m are not beyond");
    app.world_mut().get_mut::<Position>(foe).unwrap().0.x = 120.1;
    app.update();
    assert!(changes(&app).1.contains(&(1, 3, ViewLeaveReason::Hidden)));
    assert_eq!(ids(&seen_by(&app, scene, 1)), [2]);
    app.world_mut().get_mut::<Position>(a).unwrap().0.x = 100.2;
    app.update();
    assert_eq!(ids(&seen_by(&app, scene, 1)), [2, 3]);
    assert_eq!(validate_views(app.world(), scene), Ok(()));
    app.world_mut().entity_mut(scene).remove::<ViewRules>();
    app.world_mut().get_mut::<Position>(foe).unwrap().0.x = 130.0;
    app.update();
    assert_eq!(ids(&seen_by(&app, scene, 1)), [2, 3]);
    assert_eq!(validate_views(app.world(), scene), Ok(()));
}

#[test]
fn spawned_tower_sees_as_far_as_its_range() {
    let mut app = app();
    let scene = scene(&mut app);
    player(&mut app, scene, 100.0);
    let viewer = Viewer {
        range_m: Some(400.0),
        ..Viewer::new(ViewCaps::all(5))
    };
    let position = Position(Vec2::new(500.0, 500.0));
    let tower = (Npc, InScene(scene), position, viewer);
    let tower = app.world_mut().spawn(tower).id();
    app.update();
    let id = app.world().get::<Object>(tower).unwrap().id().0;
    assert_eq!(ids(&seen_by(&app, scene, id)), [1]);
    assert_eq!(validate_views(app.world(), scene), Ok(()));
}
