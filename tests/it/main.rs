//! The promises of the crate, kept through its public API and its program: one file a promise.

#[macro_use]
#[path = "../draws.rs"]
mod draws;

mod audiences;
mod battles;
mod behaviours;
mod bench_command;
mod browsers;
mod circles;
mod conserved;
mod cues;
mod datagram_vectors;
mod determinism;
mod endpoints;
mod fuzzed;
mod golden;
mod hall;
mod handshakes;
mod hostile;
mod inbound;
mod inputs;
mod inspected;
mod instances;
mod interrupted;
mod life_cycle;
mod lines;
mod manual;
mod maps;
mod match_log;
mod memory;
mod movingai;
mod mutated;
mod operators;
mod outputs;
mod overload;
mod packets;
mod pages;
mod path_command;
mod pictures;
mod players_kept;
mod plugins;
mod postgres_store;
mod program;
mod recorded;
mod rig;
mod scenario_files;
mod scenarios;
mod serving;
mod sockets;
mod stopping;
mod tidy;
mod usage;
mod verdicts;
mod views;
mod web_vectors;
mod webtransport;

// What `packets` checks is built from the sources by the fuzzer, where this is the name, too.
use throng::{net, sync, wire};
