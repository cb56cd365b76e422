//! Sender threads. Each serves a shard of the clients, and is fed through its own ring.
//!
//! Threads decide nothing: what is sent, dropped or closed is decided when updates are pushed. If a thread ends early because a sink
//! panicked, that is logged once; its clients then count as slow consumers and are closed.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use throng_core::memory::MemoryUse;
use throng_protocol::wire::{ClientId, PacketTotals};
use tracing::error;

use super::assemble::Assembler;
use super::batch::OutgoingBatch;
use super::feed::{Feed, FeedCounters, SpillLimits};
use super::frame::{Frame, FrameUpdate};
use super::ring::ring;
use super::ring_wait::{drain_until_abandoned, is_taken};
use super::sink::PacketSink;

/// Time between two checks while waiting for a thread.
const POLL_INTERVAL: Duration = Duration::from_micros(50);

/// Settings of the sender threads.
///
/// ```
/// use throng_net::outbox::{SenderSpec, SpillLimits};
///
/// // Two threads with 4 MiB each.
/// let spill = SpillLimits { client_bytes_max: 1 << 18, bytes_max: 16 << 20 };
/// let spec = SenderSpec { shards: 2, ring_bytes: 4 << 20, spill, mtu_bytes: 1_150 };
/// assert!(spec.spill.client_bytes_max < spec.spill.bytes_max);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderSpec {
    /// Number of threads.
    pub shards: u32,
    /// Bytes of each thread's ring.
    pub ring_bytes: usize,
    /// Limits of what waits for room in a ring.
    pub spill: SpillLimits,
    /// The longest packet, in bytes.
    pub mtu_bytes: usize,
}

/// The sender threads.
pub struct Senders {
    shards: Vec<SenderShard>,
}

struct SenderShard {
    /// Never contended. The ring's writer may be used by any one thread at a time; the mutex makes that `Sync`.
    feed: Mutex<Feed>,
    thread: JoinHandle<Assembler>,
    progress: Arc<SenderProgress>,
    is_dead: bool,
}

/// Progress of a thread.
#[derive(Debug, Default)]
struct SenderProgress {
    taken: AtomicU64,
    packets: AtomicU64,
    bytes: AtomicU64,
    messages: AtomicU64,
    too_long: AtomicU64,
    errors: AtomicU64,
}

/// Counters of all threads and of their feeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Packets passed to the sinks.
    pub written: PacketTotals,
    /// What waited or was dropped before the rings.
    pub feed: FeedCounters,
    /// Errors that the sinks reported.
    pub sink_errors: u64,
}

impl SenderCounters {
    /// Adds the counters of other threads.
    pub fn add(&mut self, other: Self) {
        self.written.add(other.written);
        self.feed.add(other.feed);
        self.sink_errors += other.sink_errors;
    }
}

impl Senders {
    /// Starts threads that take over the sequence numbers of `assembler`, with the sinks that `sink` creates.
    ///
    /// # Errors
    /// If a thread cannot be started; then the sequence numbers stay in `assembler`.
    pub fn start(
        spec: SenderSpec,
        assembler: &mut Assembler,
        mut sink: impl FnMut(usize) -> Box<dyn PacketSink>,
    ) -> io::Result<Self> {
        let mut senders = Self { shards: Vec::new() };
        let count = spec.shards.max(1);
        for nth in 0..count {
            let of_shard = assembler.split_off(spec.mtu_bytes, |client| client.0 % count == nth);
            let kept = of_shard.clone();
            match SenderShard::start(spec, nth, of_shard, sink(nth as usize)) {
                Ok(shard) => senders.shards.push(shard),
                Err(error) => {
                    assembler.absorb(kept);
                    senders.stop(assembler);
                    return Err(error);
                }
            }
        }
        Ok(senders)
    }

    /// Pushes the updates of a tick, and reports each client that is closed as a slow consumer. Never waits.
    pub fn push_batch(&mut self, batch: &OutgoingBatch, mut closed: impl FnMut(ClientId)) {
        let count = self.shards.len() as u32;
        for (shard, nth) in self.shards.iter_mut().zip(0..) {
            let feed = shard.feed.get_mut().unwrap_or_else(PoisonError::into_inner);
            if !batch.is_empty() || feed.waiting_bytes() > 0 {
                feed.push_batch(batch, |client| client.0 % count == nth);
                feed.disconnected.drain(..).for_each(&mut closed);
                shard.wake();
            }
        }
    }

    /// Waits until everything that was accepted has reached the sinks. For shutdown and tests, not for use in a tick.
    pub fn flush(&mut self) {
        self.shards.iter_mut().for_each(SenderShard::flush);
    }

    /// Delivers everything that was accepted, ends the threads, and returns their clients' sequence numbers to `assembler`.
    pub fn stop(self, assembler: &mut Assembler) {
        for mut shard in self.shards {
            shard.flush();
            drop(shard.feed);
            shard.thread.thread().unpark();
            match shard.thread.join() {
                Ok(of_shard) => assembler.absorb(of_shard),
                Err(_) => {
                    error!("sender thread panicked: the packet numbers of its clients are lost")
                }
            }
        }
    }

    /// What was written and lost so far, by the last reports of the threads.
    pub fn counters(&mut self) -> SenderCounters {
        let mut sum = SenderCounters::default();
        for shard in &mut self.shards {
            let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            sum.written.add(PacketTotals {
                packets: read(&shard.progress.packets),
                bytes: read(&shard.progress.bytes),
                messages: read(&shard.progress.messages),
                too_long: read(&shard.progress.too_long),
            });
            sum.sink_errors += read(&shard.progress.errors);
            let feed = shard.feed.get_mut().unwrap_or_else(PoisonError::into_inner);
            sum.feed.add(feed.counters);
        }
        sum
    }
}

impl SenderShard {
    fn start(
        spec: SenderSpec,
        nth: u32,
        assembler: Assembler,
        sink: Box<dyn PacketSink>,
    ) -> io::Result<Self> {
        let (writer, reader) = ring(spec.ring_bytes);
        let progress = Arc::<SenderProgress>::default();
        let of_thread = progress.clone();
        let thread = thread::Builder::new()
            .name(format!("throng-send-{nth}"))
            .spawn(move || {
                let mut worker = SenderWorker::new(assembler, sink);
                drain_until_abandoned(reader, &of_thread.taken, |frame| match frame {
                    Some(frame) => worker.assemble_frame(frame),
                    None => worker.flush_and_report(&of_thread),
                });
                worker.assembler
            })?;
        Ok(Self {
            feed: Mutex::new(Feed::new(writer, spec.spill)),
            thread,
            progress,
            is_dead: false,
        })
    }

    fn wake(&mut self) {
        self.thread.thread().unpark();
        let feed = self.feed.get_mut().unwrap_or_else(PoisonError::into_inner);
        if feed.is_abandoned() && !self.is_dead {
            self.is_dead = true;
            error!("sender thread ended: its clients receive no more packets");
        }
    }

    fn flush(&mut self) {
        loop {
            let feed = self.feed.get_mut().unwrap_or_else(PoisonError::into_inner);
            feed.finish();
            let left = feed.waiting_bytes() > 0 || !is_taken(&self.progress.taken, feed.pushed);
            if !left || feed.is_abandoned() {
                return;
            }
            self.thread.thread().unpark();
            thread::sleep(POLL_INTERVAL);
        }
    }
}

/// The state of a sender thread.
pub(super) struct SenderWorker {
    assembler: Assembler,
    sink: Box<dyn PacketSink>,
    shared: Vec<u8>,
    pub written: PacketTotals,
}

impl SenderWorker {
    pub fn new(assembler: Assembler, sink: Box<dyn PacketSink>) -> Self {
        Self {
            assembler,
            sink,
            shared: Vec::new(),
            written: PacketTotals::default(),
        }
    }

    /// Assembles the packets of a frame.
    pub fn assemble_frame(&mut self, frame: &[u8]) {
        match Frame::read(frame) {
            Some(Frame::Shared(bytes)) => {
                self.shared.clear();
                self.shared.extend_from_slice(bytes);
            }
            Some(Frame::Updates { tick, mut lines }) => {
                while let Some(line) = FrameUpdate::read(&mut lines) {
                    let written = self.assembler.write_messages(
                        tick,
                        line.header,
                        line.reliable(&self.shared),
                        line.unreliable(&self.shared),
                        &mut *self.sink,
                    );
                    self.written.add(written);
                }
            }
            None => debug_assert!(false, "only frames are handed over"),
        }
    }

    /// Flushes the sink and reports the progress.
    fn flush_and_report(&mut self, progress: &SenderProgress) {
        self.sink.flush();
        let tell = |counter: &AtomicU64, value| counter.store(value, Ordering::Relaxed);
        tell(&progress.packets, self.written.packets);
        tell(&progress.bytes, self.written.bytes);
        tell(&progress.messages, self.written.messages);
        tell(&progress.too_long, self.written.too_long);
        tell(&progress.errors, self.sink.errors());
    }
}

impl MemoryUse for Senders {
    fn heap_bytes(&self) -> usize {
        let feeds = self.shards.iter().map(|shard| {
            shard
                .feed
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .heap_bytes()
        });
        feeds.sum::<usize>() + self.shards.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::sink::MemorySink;
    use std::collections::BTreeMap;
    use throng_protocol::wire::Channel;
    use throng_protocol::wire::CloseReason;
    use throng_protocol::wire::Reassembler;

    const SPEC: SenderSpec = SenderSpec {
        shards: 3,
        ring_bytes: 4_096,
        spill: SpillLimits {
            client_bytes_max: 1 << 20,
            bytes_max: 1 << 22,
        },
        mtu_bytes: 500,
    };

    /// A reliable message for each client, with the tick and the client; every seventh is long.
    fn fill(batch: &mut OutgoingBatch, tick: u64, clients: u32) {
        batch.clear();
        batch.tick = tick;
        for client in 1..=clients {
            let part = batch.part(0);
            part.begin_client(ClientId(client), 0, 0);
            let length = if (u64::from(client) + tick).is_multiple_of(7) {
                700
            } else {
                10
            };
            part.write_reliable(|bytes| {
                bytes.push(20);
                bytes.extend((tick as u16).to_le_bytes());
                bytes.resize(bytes.len() + length, client as u8);
            });
            part.end_client();
        }
    }

    /// The ticks of the messages that arrived, per client.
    fn ticks(sink: &MemorySink) -> BTreeMap<u32, Vec<u16>> {
        let mut clients: BTreeMap<u32, (Reassembler, Vec<u16>)> = BTreeMap::new();
        for (client, packet) in sink.take().packets.iter() {
            assert!(packet.len() <= SPEC.mtu_bytes);
            let (reassembler, ticks) = clients.entry(client.0).or_default();
            let mut messages = reassembler.accept(packet).unwrap().messages;
            while let [20, low, high, rest @ ..] = messages {
                ticks.push(u16::from_le_bytes([*low, *high]));
                let length = rest
                    .iter()
                    .take_while(|&&byte| byte == client.0 as u8)
                    .count();
                assert!(matches!(length, 10 | 700));
                messages = &rest[length..];
            }
            assert!(messages.is_empty());
        }
        clients
            .into_iter()
            .map(|(client, (_, ticks))| (client, ticks))
            .collect()
    }

    #[test]
    fn accepted_batches_are_delivered_in_order_before_shutdown() {
        for flushes in [false, true] {
            let kept = MemorySink::default();
            let mut assembler = Assembler::default();
            let make = |_| Box::new(kept.clone()) as Box<dyn PacketSink>;
            let mut senders = Senders::start(SPEC, &mut assembler, make).unwrap();
            let mut batch = OutgoingBatch::default();
            for tick in 0..200 {
                fill(&mut batch, tick, 40);
                senders.push_batch(&batch, |client| panic!("{client:?} is closed"));
            }
            if flushes {
                senders.flush();
                let counters = senders.counters();
                assert_eq!(counters.written.messages, 200 * 40);
                assert_eq!(
                    kept.take().packets.iter().count() as u64,
                    counters.written.packets
                );
            }
            senders.stop(&mut assembler);
            assert_eq!(assembler.clients(), 40);
            if !flushes {
                let ticks = ticks(&kept);
                assert_eq!(ticks.len(), 40);
                assert!(ticks.values().all(|ticks| ticks.iter().copied().eq(0..200)));
            }
        }
    }

    /// A sink that blocks until it is released.
    struct Stuck(Arc<Mutex<()>>);

    impl PacketSink for Stuck {
        fn deliver(&mut self, _client: ClientId, _channel: Channel, _packet: &[u8]) {
            drop(self.0.lock());
        }
    }

    #[test]
    fn stuck_sink_blocks_no_tick_and_affects_only_its_clients() {
        let gate = Arc::new(Mutex::new(()));
        let closed_gate = gate.lock().unwrap();
        let spec = SenderSpec {
            shards: 2,
            spill: SpillLimits {
                client_bytes_max: 2_000,
                bytes_max: 1 << 20,
            },
            ..SPEC
        };
        let kept = MemorySink::default();
        let mut assembler = Assembler::default();
        let make = |shard| match shard {
            0 => Box::new(Stuck(gate.clone())) as Box<dyn PacketSink>,
            _ => Box::new(kept.clone()),
        };
        let mut senders = Senders::start(spec, &mut assembler, make).unwrap();
        let (mut batch, mut closed) = (OutgoingBatch::default(), Vec::new());
        for tick in 0..300 {
            fill(&mut batch, tick, 6);
            senders.push_batch(&batch, |client| closed.push(client.0));
            // The other thread catches up, however slow the machine is.
            senders.shards[1].flush();
        }
        closed.sort_unstable();
        assert_eq!(closed, [2, 4, 6]);
        let counters = senders.counters();
        assert_eq!(counters.feed.disconnected, 3);
        assert!(counters.feed.stalls > 0 && counters.feed.spilled > 0);
        drop(closed_gate);
        senders.stop(&mut assembler);
        let mut kept = ticks(&kept);
        kept.retain(|_, ticks| ticks.iter().copied().eq(0..300));
        assert_eq!(kept.into_keys().collect::<Vec<_>>(), [1, 3, 5]);
    }

    #[test]
    fn a_sink_that_panics_ends_its_thread_and_nothing_else() {
        struct Bad;
        impl PacketSink for Bad {
            fn deliver(&mut self, _client: ClientId, _channel: Channel, _packet: &[u8]) {
                std::panic::resume_unwind(Box::new("a mistake of the sink"));
            }
        }
        let mut assembler = Assembler::default();
        let mut senders = Senders::start(SPEC, &mut assembler, |_| {
            Box::new(Bad) as Box<dyn PacketSink>
        })
        .unwrap();
        let mut batch = OutgoingBatch::default();
        for tick in 0..50 {
            fill(&mut batch, tick, 10);
            senders.push_batch(&batch, |_| ());
        }
        senders.flush();
        senders.stop(&mut assembler);
    }

    #[test]
    fn close_reaches_the_sink_after_the_last_packet() {
        let kept = MemorySink::default();
        let mut assembler = Assembler::default();
        let make = |_| Box::new(kept.clone()) as Box<dyn PacketSink>;
        let mut senders = Senders::start(SPEC, &mut assembler, make).unwrap();
        let mut batch = OutgoingBatch::default();
        let part = batch.part(0);
        part.begin_client(ClientId(5), 0, 0);
        part.write_reliable(|bytes| bytes.extend([20, 1]));
        part.close(CloseReason::Stopping);
        part.end_client();
        senders.push_batch(&batch, |_| ());
        senders.stop(&mut assembler);
        let kept = kept.take();
        assert_eq!(kept.closed, [(ClientId(5), CloseReason::Stopping)]);
        assert_eq!((kept.packets.iter().count(), assembler.clients()), (1, 0));
    }
}
