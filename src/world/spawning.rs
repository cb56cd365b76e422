//! Players and NPCs, and commands that spawn and move objects.

use bevy_ecs::prelude::*;
use glam::Vec2;
use throng_core::spatial::Position;
use tracing::warn;

use super::in_scene::InScene;
use super::objects::{change_scene, teleport};
use super::registry::KindId;

/// A character that a player controls. On an entity that is spawned with [`InScene`] it sets the kind ([`KindId::PLAYER`], unless
/// the bundle has another `KindId`) and adds the components that a player needs, each registered by the plugin that owns it:
///
/// | plugin | adds |
/// |---|---|
/// | [`WorldPlugin`](super::WorldPlugin) | with [`Object`](super::Object): `Velocity`, `Heading`, `Floor` |
/// | [`AoiPlugin`](crate::aoi::AoiPlugin) | [`Viewer`](crate::aoi::Viewer) and [`Viewable`](crate::aoi::Viewable) |
/// | [`MovementPlugin`](crate::movement::MovementPlugin) | [`MaxSpeed`](crate::movement::MaxSpeed) |
///
/// A component in the same bundle takes precedence over a default that it adds. Add there what only the game knows: the
/// [`PlayerId`](super::PlayerId), and [`ControlledBy`](crate::session::ControlledBy) for the client.
///
/// ```
/// use bevy_ecs::prelude::*;
/// use glam::Vec2;
/// use throng::prelude::*;
///
/// # #[derive(Resource)]
/// # struct Town(Entity);
/// fn welcome(mut logins: MessageReader<LoggedIn>, town: Res<Town>, mut commands: Commands) {
///     for login in logins.read() {
///         let at = Position(Vec2::new(10.0, 20.0));
///         let control = ControlledBy(login.client_entity);
///         commands.spawn((Player, login.player, control, InScene(town.0), at));
///     }
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[require(KindId = KindId::PLAYER)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct Player;

/// A character that the server controls. Like [`Player`], with [`KindId::NPC`]: it adds [`Viewable`](crate::aoi::Viewable),
/// [`MaxSpeed`](crate::movement::MaxSpeed) and [`Walker`](crate::movement::Walker). With them it is seen and follows a
/// [`PathRequest`](crate::nav::PathRequest).
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use glam::Vec2;
/// # use throng::prelude::*;
/// fn spawn_wolf(scene: Entity, mut commands: Commands) {
///     commands.spawn((Npc, InScene(scene), Position(Vec2::splat(30.0))));
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[require(KindId = KindId::NPC)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct Npc;

/// Commands that spawn and move objects. An error of the world function becomes a
/// [`SpawnRefused`](super::SpawnRefused) or a warning, since a
/// command returns no result.
pub trait ObjectCommandsExt {
    /// Spawns an object as [`spawn_object`](super::spawn_object) does; `extra` are further components of it. The same as spawning
    /// [`InScene`], `kind`, [`Position`] and `extra`.
    fn spawn_object(
        &mut self,
        scene: Entity,
        kind: KindId,
        position: Vec2,
        extra: impl Bundle,
    ) -> EntityCommands<'_>;

    /// Moves an object within its scene, as [`teleport`] does. On an error the object stays, and a warning with the reason is
    /// logged.
    fn teleport(&mut self, entity: Entity, to: Vec2);

    /// Moves an object to another scene, as [`change_scene`] does. On an error the object stays, and a warning with the reason is
    /// logged.
    fn change_scene(&mut self, entity: Entity, scene: Entity, to: Vec2);
}

impl ObjectCommandsExt for Commands<'_, '_> {
    fn spawn_object(
        &mut self,
        scene: Entity,
        kind: KindId,
        position: Vec2,
        extra: impl Bundle,
    ) -> EntityCommands<'_> {
        // In one bundle, so that all components exist when the object is spawned.
        self.spawn((InScene(scene), kind, Position(position), extra))
    }

    fn teleport(&mut self, entity: Entity, to: Vec2) {
        self.queue(move |world: &mut World| {
            if let Err(error) = teleport(world, entity, to) {
                warn!(%entity, %error, "teleport failed");
            }
        });
    }

    fn change_scene(&mut self, entity: Entity, scene: Entity, to: Vec2) {
        self.queue(move |world: &mut World| {
            if let Err(error) = change_scene(world, entity, scene, to) {
                warn!(%entity, %scene, %error, "scene change failed");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use bevy_app::{App, FixedUpdate};
    use bevy_time::TimePlugin;

    use super::*;
    use crate::sim::{clock, state_hash};
    use crate::world::{
        Object, ObjectSpawned, SceneId, SceneObjects, SceneSpec, SpawnFailed, SpawnRefused,
        WorldError, WorldPlugin, open_scene,
    };

    const AT: Position = Position(Vec2::splat(10.0));

    fn app() -> (App, Entity) {
        let mut app = App::new();
        app.add_plugins((TimePlugin, WorldPlugin));
        clock::one_tick_per_update(&mut app);
        let spec = SceneSpec {
            max_objects: 4,
            ..SceneSpec::default()
        };
        let scene = open_scene(app.world_mut(), spec, ()).unwrap();
        (app, scene)
    }

    fn id_and_kind(app: &App, entity: Entity) -> (u32, KindId) {
        let object = app.world().get::<Object>(entity).unwrap();
        (object.id().0, object.kind())
    }

    fn refused(app: &App) -> Vec<SpawnRefused> {
        let messages = app.world().resource::<Messages<SpawnRefused>>();
        messages.iter_current_update_messages().cloned().collect()
    }

    #[test]
    fn bundle_becomes_an_object_at_once_and_writes_spawned() {
        let (mut app, scene) = app();
        let world = app.world_mut();
        let npc = world.spawn((Npc, InScene(scene), AT)).id();
        let player = world.spawn((Player, InScene(scene), AT)).id();
        let door = world.spawn((KindId::DOOR, InScene(scene), AT)).id();
        assert_eq!(id_and_kind(&app, npc), (1, KindId::NPC));
        assert_eq!(id_and_kind(&app, player), (2, KindId::PLAYER));
        assert_eq!(id_and_kind(&app, door), (3, KindId::DOOR));
        let world = app.world();
        let members = world.get::<SceneObjects>(scene).unwrap();
        assert!(members.iter().eq([npc, player, door]) && members.contains(door));
        assert_eq!(world.get::<InScene>(npc), Some(&InScene(scene)));
        let messages = world.resource::<Messages<ObjectSpawned>>();
        let messages = messages.iter_current_update_messages();
        let spawned: Vec<_> = messages
            .map(|message| (message.entity, message.position))
            .collect();
        assert_eq!(spawned, [npc, player, door].map(|entity| (entity, AT.0)));
    }

    #[test]
    fn ids_follow_the_order_of_commands_and_not_of_entities() {
        /// Spawns four entities into a scene after the previous system despawned its entities in any order.
        fn spawn(mut commands: Commands, scenes: Query<Entity, With<crate::world::SimScene>>) {
            for scene in &scenes {
                commands.spawn((Npc, InScene(scene), AT));
                commands.spawn_object(scene, KindId::PET, AT.0, ());
                commands.spawn((Player, InScene(scene), AT));
            }
        }
        let run = |shuffled: bool| {
            let (mut app, _) = app();
            if shuffled {
                let world = app.world_mut();
                let spent = [(); 6].map(|()| world.spawn_empty().id());
                for nth in [3, 0, 5, 1] {
                    world.despawn(spent[nth]);
                }
            }
            app.add_systems(FixedUpdate, spawn);
            app.update();
            let mut kinds: Vec<_> = app
                .world_mut()
                .query::<&Object>()
                .iter(app.world())
                .map(|object| (object.id().0, object.kind()))
                .collect();
            kinds.sort_unstable();
            (kinds, state_hash(app.world_mut()))
        };
        let (kinds, hash) = run(false);
        let expected = [(1, KindId::NPC), (2, KindId::PET), (3, KindId::PLAYER)];
        assert_eq!(kinds, expected);
        assert_eq!(run(true), (kinds, hash));
    }

    #[test]
    fn refused_spawn_writes_a_message_and_is_despawned() {
        let (mut app, scene) = app();
        let world = app.world_mut();
        let nowhere = world.spawn((Npc, InScene(scene))).id();
        let nothing = world.spawn((InScene(scene), AT)).id();
        let outside = Position(Vec2::splat(-1.0));
        let outside = world.spawn((Npc, InScene(scene), outside)).id();
        let no_scene = world.spawn((Npc, InScene(nothing), AT)).id();
        let all = [nowhere, nothing, outside, no_scene];
        let entities: Vec<_> = refused(&app).iter().map(|message| message.entity).collect();
        assert_eq!(entities, all);
        let texts: Vec<String> = refused(&app)
            .iter()
            .map(|message| message.error.to_string())
            .collect();
        assert!(texts[0].contains("add `Position`"), "{texts:?}");
        assert!(
            texts[1].contains("`Player`, `Npc` or a `KindId`"),
            "{texts:?}"
        );
        assert!(texts[2].contains("outside scene 0"), "{texts:?}");
        assert!(texts[3].contains(&nothing.to_string()), "{texts:?}");
        for target in [scene, nothing] {
            assert!(app.world().get::<SceneObjects>(target).is_none());
        }
        // Commands that follow in the same tick still find the entity.
        app.world_mut().entity_mut(nowhere).insert(Npc);
        app.update();
        assert!(
            all.iter()
                .all(|&entity| app.world().get_entity(entity).is_err())
        );
    }

    #[test]
    fn full_scene_refuses_a_spawn_and_names_its_id() {
        let (mut app, scene) = app();
        let spawn = |app: &mut App| {
            let bundle = (Npc, InScene(scene), AT);
            app.world_mut().spawn(bundle).id()
        };
        for _ in 0..4 {
            spawn(&mut app);
        }
        let last = spawn(&mut app);
        let expected = WorldError::SceneFull {
            scene: SceneId(0),
            max_objects: 4,
        };
        assert_eq!(refused(&app)[0].error, expected);
        app.update();
        assert!(app.world().get_entity(last).is_err());
    }

    #[test]
    fn corrected_spawn_becomes_an_object_and_is_kept() {
        let (mut app, scene) = app();
        let world = app.world_mut();
        let [corrected, kept] = [(); 2].map(|()| world.spawn((Npc, InScene(scene))).id());
        world.entity_mut(corrected).insert((InScene(scene), AT));
        world.entity_mut(kept).remove::<SpawnFailed>();
        app.update();
        assert_eq!(id_and_kind(&app, corrected), (1, KindId::NPC));
        let world = app.world();
        assert!(world.get::<SpawnFailed>(corrected).is_none());
        assert!(world.get_entity(kept).is_ok() && world.get::<Object>(kept).is_none());
    }

    #[test]
    fn failed_move_commands_change_nothing() {
        let (mut app, scene) = app();
        let other = open_scene(app.world_mut(), SceneSpec::default(), ()).unwrap();
        let entity = app.world_mut().spawn((Npc, InScene(scene), AT)).id();
        let mut commands = app.world_mut().commands();
        commands.teleport(entity, Vec2::splat(20.0));
        commands.teleport(entity, Vec2::splat(-20.0));
        commands.teleport(scene, Vec2::ONE);
        app.update();
        let at = |app: &App| app.world().get::<Position>(entity).unwrap().0;
        assert_eq!(at(&app), Vec2::splat(20.0));
        let mut commands = app.world_mut().commands();
        commands.change_scene(entity, other, Vec2::ONE);
        commands.change_scene(entity, entity, Vec2::ONE);
        app.update();
        let object = app.world().get::<Object>(entity).unwrap();
        assert_eq!((object.scene_entity(), at(&app)), (other, Vec2::ONE));
    }
}
