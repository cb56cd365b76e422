#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub mod clock;
pub mod hash;
pub mod ids;
pub mod kinds;
pub mod memory;
pub mod motion;
pub mod parallel;
pub mod random;
pub mod spatial;
