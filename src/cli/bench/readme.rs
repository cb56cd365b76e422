//! The README's table of searches, written from what `bench nav` found: between two marks, with the machine, the commit and the date.

use std::path::Path;
use std::process::Command;

use super::rows::BenchRow;
use super::table::number;
use super::{BenchFindings, Failure};

/// The lines between which the table lies.
const BEGIN: &str =
    "<!-- figures: `throng bench nav --readme README.md` writes what is between these lines -->";
const END: &str = "<!-- end of figures -->";

/// What the README says of each search, by its row.
const SEARCHES: [(&str, &str); 8] = [
    ("astar", "`astar`: textbook A*, the reference"),
    ("jps", "`jps`: jump points, tile by tile"),
    ("jps-bit", "`jps-bit`: 64 tiles at a time"),
    (
        "..prune, no planes",
        "`jps-bit-prune` on the bitmaps alone: diagonal jump points are not opened",
    ),
    (
        "jps-bit-prune",
        "`jps-bit-prune` with sign planes, which follow edits in microseconds",
    ),
    ("jps-bit-pre", "`jps-bit-pre`: a table of steps"),
    ("jps-bit-prune-pre", "`jps-bit-prune-pre`: both"),
    (
        "jps-graph",
        "`jps-graph`: successors listed, the default where it is built",
    ),
];

/// Checks that a file has the marks.
///
/// # Errors
/// With the file and the mark that is not there.
pub(super) fn check(file: &Path) -> Result<(), Failure> {
    with_table(&read(file)?, "")
        .map(|_| ())
        .map_err(|error| wrong(file, &error))
}

/// Writes the table between the marks of a file.
///
/// # Errors
/// Where the file cannot be written, or a search was not measured.
pub(super) fn write(file: &Path, findings: &BenchFindings) -> Result<(), Failure> {
    let table = table(findings, &commit(file)).map_err(|error| wrong(file, &error))?;
    let text = with_table(&read(file)?, &table).map_err(|error| wrong(file, &error))?;
    std::fs::write(file, text).map_err(|error| wrong(file, &error.to_string()))
}

fn wrong(file: &Path, error: &str) -> Failure {
    Failure::new(format!("--readme {}: {error}", file.display()))
}

fn read(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|error| wrong(file, &error.to_string()))
}

/// What the folder of the file is a checkout of.
fn commit(file: &Path) -> String {
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let told = Command::new("git")
        .current_dir(folder.unwrap_or(Path::new(".")))
        .args(["describe", "--always", "--dirty=, changed", "--exclude=*"])
        .output();
    let told = told.ok().filter(|told| told.status.success());
    let commit = told.and_then(|told| String::from_utf8(told.stdout).ok());
    commit.map_or_else(|| "unknown".to_owned(), |commit| commit.trim().to_owned())
}

/// The text with the table in place of what is between the marks.
fn with_table(text: &str, table: &str) -> Result<String, String> {
    let parts = text.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let (before, after) =
        parts.ok_or_else(|| format!("expected the lines `{BEGIN}` and `{END}`"))?;
    Ok(format!("{before}{BEGIN}\n{table}\n{END}{after}"))
}

fn table(findings: &BenchFindings, commit: &str) -> Result<String, String> {
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

/// A whole number, with its thousands set apart.
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
    use crate::cli::machine::Machine;

    fn findings() -> BenchFindings {
        let rows = SEARCHES.iter().flat_map(|(case, _)| {
            let us = BenchRow::new("nav", *case, 12.04, "us/query").beside("astar", 584.0);
            let expanded = BenchRow::new("nav", format!("{case} expanded"), 4503.6, "nodes");
            let heap = BenchRow::new("nav", format!("{case} heap"), 330.0, "heap ops");
            [us, expanded, heap]
        });
        BenchFindings {
            machine: Machine {
                cpu: "a processor".to_owned(),
                date: "2026-05-04T13:02:01Z".to_owned(),
                is_optimised: true,
                ..Machine::default()
            },
            is_quick: false,
            interrupted: None,
            busy: Vec::new(),
            baseline_warnings: Vec::new(),
            rows: rows.collect(),
        }
    }

    #[test]
    fn a_table_is_written_between_the_marks_and_nothing_else_changes() {
        let table = table(&findings(), "abc1234").unwrap();
        for part in [
            "a processor",
            "commit abc1234; 2026-05-04:",
            "| `jps-bit`: 64 tiles at a time | 12.0 | 4,504 | 330 | 48.5 × |\n",
        ] {
            assert!(table.contains(part), "{part} in {table}");
        }
        let text = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let once = with_table(&text, &table).unwrap();
        assert_eq!(once, format!("before\n{BEGIN}\n{table}\n{END}\nafter\n"));
        assert_eq!(with_table(&once, &table).as_ref(), Ok(&once));
        assert!(with_table("before", &table).is_err());
        let mut fewer = findings();
        fewer.rows.remove(4);
        assert!(
            super::table(&fewer, "")
                .unwrap_err()
                .contains("`jps expanded`")
        );
    }

    #[test]
    fn the_readme_has_the_table_as_it_is_written() {
        let readme = include_str!("../../../README.md");
        let written = with_table(readme, &table(&findings(), "").unwrap()).unwrap();
        // All that is measured anew are figures and where they are from: the rest is what the command writes.
        let words = |text: &str| -> Vec<String> {
            let (_, block) = text.split_once(BEGIN).unwrap();
            let (block, _) = block.split_once(END).unwrap();
            let cells = block.lines().filter(|line| line.starts_with('|'));
            let first = |line: &str| line.split('|').nth(1).map(str::to_owned);
            cells.filter_map(first).collect()
        };
        assert_eq!(words(readme), words(&written));
    }
}
