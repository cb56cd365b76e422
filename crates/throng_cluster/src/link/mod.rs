//! Packets of clients between a node and a gateway, and their inputs back: reliable over a bus that loses messages.
//!
//! ```text
//! push ─▶ kept until acknowledged ─▶ pieces of about 30 kB ═ bus ═▶ in order, each once ─▶ LinkEvent::Message
//!   Err(ClientBehind): close the client        ◀═ acknowledged up to number n ═
//! ```
//!
//! All clients between two peers share one sequence of reliable messages. A receiver takes them in order only; after a gap it asks for them
//! again, and the sender goes back to the first that is not acknowledged. That is simple, and right here: a NATS server loses messages in
//! bursts, when it restarts, and hardly ever else. Unreliable messages travel in the same pieces and are not repeated.
//!
//! | file | contains |
//! |---|---|
//! | `piece` | the bytes of a piece |
//! | `peer_link` | both directions between two peers |
//! | `link_set` | all links of a peer, and what happens when the other end restarts |
//!
//! Invariants: between two runs of two peers, reliable messages arrive in order, each once, or the link is lost. When one of the two
//! restarts, the other one learns it before the first new message. Cost: O(bytes).

mod link_set;
mod peer_link;
mod piece;

pub use link_set::{LinkEvent, LinkSet};
pub use peer_link::{ClientBehind, LinkSettings, LinkStats};
pub use piece::LinkClient;
