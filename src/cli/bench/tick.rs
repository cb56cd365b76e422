//! `throng bench tick`: the whole tick under a crowd, and the largest crowd that it can carry.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use super::Failure;
use super::rows::{BenchRow, number};
use crate::cli::{is_interrupted, print, progress, threads};
use crate::crowd::{
    LOAD_PLAYERS_MAX, LOAD_WARM_UP_TICKS, LoadCensus, add_load, load_census, load_npcs,
    load_side_tiles,
};
use crate::inbox::Inbox;
use crate::outbox::OutboxStats;
use crate::sim::{SetTiming, SimSystems, TickTimings};
use crate::sync::SyncStats;
use crate::testing::TestServer;

/// The longest that 99 of 100 ticks may take: a tick at 20 Hz.
const BUDGET: Duration = Duration::from_millis(50);

const TARGET: &str = "p99 < 50 ms";

const TICK_HZ: f64 = 20.0;

/// Players with which the search begins.
const SEARCH_FROM: u32 = 1_000;

/// How the tick is measured.
pub(super) struct TickBench {
    pub threads: usize,
    pub quick: bool,
    /// Say nothing on stderr.
    pub quiet: bool,
    /// Print a table for each crowd.
    pub tables: bool,
}

/// One crowd's figures.
#[derive(Clone, Debug)]
struct MeasuredTicks {
    players: u32,
    census: LoadCensus,
    /// Ticks measured.
    ticks: u64,
    sets: Vec<(SimSystems, SetTiming)>,
    tick: SetTiming,
    /// What came in and went out while measuring.
    received: u64,
    sent: Sent,
    bytes_a_player: Option<f64>,
    /// Too many ticks are late already.
    is_late: bool,
}

impl TickBench {
    /// Measures these crowds, the smallest first; without any, searches the largest that meets the target.
    pub(super) fn measure(&self, players: &[u32]) -> Result<Vec<BenchRow>, Failure> {
        let at_start = resident_bytes();
        if players.is_empty() {
            return self.search(at_start);
        }
        // Ascending, so that memory that a smaller crowd gave back is used again and not counted twice.
        let mut players = players.to_vec();
        players.sort_unstable();
        players.dedup();
        let ticks = if self.quick { 100 } else { 600 };
        let mut rows = Vec::new();
        for players in players {
            let Some(measured) = self.run(players, ticks, false, at_start)? else {
                break;
            };
            self.tell(&measured)?;
            rows.extend(measured.rows());
        }
        Ok(rows)
    }

    /// Doubles the crowd until the target is missed, then halves the gap until it is a twentieth.
    fn search(&self, at_start: Option<u64>) -> Result<Vec<BenchRow>, Failure> {
        let ticks = if self.quick { 100 } else { 200 };
        let (mut best, mut too_many): (Option<MeasuredTicks>, Option<u32>) = (None, None);
        while let Some(players) = next_crowd(best.as_ref().map(|best| best.players), too_many) {
            let Some(measured) = self.run(players, ticks, true, at_start)? else {
                break;
            };
            let holds = measured.holds();
            self.say(&format!(
                "tick: {players} players: p99 {} ms, {}",
                number(measured.tick.p99_ms),
                if holds { "holds" } else { "too many" }
            ));
            if holds {
                best = Some(measured);
            } else {
                too_many = Some(players);
            }
        }
        let mut rows = Vec::new();
        if let Some(best) = &best {
            self.tell(best)?;
            rows.extend(best.rows());
        }
        let largest = best.map_or(0, |best| best.players);
        let row = BenchRow::new("tick", "largest crowd", f64::from(largest), "players")
            .aiming(TARGET, largest > 0);
        if self.tables {
            print(&format!(
                "\nlargest crowd: {largest} players with {TARGET}, on {}",
                threads(self.threads)
            ))?;
        }
        rows.push(row);
        Ok(rows)
    }

    /// Plays a crowd; `None` when it was interrupted before anything could be said. `stop_late` ends the run as soon as its
    /// 99th percentile cannot come in under budget any more.
    fn run(
        &self,
        players: u32,
        ticks: u64,
        stop_late: bool,
        at_start: Option<u64>,
    ) -> Result<Option<MeasuredTicks>, Failure> {
        let mut server = TestServer::builder().workers(self.threads).timing().build();
        add_load(server.world_mut(), players).map_err(|error| Failure::new(error.to_string()))?;
        let bar = progress(LOAD_WARM_UP_TICKS + ticks, "tick", self.quiet);
        let step = |server: &mut TestServer| {
            server.step(1);
            bar.set_position(server.tick());
        };
        while server.tick() < LOAD_WARM_UP_TICKS && !is_interrupted() {
            step(&mut server);
        }
        server.world_mut().resource_mut::<TickTimings>().reset();
        let (received, sent) = counters(&server);
        // The 99th percentile is the sample of this rank, so that many may lie above it.
        let late_max = ticks - (ticks * 99).div_ceil(100);
        let mut is_late = false;
        while server.tick() < LOAD_WARM_UP_TICKS + ticks
            && !is_interrupted()
            && !(stop_late && is_late)
        {
            step(&mut server);
            is_late = server.stats::<TickTimings>().late_ticks(BUDGET) as u64 > late_max;
        }
        bar.finish_and_clear();
        let measured_ticks = server.tick().saturating_sub(LOAD_WARM_UP_TICKS);
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
            census: LoadCensus::default(),
            ticks: measured_ticks,
            sets: sets.map(|set| (set, timings.set(set))).collect(),
            tick: timings.tick(),
            received: received_now - received,
            sent: since(sent_now, sent),
            bytes_a_player: resident_bytes()
                .zip(at_start)
                .map(|(now, before)| now.saturating_sub(before) as f64 / f64::from(players)),
            is_late,
        };
        measured.census = load_census(server.world_mut());
        Ok(Some(measured))
    }

    fn tell(&self, measured: &MeasuredTicks) -> Result<(), Failure> {
        if self.tables {
            print(&measured.table(self.threads))
        } else {
            Ok(())
        }
    }

    fn say(&self, line: &str) {
        if !self.quiet {
            // That nobody reads it is no error.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }
}

/// The next crowd to try between one that holds and one that does not; `None` when they are close enough.
fn next_crowd(holds: Option<u32>, too_many: Option<u32>) -> Option<u32> {
    match (holds, too_many) {
        (None, None) => Some(SEARCH_FROM),
        (Some(LOAD_PLAYERS_MAX..), None) => None,
        (Some(holds), None) => Some((2 * holds).min(LOAD_PLAYERS_MAX)),
        (holds, Some(too_many)) => {
            let holds = holds.unwrap_or(0);
            let gap = too_many - holds;
            (gap > (holds / 20).max(10)).then_some(holds + gap / 2)
        }
    }
}

/// What went out.
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
        packets: packed.frames,
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

fn resident_bytes() -> Option<u64> {
    memory_stats::memory_stats().map(|stats| stats.physical_mem as u64)
}

impl MeasuredTicks {
    fn holds(&self) -> bool {
        !self.is_late && self.tick.p99_ms < BUDGET.as_secs_f64() * 1e3
    }

    /// A count of all measured ticks, a second.
    fn a_second(&self, count: u64) -> f64 {
        count as f64 * TICK_HZ / self.ticks as f64
    }

    fn rows(&self) -> Vec<BenchRow> {
        let players = self.players;
        let row = |case: &str, value: f64, unit| {
            BenchRow::new("tick", format!("{case}/{players}"), value, unit)
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
                let judged = (name, figure) == ("tick", "p99");
                rows.push(if judged {
                    row.aiming(TARGET, self.holds())
                } else {
                    row
                });
            }
        }
        rows.push(row(
            "sent",
            self.a_second(self.sent.bytes) / f64::from(players),
            "bytes/s a player",
        ));
        rows.extend(
            self.bytes_a_player
                .map(|bytes| row("memory", bytes, "bytes a player")),
        );
        for (case, count) in [
            ("messages in", self.received),
            ("packets", self.sent.packets),
            ("motions", self.sent.motions),
            ("deltas", self.sent.deltas),
            ("snapshots", self.sent.snapshots),
            ("despawns", self.sent.despawns),
        ] {
            rows.push(row(case, self.a_second(count), "a second"));
        }
        rows.push(row(
            "walking",
            f64::from(self.census.walking) / f64::from(players),
            "of players",
        ));
        rows.push(row(
            "links",
            self.census.links as f64 / f64::from(players),
            "a player",
        ));
        rows
    }

    fn table(&self, thread_count: usize) -> String {
        let mut text = String::new();
        // Writing into a string does not fail.
        let _ = self.write_table(&mut text, thread_count);
        text.trim_end().to_owned()
    }

    fn write_table(&self, to: &mut String, thread_count: usize) -> std::fmt::Result {
        let players = f64::from(self.players);
        let side_km = f64::from(load_side_tiles(self.players)) / 2_000.0;
        let a_second = |count: u64| number(self.a_second(count));
        writeln!(
            to,
            "\ncrowd       {} players, {} NPCs in {side_km:.2} km × {side_km:.2} km; {}",
            self.census.players,
            load_npcs(self.players),
            threads(thread_count)
        )?;
        writeln!(
            to,
            "measured    {} ticks, {:.0} s simulated, after {LOAD_WARM_UP_TICKS} ticks of warm-up",
            self.ticks,
            self.ticks as f64 / TICK_HZ
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
        let memory = self.bytes_a_player.map_or_else(String::new, |b| {
            format!(", {} kB of memory", number(b / 1e3))
        });
        let sent = self.a_second(self.sent.bytes) / players;
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
        writeln!(
            to,
            "{}  {TARGET}",
            if self.holds() { "ok    " } else { "MISSED" }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The crowds tried when `limit` players are the most that hold, and the answer.
    fn search(limit: u32) -> (Vec<u32>, u32) {
        let (mut tried, mut holds, mut too_many) = (Vec::new(), None, None);
        while let Some(players) = next_crowd(holds, too_many) {
            tried.push(players);
            if players <= limit {
                holds = Some(players)
            } else {
                too_many = Some(players)
            }
        }
        (tried, holds.unwrap_or(0))
    }

    #[test]
    fn the_search_ends_within_a_twentieth_of_the_largest_crowd() {
        for limit in [12, 300, 999, 1_000, 7_777, 123_456, LOAD_PLAYERS_MAX] {
            let (tried, answer) = search(limit);
            assert!(
                answer <= limit && limit - answer <= (limit / 20).max(10),
                "{limit}: {tried:?}"
            );
            assert!(tried.len() < 20, "{limit}: {tried:?}");
        }
        assert_eq!(search(0).1, 0);
    }

    #[test]
    fn a_small_crowd_is_measured_in_every_figure() {
        let bench = TickBench {
            threads: 1,
            quick: true,
            quiet: true,
            tables: false,
        };
        let Ok(Some(measured)) = bench.run(20, 10, false, Some(0)) else {
            panic!("it is not interrupted")
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
                .table(1)
                .lines()
                .all(|line| line.chars().count() <= 80)
        );
        let rows = measured.rows();
        assert_eq!(rows.iter().filter(|row| row.meets.is_some()).count(), 1);
        assert!(rows.iter().all(|row| row.value.is_finite()));
    }
}
