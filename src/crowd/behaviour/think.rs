//! Thinking: whoever has nothing to do, or looks around for somebody, chooses where to go next.

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use bevy_time::{Fixed, Time};
use glam::Vec2;
use rand::RngExt;

use super::behave::{Behaviour, Senses};
use super::mind::Mind;
use crate::aoi::SceneInterest;
use crate::crowd::crowds::{LOOK_TICKS, individual_random};
use crate::map::SceneMap;
use crate::nav::{Path, PathClass, PathRequest};
use crate::sim::{RandomStreams, SimTick, Workers};
use crate::world::{Object, ObjectId, Position, SceneObjects};

/// So many think one after the other, on the same thread.
const PIECE: usize = 32;

/// The longest way of the class `Npc`, in metres.
const NPC_WAY_M: f32 = 20.0;

type Thinking = (
    &'static Object,
    &'static Position,
    &'static Behaviour,
    Option<&'static Path>,
);

/// One that looks around in this tick, and what comes of it.
pub(in crate::crowd) struct Thought {
    key: u64,
    entity: Entity,
    mind: Mind,
    /// The way that it asks for.
    way: Option<PathRequest>,
}

/// What those who think read, and nobody writes meanwhile.
#[derive(SystemParam)]
pub(in crate::crowd) struct Thinkers<'w, 's> {
    tick: Res<'w, SimTick>,
    time: Res<'w, Time<Fixed>>,
    streams: Res<'w, RandomStreams>,
    individuals: Query<'w, 's, Thinking>,
    asking: Query<'w, 's, (), With<PathRequest>>,
    objects: Query<'w, 's, (&'static Object, &'static Position)>,
    scenes: Query<
        'w,
        's,
        (
            &'static SceneMap,
            Option<&'static SceneInterest>,
            &'static SceneObjects,
        ),
    >,
}

/// Individuals that have nothing to do, or look around for somebody, choose their next goal: side by side, since what one
/// chooses depends on no other's choice. Their minds and requests are written by ascending key.
pub(in crate::crowd) fn think(
    thinkers: Thinkers,
    workers: Res<Workers>,
    mut minds: Query<(Entity, &Object, &mut Mind), (With<Behaviour>, With<Position>)>,
    mut commands: Commands,
    mut due: Local<Vec<Thought>>,
) {
    let tick = thinkers.tick.0;
    due.clear();
    let looking = minds.iter().filter(|(.., mind)| mind.next_tick <= tick);
    due.extend(looking.map(|(entity, object, &mind)| Thought {
        key: object.key(),
        entity,
        mind,
        way: None,
    }));
    // The navigator serves requests in their order, and storage order must not show.
    due.sort_unstable_by_key(|thought| thought.key);
    // Whoever looks for somebody takes longer, and mostly stands beside its like.
    let mut pieces: Vec<&mut [Thought]> = due.chunks_mut(PIECE).collect();
    workers.for_each_in_turn(&mut pieces, |piece| {
        for thought in piece.iter_mut() {
            choose(&thinkers, thought);
        }
    });
    for thought in &*due {
        if let Ok((.., mut mind)) = minds.get_mut(thought.entity) {
            *mind = thought.mind;
        }
        if let Some(way) = thought.way {
            commands.entity(thought.entity).try_insert(way);
        }
    }
}

/// What one chooses; nothing where there is no map.
fn choose(thinkers: &Thinkers, thought: &mut Thought) {
    let &mut Thought { key, entity, .. } = thought;
    let Ok((object, position, behaviour, path)) = thinkers.individuals.get(entity) else {
        return;
    };
    let Ok((map, interest, ids)) = thinkers.scenes.get(object.scene_entity()) else {
        return;
    };
    let (tick, position) = (thinkers.tick.0, position.0);
    let hz = (1.0 / thinkers.time.timestep().as_secs_f64()) as f32;
    let mut random = individual_random(thinkers.streams.seed(), 2 << 32, key, tick);
    let find = |id: u32| {
        let other = ids.entity(ObjectId(id)).filter(|&other| other != entity)?;
        let (object, at) = thinkers.objects.get(other).ok()?;
        Some((object.kind(), at.0))
    };
    let seen = behaviour.looks_for().zip(interest);
    let seen = seen.and_then(|(wanted, interest)| {
        // Whoever was teleported since is known where it was.
        let is_there = |at: Vec2| at.distance(position) <= wanted.sight_m;
        let is_wanted = |id| find(id).is_some_and(|(kind, at)| kind == wanted.kind && is_there(at));
        let views = interest.views();
        let nearest = views.nearest(position, wanted.sight_m, is_wanted)?;
        find(nearest).map(|(_, at)| at)
    });
    // Whoever has asked waits for the way.
    let walking = path.is_some_and(|path| !path.is_empty()) || thinkers.asking.contains(entity);
    let mind = &mut thought.mind;
    mind.next_tick = tick + LOOK_TICKS;
    if seen.is_none() && walking {
        return;
    }
    if seen.is_none() && !mind.resting && mind.goals > 0 {
        mind.resting = true;
        mind.next_tick = tick + (random.random_range(0.5..4.0f32) * hz) as u64;
        return;
    }
    mind.resting = false;
    let senses = Senses {
        position,
        home: mind.home,
        goals: mind.goals,
        nearest: seen,
        tick,
        map,
    };
    let Some(goal) = behaviour.next_goal(&senses, &mut random) else {
        mind.next_tick = tick + 10 * LOOK_TICKS;
        return;
    };
    mind.goals = mind.goals.wrapping_add(1);
    // Where it goes already needs no second search.
    let same = path.is_some_and(|path| path.goal() == Some(map.tile_at(goal)));
    if !same && map.tile_at(goal) != map.tile_at(position) {
        thought.way = Some(way(position, goal));
    }
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
