//! Clients whose own object is gone.

use super::*;

fn waiting(rig: &Rig) -> u64 {
    rig.app.world().resource::<SyncStats>().pending_snapshots
}

fn has_empty_mirror(rig: &Rig, client: ClientId) -> bool {
    let end = rig.mirrors.0.lock().unwrap();
    let mirror = &end.mirrors[&client].0;
    (mirror.controlled_object(), mirror.scene()) == (None, None) && mirror.ids().is_empty()
}

#[test]
fn client_is_notified_at_once_when_its_object_despawns() {
    let mut rig = Rig::new(10);
    rig.app.insert_resource(SyncSettings {
        enters_per_tick_max: 1,
        ..SyncSettings::default()
    });
    rig.app.update();
    let entity = rig.players.remove(0);
    let client = rig.client_of(entity);
    rig.app.world_mut().despawn(entity);
    rig.app.update();
    assert!(has_empty_mirror(&rig, client));
    rig.rest_and_compare();
    assert_eq!(waiting(&rig), 0);
    let before = rig.sent();
    rig.rest_and_compare();
    assert_eq!(rig.sent(), before, "it is sent once");
}

#[test]
fn client_is_notified_of_a_closed_scene_or_lost_control() {
    let mut rig = Rig::new(10);
    let (closed, taken) = (rig.players[1], rig.players[2]);
    let clients = [closed, taken].map(|entity| rig.client_of(entity));
    let to = rig.scenes[1];
    change_scene(rig.app.world_mut(), closed, to, Vec2::splat(50.0)).unwrap();
    rig.rest_and_compare();
    close_scene(rig.app.world_mut(), to).unwrap();
    let mut taken = rig.app.world_mut().entity_mut(taken);
    taken.remove::<ControlledBy>();
    rig.rest_and_compare();
    assert!(clients.iter().all(|&client| has_empty_mirror(&rig, client)));
}

#[test]
fn regained_control_starts_a_new_scene() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let entity = rig.players[0];
    let client = rig.client_of(entity);
    rig.app.world_mut().despawn(entity);
    rig.rest_and_compare();
    control(rig.app.world_mut(), client, rig.players[1]);
    rig.rest_and_compare();
    assert!(!has_empty_mirror(&rig, client));
    // Another in the same tick in which the first despawns: a new scene start replaces everything.
    let despawns = rig.sent().despawns.messages;
    rig.app.world_mut().despawn(rig.players[1]);
    control(rig.app.world_mut(), client, rig.players[2]);
    rig.app.update();
    assert!(!has_empty_mirror(&rig, client));
    rig.rest_and_compare();
    let others = rig.sent().despawns.messages - despawns;
    assert_eq!(
        others, 4,
        "three see one less, and one lost what it controlled"
    );
}

#[test]
fn control_of_an_object_despawned_in_the_tick_ends_the_old_one() {
    for (after, before) in [
        (SyncSystems::UpdateClients, SyncSystems::Collect),
        (SyncSystems::Encode, SyncSystems::Assemble),
    ] {
        let mut rig = despawn_between(after, before);
        let client = rig.client_of(rig.players[0]);
        let next = rig.players.remove(5);
        control(rig.app.world_mut(), client, next);
        rig.app.world_mut().entity_mut(next).insert(Doomed);
        rig.app.update();
        assert!(has_empty_mirror(&rig, client));
        control(rig.app.world_mut(), client, rig.players[0]);
        rig.rest_and_compare();
        assert_eq!(rig.mirrors.0.lock().unwrap().epochs[&client], [1, 2]);
    }
}
