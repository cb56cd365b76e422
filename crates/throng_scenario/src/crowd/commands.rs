//! Commands of scripts for crowds, and for individuals selected among the [`members`] of a tag.

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};

use super::area::CrowdArea;
use super::attributes::{attribute, set_attribute};
use super::behaviour::{Behaviour, BehaviourState};
use super::clients::SyntheticClients;
use super::crowds::{CrowdId, CrowdMember, Crowds, individual_random};
use super::spawn::free_position;
use throng::aoi::Viewable;
use throng::nav::NavPath;
use throng::session::TransportHandle;
use throng::sim::{RandomStreams, SimTick};
use throng::wire::ClientMessage;
use throng::world::{Object, TeamId, WorldError, change_scene, despawn_object, teleport};

/// Returns up to `count` living individuals with a tag; all if `count` is `None`.
#[must_use]
pub fn members(world: &World, tag: &str, count: Option<u32>) -> Vec<Entity> {
    let Some(crowds) = world.get_resource::<Crowds>() else {
        return Vec::new();
    };
    let all = crowds
        .crowds
        .iter()
        .filter(|crowd| crowd.spec.tag == tag)
        .flat_map(|crowd| &crowd.members);
    let alive = all
        .copied()
        .filter(|&entity| world.get::<Object>(entity).is_some());
    alive
        .take(count.map_or(usize::MAX, |count| count as usize))
        .collect()
}

/// Despawns individuals; players keep their session.
pub fn despawn_some(world: &mut World, individuals: &[Entity]) {
    for &entity in individuals {
        // An error means that the individual no longer exists.
        let _ = despawn_object(world, entity);
    }
}

/// Teleports individuals within their scene.
///
/// # Errors
/// The first [`WorldError`]; the individuals before it have moved.
pub fn teleport_some(
    world: &mut World,
    individuals: &[Entity],
    to: &CrowdArea,
) -> Result<(), WorldError> {
    for &entity in individuals {
        let Some(&object) = world.get::<Object>(entity) else {
            continue;
        };
        let mut random = random_of(world, object);
        let position = free_position(world, object.scene_entity(), to, &mut random);
        teleport(world, entity, position)?;
        set_home(world, entity, position);
    }
    Ok(())
}

/// Moves individuals to another scene.
///
/// # Errors
/// The first [`WorldError`]; the individuals before it have moved.
pub fn change_scene_of(
    world: &mut World,
    individuals: &[Entity],
    scene: Entity,
    at: &CrowdArea,
) -> Result<(), WorldError> {
    let mut all = individuals.iter();
    all.try_for_each(|&entity| move_individual(world, entity, scene, at))
}

/// Moves an individual to another scene, which becomes its home.
///
/// # Errors
/// [`WorldError`]; nothing is changed then.
pub fn move_individual(
    world: &mut World,
    entity: Entity,
    scene: Entity,
    at: &CrowdArea,
) -> Result<(), WorldError> {
    let object = world.get::<Object>(entity).copied();
    let mut random = random_of(world, object.ok_or(WorldError::NoSuchObject { entity })?);
    let position = free_position(world, scene, at, &mut random);
    change_scene(world, entity, scene, position)?;
    set_home(world, entity, position);
    Ok(())
}

/// Moves an individual back to the area where its crowd spawns, and returns that scene.
///
/// # Errors
/// [`WorldError`]; nothing is changed then. [`WorldError::NoSuchObject`] also when it belongs to no crowd.
pub fn send_home(world: &mut World, entity: Entity) -> Result<Entity, WorldError> {
    let crowds = world.resource::<Crowds>();
    let spec = world
        .get::<CrowdMember>(entity)
        .and_then(|member| crowds.spec(member.0));
    let (scene, at) = spec
        .map(|spec| (spec.scene, spec.at))
        .ok_or(WorldError::NoSuchObject { entity })?;
    move_individual(world, entity, scene, &at)?;
    Ok(scene)
}

/// Changes the team of individuals.
pub fn set_team_of(world: &mut World, individuals: &[Entity], team: Option<TeamId>) {
    for &entity in individuals {
        match team {
            Some(team) => world.entity_mut(entity).insert(team),
            None => world.entity_mut(entity).remove::<TeamId>(),
        };
    }
}

/// Changes an attribute of individuals by a function of its value. `false` when one of them has no attribute of that name.
pub fn set_attribute_of(
    world: &mut World,
    individuals: &[Entity],
    name: &str,
    change: impl Fn(i64) -> i64,
) -> bool {
    let mut all = true;
    for &entity in individuals {
        all &= attribute(world, entity, name)
            .is_some_and(|value| set_attribute(world, entity, name, change(value)));
    }
    all
}

/// Hides individuals from all views, or shows them again.
pub fn hide_some(world: &mut World, individuals: &[Entity], hidden: bool) {
    for &entity in individuals {
        if let Some(mut viewable) = world.get_mut::<Viewable>(entity) {
            let shown = *viewable;
            viewable.set_if_neq(Viewable { hidden, ..shown });
        }
    }
}

/// Replaces the behaviour of the individuals with a tag and of later members of their crowds. Takes effect within one second.
pub fn set_behaviour_of(world: &mut World, tag: &str, behaviour: &Behaviour) {
    let tagged: Vec<CrowdId> = world.resource::<Crowds>().with_tag(tag).collect();
    for id in tagged {
        world.resource_mut::<Crowds>().crowds[id.0 as usize]
            .spec
            .behaviour = behaviour.clone();
    }
    let now = world.resource::<SimTick>().0;
    let hz = (1.0 / world.resource::<Time<Fixed>>().timestep().as_secs_f64()).ceil() as u64;
    for entity in members(world, tag, None) {
        let spread = world
            .get::<Object>(entity)
            .map_or(0, |object| u64::from(object.id().0) % hz.max(1));
        set_behaviour(world, entity, behaviour, now + spread);
    }
}

/// Gives an individual another behaviour from tick `from_tick` on; does nothing when it no longer exists.
pub fn set_behaviour(world: &mut World, entity: Entity, behaviour: &Behaviour, from_tick: u64) {
    let Ok(mut entity) = world.get_entity_mut(entity) else {
        return;
    };
    if let Some(mut state) = entity.get_mut::<BehaviourState>() {
        (state.next_decision_tick, state.goal_count, state.is_resting) = (from_tick, 0, false);
    }
    if let Some(mut path) = entity.get_mut::<NavPath>() {
        path.clear();
    }
    entity.insert(behaviour.clone());
}

/// Schedules the login of up to `count` offline players with a tag, over all its crowds, for the next tick.
pub fn login_some(world: &mut World, tag: &str, count: Option<u32>) {
    let tagged: Vec<CrowdId> = world.resource::<Crowds>().with_tag(tag).collect();
    let mut synthetics = world.resource_mut::<SyntheticClients>();
    let mut left = count.unwrap_or(u32::MAX);
    for id in tagged {
        left -= synthetics.schedule_logins(id, left);
    }
}

/// Logs out up to `count` players with a tag, over all its crowds, through the inbox. They stay offline until [`login_some`].
pub fn logout_some(world: &mut World, tag: &str, count: Option<u32>) {
    let tagged: Vec<CrowdId> = world.resource::<Crowds>().with_tag(tag).collect();
    let mut synthetics = world.resource_mut::<SyntheticClients>();
    let (mut leaving, max) = (Vec::new(), count.map_or(usize::MAX, |count| count as usize));
    for id in tagged {
        let left = u32::try_from(max - leaving.len()).unwrap_or(u32::MAX);
        leaving.extend(synthetics.log_out_players(id, left));
    }
    let transport = world.resource::<TransportHandle>().clone();
    let bytes = ClientMessage::Logout.to_bytes();
    for client in leaving {
        // At the inbox's limit the message is lost and counted; the session then stays open without its player.
        let _ = transport.receive(client, &bytes);
    }
}

fn random_of(world: &World, object: Object) -> rand_pcg::Pcg64Mcg {
    let seed = world.resource::<RandomStreams>().seed();
    individual_random(seed, 4 << 32, object.key(), world.resource::<SimTick>().0)
}

/// Sets the home of an individual to the position where it was placed, and schedules its next decision.
fn set_home(world: &mut World, entity: Entity, home: glam::Vec2) {
    let now = world.resource::<SimTick>().0;
    if let Some(mut state) = world.get_mut::<BehaviourState>(entity) {
        (state.home, state.next_decision_tick, state.is_resting) = (home, now + 1, false);
    }
}
