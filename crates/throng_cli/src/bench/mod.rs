//! `throng bench`: systems, and the whole tick, under synthetic load, compared with references.
//!
//! ```text
//! systems ──▶ one file per system ──▶ [`BenchRow`]s ──▶ tables, JSON, or a page
//!   calibration before, between and after            └── compared with an earlier run
//! ```
//! | file | holds |
//! |---|---|
//! | `nav/`, `aoi`, `hostile/`, `inbox`, `load`, `matchmaking`, `memory`, `net`, `outbox`, `session`, `store`, `sync` | the rows of a system |
//! | `tick`, `crowd_search`, `thread_sweep` | the whole tick under a crowd; the search for the largest; several numbers of threads |
//! | `dirty_flags` | other ways to track changes, for `sync` |
//! | `calibration` | the speed of this machine during the measurement, and whether it is busy |
//! | `growth` | growth of figures with sizes, and their exponents |
//! | `rows`, `table`, `page` | [`BenchRow`], and its output for people |
//! | `baseline` | results of an earlier run |
//! | `readme` | the tables in benches/RESULTS.md |
//!
//! A row is one piece of work, done by throng and, if there is one, by a reference. Both run in the same process on the same input,
//! alternating or one after the other as the file states, and their results are compared. Input is generated from fixed seeds; only the
//! times vary from run to run. Different results are always an error. Targets hold for the machine on which they were set, and are only
//! checked on request.

mod aoi;
mod baseline;
mod calibration;
mod crowd_search;
mod dirty_flags;
mod growth;
mod hostile;
mod inbox;
mod load;
mod matchmaking;
mod memory;
mod nav;
mod net;
mod outbox;
pub(super) mod page;
mod readme;
pub(super) mod rows;
mod session;
mod store;
mod sync;
mod table;
mod thread_sweep;
mod tick;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::color::failure_text;
use super::machine::Machine;
use super::outputs::{RunFile, check_outputs, check_page, check_writable};
use super::page::write as write_page;
use super::{
    CliError, CliStatus, cores, interrupted_status, is_interrupted, listen_for_interrupt, print,
    print_failure, progress,
};
use baseline::BenchBaseline;
use calibration::Calibration;
pub(super) use crowd_search::{CrowdSearch, TRIES, Tries};
use rows::BenchRow;
pub(super) use table::number;
use throng::server::task_pools;

/// Arguments of `throng bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Bench {
    /// Systems to measure [default: all]
    #[arg(value_enum, value_name = "SYSTEM")]
    systems: Vec<BenchTarget>,
    /// Measure for a shorter time
    #[arg(long)]
    quick: bool,
    /// Crowd sizes for `tick`; without it, search for the largest
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = players())]
    players: Vec<u32>,
    /// Threads for `nav`, `aoi`, `memory` and `tick` [default: all cores]; a list (1,2,4) for `tick` with --players
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Vec<u16>,
    /// Check the targets: exit code 1 if one is missed
    #[arg(long, alias = "judge")]
    check_targets: bool,
    /// Print one JSON object instead of tables: the machine, and `rows`
    #[arg(long)]
    json: bool,
    /// Compare with the output of an earlier --json
    #[arg(long, value_name = "FILE.json")]
    baseline: Option<PathBuf>,
    /// Write an HTML page with all results
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Add the results of benches/peers to the page and the --readme file
    #[arg(long, value_name = "FILE.json")]
    peers: Option<PathBuf>,
    /// Write the tables of searches and of --peers into this file, between its marks
    #[arg(long, value_name = "FILE.md")]
    readme: Option<PathBuf>,
}

/// Maximum number of listed rows that differ or miss their target.
const FAILURES_SHOWN_MAX: usize = 8;

const EXAMPLES: &str = "Examples:
  throng bench nav matchmaking --quick
  throng bench tick --players 2000,10000
  throng bench tick --players 10000 --threads 1,2,4
  throng bench --json > before.json
  throng bench --baseline before.json --report now.html

Each row shows the median, minimum and maximum of its repeats. A ratio of 2
means that the reference takes twice as long. Results are compared with the
reference: if they differ, the row says so and the exit code is 1. Two
calibration rows measure a core and the memory of this machine at the same time.

With --baseline each row also shows the earlier value and the difference, for
the median and for the best repeat, which other work of the machine disturbs
least. `Within the spread`: the change is not larger than the range of the
repeats of one run. In JSON all ratios have the same direction: above 1, throng
is better, or better now.

Ctrl-C keeps the rows so far and checks no target of the interrupted system:
exit code 130, in JSON `interrupted`.

`tick` plays a town with 2,500 players per km²: 80 % walk along paths, 10 %
gather in the square, the others wander or stand, and one NPC per four players
chases them. Every player sends 10 messages per second, changes an attribute
twice per second and sees at most 100 players; its packets are assembled and
counted. After a warm-up of 12 s, 30 s are measured (10 s per step of the
search, 5 s with --quick). The work of the synthetic clients runs between ticks
and is not measured. Memory is that of the process, including map and clients,
minus its size at the start.
With --players each crowd is also measured in one square of 100 m, for up to
90 s (20 s with --quick). Three or more sizes give the exponents by which each
set grows: 1 is linear, 2 is quadratic.
With several --threads every crowd is played with each number of threads, and
times are compared with the first: a ratio of 2 is twice as fast. All results
must be equal. Other systems use the largest number.
Without --players it searches for the largest crowd whose p99 tick is below
50 ms, repeats both sides of the limit, and prints a range.

`hostile` starts a server of the town as a process of its own. First, 10,000
connections (1,000 with --quick) fill all its buffers for them and acknowledge
nothing. Then 500 clients (100) play and others come and go, while one address
sends 100,000 datagrams per second: random bytes, forged and replayed requests,
wrong answers, replayed data. Delays are compared with the quiet times before
and after. The first attack sends nothing: it shows how much delays differ
anyway. It takes five minutes, and runs only if it is named. It needs Linux
and, for 10,000 connections, `ulimit -n 11000`. For a hostile IPv6 network:
  unshare --map-root-user --net sh -c 'ip link set lo up &&
    ip -6 route add local 2001:db8:bad::/48 dev lo &&
    echo 1 > /proc/sys/net/ipv6/ip_nonlocal_bind &&
    throng bench hostile --check-targets'

With THRONG_MOVINGAI=FOLDER `nav` also runs the queries of the maps there.";

fn players() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(throng_scenario::crowd::LOAD_PLAYERS_MAX))
}

/// The systems that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BenchTarget {
    /// Path search: all algorithms, compared with A*; builds, edits, a full tick
    Nav,
    /// View lists, compared with a pool of pairs and with plain sets
    Aoi,
    /// A heartbeat over 10,000 parties, compared with matching in arrival order
    Matchmaking,
    /// Client messages under a flood and a burst, compared with simpler queues
    Inbox,
    /// Packets and the sender ring, compared with queues of objects
    Outbox,
    /// A town over a network that loses packets, compared with sending once
    Net,
    /// Crowds that log in or reconnect at the same time
    Session,
    /// Dirty masks, compared with flags and sets; a walking crowd
    Sync,
    /// Players saved to a file and loaded
    #[value(alias = "directory")]
    Store,
    /// Memory of a player by module, and cost of the allocator
    Memory,
    /// Loading a map file and preparing it for search
    Load,
    /// The whole tick with a crowd
    Tick,
    /// A server under attack: memory of hostile connections, delays of honest clients (only by name)
    Hostile,
}

/// The output of `--json` and input of `--baseline`: one object whose `rows` is the array of all rows. Missing fields of a row are `null`.
#[derive(Serialize, Deserialize)]
pub(super) struct BenchReport {
    pub machine: Machine,
    pub is_quick: bool,
    /// The system at which the bench was interrupted.
    pub interrupted: Option<Interruption>,
    /// Signs that other load of the machine disturbed the figures.
    #[serde(default, alias = "busy")]
    pub busy_reasons: Vec<String>,
    /// Reasons why the figures are not comparable with the baseline.
    #[serde(default)]
    baseline_warnings: Vec<String>,
    pub rows: Vec<BenchRow>,
}

/// An interrupted bench.
#[derive(Serialize, Deserialize)]
pub(super) struct Interruption {
    /// The system that was interrupted; its rows may be incomplete, and its targets are not checked.
    system: String,
    /// Number of systems finished before.
    systems_done: usize,
    /// Number of requested systems.
    systems: usize,
}

/// The result of the measurements.
struct Measured {
    rows: Vec<BenchRow>,
    calibration: Calibration,
    interrupted: Option<Interruption>,
}

impl Interruption {
    fn line(&self) -> String {
        let plural = if self.systems == 1 { "" } else { "s" };
        format!(
            "interrupted after {} of {} system{plural}: targets of `{}` not checked",
            self.systems_done, self.systems, self.system
        )
    }
}

impl BenchTarget {
    fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether the system uses `--threads`.
    const fn is_threaded(self) -> bool {
        matches!(self, Self::Nav | Self::Aoi | Self::Memory | Self::Tick)
    }
}

impl Bench {
    /// Runs the bench, prints the rows, and returns whether all results agree and, with `--check-targets`, all targets are met.
    pub(super) fn run(self, quiet: bool) -> Result<CliStatus, CliError> {
        let systems = self.systems();
        self.check_flags(&systems)?;
        let peers = self.peers.as_deref().map_or(Ok(Vec::new()), load_peers)?;
        self.check_files(&peers)?;
        let baseline = self
            .baseline
            .as_deref()
            .map(BenchBaseline::load)
            .transpose()?;
        listen_for_interrupt();
        let threads = self
            .threads
            .iter()
            .max()
            .map_or_else(cores, |most| usize::from(*most));
        // Benches without an app use the same task pools as those with one.
        task_pools(threads).create_default_pools();
        let machine = Machine::current(threads);
        let shows_tables = !self.json && !quiet;
        if shows_tables {
            print(&machine.lines().join("\n"))?;
        }
        let Measured {
            rows,
            calibration,
            interrupted: stopped,
        } = self.measure(&systems, threads, baseline.as_ref(), quiet)?;
        let findings = BenchReport {
            interrupted: stopped,
            busy_reasons: calibration.busy_reasons(machine.load_average),
            baseline_warnings: baseline.map_or_else(Vec::new, |baseline| {
                baseline.warnings(&machine, self.quick, &rows)
            }),
            machine,
            is_quick: self.quick,
            rows,
        };
        if self.json {
            let text = serde_json::to_string_pretty(&findings);
            print(&text.map_err(|error| CliError::new(error.to_string()))?)?;
        } else if quiet {
            findings.print_failures();
        } else {
            for note in findings.notes() {
                let lines = table::wrapped(&note);
                print(&format!("\n{}", failure_text(&lines.join("\n"))))?;
            }
            if let Some(stopped) = &findings.interrupted {
                print(&format!("\n{}", stopped.line()))?;
            }
        }
        if let Some(file) = &self.report {
            write_page(file, &page::page(&findings, &peers))?;
        }
        if findings.interrupted.is_some() {
            return Ok(interrupted_status());
        }
        if let Some(file) = &self.readme {
            readme::write(file, &findings, &peers)?;
        }
        let is_broken = findings.rows.iter().any(BenchRow::has_failed);
        Ok(if is_broken {
            CliStatus::Failed
        } else {
            CliStatus::Done
        })
    }

    /// The requested systems, each once.
    fn systems(&self) -> Vec<BenchTarget> {
        let named: &[BenchTarget] = if self.systems.is_empty() {
            BenchTarget::value_variants()
        } else {
            &self.systems
        };
        // `hostile` runs several processes and needs a machine without other load, so it is only run by name.
        let named = named
            .iter()
            .filter(|system| !self.systems.is_empty() || **system != BenchTarget::Hostile);
        let mut systems = Vec::new();
        for system in named {
            if !systems.contains(system) {
                systems.push(*system);
            }
        }
        systems
    }

    /// Fails if a flag applies to none of the systems.
    fn check_flags(&self, systems: &[BenchTarget]) -> Result<(), CliError> {
        let names: Vec<String> = systems
            .iter()
            .map(|system| format!("`{}`", system.name()))
            .collect();
        let idle = |flag: &str, of: &str| {
            let names = names.join(", ");
            Err(CliError::new(format!(
                "{flag} does nothing for {names}: it is for {of}"
            )))
        };
        if !self.players.is_empty() && !systems.contains(&BenchTarget::Tick) {
            return idle("--players", "`tick`");
        }
        if !self.threads.is_empty() && !systems.iter().any(|system| system.is_threaded()) {
            return idle("--threads", "`nav`, `aoi`, `memory` and `tick`");
        }
        if self.readme.is_some() && !systems.contains(&BenchTarget::Nav) {
            return idle("--readme", "`nav`");
        }
        if self.peers.is_some() && self.report.is_none() && self.readme.is_none() {
            return Err(CliError::new("--peers needs --report or --readme"));
        }
        if self.threads.len() > 1 && self.players.is_empty() {
            return Err(CliError::new(
                "several values of --threads need `tick` with --players",
            ));
        }
        Ok(())
    }

    /// Checks that the --readme file has its marks and --peers the rows for it, and that the page ends in .html, does not overwrite the
    /// baseline, and can be written.
    fn check_files(&self, peers: &[BenchRow]) -> Result<(), CliError> {
        if let Some(file) = self.readme.as_deref() {
            readme::check(file, peers)?;
        }
        let Some(path) = self.report.as_deref() else {
            return Ok(());
        };
        check_page(path)?;
        let inputs: Vec<RunFile> = self
            .baseline
            .iter()
            .map(|path| ("--baseline", path))
            .chain(self.peers.iter().map(|path| ("--peers", path)))
            .map(|(name, path)| RunFile { name, path })
            .collect();
        check_outputs(
            &inputs,
            &[RunFile {
                name: "--report",
                path,
            }],
        )?;
        check_writable(path)
    }

    /// Measures all systems. The rows of the calibration come last. If tables are printed, each system's table is printed as soon as it is
    /// complete.
    fn measure(
        &self,
        systems: &[BenchTarget],
        threads: usize,
        baseline: Option<&BenchBaseline>,
        quiet: bool,
    ) -> Result<Measured, CliError> {
        let shows_tables = !self.json && !quiet;
        let finish = |row: BenchRow| {
            let row = if self.check_targets {
                row
            } else {
                row.without_target()
            };
            match baseline {
                Some(baseline) => baseline.with_baseline(row),
                None => row,
            }
        };
        let show = |rows: &[BenchRow]| {
            if shows_tables && !rows.is_empty() {
                print(&format!("\n{}", table::table(rows, failure_text)))?;
            }
            Ok::<_, CliError>(())
        };
        let mut calibration = Calibration::new();
        let (mut rows, mut stopped) = (Vec::new(), None);
        for (nth, system) in systems.iter().enumerate() {
            calibration.measure();
            tracing::info!(system = %system.name(), "benchmark started");
            // The bar is drawn once, so that no progress thread disturbs a measurement. The tick has its own progress bars.
            let bar = progress(systems.len() as u64, &system.name(), quiet);
            if *system != BenchTarget::Tick {
                bar.set_position(nth as u64);
            }
            let new = self.measure_system(*system, threads, quiet);
            bar.finish_and_clear();
            let mut new = new?;
            // An interrupted system has too few sizes for growth rows.
            if !is_interrupted() {
                new.extend(growth::rows(&new));
            }
            let mut new: Vec<BenchRow> = new.into_iter().map(finish).collect();
            if is_interrupted() {
                new = new.into_iter().map(BenchRow::without_target).collect();
                stopped = Some(Interruption {
                    system: system.name(),
                    systems_done: nth,
                    systems: systems.len(),
                });
            }
            // These systems print their own tables, which do not show the baseline.
            let has_tables = matches!(system, BenchTarget::Tick | BenchTarget::Hostile);
            if !has_tables || baseline.is_some() {
                show(&new)?;
            }
            rows.extend(new);
            if stopped.is_some() {
                break;
            }
        }
        calibration.measure();
        let last: Vec<BenchRow> = calibration.rows().into_iter().map(finish).collect();
        show(&last)?;
        rows.extend(last);
        Ok(Measured {
            rows,
            calibration,
            interrupted: stopped,
        })
    }

    fn measure_system(
        &self,
        system: BenchTarget,
        threads: usize,
        quiet: bool,
    ) -> Result<Vec<BenchRow>, CliError> {
        match system {
            BenchTarget::Nav => nav::measure(self.quick, threads),
            BenchTarget::Aoi => aoi::measure(self.quick, threads),
            BenchTarget::Matchmaking => matchmaking::measure(self.quick),
            BenchTarget::Inbox => inbox::measure(self.quick),
            BenchTarget::Outbox => outbox::measure(self.quick),
            BenchTarget::Net => net::measure(self.quick),
            BenchTarget::Session => session::measure(self.quick),
            BenchTarget::Sync => sync::measure(self.quick),
            BenchTarget::Store => store::measure(self.quick),
            BenchTarget::Memory => memory::measure(self.quick, threads),
            BenchTarget::Load => load::measure(self.quick),
            BenchTarget::Tick => self.measure_ticks(threads, quiet),
            BenchTarget::Hostile => hostile::measure(self.quick, !self.json && !quiet),
        }
    }

    /// Measures the tick with each number of threads.
    fn measure_ticks(&self, threads: usize, quiet: bool) -> Result<Vec<BenchRow>, CliError> {
        let bench = |threads| tick::TickBench {
            threads,
            quick: self.quick,
            quiet,
            tables: !self.json && !quiet,
            check_targets: self.check_targets,
        };
        let mut counts: Vec<usize> = self.threads.iter().copied().map(usize::from).collect();
        counts.sort_unstable();
        counts.dedup();
        let [first, others @ ..] = &counts[..] else {
            return bench(threads).measure(&self.players);
        };
        let first = *first;
        let of_first = bench(first).measure(&self.players)?;
        if others.is_empty() {
            return Ok(of_first);
        }
        let mut rows = thread_sweep::merge_rows(None, first, of_first.clone());
        for count in others.iter().copied() {
            let of_count = bench(count).measure(&self.players)?;
            // An interrupted run is not comparable.
            if is_interrupted() {
                break;
            }
            rows.extend(thread_sweep::merge_rows(
                Some((first, &of_first)),
                count,
                of_count,
            ));
        }
        let speed_ups = thread_sweep::speed_ups(&rows);
        if !self.json && !quiet && !speed_ups.is_empty() {
            print(&format!("\n{}", table::table(&speed_ups, failure_text)))?;
        }
        Ok(rows)
    }
}

/// Reads the JSON array of rows that benches/peers prints.
fn load_peers(file: &Path) -> Result<Vec<BenchRow>, CliError> {
    let wrong = |error: String| CliError::new(format!("--peers {}: {error}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| {
        wrong(format!(
            "expected the rows that benches/peers prints: {error}"
        ))
    })
}

impl BenchReport {
    /// Notes on the figures, one sentence each.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.machine.is_optimised {
            notes.push(
                "This build is not optimised: its figures are meaningless. Use --release."
                    .to_owned(),
            );
        }
        let busy = self.busy_reasons.iter();
        notes.extend(busy.map(|reason| {
            format!("The machine is busy: {reason}; figures may be worse than on an idle machine.")
        }));
        let warnings = self.baseline_warnings.iter();
        notes.extend(warnings.map(|warning| format!("Compared with the baseline: {warning}.")));
        let mut broken = self.rows.iter().filter(|row| row.has_failed());
        notes.extend(broken.by_ref().take(FAILURES_SHOWN_MAX).map(|row| {
            let (word, what) = if row.results_agree == Some(false) {
                ("Differs", &row.compared)
            } else {
                ("Misses its target", &row.target)
            };
            let what = what.as_deref().unwrap_or_default();
            format!("{word}: `{}` of {}: {what}.", row.case, row.system)
        }));
        let more = broken.count();
        if more > 0 {
            notes.push(format!("{more} more differ or miss their target."));
        }
        notes
    }

    /// Prints failures and the interruption on stderr, and nothing else.
    fn print_failures(&self) {
        let broken: Vec<BenchRow> = self
            .rows
            .iter()
            .filter(|row| row.has_failed())
            .cloned()
            .collect();
        if !broken.is_empty() {
            // Errors are ignored: if stderr is closed, there is no way to report.
            let _ = writeln!(
                std::io::stderr(),
                "{}",
                table::table(&broken, str::to_owned)
            );
        }
        if let Some(stopped) = &self.interrupted {
            print_failure(&stopped.line());
        }
    }
}
