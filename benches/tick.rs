//! The whole tick under the load of `throng bench tick`, on one thread. Unlike the program's figures, this includes the work of the
//! synthetic clients between the sets of the tick.

use criterion::Criterion;
use throng::outbox::OutboxStats;
use throng_scenario::crowd::{LOAD_WARM_UP_TICKS, add_load, load_census};
use throng_scenario::testing::TestServer;

pub fn bench(criterion: &mut Criterion) {
    for players in [500, 2_000] {
        // A load takes long to set up, so it is only made if this benchmark is selected.
        let mut loaded: Option<TestServer> = None;
        criterion.bench_function(&format!("tick::load/{players}"), |bencher| {
            let server = loaded.get_or_insert_with(|| warm(players));
            let before = server.stats::<OutboxStats>().packets;
            let tick = server.tick();
            bencher.iter(|| server.step(1));
            let packets = server.stats::<OutboxStats>().packets - before;
            // Not every player: an object that stands still and alone produces no updates.
            assert!(
                packets > (server.tick() - tick) * u64::from(players) * 3 / 4,
                "expected a packet for three in four players per tick, got {packets} in {} ticks, {:?}",
                server.tick() - tick,
                load_census(server.world_mut())
            );
        });
    }
}

fn warm(players: u32) -> TestServer {
    let mut server = TestServer::builder().build();
    add_load(server.world_mut(), players).expect("the load is within limits");
    server.step(LOAD_WARM_UP_TICKS);
    assert_eq!(load_census(server.world_mut()).players, players);
    server
}
