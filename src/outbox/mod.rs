//! Packets to clients: the outbox resource, emptied in `Send`, on the packet assembly of [`throng_net::outbox`].
//!
//! ```text
//! [Replicate] ─▶ OutgoingBatch: each message once,  ─▶ [Send] ─┬─ in the tick: Assembler ─────────────────────▶ PacketSink ─▶ clients
//!                a list of spans per client            └─ ring per thread ─▶ sender thread: Assembler ─▶ PacketSink ─▶ clients
//! ```
//! Without sender threads (the default) packets are assembled in the tick by all of its threads, and reach the sink in the order of the
//! batch: this is deterministic. With sender threads the tick only copies the bytes of the batch into one ring per thread and never waits.
//! When a ring is full, unreliable messages are dropped and counted, and reliable ones wait in a bounded buffer and go first in the next
//! tick. A client for which too much waits is closed ([`SlowConsumerDetected`]); apart from that the speed of the threads never reaches game state.
//! [`Outbox::limit_bandwidth`] simulates a client's connection with a fixed number of bytes per tick: the same happens then, in every run alike.
//!
//! Invariants: the packets of a client keep their order within a channel; everything that was accepted is delivered before the
//! threads end, also when the app is dropped; a sink does not block. A message that is lost because it is longer than its
//! channel takes is counted.
//!
//! Cost: 8 bytes per message and client, and per thread one copy of the shared bytes. Benches `outbox::…`.

mod plugin;

pub use plugin::{Outbox, OutboxPlugin, OutboxSettings, OutboxStats, SlowConsumerDetected};
pub use throng_net::outbox::{
    Assembler, BatchPart, CAPTURE_MAGIC, CaptureRecord, CaptureSink, ClientAddresses, ClientUpdate,
    ClientUpdateHeader, CountingSink, DeliveredPackets, FRAMING_BYTES, MemorySink, MessageSpan,
    OutgoingBatch, PacketBuffer, PacketSink, RingFull, RingReader, RingWriter, UdpSink,
    read_capture, ring,
};
