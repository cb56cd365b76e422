//! Motion bases of objects.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use glam::Vec2;

use super::clients::chunks_by_scene;
use super::replicator::Replicator;
use super::settings::SyncSettings;
use super::stats::SyncStats;
use crate::outbox::Outbox;
use crate::sim::{Overload, SimTick, Workers};
use crate::sync::motion::{DeadReckoning, MotionState};
use crate::sync::scene_messages::{MotionUpdate, SampledMotion, SceneMessages};
use crate::world::{
    Floor, Heading, Object, ObjectChangedScene, ObjectRef, ObjectTeleported, Position, SceneId,
    Velocity,
};

/// The number of rows per work item.
const CHUNK_ROWS: usize = 512;

type MotionRow = (
    &'static Object,
    &'static Position,
    &'static Velocity,
    &'static Heading,
    &'static Floor,
);

/// Some rows of a table.
type MotionRows<'a> = (
    &'a [Object],
    &'a [Position],
    &'a [Velocity],
    &'a [Heading],
    &'a [Floor],
);

/// The rows of a table in chunks.
fn chunks_of(
    (objects, positions, velocities, headings, floors): MotionRows,
) -> impl Iterator<Item = MotionRows> {
    let columns = objects
        .chunks(CHUNK_ROWS)
        .zip(positions.chunks(CHUNK_ROWS))
        .zip(velocities.chunks(CHUNK_ROWS))
        .zip(headings.chunks(CHUNK_ROWS))
        .zip(floors.chunks(CHUNK_ROWS));
    columns.map(|((((objects, positions), velocities), headings), floors)| {
        (objects, positions, velocities, headings, floors)
    })
}

/// The results of a chunk: by scene and id, since the stored data of objects is not in row order.
#[derive(Default)]
pub(super) struct SampledChunk {
    moved: Vec<(SceneId, u32, Vec2)>,
    updates: Vec<(SceneId, u32, MotionUpdate)>,
    /// The current motion.
    written: Vec<u8>,
}

/// Samples the positions of objects.
struct MotionSampler<'a> {
    scenes: &'a BTreeMap<SceneId, SceneMessages>,
    /// Objects that were moved without walking, ascending.
    jumped: &'a [ObjectRef],
    tick: u64,
    reckoning: DeadReckoning,
}

impl MotionSampler<'_> {
    fn sample(&self, rows: &MotionRows, found: &mut SampledChunk) {
        let (objects, positions, velocities, headings, floors) = rows;
        // Usually the next object is in the same scene.
        let mut of_scene: Option<(SceneId, Option<&SceneMessages>)> = None;
        for (row, object) in objects.iter().enumerate() {
            let scene = object.scene();
            let (_, records) = match of_scene {
                Some(of) if of.0 == scene => of,
                _ => *of_scene.insert((scene, self.scenes.get(&scene))),
            };
            let Some(records) = records else {
                continue;
            };
            let walking = (
                &positions[row],
                &velocities[row],
                &headings[row],
                &floors[row],
            );
            let jumped = self.jumped;
            let now = MotionState {
                jumped: !jumped.is_empty() && jumped.binary_search(&object.reference()).is_ok(),
                ..motion_state_of(walking)
            };
            let (id, generation) = (object.id().0, object.generation().0);
            let (of, at) = ((id, generation), (self.tick, self.reckoning));
            match records.sample(of, now, at, &mut found.written) {
                SampledMotion::Unchanged => {}
                SampledMotion::Moved => found.moved.push((scene, id, now.position)),
                SampledMotion::Update(news) => found.updates.push((scene, id, news)),
            }
        }
    }
}

pub(super) fn motion_state_of(
    (position, velocity, heading, floor): (&Position, &Velocity, &Heading, &Floor),
) -> MotionState {
    MotionState {
        position: position.0,
        velocity: velocity.0,
        heading: heading.0,
        floor: floor.0,
        jumped: false,
    }
}

/// Updates the stored motion of every object, and encodes motions for many clients as shared messages.
pub(super) fn encode_motions(
    mut replicator: ResMut<Replicator>,
    mut outbox: ResMut<Outbox>,
    objects: Query<MotionRow>,
    mut teleported: MessageReader<ObjectTeleported>,
    mut changed_scene: MessageReader<ObjectChangedScene>,
    (settings, overload): (Res<SyncSettings>, Res<Overload>),
    mut stats: ResMut<SyncStats>,
    (tick, time, workers): (Res<SimTick>, Res<Time<Fixed>>, Res<Workers>),
    (mut jumped, mut looked): (Local<Vec<ObjectRef>>, Local<Vec<SampledChunk>>),
) {
    jumped.clear();
    jumped.extend(teleported.read().map(|message| message.object.reference()));
    jumped.extend(changed_scene.read().map(|change| change.to.reference()));
    jumped.sort_unstable();
    let reckoning = DeadReckoning {
        tick_s: time.timestep().as_secs_f32(),
        tolerance_m: settings.motion_tolerance_m,
        update_doublings: overload.update_doublings(),
    };
    let look = MotionSampler {
        scenes: &replicator.scenes,
        jumped: &jumped,
        tick: tick.0,
        reckoning,
    };
    let tables = objects.contiguous_iter().into_iter().flatten();
    let pieces: Vec<_> = tables.flat_map(chunks_of).collect();
    if looked.len() < pieces.len() {
        looked.resize_with(pieces.len(), SampledChunk::default);
    }
    let mut work: Vec<_> = pieces.into_iter().zip(&mut *looked).collect();
    workers.for_each_in_turn(&mut work, |(rows, looked)| look.sample(rows, looked));
    for piece in &mut *looked {
        for (scene, id, position) in piece.moved.drain(..) {
            if let Some(records) = replicator.scenes.get_mut(&scene) {
                records.set_position(id, position);
            }
        }
        stats.motions_encoded += piece.updates.len() as u64;
        for (scene, id, news) in piece.updates.drain(..) {
            if let Some(records) = replicator.scenes.get_mut(&scene) {
                records.apply_motion(id, &news);
            }
        }
    }
    let mut receivers: BTreeMap<SceneId, usize> = BTreeMap::new();
    for seats in chunks_by_scene(&replicator.sessions) {
        if let Some(own) = seats[0].controlled {
            *receivers.entry(own.scene()).or_default() += seats.len();
        }
    }
    for (scene, records) in &mut replicator.scenes {
        let receivers = receivers.get(scene).copied().unwrap_or(0);
        let doublings = overload.update_doublings();
        records.find_motions(doublings, receivers, outbox.batch_mut());
    }
}
