//! Removed components, and therefore removed attributes.

use bevy_ecs::message::Messages;

use super::unseen::unseen_value;
use super::*;
use crate::world::PlayerId;

#[test]
fn component_removal_is_sent_to_clients_with_its_value() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let (by, of) = (rig.players[0], rig.players[2]);
    let all = |rig: &Rig| [1, 3, 4].map(|attribute| rig.known(by, of, attribute).is_some());
    assert_eq!(all(&rig), [true; 3]);
    let mut object = rig.app.world_mut().entity_mut(of);
    object.remove::<(Health, Mana, Stance)>();
    rig.rest_and_compare();
    assert_eq!(all(&rig), [false; 3]);
    assert!(
        rig.known(by, of, 7).is_none(),
        "no client received its guild"
    );
    let mut object = rig.app.world_mut().entity_mut(of);
    object.insert((Health(100), Stance(1)));
    rig.rest_and_compare();
    assert_eq!(
        all(&rig),
        [true, false, true],
        "an equal value is sent again"
    );
}

#[test]
fn component_reinserted_within_a_tick_sends_nothing() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let before = rig.sent().deltas;
    let mut object = rig.app.world_mut().entity_mut(rig.players[2]);
    object.remove::<Health>().insert(Health(100));
    rig.rest_and_compare();
    assert_eq!(rig.sent().deltas, before);
}

#[test]
fn despawn_leaves_no_mark_in_the_freed_slot() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let gone = rig.players.remove(5);
    let slot = *rig.app.world().get::<MaskSlot>(gone).unwrap();
    rig.app.world_mut().despawn(gone);
    let masks = rig.app.world().resource::<DirtyMasks>();
    assert!(!masks.is_dirty(slot), "a mark is left of who is gone");
    rig.rest_and_compare();
}

#[test]
fn scene_attribute_removal_reaches_its_clients() {
    let mut rig = Rig::new(10);
    let (scene, by) = (rig.scenes[0], rig.players[0]);
    rig.app.world_mut().entity_mut(scene).insert(Score(3));
    rig.rest_and_compare();
    let of = rig.app.world().get::<SimScene>(scene).unwrap().reference();
    assert_eq!(unseen_value(&rig, by, of, 6), Some(vec![3]));
    rig.app.world_mut().entity_mut(scene).remove::<Score>();
    rig.rest_and_compare();
    assert_eq!(unseen_value(&rig, by, of, 6), None);
    rig.app.world_mut().entity_mut(scene).insert(Score(3));
    rig.rest_and_compare();
    assert_eq!(unseen_value(&rig, by, of, 6), Some(vec![3]));
}

#[test]
fn rejoining_member_drops_attributes_removed_meanwhile() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let (by, of) = (rig.players[0], rig.players[2]);
    rig.app.world_mut().entity_mut(by).remove::<TeamId>();
    rig.rest_and_compare();
    assert!(rig.known(by, of, 3).is_some(), "it keeps what it learnt");
    rig.app.world_mut().entity_mut(of).remove::<Mana>();
    rig.rest_and_compare();
    rig.app.world_mut().entity_mut(by).insert(TeamId(0));
    rig.rest_and_compare();
    assert_eq!(rig.known(by, of, 3), None);
}

#[test]
fn comparison_finds_a_missing_removal() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let (by, of) = (rig.players[0], rig.players[2]);
    rig.app.world_mut().entity_mut(of).remove::<Health>();
    let (client, end) = (rig.client_of(by), rig.mirrors.0.lock().unwrap());
    let found = compare_mirror(rig.app.world(), client, &end.mirrors[&client].0);
    let found = found.unwrap_err();
    assert!(found.contains("attributes [(1, [100])"), "{found}");
}

#[test]
fn save_request_removes_only_attributes_that_existed() {
    let mut rig = Rig::new(10);
    // Until everything from the start is saved.
    (0..400).for_each(|_| rig.app.update());
    let lost = rig.players[2];
    rig.app.world_mut().entity_mut(lost).remove::<Gold>();
    let poor = rig.app.world_mut();
    let poor = spawn_object(poor, rig.scenes[0], KindId(0), Vec2::ONE, ()).unwrap();
    rig.app.world_mut().despawn(poor);
    let mut asked = Vec::new();
    for _ in 0..400 {
        rig.app.update();
        let mut messages = rig.app.world_mut().resource_mut::<Messages<SaveRequest>>();
        asked.extend(messages.drain().filter(|asked| !asked.removed.is_empty()));
    }
    let asked: Vec<_> = asked.iter().map(|a| (a.entity, &a.removed[..])).collect();
    assert_eq!(asked, [(lost, &[9][..])]);
}

/// Whether a full save request of an object contains the removal of its gold.
fn is_removal_requested(rig: &Rig, entity: Entity) -> bool {
    let request = full_save_request(rig.app.world(), entity);
    let removed = request.map(|request| request.removed);
    assert!(
        removed
            .as_deref()
            .is_none_or(|ids| ids.is_empty() || ids == [9])
    );
    removed.is_some_and(|ids| !ids.is_empty())
}

#[test]
fn removals_before_a_player_change_are_not_inherited() {
    let mut rig = Rig::new(10);
    let scene = rig.scenes[0];
    let world = rig.app.world_mut();
    let before = (Gold(1), PlayerId(77));
    let object = spawn_object(world, scene, KindId(0), Vec2::ONE, before).unwrap();
    rig.app.update();
    let lose = |rig: &mut Rig| {
        rig.app.world_mut().entity_mut(object).insert(Gold(1));
        rig.app.world_mut().entity_mut(object).remove::<Gold>();
    };
    let become_of = |rig: &mut Rig, player| {
        rig.app
            .world_mut()
            .entity_mut(object)
            .insert(PlayerId(player));
    };
    lose(&mut rig);
    assert!(
        is_removal_requested(&rig, object),
        "in the tick in which it came"
    );
    become_of(&mut rig, 77);
    assert!(
        is_removal_requested(&rig, object),
        "the same player once more"
    );
    become_of(&mut rig, 78);
    assert!(!is_removal_requested(&rig, object), "another player's");
    lose(&mut rig);
    assert!(is_removal_requested(&rig, object));
    let saved = |rig: &mut Rig| -> Vec<(Option<PlayerId>, bool)> {
        let mut all = rig.app.world_mut().resource_mut::<Messages<SaveRequest>>();
        let of_it = all.drain().filter(|asked| asked.entity == object);
        of_it
            .map(|asked| (asked.player, asked.removed == [9]))
            .collect()
    };
    saved(&mut rig);
    become_of(&mut rig, 79);
    assert_eq!(saved(&mut rig), [(Some(PlayerId(78)), true)]);
    rig.app.world_mut().entity_mut(object).remove::<PlayerId>();
    assert_eq!(
        saved(&mut rig),
        [],
        "it has nothing of that one's, and lost nothing"
    );
    lose(&mut rig);
    become_of(&mut rig, 78);
    assert!(
        !is_removal_requested(&rig, object),
        "the object had no player then"
    );
}
