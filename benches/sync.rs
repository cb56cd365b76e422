//! Dirty masks, and a tick of replication for a walking crowd.

use std::hint::black_box;
use std::time::Duration;

use criterion::Criterion;
use throng::sync::SyncSettings;
use throng::sync::{SlotMasks, bits};
use throng_scenario::walking_server::WalkingServer;

const OBJECTS: u32 = 10_000;
const DIRTY: u32 = 100;

pub fn bench(criterion: &mut Criterion) {
    let mut masks = SlotMasks::new(1);
    masks.grow(OBJECTS as usize);
    criterion.bench_function(&format!("sync::mark_and_collect/{DIRTY}"), |bencher| {
        bencher.iter(|| {
            for object in (0..OBJECTS).step_by((OBJECTS / DIRTY) as usize) {
                masks.mark(object, black_box(object % 64));
            }
            let mut seen = 0;
            masks.drain(|object, mask| {
                let bits = bits(mask).filter(|&bit| bit as u32 == object % 64);
                seen += bits.count() as u32;
                mask.fill(0);
            });
            assert_eq!(seen, DIRTY);
        });
    });
    let mut server = WalkingServer::new(2_000, 200, 447.0, SyncSettings::default())
        .expect("the scene has room for all objects");
    for _ in 0..60 {
        server.step();
    }
    criterion.bench_function("sync::replicate_walking/2000x200", |bencher| {
        bencher.iter_custom(|times| (0..times).map(|_| server.step()).sum::<Duration>());
    });
    let (stats, packed) = server.stats();
    assert!(stats.links > 200 && packed.packets > 0);
}
