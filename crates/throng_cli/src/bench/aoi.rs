//! `throng bench aoi`: interest management compared with a pool of pairs and with plain sets, in hot spots, in large scenes and in many
//! scenes.
//!
//! Times are medians of whole ticks: setting every position, then an update that empties the queue. Except for the many scenes, a warm-up
//! comes first that is long enough for all lists to mix. Peers walk the same paths, in passes of their own. If caps do not apply, the lists
//! of all sides must be equal in every fourth tick; if they do, plain sets must have as many objects of each class as directed sight.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;

use super::CliError;
use super::rows::BenchRow;
use crate::is_interrupted;
use throng::aoi::reference_sets::SetViews;
use throng::aoi::{RERANK_TICKS, RemovalReason, SceneViews, ViewLinkMode};
use throng::memory::MemoryUse;
use throng::sim::Workers;
use throng::sim::clock::Stopwatch;
use throng_aoi::reference::PooledViews;
use throng_aoi::workload::{CAP, CELL_M, HotSpot, Walkers, traits};

const SYSTEM: &str = "aoi";
const SIDE_M: f32 = 1_000.0;

/// Players, target ms per tick when all run and when all walk, minimum ratio to plain sets, measured ticks.
const CROWDS: [(u32, [f64; 2], f64, usize); 3] = [
    (2_000, [0.2, 0.06], 3.0, 60),
    (10_000, [2.5, 0.4], 10.0, 20),
    (50_000, [30.0, 5.0], 30.0, 6),
];

/// Ticks before the measured ones: long enough for every full list to be re-ranked once.
const WARM_UP_TICKS: usize = 150;

pub(super) fn measure(quick: bool, threads: usize) -> Result<Vec<BenchRow>, CliError> {
    let mut rows = Vec::new();
    for (players, aims_ms, least, ticks) in &CROWDS[..if quick { 2 } else { 3 }] {
        rows.extend(crowd(*players, *aims_ms, *least, *ticks));
        if is_interrupted() {
            return Ok(rows);
        }
    }
    rows.push(within_cells());
    rows.extend([2.5, 0.25].map(rerank_share));
    rows.extend(hot_spot("directed", ViewLinkMode::Directed, 5_000, 60));
    rows.extend(hot_spot("mutual", ViewLinkMode::Mutual, 5_000, 60));
    rows.push(removals());
    if !quick {
        rows.extend(hot_spot("directed", ViewLinkMode::Directed, 50_000, 6));
        rows.extend(large_scene());
        rows.push(large_scene_side_by_side(threads));
    }
    rows.push(many_scenes(if quick { 10 } else { 50 }, threads));
    Ok(rows)
}

/// One of throng's designs under the workload, with its tick times.
struct TimedViews {
    views: SceneViews,
    ms: Vec<f64>,
    events: Vec<throng::aoi::ViewEvent>,
    event_count: usize,
}

impl TimedViews {
    fn new(views: SceneViews) -> Self {
        Self {
            views,
            ms: Vec::new(),
            events: Vec::new(),
            event_count: 0,
        }
    }

    fn tick(&mut self, locate: impl FnOnce(&mut SceneViews), scans_max: u32) {
        let watch = Stopwatch::start();
        locate(&mut self.views);
        self.events.clear();
        self.views.update(scans_max, &mut self.events);
        self.ms.push(watch.elapsed().as_secs_f64() * 1e3);
        self.event_count += self.events.len();
    }

    /// A design after the warm-up, which re-ranks a list every this many ticks.
    fn warmed_up(walkers: &mut Walkers, sight: ViewLinkMode, rerank_ticks: u32) -> Self {
        let mut side = Self::new(walkers.views(sight, CAP));
        side.views.set_rerank_ticks(rerank_ticks);
        for _ in 0..WARM_UP_TICKS {
            walkers.walk();
            side.tick(|views| walkers.locate(views), u32::MAX);
        }
        side.reset();
        side
    }

    /// Discards earlier measurements.
    fn reset(&mut self) {
        self.ms.clear();
        self.event_count = 0;
    }

    fn bytes_per_link(&self) -> f64 {
        self.views.heap_bytes() as f64 / self.views.link_count().max(1) as f64
    }
}

fn median(mut ms: Vec<f64>) -> f64 {
    ms.sort_unstable_by(f64::total_cmp);
    ms.get(ms.len() / 2).copied().unwrap_or_default()
}

/// Digests of all lists, which must be equal on two sides.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Digest {
    /// Of all view links.
    lists: u64,
    /// Of the number of objects per class in each list.
    classes: u64,
}

impl Digest {
    /// The digests of the lists of this many viewers; `list_of` appends ids and classes.
    fn of(viewers: u32, list_of: impl Fn(u32, &mut Vec<(u32, u8)>)) -> Self {
        let [mut lists, mut classes] = [(); 2].map(|()| FixedState::default().build_hasher());
        let mut list = Vec::new();
        for viewer in 0..viewers {
            list.clear();
            list_of(viewer, &mut list);
            list.sort_unstable_by_key(|&(_, class)| class);
            list.iter().for_each(|&(_, class)| classes.write_u8(class));
            classes.write_u8(u8::MAX);
            list.sort_unstable();
            list.iter().for_each(|&(id, _)| lists.write_u32(id));
            lists.write_u32(u32::MAX);
        }
        Self {
            lists: lists.finish(),
            classes: classes.finish(),
        }
    }
}

/// Measured ticks between two comparisons of lists. In between only the measured side runs, so that its data stays in the caches.
const COMPARE_EVERY: usize = 4;

/// Tick times of a side, and the digests of its lists after some ticks.
#[derive(Default)]
struct TimedPass {
    ms: Vec<f64>,
    digests: Vec<Digest>,
}

impl TimedPass {
    /// Runs the walk; `tick` is one tick of the side.
    fn run<S>(
        walkers: &mut Walkers,
        ticks: usize,
        side: &mut S,
        tick: impl Fn(&mut S, &Walkers) -> f64,
        digest: impl Fn(&S) -> Digest,
    ) -> Self {
        let mut pass = Self::default();
        for nth in 0..ticks {
            walkers.walk();
            pass.ms.push(tick(side, walkers));
            if nth.is_multiple_of(COMPARE_EVERY) {
                pass.digests.push(digest(side));
            }
        }
        pass
    }

    /// Whether two sides are equal in all ticks that both ran.
    fn agrees(&self, other: &Self, what: impl Fn(&Digest) -> u64) -> bool {
        let mut both = self.digests.iter().zip(&other.digests);
        both.all(|(mine, theirs)| what(mine) == what(theirs))
    }
}

fn timed(work: impl FnOnce()) -> f64 {
    let watch = Stopwatch::start();
    work();
    watch.elapsed().as_secs_f64() * 1e3
}

/// Measures one of throng's designs with its walkers, after the warm-up.
fn our_pass(mut walkers: Walkers, ticks: usize, sight: ViewLinkMode) -> (TimedViews, TimedPass) {
    let players = walkers.positions.len() as u32;
    let mut side = TimedViews::warmed_up(&mut walkers, sight, RERANK_TICKS);
    let tick = |side: &mut TimedViews, walkers: &Walkers| {
        side.tick(|views| walkers.locate(views), u32::MAX);
        side.ms.last().copied().unwrap_or_default()
    };
    let digest = |side: &TimedViews| {
        Digest::of(players, |viewer, list| {
            list.extend(side.views.seen_by(viewer))
        })
    };
    let pass = TimedPass::run(&mut walkers, ticks, &mut side, tick, digest);
    (side, pass)
}

/// Measures plain sets and the reference design on the same paths, one after the other.
fn peer_passes(walkers: &Walkers, players: u32, ticks: usize) -> [TimedPass; 2] {
    let traits: Vec<_> = (0..players).map(traits).collect();
    // Peers are slow with large crowds, so they run fewer ticks. They fill all lists at once at the end of the warm-up.
    let peer_ticks = if players > 20_000 { 1 } else { ticks / 2 };
    let mut warm = walkers.clone();
    (0..WARM_UP_TICKS).for_each(|_| warm.walk());
    let mut sets = SetViews::new(SIDE_M, CELL_M, usize::from(CAP), traits.clone());
    sets.update(&warm.positions);
    let sets = TimedPass::run(
        &mut warm.clone(),
        peer_ticks,
        &mut sets,
        |sets, walkers| timed(|| sets.update(&walkers.positions)),
        |sets| {
            Digest::of(players, |viewer, list| {
                let seen = sets.seen_by(viewer).iter();
                list.extend(seen.map(|&target| (target, sets.class(viewer, target))));
            })
        },
    );
    let mut pooled = PooledViews::new(SIDE_M, CELL_M, u32::from(CAP), traits);
    pooled.update(&warm.positions);
    let pooled = TimedPass::run(
        &mut warm,
        peer_ticks,
        &mut pooled,
        |pooled, walkers| timed(|| pooled.update(&walkers.positions)),
        |pooled| {
            Digest::of(players, |viewer, list| {
                list.extend(pooled.seen_by(viewer).map(|target| (target, 0)));
            })
        },
    );
    [sets, pooled]
}

/// The reference workload with both kinds of sight, compared with both peers, and at walking pace.
fn crowd(players: u32, aims_ms: [f64; 2], least: f64, ticks: usize) -> Vec<BenchRow> {
    let walkers = Walkers::new(players, SIDE_M, 2.5);
    let peers = peer_passes(&walkers, players, ticks);
    let mut rows = Vec::new();
    for (name, sight) in [
        ("directed", ViewLinkMode::Directed),
        ("mutual", ViewLinkMode::Mutual),
    ] {
        let (side, pass) = our_pass(walkers.clone(), ticks, sight);
        let case = |what: &str| format!("{name}{what}/{players}");
        let events_a_tick = side.event_count as f64 / side.ms.len().max(1) as f64;
        let event_ns = median(pass.ms.clone()) * 1e6 / events_a_tick;
        rows.push(
            BenchRow::repeated(SYSTEM, case(""), &pass.ms, "ms/tick")
                .about("One tick of all view lists; every player moves 2.5 m per tick in 1 km².")
                .with_target_below(aims_ms[0], "ms"),
        );
        rows.extend(compare_with_peers(
            case, sight, players, &pass, &peers, least,
        ));
        rows.push(
            BenchRow::new(SYSTEM, case(" event"), event_ns, "ns")
                .about("The time of the same tick per enter or leave.")
                .with_target_below(30.0, "ns"),
        );
        rows.push(
            BenchRow::new(SYSTEM, case(" memory"), side.bytes_per_link(), "B/link")
                .about("Memory of the scene's views per view link.")
                .with_target_below(if players < 10_000 { 14.0 } else { 6.0 }, "bytes"),
        );
        let slow = Walkers::new(players, SIDE_M, 0.25);
        let (_, pass) = our_pass(slow, ticks, sight);
        rows.push(
            BenchRow::repeated(SYSTEM, case(" 0.25 m"), &pass.ms, "ms/tick")
                .about("One tick at walking pace: 0.25 m per tick.")
                .with_target_below(aims_ms[1], "ms"),
        );
    }
    rows
}

/// A comparison with both peers. If the caps do not apply, all sides have the same lists. Otherwise only directed sight and sets are
/// compared, by the number of objects per class: mutual sight and the reference design may choose other pairs.
fn compare_with_peers(
    case: impl Fn(&str) -> String,
    sight: ViewLinkMode,
    players: u32,
    pass: &TimedPass,
    [sets, pooled]: &[TimedPass; 2],
    least: f64,
) -> [BenchRow; 2] {
    let is_loose = players == 2_000;
    let row = |what: &str| BenchRow::repeated(SYSTEM, case(what), &pass.ms, "ms/tick");
    let beside_sets = row(" v sets")
        .with_repeated_reference("sets", &sets.ms)
        .about("The same ticks, compared with one hash set per player that is rebuilt from nine cells every tick.")
        .with_target_ratio(least);
    let beside_pool = row(" v pool")
        .with_repeated_reference("pooled", &pooled.ms)
        .about(
            "The same ticks, compared with the reference design: pairs in a pool, swept when a cell \
             changes.",
        )
        .with_target_ratio(1.0);
    if is_loose {
        let [with_sets, with_pool] =
            [sets, pooled].map(|peer| pass.agrees(peer, |digest| digest.lists));
        return [
            beside_sets.with_comparison("all view lists", with_sets),
            beside_pool.with_comparison("all view lists", with_pool),
        ];
    }
    if sight == ViewLinkMode::Mutual {
        return [beside_sets, beside_pool];
    }
    let same = pass.agrees(sets, |digest| digest.classes);
    let what = "the number of objects per class in each list";
    [beside_sets.with_comparison(what, same), beside_pool]
}

/// Positions that change within their cell.
fn within_cells() -> BenchRow {
    let walkers = Walkers::new(10_000, SIDE_M, 0.0);
    let mut views = walkers.views(ViewLinkMode::Directed, CAP);
    views.update(u32::MAX, &mut Vec::new());
    let ns: Vec<f64> = (0..50)
        .map(|_| {
            let watch = Stopwatch::start();
            walkers.locate(&mut views);
            watch.elapsed().as_secs_f64() * 1e9 / 1e4
        })
        .collect();
    BenchRow::repeated(SYSTEM, "within its cell/10000", &ns, "ns")
        .about("Updating the position of one object that stays in its grid cell.")
        .with_target_below(5.0, "ns")
}

/// The cost of re-ranking by distance. Two scenes walk the same paths, one of them without re-ranking, alternating every ten ticks, so that
/// other load of the machine affects both. Their view links differ, so the result includes all consequences of re-ranking.
fn rerank_share(step_m: f32) -> BenchRow {
    let mut sides = [RERANK_TICKS, 0].map(|rerank_ticks| {
        let mut walkers = Walkers::new(10_000, SIDE_M, step_m);
        let side = TimedViews::warmed_up(&mut walkers, ViewLinkMode::Directed, rerank_ticks);
        (walkers, side)
    });
    for _ in 0..12 {
        for (walkers, side) in &mut sides {
            for _ in 0..10 {
                walkers.walk();
                side.tick(|views| walkers.locate(views), u32::MAX);
            }
        }
    }
    let [with, without] = sides.map(|(_, side)| median(side.ms));
    let share = (with / without - 1.0) * 100.0;
    let case = match step_m {
        2.5 => "re-ranking/10000".into(),
        _ => format!("re-ranking {step_m} m/10000"),
    };
    BenchRow::new(SYSTEM, case, share, "% of the set")
        .about("The share that re-ranking by distance adds to a tick; runs with and without it alternate every ten ticks.")
        .with_target_below(15.0, "%")
}

/// This many objects in nine cells, all moving; 1 % of them cross a border each tick.
fn hot_spot(name: &str, sight: ViewLinkMode, players: u32, ticks: usize) -> [BenchRow; 3] {
    let crossing = players as usize / 100;
    let mut spot = HotSpot::new(players, crossing);
    let mut side = TimedViews::new(spot.views(sight));
    for tick in 0..WARM_UP_TICKS + ticks {
        spot.walk();
        if tick == WARM_UP_TICKS {
            side.reset();
        }
        side.tick(|views| spot.locate(views), 1_024);
    }
    let case = |what: &str| format!("hot spot {name}{what}/{players}");
    let events_a_tick = side.event_count as f64 / side.ms.len().max(1) as f64;
    let event_ns = median(side.ms.clone()) * 1e6 / events_a_tick;
    let tick = BenchRow::repeated(SYSTEM, case(""), &side.ms, "ms/tick").about(format!(
        "A tick of {players} players in nine grid cells; {crossing} of them cross a border each \
         tick."
    ));
    [
        if players == 5_000 {
            tick.with_target_below(0.2, "ms")
        } else {
            tick
        },
        BenchRow::new(SYSTEM, case(" event"), event_ns, "ns")
            .about("The time of the same tick per enter or leave."),
        BenchRow::new(SYSTEM, case(" memory"), side.bytes_per_link(), "B/link")
            .about("Memory of the scene's views per view link."),
    ]
}

/// Removes objects from a hot spot: each is searched in the rows of all viewers that may see it.
fn removals() -> BenchRow {
    let mut views = HotSpot::new(5_000, 50).views(ViewLinkMode::Directed);
    views.update(u32::MAX, &mut Vec::new());
    let removals = (0..500).map(|id| {
        let watch = Stopwatch::start();
        views.remove(id, RemovalReason::Despawn);
        watch.elapsed().as_secs_f64() * 1e6
    });
    let us: Vec<f64> = removals.collect();
    BenchRow::repeated(SYSTEM, "removal at a hot spot/5000", &us, "us")
        .about("Removing one of 5,000 players in nine grid cells from all view lists.")
}

/// 100,000 players in 4 km × 4 km, at 0.25 m and 2.5 m per tick.
fn large_scene() -> Vec<BenchRow> {
    let mut rows = Vec::new();
    for step_m in [0.25, 2.5] {
        let mut walkers = Walkers::new(100_000, 4.0 * SIDE_M, step_m);
        let mut side = TimedViews::warmed_up(&mut walkers, ViewLinkMode::Directed, RERANK_TICKS);
        for _ in 0..10 {
            walkers.walk();
            side.tick(|views| walkers.locate(views), u32::MAX);
        }
        let case = format!("4 km {step_m} m/100000");
        let bytes = side.views.heap_bytes() as f64 / 1e5;
        rows.push(
            BenchRow::repeated(SYSTEM, case, &side.ms, "ms/tick")
                .about(format!(
                    "One tick of 100,000 players in 4 km × 4 km who move {step_m} m per tick."
                ))
                .with_target_below(40.0, "ms"),
        );
        let case = format!("4 km {step_m} m memory/100000");
        rows.push(
            BenchRow::new(SYSTEM, case, bytes, "B/object")
                .about("Memory of this scene's views per object."),
        );
    }
    rows
}

/// The cells of one scene in parallel; links must be the same with one thread and with all threads.
fn large_scene_side_by_side(threads: usize) -> BenchRow {
    let run = |threads: usize| {
        let mut walkers = Walkers::new(50_000, SIDE_M, 2.5);
        let mut views = walkers.views(ViewLinkMode::Directed, CAP);
        let (mut ms, mut events) = (Vec::new(), Vec::new());
        for _ in 0..33 {
            walkers.walk();
            let watch = Stopwatch::start();
            walkers.locate(&mut views);
            events.clear();
            views.update_with(Workers::new(threads), u32::MAX, &mut events);
            ms.push(watch.elapsed().as_secs_f64() * 1e3);
        }
        let links: Vec<_> = views.links().collect();
        (ms.split_off(13), links)
    };
    let ((one_ms, one), (all_ms, all)) = (run(1), run(threads));
    BenchRow::repeated(SYSTEM, "cells of a scene/50000", &all_ms, "ms/tick")
        .with_repeated_reference("one thread", &one_ms)
        .about(format!(
            "One tick of a scene whose cells are spread over {threads} threads, compared with one thread."
        ))
        .with_comparison("all links", one == all)
}

/// Scenes of 2,000 players in parallel; links must be the same with one thread and with all threads.
fn many_scenes(scenes: usize, threads: usize) -> BenchRow {
    let run = |threads: usize| {
        let mut all: Vec<(Walkers, TimedViews)> = (0..scenes)
            .map(|_| {
                let walkers = Walkers::new(2_000, SIDE_M, 2.5);
                let side = TimedViews::new(walkers.views(ViewLinkMode::Directed, CAP));
                (walkers, side)
            })
            .collect();
        let mut ms = Vec::new();
        for _ in 0..13 {
            all.iter_mut().for_each(|(walkers, _)| walkers.walk());
            let watch = Stopwatch::start();
            Workers::new(threads).for_each_in_turn(&mut all, |(walkers, side)| {
                side.tick(|views| walkers.locate(views), 1_024);
            });
            ms.push(watch.elapsed().as_secs_f64() * 1e3);
        }
        let links: Vec<_> = all
            .iter()
            .flat_map(|(_, side)| side.views.links().collect::<Vec<_>>())
            .collect();
        (ms.split_off(3), links)
    };
    let ((one_ms, one), (all_ms, all)) = (run(1), run(threads));
    BenchRow::repeated(SYSTEM, format!("scenes of 2000/{scenes}"), &all_ms, "ms/tick")
        .with_repeated_reference("one thread", &one_ms)
        .about(format!(
            "One tick of {scenes} scenes of 2,000 players, spread over {threads} threads, compared with one thread."
        ))
        .with_comparison("all links", one == all)
}
