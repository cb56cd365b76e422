//! Any bytes into the decoder of PROXY headers.
#![no_main]

/// As the library names it.
use throng_net as net;

#[path = "../../it/proxy_headers.rs"]
mod proxy_headers;

libfuzzer_sys::fuzz_target!(|input: &[u8]| proxy_headers::check(input));
