//! Whole servers whose clients' mirrors must be equal to them.

mod announcements;
mod audiences;
mod client_objects;
mod foreign_members;
mod kept;
mod lost_control;
mod pending;
mod random_changes;
mod removals;
mod resume;
mod saves;
mod unseen;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bevy_time::{Fixed, Time};
use glam::Vec2;

use super::*;
use crate::aoi::ViewCaps;
use crate::aoi::{Viewable, Viewer};
use crate::outbox::{Outbox, PacketSink};
use crate::session::{
    ConnectionInfo, ControlledBy, LogoutReason, connect, control, controlling_client, disconnect,
};
use crate::sim::{SimTick, Workers};
use crate::sync::{Mirror, SentCounters};
use crate::wire::CloseReason;
use crate::wire::{
    AttributeValue, Channel, ClientId, Encoding, PacketHeader, SessionNotice, WireReader,
};
use crate::world::{
    InScene, KindId, ObjectRef, PartyId, Position, SceneSpec, TeamId, Velocity, change_scene,
    close_scene, open_scene, spawn_object, teleport,
};

#[derive(Component, Clone, Copy, Replicate)]
#[replicate(id = 1)]
struct Health(u32);

/// Sent to the owner, and saved.
#[derive(Component, Clone, Copy, Replicate)]
#[replicate(id = 9, audience = Audience::OWNER, persist)]
struct Gold(u32);

/// Sent to the team.
#[derive(Component, Clone, Copy)]
struct Mana(u32);

/// Sent to all viewers in the tick of its change; code that writes it marks it.
#[derive(Component, Clone, Copy)]
struct Stance(u32);

/// Sent to the party, wherever it is.
#[derive(Component, Clone, Copy)]
struct Vigour(u32);

/// Sent to the guild.
#[derive(Component, Clone, Copy)]
struct Rank(u32);

/// Sent to all clients in the scene: of the scene itself, or, for example, of an object that carries a flag.
#[derive(Component, Clone, Copy, Replicate)]
#[replicate(id = 6, audience = Audience::SCENE)]
struct Score(u32);

/// The clients' ends of the connections: mirrors by client. The first error of each is kept.
///
/// A bad connection loses, repeats and reorders unreliable packets; `bad` is the percentage.
#[derive(Default)]
struct FarEnd {
    mirrors: BTreeMap<ClientId, (Mirror, Result<(), String>)>,
    bad: u64,
    random: u64,
    late: Vec<(ClientId, Vec<u8>)>,
    closed: Vec<(ClientId, CloseReason)>,
    /// The epochs of each client's reliable packets, each once.
    epochs: BTreeMap<ClientId, Vec<u8>>,
}

impl FarEnd {
    fn is_bad(&mut self) -> bool {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.random >> 33) % 100 < self.bad
    }

    fn receive(&mut self, client: ClientId, packet: &[u8]) {
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

impl PacketSink for Mirrors {
    fn close(&mut self, client: ClientId, reason: CloseReason) {
        self.0.lock().unwrap().closed.push((client, reason));
    }

    fn deliver(&mut self, client: ClientId, channel: Channel, packet: &[u8]) {
        let mut end = self.0.lock().unwrap();
        if channel == Channel::Reliable {
            let header = PacketHeader::read(&mut WireReader::new(packet)).unwrap();
            let epochs = end.epochs.entry(client).or_default();
            if epochs.last() != Some(&header.epoch) {
                epochs.push(header.epoch);
            }
            return end.receive(client, packet);
        }
        if end.is_bad() {
            // Lost or delayed.
            if end.is_bad() {
                end.late.push((client, packet.to_vec()));
            }
            return;
        }
        end.receive(client, packet);
        if end.is_bad() {
            end.receive(client, packet);
        }
        if end.is_bad()
            && let Some((client, packet)) = end.late.pop()
        {
            end.receive(client, &packet);
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
        app.replicate::<Health>().replicate::<Gold>();
        let mana = spec("mana", 3).to(Audience::TEAM).at(SendRate::EveryNth(3));
        app.replicate_field(mana, |mana: &Mana| mana.0);
        let vigour = spec("vigour", 5).to(Audience::PARTY);
        app.replicate_field(vigour, |vigour: &Vigour| vigour.0);
        let rank = spec("rank", 7).to(Audience::GUILD);
        app.replicate_field(rank, |rank: &Rank| rank.0)
            .replicate::<Score>();
        let stance = spec("stance", 4).at(SendRate::EveryTick);
        let stance = app.try_replicate_marked(stance, |stance: &Stance| stance.0);
        // Small worlds: waking threads for each system would take most of the time.
        crate::sim::single_threaded(&mut app);
        crate::sim::clock::one_tick_per_update(&mut app);
        let mirrors = Mirrors::default();
        app.world_mut()
            .resource_mut::<Outbox>()
            .set_sink(mirrors.clone());
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
            Rank(nth),
            TeamId(nth % 2),
        );
        let world = self.app.world_mut();
        let entity = spawn_object(world, self.scenes[0], KindId(0), at, (sight, values)).unwrap();
        let client = connect(world, ConnectionInfo::unknown().without_loading()).unwrap();
        assert!(control(world, client, entity));
        self.players.push(entity);
    }

    fn rest_and_compare(&mut self) {
        self.rest_and(compare_mirror);
    }

    fn rest_and_compare_exactly(&mut self) {
        self.rest_and(compare_mirror_exactly);
    }

    fn rest_and(&mut self, compare: fn(&World, ClientId, &Mirror) -> Result<(), String>) {
        (0..12).for_each(|_| self.app.update());
        for (client, (mirror, result)) in &self.mirrors.0.lock().unwrap().mirrors {
            assert_eq!(*result, Ok(()), "client {}", client.0);
            let compared = compare(self.app.world(), *client, mirror);
            assert_eq!(compared, Ok(()), "client {}", client.0);
        }
    }

    fn set_stance(&mut self, entity: Entity, value: u32) {
        let world = self.app.world_mut();
        let Some(&slot) = world.get::<MaskSlot>(entity) else {
            return;
        };
        let Some(mut stance) = world.get_mut::<Stance>(entity) else {
            return;
        };
        stance.0 = value;
        world.resource_mut::<DirtyMasks>().mark(slot, self.stance);
    }

    fn client_of(&self, entity: Entity) -> ClientId {
        controlling_client(self.app.world(), entity).unwrap()
    }

    /// The value that the client of one player has of another's attribute.
    fn known(&self, by: Entity, of: Entity, attribute: u16) -> Option<Vec<u8>> {
        let end = self.mirrors.0.lock().unwrap();
        let id = self.app.world().get::<Object>(of)?.id().0;
        let object = end.mirrors.get(&self.client_of(by))?.0.object(id)?;
        object.attributes.bytes(attribute).map(<[u8]>::to_vec)
    }

    fn sent(&self) -> SentCounters {
        self.app.world().resource::<SyncStats>().sent
    }
}

fn reference(rig: &Rig, entity: Entity) -> ObjectRef {
    rig.app.world().get::<Object>(entity).unwrap().reference()
}

/// Despawned by a system in the middle of the tick, as a game's own system could do.
#[derive(Component)]
struct Doomed;

fn despawn_doomed(mut commands: Commands, doomed: Query<Entity, With<Doomed>>) {
    doomed
        .iter()
        .for_each(|entity| commands.entity(entity).despawn());
}

fn despawn_in(set: SimSystems) -> Rig {
    despawn_by(|app| app.add_systems(FixedUpdate, despawn_doomed.in_set(set)))
}

/// Despawned by a system between two sets of replication.
fn despawn_between(after: SyncSystems, before: SyncSystems) -> Rig {
    despawn_by(|app| app.add_systems(FixedUpdate, despawn_doomed.after(after).before(before)))
}

fn despawn_by(add: impl FnOnce(&mut App) -> &mut App) -> Rig {
    let mut rig = Rig::new(10);
    add(&mut rig.app);
    rig.rest_and_compare();
    rig
}

/// A component whose id is computed from the name.
#[derive(Component, Replicate)]
#[replicate(name = "max_stamina")]
struct Unnumbered {
    #[replicate]
    points: u16,
    _regained: f32,
}

#[test]
fn number_of_a_named_attribute_is_stable() {
    let spec = Unnumbered::attribute();
    assert_eq!((spec.name, spec.encoding), ("max_stamina", Encoding::U16));
    // Clients and stores have it, so it must never change.
    assert_eq!(spec.id, 0xa1b2);
    assert_eq!(AttributeSpec::named("", Encoding::U8).id, 0x9ffc);
    let unnumbered = Unnumbered {
        points: 7,
        _regained: 0.5,
    };
    assert_eq!(unnumbered.value(), AttributeValue::from(7_u16));
}

/// A component with each option of the derive.
#[derive(Component, Replicate)]
#[replicate(
    name = "shield",
    id = 40,
    encoding = Encoding::U16,
    audience = Audience::TEAM,
    cadence = SendRate::EveryNth(5),
    persist
)]
struct Shield(u32);

#[test]
fn derived_attribute_has_each_of_its_options() {
    let expected = AttributeSpec::new("shield", 40, Encoding::U16)
        .to(Audience::TEAM)
        .at(SendRate::EveryNth(5))
        .persistent();
    assert_eq!(Shield::attribute(), expected);
    assert_eq!(Shield(7).value(), AttributeValue::from(7_u32));
}

#[test]
#[should_panic(expected = "Unnumbered` is not replicated: attribute `max_stamina`: name or number")]
fn replicating_a_component_twice_panics_at_startup() {
    let mut app = App::new();
    app.add_plugins((bevy_time::TimePlugin, SyncPlugin));
    app.replicate::<Unnumbered>().replicate::<Unnumbered>();
}
