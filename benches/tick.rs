//! The whole tick under the load of `throng bench tick`, on one thread. The work of the synthetic clients between the sets of the
//! tick is included here, unlike in the figures of the program.

use criterion::Criterion;
use throng::outbox::OutboxStats;
use throng_scenario::crowd::{LOAD_WARM_UP_TICKS, add_load, load_census};
use throng_scenario::testing::TestServer;

pub fn bench(criterion: &mut Criterion) {
    for players in [500, 2_000] {
        // A load is slow to set up: only if it is requested.
        let mut loaded: Option<TestServer> = None;
        criterion.bench_function(&format!("tick::load/{players}"), |bencher| {
            let server = loaded.get_or_insert_with(|| warm(players));
            let before = server.stats::<OutboxStats>().packets;
            let tick = server.tick();
            bencher.iter(|| server.step(1));
            let frames = server.stats::<OutboxStats>().packets - before;
            // An object that stands still and alone produces no updates.
            assert!(
                frames > (server.tick() - tick) * u64::from(players) * 3 / 4,
                "most get a packet: {frames} in {} ticks, {:?}",
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
