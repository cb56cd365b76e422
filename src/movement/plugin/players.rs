//! Validates and applies players' moves, and stops players that send none.
//!
//! ```text
//! MoveInput ─▶ grouped by entity ─▶ table rows, in chunks, in parallel ─▶ MoveRefused, in input order
//!              └ if there are few: one by one, looked up by entity
//! ```
//! Invariant: the inputs of a player are applied in their order. No input depends on those of another player.
//! Cost: one check per object for pending inputs, and one validation per move.

use bevy_ecs::prelude::*;
use bevy_ecs::query::ContiguousQueryData;
use bevy_ecs::system::SystemChangeTick;
use bevy_time::{Fixed, Time};
use glam::Vec2;
use tracing::debug;

use super::change_ticks::MovementChangeTicks;
use super::components::{LastMove, MaxSpeed, Walker};
use super::ground_cache::{GroundCache, MapQuery};
use super::settings::MovementSettings;
use super::stats::MovementStats;
use crate::movement::{MoveError, MoveRules, PlayerStep, step_m};
use crate::sim::{ColumnRows, SimTick, TableColumn, Workers, chunks};
use crate::wire::{tick_millihertz, wire_tick_s};
use crate::world::{Heading, MoveInput, Object, PlayerMotion, Position, SimScene, Velocity};

/// A player's move was not allowed; its object is where it was, with the requested heading.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::movement::MoveRefused;
///
/// fn suspect(mut refused: MessageReader<MoveRefused>) {
///     for MoveRefused { entity, reason } in refused.read() {
///         println!("{entity} did not move: {reason}");
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveRefused {
    /// The entity of the object.
    pub entity: Entity,
    /// Why it was refused.
    pub reason: MoveError,
}

/// The number of rows per work item.
const CHUNK_ROWS: usize = 1_024;

/// With fewer inputs than one per this many rows, objects are looked up one by one.
const ROWS_PER_INPUT_MAX: usize = 16;

const NONE: u32 = u32::MAX;

/// The inputs of a tick, chained by entity.
#[derive(Default)]
pub(super) struct InputChains {
    inputs: Vec<MoveInput>,
    /// For each input, the index of the next one with the same entity index.
    next: Vec<u32>,
    /// For each entity index, the index of its first input.
    first: Vec<u32>,
}

impl InputChains {
    /// Chains the inputs; before, each one is separate.
    fn chain(&mut self) {
        self.next.clear();
        self.next.resize(self.inputs.len(), NONE);
        for (place, input) in self.inputs.iter().enumerate().rev() {
            let index = input.entity.index_u32() as usize;
            if self.first.len() <= index {
                self.first.resize(index + 1, NONE);
            }
            self.next[place] = std::mem::replace(&mut self.first[index], place as u32);
        }
    }

    /// The index of the first input of an entity, possibly of another generation with the same entity index.
    #[inline]
    fn first_of(&self, entity: Entity) -> u32 {
        let index = entity.index_u32() as usize;
        self.first.get(index).copied().unwrap_or(NONE)
    }

    fn clear_chains(&mut self) {
        for input in &self.inputs {
            self.first[input.entity.index_u32() as usize] = NONE;
        }
    }
}

/// The results of a chunk.
#[derive(Default)]
pub(super) struct MovedChunk {
    inputs: usize,
    accepted: u64,
    /// Accepted moves that ended elsewhere than the input asked for.
    corrected: u64,
    /// The refused inputs, by their index.
    refused: Vec<(usize, Entity, MoveError)>,
}

impl MovedChunk {
    fn record(&mut self, place: usize, input: &MoveInput, moved: Result<MoveOutcome, MoveError>) {
        self.inputs += 1;
        match moved {
            Ok(applied) => {
                self.accepted += u64::from(!is_turn(input));
                self.corrected += u64::from(applied == MoveOutcome::Corrected);
            }
            Err(reason) => self.refused.push((place, input.entity, reason)),
        }
    }
}

type PlayerRow = (
    Entity,
    &'static Object,
    &'static mut Position,
    &'static mut Velocity,
    &'static mut Heading,
    Option<(&'static MaxSpeed, &'static mut LastMove)>,
);

/// The inputs of validation: scenes and maps.
type ScenesWithMaps<'w, 's> = (Query<'w, 's, &'static SimScene>, MapQuery<'w, 's>);

/// Validates and applies the players' inputs, in the order of the messages.
pub(super) fn move_players(
    mut messages: MessageReader<MoveInput>,
    clock: (Res<MovementSettings>, Res<SimTick>, Res<Time<Fixed>>),
    ticks: SystemChangeTick,
    workers: Res<Workers>,
    mut stats: ResMut<MovementStats>,
    mut own_steps: ResMut<MovementChangeTicks>,
    mut objects: Query<PlayerRow, Without<Walker>>,
    (scenes, maps): ScenesWithMaps,
    (mut chains, mut moved): (Local<InputChains>, Local<Vec<MovedChunk>>),
    mut refused: MessageWriter<MoveRefused>,
) {
    own_steps.players = Some(ticks.this_run());
    chains.inputs.clear();
    chains.inputs.extend(messages.read().copied());
    if chains.inputs.is_empty() {
        return;
    }
    let clock = MoveClock::new(&clock.0, &clock.1, &clock.2);
    let places = || StepCache {
        grounds: GroundCache::new(&maps),
        scenes: &scenes,
        last: None,
    };
    if moved.is_empty() {
        moved.push(MovedChunk::default());
    }
    if chains.inputs.len() * ROWS_PER_INPUT_MAX < objects.iter().len() {
        move_one_by_one(
            &chains.inputs,
            &mut objects,
            places(),
            &clock,
            &mut moved[0],
        );
    } else if let Ok(tables) = objects.contiguous_iter_mut() {
        chains.chain();
        let mut tables: Vec<PlayerTable> = tables.map(PlayerTable::of).collect();
        let mut rows: Vec<PlayerRows> = tables.iter_mut().flat_map(PlayerTable::chunks).collect();
        if moved.len() < rows.len() {
            moved.resize_with(rows.len(), MovedChunk::default);
        }
        let mut work: Vec<_> = rows.iter_mut().zip(&mut *moved).collect();
        workers.for_each_in_turn(&mut work, |(rows, moved)| {
            rows.move_all(&chains, places(), &clock, moved);
        });
        chains.clear_chains();
    }
    commit(
        &chains.inputs,
        &mut moved,
        &objects,
        &mut stats,
        &mut refused,
    );
}

/// Counts the moves, and reports refused ones, in the order of the messages.
fn commit(
    inputs: &[MoveInput],
    moved: &mut [MovedChunk],
    objects: &Query<PlayerRow, Without<Walker>>,
    stats: &mut MovementStats,
    messages: &mut MessageWriter<MoveRefused>,
) {
    let (all, others) = moved.split_at_mut(1);
    let all = &mut all[0];
    for piece in others {
        all.inputs += std::mem::take(&mut piece.inputs);
        all.accepted += std::mem::take(&mut piece.accepted);
        all.corrected += std::mem::take(&mut piece.corrected);
        all.refused.append(&mut piece.refused);
    }
    if all.inputs < inputs.len() {
        // Some are for walkers, or for despawned objects.
        let strangers = inputs.iter().enumerate();
        let strangers = strangers
            .filter(|(_, input)| !is_turn(input) && !objects.contains(input.entity))
            .map(|(place, input)| (place, input.entity, MoveError::NotMovable));
        all.refused.extend(strangers);
    }
    all.refused.sort_unstable_by_key(|&(place, ..)| place);
    for (_, entity, reason) in all.refused.drain(..) {
        debug!(?entity, %reason, "move refused");
        stats.moves_refused += 1;
        messages.write(MoveRefused { entity, reason });
    }
    stats.moves_accepted += std::mem::take(&mut all.accepted);
    stats.moves_corrected += std::mem::take(&mut all.corrected);
    all.inputs = 0;
}

const fn is_turn(input: &MoveInput) -> bool {
    matches!(input.motion, PlayerMotion::Stand | PlayerMotion::Turn)
}

/// A table of objects that players may move.
struct PlayerTable<'w> {
    entities: &'w [Entity],
    objects: &'w [Object],
    positions: TableColumn<'w, Position>,
    velocities: TableColumn<'w, Velocity>,
    headings: TableColumn<'w, Heading>,
    walks: Option<(&'w [MaxSpeed], TableColumn<'w, LastMove>)>,
}

/// Some of its rows.
struct PlayerRows<'a> {
    entities: &'a [Entity],
    objects: &'a [Object],
    positions: ColumnRows<'a, Position>,
    velocities: ColumnRows<'a, Velocity>,
    headings: ColumnRows<'a, Heading>,
    walks: Option<(&'a [MaxSpeed], ColumnRows<'a, LastMove>)>,
}

impl<'w> PlayerTable<'w> {
    fn of(
        (entities, objects, positions, velocities, headings, walks): <PlayerRow as ContiguousQueryData>::Contiguous<'w, '_>,
    ) -> Self {
        Self {
            entities,
            objects,
            positions: TableColumn::of(positions),
            velocities: TableColumn::of(velocities),
            headings: TableColumn::of(headings),
            walks: walks.map(|(speeds, last)| (speeds, TableColumn::of(last))),
        }
    }

    fn chunks(&mut self) -> impl Iterator<Item = PlayerRows<'_>> {
        let (mut entities, mut objects) = (self.entities, self.objects);
        let mut positions = self.positions.rows();
        let mut velocities = self.velocities.rows();
        let mut headings = self.headings.rows();
        let mut walks = self
            .walks
            .as_mut()
            .map(|(speeds, last)| (*speeds, last.rows()));
        chunks(entities.len(), CHUNK_ROWS, move |rows| PlayerRows {
            entities: entities.split_off(..rows).unwrap_or_default(),
            objects: objects.split_off(..rows).unwrap_or_default(),
            positions: positions.take_first(rows),
            velocities: velocities.take_first(rows),
            headings: headings.take_first(rows),
            walks: walks.as_mut().map(|(speeds, last)| {
                (
                    speeds.split_off(..rows).unwrap_or_default(),
                    last.take_first(rows),
                )
            }),
        })
    }
}

impl PlayerRows<'_> {
    /// Applies all inputs for these rows.
    fn move_all(
        &mut self,
        chains: &InputChains,
        mut places: StepCache,
        clock: &MoveClock,
        moved: &mut MovedChunk,
    ) {
        for row in 0..self.entities.len() {
            let place = chains.first_of(self.entities[row]);
            let Some(input) = chains.inputs.get(place as usize) else {
                continue;
            };
            if let Some(ground) = places.step_of(self.objects[row].scene_entity()).ground {
                ground.prefetch(match input.motion {
                    PlayerMotion::To(to) => to,
                    _ => self.positions.get(row).0,
                });
            }
        }
        for row in 0..self.entities.len() {
            let entity = self.entities[row];
            let mut place = chains.first_of(entity);
            if place == NONE {
                continue;
            }
            let on = places.step_of(self.objects[row].scene_entity());
            let mut body = self.state(row);
            while place != NONE {
                let input = &chains.inputs[place as usize];
                // Another entity may have the same index.
                if input.entity == entity {
                    moved.record(
                        place as usize,
                        input,
                        apply_move(on, &mut body, input, clock),
                    );
                }
                place = chains.next[place as usize];
            }
            self.set_state(row, body);
        }
    }

    fn state(&self, row: usize) -> MoveState {
        let walks = self.walks.as_ref();
        MoveState {
            position: *self.positions.get(row),
            velocity: *self.velocities.get(row),
            heading: *self.headings.get(row),
            walks: walks.map(|(speeds, last)| (speeds[row], *last.get(row))),
        }
    }

    fn set_state(&mut self, row: usize, body: MoveState) {
        self.positions.set_if_neq(row, body.position);
        self.velocities.set_if_neq(row, body.velocity);
        self.headings.set_if_neq(row, body.heading);
        if let (Some((_, last)), Some((_, moved))) = (&mut self.walks, body.walks) {
            last.set_if_neq(row, moved);
        }
    }
}

/// The same for few inputs.
fn move_one_by_one(
    inputs: &[MoveInput],
    objects: &mut Query<PlayerRow, Without<Walker>>,
    mut places: StepCache,
    clock: &MoveClock,
    moved: &mut MovedChunk,
) {
    for (place, input) in inputs.iter().enumerate() {
        let Ok((_, object, mut position, mut velocity, mut heading, walks)) =
            objects.get_mut(input.entity)
        else {
            continue;
        };
        let mut body = MoveState {
            position: *position,
            velocity: *velocity,
            heading: *heading,
            walks: walks.as_ref().map(|(speed, last)| (**speed, **last)),
        };
        let on = places.step_of(object.scene_entity());
        moved.record(place, input, apply_move(on, &mut body, input, clock));
        position.set_if_neq(body.position);
        velocity.set_if_neq(body.velocity);
        heading.set_if_neq(body.heading);
        if let (Some((_, mut last)), Some((_, moved))) = (walks, body.walks) {
            last.set_if_neq(moved);
        }
    }
}

/// Caches the step parameters of one scene: consecutive objects are usually in the same scene.
struct StepCache<'a, 'w, 's> {
    grounds: GroundCache<'a, 'w, 's>,
    scenes: &'a Query<'w, 's, &'static SimScene>,
    last: Option<(Entity, PlayerStep<'a>)>,
}

impl<'a> StepCache<'a, '_, '_> {
    /// The step parameters of a scene, for an object that does not move.
    fn step_of(&mut self, scene: Entity) -> PlayerStep<'a> {
        if let Some((last, on)) = self.last
            && last == scene
        {
            return on;
        }
        let on = PlayerStep {
            ground: self.grounds.ground_of(scene),
            size_m: self.scenes.get(scene).map_or(Vec2::ZERO, SimScene::size_m),
            step_m: 0.0,
        };
        self.last = Some((scene, on));
        on
    }
}

/// The time parameters of all moves of a tick.
struct MoveClock {
    tick: u64,
    tick_s: f32,
    /// The tick length as clients know it, so that both compute the same positions.
    wire_tick_s: f32,
    idle_after_ticks: u64,
    rules: MoveRules,
}

impl MoveClock {
    fn new(settings: &MovementSettings, tick: &SimTick, time: &Time<Fixed>) -> Self {
        let tick_s = time.timestep().as_secs_f32();
        Self {
            tick: tick.0,
            tick_s,
            wire_tick_s: wire_tick_s(tick_millihertz(tick_s)),
            idle_after_ticks: u64::from(settings.idle_after_ticks.max(1)),
            rules: settings.move_limits(),
        }
    }
}

/// The components that a move changes.
#[derive(Clone, Copy)]
struct MoveState {
    position: Position,
    velocity: Velocity,
    heading: Heading,
    walks: Option<(MaxSpeed, LastMove)>,
}

/// How an input was applied.
#[derive(Clone, Copy, PartialEq)]
enum MoveOutcome {
    /// The object is where the input asked for.
    AsRequested,
    /// A step in a direction that an obstacle turned or stopped.
    Corrected,
}

/// Turns an object, and moves it if the move is allowed.
fn apply_move(
    on: PlayerStep,
    body: &mut MoveState,
    input: &MoveInput,
    clock: &MoveClock,
) -> Result<MoveOutcome, MoveError> {
    body.heading = Heading(input.heading);
    match input.motion {
        PlayerMotion::Stand => {
            body.velocity = Velocity::default();
            return Ok(MoveOutcome::AsRequested);
        }
        PlayerMotion::Turn => return Ok(MoveOutcome::AsRequested),
        PlayerMotion::To(_) | PlayerMotion::Towards(_) => {}
    }
    let (speed, last) = body.walks.as_mut().ok_or(MoveError::NotMovable)?;
    let (speed, rules) = (speed.m_s(), &clock.rules);
    let on = PlayerStep {
        step_m: step_m(speed, clock.wire_tick_s),
        ..on
    };
    let since = clock.tick.saturating_sub(last.tick);
    let elapsed_s = since as f32 * clock.tick_s;
    let credit = last.budget.refilled(elapsed_s, speed, rules);
    let from = body.position.0;
    let (to, way_m) = on.walk(from, input.motion, credit, rules)?;
    *last = LastMove {
        tick: clock.tick,
        budget: credit.spent(way_m),
    };
    let (ticks, asked) = match input.motion {
        PlayerMotion::Towards(direction) => {
            // What a client without the map predicts.
            let open = PlayerStep { ground: None, ..on };
            (1, open.towards(from, direction))
        }
        // An object at rest began to move at some time since; delayed inputs are no faster than allowed.
        _ => (since.clamp(1, clock.idle_after_ticks), to),
    };
    let pace = (to - from) / (ticks as f32 * clock.tick_s);
    let pace = pace.clamp_length_max(speed * (1.0 + rules.tolerance));
    (body.position, body.velocity) = (Position(to), Velocity(pace));
    // Both are the same sum, so they are equal to the bit if nothing was in the way.
    Ok(if to == asked {
        MoveOutcome::AsRequested
    } else {
        MoveOutcome::Corrected
    })
}

/// Stops players without moves for some time.
pub(super) fn stop_idle_players(
    settings: Res<MovementSettings>,
    tick: Res<SimTick>,
    mut players: Query<(&LastMove, &mut Velocity), (With<MaxSpeed>, Without<Walker>)>,
) {
    let rest_after = u64::from(settings.idle_after_ticks.max(1));
    for (last, mut velocity) in &mut players {
        if tick.0.saturating_sub(last.tick) >= rest_after {
            velocity.set_if_neq(Velocity::default());
        }
    }
}
