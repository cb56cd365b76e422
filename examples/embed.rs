//! 2 of 9. Look at `Hunger`: a custom component of the game, replicated to its owner and part of the state hash.
#![allow(clippy::print_stdout, reason = "the output of the example")]

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;
use glam::Vec2;
use throng::prelude::*;
use throng::world::ObjectHashAppExt;

#[derive(Component, Replicate, StateHashed)]
#[replicate(audience = Audience::OWNER)]
struct Hunger(u8);

fn grow_hungry(tick: Res<SimTick>, mut hungers: Query<&mut Hunger>) {
    if tick.0.is_multiple_of(20) {
        hungers
            .iter_mut()
            .for_each(|mut hunger| hunger.0 = hunger.0.saturating_add(1));
    }
}

/// What the game adds to the server; any Bevy plugin works.
fn add_hunger(app: &mut App) {
    app.add_systems(FixedUpdate, grow_hungry.in_set(SimSystems::First))
        .replicate::<Hunger>()
        .hash_component::<Hunger>("hunger");
}

fn main() {
    // The server has its own loop: a step is a tick, in real time.
    let mut server = Server::builder()
        .pace(Pace::RealTime)
        .plugins(add_hunger)
        .build();
    let scene = server.world_mut().spawn(SceneSpec::default()).id();
    let place = (InScene(scene), Position(Vec2::splat(10.0)));
    let entity = server.world_mut().spawn((Player, Hunger(0), place)).id();
    server.step(40);
    let hunger = server.world().get::<Hunger>(entity).map(|hunger| hunger.0);
    let hash = server.state_hash();
    println!("after two seconds: hunger {hunger:?}, state {hash:016x}");
}
