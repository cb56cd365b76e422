//! The parties that wait in a mode, by age and by skill.
//!
//! | file | holds |
//! |---|---|
//! | `compositions` | which sizes of parties make two groups of K |
//! | `ticket_queue` | the tickets themselves, longest-waiting first, each in a slot |
//! | `skill_index` | the same parties in order of skill |
//! | `pool` | both orders together, kept in step |
//! | `search_backoff` | parties that are not searched for at every heartbeat |

pub mod compositions;
pub mod pool;
pub mod search_backoff;
pub mod skill_index;
pub mod ticket_queue;
