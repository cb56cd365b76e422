//! Whether clients still have to be sent anything: `None` exactly when every mirror is equal, whatever changed before.

use super::*;
use crate::sim::logged_warnings;

impl Rig {
    /// Ticks until nothing is pending; the pending kinds on the way, each once in a row.
    fn rest(&mut self) -> Vec<PendingReplication> {
        let mut kinds = Vec::new();
        for _ in 0..200 {
            self.app.update();
            let Some(kind) = pending_replication(self.app.world()) else {
                break;
            };
            if kinds.last() != Some(&kind) {
                kinds.push(kind);
            }
        }
        assert_eq!(pending_replication(self.app.world()), None, "{kinds:?}");
        for (client, (mirror, _)) in &self.mirrors.0.lock().unwrap().mirrors {
            let compared = compare_mirror(self.app.world(), *client, mirror);
            assert_eq!(compared, Ok(()), "client {}", client.0);
        }
        kinds
    }
}

/// Sent to all viewers at a rare turn.
#[derive(Component, Clone, Copy)]
struct Fame(u32);

#[test]
fn rare_attribute_is_pending_until_its_turn() {
    let mut rig = Rig::new(10);
    let fame = AttributeSpec::new("fame", 40, Encoding::Varint).at(SendRate::EveryNth(150));
    rig.app.replicate_field(fame, |fame: &Fame| fame.0);
    rig.rest();
    let player = rig.players[0];
    rig.app.world_mut().entity_mut(player).insert(Fame(7));
    assert_eq!(rig.rest(), [PendingReplication::Attribute]);
    assert_eq!(rig.known(rig.players[1], player, 40), Some(vec![7]));
    // What no client can know is not waited for.
    let far = rig.scenes[1];
    let bundle = (Viewable::default(), Fame(9));
    spawn_object(rig.app.world_mut(), far, KindId(1), Vec2::ONE, bundle).unwrap();
    assert_eq!(rig.rest(), []);
}

#[test]
fn unseen_objects_are_pending_until_all_are_sent() {
    let mut rig = Rig::new(10);
    rig.app.insert_resource(SyncSettings {
        enters_per_tick_max: 1,
        ..SyncSettings::default()
    });
    rig.rest();
    for nth in 0..20 {
        let at = Vec2::new(900.0, 40.0 * nth as f32);
        let bundle = (Viewable::default(), Score(nth));
        let scene = rig.scenes[0];
        spawn_object(rig.app.world_mut(), scene, KindId(1), at, bundle).unwrap();
    }
    assert!(rig.rest().contains(&PendingReplication::UnseenObject));
}

#[test]
fn stop_of_a_far_object_is_pending_until_its_tier_is_due() {
    let mut rig = Rig::new(10);
    rig.app.insert_resource(SyncSettings {
        full_rate_distance_m: 0.5,
        ..SyncSettings::default()
    });
    rig.rest();
    for delay in 0..8 {
        let player = rig.players[5];
        for _ in 0..20 + delay {
            let world = rig.app.world_mut();
            world.get_mut::<Velocity>(player).unwrap().0 = Vec2::X;
            world.get_mut::<Position>(player).unwrap().0.x += 0.05;
            rig.app.update();
        }
        rig.app.world_mut().get_mut::<Velocity>(player).unwrap().0 = Vec2::ZERO;
        assert_eq!(rig.rest(), [PendingReplication::Motion]);
    }
}

/// Sent as one byte.
#[derive(Component, Clone, Copy)]
struct Armour(u32);

#[test]
fn value_cut_by_its_encoding_is_logged_once() {
    let mut rig = Rig::new(10);
    let armour = AttributeSpec::new("armour", 41, Encoding::U8);
    rig.app.replicate_field(armour, |armour: &Armour| armour.0);
    let warnings = logged_warnings(|| {
        for (nth, value) in [255, 70_000, 70_001].into_iter().enumerate() {
            let player = rig.players[nth];
            rig.app.world_mut().entity_mut(player).insert(Armour(value));
            rig.rest();
        }
    });
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let start = "attribute value cut: its encoding cannot represent it, clients receive the nearest value; attribute=\"armour\"; encoding=U8";
    assert!(warnings[0].starts_with(start), "{warnings:?}");
    assert_eq!(
        rig.app.world().resource::<SyncStats>().attributes_clamped,
        2
    );
}
