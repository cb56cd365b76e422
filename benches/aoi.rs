//! View lists of both kinds of sight, compared with a pool of pairs and with plain hash sets, all with the same cap and classes. The
//! workload is that of `throng bench aoi`.
//!
//! If caps do not apply, all lists must be equal. If they do, candidates of equal rank may be chosen differently, so only the number of
//! objects per class in each list is compared with the plain sets.

use std::collections::BTreeMap;

use criterion::Criterion;
use throng::aoi::SceneViews;
use throng::aoi::ViewLinkMode;
use throng::aoi::reference_sets::SetViews;
use throng_aoi::reference::PooledViews;
use throng_aoi::workload::{CAP, CELL_M, HotSpot, Walkers, traits};

const SIDE_M: f32 = 1_000.0;

pub fn bench(criterion: &mut Criterion) {
    for sight in [ViewLinkMode::Directed, ViewLinkMode::Mutual] {
        for (players, step_m) in [(2_000, 0.25), (2_000, 2.5), (10_000, 0.25), (10_000, 2.5)] {
            let mut walkers = Walkers::new(players, SIDE_M, step_m);
            let mut views = walkers.views(sight, CAP);
            let mut events = Vec::new();
            (0..3).for_each(|_| tick(&mut walkers, &mut views, &mut events));
            let name = format!("aoi::{sight:?}_{step_m}m/{players}");
            criterion.bench_function(&name, |bencher| {
                bencher.iter(|| tick(&mut walkers, &mut views, &mut events));
            });
            assert!(views.link_count() > players as usize * 10);
        }
    }
    let mut spot = HotSpot::new(5_000, 50);
    let mut views = spot.views(ViewLinkMode::Directed);
    let mut events = Vec::new();
    criterion.bench_function("aoi::hot_spot/5000", |bencher| {
        bencher.iter(|| {
            spot.walk();
            spot.locate(&mut views);
            events.clear();
            views.update(1_024, &mut events);
        });
    });
    assert_eq!(views.link_count(), 5_000 * usize::from(CAP));
    compare_designs(criterion);
}

/// Empties all queues, so that all designs have done the same work.
fn tick(walkers: &mut Walkers, views: &mut SceneViews, events: &mut Vec<throng::aoi::ViewEvent>) {
    walkers.walk();
    walkers.locate(views);
    events.clear();
    views.update(u32::MAX, events);
}

fn compare_designs(criterion: &mut Criterion) {
    let players = 2_000;
    let mut walkers = Walkers::new(players, SIDE_M, 2.5);
    let traits: Vec<_> = (0..players).map(traits).collect();
    for cap in [u16::MAX, 20] {
        let mut ours =
            [ViewLinkMode::Directed, ViewLinkMode::Mutual].map(|sight| walkers.views(sight, cap));
        let mut pooled = PooledViews::new(SIDE_M, CELL_M, u32::from(cap), traits.clone());
        let mut sets = SetViews::new(SIDE_M, CELL_M, usize::from(cap), traits.clone());
        for _ in 0..10 {
            walkers.walk();
            for views in &mut ours {
                walkers.locate(views);
                views.update(u32::MAX, &mut Vec::new());
            }
            pooled.update(&walkers.positions);
            sets.update(&walkers.positions);
            for viewer in 0..players {
                let in_set = || sets.seen_by(viewer).iter().copied();
                if cap == u16::MAX {
                    let expected = sorted(in_set());
                    assert_eq!(sorted(pooled.seen_by(viewer)), expected);
                    for views in &ours {
                        assert_eq!(sorted(views.seen_by(viewer).map(|seen| seen.0)), expected);
                    }
                } else {
                    let seen = ours[0].seen_by(viewer).map(|(_, class)| class);
                    let expected = in_set().map(|target| sets.class(viewer, target));
                    assert_eq!(counts(seen), counts(expected), "{viewer}");
                }
            }
        }
    }
    let mut pooled = PooledViews::new(SIDE_M, CELL_M, u32::from(CAP), traits.clone());
    let mut sets = SetViews::new(SIDE_M, CELL_M, usize::from(CAP), traits);
    pooled.update(&walkers.positions);
    criterion.bench_function("aoi::pooled_2.5m/2000", |bencher| {
        bencher.iter(|| {
            walkers.walk();
            pooled.update(&walkers.positions);
        });
    });
    criterion.bench_function("aoi::sets_2.5m/2000", |bencher| {
        bencher.iter(|| {
            walkers.walk();
            sets.update(&walkers.positions);
        });
    });
}

fn sorted(ids: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut ids: Vec<u32> = ids.collect();
    ids.sort_unstable();
    ids
}

/// The number of each class.
fn counts(classes: impl Iterator<Item = u8>) -> BTreeMap<u8, usize> {
    classes.fold(BTreeMap::new(), |mut counts, class| {
        *counts.entry(class).or_default() += 1;
        counts
    })
}
