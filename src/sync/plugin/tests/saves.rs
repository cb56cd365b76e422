//! What a store is asked to keep.

use bevy_ecs::message::Messages;

use super::*;

fn requests(rig: &mut Rig) -> Vec<SaveRequest> {
    let mut messages = rig.app.world_mut().resource_mut::<Messages<SaveRequest>>();
    messages.drain().collect()
}

#[test]
fn what_is_to_be_stored_is_asked_for_until_it_is_also_of_who_is_gone() {
    let mut rig = Rig::new(10);
    rig.app.insert_resource(SyncSettings {
        save_every_ticks: 10,
        ..SyncSettings::default()
    });
    let entity = rig.players[2];
    let mut asked = Vec::new();
    for _ in 0..30 {
        rig.app.update();
        asked.extend(requests(&mut rig));
    }
    assert_eq!(asked.len(), 6, "one an object, and nothing twice");
    rig.app.world_mut().get_mut::<Gold>(entity).unwrap().0 = 50;
    let mut failures = 0;
    for _ in 0..60 {
        rig.app.update();
        for request in requests(&mut rig) {
            assert_eq!(
                (request.entity, &request.values),
                (entity, &vec![(9, vec![50])])
            );
            failures += 1;
            rig.app.world_mut().write_message(SaveFailed(request));
        }
    }
    assert!((3..=6).contains(&failures), "{failures}");
    // The change of the last tick is not collected yet, and is stored all the same.
    rig.app.world_mut().get_mut::<Gold>(entity).unwrap().0 = 51;
    rig.app.world_mut().despawn(entity);
    rig.players.remove(2);
    for _ in 0..3 {
        let mut last = Vec::new();
        for _ in 0..11 {
            last.extend(requests(&mut rig));
            rig.app.update();
        }
        assert_eq!(last.len(), 1, "{last:?}");
        assert_eq!(last[0].values, [(9, vec![51])]);
        rig.app
            .world_mut()
            .write_message(SaveFailed(last.remove(0)));
    }
}
