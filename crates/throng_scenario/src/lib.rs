//! Scenarios for the simulation server [`throng`], the synthetic crowds that play them, and a test rig.
//!
//! A scenario is the complete description of a run, in a file:
//!
//! ```text
//! file or built-in ──▶ [`load`] ──▶ [`Scenario`] ──▶ [`validate()`] ─▶ the runner
//!                        │                              │
//! └──── [`ScenarioError`]: file, line, column, what was found, what was expected
//!
//! run: cues ──▶ errors, each with its line ──┐ checks in every tick ─────────────────┴─▶ [`Report`]: figures, and a [`Verdict`]
//! per expectation
//! ```
//! A scenario is a script for crowds, in RON: scenes, crowds, queues, cues at given times, and expectations that are checked
//! at the end. Everything but the name has a default, unknown fields are refused, and field names contain units. It may include
//! other scenarios, and have parameters that get values at the start of a run.
//!
//! A passed run means that everything was checked. An expectation with nothing to judge (no client, no path, no match) is "not
//! exercised", which does not count as passed. A cue that could not do its action is a script error, which fails the run unless the
//! scenario expects [`AllowScriptErrors`](Expectation::AllowScriptErrors). Wall time is checked only on request ([`TimingChecks`]),
//! and never in the first second. An interrupted run judges nothing and reports the interruption. Before a run,
//! [`LoadedScenario::review`] lists all errors, and warns of text without effect.
//!
//! ```
//! use throng_scenario::{LoadedScenario, RunOptions, ScenarioRun};
//!
//! let text = r#"Scenario(name: "walk", duration_s: 5, scenes: [Scene(name: "a")], crowds: [
//!     Crowd(kind: "npc", count: 20, behaviour: Wander(radius_m: 10))], expect: [PathsExact])"#;
//! let mut run = ScenarioRun::new(LoadedScenario::from_text("walk.ron", text)?, RunOptions::default())?;
//! while run.step()? {}
//! let report = run.finish()?;
//! assert!(report.expectations.iter().all(|result| !result.verdict.fails()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `scenario` | scenarios: reading, validation, play, report; all at the root of the crate |
//! | [`crowd`] | synthetic players and NPCs |
//! | [`testing`] | a server without sockets or a wall clock, stepped manually |
//! | `walking_server` | the workload of `throng bench sync` (feature `bench`) |
//!
//! | feature | adds |
//! |---|---|
//! | `bench` | the loads for benchmarks of the tick and its replication, in [`crowd`] and `walking_server` |
//! | `leak-track` | [`NoLeaks`](Expectation::NoLeaks): memory that is allocated and never freed |
//!
//! Invariants: no input text causes a panic, or allocations of more than a small multiple of its size (of [`SCENARIO_BYTES_MAX`] if
//! it includes files or has parameters); a scenario that passed [`validate()`] names only scenes, kinds, tags, modes and attributes
//! that exist, and every number in it is finite and within a limit of [`limits`].
//!
//! Cost: O(text) to read; O(cues × log names + scenes²) to validate.
#![warn(missing_docs)]

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ScenarioReadme;

#[cfg(test)]
#[macro_use]
#[path = "../../../tests/draws.rs"]
mod draws;

pub mod crowd;
mod scenario;
pub mod testing;
#[cfg(feature = "bench")]
pub mod walking_server;

pub use scenario::*;
