//! Links: who sees whom, kept at both ends.
//!
//! | file | holds |
//! |---|---|
//! | `view_links` | the lists of viewers and the watchers of targets |
//! | `link_key` | the two ends of a link, four bytes each |
//! | `list_arena` | many short lists in one allocation |

mod link_key;
mod list_arena;
mod view_links;

pub use link_key::{IDS_MAX, LinkKey};
pub use view_links::{LISTS, UNCAPPED, ViewLinks, WatchedBy};
