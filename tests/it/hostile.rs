//! Hostile scenarios: each runs to its end, keeps the promises, and reports as text which actions failed.

use throng_scenario::{Report, Verdict};

use crate::harness::{RunConfig, assert_expectations, run_to_end, scenario_of};

const ALWAYS: &str = "ViewsWithinCap, ViewsStable, TicketsConserved";

/// Runs a scenario and checks the invariants and its own expectations. They may have nothing to check; each test checks the script errors
/// itself.
fn play(fields: &str, expect: &str) -> Report {
    let text = format!("Scenario(name: \"hostile\", {fields}, expect: [{ALWAYS}, {expect}])");
    let loaded = scenario_of(&text);
    let ticks = (loaded.scenario.duration_s * loaded.scenario.tick_hz) as u64;
    let report = run_to_end(
        loaded,
        RunConfig {
            ticks,
            threads: 1,
            ..RunConfig::default()
        },
    );
    let mut judged = report.clone();
    judged.script_errors.clear();
    judged.expectations.retain(|judged| {
        judged.verdict != Verdict::NotExercised && judged.text != "no script errors"
    });
    assert_expectations(&judged);
    report
}

const SMALL: &str = "map: Generate(Town(width_tiles: 200, height_tiles: 200))";

#[test]
fn empty_scenario_runs() {
    play("duration_s: 1", "NoObjectOnBlockedTile");
    play("duration_s: 0", "");
    play(
        "duration_s: 1, scenes: [Scene(name: \"a\", map: Generate(Random(width_tiles: 1, height_tiles: 1, fill: 0)))]",
        "",
    );
    let no_players = "duration_s: 1, scenes: [Scene(name: \"a\")], crowds: [Crowd(tag: \"p\", kind: \"player\", count: 0, client_share: 1,
        churn_per_s: 1000, attributes_per_s: 1000, party_size: 5, behaviour: Wander(radius_m: 0))], script: [
        At(t_s: 0, run: Teleport(tag: \"p\", to: Share((0, 0), (1, 1)))), At(t_s: 0, run: Login(tag: \"p\")),
        At(t_s: 0, run: Logout(tag: \"p\")), At(t_s: 0, run: Despawn(tag: \"p\")),
        At(t_s: 0, run: AddAttribute(tag: \"p\", attribute: \"health\", by: -9223372036854775808))]";
    // No object can be teleported, logged in or out, despawned or changed.
    assert_eq!(
        play(no_players, "NoObjectOnBlockedTile").script_error_count,
        5
    );
}

#[test]
fn one_tile_map_holds_a_crowd() {
    let report = play(
        "duration_s: 2, scenes: [Scene(name: \"a\", map: Generate(Random(width_tiles: 1, height_tiles: 1, fill: 0)))], crowds: [
            Crowd(kind: \"player\", count: 20, client_share: 1, party_size: 5, churn_per_s: 5, attributes_per_s: 5, behaviour: Wander(radius_m: 10)),
            Crowd(kind: \"npc\", count: 20, behaviour: Chase(kind: \"player\", sight_m: 100))]",
        "NoObjectOnBlockedTile, MirrorsEqual",
    );
    assert_eq!(report.objects.peak, 40);
}

#[test]
fn map_without_a_free_tile_is_playable() {
    let report = play(
        "duration_s: 2, scenes: [Scene(name: \"a\", map: Generate(Random(width_tiles: 50, height_tiles: 50, fill: 1)))], crowds: [
            Crowd(tag: \"p\", kind: \"player\", count: 20, client_share: 1, behaviour: Wander(radius_m: 10)),
            Crowd(kind: \"npc\", count: 20, behaviour: Gather(at: Point(center_m: (5, 5))))],
            script: [At(t_s: 1, run: Free(rect_tiles: (10, 10, 5, 5)))]",
        "MirrorsEqual",
    );
    assert_eq!(report.paths.found, 0);
}

#[test]
fn extreme_tick_rates_run() {
    for hz in [1.0, 7.3, 1000.0] {
        let report = play(
            &format!("duration_s: 3, tick_hz: {hz}, scenes: [Scene(name: \"a\", {SMALL})], crowds: [
                Crowd(kind: \"player\", count: 30, client_share: 1, churn_per_s: 10, attributes_per_s: 3, party_size: 5, behaviour: Wander(radius_m: 30)),
                Crowd(kind: \"npc\", count: 10, behaviour: Chase(kind: \"player\", sight_m: 50))]"),
            "NoObjectOnBlockedTile, MirrorsEqual",
        );
        assert!(report.clients.logins >= 30, "{hz}");
    }
}

#[test]
fn oversized_cells_and_zero_caps_run() {
    let report = play(
        &format!("duration_s: 3, scenes: [Scene(name: \"a\", cell_m: 10000, margin_m: 2500, view_cap: 0, npc_cap: 0, thing_cap: 0, {SMALL})],
            crowds: [Crowd(kind: \"player\", count: 30, client_share: 1, behaviour: Wander(radius_m: 30))]"),
        "NoObjectOnBlockedTile, MirrorsEqual",
    );
    assert_eq!((report.views.links, report.views.longest_list), (0, 0));
}

#[test]
fn extreme_speeds_run() {
    for speed in [0, 1000] {
        let report = play(
            &format!("duration_s: 5, scenes: [Scene(name: \"a\", {SMALL})], crowds: [
                Crowd(kind: \"player\", count: 30, client_share: 1, speed_m_s: {speed}, behaviour: Wander(radius_m: 80)),
                Crowd(kind: \"npc\", count: 30, speed_m_s: {speed}, behaviour: Chase(kind: \"player\", sight_m: 100)),
                Crowd(kind: \"npc\", count: 30, speed_m_s: {speed}, behaviour: Flee(kind: \"npc\", sight_m: 100))]"),
            "NoObjectOnBlockedTile, MirrorsEqual, PathsExact",
        );
        assert!(report.paths.found > 0, "{speed}");
    }
}

#[test]
fn last_party_of_an_uneven_crowd_is_smaller() {
    play(
        &format!("duration_s: 2, scenes: [Scene(name: \"a\", {SMALL})], crowds: [
            Crowd(kind: \"player\", count: 7, party_size: 5, client_share: 1, behaviour: Wander(radius_m: 30))]"),
        "NoObjectOnBlockedTile, MirrorsEqual",
    );
}

#[test]
fn mass_churn_teleports_and_edits_pass() {
    for (gate, nobody) in [
        ("(60, 60, 30, 30)", "NoObjectOnBlockedTile"),
        ("(0, 0, 200, 200)", ""),
    ] {
        let report = play(
            &format!("duration_s: 4, scenes: [Scene(name: \"a\", max_objects: 300, {SMALL})], crowds: [
                Crowd(tag: \"p\", kind: \"player\", count: 150, party_size: 5, client_share: 1, churn_per_s: 1000, messages_per_s: 1000,
                    attributes_per_s: 100, behaviour: Wander(radius_m: 30)),
                Crowd(tag: \"n\", kind: \"npc\", count: 100, behaviour: Gather(at: Rect(min_m: (0, 0), max_m: (3, 3))))], script: [
                Every(t_s: 0.05, run: Teleport(tag: \"p\", to: Share((0, 0), (1, 1)))),
                Every(t_s: 0.05, run: Toggle(rect_tiles: {gate}))]"),
            &format!("MirrorsEqual, {nobody}"),
        );
        assert!(report.clients.logouts > 100, "{:?}", report.clients);
    }
}

#[test]
fn full_or_closed_scene_refuses_with_an_error() {
    let report = play(
        &format!("duration_s: 4, scenes: [Scene(name: \"a\", max_objects: 1, {SMALL}), Scene(name: \"b\", max_objects: 8, {SMALL})], crowds: [
            Crowd(tag: \"p\", kind: \"player\", scene: \"b\", count: 5, client_share: 1, behaviour: Wander(radius_m: 10))], script: [
            At(t_s: 1, run: ChangeScene(tag: \"p\", to: \"a\")), At(t_s: 1.5, run: Spawn(kind: \"npc\", count: 5)),
            At(t_s: 1.6, run: Spawn(kind: \"player\", count: 5, client_share: 1)),
            At(t_s: 2, run: CloseScene(scene: \"a\")), At(t_s: 2.5, run: ChangeScene(tag: \"p\", to: \"a\")),
            At(t_s: 2.5, run: Spawn(kind: \"npc\")), At(t_s: 2.5, run: Block(rect_tiles: (1, 1, 2, 2))),
            At(t_s: 3, run: OpenScene(name: \"c\", {SMALL})), At(t_s: 3.5, run: Block(rect_tiles: (1, 1, 2, 2)))]"),
        "NoObjectOnBlockedTile, MirrorsEqual",
    );
    let count_errors = |what: &str| {
        report
            .script_errors
            .iter()
            .filter(|fault| fault.contains(what))
            .count()
    };
    assert_eq!(
        count_errors("scene 0 is full: at most 1 objects"),
        3,
        "{:#?}",
        report.script_errors
    );
    // Also after another scene has opened: an action without a scene means the first scene of the scenario.
    assert_eq!(
        count_errors("scene `a` is not open"),
        4,
        "{:#?}",
        report.script_errors
    );
    assert_eq!(report.script_errors.len(), 7, "{:#?}", report.script_errors);
}

#[test]
fn scenes_closed_with_players_inside_leave_no_state() {
    let report = play(
        &format!("duration_s: 5, scenes: [Scene(name: \"a\", {SMALL}), Scene(name: \"b\", {SMALL})], crowds: [
            Crowd(tag: \"p\", kind: \"player\", count: 40, client_share: 1, churn_per_s: 10, party_size: 5, behaviour: Wander(radius_m: 30)),
            Crowd(tag: \"n\", kind: \"npc\", count: 20, behaviour: Chase(kind: \"player\", sight_m: 50))], script: [
            At(t_s: 2, run: ChangeScene(tag: \"p\", to: \"b\")), At(t_s: 2, run: CloseScene(scene: \"b\")),
            At(t_s: 3, run: CloseScene(scene: \"a\")), At(t_s: 3, run: CloseScene(scene: \"a\"))]"),
        "NoObjectOnBlockedTile, MirrorsEqual",
    );
    assert_eq!(
        (
            report.objects.players,
            report.objects.npcs,
            report.views.links
        ),
        (0, 0, 0)
    );
    assert_eq!(report.script_errors.len(), 1, "{:#?}", report.script_errors);
}

#[test]
fn despawned_players_of_waiting_clients_do_not_block_the_end() {
    let report = play(
        &format!("duration_s: 2, settings: (sync: (enters_per_tick_max: 1)), scenes: [Scene(name: \"a\", {SMALL}, view_cap: 40)], crowds: [
            Crowd(tag: \"p\", kind: \"player\", count: 60, client_share: 1, behaviour: Wander(radius_m: 10)),
            Crowd(tag: \"q\", kind: \"player\", count: 60, client_share: 1, behaviour: Idle)], script: [
            At(t_s: 0.5, run: Despawn(tag: \"p\")), At(t_s: 1.5, run: Despawn(tag: \"q\", count: 30))]"),
        "MirrorsEqual",
    );
    assert_eq!(report.script_errors, Vec::<String>::new());
    assert_eq!(report.objects.players, 30);
}

#[test]
fn spawning_too_many_players_is_a_script_error() {
    let report = play(
        &format!(
            "duration_s: 0.5, scenes: [Scene(name: \"a\", {SMALL}, max_objects: 10)], crowds: [Crowd(kind: \"player\", count: 2)], script: [
            At(t_s: 0.1, run: Spawn(tag: \"p\", kind: \"player\", count: 1048576))]"
        ),
        "ViewsWithinCap",
    );
    assert!(
        report.script_errors[0].contains("too many synthetic players"),
        "{:#?}",
        report.script_errors
    );
}

#[test]
fn endless_scene_opening_stops_at_the_cell_limit() {
    let report = play(
        "duration_s: 1, scenes: [Scene(name: \"a\")], script: [Every(t_s: 0.05, run: OpenScene(name: \"o\", cell_m: 1,
            margin_m: 0, map: Generate(Random(width_tiles: 1500, height_tiles: 1500))))]",
        "",
    );
    let faults = &report.script_errors;
    assert_eq!(faults.len(), 1, "{faults:#?}");
    let expected = "grid cells in all open scenes";
    assert!(faults[0].contains(expected), "{faults:#?}");
    assert!(report.script_error_count > 5);
}
