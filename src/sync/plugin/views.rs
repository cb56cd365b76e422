//! What each client sees, and so is told of.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use fixedbitset::FixedBitSet;

use super::attributes::Attributes;
use super::audience::relation;
use super::clients::{ClientJob, follow_resumed, follow_sessions, jobs};
use super::remotes;
use super::replicator::{FillWorker, Replicator, ViewChange, Wanted, words};
use super::settings::SyncSettings;
use crate::aoi::{SceneInterest, ViewEvent};
use crate::session::{Resumed, Sessions};
use crate::sim::{Overload, SimTick, Workers};
use crate::sync::allowance::Allowance;
use crate::sync::client::ViewedAs;
use crate::sync::remotes::PartyObjects;
use crate::world::{Object, ObjectId, Scene, SceneClosed, SceneId, Scenes};

/// Forgets what was told in the last tick.
pub(super) fn begin_tick(
    mut replicator: ResMut<Replicator>,
    (mut closed, mut resumed): (MessageReader<SceneClosed>, MessageReader<Resumed>),
    tick: Res<SimTick>,
    scenes: Res<Scenes>,
    sessions: Res<Sessions>,
    attributes: Res<Attributes>,
) {
    let Replicator {
        scenes: records,
        clients,
        changed,
        gone,
        parties,
        ..
    } = &mut *replicator;
    parties.changed.clear();
    for scene in closed.read() {
        parties.close(scene.id);
        records.remove(&scene.id);
        changed.remove(&scene.id);
    }
    for (scene, _) in scenes.iter() {
        let records = records.entry(scene).or_default();
        records.begin(attributes.told().len());
        changed.entry(scene).or_default().clear();
    }
    follow_sessions(clients, &sessions, gone);
    follow_resumed(
        resumed.read().copied(),
        &sessions,
        (clients, gone),
        records,
        tick.0,
    );
}

/// What the events of a scene's views left of the pairs whose viewers are followed: the last one of each pair, ascending.
fn last_changes(events: &[ViewEvent], followed: &FixedBitSet, changes: &mut Vec<ViewChange>) {
    let of_clients = (0..).zip(events).filter(|(_, event)| {
        let (viewer, _) = event.pair();
        followed.contains(viewer as usize)
    });
    changes.extend(of_clients.map(|(nth, event)| {
        let (viewer, target) = event.pair();
        let class = match *event {
            ViewEvent::Enter { priority, .. } => Some(priority),
            ViewEvent::Leave { .. } => None,
        };
        ViewChange {
            viewer,
            target,
            nth,
            class,
        }
    }));
    changes.sort_unstable_by_key(|change| (change.viewer, change.target, change.nth));
    changes.dedup_by(|later, kept| {
        let same = (later.viewer, later.target) == (kept.viewer, kept.target);
        if same {
            *kept = *later;
        }
        same
    });
}

/// Every client's list follows what its object sees, and who is told of is chosen.
pub(super) fn follow_views(
    mut replicator: ResMut<Replicator>,
    sessions: Res<Sessions>,
    attributes: Res<Attributes>,
    (settings, overload): (Res<SyncSettings>, Res<Overload>),
    time: Res<Time<Fixed>>,
    pool: Res<Workers>,
    objects: Query<&Object>,
    scenes: Query<(&Scene, &SceneInterest)>,
) {
    let Replicator {
        scenes: records,
        clients,
        wanted,
        changed,
        parties,
        workers,
        ..
    } = &mut *replicator;
    let allowance = settings.allowance(time.timestep().as_secs_f32(), &overload);
    let parties = &*parties;
    let mut jobs = jobs(clients, records, &sessions, &objects, &scenes);
    // Of the views of all others nobody is told.
    let mut followed: BTreeMap<SceneId, (FixedBitSet, &SceneInterest)> = BTreeMap::new();
    for job in jobs.iter().filter(|job| !job.begins()) {
        let scene = followed.entry(job.own.scene());
        let (ids, _) = scene.or_insert_with(|| {
            let ids = FixedBitSet::with_capacity(job.records.bases.len());
            (ids, job.interest)
        });
        ids.grow_and_insert(job.own.id().0 as usize);
    }
    for (scene, (ids, interest)) in followed {
        last_changes(interest.events(), &ids, changed.entry(scene).or_default());
    }
    pool.for_each_chunk(&mut jobs, 32, workers, |worker, _, jobs| {
        for job in jobs {
            let changes = changed.get(&job.own.scene()).map_or(&[][..], Vec::as_slice);
            follow_view(job, changes, allowance, (parties, &attributes), worker);
        }
    });
    wanted.clear();
    for worker in workers {
        wanted.append(&mut worker.wanted);
    }
    wanted.sort_unstable();
    wanted.dedup();
}

/// One client's list follows what its object sees; `changes` are those of all clients in its scene.
fn follow_view(
    job: &mut ClientJob,
    changes: &[ViewChange],
    allowance: Allowance,
    (parties, attributes): (&PartyObjects, &Attributes),
    worker: &mut FillWorker,
) {
    let begins = job.begins();
    let ClientJob {
        state,
        own,
        records,
        interest,
        ..
    } = job;
    let (scene, id, views) = (own.scene(), own.id(), interest.views());
    let seen = |target, class| ViewedAs {
        id: target,
        generation: interest.generation(ObjectId(target)).0,
        class,
    };
    let mut moved = begins;
    if begins {
        let variant = attributes.variant(Attributes::OWN);
        state.begin(words(own.reference()), variant);
        worker.wanted.push(Wanted {
            scene,
            id: id.0,
            variant,
            remote: false,
        });
        let view = views.seen_by(id.0);
        let view = view.map(|(target, class)| seen(target, class));
        state.waiting.extend(view);
    } else {
        let start = changes.partition_point(|change| change.viewer < id.0);
        let mine = changes[start..].iter();
        for change in mine.take_while(|change| change.viewer == id.0) {
            moved = true;
            let now = change.class.map(|class| seen(change.target, class));
            state.follow(change.target, now);
        }
    }
    let position = |id| views.position(id).unwrap_or_default();
    state.admit(allowance, position(id.0), position, &mut worker.scratch);
    let entering = state.entering.iter().map(|entering| Wanted {
        scene,
        id: entering.id,
        variant: attributes.variant(relation(records, id.0, entering.id)),
        remote: false,
    });
    worker.wanted.extend(entering);
    let meeting = remotes::follow(
        state,
        own.reference(),
        moved,
        allowance.enters_per_tick,
        (records, parties, attributes),
        &mut worker.expected,
    );
    worker.wanted.extend(meeting.iter().map(|remote| Wanted {
        scene: remote.object.scene,
        id: remote.object.id.0,
        variant: remote.variant,
        remote: true,
    }));
}
