//! A scenario as a regression test: what a game does today, held to tomorrow. Needs the crate `throng_scenario`.
//!
//! A scenario is a text: who is there, what happens when, and what must hold. In your own tests it runs like this:
//!
//! ```
//! use throng_scenario::{Loaded, RunOptions, ScenarioRun};
//!
//! let text = r#"Scenario(
//!     name: "gate", seed: 3, duration_s: 6,
//!     scenes: [Scene(name: "keep", map: Generate(Rooms(width_tiles: 128, height_tiles: 128)), view_cap: 30)],
//!     cast: [
//!         Crowd(tag: "guards", kind: "npc", count: 40, behaviour: Wander(radius_m: 15)),
//!         Crowd(tag: "heroes", kind: "player", count: 20, clients: 1, behaviour: Wander(radius_m: 15)),
//!     ],
//!     script: [At(t_s: 2, run: SetTeam(tag: "heroes", count: 5, team: 1))],
//!     expect: [ViewsWithinCap, ViewsStable, MirrorsEqual, PathsExact, NobodyOnBlocked],
//! )"#;
//! let mut run = ScenarioRun::new(Loaded::from_text("gate.ron", text)?, RunOptions::default())?;
//! while run.step()? {}
//! let report = run.finish()?;
//! for judged in &report.expectations {
//!     assert!(!judged.verdict.fails(), "{}: {}", judged.text, judged.found);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! From a shell, `throng run gate.ron` exits with 0 only when every expectation holds, each had something to judge, and every
//! cue of the script could do what it says; `throng check gate.ron` finds what is wrong without running it.
//!
//! * **Exact**: `ViewsStable`, `MirrorsEqual` and `PathsExact` compare with brute force, not with what was seen last time.
//! * **The same**: `HashIs("…")` pins the state after the last tick. The hash does not depend on threads or on the build; it
//!   changes with everything that matters, so pin few of them.
//! * **In numbers**: `Counter(name: "paths.found", at_least: 100)` names any figure of the JSON report, and
//!   `Counter(name: "tags.wolves", at_most: 0)` the objects of a tag; `After(t_s: 30, expect: …)` and `Between(…)` look at a part of the run.
//! * **Something happened**: a `When` whose time never came, or a cue that was about nobody, is listed as an *idle cue*;
//!   `NoIdleCues` in the file, or `--strict`, refuses it.
//! * **Time** is not judged unless asked for, since a busy machine is slow.
//!
//! The types of `throng_scenario` say every field with its default; `throng scenario schema` prints them as JSON
//! Schema for an editor, `throng scenario show town` a sample.
