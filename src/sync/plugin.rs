//! Replication in the tick.

mod attributes;
mod compare;
#[cfg(test)]
mod tests;

pub use attributes::{
    AttributeSpec, Attributes, Audience, DirtyMask, RegisterError, Replicate, ReplicateAppExt,
};
pub use compare::compare_mirror;

use std::collections::BTreeMap;

use bevy_app::{App, FixedUpdate, Plugin};
use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use self::attributes::SentValues;
use super::packets::{ClientState, Job, PacketCounters, Scratch, write_packet};
use super::records::{Change, SceneRecords, new_targets};
use crate::aoi::{AoiPlugin, Entered, Left, SceneInterest};
use crate::outbox::{Outbox, OutboxPlugin};
use crate::session::{ControlledBy, SessionPlugin, Sessions};
use crate::sim::{
    self, HashAppExt, HeartbeatPhase, HeartbeatSystems, SimSystems, SimTick, Workers,
};
use crate::wire::{
    ClientId, Motion, write_attribute, write_delta_head, write_motion, write_snapshot_head,
};
use crate::world::{
    Floor, Heading, Object, ObjectHashAppExt, ObjectId, ObjectRef, Position, Scene, SceneChanged,
    SceneClosed, SceneId, SceneObjects, Scenes, Teleported, Velocity,
};

/// Attribute and motion replication. Adds [`AoiPlugin`], [`SessionPlugin`] and [`OutboxPlugin`] when they are missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct SyncPlugin;

impl Plugin for SyncPlugin {
    /// Plugins that need this one add it, so it may come more than once.
    fn is_unique(&self) -> bool {
        false
    }

    fn build(&self, app: &mut App) {
        if app.is_plugin_added::<Self>() {
            return;
        }
        sim::install(app);
        app.add_plugins(AoiPlugin);
        app.add_plugins(SessionPlugin);
        app.add_plugins(OutboxPlugin);
        app.register_required_components::<Object, SentMotion>();
        app.register_required_components::<Object, DirtyMask>();
        app.register_required_components::<Object, SentValues>();
        app.init_resource::<Attributes>()
            .init_resource::<SyncSettings>()
            .init_resource::<SyncStats>()
            .init_resource::<Replicator>()
            .configure_sets(
                FixedUpdate,
                SyncSystems::Mark
                    .in_set(SimSystems::Heartbeat)
                    .after(HeartbeatSystems::Match)
                    .before(HeartbeatSystems::Collect),
            )
            .add_systems(
                FixedUpdate,
                (
                    (gather_changes, collect)
                        .chain()
                        .in_set(HeartbeatSystems::Collect),
                    (record_motions, record_snapshots, write_packets)
                        .chain()
                        .in_set(SimSystems::Replicate),
                ),
            )
            .hash_component::<DirtyMask>("dirty")
            .hash_part("clients", |world, hasher| {
                for state in &world.resource::<Replicator>().clients {
                    hasher.write_u64(u64::from(state.client.0));
                    hasher.write_u64(u64::from(state.sequence) << 8 | u64::from(state.epoch));
                }
            });
    }
}

/// Order among the systems of `sync`.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncSystems {
    /// Change detection sets bits in the dirty masks.
    Mark,
}

/// What may be tuned.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SyncSettings {
    /// An object's motion is sent at most every so many ticks, phased by object; 0 counts as 1.
    pub motion_every_ticks: u32,
}

impl Default for SyncSettings {
    fn default() -> Self {
        Self {
            motion_every_ticks: 1,
        }
    }
}

/// What happened so far.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncStats {
    /// Attributes found dirty at a collection.
    pub attributes_dirty: u64,
    /// Of those, how many had really changed.
    pub attributes_changed: u64,
    /// What went into packets.
    pub sent: PacketCounters,
}

/// The motion that clients hold of an object.
#[derive(Component, Clone, Copy, Debug, Default)]
struct SentMotion(Option<Motion>);

/// The encoded records of each scene, and what each client was told.
#[derive(Resource, Debug, Default)]
struct Replicator {
    scenes: BTreeMap<SceneId, SceneRecords>,
    /// By ascending client.
    clients: Vec<ClientState>,
    /// Objects whose full state somebody needs this tick, ascending and once each.
    wanted: Vec<(SceneId, u32)>,
    scratch: Vec<Scratch>,
}

/// Which clients' objects have which state, as needed to begin a packet.
fn own_objects<'a>(
    sessions: &'a Sessions,
    objects: &'a Query<&Object>,
) -> impl Iterator<Item = (ClientId, Object)> + 'a {
    let receiving = sessions.iter().filter(|(_, session)| session.receives);
    receiving.filter_map(|(client, session)| Some((client, *objects.get(session.controls?).ok()?)))
}

const fn words(reference: ObjectRef) -> (u32, u32, u32) {
    (reference.scene.0, reference.id.0, reference.generation.0)
}

/// Begins the tick's records: folds what changed in view lists, and finds out whose full state is needed.
fn gather_changes(
    mut replicator: ResMut<Replicator>,
    mut entered: MessageReader<Entered>,
    mut left: MessageReader<Left>,
    mut closed: MessageReader<SceneClosed>,
    sessions: Res<Sessions>,
    scenes: Res<Scenes>,
    objects: Query<&Object>,
    interests: Query<&SceneInterest>,
) {
    let Replicator {
        scenes: records,
        clients,
        wanted,
        ..
    } = &mut *replicator;
    closed
        .read()
        .for_each(|scene| drop(records.remove(&scene.id)));
    for (scene, _) in scenes.iter() {
        records.entry(scene).or_default().clear();
    }
    for left in left.read() {
        if let Some(records) = records.get_mut(&left.scene)
            && records
                .unborn
                .binary_search(&(left.viewer.0, left.target.0))
                .is_err()
        {
            let change = Change::Left(left.target_generation.0);
            records.changes.add(left.viewer.0, left.target.0, change);
        }
    }
    for entered in entered.read() {
        if let Some(records) = records.get_mut(&entered.scene) {
            records
                .changes
                .add(entered.viewer.0, entered.target.0, Change::Entered);
        }
    }
    records
        .values_mut()
        .for_each(|records| records.changes.fold());

    follow_sessions(clients, &sessions);
    wanted.clear();
    let mut next = clients.iter_mut().peekable();
    for (client, object) in own_objects(&sessions, &objects) {
        // Who controls nothing now misses what happens, and begins anew when that changes.
        while let Some(state) = next.next_if(|state| state.client < client) {
            state.own = None;
        }
        let Some(state) = next.next_if(|state| state.client == client) else {
            continue;
        };
        let Some(records) = records.get(&object.scene()) else {
            continue;
        };
        if state.own == Some(words(object.reference())) {
            let entered = new_targets(records.changes.of(object.id().0));
            wanted.extend(entered.map(|target| (object.scene(), target)));
        } else {
            wanted.push((object.scene(), object.id().0));
            if let Ok(interest) = interests.get(object.scene_entity()) {
                let seen = interest.views().seen_by(object.id().0);
                wanted.extend(seen.map(|(target, _)| (object.scene(), target)));
            }
        }
    }
    next.for_each(|state| state.own = None);
    wanted.sort_unstable();
    wanted.dedup();
}

/// Drops the state of clients that are gone and makes that of new ones. Both lists ascend.
fn follow_sessions(clients: &mut Vec<ClientState>, sessions: &Sessions) {
    let receiving = || {
        sessions
            .iter()
            .filter(|(_, session)| session.receives)
            .map(|(client, _)| client)
    };
    let mut open = receiving().peekable();
    clients.retain(|state| {
        while open.next_if(|&client| client < state.client).is_some() {}
        open.peek() == Some(&state.client)
    });
    let last = clients.last().map(|state| state.client);
    // Numbers only grow, so whoever is new stands behind all that are known.
    let new = receiving().filter(|&client| last.is_none_or(|last| client > last));
    clients.extend(new.map(|client| ClientState {
        client,
        epoch: 0,
        sequence: 0,
        own: None,
    }));
}

/// Dirty masks become deltas: this tick's share of the objects, and those whose full state somebody needs now.
fn collect(
    world: &mut World,
    mut due: Local<Vec<(SceneId, u32, Entity)>>,
    mut value: Local<Vec<u8>>,
) {
    let phase = *world.resource::<HeartbeatPhase>();
    world.resource_scope(|world, mut replicator: Mut<Replicator>| {
        let Replicator { scenes, wanted, .. } = &mut *replicator;
        due.clear();
        let mut dirty = world.query::<(Entity, &Object, &DirtyMask)>();
        due.extend(
            dirty
                .iter(world)
                .filter(|(.., mask)| mask.is_dirty())
                .filter_map(|(entity, object, _)| {
                    let (scene, id) = (object.scene(), object.id().0);
                    let now = phase.covers(id) || wanted.binary_search(&(scene, id)).is_ok();
                    now.then_some((scene, id, entity))
                }),
        );
        due.sort_unstable_by_key(|&(scene, id, _)| (scene, id));
        world.resource_scope(|world, attributes: Mut<Attributes>| {
            for &(scene, _, entity) in &*due {
                let Some(records) = scenes.get_mut(&scene) else {
                    continue;
                };
                collect_object(world, entity, &attributes, records, &mut value);
            }
        });
    });
}

/// Encodes the dirty attributes of one object, and writes its deltas.
fn collect_object(
    world: &mut World,
    entity: Entity,
    attributes: &Attributes,
    records: &mut SceneRecords,
    value: &mut Vec<u8>,
) {
    let Ok(mut object) = world.get_entity_mut(entity) else {
        return;
    };
    let (Some(mut mask), Some(mut sent)) = (
        object
            .get_mut::<DirtyMask>()
            .map(|mut mask| std::mem::take(&mut *mask)),
        object
            .get_mut::<SentValues>()
            .map(|mut sent| std::mem::take(&mut *sent)),
    ) else {
        return;
    };
    let (mut dirty, mut changed, mut public) = (0, 0u64, 0u64);
    for bit in mask.take() {
        // A bit that an embedder set by hand may be no attribute's.
        let Some(registered) = attributes.table().get(bit as usize) else {
            continue;
        };
        dirty += 1;
        value.clear();
        if (registered.encode)(EntityRef::from(&object), value) {
            value.truncate(registered.spec.bytes_max as usize);
            if sent.set(bit, value) {
                changed |= 1 << bit;
                public |= u64::from(registered.spec.audience == Audience::Viewers) << bit;
            }
        }
    }
    if let Some(&own) = object.get::<Object>() {
        let (id, generation) = (own.id().0, own.generation().0);
        let delta = |mask: u64, bytes: &mut Vec<u8>| {
            write_delta_head(bytes, id, generation, mask.count_ones() as u8);
            write_values(
                bytes,
                attributes,
                sent.iter().filter(|&(bit, _)| mask >> bit & 1 == 1),
            );
        };
        if public != 0 {
            records.deltas.write(id, |bytes| delta(public, bytes));
        }
        if changed != 0 && object.contains::<ControlledBy>() {
            records.own_deltas.write(id, |bytes| delta(changed, bytes));
        }
    }
    if let Some(mut kept) = object.get_mut::<SentValues>() {
        *kept = sent;
    }
    let mut stats = world.resource_mut::<SyncStats>();
    stats.attributes_dirty += dirty;
    stats.attributes_changed += u64::from(changed.count_ones());
}

fn write_values<'a>(
    bytes: &mut Vec<u8>,
    attributes: &Attributes,
    values: impl Iterator<Item = (usize, &'a [u8])>,
) {
    for (bit, value) in values {
        write_attribute(bytes, attributes.table()[bit].spec.id, value);
    }
}

type Moving = (
    &'static Position,
    &'static Velocity,
    &'static Heading,
    &'static Floor,
);

fn motion_of(
    (position, velocity, heading, floor): (&Position, &Velocity, &Heading, &Floor),
) -> Motion {
    Motion::of(position.0, velocity.0, heading.0, floor.0, false)
}

/// Motions that clients do not hold yet.
fn record_motions(
    mut replicator: ResMut<Replicator>,
    mut objects: Query<(&Object, Moving, &mut SentMotion)>,
    mut teleported: MessageReader<Teleported>,
    mut changed_scene: MessageReader<SceneChanged>,
    settings: Res<SyncSettings>,
    tick: Res<SimTick>,
    mut jumped: Local<Vec<ObjectRef>>,
) {
    jumped.clear();
    jumped.extend(teleported.read().map(|message| message.object.reference()));
    jumped.extend(changed_scene.read().map(|change| change.to.reference()));
    jumped.sort_unstable();
    let every = u64::from(settings.motion_every_ticks.max(1));
    for (object, moving, mut sent) in &mut objects {
        let id = object.id().0;
        let discontinuity = jumped.binary_search(&object.reference()).is_ok();
        let due = (tick.0 + u64::from(id)).is_multiple_of(every);
        if !due && !discontinuity {
            continue;
        }
        let motion = Motion {
            discontinuity,
            ..motion_of(moving)
        };
        if sent.0 == Some(motion) {
            continue;
        }
        // What clients compare with next time is where it is, not how it came there.
        sent.0 = Some(Motion {
            discontinuity: false,
            ..motion
        });
        if let Some(records) = replicator.scenes.get_mut(&object.scene()) {
            records.motions.write(id, |bytes| {
                write_motion(bytes, id, object.generation().0, motion)
            });
        }
    }
}

/// The full state, as everybody sees it, of those who came into somebody's sight.
fn record_snapshots(
    mut replicator: ResMut<Replicator>,
    attributes: Res<Attributes>,
    scenes: Res<Scenes>,
    ids: Query<&SceneObjects>,
    objects: Query<(&Object, Moving, &SentMotion, &SentValues)>,
    mut gone: Local<Vec<(SceneId, u32)>>,
) {
    let Replicator {
        scenes: records,
        wanted,
        ..
    } = &mut *replicator;
    gone.clear();
    records
        .values_mut()
        .for_each(|records| records.unborn.clear());
    for &(scene, id) in &*wanted {
        let Some(ids) = scenes.entity(scene).and_then(|entity| ids.get(entity).ok()) else {
            continue;
        };
        let Some((object, moving, sent_motion, sent)) = ids
            .entity(ObjectId(id))
            .and_then(|entity| objects.get(entity).ok())
        else {
            gone.push((scene, id));
            continue;
        };
        if let Some(records) = records.get_mut(&scene) {
            let motion = sent_motion.0.unwrap_or_else(|| motion_of(moving));
            records.snapshots.write(id, |bytes| {
                write_snapshot(bytes, object, motion, &attributes, sent, Audience::Viewers);
            });
        }
    }
    for &(scene, id) in &*gone {
        if let Some(SceneRecords {
            changes, unborn, ..
        }) = records.get_mut(&scene)
        {
            unborn.extend(changes.viewers_of_new(id).map(|viewer| (viewer, id)));
            unborn.sort_unstable();
        }
    }
}

fn write_snapshot(
    bytes: &mut Vec<u8>,
    object: &Object,
    motion: Motion,
    attributes: &Attributes,
    sent: &SentValues,
    audience: Audience,
) {
    let is_told = |bit: usize| {
        audience == Audience::Owner || attributes.table()[bit].spec.audience == Audience::Viewers
    };
    let count = sent.iter().filter(|&(bit, _)| is_told(bit)).count() as u8;
    let (id, generation) = (object.id().0, object.generation().0);
    write_snapshot_head(bytes, id, generation, object.kind().0, motion, count);
    write_values(
        bytes,
        attributes,
        sent.iter().filter(|&(bit, _)| is_told(bit)),
    );
}

/// A packet for every client that receives, put together in parallel and handed to the outbox by ascending client.
fn write_packets(
    mut replicator: ResMut<Replicator>,
    mut outbox: ResMut<Outbox>,
    mut stats: ResMut<SyncStats>,
    sessions: Res<Sessions>,
    attributes: Res<Attributes>,
    workers: Res<Workers>,
    tick: Res<SimTick>,
    objects: Query<&Object>,
    states: Query<(Moving, &SentMotion, &SentValues)>,
    scenes: Query<(&Scene, &SceneInterest)>,
) {
    let Replicator {
        scenes: records,
        clients,
        scratch,
        ..
    } = &mut *replicator;
    let mut jobs = Vec::with_capacity(clients.len());
    let mut next = clients.iter_mut().peekable();
    for (client, object) in own_objects(&sessions, &objects) {
        while next.next_if(|state| state.client < client).is_some() {}
        let Some(state) = next.next_if(|state| state.client == client) else {
            continue;
        };
        let (Some(records), Ok((scene, interest))) = (
            records.get(&object.scene()),
            scenes.get(object.scene_entity()),
        ) else {
            continue;
        };
        let own = words(object.reference());
        let mut own_snapshot = None;
        if state.own != Some(own)
            && let Some((moving, sent_motion, sent)) = sessions
                .get(client)
                .and_then(|session| states.get(session.controls?).ok())
        {
            let mut bytes = Vec::new();
            let motion = sent_motion.0.unwrap_or_else(|| motion_of(moving));
            write_snapshot(
                &mut bytes,
                &object,
                motion,
                &attributes,
                sent,
                Audience::Owner,
            );
            own_snapshot = Some(bytes);
        }
        let job = Job {
            state,
            own,
            records,
            size_m: scene.size_m(),
            own_snapshot,
        };
        jobs.push((job, interest));
    }
    workers.for_each_chunk(&mut jobs, 32, scratch, |scratch, _, jobs| {
        for (job, interest) in jobs {
            let own = job.own.1;
            let seen = interest.views().seen_by(own).map(|(target, _)| target);
            write_packet(job, tick.0, scratch, seen);
        }
    });
    // Chunks are consecutive, so their frames are too.
    for scratch in scratch {
        outbox.frames_mut().append(&mut scratch.frames);
        stats.sent.add(std::mem::take(&mut scratch.counters));
    }
}
