//! The guarantees of the crate, tested through its public API: one file per subject.
#![allow(clippy::print_stdout, reason = "figures")]
#![allow(clippy::unwrap_used, reason = "a failed test ends")]

mod gateway;
mod gateway_server;
mod groups;
mod hand_off;
mod links;
mod logins;
mod lost_gateways;
mod many_moves;
mod match_simulation;
mod matches;
mod moving_clients;
mod nats_bus;
mod party_values;
mod patience;
mod play;
mod player_messages;
mod postgres_costs;
mod postgres_groups;
mod postgres_limits;
mod postgres_locks;
mod postgres_matches;
mod postgres_overview;
mod postgres_rows;
mod postgres_scenes;
mod presence;
mod reports;
mod scenes;
mod servers;
mod simulation;
mod web_clients;
mod write_order;
