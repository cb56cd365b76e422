//! Matchmaking.
pub mod compositions;
pub mod mode;
pub mod packing;
pub mod pairing;
pub mod pool;
pub mod queue;
pub mod ticket;
