//! Promise: a passed run means that everything was checked. An expectation with nothing to check does not pass, a failed cue is reported
//! with its line, and tick times are checked on request.

use bevy_app::App;
use bevy_ecs::prelude::*;
use glam::Vec2;
use serde_json::Value;
use throng::map::SceneMap;
use throng::movement::Walker;
use throng::nav::PathRequest;
use throng::sync::{Replicate, ReplicateAppExt};
use throng::wire::Encoding;
use throng::world::{ObjectKinds, SceneSpec, Scenes, open_scene, spawn_object};
use throng_scenario::{ExpectationResult, Report, Verdict};

use crate::harness::{RunConfig, TempFolder, run_throng, run_to_end, scenario_of, start};

/// A yard of 20 m × 20 m without walls, ten players, five rats, and an empty queue.
fn yard(script: &str, expect: &str) -> String {
    format!(
        r#"Scenario(name: "yard", duration_s: 2,
scenes: [Scene(name: "a", max_objects: 40, map: Generate(Random(width_tiles: 40, height_tiles: 40, fill: 0)))],
crowds: [Crowd(tag: "people", kind: "player", count: 10, client_share: 0.5, party_size: 5), Crowd(tag: "rats", count: 5)],
queues: [Queue(mode: "q", parties: 0)],
script: [At(t_s: 0.2, run: Block(rect_tiles: (10, 10, 4, 4))), At(t_s: 1.9, run: OpenScene(name: "b")),
At(t_s: 1.9, run: Spawn(tag: "late")),
{script}],
expect: [{expect}])"#
    )
}

/// The line of the script passed to [`yard`].
const SCRIPT_LINE: usize = 7;

fn run_report(text: &str) -> Report {
    let loaded = scenario_of(text);
    let ticks = (loaded.scenario.duration_s * loaded.scenario.tick_hz) as u64;
    run_to_end(
        loaded,
        RunConfig {
            ticks,
            threads: 1,
            ..RunConfig::default()
        },
    )
}

fn verdicts(report: &Report) -> Vec<Verdict> {
    let verdict = |judged: &ExpectationResult| judged.verdict;
    report.expectations.iter().map(verdict).collect()
}

/// Actions that must fail in the yard after one second, and their error texts. The wall is from (5, 5) to (7, 7).
const FAILING_SCRIPT: [(&str, &str); 27] = [
    ("Despawn(tag: \"late\")", "no object with the tag `late`"),
    (
        "SetTeam(tag: \"rats\", count: 9, team: 1)",
        "expected 9, found 5 objects with the tag `rats`",
    ),
    (
        "Teleport(tag: \"rats\", to: Rect(min_m: (5.6, 5.6), max_m: (6.4, 6.4)))",
        "5 of 5 objects placed outside the area: no free tile in it",
    ),
    (
        "Spawn(tag: \"new\", count: 3, at: Rect(min_m: (5.6, 5.6), max_m: (6.4, 6.4)))",
        "3 of 3 objects placed outside the area",
    ),
    (
        "ChangeScene(tag: \"rats\", to: \"b\")",
        "scene `b` is not open",
    ),
    ("CloseScene(scene: \"b\")", "scene `b` is not open"),
    (
        "Block(scene: \"b\", rect_tiles: (0, 0, 1, 1))",
        "scene `b` is not open",
    ),
    (
        "SetSceneAttribute(attribute: \"weather\", value: -1)",
        "expected `weather` from 0 to 255, found -1",
    ),
    (
        "Announce(tag: \"rats\", scope: Party, text: \"squeak\")",
        "5 of 5 objects with the tag `rats` have no party",
    ),
    (
        "Announce(tag: \"rats\", count: 2, scope: Client)",
        "2 of 2 objects with the tag `rats` have no client",
    ),
    (
        "Announce(tag: \"late\", scope: Scene)",
        "no object with the tag `late`",
    ),
    ("Cancel(mode: \"q\", parties: 1)", "0 parties queued in `q`"),
    (
        "Login(tag: \"people\")",
        "0 logged-out players with the tag `people`",
    ),
    ("Login(tag: \"rats\")", "no player with the tag `rats`"),
    (
        "Logout(tag: \"people\", count: 30)",
        "expected 30, found 10 logged-in players with the tag `people`",
    ),
    (
        "Disconnect(tag: \"people\", count: 30)",
        "expected 30, found 10 objects with the tag `people` and a client",
    ),
    (
        "DuplicateLogin(tag: \"late\")",
        "no object with the tag `late` and a client",
    ),
    (
        "Kick(tag: \"rats\")",
        "no object with the tag `rats` and a client",
    ),
    (
        "Ban(tag: \"rats\", count: 2)",
        "expected 2, found no object with the tag `rats` and a client",
    ),
    (
        "Possess(tag: \"people\", of: \"rats\")",
        "`rats`: 5 uncontrolled objects, expected 10",
    ),
    (
        "Spectate(tag: \"people\", follow: \"late\")",
        "`late`: no other player to spectate",
    ),
    (
        "Release(tag: \"people\")",
        "0 possessing or spectating players with the tag `people`",
    ),
    ("Reopen", "the server is already open"),
    (
        "SetBehaviour(tag: \"late\", behaviour: Wander(radius_m: 1))",
        "tag `late` matches no object",
    ),
    (
        "Gather(tag: \"late\", at: Point(center_m: (1, 1)))",
        "tag `late` matches no object",
    ),
    (
        "Spawn(kind: \"player\", count: 30)",
        "scene 0 is full: at most 40 objects",
    ),
    ("Spawn(count: 30)", "scene 0 is full: at most 40 objects"),
];

#[test]
fn failed_cue_is_reported_with_its_line() {
    for (action, message) in FAILING_SCRIPT {
        let report = run_report(&yard(&format!("At(t_s: 1, run: {action})"), ""));
        let faults = &report.script_errors;
        let place = format!("test.ron:{SCRIPT_LINE}:17: tick 21: {message}");
        assert!(faults[0].starts_with(&place), "{action}: {}", faults[0]);
        // Later objects find no free place either.
        let is_full = message.contains("is full");
        assert_eq!(
            faults.len(),
            1 + usize::from(is_full),
            "{action}: {faults:#?}"
        );
        assert_eq!(verdicts(&report), [Verdict::Failed], "{action}");
        assert!(!report.is_ok());
    }
}

#[test]
fn successful_cues_are_no_errors() {
    let script = r#"At(t_s: 1, run: Teleport(tag: "rats", count: 5, to: Rect(min_m: (1, 1), max_m: (3, 3)))),
        At(t_s: 1, run: SetTeam(tag: "people", team: 1)), At(t_s: 1, run: Announce(tag: "people", scope: Party)),
        At(t_s: 1, run: SetAttribute(tag: "rats", attribute: "health", value: 1000)), At(t_s: 1, run: Logout(tag: "people", count: 4)),
        At(t_s: 1.2, run: Login(tag: "people", count: 4)), At(t_s: 1.2, run: Queue(mode: "q", parties: 3, size: 1)),
        At(t_s: 1.3, run: Cancel(mode: "q", parties: 3)), At(t_s: 1.4, run: Despawn(tag: "rats", count: 5)),
        At(t_s: 1.5, run: Spawn(tag: "rats", count: 5, at: Point(center_m: (1, 1)))), At(t_s: 1.95, run: CloseScene(scene: "b"))"#;
    let report = run_report(&yard(script, ""));
    assert_eq!(report.script_errors, Vec::<String>::new());
    assert_eq!(verdicts(&report), [Verdict::Passed]);
    assert_eq!(report.script_cues_run, 14);
    assert!(report.is_ok());
}

#[test]
fn script_errors_fail_a_run_unless_allowed() {
    let folder = TempFolder::new();
    let script = "Every(t_s: 0.5, run: Login(tag: \"people\"))";
    let file = folder.write("my.ron", yard(script, ""));
    let output = run_throng(&["run", &file]);
    assert_eq!(output.code, 1, "{}", output.err);
    let place = format!("script error        {file}:{SCRIPT_LINE}:22: tick 11: 0 logged-out");
    assert!(output.out.contains(&place), "{}", output.out);
    assert!(output.out.contains("(3 times)\n"), "{}", output.out);
    assert!(
        output.out.contains("BROKEN  no script errors: 3 errors"),
        "{}",
        output.out
    );
    let allowed = folder.write("allowed.ron", yard(script, "AllowScriptErrors"));
    let output = run_throng(&["run", &allowed]);
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(output.out.contains("script error  "), "{}", output.out);
    assert!(!output.out.contains("BROKEN"), "{}", output.out);
}

#[test]
fn unexercised_expectation_does_not_pass() {
    for expectation in [
        "ViewsWithinCap",
        "ViewsStable",
        "MirrorsEqual",
        "PathsExact",
        "PathsExact(share: 1)",
        "NoObjectOnBlockedTile",
        "NoUnreachable",
        "MatchesAtLeast(0)",
        "WaitUnderS(5)",
        "TicketsConserved",
        "NoLeaks",
        "NoScriptErrors",
        "NoCuesWithoutEffect",
        "TicksUnderMs(ms: 1e9, warm_up_s: 5)",
        "BytesPerClientUnder(1e9)",
        "Counter(name: \"memory.peak_rss_bytes\", at_least: 0)",
        "After(t_s: 5, expect: Counter(name: \"ticks\", at_least: 0))",
    ] {
        let report = run_report(&format!(
            "Scenario(name: \"x\", duration_s: 0.5, expect: [{expectation}])"
        ));
        let judged = &report.expectations[0];
        assert_eq!(
            (judged.verdict, judged.passed),
            (Verdict::NotExercised, None),
            "{expectation}: {}",
            judged.found
        );
        assert!(!report.is_ok(), "{expectation}");
    }
    let folder = TempFolder::new();
    let nothing = "Scenario(name: \"x\", duration_s: 0.1, expect: [MirrorsEqual])";
    let file = folder.write("nothing.ron", nothing);
    let output = run_throng(&["run", &file]);
    assert_eq!(output.code, 1, "{}", output.err);
    let expected = "not exercised: mirrors equal at rest: no client";
    assert!(output.out.contains(expected), "{}", output.out);
    let json = run_throng(&["run", &file, "--json"]).json();
    let judged = &json["expectations"][0];
    assert_eq!(
        (&judged["verdict"], &judged["passed"]),
        (&Value::from("not_exercised"), &Value::Null)
    );
}

#[test]
fn cues_without_effect_are_listed_and_fail_no_idle_cues() {
    let never = "When(tag: \"rats\", attribute: \"health\", below: 1, run: Despawn(tag: \"rats\"))";
    let matches_no_object = "Every(t_s: 0.5, run: SetTeam(tag: \"rats\", team: 1, only: [Within(Ring(center_m: (1, 1), radius_m: 0.01))]))";
    let matches_objects = "Every(t_s: 0.5, run: SetTeam(tag: \"rats\", team: 2))";
    let script = format!("{matches_objects},\n{never},\n{matches_no_object}");
    let report = run_report(&yard(&script, "NoCuesWithoutEffect, AllowScriptErrors"));
    let idle = [
        format!("{}:{}: it never ran", SCRIPT_LINE + 1, column(never)),
        format!(
            "{}:{}: it ran 3 times and affected no object",
            SCRIPT_LINE + 2,
            column(matches_no_object)
        ),
    ];
    assert_eq!(
        report.cues_without_effect.len(),
        2,
        "{:#?}",
        report.cues_without_effect
    );
    for (found, idle) in report.cues_without_effect.iter().zip(&idle) {
        assert!(found.ends_with(idle), "{found}, expected {idle}");
    }
    assert_eq!(verdicts(&report), [Verdict::Failed]);
    let report = run_report(&yard(matches_objects, "NoCuesWithoutEffect"));
    assert_eq!(report.cues_without_effect, Vec::<String>::new());
    assert_eq!(verdicts(&report), [Verdict::Passed, Verdict::Passed]);
    let tagged = |tag: &str| report.tags[tag];
    assert_eq!(
        (tagged("people"), tagged("rats"), tagged("late")),
        (10, 5, 1)
    );

    let folder = TempFolder::new();
    let file = folder.write(
        "idle.ron",
        yard(
            &script,
            "AllowScriptErrors, Counter(name: \"tags.rats\", at_least: 5)",
        ),
    );
    let output = run_throng(&["run", &file]);
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(
        output.out.contains("cue without effect  "),
        "{}",
        output.out
    );
    let output = run_throng(&["run", &file, "--strict"]);
    assert_eq!(output.code, 1, "{}{}", output.out, output.err);
    // A shortened run cannot know which cues would still have run.
    let output = run_throng(&["run", &file, "--ticks", "5"]);
    assert!(!output.out.contains("never ran"), "{}", output.out);
}

/// The column of a cue's action in its line.
fn column(cue: &str) -> usize {
    cue.find("run: ").expect("cues have actions") + "run: ".len() + 1
}

#[test]
fn busy_yard_exercises_every_expectation() {
    let script = "At(t_s: 0.5, run: SetBehaviour(tag: \"rats\", behaviour: Wander(radius_m: 9))), At(t_s: 0.3, run: Queue(mode: \"q\", parties: 30, size: 3))";
    let expect = "ViewsWithinCap, ViewsStable, MirrorsEqual, PathsExact, NoObjectOnBlockedTile, NoUnreachable, MatchesAtLeast(1), WaitUnderS(7),
        TicketsConserved, NoScriptErrors, TicksUnderMs(ms: 1e9), BytesPerClientUnder(1e9), PathsExact(share: 1)";
    let text = yard(script, expect)
        .replace("duration_s: 2", "duration_s: 6")
        .replace(
            "Queue(mode: \"q\", parties: 0)",
            "Queue(mode: \"q\", parties: 0, settings: Groups(group_size: 3))",
        );
    let report = run_report(&text);
    let broken: Vec<_> = report
        .expectations
        .iter()
        .filter(|judged| judged.verdict != Verdict::Passed)
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
    let found = |text: &str| {
        let mut all = report.expectations.iter();
        &all.find(|judged| judged.text == text).unwrap().found
    };
    assert!(found("paths exact").starts_with("a sample of "));
    let all = report.paths.found;
    let share = found("paths exact, 100 % of them");
    assert!(share.contains(&format!(" of {all} (")), "{share}");
}

#[test]
fn expectation_can_cover_a_part_of_the_run() {
    let script = "At(t_s: 0.5, run: Block(rect_tiles: (0, 0, 40, 40))), At(t_s: 1, run: Free(rect_tiles: (0, 0, 40, 40)))";
    let report = run_report(&yard(
        script,
        "NoObjectOnBlockedTile, After(t_s: 1.1, expect: NoObjectOnBlockedTile),
        Between(from_s: 0.5, until_s: 1, expect: NoObjectOnBlockedTile), Between(from_s: 0, until_s: 0.2, expect: NoObjectOnBlockedTile),
        Between(from_s: 0, until_s: 1, expect: Counter(name: \"clients.logins\", at_least: 10, at_most: 10)),
        After(t_s: 1, expect: Counter(name: \"clients.logins\", at_least: 1)),
        After(t_s: 1, expect: Counter(name: \"objects.players\", at_least: 10)),
        Counter(name: \"clients.logins\", at_least: 10.5), Between(from_s: 0.5, until_s: 1.5, expect: BytesPerClientUnder(1e9)),
        Between(from_s: 1.5, until_s: 1.9, expect: TicksUnderMs(ms: 1e9))",
    ));
    use Verdict::{Failed, Passed};
    let expected = [
        Failed, Passed, Failed, Passed, Passed, Failed, Passed, Failed, Passed, Passed, Passed,
    ];
    assert_eq!(verdicts(&report), expected, "{:#?}", report.expectations);
    let ticks = &report.expectations[9].found;
    assert!(ticks.starts_with("100.0 % of 8 ticks, "), "{ticks}");
}

#[test]
fn limits_of_matches_waits_and_ticks_are_exact() {
    // The party of two never finds a third player.
    let script = "At(t_s: 0.3, run: Queue(mode: \"q\", parties: 4, size: 3)), At(t_s: 0.3, run: Queue(mode: \"q\", parties: 1, size: 2))";
    let run = |expect: &str| {
        run_report(&yard(script, expect).replace(
            "Queue(mode: \"q\", parties: 0)",
            "Queue(mode: \"q\", parties: 0, settings: Groups(group_size: 3))",
        ))
    };
    let parties = run("").matchmaking;
    let (matches, wait_s) = (parties.matches, parties.waiting_for_s);
    assert!(matches > 0 && wait_s > parties.max_wait_s, "{parties:?}");
    let report = run(&format!(
        "MatchesAtLeast({matches}), MatchesAtLeast({}), WaitUnderS({wait_s:?}), WaitUnderS({:?}),
        TicksUnderMs(ms: 0, share: 0.001, warm_up_s: 0)",
        matches + 1,
        wait_s + 0.01
    ));
    use Verdict::{Failed, Passed};
    // 0.1 % of 40 ticks is rounded to one tick. The last expectation is that no cue failed.
    let expected = [Passed, Failed, Failed, Passed, Failed, Passed];
    assert_eq!(verdicts(&report), expected, "{:#?}", report.expectations);
}

#[test]
fn wall_time_is_checked_on_request_only() {
    let folder = TempFolder::new();
    // Every tick takes more than 0 ms.
    let expect = "TickP99UnderMs(0), SetP99UnderMs(View, 0), Counter(name: \"tick_ms.max\", at_most: 0), After(t_s: 1.5, expect: TickP99UnderMs(0))";
    let slow = folder.write("slow.ron", yard("", expect));
    let output = run_throng(&["run", &slow]);
    assert_eq!(output.code, 0, "{}", output.err);
    let expected = "slow machine: tick p99 under 0 ms: 0.0 % of 20 ticks";
    assert!(output.out.contains(expected), "{}", output.out);
    assert!(
        output
            .out
            .contains("start-up    20 ticks, not counted above: mean "),
        "{}",
        output.out
    );
    let judged = run_throng(&["run", &slow, "--check-timing", "--json"]);
    let verdict = |json: &Value, nth: usize| json["expectations"][nth]["verdict"].clone();
    assert_eq!(judged.code, 1);
    let json = judged.json();
    assert!(
        (0..4).all(|nth| verdict(&json, nth) == "failed"),
        "{json:#}"
    );
    assert_eq!(json["start_up"]["ticks"], 20);
    let firm = folder.write("firm.ron", yard("", "TicksUnderMs(ms: 0)"));
    assert_eq!(run_throng(&["run", &firm]).code, 1);
    let shown = run_throng(&["run", &firm, "--no-timing", "--json"]);
    assert_eq!(
        (shown.code, verdict(&shown.json(), 0)),
        (0, "slow_machine".into())
    );
    assert_eq!(
        run_throng(&["run", &firm, "--no-timing", "--check-timing"]).code,
        2
    );
    // With a share of 0 no tick has to be below the limit.
    let part = folder.write("part.ron", yard("", "TicksUnderMs(ms: 0, share: 0)"));
    assert_eq!(run_throng(&["run", &part]).code, 0);
}

#[test]
fn quiet_run_prints_failures_only() {
    let folder = TempFolder::new();
    let script = "At(t_s: 1, run: Login(tag: \"people\"))";
    let bad = folder.write("bad.ron", yard(script, "MatchesAtLeast(3), MirrorsEqual"));
    let output = run_throng(&["run", "-q", &bad]);
    assert_eq!((output.code, output.out.as_str()), (1, ""));
    let lines: Vec<&str> = output.err.lines().collect();
    let expected = [
        "script error  ",
        "not exercised: at least 3 matches: no party queued",
        "BROKEN  no script errors: 1 error,",
    ];
    assert_eq!(lines.len(), expected.len(), "{}", output.err);
    for (line, start) in lines.iter().zip(expected) {
        assert!(line.starts_with(start), "{}", output.err);
    }
    let good = folder.write("good.ron", yard("", "MirrorsEqual"));
    let output = run_throng(&["run", "-q", &good]);
    assert_eq!((output.code, output.out + &output.err), (0, String::new()));
}

#[test]
fn logins_and_logouts_are_counted_by_tag() {
    let text = yard(
        "At(t_s: 1, run: Logout(tag: \"people\", count: 5)), At(t_s: 1.5, run: Login(tag: \"people\", count: 3))",
        "",
    );
    // Four crowds share a tag; the first one has too few objects.
    let crowd = |count| format!("Crowd(tag: \"people\", kind: \"player\", count: {count})");
    let more = [crowd(2), crowd(9), crowd(9)].join(", ");
    let report = run_report(&text.replace("crowds: [", &format!("crowds: [{more}, ")));
    assert_eq!((report.clients.logouts, report.clients.logins), (5, 33));
    assert_eq!(report.objects.players, 28);
    assert!(report.is_ok(), "{:#?}", report.script_errors);
}

#[test]
fn edits_on_a_replacement_map_are_scaled_like_areas() {
    let folder = TempFolder::new();
    let row = ".".repeat(80) + "\n";
    let map = folder.write(
        "large.map",
        format!("type octile\nheight 60\nwidth 80\nmap\n{}", row.repeat(60)),
    );
    let events = folder.path("events.jsonl");
    let paint = "At(t_s: 1, run: Paint(at_tile: (39, 20), rows: [\"@@\"]))";
    let scenario = folder.write("my.ron", yard("", ""));
    let output = run_throng(&["run", &scenario, "--map", &map, "--events", &events]);
    assert_eq!(output.code, 0, "{}{}", output.out, output.err);
    let lines = std::fs::read_to_string(&events).unwrap();
    let edit = lines
        .lines()
        .find(|line| line.contains("\"edit\""))
        .unwrap();
    let edit: Value = serde_json::from_str(edit).unwrap();
    // Twice as wide, and one and a half times as high.
    let place = ["x", "y", "w", "h"].map(|name| edit[name].as_u64().unwrap());
    assert_eq!(place, [20, 15, 8, 6]);
    // Tiles painted one by one keep their size, and are refused if they exceed the map.
    let narrow = folder.write(
        "narrow.map",
        format!(
            "type octile\nheight 40\nwidth 20\nmap\n{}",
            (".".repeat(20) + "\n").repeat(40)
        ),
    );
    let drawn = folder.write("drawn.ron", yard(&paint.replace("39", "38"), ""));
    let output = run_throng(&["run", &drawn, "--map", &narrow]);
    assert_eq!(output.code, 2, "{}", output.out);
    assert!(
        output
            .err
            .contains("within the 20 × 40 tiles of scene `a`, found (19, 20, 2, 1)"),
        "{}",
        output.err
    );
}

#[test]
fn report_names_the_blocked_end_of_a_path() {
    let mut run = start(
        scenario_of(&yard("", "")),
        RunConfig {
            ticks: 12,
            ..RunConfig::default()
        },
    );
    let world = run.server().world_mut();
    let (_, yard) = world.resource::<Scenes>().iter().next().unwrap();
    let open_field = open_scene(world, SceneSpec::default(), ()).unwrap();
    let kind = world.resource::<ObjectKinds>().find("npc").unwrap();
    // The yard's wall is built in tick 5.
    for _ in 0..8 {
        run.step().unwrap();
    }
    let world = run.server().world_mut();
    assert!(
        !world
            .get::<SceneMap>(yard)
            .unwrap()
            .is_free_at(Vec2::splat(6.0))
    );
    let mut ask = |scene, from: f32, to: f32| {
        let request = (Walker, PathRequest::to(Vec2::splat(to)));
        spawn_object(world, scene, kind, Vec2::splat(from), request).unwrap();
    };
    ask(yard, 1.0, 6.0);
    ask(yard, 2.0, 6.0);
    ask(yard, 6.0, 1.0);
    ask(open_field, 1.0, 2.0);
    ask(yard, 1.0, 1000.0);
    while run.step().unwrap() {}
    let paths = run.finish().unwrap().paths;
    assert_eq!((paths.blocked_at_goal, paths.blocked_at_start), (2, 1));
    assert_eq!((paths.blocked, paths.out_of_bounds), (3, 2));
    assert_eq!(paths.without_map, 1);
}

#[derive(Component, Replicate)]
#[replicate(id = 200, encoding = Encoding::U8)]
struct Gold(u32);

#[test]
fn values_that_do_not_fit_their_encoding_are_counted() {
    for (gold, clamped) in [(255, 0), (256, 1)] {
        let register = |app: &mut App, _| {
            app.replicate::<Gold>();
        };
        let mut run = start(
            scenario_of(&yard("", "")),
            RunConfig {
                ticks: 30,
                configure: Some(register),
                ..RunConfig::default()
            },
        );
        for _ in 0..5 {
            run.step().unwrap();
        }
        let world = run.server().world_mut();
        let rat = throng_scenario::crowd::members(world, "rats", Some(1))[0];
        world.entity_mut(rat).insert(Gold(gold));
        while run.step().unwrap() {}
        let report = run.finish().unwrap();
        assert_eq!(report.sync.attributes_clamped, clamped, "{gold}");
    }
}

/// Three errors, in lines 2 to 4, and their messages.
const WRONG: [(&str, &str); 3] = [
    ("tick_hz: 0,", "expected tick_hz from 1 to 1000"),
    ("scenes: [Scene(name: \"a\", cell_m: 0)],", "cell_m from 1"),
    (
        "expect: [Counter(name: \"path.found\", at_least: 1)],",
        "unknown counter `path.found`, did you mean `paths.found`?",
    ),
];

#[test]
fn all_errors_of_a_scenario_are_reported_at_once() {
    let folder = TempFolder::new();
    let lines = WRONG.map(|(line, _)| line).join("\n");
    let file = folder.write("wrong.ron", format!("Scenario(name: \"x\",\n{lines}\n)"));
    for command in ["check", "run"] {
        let output = run_throng(&[command, &file]);
        assert_eq!((output.code, output.out.as_str()), (2, ""), "{command}");
        assert_eq!(output.err.matches("error: ").count(), 3, "{}", output.err);
        for (nth, (_, words)) in WRONG.into_iter().enumerate() {
            assert!(output.err.contains(words), "{command}: {}", output.err);
            let place = format!("{file}:{}:", nth + 2);
            assert!(output.err.contains(&place), "{command}: {}", output.err);
        }
    }
    // Errors of maps are reported together as well.
    let maps = "Scenario(name: \"x\",\nscenes: [Scene(name: \"a\", map: File(\"one.map\")),\nScene(name: \"b\", map: File(\"two.map\"))])";
    let output = run_throng(&["check", &folder.write("maps.ron", maps)]);
    assert_eq!(output.err.matches("error: ").count(), 2, "{}", output.err);
}

#[test]
fn strict_turns_warnings_into_errors() {
    let folder = TempFolder::new();
    let doubtful = yard("At(t_s: 7, run: Despawn(tag: \"rats\"))", "PathsExact").replace(
        "Crowd(tag: \"rats\", count: 5)",
        "Crowd(tag: \"rats\", count: 5, client_share: 1, at: Point(center_m: (99, 5)))",
    );
    let file = folder.write("doubtful.ron", doubtful);
    let words = [
        "`client_share` has no effect: a `npc` is not a player",
        "this cue never runs: the scenario ends at 2 s, found 7",
        "nothing can exercise this expectation: no object walks",
        "expected an area within the 20 m × 20 m of scene `a`, found one from (99, 5) to (99, 5)",
    ];
    for (arguments, code, kind) in [
        (&["check", &file][..], 0, "warning: "),
        (&["check", "--strict", &file], 2, "error: "),
        (&["check", "--strict", "-q", &file], 2, "error: "),
        (&["run", &file], 1, "warning: "),
        (&["run", "--strict", &file], 2, "error: "),
        (&["run", "--strict", "--quiet", &file], 2, "error: "),
    ] {
        let result = run_throng(arguments);
        assert_eq!(result.code, code, "{arguments:?}: {}", result.err);
        assert_eq!(
            result.err.matches(kind).count(),
            4,
            "{arguments:?}: {}",
            result.err
        );
        for words in words {
            let line = format!("{kind}{words}");
            assert!(result.err.contains(&line), "{arguments:?}: {}", result.err);
        }
    }
    let sound = folder.write("sound.ron", yard("", ""));
    assert_eq!(run_throng(&["check", "--strict", &sound]).code, 0);
    // A run that does not start keeps the content of an existing output.
    let events = folder.write("events.jsonl", "kept");
    run_throng(&["run", "--strict", &file, "--events", &events]);
    assert_eq!(std::fs::read_to_string(&events).unwrap(), "kept");
}

#[test]
fn run_interrupted_at_its_end_checks_nothing() {
    let whole = |expect: &str, ticks: u64| {
        let mut run = start(
            scenario_of(&yard("", expect)),
            RunConfig {
                ticks: 40,
                ..RunConfig::default()
            },
        );
        for _ in 0..ticks {
            run.step().unwrap();
        }
        run.finish_unless(|| true).unwrap()
    };
    for ticks in [40, 7] {
        let report = whole("ViewsStable", ticks);
        assert_eq!(report.interrupted, Some(ticks));
        assert_eq!(verdicts(&report), [Verdict::NotChecked]);
        assert!(!report.is_ok());
    }
    // Without expectations the run need not come to rest.
    assert_eq!(whole("", 40).interrupted, None);
}
