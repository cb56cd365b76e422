//! Requests to save objects.

use bevy_ecs::message::Messages;
use proptest::prelude::*;

use super::*;

fn requests(rig: &mut Rig) -> Vec<SaveRequest> {
    let mut messages = rig.app.world_mut().resource_mut::<Messages<SaveRequest>>();
    messages.drain().collect()
}

#[test]
fn save_is_requested_until_stored_even_after_despawn() {
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
    // The change of the last tick is not collected yet, and is saved all the same.
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

/// The actions of a game on one player before a tick: a new amount of gold, whether it has to be saved in this tick, whether
/// the store accepts the request.
fn days() -> impl Strategy<Value = Vec<(Option<u32>, bool, bool)>> {
    let gold = prop::option::weighted(0.4, 0..3_u32);
    let day = (gold, prop::bool::weighted(0.3), prop::bool::weighted(0.9));
    prop::collection::vec(day, 1..50)
}

proptest! {
    #![proptest_config(draws!())]

    #[test]
    fn save_now_stores_current_values_regardless_of_clients(
        days in days(), save_every_ticks in 1..8_u32
    ) {
        let mut rig = Rig::new(2);
        rig.app.insert_resource(SyncSettings { save_every_ticks, ..SyncSettings::default() });
        let player = rig.players[3];
        let slot = *rig.app.world().get::<MaskSlot>(player).unwrap();
        let mut stored = None;
        // Everything is saved in the end, without urgent requests.
        let rest = vec![(None, false, true); 20];
        let last = days.len() + rest.len() - 1;
        for (nth, (gold, is_hastened, is_taken)) in days.into_iter().chain(rest).enumerate() {
            let world = rig.app.world_mut();
            if let Some(gold) = gold {
                world.get_mut::<Gold>(player).unwrap().0 = gold;
            }
            if is_hastened {
                world.resource_mut::<DirtyMasks>().save_now(slot);
            }
            rig.app.update();
            for request in requests(&mut rig) {
                if request.entity != player {
                    continue;
                }
                if is_taken {
                    stored = Some(request.values[0].1[0]);
                } else {
                    rig.app.world_mut().write_message(SaveFailed(request));
                }
            }
            let now = rig.app.world().get::<Gold>(player).unwrap().0 as u8;
            if is_taken && (is_hastened || nth == last) {
                prop_assert_eq!(stored, Some(now), "tick {}", nth);
            }
        }
    }
}
