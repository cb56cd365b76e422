//! Writes the tables in benches/RESULTS.md: path searches, from the rows of `bench nav`, with machine, commit and date; and published
//! crates compared with throng, from the rows of benches/peers. Each table is between two marks.

use std::path::Path;
use std::process::Command;

use super::rows::BenchRow;
use super::table::number;
use super::{BenchReport, CliError};

/// The marks around the tables.
const SEARCHES_BEGIN: &str = "<!-- figures: `throng bench nav --readme benches/RESULTS.md` writes what is between these lines -->";
const PEERS_BEGIN: &str = "<!-- figures: `throng bench nav --peers FILE.json --readme benches/RESULTS.md` writes what is between these lines -->";
const END: &str = "<!-- end of figures -->";

/// The label of each search algorithm, by row name.
const SEARCHES: [(&str, &str); 8] = [
    ("astar", "`astar`: textbook A*, the reference"),
    ("jps", "`jps`: jump point search, tile by tile"),
    ("jps-bit", "`jps-bit`: 64 tiles at a time"),
    ("..prune, no planes", "`jps-bit-prune` on the bitmaps alone"),
    (
        "jps-bit-prune",
        "`jps-bit-prune` with sign planes, which follow an edit in microseconds",
    ),
    ("jps-bit-pre", "`jps-bit-pre`: a table of steps"),
    (
        "jps-bit-prune-pre",
        "`jps-bit-prune-pre`: pruning and a table of steps",
    ),
    (
        "jps-graph",
        "`jps-graph`: a graph of jump points with landmarks, the default once built",
    ),
];

/// The rows of benches/peers in the table: system, case, reference, and description. Rows of `net` also have the crate in their case.
const PEERS: [(&str, &str, &str, &str); 16] = [
    (
        "nav",
        "jps-graph orz900d",
        "pathfinding A*",
        "a shortest path on `orz900d`, benchmark queries",
    ),
    (
        "nav",
        "jps-graph Berlin_0_1024",
        "pathfinding A*",
        "a shortest path on `Berlin_0_1024`, benchmark queries",
    ),
    (
        "aoi",
        "10000 walk 2.5 m a tick",
        "kiddo, asked by viewer",
        "views of 10,000 that run 2.5 m a tick; k-d tree, one query a viewer",
    ),
    (
        "aoi",
        "10000 walk 2.5 m a tick",
        "kiddo, asked by cell",
        "views of 10,000 that run 2.5 m a tick; k-d tree, one query a cell",
    ),
    (
        "aoi",
        "10000 walk 0.25 m a tick",
        "kiddo, asked by cell",
        "views of 10,000 that walk 0.25 m a tick; k-d tree, one query a cell",
    ),
    (
        "sync",
        "everything sent, a tick/10000x1000",
        "bevy_replicon",
        "the same 101 of 10,000 positions sent to 1,000 clients",
    ),
    (
        "sync",
        "reckoned, a tick/10000x1000",
        "bevy_replicon",
        "the same positions, throng by dead reckoning",
    ),
    ("store", "hit", "moka", "a player found in the cache"),
    (
        "net",
        "10 % lost: p99, renet 2.0",
        "renet 2.0",
        "p99 delay of ordered messages, 10 % loss",
    ),
    (
        "net",
        "10 % lost: p99, renet 2.0, each tick",
        "renet 2.0, each tick",
        "p99 delay of ordered messages, 10 % loss; renet repeats every tick",
    ),
    (
        "net",
        "10 % lost: p99, aeronet_transport",
        "aeronet_transport",
        "p99 delay of ordered messages, 10 % loss",
    ),
    (
        "net",
        "10 % lost: p99, quinn-proto 0.11",
        "quinn-proto 0.11",
        "p99 delay of ordered messages, 10 % loss",
    ),
    (
        "net",
        "10 % lost: bytes, renet 2.0",
        "renet 2.0",
        "bytes sent for it, a client and tick",
    ),
    (
        "net",
        "10 % lost: bytes, renet 2.0, each tick",
        "renet 2.0, each tick",
        "bytes sent for it, a client and tick; renet repeats every tick",
    ),
    (
        "net",
        "10 % lost: bytes, aeronet_transport",
        "aeronet_transport",
        "bytes sent for it, a client and tick",
    ),
    (
        "net",
        "10 % lost: bytes, quinn-proto 0.11",
        "quinn-proto 0.11",
        "bytes sent for it, a client and tick",
    ),
];

/// Checks that a file has the marks, and that the rows of published crates, if given, are complete.
///
/// # Errors
/// With the file and what is missing in it.
pub(super) fn check(file: &Path, peers: &[BenchRow]) -> Result<(), CliError> {
    let text = read(file)?;
    let marks = [SEARCHES_BEGIN, PEERS_BEGIN].into_iter();
    let checked = { marks }.try_for_each(|begin| with_table(&text, begin, "").map(|_| ()));
    let checked = checked.and_then(|()| match peers {
        [] => Ok(()),
        peers => peer_table(peers).map(|_| ()),
    });
    checked.map_err(|error| file_error(file, &error))
}

/// Writes the tables between the marks of a file; the one of published crates only if there are rows for it.
///
/// # Errors
/// If the file cannot be written, or a row is missing.
pub(super) fn write(
    file: &Path,
    findings: &BenchReport,
    peers: &[BenchRow],
) -> Result<(), CliError> {
    let written = |text: String| {
        let searches = search_table(findings, &commit(file))?;
        let text = with_table(&text, SEARCHES_BEGIN, &searches)?;
        if peers.is_empty() {
            Ok(text)
        } else {
            with_table(&text, PEERS_BEGIN, &peer_table(peers)?)
        }
    };
    let text = written(read(file)?).map_err(|error: String| file_error(file, &error))?;
    std::fs::write(file, text).map_err(|error| file_error(file, &error.to_string()))
}

fn file_error(file: &Path, error: &str) -> CliError {
    CliError::new(format!("--readme {}: {error}", file.display()))
}

fn read(file: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(file).map_err(|error| file_error(file, &error.to_string()))
}

/// The commit of the checkout that contains the file.
fn commit(file: &Path) -> String {
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let output = Command::new("git")
        .current_dir(folder.unwrap_or(Path::new(".")))
        .args(["describe", "--always", "--dirty=, changed", "--exclude=*"])
        .output();
    let output = output.ok().filter(|output| output.status.success());
    let commit = output.and_then(|output| String::from_utf8(output.stdout).ok());
    commit.map_or_else(|| "unknown".to_owned(), |commit| commit.trim().to_owned())
}

/// The text with the lines between this mark and the next end mark replaced by the table.
fn with_table(text: &str, begin: &str, table: &str) -> Result<String, String> {
    let parts = text.split_once(begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let (before, after) =
        parts.ok_or_else(|| format!("expected the lines `{begin}` and `{END}`"))?;
    Ok(format!("{before}{begin}\n{table}\n{END}{after}"))
}

fn search_table(findings: &BenchReport, commit: &str) -> Result<String, String> {
    let machine = &findings.machine;
    let row = |case: String| {
        let found = findings
            .rows
            .iter()
            .find(|row| row.system == "nav" && row.case == case);
        found.ok_or_else(|| format!("expected a row `{case}`, found none"))
    };
    let quick = if findings.is_quick { ", --quick" } else { "" };
    let build = if machine.is_optimised {
        ""
    } else {
        ", not optimised"
    };
    let date = machine.date.split('T').next().unwrap_or_default();
    let load = machine.load_average.unwrap_or_default();
    let mut text = format!(
        "Means a query, in one run of one thread; {}, {} cores, load {load:.1} before; throng {}{build}{quick}, commit {commit}; {date}:\n\n\
         | algorithm | µs | expanded | heap operations | beside A* |\n|---|---:|---:|---:|---:|\n",
        machine.cpu, machine.cores, machine.throng
    );
    for (case, words) in SEARCHES {
        let us = row(case.to_owned())?;
        let figure = |row: &BenchRow| grouped(row.value);
        let (expanded, heap) = (
            row(format!("{case} expanded"))?,
            row(format!("{case} heap"))?,
        );
        let ratio = us
            .ratio
            .map_or_else(String::new, |ratio| format!("{ratio:.1} × "));
        text += &format!(
            "| {words} | {} | {} | {} | {ratio}|\n",
            number(us.value),
            figure(expanded),
            figure(heap)
        );
    }
    Ok(text)
}

fn peer_table(peers: &[BenchRow]) -> Result<String, String> {
    let mut text =
        "| work | throng | beside | takes | ratio |\n|---|---:|---|---:|---:|\n".to_owned();
    for (system, case, reference, words) in PEERS {
        let found = peers.iter().find(|row| {
            let is_beside = row.reference.as_deref() == Some(reference);
            row.system == system && row.case == case && is_beside
        });
        let row = found.ok_or_else(|| {
            format!(
                "--peers: expected a row `{case}` of `{system}` beside `{reference}`, found none"
            )
        })?;
        let shown = |value: f64| format!("{} {}", number(value), row.unit);
        let other = row.reference_value.map_or_else(String::new, shown);
        let ratio = row
            .ratio
            .map_or_else(String::new, |ratio| format!("{} × ", number(ratio)));
        text += &format!(
            "| {words} | {} | {reference} | {other} | {ratio}|\n",
            shown(row.value)
        );
    }
    Ok(text)
}

/// A whole number with thousands separators.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut shown = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    fn findings() -> BenchReport {
        let rows = SEARCHES.iter().flat_map(|(case, _)| {
            let us = BenchRow::new("nav", *case, 12.04, "us/query").with_reference("astar", 584.0);
            let expanded = BenchRow::new("nav", format!("{case} expanded"), 4503.6, "nodes");
            let heap = BenchRow::new("nav", format!("{case} heap"), 330.0, "heap ops");
            [us, expanded, heap]
        });
        BenchReport {
            machine: Machine {
                cpu: "a processor".to_owned(),
                date: "2026-05-04T13:02:01Z".to_owned(),
                is_optimised: true,
                ..Machine::default()
            },
            is_quick: false,
            interrupted: None,
            busy_reasons: Vec::new(),
            baseline_warnings: Vec::new(),
            rows: rows.collect(),
        }
    }

    fn peers() -> Vec<BenchRow> {
        let rows = PEERS.iter().map(|(system, case, reference, _)| {
            BenchRow::new(system, *case, 2.0, "ms").with_reference(reference, 5.0)
        });
        rows.collect()
    }

    #[test]
    fn only_text_between_table_marks_changes() {
        let table = search_table(&findings(), "abc1234").unwrap();
        for part in [
            "a processor",
            "commit abc1234; 2026-05-04:",
            "| `jps-bit`: 64 tiles at a time | 12.0 | 4,504 | 330 | 48.5 × |\n",
        ] {
            assert!(table.contains(part), "{part} in {table}");
        }
        let beside = peer_table(&peers()).unwrap();
        let line = "| a player found in the cache | 2.00 ms | moka | 5.00 ms | 2.50 × |\n";
        assert!(beside.contains(line), "{beside}");
        let text = |searches: &str, peers: &str| {
            format!("a\n{SEARCHES_BEGIN}\n{searches}\n{END}\nb\n{PEERS_BEGIN}\n{peers}\n{END}\nc\n")
        };
        let both = |before: &str| {
            let once = with_table(before, SEARCHES_BEGIN, &table)?;
            with_table(&once, PEERS_BEGIN, &beside)
        };
        let written = both(&text("old", "older")).unwrap();
        assert_eq!(written, text(&table, &beside));
        assert_eq!(both(&written), Ok(written));
        assert!(with_table("before", SEARCHES_BEGIN, &table).is_err());
        let mut fewer = findings();
        fewer.rows.remove(4);
        let error = search_table(&fewer, "").unwrap_err();
        assert!(error.contains("`jps expanded`"), "{error}");
        let error = peer_table(&peers()[1..]).unwrap_err();
        assert!(error.contains("`jps-graph orz900d` of `nav`"), "{error}");
    }

    #[test]
    fn results_file_has_the_tables_as_written() {
        let results = include_str!("../../../../benches/RESULTS.md");
        // Figures, machine and commit vary; everything else must be the command's own output.
        let words = |text: &str, begin: &str| -> Vec<String> {
            let (_, block) = text.split_once(begin).unwrap();
            let (block, _) = block.split_once(END).unwrap();
            let cells = block.lines().filter(|line| line.starts_with('|'));
            let first = |line: &str| line.split('|').nth(1).map(str::to_owned);
            cells.filter_map(first).collect()
        };
        for (begin, table) in [
            (SEARCHES_BEGIN, search_table(&findings(), "").unwrap()),
            (PEERS_BEGIN, peer_table(&peers()).unwrap()),
        ] {
            let written = with_table(results, begin, &table).unwrap();
            assert_eq!(words(results, begin), words(&written, begin));
        }
    }
}
