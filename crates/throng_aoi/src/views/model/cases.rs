//! Single situations with their expected events.

use super::*;
use crate::priority::{TEAM, UNRELATED};

/// A crowd of players in one spot, each with the given team; the first is the only viewer.
fn crowd(cap: u16, teams: &[u32]) -> SceneViews {
    let (_, mut views) = scene(ViewLinkMode::Directed);
    for (id, &team) in teams.iter().enumerate() {
        let traits = ViewTraits {
            team,
            ..ViewTraits::default()
        };
        let profile = ViewProfile {
            class: ObjectCategory::Player,
            visibility: ViewRange::Near,
            traits,
            viewable: true,
        };
        let caps = (id == 0).then(|| ViewCaps::all(cap));
        views
            .insert(id as u32, vec2(35.0, 25.0), profile, caps)
            .expect("a free id");
    }
    views
}

/// The events of an update: viewer, target, and the class of an enter or the reason of a leave.
fn step(views: &mut SceneViews, looks: u32) -> Vec<(u32, u32, Result<u8, ViewLeaveReason>)> {
    let mut events = Vec::new();
    views.update(looks, &mut events);
    assert_eq!(views.validate(), Ok(()));
    let pairs = events.iter().map(|event| {
        let (viewer, target) = event.pair();
        let what = match *event {
            ViewEvent::Enter { priority, .. } => Ok(priority),
            ViewEvent::Leave { reason, .. } => Err(reason),
        };
        (viewer, target, what)
    });
    pairs.collect()
}

fn seen(views: &SceneViews) -> Vec<u32> {
    let mut seen: Vec<u32> = views.seen_by(0).map(|(target, _)| target).collect();
    seen.sort_unstable();
    seen
}

#[test]
fn entrants_are_admitted_by_class_then_by_id() {
    let mut views = crowd(3, &[1, 2, 2, 1, 2, 1]);
    assert_eq!(
        step(&mut views, 0),
        [(0, 3, Ok(TEAM)), (0, 5, Ok(TEAM)), (0, 1, Ok(UNRELATED))]
    );
}

#[test]
fn full_list_evicts_the_lowest_class_then_the_largest_id() {
    let mut views = crowd(3, &[1, 2, 2, 2, 2]);
    step(&mut views, 0);
    views.set_traits(
        4,
        ViewTraits {
            team: 1,
            ..ViewTraits::default()
        },
    );
    let events = step(&mut views, 0);
    assert_eq!(
        events,
        [(0, 3, Err(ViewLeaveReason::Evicted)), (0, 4, Ok(TEAM)),]
    );
}

#[test]
fn equal_classes_do_not_evict_each_other() {
    let mut views = crowd(2, &[1, 2, 2, 2]);
    step(&mut views, 0);
    let before = seen(&views);
    views.remove(3, RemovalReason::Despawn);
    views.teleport(2, vec2(34.0, 24.0));
    assert!(step(&mut views, 9).is_empty());
    assert_eq!(seen(&views), before);
}

#[test]
fn free_slot_is_refilled_in_the_same_tick() {
    let mut views = crowd(2, &[1, 2, 2, 2]);
    step(&mut views, 0);
    assert_eq!(seen(&views), [1, 2]);
    views.remove(1, RemovalReason::Despawn);
    step(&mut views, 0);
    assert_eq!((seen(&views), views.queue_len()), (vec![2, 3], 0));
    assert_eq!(views.counters().refills, 3, "two when it came, one now");
}

#[test]
fn free_slot_goes_to_a_refused_friend_before_unrelated() {
    let mut views = crowd(2, &[1, 2, 2, 1, 1, 1]);
    step(&mut views, 0);
    assert_eq!(seen(&views), [3, 4]);
    assert_eq!(views.counters().full_list_attempts, 1);
    views.remove(3, RemovalReason::Despawn);
    step(&mut views, 0);
    assert_eq!(seen(&views), [4, 5]);
}

#[test]
fn lowered_cap_evicts_the_lowest_and_raised_cap_readmits_them() {
    let mut views = crowd(4, &[1, 2, 2, 1, 2]);
    step(&mut views, 0);
    views.set_caps(0, Some(ViewCaps::all(2)));
    step(&mut views, 0);
    assert_eq!(seen(&views), [1, 3]);
    views.set_caps(0, Some(ViewCaps::all(4)));
    step(&mut views, 1);
    assert_eq!(seen(&views), [1, 2, 3, 4]);
}

#[test]
fn walking_along_a_cell_border_does_not_flicker() {
    let mut views = crowd(9, &[1, 2]);
    views.teleport(1, vec2(49.0, 25.0));
    assert_eq!(step(&mut views, 9).len(), 1);
    for x in [50.0, 49.0, 52.4, 47.6, 50.0] {
        views.locate(1, vec2(x, 25.0));
        assert!(step(&mut views, 9).is_empty(), "at {x}");
    }
    views.locate(1, vec2(52.5, 25.0));
    assert_eq!(step(&mut views, 9), [(0, 1, Err(ViewLeaveReason::Range))]);
}

#[test]
fn objects_crossing_a_border_together_stay_linked() {
    let mut views = crowd(9, &[1, 2]);
    views.teleport(1, vec2(49.0, 25.0));
    step(&mut views, 9);
    views.locate(0, vec2(45.0, 25.0));
    views.locate(1, vec2(55.0, 25.0));
    assert!(step(&mut views, 9).is_empty());
}

#[test]
fn objects_stepping_towards_each_other_are_linked() {
    let mut views = crowd(9, &[1, 2]);
    views.teleport(0, vec2(5.0, 25.0));
    views.teleport(1, vec2(25.0, 25.0));
    assert!(step(&mut views, 9).is_empty());
    views.locate(0, vec2(15.0, 25.0));
    views.locate(1, vec2(15.0, 25.0));
    assert_eq!(step(&mut views, 9), [(0, 1, Ok(UNRELATED))]);
}

#[test]
fn viewer_that_moves_and_changes_relations_needs_no_scan() {
    let mut views = crowd(2, &[1, 2, 2, 3]);
    step(&mut views, 0);
    assert_eq!(seen(&views), [1, 2]);
    views.set_traits(
        0,
        ViewTraits {
            team: 3,
            ..ViewTraits::default()
        },
    );
    views.teleport(0, vec2(25.0, 25.0));
    step(&mut views, 0);
    assert_eq!((seen(&views), views.queue_len()), (vec![1, 3], 0));
}

#[test]
fn reused_id_leaves_before_it_enters() {
    let mut views = crowd(9, &[1, 2]);
    step(&mut views, 9);
    let profile = ViewProfile {
        class: ObjectCategory::Npc,
        visibility: ViewRange::Scene,
        traits: ViewTraits::default(),
        viewable: true,
    };
    assert!(views.remove(1, RemovalReason::Scene));
    views
        .insert(1, vec2(1.0, 1.0), profile, None)
        .expect("a free id");
    assert_eq!(
        step(&mut views, 9),
        [(0, 1, Err(ViewLeaveReason::Scene)), (0, 1, Ok(UNRELATED)),]
    );
    assert_eq!(views.uncapped_len(0), 1);
}

#[test]
fn out_of_range_ids_are_refused_and_unknown_ids_ignored() {
    let mut views = crowd(9, &[1]);
    let profile = ViewProfile {
        class: ObjectCategory::Npc,
        visibility: ViewRange::Near,
        traits: ViewTraits::default(),
        viewable: true,
    };
    let inserted = views.insert(IDS, Vec2::ZERO, profile, None);
    assert_eq!(
        inserted,
        Err(ViewInsertError::IdBeyondLimit {
            id: IDS,
            limit: IDS
        })
    );
    assert!(!views.remove(u32::MAX, RemovalReason::Despawn));
    views.locate(u32::MAX, Vec2::ZERO);
    views.teleport(9, Vec2::ZERO);
    views.set_hidden(9, true);
    views.set_caps(9, None);
    assert!(step(&mut views, 9).is_empty() && !views.contains(9));
}

#[test]
fn validate_finds_a_lost_refusal() {
    let mut views = crowd(1, &[1, 1, 1]);
    step(&mut views, 9);
    views.viewers[0].states[0].refused_lists = 0;
    let fault = views.validate().unwrap_err();
    assert!(fault.to_string().contains("forgotten"), "{fault}");
}

#[test]
fn validate_finds_uncounted_bits_and_unfilled_slots() {
    let mut views = crowd(2, &[1, 2, 2, 2]);
    step(&mut views, 9);
    let whole = views.clone();
    views.viewers[0].rows.insert(0, 0, 1 << 3);
    let fault = views.validate().unwrap_err();
    assert!(fault.to_string().contains("its cap is 2"), "{fault}");
    let mut views = whole;
    views.viewers[0].rows.remove(0, 0, 1 << 2);
    views.viewers[0].states[0].count[0] -= 1;
    views.counters.leaves += 1;
    let fault = views.validate().unwrap_err();
    assert!(fault.to_string().contains("has a place for"), "{fault}");
}

#[test]
fn full_scans_per_update_are_limited_and_the_rest_queued() {
    let (_, mut views) = scene(ViewLinkMode::Directed);
    views.set_full_scans_max(2);
    for id in 0..9 {
        let profile = ViewProfile {
            class: ObjectCategory::Player,
            visibility: ViewRange::Near,
            traits: ViewTraits::default(),
            viewable: true,
        };
        let inserted = views.insert(id, vec2(35.0, 25.0), profile, Some(ViewCaps::all(20)));
        inserted.expect("a free id");
    }
    assert_eq!(step(&mut views, 0).len(), 2 * 8, "two look around");
    assert!(views.queued().eq(2..9));
    assert_eq!(step(&mut views, 3).len(), 3 * 8);
    assert_eq!(step(&mut views, u32::MAX).len(), 4 * 8);
    (0..9).for_each(|id| views.teleport(id, vec2(5.0, 45.0)));
    assert!(step(&mut views, 0).is_empty(), "they stay together");
    assert!(views.queued().eq(2..9));
    step(&mut views, u32::MAX);
    assert_eq!(views.queue_len(), 0);
    views.teleport(0, vec2(65.0, 5.0));
    assert_eq!(step(&mut views, 0).len(), 2 * 8, "leaving is never put off");
}

#[test]
fn custom_priority_finds_its_best_target_behind_a_crowd() {
    let size_m = (COLUMNS as f32 * CELL_M, ROWS as f32 * CELL_M);
    let views = SceneViews::with_size(size_m, CELL_M, MARGIN_M, 64);
    let mut views = views
        .expect("a legal scene")
        .with_view_link_mode(ViewLinkMode::Mutual);
    views.set_rules(
        None,
        Some(|a, b| if a.tag[0].max(b.tag[0]) == 1 { 10 } else { 1 }),
    );
    let insert = |views: &mut SceneViews, id: u32, at: Vec2, tag: u32, cap: u16| {
        let traits = ViewTraits {
            tag: [tag, 0],
            ..ViewTraits::default()
        };
        let profile = ViewProfile {
            class: ObjectCategory::Player,
            visibility: ViewRange::Near,
            traits,
            viewable: true,
        };
        let caps = Some(ViewCaps::all(cap));
        views.insert(id, at, profile, caps).expect("a free id");
    };
    let (here, beside) = (vec2(35.0, 25.0), vec2(35.0 + CELL_M, 25.0));
    (1..60).for_each(|id| insert(&mut views, id, here, 0, 200));
    insert(&mut views, 60, beside, 1, 200);
    step(&mut views, 1_000);
    insert(&mut views, 61, here, 0, 10);
    step(&mut views, 1_000);
    let seen: Vec<u32> = views.seen_by(61).map(|(target, _)| target).collect();
    assert!(seen.contains(&60) && seen.len() == 10, "{seen:?}");
}

#[test]
fn target_id_out_of_range_relates_to_nothing() {
    let mut views = crowd(1, &[1, 2, 2]);
    let target = u32::MAX;
    let traits = ViewTraits {
        target,
        ..ViewTraits::default()
    };
    views.set_traits(0, traits);
    views.set_rerank_ticks(1);
    step(&mut views, 9);
    step(&mut views, 9);
    assert_eq!(seen(&views), [1]);
}

#[test]
fn target_id_out_of_range_does_not_scan_past_the_rows() {
    // From 113 on the columns of a cell are longer than its rows.
    let size_m = (COLUMNS as f32 * CELL_M, ROWS as f32 * CELL_M);
    let views = SceneViews::with_size(size_m, CELL_M, MARGIN_M, 128);
    let mut views = views.expect("a legal scene");
    views.set_rerank_ticks(1);
    for id in 0..120 {
        let target = if id == 0 { u32::MAX } else { 0 };
        let traits = ViewTraits {
            team: 1 + id % 2,
            target,
            ..ViewTraits::default()
        };
        let profile = ViewProfile {
            class: ObjectCategory::Player,
            visibility: ViewRange::Near,
            traits,
            viewable: true,
        };
        let caps = (id == 0).then(|| ViewCaps::all(2));
        let inserted = views.insert(id, vec2(35.0, 25.0), profile, caps);
        inserted.expect("a free id");
    }
    step(&mut views, 1_000);
    step(&mut views, 1_000);
    assert_eq!(seen(&views).len(), 2);
}

#[test]
fn validate_finds_a_bit_of_a_free_slot() {
    let mut views = crowd(2, &[1, 2]);
    step(&mut views, 9);
    views.viewers[0].rows.insert(0, 0, 1 << 9);
    let fault = views.validate().unwrap_err();
    assert!(fault.to_string().contains("that nobody has"), "{fault}");
}

/// A scene in mutual mode, with one object for each of these categories and caps, as scenery or not.
fn peers(cast: &[(ObjectCategory, Option<ViewCaps>, bool)]) -> SceneViews {
    let (_, mut views) = scene(ViewLinkMode::Mutual);
    for (id, &(class, caps, scenery)) in (0..).zip(cast) {
        let traits = ViewTraits {
            scenery,
            team: 1,
            ..ViewTraits::default()
        };
        let profile = ViewProfile {
            class,
            visibility: ViewRange::Near,
            traits,
            viewable: true,
        };
        views
            .insert(id, vec2(35.0, 25.0), profile, caps)
            .expect("a free id");
        step(&mut views, 9);
    }
    views
}

#[test]
fn validate_finds_a_lost_refusal_of_a_pair_end() {
    let one = (ObjectCategory::Player, Some(ViewCaps::all(1)), false);
    let mut views = peers(&[one; 3]);
    assert!(views.visible(0, 1) && !views.visible(2, 0));
    views.viewers[0].states[0].refused_lists = 0;
    let fault = views.validate().unwrap_err();
    assert!(fault.to_string().contains("forgotten"), "{fault}");
}

#[test]
fn freed_pair_end_links_to_viewers_that_list_scenery() {
    let caps = Some(ViewCaps::all(1));
    let of_npcs = Some(ViewCaps {
        players: 0,
        ..ViewCaps::all(1)
    });
    let (player, npc) = (ObjectCategory::Player, ObjectCategory::Npc);
    let mut views = peers(&[
        (player, caps, false),
        (npc, caps, false),
        (npc, None, true),
        (player, of_npcs, false),
    ]);
    // All objects are unrelated.
    for id in 0..4 {
        let traits = views.traits(id).expect("it was inserted");
        views.set_traits(id, ViewTraits { team: 0, ..traits });
    }
    step(&mut views, 9);
    assert!(views.visible(0, 1) && views.visible(3, 2) && !views.visible(3, 1));
    views.remove(0, RemovalReason::Despawn);
    step(&mut views, 9);
    assert!(views.visible(3, 1) && views.visible(1, 3) && !views.visible(3, 2));
}

/// With a custom priority, a viewer that lost a member waits for its scan: a fixed number of scans a tick, however many saw the leaver.
#[test]
fn custom_priority_slots_are_refilled_by_queued_scans() {
    let mut views = crowd(2, &[1; 9]);
    let caps = Some(ViewCaps::all(2));
    (1..8).for_each(|id| views.set_caps(id, caps));
    views.set_rules(None, Some(|_, b| if b.id == 8 { 9 } else { 1 }));
    step(&mut views, 0);
    assert_eq!(views.watchers_len(8), 8);
    views.remove(8, RemovalReason::Despawn);
    assert_eq!(step(&mut views, 9).len(), 8, "all lose it");
    assert!(views.queued().eq(0..8));
    assert_eq!(step(&mut views, 3).len(), 3);
    assert_eq!(step(&mut views, 9).len(), 5);
    assert_eq!(views.queue_len(), 0);
}

#[test]
fn nearby_includes_its_radius() {
    let mut views = crowd(1, &[0, 0]);
    views.teleport(0, Vec2::new(10.0, 10.0));
    views.teleport(1, Vec2::new(13.0, 14.0));
    views.update(u32::MAX, &mut Vec::new());
    let mut found = Vec::new();
    let centre = Vec2::new(10.0, 10.0);
    views.nearby(centre, 5.0, u8::MAX, &mut found);
    assert_eq!(found, [0, 1]);
    views.nearby(centre, 4.99, u8::MAX, &mut found);
    assert_eq!(found, [0]);
    assert_eq!(views.nearest(centre, 4.99, |id| id == 1), None);
}

#[test]
fn same_radius_again_causes_no_scan() {
    let mut views = crowd(2, &[0, 0]);
    let mut scans = |radius_m| {
        let before = views.counters().exact_scans;
        views.set_radius(0, radius_m).unwrap();
        views.update(u32::MAX, &mut Vec::new());
        views.counters().exact_scans - before
    };
    assert_eq!(scans(Some(20.0)), 1);
    assert_eq!([0; 3].map(|_| scans(Some(20.0))), [0; 3]);
    assert_eq!(scans(Some(21.0)), 1);
    assert_eq!(scans(None), 0);
}
