//! The guide: one page a task, to be read in this order or where you need it. Every block of code on these pages is compiled
//! and run by the tests.
//!
//! | page | for whoever wants to |
//! |---|---|
//! | [`first_server`] | run a server with a player in it |
//! | `connecting_clients` | let players of other processes in: tokens, logins, messages of the game's own |
//! | [`own_attribute`] | tell clients of a component of the game's own, and have it saved |
//! | [`players_that_persist`] | keep players in a file, and let them deal without a coin lost |
//! | [`own_view_rule`] | say who may be seen: stealth, phases, fog |
//! | [`matchmaking_to_battle`] | turn waiting parties into a battle, and bring its players home |
//! | [`own_behaviour`] | write what NPCs do, and name it in scenarios |
//! | [`regression_test`] | hold a game to what it does today, by a scenario |
//! | [`which_algorithm`] | choose a search for paths |
//! | [`reading_a_report`] | understand what a run prints |
//! | [`deploying`] | run it in real time, on a machine of a known size |
//! | [`coming_from`] | find the words of `bevy_replicon` and `lightyear` here |
//! | [`glossary`] | look a word up |
//!
//! What each system promises and costs is on the page of its module; the list of them is on the [front page](crate).

pub mod coming_from;
pub mod connecting_clients;
pub mod deploying;
pub mod first_server;
pub mod glossary;
pub mod matchmaking_to_battle;
pub mod own_attribute;
pub mod own_behaviour;
pub mod own_view_rule;
pub mod players_that_persist;
pub mod reading_a_report;
pub mod regression_test;
pub mod which_algorithm;
