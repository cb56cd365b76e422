//! `throng run`: plays a scenario and prints what it found.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use super::color::broken_text;
use super::escape::escaped;
use super::memory_table::{leak_lines, memory_table};
use super::outputs::{RunFile, check_outputs, check_writable, empty, open};
use super::picture::draw_crowd;
use super::set::Set;
use super::store::RunStore;
use super::{
    ExitStatus, Failure, Printer, WIDTH, cores, image, interrupted, is_interrupted,
    listen_for_interrupt, print, print_wrong, progress, threads, whole_number, wrapped,
};
use crate::crowd::ATTRIBUTE_NAMES;
use crate::map;
use crate::memory::process_memory;
use crate::scenario::{
    self, Behaviours, DirectoryFigures, Expectation, Judged, Loaded, Mistake, Report, RunOptions,
    Scenario, ScenarioRun as Playing, SessionFigures, TimeJudging, Verdict,
};
use crate::server::Pace;

/// Arguments of `throng run`.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Run {
    /// A scenario file, a built-in's name, or - for the standard input
    #[arg(default_value = "town")]
    scenario: String,
    #[command(flatten)]
    set: Set,
    /// Seed, in place of the scenario's
    #[arg(long, value_name = "N", value_parser = whole_number)]
    seed: Option<u64>,
    /// Map, in place of the first scene's
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Ticks, in place of the duration
    #[arg(long, value_name = "N", value_parser = whole_number, conflicts_with = "duration")]
    ticks: Option<u64>,
    /// Simulated time, in place of the scenario's: 90s, 5m, 1h
    #[arg(long, value_name = "TIME", value_parser = seconds, allow_hyphen_values = true)]
    duration: Option<f64>,
    /// Threads; all cores by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Play in real time, not as fast as possible
    #[arg(long)]
    realtime: bool,
    /// Print one JSON object in place of the table
    #[arg(long)]
    json: bool,
    /// Write what happens, a JSON object a line
    #[arg(long, value_name = "FILE.jsonl")]
    events: Option<PathBuf>,
    /// With --events: also where everybody is in every tick
    #[arg(long, requires = "events")]
    positions: bool,
    /// Write `TICK HASH`, a line a tick
    #[arg(long, value_name = "FILE")]
    hashes: Option<PathBuf>,
    /// Write every packet as it was sent
    ///
    /// Up to the last tick. Its format: the page of `throng::outbox`.
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Judge all expectations on wall time
    ///
    /// Otherwise those alone that say so themselves: `TicksUnderMs`.
    #[arg(long, conflicts_with = "no_timing")]
    judge_time: bool,
    /// Draw the crowd on its map, as it is after the last tick
    #[arg(long, value_name = "FILE.png")]
    picture: Option<PathBuf>,
    /// Show expectations on wall time, but judge none of them
    #[arg(long)]
    no_timing: bool,
    /// Tell what each module holds in memory
    ///
    /// --json has it anyway.
    #[arg(long)]
    memory: bool,
    /// Expect `NoLeaks`: after the run everybody leaves, and nothing stays
    ///
    /// Shows what was not given back, by function. For a program built with
    /// --features cli,leak-track.
    #[arg(long)]
    leaks: bool,
    #[command(flatten)]
    store: RunStore,
    /// Refuse a scenario of which there is something to warn; exit code 1 when a
    /// cue of its script did nothing
    #[arg(long)]
    strict: bool,
}

/// Where figures begin in the table, and their lines go on.
const FIGURES_INDENT: usize = 12;

/// Where what was found goes on in the next line.
const VERDICT_INDENT: usize = 8;

const EXAMPLES: &str = "Examples:
  throng run
  throng run siege --seed 7 --threads 1
  throng run my.ron --duration 5m --events events.jsonl
  throng run my.ron --quiet --strict --judge-time
  throng run town --store players.db

Exit codes: 0 every expectation holds; 1 one is broken or was not exercised, or
a cue of the script could not do what it says; 2 bad usage or bad input; 130 and
143 stopped by Ctrl-C and by SIGTERM, and nothing was judged. With --quiet what
is broken is told on stderr, and nothing else.";

fn seconds(text: &str) -> Result<f64, String> {
    let (number, factor) = match text.chars().last() {
        Some('s') => (&text[..text.len() - 1], 1.0),
        Some('m') => (&text[..text.len() - 1], 60.0),
        Some('h') => (&text[..text.len() - 1], 3600.0),
        _ => (text, 1.0),
    };
    let seconds = number.parse::<f64>().ok().map(|number| number * factor);
    seconds
        .filter(|seconds| (0.0..=7.0 * 86_400.0).contains(seconds))
        .ok_or_else(|| "expected a time of up to seven days, such as 90s, 5m or 1h".to_owned())
}

impl Run {
    /// The built-in `town`, with defaults.
    pub(super) fn town() -> Self {
        Self {
            scenario: "town".to_owned(),
            ..Self::default()
        }
    }

    /// Plays, prints and judges.
    pub(super) fn run(self, quiet: bool) -> Result<ExitStatus, Failure> {
        let printer = Printer::for_stderr();
        let mut loaded = scenario::load_with(&self.scenario, &self.set.values)?;
        if let Some(duration_s) = self.duration {
            loaded.scenario.duration_s = duration_s;
        }
        self.check_files(&loaded)?;
        // What is wrong with the scenario and its maps is told before a file is overwritten for it.
        let review = loaded.review(ATTRIBUTE_NAMES, &Behaviours::default());
        if !review.errors.is_empty() {
            let errors = review.errors.into_iter().map(Failure::from);
            errors.for_each(|error| printer.error(&error));
            return Ok(ExitStatus::Bad);
        }
        let is_sound = self.warn(&printer, &review.warnings, quiet);
        let Scenario { script, expect, .. } = &mut loaded.scenario;
        if self.strict && !script.is_empty() && !expect.contains(&Expectation::NoIdleCues) {
            expect.push(Expectation::NoIdleCues);
        }
        if self.leaks && !cfg!(feature = "leak-track") {
            return Err(Failure::new(
                "--leaks: this program does not follow allocations; build one with `--features cli,leak-track`",
            ));
        }
        if self.leaks && !expect.contains(&Expectation::NoLeaks) {
            expect.push(Expectation::NoLeaks);
        }
        let mut files = Vec::new();
        let mut options = self.options(&mut files)?;
        let is_unsaved = self.store.add_to(&mut options, self.realtime, &mut files)?;
        let mut playing = Playing::new(loaded, options)?;
        if !self.warn(&printer, playing.warnings(), quiet) || !is_sound {
            return Ok(ExitStatus::Bad);
        }
        empty(&files)?;
        tracing::info!("{} ticks of `{}` begin", playing.ticks(), playing.name());
        listen_for_interrupt();
        let all_ticks = playing.ticks();
        let played = play(&mut playing, quiet);
        // A picture that cannot be drawn is told after the report of the run.
        let drawn = self.picture.as_ref().map_or(Ok(()), |file| {
            let title = format!("{}, tick {}", playing.name(), playing.tick());
            draw_crowd(playing.server().world(), &title, file)
        });
        // A run whose output cannot be written ends like any other, so that its players are saved.
        let report = playing.finish_unless(|| played.is_err() || is_interrupted());
        let report = played.and(report).map_err(|error| unwritten(&error))?;
        if self.json {
            let text = serde_json::to_string_pretty(&report);
            print(&text.map_err(|error| Failure::new(error.to_string()))?)?;
        } else if !quiet {
            print(&table(&report, all_ticks))?;
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
            wrong_lines(&report, all_ticks)
                .iter()
                .for_each(|line| print_wrong(line));
        }
        drawn?;
        if is_unsaved.load(Ordering::Relaxed) {
            let message =
                "--store: not all players could be saved; what is on disk is whole, and older";
            return Err(Failure::new(message));
        }
        Ok(match report.interrupted {
            Some(_) => interrupted(),
            None if report.is_ok() => ExitStatus::Done,
            None => ExitStatus::Unmet,
        })
    }

    /// Tells warnings, as errors if they are to be; whether the run may go on.
    fn warn(&self, printer: &Printer, warnings: &[Mistake], quiet: bool) -> bool {
        for warning in warnings.iter().map(Failure::from) {
            match (self.strict, quiet) {
                (true, _) => printer.error(&warning),
                (false, true) => {}
                (false, false) => printer.doubt(&warning),
            }
        }
        warnings.is_empty() || !self.strict
    }

    /// Checks that nothing is overwritten that is read, or written otherwise, and that there is a place for the picture, which
    /// is drawn last.
    fn check_files(&self, loaded: &Loaded) -> Result<(), Failure> {
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
            ("--picture", &self.picture),
            ("--acknowledged", &self.store.acknowledged),
        ]
        .into_iter()
        .filter_map(|(name, path)| Some(named(name, path.as_deref()?)))
        .collect();
        self.picture.as_deref().map_or(Ok(()), image::check_name)?;
        check_outputs(&inputs, &outputs)?;
        self.picture.as_deref().map_or(Ok(()), check_writable)
    }

    /// How the scenario is to be played. Opens the files of the outputs; what they hold stays until they are emptied.
    fn options(&self, files: &mut Vec<File>) -> Result<RunOptions, Failure> {
        let map = self.map.as_deref().map(named_map).transpose()?;
        let mut output = |path: &Option<PathBuf>| {
            let opened = path.as_deref().map(open).transpose()?;
            Ok::<_, Failure>(opened.map(|(file, writer)| {
                files.push(file);
                writer
            }))
        };
        Ok(RunOptions {
            outside: false,
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
            time: match (self.judge_time, self.no_timing) {
                (true, _) => TimeJudging::Always,
                (false, true) => TimeJudging::Never,
                (false, false) => TimeJudging::AsWritten,
            },
            memory: Some(process_memory),
            configure: Vec::new(),
            at_end: Vec::new(),
        })
    }
}

/// Does all ticks, or as many as there is time for.
fn play(playing: &mut Playing, quiet: bool) -> io::Result<()> {
    let bar = progress(playing.ticks(), "tick", quiet);
    while !is_interrupted() && playing.step()? {
        if playing.tick().is_multiple_of(20) {
            bar.set_position(playing.tick());
        }
    }
    bar.finish_and_clear();
    Ok(())
}

fn named_map(path: &Path) -> Result<(String, map::TileMap), Failure> {
    Ok((path.display().to_string(), map::load(path)?))
}

fn unwritten(error: &io::Error) -> Failure {
    Failure::new(format!(
        "could not write events, hashes or the capture: {error}"
    ))
}

/// The table that a person reads: 80 columns. `all_ticks` is how many there were to be.
fn table(report: &Report, all_ticks: u64) -> String {
    let mut text = Vec::new();
    // Writing into memory does not fail.
    let _ = write_table(&mut text, report).and_then(|()| match report.interrupted {
        Some(tick) => writeln!(text, "\n{}", interrupted_line(tick, all_ticks)),
        None => Ok(()),
    });
    let text = String::from_utf8_lossy(&text);
    let lines = text.trim_end().lines().map(|line| {
        // What is broken is coloured, and fits already.
        if line.chars().count() <= WIDTH || line.contains('\u{1b}') {
            line.to_owned()
        } else {
            wrapped(line, FIGURES_INDENT)
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn write_table(to: &mut impl Write, report: &Report) -> io::Result<()> {
    let speed = report.sim_seconds / report.wall_seconds.max(1e-9);
    writeln!(
        to,
        "scenario    {} (seed {}, {})",
        escaped(&report.scenario),
        report.seed,
        threads(report.threads)
    )?;
    if !report.parameters.is_empty() {
        let values = report.parameters.iter();
        let values: Vec<String> = values
            .map(|(name, value)| format!("{} = {}", escaped(name), escaped(value)))
            .collect();
        writeln!(to, "parameters  {}", values.join(", "))?;
    }
    writeln!(
        to,
        "time        {} ticks, {:.1} s simulated in {:.1} s: {speed:.1} × real time",
        report.ticks, report.sim_seconds, report.wall_seconds
    )?;
    let objects = &report.objects;
    writeln!(
        to,
        "objects     {} players, {} NPCs, {} others; {} at most",
        objects.players, objects.npcs, objects.other, objects.peak
    )?;
    let clients = &report.clients;
    writeln!(
        to,
        "clients     {} now, {} with a mirror; {} logins, {} logouts, {} refused",
        clients.now, clients.mirrors, clients.logins, clients.logouts, clients.refused
    )?;
    write_sessions(to, &report.sessions)?;
    if let Some(directory) = &report.directory {
        write_directory(to, directory)?;
    }
    let paths = &report.paths;
    writeln!(
        to,
        "paths       {} found of {}, {} unreachable, {} capped; {:.0} µs, p99 {:.0} µs",
        paths.found, paths.requested, paths.unreachable, paths.capped, paths.mean_us, paths.p99_us
    )?;
    if paths.blocked > 0 {
        writeln!(
            to,
            "            {} blocked: {} at their start, {} at their goal",
            paths.blocked, paths.blocked_at_start, paths.blocked_at_goal
        )?;
    }
    if paths.out_of_bounds > 0 {
        writeln!(
            to,
            "            {} out of bounds, {} of them where there is no map",
            paths.out_of_bounds, paths.without_map
        )?;
    }
    let builds = &report.builds;
    if builds.adopted > 0 {
        let late = match builds.late {
            0 => String::new(),
            late => format!("; {late} late, by {} ticks", builds.late_ticks),
        };
        writeln!(
            to,
            "            {} builds of maps, {:.0} ms waited for between ticks{late}",
            builds.adopted, builds.waited_ms
        )?;
    }
    let views = &report.views;
    writeln!(
        to,
        "views       {} links, {} enters, {} evictions; longest list {} (cap {})",
        views.links, views.enters, views.evictions, views.max_list, views.cap
    )?;
    write_systems(to, report)?;
    writeln!(to, "state hash  {}", report.state_hash)?;
    write_times(to, report)?;
    write_verdict(to, report)
}

/// What befell sessions beside logins and logouts, where anything did.
fn write_sessions(to: &mut impl Write, sessions: &SessionFigures) -> io::Result<()> {
    let ended = &sessions.ended;
    let befell = [
        sessions.links_lost,
        ended.kicked + ended.banned + ended.replaced,
        ended.idle + ended.drained,
        sessions.max_in_line,
    ];
    if befell == [0; 4] {
        return Ok(());
    }
    writeln!(
        to,
        "sessions    {} links lost, {} resumed; {} kicked, {} banned, {} replaced",
        sessions.links_lost, sessions.resumed, ended.kicked, ended.banned, ended.replaced
    )?;
    writeln!(
        to,
        "            {} idle, {} drained; at most {} in line, {} let in a tick",
        ended.idle, ended.drained, sessions.max_in_line, sessions.max_admitted
    )
}

/// What became of players that are kept.
fn write_directory(to: &mut impl Write, directory: &DirectoryFigures) -> io::Result<()> {
    writeln!(
        to,
        "directory   {} players saved in {} transactions; {} unsaved, at most {}",
        directory.saves, directory.transactions, directory.unsaved, directory.max_unsaved
    )?;
    writeln!(
        to,
        "            {} loaded, {} leases held, {} lost, {} ran out; {} logins refused",
        directory.loads,
        directory.leases,
        directory.leases_lost,
        directory.leases_expired,
        directory.logins_refused
    )?;
    if directory.look_ups > 0 {
        writeln!(
            to,
            "            {} looks at players elsewhere, {} answered at once, {} failed",
            directory.look_ups, directory.look_up_hits, directory.look_up_failures
        )?;
    }
    if directory.store_failures > 0 {
        writeln!(
            to,
            "            the store failed {} times",
            directory.store_failures
        )?;
    }
    Ok(())
}

/// What clients, queues and messages came to.
fn write_systems(to: &mut impl Write, report: &Report) -> io::Result<()> {
    let sync = &report.sync;
    writeln!(
        to,
        "sync        {} packets, {}; {:.1} kB/s a client",
        sync.packets,
        bytes(sync.bytes),
        sync.bytes_per_client_s / 1e3
    )?;
    writeln!(
        to,
        "            {} snapshots, {} deltas, {} moves, {} despawns",
        sync.snapshots, sync.deltas, sync.moves, sync.despawns
    )?;
    writeln!(
        to,
        "            {} unseen (parties, scene), {} announcements",
        sync.remotes, sync.announces
    )?;
    if sync.attributes_clamped > 0 {
        writeln!(
            to,
            "            {} values did not fit their encoding, and were clamped",
            sync.attributes_clamped
        )?;
    }
    let matches = &report.matchmaking;
    if matches.queued > 0 {
        writeln!(
            to,
            "matches     {} of {} parties, {} wait; gap {:.0}, spread {:.0}, wait {:.1} s",
            matches.matches,
            matches.queued,
            matches.waiting,
            matches.mean_power_gap,
            matches.mean_spread,
            matches.mean_wait_s
        )?;
    }
    let inbox = &report.inbox;
    writeln!(
        to,
        "inbox       {} received, {} refused; {} waited at most, {:.0} ms",
        inbox.received, inbox.refused, inbox.max_backlog, inbox.max_lag_ms
    )?;
    if let Some(peak) = report.memory.peak_rss_bytes {
        writeln!(to, "memory      {} at most", bytes(peak))?;
    }
    Ok(())
}

/// How long the sets of the tick took.
fn write_times(to: &mut impl Write, report: &Report) -> io::Result<()> {
    writeln!(
        to,
        "\n{:<12}{:>10}{:>10}{:>10}{:>10}",
        "set", "mean ms", "p50 ms", "p99 ms", "max ms"
    )?;
    for set in crate::sim::SimSystems::ALL {
        if let Some(ms) = report.systems.get(set.name()) {
            row(
                to,
                set.name(),
                [ms.mean_ms, ms.p50_ms, ms.p99_ms, ms.max_ms],
            )?;
        }
    }
    let tick = report.tick_ms;
    row(to, "tick", [tick.mean, tick.p50, tick.p99, tick.max])?;
    if let Some(start_up) = report.start_up {
        writeln!(
            to,
            "start-up    {} ticks, not counted above: mean {:.3} ms, max {:.3} ms",
            start_up.ticks, start_up.mean_ms, start_up.max_ms
        )?;
    }
    Ok(())
}

/// What the script could not do, and what was expected.
fn write_verdict(to: &mut impl Write, report: &Report) -> io::Result<()> {
    let lines = [fault_lines(report), idle_lines(report)].concat();
    if !lines.is_empty() {
        writeln!(to)?;
    }
    for line in lines {
        writeln!(to, "{line}")?;
    }
    if !report.expectations.is_empty() {
        writeln!(to)?;
        report.expectations.iter().try_for_each(|judged| {
            let lines = wrapped(&judged_line(judged), VERDICT_INDENT);
            writeln!(to, "{}", marked(judged, &lines))
        })?;
    }
    Ok(())
}

fn row(to: &mut impl Write, name: &str, [mean, p50, p99, max]: [f64; 4]) -> io::Result<()> {
    writeln!(
        to,
        "{name:<12}{mean:>10.3}{p50:>10.3}{p99:>10.3}{max:>10.3}"
    )
}

fn judged_line(judged: &Judged) -> String {
    let mark = match judged.verdict {
        Verdict::Holds => "ok",
        Verdict::Broken => "BROKEN",
        Verdict::NotExercised => "not exercised:",
        Verdict::NotJudged => "not judged:",
        Verdict::SlowHere => "slow here:",
    };
    format!(
        "{mark:<7} {}: {}",
        escaped(&judged.text),
        escaped(&judged.found)
    )
}

/// In colour when it is broken.
fn marked(judged: &Judged, line: &str) -> String {
    if judged.verdict.fails() {
        broken_text(line)
    } else {
        line.to_owned()
    }
}

/// What the script could not do; the first few of it.
fn fault_lines(report: &Report) -> Vec<String> {
    let faults = report.script_faults.iter();
    faults
        .map(|fault| format!("script fault  {}", escaped(fault)))
        .collect()
}

/// Cues that did nothing, which is probably not what was meant.
fn idle_lines(report: &Report) -> Vec<String> {
    let idle = report.script_idle_cues.iter();
    idle.map(|cue| format!("idle cue      {}", escaped(cue)))
        .collect()
}

fn interrupted_line(tick: u64, all_ticks: u64) -> String {
    format!("interrupted after tick {tick} of {all_ticks}: nothing was judged")
}

/// What is broken, for who wants to know nothing else.
fn wrong_lines(report: &Report, all_ticks: u64) -> Vec<String> {
    if let Some(tick) = report.interrupted {
        return vec![interrupted_line(tick, all_ticks)];
    }
    let fails = |judged: &&Judged| judged.verdict.fails();
    let broken = report.expectations.iter().filter(fails);
    let lines: Vec<String> = broken
        .map(|judged| marked(judged, &judged_line(judged)))
        .collect();
    let faults = if lines.is_empty() {
        Vec::new()
    } else {
        fault_lines(report)
    };
    [faults, lines].concat()
}

fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} B"),
        10_000..10_000_000 => format!("{:.0} kB", count as f64 / 1e3),
        _ => format!("{:.0} MB", count as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_limits() {
        assert_eq!(seconds("90s"), Ok(90.0));
        assert_eq!(seconds("1.5m"), Ok(90.0));
        assert_eq!(seconds("2h"), Ok(7200.0));
        assert_eq!(seconds("7"), Ok(7.0));
        for bad in ["", "s", "-1s", "nan", "inf", "8000h", "5 parsecs", "µ"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
