//! Thinking: whoever has nothing to do, or looks around for somebody, chooses where to go next.

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use glam::Vec2;
use rand::RngExt;

use super::behave::{Behaviour, LooksFor, Senses};
use super::mind::Mind;
use crate::aoi::SceneInterest;
use crate::crowd::crowds::{LOOK_TICKS, individual_random};
use crate::map::SceneMap;
use crate::nav::{Path, PathClass, PathRequest};
use crate::sim::{RandomStreams, SimTick};
use crate::world::{KindId, Object, ObjectId, Position, SceneObjects};

/// The longest way of the class `Npc`, in metres.
const NPC_WAY_M: f32 = 20.0;

type Thinking = (
    Entity,
    &'static Object,
    &'static Position,
    &'static Behaviour,
    &'static mut Mind,
    Option<&'static Path>,
);

/// Individuals that have nothing to do, or look around for somebody, choose their next goal.
pub(in crate::crowd) fn think(
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
    collect_due(&individuals, tick.0, &mut due);
    let hz = (1.0 / time.timestep().as_secs_f64()) as f32;
    for &(key, entity) in &*due {
        let Ok((_, object, position, behaviour, ..)) = individuals.get(entity) else {
            continue;
        };
        let Ok((map, interest, ids)) = scenes.get(object.scene_entity()) else {
            continue;
        };
        let mut random = individual_random(streams.seed(), 2 << 32, key, tick.0);
        let find = |id: u32| {
            let other = ids.entity(ObjectId(id)).filter(|&other| other != entity)?;
            let of_crowd = individuals
                .get(other)
                .map(|(_, object, at, ..)| (object, at));
            let (object, at) = of_crowd.or_else(|_| objects.get(other)).ok()?;
            Some((object.kind(), at.0))
        };
        let seen = behaviour.looks_for().zip(interest);
        let seen = seen.and_then(|(wanted, interest)| {
            let views = interest.views();
            views.nearby(position.0, wanted.sight_m, u8::MAX, &mut near);
            nearest(&near, wanted, position.0, find)
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
        let senses = Senses {
            position,
            home: mind.home,
            goals: mind.goals,
            nearest: seen,
            tick: tick.0,
            map,
        };
        let goal = behaviour.next_goal(&senses, &mut random);
        let Some(goal) = goal else {
            mind.next_tick = tick.0 + 10 * LOOK_TICKS;
            continue;
        };
        mind.goals = mind.goals.wrapping_add(1);
        // Where it goes already needs no second search.
        let same = path.is_some_and(|path| path.goal() == Some(map.tile_at(goal)));
        if !same && map.tile_at(goal) != map.tile_at(position) {
            commands.entity(entity).try_insert(way(position, goal));
        }
    }
}

/// Those who look in this tick, by their keys.
fn collect_due(individuals: &Query<Thinking>, tick: u64, due: &mut Vec<(u64, Entity)>) {
    due.clear();
    due.extend(
        individuals
            .iter()
            .filter(|(.., mind, _)| mind.next_tick <= tick)
            .map(|(entity, object, ..)| (object.key(), entity)),
    );
    // The navigator serves requests in their order, and storage order must not show.
    due.sort_unstable_by_key(|&(key, _)| key);
}

/// Where the nearest is of those who are looked for, among some objects; the first of those who are equally near.
fn nearest(
    near: &[u32],
    wanted: LooksFor,
    position: Vec2,
    find: impl Fn(u32) -> Option<(KindId, Vec2)>,
) -> Option<Vec2> {
    let wanted = near
        .iter()
        .filter_map(|&id| find(id))
        .filter(|&(kind, _)| kind == wanted.kind)
        .map(|(_, at)| (at.distance_squared(position), at));
    wanted.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, at)| at)
}

/// The request for a way: a short one is searched sooner.
fn way(position: Vec2, goal: Vec2) -> PathRequest {
    let is_short = goal.distance(position) <= NPC_WAY_M;
    let class = if is_short {
        PathClass::Npc
    } else {
        PathClass::Travel
    };
    PathRequest::of_class(goal, class)
}
