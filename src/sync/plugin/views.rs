//! What each client sees, and so is told of.

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use fixedbitset::FixedBitSet;

use super::attributes::Attributes;
use super::audience::relation;
use super::clients::{ClientJob, follow_sessions, jobs};
use super::remotes;
use super::replicator::{Replicator, Wanted, words};
use super::settings::SyncSettings;
use crate::aoi::{Entered, Left, SceneInterest};
use crate::session::Sessions;
use crate::sim::Workers;
use crate::sync::client::ViewedAs;
use crate::world::{Object, ObjectId, Scene, SceneClosed, SceneId, Scenes};

/// Forgets what was told in the last tick.
pub(super) fn begin_tick(
    mut replicator: ResMut<Replicator>,
    mut entered: MessageReader<Entered>,
    mut left: MessageReader<Left>,
    mut closed: MessageReader<SceneClosed>,
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
        followed,
        ..
    } = &mut *replicator;
    parties.changed.clear();
    for scene in closed.read() {
        parties.close(scene.id);
        records.remove(&scene.id);
        changed.remove(&scene.id);
        followed.remove(&scene.id);
    }
    for (scene, _) in scenes.iter() {
        let records = records.entry(scene).or_default();
        records.begin(attributes.told().len());
        changed.entry(scene).or_default().clear();
    }
    follow_sessions(clients, &sessions, gone);
    followed.values_mut().for_each(FixedBitSet::clear);
    for (scene, id, _) in clients.iter().filter_map(|state| state.own) {
        let ids = followed.entry(SceneId(scene)).or_default();
        ids.grow_and_insert(id as usize);
    }
    followed.retain(|scene, _| records.contains_key(scene));
    let mut follow = |scene, viewer: ObjectId, target: ObjectId, class| {
        let ids = followed.get(&scene);
        if ids.is_some_and(|ids| ids.contains(viewer.0 as usize))
            && let Some(pairs) = changed.get_mut(&scene)
        {
            pairs.push((viewer.0, target.0, class));
        }
    };
    for entered in entered.read() {
        follow(
            entered.scene,
            entered.viewer,
            entered.target,
            entered.priority,
        );
    }
    for left in left.read() {
        follow(left.scene, left.viewer, left.target, 0);
    }
    changed.values_mut().for_each(|pairs| pairs.sort_unstable());
}

/// Every client's list follows what its object sees, and who is told of is chosen.
pub(super) fn follow_views(
    mut replicator: ResMut<Replicator>,
    sessions: Res<Sessions>,
    attributes: Res<Attributes>,
    settings: Res<SyncSettings>,
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
    let (allowance, parties) = (settings.allowance(time.timestep().as_secs_f32()), &*parties);
    let own_variant = attributes.variant(Attributes::OWN);
    let mut jobs = jobs(clients, records, &sessions, &objects, &scenes);
    pool.for_each_chunk(&mut jobs, 32, workers, |worker, _, jobs| {
        for ClientJob {
            state,
            own,
            records,
            interest,
            ..
        } in jobs
        {
            let (scene, id) = (own.scene(), own.id());
            let views = interest.views();
            let begins = state.own != Some(words(own.reference()));
            if begins {
                state.begin(words(own.reference()), own_variant);
                worker.wanted.push(Wanted {
                    scene,
                    id: id.0,
                    variant: own_variant,
                    remote: false,
                });
            }
            let seen = |target, class| ViewedAs {
                id: target,
                generation: interest.generation(ObjectId(target)).0,
                class,
            };
            let mut moved = begins;
            if begins {
                let view = views
                    .seen_by(id.0)
                    .map(|(target, class)| seen(target, class));
                state.waiting.extend(view);
            } else {
                // In whatever order a pair came and went, what counts is how it is now.
                let pairs = changed.get(&scene).map_or(&[][..], Vec::as_slice);
                let start = pairs.partition_point(|&(viewer, ..)| viewer < id.0);
                let mine = pairs[start..].iter().take_while(|pair| pair.0 == id.0);
                for &(_, target, class) in mine {
                    moved = true;
                    let now = views.visible(id.0, target).then(|| seen(target, class));
                    state.follow(target, now);
                }
            }
            let position = |id| views.position(id).unwrap_or_default();
            state.admit(allowance, position(id.0), position, &mut worker.scratch);
            let standing = records.standing(id.0);
            let entering = state.entering.iter().map(|entering| Wanted {
                scene,
                id: entering.id,
                variant: attributes.variant(relation(standing, records.standing(entering.id))),
                remote: false,
            });
            worker.wanted.extend(entering);
            let meeting = remotes::follow(
                state,
                own.reference(),
                moved,
                allowance.enters_per_tick,
                (records, parties, &attributes),
                &mut worker.expected,
            );
            worker.wanted.extend(meeting.iter().map(|remote| Wanted {
                scene: remote.object.scene,
                id: remote.object.id.0,
                variant: remote.variant,
                remote: true,
            }));
        }
    });
    wanted.clear();
    for worker in workers {
        wanted.append(&mut worker.wanted);
    }
    wanted.sort_unstable();
    wanted.dedup();
}
