//! Motion bases of objects.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use glam::Vec2;

use super::clients::in_one_scene;
use super::replicator::Replicator;
use super::settings::SyncSettings;
use super::stats::SyncStats;
use crate::outbox::Outbox;
use crate::sim::{Overload, SimTick, Workers};
use crate::sync::motion::{DeadReckoning, Moving};
use crate::sync::records::{Looked, MotionNews, SceneMessages};
use crate::world::{
    Floor, Heading, Object, ObjectChangedScene, ObjectRef, ObjectTeleported, Position, SceneId,
    Velocity,
};

/// So many rows a thread takes at once.
const PIECE_ROWS: usize = 512;

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

/// The rows of a table in pieces.
fn pieces_of(
    (objects, positions, velocities, headings, floors): MotionRows,
) -> impl Iterator<Item = MotionRows> {
    let columns = objects
        .chunks(PIECE_ROWS)
        .zip(positions.chunks(PIECE_ROWS))
        .zip(velocities.chunks(PIECE_ROWS))
        .zip(headings.chunks(PIECE_ROWS))
        .zip(floors.chunks(PIECE_ROWS));
    columns.map(|((((objects, positions), velocities), headings), floors)| {
        (objects, positions, velocities, headings, floors)
    })
}

/// What there is of a piece: by scene and id, since of all that is known of an object nothing lies by rows.
#[derive(Default)]
pub(super) struct LookedPiece {
    moved: Vec<(SceneId, u32, Vec2)>,
    news: Vec<(SceneId, u32, MotionNews)>,
    /// The motion in hand.
    written: Vec<u8>,
}

/// A look at where objects are.
struct Look<'a> {
    scenes: &'a BTreeMap<SceneId, SceneMessages>,
    /// Who came to be where it is in another way than by walking, ascending.
    jumped: &'a [ObjectRef],
    tick: u64,
    reckoning: DeadReckoning,
}

impl Look<'_> {
    fn at(&self, rows: &MotionRows, found: &mut LookedPiece) {
        let (objects, positions, velocities, headings, floors) = rows;
        // Mostly the next object is in the same scene.
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
            let now = Moving {
                jumped: !jumped.is_empty() && jumped.binary_search(&object.reference()).is_ok(),
                ..moving_of(walking)
            };
            let (id, generation) = (object.id().0, object.generation().0);
            let (of, at) = ((id, generation), (self.tick, self.reckoning));
            match records.look_at(of, now, at, &mut found.written) {
                Looked::Same => {}
                Looked::Moved => found.moved.push((scene, id, now.position)),
                Looked::News(news) => found.news.push((scene, id, news)),
            }
        }
    }
}

pub(super) fn moving_of(
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

/// What is known of every object's motion follows where it is, and what many clients are to be told of it is shared.
pub(super) fn record_motions(
    mut replicator: ResMut<Replicator>,
    mut outbox: ResMut<Outbox>,
    objects: Query<MotionRow>,
    mut teleported: MessageReader<ObjectTeleported>,
    mut changed_scene: MessageReader<ObjectChangedScene>,
    (settings, overload): (Res<SyncSettings>, Res<Overload>),
    mut stats: ResMut<SyncStats>,
    (tick, time, workers): (Res<SimTick>, Res<Time<Fixed>>, Res<Workers>),
    (mut jumped, mut looked): (Local<Vec<ObjectRef>>, Local<Vec<LookedPiece>>),
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
    let look = Look {
        scenes: &replicator.scenes,
        jumped: &jumped,
        tick: tick.0,
        reckoning,
    };
    let tables = objects.contiguous_iter().into_iter().flatten();
    let pieces: Vec<_> = tables.flat_map(pieces_of).collect();
    if looked.len() < pieces.len() {
        looked.resize_with(pieces.len(), LookedPiece::default);
    }
    let mut work: Vec<_> = pieces.into_iter().zip(&mut *looked).collect();
    workers.for_each_in_turn(&mut work, |(rows, looked)| look.at(rows, looked));
    for piece in &mut *looked {
        for (scene, id, position) in piece.moved.drain(..) {
            if let Some(records) = replicator.scenes.get_mut(&scene) {
                records.see(id, position);
            }
        }
        stats.motions_encoded += piece.news.len() as u64;
        for (scene, id, news) in piece.news.drain(..) {
            if let Some(records) = replicator.scenes.get_mut(&scene) {
                records.take_motion(id, &news);
            }
        }
    }
    let mut receivers: BTreeMap<SceneId, usize> = BTreeMap::new();
    for seats in in_one_scene(&replicator.seats) {
        if let Some(own) = seats[0].own {
            *receivers.entry(own.scene()).or_default() += seats.len();
        }
    }
    for (scene, records) in &mut replicator.scenes {
        let receivers = receivers.get(scene).copied().unwrap_or(0);
        let doublings = overload.update_doublings();
        records.find_motions(doublings, receivers, outbox.batch_mut());
    }
}
