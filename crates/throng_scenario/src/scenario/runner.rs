//! Runs a scenario: set-up, ticks, coming to rest, checks of expectations.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;
use serde_json::Value;

use super::behaviours::Behaviours;
use super::capture::PacketLog;
use super::checks::{self, Evidence, TimingChecks};
use super::events::{self, EventLog};
use super::external_actions::{ExternalActionResult, read_external_action};
use super::leaks;
use super::load::LoadedScenario;
use super::matches::{ScenarioMatches, host_matches, run_matches};
use super::memory::{MemoryBaseline, memory_summary};
use super::movement_summary::movement_summary;
use super::player_store::player_store_summary;
use super::record::{CueText, Recorder};
use super::report::{self, ObjectSummary, Report, StartUpSummary};
use super::rest::come_to_rest;
use super::scenario_world::{self, ScenarioWorld};
use super::schema::{Expectation, Scenario};
use super::script::{CueCounts, ScenarioScript, run_first_cues, run_script};
use super::script_errors::ScriptError;
use super::text::{ScenarioError, SourceError, ValidationError, ValuePath};
use super::tick_checks::{self, TickChecks};
use super::validate::limits::TICK_HZ_MAX;
use crate::crowd::{self, ATTRIBUTE_NAMES, CrowdPlugin, SyntheticClients};
use throng::instance::InstanceSystems;
use throng::map::TileMap;
use throng::memory::{MemoryAppExt, ProcessMemory};
use throng::outbox::Outbox;
use throng::server::{Pace, Server};
use throng::session::{SessionKey, SessionSettings};
use throng::sim::clock::Stopwatch;
use throng::sim::{AfterTick, HashAppExt, SimSystems, TickTimings};
use throng::world::Scenes;

/// Number of ticks after the end of all sessions until their state is freed.
const LEAK_CHECK_DELAY_TICKS: u64 = 256;

/// Simulated seconds of start-up, whose ticks are timed separately.
const START_UP_S: f64 = 1.0;

/// Options of a run.
#[derive(Default)]
pub struct RunOptions {
    /// Replaces the scenario's seed.
    pub seed: Option<u64>,
    /// Replaces the map of the first scene: the name in the event log, and the map.
    pub map: Option<(String, TileMap)>,
    /// Replaces the scenario's duration.
    pub ticks: Option<u64>,
    /// Number of threads; 0 counts as 1.
    pub threads: usize,
    /// The output of the event log.
    pub events: Option<Box<dyn Write + Send + Sync>>,
    /// The pace of ticks. After the last tick, the run comes to rest as fast as possible.
    pub pace: Pace,
    /// Whether the event log has a line per tick for the position of every object.
    pub positions: bool,
    /// The output of state hashes: a line `TICK HASH` per tick.
    pub hashes: Option<Box<dyn Write>>,
    /// The output of the packet capture: all packets that the server sent up to the last tick, before simulated loss. Their number
    /// is that of the report. For clients that receive no packets (see `client_share` of a crowd), it contains only the record of
    /// their end. The format is described at [`CAPTURE_MAGIC`](throng::outbox::CAPTURE_MAGIC).
    /// [`read_capture`](throng::outbox::read_capture) reads it.
    pub capture: Option<Box<dyn Write + Send + Sync>>,
    /// Whether the report contains a record of the run: [`Report::record`].
    pub record: bool,
    /// The output of the figures of every tick, a line per tick, with the columns of [`SAMPLE_COLUMNS`](super::record::SAMPLE_COLUMNS).
    pub csv: Option<Box<dyn Write>>,
    /// Which expectations on wall time are judged.
    pub timing_checks: TimingChecks,
    /// Returns the memory of the process, for the report ([`process_memory`](throng::memory::process_memory)); without it the
    /// memory is unknown.
    pub memory: Option<fn() -> Option<ProcessMemory>>,
    /// Whether external clients connect, over a transport that `configure` adds. Then the tokens of sessions are unpredictable.
    /// Otherwise they are derived from the seed, so that packets are the same in every run.
    pub has_external_clients: bool,
    /// Changes the app before it starts.
    pub configure: Vec<Box<dyn FnOnce(&mut App)>>,
    /// Called with the world after the checks, before it is dropped: for resources that have to be closed.
    pub at_end: Vec<Box<dyn FnOnce(&mut World)>>,
}

/// A running scenario.
pub struct ScenarioRun {
    server: Server,
    loaded: LoadedScenario,
    threads: usize,
    ticks: u64,
    warnings: Vec<SourceError>,
    timing_checks: TimingChecks,
    memory: Option<fn() -> Option<ProcessMemory>>,
    memory_before: MemoryBaseline,
    tracks_leaks: bool,
    start_up: Option<StartUpSummary>,
    /// Ticks at which a snapshot of the report is needed, and the snapshots.
    snapshot_ticks: BTreeSet<u64>,
    snapshots: BTreeMap<u64, Value>,
    hashes: Option<Box<dyn Write>>,
    capture: Option<PacketLog>,
    recorder: Option<Recorder>,
    /// Whether the report contains the record.
    is_recorded: bool,
    clock: Stopwatch,
    peak_objects: u64,
    client_ticks: u64,
    /// External actions that ran before the script ended.
    actions_before_end: u64,
    seed: u64,
    at_end: Vec<Box<dyn FnOnce(&mut World)>>,
}

/// Makes the outbox deliver packets to the synthetic clients, and to the capture if there is one.
fn set_sink(world: &mut World, capture: Option<&PacketLog>) {
    let mirrors = world.resource::<SyntheticClients>().sink();
    let sink = match capture {
        Some(capture) => capture.wrap(mirrors),
        None => mirrors,
    };
    world.resource_mut::<Outbox>().set_sink(sink);
}

impl ScenarioRun {
    /// Builds the server, validates the scenario against its registries, loads the maps, and sets everything up. Runs no tick.
    ///
    /// # Errors
    /// [`ScenarioError`] with the location of the error.
    pub fn new(loaded: LoadedScenario, options: RunOptions) -> Result<Self, ScenarioError> {
        let scenario = &loaded.scenario;
        let memory_before = MemoryBaseline::now(options.memory.and_then(|read| read()));
        let seed = options.seed.unwrap_or(scenario.seed);
        // A server needs a valid rate. An invalid one is reported by `check` below, after the app has registered its behaviours.
        let is_possible = (1.0..=TICK_HZ_MAX).contains(&scenario.tick_hz);
        let tick_hz = if is_possible { scenario.tick_hz } else { 1.0 };
        let mut builder = Server::builder()
            .strict_order()
            .plugins(CrowdPlugin)
            .pace(options.pace)
            .seed(seed)
            .tick_hz(tick_hz)
            .workers(options.threads)
            .timing()
            .configure(scenario_world::add_authentication)
            .configure(add_script);
        let attributes = scenario.attributes.clone();
        builder =
            builder.configure(move |app| scenario_world::register_attributes(app, &attributes));
        if let Some(to) = options.events {
            let log = EventLog::new(to, options.positions);
            builder = builder.configure(move |app| add_events(app, log));
        }
        for configure in options.configure {
            builder = builder.configure(configure);
        }
        let mut server = builder.build();
        let world = server.world_mut();
        loaded.check(ATTRIBUTE_NAMES, world.resource::<Behaviours>())?;
        world.insert_resource(TickChecks::new(scenario));
        world.insert_resource(ScenarioMatches::default());
        let substitute = scenario_world::set_up(world, &loaded, options.map)?;
        if options.has_external_clients {
            world.insert_resource(SessionKey::from_entropy());
        }
        world.insert_resource(ScenarioScript::new(&Scenario {
            script: substitute.script,
            ..scenario.clone()
        }));
        let warnings = substitute.warnings.into_iter();
        let warnings = warnings
            .map(|problem| *loaded.locate_error(problem))
            .collect();
        host_matches(world);
        let capture = options.capture.map(PacketLog::new).transpose();
        let capture = capture.map_err(|source| ScenarioError::Capture { source })?;
        set_sink(world, capture.as_ref());
        let ticks = options
            .ticks
            .unwrap_or_else(|| (scenario.duration_s * scenario.tick_hz).round() as u64);
        let is_wanted = options.record || options.csv.is_some();
        let recorder = is_wanted.then(|| start_recorder(&loaded, server.world(), options.csv));
        Ok(Self {
            threads: options.threads.max(1),
            warnings,
            timing_checks: options.timing_checks,
            memory: options.memory,
            memory_before,
            tracks_leaks: false,
            start_up: None,
            snapshot_ticks: checks::snapshot_ticks(scenario).collect(),
            snapshots: BTreeMap::new(),
            hashes: options.hashes,
            capture,
            recorder: recorder.transpose()?,
            is_recorded: options.record,
            clock: Stopwatch::start(),
            peak_objects: 0,
            client_ticks: 0,
            actions_before_end: 0,
            seed,
            at_end: options.at_end,
            server,
            loaded,
            ticks,
        })
    }

    /// Total number of ticks of the run.
    #[must_use]
    pub const fn ticks(&self) -> u64 {
        self.ticks
    }

    /// The number of threads.
    #[must_use]
    pub const fn threads(&self) -> usize {
        self.threads
    }

    /// Warnings: areas that reach beyond the map of their scene.
    #[must_use]
    pub fn warnings(&self) -> &[SourceError] {
        &self.warnings
    }

    /// Number of ticks that have run.
    #[must_use]
    pub fn tick(&self) -> u64 {
        self.server.tick()
    }

    /// The scenario's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.loaded.scenario.name
    }

    /// Access to the server.
    pub const fn server(&mut self) -> &mut Server {
        &mut self.server
    }

    /// Runs the next tick; returns `false` if none is left.
    ///
    /// # Errors
    /// When the hashes or the figures cannot be written.
    pub fn step(&mut self) -> io::Result<bool> {
        if self.tick() >= self.ticks {
            return Ok(false);
        }
        self.server.step(1);
        if let Some(to) = &mut self.hashes {
            let hash = self.server.state_hash();
            writeln!(to, "{} {hash:016x}", self.server.tick())?;
        }
        let world = self.server.world();
        let objects: u64 = world
            .resource::<Scenes>()
            .iter()
            .filter_map(|(_, scene)| world.get::<throng::world::SceneIds>(scene))
            .map(|objects| u64::from(objects.len()))
            .sum();
        self.peak_objects = self.peak_objects.max(objects);
        self.client_ticks += world.resource::<SyntheticClients>().receiver_count() as u64;
        let tick = self.tick();
        if let Some(recorder) = &mut self.recorder {
            leaks::without_tracking(|| recorder.after_tick(self.server.world(), tick))?;
        }
        let is_started = tick == (START_UP_S * self.loaded.scenario.tick_hz).ceil() as u64;
        if is_started && self.loaded.scenario.expect.contains(&Expectation::NoLeaks) {
            self.tracks_leaks = true;
            leaks::start_tracking();
        }
        if is_started && tick < self.ticks {
            let mut timings = self.server.world_mut().resource_mut::<TickTimings>();
            self.start_up = Some(report::start_up(&timings, tick));
            timings.reset();
            if let Some(recorder) = &mut self.recorder {
                recorder.end_start_up(tick);
            }
        }
        if self.snapshot_ticks.contains(&tick) {
            let figures = leaks::without_tracking(|| serde_json::to_value(self.snapshot_report()));
            let figures = figures.map_err(io::Error::other)?;
            self.snapshots.insert(tick, figures);
        }
        Ok(true)
    }

    /// Queues an external action, written as in a script: `Block(rect_tiles: (4, 5, 6, 7))`. It runs in the next tick, after the
    /// script's own cues. From then on the run is not determined by its scenario and seed any more, and its report says so.
    /// O(scenario).
    ///
    /// # Errors
    /// The error as text; nothing is queued then. Tags, scenes and modes must be those of the scenario.
    pub fn enqueue_action(&mut self, text: &str) -> Result<(), String> {
        let world = self.server.world_mut();
        let behaviours = world.resource::<Behaviours>();
        let action = read_external_action(behaviours, &self.loaded.scenario, text)?;
        let script = world.get_resource_mut::<ScenarioScript>();
        let mut script = script.ok_or("the script has ended")?;
        script.external.enqueue(text, action)
    }

    /// Number of external actions that ran.
    #[must_use]
    pub fn external_action_count(&self) -> u64 {
        let script = self.server.world().get_resource::<ScenarioScript>();
        script.map_or(self.actions_before_end, |script| script.external.run_count)
    }

    /// The outcomes of external actions since the last call: at most the last [`EXTERNAL_ACTIONS_MAX`](super::EXTERNAL_ACTIONS_MAX).
    pub fn take_action_results(&mut self) -> Vec<ExternalActionResult> {
        let script = self.server.world_mut().get_resource_mut::<ScenarioScript>();
        script.map_or_else(Vec::new, |mut script| script.external.take_results())
    }

    /// Ends the run here: takes the figures, stops all activity, and judges the expectations.
    ///
    /// # Errors
    /// When events, hashes or packets could not be written.
    pub fn finish(self) -> io::Result<Report> {
        self.finish_unless(|| false)
    }

    /// As [`finish`](Self::finish), but an interruption ends it at once, if ticks are left or while the run comes to rest. Then
    /// expectations are not checked, and the report contains the tick of the interruption.
    ///
    /// # Errors
    /// When events, hashes or packets could not be written.
    pub fn finish_unless(mut self, is_interrupted: impl Fn() -> bool) -> io::Result<Report> {
        let mut report = leaks::without_tracking(|| self.check_unless(is_interrupted));
        let world = self.server.world_mut();
        self.at_end.into_iter().for_each(|end| end(world));
        if let Ok(report) = &mut report
            && report.interrupted.is_none()
            && self.tracks_leaks
        {
            self.snapshots.clear();
            report.leaks = Some(leaks::find_leaks(self.server, LEAK_CHECK_DELAY_TICKS));
            checks::check_leaks(&self.loaded.scenario, report, self.timing_checks);
        }
        report
    }

    /// Ends the run without a report, and calls `at_end`.
    pub fn close(mut self) {
        let world = self.server.world_mut();
        self.at_end.into_iter().for_each(|end| end(world));
    }

    fn check_unless(&mut self, is_interrupted: impl Fn() -> bool) -> io::Result<Report> {
        if let Some(to) = &mut self.hashes {
            to.flush()?;
        }
        let mut report = self.snapshot_report();
        if let Some(recorder) = self.recorder.take() {
            let record = recorder.finish(self.server.world())?;
            report.record = self.is_recorded.then(|| Box::new(record));
        }
        let scenario = self.loaded.scenario.clone();
        let world = self.server.world_mut();
        #[expect(
            clippy::disallowed_methods,
            reason = "the run is over, so the resource is removed for good"
        )]
        let log = world.remove_resource::<EventLog>();
        if let Some(log) = log {
            log.finish()?;
        }
        if let Some(capture) = self.capture.take() {
            // The capture ends with the last counted tick. Later packets, and those that wait for simulated connections, go to the mirrors
            // only.
            capture.finish()?;
            let mirrors = world.resource::<SyntheticClients>().sink();
            world.resource_mut::<Outbox>().set_sink(mirrors);
        }
        let is_cut = self.tick() < self.ticks && is_interrupted();
        let at_rest = if is_cut {
            None
        } else if !scenario.expect.iter().any(checks::needs_rest) {
            Some(Ok(()))
        } else {
            self.server.set_pace(Pace::AsFastAsPossible);
            self.stop_script();
            come_to_rest(&mut self.server, &scenario, is_interrupted)
        };
        let Some(at_rest) = at_rest else {
            report.interrupted = Some(report.ticks);
            report.expectations = checks::unchecked_expectations(&scenario);
            return Ok(report);
        };
        report.expectations = checks::check_expectations(
            &scenario,
            &Evidence {
                world: self.server.world(),
                report: &report,
                snapshots: &self.snapshots,
                at_rest,
                time: self.timing_checks,
            },
        );
        Ok(report)
    }

    /// The current report, without results of expectations.
    fn snapshot_report(&mut self) -> Report {
        let wall_seconds = self.clock.elapsed().as_secs_f64();
        let state_hash = format!("{:016x}", self.server.state_hash());
        let ticks = self.tick();
        let process = self.memory.and_then(|read| read());
        let memory = memory_summary(self.server.world(), &self.memory_before, process);
        let external_actions = self.external_action_count();
        let scenario = &self.loaded.scenario;
        let hz = scenario.tick_hz;
        let mirror_seconds = self.client_ticks as f64 / hz;
        let script_errors = self.script_errors();
        let cues_without_effect = self.cues_without_effect();
        let parameters = self.loaded.sources.parameters().iter();
        let parameters = parameters
            .map(|parameter| (parameter.name.clone(), parameter.value.clone()))
            .collect();
        let world = self.server.world_mut();
        let counted = report::count_objects(world);
        let tags = scenario.tags().map(|tag| {
            let tagged = crowd::members(world, tag, None);
            (tag.to_owned(), tagged.len() as u64)
        });
        let tags = tags.collect();
        let (tick_ms, systems) = report::tick_times(world.resource::<TickTimings>());
        let script = world.resource::<ScenarioScript>();
        let (cues_run, (_, script_error_count)) = (script.cues_run(), script.errors());
        Report {
            scenario: scenario.name.clone(),
            seed: self.seed,
            parameters,
            threads: self.threads,
            ticks,
            interrupted: None,
            sim_seconds: ticks as f64 / hz,
            wall_seconds,
            state_hash,
            tick_ms,
            start_up: self.start_up,
            systems,
            objects: ObjectSummary {
                peak: self.peak_objects.max(counted.peak),
                ..counted
            },
            tags,
            clients: report::clients(world, mirror_seconds),
            sessions: report::sessions(world),
            paths: report::paths(world),
            builds: report::builds(world),
            views: report::views(
                world,
                scenario.scenes.first().map_or(0, |scene| scene.view_cap),
            ),
            movement: movement_summary(world),
            sync: report::sync(world, mirror_seconds),
            matchmaking: report::matchmaking(world, hz),
            match_scenes: world.resource::<ScenarioMatches>().stats(),
            inbox: report::inbox(world, hz),
            outbox: report::outbox(world),
            overload: report::overload(world),
            player_store: player_store_summary(world),
            memory,
            leaks: None,
            record: None,
            expectations: Vec::new(),
            script_cues_run: cues_run,
            external_actions,
            script_error_count,
            script_errors,
            cues_without_effect,
        }
    }

    /// The location of a cue: file, line and column.
    fn cue_location(&self, cue: usize) -> String {
        let place = ValuePath::root().field("script").item(cue).field("run");
        format_location(&self.loaded.locate_error(ValidationError::new(place, "")))
    }

    /// The cues without effect, each with its location.
    fn cues_without_effect(&self) -> Vec<String> {
        let scenario = &self.loaded.scenario;
        let is_whole = self.tick() as f64 >= (scenario.duration_s * scenario.tick_hz).round();
        let script = self.server.world().resource::<ScenarioScript>();
        let describe = |(cue, counts): (usize, &CueCounts)| {
            let why = match counts {
                CueCounts { run_count: 0, .. } if is_whole => "it never ran".to_owned(),
                CueCounts { run_count: 0, .. } => return None,
                CueCounts {
                    run_count: 1,
                    object_count: Some(0),
                } => "it ran once and affected no object".to_owned(),
                CueCounts {
                    run_count: ran,
                    object_count: Some(0),
                } => format!("it ran {ran} times and affected no object"),
                _ => return None,
            };
            Some(format!("{}: {why}", self.cue_location(cue)))
        };
        script
            .cue_counts()
            .iter()
            .enumerate()
            .filter_map(describe)
            .collect()
    }

    /// The errors of the script, each with the location of its cue.
    fn script_errors(&self) -> Vec<String> {
        let (faults, _) = self.server.world().resource::<ScenarioScript>().errors();
        let describe = |fault: &ScriptError| {
            let ScriptError {
                tick,
                message: what,
                count,
                ..
            } = fault;
            let place = fault
                .cue
                .map_or_else(String::new, |cue| format!("{}: ", self.cue_location(cue)));
            let often = match count {
                1 => String::new(),
                _ => format!(" ({count} times)"),
            };
            format!("{place}tick {tick}: {what}{often}")
        };
        faults.iter().map(describe).collect()
    }

    /// Stops the script and the checks in every tick; objects stay.
    pub fn stop_script(&mut self) {
        self.actions_before_end = self.external_action_count();
        let world = self.server.world_mut();
        #[expect(
            clippy::disallowed_methods,
            reason = "the script ends, so the resource is removed for good"
        )]
        world.remove_resource::<ScenarioScript>();
        world.resource_mut::<TickChecks>().stop();
        // Clients that are at rest must not time out.
        world.resource_mut::<SessionSettings>().idle_timeout_s = 0.0;
    }
}

fn format_location(mistake: &SourceError) -> String {
    format!("{}:{}:{}", mistake.file(), mistake.line, mistake.column)
}

/// Creates a recorder, and records the state before the first tick.
fn start_recorder(
    loaded: &LoadedScenario,
    world: &World,
    csv: Option<Box<dyn Write>>,
) -> Result<Recorder, ScenarioError> {
    let text_of = |cue: usize| {
        let place = ValuePath::root().field("script").item(cue);
        let mistake = loaded.locate_error(ValidationError::new(place, ""));
        let words = mistake.marked_value().split_whitespace();
        CueText {
            location: format_location(&mistake),
            text: words.collect::<Vec<_>>().join(" "),
        }
    };
    let cues = (0..loaded.scenario.script.len()).map(text_of).collect();
    let recorder = Recorder::new(loaded.scenario.tick_hz, cues, csv);
    let mut recorder = recorder.map_err(|source| ScenarioError::Csv { source })?;
    recorder.start(world);
    Ok(recorder)
}

fn add_script(app: &mut App) {
    // After the end of the script, matches stay as they are.
    app.configure_sets(
        FixedUpdate,
        InstanceSystems.run_if(resource_exists::<ScenarioScript>),
    );
    app.hash_part("battles", |world, hasher| {
        if let Some(matches) = world.get_resource::<ScenarioMatches>() {
            matches.hash(hasher);
        }
    });
    app.hash_part("script", |world, hasher| {
        if let Some(script) = world.get_resource::<ScenarioScript>() {
            script.hash(hasher);
        }
        if let Some(stage) = world.get_resource::<ScenarioWorld>() {
            stage.hash(world, hasher);
        }
    });
    app.init_resource::<Behaviours>()
        .init_resource::<TickChecks>()
        .count_memory::<TickChecks>("scenario")
        .count_memory::<ScenarioWorld>("scenario")
        .count_memory::<ScenarioMatches>("scenario")
        .add_systems(
            FixedUpdate,
            (
                (
                    run_script.before(InstanceSystems),
                    run_matches.after(InstanceSystems),
                )
                    .chain()
                    .in_set(SimSystems::Think)
                    .run_if(resource_exists::<ScenarioScript>)
                    .before(crate::crowd::CrowdSystems),
                run_first_cues
                    .in_set(SimSystems::Think)
                    .run_if(resource_exists::<ScenarioScript>)
                    .after(crate::crowd::CrowdSystems)
                    .before(crate::crowd::TradeSystems),
                tick_checks::check_tick.in_set(AfterTick),
            ),
        );
}

fn add_events(app: &mut App, log: EventLog) {
    // Each part is logged after the set in which it happened, so that the file follows the order of the tick.
    let is_open = resource_exists::<EventLog>;
    app.insert_resource(log).add_systems(
        FixedUpdate,
        (
            (
                events::log_overload,
                events::log_scenes,
                events::log_sessions,
                events::log_spawns,
                events::log_edits,
            )
                .chain()
                .after(SimSystems::Think)
                .before(SimSystems::Navigate)
                .run_if(is_open),
            (
                events::log_spawns,
                events::log_late_builds,
                events::log_paths,
            )
                .chain()
                .after(SimSystems::Navigate)
                .before(SimSystems::Move)
                .run_if(is_open),
            (
                events::log_spawns,
                events::log_objects,
                events::log_views,
                events::log_matches,
                events::log_announcements,
                events::log_tick_end,
            )
                .chain()
                .after(tick_checks::check_tick)
                .in_set(AfterTick)
                .run_if(is_open),
        ),
    );
}
