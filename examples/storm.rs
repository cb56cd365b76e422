//! 5 of 9. Look at `Storm`: a custom cue of a game, used in a scenario's script with parameters.
#![allow(clippy::print_stdout, reason = "the output of the example")]

use bevy_ecs::prelude::*;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;
use throng_scenario::crowd::{members, set_attribute_of};
use throng_scenario::{
    BehaviourAppExt, BehaviourSite, CueParameters, LoadedScenario, ValidationError,
};
use throng_scenario::{RunOptions, ScenarioRun};

/// Bolts of lightning strike random objects with a tag. A script writes `Game(Storm(tag: "people", bolts: 5))`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Storm {
    tag: String,
    bolts: u32,
}

impl CueParameters for Storm {
    const NAME: &'static str = "Storm";

    fn check(&self, site: &BehaviourSite<'_>) -> Result<(), ValidationError> {
        site.check_range("bolts", self.bolts, 1..=100)
    }

    fn run(self, world: &mut World, random: &mut Pcg64Mcg) -> Result<(), String> {
        let all = members(world, &self.tag, None);
        for _ in 0..self.bolts.min(all.len() as u32) {
            let struck = all[random.random_range(0..all.len())];
            set_attribute_of(world, &[struck], "health", |health| health - 400);
        }
        Ok(())
    }
}

const SCENARIO: &str = r#"Scenario(name: "storm", duration_s: 60, scenes: [Scene(name: "heath")], crowds: [
    Crowd(tag: "people", kind: "player", count: 100, behaviour: Wander(radius_m: 50))], script: [
    Every(t_s: 2, from_s: 20, run: Game(Storm(tag: "people", bolts: 5))),
    Every(t_s: 1, run: Despawn(tag: "people", only: [Below(attribute: "health", value: 1)])),
    WhenCount(tag: "people", at_most: 90, run: Gather(tag: "people", at: Point(center_m: (100, 100)))),
    ], expect: [PathsExact])"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = RunOptions::default();
    options.configure.push(Box::new(|app| {
        app.register_cue::<Storm>();
    }));
    let mut run = ScenarioRun::new(LoadedScenario::from_text("storm.ron", SCENARIO)?, options)?;
    while run.step()? {}
    let report = run.finish()?;
    println!("{} of 100 players are left", report.objects.players);
    Ok(())
}
