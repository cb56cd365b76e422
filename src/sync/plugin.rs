//! Replication in the tick.

mod announce;
mod attributes;
mod collect;
mod compare;
mod dirty;
mod save;
#[cfg(test)]
mod tests;

pub use announce::{Announce, AnnounceScope};
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
use serde::{Deserialize, Serialize};

use self::attributes::SentValues;
use super::client::{Allowance, ClientState, Link, Scratch, Seen, SentCounters, Surroundings};
use super::motion::{Moving, Reckoning};
use super::records::{SceneRecords, Standing, Variant};
use crate::aoi::{AoiPlugin, Entered, Left, SceneInterest};
use crate::outbox::{BatchPart, CloseReason, Outbox, OutboxPlugin, OutboxSettings};
use crate::session::{SessionPlugin, Sessions};
use crate::sim::{self, HashAppExt, HeartbeatSystems, SimSystems, SimTick, Workers};
use crate::wire::{ClientId, Hello};
use crate::world::{
    Floor, GuildId, Heading, Object, ObjectId, ObjectRef, PartyId, Position, Scene, SceneChanged,
    SceneClosed, SceneId, SceneObjects, Scenes, TeamId, Teleported, Velocity,
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
        app.add_message::<Announce>()
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
                    (begin_tick, follow_standing, follow_views, collect::collect)
                        .chain()
                        .in_set(HeartbeatSystems::Collect),
                    (
                        record_motions,
                        announce::gather,
                        record_snapshots,
                        write_lines,
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
    /// Objects that a client comes to know in a tick, at most; at least 1.
    pub enters_per_tick: u32,
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
    /// Announcements that nobody was told of because they are too long.
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
    /// Objects of which somebody needs a snapshot this tick, ascending and once each.
    pub wanted: Vec<(SceneId, u32, Variant)>,
    /// Clients whose sessions ended since the last tick's lines.
    gone: Vec<ClientId>,
    /// Viewer, target and class of what changed in view lists, by scene, ascending.
    changed: BTreeMap<SceneId, Vec<(u32, u32, u8)>>,
    workers: Vec<Worker>,
}

impl Replicator {
    /// Whether a snapshot of this object is needed.
    pub fn is_wanted(&self, scene: SceneId, id: u32) -> bool {
        let start = self
            .wanted
            .partition_point(|&(s, i, _)| (s, i) < (scene, id));
        self.wanted
            .get(start)
            .is_some_and(|&(s, i, _)| (s, i) == (scene, id))
    }
}

/// What one worker needs and makes.
#[derive(Debug, Default)]
struct Worker {
    scratch: Scratch,
    part: BatchPart,
    sent: SentCounters,
    wanted: Vec<(SceneId, u32, Variant)>,
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
        ..
    } = &mut *replicator;
    for scene in closed.read() {
        records.remove(&scene.id);
        changed.remove(&scene.id);
    }
    for (scene, _) in scenes.iter() {
        let records = records.entry(scene).or_default();
        records.begin(attributes.told().len());
        changed.entry(scene).or_default().clear();
    }
    for entered in entered.read() {
        if let Some(pairs) = changed.get_mut(&entered.scene) {
            pairs.push((entered.viewer.0, entered.target.0, entered.priority));
        }
    }
    for left in left.read() {
        if let Some(pairs) = changed.get_mut(&left.scene) {
            pairs.push((left.viewer.0, left.target.0, 0));
        }
    }
    changed.values_mut().for_each(|pairs| pairs.sort_unstable());
    follow_sessions(clients, &sessions, gone);
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

type Belonging = (
    &'static Object,
    Option<&'static TeamId>,
    Option<&'static PartyId>,
    Option<&'static GuildId>,
);

/// Who belongs to whom, where any attribute depends on it.
fn follow_standing(
    mut replicator: ResMut<Replicator>,
    attributes: Res<Attributes>,
    objects: Query<Belonging>,
) {
    if !attributes.ask_standing() {
        return;
    }
    for (object, team, party, guild) in &objects {
        if let Some(records) = replicator.scenes.get_mut(&object.scene()) {
            let standing = [
                team.map_or(0, |team| team.0 + 1),
                party.map_or(0, |party| party.0 + 1),
                guild.map_or(0, |guild| guild.0 + 1),
            ];
            records.stand(object.id().0, standing);
        }
    }
}

/// What a client is told of an object, by whom its own belongs to.
fn relation(attributes: &Attributes, own: Standing, other: Standing) -> Variant {
    let both = |nth: usize| own[nth] != 0 && own[nth] == other[nth];
    let mut relation = Audience::VIEWERS;
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
struct Job<'w> {
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
) -> Vec<Job<'w>> {
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
            Some((own, records, scene, interest)) => jobs.push(Job {
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
        workers,
        ..
    } = &mut *replicator;
    let allowance = settings.allowance(time.timestep().as_secs_f32());
    let own_variant = attributes.variant(Attributes::OWN);
    let mut jobs = jobs(clients, records, &sessions, &objects, &scenes);
    pool.for_each_chunk(&mut jobs, 32, workers, |worker, _, jobs| {
        for Job {
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
                worker.wanted.push((scene, id.0, own_variant));
            }
            let seen = |target, class| Seen {
                id: target,
                generation: interest.generation(ObjectId(target)).0,
                class,
            };
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
                    let now = views.visible(id.0, target).then(|| seen(target, class));
                    state.follow(target, now);
                }
            }
            let position = |id| views.position(id).unwrap_or_default();
            state.admit(allowance, position(id.0), position, &mut worker.scratch);
            let standing = records.standing(id.0);
            worker.wanted.extend(state.entering.iter().map(|entering| {
                let variant = relation(&attributes, standing, records.standing(entering.id));
                (scene, entering.id, variant)
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

type Walking = (
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
    objects: Query<(&Object, Walking)>,
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

/// The state of those who come into somebody's sight, once for all clients that learn the same of them.
fn record_snapshots(
    mut replicator: ResMut<Replicator>,
    mut outbox: ResMut<Outbox>,
    attributes: Res<Attributes>,
    scenes: Res<Scenes>,
    ids: Query<&SceneObjects>,
    objects: Query<(&Object, &SentValues)>,
) {
    let Replicator {
        scenes: records,
        wanted,
        ..
    } = &mut *replicator;
    for &(scene, id, variant) in &*wanted {
        let object = scenes
            .entity(scene)
            .and_then(|entity| ids.get(entity).ok())
            .and_then(|ids| objects.get(ids.entity(ObjectId(id))?).ok());
        let (Some((object, sent)), Some(records)) = (object, records.get_mut(&scene)) else {
            continue;
        };
        let motion = records.base_mut(id).motion;
        let told = &attributes.told()[usize::from(variant.0)];
        let span = outbox.batch_mut().share(|bytes| {
            collect::write_snapshot(bytes, object, motion, &attributes, (sent, told));
        });
        records.snapshots[usize::from(variant.0)].set(id, span);
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
    let mut jobs = jobs(clients, records, &sessions, &objects, &scenes);
    let shared = &*outbox.batch_mut().shared;
    pool.for_each_chunk(&mut jobs, 32, workers, |worker, _, jobs| {
        let Worker {
            scratch,
            part,
            sent,
            ..
        } = worker;
        for Job {
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
