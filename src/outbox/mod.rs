//! Outbound frames: what a tick has to say, handed to a sink.
//!
//! ```text
//! [Replicate] push(client, frame) ─▶ the tick's frames, side by side in one buffer ─▶ [Send] ─▶ sink ─▶ clients
//! ```
//! Invariant: every frame that was pushed reaches the sink in the same tick, in the order of pushing. Cost: one copy a
//! frame, no allocation after warm-up. A sink does not block: it takes the bytes and returns.

mod frames;
mod plugin;

pub use frames::{CountingSink, Frames, Sink};
pub use plugin::{Outbox, OutboxPlugin, OutboxStats};
