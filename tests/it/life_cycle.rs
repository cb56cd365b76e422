//! Promise: a client's life follows the scenario: connections are lost and resumed, players log in twice, are kicked, wait in the
//! login queue, control and watch other objects; and if any of it does not happen, the scenario reports it.

use bevy_ecs::prelude::*;
use throng::movement::{AttachedTo, MovementStats, Walker};
use throng::prelude::{ControlledBy, Sessions, Viewer};
use throng::session::SessionSettings;
use throng::world::{Object, Position};
use throng_scenario::{
    self as scenario, Action, Cue, Report, Scenario, ScenarioRun, SessionSummary, Verdict,
};

use crate::harness::{RunConfig, assert_expectations, run_to_end, scenario_of, start};

/// Ten players with mirrors on a meadow of 20 m × 20 m, and five rats.
fn meadow(session: &str, script: &str) -> ScenarioRun {
    let text = format!(
        r#"Scenario(name: "meadow", duration_s: 6, settings: (session: ({session})),
scenes: [Scene(name: "a", map: Generate(Random(width_tiles: 40, height_tiles: 40, fill: 0))),
    Scene(name: "b", map: Generate(Random(width_tiles: 40, height_tiles: 40, fill: 0)))],
crowds: [Crowd(tag: "people", kind: "player", count: 10, client_share: 1, party_size: 5, behaviour: Wander(radius_m: 5)),
    Crowd(tag: "rats", count: 5, behaviour: Wander(radius_m: 5))],
script: [{script}],
expect: [MirrorsEqual, ViewsStable, ViewsWithinCap])"#
    );
    let play = RunConfig {
        threads: 1,
        ticks: 120,
        ..RunConfig::default()
    };
    start(scenario_of(&text), play)
}

/// Plays this many ticks.
fn step(run: &mut ScenarioRun, ticks: u64) {
    for _ in 0..ticks {
        assert!(run.step().unwrap());
    }
}

/// Plays what is left; all that is expected holds.
fn finish(mut run: ScenarioRun) -> Report {
    while run.step().unwrap() {}
    let report = run.finish().unwrap();
    assert_expectations(&report);
    report
}

/// How many of the objects that clients control have a component, and how many have not.
fn controlled<T: Component>(run: &mut ScenarioRun) -> [usize; 2] {
    let world = run.server().world_mut();
    let mut all = world.query_filtered::<Has<T>, With<ControlledBy>>();
    let with = all.iter(world).filter(|&has| has).count();
    [with, all.iter(world).count() - with]
}

fn sessions(run: &mut ScenarioRun) -> usize {
    run.server().world().resource::<Sessions>().len()
}

#[test]
fn lost_connection_resumes_in_time_or_gets_a_new_session() {
    let mut run = meadow(
        "reconnect_grace_s: 1",
        r#"At(t_s: 1, run: Disconnect(tag: "people", count: 4, for_s: 0.5)),
        At(t_s: 3, run: Disconnect(tag: "people", count: 2, for_s: 2))"#,
    );
    step(&mut run, 25);
    // The objects of all players stay, also those of four disconnected ones.
    let objects = controlled::<Object>(&mut run);
    assert_eq!((sessions(&mut run), objects), (10, [10, 0]));
    let report = finish(run);
    let found = report.sessions;
    assert_eq!((found.connections_lost, found.awaiting_reconnect), (6, 0));
    assert_eq!((found.resumed, found.resumed_by_token), (4, 4));
    // Those whose time was over logged in anew, over another connection than the one that knew no session.
    assert_eq!((found.ended.resumed, found.ended.disconnected), (4, 4));
    assert_eq!((report.clients.logins, report.clients.logouts), (12, 2));
    assert_eq!((report.clients.now, report.objects.players), (10, 10));
}

#[test]
fn reconnecting_client_has_another_address() {
    let script = r#"At(t_s: 1, run: Disconnect(tag: "people", count: 3, for_s: 0.5))"#;
    let mut run = meadow("", script);
    let addresses = |run: &mut ScenarioRun| {
        let sessions = run.server().world().resource::<Sessions>();
        let all = sessions.iter();
        let mut all: Vec<_> = all
            .map(|(_, session)| (session.player, session.address.unwrap().ip()))
            .collect();
        all.sort_unstable();
        all
    };
    step(&mut run, 10);
    let before = addresses(&mut run);
    step(&mut run, 30);
    let after = addresses(&mut run);
    let both = || before.iter().zip(&after);
    assert!(both().all(|(old, new)| old.0 == new.0));
    assert_eq!(both().filter(|(old, new)| old.1 != new.1).count(), 3);
}

#[test]
fn duplicate_login_kick_and_ban_end_sessions_with_a_reason() {
    let run = meadow(
        "",
        r#"At(t_s: 1, run: DuplicateLogin(tag: "people", count: 3)), At(t_s: 2, run: Kick(tag: "people", count: 2)),
        At(t_s: 2, run: Ban(tag: "people", count: 4, only: [AtLeast(attribute: "health", value: 0)]))"#,
    );
    let report = finish(run);
    let SessionSummary {
        ended,
        end_notices,
        addresses_banned,
        ..
    } = report.sessions;
    assert_eq!((ended.replaced, ended.kicked, addresses_banned), (3, 2, 4));
    // The banned ones try again every two seconds, and are turned away each time.
    assert_eq!((ended.banned, report.clients.refused), (8, 8));
    assert_eq!(end_notices, 3 + 2 + 8);
    assert_eq!((report.clients.logins, report.objects.players), (15, 6));
}

#[test]
fn players_possess_and_release_objects_without_reconnecting() {
    let mut run = meadow(
        "",
        r#"At(t_s: 1, run: Possess(tag: "people", count: 3, of: "rats")),
        At(t_s: 4, run: Release(tag: "people", count: 2))"#,
    );
    step(&mut run, 22);
    // Three rats have eyes and no will of their own; three players stand by.
    let steered = |run: &mut ScenarioRun| {
        let world = run.server().world_mut();
        let mut npcs = world.query_filtered::<Has<Walker>, With<ControlledBy>>();
        assert!(npcs.iter(world).all(|walks| !walks));
        let mut free = world.query_filtered::<(), (With<Walker>, Without<Viewer>)>();
        let free = free.iter(world).count();
        let players = world.resource::<throng::world::Players>();
        let own: Vec<Entity> = players.iter().map(|(_, own)| own).collect();
        let mut all = world.query_filtered::<(Entity, &Position), With<ControlledBy>>();
        let all = all.iter(world).filter(|(entity, _)| !own.contains(entity));
        (free, all.map(|(_, at)| *at).collect::<Vec<_>>())
    };
    let before = steered(&mut run);
    assert_eq!((before.0, before.1.len()), (2, 3));
    assert_eq!(controlled::<Viewer>(&mut run), [10, 0]);
    step(&mut run, 40);
    assert_ne!(steered(&mut run).1, before.1, "their players walk them");
    let report = finish(run);
    let found = report.sessions;
    assert_eq!((found.possessing, found.spectating), (1, 0));
    assert_eq!((report.clients.logins, report.clients.logouts), (10, 0));
    assert_eq!((report.objects.players, report.objects.npcs), (10, 5));
}

#[test]
fn spectators_have_no_object_and_follow_their_target() {
    let mut run = meadow(
        "idle_timeout_s: 3",
        r#"At(t_s: 1, run: Spectate(tag: "people", count: 4, follow: "rats")),
        At(t_s: 2, run: ChangeScene(tag: "rats", to: "b")), At(t_s: 5, run: Release(tag: "people", count: 3))"#,
    );
    let are_there = |run: &mut ScenarioRun| {
        let world = run.server().world_mut();
        let mut views = world.query::<(&AttachedTo, &Object, &Position)>();
        let is_there = |(follows, view, at): (&AttachedTo, &Object, &Position)| {
            let other = world.get::<Object>(follows.0).unwrap();
            let place = world.get::<Position>(follows.0).unwrap();
            (view.scene(), *at) == (other.scene(), *place)
        };
        views.iter(world).map(is_there).collect::<Vec<bool>>()
    };
    step(&mut run, 30);
    assert_eq!(are_there(&mut run), [true; 4]);
    // In another scene now; a spectator does not count as idle.
    step(&mut run, 60);
    assert_eq!(are_there(&mut run), [true; 4]);
    assert_eq!(controlled::<AttachedTo>(&mut run), [4, 6]);
    let report = finish(run);
    let found = report.sessions;
    assert_eq!((found.spectating, found.ended.idle), (1, 0));
    assert_eq!((report.clients.logins, report.clients.logouts), (10, 0));
    assert_eq!(report.tags["people"], 9);
}

#[test]
fn session_end_despawns_possessed_and_own_object() {
    let mut run = meadow(
        "",
        r#"At(t_s: 1, run: Possess(tag: "people", of: "rats")), At(t_s: 2, run: Kick(tag: "rats"))"#,
    );
    // Ten wanted five; and rats have clients as long as they are steered.
    while run.step().unwrap() {}
    let report = run.finish().unwrap();
    assert_eq!(report.script_error_count, 1);
    let kicked = report.sessions.ended.kicked;
    assert_eq!((kicked, report.objects.npcs), (5, 0));
    assert_eq!((report.clients.logins, report.objects.players), (15, 10));
}

#[test]
fn drained_server_empties_and_reopens_with_its_login_limit() {
    let mut run = meadow(
        "players_max: 8, reserved_slots: (0, 0, 0, 2), admitted_per_tick_max: 2",
        r#"At(t_s: 0.5, run: Spawn(tag: "moderators", kind: "player", count: 2, client_share: 1, admission_class: Staff)),
        At(t_s: 3, run: Drain), At(t_s: 3.5, run: Reopen)"#,
    );
    step(&mut run, 1);
    assert_eq!(controlled::<Object>(&mut run), [2, 0]);
    step(&mut run, 8);
    // Players of other classes cannot use the reserved slots;
    assert_eq!(controlled::<Object>(&mut run), [6, 0]);
    step(&mut run, 40);
    // moderators use them and skip the login queue.
    assert_eq!(controlled::<Object>(&mut run), [8, 0]);
    assert_eq!(sessions(&mut run), 12);
    step(&mut run, 20);
    assert_eq!(sessions(&mut run), 0);
    let report = finish(run);
    let found = report.sessions;
    assert_eq!((found.max_admitted, found.login_queue), (2, 4));
    assert_eq!(report.objects.players, 8);
    assert_eq!(report.tags["moderators"], 2);
    assert!(
        found.ended.server_stopping >= 12 && found.queue_positions_sent >= 8,
        "{found:?}"
    );
}

#[test]
fn waiting_connection_is_not_replaced() {
    let mut run = meadow("sessions_opened_per_tick_max: 3", "");
    let counts = [(); 4].map(|()| {
        step(&mut run, 1);
        controlled::<Object>(&mut run)[0]
    });
    assert_eq!(counts, [3, 6, 9, 10]);
    let report = finish(run);
    let ended = report.sessions.ended;
    assert_eq!((report.clients.logins, ended.replaced), (10, 0));
}

#[test]
fn logout_in_the_tick_of_a_second_login_is_final() {
    let run = meadow(
        "",
        r#"At(t_s: 1, run: DuplicateLogin(tag: "people", count: 4)), At(t_s: 1, run: Logout(tag: "people", count: 2)),
        At(t_s: 1, run: Kick(tag: "people", count: 1, only: [AtLeast(attribute: "health", value: 0)]))"#,
    );
    let report = finish(run);
    assert_eq!(report.objects.players, 8);
}

#[test]
fn input_crowd_walks_like_a_move_crowd_and_after_reconnect() {
    let walked = |inputs: bool| {
        let text = format!(
            r#"Scenario(name: "walk", duration_s: 10, scenes: [Scene(name: "a", map: Generate(Town(width_tiles: 80, height_tiles: 80)))],
            crowds: [Crowd(tag: "p", kind: "player", count: 10, client_share: 1, sends_inputs: {inputs}, behaviour: Wander(radius_m: 9))],
            script: [At(t_s: 6, run: Disconnect(tag: "p", count: 5, for_s: 1))],
            expect: [MirrorsEqual, NoObjectOnBlockedTile])"#
        );
        let play = RunConfig {
            threads: 1,
            ticks: 200,
            ..RunConfig::default()
        };
        let mut run = start(scenario_of(&text), play);
        step(&mut run, 200);
        let world = run.server().world();
        let inputs = world.resource::<Sessions>().iter();
        let numbered = inputs.filter(|(_, session)| session.has_input_numbers());
        let numbered = numbered.count();
        let moved = world.resource::<MovementStats>().moves_accepted;
        let report = finish(run);
        let found = report.sessions;
        assert_eq!((found.resumed_by_token, found.bad_messages), (5, 0));
        assert_eq!(found.late_inputs, 0);
        (numbered, moved)
    };
    let ((none, moves), (all, inputs)) = (walked(false), walked(true));
    assert_eq!((none, all), (0, 10));
    assert!(
        moves > 200 && inputs == moves,
        "{moves} moves, {inputs} inputs"
    );
}

#[test]
fn silent_client_is_idle_and_returns_later() {
    let run = meadow(
        "idle_timeout_s: 1",
        r#"At(t_s: 1, run: Spawn(tag: "sleepers", kind: "player", count: 2, client_share: 1, messages_per_s: 0))"#,
    );
    let report = finish(run);
    let found = report.sessions;
    assert_eq!((found.ended.idle, found.end_notices), (4, 4));
}

/// The broken promises of the churn scenario, played for this many seconds with fewer players and something changed.
fn failed_expectations(seconds: u64, change: impl FnOnce(&mut Scenario)) -> Vec<String> {
    let mut loaded = scenario::load("churn").unwrap();
    let scenario = &mut loaded.scenario;
    let sailors = scenario
        .crowds
        .iter_mut()
        .find(|crowd| crowd.tag == "sailors");
    sailors.unwrap().count = 200;
    scenario.settings.session.players_max = 200;
    scenario.expect.retain(|expectation| {
        let until_s = expectation
            .split_window()
            .1
            .and_then(|(_, until_s)| until_s);
        until_s.is_none_or(|until_s| until_s <= seconds as f64)
    });
    change(scenario);
    let play = RunConfig {
        threads: 2,
        ticks: seconds * 20,
        ..RunConfig::default()
    };
    let report = run_to_end(loaded, play);
    let broken = report.expectations.into_iter();
    let broken = broken.filter(|judged| judged.verdict == Verdict::Failed);
    broken.map(|judged| judged.text).collect()
}

/// Those of some figures that stand in no text.
fn missing_names<'a>(texts: &[String], figures: &[&'a str]) -> Vec<&'a str> {
    let is_named = |figure: &str| texts.iter().any(|text| text.contains(figure));
    let figures = figures.iter().copied();
    figures.filter(|figure| !is_named(figure)).collect()
}

#[test]
fn unexercised_session_counters_are_found() {
    assert_eq!(failed_expectations(3, |_| ()), Vec::<String>::new());
    // All players are admitted at once.
    let open = failed_expectations(3, |scenario| {
        scenario.settings.session = SessionSettings {
            admitted_per_tick_max: u32::MAX,
            ..SessionSettings::default()
        };
    });
    let of_line = ["max_admitted", "login_queue", "queue_positions_sent"];
    assert!(missing_names(&open, &of_line).is_empty(), "{open:?}");
    // Staff stands in line like anybody.
    let anybody = failed_expectations(3, |scenario| {
        for cue in &mut scenario.script {
            if let Cue::At {
                run: Action::Spawn(crowd),
                ..
            } = cue
            {
                crowd.admission_class = Default::default();
            }
        }
    });
    let staff = ["tags.harbourmasters"];
    assert!(missing_names(&anybody, &staff).is_empty(), "{anybody:?}");
    // Lost connections end sessions, the idle timeout is off, and half of the script is removed.
    let dull = failed_expectations(13, |scenario| {
        let session = &mut scenario.settings.session;
        (session.reconnect_grace_s, session.idle_timeout_s) = (0.0, 0.0);
        scenario.script.retain(|cue| {
            use Action::{Ban, DuplicateLogin, Kick, Release};
            let run = cue.action();
            !matches!(
                run,
                Ban { .. } | Kick { .. } | DuplicateLogin { .. } | Release { .. }
            )
        });
    });
    let missed = [
        "sessions.resumed at",
        "resumed_by_token",
        "ended.replaced",
        "ended.kicked",
        "ended.banned",
        "ended.idle",
        "end_notices",
        "sessions.possessing at most 0",
        "sessions.spectating at most 0",
    ];
    assert!(missing_names(&dull, &missed).is_empty(), "{dull:?}");
}
