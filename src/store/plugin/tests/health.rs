//! Failing lookups and saves without a lease.

use super::*;
use crate::sync::SaveRequest;
use crate::world::Object;

#[test]
fn store_health_follows_the_last_lookup() {
    let source = FaultySource::new(MemoryDisk::default(), 1, FaultShares::default());
    let mut app = game(source.clone());
    app.update();
    let is_failing = |app: &mut App, number| {
        request_lookup(app, 7, number);
        ticks(app, 2);
        app.world().resource::<PlayerStore>().is_store_failing()
    };
    assert!(!is_failing(&mut app, 1));
    source.set_shares(FaultShares {
        failing: 1.0,
        ..FaultShares::default()
    });
    // A player that is not cached.
    request_lookup(&mut app, 8, 2);
    ticks(&mut app, 2);
    assert!(app.world().resource::<PlayerStore>().is_store_failing());
    source.set_shares(FaultShares::default());
    // The store's thread opens it again after a pause in real time, and no tick waits for a store that fails.
    let recovers = (3..1_000_000).find(|&number| {
        std::thread::yield_now();
        !is_failing(&mut app, number)
    });
    assert!(recovers.is_some());
}

#[test]
fn saves_without_a_lease_are_counted_and_not_stored() {
    let disk = MemoryDisk::default();
    let mut app = game(disk.clone());
    log_in(&mut app, 7);
    ticks(&mut app, 2);
    let entity = app.world().resource::<Players>().entity(PlayerId(7));
    let object = *app.world().get::<Object>(entity.unwrap()).unwrap();
    for player in [Some(7), Some(8), None, Some(9)] {
        app.world_mut().write_message(SaveRequest {
            entity: entity.unwrap(),
            object: object.reference(),
            player: player.map(PlayerId),
            tick: 3,
            values: vec![(PURSE, vec![5])],
            removed: Vec::new(),
        });
    }
    ticks(&mut app, 2);
    assert_eq!(app.world().resource::<PlayerStoreStats>().unleased_saves, 2);
    let stored = [7, 8, 9].map(|player| stored_coins(&disk, player).map(|it| it.0));
    assert_eq!(stored, [Some(5), None, None]);
}
