//! Packets of any bytes into the reassembler, the reader of messages and a mirror; and messages of any lengths through the writer.
#![no_main]

use throng_protocol::wire;

/// As the library names it.
mod sync {
    pub use throng_protocol::mirror::Mirror;
}

#[path = "../../it/packets.rs"]
mod packets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| packets::check(input));
