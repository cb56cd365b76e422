//! Bytes ↔ messages, in both directions: `throng_protocol::wire`, whose page is the specification for clients in other languages.

pub use throng_protocol::wire::*;
