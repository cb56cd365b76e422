//! Ordered byte streams: messages with a length before each, cut and put together again at any byte.
//!
//! | file | holds |
//! |---|---|
//! | `outgoing` | what was pushed and is not acknowledged, in chunks that are sent and sent again |
//! | `incoming` | what came, in order; what came early; messages of it |
//!
//! Offsets count a stream's bytes, lengths included, from its start, and wrap at 2³². A packet has the lowest 24 bits of one,
//! from which the whole follows: the two ends are never 2²³ bytes apart.

mod incoming;
mod outgoing;

pub(super) use incoming::{IncomingStream, StreamLimits};
pub(super) use outgoing::{DueRules, OutgoingStream, PieceRoom};

/// The most that a stream's sender may be ahead of the last byte that is acknowledged, and its receiver of the last one in order.
pub const WINDOW_BYTES_MAX: usize = 1 << 20;

/// Buffers that are larger than this are given back when they are empty.
const KEPT_BYTES: usize = 4_096;
