//! Two endpoints over any link.
#![no_main]

use throng_net as net;

#[path = "../../it/endpoints.rs"]
mod endpoints;

libfuzzer_sys::fuzz_target!(|input: &[u8]| endpoints::check(input));
