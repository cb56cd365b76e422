//! Promise: players who queue with their parties are moved to their match and back again, and no player is lost.

use throng::instance::Instances;
use throng::matchmaking::{Matchmaker, ModeId, ModeStats};
use throng::session::{SessionStats, Sessions};
use throng::world::{Object, Players, SimScene};
use throng_scenario::{self as scenario, ScenarioMatchStats, ScenarioMatches, ScenarioRun};

use crate::harness::{RunConfig, hashes, scenario_of, start};

/// A lobby with single players, couples and parties of three; the modes are two against two and three against three.
const LOBBY: &str = r#"Scenario(name: "lobby", seed: 3, tick_hz: 20,
    scenes: [Scene(name: "lobby", map: Generate(Rooms(width_tiles: 100, height_tiles: 100)))],
    crowds: [
        Crowd(tag: "guests", kind: "player", count: 24, client_share: 0.5, team: 7, behaviour: Wander(radius_m: 9)),
        Crowd(tag: "guests", kind: "player", count: 24, party_size: 3, behaviour: Wander(radius_m: 9)),
    ],
    queues: [Queue(mode: "arena", settings: Groups(group_size: 3, rematch_cooldown_s: 1), crowd_tag: "guests", FIELDS match_duration_s: 4,
        match_scene: Scene(name: "arena", map: Generate(Rooms(width_tiles: 60, height_tiles: 60))))],
    script: [SCRIPT],
    expect: [TicketsConserved, MirrorsEqual, ViewsWithinCap, NoObjectOnBlockedTile],
)"#;

/// The text of the lobby scenario, with a script and further fields of its queue.
fn text(script: &str, fields: &str) -> String {
    LOBBY.replace("SCRIPT", script).replace("FIELDS", fields)
}

fn lobby(script: &str, fields: &str) -> ScenarioRun {
    let text = text(script, fields);
    let play = RunConfig {
        ticks: 600,
        threads: 2,
        ..RunConfig::default()
    };
    start(scenario_of(&text), play)
}

fn match_stats(run: &mut ScenarioRun) -> (ScenarioMatchStats, u64) {
    let world = run.server().world();
    let fighting = world.resource::<Instances>().inside_count();
    (world.resource::<ScenarioMatches>().stats(), fighting)
}

fn stats(run: &mut ScenarioRun) -> ModeStats {
    let matchmaker = run.server().world().resource::<Matchmaker>();
    matchmaker.stats(ModeId(0)).expect("the mode").clone()
}

/// The number of players in scenes with this name.
fn players_in(run: &mut ScenarioRun, name: &str) -> usize {
    let world = run.server().world();
    let players = world.resource::<Players>().iter();
    let is_in = |entity| {
        let object = world.get::<Object>(entity).expect("an object");
        let scene = world.get::<SimScene>(object.scene_entity());
        scene.expect("a scene").name() == name
    };
    players.filter(|&(_, entity)| is_in(entity)).count()
}

fn steps(run: &mut ScenarioRun, ticks: u64) {
    for _ in 0..ticks {
        assert!(run.step().expect("the run writes no output"));
    }
}

#[test]
fn players_enter_their_match_return_and_queue_again() {
    let mut run = lobby("", "requeue_delay_s: 1,");
    let (mut max_players, mut min_players) = (0, usize::MAX);
    for tick in 0..590 {
        steps(&mut run, 1);
        let (stats, fighting) = match_stats(&mut run);
        assert_eq!(stats.moved, stats.returned + stats.missing + fighting);
        let away = players_in(&mut run, "arena");
        assert_eq!(away as u64, fighting);
        if tick > 40 {
            assert_eq!(players_in(&mut run, "lobby") + away, 48);
            (max_players, min_players) = (max_players.max(away), min_players.min(away));
        }
    }
    assert!(
        max_players >= 24 && min_players < 24,
        "{max_players} and {min_players} in matches"
    );
    let (found, _) = match_stats(&mut run);
    // A match and the pause after it take five of the thirty seconds, so every player fights several times.
    assert!(found.moved > 96 && found.missing == 0, "{found:?}");
    assert_eq!(found.moved, 6 * found.opened);
    let stats = stats(&mut run);
    assert_eq!(stats.matches, found.opened);
    let report = run.finish().expect("the run writes no output");
    crate::harness::assert_expectations(&report);
}

#[test]
fn returned_players_have_their_old_team_and_behaviour() {
    // Fewer players than a match needs remain in the lobby, and no party queues again after the first match.
    let mut run = lobby("", "requeue_delay_s: 1000,");
    steps(&mut run, 300);
    let (found, fighting) = match_stats(&mut run);
    assert!(found.returned > 0 && fighting == 0, "{found:?}");
    let world = run.server().world();
    let mut teams = [0; 2];
    for (player, entity) in world.resource::<Players>().iter() {
        let team = world.get::<throng::world::TeamId>(entity);
        let is_of_first = player.0 < (1 << 32) + 24;
        assert_eq!(team.map(|team| team.0), is_of_first.then_some(7));
        teams[usize::from(is_of_first)] += 1;
        let wanders = throng_scenario::crowd::Behaviour::from(throng_scenario::crowd::Wander {
            radius_m: 9.0,
        });
        assert_eq!(world.get(entity), Some(&wanders));
    }
    assert_eq!(teams, [24, 24]);
}

#[test]
fn logout_voids_the_ticket_of_the_party() {
    // No match is found: groups of twenty need more players than there are.
    let script = r#"At(t_s: 5, run: Logout(tag: "guests", count: 4)), At(t_s: 10, run: Login(tag: "guests"))"#;
    let text = text(script, "requeue_delay_s: 1,")
        .replace("group_size: 3", "group_size: 20")
        .replace("count: 24", "count: 3");
    let play = RunConfig {
        ticks: 600,
        threads: 1,
        ..RunConfig::default()
    };
    let mut run = start(scenario_of(&text), play);
    steps(&mut run, 95);
    assert_eq!(stats(&mut run).queued, 4);
    steps(&mut run, 100);
    // `count` applies to each crowd: all single players, and all of the party of three.
    assert_eq!(stats(&mut run).cancelled, 4);
    assert_eq!(
        run.server()
            .world()
            .resource::<Matchmaker>()
            .waiting_parties(),
        0
    );
    steps(&mut run, 100);
    assert_eq!(stats(&mut run).queued, 8);
    assert!(
        run.server()
            .world()
            .resource::<Matchmaker>()
            .tickets_conserved()
    );
}

#[test]
fn logged_out_fighter_is_replaced_and_no_player_is_lost() {
    // Many more parties wait than play, so that some can join a match.
    let mut run = lobby(
        r#"Every(t_s: 2, from_s: 4, run: Logout(tag: "guests", count: 6)), Every(t_s: 2, from_s: 5, run: Login(tag: "guests"))"#,
        "requeue_delay_s: 1, parties_per_s: 6, leaves_per_s: 3, requeue_share: 0.5, size_weights: (4, 1, 1, 0, 0),",
    );
    for _ in 0..590 {
        steps(&mut run, 1);
        let (found, fighting) = match_stats(&mut run);
        assert_eq!(found.moved, found.returned + found.missing + fighting);
    }
    let (found, _) = match_stats(&mut run);
    assert!(
        found.missing > 0 && found.left > found.missing && found.joined > 0,
        "{found:?}"
    );
    let world = run.server().world();
    let logged_in = world.resource::<Sessions>().iter();
    let logged_in = logged_in.filter(|(_, session)| session.player.is_some());
    let here = world.resource::<Players>().iter().count();
    assert_eq!(here, logged_in.count());
    assert!(world.resource::<SessionStats>().logouts > 50);
    let report = run.finish().expect("the run writes no output");
    crate::harness::assert_expectations(&report);
}

#[test]
fn parties_requeue_after_a_match_without_a_rematch() {
    let play = |fields: &str| {
        let text = format!(
            r#"Scenario(name: "duels", queues: [Queue(mode: "duel", parties: 2, size_weights: (1, 0, 0, 0, 0), match_duration_s: 2,
            requeue_delay_s: 1, {fields})])"#
        );
        let play = RunConfig {
            ticks: 400,
            threads: 1,
            ..RunConfig::default()
        };
        let mut run = start(scenario_of(&text), play);
        steps(&mut run, 400);
        let stats = stats(&mut run);
        (stats.queued, stats.matches)
    };
    let skills = "skill_deviation: 0, power_deviation: 0";
    let of = |rematch_cooldown_s: u32, requeue_share: u32| {
        play(&format!(
            "{skills}, settings: Groups(group_size: 1, rematch_cooldown_s: {rematch_cooldown_s}), requeue_share: {requeue_share}"
        ))
    };
    assert_eq!(of(0, 0), (2, 1));
    // Twenty seconds are six rounds of three seconds, each after up to half a second of waiting.
    let (queued, matches) = of(0, 1);
    assert!((5..=7).contains(&matches), "{matches}");
    assert!(queued == 2 * matches || queued == 2 * matches + 2);
    assert_eq!(of(1000, 1), (4, 1));
}

#[test]
fn matches_are_equal_on_any_number_of_threads() {
    let play = |threads| {
        let script = r#"At(t_s: 3, run: Logout(tag: "guests", count: 5)), At(t_s: 4, run: Queue(mode: "arena", parties: 30))"#;
        let text = text(
            script,
            "requeue_delay_s: 1, leaves_per_s: 3, requeue_share: 1,",
        );
        let play = RunConfig {
            ticks: 250,
            threads,
            ..RunConfig::default()
        };
        hashes(scenario_of(&text), play)
    };
    assert_eq!(play(1), play(4));
}

#[test]
fn arena_night_moves_its_players_and_fills_its_matches() {
    let play = RunConfig {
        ticks: 1200,
        threads: 2,
        ..RunConfig::default()
    };
    let mut run = start(scenario::load("arena_night").expect("built in"), play);
    steps(&mut run, 1199);
    let (found, _) = match_stats(&mut run);
    assert!(
        found.returned > 50 && found.joined > 20 && found.left > 50,
        "{found:?}"
    );
}
