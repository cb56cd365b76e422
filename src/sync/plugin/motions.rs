//! How objects move, as clients reckon it.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};

use super::replicator::Replicator;
use super::settings::SyncSettings;
use super::stats::SyncStats;
use crate::outbox::Outbox;
use crate::sim::{Overload, SimTick};
use crate::sync::motion::{Moving, Reckoning};
use crate::world::{
    Floor, Heading, Object, ObjectRef, Position, SceneChanged, SceneId, Teleported, Velocity,
};

type MotionRow = (
    &'static Position,
    &'static Velocity,
    &'static Heading,
    &'static Floor,
);

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
    objects: Query<(&Object, MotionRow)>,
    mut teleported: MessageReader<Teleported>,
    mut changed_scene: MessageReader<SceneChanged>,
    (settings, overload): (Res<SyncSettings>, Res<Overload>),
    mut stats: ResMut<SyncStats>,
    (tick, time): (Res<SimTick>, Res<Time<Fixed>>),
    mut jumped: Local<Vec<ObjectRef>>,
) {
    jumped.clear();
    jumped.extend(teleported.read().map(|message| message.object.reference()));
    jumped.extend(changed_scene.read().map(|change| change.to.reference()));
    jumped.sort_unstable();
    let reckoning = Reckoning {
        tick_s: time.timestep().as_secs_f32(),
        tolerance_m: settings.motion_tolerance_m,
        update_doublings: overload.update_doublings(),
    };
    for (object, walking) in &objects {
        let Some(records) = replicator.scenes.get_mut(&object.scene()) else {
            continue;
        };
        let (id, generation) = (object.id().0, object.generation().0);
        let now = Moving {
            jumped: !jumped.is_empty() && jumped.binary_search(&object.reference()).is_ok(),
            ..moving_of(walking)
        };
        stats.bases += u64::from(records.follow(id, generation, now, tick.0, reckoning));
    }
    let mut receivers: BTreeMap<SceneId, usize> = BTreeMap::new();
    let scenes = replicator.seats.iter().filter_map(|seat| seat.own);
    for own in scenes {
        *receivers.entry(own.scene()).or_default() += 1;
    }
    for (scene, records) in &mut replicator.scenes {
        let receivers = receivers.get(scene).copied().unwrap_or(0);
        records.share_motions(tick.0, receivers, outbox.batch_mut());
    }
}
