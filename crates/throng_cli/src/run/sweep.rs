//! `throng run --sweep NAME=FROM..TO --until EXPECTATION`: the largest value of a parameter with which an expectation holds.
//!
//! ```text
//! a value ─▶ the whole run ─▶ the expectation holds? ─▶ [`CrowdSearch`]: the next value ─▶ … ─▶ the largest that passed
//! ```
//! An expectation on wall time is tried several times at both ends of the result, because times vary from run to run. Other expectations
//! have the same result in every run, and are tried once. There are at most [`RUNS_MAX`] runs.

use serde_json::{Value, json};

use super::Run;
use crate::bench::{CrowdSearch, TRIES, Tries};
use crate::{
    CliError, CliStatus, Output, interrupted_status, is_interrupted, listen_for_interrupt, print,
    print_failure,
};
use throng_scenario::{Expectation, TimingChecks, Verdict, is_wall_time};

/// The maximum number of runs of a search. Without noise it takes about 17.
const RUNS_MAX: u32 = 24;

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
            if search.is_none() && is_timed(&expectation) && !output.quiet && !self.json {
                print(&format!(
                    "up to {RUNS_MAX} runs; times differ from run to run, so both ends are run {TRIES} times"
                ))?;
            }
            let search = search.get_or_insert_with(|| {
                new_search(range, if is_timed(&expectation) { TRIES } else { 1 })
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
                let before = tries.iter().filter(|one| one.value == value).count();
                let again = match before {
                    0 => String::new(),
                    _ => format!(" (run {} with this value)", before + 1),
                };
                print(&format!(
                    "{name} = {value}: {verdict}, {}{again}",
                    result.found
                ))?;
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
            print(&json_text(range, &text, &search, &tries))?;
        } else if !output.quiet {
            print(&format!("\n{}", describe(range, &text, &search)))?;
        } else if found.max_passed == 0 {
            print_failure(&describe(range, &text, &search));
        }
        Ok(match found.max_passed {
            0 => CliStatus::Failed,
            _ => CliStatus::Done,
        })
    }
}

/// A search of the values of a range.
fn new_search(range: &SweepRange, tries_each: u32) -> CrowdSearch {
    let search = CrowdSearch::new(range.from, range.to, tries_each);
    search.not_below(range.from).at_most(RUNS_MAX)
}

/// Whether the result depends on the speed of the machine.
fn is_timed(expectation: &Expectation) -> bool {
    match expectation.split_window().0 {
        Expectation::Counter { name, .. } => is_wall_time(name),
        plain => plain.tick_limit().is_some(),
    }
}

/// The result as a table: both ends, what lies between them, and how often each was run.
fn describe(range: &SweepRange, expected: &str, search: &CrowdSearch) -> String {
    let SweepRange { name, from, to } = range;
    let found = search.range();
    let runs = |value: u32| {
        let tries = search.tried().find(|(tried, _)| *tried == value);
        let Tries { passed, failed } = tries.map_or_else(Tries::default, |(_, tries)| tries);
        let count = passed + failed;
        format!("{name} = {value} ({passed} of {})", runs_text(count))
    };
    let mut lines = vec![format!("{expected}, {name} from {from} to {to}:")];
    let mut add = |label: &str, text: &str| lines.push(format!("{label:<28}{text}"));
    if found.max_passed == 0 {
        add(
            "held in every run",
            &format!("not even with {}", runs(*from)),
        );
    } else {
        let end = if found.max_passed == *to {
            ", the end of the range"
        } else {
            ""
        };
        add(
            "held in every run up to",
            &format!("{}{end}", runs(found.max_passed)),
        );
    }
    let failed = found.min_failed.filter(|failed| *failed > *from);
    if let Some(failed) = failed {
        add("failed in every run from", &runs(failed));
    }
    let above = failed.unwrap_or(u32::MAX);
    let between = search.tried().map(|(value, _)| value);
    let between = between.filter(|value| *value > found.max_passed.max(*from) && *value < above);
    let between: Vec<String> = between.map(runs).collect();
    if !between.is_empty() {
        add("held in some runs", &between.join(", "));
    }
    lines.push(format!(
        "{}; {}",
        runs_text(search.tries()),
        search_end(search)
    ));
    lines.join("\n")
}

/// Why values were run so often.
fn search_end(search: &CrowdSearch) -> String {
    if search.is_cut_off() {
        return "stopped at the limit of runs: results differ too much from run to run".to_owned();
    }
    match search.tries_each() {
        1 => "the result is the same in every run, so each value was run once".to_owned(),
        tries => format!("times differ from run to run, so both ends were run {tries} times"),
    }
}

fn runs_text(count: u32) -> String {
    if count == 1 {
        "1 run".to_owned()
    } else {
        format!("{count} runs")
    }
}

fn json_text(
    range: &SweepRange,
    expected: &str,
    search: &CrowdSearch,
    tries: &[SweepTry],
) -> String {
    let found = search.range();
    let tries = tries.iter();
    let tries: Vec<Value> = tries
        .map(|one| json!({ "value": one.value, "passed": one.passed, "found": one.found }))
        .collect();
    json!({
        "parameter": range.name,
        "until": expected,
        "largest_passed": Some(found.max_passed).filter(|largest| *largest > 0),
        "largest_passed_runs": found.passed_tries,
        "smallest_failed": found.min_failed,
        "smallest_failed_runs": found.failed_tries,
        "is_cut_off": search.is_cut_off(),
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

    /// The description after a search in which `holds(value, nth)` is the result of the nth run with a value.
    fn description(
        (from, to): (u32, u32),
        (tries_each, runs_max): (u32, u32),
        holds: impl Fn(u32, u32) -> bool,
    ) -> String {
        let range = SweepRange {
            name: "npcs".to_owned(),
            from,
            to,
        };
        let mut search = new_search(&range, tries_each).at_most(runs_max);
        while let Some(value) = search.next() {
            let tries = search.tried().find(|(tried, _)| *tried == value);
            let nth = tries.map_or(0, |(_, tries)| tries.count());
            search.record(value, holds(value, nth));
        }
        describe(&range, "x", &search)
    }

    #[test]
    fn result_states_both_ends_and_their_runs() {
        assert_eq!(
            description((100, 900), (3, RUNS_MAX), |npcs, _| npcs <= 400),
            "x, npcs from 100 to 900:\n\
             held in every run up to     npcs = 400 (3 of 3 runs)\n\
             failed in every run from    npcs = 412 (0 of 3 runs)\n\
             13 runs; times differ from run to run, so both ends were run 3 times"
        );
        assert_eq!(
            description((100, 900), (1, RUNS_MAX), |npcs, _| npcs < 900),
            "x, npcs from 100 to 900:\n\
             held in every run up to     npcs = 875 (1 of 1 run)\n\
             failed in every run from    npcs = 900 (0 of 1 run)\n\
             7 runs; the result is the same in every run, so each value was run once"
        );
    }

    #[test]
    fn result_without_a_limit_or_without_success_is_stated() {
        assert_eq!(
            description((100, 900), (1, RUNS_MAX), |_, _| true),
            "x, npcs from 100 to 900:\n\
             held in every run up to     npcs = 900 (1 of 1 run), the end of the range\n\
             5 runs; the result is the same in every run, so each value was run once"
        );
        assert_eq!(
            description((100, 900), (3, RUNS_MAX), |_, _| false),
            "x, npcs from 100 to 900:\n\
             held in every run           not even with npcs = 100 (0 of 3 runs)\n\
             3 runs; times differ from run to run, so both ends were run 3 times"
        );
    }

    #[test]
    fn values_with_both_results_lie_between_the_ends() {
        // From 400 to 500 every second run holds.
        let text = description((100, 900), (3, RUNS_MAX), |npcs, nth| {
            npcs < 400 || npcs < 500 && nth % 2 == 0
        });
        let between = text
            .lines()
            .find(|line| line.starts_with("held in some runs"));
        assert!(
            between.is_some_and(|line| line.contains(" of 2 runs)")),
            "{text}"
        );
        let few = description((100, 900), (3, 4), |npcs, _| npcs <= 400);
        assert!(few.contains("4 runs; stopped at the limit"), "{few}");
    }
}
