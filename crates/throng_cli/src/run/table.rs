//! The text output of `throng run`.

use std::io::{self, Write};

use crate::color::failure_text;
use crate::escape::escaped;
use crate::{WIDTH, threads, wrapped};
use throng_scenario::{
    BuildSummary, ExpectationResult, PathSummary, PlayerStoreSummary, Report, SessionSummary,
    Verdict,
};

/// Indentation of continuation lines of a verdict.
const VERDICT_INDENT: usize = 8;

/// Indentation of figures and of their continuation lines.
const FIGURES_INDENT: usize = 12;

/// The report as text in 80 columns. `all_ticks` is the planned number of ticks.
pub(super) fn table(report: &Report, all_ticks: u64) -> String {
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = write_table(&mut text, report).and_then(|()| match report.interrupted {
        Some(tick) => writeln!(text, "\n{}", interrupted_line(tick, all_ticks)),
        None => Ok(()),
    });
    let text = String::from_utf8_lossy(&text);
    let lines = text.trim_end().lines().map(|line| {
        // Coloured lines, which report failures, are wrapped already.
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
        "objects     {} players, {} NPCs, {} others; peak {}",
        objects.players, objects.npcs, objects.other, objects.peak
    )?;
    let clients = &report.clients;
    writeln!(
        to,
        "clients     {} connected, {} mirrored; {} logins, {} logouts, {} refused",
        clients.now, clients.mirrors, clients.logins, clients.logouts, clients.refused
    )?;
    write_sessions(to, &report.sessions)?;
    if let Some(store) = &report.player_store {
        write_player_store(to, store)?;
    }
    write_paths(to, &report.paths, &report.builds)?;
    let views = &report.views;
    writeln!(
        to,
        "views       {} links, {} enters, {} evictions; longest view list {} (cap {})",
        views.links, views.enters, views.evictions, views.longest_list, views.cap
    )?;
    let moves = &report.movement;
    if moves.moves_accepted + moves.moves_refused > 0 {
        writeln!(
            to,
            "moves       {} of players, {} refused, {} corrected",
            moves.moves_accepted + moves.moves_refused,
            moves.moves_refused,
            moves.moves_corrected
        )?;
    }
    write_systems(to, report)?;
    writeln!(to, "state hash  {}", report.state_hash)?;
    write_times(to, report)?;
    write_verdict(to, report)
}

/// Path searches, and builds of search data.
fn write_paths(to: &mut impl Write, paths: &PathSummary, builds: &BuildSummary) -> io::Result<()> {
    writeln!(
        to,
        "paths       {} of {} found, {} unreachable, {} capped; mean {:.0} µs, p99 {:.0} µs",
        paths.found, paths.requested, paths.unreachable, paths.capped, paths.mean_us, paths.p99_us
    )?;
    if paths.blocked > 0 {
        writeln!(
            to,
            "            {} blocked ({} start, {} goal)",
            paths.blocked, paths.blocked_at_start, paths.blocked_at_goal
        )?;
    }
    if paths.out_of_bounds > 0 {
        writeln!(
            to,
            "            {} out of bounds ({} in a scene without a map)",
            paths.out_of_bounds, paths.without_map
        )?;
    }
    if builds.adopted > 0 {
        let late = match builds.late {
            0 => String::new(),
            late => format!("; {late} overdue by {} ticks in total", builds.late_ticks),
        };
        writeln!(
            to,
            "            {} map build{}, {:.0} ms waiting between ticks{late}",
            builds.adopted,
            if builds.adopted == 1 { "" } else { "s" },
            builds.waited_ms
        )?;
    }
    Ok(())
}

/// Session events other than logins and logouts, if there were any.
fn write_sessions(to: &mut impl Write, sessions: &SessionSummary) -> io::Result<()> {
    let ended = &sessions.ended;
    let events = [
        sessions.connections_lost,
        ended.kicked + ended.banned + ended.replaced,
        ended.idle + ended.server_stopping,
        sessions.max_login_queue,
    ];
    if events == [0; 4] {
        return Ok(());
    }
    writeln!(
        to,
        "sessions    {} disconnected, {} resumed; {} kicked, {} banned, {} replaced",
        sessions.connections_lost, sessions.resumed, ended.kicked, ended.banned, ended.replaced
    )?;
    writeln!(
        to,
        "            {} idle, {} shut down; login queue peak {}, at most {} logins per tick",
        ended.idle, ended.server_stopping, sessions.max_login_queue, sessions.max_admitted
    )
}

/// The players of a player store.
fn write_player_store(to: &mut impl Write, store: &PlayerStoreSummary) -> io::Result<()> {
    writeln!(
        to,
        "store       {} players saved in {} transactions; {} unsaved (peak {})",
        store.saves, store.transactions, store.unsaved, store.max_unsaved
    )?;
    writeln!(
        to,
        "            {} loaded; leases: {} held, {} lost, {} expired; {} logins refused",
        store.loads, store.leases, store.leases_lost, store.leases_expired, store.logins_refused
    )?;
    if store.lookups > 0 {
        writeln!(
            to,
            "            {} lookups on other servers, {} cache hits, {} failed",
            store.lookups, store.lookup_hits, store.lookup_failures
        )?;
    }
    if store.store_failures > 0 {
        writeln!(to, "            {} store errors", store.store_failures)?;
    }
    Ok(())
}

/// Clients, matchmaking queues and messages.
fn write_systems(to: &mut impl Write, report: &Report) -> io::Result<()> {
    let sync = &report.sync;
    writeln!(
        to,
        "sync        {} packets, {}; {:.1} kB/s per client",
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
        "            {} updates of unseen objects, {} announcements",
        sync.unseen_updates, sync.announcements
    )?;
    if sync.attributes_clamped > 0 {
        writeln!(
            to,
            "            {} values clamped: outside the range of their encoding",
            sync.attributes_clamped
        )?;
    }
    let matches = &report.matchmaking;
    if matches.queued > 0 {
        writeln!(
            to,
            "matches     {} from {} parties, {} queued; gap {:.0}, spread {:.0}, wait {:.1} s",
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
        "inbox       {} received, {} refused; peak backlog {}, longest wait {:.0} ms",
        inbox.received, inbox.refused, inbox.max_backlog, inbox.max_lag_ms
    )?;
    if let Some(peak) = report.memory.peak_rss_bytes {
        writeln!(to, "memory      peak {}", bytes(peak))?;
    }
    Ok(())
}

/// The times of the sets of a tick.
fn write_times(to: &mut impl Write, report: &Report) -> io::Result<()> {
    writeln!(
        to,
        "\n{:<12}{:>10}{:>10}{:>10}{:>10}",
        "set", "mean ms", "p50 ms", "p99 ms", "max ms"
    )?;
    for set in throng::sim::SimSystems::ALL {
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

/// Script errors, cues without effect, and the results of the expectations.
fn write_verdict(to: &mut impl Write, report: &Report) -> io::Result<()> {
    let lines = [script_error_lines(report), cue_without_effect_lines(report)].concat();
    if !lines.is_empty() {
        writeln!(to)?;
    }
    for line in lines {
        writeln!(to, "{line}")?;
    }
    if !report.expectations.is_empty() {
        writeln!(to)?;
        report.expectations.iter().try_for_each(|result| {
            let lines = wrapped(&result_line(result), VERDICT_INDENT);
            writeln!(to, "{}", colored(result, &lines))
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

fn result_line(result: &ExpectationResult) -> String {
    let mark = match result.verdict {
        Verdict::Passed => "ok",
        Verdict::Failed => "BROKEN",
        Verdict::NotExercised => "not exercised:",
        Verdict::NotChecked => "not checked:",
        Verdict::SlowMachine => "slow machine:",
    };
    format!(
        "{mark:<7} {}: {}",
        escaped(&result.text),
        escaped(&result.found)
    )
}

/// In colour if the expectation failed.
fn colored(result: &ExpectationResult, line: &str) -> String {
    if result.verdict.fails() {
        failure_text(line)
    } else {
        line.to_owned()
    }
}

/// Errors of the script; the first few of them.
fn script_error_lines(report: &Report) -> Vec<String> {
    let faults = report.script_errors.iter();
    faults
        .map(|fault| format!("script error        {}", escaped(fault)))
        .collect()
}

/// Cues that had no effect, which is probably a mistake.
fn cue_without_effect_lines(report: &Report) -> Vec<String> {
    let idle = report.cues_without_effect.iter();
    idle.map(|cue| format!("cue without effect  {}", escaped(cue)))
        .collect()
}

pub(super) fn interrupted_line(tick: u64, all_ticks: u64) -> String {
    format!("interrupted after tick {tick} of {all_ticks}: expectations not checked")
}

/// All failures, and nothing else, for `--quiet`.
pub(super) fn failure_lines(report: &Report, all_ticks: u64) -> Vec<String> {
    if let Some(tick) = report.interrupted {
        return vec![interrupted_line(tick, all_ticks)];
    }
    let fails = |result: &&ExpectationResult| result.verdict.fails();
    let broken = report.expectations.iter().filter(fails);
    let lines: Vec<String> = broken
        .map(|result| colored(result, &result_line(result)))
        .collect();
    let faults = if lines.is_empty() {
        Vec::new()
    } else {
        script_error_lines(report)
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
