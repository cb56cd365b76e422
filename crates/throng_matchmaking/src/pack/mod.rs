//! Waiting parties become two groups of exactly K players.
//!
//! | file | holds |
//! |---|---|
//! | `terms` | whether parties may meet: limits, preferences, roles, rematches |
//! | `balance` | the most even split of a set of parties |
//! | `partner_search` | a match for one party out of all waiting parties |
//! | `anchor`, `subsets` | what that party requires of a match; the search of subsets when a set is refused |
//! | `plan`, `sweep` | the maximum number of matches; all parties at once, in one pass in the order of skill |
//! | `tighten`, `swap` | make these sets tighter in skill and more even in power |
//! | `packer` | runs these steps |
//! | `exact` | the best matches of few parties, by trying all |
//! | `arrival` | parties in the order of arrival, whatever their skill |
//! | `backfill` | parties that join a running match |
//! | `wait_reason` | why a party has no match yet |
//! | `groups` | a running mode of groups: all of the above in the heartbeat |

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
