//! The world's plugin: registration, and when ids are released.

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;

use super::membership::{despawn_refused, on_membership_inserted, on_membership_removed};
use super::parties::register_affiliations;
use super::{
    AffiliationChanged, Floor, GuildId, Heading, InScene, MoveInput, Object, ObjectChangedScene,
    ObjectDespawned, ObjectHashAppExt, ObjectKinds, ObjectSpawned, ObjectTeleported, Parties,
    PartyId, PlayerId, Players, Position, SceneClosed, SceneIds, SceneObjects, SceneOpened, Scenes,
    SpawnRefused, TeamId, Velocity,
};
use crate::memory::MemoryAppExt;
use crate::sim::{HashAppExt, SimSystems, WorkAppExt};

/// Scenes, the objects in them, and their players, teams, parties and guilds.
///
/// Spawn a [`SceneSpec`](super::SceneSpec) to open a scene, and an entity with [`InScene`](super::InScene) and [`Position`] to add an
/// object to it. Bevy's `despawn` closes the scene and removes the object. Other plugins read what changed in a tick from messages, such
/// as [`ObjectSpawned`] and [`ObjectTeleported`].
///
/// Spawning, despawning and changing the scene take O(1) for each object. Every plugin that needs objects adds this one when it is
/// missing.
///
/// # Panics
/// When an entity of the app had a [`PlayerId`], [`TeamId`], [`PartyId`], [`GuildId`] or [`InScene`] before the plugin was added.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorldPlugin;

crate::sim::sim_plugin!(WorldPlugin, ());

impl WorldPlugin {
    fn add_to(app: &mut App) {
        #[cfg(feature = "reflect")]
        app.register_type::<Object>()
            .register_type::<Position>()
            .register_type::<Velocity>()
            .register_type::<Heading>()
            .register_type::<Floor>()
            .register_type::<super::KindId>()
            .register_type::<super::Player>()
            .register_type::<super::Npc>()
            .register_type::<PlayerId>()
            .register_type::<TeamId>()
            .register_type::<PartyId>()
            .register_type::<GuildId>();
        count_memory(app);
        register_affiliations(app.world_mut());
        app.world_mut()
            .register_component_hooks::<InScene>()
            .on_remove(on_membership_removed);
        app.init_resource::<Scenes>()
            .init_resource::<ObjectKinds>()
            .add_observer(on_membership_inserted)
            .add_observer(on_player_spawned)
            .add_message::<SceneOpened>()
            .add_message::<SceneClosed>()
            .add_message::<SpawnRefused>()
            .add_systems(
                FixedUpdate,
                (
                    // The views detect an object that is despawned after Locate only in the next tick. Replication has one generation per
                    // id for all clients, so it must have handled all despawned objects before an id is used again.
                    begin_id_release
                        .after(SimSystems::Move)
                        .before(SimSystems::Locate),
                    finish_id_release
                        .after(SimSystems::Replicate)
                        .before(SimSystems::Send),
                    despawn_refused
                        .after(SimSystems::Send)
                        .before(SimSystems::Last),
                ),
            )
            .add_cost_estimator(|world, costs| {
                let scenes = world.resource::<Scenes>().iter();
                let objects = scenes.filter_map(|(_, scene)| world.get::<SceneIds>(scene));
                let live: u64 = objects.map(|objects| u64::from(objects.len())).sum();
                live * u64::from(costs.object_ns)
            })
            .hash_component::<Object>("object")
            .hash_component::<Position>("position")
            .hash_component::<Velocity>("velocity")
            .hash_component::<Heading>("heading")
            .hash_component::<Floor>("floor")
            .hash_component::<PlayerId>("player")
            .hash_component::<TeamId>("team")
            .hash_component::<PartyId>("party")
            .hash_component::<GuildId>("guild")
            .hash_part("scenes", |world, hasher| {
                let scenes = world.resource::<Scenes>();
                hasher.write_u64(u64::from(scenes.opened()));
                for (id, entity) in scenes.iter() {
                    hasher.write_u64(u64::from(id.0));
                    let live = world.get::<SceneIds>(entity).map_or(0, SceneIds::len);
                    hasher.write_u64(u64::from(live));
                }
            })
            .hash_part("parties", |world, hasher| {
                for (party, members) in world.resource::<Parties>().iter() {
                    hasher.write_u64(u64::from(party.0));
                    members.iter().for_each(|member| hasher.write_u64(member.0));
                }
            });
    }
}

fn count_memory(app: &mut App) {
    app.count_memory::<Scenes>("world")
        .count_memory::<Players>("world")
        .count_memory::<Parties>("world")
        .count_component_memory::<SceneIds>("world")
        .count_component_memory::<SceneObjects>("world")
        .add_counted_message::<ObjectSpawned>("world")
        .add_counted_message::<ObjectDespawned>("world")
        .add_counted_message::<AffiliationChanged>("world")
        .add_counted_message::<ObjectTeleported>("world")
        .add_counted_message::<ObjectChangedScene>("world")
        .add_counted_message::<MoveInput>("world");
}

/// Registers a player whose spawn is complete.
fn on_player_spawned(spawned: On<Add<Object>>, mut world: DeferredWorld) {
    let entity = spawned.entity;
    let Some(&player) = world.get::<PlayerId>(entity) else {
        return;
    };
    // Inserting the same component again registers the object.
    world.commands().entity(entity).try_insert(player);
}

fn begin_id_release(mut scenes: Query<&mut SceneIds>) {
    scenes
        .iter_mut()
        .for_each(|mut objects| objects.begin_release());
}

fn finish_id_release(mut scenes: Query<&mut SceneIds>) {
    scenes
        .iter_mut()
        .for_each(|mut objects| objects.finish_release());
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use glam::Vec2;
    use proptest::prelude::*;

    use super::super::{
        KindId, SceneId, SceneSpec, WorldError, change_scene, close_scene, despawn_object,
        open_scene, spawn_object, teleport,
    };
    use super::*;
    use crate::sim::{clock, state_hash};

    const NPC: KindId = KindId(1);

    fn app() -> App {
        let mut app = App::new();
        app.add_plugins((bevy_time::TimePlugin, WorldPlugin));
        clock::one_tick_per_update(&mut app);
        app
    }

    fn scene(app: &mut App, max_objects: u32) -> Entity {
        open_scene(
            app.world_mut(),
            SceneSpec {
                max_objects,
                ..Default::default()
            },
            (),
        )
        .unwrap()
    }

    fn spawn(app: &mut App, scene: Entity) -> Result<Entity, WorldError> {
        spawn_object(app.world_mut(), scene, NPC, Vec2::splat(10.0), ())
    }

    fn reference(app: &App, entity: Entity) -> (u32, u32) {
        let object = app.world().get::<Object>(entity).unwrap();
        (object.id().0, object.generation().0)
    }

    fn despawned(app: &App) -> Vec<u32> {
        let messages = app.world().resource::<Messages<ObjectDespawned>>();
        messages
            .iter_current_update_messages()
            .map(|gone| gone.object.id().0)
            .collect()
    }

    #[test]
    fn plain_despawn_releases_the_id_like_despawn_object() {
        let mut app = app();
        let scene = scene(&mut app, 8);
        let [a, b] = [(); 2].map(|()| spawn(&mut app, scene).unwrap());
        app.world_mut().despawn(a);
        despawn_object(app.world_mut(), b).unwrap();
        assert_eq!(despawned(&app), [1, 2]);
        assert_eq!(app.world().get::<SceneIds>(scene).unwrap().len(), 0);
        assert_eq!(
            despawn_object(app.world_mut(), b),
            Err(WorldError::NoSuchObject { entity: b })
        );
    }

    #[test]
    fn id_is_reused_after_replicate_with_the_next_generation() {
        let mut app = app();
        let scene = scene(&mut app, 1);
        let first = spawn(&mut app, scene).unwrap();
        assert_eq!(reference(&app, first), (1, 0));
        app.world_mut().despawn(first);
        let full = WorldError::SceneFull {
            scene: SceneId(0),
            max_objects: 1,
        };
        assert_eq!(
            spawn(&mut app, scene),
            Err(full),
            "its despawn is not handed over yet"
        );
        app.update();
        let second = spawn(&mut app, scene).unwrap();
        assert_eq!(reference(&app, second), (1, 1));
        let objects = app.world().get::<SceneIds>(scene).unwrap();
        assert_eq!(objects.resolve(ObjectId(1), Generation(0)), None);
        assert_eq!(objects.resolve(ObjectId(1), Generation(1)), Some(second));
    }

    #[test]
    fn scene_change_is_a_despawn_and_a_spawn_of_one_entity() {
        let mut app = app();
        let (a, b) = (scene(&mut app, 4), scene(&mut app, 1));
        let entity = spawn(&mut app, a).unwrap();
        change_scene(app.world_mut(), entity, b, Vec2::ONE).unwrap();
        assert_eq!(despawned(&app), [1]);
        assert!(app.world().get::<SceneIds>(a).unwrap().is_empty());
        let objects = app.world().get::<SceneIds>(b).unwrap();
        assert_eq!(objects.entity(ObjectId(1)), Some(entity));
        let other = spawn(&mut app, a).unwrap();
        let before = *app.world().get::<Object>(other).unwrap();
        assert!(
            change_scene(app.world_mut(), other, b, Vec2::ONE).is_err(),
            "the scene is full"
        );
        assert_eq!(*app.world().get::<Object>(other).unwrap(), before);
    }

    #[test]
    fn positions_outside_the_scene_are_refused() {
        let mut app = app();
        let scene = scene(&mut app, 4);
        let entity = spawn(&mut app, scene).unwrap();
        for bad in [
            Vec2::NAN,
            Vec2::NEG_ONE,
            Vec2::splat(1e9),
            Vec2::new(1.0, f32::INFINITY),
        ] {
            assert!(teleport(app.world_mut(), entity, bad).is_err(), "{bad}");
            assert!(
                spawn_object(app.world_mut(), scene, NPC, bad, ()).is_err(),
                "{bad}"
            );
        }
        assert_eq!(
            app.world().get::<Position>(entity).unwrap().0,
            Vec2::splat(10.0)
        );
        assert_eq!(app.world().get::<SceneIds>(scene).unwrap().len(), 1);
    }

    #[test]
    fn closed_scene_despawns_its_objects() {
        let mut app = app();
        for plain in [false, true] {
            let scene = scene(&mut app, 4);
            let entities = [(); 3].map(|()| spawn(&mut app, scene).unwrap());
            if plain {
                app.world_mut().despawn(scene);
                app.world_mut().flush();
            } else {
                close_scene(app.world_mut(), scene).unwrap();
            }
            assert!(
                entities
                    .iter()
                    .all(|&entity| app.world().get_entity(entity).is_err())
            );
            assert_eq!(app.world().resource::<Scenes>().iter().count(), 0);
            assert_eq!(despawned(&app), [1, 2, 3]);
            app.update();
            app.update();
        }
        let next = scene(&mut app, 1);
        let id = app
            .world()
            .get::<super::super::SimScene>(next)
            .unwrap()
            .id();
        assert_eq!(id, SceneId(2), "scene ids are never reused");
    }

    #[test]
    fn state_hash_is_independent_of_storage_order() {
        let build = |archetypes_differ: bool, x: f32| {
            let mut app = app();
            let scene = scene(&mut app, 4);
            let a = spawn(&mut app, scene).unwrap();
            let b = spawn(&mut app, scene).unwrap();
            if archetypes_differ {
                // Moves `a` behind `b` in storage without changing their values.
                app.world_mut()
                    .entity_mut(a)
                    .insert(TeamId(1))
                    .remove::<TeamId>();
            }
            teleport(app.world_mut(), b, Vec2::new(x, 3.0)).unwrap();
            state_hash(app.world_mut())
        };
        assert_eq!(build(false, 5.0), build(true, 5.0));
        assert_ne!(build(false, 5.0), build(false, 5.5));
    }

    #[derive(Clone, Debug)]
    enum WorldStep {
        Spawn(usize),
        Despawn(usize),
        Change(usize, usize),
        Tick,
    }

    fn steps() -> impl Strategy<Value = Vec<WorldStep>> {
        let step = prop_oneof![
            3 => (0..3usize).prop_map(WorldStep::Spawn),
            2 => (0..12usize).prop_map(WorldStep::Despawn),
            1 => (0..12usize, 0..3usize).prop_map(|(object, scene)| WorldStep::Change(object, scene)),
            1 => Just(WorldStep::Tick),
        ];
        prop::collection::vec(step, 0..60)
    }

    proptest! {
        #![proptest_config(draws!(64))]
        #[test]
        fn ids_are_unique_dense_and_generational(steps in steps()) {
            let mut app = app();
            let scenes = [(); 3].map(|()| scene(&mut app, 4));
            let mut live = Vec::<Entity>::new();
            let mut bearers = BTreeMap::<(u32, u32, u32), Entity>::new();
            for step in steps {
                match step {
                    WorldStep::Spawn(at) => {
                        let full = app.world().get::<SceneIds>(scenes[at]).unwrap().len() == 4;
                        let spawned = spawn(&mut app, scenes[at]);
                        prop_assert!(!(full && spawned.is_ok()));
                        live.extend(spawned);
                    }
                    WorldStep::Despawn(nth) if !live.is_empty() => {
                        let entity = live.remove(nth % live.len());
                        app.world_mut().despawn(entity);
                    }
                    WorldStep::Change(nth, at) if !live.is_empty() => {
                        let entity = live[nth % live.len()];
                        let _ = change_scene(app.world_mut(), entity, scenes[at], Vec2::ONE);
                    }
                    WorldStep::Despawn(_) | WorldStep::Change(..) => {}
                    WorldStep::Tick => app.update(),
                }
                for &entity in &live {
                    let object = *app.world().get::<Object>(entity).unwrap();
                    prop_assert!((1..=4).contains(&object.id().0));
                    let objects = app.world().get::<SceneIds>(object.scene_entity()).unwrap();
                    prop_assert_eq!(objects.entity(object.id()), Some(entity));
                    let key = (object.scene().0, object.id().0, object.generation().0);
                    prop_assert_eq!(*bearers.entry(key).or_insert(entity), entity);
                }
                let counted: u32 =
                    scenes.iter().map(|&s| app.world().get::<SceneIds>(s).unwrap().len()).sum();
                prop_assert_eq!(counted as usize, live.len());
            }
        }
    }

    use super::super::{Generation, ObjectId};
}
