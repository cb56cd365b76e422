//! What each client sees, and therefore receives.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use fixedbitset::FixedBitSet;

use super::attributes::Attributes;
use super::audience::relation;
use super::clients::{SessionView, apply_resumes, chunks_by_scene, update_clients};
use super::replicator::{
    Replicator, SnapshotRequest, UpdateWorker, ViewChange, ViewChanges, ids_of,
};
use super::settings::SyncSettings;
use super::unseen;
use crate::aoi::{SceneInterest, ViewEvent};
use crate::memory::clear_and_shrink;
use crate::session::{SessionResumed, Sessions};
use crate::sim::{Overload, SimTick, Workers};
use crate::sync::client::{ClientState, ViewEntry};
use crate::sync::scene_messages::{AudienceVariant, SceneMessages};
use crate::sync::send_budget::SendBudget;
use crate::sync::unseen::PartyObjects;
use crate::world::{Object, ObjectId, ObjectRef, SceneClosed, SceneId, Scenes};

/// Clears the messages of the last tick.
pub(super) fn begin_tick(
    mut replicator: ResMut<Replicator>,
    (mut closed, mut resumed): (MessageReader<SceneClosed>, MessageReader<SessionResumed>),
    (tick, time, workers): (Res<SimTick>, Res<Time<Fixed>>, Res<Workers>),
    settings: Res<SyncSettings>,
    (scenes, interests): (Res<Scenes>, Query<&'static SceneInterest>),
    sessions: Res<Sessions>,
    attributes: Res<Attributes>,
    objects: Query<&Object>,
) {
    let Replicator {
        scenes: records,
        clients,
        sessions: seats,
        session_ranges: seat_ranges,
        view_changes: changed,
        closed_clients: gone,
        parties,
        sent_log: sent,
        ..
    } = &mut *replicator;
    let sent = (
        &*sent,
        settings.resume_limits(time.timestep().as_secs_f32()),
    );
    parties.changed.clear();
    for scene in closed.read() {
        parties.remove_scene(scene.id);
        records.remove(&scene.id);
        changed.remove(&scene.id);
    }
    for (scene, _) in scenes.iter() {
        let records = records.entry(scene).or_default();
        records.begin_tick(attributes.variant_sets().len(), tick.0);
        changed.entry(scene).or_default().clear();
    }
    let sessions = &*sessions;
    update_clients(
        (clients, seats),
        seat_ranges,
        (sessions, *workers),
        &objects,
        gone,
        sent,
    );
    apply_resumes(
        resumed.read().copied(),
        sessions,
        (clients, gone),
        records,
        |scene| interests.get(scenes.entity(scene)?).ok(),
        tick.0,
        sent,
    );
}

/// The events of a scene's views for the pairs whose viewers are followed.
fn changes_of<'a>(
    events: &'a [ViewEvent],
    followed: &'a FixedBitSet,
) -> impl Iterator<Item = ViewChange> + 'a {
    let of_clients = (0..).zip(events).filter(|(_, event)| {
        let (viewer, _) = event.pair();
        followed.contains(viewer as usize)
    });
    of_clients.map(|(nth, event)| {
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
    })
}

/// Updates every client's objects from what its object sees, and selects the objects to be sent.
pub(super) fn update_client_views(
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
        sessions: seats,
        snapshot_requests: wanted,
        requested_ids: wanted_ids,
        view_changes: changed,
        parties,
        workers,
        ..
    } = &mut *replicator;
    let allowance = settings.send_budget(time.timestep().as_secs_f32(), &overload);
    // The views of other viewers are not sent to anyone.
    let mut followed: BTreeMap<SceneId, (FixedBitSet, Entity)> = BTreeMap::new();
    for seats in chunks_by_scene(seats) {
        let mut own = seats.iter().filter_map(|seat| seat.controlled).peekable();
        let Some(first) = own.peek() else {
            continue;
        };
        let (ids, _) = followed.entry(first.scene()).or_insert_with(|| {
            let places = records.get(&first.scene()).map_or(0, |of| of.bases.len());
            (FixedBitSet::with_capacity(places), first.scene_entity())
        });
        own.for_each(|own| ids.grow_and_insert(own.id().0 as usize));
    }
    for (scene, (ids, entity)) in followed {
        if let Ok(interest) = scenes.get(entity) {
            let changes = changes_of(interest.events(), &ids);
            changed.entry(scene).or_default().set(changes);
        }
    }
    let news = ViewContext {
        records,
        changed,
        parties,
        attributes: &attributes,
        budget: allowance,
        kept_max: settings.kept_objects_max as usize,
        scenes: &scenes,
    };
    let seats = &*seats;
    pool.for_each_chunk(clients, 32, workers, |worker, first, clients| {
        // Usually the next client is in the same scene.
        let mut scene = None;
        for (state, seat) in clients.iter_mut().zip(&seats[first..]) {
            if let Some(own) = seat.controlled
                && scene.as_ref().is_none_or(|(of, _)| *of != own.scene())
            {
                scene = Some((own.scene(), news.of(&own)));
            }
            let scene = scene.as_ref().and_then(|(_, views)| views.as_ref());
            // A client that controls nothing is notified, misses what happens, and starts a scene when that changes.
            if update_client_view(state, seat, scene, &news, worker).is_none() {
                state.end_scene();
            }
        }
    });
    wanted.clear();
    for worker in workers {
        wanted.extend_from_slice(&worker.requests);
        clear_and_shrink(&mut worker.requests);
    }
    wanted.sort_unstable_by_key(SnapshotRequest::sort_key);
    wanted.dedup();
    wanted_ids.clear();
    for wanted in &*wanted {
        wanted_ids.grow_and_insert(wanted.id as usize);
    }
    set_known_generations(records, wanted);
}

/// Sets the generations that clients know from now on by the ids of the objects to be sent.
fn set_known_generations(
    records: &mut BTreeMap<SceneId, SceneMessages>,
    wanted: &[SnapshotRequest],
) {
    for wanted in wanted.chunk_by(|one, next| one.scene == next.scene) {
        let Some(records) = records.get_mut(&wanted[0].scene) else {
            continue;
        };
        for seen in wanted.iter().filter(|wanted| !wanted.is_unseen) {
            records.set_known_generation(seen.id, seen.generation);
        }
    }
}

/// The inputs of client view updates.
struct ViewContext<'a, 'w, 's> {
    records: &'a BTreeMap<SceneId, SceneMessages>,
    /// For all clients, by scene.
    changed: &'a BTreeMap<SceneId, ViewChanges>,
    parties: &'a PartyObjects,
    attributes: &'a Attributes,
    budget: SendBudget,
    /// The maximum number of objects that a client keeps out of view.
    kept_max: usize,
    scenes: &'a Query<'w, 's, &'static SceneInterest>,
}

/// The inputs of one scene.
struct SceneViewContext<'a> {
    interest: &'a SceneInterest,
    records: &'a SceneMessages,
    changed: Option<&'a ViewChanges>,
}

impl<'a> ViewContext<'a, '_, '_> {
    /// The inputs of an object's scene; `None` if there is nothing to see.
    fn of(&self, object: &Object) -> Option<SceneViewContext<'a>> {
        Some(SceneViewContext {
            interest: self.scenes.get(object.scene_entity()).ok()?,
            records: self.records.get(&object.scene())?,
            changed: self.changed.get(&object.scene()),
        })
    }
}

/// An entry of a view list.
fn view_entry(interest: &SceneInterest, id: u32, class: u8) -> ViewEntry {
    ViewEntry {
        id,
        generation: interest.generation(ObjectId(id)).0,
        class,
    }
}

/// Starts a client's scene: everything that its object sees waits to be sent, and what it kept before a resume with fresh snapshots.
fn start_scene(
    state: &mut ClientState,
    own: ObjectRef,
    variant: AudienceVariant,
    interest: &SceneInterest,
) {
    let resent = state.take_resent(ids_of(own));
    state.start_scene(ids_of(own), variant);
    let view = interest.views().seen_by(own.id.0);
    let view = view.map(|(target, class)| view_entry(interest, target, class));
    state.pending.extend(view);
    let kept = resent.into_iter();
    state.resend(kept.filter(|&object| interest.keeps(own.id.0, object)));
}

/// Applies the changes of a client's view list, and removes objects that it does not keep any more; whether anything changed.
fn follow_view(
    state: &mut ClientState,
    own: u32,
    changes: &[ViewChange],
    (interest, records): (&SceneInterest, &SceneMessages),
    (kept_max, evicted): (usize, &mut u64),
) -> bool {
    for change in changes {
        let now = change
            .class
            .map(|class| view_entry(interest, change.target, class));
        let known = (change.target, records.known_generation(change.target));
        let is_kept = now.is_none() && interest.keeps(own, known);
        state.apply_view_change(known, now, is_kept);
    }
    let (any, all) = (interest.has_keep_changes(), interest.is_keep_changed(own));
    let kept = state.kept_ids().len();
    if kept == 0 || !any && kept <= kept_max {
        return !changes.is_empty();
    }
    let (removed, excess) = state.update_kept(
        kept_max,
        |id| records.known_generation(id),
        |id| all || interest.is_keep_changed(id),
        |object| interest.keeps(own, object),
    );
    *evicted += excess as u64;
    !changes.is_empty() || removed > 0
}

/// Updates one client's objects from what its object sees. `None` if it controls no object of a scene.
fn update_client_view(
    state: &mut ClientState,
    seat: &SessionView,
    of_scene: Option<&SceneViewContext>,
    news: &ViewContext,
    worker: &mut UpdateWorker,
) -> Option<()> {
    let own = seat.controlled?;
    let &SceneViewContext {
        interest,
        records,
        changed,
    } = of_scene?;
    let (attributes, allowance) = (news.attributes, news.budget);
    // It controls another object than it knows, so everything has to be sent again.
    let begins = state.controlled != Some(ids_of(own.reference()));
    let (scene, id, views) = (own.scene(), own.id(), interest.views());
    let mut moved = begins;
    if begins {
        let variant = attributes.variant(Attributes::CONTROLLER);
        start_scene(state, own.reference(), variant, interest);
        worker.requests.push(SnapshotRequest {
            scene,
            id: id.0,
            generation: own.generation().0,
            variant,
            is_unseen: false,
        });
    } else {
        let changes = changed.map_or(&[][..], |changed| changed.of_viewer(id.0));
        let evicted = &mut worker.sent.kept_evicted;
        moved = follow_view(
            state,
            id.0,
            changes,
            (interest, records),
            (news.kept_max, evicted),
        );
    }
    let position = |id| views.position(id).unwrap_or_default();
    state.select_entering(allowance, id.0, position, &mut worker.scratch);
    let entering = state.entering.iter().map(|entering| SnapshotRequest {
        scene,
        id: entering.id,
        generation: entering.generation,
        variant: attributes.variant(relation(records, id.0, entering.id)),
        is_unseen: false,
    });
    worker.requests.extend(entering);
    let meeting = unseen::update_unseen(
        state,
        own.reference(),
        moved,
        allowance.enters_per_tick_max,
        (records, news.parties, attributes),
        &mut worker.expected,
    );
    worker
        .requests
        .extend(meeting.iter().map(|remote| SnapshotRequest {
            scene: remote.object.scene,
            id: remote.object.id.0,
            generation: remote.object.generation.0,
            variant: remote.variant,
            is_unseen: true,
        }));
    Some(())
}
