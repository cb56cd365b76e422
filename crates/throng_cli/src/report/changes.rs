//! Changes between two runs or two benches, and their sizes.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::bench::BenchReport;
use crate::machine::Machine;
use crate::page::run::{PageRun, flatten};
use throng_scenario::is_wall_time;

/// How deep figures lie in a report.
const DEPTH_MAX: usize = 5;

/// Two files of the same kind.
#[derive(Debug)]
pub(super) struct Comparison {
    /// Of the files.
    pub names: [String; 2],
    /// What each is, in a line.
    pub titles: [String; 2],
    /// What keeps them from being compared as they are, and what is the same all the same; a sentence each.
    pub notes: Vec<String>,
    pub groups: Vec<ChangeGroup>,
    /// The medians of the ticks over time, milliseconds, with the seconds that they last.
    pub tick_times: Vec<(f64, Vec<f64>)>,
}

/// Figures that belong together.
#[derive(Debug)]
pub(super) struct ChangeGroup {
    pub title: &'static str,
    /// The largest first.
    pub changes: Vec<FigureChange>,
    /// How many did not move.
    pub unchanged_count: usize,
    /// Names that only one of the two has.
    pub only_in_one: [Vec<String>; 2],
}

/// A figure that moved.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FigureChange {
    pub name: String,
    pub unit: String,
    pub from: f64,
    pub to: f64,
    /// Whether it is better now; `None` for what is neither good nor bad.
    pub is_better: Option<bool>,
    /// Whether it moved by no more than repeats lie apart.
    pub is_within_spread: bool,
}

/// A figure, as it is found in one file.
struct FigureValue {
    value: f64,
    unit: String,
    more_is_better: Option<bool>,
    /// How far repeats lie apart.
    width: f64,
}

impl FigureChange {
    /// How large it is: the logarithm of the ratio, whichever way it went. From nothing, or to nothing, there is no larger one.
    pub fn size(&self) -> f64 {
        let ratio = self.to / self.from;
        if ratio > 0.0 && ratio.is_finite() {
            ratio.ln().abs()
        } else {
            f64::INFINITY
        }
    }

    /// By how much it went up or down, in a few characters.
    pub fn change(&self) -> String {
        let ratio = self.to / self.from;
        let percent = (ratio - 1.0) * 100.0;
        match ratio {
            _ if self.from == 0.0 => "from 0".to_owned(),
            _ if self.to == 0.0 => "to 0".to_owned(),
            _ if ratio < 0.0 || !ratio.is_finite() => "other sign".to_owned(),
            2.0.. => format!("{ratio:.1} times"),
            _ if percent.abs() < 9.95 => format!("{percent:+.1} %"),
            _ => format!("{percent:+.0} %"),
        }
    }
}

impl Comparison {
    /// Two runs.
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
            ("times and memory, which no two runs have the same", true),
        ];
        Self {
            names,
            titles,
            notes: run_notes(runs),
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

    /// Two benches.
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
                    // Without a spread nothing tells a move from chance.
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
            groups: vec![ChangeGroup::between("measured", of(a), of(b))],
            tick_times: Vec::new(),
        }
    }
}

/// What keeps two runs from being compared as they are, and whether they are the same.
fn run_notes(runs: [&PageRun; 2]) -> Vec<String> {
    let [a, b] = runs;
    let mut notes = Vec::new();
    for what in ["scenario", "seed", "ticks", "parameters"] {
        let [here, there] = runs.map(|run| value_text(&run.report[what]));
        if here != there {
            notes.push(format!("Not the same {what}: {here} in A, {there} in B."));
        }
    }
    notes.extend(machine_notes([a.machine.as_ref(), b.machine.as_ref()]));
    if a.number("threads") != b.number("threads") {
        notes.push(format!(
            "A ran on {} threads, B on {}.",
            a.number("threads"),
            b.number("threads")
        ));
    }
    notes.push(if a.text("state_hash") == b.text("state_hash") {
        "The state hash is the same: what was simulated is, too.".to_owned()
    } else {
        format!(
            "The state hashes differ: {} in A, {} in B.",
            a.text("state_hash"),
            b.text("state_hash")
        )
    });
    notes.extend(verdicts(a, b));
    notes
}

/// What keeps two benches from being compared as they are.
fn bench_notes([a, b]: [&BenchReport; 2]) -> Vec<String> {
    let mut notes = machine_notes([Some(&a.machine), Some(&b.machine)]);
    let (here, there) = (a.machine.threads, b.machine.threads);
    if here != there {
        notes.push(format!("A ran on {here} threads, B on {there}."));
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

/// The figures of a run: those of time, or the others.
fn run_figures(run: &PageRun, wants_times: bool) -> BTreeMap<String, FigureValue> {
    let mut figures = Vec::new();
    flatten(&run.report, "", DEPTH_MAX, &mut figures);
    let wanted = figures.into_iter().filter(|(name, _)| {
        let is_asked_for = ["seed", "threads", "interrupted"].contains(&name.as_str());
        // What the process takes of memory hops like times do.
        let hops = is_wall_time(name) || name.starts_with("memory.");
        !is_asked_for && hops == wants_times
    });
    let found = |(name, value): (String, String)| {
        let found = FigureValue {
            value: value.parse().unwrap_or(0.0),
            unit: String::new(),
            // One run has no spread, so no move of it is a gain or a loss.
            more_is_better: None,
            width: 0.0,
        };
        (name, found)
    };
    wanted.map(found).collect()
}

/// A value of a report in words.
fn value_text(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => format!("`{text}`"),
        other => other.to_string(),
    }
}

/// What is not the same of builds and machines.
fn machine_notes(machines: [Option<&Machine>; 2]) -> Vec<String> {
    let [Some(a), Some(b)] = machines else {
        return vec![
            "One of the two does not say on which machine and by which version it was made."
                .to_owned(),
        ];
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
        .map(|((what, here), (_, there))| {
            format!("Not the same {what}: {here} in A, {there} in B.")
        })
        .collect()
}

/// Expectations whose verdict is another now.
fn verdicts(a: &PageRun, b: &PageRun) -> Vec<String> {
    let of = |run: &PageRun| {
        let all = run.report["expectations"].as_array().into_iter().flatten();
        let word =
            |result: &Value, name: &str| result[name].as_str().unwrap_or_default().to_owned();
        all.map(|result| (word(result, "text"), word(result, "verdict")))
            .collect::<BTreeMap<_, _>>()
    };
    let (before, now) = (of(a), of(b));
    now.iter()
        .filter_map(|(text, verdict)| {
            let was = before.get(text).filter(|was| *was != verdict)?;
            let in_words = |verdict: &str| verdict.replace('_', " ");
            Some(format!(
                "`{text}`: {} in A, {} in B.",
                in_words(was),
                in_words(verdict)
            ))
        })
        .collect()
}

impl ChangeGroup {
    fn between(
        title: &'static str,
        before: BTreeMap<String, FigureValue>,
        mut now: BTreeMap<String, FigureValue>,
    ) -> Self {
        let (mut moves, mut still, mut only_before) = (Vec::new(), 0, Vec::new());
        for (name, was) in before {
            // In another unit it is another figure, which both lists have.
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
        // By name where they are as large.
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
            ("paths.found", "-60 %"),
            ("views.links", "+10 %"),
        ];
        assert_eq!(
            of(0),
            expected.map(|(name, change)| (name, change.to_owned()))
        );
        assert_eq!(of(1), [("tick_ms.p99", "-25 %".to_owned())]);
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
            "Not the same scenario: `town` in A, `siege` in B",
            "hashes differ",
            "passed in A, not exercised in B",
        ] {
            assert!(notes.contains(expected), "{notes}");
        }
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
        let told = [
            one(1.0, 4.0),
            one(4.0, 1.0),
            one(1.0, 1.05),
            one(2.0, 0.0),
            one(-1.0, 1.0),
        ]
        .map(|one| one.change());
        assert_eq!(told, ["4.0 times", "-75 %", "+5.0 %", "to 0", "other sign"]);
    }
}
