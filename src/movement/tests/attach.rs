//! An object that follows another one has its position.

use super::*;
use crate::sim::state_hash;
use crate::world::{Object, change_scene, despawn_object};

fn view(app: &mut App, scene: Entity, on: Entity) -> Entity {
    spawn_object(app.world_mut(), scene, KindId(0), Vec2::ONE, AttachedTo(on)).unwrap()
}

fn scene_of(app: &App, entity: Entity) -> Entity {
    app.world().get::<Object>(entity).unwrap().scene_entity()
}

#[test]
fn attached_object_follows_across_scenes_and_stays_when_it_ends() {
    let mut app = app();
    let here = scene(&mut app, TileMap::new(40, 40, false).unwrap());
    let there = scene(&mut app, TileMap::new(40, 40, false).unwrap());
    let other = walker(&mut app, here, centre(5, 5), 2.0);
    let view = view(&mut app, here, other);
    send(&mut app, other, centre(30, 5));
    for _ in 0..40 {
        app.update();
        assert_eq!(position(&app, view), position(&app, other));
        assert_eq!(velocity(&app, view), velocity(&app, other));
    }
    assert!(position(&app, view).x > centre(10, 5).x);
    change_scene(app.world_mut(), other, there, centre(7, 7)).unwrap();
    app.update();
    assert_eq!(
        (scene_of(&app, view), position(&app, view)),
        (there, centre(7, 7))
    );
    // It despawns while it walks: the attached object stops.
    send(&mut app, other, centre(30, 7));
    for _ in 0..5 {
        app.update();
    }
    let last = position(&app, view);
    assert_ne!((last, velocity(&app, view)), (centre(7, 7), Vec2::ZERO));
    despawn_object(app.world_mut(), other).unwrap();
    app.update();
    assert_eq!((scene_of(&app, view), position(&app, view)), (there, last));
    assert_eq!(velocity(&app, view), Vec2::ZERO);
}

#[test]
fn attached_object_stays_when_the_new_scene_is_full() {
    let mut app = app();
    let here = scene(&mut app, TileMap::new(40, 40, false).unwrap());
    let spec = SceneSpec {
        max_objects: 1,
        ..SceneSpec::default()
    };
    let full = open_scene(app.world_mut(), spec, ()).unwrap();
    let other = walker(&mut app, here, centre(5, 5), 2.0);
    let view = view(&mut app, here, other);
    app.update();
    change_scene(app.world_mut(), other, full, centre(7, 7)).unwrap();
    app.update();
    assert_eq!(
        (scene_of(&app, view), position(&app, view)),
        (here, centre(5, 5))
    );
}

#[test]
fn attachments_are_in_the_state_hash() {
    let hash = |nth: usize| {
        let mut app = app();
        let scene = scene(&mut app, TileMap::new(40, 40, false).unwrap());
        let others = [(); 2].map(|()| walker(&mut app, scene, centre(5, 5), 2.0));
        view(&mut app, scene, others[nth]);
        state_hash(app.world_mut())
    };
    assert_ne!(hash(0), hash(1));
}
