//! The plugin in an app.

mod attach;
mod clearance;
mod counts;
mod ground;
mod hacks;
mod long_searches;
mod players;
mod requests;
mod walking;

use std::sync::Arc;

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::{LogLevel, ScheduleBuildSettings};
use glam::{IVec2, Vec2};

use super::*;
use crate::map::{SceneMap, TileMap};
use crate::nav::PathRequest;
use crate::sim::{self, clock};
use crate::world::{
    KindId, MoveInput, PlayerMotion, Position, SceneSpec, Velocity, open_scene, spawn_object,
};

const TILE_M: f32 = 0.5;
const TICK_S: f32 = 0.05;

fn app() -> App {
    let mut app = App::new();
    app.add_plugins((
        bevy_time::TimePlugin,
        sim::SimPlugin {
            tick_hz: Some(20.0),
        },
        MovementPlugin,
    ));
    clock::one_tick_per_update(&mut app);
    app
}

fn scene(app: &mut App, tiles: TileMap) -> Entity {
    let map = SceneMap::new(Arc::new(tiles), TILE_M);
    let spec = SceneSpec {
        size_m: map.size_m(),
        ..Default::default()
    };
    open_scene(app.world_mut(), spec, map).unwrap()
}

fn ascii_scene(app: &mut App, ascii: &str) -> Entity {
    scene(app, TileMap::from_ascii(ascii).unwrap())
}

fn centre(x: i32, y: i32) -> Vec2 {
    (IVec2::new(x, y).as_vec2() + 0.5) * TILE_M
}

fn walker(app: &mut App, scene: Entity, at: Vec2, speed: f32) -> Entity {
    spawn_object(
        app.world_mut(),
        scene,
        KindId(1),
        at,
        (MaxSpeed(speed), Walker),
    )
    .unwrap()
}

fn player(app: &mut App, scene: Entity, at: Vec2, speed: f32) -> Entity {
    spawn_object(app.world_mut(), scene, KindId(0), at, MaxSpeed(speed)).unwrap()
}

fn send(app: &mut App, entity: Entity, goal: Vec2) {
    let request = PathRequest::to(goal);
    app.world_mut().entity_mut(entity).insert(request);
}

fn input(app: &mut App, entity: Entity, to: Vec2) {
    app.world_mut().write_message(MoveInput {
        entity,
        motion: PlayerMotion::To(to),
        heading: 7,
    });
}

fn position(app: &App, entity: Entity) -> Vec2 {
    app.world().get::<Position>(entity).unwrap().0
}

fn velocity(app: &App, entity: Entity) -> Vec2 {
    app.world().get::<Velocity>(entity).unwrap().0
}

fn stats(app: &App) -> MovementStats {
    *app.world().resource::<MovementStats>()
}

fn written<M: Message + Copy>(app: &App) -> Vec<M> {
    app.world()
        .resource::<Messages<M>>()
        .iter_current_update_messages()
        .copied()
        .collect()
}

#[test]
fn systems_have_no_ambiguous_order() {
    let mut app = App::new();
    app.add_plugins((bevy_time::TimePlugin, MovementPlugin));
    app.edit_schedule(FixedUpdate, |schedule| {
        schedule.set_build_settings(ScheduleBuildSettings {
            ambiguity_detection: LogLevel::Error,
            ..Default::default()
        });
    });
    clock::one_tick_per_update(&mut app);
    app.update();
    assert_eq!(app.world().resource::<sim::SimTick>().0, 1);
}
