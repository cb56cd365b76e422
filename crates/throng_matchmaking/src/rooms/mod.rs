//! Rooms of 1v1, 2v2 or 3v3, in which parties gather over time.
//!
//! | file | holds |
//! |---|---|
//! | `settings` | the settings of a mode of rooms, in seconds and in ticks |
//! | `mode` | a running mode of rooms: which party is in which room, which rooms merge, which are full |

pub mod mode;
pub mod settings;
