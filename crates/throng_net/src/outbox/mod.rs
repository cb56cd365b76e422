//! Packets to clients: a batch of messages per tick, packet assembly, a ring to each sender thread, and the sinks.
//!
//! ```text
//! OutgoingBatch: each message once, ─┬─ in the tick: Assembler ───────────────────────▶ PacketSink ─▶ clients
//! a list of spans per client         └─ a ring per thread ─▶ sender thread: Assembler ─▶ PacketSink ─▶ clients
//! ```
//!
//! Invariants: the packets of a client keep their order within a channel; everything that was accepted is delivered before the threads end;
//! a sink does not block.
//!
//! Cost: 8 bytes per message and client, and per thread one copy of the shared bytes; one copy of each message and client when packets are
//! assembled, and a second one outside the sender threads. No allocation after warm-up, except for waiting packets.

// | file | contents |
// | `batch` | the messages of a tick, each once, and a list of spans per client |
// | `assemble` | packets from these lists |
// | `parallel_assembly`, `deferred_packets` | the packets of a batch by several threads; packets that wait for earlier ones |
// | `sink`, `udp`, `capture` | sinks: count, store, send, write to a file |
// | `frame`, `ring`, `feed` | a batch as bytes; the ring to a thread; what waits when it is full |
// | `ring_wait`, `sender` | how threads wait for each other; the sender threads |
// | `bandwidth` | a simulated client connection with a fixed number of bytes per tick |
// | `reference`, `workload` | reference implementations and input for benches |

mod assemble;
mod bandwidth;
mod batch;
mod capture;
mod deferred_packets;
mod feed;
mod frame;
mod parallel_assembly;
#[cfg(any(test, feature = "bench"))]
pub mod reference;
mod ring;
mod ring_wait;
mod sender;
mod sink;
mod udp;
#[cfg(any(test, feature = "bench"))]
pub mod workload;

/// The synchronization primitives; tests/loom replaces this module.
mod sync {
    pub(super) use std::sync::atomic::{AtomicU64, Ordering};
    pub(super) use std::thread::park;
}

pub use assemble::Assembler;
#[doc(hidden)]
pub use bandwidth::BandwidthLimits;
pub use batch::{BatchPart, ClientUpdate, ClientUpdateHeader, MessageSpan, OutgoingBatch};
pub use capture::{CAPTURE_MAGIC, CaptureRecord, CaptureSink, read_capture};
#[doc(hidden)]
pub use feed::{FeedCounters, SpillLimits};
pub use ring::{FRAMING_BYTES, RingFull, RingReader, RingWriter, ring};
#[doc(hidden)]
pub use sender::{SenderCounters, SenderSpec, Senders};
#[doc(hidden)]
pub use sink::SharedSink;
pub use sink::{CountingSink, DeliveredPackets, MemorySink, PacketBuffer, PacketSink};
pub use udp::{ClientAddresses, UdpSink};
