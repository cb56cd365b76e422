//! Look at `Hunger`: a component of the game's own, replicated to its owner and part of the state hash.
#![allow(
    clippy::print_stdout,
    reason = "an example talks to the person who runs it"
)]

use std::time::Duration;

use bevy_app::{App, FixedUpdate, TaskPoolPlugin};
use bevy_ecs::prelude::*;
use bevy_time::TimePlugin;
use glam::Vec2;
use throng::prelude::*;
use throng::sim::{clock, single_threaded, state_hash};

#[derive(Component)]
struct Hunger(u8);

impl Replicate for Hunger {
    fn value(&self) -> Value {
        self.0.into()
    }
}

impl StateHashed for Hunger {
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(u64::from(self.0));
    }
}

fn grow_hungry(tick: Res<SimTick>, mut everybody: Query<&mut Hunger>) {
    if tick.0.is_multiple_of(20) {
        everybody
            .iter_mut()
            .for_each(|mut hunger| hunger.0 = hunger.0.saturating_add(1));
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut app = App::new();
    app.add_plugins((TaskPoolPlugin::default(), TimePlugin, ThrongPlugins))
        .add_systems(FixedUpdate, grow_hungry.in_set(SimSystems::First))
        .hash_component::<Hunger>("hunger");
    let hunger = AttributeSpec::new("hunger", 100, Encoding::U8).to(Audience::OWNER);
    app.replicate::<Hunger>(hunger)?;

    // The server's own loop: an update is a tick, at the pace of the clock on the wall.
    clock::one_tick_an_update(&mut app);
    single_threaded(&mut app);
    let scene = open_scene(app.world_mut(), SceneSpec::default(), ())?;
    let player = app
        .world()
        .resource::<ObjectKinds>()
        .find("player")
        .ok_or("no such kind")?;
    let body = (
        Viewer::new(ViewCaps::all(100)),
        Viewable::default(),
        Hunger(0),
    );
    let entity = spawn_object(app.world_mut(), scene, player, Vec2::splat(10.0), body)?;
    let mut pacer = clock::Pacer::new(Duration::from_millis(50));
    for _ in 0..40 {
        pacer.wait();
        app.update();
    }
    let hunger = app.world().get::<Hunger>(entity).map(|hunger| hunger.0);
    let hash = state_hash(app.world_mut()).fold();
    println!("after two seconds: hunger {hunger:?}, state {hash:016x}");
    Ok(())
}
