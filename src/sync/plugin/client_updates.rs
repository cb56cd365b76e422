//! The update of each client in the batch.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use glam::Vec2;

use super::attributes::Attributes;
use super::audience::relation;
use super::clients::SessionView;
use super::messages::write_delta;
use super::replicator::{Replicator, UpdateWorker};
use super::sent_values::SentValues;
use super::settings::SyncSettings;
use super::stats::SyncStats;
use crate::movement::MaxSpeed;
use crate::outbox::{BatchPart, Outbox, OutboxSettings, OutgoingBatch, SlowConsumerDetected};
use crate::session::{ControlledBy, SessionClient, SessionClosed, SessionNoticeRequest};
use crate::sim::{Overload, SimTick, Workers};
use crate::sync::client::{ClientState, ClientUpdateInput};
use crate::sync::resume_buffer::ResumeBufferLimits;
use crate::sync::scene_messages::{AudienceVariant, SceneMessages};
use crate::sync::send_budget::SendBudget;
use crate::sync::sent_log::SentLog;
use crate::wire::{Hello, tick_millihertz};
use crate::world::{Object, ObjectId, SceneId, SceneIds, SimScene};

/// The prefetch distance, in clients: of a client's objects, and twice as far ahead of the location of these.
const PREFETCH_DISTANCE: usize = 2;

/// Objects with another speed than in the last tick, and the clients of sessions.
type ChangedSpeeds<'w, 's> = (
    Query<'w, 's, (&'static ControlledBy, &'static MaxSpeed), Changed<MaxSpeed>>,
    Query<'w, 's, &'static SessionClient>,
);

/// Writes each client's update.
pub(super) fn write_client_updates(
    mut replicator: ResMut<Replicator>,
    mut outbox: ResMut<Outbox>,
    mut stats: ResMut<SyncStats>,
    attributes: Res<Attributes>,
    (mut notices, mut closed, mut behind): (
        MessageReader<SessionNoticeRequest>,
        MessageReader<SessionClosed>,
        MessageWriter<SlowConsumerDetected>,
    ),
    (settings, packing, overload): (Res<SyncSettings>, Res<OutboxSettings>, Res<Overload>),
    (tick, time): (Res<SimTick>, Res<Time<Fixed>>),
    pool: Res<Workers>,
    sizes: Query<&'static SimScene>,
    ids: Query<&'static SceneIds>,
    values: Query<&'static SentValues>,
    speeds: Query<&'static MaxSpeed>,
    changed_speeds: ChangedSpeeds,
) {
    let Replicator {
        scenes: records,
        clients,
        sessions: seats,
        workers,
        closed_clients: gone,
        closing,
        sent_log: sent,
        ..
    } = &mut *replicator;
    // The parts that `Send` emptied are filled again.
    swap_parts(workers, outbox.batch_mut());
    closing.extend(closed.read().copied());
    add_notices(clients, notices.read());
    update_own_speeds(clients, &changed_speeds);
    let tick_s = time.timestep().as_secs_f32();
    let hello = Hello {
        client: 0,
        tick_millihertz: tick_millihertz(tick_s),
        tick: tick.0,
        mtu_bytes: packing.mtu_bytes as u32,
    };
    let news = UpdateContext {
        scenes: records,
        shared: &outbox.batch_mut().shared,
        budget: settings.send_budget(tick_s, &overload),
        resume_limits: settings.resume_limits(tick_s),
        hello,
        attributes: &attributes,
        sizes: &sizes,
        ids: &ids,
        values: &values,
        speeds: &speeds,
    };
    let limits = news.resume_limits;
    let seats = &*seats;
    pool.for_each_chunk(clients, 32, workers, |worker, first, clients| {
        write_chunk(clients, &seats[first..], &news, worker);
    });
    let assembled = (&mut workers[..], &*outbox.batch_mut(), *pool);
    store_sent(sent, assembled, clients, tick.0, limits);
    // Chunks are consecutive, so their parts are too; closed clients come after them.
    let last = outbox.batch_mut().part(workers.len());
    close_clients(closing, (clients, gone), last, &hello);
    swap_parts(workers, outbox.batch_mut());
    (stats.links, stats.kept, stats.pending_snapshots) = (0, 0, 0);
    for worker in workers {
        stats.sent.add(std::mem::take(&mut worker.sent));
        let [links, kept, waiting] = std::mem::take(&mut worker.counts);
        stats.links += links;
        stats.kept += kept;
        stats.pending_snapshots += waiting;
        behind.write_batch(
            worker
                .slow_consumers
                .drain(..)
                .map(|client| SlowConsumerDetected { client }),
        );
    }
}

/// Adds notices to the updates of their clients.
fn add_notices<'a>(
    clients: &mut [ClientState],
    notices: impl Iterator<Item = &'a SessionNoticeRequest>,
) {
    for SessionNoticeRequest { client, notice } in notices {
        if let Ok(place) = clients.binary_search_by_key(client, |state| state.client) {
            clients[place].add_notice(*notice);
        }
    }
}

/// Sets the changed speeds of clients' objects. A client whose scene starts reads the speed itself.
fn update_own_speeds(clients: &mut [ClientState], (changed, sessions): &ChangedSpeeds) {
    for (&ControlledBy(session), speed) in changed {
        let Ok(client) = sessions.get(session).map(|of| of.client()) else {
            continue;
        };
        if let Ok(place) = clients.binary_search_by_key(&client, |state| state.client)
            && !clients[place].needs_own_speed()
        {
            clients[place].set_own_speed(speed.m_s());
        }
    }
}

/// Swaps each worker's part with that of the batch.
fn swap_parts(workers: &mut [UpdateWorker], batch: &mut OutgoingBatch) {
    for (nth, worker) in workers.iter_mut().enumerate() {
        std::mem::swap(batch.part(nth), &mut worker.part);
    }
}

/// Stores the messages that were sent as long as they may be in flight, up to the limit per client times the number of clients.
fn store_sent(
    sent: &mut SentLog,
    (workers, batch, pool): (&mut [UpdateWorker], &OutgoingBatch, Workers),
    clients: &mut [ClientState],
    tick: u64,
    limits: ResumeBufferLimits,
) {
    let parts = workers.iter_mut().map(|worker| &mut worker.sent_part);
    sent.push(tick, (&batch.shared, &batch.shared_starts), parts, pool);
    let bytes_max = limits.bytes_max.saturating_mul(clients.len());
    let oldest = tick.saturating_sub(limits.ticks);
    sent.trim(oldest, bytes_max, |announce| {
        if let Ok(place) = clients.binary_search_by_key(&announce.client, |state| state.client) {
            clients[place].drop_announcements(announce.end);
        }
    });
}

/// Writes the last updates of clients whose sessions ended. Sessions that ended after this tick's update of the clients are
/// closed in the next tick.
fn close_clients(
    closing: &mut Vec<SessionClosed>,
    (clients, gone): (&[ClientState], &mut Vec<ClientState>),
    last: &mut BatchPart,
    hello: &Hello,
) {
    closing.sort_unstable_by_key(|closed| closed.client);
    closing.retain(|closed| {
        let client = closed.client;
        if clients
            .binary_search_by_key(&client, |state| state.client)
            .is_ok()
        {
            return true;
        }
        let known = gone
            .binary_search_by_key(&client, |state| state.client)
            .ok();
        let known =
            known.map(|place| std::mem::replace(&mut gone[place], ClientState::new(client)));
        let reason = closed.reason.close_reason();
        if closed.receives {
            // A client that connected and left within a tick has no state.
            let mut state = known.unwrap_or_else(|| ClientState::new(client));
            state.close(last, (reason, closed.refusal), hello);
        } else {
            last.begin_client(client, 0, 0);
            last.close(reason);
            last.end_client();
        }
        false
    });
    gone.clear();
}

/// The inputs of all updates of a tick.
struct UpdateContext<'a, 'w, 's> {
    scenes: &'a BTreeMap<SceneId, SceneMessages>,
    shared: &'a [u8],
    budget: SendBudget,
    resume_limits: ResumeBufferLimits,
    /// The *Hello* message, without the client's id.
    hello: Hello,
    attributes: &'a Attributes,
    sizes: &'a Query<'w, 's, &'static SimScene>,
    ids: &'a Query<'w, 's, &'static SceneIds>,
    values: &'a Query<'w, 's, &'static SentValues>,
    speeds: &'a Query<'w, 's, &'static MaxSpeed>,
}

/// The inputs of one scene.
struct SceneContext<'a> {
    records: &'a SceneMessages,
    size_m: Vec2,
    ids: &'a SceneIds,
}

impl<'a> UpdateContext<'a, '_, '_> {
    /// The inputs of an object's scene; `None` if it is gone.
    fn of(&self, object: &Object) -> Option<SceneContext<'a>> {
        let scene = object.scene_entity();
        Some(SceneContext {
            records: self.scenes.get(&object.scene())?,
            size_m: self.sizes.get(scene).ok()?.size_m(),
            ids: self.ids.get(scene).ok()?,
        })
    }
}

/// Writes the updates of some clients, whose sessions are in the same order.
fn write_chunk(
    clients: &mut [ClientState],
    seats: &[SessionView],
    news: &UpdateContext,
    worker: &mut UpdateWorker,
) {
    // Usually the next client is in the same scene.
    let mut scene = None;
    for nth in 0..clients.len() {
        if let Some(ahead) = clients.get(nth + 2 * PREFETCH_DISTANCE) {
            ahead.prefetch();
        }
        if let Some(ahead) = clients.get(nth + PREFETCH_DISTANCE) {
            ahead.prefetch_objects();
        }
        if let Some(own) = seats[nth].controlled
            && scene.as_ref().is_none_or(|(of, _)| *of != own.scene())
        {
            scene = Some((own.scene(), news.of(&own)));
        }
        let scene = scene.as_ref().and_then(|(_, news)| news.as_ref());
        write_update(&mut clients[nth], &seats[nth], scene, news, worker);
    }
}

/// Writes a client's update, if it has one, and stores it.
fn write_update(
    state: &mut ClientState,
    seat: &SessionView,
    of_scene: Option<&SceneContext>,
    news: &UpdateContext,
    worker: &mut UpdateWorker,
) {
    let (before, snapshots) = (worker.part.len(), worker.sent.snapshots);
    if fill_update(state, seat, of_scene, news, worker).is_none() {
        state.end_scene();
        if state.has_pending_scene_end() || state.has_notices() || state.has_missed() {
            state.write_scene_end(
                &mut worker.part,
                seat.last_input,
                &news.hello,
                &mut worker.sent,
            );
        }
        // A client without an object does not take them, and they are valid in this tick only.
        state.announcements.clear();
    }
    let sent = worker.sent.snapshots;
    state.count_snapshots(
        sent.bytes - snapshots.bytes,
        sent.messages - snapshots.messages,
    );
    let kept = (news.hello.tick, news.resume_limits);
    let parts = (&mut worker.part, &mut worker.sent_part);
    state.store_update(parts, before, news.shared, kept);
    if std::mem::take(&mut state.is_slow_consumer) {
        worker.slow_consumers.push(state.client);
    }
    worker.counts[0] += state.objects.len() as u64;
    worker.counts[1] += state.kept_ids().len() as u64;
    worker.counts[2] += state.pending.len() as u64;
}

/// The update of a client that controls an object; `None` if it does not.
fn fill_update(
    state: &mut ClientState,
    seat: &SessionView,
    of_scene: Option<&SceneContext>,
    news: &UpdateContext,
    worker: &mut UpdateWorker,
) -> Option<()> {
    let own = seat.controlled.filter(|_| state.controlled.is_some())?;
    let &SceneContext {
        records,
        size_m,
        ids,
    } = of_scene?;
    let (own_id, attributes) = (own.id().0, news.attributes);
    // It may have disappeared in the middle of the tick.
    let own_entity = ids.entity(own.id())?;
    if state.needs_own_speed() {
        // Without a speed it cannot be moved by its client.
        let speed_m_s = news.speeds.get(own_entity).map_or(0.0, |speed| speed.m_s());
        state.set_own_speed(speed_m_s);
    }
    let values_of = |id| news.values.get(ids.entity(ObjectId(id))?).ok();
    let around = ClientUpdateInput {
        messages: records,
        scenes: news.scenes,
        shared: news.shared,
        size_m,
        tick: news.hello.tick,
        last_input: seat.last_input,
        has_input_numbers: seat.has_input_numbers,
        budget: news.budget,
        hello: &news.hello,
        relation: |id| {
            if id == own_id {
                attributes.variant(Attributes::CONTROLLER)
            } else {
                attributes.variant(relation(records, own_id, id))
            }
        },
        catch_up: |(id, generation): (u32, u32),
                   variants: [AudienceVariant; 2],
                   bytes: &mut Vec<u8>| {
            let set_of =
                |variant: AudienceVariant| attributes.variant_sets()[usize::from(variant.0)];
            let [before, mut more] = variants.map(set_of);
            more.iter_mut()
                .zip(before)
                .for_each(|(more, had)| *more &= !had);
            if let Some(sent) = values_of(id) {
                write_delta(bytes, id, generation, attributes, (sent, &more));
            }
        },
    };
    let UpdateWorker {
        scratch,
        part,
        sent,
        ..
    } = worker;
    state.write_update(part, &around, scratch, sent);
    Some(())
}
