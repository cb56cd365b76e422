//! **A client library for engines that load C libraries**: [`throng_client`] behind 21 functions, declared in `throng.h`. The README
//! shows a game loop in C.
//!
//! | file | contents |
//! |---|---|
//! | `functions` | the functions |
//! | `structs` | the structs |
//! | `status` | status codes, and the barrier for panics |
//!
//! The library refuses invalid arguments: null pointers, lengths without data, invalid numbers, and calls with a client whose last
//! call has panicked. The caller has to ensure what no callee can check: a pointer that is not null points to what the function
//! documents, and only one thread at a time uses a client.
#![expect(
    unsafe_code,
    reason = "C passes pointers with lengths, and needs function names that are not mangled"
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
