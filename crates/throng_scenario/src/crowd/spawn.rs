//! Adding crowds and spawning their members.

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use glam::Vec2;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::area::CrowdArea;
use super::attributes;
use super::authenticator::CrowdAuthenticator;
use super::behaviour::BehaviourState;
use super::clients::SyntheticClients;
use super::crowds::{
    CrowdId, CrowdMember, CrowdSpec, CrowdState, Crowds, PLACEMENT_WARNINGS_MAX, STAGGER_S,
    individual_random,
};
use super::custom_attributes;
use throng::aoi::{Viewable, Viewer};
use throng::map::SceneMap;
use throng::movement::{MaxSpeed, Walker};
use throng::nav::NavPath;
use throng::sim::{RandomStreams, SimTick};
use throng::world::{
    ObjectCategory, ObjectKinds, PARTY_PLAYERS_MAX, Parties, PlayerId, Position, SimScene,
    WorldError, join_party, spawn_object,
};

/// Maximum number of crowds in a run, including empty ones.
pub const CROWDS_MAX: usize = 1 << 16;

/// Maximum number of synthetic players in a run, online and offline.
pub const PLAYERS_MAX: usize = 1_000_000;

/// Adds a crowd: its NPCs spawn at once, its players log in through the inbox from the next tick on.
///
/// # Errors
/// [`WorldError`] of the first NPC that could not be spawned; those before it stay. [`WorldError::TooMany`] when there would be
/// more crowds than [`CROWDS_MAX`], or more synthetic players than [`PLAYERS_MAX`], in all; nothing is changed then.
pub fn add_crowd(world: &mut World, spec: CrowdSpec) -> Result<CrowdId, WorldError> {
    let class = world
        .resource::<ObjectKinds>()
        .get(spec.kind)
        .ok_or(WorldError::NoSuchKind(spec.kind))?
        .class;
    let crowds = world.resource::<Crowds>().crowds.len();
    let players = world.resource::<SyntheticClients>().player_count() + spec.count as usize;
    if crowds >= CROWDS_MAX {
        return Err(WorldError::TooMany {
            what: "crowds",
            max: CROWDS_MAX,
        });
    }
    if class == ObjectCategory::Player && players > PLAYERS_MAX {
        return Err(WorldError::TooMany {
            what: "synthetic players",
            max: PLAYERS_MAX,
        });
    }
    let id = CrowdId(crowds as u32);
    let (count, party_size, admission) = (spec.count, spec.party_size, spec.admission_class);
    let receiving =
        (f64::from(spec.client_share.clamp(0.0, 1.0)) * f64::from(count)).round() as u32;
    world.resource_mut::<Crowds>().crowds.push(CrowdState {
        spec,
        members: Vec::new(),
        outside: (0, 0.0),
        pending_attribute_changes: 0.0,
    });
    if class == ObjectCategory::Player {
        let first = world
            .resource_mut::<SyntheticClients>()
            .add_players(id, count, receiving);
        world
            .resource::<CrowdAuthenticator>()
            .classify(first, admission);
        make_parties(world, first, count, party_size)?;
    } else {
        for nth in 0..count {
            spawn_member(world, id, u64::from(nth), ())?;
        }
        warn_of_placement(world, id);
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
        let party = world.resource_mut::<Parties>().create()?;
        for nth in leader..(leader + size).min(count) {
            join_party(world, party, PlayerId(first.0 + u64::from(nth)))?;
        }
    }
    Ok(())
}

/// Spawns an individual of a crowd; `who` distinguishes individuals of the crowd.
pub(super) fn spawn_member(
    world: &mut World,
    id: CrowdId,
    who: u64,
    extra: impl Bundle,
) -> Result<Entity, WorldError> {
    let spec = world.resource::<Crowds>().crowds[id.0 as usize]
        .spec
        .clone();
    let class = world
        .resource::<ObjectKinds>()
        .get(spec.kind)
        .map(|kind| kind.class);
    let entity = spawn_individual(
        world,
        &spec,
        u64::from(id.0) << 40 | who,
        (CrowdMember(id), extra),
    )?;
    if class != Some(ObjectCategory::Player) {
        world.entity_mut(entity).insert(Walker);
    }
    let outside_m = misplacement_m(world, &spec, entity);
    let crowd = &mut world.resource_mut::<Crowds>().crowds[id.0 as usize];
    crowd.members.push(entity);
    if let Some(outside_m) = outside_m {
        crowd.outside = (crowd.outside.0 + 1, crowd.outside.1.max(outside_m));
        // Players spawn one by one as they log in, so each misplaced one logs.
        if class == Some(ObjectCategory::Player) {
            warn_of_placement(world, id);
        }
    }
    Ok(entity)
}

/// The distance of an individual from the area of its crowd, in metres; `None` if it is at most one tile.
fn misplacement_m(world: &World, spec: &CrowdSpec, entity: Entity) -> Option<f32> {
    let slack_m = world.get::<SceneMap>(spec.scene)?.tile_m();
    let position = world.get::<Position>(entity)?;
    let outside_m = spec.at.distance_m(position.0);
    (outside_m > slack_m).then_some(outside_m)
}

/// Logs, once per tag, that members of a crowd are outside its area.
fn warn_of_placement(world: &mut World, id: CrowdId) {
    let mut crowds = world.resource_mut::<Crowds>();
    let crowd = &crowds.crowds[id.0 as usize];
    let (outside, farthest_m) = crowd.outside;
    let (tag, placed) = (crowd.spec.tag.clone(), crowd.members.len());
    if outside == 0 || crowds.misplaced.len() >= PLACEMENT_WARNINGS_MAX {
        return;
    }
    if crowds.misplaced.insert(tag.clone()) {
        let farthest_m = farthest_m.round();
        tracing::warn!(
            crowd = tag,
            outside,
            placed,
            farthest_m,
            "crowd placed outside its area: no tile of the area is free and connected to the rest of the map"
        );
    }
}

/// Spawns an individual like those of a crowd, in its area, that is not a member; `who` distinguishes individuals. An individual
/// of class `Player` gets a view list. It needs a [`Walker`] for the server to move it.
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
    let state = BehaviourState {
        home: position,
        next_decision_tick: tick + delay as u64,
        goal_count: 0,
        is_resting: false,
    };
    let viewable = Viewable {
        keep: spec.keep,
        ..Viewable::default()
    };
    let body = (
        viewable,
        MaxSpeed(spec.speed_m_s),
        NavPath::default(),
        attributes::fresh(),
    );
    let entity = spawn_object(
        world,
        spec.scene,
        spec.kind,
        position,
        (body, spec.behaviour.clone(), state, extra),
    )?;
    custom_attributes::insert_default_values(world, entity);
    let mut individual = world.entity_mut(entity);
    if class == Some(ObjectCategory::Player) {
        individual.insert(Viewer {
            range_m: spec.view_range_m,
            ..Viewer::new(spec.caps)
        });
    }
    if let Some(team) = spec.team {
        individual.insert(team);
    }
    if let Some(guild) = spec.guild {
        individual.insert(guild);
    }
    Ok(entity)
}

/// A free position of an area, in the largest region of the scene's map. Without a map or a free tile: a random point of the area,
/// clamped to the scene.
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
            .get::<throng::world::SimScene>(scene)
            .map_or(Vec2::ZERO, SimScene::size_m);
        place.point(random).clamp(Vec2::ZERO, size_m)
    })
}
