//! Unseen objects that clients receive.

use super::*;
use crate::wire::UnseenObjectId;

/// The value of an unseen object's attribute that the client of one player received.
pub(super) fn unseen_value(
    rig: &Rig,
    by: Entity,
    of: ObjectRef,
    attribute: u16,
) -> Option<Vec<u8>> {
    let end = rig.mirrors.0.lock().unwrap();
    let of = UnseenObjectId {
        scene: of.scene.0,
        id: of.id.0,
        generation: of.generation.0,
    };
    let mirror = &end.mirrors.get(&rig.client_of(by))?.0;
    let (_, remote) = mirror.unseen_objects().find(|&(other, _)| other == of)?;
    remote.attributes.bytes(attribute).map(<[u8]>::to_vec)
}

fn join(rig: &mut Rig, who: &[usize]) {
    for &nth in who {
        let entity = rig.players[nth];
        rig.app.world_mut().entity_mut(entity).insert(PartyId(7));
    }
}

#[test]
fn party_receives_members_of_other_scenes_once() {
    let mut rig = Rig::new(10);
    join(&mut rig, &[0, 1]);
    rig.rest_and_compare();
    let (a, b) = (rig.players[0], rig.players[1]);
    assert_eq!(rig.known(a, b, 5), Some(vec![1]), "it sees it");
    assert_eq!(unseen_value(&rig, a, reference(&rig, b), 5), None);

    let to = rig.scenes[1];
    change_scene(rig.app.world_mut(), b, to, Vec2::splat(50.0)).unwrap();
    rig.rest_and_compare();
    let (at_a, at_b) = (reference(&rig, a), reference(&rig, b));
    assert_eq!(unseen_value(&rig, a, at_b, 5), Some(vec![1]));
    assert_eq!(unseen_value(&rig, b, at_a, 5), Some(vec![0]));
    assert_eq!(
        unseen_value(&rig, a, at_b, 1),
        None,
        "health is for viewers"
    );
    assert_eq!(unseen_value(&rig, rig.players[2], at_b, 5), None);

    let before = rig.sent().unseen;
    rig.app.world_mut().get_mut::<Vigour>(b).unwrap().0 = 9;
    rig.rest_and_compare();
    assert_eq!(unseen_value(&rig, a, at_b, 5), Some(vec![9]));
    assert_eq!(rig.sent().unseen.messages, before.messages + 1);

    rig.app.world_mut().entity_mut(b).remove::<PartyId>();
    rig.rest_and_compare();
    assert_eq!(unseen_value(&rig, a, at_b, 5), None);
}

#[test]
fn full_view_does_not_hide_party_members() {
    // Each sees one other, so one party member is always out of view.
    let mut rig = Rig::new(1);
    join(&mut rig, &[0, 2, 4]);
    rig.rest_and_compare();
    let a = rig.players[0];
    let value_of = |rig: &Rig, nth: usize| {
        let of = reference(rig, rig.players[nth]);
        let known = rig.known(a, rig.players[nth], 5);
        known.or_else(|| unseen_value(rig, a, of, 5))
    };
    assert_eq!(
        [value_of(&rig, 2), value_of(&rig, 4)],
        [Some(vec![2]), Some(vec![4])]
    );
    assert!(rig.sent().unseen.messages > 0);
}

#[test]
fn scene_attributes_reach_exactly_its_clients() {
    let mut rig = Rig::new(10);
    let [here, there] = rig.scenes;
    rig.app.world_mut().entity_mut(here).insert(Score(3));
    rig.app.world_mut().entity_mut(there).insert(Score(4));
    rig.rest_and_compare();
    let of = |rig: &Rig, scene| rig.app.world().get::<SimScene>(scene).unwrap().reference();
    let (of_here, of_there) = (of(&rig, here), of(&rig, there));
    for &entity in &rig.players {
        assert_eq!(unseen_value(&rig, entity, of_here, 6), Some(vec![3]));
        assert_eq!(unseen_value(&rig, entity, of_there, 6), None);
    }
    rig.app.world_mut().get_mut::<Score>(here).unwrap().0 = 5;
    let a = rig.players[0];
    change_scene(rig.app.world_mut(), a, there, Vec2::splat(50.0)).unwrap();
    rig.rest_and_compare();
    assert_eq!(unseen_value(&rig, a, of_there, 6), Some(vec![4]));
    assert_eq!(
        unseen_value(&rig, rig.players[1], of_here, 6),
        Some(vec![5])
    );
}

#[test]
fn public_object_is_sent_unseen_until_it_is_gone() {
    let mut rig = Rig::new(1);
    let carrier = rig.players[5];
    rig.app.world_mut().entity_mut(carrier).insert(Score(8));
    teleport(rig.app.world_mut(), carrier, Vec2::splat(900.0)).unwrap();
    rig.rest_and_compare();
    let (a, of) = (rig.players[0], reference(&rig, carrier));
    assert_eq!(unseen_value(&rig, a, of, 6), Some(vec![8]));
    rig.app.world_mut().despawn(carrier);
    rig.players.pop();
    rig.rest_and_compare();
    assert_eq!(unseen_value(&rig, a, of, 6), None);
}

#[test]
fn closed_scene_removes_its_party_members() {
    let mut rig = Rig::new(10);
    join(&mut rig, &[0, 1]);
    let (a, b) = (rig.players[0], rig.players.remove(1));
    let to = rig.scenes[1];
    change_scene(rig.app.world_mut(), b, to, Vec2::splat(50.0)).unwrap();
    rig.rest_and_compare();
    let of = reference(&rig, b);
    assert_eq!(unseen_value(&rig, a, of, 5), Some(vec![1]));
    close_scene(rig.app.world_mut(), to).unwrap();
    rig.rest_and_compare();
    assert_eq!(unseen_value(&rig, a, of, 5), None);
}

#[test]
fn unseen_object_despawned_within_a_tick_is_removed() {
    // Each sees one other, and all are in one party.
    let mut rig = Rig::new(1);
    let after_collecting = despawn_doomed.after(SyncSystems::Collect);
    let systems = after_collecting.before(SyncSystems::Save);
    rig.app.add_systems(FixedUpdate, systems);
    join(&mut rig, &[0, 1, 2, 3, 4, 5]);
    rig.rest_and_compare();
    for _ in 0..3 {
        let entity = rig.players.remove(2);
        // It becomes public and despawns in the same tick in which the party would receive it.
        rig.app.world_mut().entity_mut(entity).insert(Score(1));
        let of = reference(&rig, entity);
        let is_public = |rig: &Rig| {
            let replicator = rig.app.world().resource::<Replicator>();
            let public = &replicator.scenes[&of.scene].public;
            public.contains(&(of.id.0, of.generation.0))
        };
        while !is_public(&rig) {
            rig.app.update();
        }
        rig.app.world_mut().entity_mut(entity).insert(Doomed);
        rig.app.update();
        rig.join(1, 2);
        join(&mut rig, &[5]);
        rig.app.update();
    }
    rig.rest_and_compare();
}

#[test]
fn unseen_objects_per_tick_are_limited() {
    let mut rig = Rig::new(0);
    rig.app.insert_resource(SyncSettings {
        enters_per_tick_max: 2,
        ..SyncSettings::default()
    });
    for &entity in &rig.players {
        rig.app.world_mut().entity_mut(entity).insert(Score(3));
    }
    rig.rest_and_compare();
    rig.join(0, 7);
    let by = rig.players[6];
    let known_count = |rig: &Rig| {
        let others = rig.players[..6].iter();
        let known_others =
            others.filter(|&&of| unseen_value(rig, by, reference(rig, of), 6).is_some());
        known_others.count()
    };
    for known in [2, 4, 6] {
        rig.app.update();
        assert_eq!(known_count(&rig), known);
    }
    rig.rest_and_compare();
}

#[test]
fn closed_scenes_leave_no_state() {
    let mut rig = Rig::new(10);
    for _ in 0..20 {
        let scene = open_scene(rig.app.world_mut(), SceneSpec::default(), ()).unwrap();
        rig.join(10, 2);
        let entity = rig.players.pop().unwrap();
        change_scene(rig.app.world_mut(), entity, scene, Vec2::splat(50.0)).unwrap();
        rig.app.update();
        close_scene(rig.app.world_mut(), scene).unwrap();
        rig.app.update();
    }
    rig.app.update();
    let replicator = rig.app.world().resource::<Replicator>();
    let kept = [replicator.scenes.len(), replicator.view_changes.len()];
    assert!(kept.iter().all(|&scenes| scenes <= 2), "{kept:?}");
}

#[test]
fn full_snapshot_excludes_a_delta_in_the_same_tick() {
    let mut is_same_tick = false;
    // The change is sent some ticks after it is made, and a player who joins receives the object in full.
    for delay in 0..=12 {
        let mut rig = Rig::new(10);
        join(&mut rig, &[0, 1]);
        let (a, b, c) = (rig.players[0], rig.players[1], rig.players[2]);
        let to = rig.scenes[1];
        change_scene(rig.app.world_mut(), b, to, Vec2::splat(50.0)).unwrap();
        rig.rest_and_compare();
        rig.app.world_mut().get_mut::<Vigour>(b).unwrap().0 = 9;
        (0..delay).for_each(|_| rig.app.update());
        join(&mut rig, &[2]);
        let of = reference(&rig, b);
        let is_old = |rig: &Rig| unseen_value(rig, a, of, 5) == Some(vec![1]);
        while unseen_value(&rig, c, of, 5).is_none() {
            let (was_old, before) = (is_old(&rig), rig.sent().unseen.messages);
            rig.app.update();
            if was_old && !is_old(&rig) && unseen_value(&rig, c, of, 5).is_some() {
                is_same_tick = true;
                // The delta for `a`, `b` for `c`, and `c` for `b`.
                assert_eq!(rig.sent().unseen.messages, before + 3);
            }
        }
    }
    assert!(is_same_tick);
}
