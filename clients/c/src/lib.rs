//! **A game's client of a throng server, for engines that load C libraries**: [`throng_client`] behind twenty functions, which `throng.h`
//! declares; the README shows a game's loop in C.
//!
//! | file | holds |
//! |---|---|
//! | `functions` | what C calls |
//! | `structs` | what it fills in and is given |
//! | `status` | how a call went, and where no panic gets through |
//!
//! What C may get wrong is refused: null pointers, lengths without bytes, numbers that are none, calls after one that panicked. What no
//! callee can see stays the caller's part: that a pointer which is not null points to what the function says, and that a client is
//! used by one thread at a time.
#![expect(
    unsafe_code,
    reason = "C hands over pointers with lengths, and finds functions by names that nobody mangles"
)]
#![warn(missing_docs)]

mod functions;
mod status;
mod structs;

pub use functions::*;
pub use status::ThrongStatus;
pub use structs::{
    ThrongClient, ThrongClientSettings, ThrongClientState, ThrongEvent, ThrongEventKind,
    ThrongObject,
};
