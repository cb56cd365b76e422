#![warn(missing_docs)]
//! x
pub mod sim;
pub mod world;
