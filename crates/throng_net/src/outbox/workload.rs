//! Input for benches and tests: the tick of a crowd as a batch, and a shard that one thread feeds and reads.

use throng_protocol::wire::{ClientId, PacketTotals};

use super::assemble::Assembler;
use super::batch::{MessageSpan, OutgoingBatch};
use super::feed::{Feed, SpillLimits};
use super::ring::{RingReader, ring};
use super::sender::SenderWorker;
use super::sink::PacketSink;

/// Fills a batch with the changes of a tick: `objects` shared messages of 12 to 19 bytes. Each client receives `seen` of them, most on the
/// unreliable channel, and a private message. Returns the number of messages for all clients together.
pub fn fill_batch(
    batch: &mut OutgoingBatch,
    tick: u64,
    objects: usize,
    clients: u32,
    seen: usize,
) -> u64 {
    batch.clear();
    batch.tick = tick;
    let mut state = 7 + tick;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let spans: Vec<MessageSpan> = (0..objects.max(1))
        .map(|object| {
            let length = 12 + random() % 8;
            batch.push_shared(|bytes| bytes.resize(bytes.len() + length, 16 + (object % 200) as u8))
        })
        .collect();
    let part = batch.part(0);
    for client in 1..=clients {
        part.begin_client(ClientId(client), 1, tick as u16);
        part.write_reliable(|bytes| bytes.extend([17; 24]));
        // Objects that are near in the world are mostly near in the list.
        let first = random() % spans.len();
        for nth in 0..seen {
            let span = spans[(first + nth * 3) % spans.len()];
            if nth % 8 == 0 {
                part.reliable(span);
            } else {
                part.unreliable(span);
            }
        }
        part.end_client();
    }
    u64::from(clients) * (seen as u64 + 1)
}

/// A shard without a thread: runs the work of the tick and the work of a sender thread one after the other.
pub struct WorkloadShard {
    feed: Feed,
    reader: RingReader,
    worker: SenderWorker,
}

impl WorkloadShard {
    /// A shard with a ring of `ring_bytes` and this sink.
    #[must_use]
    pub fn new(ring_bytes: usize, sink: Box<dyn PacketSink>) -> Self {
        let (writer, reader) = ring(ring_bytes);
        let limits = SpillLimits {
            client_bytes_max: 1 << 20,
            bytes_max: 1 << 26,
        };
        Self {
            feed: Feed::new(writer, limits),
            reader,
            worker: SenderWorker::new(Assembler::default(), sink),
        }
    }

    /// Pushes a batch, as the tick does.
    pub fn push_batch(&mut self, batch: &OutgoingBatch) {
        self.feed.push_batch(batch, |_| true);
    }

    /// Assembles what was pushed, as the thread does. Returns the totals so far.
    pub fn assemble(&mut self) -> PacketTotals {
        while self
            .reader
            .read(0, |frame| self.worker.assemble_frame(frame))
            > 0
        {}
        self.worker.written
    }
}
