//! Any bytes as a message of a client.
#![no_main]

use throng_protocol::wire;

#[path = "../../it/inbound.rs"]
mod inbound;

libfuzzer_sys::fuzz_target!(|input: &[u8]| inbound::check(input));
