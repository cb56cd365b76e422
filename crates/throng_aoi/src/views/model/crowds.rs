//! Mutual mode, crowds in one square, and long runs.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng_core::memory::MemoryUse;

use super::*;
use crate::{reference::PooledViews, reference_sets::SetViews, workload};

/// Adds a player that sees and is seen, near.
fn add(views: &mut SceneViews, id: u32, at: Vec2, traits: ViewTraits, cap: u16) {
    let profile = ViewProfile {
        class: ObjectCategory::Player,
        visibility: ViewRange::Near,
        traits,
        viewable: true,
    };
    let inserted = views.insert(id, at, profile, Some(ViewCaps::all(cap)));
    inserted.expect("a free id");
}

fn seen(views: &SceneViews, viewer: u32) -> Vec<u32> {
    let mut seen: Vec<u32> = views.seen_by(viewer).map(|(target, _)| target).collect();
    seen.sort_unstable();
    seen
}

fn small(sight: ViewLinkMode, caps: &[u16]) -> SceneViews {
    let (_, mut views) = scene(sight);
    for (id, &cap) in (0..).zip(caps) {
        add(&mut views, id, vec2(35.0, 25.0), ViewTraits::default(), cap);
    }
    views.update(u32::MAX, &mut Vec::new());
    assert_eq!(views.validate(), Ok(()));
    views
}

#[test]
fn viewer_among_full_pairs_sees_nothing_until_one_leaves() {
    let mut views = small(ViewLinkMode::Mutual, &[1, 1, 1]);
    assert_eq!(
        [0, 1, 2].map(|id| seen(&views, id)),
        [vec![1], vec![0], vec![]]
    );
    assert!(views.visible(0, 1) && views.visible(1, 0) && !views.visible(2, 0));
    assert_eq!(views.watchers(0).collect::<Vec<_>>(), [1]);
    views.remove(1, RemovalReason::Despawn);
    views.update(1, &mut Vec::new());
    assert_eq!([0, 2].map(|id| seen(&views, id)), [vec![2], vec![0]]);
    let directed = small(ViewLinkMode::Directed, &[1, 1, 1]);
    assert_eq!(
        [0, 1, 2].map(|id| seen(&directed, id)),
        [vec![1], vec![0], vec![0]]
    );
}

#[test]
fn pair_takes_the_higher_class_and_both_ends_must_accept() {
    let mut views = small(ViewLinkMode::Mutual, &[2, 1, 1, 0]);
    assert_eq!(seen(&views, 0), [1, 2]);
    // 2 has 1 as its target: for 1, too, this goes before seeing 0.
    let aimed = ViewTraits {
        target: 1,
        ..ViewTraits::default()
    };
    views.set_traits(2, aimed);
    let mut events = Vec::new();
    views.update(u32::MAX, &mut events);
    assert_eq!(
        [0, 1, 2].map(|id| seen(&views, id)),
        [vec![], vec![2], vec![1]]
    );
    assert_eq!(views.counters().evictions, 2, "{events:?}");
    // 3 accepts no one, so nothing is evicted for it.
    views.set_traits(3, aimed);
    events.clear();
    views.update(u32::MAX, &mut events);
    assert_eq!(events, []);
    assert_eq!(views.validate(), Ok(()));
}

/// A scene at rest in which two objects may begin, or cease, to see each other, and nothing else changes.
#[test]
fn one_change_evicts_at_most_two_pairs_per_class() {
    let (mut evictions_max, mut links_max) = (0, 0);
    for seed in 0..4_000 {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let (_, mut views) = scene(ViewLinkMode::Mutual);
        let count = random.random_range(3..16u32);
        for id in 0..count {
            let traits = ViewTraits {
                team: random.random_range(0..3),
                party: random.random_range(0..3),
                guild: random.random_range(0..3),
                target: random.random_range(0..count + 5),
                // The first and the second share no layer; all others share one with every object.
                layers: [0b001, 0b010].get(id as usize).copied().unwrap_or(0b111),
                sees: [0b101, 0b110].get(id as usize).copied().unwrap_or(0b111),
                ..ViewTraits::default()
            };
            add(
                &mut views,
                id,
                vec2(35.0, 25.0),
                traits,
                random.random_range(0..5),
            );
        }
        views.update(u32::MAX, &mut Vec::new());
        let first = views.traits(0).expect("the first is there");
        for sees in [0b111, 0b101] {
            let other = views.traits(1).expect("the second is there");
            let sees_back = if sees == 0b111 { 0b111 } else { 0b110 };
            views.set_traits(
                1,
                ViewTraits {
                    sees: sees_back,
                    ..other
                },
            );
            views.set_traits(0, ViewTraits { sees, ..first });
            let before = views.counters();
            views.update(u32::MAX, &mut Vec::new());
            assert_eq!(views.validate(), Ok(()), "seed {seed}");
            assert_eq!(views.queue_len(), 0);
            let after = views.counters();
            evictions_max = evictions_max.max(after.evictions - before.evictions);
            links_max = links_max.max((after.enters - before.enters) / 2);
        }
    }
    // Classes from unrelated to own target.
    let classes = 6;
    assert!(
        evictions_max <= 2 * (classes - 1),
        "{evictions_max} evictions"
    );
    assert!(links_max <= 2 * classes + 1, "{links_max} pairs");
    assert!(
        evictions_max >= 2,
        "nothing was evicted, so nothing was tested"
    );
}

/// How many targets a viewer's list has from each band, the nearest last, and how many there are.
fn bands_of(views: &SceneViews, viewer: u32, count: u32) -> [[usize; 4]; 2] {
    let bands = DistanceBands::new(views.grid().cell_m());
    let place = |id| views.position(id).unwrap_or_default();
    let nearness = |id| usize::from(bands.nearness(place(viewer), place(id)));
    let (mut listed, mut all) = ([0; 4], [0; 4]);
    views
        .seen_by(viewer)
        .for_each(|(id, _)| listed[nearness(id)] += usize::from(id < count));
    (0..count)
        .filter(|&id| id != viewer)
        .for_each(|id| all[nearness(id)] += 1);
    [listed, all]
}

#[test]
fn crowd_of_5000_sees_the_nearest_band_and_the_boss() {
    let count = 5_000;
    let mut random = Pcg64Mcg::seed_from_u64(5);
    let views = SceneViews::with_size((1_000.0, 1_000.0), 50.0, 5.0, count + 1);
    let mut views = views.expect("a legal scene");
    let spot = |random: &mut Pcg64Mcg| {
        vec2(
            random.random_range(150.0..200.0),
            random.random_range(150.0..200.0),
        )
    };
    for id in 0..count {
        add(
            &mut views,
            id,
            spot(&mut random),
            ViewTraits::default(),
            100,
        );
    }
    let boss = ViewProfile {
        class: ObjectCategory::Npc,
        visibility: ViewRange::Scene,
        traits: ViewTraits::default(),
        viewable: true,
    };
    views
        .insert(count, vec2(999.0, 1.0), boss, None)
        .expect("a free id");
    views.set_rerank_ticks(0);
    views.update(u32::MAX, &mut Vec::new());
    assert_eq!(views.watchers_len(count), count as usize);
    let check = |views: &SceneViews| {
        for viewer in (0..count).step_by(7) {
            let [listed, all] = bands_of(views, viewer, count);
            assert_eq!(listed.iter().sum::<usize>(), 100);
            assert_eq!(
                listed[3],
                all[3].min(100),
                "{viewer} has {listed:?} of {all:?}"
            );
        }
    };
    check(&views);
    // All change positions; a quarter of the viewers are re-ranked within four updates.
    for id in 0..count {
        views.locate(id, spot(&mut random));
    }
    views.set_rerank_ticks(4);
    (0..4).for_each(|_| views.update(count, &mut Vec::new()));
    for viewer in (0..count).step_by(7) {
        let [listed, all] = bands_of(&views, viewer, count);
        // Members no farther than the hysteresis beyond the nearest band may stay.
        let place = |id| views.position(id).unwrap_or_default();
        let far =
            |id: u32| place(id).distance(place(viewer)) > 25.0 + 50.0 * DistanceBands::HYSTERESIS;
        let farther = views
            .seen_by(viewer)
            .filter(|&(id, _)| id < count && far(id))
            .count();
        assert!(
            all[3] >= 100 && farther == 0,
            "{viewer} has {listed:?} of {all:?}, {farther} far"
        );
    }
}

#[test]
fn memory_does_not_grow_over_many_cell_changes() {
    for sight in [ViewLinkMode::Directed, ViewLinkMode::Mutual] {
        let mut random = Pcg64Mcg::seed_from_u64(6);
        let count = 200;
        let views = SceneViews::with_size((70.0, 50.0), CELL_M, 0.0, count);
        let mut views = views.expect("a legal scene").with_view_link_mode(sight);
        let spot = |random: &mut Pcg64Mcg| {
            vec2(
                random.random_range(0.0..70.0),
                random.random_range(0.0..50.0),
            )
        };
        for id in 0..count {
            let traits = ViewTraits {
                team: id % 9,
                ..ViewTraits::default()
            };
            add(&mut views, id, spot(&mut random), traits, 8);
        }
        let (mut changes, mut events, mut warm) = (0, Vec::new(), usize::MAX);
        while changes < 300_000 {
            for _ in 0..100 {
                let id = random.random_range(0..count);
                let before = views.cell(id);
                views.locate(id, spot(&mut random));
                changes += u32::from(views.cell(id) != before);
            }
            events.clear();
            views.update(64, &mut events);
            if changes > 50_000 && warm == usize::MAX {
                warm = views.heap_bytes();
            }
        }
        assert_eq!(views.validate(), Ok(()));
        let bytes = views.heap_bytes();
        assert!(bytes <= warm + warm / 4, "{warm} bytes became {bytes}");
        assert!(views.queue_len() <= count as usize);
    }
}

/// The walkers of the benches, in all four designs: the same lists if caps are not reached, the same classes if they are.
#[test]
fn reference_designs_see_the_same() {
    let count = 300;
    let traits: Vec<ViewTraits> = (0..count)
        .map(|id| ViewTraits {
            team: id % 9 + 1,
            ..workload::traits(id)
        })
        .collect();
    for cap in [u16::MAX, 7] {
        let mut walkers = workload::Walkers::new(count, 400.0, 2.5);
        let mut ours =
            [ViewLinkMode::Directed, ViewLinkMode::Mutual].map(|sight| walkers.views(sight, cap));
        for views in &mut ours {
            (0..count).for_each(|id| views.set_traits(id, traits[id as usize]));
        }
        let cell_m = workload::CELL_M;
        let mut pooled = PooledViews::new(400.0, cell_m, u32::from(cap), traits.clone());
        let mut sets = SetViews::new(400.0, cell_m, usize::from(cap), traits.clone());
        let mut evicted = 0;
        for _ in 0..200 {
            walkers.walk();
            for views in &mut ours {
                walkers.locate(views);
                views.update(u32::MAX, &mut Vec::new());
            }
            pooled.update(&walkers.positions);
            sets.update(&walkers.positions);
            for viewer in 0..count {
                let mut expected: Vec<u32> = sets.seen_by(viewer).iter().copied().collect();
                expected.sort_unstable();
                let mut in_pool: Vec<u32> = pooled.seen_by(viewer).collect();
                in_pool.sort_unstable();
                assert!(in_pool.iter().all(|&other| pooled.sees(other, viewer)));
                assert!(in_pool.len() <= usize::from(cap));
                if cap == u16::MAX {
                    assert_eq!(in_pool, expected);
                    assert!(ours.iter().all(|views| seen(views, viewer) == expected));
                    continue;
                }
                let mut classes: Vec<u8> = ours[0].seen_by(viewer).map(|seen| seen.1).collect();
                let mut in_set: Vec<u8> = expected
                    .iter()
                    .map(|&target| sets.class(viewer, target))
                    .collect();
                classes.sort_unstable();
                in_set.sort_unstable();
                assert_eq!(classes, in_set, "{viewer}");
            }
            evicted = ours[1].counters().evictions;
        }
        assert!(pooled.event_count > 0 && sets.event_count > 0);
        assert!(cap == u16::MAX || evicted > 0, "caps bite");
    }
}

/// All lists are full. Many objects change their team at once, while others are spawned and despawned. New links replace others, and no
/// list exceeds its cap.
#[test]
fn mass_team_change_keeps_all_lists_within_their_caps() {
    for seed in 0..60 {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut views =
            SceneViews::with_size((90.0, 90.0), 30.0, 3.0, 64).expect("a grid of nine cells");
        let of_team = |team| ViewTraits {
            team,
            ..ViewTraits::default()
        };
        for id in 0..60 {
            let at = vec2(
                random.random_range(0.0..90.0),
                random.random_range(0.0..90.0),
            );
            let cap = random.random_range(3..12);
            add(&mut views, id, at, of_team(random.random_range(1..4)), cap);
        }
        for _ in 0..30 {
            for _ in 0..random.random_range(0..40) {
                let id = random.random_range(0..60);
                match random.random_range(0..3) {
                    0 => views.set_traits(id, of_team(random.random_range(1..4))),
                    1 => views.locate(id, vec2(random.random_range(0.0..90.0), 50.0)),
                    _ => views.teleport(id, vec2(random.random_range(0.0..90.0), 20.0)),
                }
            }
            views.update(random.random_range(0..20), &mut Vec::new());
            assert_eq!(views.validate(), Ok(()), "seed {seed}");
        }
    }
}

/// Team members in one cell, far more than a list holds, and one next to them.
fn mates(count: u32) -> SceneViews {
    let (size_m, cell_m) = ((70.0, 50.0), CELL_M);
    let mut views = SceneViews::with_size(size_m, cell_m, 0.0, count).expect("a legal scene");
    let mate = |party| ViewTraits {
        team: 1,
        party,
        ..ViewTraits::default()
    };
    for id in 0..count {
        let at = vec2(21.0 + (id % 8) as f32, 21.0 + (id / 8 % 8) as f32);
        add(&mut views, id, at, mate(0), 10);
    }
    views.update(u32::MAX, &mut Vec::new());
    views
}

#[test]
fn free_slot_among_team_mates_is_refilled_in_few_attempts() {
    let count = 400;
    let mut views = mates(count);
    let before = views.counters();
    let watchers = views.watchers_len(1) as u64;
    views.remove(1, RemovalReason::Despawn);
    views.update(0, &mut Vec::new());
    assert_eq!(views.validate(), Ok(()));
    let after = views.counters();
    assert!(watchers > 100, "{watchers} saw it");
    assert_eq!(after.enters - before.enters, watchers);
    let refused = after.full_list_attempts - before.full_list_attempts;
    assert!(refused <= watchers, "{refused} were asked in vain");
}

#[test]
fn team_mates_moving_together_make_few_entry_attempts() {
    let count = 400;
    let mut views = mates(count);
    let before = views.counters();
    for id in 0..count / 2 {
        let at = views.position(id).expect("it is here");
        views.locate(id, at + vec2(10.0, 0.0));
    }
    views.update(0, &mut Vec::new());
    assert_eq!(views.validate(), Ok(()));
    let refused = views.counters().full_list_attempts - before.full_list_attempts;
    assert!(
        refused <= u64::from(count) * 2,
        "{refused} were asked in vain"
    );
}

#[test]
fn refusing_near_targets_do_not_block_the_next_cell() {
    let (_, mut views) = scene(ViewLinkMode::Mutual);
    for (id, x) in (0..).zip([35.0, 47.0, 36.0, 36.0, 29.0]) {
        add(&mut views, id, vec2(x, 25.0), ViewTraits::default(), 1);
        views.update(u32::MAX, &mut Vec::new());
    }
    // The far pair and the near pair have no better partner. The last object is alone in the next cell.
    assert_eq!(
        [0, 2, 4].map(|id| seen(&views, id)),
        [vec![1], vec![3], vec![]]
    );
    // It is the turn of the first only.
    views.set_rerank_ticks(8);
    views.update_count = 7;
    views.update(u32::MAX, &mut Vec::new());
    assert_eq!(
        [0, 2, 4].map(|id| seen(&views, id)),
        [vec![4], vec![3], vec![0]]
    );
    assert_eq!(views.validate(), Ok(()));
}

#[test]
fn viewer_that_scans_early_leaves_the_queue() {
    let (_, mut views) = scene(ViewLinkMode::Directed);
    views.set_full_scans_max(0);
    for id in 0..2 {
        add(&mut views, id, vec2(35.0, 25.0), ViewTraits::default(), 2);
    }
    views.update(0, &mut Vec::new());
    assert!(views.queued().eq(0..2));
    views.set_full_scans_max(1);
    views.teleport(0, vec2(25.0, 25.0));
    views.update(0, &mut Vec::new());
    assert!(views.queued().eq(1..2));
    assert_eq!(seen(&views, 0), [1]);
    views.update(u32::MAX, &mut Vec::new());
    assert_eq!(views.counters().scans, 1);
}

#[test]
fn teleported_viewer_sees_the_nearest_of_a_crowd() {
    let (_, mut views) = scene(ViewLinkMode::Directed);
    // The nearest are those in the neighbour cell.
    for (id, x) in (0..).zip([5.0, 41.0, 41.0, 51.0, 51.0]) {
        add(&mut views, id, vec2(x, 25.0), ViewTraits::default(), 2);
    }
    views.update(u32::MAX, &mut Vec::new());
    views.teleport(0, vec2(49.0, 25.0));
    views.update(u32::MAX, &mut Vec::new());
    assert_eq!(seen(&views, 0), [3, 4]);
}
