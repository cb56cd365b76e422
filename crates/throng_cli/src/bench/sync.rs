//! `throng bench sync`: dirty masks compared with flags and hash sets, and replication of a walking crowd.
//!
//! Masks are marked directly and collected as in the tick; their peers get the same marks, and the sums of the collected changes must be
//! equal. Replication is timed from the collection of changes to every client's list of messages, on one thread; packets are built
//! afterwards (see `throng bench outbox`). Some clients hold mirrors, whose positions are compared with the server's.

use std::collections::BTreeMap;
use std::hash::RandomState;
use std::sync::{Arc, Mutex, PoisonError};

use bevy_ecs::prelude::*;
use foldhash::fast::FixedState;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::CliError;
use super::dirty_flags::{FLAGS, Flags, Pairs, SkippingFlags};
use super::rows::BenchRow;
use crate::is_interrupted;
use throng::outbox::PacketSink;
use throng::sim::clock::Stopwatch;
use throng::sync::{Mirror, SyncSettings};
use throng::sync::{SlotMasks, bits};
use throng::wire::{Channel, ClientId};
use throng_scenario::walking_server::{TICK_HZ, WalkingServer};

const SYSTEM: &str = "sync";

/// Objects, and the number of dirty ones per collection: 1 %.
const OBJECTS: u32 = 10_000;
const DIRTY: usize = 100;
/// Marked attributes per dirty object.
const MARKS: usize = 4;
/// Passes over all rounds; the median is reported.
const REPEATS: usize = 5;

pub(super) fn measure(quick: bool) -> Result<Vec<BenchRow>, CliError> {
    let mut rows = masks(if quick { 200 } else { 1_000 });
    rows.push(change_detection(if quick { 50 } else { 200 }));
    if is_interrupted() {
        return Ok(rows);
    }
    let (objects, clients, ticks) = if quick {
        (2_000, 200, 200)
    } else {
        (10_000, 1_000, 400)
    };
    rows.extend(replication(objects, clients, ticks)?);
    Ok(rows)
}

/// Nanoseconds per mark in each pass, and the sum of the collected changes, which is the same in each.
#[derive(Default)]
struct Collected {
    ns_per_mark: Vec<f64>,
    sum: u64,
}

impl Collected {
    fn add(&mut self, (ns_a_mark, sum): (f64, u64)) {
        self.ns_per_mark.push(ns_a_mark);
        self.sum = sum;
    }
}

/// Adds a pair to a sum that does not depend on the order, because each side collects in its own order.
const fn add_pair(sum: &mut u64, object: u32, bit: u32) {
    let pair = object as u64 * FLAGS as u64 + bit as u64 + 1;
    *sum = sum.wrapping_add(pair.wrapping_mul(0x9E37_79B9_7F4A_7C15));
}

/// Passes of all variants over the same marks, alternating.
fn masks(rounds: usize) -> Vec<BenchRow> {
    let mut random = Pcg64Mcg::seed_from_u64(7);
    let marks_of_round = |_| -> Vec<(u32, u32)> {
        let dirty = (0..DIRTY).flat_map(|_| {
            let object = random.random_range(0..OBJECTS);
            [(); MARKS].map(|()| (object, random.random_range(0..FLAGS as u32)))
        });
        dirty.collect()
    };
    let marks: Vec<Vec<(u32, u32)>> = (0..rounds).map(marks_of_round).collect();
    let mut masks = SlotMasks::new(1);
    masks.grow(OBJECTS as usize);
    let mut flags = Flags::new(OBJECTS as usize);
    let mut skipping = SkippingFlags::new(OBJECTS as usize);
    let mut pairs = Pairs::<RandomState>::default();
    let mut quick_pairs = Pairs::<FixedState>::default();
    let (mut found, mut all) = (Collected::default(), <[Collected; 4]>::default());
    // Each variant runs all rounds before the next one does: if they alternated per round, the peers' tables would evict the masks from the
    // caches.
    for _ in 0..REPEATS {
        found.add(timed(&marks, |marks, sum| {
            marks.iter().for_each(|&(o, bit)| masks.mark(o, bit));
            masks.drain(|object, mask| {
                bits(mask).for_each(|bit| add_pair(sum, object, bit as u32));
                mask.fill(0);
            });
        }));
        all[0].add(timed(&marks, |marks, sum| {
            marks.iter().for_each(|&(o, bit)| flags.mark(o, bit));
            flags.collect(|object, bit| add_pair(sum, object, bit));
        }));
        all[1].add(timed(&marks, |marks, sum| {
            marks.iter().for_each(|&(o, bit)| skipping.mark(o, bit));
            skipping.collect(|object, bit| add_pair(sum, object, bit));
        }));
        all[2].add(timed(&marks, |marks, sum| {
            marks.iter().for_each(|&(o, bit)| pairs.mark(o, bit));
            pairs.collect(|object, bit| add_pair(sum, object, bit));
        }));
        all[3].add(timed(&marks, |marks, sum| {
            marks.iter().for_each(|&(o, bit)| quick_pairs.mark(o, bit));
            quick_pairs.collect(|object, bit| add_pair(sum, object, bit));
        }));
    }
    mask_rows(&found, &all)
}

/// The peers of the masks: case, name, minimum ratio, and description.
const PEERS: [(&str, &str, Option<f64>, &str); 4] = [
    (
        "beside flags",
        "flags",
        Some(70.0),
        "one flag per attribute, all of them tested",
    ),
    (
        "beside skipping",
        "skipping",
        Some(10.0),
        "the same with a flag per object",
    ),
    (
        "beside HashSet",
        "HashSet",
        Some(3.0),
        "a hash set of pairs",
    ),
    (
        "beside foldhash",
        "HashSet, foldhash",
        None,
        "the same with a faster hash function",
    ),
];

fn mask_rows(found: &Collected, all: &[Collected; 4]) -> Vec<BenchRow> {
    let row = |case| BenchRow::repeated(SYSTEM, case, &found.ns_per_mark, "ns/mark");
    let first = row("mark and collect")
        .about(format!(
            "Marking {MARKS} attributes of {DIRTY} of {OBJECTS} objects and collecting what is \
             marked."
        ))
        .with_target_below(4.0, "ns");
    let rows = PEERS
        .iter()
        .zip(all)
        .map(|((case, name, least, what), other)| {
            let row = row(*case)
                .with_repeated_reference(name, &other.ns_per_mark)
                .about(format!("The same marks, compared with {what}."))
                .with_comparison("the collected marks", other.sum == found.sum);
            match least {
                Some(least) => row.with_target_ratio(*least),
                None => row,
            }
        });
    std::iter::once(first).chain(rows).collect()
}

/// One pass over all rounds: nanoseconds per mark, and the sum of the collected changes.
fn timed(marks: &[Vec<(u32, u32)>], mut work: impl FnMut(&[(u32, u32)], &mut u64)) -> (f64, u64) {
    let mut sum = 0;
    let watch = Stopwatch::start();
    marks.iter().for_each(|marks| work(marks, &mut sum));
    let ns = watch.elapsed().as_secs_f64() * 1e9;
    (ns / (marks.len() * DIRTY * MARKS) as f64, sum)
}

#[derive(Component)]
struct BenchHealth(u32);

/// The cost of finding changes by a scan over all objects with the attribute.
fn change_detection(rounds: usize) -> BenchRow {
    let mut world = World::new();
    let entities: Vec<Entity> = (0..OBJECTS)
        .map(|_| world.spawn(BenchHealth(100)).id())
        .collect();
    let mut found = 0usize;
    let mut changed = world.query_filtered::<&BenchHealth, Changed<BenchHealth>>();
    let (mut ns_a_row, mut random) = (Vec::new(), Pcg64Mcg::seed_from_u64(7));
    for _ in 0..rounds {
        world.clear_trackers();
        for _ in 0..DIRTY {
            let nth = random.random_range(0..entities.len());
            if let Some(mut health) = world.get_mut::<BenchHealth>(entities[nth]) {
                health.0 += 1;
            }
        }
        let watch = Stopwatch::start();
        found += changed.iter(&world).count();
        ns_a_row.push(watch.elapsed().as_secs_f64() * 1e9 / f64::from(OBJECTS));
    }
    let is_found = found > 0 && found <= rounds * DIRTY;
    BenchRow::repeated(SYSTEM, "change detection", &ns_a_row, "ns/row")
        .about("Finding changed components by a scan, as Bevy's change detection does; one row per object.")
        .with_comparison("all changes are found", is_found)
        .with_target_below(1.0, "ns")
}

/// Mirrors of some clients, updated in the tick.
#[derive(Clone, Default)]
struct SampledMirrors {
    mirrors: Arc<Mutex<BTreeMap<ClientId, (Mirror, u64)>>>,
}

impl PacketSink for SampledMirrors {
    fn deliver(&mut self, client: ClientId, _channel: Channel, packet: &[u8]) {
        let mut mirrors = self.mirrors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((mirror, faults)) = mirrors.get_mut(&client) {
            *faults += u64::from(mirror.receive(packet).is_err());
        }
    }
}

impl SampledMirrors {
    /// Number of packets that a mirror rejected.
    fn error_count(&self) -> u64 {
        let mirrors = self.mirrors.lock().unwrap_or_else(PoisonError::into_inner);
        mirrors.values().map(|&(_, faults)| faults).sum()
    }
}

/// Replication with dead reckoning and distance tiers, and with everything sent every tick.
fn replication(objects: u32, clients: u32, ticks: u64) -> Result<Vec<BenchRow>, CliError> {
    // The density of 10,000 objects in 1 km².
    let side_m = (objects as f32 / 10_000.0).sqrt() * 1_000.0;
    let everything = SyncSettings {
        motion_tolerance_m: 0.0,
        full_rate_distance_m: side_m * 2.0,
        bytes_per_client_s: u32::MAX / 2,
        ..SyncSettings::default()
    };
    let mut rows = Vec::new();
    for (case, settings, aim, ticks) in [
        ("a link and tick", SyncSettings::default(), 10.0, ticks),
        ("everything sent", everything, 50.0, ticks / 4),
    ] {
        let mut server = WalkingServer::new(objects, clients, side_m, settings)
            .map_err(|error| CliError::new(error.to_string()))?;
        let mirrors = SampledMirrors::default();
        let watched: Vec<_> = server.clients().step_by(50).collect();
        let begun = watched
            .iter()
            .map(|&(client, _)| (client, Default::default()));
        *mirrors
            .mirrors
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = begun.collect();
        server.set_sink(Box::new(mirrors.clone()));
        // Runs until all views are full.
        for _ in 0..60 {
            server.step();
        }
        let (before, packed_before) = server.stats();
        let (mut times, mut links, mut off_m) = (TickTimes::default(), 0, Vec::new());
        for tick in 0..ticks {
            let ns = server.step().as_secs_f64() * 1e9;
            let tick_links = server.stats().0.links;
            times.ms.push(ns / 1e6);
            times.ns_per_link.push(ns / tick_links.max(1) as f64);
            links += tick_links;
            if tick % 7 == 0 {
                position_errors(&server, &mirrors, &watched, &mut off_m);
            }
        }
        let (after, packed) = server.stats();
        off_m.sort_unstable_by(f32::total_cmp);
        let faults = mirrors.error_count();
        let seconds = ticks as f64 / TICK_HZ;
        let bytes = (packed.bytes - packed_before.bytes) as f64;
        rows.extend(replication_rows(
            &format!("{case}/{objects}"),
            case,
            aim,
            &times,
            links,
            &off_m,
            faults,
            bytes / f64::from(clients) / seconds,
            after.sent.motions.messages - before.sent.motions.messages,
        ));
        if is_interrupted() {
            break;
        }
    }
    Ok(rows)
}

/// The rows of one case. `off_m` are the position errors of the mirrors, sorted.
fn replication_rows(
    name: &str,
    case: &str,
    aim: f64,
    times: &TickTimes,
    links: u64,
    off_m: &[f32],
    faults: u64,
    bytes_per_client_s: f64,
    sent: u64,
) -> [BenchRow; 5] {
    let p99_m = off_m
        .get(off_m.len() * 99 / 100)
        .copied()
        .unwrap_or(f32::MAX);
    let row =
        |what: &str, value, unit| BenchRow::new(SYSTEM, format!("{case}, {what}"), value, unit);
    [
        BenchRow::repeated(SYSTEM, name, &times.ns_per_link, "ns/link")
            .about(
                "From the changes to every client's list of messages, per view link; \
                 all objects walk.",
            )
            .with_comparison(
                format!("mirrors accept every packet ({faults} rejected)"),
                faults == 0,
            )
            .with_target_below(aim, "ns"),
        BenchRow::repeated(SYSTEM, format!("{case}, a tick"), &times.ms, "ms")
            .about("The same, per tick."),
        row("bytes", bytes_per_client_s / 1e3, "kB/s").about("Bytes sent to a client per second."),
        row("sent", 100.0 * sent as f64 / links as f64, "% links").about(
            "Share of view links for which a tick sends a motion; clients predict the others.",
        ),
        row("off p99", f64::from(p99_m * 100.0), "cm")
            .about("The p99 of position errors in mirrors, for objects within 20 m.")
            .with_target("at most 10 cm", p99_m <= 0.1),
    ]
}

/// The time of each tick.
#[derive(Default)]
struct TickTimes {
    ms: Vec<f64>,
    ns_per_link: Vec<f64>,
}

/// Position errors of mirrors for objects within 20 m, in metres.
fn position_errors(
    server: &WalkingServer,
    mirrors: &SampledMirrors,
    watched: &[(ClientId, throng::world::Object)],
    off_m: &mut Vec<f32>,
) {
    let places: BTreeMap<u32, glam::Vec2> = server.positions().collect();
    let mirrors = mirrors
        .mirrors
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    for (client, own) in watched {
        let (Some((mirror, _)), Some(own)) = (mirrors.get(client), places.get(&own.id().0)) else {
            continue;
        };
        for id in mirror.ids() {
            if let (Some(at), Some(believed)) =
                (places.get(&id), mirror.position(id, server.tick()))
                && at.distance(*own) <= 20.0
            {
                off_m.push(at.distance(believed));
            }
        }
    }
}
