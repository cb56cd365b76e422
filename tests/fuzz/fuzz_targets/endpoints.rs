//! Two endpoints over any link.
#![no_main]

/// As the library names it.
mod memory {
    #[allow(unused_imports, reason = "as in the library")]
    pub use throng_core::memory::{MemoryUse, each};
}

use throng_protocol::wire;

#[path = "../../../src/net/mod.rs"]
#[allow(dead_code, unused_imports, reason = "it is part of the library")]
mod net;

#[path = "../../it/endpoints.rs"]
mod endpoints;

libfuzzer_sys::fuzz_target!(|input: &[u8]| endpoints::check(input));
