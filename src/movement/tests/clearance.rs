//! Objects wider than a tile.

use bevy_app::App;
use bevy_ecs::prelude::*;
use glam::{IVec2, Vec2};

use super::{TILE_M, app, ascii_scene, centre, walker};
use crate::map::{SceneMap, TileEdit, TileRect, edit_map};
use crate::movement::WalkerArrived;
use crate::nav::{NavPath, NavSettings, NavStats, PathRequest};
use crate::world::Position;

/// A gap of one tile on the straight path and one of three tiles further down.
const GAPS: &str = "\
    ......@......\n\
    ......@......\n\
    .............\n\
    ......@......\n\
    ......@......\n\
    ......@......\n\
    .............\n\
    .............\n\
    .............\n\
    ......@......";

fn request_path(app: &mut App, entity: Entity, goal: Vec2, clearance: u8) {
    let request = PathRequest {
        clearance,
        ..PathRequest::to(goal)
    };
    app.world_mut().entity_mut(entity).insert(request);
}

/// Whether all tiles around that of a position are free.
fn fits(app: &App, scene: Entity, entity: Entity, clearance: i32) -> bool {
    let map = app.world().get::<SceneMap>(scene).unwrap();
    let tile = map.tile_at(app.world().get::<Position>(entity).unwrap().0);
    let mut around = (-clearance..=clearance)
        .flat_map(|dy| (-clearance..=clearance).map(move |dx| tile + IVec2::new(dx, dy)));
    around.all(|tile| map.tiles().is_free(tile))
}

/// Updates until a walker has arrived, with a check in each tick.
fn walk(app: &mut App, mut look: impl FnMut(&mut App)) {
    for _ in 0..400 {
        app.update();
        look(app);
        let arrived = app.world().resource::<Messages<WalkerArrived>>();
        if arrived.iter_current_update_messages().next().is_some() {
            return;
        }
    }
    panic!("no walker arrived");
}

#[test]
fn wide_body_detours_and_slim_body_goes_straight() {
    let goal = centre(11, 2);
    for (clearance, rows_down) in [(0, 0), (1, 5)] {
        let mut app = app();
        let scene = ascii_scene(&mut app, GAPS);
        let body = walker(&mut app, scene, centre(1, 2), 2.0);
        request_path(&mut app, body, goal, clearance);
        let mut lowest = 0.0_f32;
        walk(&mut app, |app| {
            let position = app.world().get::<Position>(body).unwrap().0;
            lowest = lowest.max((position.y - goal.y) / TILE_M);
            assert!(fits(app, scene, body, clearance.into()), "at {position}");
        });
        assert_eq!(lowest.round() as i32, rows_down, "clearance {clearance}");
        let position = app.world().get::<Position>(body).unwrap().0;
        assert!(position.distance(goal) < 1e-3);
    }
}

#[test]
fn narrowed_gap_replans_only_wide_bodies() {
    let mut app = app();
    let scene = ascii_scene(&mut app, GAPS);
    let bodies = [0, 1].map(|clearance| {
        let body = walker(&mut app, scene, centre(1, 7), 0.01);
        request_path(&mut app, body, centre(11, 7), clearance);
        body
    });
    (0..4).for_each(|_| app.update());
    assert!(
        bodies
            .iter()
            .all(|&body| !app.world().get::<NavPath>(body).unwrap().is_empty())
    );
    edit_map(
        app.world_mut(),
        scene,
        TileRect::new(6, 6, 1, 1),
        &TileEdit::Block,
    )
    .unwrap();
    (0..2).for_each(|_| app.update());
    let stats = app.world().resource::<NavStats>();
    assert_eq!((stats.replanned, stats.unreachable), (1, 1));
    let paths = bodies.map(|body| app.world().get::<NavPath>(body).unwrap().is_empty());
    assert_eq!(
        paths,
        [false, true],
        "for the wide one there is no way left"
    );
}

#[test]
fn too_wide_bodies_are_blocked_and_equal_scenes_share_maps() {
    let mut app = app();
    let clearance_max = app.world().resource::<NavSettings>().clearance_max;
    let scenes = [(); 2].map(|()| ascii_scene(&mut app, GAPS));
    let bodies = scenes.map(|scene| {
        let body = walker(&mut app, scene, centre(1, 7), 2.0);
        request_path(&mut app, body, centre(11, 7), 1);
        body
    });
    let giant = walker(&mut app, scenes[0], centre(2, 7), 2.0);
    request_path(&mut app, giant, centre(10, 7), clearance_max + 1);
    (0..5).for_each(|_| app.update());
    let stats = app.world().resource::<NavStats>();
    assert_eq!((stats.found, stats.blocked, stats.waiting), (2, 1, 0));
    assert!(
        bodies
            .iter()
            .all(|&body| !app.world().get::<NavPath>(body).unwrap().is_empty())
    );
}
