//! Tokens of any bytes, and handshakes whose packets are changed in any way.
#![no_main]

use throng_net as net;

#[path = "../../it/handshakes.rs"]
mod handshakes;

libfuzzer_sys::fuzz_target!(|input: &[u8]| handshakes::check(input));
