//! How the parts work together, one page per topic.

#[doc = include_str!("guide/clients.md")]
pub mod clients {}

#[doc = include_str!("guide/guarantees.md")]
pub mod guarantees {}

#[doc = include_str!("guide/scenes.md")]
pub mod scenes {}

#[doc = include_str!("guide/matches.md")]
pub mod matches {}

#[doc = include_str!("guide/players_elsewhere.md")]
pub mod players_elsewhere {}

#[doc = include_str!("guide/groups.md")]
pub mod groups {}
