//! Packets of any bytes into the reassembler and the reader of messages; and messages of any lengths through the writer.
#![no_main]

#[path = "../../../src/wire/mod.rs"]
#[allow(dead_code, unused_imports, reason = "it is part of the library")]
mod wire;

#[path = "../../it/packets.rs"]
mod packets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| packets::check(input));
