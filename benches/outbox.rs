//! Packets from a tick's updates, the hand-over to a sender thread, and its ring compared with queues of objects.

use std::hint::black_box;

use criterion::Criterion;
use throng::outbox::{Assembler, CountingSink, OutgoingBatch};
use throng_net::outbox::reference::{QUEUE_KINDS, between_threads, single_threaded};
use throng_net::outbox::workload::{WorkloadShard, fill_batch};

const CLIENTS: u32 = 1_000;

pub fn bench(criterion: &mut Criterion) {
    let mut batch = OutgoingBatch::default();
    let messages = fill_batch(&mut batch, 1, 10_000, CLIENTS, 97);
    let (mut assembler, mut sink) = (Assembler::default(), CountingSink::default());
    criterion.bench_function(&format!("outbox::packets/{messages}"), |bencher| {
        bencher.iter(|| {
            let lines = batch.parts.iter().flat_map(|part| part.updates());
            let made: u64 = lines
                .map(|line| {
                    assembler
                        .write_update(batch.tick, line, &batch.shared, &mut sink)
                        .messages
                })
                .sum();
            assert_eq!(made, messages);
        });
    });
    let mut shard = WorkloadShard::new(16 << 20, Box::new(CountingSink::default()));
    criterion.bench_function(&format!("outbox::by_a_shard/{messages}"), |bencher| {
        bencher.iter(|| {
            let before = shard.assemble().messages;
            shard.push_batch(&batch);
            assert_eq!(shard.assemble().messages - before, messages);
        });
    });
    const COUNT: u64 = 20_000;
    for bytes in [64, 1_200] {
        let sum = single_threaded(QUEUE_KINDS[0], bytes, COUNT);
        for way in QUEUE_KINDS {
            for (name, pass) in [
                ("in_turn", single_threaded as fn(_, _, _) -> _),
                ("between_threads", between_threads),
            ] {
                let name = format!("outbox::{name}/{way:?}/{bytes}x{COUNT}");
                criterion.bench_function(&name, |bencher| {
                    bencher.iter(|| assert_eq!(pass(black_box(way), bytes, COUNT), sum));
                });
            }
        }
    }
}
