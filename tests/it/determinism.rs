//! Promise: the same scenario, seed and inputs give the same state hash after every tick, on any number of threads and for any order that
//! the scheduler may choose; another seed gives other hashes.

use bevy_app::{FixedPostUpdate, FixedPreUpdate, FixedUpdate};
use bevy_ecs::schedule::LogLevel;
use throng::aoi::ViewLinkMode;
use throng::sim::Heartbeat;
use throng_scenario::{self as scenario, BUILT_IN, LoadedScenario};

use crate::golden::{GOLDEN, assert_golden};
use crate::harness::{RunConfig, assert_expectations, hashes, run_to_end, scenario_of, shuffle};

/// The number of compared ticks of each built-in scenario: enough for its first cues.
fn ticks_of(name: &str) -> u64 {
    match name {
        "town" | "boss" => 60,
        "siege" => 140,
        "churn" => 220,
        // The ramp has begun, and trades and bids are made.
        "auction" => 110,
        // The zone has begun to close.
        "royale" => 205,
        _ => 300,
    }
}

/// Parameters that make a large built-in scenario smaller.
fn made_smaller(name: &str) -> &[(&str, &str)] {
    match name {
        "auction" => &[("traders", "500"), ("visitors", "200")],
        "royale" => &[("matches", "8")],
        _ => &[],
    }
}

fn built_in(name: &str) -> LoadedScenario {
    let set: Vec<(String, String)> = made_smaller(name)
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    scenario::load_with(name, &set).unwrap()
}

/// Runs a built-in scenario, and fails at the first tick whose hash differs from the reference.
fn assert_same(name: &str, what: &str, reference: &[u64], play: RunConfig) {
    let found = hashes(
        built_in(name),
        RunConfig {
            ticks: reference.len() as u64,
            ..play
        },
    );
    let differs = (0..reference.len()).find(|&tick| found.get(tick) != reference.get(tick));
    assert_eq!(
        differs.map(|tick| tick + 1),
        None,
        "{name} {what}: the first tick that differs"
    );
}

fn assert_deterministic(name: &str) {
    let ticks = ticks_of(name);
    let reference = hashes(
        built_in(name),
        RunConfig {
            ticks,
            threads: 1,
            ..RunConfig::default()
        },
    );
    assert_eq!(reference.len() as u64, ticks);
    if made_smaller(name).is_empty() {
        assert_golden(name, &reference);
    }
    // Four threads without a shuffle are compared by `.ci/run scenarios`.
    let shuffled = RunConfig {
        threads: 4,
        configure: Some(shuffle),
        argument: 3,
        ..RunConfig::default()
    };
    assert_same(name, "shuffled, with four threads", &reference, shuffled);
}

#[test]
fn town_run_is_deterministic_and_golden() {
    assert_deterministic("town");
}

#[test]
fn siege_run_is_deterministic_and_golden() {
    assert_deterministic("siege");
}

#[test]
fn boss_run_is_deterministic_and_golden() {
    assert_deterministic("boss");
}

#[test]
fn arena_run_is_deterministic_and_golden() {
    assert_deterministic("arena_night");
}

#[test]
fn churn_run_is_deterministic_and_golden() {
    assert_deterministic("churn");
}

#[test]
fn auction_run_is_deterministic() {
    assert_deterministic("auction");
}

#[test]
fn royale_run_is_deterministic() {
    assert_deterministic("royale");
}

#[test]
fn raid_run_is_deterministic_and_golden() {
    assert_deterministic("raid");
}

#[test]
fn overload_run_is_deterministic_and_golden() {
    assert_deterministic("overload");
}

/// Those that are compared above in a smaller form.
#[test]
fn large_scenarios_are_golden() {
    for (name, ticks, _) in GOLDEN {
        if made_smaller(name).is_empty() {
            continue;
        }
        let play = RunConfig {
            ticks,
            threads: 2,
            ..RunConfig::default()
        };
        assert_golden(name, &hashes(scenario::load(name).unwrap(), play));
    }
}

#[test]
fn every_built_in_scenario_is_compared() {
    assert_eq!(
        BUILT_IN.map(|built_in| built_in.name),
        [
            "town",
            "siege",
            "boss",
            "arena_night",
            "churn",
            "auction",
            "royale",
            "raid",
            "overload"
        ]
    );
}

#[test]
fn another_seed_gives_another_run() {
    for built_in in BUILT_IN {
        let play = |seed| {
            let play = RunConfig {
                ticks: 3,
                threads: 1,
                seed: Some(seed),
                ..RunConfig::default()
            };
            hashes(self::built_in(built_in.name), play)
        };
        let (one, other) = (play(71), play(72));
        assert!(
            one.iter().zip(&other).all(|(one, other)| one != other),
            "{}",
            built_in.name
        );
    }
}

#[test]
fn empty_tick_changes_the_hash() {
    let loaded = scenario::load("arena_night").unwrap();
    let mut found = hashes(
        loaded,
        RunConfig {
            ticks: 40,
            threads: 1,
            ..RunConfig::default()
        },
    );
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 40);
}

#[test]
fn shuffle_and_strict_order_reach_every_tick_schedule() {
    let loaded = scenario::load("arena_night").unwrap();
    let play = RunConfig {
        ticks: 1,
        threads: 1,
        configure: Some(|app, _| {
            shuffle(app, 7);
            let settings = [
                app.get_schedule(FixedPreUpdate),
                app.get_schedule(FixedUpdate),
                app.get_schedule(Heartbeat),
                app.get_schedule(FixedPostUpdate),
            ]
            .map(|schedule| {
                schedule
                    .expect("a schedule of the tick")
                    .get_build_settings()
            });
            assert!(
                settings
                    .iter()
                    .all(|settings| settings.shuffle_seed == Some(7))
            );
            assert!(
                settings
                    .iter()
                    .all(|settings| settings.ambiguity_detection == LogLevel::Error)
            );
        }),
        ..RunConfig::default()
    };
    assert_eq!(hashes(loaded, play).len(), 1);
}

/// With mutual sight a link needs a free place in both lists; the result must not depend on the threads that process the scenes.
#[test]
fn mutual_views_are_equal_on_any_number_of_threads() {
    let run = |sight, threads| {
        let mut loaded = scenario::load("churn").unwrap();
        loaded
            .scenario
            .scenes
            .iter_mut()
            .for_each(|scene| scene.view_link_mode = sight);
        let play = RunConfig {
            ticks: 120,
            threads,
            ..RunConfig::default()
        };
        hashes(loaded, play)
    };
    let mutual = run(ViewLinkMode::Mutual, 1);
    assert_eq!(mutual, run(ViewLinkMode::Mutual, 3));
    assert_ne!(mutual, run(ViewLinkMode::Directed, 3));
}

#[test]
fn next_run_of_a_cue_is_in_the_state_hash() {
    // The first two ticks are equal; only pending cues differ.
    let text = |t_s: &str| {
        format!(
            "Scenario(name: \"x\", scenes: [Scene(name: \"a\", map: Generate(Random(width_tiles: 20, height_tiles: 20)))], \
             script: [Every(t_s: {t_s}, from_s: 0.05, run: Free(rect_tiles: (0, 0, 1, 1)))])"
        )
    };
    let play = RunConfig {
        threads: 1,
        ticks: 3,
        ..RunConfig::default()
    };
    let [often, seldom] = ["0.5", "0.6"].map(|t_s| hashes(scenario_of(&text(t_s)), play));
    assert_eq!(often[0], seldom[0]);
    assert_ne!(often[1], seldom[1]);
}

/// Houses that clients keep while they commute, more than the limit; some are hidden, destroyed and built.
const HOUSES: &str = r#"Scenario(name: "houses", seed: 5, duration_s: 30,
    scenes: [Scene(name: "town", map: Generate(Random(width_tiles: 600, height_tiles: 100, fill: 0.05)), cell_m: 15, thing_cap: 12)],
    crowds: [
        Crowd(tag: "people", kind: "player", count: 60, client_share: 0.5, churn_per_s: 0.5, speed_m_s: 12,
            behaviour: Commute(between: (Share((0, 0), (0.1, 1)), Share((0.9, 0), (1, 1))))),
        Crowd(tag: "houses", kind: "door", count: 120, keep: true, attributes_per_s: 1),
        Crowd(tag: "doors", kind: "door", count: 30, attributes_per_s: 1),
    ],
    script: [
        Every(t_s: 3, from_s: 2, run: Despawn(tag: "houses", count: 4)),
        Every(t_s: 3, from_s: 3, run: Spawn(tag: "houses", kind: "door", count: 4, keep: true)),
        Every(t_s: 4, from_s: 4, run: Hide(tag: "houses", count: 3)),
        Every(t_s: 4, from_s: 6, run: Hide(tag: "houses", hidden: false)),
        Every(t_s: 5, from_s: 5, run: Teleport(tag: "people", count: 10, to: Share((0, 0), (1, 1)))),
    ],
    settings: (sync: (kept_objects_max: 15)),
    expect: [ViewsWithinCap, ViewsStable, MirrorsEqual, Counter(name: "sync.kept", at_least: 200), Counter(name: "sync.kept_evicted", at_least: 20)])"#;

#[test]
fn kept_objects_are_the_same_on_any_number_of_threads() {
    let of = |threads| RunConfig {
        threads,
        ticks: 600,
        ..RunConfig::default()
    };
    let run = |threads| hashes(scenario_of(HOUSES), of(threads));
    assert_eq!(run(1), run(4));
    assert_expectations(&run_to_end(scenario_of(HOUSES), of(2)));
}
