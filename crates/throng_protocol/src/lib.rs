#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

// Derived code names this crate from outside and from inside alike.
extern crate self as throng_protocol;

#[cfg(test)]
#[macro_use]
#[path = "../../../tests/draws.rs"]
mod draws;

pub mod mirror;
pub mod movement;
pub mod predictor;
pub mod server_clock;
pub mod wire;
