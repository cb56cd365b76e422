//! Matchmaking with any tickets in any order.
#![no_main]

#[path = "../../it/ticket_scripts.rs"]
mod ticket_scripts;

libfuzzer_sys::fuzz_target!(|input: &[u8]| ticket_scripts::check(input));
