//! The waiting parties of a mode, by age and by skill.
//!
//! | file | holds |
//! |---|---|
//! | `compositions` | party sizes that make two groups of K |
//! | `ticket_queue` | the tickets, longest-waiting first, each in a slot |
//! | `skill_index` | the same parties in order of skill |
//! | `pool` | both orders together, kept consistent |
//! | `search_backoff` | parties whose search is skipped for some heartbeats |

pub mod compositions;
pub mod pool;
pub mod search_backoff;
pub mod skill_index;
pub mod ticket_queue;
