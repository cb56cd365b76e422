//! Rows of any content in a store.
#![no_main]

use throng_protocol::wire;

#[path = "../../it/store_rows.rs"]
mod store_rows;

libfuzzer_sys::fuzz_target!(|input: &[u8]| store_rows::check(input));
