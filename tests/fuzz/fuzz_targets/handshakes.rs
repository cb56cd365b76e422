//! Tokens of any bytes, and handshakes whose packets are changed in any way.
#![no_main]

/// As the library has it, of which this is a part.
#[path = "../../../src/net"]
mod net {
    #[allow(dead_code, unused_imports, reason = "it is part of the library")]
    mod handshake;
    #[allow(dead_code, reason = "it is part of the library")]
    mod seal;
    #[allow(dead_code, reason = "it is part of the library")]
    mod token;

    pub use handshake::{ClientHandshake, Gate, GateSettings};
    pub use seal::{KEY_BYTES, SecretKey};
    pub use token::{ConnectToken, TokenClaims};
}

#[path = "../../it/handshakes.rs"]
mod handshakes;

libfuzzer_sys::fuzz_target!(|input: &[u8]| handshakes::check(input));
