//! Whole servers whose mirrors must follow whatever happens.

use std::sync::{Arc, Mutex};

use glam::Vec2;
use proptest::prelude::*;

use super::attributes::{AttributeSpec, Replicate, ReplicateAppExt};
use super::*;
use crate::aoi::views::ViewCaps;
use crate::aoi::{Viewable, Viewer};
use crate::outbox::Sink;
use crate::session::control;
use crate::sync::Mirror;
use crate::world::{KindId, SceneSpec, change_scene, open_scene, spawn_object, teleport};

#[derive(Component, Clone, Copy)]
struct Health(u32);

#[derive(Component, Clone, Copy)]
struct Gold(u32);

impl Replicate for Health {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.0.to_le_bytes());
    }
}

impl Replicate for Gold {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.0.to_le_bytes());
    }
}

/// Mirrors by client, fed as frames leave; the first error of each is kept.
#[derive(Clone, Default)]
struct Mirrors(Arc<Mutex<BTreeMap<ClientId, (Mirror, Result<(), String>)>>>);

impl Sink for Mirrors {
    fn deliver(&mut self, client: ClientId, frame: &[u8]) {
        let mut mirrors = self.0.lock().unwrap();
        let (mirror, result) = mirrors
            .entry(client)
            .or_insert_with(|| (Mirror::default(), Ok(())));
        if result.is_ok() {
            *result = mirror.receive(frame).map_err(|error| error.to_string());
        }
    }
}

struct Rig {
    app: App,
    mirrors: Mirrors,
    scenes: [Entity; 2],
    players: Vec<Entity>,
}

impl Rig {
    fn new(cap: u16) -> Self {
        let mut app = App::new();
        app.add_plugins((bevy_time::TimePlugin, SyncPlugin));
        let spec = |name, id, audience| AttributeSpec {
            name,
            id,
            audience,
            bytes_max: 4,
        };
        app.replicate::<Health>(spec("health", 1, Audience::Viewers))
            .unwrap();
        app.replicate::<Gold>(spec("gold", 9, Audience::Owner))
            .unwrap();
        sim::clock::one_tick_an_update(&mut app);
        let mirrors = Mirrors::default();
        app.world_mut()
            .resource_mut::<Outbox>()
            .set_sink(Box::new(mirrors.clone()));
        let scenes =
            [(); 2].map(|()| open_scene(app.world_mut(), SceneSpec::default(), ()).unwrap());
        let mut rig = Self {
            app,
            mirrors,
            scenes,
            players: Vec::new(),
        };
        (0..6).for_each(|nth| rig.join(cap, nth));
        rig
    }

    fn join(&mut self, cap: u16, nth: u32) {
        let sight = (Viewer::new(ViewCaps::all(cap)), Viewable::default());
        let at = Vec2::new(20.0 + 30.0 * nth as f32, 50.0);
        let values = (Health(100), Gold(nth));
        let world = self.app.world_mut();
        let entity = spawn_object(world, self.scenes[0], KindId(0), at, (sight, values)).unwrap();
        let client = world.resource_mut::<Sessions>().connect(100, true).unwrap();
        assert!(control(world, client, entity));
        self.players.push(entity);
    }

    fn rest_and_compare(&mut self) {
        (0..12).for_each(|_| self.app.update());
        for (client, (mirror, result)) in &*self.mirrors.0.lock().unwrap() {
            assert_eq!(*result, Ok(()), "client {}", client.0);
            assert_eq!(
                compare_mirror(self.app.world(), *client, mirror),
                Ok(()),
                "client {}",
                client.0
            );
        }
    }

    fn sent(&self) -> PacketCounters {
        self.app.world().resource::<SyncStats>().sent
    }
}

#[test]
fn at_rest_nothing_is_sent() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let before = rig.sent();
    rig.rest_and_compare();
    assert_eq!(rig.sent(), before);
}

#[test]
fn an_equal_value_written_again_sends_nothing_and_only_owners_learn_what_is_theirs() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let before = rig.sent();
    rig.app
        .world_mut()
        .get_mut::<Health>(rig.players[0])
        .unwrap()
        .0 = 100;
    rig.rest_and_compare();
    assert_eq!(rig.sent(), before);
    rig.app
        .world_mut()
        .get_mut::<Gold>(rig.players[0])
        .unwrap()
        .0 = 77;
    rig.rest_and_compare();
    assert_eq!(rig.sent().deltas, before.deltas + 1);
}

#[derive(Clone, Debug)]
enum Step {
    Tick,
    Walk(usize, f32),
    Teleport(usize, f32),
    Health(usize, u32),
    Gold(usize, u32),
    Change(usize, usize),
    Despawn(usize),
    Join,
    Cap(usize, u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let who = 0..8usize;
    let step = prop_oneof![
        6 => Just(Step::Tick),
        4 => (who.clone(), -30.0..30.0f32).prop_map(|(w, x)| Step::Walk(w, x)),
        1 => (who.clone(), 0.0..900.0f32).prop_map(|(w, x)| Step::Teleport(w, x)),
        3 => (who.clone(), 0..3u32).prop_map(|(w, v)| Step::Health(w, v)),
        2 => (who.clone(), 0..3u32).prop_map(|(w, v)| Step::Gold(w, v)),
        1 => (who.clone(), 0..2usize).prop_map(|(w, s)| Step::Change(w, s)),
        1 => who.clone().prop_map(Step::Despawn),
        1 => Just(Step::Join),
        1 => (who, 0..4u16).prop_map(|(w, c)| Step::Cap(w, c)),
    ];
    prop::collection::vec(step, 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn mirrors_follow_whatever_happens(cap in 1..6u16, workers in 1..4usize, steps in steps()) {
        let mut rig = Rig::new(cap);
        rig.app.insert_resource(Workers::new(workers));
        for step in steps {
            let pick = |nth: usize| rig.players.get(nth % rig.players.len().max(1)).copied();
            match step {
                Step::Tick => rig.app.update(),
                Step::Join => rig.join(cap, 3),
                Step::Walk(nth, by) => {
                    if let Some(mut position) = pick(nth).and_then(|e| rig.app.world_mut().get_mut::<Position>(e)) {
                        position.0.x = (position.0.x + by).clamp(0.0, 1000.0);
                    }
                }
                Step::Teleport(nth, x) => {
                    if let Some(entity) = pick(nth) {
                        teleport(rig.app.world_mut(), entity, Vec2::new(x, 50.0)).unwrap();
                    }
                }
                Step::Health(nth, value) => {
                    if let Some(mut health) = pick(nth).and_then(|e| rig.app.world_mut().get_mut::<Health>(e)) {
                        health.0 = value;
                    }
                }
                Step::Gold(nth, value) => {
                    if let Some(mut gold) = pick(nth).and_then(|e| rig.app.world_mut().get_mut::<Gold>(e)) {
                        gold.0 = value;
                    }
                }
                Step::Change(nth, scene) => {
                    if let Some(entity) = pick(nth) {
                        let to = rig.scenes[scene];
                        change_scene(rig.app.world_mut(), entity, to, Vec2::splat(50.0)).unwrap();
                    }
                }
                Step::Despawn(nth) => {
                    if let Some(entity) = pick(nth) {
                        rig.app.world_mut().despawn(entity);
                        rig.players.retain(|&other| other != entity);
                    }
                }
                Step::Cap(nth, cap) => {
                    if let Some(mut viewer) = pick(nth).and_then(|e| rig.app.world_mut().get_mut::<Viewer>(e)) {
                        viewer.caps = ViewCaps::all(cap);
                    }
                }
            }
        }
        rig.rest_and_compare();
    }
}

/// Despawned by a system in the middle of the tick, as a game's own would.
#[derive(Component)]
struct Doomed;

fn despawn_in(set: SimSystems) -> Rig {
    let mut rig = Rig::new(10);
    let slay = |mut commands: Commands, doomed: Query<Entity, With<Doomed>>| {
        doomed
            .iter()
            .for_each(|entity| commands.entity(entity).despawn());
    };
    rig.app.add_systems(FixedUpdate, slay.in_set(set));
    rig.rest_and_compare();
    rig
}

#[test]
fn an_id_freed_in_the_middle_of_a_tick_is_not_mistaken_for_its_next_bearer() {
    for set in [
        SimSystems::Think,
        SimSystems::Move,
        SimSystems::Heartbeat,
        SimSystems::Last,
    ] {
        let mut rig = despawn_in(set);
        for _ in 0..4 {
            let entity = rig.players.remove(2);
            rig.app.world_mut().entity_mut(entity).insert(Doomed);
            rig.app.update();
            rig.join(10, 2);
            rig.app.update();
        }
        rig.rest_and_compare();
    }
}

#[test]
fn who_comes_and_goes_within_a_tick_is_never_told() {
    let mut rig = despawn_in(SimSystems::Heartbeat);
    rig.join(10, 3);
    let entity = rig.players.pop().unwrap();
    rig.app.world_mut().entity_mut(entity).insert(Doomed);
    rig.app.update();
    rig.rest_and_compare();
}

#[test]
fn control_that_was_lost_and_found_begins_anew() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let entity = rig.players[0];
    let client = rig
        .app
        .world()
        .get::<ControlledBy>(entity)
        .unwrap()
        .client();
    rig.app
        .world_mut()
        .entity_mut(entity)
        .remove::<ControlledBy>();
    rig.app
        .world_mut()
        .get_mut::<Health>(rig.players[1])
        .unwrap()
        .0 = 5;
    (0..12).for_each(|_| rig.app.update());
    assert!(control(rig.app.world_mut(), client, entity));
    rig.rest_and_compare();
}

#[test]
fn a_bit_that_is_no_attributes_changes_nothing() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let mut mask = rig
        .app
        .world_mut()
        .get_mut::<DirtyMask>(rig.players[0])
        .unwrap();
    mask.mark(63);
    mask.mark(200);
    rig.rest_and_compare();
}

#[test]
fn a_scene_change_is_told_whatever_the_motion_rate() {
    let mut rig = Rig::new(10);
    rig.app.insert_resource(SyncSettings {
        motion_every_ticks: 7,
    });
    rig.rest_and_compare();
    let (entity, to) = (rig.players[1], rig.scenes[1]);
    for nth in 0..7 {
        let at = Vec2::splat(100.0 + nth as f32);
        change_scene(rig.app.world_mut(), entity, to, at).unwrap();
        rig.app.update();
        let object = *rig.app.world().get::<Object>(entity).unwrap();
        let client = rig
            .app
            .world()
            .get::<ControlledBy>(entity)
            .unwrap()
            .client();
        let mirrors = rig.mirrors.0.lock().unwrap();
        let known = mirrors[&client].0.object(object.id().0).unwrap();
        assert_eq!(known.motion.position.metres(), at);
    }
    rig.rest_and_compare();
}
