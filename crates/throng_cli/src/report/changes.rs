//! Changes between two runs or two benches, by their size.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::bench::BenchReport;
use crate::machine::Machine;
use crate::page::run::{PageRun, flatten};
use throng_scenario::is_wall_time;

/// Maximum depth of a figure in a report.
const DEPTH_MAX: usize = 5;

/// The comparison of two files of the same kind.
#[derive(Debug)]
pub(super) struct Comparison {
    /// The names of the files.
    pub names: [String; 2],
    /// A description of each, in one line.
    pub titles: [String; 2],
    /// Differences in the setup, and what is equal despite them; one sentence each.
    pub notes: Vec<String>,
    /// Expectations whose verdict changed; those that fail now come first.
    pub verdicts: Vec<VerdictChange>,
    pub groups: Vec<ChangeGroup>,
    /// For each run: its duration in seconds, and the median tick times over time, in milliseconds.
    pub tick_times: Vec<(f64, Vec<f64>)>,
}

/// An expectation whose verdict changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VerdictChange {
    /// The text of the expectation.
    pub expected: String,
    /// The verdicts; `None` if the run does not have the expectation.
    pub from: Option<String>,
    pub to: Option<String>,
}

impl VerdictChange {
    /// The change as text: "passed → failed".
    pub fn change(&self) -> String {
        let of = |verdict: &Option<String>| {
            let verdict = verdict.as_deref().unwrap_or("not expected");
            verdict.replace('_', " ")
        };
        format!("{} → {}", of(&self.from), of(&self.to))
    }

    /// `true` if it failed before and passes now, `false` if it passed before and fails now, `None` for other changes.
    pub fn is_better(&self) -> Option<bool> {
        let passed = |verdict: &Option<String>| verdict.as_deref() == Some("passed");
        match (passed(&self.from), passed(&self.to)) {
            (false, true) if self.from.is_some() => Some(true),
            (true, false) if self.to.is_some() => Some(false),
            _ => None,
        }
    }
}

/// The changes of a group of figures.
#[derive(Debug)]
pub(super) struct ChangeGroup {
    pub title: &'static str,
    /// The largest first.
    pub changes: Vec<FigureChange>,
    /// Number of figures that did not change.
    pub unchanged_count: usize,
    /// Names of figures that only one of the files has.
    pub only_in_one: [Vec<String>; 2],
}

/// A figure that changed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FigureChange {
    pub name: String,
    pub unit: String,
    pub from: f64,
    pub to: f64,
    /// Whether the change is an improvement; `None` if the figure is neither good nor bad.
    pub is_better: Option<bool>,
    /// Whether the change is within the range of the repeats.
    pub is_within_spread: bool,
}

/// A figure in one file.
struct FigureValue {
    value: f64,
    unit: String,
    more_is_better: Option<bool>,
    /// The width of the range of the repeats.
    width: f64,
}

impl FigureChange {
    /// The size of the change: the absolute logarithm of the ratio. A change from or to 0 is the largest.
    pub fn size(&self) -> f64 {
        let ratio = self.to / self.from;
        if ratio > 0.0 && ratio.is_finite() {
            ratio.ln().abs()
        } else {
            f64::INFINITY
        }
    }

    /// The ratio of B to A in a few characters: "×1.05", "×0.25", "×31".
    pub fn change(&self) -> String {
        let ratio = self.to / self.from;
        let digits = match ratio {
            _ if self.from == 0.0 => return "from 0".to_owned(),
            _ if self.to == 0.0 => return "to 0".to_owned(),
            _ if ratio < 0.0 || !ratio.is_finite() => return "other sign".to_owned(),
            // More digits, to distinguish the ratio from 1.
            _ if (ratio - 1.0).abs() < 0.0095 => 4,
            _ if ratio < 0.0095 => 4,
            _ if ratio < 0.0995 => 3,
            ..9.95 => 2,
            ..99.5 => 1,
            _ => 0,
        };
        format!("×{ratio:.digits$}")
    }
}

impl Comparison {
    /// Compares two runs.
    pub fn from_runs(names: [String; 2], runs: [&PageRun; 2]) -> Self {
        let titles = runs.map(|run| {
            format!(
                "{}, seed {}, {} ticks, {}",
                run.text("scenario"),
                run.report
                    .get("seed")
                    .map(Value::to_string)
                    .unwrap_or_default(),
                run.number("ticks"),
                crate::threads(run.number("threads") as usize)
            )
        });
        let groups = [
            ("counted", false),
            ("times and memory, which vary from run to run", true),
        ];
        Self {
            names,
            titles,
            notes: run_notes(runs),
            verdicts: verdict_changes(runs),
            groups: groups
                .map(|(title, wants_times)| {
                    let [a, b] = runs.map(|run| run_figures(run, wants_times));
                    ChangeGroup::between(title, a, b)
                })
                .into(),
            tick_times: runs
                .iter()
                .filter_map(|run| run.record.as_ref())
                .map(|record| {
                    (
                        record.ticks as f64 / record.tick_hz.max(1e-9),
                        record.tick_p50_ms.clone(),
                    )
                })
                .collect(),
        }
    }

    /// Compares two benches.
    pub fn from_benches(names: [String; 2], benches: [&BenchReport; 2]) -> Self {
        let titles = benches.map(|bench| {
            let machine = &bench.machine;
            format!(
                "throng {}, {}, {}",
                machine.throng,
                crate::threads(machine.threads),
                machine.date
            )
        });
        let of = |bench: &BenchReport| {
            let found = bench.rows.iter().map(|row| {
                let found = FigureValue {
                    value: row.value,
                    unit: row.unit.to_string(),
                    // Without repeats, a change cannot be told from noise.
                    more_is_better: row.spread.is_some().then_some(row.more_is_better),
                    width: row.spread.map_or(0.0, |spread| spread.max - spread.min),
                };
                (format!("{} {}", row.system, row.case), found)
            });
            found.collect::<BTreeMap<_, _>>()
        };
        let [a, b] = benches;
        Self {
            names,
            titles,
            notes: bench_notes(benches),
            verdicts: Vec::new(),
            groups: vec![ChangeGroup::between("measured", of(a), of(b))],
            tick_times: Vec::new(),
        }
    }
}

/// Differences in the setup of two runs, and whether their results are equal.
fn run_notes(runs: [&PageRun; 2]) -> Vec<String> {
    let [a, b] = runs;
    let mut notes = Vec::new();
    for what in ["scenario", "seed", "ticks"] {
        let [here, there] = runs.map(|run| value_text(&run.report[what]));
        if here != there {
            notes.push(format!("Different {what}: {here} → {there}."));
        }
    }
    let parameters = parameter_changes(runs);
    if !parameters.is_empty() {
        notes.push(format!("Different parameters: {}.", parameters.join(", ")));
    }
    notes.extend(machine_notes([a.machine.as_ref(), b.machine.as_ref()]));
    if a.number("threads") != b.number("threads") {
        notes.push(format!(
            "Different number of threads: {} → {}.",
            a.number("threads"),
            b.number("threads")
        ));
    }
    notes.push(if a.text("state_hash") == b.text("state_hash") {
        "The state hash is the same: the simulations are identical.".to_owned()
    } else {
        format!(
            "The state hashes differ: {} → {}.",
            a.text("state_hash"),
            b.text("state_hash")
        )
    });
    notes
}

/// Differences in the setup of two benches.
fn bench_notes([a, b]: [&BenchReport; 2]) -> Vec<String> {
    let mut notes = machine_notes([Some(&a.machine), Some(&b.machine)]);
    let (here, there) = (a.machine.threads, b.machine.threads);
    if here != there {
        notes.push(format!("Different number of threads: {here} → {there}."));
    }
    if a.is_quick != b.is_quick {
        let quick = if a.is_quick { "A" } else { "B" };
        notes.push(format!("Only {quick} was measured with --quick."));
    }
    for (letter, bench) in [("A", a), ("B", b)] {
        if bench.interrupted.is_some() {
            notes.push(format!("{letter} was stopped: rows may be missing."));
        }
        let busy = bench.busy_reasons.iter();
        notes.extend(busy.map(|reason| format!("The machine of {letter} was busy: {reason}.")));
    }
    notes
}

/// The figures of a run: either times and memory, or all others.
fn run_figures(run: &PageRun, wants_times: bool) -> BTreeMap<String, FigureValue> {
    let mut figures = Vec::new();
    flatten(&run.report, "", DEPTH_MAX, &mut figures);
    let wanted = figures.into_iter().filter(|(name, _)| {
        let is_asked_for = ["seed", "threads", "interrupted"].contains(&name.as_str());
        // The memory of the process varies from run to run, as times do.
        let hops = is_wall_time(name) || name.starts_with("memory.");
        !is_asked_for && hops == wants_times
    });
    let found = |(name, value): (String, String)| {
        let found = FigureValue {
            value: value.parse().unwrap_or(0.0),
            unit: String::new(),
            // A single run has no range, so no change counts as better or worse.
            more_is_better: None,
            width: 0.0,
        };
        (name, found)
    };
    wanted.map(found).collect()
}

/// A value of a report as text.
fn value_text(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => format!("`{text}`"),
        other => other.to_string(),
    }
}

/// Differences between the builds and machines.
fn machine_notes(machines: [Option<&Machine>; 2]) -> Vec<String> {
    let [Some(a), Some(b)] = machines else {
        return vec!["One of the files does not contain its machine and version.".to_owned()];
    };
    let of = |machine: &Machine| {
        let build = if machine.is_optimised {
            "optimised"
        } else {
            "not optimised"
        };
        [
            ("version of throng", machine.throng.clone()),
            ("processor", machine.cpu.clone()),
            ("system", machine.os.clone()),
            ("number of cores", machine.cores.to_string()),
            ("build", build.to_owned()),
        ]
    };
    let pairs = of(a).into_iter().zip(of(b));
    let differ = pairs.filter(|(here, there)| here.1 != there.1);
    differ
        .map(|((what, here), (_, there))| format!("Different {what}: {here} → {there}."))
        .collect()
}

/// Parameters whose value changed, each as "besiegers 400 → 800".
fn parameter_changes(runs: [&PageRun; 2]) -> Vec<String> {
    let [before, now] = runs.map(|run| {
        let all = run.report["parameters"].as_object().into_iter().flatten();
        all.map(|(name, value)| {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            (name.as_str(), value)
        })
        .collect::<BTreeMap<_, _>>()
    });
    let names: BTreeSet<&str> = before.keys().chain(now.keys()).copied().collect();
    let changed = names.into_iter().filter_map(|name| {
        let [from, to] = [&before, &now].map(|all| all.get(name).map_or("none", String::as_str));
        (from != to).then(|| format!("{name} {from} → {to}"))
    });
    changed.collect()
}

/// Expectations whose verdict changed: first those that fail now, then those that pass now, then the others.
fn verdict_changes(runs: [&PageRun; 2]) -> Vec<VerdictChange> {
    let [before, now] = runs.map(|run| {
        let all = run.report["expectations"].as_array().into_iter().flatten();
        let word =
            |result: &Value, name: &str| result[name].as_str().unwrap_or_default().to_owned();
        all.map(|result| (word(result, "text"), word(result, "verdict")))
            .collect::<BTreeMap<_, _>>()
    });
    let all: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let changed = all.into_iter().filter_map(|expected| {
        let [from, to] = [&before, &now].map(|verdicts| verdicts.get(expected).cloned());
        (from != to).then(|| VerdictChange {
            expected: expected.clone(),
            from,
            to,
        })
    });
    let mut changed: Vec<VerdictChange> = changed.collect();
    changed.sort_by_key(|change| match change.is_better() {
        Some(false) => 0,
        Some(true) => 1,
        None => 2,
    });
    changed
}

impl ChangeGroup {
    fn between(
        title: &'static str,
        before: BTreeMap<String, FigureValue>,
        mut now: BTreeMap<String, FigureValue>,
    ) -> Self {
        let (mut moves, mut still, mut only_before) = (Vec::new(), 0, Vec::new());
        for (name, was) in before {
            // A figure with another unit is another figure, so both are listed.
            let is = now
                .get(&name)
                .is_some_and(|is| is.unit == was.unit)
                .then(|| now.remove(&name))
                .flatten();
            let Some(is) = is else {
                only_before.push(name);
                continue;
            };
            if is.value == was.value {
                still += 1;
                continue;
            }
            let went_up = is.value > was.value;
            moves.push(FigureChange {
                name,
                unit: is.unit,
                from: was.value,
                to: is.value,
                is_better: is.more_is_better.map(|more| more == went_up),
                is_within_spread: (is.value - was.value).abs() <= is.width.max(was.width),
            });
        }
        // A stable sort: changes of equal size stay sorted by name.
        moves.sort_by(|a, b| b.size().total_cmp(&a.size()));
        Self {
            title,
            changes: moves,
            unchanged_count: still,
            only_in_one: [only_before, now.into_keys().collect()],
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(change: impl FnOnce(&mut Value)) -> PageRun {
        let mut report = json!({
            "scenario": "town", "seed": 3, "threads": 2, "ticks": 100, "state_hash": "00ff",
            "tick_ms": {"mean": 2.0, "p99": 4.0}, "systems": {"view": {"p99_ms": 1.0}},
            "views": {"links": 100, "evictions": 0}, "paths": {"found": 50},
            "expectations": [{"text": "views within cap", "verdict": "passed"}],
        });
        change(&mut report);
        PageRun::from_json(report).unwrap()
    }

    fn names() -> [String; 2] {
        ["a.json", "b.json"].map(str::to_owned)
    }

    #[test]
    fn changes_are_sorted_by_size_and_times_are_separate() {
        let (a, b) = (
            run(|_| {}),
            run(|report| {
                report["views"] = json!({"links": 110, "evictions": 7});
                report["paths"]["found"] = json!(20);
                report["tick_ms"]["p99"] = json!(3.0);
                report["state_hash"] = json!("0100");
                report["expectations"][0]["verdict"] = json!("not_exercised");
                report["scenario"] = json!("siege");
            }),
        );
        let both = Comparison::from_runs(names(), [&a, &b]);
        let of = |nth: usize| -> Vec<(&str, String)> {
            let moves = both.groups[nth].changes.iter();
            moves.map(|one| (one.name.as_str(), one.change())).collect()
        };
        let expected = [
            ("views.evictions", "from 0"),
            ("paths.found", "×0.40"),
            ("views.links", "×1.10"),
        ];
        assert_eq!(
            of(0),
            expected.map(|(name, change)| (name, change.to_owned()))
        );
        assert_eq!(of(1), [("tick_ms.p99", "×0.75".to_owned())]);
        assert_eq!(both.groups[1].changes[0].is_better, None);
        assert_eq!(
            (
                both.groups[0].unchanged_count,
                both.groups[1].unchanged_count
            ),
            (1, 2)
        );
        let notes = both.notes.join("\n");
        for expected in [
            "Different scenario: `town` → `siege`.",
            "hashes differ: 00ff → 0100.",
        ] {
            assert!(notes.contains(expected), "{notes}");
        }
        assert_eq!(both.verdicts.len(), 1);
        assert_eq!(both.verdicts[0].change(), "passed → not exercised");
    }

    #[test]
    fn changed_parameters_and_expectations_are_named() {
        let judged = |verdicts: [&str; 3]| {
            let texts = ["a holds", "b holds", "c holds"];
            let all = texts.iter().zip(verdicts);
            let all = all.filter(|(_, verdict)| !verdict.is_empty());
            let all = all.map(|(text, verdict)| json!({"text": text, "verdict": verdict}));
            all.collect::<Vec<Value>>()
        };
        let (a, b) = (
            run(|report| {
                report["parameters"] = json!({"besiegers": "400", "gate": "0", "same": "1"});
                report["expectations"] = judged(["failed", "passed", ""]).into();
            }),
            run(|report| {
                report["parameters"] = json!({"besiegers": "800", "same": "1", "walls": "2"});
                report["expectations"] = judged(["passed", "failed", "passed"]).into();
            }),
        );
        let both = Comparison::from_runs(names(), [&a, &b]);
        let expected = "Different parameters: besiegers 400 → 800, gate 0 → none, walls none → 2.";
        assert!(
            both.notes.iter().any(|note| note == expected),
            "{:?}",
            both.notes
        );
        let shown: Vec<_> = both
            .verdicts
            .iter()
            .map(|change| {
                (
                    change.expected.as_str(),
                    change.change(),
                    change.is_better(),
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("b holds", "passed → failed".to_owned(), Some(false)),
                ("a holds", "failed → passed".to_owned(), Some(true)),
                ("c holds", "not expected → passed".to_owned(), None),
            ]
        );
    }

    #[test]
    fn same_run_twice_has_no_changes() {
        let a = run(|_| {});
        let both = Comparison::from_runs(names(), [&a, &a.clone()]);
        assert!(both.groups.iter().all(|group| group.changes.is_empty()));
        assert!(
            both.notes
                .iter()
                .any(|note| note.contains("hash is the same")),
            "{:?}",
            both.notes
        );
    }

    #[test]
    fn change_size_is_symmetric_and_shown_in_its_unit() {
        let one = |from, to| FigureChange {
            name: String::new(),
            unit: String::new(),
            from,
            to,
            is_better: None,
            is_within_spread: false,
        };
        assert_eq!(one(1.0, 4.0).size(), one(4.0, 1.0).size());
        let shown = [
            one(1.0, 4.0),
            one(4.0, 1.0),
            one(1.0, 1.05),
            one(2.0, 0.0),
            one(-1.0, 1.0),
        ]
        .map(|one| one.change());
        assert_eq!(shown, ["×4.00", "×0.25", "×1.05", "to 0", "other sign"]);
        let small = [
            one(1_000.0, 1_001.0),
            one(1_000.0, 1.0),
            one(22.0, 1.0),
            one(1.0, 31.4),
            one(1.0, 1e6),
        ];
        assert_eq!(
            small.map(|one| one.change()),
            ["×1.0010", "×0.0010", "×0.045", "×31.4", "×1000000"]
        );
    }

    #[test]
    fn change_within_the_wider_spread_of_both_is_marked() {
        let figures = |value, width| {
            let found = FigureValue {
                value,
                unit: "ms".to_owned(),
                more_is_better: Some(false),
                width,
            };
            BTreeMap::from([("tick".to_owned(), found)])
        };
        let within = |widths: [f64; 2]| {
            let [before, now] = widths;
            let group = ChangeGroup::between("measured", figures(10.0, before), figures(13.0, now));
            assert_eq!(group.changes[0].is_better, Some(false));
            group.changes[0].is_within_spread
        };
        assert_eq!([[3.0, 0.0], [0.0, 3.0]].map(within), [true; 2]);
        assert_eq!([[2.9, 0.0], [1.6, 2.9]].map(within), [false; 2]);
    }
}
