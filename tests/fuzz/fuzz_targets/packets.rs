//! Packets of any bytes into the reassembler, the reader of messages and a mirror; and messages of any lengths through the writer.
#![no_main]

/// As the library names it.
mod memory {
    #[allow(unused_imports, reason = "as in the library")]
    pub use throng_core::memory::{MemoryUse, each};
}

#[path = "../../../src/wire/mod.rs"]
#[allow(dead_code, unused_imports, reason = "it is part of the library")]
mod wire;

#[path = "../../../src/sync/mirror.rs"]
#[allow(dead_code, reason = "it is part of the library")]
mod mirror;

/// As the library names it.
mod sync {
    pub use crate::mirror::Mirror;
}

#[path = "../../it/packets.rs"]
mod packets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| packets::check(input));
