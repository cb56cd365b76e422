//! Crowds in the tick.

use bevy_app::{App, FixedPostUpdate, FixedPreUpdate, FixedUpdate, Plugin};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use glam::Vec2;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::arrivals::{ArrivalsPlugin, arrive};
use super::attributes::{self, Experience, Health, Level, Mana, Power, Stirred, stir};
use super::behaviour::{Behaviour, Mind, next_goal};
use super::clients::{self, SyntheticClients};
use super::line::LineSpec;
use super::lobby::queue_up;
use super::place::CrowdArea;
use crate::aoi::{SceneInterest, ViewCaps, Viewable, Viewer};
use crate::instance::InstanceSystems;
use crate::map::SceneMap;
use crate::movement::{MoveRefused, MovementPlugin, Speed, Walker};
use crate::nav::{Path, PathClass, PathRequest};
use crate::session::{LoggedIn, control};
use crate::sim::{self, HashAppExt, RandomStreams, SimSystems, SimTick, StateHasher};
use crate::sync::SyncPlugin;
use crate::wire::ClientId;
use crate::world::{
    Despawned, GuildId, KindClass, KindId, Object, ObjectHashAppExt, ObjectId, ObjectKinds,
    PARTY_PLAYERS_MAX, Parties, PlayerId, Position, Scene, SceneObjects, TeamId, WorldError,
    join_party, spawn_object,
};

/// The longest way of the class `Npc`, in metres.
const NPC_WAY_M: f32 = 20.0;

/// Ticks after which an individual looks whether it has arrived, or sees somebody.
pub(super) const LOOK_TICKS: u64 = 10;

/// Seconds over which a new crowd begins to move.
pub(super) const STAGGER_S: f64 = 10.0;

/// Synthetic crowds. Adds [`MovementPlugin`] and [`SyncPlugin`], and all that they need, when they are missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct CrowdPlugin;

impl Plugin for CrowdPlugin {
    /// Plugins that need this one add it, so it may come more than once.
    fn is_unique(&self) -> bool {
        false
    }

    fn build(&self, app: &mut App) {
        if app.is_plugin_added::<Self>() {
            return;
        }
        sim::install(app);
        app.add_plugins(MovementPlugin);
        app.add_plugins(SyncPlugin);
        app.add_plugins(ArrivalsPlugin);
        if let Err(error) = attributes::register(app) {
            tracing::error!(%error, "the crowd's attributes are not replicated");
        }
        app.init_resource::<Crowds>()
            .init_resource::<SyntheticClients>()
            .init_resource::<LineSpec>()
            .add_systems(
                FixedPreUpdate,
                (
                    (clients::churn, clients::send).chain().run_if(is_awake),
                    clients::model_lines,
                )
                    .chain(),
            )
            .add_systems(FixedPostUpdate, clients::receive)
            .configure_sets(FixedUpdate, CrowdSystems.after(InstanceSystems))
            .add_systems(
                FixedUpdate,
                (
                    (follow_members, welcome, follow_routes).chain(),
                    (think, act).chain().run_if(is_awake).before(arrive),
                )
                    .chain()
                    .in_set(CrowdSystems)
                    .in_set(SimSystems::Think),
            )
            .add_systems(
                FixedUpdate,
                queue_up
                    .run_if(is_awake)
                    .after(arrive)
                    .in_set(CrowdSystems)
                    .in_set(SimSystems::Think),
            )
            .hash_component::<Behaviour>("behaviour")
            .hash_component::<Mind>("mind")
            .hash_part("crowds", |world, hasher| {
                let crowds = world.resource::<Crowds>();
                for crowd in &crowds.all {
                    hasher.write_u64(crowd.members.len() as u64);
                    hasher.write_u64(crowd.activity_due.to_bits());
                }
                world.resource::<SyntheticClients>().hash(hasher);
            });
    }
}

/// All that crowds do in `Think`; scripts run before it.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CrowdSystems;

/// What a crowd is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct CrowdSpec {
    /// What scripts call it; several crowds may share a tag.
    pub tag: String,
    /// The kind of its individuals; of class `Player`, each is a synthetic player with a session.
    pub kind: KindId,
    /// How many.
    pub count: u32,
    /// The scene's entity.
    pub scene: Entity,
    /// Where they appear.
    pub at: CrowdArea,
    /// Their team.
    pub team: Option<TeamId>,
    /// Their guild.
    pub guild: Option<GuildId>,
    /// Players a party, up to five; 0 and 1 make none.
    pub party_size: u8,
    /// What they do.
    pub behaviour: Behaviour,
    /// How fast they walk, in metres a second.
    pub speed_m_s: f32,
    /// How often each of them changes an attribute, a second.
    pub attributes_per_s: f32,
    /// The share of its players that receive packets and hold a mirror.
    pub clients: f32,
    /// How many messages each of its players sends, a second.
    pub messages_per_s: f32,
    /// How many of its players log out a second, to come back a little later.
    pub churn_per_s: f32,
    /// How many its players see.
    pub caps: ViewCaps,
}

impl CrowdSpec {
    /// A crowd that stands about.
    #[must_use]
    pub fn new(
        tag: impl Into<String>,
        kind: KindId,
        count: u32,
        scene: Entity,
        at: CrowdArea,
    ) -> Self {
        Self {
            tag: tag.into(),
            kind,
            count,
            scene,
            at,
            team: None,
            guild: None,
            party_size: 0,
            behaviour: Behaviour::Idle,
            speed_m_s: 1.5,
            attributes_per_s: 0.0,
            clients: 0.0,
            messages_per_s: 10.0,
            churn_per_s: 0.0,
            caps: ViewCaps {
                players: 100,
                npcs: 50,
                things: 50,
            },
        }
    }
}

/// The place of a crowd in [`Crowds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CrowdId(pub u32);

/// Which crowd an individual belongs to.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member(pub CrowdId);

/// All crowds, in the order in which they came.
#[derive(Resource, Debug, Default)]
pub struct Crowds {
    pub(super) all: Vec<CrowdState>,
    /// Nobody does anything any more, see [`rest`].
    pub(super) resting: bool,
}

/// A crowd and those of it who live.
#[derive(Debug)]
pub(super) struct CrowdState {
    pub spec: CrowdSpec,
    pub members: Vec<Entity>,
    /// Changes of attributes that are due; below 1 after each tick.
    activity_due: f64,
}

impl Crowds {
    /// The crowds of a tag.
    pub fn tagged(&self, tag: &str) -> impl Iterator<Item = CrowdId> {
        let tagged = self
            .all
            .iter()
            .enumerate()
            .filter(move |(_, crowd)| crowd.spec.tag == tag);
        tagged.map(|(place, _)| CrowdId(place as u32))
    }

    /// What a crowd is made of.
    #[must_use]
    pub fn spec(&self, id: CrowdId) -> Option<&CrowdSpec> {
        self.all.get(id.0 as usize).map(|crowd| &crowd.spec)
    }
}

/// Adds a crowd: its NPCs appear at once, its players log in through the inbox from the next tick on.
///
/// # Errors
/// [`WorldError`] of the first NPC that could not be spawned; those before it stay.
pub fn add_crowd(world: &mut World, spec: CrowdSpec) -> Result<CrowdId, WorldError> {
    let class = world
        .resource::<ObjectKinds>()
        .get(spec.kind)
        .ok_or(WorldError::NoSuchKind(spec.kind))?
        .class;
    let id = CrowdId(world.resource::<Crowds>().all.len() as u32);
    let (count, party_size) = (spec.count, spec.party_size);
    let receiving = (f64::from(spec.clients.clamp(0.0, 1.0)) * f64::from(count)).round() as u32;
    world.resource_mut::<Crowds>().all.push(CrowdState {
        spec,
        members: Vec::new(),
        activity_due: 0.0,
    });
    if class == KindClass::Player {
        let first = world
            .resource_mut::<SyntheticClients>()
            .enlist(id, count, receiving);
        make_parties(world, first, count, party_size)?;
    } else {
        for nth in 0..count {
            spawn_member(world, id, u64::from(nth), ())?;
        }
    }
    Ok(id)
}

fn make_parties(
    world: &mut World,
    first: PlayerId,
    count: u32,
    size: u8,
) -> Result<(), WorldError> {
    let size = u32::from(size).min(PARTY_PLAYERS_MAX as u32);
    if size < 2 {
        return Ok(());
    }
    for leader in (0..count).step_by(size as usize) {
        let party = world.resource_mut::<Parties>().make()?;
        for nth in leader..(leader + size).min(count) {
            join_party(world, party, PlayerId(first.0 + u64::from(nth)))?;
        }
    }
    Ok(())
}

/// A generator for one individual at one time: depends on the seed, the individual and the time, and on nothing else.
pub(super) fn individual_random(seed: u64, purpose: u64, who: u64, when: u64) -> Pcg64Mcg {
    let mut hasher = StateHasher::default();
    [seed, purpose, who, when]
        .into_iter()
        .for_each(|word| hasher.write_u64(word));
    Pcg64Mcg::seed_from_u64(hasher.finish_u64())
}

/// Spawns an individual of a crowd; `who` tells individuals of the crowd apart.
pub(super) fn spawn_member(
    world: &mut World,
    id: CrowdId,
    who: u64,
    extra: impl Bundle,
) -> Result<Entity, WorldError> {
    let spec = world
        .resource::<Crowds>()
        .spec(id)
        .cloned()
        .ok_or(WorldError::NoSuchObject)?;
    let class = world
        .resource::<ObjectKinds>()
        .get(spec.kind)
        .map(|kind| kind.class);
    let entity = spawn_individual(
        world,
        &spec,
        u64::from(id.0) << 40 | who,
        (Member(id), extra),
    )?;
    if class != Some(KindClass::Player) {
        world.entity_mut(entity).insert(Walker);
    }
    world.resource_mut::<Crowds>().all[id.0 as usize]
        .members
        .push(entity);
    Ok(entity)
}

/// Spawns somebody like those of a crowd, somewhere in its place, who belongs to none; `who` tells individuals apart. One of
/// class `Player` gets a view list. It needs a [`Walker`] for the server to walk it.
///
/// # Errors
/// See [`spawn_object`].
pub fn spawn_individual(
    world: &mut World,
    spec: &CrowdSpec,
    who: u64,
    extra: impl Bundle,
) -> Result<Entity, WorldError> {
    let class = world
        .resource::<ObjectKinds>()
        .get(spec.kind)
        .map(|kind| kind.class);
    let tick = world.resource::<SimTick>().0;
    let seed = world.resource::<RandomStreams>().seed();
    let mut random = individual_random(seed, 1 << 32, who, tick);
    let position = free_position(world, spec.scene, &spec.at, &mut random);
    let hz = 1.0 / world.resource::<Time<Fixed>>().timestep().as_secs_f64();
    let delay = random.random_range(0.0..STAGGER_S) * hz;
    let mind = Mind {
        home: position,
        next_tick: tick + delay as u64,
        goals: 0,
        resting: false,
    };
    let body = (
        Viewable::default(),
        Speed(spec.speed_m_s),
        attributes::fresh(),
    );
    let entity = spawn_object(
        world,
        spec.scene,
        spec.kind,
        position,
        (body, spec.behaviour.clone(), mind, extra),
    )?;
    let mut individual = world.entity_mut(entity);
    if class == Some(KindClass::Player) {
        individual.insert(Viewer::new(spec.caps));
    }
    if let Some(team) = spec.team {
        individual.insert(team);
    }
    if let Some(guild) = spec.guild {
        individual.insert(guild);
    }
    Ok(entity)
}

/// Brings individuals to rest, for good: nobody thinks, sends, comes, goes or changes, and whoever walks stops. Call it again
/// while searches are waiting. Parties that queue are not individuals, and go on.
pub fn rest(world: &mut World) {
    world.resource_mut::<Crowds>().resting = true;
    let mut paths = world.query::<&mut Path>();
    paths.iter_mut(world).for_each(|mut path| path.clear());
}

fn is_awake(crowds: Res<Crowds>) -> bool {
    !crowds.resting
}

/// A free spot of a place, in the largest region of the scene's map; its middle where the scene has no map.
pub(super) fn free_position(
    world: &World,
    scene: Entity,
    place: &CrowdArea,
    random: &mut Pcg64Mcg,
) -> Vec2 {
    let on_map = world.get::<SceneMap>(scene).and_then(|map| {
        let (region, _) = map.tiles().largest_region()?;
        let tile = place.free_tile(map.tiles(), map.tile_m(), region, random)?;
        Some(map.centre_of(tile))
    });
    on_map.unwrap_or_else(|| {
        let size_m = world
            .get::<crate::world::Scene>(scene)
            .map_or(Vec2::ZERO, Scene::size_m);
        place.point(random).clamp(Vec2::ZERO, size_m)
    })
}

/// Takes those who are gone off the lists.
fn follow_members(
    mut gone: MessageReader<Despawned>,
    mut crowds: ResMut<Crowds>,
    members: Query<&Member>,
) {
    let mut any = false;
    for message in gone.read() {
        any |= !members.contains(message.entity);
    }
    if any {
        for crowd in &mut crowds.all {
            crowd.members.retain(|&entity| members.contains(entity));
        }
    }
}

/// Gives every player that logged in a character.
fn welcome(world: &mut World, mut cursor: Local<bevy_ecs::message::MessageCursor<LoggedIn>>) {
    let new: Vec<LoggedIn> = cursor
        .read(world.resource::<Messages<LoggedIn>>())
        .copied()
        .collect();
    for LoggedIn { client, player } in new {
        let Some(crowd) = world.resource::<SyntheticClients>().crowd_of(player) else {
            continue;
        };
        if let Err(error) = give_character(world, crowd, client, player) {
            tracing::warn!(player = player.0, %error, "a synthetic player has no character");
        }
    }
}

fn give_character(
    world: &mut World,
    crowd: CrowdId,
    client: ClientId,
    player: PlayerId,
) -> Result<(), WorldError> {
    let entity = spawn_member(world, crowd, player.0, player)?;
    control(world, client, entity);
    Ok(())
}

/// How near a turning point counts as there, in metres: more than a quantum of the wire.
const THERE_M: f32 = 0.05;

/// The routes of players follow their moves; who was refused a move looks for another way.
fn follow_routes(
    mut refused: MessageReader<MoveRefused>,
    mut routes: Query<(&Object, &Position, &mut Path), (With<Member>, Without<Walker>)>,
    maps: Query<&SceneMap>,
) {
    for (object, position, mut path) in &mut routes {
        let Some(&turn) = path.remaining().first() else {
            continue;
        };
        let Ok(map) = maps.get(object.scene_entity()) else {
            continue;
        };
        if map.centre_of(turn).distance(position.0) <= THERE_M {
            let next = path.next() + 1;
            path.advance_to(next);
            // Who has arrived has no way any more, and is free to choose another.
            if path.remaining().is_empty() {
                path.clear();
            }
        }
    }
    for refusal in refused.read() {
        if let Ok((.., mut path)) = routes.get_mut(refusal.entity) {
            path.clear();
        }
    }
}

type Thinking = (
    Entity,
    &'static Object,
    &'static Position,
    &'static Behaviour,
    &'static mut Mind,
    Option<&'static Path>,
);

/// Individuals that have nothing to do, or look around for somebody, choose their next goal.
fn think(
    tick: Res<SimTick>,
    time: Res<Time<Fixed>>,
    streams: Res<RandomStreams>,
    mut individuals: Query<Thinking>,
    asking: Query<(), With<PathRequest>>,
    objects: Query<(&Object, &Position), Without<Mind>>,
    scenes: Query<(&SceneMap, Option<&SceneInterest>, &SceneObjects)>,
    mut commands: Commands,
    mut due: Local<Vec<(u64, Entity)>>,
    mut near: Local<Vec<u32>>,
) {
    due.clear();
    due.extend(
        individuals
            .iter()
            .filter(|(.., mind, _)| mind.next_tick <= tick.0)
            .map(|(entity, object, ..)| (object.key(), entity)),
    );
    // The navigator serves requests in their order, and storage order must not show.
    due.sort_unstable_by_key(|&(key, _)| key);
    let hz = (1.0 / time.timestep().as_secs_f64()) as f32;
    for &(key, entity) in &*due {
        let Ok((_, object, position, behaviour, ..)) = individuals.get(entity) else {
            continue;
        };
        let Ok((map, interest, ids)) = scenes.get(object.scene_entity()) else {
            continue;
        };
        let mut random = individual_random(streams.seed(), 2 << 32, key, tick.0);
        let looked_for = behaviour.looks_for();
        let seen = looked_for
            .zip(interest)
            .and_then(|((kind, sight_m), interest)| {
                interest
                    .views()
                    .nearby(position.0, sight_m, u8::MAX, &mut near);
                let found = near.iter().filter_map(|&id| {
                    let other = ids.entity(ObjectId(id))?;
                    let (at, other_kind) = individuals
                        .get(other)
                        .map(|(_, other, at, ..)| (at.0, other.kind()))
                        .or_else(|_| objects.get(other).map(|(other, at)| (at.0, other.kind())))
                        .ok()?;
                    (other_kind == kind && other != entity)
                        .then_some((at.distance_squared(position.0), at))
                });
                found.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, at)| at)
            });
        let position = position.0;
        let behaviour = behaviour.clone();
        let Ok((.., mut mind, path)) = individuals.get_mut(entity) else {
            continue;
        };
        // Whoever has asked waits for the way.
        let walking = path.is_some_and(|path| !path.is_empty()) || asking.contains(entity);
        mind.next_tick = tick.0 + LOOK_TICKS;
        if seen.is_none() && walking {
            continue;
        }
        if seen.is_none() && !mind.resting && mind.goals > 0 {
            mind.resting = true;
            mind.next_tick = tick.0 + (random.random_range(0.5..4.0f32) * hz) as u64;
            continue;
        }
        mind.resting = false;
        let goal = next_goal(&behaviour, &mind, position, seen, map, &mut random);
        if let Some(goal) = goal {
            mind.goals = mind.goals.wrapping_add(1);
            // Where it goes already needs no second search.
            let same = path.is_some_and(|path| path.goal() == Some(map.tile_at(goal)));
            if !same && map.tile_at(goal) != map.tile_at(position) {
                let class = if goal.distance(position) <= NPC_WAY_M {
                    PathClass::Npc
                } else {
                    PathClass::Travel
                };
                let request = PathRequest::of_class(goal, class);
                commands.entity(entity).try_insert(request);
            }
        } else {
            mind.next_tick = tick.0 + 10 * LOOK_TICKS;
        }
    }
}

type Attributed = (
    &'static mut Health,
    &'static mut Mana,
    &'static mut Level,
    &'static mut Power,
    &'static mut Experience,
);

/// The game's own doings: attributes change at each crowd's rate, on random members.
fn act(
    mut crowds: ResMut<Crowds>,
    mut streams: ResMut<RandomStreams>,
    time: Res<Time<Fixed>>,
    mut characters: Query<Attributed>,
) {
    let random = streams.stream("activity");
    let dt = time.timestep().as_secs_f64();
    for crowd in &mut crowds.all {
        if crowd.members.is_empty() {
            continue;
        }
        crowd.activity_due +=
            f64::from(crowd.spec.attributes_per_s) * crowd.members.len() as f64 * dt;
        while crowd.activity_due >= 1.0 {
            crowd.activity_due -= 1.0;
            let nth = random.random_range(0..crowd.members.len());
            let Ok((mut health, mut mana, mut level, mut power, mut experience)) =
                characters.get_mut(crowd.members[nth])
            else {
                continue;
            };
            // Only what changed is to be found changed.
            let stirred = stir(
                random,
                (
                    health.bypass_change_detection(),
                    mana.bypass_change_detection(),
                    level.bypass_change_detection(),
                    power.bypass_change_detection(),
                    experience.bypass_change_detection(),
                ),
            );
            match stirred {
                Stirred::Health => health.set_changed(),
                Stirred::Mana => mana.set_changed(),
                Stirred::Level => level.set_changed(),
                Stirred::Power => power.set_changed(),
                Stirred::Experience => experience.set_changed(),
            }
        }
    }
}
