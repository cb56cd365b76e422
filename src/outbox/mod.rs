//! Outbound packets: what a tick has to say to whom, put together and handed to a sink.
//!
//! ```text
//! [Replicate] ─▶ Batch: each message once, ─▶ [Send] ─┬─ inline: Assembler ─────────────────────────▶ Sink ─▶ clients
//!                a line of spans a client             └─ a ring a shard ─▶ thread: Assembler ───────▶ Sink ─▶ clients
//! ```
//! Without shards packets are put together in the tick, by as many threads as work there unless lines are modelled, and reach the
//! sink in the order of the batch's parts: this is the deterministic way, and the default. With them the tick only copies the
//! batch's bytes into a ring for each thread, and never waits: when a ring is full, unreliable messages are dropped and counted, reliable ones wait in a bounded buffer and go first the next time, and a
//! client for which too much waits is closed ([`ClientBehind`]). The threads' pace never reaches game state, but for that.
//! Without threads a client's line can be modelled in bytes a tick ([`Outbox::model_line`]): the same happens then, but in every
//! run alike.
//!
//! | file | what it holds |
//! |---|---|
//! | `batch` | a tick's messages, each once, and a line of spans a client |
//! | `assemble` | packets out of lines |
//! | `shares`, `held_packets` | those of a batch by several threads; what waits for its turn meanwhile |
//! | `sink`, `udp`, `capture` | where packets go: counted, kept, sent, written to a file |
//! | `frame`, `ring`, `feed` | a batch as bytes; the ring to a thread; who waits when it is full |
//! | `handover`, `sender` | how threads wait for each other; the threads |
//! | `line_model` | a client's line, so many bytes a tick |
//! | `plugin` | the outbox in the tick |
//! | `reference`, `workload` | what it is measured beside and with |
//!
//! Invariants: a client's packets keep their order within a channel; everything that was accepted is delivered before the
//! threads end, when the app is dropped, too; a sink does not block. A message that is lost because it is longer than its
//! channel takes is counted.
//!
//! Cost: 8 bytes a message and client, and one copy of the shared bytes a shard, for the tick; one copy of each message and
//! client for who assembles; a second one where it is no sender thread nor the tick's own. No allocation after warm-up, but for what
//! waits and a list of shares. Benches `outbox::…`.

mod assemble;
mod batch;
mod capture;
mod feed;
mod frame;
mod handover;
mod held_packets;
mod line_model;
mod plugin;
#[cfg(any(test, feature = "bench"))]
pub mod reference;
mod ring;
mod sender;
mod shares;
mod sink;
mod udp;
#[cfg(any(test, feature = "bench"))]
pub mod workload;

/// What the threads meet by; tests/loom has another.
mod sync {
    pub(super) use std::sync::atomic::{AtomicU64, Ordering};
    pub(super) use std::thread::park;
}

pub use assemble::Assembler;
pub use batch::{Batch, BatchPart, LineHead, LineView, MessageSpan};
pub use capture::{CAPTURE_MAGIC, CaptureSink, Captured, read_capture};
pub use plugin::{ClientBehind, Outbox, OutboxPlugin, OutboxSettings, OutboxStats};
pub use ring::{FRAMING_BYTES, RingFull, RingReader, RingWriter, ring};
pub use sink::{CountingSink, Frames, Kept, MemorySink, Sink};
pub use udp::{ClientAddresses, UdpSink};
