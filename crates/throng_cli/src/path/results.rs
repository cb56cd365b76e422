//! Results: the right and the wrong ones, as a table and as JSON.

use std::io::Write as _;
use std::path::Path;

use glam::IVec2;
use serde_json::{Value, json};

use super::measure::{MeasuredAnswers, PlanStep, QueryPlan, TimedAnswer};
use crate::bench::number;
use crate::color::failure_text;
use crate::escape::escaped;
use crate::map::{letter_lines, letters_json};
use throng::map::TileLetter;
use throng::nav::SearchOutcome;

/// The answers of all algorithms to a plan.
pub(super) struct PathResults<'a> {
    pub plan: &'a QueryPlan,
    pub all: &'a [MeasuredAnswers],
    /// The tiles of the map's file by letter.
    pub letters: Vec<TileLetter>,
    /// The map's file, if there is one.
    pub map: Option<&'a Path>,
    /// Whether the plan is one query from the command line, whose path is shown.
    pub is_single: bool,
}

/// Wrong answers of an algorithm that the table lists.
const WRONG_SHOWN: usize = 10;

impl PathResults<'_> {
    /// Whether any answer differs from the reference.
    pub(super) fn has_wrong(&self) -> bool {
        let mut all = self.all.iter();
        all.any(|one| wrong(self.plan, one).next().is_some())
    }

    /// Whether every algorithm has answered at least one query, be it that there is no path.
    pub(super) fn has_answers(&self) -> bool {
        let answered = |one: &MeasuredAnswers| Sums::new(self.plan, one).answers() > 0;
        self.all.iter().all(answered)
    }

    /// One object, as scripts read it.
    pub(super) fn json(&self) -> Value {
        let algorithms: Vec<Value> = self.all.iter().map(|one| self.figures(one)).collect();
        json!({
            "map": self.map.map(|map| map.display().to_string()),
            "width": self.plan.map.width(),
            "height": self.plan.map.height(),
            "letters": letters_json(&self.letters),
            "queries": self.plan.tasks.len(),
            "algorithms": algorithms,
        })
    }

    fn figures(&self, one: &MeasuredAnswers) -> Value {
        let wrong: Vec<Value> = wrong(self.plan, one)
            .map(|(index, expected, found)| {
                json!({ "index": index, "expected": expected, "found": found })
            })
            .collect();
        let sums = Sums::new(self.plan, one);
        let mut figures = json!({
            "algorithm": one.algorithm.name(),
            "answered": sums.answered,
            "unreachable": sums.unreachable,
            "capped": sums.capped,
            "optimal": sums.optimal,
            "wrong": wrong,
            "us": { "mean": sums.us[0], "p50": sums.us[1], "p99": sums.us[2], "max": sums.us[3] },
            "expanded_mean": sums.expanded_mean,
            "generated_mean": sums.generated_mean,
            "prepare_ms": one.prepare_ms,
            "prepared_bytes": one.prepared_bytes(),
            "scratch_bytes": one.scratch_bytes,
        });
        if let Some((answer, waypoints)) = self.path(one) {
            let waypoints: Vec<[i32; 2]> = waypoints.iter().map(|tile| tile.to_array()).collect();
            figures["result"] = result(answer.outcome).into();
            figures["length"] = json!(answer.length_tiles().flatten());
            figures["waypoints"] = json!(waypoints);
        }
        figures
    }

    /// For a person, in 80 columns.
    pub(super) fn table(&self) -> String {
        let Self { plan, all, .. } = self;
        let map = self.map.map_or_else(
            || "free ground".to_owned(),
            |map| escaped(&map.to_string_lossy()),
        );
        let edits = plan.steps.iter();
        let edits = edits
            .filter(|step| matches!(step, PlanStep::Edit { .. }))
            .count();
        let mut lines = vec![
            format!("map       {map}"),
            format!(
                "size      {} × {} tiles",
                plan.map.width(),
                plan.map.height()
            ),
        ];
        let sides = letter_lines(&self.letters).into_iter();
        lines.extend(sides.map(|(side, list)| format!("  {side:<8}{list}")));
        lines.extend([
            format!("queries   {}, edits between them {edits}", plan.tasks.len()),
            String::new(),
            format!(
                "{:<18}{:>9}{:>9}{:>9}{:>9}{:>9}{:>10}{:>7}",
                "algorithm", "mean us", "p50", "p99", "max", "expanded", "generated", "wrong"
            ),
        ]);
        for one in *all {
            let sums = Sums::new(plan, one);
            let [mean, p50, p99, max] = sums.us.map(number);
            lines.push(format!(
                "{:<18}{mean:>9}{p50:>9}{p99:>9}{max:>9}{:>9}{:>10}{:>7}",
                one.algorithm.name(),
                number(sums.expanded_mean),
                number(sums.generated_mean),
                wrong(plan, one).count(),
            ));
        }
        for one in *all {
            let name = one.algorithm.name();
            let sums = Sums::new(plan, one);
            lines.push(format!(
                "{name}: {} path{}, {} unreachable, {} capped",
                sums.answered,
                if sums.answered == 1 { "" } else { "s" },
                sums.unreachable,
                sums.capped
            ));
            if one.prepared_bytes() > 0 {
                lines.push(format!(
                    "{name}: prepared in {:.1} ms, {} bytes",
                    one.prepare_ms,
                    one.prepared_bytes()
                ));
            }
            let broken = self.failure_lines(one);
            lines.extend(broken.iter().map(|line| failure_text(line)));
            if let Some((answer, waypoints)) = self.path(one) {
                let length = length_text(answer.length_tiles().flatten());
                lines.push(format!("{name}: {}, {length}", result(answer.outcome)));
                for some in waypoints.chunks(5) {
                    let tiles = some.iter().map(|tile| format!(" ({}, {})", tile.x, tile.y));
                    lines.push(format!(" {}", tiles.collect::<String>()));
                }
            }
        }
        lines.join("\n")
    }

    /// Says what is wrong on stderr, and nothing else.
    pub(super) fn print_failures(&self) {
        for line in self.all.iter().flat_map(|one| self.failure_lines(one)) {
            // A closed stderr leaves no way to report.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }

    /// What is wrong with the answers of an algorithm, in a few lines.
    fn failure_lines(&self, one: &MeasuredAnswers) -> Vec<String> {
        let name = one.algorithm.name();
        let mut lines = Vec::new();
        if Sums::new(self.plan, one).answers() == 0 {
            lines.push(format!(
                "{name}: no query was answered, so nothing is known to be optimal"
            ));
        }
        for (index, expected, found) in wrong(self.plan, one).take(WRONG_SHOWN) {
            lines.push(format!(
                "{name}: query {index}: expected {}, found {}",
                length_text(expected),
                length_text(found)
            ));
        }
        lines
    }

    /// The answer to a single query, and the turning points of its path.
    fn path(&self, one: &MeasuredAnswers) -> Option<(TimedAnswer, Vec<IVec2>)> {
        let task = self.plan.tasks.first().filter(|_| self.is_single)?;
        let answer = (*one.answers.first()?)?;
        Some((answer, one.run_again(task.query).waypoints))
    }
}

/// The answers that differ from the reference: the query's place in the file, the length there, the length found.
fn wrong(
    plan: &QueryPlan,
    one: &MeasuredAnswers,
) -> impl Iterator<Item = (usize, Option<f64>, Option<f64>)> {
    plan.tasks
        .iter()
        .zip(&one.answers)
        .filter_map(|(task, answer)| {
            let (found, expected) = ((*answer)?.length_tiles()?, task.expected?);
            let differs = !expected.agrees_with(found);
            differs.then_some((task.index, expected.length_tiles, found))
        })
}

/// What the answers of one algorithm come to.
struct Sums {
    answered: usize,
    unreachable: usize,
    capped: usize,
    optimal: usize,
    /// Mean, median, 99th percentile, maximum.
    us: [f64; 4],
    expanded_mean: f64,
    generated_mean: f64,
}

impl Sums {
    /// Queries for which it is known whether there is a path.
    const fn answers(&self) -> usize {
        self.answered + self.unreachable
    }

    fn new(plan: &QueryPlan, one: &MeasuredAnswers) -> Self {
        let answers: Vec<TimedAnswer> = one.answers.iter().flatten().copied().collect();
        let count =
            |is: fn(&TimedAnswer) -> bool| answers.iter().filter(|answer| is(answer)).count();
        let mean = |value: fn(&TimedAnswer) -> f64| {
            answers.iter().map(value).sum::<f64>() / answers.len().max(1) as f64
        };
        let mut us: Vec<f64> = answers.iter().map(|answer| answer.us).collect();
        us.sort_by(f64::total_cmp);
        let percentile = |percent: usize| {
            let place = us.len().saturating_sub(1) * percent / 100;
            us.get(place).copied().unwrap_or_default()
        };
        let capped = count(|answer| answer.length_tiles().is_none());
        let judged = plan
            .tasks
            .iter()
            .zip(&one.answers)
            .filter(|(task, answer)| {
                let found = answer.and_then(|answer| answer.length_tiles());
                found.is_some() && task.expected.is_some()
            });
        Self {
            answered: count(|answer| matches!(answer.outcome, SearchOutcome::Found(_))),
            unreachable: count(|answer| answer.length_tiles() == Some(None)),
            capped,
            optimal: judged.count() - wrong(plan, one).count(),
            us: [
                mean(|answer| answer.us),
                percentile(50),
                percentile(99),
                percentile(100),
            ],
            expanded_mean: mean(|answer| f64::from(answer.expanded)),
            generated_mean: mean(|answer| f64::from(answer.generated)),
        }
    }
}

/// An outcome as events name it.
fn result(outcome: SearchOutcome) -> &'static str {
    match outcome {
        SearchOutcome::Found(_) => "found",
        SearchOutcome::Unreachable => "unreachable",
        SearchOutcome::Blocked => "blocked",
        SearchOutcome::OutOfBounds => "out_of_bounds",
        SearchOutcome::Capped => "capped",
    }
}

fn length_text(length: Option<f64>) -> String {
    length.map_or_else(
        || "no path".to_owned(),
        |length| format!("{length:.5} tiles"),
    )
}
