//! Each client's line of the batch.

use std::collections::BTreeMap;

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
use crate::sync::client::{Allowance, ClientState, Link, Surroundings};
use crate::sync::records::{SceneRecords, Variant};
use crate::wire::Hello;
use crate::world::{Object, ObjectId, Scene, SceneId, SceneObjects};

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
    ids: Query<&'static SceneObjects>,
    values: Query<&'static SentValues>,
) {
    let Replicator {
        scenes: records,
        clients,
        workers,
        gone,
        ..
    } = &mut *replicator;
    let tick_s = time.timestep().as_secs_f32();
    let news = TickNews {
        scenes: records,
        shared: &outbox.batch_mut().shared,
        allowance: settings.allowance(tick_s),
        hello: Hello {
            client: 0,
            tick_millihertz: (1000.0 / tick_s).round() as u32,
            tick: tick.0,
            mtu_bytes: packing.mtu_bytes as u32,
        },
        sessions: &sessions,
        attributes: &attributes,
        ids: &ids,
        values: &values,
    };
    let mut jobs = jobs(clients, records, &sessions, &objects, &scenes);
    pool.for_each_chunk(&mut jobs, 32, workers, |worker, _, jobs| {
        jobs.iter_mut()
            .for_each(|job| write_line(job, &news, worker));
    });
    // Chunks are consecutive, so their parts are too; those who control nothing any more, or are gone, follow them.
    let last = outbox.batch_mut().part(workers.len());
    for state in clients.iter_mut().filter(|state| state.is_to_part()) {
        let input = sessions.input(state.client);
        state.fill_parting(last, input, &mut stats.sent);
    }
    for client in gone.drain(..) {
        last.begin(client, 0, 0);
        last.close(CloseReason::Ended);
    }
    last.end();
    let count = |of: fn(&ClientState) -> usize| clients.iter().map(|state| of(state) as u64).sum();
    stats.links = count(|state| state.links.len());
    stats.waiting = count(|state| state.waiting.len());
    for (nth, worker) in workers.iter_mut().enumerate() {
        std::mem::swap(outbox.batch_mut().part(nth), &mut worker.part);
        stats.sent.add(std::mem::take(&mut worker.sent));
    }
}

/// What all lines of a tick are made from.
struct TickNews<'a, 'w, 's> {
    scenes: &'a BTreeMap<SceneId, SceneRecords>,
    shared: &'a [u8],
    allowance: Allowance,
    /// The greeting, but for whom it is.
    hello: Hello,
    sessions: &'a Sessions,
    attributes: &'a Attributes,
    ids: &'a Query<'w, 's, &'static SceneObjects>,
    values: &'a Query<'w, 's, &'static SentValues>,
}

fn write_line(job: &mut ClientJob, news: &TickNews, worker: &mut FillWorker) {
    let ClientJob {
        state,
        own,
        records,
        scene,
        ..
    } = job;
    // It was given control in the middle of the tick, and begins in the next one.
    if state.own != Some(words(own.reference())) {
        return;
    }
    let (own_id, attributes, records) = (own.id().0, news.attributes, *records);
    let values_of = |id| {
        let ids = news.ids.get(own.scene_entity()).ok()?;
        news.values.get(ids.entity(ObjectId(id))?).ok()
    };
    let around = Surroundings {
        records,
        scenes: news.scenes,
        shared: news.shared,
        size_m: scene.size_m(),
        tick: news.hello.tick,
        input: news.sessions.input(state.client),
        allowance: news.allowance,
        hello: Hello {
            client: state.client.0,
            ..news.hello
        },
        relation: |id| {
            if id == own_id {
                attributes.variant(Attributes::OWN)
            } else {
                attributes.variant(relation(records, own_id, id))
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
                write_delta(bytes, id, generation, attributes, (sent, &more));
            }
        },
    };
    let FillWorker {
        scratch,
        part,
        sent,
        ..
    } = worker;
    state.fill(part, &around, scratch, sent);
}
