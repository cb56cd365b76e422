//! Look at `RULES`: a scene in which players see only the monsters of their quest, and one monster hides from one player.
#![allow(
    clippy::print_stdout,
    reason = "an example talks to the person who runs it"
)]

use bevy_app::{App, TaskPoolPlugin};
use bevy_ecs::prelude::*;
use bevy_time::TimePlugin;
use glam::Vec2;
use throng::prelude::*;

/// The first word of a tag holds quests, one bit each; who has none is seen by all.
const RULES: ViewRules = ViewRules {
    allows: Some(|viewer, target| target.tag[0] == 0 || viewer.tag[0] & target.tag[0] != 0),
    class: None,
};

fn seen(app: &App, scene: Entity, viewer: Entity) -> Vec<u32> {
    let world = app.world();
    let (interest, object) = (
        world.get::<SceneInterest>(scene),
        world.get::<Object>(viewer),
    );
    let seen = interest.zip(object).map(|(interest, object)| {
        let seen = interest.views().seen_by(object.id().0);
        seen.map(|(target, _class)| target).collect()
    });
    seen.unwrap_or_default()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut app = App::new();
    app.add_plugins((TaskPoolPlugin::default(), TimePlugin, AoiPlugin));
    throng::sim::clock::one_tick_an_update(&mut app);
    let world = app.world_mut();
    let scene = open_scene(world, SceneSpec::default(), RULES)?;
    let npc = world.resource::<ObjectKinds>().find("npc");
    let npc = npc.ok_or("no such kind")?;
    let at = Vec2::splat(500.0);
    let viewer = (Viewer::new(ViewCaps::all(10)), Viewable::default());
    let player = spawn_object(world, scene, npc, at, viewer)?;
    let monster = (Viewable::default(), ViewTag([0b10, 0]));
    let monster = spawn_object(world, scene, npc, at, monster)?;
    app.update();
    println!("without the quest: {:?}", seen(&app, scene, player));
    app.world_mut()
        .entity_mut(player)
        .insert(ViewTag([0b10, 0]));
    app.update();
    println!("with it: {:?}", seen(&app, scene, player));
    hide_from(app.world_mut(), monster, player)?;
    app.update();
    println!("hidden from this one: {:?}", seen(&app, scene, player));
    Ok(())
}
