//! `throng bench tick`: the whole tick with a crowd, and the search for the largest crowd that meets the target.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use super::CliError;
use super::crowd_search::{CrowdRange, CrowdSearch, TRIES};
use super::growth;
use super::rows::{BenchRow, RepeatSpread};
use super::table::number;
use crate::color::failure_text;
use crate::{is_interrupted, print, progress, threads};
use throng::inbox::Inbox;
use throng::outbox::{CountingSink, Outbox, OutboxStats};
use throng::sim::clock::Stopwatch;
use throng::sim::{SetTiming, SimSystems, TickTimings};
use throng::sync::SyncStats;
use throng_scenario::crowd::{
    LOAD_PLAYERS_MAX, LOAD_SQUARE_M, LOAD_WARM_UP_TICKS, LoadCensus, LoadLayout, add_load_as,
    load_census, load_npcs, load_side_tiles,
};
use throng_scenario::testing::TestServer;

/// The limit of the p99 tick time: a tick at 20 Hz.
const BUDGET: Duration = Duration::from_millis(50);

const TARGET: &str = "p99 < 50 ms";

const TICK_HZ: f64 = 20.0;

/// Players at the start of the search.
const SEARCH_FROM: u32 = 1_000;

/// Maximum time to measure a crowd in one square, in seconds of wall time: its cost grows quadratically with its size. The result covers
/// the ticks done by then.
const SQUARE_S_MAX: f64 = 90.0;

/// The same with `--quick`.
const SQUARE_QUICK_S_MAX: f64 = 20.0;

/// Minimum number of measured ticks of such a crowd, even beyond the time limit.
const SQUARE_TICKS_MIN: u64 = 5;

/// Options of the measurement.
pub(super) struct TickBench {
    pub threads: usize,
    pub quick: bool,
    /// Print nothing on stderr.
    pub quiet: bool,
    /// Print a table for each crowd.
    pub tables: bool,
    /// Report whether the target is met.
    pub check_targets: bool,
}

/// A crowd, and the duration of its run.
#[derive(Clone, Copy, Debug)]
struct CrowdRun {
    players: u32,
    layout: LoadLayout,
    ticks: u64,
    /// Whether to stop the run as soon as its p99 can no longer be within the budget.
    stops_over_budget: bool,
}

/// The figures of one crowd.
#[derive(Clone, Debug)]
struct MeasuredTicks {
    players: u32,
    layout: LoadLayout,
    /// Warm-up ticks, in which all players start to move.
    warm_up_ticks: u64,
    census: LoadCensus,
    /// Ticks measured.
    ticks: u64,
    sets: Vec<(SimSystems, SetTiming)>,
    tick: SetTiming,
    /// The p99 of each third of the measured ticks.
    p99_ms_of_thirds: Vec<f64>,
    /// Traffic in both directions during the measurement.
    received: u64,
    sent: Sent,
    bytes_per_player: Option<f64>,
    /// Whether too many ticks are late already.
    is_over_budget: bool,
}

impl TickBench {
    /// Measures these crowds, the smallest first; without any, searches for the largest crowd that meets the target.
    pub(super) fn measure(&self, players: &[u32]) -> Result<Vec<BenchRow>, CliError> {
        let at_start = resident_bytes();
        if players.is_empty() {
            return self.search(at_start);
        }
        // Ascending: a later crowd reuses the memory that a smaller one freed, so it is not counted twice.
        let mut players = players.to_vec();
        players.sort_unstable();
        players.dedup();
        let ticks = if self.quick { 100 } else { 600 };
        let mut rows = Vec::new();
        for players in players {
            for layout in [LoadLayout::Spread, LoadLayout::Square] {
                let crowd = CrowdRun {
                    players,
                    layout,
                    ticks,
                    stops_over_budget: false,
                };
                let Some(measured) = self.run(crowd, at_start)? else {
                    return Ok(rows);
                };
                self.print(&measured)?;
                rows.extend(measured.rows());
            }
        }
        Ok(rows)
    }

    /// Searches for the largest crowd that meets the target, and repeats both ends of the range.
    fn search(&self, at_start: Option<u64>) -> Result<Vec<BenchRow>, CliError> {
        let (ticks, tries) = if self.quick { (100, 2) } else { (200, TRIES) };
        let mut search = CrowdSearch::new(SEARCH_FROM, LOAD_PLAYERS_MAX, tries);
        // The last run of each crowd that met the target.
        let mut held: BTreeMap<u32, MeasuredTicks> = BTreeMap::new();
        while let Some(players) = search.next() {
            let crowd = CrowdRun {
                players,
                layout: LoadLayout::Spread,
                ticks,
                stops_over_budget: true,
            };
            let Some(measured) = self.run(crowd, at_start)? else {
                break;
            };
            if is_interrupted() {
                break;
            }
            let holds = measured.meets_target();
            self.print_line(&format!(
                "tick: {players} players: p99 {} ms, {}",
                number(measured.tick.p99_ms),
                if holds { "holds" } else { "too many" }
            ));
            search.record(players, holds);
            if holds {
                held.insert(players, measured);
            }
        }
        let range = search.range();
        let mut rows = Vec::new();
        if let Some(best) = held.get(&range.max_passed) {
            self.print(best)?;
            rows.extend(best.rows());
        }
        // An interrupted search has no largest crowd.
        if is_interrupted() {
            return Ok(rows);
        }
        if self.tables {
            print(&format!("\n{}", describe_range(range, self.threads)))?;
        }
        rows.push(largest_crowd(range));
        // Enough sizes to show the growth of each set.
        let of_all: Vec<BenchRow> = held.values().flat_map(MeasuredTicks::rows).collect();
        rows.extend(growth::rows(&of_all));
        Ok(rows)
    }

    /// Runs a crowd; `None` if it was interrupted too early for a result.
    fn run(
        &self,
        crowd: CrowdRun,
        at_start: Option<u64>,
    ) -> Result<Option<MeasuredTicks>, CliError> {
        let CrowdRun {
            players,
            layout,
            ticks,
            stops_over_budget: stop_late,
        } = crowd;
        let mut server = TestServer::builder().workers(self.threads).timing().build();
        let mut outbox = server.world_mut().resource_mut::<Outbox>();
        outbox.set_sink(CountingSink::default());
        add_load_as(server.world_mut(), players, layout)
            .map_err(|error| CliError::new(error.to_string()))?;
        let bar = progress(LOAD_WARM_UP_TICKS + ticks, "tick", self.quiet);
        let step = |server: &mut TestServer| {
            server.step(1);
            bar.set_position(server.tick());
        };
        let clock = Stopwatch::start();
        let is_over = |share: f64| {
            let most = match (layout, self.quick) {
                (LoadLayout::Spread, _) => return false,
                (LoadLayout::Square, true) => SQUARE_QUICK_S_MAX,
                (LoadLayout::Square, false) => SQUARE_S_MAX,
            };
            clock.elapsed().as_secs_f64() > share * most
        };
        while server.tick() < LOAD_WARM_UP_TICKS && !is_interrupted() && !is_over(0.5) {
            step(&mut server);
        }
        let warm_up_ticks = server.tick();
        let end = warm_up_ticks + ticks;
        server.world_mut().resource_mut::<TickTimings>().reset();
        let (received, sent) = counters(&server);
        // The p99 is the sample of this rank, so this many samples may be above the budget.
        let late_max = ticks - (ticks * 99).div_ceil(100);
        let mut is_late = false;
        let is_enough = |tick: u64| tick >= warm_up_ticks + SQUARE_TICKS_MIN && is_over(1.0);
        while server.tick() < end && !is_interrupted() {
            if (stop_late && is_late) || is_enough(server.tick()) {
                break;
            }
            step(&mut server);
            is_late = server.stats::<TickTimings>().slow_ticks(BUDGET) as u64 > late_max;
        }
        bar.finish_and_clear();
        let measured_ticks = server.tick() - warm_up_ticks;
        if measured_ticks == 0 {
            return Ok(None);
        }
        let (received_now, sent_now) = counters(&server);
        let timings = server.stats::<TickTimings>();
        let sets = SimSystems::ALL
            .into_iter()
            .filter(|set| !matches!(set, SimSystems::First | SimSystems::Last));
        let mut measured = MeasuredTicks {
            players,
            layout,
            warm_up_ticks,
            census: LoadCensus::default(),
            ticks: measured_ticks,
            sets: sets.map(|set| (set, timings.set(set))).collect(),
            tick: timings.tick(),
            p99_ms_of_thirds: p99_of_thirds(&timings.recent_ticks_ms()),
            received: received_now - received,
            sent: since(sent_now, sent),
            bytes_per_player: resident_bytes()
                .zip(at_start)
                .map(|(now, before)| now.saturating_sub(before) as f64 / f64::from(players)),
            is_over_budget: is_late,
        };
        measured.census = load_census(server.world_mut());
        Ok(Some(measured))
    }

    fn print(&self, measured: &MeasuredTicks) -> Result<(), CliError> {
        if self.tables {
            // The target of an incomplete run is not checked.
            print(&measured.table(self.threads, self.check_targets && !is_interrupted()))
        } else {
            Ok(())
        }
    }

    fn print_line(&self, line: &str) {
        if !self.quiet {
            // Errors are ignored: if stderr is closed, there is no way to report.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }
}

/// The result of a search as text.
fn describe_range(range: CrowdRange, thread_count: usize) -> String {
    let threads = threads(thread_count);
    let held = match range.max_passed {
        0 => format!("largest crowd   none had {TARGET} in every try, on {threads}"),
        held => format!(
            "largest crowd   holds {held} players on this machine, on {threads}:\n                \
             {TARGET} in every try; {held} tried {}",
            times_text(range.passed_tries)
        ),
    };
    match range.min_failed {
        Some(missed) => format!(
            "{held}\n                {missed} in none; tried {}",
            times_text(range.failed_tries)
        ),
        None => held,
    }
}

fn times_text(count: u32) -> String {
    if count == 1 {
        "once".to_owned()
    } else {
        format!("{count} times")
    }
}

fn largest_crowd(range: CrowdRange) -> BenchRow {
    let row = BenchRow::new(
        "tick",
        "largest crowd",
        f64::from(range.max_passed),
        "players",
    );
    let spread = range.min_failed.map(|missed| RepeatSpread {
        repeats: (range.passed_tries + range.failed_tries) as usize,
        min: f64::from(range.max_passed),
        median: f64::from(range.max_passed),
        max: f64::from(missed),
    });
    let held = match range.max_passed {
        0 => format!("No crowd had {TARGET} in every try"),
        _ => format!(
            "The most players that had {TARGET} in each of {} tries",
            range.passed_tries
        ),
    };
    let missed = match range.min_failed {
        Some(missed) => format!(
            "{missed} players had it in none of {} tries",
            range.failed_tries
        ),
        None => "no larger crowd missed it in every try".to_owned(),
    };
    row.with_spread(spread)
        .more_is_better()
        .about(format!("{held}; {missed}."))
        .with_target(TARGET, range.max_passed > 0)
}

/// The p99 of each third of a run.
fn p99_of_thirds(ticks_ms: &[f64]) -> Vec<f64> {
    let third = ticks_ms.len().div_ceil(3).max(1);
    let p99 = |some: &[f64]| {
        let mut sorted = some.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted[(sorted.len() * 99).div_ceil(100).max(1) - 1]
    };
    ticks_ms.chunks(third).map(p99).collect()
}

/// Outgoing traffic.
#[derive(Clone, Copy, Debug)]
struct Sent {
    packets: u64,
    bytes: u64,
    motions: u64,
    deltas: u64,
    snapshots: u64,
    despawns: u64,
}

fn counters(server: &TestServer) -> (u64, Sent) {
    let (packed, sent) = (
        server.stats::<OutboxStats>(),
        server.stats::<SyncStats>().sent,
    );
    let sent = Sent {
        packets: packed.packets,
        bytes: packed.bytes,
        motions: sent.motions.messages,
        deltas: sent.deltas.messages,
        snapshots: sent.snapshots.messages,
        despawns: sent.despawns.messages,
    };
    (server.stats::<Inbox>().counters().handled, sent)
}

const fn since(now: Sent, before: Sent) -> Sent {
    Sent {
        packets: now.packets - before.packets,
        bytes: now.bytes - before.bytes,
        motions: now.motions - before.motions,
        deltas: now.deltas - before.deltas,
        snapshots: now.snapshots - before.snapshots,
        despawns: now.despawns - before.despawns,
    }
}

/// A figure in words.
fn describe(figure: &str) -> &'static str {
    match figure {
        "mean" => "the mean",
        "p50" => "the median",
        "p99" => "the 99th percentile",
        _ => "the longest",
    }
}

fn resident_bytes() -> Option<u64> {
    throng::memory::process_memory().map(|memory| memory.resident_bytes)
}

impl MeasuredTicks {
    fn meets_target(&self) -> bool {
        !self.is_over_budget && self.tick.p99_ms < BUDGET.as_secs_f64() * 1e3
    }

    /// The prefix of the cases of a crowd that is not spread out.
    const fn layout_name(&self) -> &'static str {
        match self.layout {
            LoadLayout::Spread => "",
            // Some players had not started to move when the time was up, so the figure is not comparable with settled crowds.
            LoadLayout::Square if self.warm_up_ticks < LOAD_WARM_UP_TICKS => "unsettled square ",
            LoadLayout::Square => "square ",
        }
    }

    /// A count over all measured ticks, per second.
    fn per_second(&self, count: u64) -> f64 {
        count as f64 * TICK_HZ / self.ticks as f64
    }

    fn rows(&self) -> Vec<BenchRow> {
        let players = self.players;
        let layout = self.layout_name();
        let row = |case: &str, value: f64, unit| {
            BenchRow::new("tick", format!("{layout}{case}/{players}"), value, unit)
        };
        let mut rows = Vec::new();
        let timings = self
            .sets
            .iter()
            .map(|&(set, timing)| (set.name(), timing))
            .chain([("tick", self.tick)]);
        for (name, timing) in timings {
            for (figure, ms) in [
                ("mean", timing.mean_ms),
                ("p50", timing.p50_ms),
                ("p99", timing.p99_ms),
                ("max", timing.max_ms),
            ] {
                let row = row(&format!("{name} {figure}"), ms, "ms");
                let is_p99 = (name, figure) == ("tick", "p99");
                rows.push(if is_p99 {
                    let row = row.with_spread(RepeatSpread::from_samples(&self.p99_ms_of_thirds));
                    let row = row.about(
                        "The 99th percentile of tick times; minimum and maximum are those of the \
                         thirds of the run.",
                    );
                    // A crowd in which each player could see all others has no target.
                    match self.layout {
                        LoadLayout::Spread => row.with_target(TARGET, self.meets_target()),
                        LoadLayout::Square => row,
                    }
                } else if name == "tick" {
                    row.about(format!(
                        "The whole tick: {} over all ticks.",
                        describe(figure)
                    ))
                } else {
                    row.about(format!(
                        "The set {name} of the tick: {} over all ticks.",
                        describe(figure)
                    ))
                });
            }
        }
        let sent = self.per_second(self.sent.bytes) / f64::from(players);
        rows.push(
            row("sent", sent, "bytes/s a player").about("Bytes sent to a player per second."),
        );
        rows.extend(self.bytes_per_player.map(|bytes| {
            row("memory", bytes, "bytes a player")
                .about("Memory of the process per player, minus its memory at the start.")
        }));
        for (case, count) in [
            ("messages in", self.received),
            ("packets", self.sent.packets),
            ("motions", self.sent.motions),
            ("deltas", self.sent.deltas),
            ("snapshots", self.sent.snapshots),
            ("despawns", self.sent.despawns),
        ] {
            let row = row(case, self.per_second(count), "a second");
            rows.push(row.about("Sum over all players, per second of simulated time."));
        }
        let walking = f64::from(self.census.walking) / f64::from(players);
        rows.push(
            row("walking", walking, "of players")
                .about("Share of players that follow a path at the end."),
        );
        let links = self.census.links as f64 / f64::from(players);
        rows.push(row("links", links, "a player").about("Objects that a player sees at the end."));
        rows
    }

    fn table(&self, thread_count: usize, check_targets: bool) -> String {
        let mut text = String::new();
        // Writing into a string does not fail.
        let _ = self.write_table(&mut text, thread_count);
        let (word, held) = (
            if self.meets_target() {
                "ok    "
            } else {
                "MISSED"
            },
            self.meets_target(),
        );
        if check_targets && self.layout == LoadLayout::Spread {
            let line = format!("{word}  {TARGET}");
            text.push_str(&if held { line } else { failure_text(&line) });
        }
        text.trim_end().to_owned()
    }

    fn write_table(&self, to: &mut String, thread_count: usize) -> std::fmt::Result {
        let players = f64::from(self.players);
        let side_km = f64::from(load_side_tiles(self.players)) / 2_000.0;
        let a_second = |count: u64| number(self.per_second(count));
        writeln!(
            to,
            "\ncrowd       {} players, {} NPCs in {side_km:.2} km × {side_km:.2} km; {}",
            self.census.players,
            load_npcs(self.players),
            threads(thread_count)
        )?;
        if self.layout == LoadLayout::Square {
            writeln!(
                to,
                "            all in one square of {LOAD_SQUARE_M} m, where every player could see every other"
            )?;
        }
        writeln!(
            to,
            "measured    {} ticks, {:.0} s simulated, after {} ticks of warm-up",
            self.ticks,
            self.ticks as f64 / TICK_HZ,
            self.warm_up_ticks
        )?;
        writeln!(
            to,
            "at the end  {:.0} % of players walk; {} links a player",
            100.0 * f64::from(self.census.walking) / players,
            number(self.census.links as f64 / players)
        )?;
        writeln!(
            to,
            "a second    {} messages in, {} packets out: {} motions,",
            a_second(self.received),
            a_second(self.sent.packets),
            a_second(self.sent.motions)
        )?;
        writeln!(
            to,
            "            {} deltas, {} snapshots, {} despawns",
            a_second(self.sent.deltas),
            a_second(self.sent.snapshots),
            a_second(self.sent.despawns)
        )?;
        let memory = self.bytes_per_player.map_or_else(String::new, |b| {
            format!(", {} kB of memory", number(b / 1e3))
        });
        let sent = self.per_second(self.sent.bytes) / players;
        writeln!(to, "a player    {} kB/s sent{memory}", number(sent / 1e3))?;
        writeln!(
            to,
            "\n{:<12}{:>10}{:>10}{:>10}{:>10}",
            "set", "mean ms", "p50 ms", "p99 ms", "max ms"
        )?;
        let timings = self
            .sets
            .iter()
            .map(|&(set, timing)| (set.name(), timing))
            .chain([("tick", self.tick)]);
        for (name, t) in timings {
            writeln!(
                to,
                "{name:<12}{:>10.3}{:>10.3}{:>10.3}{:>10.3}",
                t.mean_ms, t.p50_ms, t.p99_ms, t.max_ms
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_crowd_has_every_value() {
        let bench = TickBench {
            threads: 1,
            quick: true,
            quiet: true,
            tables: false,
            check_targets: true,
        };
        let Ok(Some(measured)) = bench.run(
            CrowdRun {
                players: 20,
                layout: LoadLayout::Spread,
                ticks: 10,
                stops_over_budget: false,
            },
            Some(0),
        ) else {
            panic!("the run is not interrupted")
        };
        assert_eq!((measured.ticks, measured.census.players), (10, 20));
        assert!(
            (80..=120).contains(&measured.received),
            "10 a second each: {}",
            measured.received
        );
        assert!(measured.sent.packets > 0 && measured.tick.max_ms >= measured.tick.p50_ms);
        assert!(
            measured
                .table(1, true)
                .lines()
                .all(|line| line.chars().count() <= 80)
        );
        let rows = measured.rows();
        assert_eq!(
            rows.iter().filter(|row| row.meets_target.is_some()).count(),
            1
        );
        assert!(rows.iter().all(|row| row.value.is_finite()));
        assert!(rows.iter().all(|row| !row.description.is_empty()));
        let p99 = rows.iter().find(|row| row.case == "tick p99/20").unwrap();
        assert_eq!(p99.spread.map(|spread| spread.repeats), Some(3));
        assert!(!measured.table(1, false).contains(TARGET));
    }

    #[test]
    fn crowd_range_is_shown_with_both_ends() {
        let range = |missed| CrowdRange {
            max_passed: 2_400,
            passed_tries: 3,
            min_failed: missed,
            failed_tries: missed.map_or(0, |_| 2),
        };
        let both = describe_range(range(Some(2_500)), 1);
        assert!(
            both.contains("2400 tried 3 times") && both.contains("2500 in none; tried 2 times"),
            "{both}"
        );
        assert!(both.lines().all(|line| line.chars().count() <= 80));
        assert!(!describe_range(range(None), 1).contains("in none"));
        let row = largest_crowd(range(Some(2_500)));
        let spread = row.spread.unwrap();
        assert_eq!(
            (row.value, spread.repeats, spread.min, spread.max),
            (2_400.0, 5, 2_400.0, 2_500.0)
        );
        assert!(
            row.description.contains("of 3 tries; 2500 players"),
            "{}",
            row.description
        );
        // An upper end that was not found is not shown.
        let open = largest_crowd(range(None));
        assert!(open.spread.is_none() && open.description.contains("no larger crowd missed it"));
        let nobody = largest_crowd(CrowdRange {
            max_passed: 0,
            passed_tries: 0,
            ..range(Some(10))
        });
        assert!(nobody.has_failed() && nobody.description.starts_with("No crowd had"));
    }

    #[test]
    fn each_third_of_a_run_has_its_percentile() {
        let ticks: Vec<f64> = (1..=300).map(f64::from).collect();
        assert_eq!(p99_of_thirds(&ticks), [99.0, 199.0, 299.0]);
        assert_eq!(p99_of_thirds(&[7.0]), [7.0]);
        assert_eq!(p99_of_thirds(&[]), Vec::<f64>::new());
    }
}
