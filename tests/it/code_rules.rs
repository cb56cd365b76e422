//! Code rules that a compiler does not check: what stays free of the ECS, file lengths, and where the outside world is accessed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::root;

/// The longest source file, in lines.
const LINES_MAX: usize = 700;

/// The longest function, in lines.
const FUNCTION_LINES_MAX: usize = 80;

/// The longest name of a function, tests included, in characters.
const NAME_CHARACTERS_MAX: usize = 60;

/// Functions that are tables: a case a line or two, and no logic between them.
const TABLES: [&str; 1] = ["non_finite_and_out_of_range_numbers_are_refused"];

/// Folders, files and packages that are about the ECS as a whole; elsewhere `plugin.rs` alone is.
const OF_THE_ECS: [&str; 10] = [
    "sim",
    "world",
    "session",
    "server",
    "diagnostics",
    "prelude",
    "lib",
    "net",
    "throng_cli",
    "throng_scenario",
];

/// Where a clock may be read.
const CLOCKS: [&str; 5] = [
    "throng_core/clock.rs",
    "throng_nav/map/io.rs",
    "throng_client/",
    "throng_net/outbox/",
    "throng_cli/",
];

/// Where files may be opened.
const FILES: [&str; 14] = [
    "store/plugin/tests/store_faults.rs",
    "throng_core/memory/os.rs",
    "throng_nav/map/io.rs",
    "throng_net/http/",
    "throng_net/udp/",
    "throng_net/web/",
    "throng_net/outbox/",
    "throng_store/postgres/tests.rs",
    "throng_store/sqlite/",
    "throng_cli/",
    "throng_inspect/admin/",
    "throng_inspect/http_listener.rs",
    "throng_inspect/server/",
    "throng_scenario/scenario/read.rs",
];

/// A file below `src` of a package.
#[derive(Clone)]
pub(crate) struct Source {
    /// With slashes, from `src` on; in a package below `crates`, behind its name.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.into(),
            text: text.into(),
        }
    }

    /// The package, or the folder or file of `throng`, that it belongs to.
    fn module_path(&self) -> &str {
        let first = self.path.split('/').next().unwrap_or_default();
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// Its lines and their numbers, without comments.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self
            .text
            .lines()
            .enumerate()
            .map(|(nth, line)| (nth + 1, line));
        lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// Its code up to the unit tests at its end.
    pub(crate) fn code_without_tests(&self) -> impl Iterator<Item = (usize, &str)> {
        let begins = |line: &str| line.trim_end().ends_with("mod tests {");
        self.code().take_while(move |(_, line)| !begins(line))
    }
}

fn sources_in(folder: &Path) -> Vec<Source> {
    fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("target") {
                // Packages of their own build there.
                continue;
            }
            if path.is_dir() {
                collect(&path, into);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                into.push(path);
            }
        }
    }
    let mut paths = Vec::new();
    collect(folder, &mut paths);
    paths.sort();
    let source = |path: &PathBuf| Source {
        path: path
            .strip_prefix(folder)
            .unwrap()
            .to_string_lossy()
            .replace('\\', "/"),
        text: fs::read_to_string(path).unwrap(),
    };
    paths.iter().map(source).collect()
}

pub(crate) fn sources() -> Vec<Source> {
    let mut sources = sources_in(&root().join("src"));
    for package in fs::read_dir(root().join("crates")).unwrap() {
        let package = package.unwrap();
        let name = package.file_name().into_string().unwrap();
        let inside = sources_in(&package.path().join("src")).into_iter();
        sources.extend(inside.map(|source| Source {
            path: format!("{name}/{}", source.path),
            ..source
        }));
    }
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(
        sources.len() > 50,
        "the sources are not where they are looked for"
    );
    sources
}

pub(crate) fn assert_none(faults: Vec<String>) {
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn allowed_paths_exist() {
    let sources = sources();
    let is_there = |home: &&&str| sources.iter().any(|source| source.path.starts_with(**home));
    let homes = CLOCKS.iter().chain(&FILES);
    let mut faults: Vec<&str> = homes.filter(|home| !is_there(home)).copied().collect();
    let is_home = |name: &&&str| sources.iter().any(|source| source.module_path() == **name);
    faults.extend(OF_THE_ECS.iter().filter(|name| !is_home(name)));
    assert_none(faults.into_iter().map(str::to_owned).collect());
}

#[test]
fn paths_do_not_climb_two_modules() {
    // A module of tests is one level down and may do so.
    let mut faults = Vec::new();
    for source in sources() {
        let climbs = source
            .code_without_tests()
            .filter(|(_, line)| line.contains("super::super::"));
        faults
            .extend(climbs.map(|(nth, _)| format!("{}:{nth} climbs by super::super", source.path)));
    }
    assert_none(faults);
}

/// Crates that cannot import the ECS, unless their feature `bevy` or `reflect` is on: Cargo checks that.
const WITHOUT_ECS: [&str; 8] = [
    "throng_aoi",
    "throng_cluster",
    "throng_core",
    "throng_matchmaking",
    "throng_nav",
    "throng_net",
    "throng_protocol",
    "throng_store",
];

/// Whether a file is an algorithm, which knows nothing of the ECS.
pub(crate) fn is_algorithm(source: &Source) -> bool {
    if WITHOUT_ECS.contains(&source.module_path()) {
        return false;
    }
    let file = source.path.rsplit('/').next().unwrap_or_default();
    // A large plugin has a folder for its parts. Tests may be folders, too, and so may the models that they compare with.
    let beside = |folder| source.path.contains(folder);
    let of_tests = beside("/tests/") || beside("/model/");
    let of_plugin = file == "plugin.rs" || beside("/plugin/") || of_tests;
    !of_plugin && !OF_THE_ECS.contains(&source.module_path())
}

#[test]
fn algorithms_import_no_ecs() {
    let (mut faults, mut checked) = (Vec::new(), 0);
    for source in sources().iter().filter(|source| is_algorithm(source)) {
        checked += 1;
        let named = source
            .code_without_tests()
            .filter(|(_, line)| line.contains("bevy_"));
        faults.extend(named.map(|(nth, line)| format!("{}:{nth}: {}", source.path, line.trim())));
    }
    assert!(checked > 30, "{checked} files are algorithms");
    assert_none(faults);
}

#[test]
fn files_are_not_too_long() {
    let folders =
        ["src", "crates", "tests", "benches", "examples"].map(|folder| root().join(folder));
    let sources = folders
        .iter()
        .filter(|folder| folder.is_dir())
        .flat_map(|folder| sources_in(folder));
    let lengths = sources.map(|source| (source.path.clone(), source.text.lines().count()));
    assert_none(
        lengths
            .filter(|(_, lines)| *lines > LINES_MAX)
            .map(|(path, lines)| format!("{path}: {lines}"))
            .collect(),
    );
}

/// The functions of a file, formatted as rustfmt does: name, first line, number of lines.
fn functions(text: &str) -> Vec<(String, usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (nth, line) in lines.iter().enumerate() {
        let start = line.trim_start();
        let indent = line.len() - start.len();
        let words = start.split([' ', '(', '<']);
        let mut head = words.skip_while(|word| {
            // Of `pub(in crate::crowd)` the words are `pub`, `in` and `crate::crowd)`.
            ["pub", "const", "in", "async", "unsafe"].contains(word) || word.ends_with(')')
        });
        if head.next() != Some("fn") || start.ends_with(';') || start.starts_with("//") {
            continue;
        }
        let closes = format!("{}}}", " ".repeat(indent));
        let length = lines[nth..].iter().position(|line| *line == closes);
        let name = head.next().unwrap_or_default().to_owned();
        found.extend(length.map(|length| (name, nth + 1, length + 1)));
    }
    found
}

#[test]
fn functions_fit_a_screen_and_their_names_a_line() {
    let (mut faults, mut checked) = (Vec::new(), 0);
    for folder in ["src", "crates", "tests", "benches", "examples"] {
        for source in sources_in(&root().join(folder)) {
            for (name, line, lines) in functions(&source.text) {
                checked += 1;
                if lines > FUNCTION_LINES_MAX && !TABLES.contains(&name.as_str()) {
                    faults.push(format!(
                        "{folder}/{}:{line}: {name} has {lines}",
                        source.path
                    ));
                }
                if name.len() > NAME_CHARACTERS_MAX {
                    faults.push(format!("{folder}/{}:{line}: {name} is long", source.path));
                }
            }
        }
    }
    assert!(checked > 3_000, "{checked} functions are seen");
    assert_none(faults);
}

/// The types that a line declares, at the level of a module.
fn declared(line: &str) -> Option<&str> {
    let mut words = line.split([' ', '<', '(', '{', ';', ':']);
    let mut words = words.by_ref().filter(|word| !word.is_empty());
    let first = words.find(|word| {
        !word.starts_with("pub") && !["in", "crate"].contains(word) && !word.ends_with(')')
    })?;
    let is_declaration =
        ["struct", "enum", "trait", "type", "union"].contains(&first) && !line.starts_with(' ');
    words.next().filter(|_| is_declaration)
}

/// Each name of a type that stands for more than one thing, with its files.
fn ambiguous(sources: &[Source]) -> Vec<String> {
    let mut homes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in sources {
        for (_, line) in source.code_without_tests() {
            if let Some(name) = declared(line) {
                homes.entry(name).or_default().insert(&source.path);
            }
        }
    }
    homes
        .into_iter()
        .filter(|(_, files)| files.len() > 1)
        .map(|(name, files)| format!("{name}: {files:?}"))
        .collect()
}

#[test]
fn type_names_are_unique() {
    let twice = [
        Source::new(
            "a/one.rs",
            "pub(in crate::a) struct Place<T>(T);\nenum Other {}",
        ),
        Source::new("b/two.rs", "trait Place {\n    type Other;\n}"),
    ];
    assert_eq!(ambiguous(&twice), ["Place: {\"a/one.rs\", \"b/two.rs\"}"]);
    assert_none(ambiguous(&sources()));
}

/// The kinds of public types that a game spawns, reads or fills in: each has an example in its documentation.
fn needs_example(attributes: &str, name: &str) -> bool {
    let derives = ["Component", "Message", "EntityEvent", "Event"];
    let mut words = attributes.split(|c: char| !c.is_alphanumeric());
    // Settings in ticks are computed from those that a game fills in.
    let is_settings = name.ends_with("Settings") && !name.ends_with("TickSettings");
    is_settings || name.ends_with("Spec") || words.any(|word| derives.contains(&word))
}

/// Public components, messages and settings whose documentation has no example.
fn without_example(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for source in sources {
        let (mut attributes, mut has_example) = (String::new(), false);
        for (nth, line) in source.text.lines().enumerate() {
            let rest = ["pub struct ", "pub enum "].into_iter();
            let name = rest.filter_map(|start| line.strip_prefix(start)).next();
            if let Some(rest) = name {
                let name = rest.split(|c: char| !c.is_alphanumeric()).next();
                let name = name.unwrap_or_default();
                if !has_example && needs_example(&attributes, name) {
                    faults.push(format!("{}:{}: {name}", source.path, nth + 1));
                }
            }
            let is_open = !attributes.is_empty() && !attributes.ends_with(']');
            if line.starts_with("///") {
                has_example |= line.contains("```");
            } else if line.starts_with("#[") || is_open {
                attributes.push_str(line);
            } else {
                (attributes, has_example) = (String::new(), false);
            }
        }
    }
    faults
}

#[test]
fn components_messages_and_settings_have_examples() {
    let lacking = [
        "/// Text.\n#[derive(Component, Debug)]\npub struct Bare;",
        "#[derive(\n    Debug,\n    Message,\n)]\npub enum Sent {}",
        "/// ```\npub struct With;\n\npub struct GridSettings {",
    ];
    for text in lacking {
        assert_eq!(
            without_example(&[Source::new("a.rs", text)]).len(),
            1,
            "{text}"
        );
    }
    let fine =
        "/// ```\n/// ```\n#[derive(Component)]\npub struct Good;\nstruct Own;\npub struct Plain;";
    assert_none(without_example(&[Source::new("a.rs", fine)]));
    assert_none(without_example(&sources()));
}

/// Fails where code outside some homes contains a word.
fn assert_only_in(words: &[&str], homes: &[&str]) {
    let mut faults = Vec::new();
    for source in sources() {
        // Examples talk to the person who runs them.
        let is_example = source.path.contains("/examples/");
        if is_example || homes.iter().any(|home| source.path.starts_with(home)) {
            continue;
        }
        let found = source
            .code_without_tests()
            .filter(|(_, line)| words.iter().any(|word| line.contains(word)));
        faults.extend(found.map(|(nth, line)| format!("{}:{nth}: {}", source.path, line.trim())));
    }
    assert_none(faults);
}

#[test]
fn clocks_are_read_in_their_modules_only() {
    assert_only_in(&["Instant::now", "SystemTime::now"], &CLOCKS);
}

#[test]
fn files_and_sockets_are_opened_in_their_modules_only() {
    assert_only_in(
        &[
            "File::open",
            "File::create",
            "fs::read",
            "fs::write",
            "TcpStream",
            "UdpSocket",
        ],
        &FILES,
    );
}

#[test]
fn libraries_do_not_print() {
    assert_only_in(&["println!", "print!(", "dbg!("], &["throng_cli/"]);
}

#[test]
fn platform_dependent_functions_are_not_used() {
    // Their last bits differ between platforms, and so would the state; the maths library in Rust does not.
    let functions = [
        ".sin()",
        ".cos()",
        ".tan()",
        ".sin_cos()",
        ".atan2(",
        ".exp()",
        ".ln()",
        ".powf(",
        ".cbrt()",
    ];
    // What a client draws between two packets is no state.
    assert_only_in(&functions, &["throng_cli/", "throng_client/smoothing.rs"]);
}

#[test]
fn source_has_no_todo_markers() {
    let words = ["todo!(", "unimplemented!(", "#[ignore", "FIXME", "XXX"];
    let mut faults = Vec::new();
    for folder in ["src", "crates", "tests"] {
        for source in sources_in(&root().join(folder))
            .iter()
            .filter(|source| source.path != "it/code_rules.rs")
        {
            let lines = source.text.lines().enumerate();
            let found = lines.filter(|(_, line)| words.iter().any(|word| line.contains(word)));
            faults.extend(found.map(|(nth, _)| format!("{}:{}", source.path, nth + 1)));
        }
    }
    assert_none(faults);
}
