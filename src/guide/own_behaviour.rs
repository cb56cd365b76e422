//! Your own behaviour: what an NPC does next, and how a scenario names it. Needs the crate `throng_scenario`.
//!
//! A behaviour says where its bearer goes next; paths, walking and views are the server's. It is a value that is compared and
//! hashed, since the state depends on it. Scenarios name it, with parameters that are checked with their line:
//!
//! ```
//! use rand_pcg::Pcg64Mcg;
//! use serde::Deserialize;
//! use throng_scenario::crowd::{Behave, CrowdArea, Senses};
//! use throng_scenario::{
//!     BehaviourAppExt, BehaviourParameters, BehaviourSite, Loaded, Problem, RunOptions, ScenarioRun,
//! };
//! use throng::world::StateHashed;
//!
//! /// Walks to and fro between home and a place so many metres east of it.
//! #[derive(Debug, PartialEq, StateHashed)]
//! struct Pace(f32);
//!
//! impl Behave for Pace {
//!     const NAME: &'static str = "Pace";
//!
//!     fn next_goal(&self, senses: &Senses<'_>, _: &mut Pcg64Mcg) -> Option<CrowdArea> {
//!         let east = senses.home + glam::Vec2::new(self.0, 0.0);
//!         let is_home = senses.position.distance(senses.home) < 1.0;
//!         Some(CrowdArea::Point(if is_home { east } else { senses.home }))
//!     }
//! }
//!
//! #[derive(Deserialize)]
//! #[serde(deny_unknown_fields)]
//! struct PaceParameters {
//!     metres: f32,
//! }
//!
//! impl BehaviourParameters for PaceParameters {
//!     type Behaviour = Pace;
//!
//!     fn resolve(self, site: &BehaviourSite<'_>) -> Result<Pace, Problem> {
//!         Ok(Pace(site.length_m("metres", self.metres)?))
//!     }
//! }
//!
//! let text = r#"Scenario(name: "walk", duration_s: 5, scenes: [Scene(name: "a")], cast: [
//!     Crowd(kind: "npc", count: 20, behaviour: Pace(metres: 10))], expect: [PathsExact])"#;
//! let mut options = RunOptions::default();
//! options.configure.push(Box::new(|app| {
//!     app.register_behaviour::<PaceParameters>();
//! }));
//! let mut run = ScenarioRun::new(Loaded::from_text("walk.ron", text)?, options)?;
//! while run.step()? {}
//! assert!(run.finish()?.paths.found > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * All randomness comes from the generator that is handed in; a clock or a map's iteration order would break replays.
//! * Cues of the game's own are registered in the same way.
//! * Outside of scenarios a crowd is a `CrowdSpec` given to `add_crowd` (`throng_scenario::crowd`).
