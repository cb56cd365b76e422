//! Waiting parties become two groups of exactly K players.
//!
//! | file | holds |
//! |---|---|
//! | `terms` | what decides whether parties may meet: limits, wishes, roles, rematches |
//! | `balance` | the most even split of a set of parties |
//! | `seek` | a match for one party out of all that wait |
//! | `anchor`, `subsets` | what that party asks of a match; the search of subsets where somebody refuses |
//! | `plan`, `sweep` | how many matches there can be; all parties at once, in one pass up the order of skill |
//! | `tighten`, `trade` | … whose sets are made tighter in skill and more even in power |
//! | `packer` | these in a row |
//! | `exact` | the best matches of few parties, by trying all |
//! | `arrival` | parties as they came, whatever their skill |
//! | `backfill` | parties that join a running match |
//! | `wait_reason` | why a party has no match yet |
//! | `groups` | a mode of groups at work: all of the above on the heartbeat |

mod anchor;
pub mod arrival;
pub mod backfill;
pub mod balance;
pub mod exact;
pub mod groups;
pub mod packer;
pub mod partner_search;
pub mod plan;
mod subsets;
pub mod swap;
pub mod sweep;
pub mod terms;
pub mod tighten;
pub mod wait_reason;
