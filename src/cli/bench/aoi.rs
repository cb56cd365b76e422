//! `throng bench aoi`: interest management beside pairs in a pool and plain sets, in hot spots, large scenes
//! and many scenes.
//!
//! Times are medians of whole ticks: telling every position, and the update, queue worked off. Peers walk the
//! same ways in turn with ours. Where caps do not bite, all lists of all sides must be equal after every
//! tick, so their enters and leaves are; where they do, those of plain sets must have as many of each class.

use std::collections::BTreeMap;

use super::Failure;
use super::rows::Row;
use crate::aoi::reference::PooledViews;
use crate::aoi::sets::SetViews;
use crate::aoi::views::{RERANK_TICKS, SceneViews, Sight};
use crate::aoi::workload::{CAP, CELL_M, HotSpot, Walkers, standing};
use crate::cli::is_interrupted;
use crate::sim::Workers;
use crate::sim::clock::Stopwatch;

const SYSTEM: &str = "aoi";
const SIDE_M: f32 = 1_000.0;

/// Players, ms a tick aimed at, the least ratio to plain sets, ticks measured.
const CROWDS: [(u32, f64, f64, usize); 3] = [
    (2_000, 0.08, 3.0, 60),
    (10_000, 1.0, 10.0, 20),
    (50_000, 10.0, 30.0, 6),
];

pub(super) fn measure(quick: bool, threads: usize) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (players, aim_ms, least, ticks) in &CROWDS[..if quick { 2 } else { 3 }] {
        rows.extend(crowd(*players, *aim_ms, *least, *ticks));
        if is_interrupted() {
            return Ok(rows);
        }
    }
    rows.push(within_cells());
    rows.push(rerank_share());
    rows.push(hot_spot("directed", Sight::Directed));
    rows.push(hot_spot("mutual", Sight::Mutual));
    if !quick {
        rows.extend(large_scene());
    }
    rows.push(many_scenes(if quick { 10 } else { 50 }, threads));
    Ok(rows)
}

/// One of ours under the workload, and how long its ticks took.
struct Timed {
    views: SceneViews,
    ms: Vec<f64>,
    events: Vec<crate::aoi::views::ViewEvent>,
    event_count: usize,
}

impl Timed {
    fn new(views: SceneViews) -> Self {
        Self {
            views,
            ms: Vec::new(),
            events: Vec::new(),
            event_count: 0,
        }
    }

    fn tick(&mut self, locate: impl FnOnce(&mut SceneViews), looks: u32) {
        let watch = Stopwatch::start();
        locate(&mut self.views);
        self.events.clear();
        self.views.update(looks, &mut self.events);
        self.ms.push(watch.elapsed().as_secs_f64() * 1e3);
        self.event_count += self.events.len();
    }

    /// What was before is no more counted.
    fn begin(&mut self) {
        self.ms.clear();
        self.event_count = 0;
    }

    fn bytes_a_link(&self) -> f64 {
        self.views.allocated_bytes() as f64 / self.views.link_count().max(1) as f64
    }
}

fn median(mut ms: Vec<f64>) -> f64 {
    ms.sort_unstable_by(f64::total_cmp);
    ms.get(ms.len() / 2).copied().unwrap_or_default()
}

/// The reference workload in both kinds of sight, beside both peers, and at the pace at which people walk.
fn crowd(players: u32, aim_ms: f64, least: f64, ticks: usize) -> Vec<Row> {
    let mut walkers = Walkers::new(players, SIDE_M, 2.5);
    let standings: Vec<_> = (0..players).map(standing).collect();
    let [mut directed, mut mutual] =
        [Sight::Directed, Sight::Mutual].map(|sight| Timed::new(walkers.views(sight, CAP)));
    let mut pooled = PooledViews::new(SIDE_M, CELL_M, u32::from(CAP), standings.clone());
    let mut sets = SetViews::new(SIDE_M, CELL_M, usize::from(CAP), standings);
    let (mut pooled_ms, mut sets_ms) = (Vec::new(), Vec::new());
    let (mut equal, mut classes_equal) = (true, true);
    // Peers are slow where crowds are large: they run a few of the ticks.
    let peer_ticks = if players > 20_000 { 1 } else { ticks / 2 };
    for tick in 0..ticks + 3 {
        walkers.walk();
        for side in [&mut directed, &mut mutual] {
            if tick == 3 {
                side.begin();
            }
            side.tick(|views| walkers.locate(views), u32::MAX);
        }
        if tick >= 2 && tick < 3 + peer_ticks {
            let watch = Stopwatch::start();
            pooled.update(&walkers.positions);
            pooled_ms.push(watch.elapsed().as_secs_f64() * 1e3);
            let watch = Stopwatch::start();
            sets.update(&walkers.positions);
            sets_ms.push(watch.elapsed().as_secs_f64() * 1e3);
            let (lists, classes) = same(players, &directed.views, &mutual.views, &pooled, &sets);
            equal &= lists;
            classes_equal &= classes;
        }
    }
    let (pooled_ms, sets_ms) = (median(pooled_ms.split_off(1)), median(sets_ms.split_off(1)));
    let mut rows = Vec::new();
    for (name, side) in [("directed", &directed), ("mutual", &mutual)] {
        let ms = median(side.ms.clone());
        let row = |what: &str, value, unit| {
            Row::new(SYSTEM, format!("{name}{what}/{players}"), value, unit)
        };
        let events_a_tick = side.event_count as f64 / side.ms.len().max(1) as f64;
        rows.push(row("", ms, "ms/tick").aiming_below(aim_ms, "ms"));
        rows.push(
            row(" v sets", ms, "ms/tick")
                .beside("sets", sets_ms)
                .aiming(
                    if players == 2_000 {
                        format!("{least}x, and the same lists ({equal})")
                    } else {
                        format!("{least}x, directed with the same classes ({classes_equal})")
                    },
                    sets_ms >= least * ms
                        && if players == 2_000 {
                            equal
                        } else {
                            classes_equal
                        },
                ),
        );
        rows.push(
            row(" v pool", ms, "ms/tick")
                .beside("pooled", pooled_ms)
                .aiming("never slower", pooled_ms >= ms),
        );
        rows.push(row(" event", ms * 1e6 / events_a_tick, "ns").aiming_below(30.0, "ns"));
        rows.push(row(" memory", side.bytes_a_link(), "B/link").aiming_below(10.0, "bytes"));
        let mut walkers = Walkers::new(players, SIDE_M, 0.25);
        let mut slow = Timed::new(walkers.views(side.views.sight(), CAP));
        for tick in 0..ticks + 3 {
            walkers.walk();
            if tick == 3 {
                slow.begin();
            }
            slow.tick(|views| walkers.locate(views), u32::MAX);
        }
        rows.push(row(" 0.25 m", median(slow.ms), "ms/tick"));
    }
    rows
}

/// Whether all lists are the same, and whether those of directed sight and of the sets have as many of each
/// class.
fn same(
    players: u32,
    directed: &SceneViews,
    mutual: &SceneViews,
    pooled: &PooledViews,
    sets: &SetViews,
) -> (bool, bool) {
    let sorted = |ids: &mut dyn Iterator<Item = u32>| {
        let mut ids: Vec<u32> = ids.collect();
        ids.sort_unstable();
        ids
    };
    let counts = |classes: &mut dyn Iterator<Item = u8>| {
        classes.fold(BTreeMap::new(), |mut counts, class| {
            *counts.entry(class).or_insert(0) += 1;
            counts
        })
    };
    let (mut equal, mut classes_equal) = (true, true);
    for viewer in 0..players {
        let in_set = || sets.seen_by(viewer).iter().copied();
        let list = sorted(&mut in_set());
        equal &= list == sorted(&mut directed.seen_by(viewer).map(|seen| seen.0))
            && list == sorted(&mut mutual.seen_by(viewer).map(|seen| seen.0))
            && list == sorted(&mut pooled.seen_by(viewer));
        classes_equal &= counts(&mut in_set().map(|target| sets.class(viewer, target)))
            == counts(&mut directed.seen_by(viewer).map(|seen| seen.1));
    }
    (equal, classes_equal)
}

/// Telling positions that change no cell.
fn within_cells() -> Row {
    let walkers = Walkers::new(10_000, SIDE_M, 0.0);
    let mut views = walkers.views(Sight::Directed, CAP);
    views.update(u32::MAX, &mut Vec::new());
    let ms = median(
        (0..50)
            .map(|_| {
                let watch = Stopwatch::start();
                walkers.locate(&mut views);
                watch.elapsed().as_secs_f64() * 1e3
            })
            .collect(),
    );
    Row::new(SYSTEM, "within its cell/10000", ms * 1e6 / 1e4, "ns").aiming_below(5.0, "ns")
}

/// What looking at distances anew adds: two scenes walk the same ways in turn, one of them without. They
/// differ in whom they see, so this is what all the consequences cost too.
fn rerank_share() -> Row {
    let mut walkers = Walkers::new(10_000, SIDE_M, 2.5);
    let mut sides = [RERANK_TICKS, 0].map(|rerank_ticks| {
        let mut side = Timed::new(walkers.views(Sight::Directed, CAP));
        side.views.set_rerank_ticks(rerank_ticks);
        side
    });
    for tick in 0..43 {
        walkers.walk();
        for side in &mut sides {
            if tick == 3 {
                side.begin();
            }
            side.tick(|views| walkers.locate(views), u32::MAX);
        }
    }
    let [with, without] = sides.map(|side| median(side.ms));
    let share = (with / without - 1.0) * 100.0;
    Row::new(SYSTEM, "re-ranking/10000", share, "% of the set").aiming_below(5.0, "%")
}

/// 5,000 in nine cells, all moving, a hundredth of them over a border each tick.
fn hot_spot(name: &str, sight: Sight) -> Row {
    let mut spot = HotSpot::new(5_000, 50);
    let mut side = Timed::new(spot.views(sight));
    for tick in 0..63 {
        spot.walk();
        if tick == 3 {
            side.begin();
        }
        side.tick(|views| spot.locate(views), 1_024);
    }
    let case = format!("hot spot {name}/5000");
    Row::new(SYSTEM, case, median(side.ms), "ms/tick").aiming_below(0.2, "ms")
}

/// 100,000 in 4 km × 4 km at 0.25 m and 2.5 m a tick.
fn large_scene() -> Vec<Row> {
    let mut rows = Vec::new();
    for step_m in [0.25, 2.5] {
        let mut walkers = Walkers::new(100_000, 4.0 * SIDE_M, step_m);
        let mut side = Timed::new(walkers.views(Sight::Directed, CAP));
        for tick in 0..13 {
            walkers.walk();
            if tick == 3 {
                side.begin();
            }
            side.tick(|views| walkers.locate(views), u32::MAX);
        }
        let case = format!("4 km {step_m} m/100000");
        let bytes = side.views.allocated_bytes() as f64 / 1e5;
        rows.push(Row::new(SYSTEM, case, median(side.ms), "ms/tick").aiming_below(40.0, "ms"));
        rows.push(Row::new(SYSTEM, "4 km memory/100000", bytes, "B/object"));
    }
    rows
}

/// Scenes of 2,000 side by side; the same links with one thread and with all.
fn many_scenes(scenes: usize, threads: usize) -> Row {
    let run = |threads: usize| {
        let mut all: Vec<(Walkers, Timed)> = (0..scenes)
            .map(|_| {
                let walkers = Walkers::new(2_000, SIDE_M, 2.5);
                let side = Timed::new(walkers.views(Sight::Directed, CAP));
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
        (median(ms.split_off(3)), links)
    };
    let ((one_ms, one), (all_ms, all)) = (run(1), run(threads));
    let same = one == all;
    Row::new(
        SYSTEM,
        format!("scenes of 2000/{scenes}"),
        all_ms,
        "ms/tick",
    )
    .beside("one thread", one_ms)
    .aiming("the same links", same)
}
