//! Links carry the packets of clients between a node and a gateway, and their inputs back: reliably, over a bus that loses messages.
//!
//! ```text
//! push ─▶ kept until acknowledged ─▶ pieces of about 30 kB ═ bus ═▶ in order, each once ─▶ LinkEvent::Message
//!   Err(ClientBehind): close the client        ◀═ acknowledged: n messages ═
//! ```
//!
//! All clients between two peers share one sequence of reliable messages. A receiver accepts them in order only (go-back-N): after a gap, it
//! requests them again, and the sender repeats all messages that are not acknowledged. That suffices, because a NATS server loses messages in
//! bursts when it restarts, and rarely otherwise. Unreliable messages travel in the same pieces and are not repeated.
//!
//! | file | contains |
//! |---|---|
//! | `piece` | the bytes of a piece |
//! | `peer_link` | both directions between two peers |
//! | `link_set` | all links of a peer, and what happens when the other end restarts |
//!
//! Invariants: as long as a link is not lost, reliable messages arrive in order, each once. When a peer restarts, the other one receives `Lost`
//! before the first new message. Cost: O(bytes).

mod link_set;
mod peer_link;
mod piece;

pub use link_set::{LinkEvent, LinkSet};
pub use peer_link::{ClientBehind, LinkSettings, LinkStats};
pub use piece::LinkClient;
