#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

#[cfg(test)]
#[macro_use]
#[path = "../../../tests/draws.rs"]
mod draws;

pub mod mirror;
pub mod movement;
pub mod predictor;
pub mod server_clock;
pub mod wire;
