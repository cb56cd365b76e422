//! Rooms of 1v1, 2v2 or 3v3, in which parties gather over time.
//!
//! | file | holds |
//! |---|---|
//! | `settings` | what a mode of rooms asks, in seconds and in ticks |
//! | `gather` | a mode of rooms at work: who sits where, which rooms merge, which are full |

pub mod mode;
pub mod settings;
