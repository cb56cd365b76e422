//! Plugins are good guests: each works alone, in pairs, and in a group without another one; all systems whose order can be observed are
//! ordered.

use bevy_app::{
    App, FixedPostUpdate, FixedPreUpdate, FixedUpdate, PluginGroup, PluginGroupBuilder,
    TaskPoolPlugin,
};
use bevy_ecs::schedule::{LogLevel, ScheduleBuildSettings, ScheduleLabel};
use bevy_time::TimePlugin;
use glam::Vec2;
use throng::ThrongPlugins;
use throng::aoi::{AoiPlugin, ViewCaps};
use throng::inbox::InboxPlugin;
use throng::instance::InstancePlugin;
use throng::map::MapPlugin;
use throng::matchmaking::MatchmakingPlugin;
use throng::movement::MovementPlugin;
use throng::nav::NavPlugin;
use throng::outbox::OutboxPlugin;
use throng::prelude::*;
use throng::session::SessionPlugin;
use throng::sim::{Heartbeat, SimPlugin, clock};
use throng::sync::SyncPlugin;
use throng::world::KindId;
use throng::world::{WorldPlugin, despawn_object, spawn_object, teleport};

/// Another developer's app, to which throng's plugins are added.
fn host() -> App {
    let mut app = App::new();
    app.add_plugins((TaskPoolPlugin::default(), TimePlugin));
    app
}

/// Makes ambiguous system orders an error, and runs some ticks with a little activity.
fn run_some_ticks(mut app: App, what: &str) {
    fn strict(app: &mut App, label: impl ScheduleLabel) {
        app.edit_schedule(label, |schedule| {
            let settings = schedule.get_build_settings();
            let ambiguity_detection = LogLevel::Error;
            schedule.set_build_settings(ScheduleBuildSettings {
                ambiguity_detection,
                ..settings
            });
        });
    }
    strict(&mut app, FixedPreUpdate);
    strict(&mut app, FixedUpdate);
    strict(&mut app, Heartbeat);
    strict(&mut app, FixedPostUpdate);
    app.finish();
    app.cleanup();
    clock::one_tick_per_update(&mut app);
    // A scene and an object need the world plugin, which most plugins add.
    let has_world = app.is_plugin_added::<WorldPlugin>();
    let someone = has_world.then(|| {
        let world = app.world_mut();
        let map = SceneMap::new(TileMap::new(40, 40, false).unwrap().into(), 0.5);
        let spec = SceneSpec {
            size_m: map.size_m(),
            ..SceneSpec::default()
        };
        let scene = open_scene(world, spec, map).unwrap();
        let body = || (Viewable::default(), Walker, MaxSpeed(2.0));
        let viewer = spawn_object(world, scene, KindId(0), Vec2::splat(5.0), body()).unwrap();
        world.entity_mut(viewer).insert(Viewer::new(ViewCaps {
            players: 5,
            npcs: 5,
            things: 5,
        }));
        let other = spawn_object(world, scene, KindId(0), Vec2::splat(7.0), body()).unwrap();
        (viewer, other)
    });
    (0..6).for_each(|_| app.update());
    if let Some((viewer, other)) = someone {
        let world = app.world_mut();
        world
            .entity_mut(viewer)
            .insert(PathRequest::long_to(Vec2::splat(15.0)));
        teleport(world, viewer, Vec2::splat(3.0)).unwrap();
        despawn_object(world, other).unwrap();
        (0..18).for_each(|_| app.update());
        assert!(app.world().get::<Object>(viewer).is_some(), "{what}");
    }
    assert!(
        app.world().resource::<SimTick>().0 >= 6,
        "{what}: no tick ran"
    );
}

/// Calls a macro with each plugin of the group.
macro_rules! for_each_plugin {
    ($apply:ident) => {
        $apply!(
            SimPlugin,
            WorldPlugin,
            MapPlugin,
            InboxPlugin,
            SessionPlugin,
            NavPlugin,
            MovementPlugin,
            AoiPlugin,
            MatchmakingPlugin,
            InstancePlugin,
            OutboxPlugin,
            SyncPlugin
        )
    };
}

/// Adds a plugin unless another plugin has added it.
fn add<P: bevy_app::Plugin + Default>(app: &mut App) {
    app.add_plugins(P::default());
}

/// A plugin of the group.
struct GroupPlugin {
    name: &'static str,
    add: fn(&mut App),
    disable: fn(PluginGroupBuilder) -> PluginGroupBuilder,
    is_added: fn(&App) -> bool,
}

impl GroupPlugin {
    /// Whether this plugin adds the other one.
    fn requires(&self, other: &Self) -> bool {
        let mut app = host();
        (self.add)(&mut app);
        (other.is_added)(&app)
    }
}

fn group_plugins() -> Vec<GroupPlugin> {
    macro_rules! list {
        ($($plugin:ident),*) => {
            vec![$(GroupPlugin {
                name: stringify!($plugin),
                add: add::<$plugin>,
                disable: |group| group.disable::<$plugin>(),
                is_added: |app| app.is_plugin_added::<$plugin>(),
            }),*]
        };
    }
    for_each_plugin!(list)
}

#[test]
fn plugins_work_alone() {
    for GroupPlugin { name, add, .. } in group_plugins() {
        let mut app = host();
        add(&mut app);
        run_some_ticks(app, name);
    }
}

#[test]
fn plugin_pairs_work_in_either_order() {
    let all = group_plugins();
    for one in &all {
        for other in &all {
            if one.name != other.name {
                let mut app = host();
                (one.add)(&mut app);
                (other.add)(&mut app);
                run_some_ticks(app, &format!("{} and {}", one.name, other.name));
            }
        }
    }
}

/// Plugins that would add the disabled one are left out as well.
#[test]
fn plugin_group_works_with_any_plugin_disabled() {
    let all = group_plugins();
    for without in &all {
        let group = all.iter().filter(|member| member.requires(without));
        let group = group.fold(ThrongPlugins.build(), |group, member| {
            (member.disable)(group)
        });
        let mut app = host();
        app.add_plugins(group);
        assert!(!(without.is_added)(&app), "{} is there", without.name);
        run_some_ticks(app, &format!("without {}", without.name));
    }
}

#[test]
fn plugin_group_works_in_an_existing_app() {
    let mut app = host();
    app.add_plugins(ThrongPlugins);
    run_some_ticks(app, "the whole group");
}
