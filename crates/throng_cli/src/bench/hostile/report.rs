//! Rows and tables of both trials.

use std::collections::BTreeMap;

use super::SYSTEM;
use super::attacker::{NETWORK, RATE_PER_S};
use super::delays::{AttackDelays, DelayPair};
use super::memory_trial::MemoryResult;
use super::phases::{AttackSource, PhaseReport};
use super::trial::TrialResult;
use crate::bench::rows::BenchRow;
use crate::color::failure_text;
use crate::{CliError, print, wrapped};

/// The maximum memory of a server with 10,000 connections, in bytes.
const MEMORY_BYTES_MAX: f64 = 2e9;
const CONNECTIONS: f64 = 10_000.0;

/// The maximum increase of the p99 delay of honest clients, in milliseconds: one tick.
const ADDED_MS_MAX: f64 = 50.0;

/// Indentation of continuation lines.
const INDENT: usize = 4;

/// The memory that each connection adds, in bytes.
fn bytes_per_connection(result: &MemoryResult) -> f64 {
    let added = result.peak.saturating_sub(result.before) as f64;
    added / result.clients.max(1) as f64
}

/// The memory of a server with 10,000 such connections, in bytes.
fn projected_bytes(result: &MemoryResult) -> f64 {
    result.before as f64 + bytes_per_connection(result) * CONNECTIONS
}

pub(super) fn print_memory(result: &MemoryResult) -> Result<(), CliError> {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    print(&format!(
        "\nmemory of the server, MB\n\
         \x20 without connections       {:>8.0}\n\
         \x20 all junk sent             {:>8.0}   by {} of {} connections\n\
         \x20 peak, nothing acknowledged{:>8.0}   {} connected, {} entered the world\n\
         \x20 per connection            {:>8.1} kB\n\
         \x20 dropped by the system     {:>8} datagrams",
        megabytes(result.before),
        megabytes(result.loaded),
        result.complete,
        result.connections,
        megabytes(result.peak),
        result.clients,
        result.inside,
        bytes_per_connection(result) / 1e3,
        result.dropped,
    ))
}

pub(super) fn memory_rows(result: &MemoryResult) -> Vec<BenchRow> {
    let count = result.connections;
    vec![
        BenchRow::new(SYSTEM, "10,000 connections", projected_bytes(result) / 1e6, "MB")
            .about(format!(
                "Resident memory of a server with 10,000 connections that fill all streams and acknowledge nothing, \
                 extrapolated from {} of {count}.",
                result.clients
            ))
            .with_target_below(MEMORY_BYTES_MAX / 1e6, "MB"),
        BenchRow::new(SYSTEM, "bytes per connection", bytes_per_connection(result) / 1e3, "kB")
            .about("The memory that such a connection adds, including its player in the world."),
        BenchRow::new(SYSTEM, "before their ends", result.loaded as f64 / 1e6, "MB")
            .about(format!(
                "Resident memory when {} of {count} had sent all their junk, before they entered the world.",
                result.complete
            )),
    ]
}

/// The name of an attack.
fn attack_name(report: &PhaseReport) -> String {
    let source = match report.plan.source {
        AttackSource::Nowhere => return "no attack".to_owned(),
        AttackSource::Host => "host",
        AttackSource::Network => "/48",
    };
    let kind = report.plan.kind.map_or("nothing", |kind| kind.name());
    format!("{source}: {kind}")
}

/// Counters, the largest first.
fn counter_list(counters: &BTreeMap<String, u64>) -> String {
    let mut counters: Vec<_> = counters.iter().filter(|(_, count)| **count > 0).collect();
    counters.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let parts = counters
        .iter()
        .map(|(name, count)| format!("{count} {name}"));
    parts.collect::<Vec<_>>().join(", ")
}

fn attacks<'a>(
    result: &'a TrialResult,
    delays: &'a [AttackDelays],
) -> impl Iterator<Item = (&'a PhaseReport, &'a AttackDelays)> {
    delays
        .iter()
        .filter_map(|delays| Some((result.reports.get(delays.phase)?, delays)))
}

pub(super) fn print_delays(result: &TrialResult, delays: &[AttackDelays]) -> Result<(), CliError> {
    print(
        "\n                           sent   not   p99 delay, ms: quiet > attack     cores\n\
         attack                      k/s  read   packets     inputs     logins  server",
    )?;
    for (report, delays) in attacks(result, delays) {
        let pair = |pair: DelayPair| format!("{:>4.0} >{:>4.0}", pair.quiet.p99, pair.attack.p99);
        print(&format!(
            "{:<25}{:>6.1} {:>4.1}%  {}  {}  {}    {:.2}",
            attack_name(report),
            report.sent as f64 / report.seconds / 1e3,
            lost_share(report) * 100.0,
            pair(delays.packets),
            pair(delays.inputs),
            pair(delays.logins),
            report.server_cpu,
        ))?;
    }
    print("\nwhat the server counted during each attack, honest clients included")?;
    let sending = attacks(result, delays).filter(|(report, _)| report.plan.kind.is_some());
    for (report, delays) in sending {
        let victim = if delays.victim.attack.count == 0 {
            "; the client whose address it forged got no reply".to_owned()
        } else {
            String::new()
        };
        let line = format!(
            "  {}: {} sent, {} dropped by the system. Refused: {}. Accepted: {}. Attacker: {:.2} cores{victim}.",
            attack_name(report),
            report.sent,
            report.dropped,
            counter_list(&report.counted.refused),
            counter_list(&report.counted.accepted),
            report.attacker_cpu,
        );
        print(&wrapped(&line, INDENT))?;
    }
    let quiet = result
        .reports
        .iter()
        .filter(|report| report.plan.source == AttackSource::Nowhere);
    let quiet: Vec<f64> = quiet.map(|report| report.server_cpu).collect();
    let totals = result.totals;
    let line = format!(
        "all phases: {} sent, {} read by the server, {} of them counted, {} dropped by the system. {} honest clients lost their \
         connection. In quiet phases the server uses {:.2} cores.",
        totals.sent,
        totals.received,
        totals.accounted,
        totals.dropped,
        result.ended,
        quiet.iter().sum::<f64>() / quiet.len().max(1) as f64,
    );
    print(&format!("\n{}", wrapped(&line, INDENT)))
}

/// The share of datagrams that the system dropped.
fn lost_share(report: &PhaseReport) -> f64 {
    let all = report.counted.datagrams_in + report.dropped;
    report.dropped as f64 / all.max(1) as f64
}

pub(super) fn delay_rows(result: &TrialResult, delays: &[AttackDelays]) -> Vec<BenchRow> {
    let mut rows = Vec::new();
    for (report, delays) in attacks(result, delays) {
        let name = attack_name(report);
        let about = [
            (
                "packets",
                delays.packets,
                "Time from the tick of a packet to its arrival, relative to the fastest packet",
            ),
            (
                "inputs",
                delays.inputs,
                "Time from an input to its acknowledgement",
            ),
            (
                "logins",
                delays.logins,
                "Time from a newcomer's first request to the world",
            ),
        ];
        for (what, pair, about) in about {
            let added = pair.added_ms();
            let (quiet, attack) = (pair.quiet, pair.attack);
            let row = BenchRow::new(SYSTEM, format!("{name}: {what}"), attack.p99, "ms")
                .with_reference("quiet", quiet.p99)
                .about(format!(
                    "{about}, p99. Attack: p50 {:.1} ms, max {:.0} ms of {} samples; quiet: p50 {:.1} ms, max {:.0} ms. Added: {:.2} ticks.",
                    attack.p50,
                    attack.max,
                    attack.count,
                    quiet.p50,
                    quiet.max,
                    added / ADDED_MS_MAX
                ));
            rows.push(if report.plan.kind.is_some() {
                let target = format!("<= {ADDED_MS_MAX} ms more than in quiet phases");
                row.with_target(target, attack.count > 0 && added <= ADDED_MS_MAX)
            } else {
                row
            });
        }
        if report.plan.kind.is_some() {
            rows.push(rate_row(report, &name, delays.failed_logins));
        }
    }
    rows.push(totals_row(result));
    rows
}

/// The rate of an attack, with the counters of its refused datagrams.
fn rate_row(report: &PhaseReport, name: &str, failed_logins: usize) -> BenchRow {
    let rate = report.sent as f64 / report.seconds;
    BenchRow::new(SYSTEM, format!("{name}: rate"), rate, "1/s")
        .more_is_better()
        .about(format!(
            "Datagrams of the attacker, planned: {RATE_PER_S}; the system dropped {:.2} %, the server used {:.2} cores, the attacker \
             {:.2}; {failed_logins} logins failed. Refused: {}.",
            lost_share(report) * 100.0,
            report.server_cpu,
            report.attacker_cpu,
            counter_list(&report.counted.refused),
        ))
}

fn totals_row(result: &TrialResult) -> BenchRow {
    let totals = result.totals;
    let is_complete = totals.received == totals.accounted
        && totals.sent == totals.received + totals.dropped
        && totals.sent > 0;
    BenchRow::new(SYSTEM, "all datagrams", totals.sent as f64, "datagrams")
        .about(format!(
            "Datagrams of all clients: the server read {} and has a counter for {}; the system dropped {}.",
            totals.received, totals.accounted, totals.dropped
        ))
        .with_comparison("sent = counted + dropped", is_complete)
}

/// Prints whether each requirement is met, with the worst figure.
pub(super) fn print_verdicts(rows: &[BenchRow]) -> Result<(), CliError> {
    print("")?;
    let memory = rows.iter().find(|row| row.unit == "MB");
    if let Some(memory) = memory {
        verdict(
            memory.meets_target == Some(true),
            &format!(
                "memory of 10,000 connections: {:.0} MB, at most {:.0} MB",
                memory.value,
                MEMORY_BYTES_MAX / 1e6
            ),
        )?;
    }
    for (source, prefix) in [("hostile host", "host: "), ("hostile /48", "/48: ")] {
        let of_source = rows
            .iter()
            .filter(|row| row.case.starts_with(prefix) && row.unit == "ms");
        let added = |row: &&BenchRow| row.value - row.reference_value.unwrap_or_default();
        let worst = of_source
            .clone()
            .max_by(|a, b| added(a).total_cmp(&added(b)));
        let Some(worst) = worst else {
            let line = format!(
                "{source}: not measured, because {NETWORK}/48 is not routed to this machine; see --help"
            );
            print(&wrapped(&line, INDENT))?;
            continue;
        };
        verdict(
            of_source.clone().all(|row| row.meets_target == Some(true)),
            &format!(
                "{source}: adds {:.2} ticks at p99, at most 1 ({})",
                added(&worst) / ADDED_MS_MAX,
                worst.case
            ),
        )?;
    }
    let agree = rows.iter().all(|row| row.results_agree != Some(false));
    verdict(
        agree,
        "every datagram was counted by the server or dropped by the system",
    )
}

fn verdict(is_met: bool, text: &str) -> Result<(), CliError> {
    let line = wrapped(
        &format!("{}  {text}", if is_met { "met   " } else { "missed" }),
        8,
    );
    print(&if is_met { line } else { failure_text(&line) })
}
