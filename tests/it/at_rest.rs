//! Promise: `MirrorsEqual` compares clients only after the server has sent them everything, whatever happened shortly before the end of a
//! run: logins, rare attributes, the last stop of a distant object.

use throng_scenario::Verdict;

use crate::harness::{RunConfig, run_to_end, scenario_of};

const HALL: &str =
    "map: Generate(Rooms(width_tiles: 300, height_tiles: 300)), tile_m: 1, cell_m: 10";

/// The verdicts of a scenario's expectations, with what was found.
fn verdicts(text: &str) -> Vec<(Verdict, String)> {
    let loaded = scenario_of(text);
    let ticks = (loaded.scenario.duration_s * loaded.scenario.tick_hz).round() as u64;
    let config = RunConfig {
        ticks,
        threads: 1,
        ..RunConfig::default()
    };
    let judged = run_to_end(loaded, config).expectations.into_iter();
    judged.map(|it| (it.verdict, it.found)).collect()
}

fn assert_equal(text: &str, mirrors: &str) {
    let found = verdicts(text);
    assert_eq!(found[0], (Verdict::Passed, mirrors.to_owned()), "{text}");
}

#[test]
fn unseen_objects_are_sent_before_mirrors_are_compared() {
    for (settings, npcs) in [("sync: (enters_per_tick: 1)", 90), ("", 1500)] {
        assert_equal(
            &format!(
                r#"Scenario(name: "unseen", tick_hz: 10, duration_s: 5, settings: ({settings}),
                attributes: [Attribute(name: "fame", encoding: Varint, audience: [Scene])],
                scenes: [Scene(name: "a", {HALL})],
                crowds: [Crowd(tag: "p", kind: "player", count: 1, client_share: 1), Crowd(tag: "n", count: {npcs})],
                script: [At(t_s: 1, run: Logout(tag: "p")), At(t_s: 4.8, run: Login(tag: "p"))],
                expect: [MirrorsEqual])"#
            ),
            "1 mirrors",
        );
    }
}

#[test]
fn rare_attributes_are_sent_before_mirrors_are_compared() {
    for every in [50, 400, 5000] {
        assert_equal(
            &format!(
                r#"Scenario(name: "rare", duration_s: 5,
                attributes: [Attribute(name: "fame", encoding: Varint, cadence: EveryNth({every}))],
                scenes: [Scene(name: "a", map: Generate(Rooms(width_tiles: 100, height_tiles: 100)), tile_m: 0.5)],
                crowds: [Crowd(tag: "p", kind: "player", count: 5, client_share: 1), Crowd(tag: "n", count: 20)],
                script: [At(t_s: 4.8, run: SetAttribute(tag: "n", attribute: "fame", value: 7)),
                    At(t_s: 4.7, run: Spawn(tag: "late", kind: "npc", count: 5))],
                expect: [MirrorsEqual])"#
            ),
            "5 mirrors",
        );
    }
}

#[test]
fn last_stops_are_sent_before_mirrors_are_compared() {
    for seed in 1..=3 {
        assert_equal(
            &format!(
                r#"Scenario(name: "stops", seed: {seed}, heartbeat_ticks: 1, duration_s: 60,
                kinds: [ObjectKind(name: "k0", class: Player)],
                scenes: [Scene(name: "s0", copies: 2)],
                crowds: [Crowd(kind: "player", count: 21, client_share: 0.3),
                    Crowd(kind: "k0", count: 10, behaviour: Wander(radius_m: 19.26))],
                expect: [MirrorsEqual])"#
            ),
            "12 mirrors",
        );
    }
}

#[test]
fn client_that_lost_its_session_is_compared_after_its_login() {
    for end_s in [17.4, 17.57, 17.7, 17.9] {
        let found = verdicts(&format!(
            r#"Scenario(name: "lost", tick_hz: 30, duration_s: {end_s}, settings: (session: (keep_s: 0)),
            scenes: [Scene(name: "s0")], crowds: [Crowd(tag: "t4", kind: "player", client_share: 1)],
            script: [Every(t_s: 0.25, from_s: 1.76, run: LoseLink(tag: "t4", for_s: 0.55))],
            expect: [MirrorsEqual])"#
        ));
        assert_ne!(found[0].0, Verdict::Failed, "{end_s} s: {found:?}");
    }
}

#[test]
fn login_shortly_before_the_end_is_completed_and_compared() {
    assert_equal(
        r#"Scenario(name: "late", duration_s: 5, scenes: [Scene(name: "a")],
        crowds: [Crowd(tag: "p", kind: "player", count: 4, client_share: 1)],
        script: [At(t_s: 1, run: Logout(tag: "p")), At(t_s: 4.95, run: Login(tag: "p"))],
        expect: [MirrorsEqual])"#,
        "4 mirrors",
    );
}

#[test]
fn clients_whose_return_found_the_inbox_full_are_not_compared() {
    let found = verdicts(
        r#"Scenario(name: "full", duration_s: 16, settings: (inbox: (backlog_max: 10)),
        scenes: [Scene(name: "s1")], crowds: [Crowd(tag: "t0", kind: "player", count: 14, client_share: 1)],
        script: [At(t_s: 10.07, run: Disconnect(tag: "t0"))],
        expect: [MirrorsEqual, Counter(name: "sessions.ended.full", at_least: 4, at_most: 4)])"#,
    );
    assert!(
        found.iter().all(|it| it.0 == Verdict::Passed),
        "expected four sessions ended by a full inbox: {found:?}"
    );
    assert_eq!(found[0].1, "10 mirrors");
}
