//! `throng report`: the results of a run or a bench as a page, and a comparison of two, for example of two commits.
//!
//! ```text
//! A.json ──▶ run or bench ──┬─▶ its page
//! B.json ──▶ the same kind ─┴─▶ changes, the largest first ──▶ 80 columns, or a page
//! ```
//! | file | holds |
//! |---|---|
//! | `changes.rs` | changes and their sizes; pure code |
//! | `show.rs` | changes for a terminal, and as a page |

mod changes;
mod show;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::bench::BenchReport;
use super::outputs::{RunFile, check_outputs, check_page, check_writable};
use super::page::run::PageRun;
use super::{CliError, CliStatus, bench, page, print};
use changes::Comparison;

/// Arguments of `throng report`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReportCommand {
    /// Output of `throng run --json` or `throng bench --json`
    #[arg(value_name = "A.json")]
    first: PathBuf,
    /// A second one of the same kind, to compare with
    #[arg(value_name = "B.json")]
    second: Option<PathBuf>,
    /// Write an HTML page
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Show all changes, not only the largest
    #[arg(long, requires = "second")]
    all: bool,
}

const EXAMPLES: &str = "Examples:
  throng run town --json --report town.html > before.json
  throng report before.json after.json
  throng report before.json after.json --report moved.html
  throng report before.json --report town.html

Two files are compared, the largest change first, by its ratio. Counters are
equal in all runs of the same simulation; times are not and are listed
separately. The page of a run shows values over time only if the file has a
`record`: `throng run --json --report FILE.html`.";

/// Maximum size of an input file, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// The content of a file.
enum ReportFile {
    Run(Box<PageRun>),
    Bench(Box<BenchReport>),
}

impl ReportCommand {
    /// Reads the files, compares them, prints the result and writes the page.
    pub(super) fn run(self) -> Result<CliStatus, CliError> {
        self.check_files()?;
        let first = load(&self.first)?;
        let Some(second) = &self.second else {
            let Some(file) = &self.report else {
                return Err(CliError::new(
                    "one file needs --report FILE.html; to compare, pass two files",
                ));
            };
            page::write(file, &first.page())?;
            return Ok(CliStatus::Done);
        };
        let second_file = load(second)?;
        let names = [&self.first, second].map(|path| path.display().to_string());
        let both = match (&first, &second_file) {
            (ReportFile::Run(a), ReportFile::Run(b)) => Comparison::from_runs(names, [a, b]),
            (ReportFile::Bench(a), ReportFile::Bench(b)) => Comparison::from_benches(names, [a, b]),
            _ => {
                return Err(CliError::new(format!(
                    "expected two files of the same kind, found {} in {} and {} in {}",
                    first.kind(),
                    self.first.display(),
                    second_file.kind(),
                    second.display()
                )));
            }
        };
        print(&show::table(&both, self.all))?;
        if let Some(file) = &self.report {
            page::write(file, &show::page(&both))?;
        }
        Ok(CliStatus::Done)
    }

    /// Checks the path of the page before anything is read.
    fn check_files(&self) -> Result<(), CliError> {
        let Some(output) = self.report.as_deref() else {
            return Ok(());
        };
        let inputs = [Some(&self.first), self.second.as_ref()];
        let inputs: Vec<RunFile> = inputs
            .into_iter()
            .flatten()
            .map(|path| RunFile {
                name: "an input file",
                path,
            })
            .collect();
        let output = RunFile {
            name: "--report",
            path: output,
        };
        check_page(output.path)?;
        check_outputs(&inputs, std::slice::from_ref(&output))?;
        check_writable(output.path)
    }
}

/// The figures of two runs side by side, the largest change first, in 80 columns.
pub(crate) fn compare_runs(names: [String; 2], runs: [String; 2]) -> Result<String, CliError> {
    let [a, b] = runs.map(|json| PageRun::parse(&json));
    let (a, b) = a.and_then(|a| Ok((a, b?))).map_err(CliError::new)?;
    Ok(show::table(&Comparison::from_runs(names, [&a, &b]), false))
}

impl ReportFile {
    fn page(&self) -> String {
        match self {
            Self::Run(run) => page::run::page(run, &[]),
            Self::Bench(findings) => bench::page::page(findings, &[]),
        }
    }

    const fn kind(&self) -> &'static str {
        match self {
            Self::Run(_) => "a run",
            Self::Bench(_) => "a bench",
        }
    }
}

fn load(path: &Path) -> Result<ReportFile, CliError> {
    let wrong = |what: String| CliError::new(format!("{}: {what}", path.display()));
    let mut text = String::new();
    let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
    // The limit also holds for pipes, which have no length.
    let bytes = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    if bytes.map_err(|error| wrong(error.to_string()))? as u64 > FILE_BYTES_MAX {
        return Err(wrong(format!("expected at most {FILE_BYTES_MAX} bytes")));
    }
    read(&text).map_err(wrong)
}

/// Parses the content of a file.
fn read(text: &str) -> Result<ReportFile, String> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| format!("expected what `throng run --json` or `throng bench --json` prints, found invalid JSON: {error}"))?;
    let has = |name: &str| value.get(name).is_some();
    if has("rows") {
        let findings = serde_json::from_value(value);
        let findings = findings
            .map_err(|error| format!("expected what `throng bench --json` prints: {error}"))?;
        return Ok(ReportFile::Bench(Box::new(findings)));
    }
    if has("scenario") {
        return Ok(ReportFile::Run(Box::new(PageRun::from_json(value)?)));
    }
    Err("expected what `throng run --json` or `throng bench --json` prints, found neither `scenario` nor `rows`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_of_no_run_or_bench_is_refused() {
        for (bad, expected) in [
            ("x", "found invalid JSON"),
            ("{}", "neither `scenario` nor `rows`"),
            ("[1]", "neither"),
            (r#"{"rows": 3}"#, "throng bench --json` prints"),
            (r#"{"scenario": "x"}"#, "found no `state_hash`"),
        ] {
            let error = read(bad).err().unwrap();
            assert!(error.contains(expected), "{error}");
        }
    }
}
