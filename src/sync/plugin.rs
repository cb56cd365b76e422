//! Replication in the tick.

mod announce;
mod attributes;
mod collect;
mod compare;
mod dirty;
mod remotes;
mod save;
#[cfg(test)]
mod tests;

pub use announce::{Announce, AnnounceScope, Announced};
pub use attributes::{
    AttributeSpec, Attributes, Audience, Cadence, RegisterError, Replicate, ReplicateAppExt,
};
pub use compare::compare_mirror;
pub use dirty::{DirtyMasks, MaskSlot};
pub use save::{SaveFailed, SaveRequest};

use std::collections::BTreeMap;

use bevy_app::{App, FixedUpdate, Plugin};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use fixedbitset::FixedBitSet;
use serde::{Deserialize, Serialize};

use self::attributes::SentValues;
use super::client::{
    Allowance, ClientState, FillScratch, Link, SentCounters, Surroundings, ViewedAs,
};
use super::motion::{Moving, Reckoning};
use super::records::{Affiliation, SceneRecords, Variant};
use super::remotes::{PartyObjects, Remote};
use crate::aoi::{AoiPlugin, Entered, Left, SceneInterest};
use crate::outbox::{BatchPart, CloseReason, Outbox, OutboxPlugin, OutboxSettings};
use crate::session::{SessionPlugin, Sessions};
use crate::sim::{self, HashAppExt, HeartbeatSystems, SimSystems, SimTick, Workers};
use crate::wire::{ClientId, Hello};
use crate::world::{
    Floor, Heading, Object, ObjectId, ObjectRef, Position, Scene, SceneChanged, SceneClosed,
    SceneId, SceneObjects, Scenes, Teleported, Velocity,
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
        app.register_required_components::<Object, MaskSlot>();
        app.register_required_components::<Object, SentValues>();
        app.register_required_components::<Scene, MaskSlot>();
        app.register_required_components::<Scene, SentValues>();
        app.add_message::<Announce>()
            .add_message::<Announced>()
            .init_resource::<Attributes>()
            .init_resource::<DirtyMasks>()
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
                    (
                        begin_tick,
                        remotes::follow_standing,
                        follow_views,
                        collect::collect,
                    )
                        .chain()
                        .in_set(HeartbeatSystems::Collect),
                    (
                        record_motions,
                        announce::gather,
                        record_snapshots,
                        write_lines,
                        announce::report,
                    )
                        .chain()
                        .in_set(SimSystems::Replicate),
                ),
            )
            .hash_part("dirty", |world, hasher| {
                world.resource::<DirtyMasks>().hash(hasher);
            })
            .hash_part("clients", |world, hasher| {
                for state in &world.resource::<Replicator>().clients {
                    hasher.write_u64(u64::from(state.client.0) << 8 | u64::from(state.epoch));
                    hasher.write_u64((state.links.len() as u64) << 32 | state.waiting.len() as u64);
                    hasher.write_u64(state.credit as u64);
                    hasher.write_u64(state.remotes.len() as u64);
                }
            });
        save::install(app);
    }
}

/// Order among the systems of `sync`.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncSystems {
    /// Change detection marks what changed.
    Mark,
}

/// What may be tuned.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SyncSettings {
    /// How far from its place clients may believe an object to be, in metres, beside the 1.6 cm of the wire.
    pub motion_tolerance_m: f32,
    /// Up to this distance in metres a client is told of an object's motion in every tick; from there on every second, from
    /// twice as far every fourth, and from four times as far every eighth.
    pub near_m: f32,
    /// Objects that a client comes to see in a tick, at most, and as many again that it is told of unseen; at least 1.
    pub enters_per_tick: u32,
    /// Bytes of announcements encoded in a tick, for all clients together, at most 256 MiB; what is beyond is told nobody, and
    /// counted.
    pub announce_bytes_per_tick: u32,
    /// Bytes of messages a client and second, at most; what it must know to stay right may overdraw it. Also how much it can
    /// save up.
    pub bytes_per_client_s: u32,
    /// After how many ticks what changed of an object is stored; 0 counts as 1.
    pub save_every_ticks: u32,
    /// Objects that are gone and that the store could not take, kept for another try, at most.
    pub orphans_max: u32,
}

impl Default for SyncSettings {
    fn default() -> Self {
        Self {
            motion_tolerance_m: 0.05,
            near_m: 20.0,
            enters_per_tick: 16,
            announce_bytes_per_tick: 16 << 20,
            bytes_per_client_s: 8_000,
            save_every_ticks: 200,
            orphans_max: 100_000,
        }
    }
}

impl SyncSettings {
    fn allowance(&self, tick_s: f32) -> Allowance {
        Allowance {
            bytes_per_tick: (self.bytes_per_client_s as f32 * tick_s) as u32,
            bytes_max: self.bytes_per_client_s,
            enters_per_tick: self.enters_per_tick.max(1),
            near_m: self.near_m,
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
    /// Motion bases made, and told again.
    pub bases: u64,
    /// What clients were sent.
    pub sent: SentCounters,
    /// Pairs of a client and an object that it knows, now.
    pub links: u64,
    /// Pairs of a client and an object that it sees and does not know yet, now.
    pub waiting: u64,
    /// Announcements that nobody was told of because they, or those of their tick together, are too long.
    pub announces_refused: u64,
    /// Requests to store values.
    pub saves: u64,
    /// Of those, how many the store could not take while too many others waited.
    pub saves_lost: u64,
}

/// The records of each scene, and what each client knows.
#[derive(Resource, Debug, Default)]
pub(super) struct Replicator {
    pub scenes: BTreeMap<SceneId, SceneRecords>,
    /// By ascending client.
    pub clients: Vec<ClientState>,
    /// What somebody needs to be told in full this tick, ascending and once each.
    pub wanted: Vec<Wanted>,
    /// Who is in which party.
    pub parties: PartyObjects,
    /// The announcements of this tick.
    announcing: Vec<Announced>,
    /// Clients whose sessions ended since the last tick's lines.
    gone: Vec<ClientId>,
    /// The objects that clients know to control, by scene: of the others' views nobody is told.
    followed: BTreeMap<SceneId, FixedBitSet>,
    /// Viewer, target and class of what changed in view lists of those, by scene, ascending.
    changed: BTreeMap<SceneId, Vec<(u32, u32, u8)>>,
    workers: Vec<FillWorker>,
}

impl Replicator {
    /// Whether somebody needs to be told all of this object.
    pub fn is_wanted(&self, scene: SceneId, id: u32) -> bool {
        let key = |wanted: &Wanted| (wanted.scene, wanted.id);
        let start = self
            .wanted
            .partition_point(|wanted| key(wanted) < (scene, id));
        let found = self.wanted.get(start);
        found.is_some_and(|wanted| key(wanted) == (scene, id))
    }
}

/// An object of which somebody needs to be told all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wanted {
    scene: SceneId,
    id: u32,
    variant: Variant,
    /// Whether it is for somebody who need not see it.
    remote: bool,
}

/// What one worker needs and makes.
#[derive(Debug, Default)]
struct FillWorker {
    scratch: FillScratch,
    part: BatchPart,
    sent: SentCounters,
    wanted: Vec<Wanted>,
    /// A client's remotes as they should be.
    expected: Vec<Remote>,
}

const fn words(reference: ObjectRef) -> (u32, u32, u32) {
    (reference.scene.0, reference.id.0, reference.generation.0)
}

/// Forgets what was told in the last tick.
fn begin_tick(
    mut replicator: ResMut<Replicator>,
    mut entered: MessageReader<Entered>,
    mut left: MessageReader<Left>,
    mut closed: MessageReader<SceneClosed>,
    scenes: Res<Scenes>,
    sessions: Res<Sessions>,
    attributes: Res<Attributes>,
) {
    let Replicator {
        scenes: records,
        clients,
        changed,
        gone,
        parties,
        followed,
        ..
    } = &mut *replicator;
    parties.changed.clear();
    for scene in closed.read() {
        parties.close(scene.id);
        records.remove(&scene.id);
        changed.remove(&scene.id);
        followed.remove(&scene.id);
    }
    for (scene, _) in scenes.iter() {
        let records = records.entry(scene).or_default();
        records.begin(attributes.told().len());
        changed.entry(scene).or_default().clear();
    }
    follow_sessions(clients, &sessions, gone);
    followed.values_mut().for_each(FixedBitSet::clear);
    for (scene, id, _) in clients.iter().filter_map(|state| state.own) {
        let ids = followed.entry(SceneId(scene)).or_default();
        ids.grow_and_insert(id as usize);
    }
    followed.retain(|scene, _| records.contains_key(scene));
    let mut follow = |scene, viewer: ObjectId, target: ObjectId, class| {
        let ids = followed.get(&scene);
        if ids.is_some_and(|ids| ids.contains(viewer.0 as usize))
            && let Some(pairs) = changed.get_mut(&scene)
        {
            pairs.push((viewer.0, target.0, class));
        }
    };
    for entered in entered.read() {
        follow(
            entered.scene,
            entered.viewer,
            entered.target,
            entered.priority,
        );
    }
    for left in left.read() {
        follow(left.scene, left.viewer, left.target, 0);
    }
    changed.values_mut().for_each(|pairs| pairs.sort_unstable());
}

/// Drops the state of clients that are gone and makes that of new ones. Both lists ascend.
fn follow_sessions(clients: &mut Vec<ClientState>, sessions: &Sessions, gone: &mut Vec<ClientId>) {
    let receiving = || {
        sessions
            .iter()
            .filter(|(_, session)| session.receives)
            .map(|(client, _)| client)
    };
    let mut open = receiving().peekable();
    clients.retain(|state| {
        while open.next_if(|&client| client < state.client).is_some() {}
        let stays = open.peek() == Some(&state.client);
        if !stays {
            gone.push(state.client);
        }
        stays
    });
    let last = clients.last().map(|state| state.client);
    // Numbers only grow, so whoever is new stands behind all that are known.
    let new = receiving().filter(|&client| last.is_none_or(|last| client > last));
    clients.extend(new.map(ClientState::new));
}

/// What a client is told of an object, by whom its own belongs to.
fn relation(attributes: &Attributes, own: Affiliation, other: Affiliation) -> Variant {
    let both = |nth: usize| own[nth] != 0 && own[nth] == other[nth];
    let mut relation = Audience::VIEWERS.or(Audience::SCENE);
    for (nth, audience) in [Audience::TEAM, Audience::PARTY, Audience::GUILD]
        .into_iter()
        .enumerate()
    {
        if both(nth) {
            relation = relation.or(audience);
        }
    }
    attributes.variant(relation)
}

/// A client with what it needs of the world.
struct ClientJob<'w> {
    state: &'w mut ClientState,
    own: Object,
    records: &'w SceneRecords,
    scene: &'w Scene,
    interest: &'w SceneInterest,
}

/// The clients that control an object, with the scenes that it is in.
fn jobs<'w>(
    clients: &'w mut [ClientState],
    records: &'w BTreeMap<SceneId, SceneRecords>,
    sessions: &Sessions,
    objects: &Query<&Object>,
    scenes: &'w Query<(&Scene, &SceneInterest)>,
) -> Vec<ClientJob<'w>> {
    let mut jobs = Vec::with_capacity(clients.len());
    let mut own_of = sessions.iter().peekable();
    for state in clients {
        while own_of
            .next_if(|&(client, _)| client < state.client)
            .is_some()
        {}
        let session = own_of.next_if(|&(client, _)| client == state.client);
        let own = session.and_then(|(_, session)| objects.get(session.controls?).ok());
        let around = own.and_then(|own| {
            let (scene, interest) = scenes.get(own.scene_entity()).ok()?;
            Some((*own, records.get(&own.scene())?, scene, interest))
        });
        match around {
            Some((own, records, scene, interest)) => jobs.push(ClientJob {
                state,
                own,
                records,
                scene,
                interest,
            }),
            // Who controls nothing now misses what happens, and begins anew when that changes.
            None => state.own = None,
        }
    }
    jobs
}

/// Every client's list follows what its object sees, and who is told of is chosen.
fn follow_views(
    mut replicator: ResMut<Replicator>,
    sessions: Res<Sessions>,
    attributes: Res<Attributes>,
    settings: Res<SyncSettings>,
    time: Res<Time<Fixed>>,
    pool: Res<Workers>,
    objects: Query<&Object>,
    scenes: Query<(&Scene, &SceneInterest)>,
) {
    let Replicator {
        scenes: records,
        clients,
        wanted,
        changed,
        parties,
        workers,
        ..
    } = &mut *replicator;
    let (allowance, parties) = (settings.allowance(time.timestep().as_secs_f32()), &*parties);
    let own_variant = attributes.variant(Attributes::OWN);
    let mut jobs = jobs(clients, records, &sessions, &objects, &scenes);
    pool.for_each_chunk(&mut jobs, 32, workers, |worker, _, jobs| {
        for ClientJob {
            state,
            own,
            records,
            interest,
            ..
        } in jobs
        {
            let (scene, id) = (own.scene(), own.id());
            let views = interest.views();
            let begins = state.own != Some(words(own.reference()));
            if begins {
                state.begin(words(own.reference()), own_variant);
                worker.wanted.push(Wanted {
                    scene,
                    id: id.0,
                    variant: own_variant,
                    remote: false,
                });
            }
            let seen = |target, class| ViewedAs {
                id: target,
                generation: interest.generation(ObjectId(target)).0,
                class,
            };
            let mut moved = begins;
            if begins {
                let view = views
                    .seen_by(id.0)
                    .map(|(target, class)| seen(target, class));
                state.waiting.extend(view);
            } else {
                // In whatever order a pair came and went, what counts is how it is now.
                let pairs = changed.get(&scene).map_or(&[][..], Vec::as_slice);
                let start = pairs.partition_point(|&(viewer, ..)| viewer < id.0);
                let mine = pairs[start..].iter().take_while(|pair| pair.0 == id.0);
                for &(_, target, class) in mine {
                    moved = true;
                    let now = views.visible(id.0, target).then(|| seen(target, class));
                    state.follow(target, now);
                }
            }
            let position = |id| views.position(id).unwrap_or_default();
            state.admit(allowance, position(id.0), position, &mut worker.scratch);
            let standing = records.standing(id.0);
            let entering = state.entering.iter().map(|entering| Wanted {
                scene,
                id: entering.id,
                variant: relation(&attributes, standing, records.standing(entering.id)),
                remote: false,
            });
            worker.wanted.extend(entering);
            let meeting = remotes::follow(
                state,
                own.reference(),
                moved,
                allowance.enters_per_tick,
                (records, parties, &attributes),
                &mut worker.expected,
            );
            worker.wanted.extend(meeting.iter().map(|remote| Wanted {
                scene: remote.object.scene,
                id: remote.object.id.0,
                variant: remote.variant,
                remote: true,
            }));
        }
    });
    wanted.clear();
    for worker in workers {
        wanted.append(&mut worker.wanted);
    }
    wanted.sort_unstable();
    wanted.dedup();
}

type MotionRow = (
    &'static Position,
    &'static Velocity,
    &'static Heading,
    &'static Floor,
);

fn moving_of(
    (position, velocity, heading, floor): (&Position, &Velocity, &Heading, &Floor),
) -> Moving {
    Moving {
        position: position.0,
        velocity: velocity.0,
        heading: heading.0,
        floor: floor.0,
        jumped: false,
    }
}

/// What is known of every object's motion follows where it is.
fn record_motions(
    mut replicator: ResMut<Replicator>,
    objects: Query<(&Object, MotionRow)>,
    mut teleported: MessageReader<Teleported>,
    mut changed_scene: MessageReader<SceneChanged>,
    settings: Res<SyncSettings>,
    mut stats: ResMut<SyncStats>,
    (tick, time): (Res<SimTick>, Res<Time<Fixed>>),
    mut jumped: Local<Vec<ObjectRef>>,
) {
    jumped.clear();
    jumped.extend(teleported.read().map(|message| message.object.reference()));
    jumped.extend(changed_scene.read().map(|change| change.to.reference()));
    jumped.sort_unstable();
    let reckoning = Reckoning {
        tick_s: time.timestep().as_secs_f32(),
        tolerance_m: settings.motion_tolerance_m,
    };
    for (object, walking) in &objects {
        let Some(records) = replicator.scenes.get_mut(&object.scene()) else {
            continue;
        };
        let (id, generation) = (object.id().0, object.generation().0);
        let now = Moving {
            jumped: !jumped.is_empty() && jumped.binary_search(&object.reference()).is_ok(),
            ..moving_of(walking)
        };
        stats.bases += u64::from(records.follow(id, generation, now, tick.0, reckoning));
    }
}

/// All that is told of those whom somebody comes to know, once for all clients that learn the same of them.
fn record_snapshots(
    mut replicator: ResMut<Replicator>,
    mut outbox: ResMut<Outbox>,
    attributes: Res<Attributes>,
    scenes: Res<Scenes>,
    ids: Query<&SceneObjects>,
    bearers: Query<(Option<&Object>, Option<&Scene>, &SentValues)>,
) {
    let Replicator {
        scenes: records,
        wanted,
        ..
    } = &mut *replicator;
    for wanted in &*wanted {
        let scene = scenes.entity(wanted.scene);
        let entity = scene.and_then(|scene| match wanted.id {
            0 => Some(scene),
            id => ids.get(scene).ok()?.entity(ObjectId(id)),
        });
        let bearer = entity.and_then(|entity| bearers.get(entity).ok());
        let (Some((object, scene, sent)), Some(records)) = (bearer, records.get_mut(&wanted.scene))
        else {
            continue;
        };
        let variant = usize::from(wanted.variant.0);
        let values = (sent, &attributes.told()[variant]);
        let motion = records.base_mut(wanted.id).motion;
        let batch = outbox.batch_mut();
        match (object, scene) {
            (Some(object), _) if !wanted.remote => {
                let write = |bytes: &mut Vec<u8>| {
                    collect::write_snapshot(bytes, object, motion, &attributes, values);
                };
                records.snapshots[variant].set(wanted.id, batch.share(write));
            }
            (object, scene) => {
                let kind = object.map_or(0, |object| object.kind().0);
                let of = object.map(Object::reference);
                let Some(of) = of.or(scene.map(Scene::reference)) else {
                    continue;
                };
                let write = |bytes: &mut Vec<u8>| {
                    collect::write_remote(bytes, of, kind, &attributes, values);
                };
                records.remotes[variant].set(wanted.id, batch.share(write));
            }
        }
    }
}

/// Each client's line: what of all that it is sent.
fn write_lines(
    mut replicator: ResMut<Replicator>,
    mut outbox: ResMut<Outbox>,
    mut stats: ResMut<SyncStats>,
    (sessions, attributes): (Res<Sessions>, Res<Attributes>),
    (settings, packing): (Res<SyncSettings>, Res<OutboxSettings>),
    (tick, time): (Res<SimTick>, Res<Time<Fixed>>),
    pool: Res<Workers>,
    objects: Query<&Object>,
    scenes: Query<(&Scene, &SceneInterest)>,
    ids: Query<&SceneObjects>,
    values: Query<&SentValues>,
) {
    let Replicator {
        scenes: records,
        clients,
        workers,
        gone,
        ..
    } = &mut *replicator;
    let tick_s = time.timestep().as_secs_f32();
    let allowance = settings.allowance(tick_s);
    let mtu_bytes = packing.mtu_bytes as u32;
    let hello = |client: ClientId| Hello {
        client: client.0,
        tick_millihertz: (1000.0 / tick_s).round() as u32,
        tick: tick.0,
        mtu_bytes,
    };
    let all_records = &*records;
    let mut jobs = jobs(clients, records, &sessions, &objects, &scenes);
    let shared = &*outbox.batch_mut().shared;
    pool.for_each_chunk(&mut jobs, 32, workers, |worker, _, jobs| {
        let FillWorker {
            scratch,
            part,
            sent,
            ..
        } = worker;
        for ClientJob {
            state,
            own,
            records,
            scene,
            ..
        } in jobs
        {
            // It was given control in the middle of the tick, and begins in the next one.
            if state.own != Some(words(own.reference())) {
                continue;
            }
            let standing = records.standing(own.id().0);
            let values_of = |id| {
                let ids = ids.get(own.scene_entity()).ok()?;
                values.get(ids.entity(ObjectId(id))?).ok()
            };
            let around = Surroundings {
                records,
                scenes: all_records,
                shared,
                size_m: scene.size_m(),
                tick: tick.0,
                allowance,
                hello: hello(state.client),
                relation: |id| {
                    if id == own.id().0 {
                        attributes.variant(Attributes::OWN)
                    } else {
                        relation(&attributes, standing, records.standing(id))
                    }
                },
                catch_up: |link: &Link, to: Variant, bytes: &mut Vec<u8>| {
                    let told = |variant: Variant| attributes.told()[usize::from(variant.0)];
                    let (mut more, before) = (told(to), told(link.variant));
                    more.iter_mut()
                        .zip(before)
                        .for_each(|(more, had)| *more &= !had);
                    if let Some(sent) = values_of(link.id) {
                        let (id, generation) = (link.id, link.generation);
                        collect::write_delta(bytes, id, generation, &attributes, (sent, &more));
                    }
                },
            };
            let input = sessions
                .get(state.client)
                .map_or(0, |session| session.inputs);
            part.begin(state.client, state.epoch, input);
            state.fill(part, &around, scratch, sent);
            part.end();
        }
    });
    let count = |of: fn(&ClientState) -> usize| clients.iter().map(|state| of(state) as u64).sum();
    stats.links = count(|state| state.links.len());
    stats.waiting = count(|state| state.waiting.len());
    let last = outbox.batch_mut().part(workers.len());
    for client in gone.drain(..) {
        last.begin(client, 0, 0);
        last.close(CloseReason::Ended);
    }
    last.end();
    // Chunks are consecutive, so their parts are too.
    for (nth, worker) in workers.iter_mut().enumerate() {
        std::mem::swap(outbox.batch_mut().part(nth), &mut worker.part);
        stats.sent.add(std::mem::take(&mut worker.sent));
    }
}
