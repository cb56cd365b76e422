//! Spawning by components: an entity requests a place in a scene and becomes an object.
//!
//! ```text
//! commands.spawn((Player, Object::in_scene(scene), Position(at), …))
//!     ─▶ SpawnRequest ─ commands are applied ─▶ Object, ObjectSpawned
//!                      └ refused ─▶ SpawnRefused ─ end of the tick ─▶ despawned
//! ```
//! Ids are assigned in the order in which spawns are applied: that of the commands of a system, and of the systems in their schedule. The
//! order of entities or archetypes has no effect, so a run is reproducible, as with [`spawn_object`](super::spawn_object), which uses the
//! same list of ids.

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;
use glam::Vec2;
use throng_core::spatial::Position;
use tracing::warn;

use super::error::WorldError;
use super::objects::{Object, change_scene, make_object, teleport};
use super::registry::KindId;
use super::spawn_pending::SpawnPending;

/// A character that a player controls. On an entity that is spawned with [`Object::in_scene`] it sets the kind
/// ([`KindId::PLAYER`]) and adds the components that a player needs, each registered by the plugin that owns it:
///
/// | plugin | adds |
/// |---|---|
/// | [`WorldPlugin`](super::WorldPlugin) | with [`Object`]: `Velocity`, `Heading`, `Floor` |
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
///     for &LoggedIn { client, player } in logins.read() {
///         let at = Position(Vec2::new(10.0, 20.0));
///         commands.spawn((Player, player, ControlledBy::new(client), Object::in_scene(town.0), at));
///     }
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct Player;

/// A character that the server controls. Like [`Player`], with [`KindId::NPC`]: it adds [`Viewable`](crate::aoi::Viewable),
/// [`MaxSpeed`](crate::movement::MaxSpeed) and [`Walker`](crate::movement::Walker). With them it is seen and follows a
/// [`PathRequest`](crate::nav::PathRequest).
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Component))]
pub struct Npc;

/// Requests that an entity becomes an object of a scene; created by [`Object::in_scene`].
///
/// It is handled as soon as the spawn or insert has been applied: then the entity has [`Object`] and this is removed, or
/// [`SpawnRefused`] is written. A refused entity is not an object, keeps its components, and is despawned at the end of the
/// tick, so that no incomplete object remains. To keep the entity, remove this component before that.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(immutable, on_insert = on_request_inserted, on_remove = on_request_removed, clone_behavior = Ignore)]
#[require(SpawnPending)]
pub struct SpawnRequest {
    scene: Entity,
    kind: Option<KindId>,
}

impl SpawnRequest {
    /// Sets the kind, whatever other components say.
    #[must_use]
    pub const fn of_kind(self, kind: KindId) -> Self {
        Self {
            kind: Some(kind),
            ..self
        }
    }
}

impl Object {
    /// For a bundle: the entity becomes an object of a scene, at the [`Position`] in the same bundle. Its kind is that of
    /// [`Player`] or [`Npc`] in the bundle, or of [`of_kind`](SpawnRequest::of_kind). O(1) in addition to Bevy's spawn.
    ///
    /// ```
    /// # use bevy_ecs::prelude::*;
    /// # use glam::Vec2;
    /// # use throng::prelude::*;
    /// # fn f(mut commands: Commands, scene: Entity) {
    /// commands.spawn((Npc, Object::in_scene(scene), Position(Vec2::new(10.0, 20.0))));
    /// let door = Object::in_scene(scene).of_kind(KindId::DOOR);
    /// commands.spawn((door, Viewable::default(), Position(Vec2::new(12.0, 20.0))));
    /// # }
    /// ```
    #[must_use]
    pub const fn in_scene(scene: Entity) -> SpawnRequest {
        SpawnRequest { scene, kind: None }
    }
}

/// A spawn request was refused; see [`SpawnRequest`].
#[derive(Message, Clone, Debug, PartialEq)]
pub struct SpawnRefused {
    /// The entity of the request. It is despawned at the end of the tick, unless it is an object.
    pub entity: Entity,
    /// The requested scene.
    pub scene: Entity,
    /// Why it was refused.
    pub error: WorldError,
}

/// Commands that spawn and move objects. An error of the world function becomes a [`SpawnRefused`] or a warning, since a
/// command returns no result.
pub trait ObjectCommandsExt {
    /// Spawns an object as [`spawn_object`](super::spawn_object) does; `extra` are further components of it. The same as spawning
    /// [`Object::in_scene`], [`Position`] and `extra`.
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
        let request = Object::in_scene(scene).of_kind(kind);
        self.spawn((request, Position(position), extra))
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

/// Handles a spawn request right after the command that inserted it, when all components exist.
fn on_request_inserted(mut world: DeferredWorld, context: HookContext) {
    let entity = context.entity;
    world
        .commands()
        .queue(move |world: &mut World| handle_request(world, entity));
}

fn on_request_removed(mut world: DeferredWorld, context: HookContext) {
    world
        .commands()
        .entity(context.entity)
        .try_remove::<SpawnPending>();
}

fn handle_request(world: &mut World, entity: Entity) {
    let Some(&SpawnRequest { scene, kind }) = world.get::<SpawnRequest>(entity) else {
        return;
    };
    let named = || {
        let player = world.get::<Player>(entity).map(|_| KindId::PLAYER);
        player.or_else(|| world.get::<Npc>(entity).map(|_| KindId::NPC))
    };
    let kind = kind.or_else(named);
    match make_object(world, entity, scene, kind) {
        Ok(()) => {
            // An observer of the new object may have despawned it.
            if let Ok(mut entity) = world.get_entity_mut(entity) {
                entity.remove::<SpawnRequest>();
            }
        }
        Err(error) => {
            warn!(%entity, %scene, %error, "object not spawned");
            world.write_message(SpawnRefused {
                entity,
                scene,
                error,
            });
        }
    }
}

/// Despawns refused entities at the end of the tick; an entity that was an object before stays one.
pub(super) fn despawn_refused(
    refused: Query<(Entity, Has<Object>), With<SpawnRequest>>,
    mut commands: Commands,
) {
    for (entity, is_object) in &refused {
        if is_object {
            commands.entity(entity).try_remove::<SpawnRequest>();
        } else {
            commands.entity(entity).try_despawn();
        }
    }
}

#[cfg(test)]
mod tests {
    use bevy_app::{App, FixedUpdate};
    use bevy_time::TimePlugin;

    use super::*;
    use crate::sim::{clock, state_hash};
    use crate::world::{ObjectSpawned, SceneId, SceneSpec, WorldPlugin, open_scene};

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
        let npc = world.spawn((Npc, Object::in_scene(scene), AT)).id();
        let player = world.spawn((Player, Object::in_scene(scene), AT)).id();
        let door = Object::in_scene(scene).of_kind(KindId::DOOR);
        let door = world.spawn((door, AT)).id();
        assert_eq!(id_and_kind(&app, npc), (1, KindId::NPC));
        assert_eq!(id_and_kind(&app, player), (2, KindId::PLAYER));
        assert_eq!(id_and_kind(&app, door), (3, KindId::DOOR));
        let world = app.world();
        assert!(world.get::<SpawnRequest>(npc).is_none());
        let told = world.resource::<Messages<ObjectSpawned>>();
        let told = told.iter_current_update_messages();
        let told: Vec<_> = told.map(|told| (told.entity, told.position)).collect();
        assert_eq!(told, [npc, player, door].map(|entity| (entity, AT.0)));
    }

    #[test]
    fn ids_follow_the_order_of_commands_and_not_of_entities() {
        /// Spawns four entities into a scene after the previous system despawned its entities in any order.
        fn spawn(mut commands: Commands, scenes: Query<Entity, With<crate::world::SimScene>>) {
            for scene in &scenes {
                commands.spawn((Npc, Object::in_scene(scene), AT));
                commands.spawn_object(scene, KindId::PET, AT.0, ());
                commands.spawn((Player, Object::in_scene(scene), AT));
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
        let nowhere = world.spawn((Npc, Object::in_scene(scene))).id();
        let nothing = world.spawn((Object::in_scene(scene), AT)).id();
        let outside = Position(Vec2::splat(-1.0));
        let outside = world.spawn((Npc, Object::in_scene(scene), outside)).id();
        let no_scene = world.spawn((Npc, Object::in_scene(nothing), AT)).id();
        let all = [nowhere, nothing, outside, no_scene];
        let told: Vec<_> = refused(&app).iter().map(|told| told.entity).collect();
        assert_eq!(told, all);
        let texts: Vec<String> = refused(&app)
            .iter()
            .map(|told| told.error.to_string())
            .collect();
        assert!(texts[0].contains("add `Position`"), "{texts:?}");
        assert!(texts[1].contains("`Player` or `Npc`"), "{texts:?}");
        assert!(texts[2].contains("outside scene 0"), "{texts:?}");
        assert!(texts[3].contains(&nothing.to_string()), "{texts:?}");
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
            let bundle = (Npc, Object::in_scene(scene), AT);
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
    fn second_spawn_request_leaves_an_object_unchanged() {
        let (mut app, scene) = app();
        let entity = app
            .world_mut()
            .spawn((Npc, Object::in_scene(scene), AT))
            .id();
        let mut object = app.world_mut().entity_mut(entity);
        object.insert(Object::in_scene(scene));
        let error = refused(&app)[0].error.to_string();
        assert!(error.contains("already object 1 of scene 0"), "{error}");
        app.update();
        assert_eq!(id_and_kind(&app, entity), (1, KindId::NPC));
        assert!(app.world().get::<SpawnRequest>(entity).is_none());
    }

    #[test]
    fn failed_move_commands_change_nothing() {
        let (mut app, scene) = app();
        let other = open_scene(app.world_mut(), SceneSpec::default(), ()).unwrap();
        let entity = app
            .world_mut()
            .spawn((Npc, Object::in_scene(scene), AT))
            .id();
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
