//! Each client's line of the batch.

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};

use super::attributes::Attributes;
use super::audience::relation;
use super::clients::{ClientJob, jobs};
use super::messages::write_delta;
use super::replicator::{FillWorker, Replicator, words};
use super::sent_values::SentValues;
use super::settings::SyncSettings;
use super::stats::SyncStats;
use crate::aoi::SceneInterest;
use crate::outbox::{CloseReason, Outbox, OutboxSettings};
use crate::session::Sessions;
use crate::sim::{SimTick, Workers};
use crate::sync::client::{ClientState, Link, Surroundings};
use crate::sync::records::Variant;
use crate::wire::{ClientId, Hello};
use crate::world::{Object, ObjectId, Scene, SceneObjects};

/// Each client's line: what of all that it is sent.
pub(super) fn write_lines(
    mut replicator: ResMut<Replicator>,
    mut outbox: ResMut<Outbox>,
    mut stats: ResMut<SyncStats>,
    (sessions, attributes): (Res<Sessions>, Res<Attributes>),
    (settings, packing): (Res<SyncSettings>, Res<OutboxSettings>),
    (tick, time): (Res<SimTick>, Res<Time<Fixed>>),
    pool: Res<Workers>,
    objects: Query<&Object>,
    scenes: Query<(&Scene, &SceneInterest)>,
    ids: Query<&SceneObjects>,
    values: Query<&SentValues>,
) {
    let Replicator {
        scenes: records,
        clients,
        workers,
        gone,
        ..
    } = &mut *replicator;
    let tick_s = time.timestep().as_secs_f32();
    let allowance = settings.allowance(tick_s);
    let mtu_bytes = packing.mtu_bytes as u32;
    let hello = |client: ClientId| Hello {
        client: client.0,
        tick_millihertz: (1000.0 / tick_s).round() as u32,
        tick: tick.0,
        mtu_bytes,
    };
    let all_records = &*records;
    let mut jobs = jobs(clients, records, &sessions, &objects, &scenes);
    let shared = &*outbox.batch_mut().shared;
    pool.for_each_chunk(&mut jobs, 32, workers, |worker, _, jobs| {
        let FillWorker {
            scratch,
            part,
            sent,
            ..
        } = worker;
        for ClientJob {
            state,
            own,
            records,
            scene,
            ..
        } in jobs
        {
            // It was given control in the middle of the tick, and begins in the next one.
            if state.own != Some(words(own.reference())) {
                continue;
            }
            let standing = records.standing(own.id().0);
            let values_of = |id| {
                let ids = ids.get(own.scene_entity()).ok()?;
                values.get(ids.entity(ObjectId(id))?).ok()
            };
            let around = Surroundings {
                records,
                scenes: all_records,
                shared,
                size_m: scene.size_m(),
                tick: tick.0,
                allowance,
                hello: hello(state.client),
                relation: |id| {
                    if id == own.id().0 {
                        attributes.variant(Attributes::OWN)
                    } else {
                        attributes.variant(relation(standing, records.standing(id)))
                    }
                },
                catch_up: |link: &Link, to: Variant, bytes: &mut Vec<u8>| {
                    let told = |variant: Variant| attributes.told()[usize::from(variant.0)];
                    let (mut more, before) = (told(to), told(link.variant));
                    more.iter_mut()
                        .zip(before)
                        .for_each(|(more, had)| *more &= !had);
                    if let Some(sent) = values_of(link.id) {
                        let (id, generation) = (link.id, link.generation);
                        write_delta(bytes, id, generation, &attributes, (sent, &more));
                    }
                },
            };
            let input = sessions
                .get(state.client)
                .map_or(0, |session| session.inputs);
            part.begin(state.client, state.epoch, input);
            state.fill(part, &around, scratch, sent);
            part.end();
        }
    });
    let count = |of: fn(&ClientState) -> usize| clients.iter().map(|state| of(state) as u64).sum();
    stats.links = count(|state| state.links.len());
    stats.waiting = count(|state| state.waiting.len());
    let last = outbox.batch_mut().part(workers.len());
    for client in gone.drain(..) {
        last.begin(client, 0, 0);
        last.close(CloseReason::Ended);
    }
    last.end();
    // Chunks are consecutive, so their parts are too.
    for (nth, worker) in workers.iter_mut().enumerate() {
        std::mem::swap(outbox.batch_mut().part(nth), &mut worker.part);
        stats.sent.add(std::mem::take(&mut worker.sent));
    }
}
