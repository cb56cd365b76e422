//! `throng run --sweep NAME=FROM..TO --until EXPECTATION`: the largest value of a parameter with which an expectation holds.
//!
//! ```text
//! a value ─▶ the whole run ─▶ the expectation holds? ─▶ [`CrowdSearch`]: the next value ─▶ … ─▶ the largest that passed
//! ```
//! An expectation on wall time is tried several times at both ends of the result, because times vary from run to run. Other expectations
//! have the same result in every run, and are tried once.

use serde_json::{Value, json};

use super::Run;
use crate::bench::{CrowdRange, CrowdSearch, TRIES, times_text};
use crate::{
    CliError, CliStatus, Output, interrupted_status, is_interrupted, listen_for_interrupt, print,
    print_failure,
};
use throng_scenario::{Expectation, TimingChecks, Verdict, is_wall_time};

/// The value of `--sweep`: a parameter and the range to search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SweepRange {
    pub name: String,
    pub from: u32,
    pub to: u32,
}

/// Parses a range such as `npcs=1000..200000`.
pub(super) fn sweep_range(text: &str) -> Result<SweepRange, String> {
    let expected =
        "expected a parameter and a range of whole numbers from 1, such as npcs=1000..200000";
    let (name, range) = text.split_once('=').ok_or(expected)?;
    let (from, to) = range.split_once("..").ok_or(expected)?;
    let number = |text: &str| text.trim().replace('_', "").parse::<u32>().ok();
    let (from, to) = number(from).zip(number(to)).ok_or(expected)?;
    if name.trim().is_empty() || from == 0 {
        return Err(expected.to_owned());
    }
    if from > to {
        return Err(format!(
            "expected the smaller number first, found {from}..{to}"
        ));
    }
    Ok(SweepRange {
        name: name.trim().to_owned(),
        from,
        to,
    })
}

/// The result of one try.
struct SweepTry {
    value: u32,
    passed: bool,
    found: String,
}

impl Run {
    /// Searches for the largest value of the parameter, and prints it.
    pub(super) fn sweep(&self, range: &SweepRange, output: Output) -> Result<CliStatus, CliError> {
        let until = self.until.as_deref().unwrap_or_default();
        listen_for_interrupt();
        let mut search: Option<CrowdSearch> = None;
        let mut tries: Vec<SweepTry> = Vec::new();
        let mut expected: Option<Expectation> = None;
        while let Some(value) = search.as_ref().map_or(Some(range.from), CrowdSearch::next) {
            let mut set = self.set.values.clone();
            set.push((range.name.clone(), value.to_string()));
            let mut loaded = match self.load_measured(&set)? {
                Ok(loaded) => loaded,
                Err(status) => return Ok(status),
            };
            let expectation = loaded
                .read_expectation(until)
                .map_err(|error| CliError::new(format!("--until: {error}")))?;
            let search = search.get_or_insert_with(|| {
                let count = if is_timed(&expectation) { TRIES } else { 1 };
                CrowdSearch::new(range.from, range.to, count).not_below(range.from)
            });
            loaded.scenario.expect = vec![expectation.clone()];
            expected = Some(expectation);
            let Some(run) = self.measure(loaded, TimingChecks::Always, output.quiet)? else {
                return Ok(interrupted_status());
            };
            let Some(result) = run.report.expectations.into_iter().next() else {
                break;
            };
            let passed = result.verdict == Verdict::Passed;
            if result.verdict == Verdict::NotExercised {
                return Err(CliError::new(format!(
                    "--until: `{}` has nothing to check with {} = {value}: {}",
                    result.text, range.name, result.found
                )));
            }
            if !output.quiet && !self.json {
                let verdict = if passed { "passed" } else { "failed" };
                let name = &range.name;
                print(&format!("{name} = {value}: {verdict}, {}", result.found))?;
            }
            search.record(value, passed);
            tries.push(SweepTry {
                value,
                passed,
                found: result.found,
            });
            if is_interrupted() {
                return Ok(interrupted_status());
            }
        }
        let (Some(search), Some(expected)) = (search, expected) else {
            return Ok(CliStatus::Failed);
        };
        let found = search.range();
        let text = expected.to_string();
        if self.json {
            print(&json_text(range, &text, found, &tries))?;
        } else if !output.quiet {
            print(&format!("\n{}", describe(range, &text, found)))?;
        } else if found.max_passed == 0 {
            print_failure(&describe(range, &text, found));
        }
        Ok(match found.max_passed {
            0 => CliStatus::Failed,
            _ => CliStatus::Done,
        })
    }
}

/// Whether the result depends on the speed of the machine.
fn is_timed(expectation: &Expectation) -> bool {
    match expectation.split_window().0 {
        Expectation::Counter { name, .. } => is_wall_time(name),
        plain => plain.tick_limit().is_some(),
    }
}

fn describe(range: &SweepRange, expected: &str, found: CrowdRange) -> String {
    let SweepRange { name, from, to } = range;
    let largest = match found.max_passed {
        0 => format!("{expected}: not even with {name} = {from}"),
        largest => format!(
            "{expected}: holds up to {name} = {largest}, tried {}",
            times_text(found.passed_tries)
        ),
    };
    match found.min_failed {
        Some(failed) if found.max_passed > 0 => format!(
            "{largest}\n{expected}: fails with {name} = {failed}, tried {}",
            times_text(found.failed_tries)
        ),
        None => format!("{largest}; {to} is the end of the range"),
        Some(_) => largest,
    }
}

fn json_text(range: &SweepRange, expected: &str, found: CrowdRange, tries: &[SweepTry]) -> String {
    let tries = tries.iter();
    let tries: Vec<Value> = tries
        .map(|one| json!({ "value": one.value, "passed": one.passed, "found": one.found }))
        .collect();
    json!({
        "parameter": range.name,
        "until": expected,
        "largest_passed": Some(found.max_passed).filter(|largest| *largest > 0),
        "smallest_failed": found.min_failed,
        "tries": tries,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_checked() {
        let range = |name: &str, from, to| {
            Ok(SweepRange {
                name: name.to_owned(),
                from,
                to,
            })
        };
        assert_eq!(
            sweep_range("npcs=1000..200000"),
            range("npcs", 1000, 200_000)
        );
        assert_eq!(sweep_range("n = 1_000 .. 2_000"), range("n", 1000, 2000));
        for bad in [
            "npcs",
            "npcs=5",
            "=1..2",
            "npcs=0..5",
            "npcs=5..1",
            "npcs=1..x",
        ] {
            assert!(sweep_range(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn results_are_described_with_both_ends() {
        let range = SweepRange {
            name: "npcs".to_owned(),
            from: 100,
            to: 900,
        };
        let found = |max_passed, min_failed| CrowdRange {
            max_passed,
            passed_tries: 3,
            min_failed,
            failed_tries: 1,
        };
        assert_eq!(
            describe(&range, "tick p99 under 50 ms", found(400, Some(420))),
            "tick p99 under 50 ms: holds up to npcs = 400, tried 3 times\n\
             tick p99 under 50 ms: fails with npcs = 420, tried once"
        );
        assert_eq!(
            describe(&range, "x", found(0, Some(100))),
            "x: not even with npcs = 100"
        );
        assert_eq!(
            describe(&range, "x", found(900, None)),
            "x: holds up to npcs = 900, tried 3 times; 900 is the end of the range"
        );
    }
}
