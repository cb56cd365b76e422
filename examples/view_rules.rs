//! 3 of 9. Look at `RULES`: players see only the monsters of their quest, and one monster is hidden from one player.
#![allow(clippy::print_stdout, reason = "the output of the example")]

use bevy_app::{App, TaskPoolPlugin};
use bevy_ecs::prelude::*;
use bevy_ecs::system::RunSystemOnce;
use bevy_time::TimePlugin;
use glam::Vec2;
use throng::aoi::{AoiPlugin, hide_from};
use throng::prelude::*;

/// The first word of a tag holds quests, one bit each; an object without quests is visible to all.
const RULES: ViewRules = ViewRules {
    allows: Some(|viewer, target| target.tag[0] == 0 || viewer.tag[0] & target.tag[0] != 0),
    ..ViewRules::NONE
};

/// The objects that a viewer sees. In a system, `Views` would be a parameter.
fn visible_objects(app: &mut App, viewer: Entity) -> Vec<Entity> {
    let seen = move |views: Views| views.seen_by(viewer).collect::<Vec<_>>();
    app.world_mut().run_system_once(seen).unwrap_or_default()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut app = App::new();
    app.add_plugins((TaskPoolPlugin::default(), TimePlugin, AoiPlugin));
    throng::sim::clock::one_tick_per_update(&mut app);
    let world = app.world_mut();
    let scene = world.spawn((SceneSpec::default(), RULES)).id();
    let place = || (InScene(scene), Position(Vec2::splat(500.0)));
    let player = world.spawn((Player, place())).id();
    let monster = world.spawn((Npc, ViewTag([0b10, 0]), place())).id();
    app.update();
    println!("without the quest: {:?}", visible_objects(&mut app, player));
    app.world_mut()
        .entity_mut(player)
        .insert(ViewTag([0b10, 0]));
    app.update();
    println!("with the quest: {:?}", visible_objects(&mut app, player));
    hide_from(app.world_mut(), monster, player)?;
    app.update();
    println!(
        "hidden from this player: {:?}",
        visible_objects(&mut app, player)
    );
    Ok(())
}
