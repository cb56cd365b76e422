//! Exact viewers: single situations, and long random walks against all pairs.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::priority::is_same_team;

/// A tower with a radius at (30, 20), and a walker.
fn tower(radius_m: f32) -> SceneViews {
    let (_, mut views) = scene(ViewLinkMode::Directed);
    let profile = ViewProfile {
        class: ObjectCategory::Player,
        visibility: ViewRange::Near,
        traits: ViewTraits::default(),
        viewable: true,
    };
    views
        .insert(0, vec2(30.0, 20.0), profile, Some(ViewCaps::all(9)))
        .unwrap();
    views.insert(1, vec2(34.0, 23.0), profile, None).unwrap();
    views.set_radius(0, Some(radius_m)).unwrap();
    views
}

fn events(views: &mut SceneViews) -> Vec<ViewEvent> {
    let mut events = Vec::new();
    views.update(0, &mut events);
    assert_eq!(views.validate(), Ok(()));
    events
}

#[test]
fn target_on_the_radius_is_seen_and_one_beyond_is_not() {
    let mut views = tower(5.0);
    events(&mut views);
    assert!(views.visible(0, 1), "exactly 5 m");
    // No cell changes.
    views.locate(1, vec2(34.0, 23.0f32.next_up()));
    assert!(matches!(
        events(&mut views)[..],
        [ViewEvent::Leave {
            reason: ViewLeaveReason::Range,
            ..
        }]
    ));
    views.locate(0, vec2(30.0, 20.0f32.next_up()));
    assert_eq!(events(&mut views).len(), 1);
    assert!(views.visible(0, 1));
}

#[test]
fn radius_larger_than_the_cells_reaches_the_whole_scene() {
    let mut views = tower(f32::INFINITY);
    views.teleport(1, vec2(69.0, 49.0));
    assert_eq!(events(&mut views).len(), 1);
    views.locate(1, vec2(f32::NAN, 0.0));
    assert_eq!(events(&mut views), []);
    views.set_radius(0, Some(1e6)).unwrap();
    assert_eq!(
        events(&mut views).len(),
        1,
        "an unknown position is at no distance"
    );
}

#[test]
fn raised_and_lowered_scope_ends_no_link_that_stays() {
    let mut views = tower(5.0);
    events(&mut views);
    for radius_m in [None, Some(40.0), None, Some(5.0)] {
        views.set_radius(0, radius_m).unwrap();
        assert_eq!(views.radius(0), radius_m);
        assert_eq!(events(&mut views), [], "{radius_m:?}");
    }
    views.set_radius(0, Some(4.0)).unwrap();
    assert_eq!(events(&mut views).len(), 1);
}

#[test]
fn negative_and_nan_radii_are_errors_and_change_nothing() {
    let mut views = tower(5.0);
    for radius_m in [-1.0, f32::NAN, f32::NEG_INFINITY] {
        assert!(views.set_radius(0, Some(radius_m)).is_err());
    }
    assert_eq!(views.set_radius(7, Some(1.0)), Ok(()), "an unknown id");
    assert_eq!((views.radius(0), views.radius(7)), (Some(5.0), None));
}

#[test]
fn viewer_at_rest_scans_only_when_something_moves_in_reach() {
    let mut views = tower(5.0);
    let profile = ViewProfile {
        class: ObjectCategory::Npc,
        visibility: ViewRange::Near,
        traits: ViewTraits::default(),
        viewable: true,
    };
    views.insert(2, vec2(65.0, 45.0), profile, None).unwrap();
    let scans = |views: &mut SceneViews| {
        let before = views.counters().exact_scans;
        events(views);
        views.counters().exact_scans - before
    };
    assert_eq!(scans(&mut views), 1, "it is new");
    assert_eq!(scans(&mut views), 0);
    views.locate(2, vec2(66.0, 45.0));
    assert_eq!(scans(&mut views), 0, "far away");
    views.locate(1, vec2(34.0, 22.0));
    assert_eq!(scans(&mut views), 1);
    views.set_hidden(1, true);
    assert_eq!(scans(&mut views), 1);
}

#[test]
fn deferred_viewers_lose_at_once_and_are_served_in_turn() {
    let mut views = tower(5.0);
    let profile = ViewProfile {
        class: ObjectCategory::Player,
        visibility: ViewRange::Near,
        traits: ViewTraits::default(),
        viewable: true,
    };
    for id in 2..5 {
        views
            .insert(id, vec2(30.0, 20.0), profile, Some(ViewCaps::all(9)))
            .unwrap();
        views.set_radius(id, Some(5.0)).unwrap();
    }
    events(&mut views);
    views.set_exact_scans_max(1);
    views.locate(1, vec2(30.0, 30.0));
    events(&mut views);
    assert_eq!(views.watchers_len(1), 0);
    assert!(views.queued().eq([2, 3, 4]));
    views.locate(1, vec2(30.0, 20.0));
    let mut served = Vec::new();
    for _ in 0..4 {
        let entered = events(&mut views);
        served.extend(entered.iter().map(|event| event.pair().0));
    }
    assert_eq!(served, [2, 3, 4, 0]);
    assert_eq!(views.queue_len(), 0);
    assert_eq!(views.counters().exact_scans_deferred, 3 + 3 + 2 + 1);
}

#[test]
fn beyond_20_m_only_the_own_team_is_seen() {
    let (_, mut views) = scene(ViewLinkMode::Directed);
    let mut add = |id: u32, x: f32, team: u32| {
        let traits = ViewTraits {
            team,
            ..ViewTraits::default()
        };
        let profile = ViewProfile {
            class: ObjectCategory::Player,
            visibility: ViewRange::Scene,
            traits,
            viewable: true,
        };
        let caps = (id == 0).then_some(ViewCaps::all(9));
        views.insert(id, vec2(x, 20.0), profile, caps).unwrap();
    };
    add(0, 10.0, 1);
    add(1, 30.0, 2);
    add(2, 50.0, 1);
    views.set_distance_rules(DistanceRules::NONE.beyond(20.0, is_same_team));
    events(&mut views);
    let seen = |views: &SceneViews| views.seen_by(0).map(|seen| seen.0).collect::<Vec<_>>();
    assert_eq!(seen(&views), [1, 2], "20 m are not beyond 20 m");
    views.locate(1, vec2(30.5, 20.0));
    assert!(matches!(
        events(&mut views)[..],
        [ViewEvent::Leave {
            target: 1,
            reason: ViewLeaveReason::Hidden,
            ..
        }]
    ));
    views.set_exception(0, 1, Some(ViewException::Show));
    events(&mut views);
    assert_eq!(seen(&views), [1, 2], "exceptions go before rules");
    views.set_exception(0, 1, None);
    events(&mut views);
    views.set_distance_rules(DistanceRules::NONE);
    events(&mut views);
    assert_eq!(seen(&views), [1, 2]);
}

/// Thousands of steps of a crowd with radii and caps, each tick compared with all pairs.
fn walk(seed: u64, sight: ViewLinkMode, scans_max: u32) {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let (mut model, mut views) = scene(sight);
    model.set_exact_scans_max(&mut views, scans_max);
    for id in 0..IDS {
        let at = (random.random_range(0..140), random.random_range(0..100));
        let cap = random.random_range(0..12);
        let op = Op::Insert {
            id,
            at,
            class: u8::from(id % 3 == 0),
            visibility: if id % 8 == 7 { 6 } else { 0 },
            team: id % 3,
            viewable: id % 10 != 9,
            scenery: false,
            caps: Some([cap; 3]),
        };
        model.apply(&mut views, &op);
    }
    for tick in 0..1500 {
        for _ in 0..6 {
            let id = random.random_range(0..IDS);
            let by = (random.random_range(-4..=4), random.random_range(-4..=4));
            model.apply(&mut views, &Op::Walk { id, by });
        }
        let id = random.random_range(0..IDS);
        if tick % 5 == 0 {
            let radii = [
                None,
                Some(5),
                Some(10),
                Some(25),
                Some(65),
                Some(WHOLE_SCENE),
            ];
            let radius = radii[random.random_range(0..radii.len())];
            model.apply(&mut views, &Op::Radius { id, radius });
        }
        if tick % 100 == 99 {
            let to = (random.random_range(0..140), random.random_range(0..100));
            model.apply(&mut views, &Op::Teleport { id, to });
            let rule: (i64, ViewFilter) = (10, is_same_team);
            let rules = if tick % 200 == 99 { vec![rule] } else { vec![] };
            model.apply(&mut views, &Op::DistanceRules { rules });
        }
        model.apply(&mut views, &Op::Tick { looks: 4 });
    }
    model.check_at_rest(&mut views, 4, 4);
}

#[test]
fn walking_crowd_with_radii_matches_all_pairs() {
    walk(1, ViewLinkMode::Directed, u32::MAX);
}

#[test]
fn deferred_walking_crowd_with_radii_matches_all_pairs() {
    walk(2, ViewLinkMode::Directed, 3);
}

#[test]
fn mutual_walking_crowd_with_radii_matches_all_pairs() {
    walk(3, ViewLinkMode::Mutual, u32::MAX);
}
