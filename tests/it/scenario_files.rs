//! Promise: a scenario may consist of several files and parameters, and errors have the location of the wrong text in any of the files.

use throng_scenario::{self as scenario, BUILT_IN, MapSource};

use crate::harness::{TempFolder, run_throng, run_throng_with_input, scenario_of};

const BASE: &str = r#"Scenario(name: "base", seed: 9, duration_s: 2, tick_hz: 10,
    parameters: {"players": 20, "cap": 5, "speed": 1.5, "kind_of_crowd": "npc"},
    scenes: [Scene(name: "field", map: File("field.map"), view_cap: cap)],
    crowds: [Crowd(tag: "players", kind: kind_of_crowd, count: players, speed_m_s: speed,
        behaviour: Wander(radius_m: speed))],
    expect: [ViewsWithinCap])"#;

const MAP: &str = "type octile\nheight 2\nwidth 3\nmap\n...\n...\n";

fn base() -> (TempFolder, String) {
    let folder = TempFolder::new();
    std::fs::create_dir(folder.path("parts")).expect("a new folder");
    folder.write("parts/field.map", MAP);
    let base = folder.write("parts/base.ron", BASE);
    (folder, base)
}

#[test]
fn parameters_replace_values_and_can_be_set() {
    let (_folder, base) = base();
    let plain = scenario::load(&base).unwrap();
    let crowd = &plain.scenario.crowds[0];
    assert_eq!(
        (crowd.count, crowd.kind.as_str(), crowd.speed_m_s),
        (20, "npc", 1.5)
    );
    assert_eq!(crowd.behaviour.text(), "Wander(radius_m: 1.5)");
    assert_eq!(crowd.tag, "players", "a string is not a parameter");
    let set = [("players", "7"), ("kind_of_crowd", "pet")];
    let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let other = scenario::load_with(&base, &set).unwrap();
    assert_eq!(
        (
            other.scenario.crowds[0].count,
            &*other.scenario.crowds[0].kind
        ),
        (7, "pet")
    );
    let shown: Vec<String> = other
        .sources
        .parameters()
        .iter()
        .map(|known| format!("{} = {}", known.name, known.value))
        .collect();
    let expected = [
        "players = 7",
        "cap = 5",
        "speed = 1.5",
        "kind_of_crowd = \"pet\"",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn unknown_or_mistyped_parameter_is_reported() {
    let (_folder, base) = base();
    for (set, message) in [
        (
            "plyers=7",
            "unknown parameter `plyers`, did you mean `players`?",
        ),
        (
            "players=many",
            "expected a number for the parameter `players`, found `many`",
        ),
        (
            "players=7.5",
            "expected a whole number for `count`, found `7.5`",
        ),
        ("players=-7", "expected 0 or more for `count`, found `-7`"),
        (
            "players=9999999",
            "expected crowds[0].count from 0 to 1048576, found 9999999",
        ),
        ("kind_of_crowd=wlof", "unknown kind `wlof`"),
        (
            "speed=-1",
            "expected crowds[0].behaviour.radius_m from 0 to 1000000 metres, found -1",
        ),
        ("players", "expected a name and a value, such as count=5000"),
    ] {
        for command in ["run", "check"] {
            let found = run_throng(&[command, &base, "--set", set]);
            assert_eq!(found.code, 2, "{set}: {}", found.err);
            assert!(found.err.contains(message), "{set}: {}", found.err);
        }
    }
    // The location is that of the parameter name in the file.
    let found = run_throng(&["check", &base, "--set", "players=9999999"]);
    assert!(
        found.err.contains(&format!("--> {base}:4:64\n")),
        "{}",
        found.err
    );
    assert!(found.err.contains("^^^^^^^"), "{}", found.err);
    let unknown = run_throng_with_input(
        &["check", "-"],
        "Scenario(name: \"x\", parameters: {\"count\": 5},\n duration_s: cuont)",
    );
    assert!(
        unknown
            .err
            .contains("unknown parameter `cuont`, did you mean `count`?")
    );
    assert!(
        unknown.err.contains("--> standard input:2:14\n"),
        "{}",
        unknown.err
    );
    for bad in ["\"Count\": 5", "\"true\": 5", "5: 5"] {
        let text = format!("Scenario(name: \"x\",\n parameters: {{{bad}}})");
        let found = run_throng_with_input(&["check", "-"], &text);
        assert_eq!(found.code, 2, "{bad}");
        assert!(
            found.err.contains("standard input:2:15\n"),
            "{bad}: {}",
            found.err
        );
        assert!(
            found.err.contains("expected a name in quotes"),
            "{bad}: {}",
            found.err
        );
    }
}

#[test]
fn errors_after_a_long_parameter_value_are_located() {
    let text = "Scenario(name: \"x\", parameters: {\"n\": 123456789}, seed: n, scenes: [Scene(name: \"a\")],\n\
                crowds: [Crowd(count: 1, behaviour: Wander(radius_m: n, wide: 4))])";
    let error = scenario_of(text)
        .check(&[], &scenario::Behaviours::default())
        .unwrap_err();
    let mistake = error.source_error().unwrap();
    let span = mistake.span.offset()..mistake.span.offset() + mistake.span.len();
    assert_eq!((mistake.line, mistake.column, &text[span]), (2, 57, "wide"));
    let broken =
        scenario::parse("x.ron", &text.replace("count: 1,", "count: 1 count: 2,")).unwrap_err();
    let mistake = broken.source_error().unwrap();
    assert_eq!((mistake.line, mistake.column), (2, 25), "{mistake}");
}

#[test]
fn included_lists_come_first_and_own_fields_override() {
    let (folder, _) = base();
    folder.write("more.ron", r#"Scenario(seed: 10, kinds: [ObjectKind(name: "wolf")], crowds: [Crowd(tag: "wolves", kind: "wolf")])"#);
    let whole = folder.write(
        "whole.ron",
        r#"Scenario(name: "whole", include: ["parts/base.ron", "more.ron"], parameters: {"players": 30},
            crowds: [Crowd(tag: "guests", count: players)], expect: [TicketsConserved])"#,
    );
    let loaded = scenario::load(&whole).unwrap();
    let whole_scenario = &loaded.scenario;
    let crowds: Vec<(&str, u32)> = whole_scenario
        .crowds
        .iter()
        .map(|crowd| (&*crowd.tag, crowd.count))
        .collect();
    assert_eq!(crowds, [("players", 30), ("wolves", 1), ("guests", 30)]);
    assert_eq!(
        (whole_scenario.name.as_str(), whole_scenario.seed),
        ("whole", 10)
    );
    assert_eq!(
        (whole_scenario.tick_hz, whole_scenario.duration_s),
        (10.0, 2.0)
    );
    assert_eq!(whole_scenario.expect.len(), 2);
    let MapSource::File(map) = &whole_scenario.scenes[0].map else {
        panic!("the map is a file");
    };
    assert!(
        map.ends_with("parts/field.map") && map.is_file(),
        "{}",
        map.display()
    );
    let set = [("players".to_owned(), "40".to_owned())];
    let set = scenario::load_with(&whole, &set).unwrap();
    assert_eq!(
        (set.scenario.crowds[0].count, set.scenario.crowds[2].count),
        (40, 40)
    );
    let found = run_throng(&[
        "run",
        &whole,
        "--set",
        "players=3",
        "--set",
        "kind_of_crowd=player",
        "--quiet",
    ]);
    assert_eq!((found.code, found.err.as_str()), (0, ""));
}

#[test]
fn errors_in_an_included_file_point_into_that_file() {
    let (folder, base) = base();
    let first = "Scenario(crowds: [Crowd(tag: \"a\"), Crowd(tag: \"b\",\n kind: \"wlof\")])";
    let first = folder.write("parts/first.ron", first);
    let broken = folder.write("parts/broken.ron", "Scenario(\n crwods: [])");
    for (includes, own, place, message) in [
        (
            "\"parts/base.ron\", \"parts/first.ron\"",
            "",
            format!("{first}:2:8"),
            "unknown kind `wlof`",
        ),
        (
            "\"parts/base.ron\"",
            "crowds: [Crowd(kind: \"wlof\")]",
            "WHOLE:2:23".into(),
            "unknown kind `wlof`",
        ),
        (
            "\"parts/base.ron\"",
            "parameters: {\"players\": 2000000}",
            format!("{base}:4:64"),
            "found 2000000",
        ),
        (
            "\"parts/broken.ron\"",
            "",
            format!("{broken}:2:2"),
            "did you mean `crowds`?",
        ),
        (
            "\"parts/none.ron\"",
            "",
            "WHOLE:1:20".into(),
            "expected a file beside this one",
        ),
        (
            "\"whole.ron\"",
            "",
            "WHOLE:1:20".into(),
            "includes this file",
        ),
    ] {
        let whole = folder.write(
            "whole.ron",
            format!("Scenario(include: [{includes}],\n {own})"),
        );
        let found = run_throng(&["check", &whole]);
        let place = format!("--> {}\n", place.replace("WHOLE", &whole));
        assert_eq!(found.code, 2, "{includes}: {}", found.err);
        assert!(
            found.err.contains(&place),
            "{includes}, expected {place}: {}",
            found.err
        );
        assert!(found.err.contains(message), "{includes}: {}", found.err);
    }
}

#[test]
fn include_cycles_are_refused() {
    let folder = TempFolder::new();
    let there = folder.write("there.ron", "Scenario(include: [\"back.ron\"])");
    folder.write("back.ron", "Scenario(include: [\"./there.ron\"])");
    let found = run_throng(&["check", &there]);
    assert_eq!(found.code, 2);
    assert!(
        found
            .err
            .contains("includes this file, directly or indirectly"),
        "{}",
        found.err
    );
    for nth in 0..40 {
        folder.write(
            &format!("{nth}.ron"),
            format!("Scenario(include: [\"{}.ron\"])", nth + 1),
        );
    }
    folder.write("40.ron", "Scenario(name: \"deep\")");
    let found = run_throng(&["check", &folder.path("0.ron")]);
    assert!(found.err.contains("at most 16 files"), "{}", found.err);
    assert_eq!(run_throng(&["check", &folder.path("30.ron")]).code, 0);
    // A value that would exhaust the memory if it were repeated a million times.
    let long = "1".repeat(1 << 20);
    let text = format!(
        "Scenario(name: \"x\", parameters: {{\"a\": {long}}}, seed: [{}])",
        "a,".repeat(1 << 20)
    );
    let found = run_throng(&["check", &folder.write("long.ron", text)]);
    assert!(
        found.err.contains("expected at most 4194304"),
        "{}",
        found.err
    );
}

#[test]
fn built_in_scenario_can_be_varied_in_one_line() {
    let folder = TempFolder::new();
    let file = folder.write(
        "small.ron",
        "Scenario(name: \"small\", include: [\"royale\"], parameters: {\"matches\": 2, \"players_each\": 30}, duration_s: 2)",
    );
    let found = run_throng(&["run", &file, "--threads", "1", "--json"]);
    assert_eq!(found.code, 0, "{}", found.err);
    assert!(found.out.contains("\"scenario\": \"small\"") && found.out.contains("\"players\": 60"));
}

#[test]
fn scenario_is_read_from_standard_input() {
    let output = run_throng_with_input(
        &["run", "-", "--json"],
        "Scenario(name: \"piped\", duration_s: 0.1)",
    );
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(output.out.contains("\"scenario\": \"piped\""));
    let output = run_throng_with_input(
        &["check", "-"],
        "Scenario(name: \"piped\", duration_s: 0.1)",
    );
    assert!(
        output.out.starts_with("-: ok, scenario `piped`"),
        "{}",
        output.out
    );
}

#[test]
fn built_in_scenarios_are_listed_and_the_template_runs() {
    let list = run_throng(&["scenario", "list"]);
    assert_eq!(list.code, 0);
    assert!(list.out.lines().all(|line| line.chars().count() <= 80));
    for built_in in BUILT_IN {
        let name = built_in.name;
        assert!(
            list.out
                .lines()
                .any(|line| line.starts_with(&format!("{name} "))),
            "{name}"
        );
        assert_eq!(
            run_throng(&["scenario", "show", name]).out.trim(),
            built_in.text.trim()
        );
    }
    assert!(
        run_throng(&["scenario", "show", "rayd"])
            .err
            .contains("did you mean `raid`?")
    );
    let folder = TempFolder::new();
    let file = folder.path("my.ron");
    assert_eq!(run_throng(&["scenario", "new", &file]).code, 0);
    assert_eq!(
        run_throng(&["scenario", "new"]).out,
        std::fs::read_to_string(&file).unwrap()
    );
    let again = run_throng(&["scenario", "new", &file]);
    assert_eq!(again.code, 2, "an existing file is not overwritten");
    assert!(again.err.contains(&file));
    let run = run_throng(&["run", &file, "--set", "people=40", "--threads", "1"]);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
}

#[test]
fn output_does_not_overwrite_an_included_file() {
    let (folder, base) = base();
    let whole = folder.write("whole.ron", "Scenario(include: [\"parts/base.ron\"])");
    let found = run_throng(&["run", &whole, "--ticks", "1", "--hashes", &base]);
    assert_eq!(found.code, 2);
    assert!(
        found.err.contains("a file of the scenario"),
        "{}",
        found.err
    );
    assert_eq!(std::fs::read_to_string(&base).unwrap(), BASE);
}
