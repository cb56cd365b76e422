//! Whole servers whose mirrors must follow whatever happens.

mod announces;
mod remotes;

use std::sync::{Arc, Mutex};

use glam::Vec2;
use proptest::prelude::*;

use bevy_ecs::message::Messages;

use super::*;
use crate::aoi::ViewCaps;
use crate::aoi::{Viewable, Viewer};
use crate::outbox::Sink;
use crate::session::{ControlledBy, LogoutReason, control, disconnect};
use crate::sync::Mirror;
use crate::wire::{Channel, Encoding, Value};
use crate::world::{
    KindId, PartyId, SceneSpec, TeamId, change_scene, close_scene, open_scene, spawn_object,
    teleport,
};

#[derive(Component, Clone, Copy)]
struct Health(u32);

/// Told to the owner, and stored.
#[derive(Component, Clone, Copy)]
struct Gold(u32);

/// Told to the team.
#[derive(Component, Clone, Copy)]
struct Mana(u32);

/// Told to everybody in the tick of its change; whoever writes it marks it.
#[derive(Component, Clone, Copy)]
struct Stance(u32);

/// Told to the party, wherever it is.
#[derive(Component, Clone, Copy)]
struct Vigour(u32);

/// Told to all in the scene: of the scene itself, or of somebody who carries a flag, say.
#[derive(Component, Clone, Copy)]
struct Score(u32);

impl Replicate for Score {
    fn value(&self) -> Value {
        self.0.into()
    }
}

impl Replicate for Health {
    fn value(&self) -> Value {
        self.0.into()
    }
}

impl Replicate for Gold {
    fn value(&self) -> Value {
        self.0.into()
    }
}

/// The far end of the lines: mirrors by client. The first error of each is kept.
///
/// A bad line loses, repeats and exchanges unreliable packets, as many in a hundred as `bad` says.
#[derive(Default)]
struct FarEnd {
    mirrors: BTreeMap<ClientId, (Mirror, Result<(), String>)>,
    bad: u64,
    random: u64,
    late: Vec<(ClientId, Vec<u8>)>,
    closed: Vec<(ClientId, CloseReason)>,
}

impl FarEnd {
    fn is_bad(&mut self) -> bool {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.random >> 33) % 100 < self.bad
    }

    fn arrive(&mut self, client: ClientId, packet: &[u8]) {
        let (mirror, result) = self
            .mirrors
            .entry(client)
            .or_insert_with(|| (Mirror::default(), Ok(())));
        if result.is_ok() {
            *result = mirror.receive(packet).map_err(|error| error.to_string());
        }
    }
}

#[derive(Clone, Default)]
struct Mirrors(Arc<Mutex<FarEnd>>);

impl Sink for Mirrors {
    fn close(&mut self, client: ClientId, reason: CloseReason) {
        self.0.lock().unwrap().closed.push((client, reason));
    }

    fn deliver(&mut self, client: ClientId, channel: Channel, packet: &[u8]) {
        let mut end = self.0.lock().unwrap();
        if channel == Channel::Reliable {
            return end.arrive(client, packet);
        }
        if end.is_bad() {
            // Lost, or late.
            if end.is_bad() {
                end.late.push((client, packet.to_vec()));
            }
            return;
        }
        end.arrive(client, packet);
        if end.is_bad() {
            end.arrive(client, packet);
        }
        if end.is_bad()
            && let Some((client, packet)) = end.late.pop()
        {
            end.arrive(client, &packet);
        }
    }
}

struct Rig {
    app: App,
    mirrors: Mirrors,
    scenes: [Entity; 2],
    players: Vec<Entity>,
    stance: u32,
}

impl Rig {
    fn new(cap: u16) -> Self {
        let mut app = App::new();
        app.add_plugins((bevy_time::TimePlugin, SyncPlugin));
        let spec = |name, id| AttributeSpec::new(name, id, Encoding::Varint);
        app.replicate::<Health>(spec("health", 1)).unwrap();
        let gold = spec("gold", 9).to(Audience::OWNER).persistent();
        app.replicate::<Gold>(gold).unwrap();
        let mana = spec("mana", 3).to(Audience::TEAM).at(Cadence::EveryNth(3));
        app.replicate_field(mana, |mana: &Mana| mana.0).unwrap();
        let vigour = spec("vigour", 5).to(Audience::PARTY);
        app.replicate_field(vigour, |vigour: &Vigour| vigour.0)
            .unwrap();
        app.replicate::<Score>(spec("score", 6).to(Audience::SCENE))
            .unwrap();
        let stance = spec("stance", 4).at(Cadence::EveryTick);
        let stance = app.replicate_marked(stance, |stance: &Stance| stance.0);
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
            stance: stance.unwrap(),
        };
        (0..6).for_each(|nth| rig.join(cap, nth));
        rig
    }

    fn join(&mut self, cap: u16, nth: u32) {
        let sight = (Viewer::new(ViewCaps::all(cap)), Viewable::default());
        let at = Vec2::new(20.0 + 12.0 * nth as f32, 50.0);
        let values = (
            Health(100),
            Gold(nth),
            Mana(nth),
            Vigour(nth),
            Stance(1),
            TeamId(nth % 2),
        );
        let world = self.app.world_mut();
        let entity = spawn_object(world, self.scenes[0], KindId(0), at, (sight, values)).unwrap();
        let client = world.resource_mut::<Sessions>().connect(100, true).unwrap();
        assert!(control(world, client, entity));
        self.players.push(entity);
    }

    fn rest_and_compare(&mut self) {
        (0..12).for_each(|_| self.app.update());
        for (client, (mirror, result)) in &self.mirrors.0.lock().unwrap().mirrors {
            assert_eq!(*result, Ok(()), "client {}", client.0);
            assert_eq!(
                compare_mirror(self.app.world(), *client, mirror),
                Ok(()),
                "client {}",
                client.0
            );
        }
    }

    fn set_stance(&mut self, entity: Entity, value: u32) {
        let world = self.app.world_mut();
        let Some(&slot) = world.get::<MaskSlot>(entity) else {
            return;
        };
        world.get_mut::<Stance>(entity).unwrap().0 = value;
        world.resource_mut::<DirtyMasks>().mark(slot, self.stance);
    }

    fn client_of(&self, entity: Entity) -> ClientId {
        self.app
            .world()
            .get::<ControlledBy>(entity)
            .unwrap()
            .client()
    }

    /// What the client of one player knows of another's attribute.
    fn known(&self, by: Entity, of: Entity, attribute: u16) -> Option<Vec<u8>> {
        let end = self.mirrors.0.lock().unwrap();
        let id = self.app.world().get::<Object>(of)?.id().0;
        let object = end.mirrors.get(&self.client_of(by))?.0.object(id)?;
        let (_, value) = object.attributes.iter().find(|&&(id, _)| id == attribute)?;
        Some(value.clone())
    }

    fn sent(&self) -> SentCounters {
        self.app.world().resource::<SyncStats>().sent
    }
}

fn reference(rig: &Rig, entity: Entity) -> ObjectRef {
    rig.app.world().get::<Object>(entity).unwrap().reference()
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
    assert_eq!(rig.sent().deltas.messages, before.deltas.messages + 1);
}

#[derive(Clone, Debug)]
enum SyncStep {
    Tick,
    Walk(usize, f32),
    Teleport(usize, f32),
    Health(usize, u32),
    Gold(usize, u32),
    Mana(usize, u32),
    Stance(usize, u32),
    Team(usize, u32),
    Party(usize, u32),
    Vigour(usize, u32),
    Score(usize, u32),
    SceneScore(usize, u32),
    Pace(usize, f32),
    Change(usize, usize),
    Despawn(usize),
    Join,
    Cap(usize, u16),
    /// Takes control of somebody away from its client, or gives it back.
    Control(usize),
    /// The second scene closes, and another opens in its place.
    Close,
}

fn steps() -> impl Strategy<Value = Vec<SyncStep>> {
    let who = 0..8usize;
    let step = prop_oneof![
        6 => Just(SyncStep::Tick),
        4 => (who.clone(), -30.0..30.0f32).prop_map(|(w, x)| SyncStep::Walk(w, x)),
        1 => (who.clone(), 0.0..900.0f32).prop_map(|(w, x)| SyncStep::Teleport(w, x)),
        3 => (who.clone(), 0..3u32).prop_map(|(w, v)| SyncStep::Health(w, v)),
        2 => (who.clone(), 0..3u32).prop_map(|(w, v)| SyncStep::Gold(w, v)),
        2 => (who.clone(), 0..3u32).prop_map(|(w, v)| SyncStep::Mana(w, v)),
        2 => (who.clone(), 0..3u32).prop_map(|(w, v)| SyncStep::Stance(w, v)),
        1 => (who.clone(), 0..3u32).prop_map(|(w, v)| SyncStep::Team(w, v)),
        2 => (who.clone(), 0..3u32).prop_map(|(w, v)| SyncStep::Party(w, v)),
        2 => (who.clone(), 0..3u32).prop_map(|(w, v)| SyncStep::Vigour(w, v)),
        1 => (who.clone(), 0..3u32).prop_map(|(w, v)| SyncStep::Score(w, v)),
        1 => (0..2usize, 0..3u32).prop_map(|(s, v)| SyncStep::SceneScore(s, v)),
        2 => (who.clone(), -3.0..3.0f32).prop_map(|(w, v)| SyncStep::Pace(w, v)),
        1 => (who.clone(), 0..2usize).prop_map(|(w, s)| SyncStep::Change(w, s)),
        1 => who.clone().prop_map(SyncStep::Despawn),
        1 => Just(SyncStep::Join),
        1 => (who.clone(), 0..4u16).prop_map(|(w, c)| SyncStep::Cap(w, c)),
        1 => who.prop_map(SyncStep::Control),
        1 => Just(SyncStep::Close),
    ];
    prop::collection::vec(step, 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn mirrors_follow_whatever_happens(
        cap in 1..6u16,
        workers in 1..4usize,
        bad in prop_oneof![Just(0u64), Just(40)],
        enters in 1..5u32,
        bytes in prop_oneof![Just(8000u32), Just(400)],
        steps in steps(),
    ) {
        let mut rig = Rig::new(cap);
        rig.mirrors.0.lock().unwrap().bad = bad;
        rig.app.insert_resource(SyncSettings {
            enters_per_tick: enters,
            bytes_per_client_s: bytes,
            ..SyncSettings::default()
        });
        rig.app.insert_resource(Workers::new(workers));
        let mut loose: Vec<(ClientId, Entity)> = Vec::new();
        for step in steps {
            let pick = |nth: usize| rig.players.get(nth % rig.players.len().max(1)).copied();
            match step {
                SyncStep::Tick => rig.app.update(),
                SyncStep::Join => rig.join(cap, 3),
                SyncStep::Walk(nth, by) => {
                    if let Some(mut position) = pick(nth).and_then(|e| rig.app.world_mut().get_mut::<Position>(e)) {
                        position.0.x = (position.0.x + by).clamp(0.0, 1000.0);
                    }
                }
                SyncStep::Teleport(nth, x) => {
                    if let Some(entity) = pick(nth) {
                        teleport(rig.app.world_mut(), entity, Vec2::new(x, 50.0)).unwrap();
                    }
                }
                SyncStep::Health(nth, value) => {
                    if let Some(mut health) = pick(nth).and_then(|e| rig.app.world_mut().get_mut::<Health>(e)) {
                        health.0 = value;
                    }
                }
                SyncStep::Gold(nth, value) => {
                    if let Some(mut gold) = pick(nth).and_then(|e| rig.app.world_mut().get_mut::<Gold>(e)) {
                        gold.0 = value;
                    }
                }
                SyncStep::Mana(nth, value) => {
                    if let Some(mut mana) = pick(nth).and_then(|e| rig.app.world_mut().get_mut::<Mana>(e)) {
                        mana.0 = value;
                    }
                }
                SyncStep::Stance(nth, value) => {
                    if let Some(entity) = pick(nth) {
                        rig.set_stance(entity, value);
                    }
                }
                SyncStep::Team(nth, team) => {
                    if let Some(entity) = pick(nth) {
                        match team {
                            2 => rig.app.world_mut().entity_mut(entity).remove::<TeamId>(),
                            team => rig.app.world_mut().entity_mut(entity).insert(TeamId(team)),
                        };
                    }
                }
                SyncStep::Party(nth, party) => {
                    if let Some(entity) = pick(nth) {
                        match party {
                            2 => rig.app.world_mut().entity_mut(entity).remove::<PartyId>(),
                            party => rig.app.world_mut().entity_mut(entity).insert(PartyId(party)),
                        };
                    }
                }
                SyncStep::Vigour(nth, value) => {
                    if let Some(mut vigour) = pick(nth).and_then(|e| rig.app.world_mut().get_mut::<Vigour>(e)) {
                        vigour.0 = value;
                    }
                }
                SyncStep::Score(nth, value) => {
                    if let Some(entity) = pick(nth) {
                        rig.app.world_mut().entity_mut(entity).insert(Score(value));
                    }
                }
                SyncStep::SceneScore(scene, value) => {
                    let scene = rig.scenes[scene];
                    rig.app.world_mut().entity_mut(scene).insert(Score(value));
                }
                SyncStep::Pace(nth, pace) => {
                    if let Some(mut velocity) = pick(nth).and_then(|e| rig.app.world_mut().get_mut::<Velocity>(e)) {
                        velocity.0.x = pace;
                    }
                }
                SyncStep::Change(nth, scene) => {
                    if let Some(entity) = pick(nth) {
                        let to = rig.scenes[scene];
                        change_scene(rig.app.world_mut(), entity, to, Vec2::splat(50.0)).unwrap();
                    }
                }
                SyncStep::Despawn(nth) => {
                    if let Some(entity) = pick(nth) {
                        rig.app.world_mut().despawn(entity);
                        rig.players.retain(|&other| other != entity);
                    }
                }
                SyncStep::Control(nth) => {
                    if let Some((client, entity)) = loose.pop() {
                        control(rig.app.world_mut(), client, entity);
                    } else if let Some(entity) = pick(nth) {
                        loose.push((rig.client_of(entity), entity));
                        rig.app.world_mut().entity_mut(entity).remove::<ControlledBy>();
                    }
                }
                SyncStep::Close => {
                    close_scene(rig.app.world_mut(), rig.scenes[1]).unwrap();
                    rig.scenes[1] = open_scene(rig.app.world_mut(), SceneSpec::default(), ()).unwrap();
                    rig.players.retain(|&entity| rig.app.world().get_entity(entity).is_ok());
                }
                SyncStep::Cap(nth, cap) => {
                    if let Some(mut viewer) = pick(nth).and_then(|e| rig.app.world_mut().get_mut::<Viewer>(e)) {
                        viewer.caps = ViewCaps::all(cap);
                    }
                }
            }
        }
        for &entity in &rig.players {
            if let Some(mut velocity) = rig.app.world_mut().get_mut::<Velocity>(entity) {
                velocity.0 = Vec2::ZERO;
            }
        }
        rig.rest_and_compare();
    }
}

/// Despawned by a system in the middle of the tick, as a game's own would.
#[derive(Component)]
struct Doomed;

fn slay(mut commands: Commands, doomed: Query<Entity, With<Doomed>>) {
    doomed
        .iter()
        .for_each(|entity| commands.entity(entity).despawn());
}

fn despawn_in(set: SimSystems) -> Rig {
    let mut rig = Rig::new(10);
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
    let client = rig.client_of(entity);
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
    let world = rig.app.world_mut();
    let slot = *world.get::<MaskSlot>(rig.players[0]).unwrap();
    let mut masks = world.resource_mut::<DirtyMasks>();
    masks.mark(slot, 63);
    masks.mark(slot, 2000);
    let before = rig.sent();
    rig.rest_and_compare();
    assert_eq!(rig.sent(), before);
}

#[test]
fn a_scene_change_is_told_at_once() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let (entity, to) = (rig.players[1], rig.scenes[1]);
    for nth in 0..7 {
        let at = Vec2::splat(100.0 + nth as f32);
        change_scene(rig.app.world_mut(), entity, to, at).unwrap();
        rig.app.update();
        let object = *rig.app.world().get::<Object>(entity).unwrap();
        let end = rig.mirrors.0.lock().unwrap();
        let known = end.mirrors[&rig.client_of(entity)].0.object(object.id().0);
        assert_eq!(known.unwrap().motion.position.metres(), at);
    }
    rig.rest_and_compare();
}

#[test]
fn what_is_marked_every_tick_arrives_in_the_tick_and_what_is_not_marked_never() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let (by, of) = (rig.players[0], rig.players[1]);
    rig.set_stance(of, 7);
    rig.app.update();
    assert_eq!(rig.known(by, of, 4), Some(vec![7]));
    rig.app.world_mut().get_mut::<Stance>(of).unwrap().0 = 9;
    (0..30).for_each(|_| rig.app.update());
    assert_eq!(rig.known(by, of, 4), Some(vec![7]));
}

#[test]
fn a_team_learns_what_is_the_teams_from_the_tick_on_that_somebody_joins_it() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let (by, of) = (rig.players[0], rig.players[1]);
    assert_eq!(rig.known(by, of, 3), None);
    rig.app.world_mut().entity_mut(by).insert(TeamId(1));
    rig.app.update();
    assert_eq!(rig.known(by, of, 3), Some(vec![1]));
    assert_eq!(rig.known(of, by, 3), Some(vec![0]));
    rig.rest_and_compare();
}

#[test]
fn no_more_come_to_be_known_in_a_tick_than_may_friends_first() {
    let mut rig = Rig::new(10);
    let settings = SyncSettings {
        enters_per_tick: 2,
        ..SyncSettings::default()
    };
    rig.app.insert_resource(settings);
    // Its own team before the others.
    for known in [&[1, 3, 5][..], &[1, 2, 3, 4, 5], &[1, 2, 3, 4, 5, 6]] {
        rig.app.update();
        let end = rig.mirrors.0.lock().unwrap();
        let mirror = &end.mirrors[&rig.client_of(rig.players[0])].0;
        assert_eq!(mirror.ids(), known);
    }
    rig.rest_and_compare();
}

#[test]
fn who_leaves_before_it_was_told_of_is_never_told_of() {
    let mut rig = Rig::new(10);
    let settings = SyncSettings {
        enters_per_tick: 1,
        ..SyncSettings::default()
    };
    rig.app.insert_resource(settings);
    rig.app.update();
    let before = rig.sent();
    // Everybody was told of the nearest of its team so far, and nobody of the last two but they themselves.
    for &entity in &rig.players[4..] {
        rig.app.world_mut().despawn(entity);
    }
    rig.players.truncate(4);
    (0..12).for_each(|_| rig.app.update());
    assert_eq!(rig.sent().despawns.messages - before.despawns.messages, 0);
    rig.rest_and_compare();
}

#[test]
fn a_walk_costs_few_messages_and_mirrors_stay_near() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let before = rig.sent();
    let (by, of) = (rig.players[0], rig.players[1]);
    for _ in 0..200 {
        let world = rig.app.world_mut();
        let tick_s = world.resource::<Time<Fixed>>().timestep().as_secs_f32();
        world.get_mut::<Velocity>(of).unwrap().0 = Vec2::new(0.0, 2.0);
        world.get_mut::<Position>(of).unwrap().0.y += 2.0 * tick_s;
        rig.app.update();
        let (tick, at) = (
            rig.app.world().resource::<SimTick>().0,
            rig.app.world().get::<Position>(of).unwrap().0,
        );
        let id = rig.app.world().get::<Object>(of).unwrap().id().0;
        let end = rig.mirrors.0.lock().unwrap();
        let mirror = &end.mirrors[&rig.client_of(by)].0;
        // Far away it is told less often.
        if at.y < 60.0
            && let Some(seen) = mirror.position(id, tick)
        {
            assert!(seen.distance(at) < 0.06, "{seen} {at}");
        }
    }
    let motions = rig.sent().motions.messages - before.motions.messages;
    assert!((6..60).contains(&motions), "{motions} for six clients");
}

fn requests(rig: &mut Rig) -> Vec<SaveRequest> {
    let mut messages = rig.app.world_mut().resource_mut::<Messages<SaveRequest>>();
    messages.drain().collect()
}

#[test]
fn what_is_to_be_stored_is_asked_for_until_it_is_also_of_who_is_gone() {
    let mut rig = Rig::new(10);
    rig.app.insert_resource(SyncSettings {
        save_every_ticks: 10,
        ..SyncSettings::default()
    });
    let entity = rig.players[2];
    let mut asked = Vec::new();
    for _ in 0..30 {
        rig.app.update();
        asked.extend(requests(&mut rig));
    }
    assert_eq!(asked.len(), 6, "one an object, and nothing twice");
    rig.app.world_mut().get_mut::<Gold>(entity).unwrap().0 = 50;
    let mut failures = 0;
    for _ in 0..60 {
        rig.app.update();
        for request in requests(&mut rig) {
            assert_eq!(
                (request.entity, &request.values),
                (entity, &vec![(9, vec![50])])
            );
            failures += 1;
            rig.app.world_mut().write_message(SaveFailed(request));
        }
    }
    assert!((3..=6).contains(&failures), "{failures}");
    // The change of the last tick is not collected yet, and is stored all the same.
    rig.app.world_mut().get_mut::<Gold>(entity).unwrap().0 = 51;
    rig.app.world_mut().despawn(entity);
    rig.players.remove(2);
    for _ in 0..3 {
        let mut last = Vec::new();
        for _ in 0..11 {
            last.extend(requests(&mut rig));
            rig.app.update();
        }
        assert_eq!(last.len(), 1, "{last:?}");
        assert_eq!(last[0].values, [(9, vec![51])]);
        rig.app
            .world_mut()
            .write_message(SaveFailed(last.remove(0)));
    }
}

#[test]
fn whose_session_ends_is_closed_once() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let client = rig.client_of(rig.players[2]);
    disconnect(rig.app.world_mut(), client, LogoutReason::Disconnected);
    rig.players.remove(2);
    rig.mirrors.0.lock().unwrap().mirrors.remove(&client);
    rig.rest_and_compare();
    let end = rig.mirrors.0.lock().unwrap();
    assert_eq!(end.closed, [(client, CloseReason::Ended)]);
}
