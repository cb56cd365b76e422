//! The promises of the crate, tested through its public API and its program: one file per promise.

#[macro_use]
#[path = "../draws.rs"]
mod draws;

mod admin;
mod at_rest;
mod audiences;
mod behaviours;
mod bench_command;
mod browsers;
mod cluster_command;
mod code_rules;
mod conserved;
mod cues;
mod datagram_vectors;
mod deployment;
mod determinism;
mod endpoints;
mod expectations;
mod fuzz_corpus;
mod golden;
mod handshakes;
mod harness;
mod hostile;
mod import_cycles;
mod inbound;
mod inputs;
mod inspect_actions;
mod inspect_lists;
mod inspect_page;
mod instances;
mod interrupted;
mod life_cycle;
mod manual;
mod maps;
mod match_log;
mod matches;
mod memory;
mod movingai;
mod mutated;
mod network_conditions;
mod outputs;
mod overload;
mod packets;
mod path_command;
mod persistence;
mod pictures;
mod plain_english;
mod plugins;
mod postgres_store;
mod prelude;
mod program;
mod proxy_headers;
mod recording;
mod report_pages;
mod scenario_files;
mod scenarios;
mod serving;
mod shutdown;
mod sockets;
mod store_health;
mod store_rows;
mod ticket_scripts;
mod tls;
mod tokens;
mod usage;
mod views;
mod web_test_server;
mod web_vectors;
mod webtransport;
mod wire_page;

// `packets` is also compiled into the fuzzer, where it uses these names of the crate root.
use throng::{net, sync, wire};
