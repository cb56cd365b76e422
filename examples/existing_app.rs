//! 1 of 9. Look at `main`: an app with its own loop and components uses only the interest management.
#![allow(clippy::print_stdout, reason = "the output of the example")]

use bevy_app::{App, FixedUpdate, TaskPoolPlugin};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time, TimePlugin};
use glam::Vec2;
use throng::aoi::AoiPlugin;
use throng::prelude::*;

/// A component of the game, unknown to throng.
#[derive(Component)]
struct Train {
    speed_m_s: f32,
}

fn drive(time: Res<Time<Fixed>>, mut trains: Query<(&Train, &mut Position)>) {
    for (train, mut position) in &mut trains {
        position.0.x += train.speed_m_s * time.delta_secs();
    }
}

fn print_view_changes(mut entered: MessageReader<ViewEntered>, mut left: MessageReader<ViewLeft>) {
    for ViewEntered { viewer, target, .. } in entered.read() {
        println!("{viewer} sees {target}");
    }
    for ViewLeft { viewer, target, .. } in left.read() {
        println!("{viewer} no longer sees {target}");
    }
}

fn main() {
    let mut app = App::new();
    app.add_plugins((TaskPoolPlugin::default(), TimePlugin, AoiPlugin))
        .insert_resource(Time::<Fixed>::from_hz(20.0))
        .add_systems(FixedUpdate, drive.before(SimSystems::Locate))
        .add_systems(FixedUpdate, print_view_changes.after(SimSystems::View));
    throng::sim::clock::one_tick_per_update(&mut app);

    let world = app.world_mut();
    let scene = world.spawn(SceneSpec::default()).id();
    // `Npc` makes an object viewable; with `Viewer` it also sees others.
    let at = |x: f32| (InScene(scene), Position(Vec2::new(x, 500.0)));
    world.spawn((Npc, Viewer::default(), at(400.0)));
    world.spawn((Npc, Viewer::default(), at(100.0), Train { speed_m_s: 50.0 }));
    for _ in 0..300 {
        app.update();
    }
}
