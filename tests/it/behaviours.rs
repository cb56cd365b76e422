//! Promise: a custom behaviour works like a built-in one. It is written here as an embedder would write it, used in a scenario with
//! parameters, validated with error locations, and part of the deterministic state.

use glam::Vec2;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;
use throng::prelude::*;
use throng::world::{KindId, StateHashed};
use throng_scenario::crowd::{
    Behaviour, BehaviourRule, CrowdArea, Perception, PerceptionTarget, members,
};
use throng_scenario::{
    BehaviourAppExt, BehaviourParameters, BehaviourSite, Behaviours, RunOptions, ScenarioRun,
    ValidationError, parse,
};

use crate::harness::{RunConfig, assert_expectations, hashes, run_to_end, scenario_of, start};

/// Stands at its post, runs at intruders that come near, and walks around when it sees none.
#[derive(Debug, PartialEq, StateHashed)]
struct Guard {
    post: Vec2,
    radius_m: f32,
    intruders: KindId,
}

impl BehaviourRule for Guard {
    const NAME: &'static str = "Guard";

    fn perception_target(&self) -> Option<PerceptionTarget> {
        Some(PerceptionTarget {
            kind: self.intruders,
            sight_m: 2.0 * self.radius_m,
        })
    }

    fn next_goal(&self, senses: &Perception<'_>, random: &mut Pcg64Mcg) -> Option<CrowdArea> {
        let intruder = senses
            .nearest_target
            .filter(|at| at.distance(self.post) <= self.radius_m);
        let beside = Vec2::new(random.random_range(-1.0..=1.0), 0.0);
        Some(CrowdArea::Point(intruder.unwrap_or(self.post + beside)))
    }
}

/// The parameters as written in a scenario.
#[derive(Deserialize)]
#[serde(rename = "Guard", deny_unknown_fields)]
struct GuardParameters {
    post_m: Vec2,
    radius_m: f32,
    #[serde(default = "player")]
    intruders: String,
}

fn player() -> String {
    "player".to_owned()
}

impl BehaviourParameters for GuardParameters {
    type Behaviour = Guard;

    fn resolve(self, site: &BehaviourSite<'_>) -> Result<Guard, ValidationError> {
        site.check_range("radius_m", self.radius_m, 1.0..=50.0)?;
        Ok(Guard {
            post: site.point(&site.place().field("post_m"), self.post_m)?,
            radius_m: self.radius_m,
            intruders: site.kind("intruders", &self.intruders)?,
        })
    }
}

const SCENARIO: &str = r#"Scenario(
    name: "gate", seed: 5, duration_s: 30,
    scenes: [Scene(name: "a", map: Generate(Random(width_tiles: 120, height_tiles: 120, fill: 0.05)))],
    crowds: [
        Crowd(tag: "guards", count: 12, speed_m_s: 4, behaviour: Guard(post_m: (30, 30), radius_m: 12)),
        Crowd(tag: "guests", kind: "player", count: 20, client_share: 1, behaviour: Wander(radius_m: 20)),
    ],
    script: [At(t_s: 20, run: SetBehaviour(tag: "guests", behaviour: Guard(
        intruders: "npc", // fields can be in any order
        radius_m: 5, post_m: (5, 5))))],
    expect: [PathsExact, MirrorsEqual, ViewsWithinCap],
)"#;

fn run_with_threads(threads: usize) -> RunConfig {
    RunConfig {
        threads,
        ticks: 500,
        configure: Some(|app, _| {
            app.register_behaviour::<GuardParameters>();
        }),
        ..RunConfig::default()
    }
}

#[test]
fn custom_behaviour_runs_from_a_scenario() {
    let mut run = start(scenario_of(SCENARIO), run_with_threads(1));
    while run.tick() < 380 {
        run.step().unwrap();
    }
    let world = run.server().world();
    let guards = members(world, "guards", None);
    assert_eq!(guards.len(), 12);
    let near = guards.iter().filter(|&&guard| {
        let at = world.get::<Position>(guard).unwrap().0;
        at.distance(Vec2::splat(30.0)) <= 14.0
    });
    assert!(near.count() >= 10, "most guards are near their post");
    let behaviour = world.get::<Behaviour>(guards[0]).unwrap();
    assert_eq!(behaviour.name(), "Guard");
    let guard: &Guard = behaviour.downcast_ref().unwrap();
    assert_eq!((guard.radius_m, guard.post), (12.0, Vec2::splat(30.0)));
    assert_expectations(&run_to_end(scenario_of(SCENARIO), run_with_threads(1)));
}

#[test]
fn custom_behaviour_is_deterministic_and_hashed() {
    let of = |text: &str, threads| hashes(scenario_of(text), run_with_threads(threads));
    let first = of(SCENARIO, 1);
    assert_eq!(first, of(SCENARIO, 3));
    // After one tick no goal is chosen yet, so only the parameter changes the hash.
    let wider = SCENARIO.replace("radius_m: 12", "radius_m: 12.5");
    assert_ne!(first[0], of(&wider, 1)[0]);
}

/// The error of a scenario: `line:column: message`, and the help.
fn scenario_error(text: &str) -> (String, String) {
    let mut behaviours = Behaviours::default();
    behaviours.register::<GuardParameters>();
    let error = scenario_of(text)
        .check(&[], &behaviours)
        .expect_err("the scenario is invalid");
    let source_error = error.source_error().unwrap();
    let message = format!(
        "{}:{}: {}",
        source_error.line, source_error.column, source_error.message
    );
    (message, source_error.help.clone().unwrap_or_default())
}

#[test]
fn parameter_errors_point_into_the_scenario() {
    for (from, to, expected) in [
        (
            "behaviour: Guard(post",
            "behaviour: Gaurd(post",
            "5:66: unknown behaviour `Gaurd`, did you mean `Guard`?",
        ),
        (
            "radius_m: 12",
            "radius: 12",
            "5:90: unknown field `radius`, did you mean `radius_m`?",
        ),
        (
            "radius_m: 12",
            "radius_m: \"far\"",
            "5:100: expected a number in metres for `radius_m`, found `\"far\"`",
        ),
        (
            "radius_m: 12",
            "radius_m: 51",
            "5:100: expected crowds[0].behaviour.radius_m from 1 to 50 metres, found 51",
        ),
        (
            ", radius_m: 12",
            "",
            "5:66: the field `radius_m` of `Guard` is missing",
        ),
        (
            "intruders: \"npc\"",
            "intruders: \"ncp\"",
            "9:20: unknown kind `ncp`, did you mean `npc`?",
        ),
        (
            "radius_m: 5, post_m",
            "radius_m: 5, speed: 3, post_m",
            "10:22: unknown field `speed`",
        ),
        (
            "Wander(radius_m: 20)",
            "Wander",
            "6:85: the field `radius_m` of `Wander` is missing",
        ),
        (
            "Wander(radius_m: 20)",
            "5",
            "6:85: expected a behaviour, such as `Wander(radius_m: 5)`",
        ),
    ] {
        let text = SCENARIO.replace(from, to);
        assert_ne!(text, SCENARIO, "{from}");
        assert_eq!(scenario_error(&text).0, expected, "{to}");
    }
    let (message, help) =
        scenario_error(&SCENARIO.replace("Wander(radius_m: 20)", "Teleportation"));
    assert_eq!(message, "6:85: unknown behaviour `Teleportation`");
    assert_eq!(
        help,
        "the known names are `Chase`, `Commute`, `Flee`, `Gather`, `Guard`, `Idle`, `Patrol` or `Wander`"
    );
}

#[test]
fn unregistered_behaviour_is_refused() {
    let Err(error) = ScenarioRun::new(scenario_of(SCENARIO), RunOptions::default()) else {
        panic!("the behaviour is not registered");
    };
    let source_error = error.source_error().unwrap();
    assert_eq!((source_error.line, source_error.column), (5, 66));
    assert_eq!(source_error.message, "unknown behaviour `Guard`");
}

#[test]
fn behaviour_text_round_trips() {
    let scenario = parse("gate.ron", SCENARIO).unwrap();
    let written = ron::to_string(&scenario.crowds[0].behaviour).unwrap();
    assert_eq!(written, "Guard(post_m: (30, 30), radius_m: 12)");
}

#[test]
fn patrol_rests_at_each_point() {
    const PATROL: &str = r#"Scenario(
        name: "round", seed: 5, duration_s: 60,
        scenes: [Scene(name: "a", map: Generate(Random(width_tiles: 120, height_tiles: 120, fill: 0)))],
        crowds: [Crowd(tag: "guard", count: 1, speed_m_s: 4, behaviour: Patrol(points: [(10, 10), (20, 10)]))],
    )"#;
    let mut run = start(
        scenario_of(PATROL),
        RunConfig {
            ticks: 1_200,
            ..RunConfig::default()
        },
    );
    // For each stop of the guard, the number of ticks that it stands.
    let (mut before, mut stood, mut stops) = (Vec2::NAN, 0, Vec::new());
    while run.tick() < 1_200 {
        run.step().unwrap();
        let world = run.server().world();
        let guard = members(world, "guard", None)[0];
        let at = world.get::<Position>(guard).unwrap().0;
        if at == before {
            stood += 1;
        } else if stood > 0 {
            stops.push(std::mem::take(&mut stood));
        }
        before = at;
    }
    // The first stop is at its spawn point. It rests for half a second to four seconds.
    assert!(stops.len() > 6, "{stops:?}");
    assert!(
        stops[1..].iter().all(|stood| (9..100).contains(stood)),
        "{stops:?}"
    );
    let sum: u32 = stops[1..].iter().sum();
    assert!(sum as usize > 25 * (stops.len() - 1), "{stops:?}");
}
