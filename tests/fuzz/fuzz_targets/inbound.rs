//! Any bytes as a message of a client.
#![no_main]

#[path = "../../../src/memory/account.rs"]
#[allow(dead_code, reason = "it is part of the library")]
mod memory;

#[path = "../../../src/wire/mod.rs"]
#[allow(dead_code, unused_imports, reason = "it is part of the library")]
mod wire;

#[path = "../../it/inbound.rs"]
mod inbound;

libfuzzer_sys::fuzz_target!(|input: &[u8]| inbound::check(input));
