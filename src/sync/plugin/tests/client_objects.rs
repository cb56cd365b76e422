//! The objects that a client knows, when, and at what cost.

use super::*;

#[test]
fn idle_world_sends_nothing() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let before = rig.sent();
    rig.rest_and_compare();
    assert_eq!(rig.sent(), before);
}

#[test]
fn equal_write_sends_nothing_and_owner_values_stay_private() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let before = rig.sent();
    rig.app
        .world_mut()
        .get_mut::<Health>(rig.players[0])
        .unwrap()
        .0 = 100;
    rig.rest_and_compare();
    assert_eq!(rig.sent(), before);
    rig.app
        .world_mut()
        .get_mut::<Gold>(rig.players[0])
        .unwrap()
        .0 = 77;
    rig.rest_and_compare();
    assert_eq!(rig.sent().deltas.messages, before.deltas.messages + 1);
}

#[test]
fn id_freed_in_a_tick_is_not_taken_for_its_next_object() {
    let sets = [
        SimSystems::Think,
        SimSystems::Move,
        SimSystems::Heartbeat,
        SimSystems::Last,
    ];
    let within = [
        (SyncSystems::Mark, SyncSystems::UpdateClients),
        (SyncSystems::UpdateClients, SyncSystems::Collect),
        (SyncSystems::Encode, SyncSystems::Assemble),
    ];
    let within = within.map(|(after, before)| despawn_between(after, before));
    for mut rig in sets.map(despawn_in).into_iter().chain(within) {
        for _ in 0..4 {
            let entity = rig.players.remove(2);
            rig.app.world_mut().entity_mut(entity).insert(Doomed);
            rig.app.update();
            rig.join(10, 2);
            rig.app.update();
        }
        rig.rest_and_compare();
    }
}

#[test]
fn client_that_leaves_within_its_first_tick_receives_nothing() {
    let within = despawn_between(SyncSystems::UpdateClients, SyncSystems::Collect);
    for mut rig in [despawn_in(SimSystems::Heartbeat), within] {
        rig.join(10, 3);
        let entity = rig.players.pop().unwrap();
        let client = rig.client_of(entity);
        rig.app.world_mut().entity_mut(entity).insert(Doomed);
        rig.app.update();
        rig.rest_and_compare();
        assert!(!rig.mirrors.0.lock().unwrap().mirrors.contains_key(&client));
    }
}

#[test]
fn regained_control_resends_the_scene() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let entity = rig.players[0];
    let client = rig.client_of(entity);
    rig.app
        .world_mut()
        .entity_mut(entity)
        .remove::<ControlledBy>();
    rig.app
        .world_mut()
        .get_mut::<Health>(rig.players[1])
        .unwrap()
        .0 = 5;
    (0..12).for_each(|_| rig.app.update());
    assert!(control(rig.app.world_mut(), client, entity));
    rig.rest_and_compare();
}

#[test]
fn unregistered_bit_changes_nothing() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let world = rig.app.world_mut();
    let slot = *world.get::<MaskSlot>(rig.players[0]).unwrap();
    let mut masks = world.resource_mut::<DirtyMasks>();
    masks.mark(slot, 63);
    masks.mark(slot, 2000);
    let before = rig.sent();
    rig.rest_and_compare();
    assert_eq!(rig.sent(), before);
}

#[test]
fn scene_change_is_sent_at_once() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let (entity, to) = (rig.players[1], rig.scenes[1]);
    for nth in 0..7 {
        let at = Vec2::splat(100.0 + nth as f32);
        change_scene(rig.app.world_mut(), entity, to, at).unwrap();
        rig.app.update();
        let object = *rig.app.world().get::<Object>(entity).unwrap();
        let end = rig.mirrors.0.lock().unwrap();
        let known = end.mirrors[&rig.client_of(entity)].0.object(object.id().0);
        assert_eq!(known.unwrap().motion.position.metres(), at);
    }
    rig.rest_and_compare();
}

#[test]
fn marked_attribute_arrives_in_its_tick_unmarked_one_never() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let (by, of) = (rig.players[0], rig.players[1]);
    rig.set_stance(of, 7);
    rig.app.update();
    assert_eq!(rig.known(by, of, 4), Some(vec![7]));
    rig.app.world_mut().get_mut::<Stance>(of).unwrap().0 = 9;
    (0..30).for_each(|_| rig.app.update());
    assert_eq!(rig.known(by, of, 4), Some(vec![7]));
}

#[test]
fn team_attributes_are_sent_from_the_tick_of_joining() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let (by, of) = (rig.players[0], rig.players[1]);
    assert_eq!(rig.known(by, of, 3), None);
    rig.app.world_mut().entity_mut(by).insert(TeamId(1));
    rig.app.update();
    assert_eq!(rig.known(by, of, 3), Some(vec![1]));
    assert_eq!(rig.known(of, by, 3), Some(vec![0]));
    rig.rest_and_compare();
}

#[test]
fn new_objects_per_tick_are_limited_and_friends_come_first() {
    let mut rig = Rig::new(10);
    let settings = SyncSettings {
        enters_per_tick_max: 2,
        ..SyncSettings::default()
    };
    rig.app.insert_resource(settings);
    // Its own team before the others.
    for known in [&[1, 3, 5][..], &[1, 2, 3, 4, 5], &[1, 2, 3, 4, 5, 6]] {
        rig.app.update();
        let end = rig.mirrors.0.lock().unwrap();
        let mirror = &end.mirrors[&rig.client_of(rig.players[0])].0;
        assert_eq!(mirror.ids(), known);
    }
    rig.rest_and_compare();
}

#[test]
fn object_gone_before_its_snapshot_is_never_sent() {
    let mut rig = Rig::new(10);
    let settings = SyncSettings {
        enters_per_tick_max: 1,
        ..SyncSettings::default()
    };
    rig.app.insert_resource(settings);
    rig.app.update();
    let before = rig.sent();
    // Every client has received the nearest of its team so far, and none the last two except their own.
    for &entity in &rig.players[4..] {
        rig.app.world_mut().despawn(entity);
    }
    rig.players.truncate(4);
    (0..12).for_each(|_| rig.app.update());
    let despawns = rig.sent().despawns.messages - before.despawns.messages;
    assert_eq!(despawns, 2, "of their own");
    rig.rest_and_compare();
}

#[test]
fn walk_costs_few_messages_and_mirrors_stay_near() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let before = rig.sent();
    let (by, of) = (rig.players[0], rig.players[1]);
    for _ in 0..200 {
        let world = rig.app.world_mut();
        let tick_s = world.resource::<Time<Fixed>>().timestep().as_secs_f32();
        world.get_mut::<Velocity>(of).unwrap().0 = Vec2::new(0.0, 2.0);
        world.get_mut::<Position>(of).unwrap().0.y += 2.0 * tick_s;
        rig.app.update();
        let (tick, at) = (
            rig.app.world().resource::<SimTick>().0,
            rig.app.world().get::<Position>(of).unwrap().0,
        );
        let id = rig.app.world().get::<Object>(of).unwrap().id().0;
        let end = rig.mirrors.0.lock().unwrap();
        let mirror = &end.mirrors[&rig.client_of(by)].0;
        // Far away it is sent less often.
        if at.y < 60.0
            && let Some(seen) = mirror.position(id, tick)
        {
            assert!(seen.distance(at) < 0.06, "{seen} {at}");
        }
    }
    let motions = rig.sent().motions.messages - before.motions.messages;
    assert!((6..60).contains(&motions), "{motions} for six clients");
}

#[test]
fn ended_session_is_closed_once() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let client = rig.client_of(rig.players[2]);
    disconnect(rig.app.world_mut(), client, LogoutReason::Disconnected);
    rig.players.remove(2);
    rig.app.update();
    // The last message has the reason.
    let gone = rig.mirrors.0.lock().unwrap().mirrors.remove(&client);
    let notices = gone.map(|(mut mirror, _)| mirror.take_notices());
    let reason = CloseReason::Ended.number();
    assert_eq!(
        notices,
        Some(vec![SessionNotice::Closed {
            reason,
            refusal: None
        }])
    );
    rig.rest_and_compare();
    let end = rig.mirrors.0.lock().unwrap();
    assert_eq!(end.closed, [(client, CloseReason::Ended)]);
}

#[test]
fn byte_budget_limits_snapshots_to_at_least_one() {
    let mut rig = Rig::new(10);
    rig.app.insert_resource(SyncSettings {
        bytes_per_client_s: 400,
        ..SyncSettings::default()
    });
    // The budget is a few bytes per tick: less than a snapshot. It sees five others.
    for known in [2, 3, 4, 5, 6, 6] {
        rig.app.update();
        let end = rig.mirrors.0.lock().unwrap();
        let mirror = &end.mirrors[&rig.client_of(rig.players[0])].0;
        assert_eq!(mirror.ids().len(), known);
    }
    rig.rest_and_compare();
}

#[test]
fn epoch_starts_at_1_and_grows_with_each_scene_and_resume() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let (entity, to) = (rig.players[0], rig.scenes[1]);
    let client = rig.client_of(entity);
    let epochs = |rig: &Rig| rig.mirrors.0.lock().unwrap().epochs[&client].clone();
    assert_eq!(epochs(&rig), [1]);
    change_scene(rig.app.world_mut(), entity, to, Vec2::splat(50.0)).unwrap();
    rig.rest_and_compare();
    assert_eq!(epochs(&rig), [1, 2]);
    let mut object = rig.app.world_mut().entity_mut(entity);
    object.remove::<ControlledBy>();
    rig.rest_and_compare();
    assert_eq!(
        epochs(&rig),
        [1, 2],
        "what it controlled is gone in its own epoch"
    );
    control(rig.app.world_mut(), client, entity);
    rig.rest_and_compare();
    assert_eq!(epochs(&rig), [1, 2, 3]);
}
