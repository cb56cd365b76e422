//! Shared parts of the tests: running the program, temporary folders, and scenarios run tick by tick.

use std::fs;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use bevy_app::{App, FixedPostUpdate, FixedPreUpdate, FixedUpdate};
use bevy_ecs::schedule::{ScheduleBuildSettings, ScheduleLabel};
use bevy_tasks::{ComputeTaskPool, TaskPoolBuilder};
use serde_json::Value;
use throng::movement::MovementSettings;
use throng::session::SessionSettings;
use throng::sim::Heartbeat;
use throng_scenario::{LoadedScenario, Report, RunOptions, ScenarioRun};
use throng_store::testing::Operator;

/// Creates a database for a test of the program, which uses the default schema name. Returns its address.
pub fn new_database(server: &str) -> String {
    static NTH: AtomicU32 = AtomicU32::new(0);
    let nth = NTH.fetch_add(1, Ordering::Relaxed);
    let name = format!("test_db_{}_{nth}", std::process::id());
    Operator::new(server).execute(&format!("CREATE DATABASE {name}"));
    let (server, _) = server.rsplit_once('/').unwrap();
    format!("{server}/{name}")
}

/// A temporary folder for a test, removed when dropped.
pub struct TempFolder(PathBuf);

impl TempFolder {
    pub fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let nth = MADE.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("throng-it-{}-{nth}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Settings for clients over real sockets: limits in simulated time must not end a session or correct a move only because a thread of the
/// network is late while ticks go on.
pub fn be_patient(app: &mut App) {
    app.insert_resource(SessionSettings {
        login_grace_s: 3_600.0,
        login_timeout_s: 3_600.0,
        authentication_timeout_s: 3_600.0,
        loading_timeout_s: 3_600.0,
        reconnect_grace_s: 3_600.0,
        ..SessionSettings::default()
    });
    app.insert_resource(MovementSettings {
        burst_s_max: 300.0,
        ..MovementSettings::default()
    });
}

/// The result of running the program.
pub struct ProgramOutput {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl ProgramOutput {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{error} in {}\n{}", self.out, self.err))
    }
}

impl From<Output> for ProgramOutput {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program writes UTF-8");
        let (out, err) = (text(output.stdout), text(output.stderr));
        assert!(!err.contains("panicked"), "{err}");
        // There is no exit code if a signal killed the program.
        Self {
            code: output.status.code().expect("an exit code"),
            out,
            err,
        }
    }
}

/// The program, with the environment variables removed that could change its output.
pub fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    command
        .args(arguments)
        .env_remove("RUST_LOG")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null());
    command
}

/// Runs the program until it exits.
pub fn run_throng(arguments: &[&str]) -> ProgramOutput {
    program(arguments)
        .output()
        .expect("the program starts")
        .into()
}

/// Sends a signal to a running program, such as `-INT` for Ctrl-C.
#[cfg(unix)]
pub fn send_signal(process: &Child, name: &str) {
    let mut command = Command::new("kill");
    let sent = command.args([name, &process.id().to_string()]).status();
    assert!(sent.expect("the command `kill` exists").success());
}

/// Reads a log until a message appears, and returns its line.
pub fn wait_for_log(log: &mut impl BufRead, message: &str) -> String {
    loop {
        let mut line = String::new();
        let bytes = log.read_line(&mut line).expect("it is UTF-8");
        assert!(bytes > 0, "the program ended");
        if line.contains(message) {
            return line;
        }
    }
}

/// Runs the program with this text as standard input.
pub fn run_throng_with_input(arguments: &[&str], input: &str) -> ProgramOutput {
    let mut command = program(arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    // A program that does not read its input closes the pipe, which is not an error.
    let _ = child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(input.as_bytes());
    child.wait_with_output().expect("the program ends").into()
}

/// A scenario from its text.
pub fn scenario_of(text: &str) -> LoadedScenario {
    LoadedScenario::from_text("test.ron", text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// How [`start`] runs a scenario.
#[derive(Clone, Copy, Default)]
pub struct RunConfig {
    pub threads: usize,
    pub ticks: u64,
    pub seed: Option<u64>,
    pub configure: Option<fn(&mut App, u64)>,
    /// The second argument of `configure`.
    pub argument: u64,
}

/// A run before its first tick. Expectations on tick times are not checked, because tests share their cores.
pub fn start(loaded: LoadedScenario, play: RunConfig) -> ScenarioRun {
    // The first app of a process creates the task pools; this makes sure that they have enough threads for every test.
    ComputeTaskPool::get_or_init(|| TaskPoolBuilder::new().num_threads(4).build());
    let mut options = RunOptions {
        seed: play.seed,
        ticks: Some(play.ticks),
        threads: play.threads,
        ..RunOptions::default()
    };
    if let Some(configure) = play.configure {
        options
            .configure
            .push(Box::new(move |app| configure(app, play.argument)));
    }
    ScenarioRun::new(loaded, options).unwrap_or_else(|error| panic!("{error}"))
}

/// Shuffles the order of systems that may run in any order.
pub fn shuffle(app: &mut App, seed: u64) {
    fn shuffle_schedule(app: &mut App, label: impl ScheduleLabel, seed: u64) {
        app.edit_schedule(label, |schedule| {
            let settings = schedule.get_build_settings();
            schedule.set_build_settings(ScheduleBuildSettings {
                shuffle_seed: Some(seed),
                ..settings
            });
        });
    }
    shuffle_schedule(app, FixedPreUpdate, seed);
    shuffle_schedule(app, FixedUpdate, seed);
    shuffle_schedule(app, Heartbeat, seed);
    shuffle_schedule(app, FixedPostUpdate, seed);
}

/// The state hash after each tick.
pub fn hashes(loaded: LoadedScenario, play: RunConfig) -> Vec<u64> {
    let mut run = start(loaded, play);
    let mut hashes = Vec::new();
    while run.step().expect("the run writes no output") {
        hashes.push(run.server().state_hash());
    }
    hashes
}

/// Runs to the end, and checks the expectations.
pub fn run_to_end(loaded: LoadedScenario, play: RunConfig) -> Report {
    let mut run = start(loaded, play);
    while run.step().expect("the run writes no output") {}
    run.finish().expect("the run writes no output")
}

/// Fails with all expectations that failed or had nothing to check.
pub fn assert_expectations(report: &Report) {
    let broken: Vec<String> = report
        .expectations
        .iter()
        .filter(|judged| judged.verdict.fails())
        .map(|judged| format!("{}: {}", judged.text, judged.found))
        .collect();
    let faults = &report.script_errors;
    assert!(
        broken.is_empty(),
        "{}: {broken:#?} {faults:#?}",
        report.scenario
    );
    assert_eq!(
        report.script_errors,
        Vec::<String>::new(),
        "{}",
        report.scenario
    );
}

/// The root of the repository.
pub fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).expect("`crates/throng_cli`")
}
