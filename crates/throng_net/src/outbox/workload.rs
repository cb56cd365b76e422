//! Input for benches and tests: a crowd's tick as a batch, and a shard that is taken from in the same thread.

use throng_protocol::wire::{ClientId, PacketTotals};

use super::assemble::Assembler;
use super::batch::{MessageSpan, OutgoingBatch};
use super::feed::{Feed, SpillLimits};
use super::ring::{RingReader, ring};
use super::sender::SenderWorker;
use super::sink::PacketSink;

/// Fills a batch with a tick's news: `objects` shared messages of 12 to 19 bytes; each client gets `seen` of them, most on the
/// unreliable channel, and a message of its own. Gives the number of messages for all clients together.
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
        // Who is near in the world is mostly near in the list.
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

/// A shard without a thread: what the tick does to hand over, and what a sender thread does, one after the other.
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

    /// Hands a batch over, as the tick does.
    pub fn push_batch(&mut self, batch: &OutgoingBatch) {
        self.feed.push_batch(batch, |_| true);
    }

    /// Takes what was handed over, as the thread does, and says what was made so far.
    pub fn assemble(&mut self) -> PacketTotals {
        while self
            .reader
            .read(0, |frame| self.worker.assemble_frame(frame))
            > 0
        {}
        self.worker.written
    }
}
