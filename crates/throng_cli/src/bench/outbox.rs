//! `throng bench outbox`: packets from a tick's updates, the hand-over to a sender thread, and its ring compared with queues of objects.
//!
//! Times are medians. Peers do the same work in turn, in one process, and must get the same sum over all messages in order. A ring *in
//! turn* has both ends on one thread, a batch in and a batch out, which shows the cost of the ends. Between *threads*, which yield when
//! they cannot continue, the figure includes the system's scheduler, which dominates on a busy machine, so there is no target. Throughput
//! per second has its own row, because a row has one target.

use super::CliError;
use super::rows::BenchRow;
use throng::outbox::{Assembler, CountingSink, OutgoingBatch};
use throng::sim::clock::Stopwatch;
use throng_net::outbox::reference::{
    QUEUE_KINDS, QueueKind, Sum, between_threads, single_threaded,
};
use throng_net::outbox::workload::{WorkloadShard, fill_batch};

const SYSTEM: &str = "outbox";

/// Objects, clients, and objects known to each client.
const CROWDS: [(usize, u32, usize); 2] = [(10_000, 1_000, 97), (10_000, 1_000, 12)];

pub(super) fn measure(quick: bool) -> Result<Vec<BenchRow>, CliError> {
    let rounds = if quick { 9 } else { 31 };
    let mut rows = Vec::new();
    for (objects, clients, seen) in CROWDS {
        rows.extend(packets(objects, clients, seen, rounds));
    }
    let messages = if quick { 50_000 } else { 200_000 };
    for bytes in [64, 256, 1_200, 16_384] {
        let count = messages.min(64_000_000 / bytes as u64);
        rows.extend(ring("turn", single_threaded, bytes, count, rounds));
    }
    rows.extend(ring("threads", between_threads, 64, messages, rounds));
    Ok(rows)
}

/// Turns a tick's updates into packets, in the tick and on a sender thread.
fn packets(objects: usize, clients: u32, seen: usize, rounds: usize) -> Vec<BenchRow> {
    let mut batch = OutgoingBatch::default();
    let messages = fill_batch(&mut batch, 1, objects, clients, seen);
    let (mut assembler, mut sink) = (Assembler::default(), CountingSink::default());
    let mut shard = WorkloadShard::new(16 << 20, Box::new(CountingSink::default()));
    let mut times = [const { Vec::new() }; 3];
    let (mut inline, mut sharded) = (0, 0);
    // The first rounds warm up the buffers.
    for round in 0..rounds + 3 {
        let mut watch = Stopwatch::start();
        for line in batch.parts.iter().flat_map(|part| part.updates()) {
            let written = assembler.write_update(batch.tick, line, &batch.shared, &mut sink);
            inline += written.messages;
        }
        let assembled = watch.lap_ns();
        shard.push_batch(&batch);
        let offered = watch.lap_ns();
        sharded = shard.assemble().messages;
        let taken = watch.lap_ns();
        if round >= 3 {
            for (times, ns) in times.iter_mut().zip([assembled, offered, taken]) {
                times.push(ns as f64 / messages as f64);
            }
        }
    }
    let expected = messages * (rounds as u64 + 3);
    let whole = (inline, sharded) == (expected, expected);
    let [assembled, offered, taken] = &times;
    let row = |case: &str, ns: &[f64]| {
        BenchRow::repeated(SYSTEM, format!("{case}/{clients}x{seen}"), ns, "ns/msg")
    };
    vec![
        row("inline", assembled)
            .about(format!(
                "Building the packets of a tick's updates in the tick: {seen} messages to each of \
                 {clients} clients."
            ))
            .with_comparison("every message is in a packet", whole)
            .with_target_below(40.0, "ns"),
        row("hand over", offered).about("Handing the same updates to a sender thread instead."),
        row("thread", taken)
            .about("Building the packets of the same updates on that thread.")
            .with_comparison("every message is in a packet", whole)
            .with_target_below(40.0, "ns"),
    ]
}

/// Messages of one size through the ring, a channel and a queue.
fn ring(
    case: &str,
    pass: fn(QueueKind, usize, u64) -> Sum,
    bytes: usize,
    count: u64,
    rounds: usize,
) -> Vec<BenchRow> {
    let mut times = [const { Vec::new() }; 3];
    let mut is_equal = true;
    for _ in 0..rounds {
        let sums = QUEUE_KINDS.map(|way| {
            let watch = Stopwatch::start();
            let sum = pass(way, bytes, count);
            times[way as usize].push(watch.elapsed().as_secs_f64() * 1e9 / count as f64);
            sum
        });
        is_equal &= sums.iter().all(|&sum| sum == sums[0]);
    }
    let [ring, channel, queue] = &times;
    let between = if case == "threads" {
        "between two threads"
    } else {
        "in and out on one thread"
    };
    let row = |name: &str| {
        let case = format!("{case}/{bytes} B v {name}");
        BenchRow::repeated(SYSTEM, case, ring, "ns/msg")
            .with_comparison("the same messages in the same order", is_equal)
    };
    let about = |peer: &str| {
        format!(
            "A message of {bytes} bytes through the sender's ring, {between}, compared with {peer}."
        )
    };
    let beside_channel = row("channel")
        .with_repeated_reference("channel", channel)
        .about(about("`std::sync::mpsc::sync_channel` of byte vectors"));
    let beside_queue = row("queue")
        .with_repeated_reference("ArrayQueue", queue)
        .about(about("`crossbeam_queue::ArrayQueue` of byte vectors"));
    if case == "threads" {
        return vec![beside_channel, beside_queue];
    }
    // Bytes per nanosecond are gigabytes per second.
    let gb_s: Vec<f64> = ring.iter().map(|ns| bytes as f64 / ns.max(1e-9)).collect();
    let rate = BenchRow::repeated(SYSTEM, format!("{case}/{bytes} B rate"), &gb_s, "GB/s")
        .more_is_better()
        .about(format!(
            "Throughput of the ring with messages of {bytes} bytes, {between}."
        ))
        .with_target_above(2.0, "GB/s");
    if bytes == 64 {
        let beside_channel = beside_channel.with_target_ratio(5.0);
        return vec![rate, beside_channel, beside_queue.with_target_ratio(2.0)];
    }
    vec![rate, beside_channel, beside_queue]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outbox_rows_are_complete_and_agree() {
        // Only results are checked, because times vary.
        let rows = packets(200, 20, 10, 2);
        assert!(rows[0].value > 0.0 && rows.len() == 3);
    }

    #[test]
    fn verdict_has_one_target_in_the_unit_of_its_rate() {
        for (bytes, aims) in [(64, 3), (16_384, 1)] {
            let rows = ring("turn", single_threaded, bytes, 100, 1);
            let targets: Vec<&str> = rows
                .iter()
                .filter_map(|row| row.target.as_deref())
                .collect();
            assert_eq!((rows.len(), targets.len()), (3, aims), "{targets:?}");
            assert!(targets.iter().all(|target| !target.contains(',')));
            let rate = &rows[0];
            assert_eq!((&*rate.unit, targets[0]), ("GB/s", ">= 2 GB/s"));
            assert!(rate.more_is_better && rate.ratio.is_none());
            let (gb_s, ns) = (rate.value, rows[1].value);
            assert!((gb_s * ns - bytes as f64).abs() < 1e-6, "{gb_s} {ns}");
        }
        assert_eq!(ring("threads", between_threads, 64, 100, 2).len(), 2);
    }
}
