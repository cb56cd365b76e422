//! What each client sees, and so is told of.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use fixedbitset::FixedBitSet;

use super::attributes::Attributes;
use super::audience::relation;
use super::clients::{ClientSeat, follow_resumed, follow_sessions};
use super::remotes;
use super::replicator::{FillWorker, Replicator, ViewChange, Wanted, words};
use super::settings::SyncSettings;
use crate::aoi::{SceneInterest, ViewEvent};
use crate::session::{Resumed, Sessions};
use crate::sim::{Overload, SimTick, Workers};
use crate::sync::allowance::Allowance;
use crate::sync::client::{ClientState, ViewedAs};
use crate::sync::records::SceneRecords;
use crate::sync::remotes::PartyObjects;
use crate::world::{Object, ObjectId, SceneClosed, SceneId, Scenes};

/// Forgets what was told in the last tick.
pub(super) fn begin_tick(
    mut replicator: ResMut<Replicator>,
    (mut closed, mut resumed): (MessageReader<SceneClosed>, MessageReader<Resumed>),
    tick: Res<SimTick>,
    scenes: Res<Scenes>,
    sessions: Res<Sessions>,
    attributes: Res<Attributes>,
    objects: Query<&Object>,
) {
    let Replicator {
        scenes: records,
        clients,
        seats,
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
    follow_sessions((clients, seats), &sessions, &objects, gone);
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
    attributes: Res<Attributes>,
    (settings, overload): (Res<SyncSettings>, Res<Overload>),
    time: Res<Time<Fixed>>,
    pool: Res<Workers>,
    scenes: Query<&'static SceneInterest>,
) {
    let Replicator {
        scenes: records,
        clients,
        seats,
        wanted,
        changed,
        parties,
        workers,
        ..
    } = &mut *replicator;
    let allowance = settings.allowance(time.timestep().as_secs_f32(), &overload);
    // Of the views of all others nobody is told.
    let mut followed: BTreeMap<SceneId, (FixedBitSet, Entity)> = BTreeMap::new();
    for own in seats.iter().filter_map(|seat| seat.own) {
        let scene = followed.entry(own.scene());
        let (ids, _) = scene.or_insert_with(|| {
            let places = records.get(&own.scene()).map_or(0, |of| of.bases.len());
            (FixedBitSet::with_capacity(places), own.scene_entity())
        });
        ids.grow_and_insert(own.id().0 as usize);
    }
    for (scene, (ids, entity)) in followed {
        if let Ok(interest) = scenes.get(entity) {
            last_changes(interest.events(), &ids, changed.entry(scene).or_default());
        }
    }
    let news = ViewNews {
        records,
        changed,
        parties,
        attributes: &attributes,
        allowance,
        scenes: &scenes,
    };
    let seats = &*seats;
    pool.for_each_chunk(clients, 32, workers, |worker, first, clients| {
        for (state, seat) in clients.iter_mut().zip(&seats[first..]) {
            // Who controls nothing now is told so, misses what happens, and begins anew when that changes.
            if follow_view(state, seat, &news, worker).is_none() {
                state.end();
            }
        }
    });
    wanted.clear();
    for worker in workers {
        wanted.append(&mut worker.wanted);
    }
    wanted.sort_unstable();
    wanted.dedup();
}

/// What clients' lists follow.
struct ViewNews<'a, 'w, 's> {
    records: &'a BTreeMap<SceneId, SceneRecords>,
    /// Of all clients, by scene.
    changed: &'a BTreeMap<SceneId, Vec<ViewChange>>,
    parties: &'a PartyObjects,
    attributes: &'a Attributes,
    allowance: Allowance,
    scenes: &'a Query<'w, 's, &'static SceneInterest>,
}

/// One client's list follows what its object sees. `None` where it controls no object of a scene.
fn follow_view(
    state: &mut ClientState,
    seat: &ClientSeat,
    news: &ViewNews,
    worker: &mut FillWorker,
) -> Option<()> {
    let own = seat.own?;
    let interest = news.scenes.get(own.scene_entity()).ok()?;
    let records = news.records.get(&own.scene())?;
    let (attributes, allowance) = (news.attributes, news.allowance);
    // It controls another object than it knows, and so is to be told everything anew.
    let begins = state.own != Some(words(own.reference()));
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
        let changes = news.changed.get(&scene).map_or(&[][..], Vec::as_slice);
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
        (records, news.parties, attributes),
        &mut worker.expected,
    );
    worker.wanted.extend(meeting.iter().map(|remote| Wanted {
        scene: remote.object.scene,
        id: remote.object.id.0,
        variant: remote.variant,
        remote: true,
    }));
    Some(())
}
