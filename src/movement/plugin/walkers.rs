//! Moves walkers along their paths.
//!
//! ```text
//! table rows, in chunks, in parallel ─▶ Position, Velocity, Heading, NavPath ─▶ arrived and blocked walkers, sorted by key
//! ```
//! Invariant: walkers do not affect each other, so the order of rows shows only in the messages, and these are sorted.
//! Cost: a few map bits per walker; line-of-sight tests at waypoints.

use bevy_ecs::prelude::*;
use bevy_ecs::query::ContiguousQueryData;
use bevy_ecs::system::SystemChangeTick;
use bevy_time::{Fixed, Time};
use glam::Vec2;

use super::change_ticks::MovementChangeTicks;
use super::components::{MaxSpeed, Walker};
use super::ground_cache::{GroundCache, MapQuery};
use super::settings::MovementSettings;
use super::stats::MovementStats;
use crate::movement::{WalkStatus, advance, direction_of};
use crate::nav::{NavPath, Navigator, PathRequest, replan_path};
use crate::sim::{ColumnRows, TableColumn, Workers, chunks};
use crate::world::{Heading, Object, Position, Velocity};

/// The number of rows per work item.
const CHUNK_ROWS: usize = 512;

/// A walker reached the end of its path.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use glam::Vec2;
/// # use throng::prelude::*;
/// /// Patrols between two places.
/// fn turn(mut arrived: MessageReader<WalkerArrived>, places: Query<&Position>, mut commands: Commands) {
///     for &WalkerArrived { entity } in arrived.read() {
///         let is_west = places.get(entity).is_ok_and(|at| at.0.x < 50.0);
///         let goal = Vec2::new(if is_west { 90.0 } else { 10.0 }, 50.0);
///         commands.entity(entity).insert(PathRequest::to(goal));
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkerArrived {
    /// The entity of the walker.
    pub entity: Entity,
}

/// The event of a walker at the end of a step.
#[derive(Clone, Copy)]
pub(super) enum WalkerEvent {
    Arrived,
    Blocked(PathRequest),
}

/// The results of one chunk of walkers.
#[derive(Default)]
pub(super) struct WalkedChunk {
    steps: u64,
    /// Whether walkers wider than a tile moved, on ground that need not be the scene's own.
    any_wide: bool,
    events: Vec<(u64, Entity, WalkerEvent)>,
}

type WalkerRow = (
    Entity,
    &'static Object,
    &'static MaxSpeed,
    &'static mut Position,
    &'static mut Velocity,
    &'static mut Heading,
    &'static mut NavPath,
);

/// Moves walkers along their paths, in parallel, since they do not affect each other. Events are sorted by key.
pub(super) fn move_walkers(
    mut walkers: Query<WalkerRow, With<Walker>>,
    maps: MapQuery,
    (settings, time): (Res<MovementSettings>, Res<Time<Fixed>>),
    ticks: SystemChangeTick,
    navigator: Res<Navigator>,
    workers: Res<Workers>,
    mut stats: ResMut<MovementStats>,
    mut own_steps: ResMut<MovementChangeTicks>,
    mut walked: Local<Vec<WalkedChunk>>,
    mut events: Local<Vec<(u64, Entity, WalkerEvent)>>,
    mut arrived: MessageWriter<WalkerArrived>,
    mut commands: Commands,
) {
    let pace = WalkPace {
        tick_s: time.timestep().as_secs_f32(),
        sight_tests_max: settings.sight_tests_max as usize,
    };
    let tables = walkers.contiguous_iter_mut().into_iter().flatten();
    let mut tables: Vec<WalkerTable> = tables.map(WalkerTable::of).collect();
    let mut rows: Vec<WalkerRows> = tables.iter_mut().flat_map(WalkerTable::chunks).collect();
    if walked.len() < rows.len() {
        walked.resize_with(rows.len(), WalkedChunk::default);
    }
    let mut work: Vec<_> = rows.iter_mut().zip(&mut *walked).collect();
    workers.for_each_in_turn(&mut work, |(rows, walked)| {
        let mut grounds = GroundCache::new(&maps);
        rows.prefetch(&mut grounds);
        for row in 0..rows.entities.len() {
            rows.step_walker(row, (&mut grounds, &navigator), &pace, walked);
        }
    });
    let mut any_wide = false;
    for piece in &mut *walked {
        stats.walker_steps += std::mem::take(&mut piece.steps);
        any_wide |= std::mem::take(&mut piece.any_wide);
        events.append(&mut piece.events);
    }
    own_steps.walkers = (!any_wide).then_some(ticks.this_run());
    write_events(&mut events, &mut stats, &mut arrived, &mut commands);
    events.clear();
}

/// The distance that walkers move in a tick.
struct WalkPace {
    tick_s: f32,
    sight_tests_max: usize,
}

/// A table of walkers.
struct WalkerTable<'w> {
    entities: &'w [Entity],
    objects: &'w [Object],
    speeds: &'w [MaxSpeed],
    positions: TableColumn<'w, Position>,
    velocities: TableColumn<'w, Velocity>,
    headings: TableColumn<'w, Heading>,
    paths: TableColumn<'w, NavPath>,
}

/// Some of its rows.
struct WalkerRows<'a> {
    entities: &'a [Entity],
    objects: &'a [Object],
    speeds: &'a [MaxSpeed],
    positions: ColumnRows<'a, Position>,
    velocities: ColumnRows<'a, Velocity>,
    headings: ColumnRows<'a, Heading>,
    paths: ColumnRows<'a, NavPath>,
}

impl<'w> WalkerTable<'w> {
    fn of(
        (entities, objects, speeds, positions, velocities, headings, paths): <WalkerRow as ContiguousQueryData>::Contiguous<'w, '_>,
    ) -> Self {
        Self {
            entities,
            objects,
            speeds,
            positions: TableColumn::of(positions),
            velocities: TableColumn::of(velocities),
            headings: TableColumn::of(headings),
            paths: TableColumn::of(paths),
        }
    }

    fn chunks(&mut self) -> impl Iterator<Item = WalkerRows<'_>> {
        let (mut entities, mut objects, mut speeds) = (self.entities, self.objects, self.speeds);
        let mut positions = self.positions.rows();
        let mut velocities = self.velocities.rows();
        let mut headings = self.headings.rows();
        let mut paths = self.paths.rows();
        chunks(entities.len(), CHUNK_ROWS, move |rows| WalkerRows {
            entities: entities.split_off(..rows).unwrap_or_default(),
            objects: objects.split_off(..rows).unwrap_or_default(),
            speeds: speeds.split_off(..rows).unwrap_or_default(),
            positions: positions.take_first(rows),
            velocities: velocities.take_first(rows),
            headings: headings.take_first(rows),
            paths: paths.take_first(rows),
        })
    }
}

impl WalkerRows<'_> {
    /// Prefetches the targets of all walkers and the ground under them: see `prefetch` of [`Ground`](crate::movement::Ground).
    fn prefetch(&self, grounds: &mut GroundCache) {
        for (row, object) in self.objects.iter().enumerate() {
            let turn = self.paths.get(row).remaining().first().copied();
            if std::hint::black_box(turn).is_some()
                && let Some(ground) = grounds.ground_of(object.scene_entity())
            {
                ground.prefetch(self.positions.get(row).0);
            }
        }
    }

    /// Moves one walker by a step.
    fn step_walker<'a>(
        &mut self,
        row: usize,
        (grounds, navigator): (&mut GroundCache<'a, '_, '_>, &'a Navigator),
        pace: &WalkPace,
        walked: &mut WalkedChunk,
    ) {
        let path = self.paths.get(row);
        if path.is_empty() {
            self.velocities.set_if_neq(row, Velocity::default());
            return;
        }
        let (clearance, next) = (path.request().clearance, path.next());
        let (entity, object) = (self.entities[row], self.objects[row]);
        let Some(ground) = grounds.with_clearance(navigator, object.scene_entity(), clearance)
        else {
            return;
        };
        let speed = self.speeds[row].m_s();
        let step = advance(
            ground,
            self.positions.get(row).0,
            path.waypoints(),
            next,
            speed * pace.tick_s,
            pace.sight_tests_max,
        );
        walked.steps += 1;
        walked.any_wide |= clearance > 0;
        self.positions.set_if_neq(row, Position(step.position));
        if let Some(towards) = heading_of(*self.headings.get(row), step.direction) {
            self.headings.set_if_neq(row, towards);
        }
        let event = match step.end {
            WalkStatus::Going => {
                if step.next != next {
                    self.paths.get_mut(row).advance_to(step.next);
                }
                let velocity = Velocity(step.direction * speed);
                return self.velocities.set_if_neq(row, velocity);
            }
            WalkStatus::Arrived => WalkerEvent::Arrived,
            WalkStatus::Blocked => WalkerEvent::Blocked(path.request()),
        };
        walked.events.push((object.key(), entity, event));
        self.velocities.set_if_neq(row, Velocity::default());
        self.paths.get_mut(row).clear();
    }
}

/// The tangent of nearly half a 256th of a turn, below which the heading is unchanged.
const HEADING_STEP_TANGENT: f32 = 0.012;

/// The heading of a direction of length 1, as in [`Heading::from_direction`]; usually it is unchanged, which needs no arctangent.
fn heading_of(had: Heading, direction: Vec2) -> Option<Heading> {
    let along = direction_of(had.0);
    if along.perp_dot(direction).abs() < HEADING_STEP_TANGENT * along.dot(direction) {
        return Some(had);
    }
    Heading::from_direction(direction)
}

/// Reports walkers that arrived, and requests new paths for blocked ones.
fn write_events(
    events: &mut [(u64, Entity, WalkerEvent)],
    stats: &mut MovementStats,
    arrived: &mut MessageWriter<WalkerArrived>,
    commands: &mut Commands,
) {
    // Storage order must not affect the order of the messages.
    events.sort_unstable_by_key(|&(key, ..)| key);
    for &(_, entity, event) in &*events {
        match event {
            WalkerEvent::Arrived => {
                stats.arrived += 1;
                arrived.write(WalkerArrived { entity });
            }
            WalkerEvent::Blocked(request) => {
                stats.blocked += 1;
                commands
                    .entity(entity)
                    .queue_silenced(move |mut entity: EntityWorldMut| {
                        replan_path(&mut entity, request);
                    });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_heading_equals_the_arctangent_heading() {
        let directions = (0..40_000).map(|nth| {
            let angle = f64::from(nth) * core::f64::consts::TAU / 40_000.0;
            Vec2::new(angle.cos() as f32, angle.sin() as f32)
        });
        for direction in directions.chain([Vec2::ZERO]) {
            let expected = Heading::from_direction(direction);
            let near = expected.unwrap_or_default().0;
            for had in [near.wrapping_sub(1), near, near.wrapping_add(1), near ^ 128] {
                assert_eq!(heading_of(Heading(had), direction), expected, "{direction}");
            }
        }
    }
}
