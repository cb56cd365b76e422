#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

#[cfg(test)]
#[macro_use]
#[path = "../../../tests/draws.rs"]
mod draws;

pub mod mirror;
pub mod server_clock;
pub mod wire;
