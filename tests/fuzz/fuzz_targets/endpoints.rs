//! Two endpoints over any link.
#![no_main]

#[path = "../../../src/memory/account.rs"]
#[allow(dead_code, reason = "it is part of the library")]
mod memory;

#[path = "../../../src/wire/mod.rs"]
#[allow(dead_code, unused_imports, reason = "it is part of the library")]
mod wire;

#[path = "../../../src/net/mod.rs"]
#[allow(dead_code, unused_imports, reason = "it is part of the library")]
mod net;

#[path = "../../it/endpoints.rs"]
mod endpoints;

libfuzzer_sys::fuzz_target!(|input: &[u8]| endpoints::check(input));
