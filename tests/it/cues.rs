//! Promise: a script runs its actions on the right objects at the right time, equally in every run: random picks, attribute changes, zones,
//! conditions, ramps, copies of scenes, custom attributes and custom cues.

use bevy_ecs::prelude::*;
use glam::Vec2;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;
use throng::prelude::*;
use throng::world::{SceneIds, Scenes};
use throng_scenario::crowd::{attribute, members, set_attribute_of};
use throng_scenario::{
    BehaviourAppExt, BehaviourSite, CueParameters, EXTERNAL_ACTION_BYTES_MAX, EXTERNAL_ACTIONS_MAX,
    LoadedScenario, RunOptions, ScenarioRun, ValidationError,
};

use crate::harness::{
    RunConfig, TempFolder, assert_expectations, hashes, run_throng, run_to_end, scenario_of, start,
};

/// A scenario with thirty people on an empty field, and a script.
fn field(script: &str) -> String {
    format!(
        r#"Scenario(name: "field", seed: 3, duration_s: 10,
            scenes: [Scene(name: "field", map: Generate(Random(width_tiles: 200, height_tiles: 200, fill: 0)))],
            crowds: [
                Crowd(tag: "people", kind: "npc", count: 30, at: Rect(min_m: (0, 0), max_m: (40, 100))),
                Crowd(tag: "tower", kind: "npc", at: Point(center_m: (90, 50))),
            ],
            script: [{script}])"#
    )
}

fn run(text: &str, ticks: u64) -> ScenarioRun {
    let play = RunConfig {
        ticks,
        threads: 1,
        ..RunConfig::default()
    };
    let mut run = start(scenario_of(text), play);
    while run.step().expect("the run writes no output") {}
    run
}

/// An attribute of all objects with a tag, in spawn order.
fn values(run: &mut ScenarioRun, tag: &str, name: &str) -> Vec<i64> {
    let world = run.server().world();
    let of = |entity| attribute(world, entity, name).expect("every object has the attribute");
    members(world, tag, None).into_iter().map(of).collect()
}

fn positions(run: &mut ScenarioRun, tag: &str) -> Vec<Vec2> {
    let world = run.server().world();
    let at = |entity| {
        world
            .get::<Position>(entity)
            .expect("every object has a position")
            .0
    };
    members(world, tag, None).into_iter().map(at).collect()
}

/// Indices of the people with less than full health.
fn damaged_members(script: &str) -> Vec<usize> {
    let values = values(&mut run(&field(script), 40), "people", "health");
    let hurt = values
        .iter()
        .enumerate()
        .filter(|(_, health)| **health < 1000);
    hurt.map(|(nth, _)| nth).collect()
}

#[test]
fn default_pick_takes_first_objects_and_random_pick_others() {
    let of = |pick: &str| {
        damaged_members(&format!(
            "At(t_s: 1, run: AddAttribute(tag: \"people\", count: 5, {pick} attribute: \"health\", by: -1))"
        ))
    };
    assert_eq!(of(""), [0, 1, 2, 3, 4]);
    let random = of("pick: Random,");
    assert_eq!(random.len(), 5);
    assert_ne!(random, [0, 1, 2, 3, 4]);
    assert_eq!(
        random,
        of("pick: Random,"),
        "equal seeds pick equal objects"
    );
}

#[test]
fn random_picks_use_their_own_random_stream() {
    let strolling = |script: &str| {
        let text = field(script).replace(
            "count: 30,",
            "count: 30, attributes_per_s: 5, behaviour: Wander(radius_m: 20),",
        );
        let mut run = run(&text, 100);
        (
            positions(&mut run, "people"),
            values(&mut run, "people", "mana"),
        )
    };
    let cue = "Every(t_s: 0.1, run: AddAttribute(tag: \"people\", count: 3, pick: Random, attribute: \"power\", by: 1))";
    assert_eq!(
        strolling(""),
        strolling(cue),
        "other random streams are unaffected"
    );
}

#[test]
fn attribute_changes_stay_in_their_range() {
    let change = |action: &str| {
        let script = format!("At(t_s: 1, run: {action})");
        values(&mut run(&field(&script), 40), "tower", "health")[0]
    };
    let add = |by: i64| {
        change(&format!(
            "AddAttribute(tag: \"tower\", attribute: \"health\", by: {by})"
        ))
    };
    let scale = |by: f64| {
        change(&format!(
            "ScaleAttribute(tag: \"tower\", attribute: \"health\", by: {by})"
        ))
    };
    assert_eq!([add(-300), add(-5000), add(1)], [700, 0, 1000]);
    assert_eq!(add(i64::MIN), 0);
    assert_eq!([scale(0.25), scale(-2.0), scale(9.5)], [250, 0, 1000]);
    assert_eq!(scale(0.0005), 1, "halves are rounded away from zero");
}

/// 1,200 clients log in over three ticks, because a tick admits 500.
#[test]
fn cues_at_0_reach_players_who_are_admitted_later() {
    let text = r#"Scenario(name: "rush", duration_s: 1, scenes: [Scene(name: "square", max_objects: 1300)],
        crowds: [Crowd(tag: "people", kind: "player", count: 1200, client_share: 1)],
        script: [At(t_s: 0, run: SetTeam(tag: "people", team: 4))])"#;
    let loaded = LoadedScenario::from_text("rush.ron", text).unwrap();
    let mut run = ScenarioRun::new(loaded, RunOptions::default()).unwrap();
    for _ in 0..10 {
        run.step().unwrap();
    }
    let world = run.server().world_mut();
    let people = members(world, "people", None);
    let teams = people.iter().map(|person| world.get::<TeamId>(*person));
    assert_eq!(teams.filter(|team| *team == Some(&TeamId(4))).count(), 1200);
}

#[test]
fn conditions_select_by_area_distance_and_attribute() {
    let only = |only: &str| {
        damaged_members(&format!(
            "At(t_s: 0, run: SetAttribute(tag: \"people\", count: 10, attribute: \"level\", value: 9)),
             At(t_s: 0, run: Teleport(tag: \"people\", count: 4, to: Point(center_m: (80, 50)))),
             At(t_s: 1, run: AddAttribute(tag: \"people\", only: [{only}], attribute: \"health\", by: -1))"
        ))
    };
    let all: Vec<usize> = (0..30).collect();
    assert_eq!(
        only("Within(Rect(min_m: (60, 0), max_m: (100, 100)))"),
        all[..4]
    );
    assert_eq!(
        only("Within(Ring(center_m: (90, 50), radius_m: 20))"),
        all[..4]
    );
    assert_eq!(only("Within(Share((0.6, 0), (1, 1)))"), all[..4]);
    assert_eq!(
        only("Outside(Ring(center_m: (90, 50), radius_m: 20))"),
        all[4..]
    );
    assert_eq!(only("Near(tag: \"tower\", radius_m: 15)"), all[..4]);
    assert_eq!(only("Near(tag: \"tower\", radius_m: 5)"), [0; 0]);
    assert_eq!(only("AtLeast(attribute: \"level\", value: 9)"), all[..10]);
    assert_eq!(only("Below(attribute: \"level\", value: 9)"), all[10..]);
    let both = "Below(attribute: \"level\", value: 9), Near(tag: \"people\", radius_m: 100)";
    assert_eq!(only(both), all[10..], "all conditions must hold");
    let near_another = damaged_members(
        "At(t_s: 0, run: Teleport(tag: \"people\", count: 1, to: Point(center_m: (80, 50)))),
         At(t_s: 1, run: AddAttribute(tag: \"people\", only: [Near(tag: \"people\", radius_m: 30)], attribute: \"health\", by: -1))",
    );
    assert_eq!(near_another, all[1..], "no object is near itself");
}

#[test]
fn zone_shrinks_from_one_ring_to_the_other() {
    // The tower is 40 m from the centre of the zone, whose radius shrinks from 60 m to 10 m within five seconds.
    let at = |ticks: u64| {
        let script = "Every(t_s: 0.05, from_s: 0.05, run: AddAttribute(tag: \"tower\", attribute: \"health\", by: -1, only: [
            OutsideZone(center_m: (50, 50), radius_m: 60, to_radius_m: 10, from_s: 1, until_s: 6)]))";
        values(&mut run(&field(script), ticks), "tower", "health")[0]
    };
    // After two of five seconds the radius has shrunk by 20 m of 50 m.
    assert_eq!([at(20), at(58)], [1000, 1000]);
    assert_eq!(at(160) - at(161), 1, "the zone keeps its final radius");
    let first_damage_tick = (55..65)
        .find(|&ticks| at(ticks) < 1000)
        .expect("the tower is damaged");
    assert!(
        (60..=62).contains(&first_damage_tick),
        "{first_damage_tick}"
    );
}

/// Three players see each other and a monster; a fourth one is far away.
const SIGHT: &str = r#"Scenario(name: "sight", seed: 3, duration_s: 10,
    scenes: [Scene(name: "field", map: Generate(Random(width_tiles: 800, height_tiles: 200, fill: 0)), cell_m: 20)],
    crowds: [
        Crowd(tag: "near", kind: "player", count: 3, at: Point(center_m: (20, 50))),
        Crowd(tag: "far", kind: "player", at: Point(center_m: (380, 50))),
        Crowd(tag: "monster", kind: "npc", at: Point(center_m: (30, 50))),
    ],
    script: [HIDE
        At(t_s: 3, run: AddAttribute(tag: "near", only: [Seeing("monster")], attribute: "health", by: -1)),
        At(t_s: 3, run: AddAttribute(tag: "far", only: [Seeing("monster")], attribute: "health", by: -1)),
        At(t_s: 3, run: AddAttribute(tag: "monster", only: [InViewOf("near")], attribute: "health", by: -2)),
        At(t_s: 3, run: AddAttribute(tag: "monster", only: [InViewOf("far")], attribute: "health", by: -4)),
    ])"#;

#[test]
fn seen_objects_and_their_viewers_are_distinguished() {
    let all = |text: &str| {
        let mut run = run(text, 80);
        ["near", "far", "monster"].map(|tag| values(&mut run, tag, "health"))
    };
    let seen = all(&SIGHT.replace("HIDE", ""));
    assert_eq!(seen, [vec![999; 3], vec![1000], vec![998]]);
    let hidden = all(&SIGHT.replace("HIDE", "At(t_s: 2, run: Hide(tag: \"monster\")),"));
    assert_eq!(hidden, [vec![1000; 3], vec![1000], vec![1000]]);
    let back = "At(t_s: 2, run: Hide(tag: \"monster\")), At(t_s: 2.5, run: Hide(tag: \"monster\", hidden: false)),";
    assert_eq!(all(&SIGHT.replace("HIDE", back)), seen);
    // With many objects the check reads each viewer's list; with few it tests each pair.
    let many = SIGHT.replace("HIDE", "");
    let many = many.replace("kind: \"npc\",", "kind: \"npc\", count: 40,");
    assert_eq!(all(&many), [vec![999; 3], vec![1000], vec![998; 40]]);
}

#[test]
fn condition_fires_on_its_rising_edge_up_to_its_limit() {
    let rage = |times: &str, ticks: u64| {
        let script = format!(
            "Every(t_s: 1, run: AddAttribute(tag: \"tower\", attribute: \"health\", by: -200)),
             Every(t_s: 3, run: SetAttribute(tag: \"tower\", attribute: \"health\", value: 1000)),
             When(tag: \"tower\", attribute: \"health\", below: 700, {times}
                run: AddAttribute(tag: \"people\", attribute: \"level\", by: 1))"
        );
        values(&mut run(&field(&script), ticks), "people", "level")[0]
    };
    // The tower has 600 health after two seconds, is full again after three, and has 600 after five.
    assert_eq!([rage("", 40), rage("", 41), rage("", 42)], [1, 2, 2]);
    assert_eq!(rage("", 200), 2, "the default limit is once per edge");
    assert_eq!([rage("times: 9,", 80), rage("times: 9,", 120)], [2, 3]);
    let late = [rage("from_s: 2.5,", 50), rage("from_s: 2.5,", 51)];
    assert_eq!(late, [1, 2], "not before from_s");
    assert_eq!(rage("until_s: 1.5, times: 9,", 200), 1);
}

#[test]
fn falling_and_rising_counts_fire_a_cue() {
    let level = |condition: &str| {
        let script = format!(
            "Every(t_s: 0.5, times: 4, run: Despawn(tag: \"people\", count: 5)),
             At(t_s: 4, run: Spawn(tag: \"people\", kind: \"npc\", count: 30)),
             WhenCount(tag: \"people\", {condition}, run: AddAttribute(tag: \"tower\", attribute: \"level\", by: 1))"
        );
        values(&mut run(&field(&script), 160), "tower", "level")[0]
    };
    assert_eq!(
        level("at_most: 10"),
        2,
        "four times five of thirty people are despawned"
    );
    assert_eq!(level("at_most: 9"), 1, "the cue stops after four times");
    assert_eq!(
        level("at_most: 35, times: 9"),
        1,
        "the count never was above the limit"
    );
    assert_eq!(level("at_least: 40"), 2);
    assert_eq!(level("at_least: 41"), 1);
    assert_eq!(
        level("at_least: 30, times: 9"),
        3,
        "at once, and when the count rises again"
    );
}

#[test]
fn ramp_spreads_its_count_over_the_steps() {
    let script = "Ramp(from_s: 1, until_s: 4, every_s: 0.5, run: Spawn(tag: \"new\", kind: \"npc\", count: 100)),
        Ramp(from_s: 2, until_s: 3, run: Despawn(tag: \"people\", count: 9))";
    let count = |ticks: u64| {
        let mut run = run(&field(script), ticks);
        let world = run.server().world();
        ["new", "people"].map(|tag| members(world, tag, None).len())
    };
    assert_eq!(count(20), [0, 30]);
    // The first of seven steps, and one of two.
    assert_eq!(count(21), [14, 30]);
    assert_eq!(count(41), [42, 26]);
    assert_eq!(count(61), [71, 21]);
    assert_eq!([count(81), count(150)], [[100, 21]; 2]);
}

/// Three copies of a match scene, and a hall that opens with a copy.
const COPIES: &str = r#"Scenario(name: "copies", seed: 3, duration_s: 10,
    scenes: [Scene(name: "match", copies: 3, map: Generate(Random(width_tiles: 100, height_tiles: 100, fill: 0.2)))],
    crowds: [Crowd(tag: "fighters", kind: "player", count: 8, client_share: 0.5, behaviour: Wander(radius_m: 10))],
    script: [
        At(t_s: 1, run: OpenScene(name: "hall", copies: 2, map: Generate(Random(width_tiles: 100, height_tiles: 100, fill: 0.2)))),
        At(t_s: 2, run: Spawn(tag: "guests", kind: "npc", scene: "hall", count: 4)),
        At(t_s: 2, run: Block(rect_tiles: (0, 0, 5, 5))),
        At(t_s: 2, run: SetSceneAttribute(scene: "match", attribute: "weather", value: 7)),
        At(t_s: 3, run: CloseScene(scene: "hall")),
    ],
    expect: [ViewsWithinCap, ViewsStable, MirrorsEqual, NoObjectOnBlockedTile])"#;

#[test]
fn crowds_and_cues_apply_to_every_copy_of_a_scene() {
    let mut at_two = run(COPIES, 50);
    let world = at_two.server().world();
    let scenes: Vec<(String, usize)> = world
        .resource::<Scenes>()
        .iter()
        .map(|(_, scene)| {
            let objects = world
                .get::<SceneIds>(scene)
                .expect("the scene has objects")
                .len();
            (
                world
                    .get::<SimScene>(scene)
                    .expect("the entity is a scene")
                    .name()
                    .to_owned(),
                objects as usize,
            )
        })
        .collect();
    let expected = [
        ("match", 8),
        ("match 2", 8),
        ("match 3", 8),
        ("hall", 4),
        ("hall 2", 4),
    ];
    assert_eq!(
        scenes,
        expected.map(|(name, count)| (name.to_owned(), count))
    );
    for (_, scene) in world.resource::<Scenes>().iter().take(3) {
        let map = world
            .get::<throng::map::SceneMap>(scene)
            .expect("the scene has a map");
        assert!(!map.is_free_at(Vec2::ONE));
        assert_eq!(
            world
                .get::<throng_scenario::crowd::Weather>(scene)
                .map(|weather| weather.0),
            Some(7)
        );
    }
    let report = run_to_end(
        scenario_of(COPIES),
        RunConfig {
            ticks: 100,
            threads: 1,
            ..RunConfig::default()
        },
    );
    assert_expectations(&report);
    assert_eq!(report.objects.players, 24);
    assert_eq!(
        report.objects.npcs, 0,
        "closing the hall also closes its copy"
    );
}

/// People with gold, which is only sent to them, and a flag that is sent to all.
const OWN: &str = r#"Scenario(name: "own", seed: 3, duration_s: 10,
    attributes: [
        Attribute(name: "gold", encoding: U16, audience: [Owner], range: (10, 500), start: 100),
        Attribute(name: "fear", encoding: Zigzag, audience: [Viewers, Party], cadence: EveryTick, range: (-5, 5)),
    ],
    scenes: [Scene(name: "field", map: Generate(Random(width_tiles: 100, height_tiles: 100, fill: 0)))],
    crowds: [Crowd(tag: "people", kind: "player", count: 12, party_size: 3, client_share: 1, behaviour: Wander(radius_m: 10))],
    script: [
        Every(t_s: 0.5, run: AddAttribute(tag: "people", count: 4, pick: Random, attribute: "gold", by: 7)),
        Every(t_s: 0.7, run: AddAttribute(tag: "people", count: 4, pick: Random, attribute: "fear", by: -3)),
        At(t_s: 3, run: ScaleAttribute(tag: "people", count: 1, attribute: "gold", by: 100)),
        At(t_s: 4, run: SetAttribute(tag: "people", count: 1, attribute: "fear", value: 5)),
        When(tag: "people", attribute: "gold", at_least: 500, run: Announce(tag: "people", count: 1, scope: Scene, text: "Rich!")),
    ],
    expect: [ViewsStable, MirrorsEqual])"#;

#[test]
fn scenario_attributes_are_in_range_hashed_and_replicated() {
    let mut one = run(OWN, 60);
    assert!(
        values(&mut one, "people", "gold")
            .iter()
            .all(|gold| (100..=500).contains(gold))
    );
    assert!(values(&mut one, "people", "fear").contains(&-5));
    let report = run_to_end(
        scenario_of(OWN),
        RunConfig {
            ticks: 150,
            threads: 1,
            ..RunConfig::default()
        },
    );
    assert_expectations(&report);
    assert!(report.sync.announcements > 0, "a person became rich");
    // The mirror check would detect a missed change.
    let quiet = OWN.replace("by: 7", "by: 0").replace("by: -3", "by: 0");
    let quiet = run_to_end(
        scenario_of(&quiet),
        RunConfig {
            ticks: 150,
            threads: 1,
            ..RunConfig::default()
        },
    );
    assert!(quiet.sync.deltas < report.sync.deltas);
    let hash = |text: &str| run(text, 60).server().state_hash();
    assert_ne!(hash(OWN), hash(&OWN.replace("start: 100", "start: 101")));
}

/// Damages one random object with a tag.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lightning {
    tag: String,
    damage: i64,
}

impl CueParameters for Lightning {
    const NAME: &'static str = "Lightning";

    fn check(&self, site: &BehaviourSite<'_>) -> Result<(), ValidationError> {
        site.check_range("damage", self.damage, 1..=1000)
    }

    fn run(self, world: &mut World, random: &mut Pcg64Mcg) -> Result<(), String> {
        let all = members(world, &self.tag, None);
        if all.is_empty() {
            return Err(format!("no object with the tag `{}`", self.tag));
        }
        let victim = all[random.random_range(0..all.len())];
        set_attribute_of(world, &[victim], "health", |health| health - self.damage);
        Ok(())
    }
}

const STORM: &str = "Every(t_s: 0.5, run: Game(Lightning(tag: \"people\", damage: 10))),
    At(t_s: 2, run: Game(Lightning(tag: \"nobody\", damage: 10)))";

fn options_with_lightning() -> RunConfig {
    RunConfig {
        ticks: 60,
        threads: 1,
        configure: Some(|app, _| {
            app.register_cue::<Lightning>();
        }),
        ..RunConfig::default()
    }
}

#[test]
fn game_cue_runs_and_its_errors_are_reported() {
    let text = field(STORM);
    let mut run = start(scenario_of(&text), options_with_lightning());
    while run.step().expect("the run writes no output") {}
    let health = values(&mut run, "people", "health");
    assert_eq!(health.iter().map(|health| 1000 - health).sum::<i64>(), 50);
    assert!(
        health.iter().filter(|health| **health < 1000).count() > 1,
        "{health:?}"
    );
    let report = run.finish().expect("the run writes no output");
    assert_eq!(report.script_error_count, 1);
    assert!(report.script_errors[0].contains("no object with the tag `nobody`"));
    let again = hashes(scenario_of(&text), options_with_lightning());
    assert_eq!(hashes(scenario_of(&text), options_with_lightning()), again);
}

#[test]
fn invalid_game_cue_is_reported_with_its_location() {
    let mut known = throng_scenario::Behaviours::default();
    let error_of = |known: &throng_scenario::Behaviours, cue: &str| {
        let text = format!(
            "Scenario(name: \"x\",\n scenes: [Scene(name: \"a\")], script: [At(t_s: 1,\n run: {cue})])"
        );
        let error = scenario_of(&text).check(&["health"], known).unwrap_err();
        let mistake = error.source_error().expect("the error has a location");
        format!("{}:{}: {}", mistake.line, mistake.column, mistake.message)
    };
    let cue = "Game(Lightning(tag: \"a\", damage: 5))";
    assert!(
        error_of(&known, cue)
            .starts_with("3:12: unknown cue `Lightning`: this program has no custom cues")
    );
    known.register_cue::<Lightning>();
    assert_eq!(
        error_of(&known, "Game(Lihgtning(tag: \"a\", damage: 5))"),
        "3:12: unknown cue `Lihgtning`, did you mean `Lightning`?"
    );
    assert_eq!(
        error_of(&known, "Game(Lightning(tag: \"a\", damge: 5))"),
        "3:32: unknown field `damge`, did you mean `damage`?"
    );
    assert_eq!(
        error_of(&known, "Game(Lightning(tag: \"a\", damage: 5000))"),
        "3:40: expected script[0].run[0].damage from 1 to 1000, found 5000"
    );
}

#[test]
fn script_with_every_action_is_equal_on_any_thread_count() {
    let play = |threads| RunConfig {
        ticks: 100,
        threads,
        ..RunConfig::default()
    };
    for text in [COPIES, OWN] {
        let one = hashes(scenario_of(text), play(1));
        assert_eq!(one, hashes(scenario_of(text), play(4)));
    }
}

#[test]
fn external_action_is_checked_and_runs_in_the_next_tick() {
    let play = RunConfig {
        ticks: 60,
        threads: 1,
        ..RunConfig::default()
    };
    let mut run = start(scenario_of(&field("")), play);
    let mut plain = start(scenario_of(&field("")), play);
    run.step().unwrap();
    plain.step().unwrap();
    let long = format!(
        "Despawn(tag: \"{}\")",
        "x".repeat(EXTERNAL_ACTION_BYTES_MAX)
    );
    for (wrong, part) in [
        ("", "expected"),
        ("((((((((((((((((", "expected"),
        ("Blok(rect_tiles: (1, 2, 3, 4))", "`Block`"),
        ("Block(rect: (1, 2, 3, 4))", "`rect_tiles`"),
        ("Block(rect_tiles: (1, 2, 3, 0))", "at least one tile"),
        ("Despawn(tag: \"peeple\")", "people"),
        ("OpenScene(name: \"x\")", "not available here"),
        (&long, "bytes"),
    ] {
        let result = run.enqueue_action(wrong).unwrap_err();
        assert!(result.contains(part), "{wrong}: {result}");
    }
    run.step().unwrap();
    plain.step().unwrap();
    let [hash, plain_hash] = [&mut run, &mut plain].map(|run| run.server().state_hash());
    assert_eq!(
        hash, plain_hash,
        "a refused action does not change the state"
    );
    let cues = [
        "Despawn(tag: \"people\", count: 7)",
        "Block(rect_tiles: (150, 150, 4, 5))",
        "Despawn(tag: \"people\", count: 99)",
    ];
    cues.iter().for_each(|cue| run.enqueue_action(cue).unwrap());
    assert_eq!(run.take_action_results(), [], "no result before the tick");
    run.step().unwrap();
    let outcomes = run.take_action_results();
    let result: Vec<_> = outcomes.iter().map(|result| result.text.as_str()).collect();
    assert_eq!(result, cues);
    let faults: Vec<bool> = outcomes
        .iter()
        .map(|result| result.error.is_some())
        .collect();
    assert_eq!((faults, outcomes[0].tick), (vec![false, false, true], 3));
    assert_eq!(positions(&mut run, "people").len(), 0);
    let world = run.server().world();
    let scene = world.resource::<Scenes>().iter().next().unwrap().1;
    let tiles = world.get::<SceneMap>(scene).unwrap().tiles();
    assert!(tiles.is_blocked((153, 154).into()) && !tiles.is_blocked((154, 154).into()));
    // The number of pending actions is limited, and results need not be read.
    for _ in 0..2 {
        for _ in 0..EXTERNAL_ACTIONS_MAX {
            run.enqueue_action("Free(rect_tiles: (150, 150, 4, 5))")
                .unwrap();
        }
        let result = run
            .enqueue_action("Free(rect_tiles: (150, 150, 4, 5))")
            .unwrap_err();
        assert!(
            result.contains("already wait for the next tick"),
            "{result}"
        );
        run.step().unwrap();
    }
    assert_eq!(run.take_action_results().len(), EXTERNAL_ACTIONS_MAX);
    let ran = (3 + 2 * EXTERNAL_ACTIONS_MAX) as u64;
    assert_eq!(run.external_action_count(), ran);
    assert_eq!(run.finish().unwrap().external_actions, ran);
    let report = plain.finish().unwrap();
    let report = serde_json::to_value(&report).unwrap();
    assert_eq!(report.get("external_actions"), None);
}

/// 120 players stand in a yard whose walls close at 0 s: they are inside and cannot leave.
#[test]
fn cues_at_zero_run_after_all_crowds_are_placed() {
    let loaded = scenario_of(
        r#"Scenario(name: "shut", duration_s: 1,
        scenes: [Scene(name: "a", map: Generate(Random(width_tiles: 80, height_tiles: 80, fill: 0)), tile_m: 1)],
        crowds: [Crowd(tag: "inside", kind: "player", count: 120, at: Rect(min_m: (31, 31), max_m: (49, 49)))],
        script: [At(t_s: 0, run: Block(rect_tiles: (29, 29, 22, 1))), At(t_s: 0, run: Block(rect_tiles: (29, 50, 22, 1))),
            At(t_s: 0, run: Block(rect_tiles: (29, 29, 1, 22))), At(t_s: 0, run: Block(rect_tiles: (50, 29, 1, 22))),
            At(t_s: 0, run: SetAttribute(tag: "inside", count: 120, attribute: "level", value: 9))],
        expect: [NoCuesWithoutEffect])"#,
    );
    let mut run = start(
        loaded,
        RunConfig {
            ticks: 3,
            threads: 1,
            ..RunConfig::default()
        },
    );
    while run.step().unwrap() {}
    let world = run.server().world_mut();
    let mut players = world.query_filtered::<&Position, With<PlayerId>>();
    let positions: Vec<Vec2> = players.iter(world).map(|position| position.0).collect();
    assert_eq!(positions.len(), 120);
    let is_inside =
        |at: &Vec2| at.cmpge(Vec2::splat(30.0)).all() && at.cmple(Vec2::splat(50.0)).all();
    assert!(positions.iter().all(is_inside), "{positions:?}");
    let report = run.finish().unwrap();
    assert_eq!(report.script_errors, Vec::<String>::new());
}

/// An area that is walled in from the start is not reachable: its crowd is placed elsewhere, with a warning.
#[test]
fn crowd_outside_its_area_is_a_warning() {
    let folder = TempFolder::new();
    let rows = [
        "#########",
        "#.......#",
        "#.#####.#",
        "#.#...#.#",
        "#.#####.#",
        "#.......#",
        "#########",
    ];
    let map = format!(
        "type octile\nheight 7\nwidth 9\nmap\n{}\n",
        rows.join("\n").replace('#', "@")
    );
    folder.write("cell.map", map);
    let scenario = |at: &str| {
        format!(
            r#"Scenario(name: "cell", duration_s: 1, scenes: [Scene(name: "a", map: File("cell.map"), tile_m: 1)],
            crowds: [Crowd(tag: "prisoners", count: 7, at: {at}), Crowd(tag: "visitors", kind: "player", count: 3, at: {at})])"#
        )
    };
    let file = folder.write("cell.ron", scenario("Rect(min_m: (3, 3), max_m: (6, 4))"));
    let output = run_throng(&["run", &file]);
    assert_eq!(output.code, 0, "{}", output.err);
    let lines: Vec<&str> = output
        .err
        .lines()
        .filter(|line| line.contains("crowd placed outside its area"))
        .collect();
    assert_eq!(lines.len(), 2, "one line per tag: {}", output.err);
    for part in ["prisoners", "outside=7", "placed=7"] {
        assert!(lines[0].contains(part), "{part}: {}", lines[0]);
    }
    assert!(lines[1].contains("visitors"), "{}", lines[1]);
    let file = folder.write("cell.ron", scenario("Rect(min_m: (1, 1), max_m: (8, 2))"));
    let output = run_throng(&["run", &file]);
    assert!(!output.err.contains("outside its area"), "{}", output.err);
}
