//! 4 of 9. Look at `Guard`: a custom behaviour of a game, used in a scenario with parameters, like a built-in one.
#![allow(clippy::print_stdout, reason = "the output of the example")]

use rand_pcg::Pcg64Mcg;
use serde::Deserialize;
use throng::world::StateHashed;
use throng_scenario::crowd::{BehaviourRule, CrowdArea, Perception, PerceptionTarget};
use throng_scenario::{
    BehaviourAppExt, BehaviourParameters, BehaviourSite, LoadedScenario, ValidationError,
};
use throng_scenario::{RunOptions, ScenarioRun};

/// Runs at intruders in sight of its post, and returns when they are gone.
#[derive(Debug, PartialEq, StateHashed)]
struct Guard(PerceptionTarget);

impl BehaviourRule for Guard {
    const NAME: &'static str = "Guard";

    fn perception_target(&self) -> Option<PerceptionTarget> {
        Some(self.0)
    }

    fn next_goal(&self, senses: &Perception<'_>, _: &mut Pcg64Mcg) -> Option<CrowdArea> {
        let near = |at: &glam::Vec2| at.distance(senses.home) <= self.0.sight_m;
        let goal = senses.nearest_target.filter(near).unwrap_or(senses.home);
        Some(CrowdArea::Point(goal))
    }
}

/// The scenario syntax: `Guard(against: "player", sight_m: 20)`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GuardParameters {
    against: String,
    sight_m: f32,
}

impl BehaviourParameters for GuardParameters {
    type Behaviour = Guard;

    fn resolve(self, site: &BehaviourSite<'_>) -> Result<Guard, ValidationError> {
        let kind = site.kind("against", &self.against)?;
        let sight_m = site.length_m("sight_m", self.sight_m)?;
        Ok(Guard(PerceptionTarget { kind, sight_m }))
    }
}

const SCENARIO: &str = r#"Scenario(name: "gate", duration_s: 60, scenes: [Scene(name: "gate")], crowds: [
    Crowd(kind: "npc", count: 10, speed_m_s: 4, behaviour: Guard(against: "player", sight_m: 20)),
    Crowd(kind: "player", count: 200, behaviour: Wander(radius_m: 50))], expect: [PathsExact])"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let loaded = LoadedScenario::from_text("gate.ron", SCENARIO)?;
    let mut options = RunOptions::default();
    options.configure.push(Box::new(|app| {
        app.register_behaviour::<GuardParameters>();
    }));
    let mut run = ScenarioRun::new(loaded, options)?;
    while run.step()? {}
    let report = run.finish()?;
    println!("{}: {} paths", report.scenario, report.paths.found);
    Ok(())
}
