//! The system in which individuals choose their next goals.

use bevy_ecs::prelude::*;
use bevy_ecs::query::ContiguousQueryData;
use bevy_ecs::system::SystemParam;
use bevy_time::{Fixed, Time};
use glam::Vec2;
use rand::RngExt;

use super::rule::{Behaviour, Perception};
use super::state::BehaviourState;
use crate::crowd::crowds::{PERCEPTION_INTERVAL_TICKS, individual_random};
use throng::aoi::SceneInterest;
use throng::map::SceneMap;
use throng::nav::{NavPath, PathRequest, SearchBudgetClass};
use throng::sim::{ColumnRows, RandomStreams, SimTick, TableColumn, Workers, chunks};
use throng::world::{Object, ObjectId, Position, SceneIds};

/// Rows per chunk of parallel work. Chunks are small because individuals with a target cost more and are mostly stored side by
/// side.
const CHUNK_ROWS: usize = 256;

/// Maximum straight-line distance to a goal for [`SearchBudgetClass::Short`], in metres.
const SHORT_PATH_M: f32 = 20.0;

type ThinkerQuery = (
    Entity,
    &'static Object,
    &'static Position,
    &'static Behaviour,
    Option<&'static NavPath>,
    &'static mut BehaviourState,
);

/// The requests of a chunk: each individual's key, and its path request.
pub(in crate::crowd) type ThinkerRequests = Vec<(u64, Entity, PathRequest)>;

/// The state that individuals read while they choose goals.
#[derive(SystemParam)]
pub(in crate::crowd) struct ThinkParams<'w, 's> {
    tick: Res<'w, SimTick>,
    time: Res<'w, Time<Fixed>>,
    streams: Res<'w, RandomStreams>,
    pending_requests: Query<'w, 's, (), With<PathRequest>>,
    objects: Query<'w, 's, (&'static Object, &'static Position)>,
    scenes: Query<
        'w,
        's,
        (
            &'static SceneMap,
            Option<&'static SceneInterest>,
            &'static SceneIds,
        ),
    >,
}

/// Chooses the next goals of individuals that are idle or see a target. The choices run in parallel, since none depends on another;
/// the path requests are inserted by ascending object key.
pub(in crate::crowd) fn think(
    surroundings: ThinkParams,
    workers: Res<Workers>,
    mut individuals: Query<ThinkerQuery>,
    mut commands: Commands,
    mut requests: Local<Vec<ThinkerRequests>>,
) {
    let tables = individuals.contiguous_iter_mut().into_iter().flatten();
    let mut tables: Vec<ThinkerTable> = tables.map(ThinkerTable::new).collect();
    let mut rows: Vec<ThinkerRows> = tables.iter_mut().flat_map(ThinkerTable::chunks).collect();
    if requests.len() < rows.len().max(1) {
        requests.resize_with(rows.len().max(1), Vec::new);
    }
    let mut work: Vec<_> = rows.iter_mut().zip(&mut *requests).collect();
    workers.for_each_in_turn(&mut work, |(rows, requests)| {
        rows.think(&surroundings, requests)
    });
    let (all, others) = requests.split_at_mut(1);
    let all = &mut all[0];
    others.iter_mut().for_each(|piece| all.append(piece));
    // The navigator serves requests in order, so the order must not depend on storage.
    all.sort_unstable_by_key(|&(key, ..)| key);
    for (_, entity, request) in all.drain(..) {
        commands.entity(entity).try_insert(request);
    }
}

/// A table of individuals.
struct ThinkerTable<'w> {
    entities: &'w [Entity],
    objects: &'w [Object],
    positions: &'w [Position],
    behaviours: &'w [Behaviour],
    paths: Option<&'w [NavPath]>,
    states: TableColumn<'w, BehaviourState>,
}

/// A range of rows of a [`ThinkerTable`].
struct ThinkerRows<'a> {
    entities: &'a [Entity],
    objects: &'a [Object],
    positions: &'a [Position],
    behaviours: &'a [Behaviour],
    paths: Option<&'a [NavPath]>,
    states: ColumnRows<'a, BehaviourState>,
}

/// An individual that thinks.
struct Thinker<'a> {
    entity: Entity,
    object: &'a Object,
    position: Vec2,
    behaviour: &'a Behaviour,
    path: Option<&'a NavPath>,
}

impl<'w> ThinkerTable<'w> {
    fn new(
        (entities, objects, positions, behaviours, paths, states): <ThinkerQuery as ContiguousQueryData>::Contiguous<'w, '_>,
    ) -> Self {
        Self {
            entities,
            objects,
            positions,
            behaviours,
            paths,
            states: TableColumn::of(states),
        }
    }

    fn chunks(&mut self) -> impl Iterator<Item = ThinkerRows<'_>> {
        let (mut entities, mut objects) = (self.entities, self.objects);
        let (mut positions, mut behaviours) = (self.positions, self.behaviours);
        let (mut paths, mut states) = (self.paths, self.states.rows());
        chunks(entities.len(), CHUNK_ROWS, move |rows| ThinkerRows {
            entities: entities.split_off(..rows).unwrap_or_default(),
            objects: objects.split_off(..rows).unwrap_or_default(),
            positions: positions.split_off(..rows).unwrap_or_default(),
            behaviours: behaviours.split_off(..rows).unwrap_or_default(),
            paths: paths.as_mut().and_then(|paths| paths.split_off(..rows)),
            states: states.take_first(rows),
        })
    }
}

impl ThinkerRows<'_> {
    /// Runs the decisions of all individuals for which one is due.
    fn think(&mut self, surroundings: &ThinkParams, requests: &mut ThinkerRequests) {
        let tick = surroundings.tick.0;
        for row in 0..self.entities.len() {
            if self.states.get(row).next_decision_tick > tick {
                continue;
            }
            let thinker = Thinker {
                entity: self.entities[row],
                object: &self.objects[row],
                position: self.positions[row].0,
                behaviour: &self.behaviours[row],
                path: self.paths.map(|paths| &paths[row]),
            };
            if let Some(request) = choose_goal(surroundings, &thinker, self.states.get_mut(row)) {
                requests.push((thinker.object.key(), thinker.entity, request));
            }
        }
    }
}

/// Runs the decision of one individual. Returns a path request, or `None` if it keeps its path, rests, has no goal, or its scene
/// has no map.
fn choose_goal(
    surroundings: &ThinkParams,
    &Thinker {
        entity,
        object,
        position,
        behaviour,
        path,
    }: &Thinker,
    state: &mut BehaviourState,
) -> Option<PathRequest> {
    let scene = surroundings.scenes.get(object.scene_entity());
    let (map, interest, ids) = scene.ok()?;
    let tick = surroundings.tick.0;
    let find = |id: u32| {
        let other = ids.entity(ObjectId(id)).filter(|&other| other != entity)?;
        let (object, at) = surroundings.objects.get(other).ok()?;
        Some((object.kind(), at.0))
    };
    let seen = behaviour.perception_target().zip(interest);
    let seen = seen.and_then(|(wanted, interest)| {
        // The interest grid may hold older positions, so the distance is checked with the current ones.
        let is_there = |at: Vec2| at.distance(position) <= wanted.sight_m;
        let is_wanted = |id| find(id).is_some_and(|(kind, at)| kind == wanted.kind && is_there(at));
        let views = interest.views();
        let nearest = views.nearest(position, wanted.sight_m, is_wanted)?;
        find(nearest).map(|(_, at)| at)
    });
    state.next_decision_tick = tick + PERCEPTION_INTERVAL_TICKS;
    // A pending path request counts as walking.
    let is_walking = || {
        path.is_some_and(|path| !path.is_empty()) || surroundings.pending_requests.contains(entity)
    };
    if seen.is_none() && is_walking() {
        return None;
    }
    let seed = surroundings.streams.seed();
    let mut random = individual_random(seed, 2 << 32, object.key(), tick);
    if seen.is_none() && !state.is_resting && state.goal_count > 0 {
        let hz = (1.0 / surroundings.time.timestep().as_secs_f64()) as f32;
        state.is_resting = true;
        state.next_decision_tick = tick + (random.random_range(0.5..4.0f32) * hz) as u64;
        return None;
    }
    state.is_resting = false;
    let senses = Perception {
        position,
        home: state.home,
        goal_count: state.goal_count,
        nearest_target: seen,
        tick,
        map,
    };
    let Some(goal) = behaviour.next_goal(&senses, &mut random) else {
        state.next_decision_tick = tick + 10 * PERCEPTION_INTERVAL_TICKS;
        return None;
    };
    state.goal_count = state.goal_count.wrapping_add(1);
    // The path to its current goal needs no second search.
    let same = path.is_some_and(|path| path.goal() == Some(map.tile_at(goal)));
    (!same && map.tile_at(goal) != map.tile_at(position)).then(|| path_request_to(position, goal))
}

/// Creates the path request; near goals get the budget class of short searches.
fn path_request_to(position: Vec2, goal: Vec2) -> PathRequest {
    let is_short = goal.distance(position) <= SHORT_PATH_M;
    let class = if is_short {
        SearchBudgetClass::Short
    } else {
        SearchBudgetClass::Long
    };
    PathRequest::with_class(goal, class)
}
