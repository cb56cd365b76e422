//! Scenes and membership by components and commands.

use std::collections::{BTreeMap, BTreeSet};

use bevy_app::App;
use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;
use glam::Vec2;
use proptest::prelude::*;

use super::*;
use crate::sim::{StateHash, clock, logged_warnings, state_hash};

const AT: Position = Position(Vec2::splat(10.0));

fn app() -> App {
    let mut app = App::new();
    app.add_plugins((bevy_time::TimePlugin, WorldPlugin));
    clock::one_tick_per_update(&mut app);
    app
}

fn spec(max_objects: u32) -> SceneSpec {
    SceneSpec {
        max_objects,
        ..SceneSpec::new("hall", Vec2::splat(100.0))
    }
}

fn open(app: &mut App, max_objects: u32) -> Entity {
    app.world_mut().spawn(spec(max_objects)).id()
}

/// Scene and id of an object.
fn place(app: &App, entity: Entity) -> Option<(Entity, u32)> {
    let object = app.world().get::<Object>(entity)?;
    Some((object.scene_entity(), object.id().0))
}

fn members(app: &App, scene: Entity) -> Vec<Entity> {
    let members = app.world().get::<SceneObjects>(scene);
    members.map_or_else(Vec::new, |members| members.iter().collect())
}

fn written<M: Message + Copy>(app: &App) -> Vec<M> {
    let messages = app.world().resource::<Messages<M>>();
    messages.iter_current_update_messages().copied().collect()
}

#[test]
fn spawned_spec_opens_a_scene_for_the_next_command() {
    let mut app = app();
    let mut commands = app.world_mut().commands();
    let [first, second] = [(); 2].map(|()| commands.spawn(spec(8)).id());
    let npc = commands.spawn((Npc, InScene(second), AT)).id();
    app.world_mut().flush();
    let opened: Vec<_> = written::<SceneOpened>(&app)
        .iter()
        .map(|opened| (opened.id.0, opened.entity))
        .collect();
    assert_eq!(opened, [(0, first), (1, second)]);
    assert_eq!(place(&app, npc), Some((second, 1)));
    let world = app.world();
    let scene = world.get::<SimScene>(second).unwrap();
    assert_eq!((scene.name(), scene.size_m()), ("hall", Vec2::splat(100.0)));
    assert_eq!(world.get::<SceneIds>(second).unwrap().max_objects(), 8);
    assert!(world.get::<SceneSpec>(second).is_none());
    assert!(
        world
            .resource::<Scenes>()
            .iter()
            .eq([(SceneId(0), first), (SceneId(1), second)])
    );
}

#[test]
fn invalid_spec_logs_one_warning_and_refuses_objects() {
    let mut app = app();
    let (mut scene, mut npc) = (Entity::PLACEHOLDER, Entity::PLACEHOLDER);
    let warnings = logged_warnings(|| {
        scene = open(&mut app, 0);
    });
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let (start, end) = warnings[0].split_once(';').unwrap();
    assert!(
        start == "scene not opened" && end.contains("at most 0 objects"),
        "{end}"
    );
    let warnings = logged_warnings(|| {
        npc = app.world_mut().spawn((Npc, InScene(scene), AT)).id();
    });
    assert!(warnings[0].contains("no such scene"), "{warnings:?}");
    app.update();
    let world = app.world();
    assert!(world.get::<SimScene>(scene).is_none() && world.get::<SceneSpec>(scene).is_some());
    assert!(world.get_entity(npc).is_err());
    assert_eq!(world.resource::<Scenes>().opened(), 0);
    // A valid spec on the same entity is another attempt.
    app.world_mut().entity_mut(scene).insert(spec(1));
    assert!(app.world().get::<SimScene>(scene).is_some());
}

#[test]
fn spec_on_an_open_scene_is_refused_and_changes_nothing() {
    let mut app = app();
    let scene = open(&mut app, 2);
    let npc = app.world_mut().spawn((Npc, InScene(scene), AT)).id();
    let warnings = logged_warnings(|| {
        app.world_mut().entity_mut(scene).insert(spec(9));
    });
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("already scene 0"), "{warnings:?}");
    let world = app.world();
    assert_eq!(world.get::<SceneIds>(scene).unwrap().max_objects(), 2);
    assert_eq!(world.resource::<Scenes>().opened(), 1);
    assert!(world.get::<SceneSpec>(scene).is_none());
    assert_eq!(place(&app, npc), Some((scene, 1)));
}

/// Despawns its entity before the other components of its bundle are handled.
#[derive(Component)]
#[component(on_insert = despawn_at_once)]
struct DespawnsAtOnce;

fn despawn_at_once(mut world: DeferredWorld, context: HookContext) {
    world.commands().entity(context.entity).try_despawn();
}

#[test]
fn entity_despawned_before_it_is_handled_gets_no_id() {
    let mut app = app();
    let warnings = logged_warnings(|| {
        app.world_mut().spawn((DespawnsAtOnce, spec(8)));
    });
    assert_eq!(warnings, [""; 0]);
    assert_eq!(app.world().resource::<Scenes>().opened(), 0);
    let scene = open(&mut app, 8);
    let opened = written::<SceneOpened>(&app);
    assert_eq!((opened.len(), opened[0].id), (1, SceneId(0)));
    // In one batch of commands it is opened, and then closed.
    let mut commands = app.world_mut().commands();
    let short = commands.spawn(spec(8)).id();
    commands.entity(short).despawn();
    app.world_mut().flush();
    assert_eq!(written::<SceneClosed>(&app)[0].entity, short);
    assert_eq!(
        open(&mut app, 8),
        app.world().resource::<Scenes>().entity(SceneId(2)).unwrap()
    );
    let npc = app.world_mut().spawn((Npc, InScene(scene), AT)).id();
    assert_eq!(place(&app, npc), Some((scene, 1)));
}

#[test]
fn inserted_scene_moves_an_object_and_removed_scene_ends_it() {
    let mut app = app();
    let [here, there] = [(); 2].map(|()| open(&mut app, 8));
    let door = (KindId::DOOR, InScene(here), AT, Velocity(Vec2::ONE));
    let door = app.world_mut().spawn(door).id();
    app.world_mut().entity_mut(door).insert(InScene(there));
    assert_eq!(place(&app, door), Some((there, 1)));
    assert_eq!(
        (members(&app, here), members(&app, there)),
        (vec![], vec![door])
    );
    assert_eq!(written::<ObjectChangedScene>(&app).len(), 1);
    let world = app.world_mut();
    assert_eq!(world.get::<Velocity>(door), Some(&Velocity::default()));
    let at = Position(Vec2::splat(3.0));
    world.entity_mut(door).insert((InScene(here), at));
    let world = app.world_mut();
    assert_eq!(world.get::<Position>(door), Some(&at));
    let object = world.get::<Object>(door).unwrap();
    assert_eq!((object.scene_entity(), object.kind()), (here, KindId::DOOR));
    world.entity_mut(door).remove::<InScene>();
    assert_eq!((place(&app, door), members(&app, here)), (None, vec![]));
    let world = app.world_mut();
    world.entity_mut(door).insert(InScene(here));
    assert!(world.get::<Object>(door).is_some());
    world.entity_mut(door).remove::<Object>();
    assert!(world.get::<InScene>(door).is_none());
    let [here, there] = [here, there].map(|scene| world.get::<SceneIds>(scene).unwrap().len());
    assert_eq!((here, there), (0, 0));
}

#[test]
fn failed_scene_change_leaves_the_object_where_it_was() {
    let mut app = app();
    let [here, full] = [(); 2].map(|()| open(&mut app, 1));
    let small = SceneSpec::new("cell", Vec2::ONE);
    let small = app.world_mut().spawn(small).id();
    let gone = app.world_mut().spawn_empty().id();
    app.world_mut().despawn(gone);
    let npc = app.world_mut().spawn((Npc, InScene(here), AT)).id();
    app.world_mut().spawn((Npc, InScene(full), AT));
    let before = *app.world().get::<Object>(npc).unwrap();
    for scene in [full, small, gone, npc, app.world_mut().spawn_empty().id()] {
        let warnings = logged_warnings(|| {
            app.world_mut().entity_mut(npc).insert(InScene(scene));
        });
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].starts_with("scene change failed"),
            "{warnings:?}"
        );
        let world = app.world();
        assert_eq!(world.get::<Object>(npc), Some(&before));
        assert_eq!(world.get::<InScene>(npc), Some(&InScene(here)));
        assert_eq!(members(&app, here), [npc]);
        if scene != full && app.world().get_entity(scene).is_ok() {
            assert_eq!(members(&app, scene), []);
        }
    }
    app.update();
    assert_eq!(place(&app, npc), Some((here, 1)));
    assert_eq!(written::<ObjectChangedScene>(&app), []);
}

#[test]
fn clone_of_an_object_is_an_object_of_its_own() {
    let mut app = app();
    let scene = open(&mut app, 8);
    let world = app.world_mut();
    let boss = spawn_object(world, scene, KindId::BOSS, AT.0, TeamId(3)).unwrap();
    let clone = world.entity_mut(boss).clone_and_spawn();
    let [of, other] = [boss, clone].map(|entity| *app.world().get::<Object>(entity).unwrap());
    assert_eq!((of.id(), other.id()), (ObjectId(1), ObjectId(2)));
    assert_eq!((other.kind(), other.scene()), (of.kind(), of.scene()));
    assert_eq!(app.world().get::<Position>(clone), Some(&AT));
    assert_eq!(app.world().get::<TeamId>(clone), Some(&TeamId(3)));
    assert_eq!(members(&app, scene), [boss, clone]);
    let copy = app.world_mut().entity_mut(scene).clone_and_spawn();
    assert!(app.world().get::<SimScene>(copy).is_none());
    assert_eq!(
        (members(&app, copy), members(&app, scene).len()),
        (vec![], 2)
    );
    assert_eq!(app.world().resource::<Scenes>().iter().count(), 1);
}

#[test]
fn despawned_hierarchies_release_their_objects_and_scenes() {
    let mut app = app();
    let world = app.world_mut();
    let region = world.spawn_empty().id();
    let scene = world.spawn((spec(8), ChildOf(region))).id();
    let cart = world.spawn((Npc, InScene(scene), AT)).id();
    let rider = (Npc, InScene(scene), AT, ChildOf(cart));
    let rider = world.spawn(rider).id();
    let wolf = world.spawn((Npc, InScene(scene), AT)).id();
    world.despawn(cart);
    assert!(app.world().get_entity(rider).is_err());
    assert_eq!(members(&app, scene), [wolf]);
    assert_eq!(app.world().get::<SceneIds>(scene).unwrap().len(), 1);
    app.world_mut().despawn(region);
    let gone = |entity| app.world().get_entity(entity).is_err();
    assert!(gone(scene) && gone(wolf));
    let despawned: Vec<u32> = written::<ObjectDespawned>(&app)
        .iter()
        .map(|despawned| despawned.object.id().0)
        .collect();
    assert_eq!(despawned, [1, 2, 3]);
    assert_eq!(written::<SceneClosed>(&app).len(), 1);
}

/// A change by a command. Scenes and objects are numbered in the order of their commands, modulo the number so far.
#[derive(Clone, Copy, Debug)]
enum WorldCommand {
    Open {
        max_objects: u32,
    },
    Close(usize),
    Spawn {
        scene: usize,
        kind: Option<u16>,
        x: f32,
    },
    Enter {
        object: usize,
        scene: usize,
        x: Option<f32>,
    },
    Change {
        object: usize,
        scene: usize,
        x: f32,
    },
    Leave(usize),
    Clone(usize),
    Despawn(usize),
    Tick,
}

fn world_commands() -> impl Strategy<Value = Vec<WorldCommand>> {
    use WorldCommand::{Change, Clone, Close, Despawn, Enter, Leave, Open, Spawn, Tick};
    // 100 m is the border, and all above is outside.
    let x = || prop_oneof![9 => (0..=100_u8).prop_map(f32::from), 1 => Just(101.0)];
    let kind = prop_oneof![9 => (0..5_u16).prop_map(Some), 1 => Just(None)];
    let (object, scene) = (0..20_usize, 0..5_usize);
    let command = prop_oneof![
        2 => (0..5_u32).prop_map(|max_objects| Open { max_objects }),
        1 => scene.clone().prop_map(Close),
        8 => (scene.clone(), kind, x()).prop_map(|(scene, kind, x)| Spawn { scene, kind, x }),
        3 => (object.clone(), scene.clone(), prop::option::of(x()))
            .prop_map(|(object, scene, x)| Enter { object, scene, x }),
        2 => (object.clone(), scene, x()).prop_map(|(object, scene, x)| Change { object, scene, x }),
        1 => object.clone().prop_map(Leave),
        1 => object.clone().prop_map(Clone),
        2 => object.prop_map(Despawn),
        2 => Just(Tick),
    ];
    prop::collection::vec(command, 1..80)
}

/// A scene of the model: which object has which id, by the numbers of the objects.
#[derive(Debug, Default)]
struct SceneModel {
    max_objects: u32,
    by_id: BTreeMap<u32, usize>,
    /// Ids that are free after the next tick.
    blocked: BTreeSet<u32>,
    generations: BTreeMap<u32, u32>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct ObjectModel {
    /// Scene and id; `None` for an entity that left its scene.
    place: Option<(usize, u32)>,
    kind: Option<u16>,
    x: f32,
    is_refused: bool,
}

/// What the commands should do.
#[derive(Debug, Default)]
struct WorldModel {
    /// `None` for a scene that was refused or closed.
    scenes: Vec<Option<SceneModel>>,
    opened: u32,
    /// `None` for a despawned entity.
    objects: Vec<Option<ObjectModel>>,
}

impl WorldModel {
    fn release(&mut self, object: usize) {
        let Some((scene, id)) = self.objects[object].as_mut().and_then(|of| of.place.take()) else {
            return;
        };
        let scene = self.scenes[scene].as_mut().unwrap();
        scene.by_id.remove(&id);
        scene.blocked.insert(id);
        *scene.generations.entry(id).or_default() += 1;
    }

    /// Puts an object into a scene, if that is possible.
    fn put(&mut self, object: usize, scene: usize, x: f32) -> bool {
        let Some(to) = self.scenes.get_mut(scene).and_then(Option::as_mut) else {
            return false;
        };
        let is_taken = |id: &u32| to.by_id.contains_key(id) || to.blocked.contains(id);
        let id = (1..=to.max_objects).find(|id| !is_taken(id));
        let Some(id) = id.filter(|_| x <= 100.0) else {
            return false;
        };
        to.by_id.insert(id, object);
        let of = self.objects[object].as_mut().unwrap();
        let before = of.place.replace((scene, id));
        of.x = x;
        if let Some((scene, id)) = before {
            let from = self.scenes[scene].as_mut().unwrap();
            from.by_id.remove(&id);
            from.blocked.insert(id);
            *from.generations.entry(id).or_default() += 1;
        }
        true
    }

    fn spawn(&mut self, scene: usize, kind: Option<u16>, x: f32) {
        let object = self.objects.len();
        self.objects.push(Some(ObjectModel {
            place: None,
            kind,
            x,
            is_refused: false,
        }));
        let is_placed = kind.is_some() && self.put(object, scene, x);
        self.objects[object].as_mut().unwrap().is_refused = !is_placed;
    }

    /// The command with numbers of scenes and objects that exist; `None` when there is none.
    fn resolve(&self, command: WorldCommand) -> Option<WorldCommand> {
        use WorldCommand::{Change, Clone, Close, Despawn, Enter, Leave, Spawn};
        let scene_of = |nth: usize| nth.checked_rem(self.scenes.len());
        let object_of = |nth: usize| {
            let object = nth.checked_rem(self.objects.len())?;
            self.objects[object].map(|_| object)
        };
        Some(match command {
            Close(scene) => {
                let scene = scene_of(scene)?;
                self.scenes[scene].as_ref().map(|_| Close(scene))?
            }
            Spawn { scene, kind, x } => Spawn {
                scene: scene_of(scene)?,
                kind,
                x,
            },
            Enter { object, scene, x } => Enter {
                object: object_of(object)?,
                scene: scene_of(scene)?,
                x,
            },
            Change { object, scene, x } => Change {
                object: object_of(object)?,
                scene: scene_of(scene)?,
                x,
            },
            Leave(object) => Leave(object_of(object)?),
            Clone(object) => Clone(object_of(object)?),
            Despawn(object) => Despawn(object_of(object)?),
            other => other,
        })
    }

    fn apply(&mut self, command: WorldCommand) {
        match command {
            WorldCommand::Open { max_objects } => {
                let is_valid = max_objects > 0;
                self.opened += u32::from(is_valid);
                self.scenes.push(is_valid.then(|| SceneModel {
                    max_objects,
                    ..SceneModel::default()
                }));
            }
            WorldCommand::Close(scene) => {
                self.scenes[scene] = None;
                for object in &mut self.objects {
                    let place = object.and_then(|of| of.place);
                    if place.is_some_and(|place| place.0 == scene) {
                        *object = None;
                    }
                }
            }
            WorldCommand::Spawn { scene, kind, x } => self.spawn(scene, kind, x),
            WorldCommand::Enter { object, scene, x } => {
                let of = self.objects[object].as_mut().unwrap();
                of.x = x.unwrap_or(of.x);
                let (before, x) = (*of, of.x);
                if before.place.is_some_and(|place| place.0 == scene) {
                    return;
                }
                let is_placed = before.kind.is_some() && self.put(object, scene, x);
                let of = self.objects[object].as_mut().unwrap();
                of.is_refused = before.place.is_none() && !is_placed;
            }
            WorldCommand::Change { object, scene, x } => {
                if self.objects[object].unwrap().place.is_some() {
                    self.put(object, scene, x);
                }
            }
            WorldCommand::Leave(object) => self.release(object),
            WorldCommand::Clone(object) => {
                let of = self.objects[object].unwrap();
                match of.place {
                    Some((scene, _)) => self.spawn(scene, of.kind, of.x),
                    None => self.objects.push(Some(ObjectModel {
                        is_refused: false,
                        ..of
                    })),
                }
            }
            WorldCommand::Despawn(object) => {
                self.release(object);
                self.objects[object] = None;
            }
            WorldCommand::Tick => {
                self.scenes
                    .iter_mut()
                    .flatten()
                    .for_each(|of| of.blocked.clear());
                for object in &mut self.objects {
                    *object = object.filter(|of| !of.is_refused);
                }
            }
        }
    }
}

/// A world to which the same commands are applied.
struct CommandedWorld {
    app: App,
    scenes: Vec<Entity>,
    objects: Vec<Entity>,
}

impl CommandedWorld {
    fn new(is_shuffled: bool) -> Self {
        let mut app = app();
        if is_shuffled {
            let world = app.world_mut();
            let spent = [(); 40].map(|()| world.spawn_empty().id());
            for nth in 0..40 {
                world.despawn(spent[nth * 17 % 40]);
            }
        }
        Self {
            app,
            scenes: Vec::new(),
            objects: Vec::new(),
        }
    }

    fn apply(&mut self, command: WorldCommand) {
        let at = |x: f32| Vec2::new(x, 5.0);
        let mut commands = self.app.world_mut().commands();
        match command {
            WorldCommand::Open { max_objects } => {
                self.scenes.push(commands.spawn(spec(max_objects)).id());
            }
            WorldCommand::Close(scene) => commands.entity(self.scenes[scene]).despawn(),
            WorldCommand::Spawn { scene, kind, x } => {
                let place = (InScene(self.scenes[scene]), Position(at(x)));
                let spawned = match kind {
                    Some(kind) => commands.spawn((place, KindId(kind))).id(),
                    None => commands.spawn(place).id(),
                };
                self.objects.push(spawned);
            }
            WorldCommand::Enter { object, scene, x } => {
                let mut object = commands.entity(self.objects[object]);
                match x {
                    Some(x) => object.insert((InScene(self.scenes[scene]), Position(at(x)))),
                    None => object.insert(InScene(self.scenes[scene])),
                };
            }
            WorldCommand::Change { object, scene, x } => {
                let mut object = commands.entity(self.objects[object]);
                object.change_scene(self.scenes[scene], at(x));
            }
            WorldCommand::Leave(object) => {
                commands.entity(self.objects[object]).remove::<InScene>();
            }
            WorldCommand::Clone(object) => {
                let clone = commands.entity(self.objects[object]).clone_and_spawn().id();
                self.objects.push(clone);
            }
            WorldCommand::Despawn(object) => commands.entity(self.objects[object]).despawn(),
            WorldCommand::Tick => {
                self.app.world_mut().flush();
                self.app.update();
            }
        }
    }

    /// Whether the world is as the model says.
    fn check(&self, model: &WorldModel) -> Result<(), TestCaseError> {
        let world = self.app.world();
        prop_assert_eq!(world.resource::<Scenes>().opened(), model.opened);
        for (&entity, expected) in self.objects.iter().zip(&model.objects) {
            let Some(expected) = expected else {
                prop_assert!(world.get_entity(entity).is_err());
                continue;
            };
            let object = world.get::<Object>(entity).copied();
            let place = expected.place.map(|(scene, id)| (self.scenes[scene], id));
            prop_assert_eq!(self::place(&self.app, entity), place);
            let scene = world.get::<InScene>(entity).map(|of| of.0);
            prop_assert_eq!(scene, place.map(|place| place.0));
            prop_assert_eq!(world.get::<Position>(entity).unwrap().0.x, expected.x);
            prop_assert_eq!(
                world.get::<SpawnFailed>(entity).is_some(),
                expected.is_refused
            );
            if let (Some(object), Some((scene, id))) = (object, expected.place) {
                let scene = model.scenes[scene].as_ref().unwrap();
                let generation = scene.generations.get(&id).copied().unwrap_or(0);
                let kind = expected.kind.map(KindId);
                prop_assert_eq!(
                    (object.generation().0, Some(object.kind())),
                    (generation, kind)
                );
            }
        }
        for (&entity, expected) in self.scenes.iter().zip(&model.scenes) {
            let ids = world.get::<SceneIds>(entity);
            prop_assert_eq!(ids.is_some(), expected.is_some());
            let expected = expected.iter().flat_map(|scene| &scene.by_id);
            let expected: Vec<_> = expected
                .map(|(&id, &object)| (ObjectId(id), self.objects[object]))
                .collect();
            let found: Vec<_> = ids.into_iter().flat_map(SceneIds::iter).collect();
            prop_assert_eq!(&found, &expected);
            let inside: BTreeSet<_> = members(&self.app, entity).into_iter().collect();
            prop_assert_eq!(inside, expected.into_iter().map(|of| of.1).collect());
        }
        Ok(())
    }

    /// What must not depend on the indexes of entities.
    fn state(&mut self) -> (StateHash, Vec<ObjectRef>) {
        let despawned = written::<ObjectDespawned>(&self.app);
        let despawned = despawned.iter().map(|gone| gone.object.reference());
        let despawned = despawned.collect();
        (state_hash(self.app.world_mut()), despawned)
    }
}

proptest! {
    #![proptest_config(draws!(128))]
    #[test]
    fn random_commands_match_a_plain_model(commands in world_commands(), batch in 1..6_usize) {
        let mut model = WorldModel::default();
        let mut worlds = [false, true].map(CommandedWorld::new);
        for (nth, command) in commands.into_iter().enumerate() {
            if let Some(command) = model.resolve(command) {
                worlds.iter_mut().for_each(|world| world.apply(command));
                model.apply(command);
            }
            if nth % batch == 0 {
                for world in &mut worlds {
                    world.app.world_mut().flush();
                    world.check(&model)?;
                }
                let [one, other] = &mut worlds;
                prop_assert_eq!(one.state(), other.state());
            }
        }
    }
}

#[test]
fn teleport_and_change_of_scene_end_at_rest() {
    let mut app = app();
    let (scene, other) = (open(&mut app, 4), open(&mut app, 4));
    let npc = app.world_mut().spawn((Npc, InScene(scene), AT)).id();
    let world = app.world_mut();
    for (to, stays) in [(scene, true), (other, false)] {
        world.entity_mut(npc).insert(Velocity(Vec2::ONE));
        let moved = if stays {
            teleport(world, npc, Vec2::splat(20.0))
        } else {
            change_scene(world, npc, to, Vec2::splat(20.0))
        };
        assert_eq!(moved, Ok(()));
        assert_eq!(world.get::<Velocity>(npc).unwrap().0, Vec2::ZERO);
    }
}

#[test]
fn entity_that_became_an_object_after_a_refusal_stays() {
    let mut app = app();
    let scene = open(&mut app, 4);
    let world = app.world_mut();
    let npc = world.spawn((Npc, InScene(scene))).id();
    assert!(world.get::<SpawnFailed>(npc).is_some());
    world.entity_mut(npc).insert((InScene(scene), AT));
    assert!(world.get::<Object>(npc).is_some());
    // An old mark does not count.
    world.entity_mut(npc).insert(SpawnFailed);
    app.update();
    let world = app.world();
    assert!(world.get::<Object>(npc).is_some() && world.get::<SpawnFailed>(npc).is_none());
}

#[test]
fn number_of_open_scenes_is_limited() {
    let mut app = app();
    let world = app.world_mut();
    let small = || SceneSpec {
        max_objects: 1,
        ..SceneSpec::new("cell", Vec2::ONE)
    };
    let first = open_scene(world, small(), ()).unwrap();
    for _ in 1..1 << 16 {
        open_scene(world, small(), ()).unwrap();
    }
    let refused = open_scene(world, small(), ());
    assert_eq!(refused, Err(WorldError::TooManyScenes { max: 1 << 16 }));
    close_scene(world, first).unwrap();
    assert!(open_scene(world, small(), ()).is_ok());
}
