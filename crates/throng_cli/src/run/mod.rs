//! `throng run`: runs a scenario and prints its report.
//!
//! | file | holds |
//! |---|---|
//! | `compare.rs` | two settings side by side |
//! | `measured_run.rs` | a run that is repeated with other values of its parameters |
//! | `pace.rs` | a run that pages can watch, pause, step and speed up |
//! | `run_output.rs` | the output of `--json`, and input of a page |
//! | `sweep.rs` | the largest value of a parameter with which an expectation holds |
//! | `table.rs` | the output as text |

mod compare;
mod measured_run;
mod pace;
mod run_output;
mod sweep;
mod table;

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use super::machine::Machine;
use super::memory_table::{leak_lines, memory_table};
use super::outputs::{RunFile, check_outputs, check_page, check_writable, open, truncate};
use super::page::{self, embed::PageImage};
use super::picture::{Animation, draw_crowd};
use super::seconds::seconds;
use super::set::Set;
use super::store::RunStore;
use super::trace::RunTrace;
use super::{
    CliError, CliStatus, Output, Printer, cores, image, interrupted_status, is_interrupted,
    listen_for_interrupt, print, print_failure, progress, whole_number,
};
use pace::PageControlledPace;
use run_output::RunOutput;
use sweep::{SweepRange, sweep_range};
use table::{failure_lines, table};
use throng::map;
use throng::memory::process_memory;
use throng::server::Pace;
use throng_inspect::InspectPlugin;
use throng_scenario::crowd::ATTRIBUTE_NAMES;
use throng_scenario::{
    self as scenario, Behaviours, Expectation, LoadedScenario, Report, RunOptions, Scenario,
    ScenarioRun as Playing, SourceError, TimingChecks,
};

/// Arguments of `throng run`.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Run {
    /// A scenario file, a built-in's name, or - for the standard input
    #[arg(default_value = "town")]
    scenario: String,
    #[command(flatten)]
    set: Set,
    /// Search the largest value of a parameter with which --until holds
    ///
    /// Runs the scenario up to 24 times: doubles the value, then halves the gap.
    /// With --until on tick times, both ends of the result are run three times.
    #[arg(long, value_name = "NAME=FROM..TO", value_parser = sweep_range, requires = "until")]
    #[arg(conflicts_with_all = REPEATED_CONFLICTS)]
    sweep: Option<SweepRange>,
    /// With --sweep: the expectation, as in a scenario: "TickP99UnderMs(50)"
    #[arg(long, value_name = "EXPECTATION", requires = "sweep")]
    until: Option<String>,
    /// Show two settings side by side: set one parameter twice
    #[arg(long, conflicts_with_all = REPEATED_CONFLICTS, conflicts_with_all = ["sweep", "json"])]
    compare: bool,
    /// Seed, instead of the scenario's
    #[arg(long, value_name = "N", value_parser = whole_number)]
    seed: Option<u64>,
    /// Map, instead of the first scene's
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Number of ticks, instead of the duration
    #[arg(long, value_name = "N", value_parser = whole_number, conflicts_with = "duration")]
    ticks: Option<u64>,
    /// Simulated time, instead of the scenario's: 90s, 5m, 1h
    #[arg(long, value_name = "TIME", value_parser = seconds, allow_hyphen_values = true)]
    duration: Option<f64>,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Run in real time instead of as fast as possible
    #[arg(long)]
    realtime: bool,
    /// Serve a live page that can pause the run, step it and set its speed
    ///
    /// Loopback addresses only. The run starts paused.
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "realtime")]
    inspect: Option<SocketAddr>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
    /// Write events, one JSON object per line; docs/event_log.md describes them
    #[arg(long, value_name = "FILE.jsonl")]
    events: Option<PathBuf>,
    /// With --events: also write all positions in every tick
    #[arg(long, requires = "events")]
    positions: bool,
    /// Write the state hash, one line `TICK HASH` per tick
    #[arg(long, value_name = "FILE")]
    hashes: Option<PathBuf>,
    /// Write every packet that was sent
    ///
    /// The page of `throng::outbox::CAPTURE_MAGIC` describes the format.
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Write an HTML page of the run: times, views, queues, positions
    ///
    /// The file is self-contained. With --json the object also contains the data of
    /// the page, as `record`, for `throng report`.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Write the values of every tick, one line per tick
    #[arg(long, value_name = "FILE.csv")]
    csv: Option<PathBuf>,
    /// Check expectations on tick times, too
    ///
    /// Without it, of the expectations on wall time only `TicksUnderMs` is checked.
    #[arg(long, alias = "judge-time", conflicts_with = "no_timing")]
    check_timing: bool,
    /// Draw the crowd on its map after the last tick
    #[arg(long, value_name = "FILE.png")]
    picture: Option<PathBuf>,
    /// Draw the crowd over the whole run, as an animated PNG
    ///
    /// Shows the scene that has most objects at the start; if it closes, another
    /// one. At most 120 pictures, ten per second, up to 640 pixels wide.
    #[arg(long, alias = "film", value_name = "FILE.png")]
    animation: Option<PathBuf>,
    /// Trace every set and system in the first 1,000 ticks
    ///
    /// Open it in Perfetto, <https://ui.perfetto.dev>, or Chrome's about:tracing.
    #[arg(long, value_name = "FILE.json")]
    trace: Option<PathBuf>,
    /// Never fail the run on tick times
    #[arg(long)]
    no_timing: bool,
    /// Print memory by module
    ///
    /// --json always contains it.
    #[arg(long)]
    memory: bool,
    /// Expect `NoLeaks`: after the run all players leave, and all memory is freed
    ///
    /// Lists allocations that were not freed, by function. Needs a build with
    /// --features leak-track --profile profiling.
    #[arg(long)]
    leaks: bool,
    #[command(flatten)]
    store: RunStore,
    /// Treat warnings as errors, and fail the run if a cue of the script did nothing
    #[arg(long)]
    strict: bool,
}

/// Options that only apply to a single run.
const REPEATED_CONFLICTS: [&str; 14] = [
    "realtime",
    "inspect",
    "events",
    "hashes",
    "capture",
    "report",
    "csv",
    "picture",
    "animation",
    "trace",
    "memory",
    "leaks",
    "store",
    "strict",
];

/// Printed when the store failed and is not back at the end of the run.
const UNSAVED: &str = "--store: not all players could be saved; the store is consistent, but some players have older values";

const EXAMPLES: &str = "Examples:
  throng run
  throng run siege --seed 7 --threads 1
  throng run my.ron --duration 5m --events events.jsonl
  throng run my.ron --report my.html
  throng run my.ron --inspect 127.0.0.1:7777
  throng run my.ron --quiet --strict --check-timing
  throng run town --store players.db
  throng run my.ron --sweep npcs=1000..200000 --until \"TickP99UnderMs(50)\"
  throng run my.ron --set npcs=1000 --set npcs=2000 --compare

Exit codes: 0 all expectations hold; 1 an expectation failed or had nothing to
check, or an action of the script or the store failed; 2 invalid usage or input;
130 and 143 stopped by Ctrl-C or SIGTERM, expectations not checked. With --quiet
only failures are printed, on the standard error.";

impl Run {
    /// The built-in `town` with default options.
    pub(super) fn town() -> Self {
        Self {
            scenario: "town".to_owned(),
            ..Self::default()
        }
    }

    /// Runs the scenario, checks its expectations and prints the report.
    pub(super) fn run(self, output: Output) -> Result<CliStatus, CliError> {
        if let Some(range) = &self.sweep {
            return self.sweep(range, output);
        }
        if self.compare {
            return self.compare(output);
        }
        self.run_once(output)
    }

    fn run_once(self, output: Output) -> Result<CliStatus, CliError> {
        let quiet = output.quiet;
        let printer = Printer::for_stderr();
        let mut loaded = scenario::load_with(&self.scenario, &self.set.values)?;
        if let Some(duration_s) = self.duration {
            loaded.scenario.duration_s = duration_s;
        }
        self.check_files(&loaded)?;
        // Errors of the scenario and its maps are reported before a file is overwritten.
        let review = loaded.review(ATTRIBUTE_NAMES, &Behaviours::default());
        if !review.errors.is_empty() {
            let errors = review.errors.into_iter().map(CliError::from);
            errors.for_each(|error| printer.error(&error));
            return Ok(CliStatus::InvalidInput);
        }
        let is_sound = self.warn(&printer, &review.warnings, quiet);
        self.add_expectations(&mut loaded.scenario)?;
        let mut files = Vec::new();
        let mut options = self.options(&mut files)?;
        let animation = self.animation.as_deref().map(open).transpose()?;
        let animation = animation.map(|(file, to)| {
            files.push(file);
            to
        });
        let tick_hz = loaded.scenario.tick_hz;
        let is_unsaved = self.store.add_to(&mut options, self.realtime, &mut files)?;
        let trace = self.trace.as_deref();
        let mut trace = trace
            .map(|path| RunTrace::start(path, output))
            .transpose()?;
        let mut playing = Playing::new(loaded, options)?;
        if !self.warn(&printer, playing.warnings(), quiet) || !is_sound {
            return Ok(CliStatus::InvalidInput);
        }
        let mut pace = self.open_page(&mut playing, tick_hz, quiet)?;
        truncate(&files)?;
        tracing::info!(
            scenario = playing.name(),
            ticks = playing.ticks(),
            "run started"
        );
        listen_for_interrupt();
        let all_ticks = playing.ticks();
        let machine = Machine::current(playing.threads());
        let mut animation = self.animation.as_deref().zip(animation).map(|(path, to)| {
            let (name, ticks) = (playing.name().to_owned(), playing.ticks());
            let world = playing.server().world();
            Animation::start(to, path, world, name, (ticks, tick_hz))
        });
        let watching = (animation.as_mut(), trace.as_mut());
        let played = run_ticks(&mut playing, watching, pace.as_mut(), quiet);
        // Errors of the animation, trace or picture are reported after the report of the run.
        let animated = animation.map_or(Ok(()), Animation::finish);
        let traced = trace.as_mut().map_or(Ok(()), RunTrace::finish);
        let drawn = self.picture.as_ref().map_or(Ok(()), |file| {
            let title = format!("{}, tick {}", playing.name(), playing.tick());
            draw_crowd(playing.server().world(), &title, file)
        });
        // If the output cannot be written, the run still ends normally, so that its players are saved.
        let report = playing.finish_unless(|| played.is_err() || is_interrupted());
        let report = played.and(report).map_err(|error| write_error(&error))?;
        let printed = RunOutput::new(&report, machine);
        self.print(&report, &printed, all_ticks, quiet)?;
        drawn.and(animated).and(traced)?;
        if let Some(file) = &self.report {
            page::write_run(file, &printed.json()?, &self.images()?)?;
        }
        if is_unsaved.load(Ordering::Relaxed) {
            printer.error(&CliError::new(UNSAVED));
            return Ok(CliStatus::Failed);
        }
        let store = report.player_store.as_ref();
        let store_failures = store.map_or(0, |store| store.store_failures);
        Ok(match report.interrupted {
            Some(_) => interrupted_status(),
            None if report.is_ok() && store_failures == 0 => CliStatus::Done,
            None => CliStatus::Failed,
        })
    }

    /// The animation and the picture that this command wrote, for the page.
    fn images(&self) -> Result<Vec<PageImage>, CliError> {
        let images = [
            (&self.animation, "The crowd over the whole run"),
            (&self.picture, "The crowd after the last tick"),
        ];
        let written = images
            .into_iter()
            .filter_map(|(path, caption)| Some((path.as_deref()?, caption)));
        written
            .map(|(path, caption)| PageImage::read(path, caption))
            .collect()
    }

    /// Opens the inspect page, if requested.
    fn open_page(
        &self,
        playing: &mut Playing,
        tick_hz: f64,
        quiet: bool,
    ) -> Result<Option<PageControlledPace>, CliError> {
        let Some(address) = self.inspect else {
            return Ok(None);
        };
        let (pace, page) =
            PageControlledPace::open(playing.server().world_mut(), address, tick_hz)?;
        if !quiet {
            // Errors are ignored: the run does not need stderr.
            let line = format!("inspect page: http://{page}/, paused");
            let _ = writeln!(io::stderr(), "{line}");
        }
        Ok(Some(pace))
    }

    /// Prints the report.
    fn print(
        &self,
        report: &Report,
        printed: &RunOutput,
        all_ticks: u64,
        quiet: bool,
    ) -> Result<(), CliError> {
        if self.json {
            print(&printed.json()?)?;
        } else if !quiet {
            print(&table(report, all_ticks))?;
            if self.memory {
                let objects = &report.objects;
                let all = objects.players + objects.npcs + objects.other;
                let per = [all, objects.players, report.views.links];
                print(&memory_table(&report.memory, per))?;
            }
            if let Some(leaks) = &report.leaks {
                print(&leak_lines(leaks))?;
            }
        }
        if quiet {
            let lines = failure_lines(report, all_ticks);
            lines.iter().for_each(|line| print_failure(line));
        }
        Ok(())
    }

    /// Expectations added by flags.
    fn add_expectations(&self, scenario: &mut Scenario) -> Result<(), CliError> {
        let Scenario { script, expect, .. } = scenario;
        if self.strict && !script.is_empty() && !expect.contains(&Expectation::NoCuesWithoutEffect)
        {
            expect.push(Expectation::NoCuesWithoutEffect);
        }
        if self.leaks && !cfg!(feature = "leak-track") {
            return Err(CliError::new(
                "--leaks: this program does not track allocations; build it with `--features leak-track`",
            ));
        }
        if self.leaks && !expect.contains(&Expectation::NoLeaks) {
            expect.push(Expectation::NoLeaks);
        }
        Ok(())
    }

    /// Prints warnings, as errors with `--strict`; returns whether the run may continue.
    fn warn(&self, printer: &Printer, warnings: &[SourceError], quiet: bool) -> bool {
        for warning in warnings.iter().map(CliError::from) {
            match (self.strict, quiet) {
                (true, _) => printer.error(&warning),
                (false, true) => {}
                (false, false) => printer.warning(&warning),
            }
        }
        warnings.is_empty() || !self.strict
    }

    /// Checks that no output is an input or another output, and that the picture and the page, which are written last, can be written.
    fn check_files(&self, loaded: &LoadedScenario) -> Result<(), CliError> {
        let maps: Vec<PathBuf> = loaded.map_files().collect();
        let store = self.store.files();
        let named = |name, path| RunFile { name, path };
        let inputs: Vec<RunFile> = (loaded.path.iter().map(|path| named("the scenario", path)))
            .chain(self.map.iter().map(|path| named("--map", path)))
            .chain(
                loaded
                    .sources
                    .paths()
                    .map(|path| named("a file of the scenario", path)),
            )
            .chain(maps.iter().map(|path| named("a map of the scenario", path)))
            .chain(store.iter().map(|path| named("--store", path)))
            .collect();
        let outputs: Vec<RunFile> = [
            ("--events", &self.events),
            ("--hashes", &self.hashes),
            ("--capture", &self.capture),
            ("--csv", &self.csv),
            ("--picture", &self.picture),
            ("--animation", &self.animation),
            ("--trace", &self.trace),
            ("--report", &self.report),
            ("--acknowledged", &self.store.acknowledged),
        ]
        .into_iter()
        .filter_map(|(name, path)| Some(named(name, path.as_deref()?)))
        .collect();
        let mut images = [&self.picture, &self.animation].into_iter().flatten();
        images.try_for_each(|path| image::check_name(path))?;
        let made_at_the_end = [&self.picture, &self.report].into_iter().flatten();
        check_outputs(&inputs, &outputs)?;
        self.report.as_deref().map_or(Ok(()), check_page)?;
        made_at_the_end
            .into_iter()
            .try_for_each(|path| check_writable(path))
    }

    /// Which expectations on wall time are checked.
    const fn timing_checks(&self) -> TimingChecks {
        match (self.check_timing, self.no_timing) {
            (true, _) => TimingChecks::Always,
            (false, true) => TimingChecks::Never,
            (false, false) => TimingChecks::AsWritten,
        }
    }

    /// The options of the run. Opens the output files, which keep their content until they are truncated.
    fn options(&self, files: &mut Vec<File>) -> Result<RunOptions, CliError> {
        let map = self.map.as_deref().map(named_map).transpose()?;
        let mut output = |path: &Option<PathBuf>| {
            let opened = path.as_deref().map(open).transpose()?;
            Ok::<_, CliError>(opened.map(|(file, writer)| {
                files.push(file);
                writer
            }))
        };
        Ok(RunOptions {
            has_external_clients: false,
            seed: self.seed,
            map,
            ticks: self.ticks,
            threads: self.threads.map_or_else(cores, usize::from),
            pace: if self.realtime {
                Pace::RealTime
            } else {
                Pace::AsFastAsPossible
            },
            events: output(&self.events)?.map(|file| Box::new(file) as _),
            positions: self.positions,
            hashes: output(&self.hashes)?.map(|file| Box::new(file) as _),
            capture: output(&self.capture)?.map(|file| Box::new(file) as _),
            record: self.report.is_some(),
            csv: output(&self.csv)?.map(|file| Box::new(file) as _),
            timing_checks: self.timing_checks(),
            memory: Some(process_memory),
            configure: if self.inspect.is_some() {
                vec![Box::new(|app| {
                    app.add_plugins(InspectPlugin);
                })]
            } else {
                Vec::new()
            },
            at_end: Vec::new(),
        })
    }
}

/// Runs all ticks, or until interrupted.
fn run_ticks(
    playing: &mut Playing,
    (mut animation, mut trace): (
        Option<&mut Animation<BufWriter<File>>>,
        Option<&mut RunTrace>,
    ),
    mut pace: Option<&mut PageControlledPace>,
    quiet: bool,
) -> io::Result<()> {
    let bar = progress(playing.ticks(), "tick", quiet);
    while !is_interrupted() {
        let world = playing.server().world_mut();
        if pace.as_mut().is_some_and(|pace| !pace.poll_tick_due(world)) {
            continue;
        }
        if !playing.step()? {
            break;
        }
        if let Some(animation) = &mut animation {
            let tick = playing.tick();
            animation.after_tick(playing.server().world(), tick);
        }
        if let Some(trace) = &mut trace {
            trace.after_tick(playing.tick());
        }
        if playing.tick().is_multiple_of(20) {
            bar.set_position(playing.tick());
        }
    }
    bar.finish_and_clear();
    Ok(())
}

fn named_map(path: &Path) -> Result<(String, map::TileMap), CliError> {
    Ok((path.display().to_string(), map::load(path)?))
}

fn write_error(error: &io::Error) -> CliError {
    CliError::new(format!(
        "could not write events, hashes, ticks or the capture: {error}"
    ))
}
