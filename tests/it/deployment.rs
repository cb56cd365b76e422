//! Promise: a server starts with the arguments of each file in `deploy/`, and is given longer to stop than its drain lasts.
#![cfg(unix)]

use std::fs;

use crate::harness::{ProgramOutput, TempFolder, program, root, run_throng};

/// A small scenario, which starts fast.
const YARD: &str = r#"Scenario(name: "yard", seed: 9, duration_s: 20, settings: (overload: (measure: Off)),
    scenes: [Scene(name: "yard", map: Generate(Random(width_tiles: 40, height_tiles: 40, fill: 0)))],
    crowds: [Crowd(tag: "people", kind: "player", count: 2)])"#;

fn read(name: &str) -> String {
    fs::read_to_string(root().join("deploy").join(name)).unwrap()
}

/// The arguments in a file of YAML, as a list after `key`.
fn listed(text: &str, key: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    let after = lines.skip_while(|line| *line != key).skip(1);
    let items = after.map_while(|line| line.strip_prefix("- "));
    items.map(str::to_owned).collect()
}

/// The arguments of the command of a unit.
fn command_of(unit: &str) -> Vec<String> {
    let joined = unit.replace("\\\n", " ");
    let command = joined
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    let words = command.expect("a command").split_whitespace();
    words.skip(1).map(str::to_owned).collect()
}

/// The arguments of the server in each file.
fn servers() -> [(&'static str, Vec<String>); 3] {
    [
        ("throng.service", command_of(&read("throng.service"))),
        ("compose.yaml", listed(&read("compose.yaml"), "command:")),
        ("agones.yaml", listed(&read("agones.yaml"), "args:")),
    ]
}

/// The value of an option, as `--option=value` or in the next argument.
fn value_of<'a>(arguments: &'a [String], option: &str) -> &'a str {
    let is_it = |it: &String| it.split('=').next() == Some(option);
    let at = arguments.iter().position(is_it);
    let at = at.unwrap_or_else(|| panic!("no {option} in {arguments:?}"));
    let joined = arguments[at].strip_prefix(&format!("{option}="));
    joined.unwrap_or_else(|| arguments[at + 1].as_str())
}

fn seconds(text: &str) -> u32 {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "s" => 1,
        "m" | "min" => 60,
        other => panic!("unit {other}"),
    };
    digits.parse::<u32>().unwrap() * unit
}

/// The value after `key` in a file.
fn field(text: &str, key: &str) -> String {
    let found = text.lines().find_map(|line| line.trim().strip_prefix(key));
    found
        .unwrap_or_else(|| panic!("no {key}"))
        .trim()
        .to_owned()
}

#[test]
fn server_starts_with_the_arguments_of_each_file() {
    let folder = TempFolder::new();
    let (yard, key) = (folder.write("yard.ron", YARD), folder.path("server.key"));
    assert_eq!(run_throng(&["token", "--new-key", &key]).code, 0);
    for (file, arguments) in servers() {
        let mut arguments: Vec<String> = arguments
            .iter()
            // It waits for the sidecar of Agones.
            .filter(|argument| *argument != "--agones")
            .map(|argument| {
                let (option, value) = argument.split_once('=').unwrap_or(("", argument));
                let here = match value {
                    "town" | "${THRONG_SCENARIO}" | "${THRONG_SCENARIO:-town}" => yard.clone(),
                    value if value.starts_with("${THRONG_PUBLIC") => "203.0.113.5:7000".to_owned(),
                    value if value.ends_with("/server.key") => key.clone(),
                    "$(POD_NAME)" => "pod-1".to_owned(),
                    value if value.ends_with(":7000") || value.ends_with(":9100") => {
                        "127.0.0.1:0".to_owned()
                    }
                    value => value.to_owned(),
                };
                if option.is_empty() {
                    here
                } else {
                    format!("{option}={here}")
                }
            })
            .collect();
        arguments.extend(["--duration", "0.2s", "--json"].map(str::to_owned));
        assert!(arguments.len() > 9, "{file}: {arguments:?}");
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let store = folder.path(&format!("{file}.db"));
        let mut server = program(&arguments);
        let output = server.env("THRONG_STORE", store).output();
        let output = ProgramOutput::from(output.expect("the program starts"));
        assert_eq!(output.code, 0, "{file}: {arguments:?} {}", output.err);
        let report = output.out.lines().last().unwrap_or_default();
        assert!(report.contains("\"admitted\":0"), "{file}: {}", output.out);
    }
}

#[test]
fn servers_have_longer_to_stop_than_their_drain_lasts() {
    let fields = [
        "TimeoutStopSec=",
        "stop_grace_period:",
        "terminationGracePeriodSeconds:",
    ];
    for ((file, arguments), key) in servers().into_iter().zip(fields) {
        let drain = seconds(value_of(&arguments, "--drain-lead"))
            + seconds(value_of(&arguments, "--drain"));
        let text = field(&read(file), key);
        let unit = if text.ends_with(char::is_numeric) {
            "s"
        } else {
            ""
        };
        // To save all players takes up to 30 seconds.
        let stop = seconds(&format!("{text}{unit}"));
        assert!(stop >= drain + 30, "{file}: {stop} s, drain {drain} s");
    }
}
