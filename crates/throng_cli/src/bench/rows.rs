//! The rows of a bench.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};

/// One piece of work, compared with a reference if there is one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct BenchRow {
    /// The system's name on the command line.
    #[serde(deserialize_with = "current_system")]
    pub system: Cow<'static, str>,
    /// The work and its size; unique within a system.
    pub case: String,
    /// A sentence that explains the figure and its comparison.
    #[serde(alias = "about")]
    pub description: String,
    /// The value, in `unit`: the median if the work was repeated.
    pub value: f64,
    pub unit: Cow<'static, str>,
    /// Whether a larger value is better, as for bytes per second.
    pub more_is_better: bool,
    /// The range of the repetitions; `None` for values that must always be the same.
    pub spread: Option<RepeatSpread>,
    /// The name of the reference.
    pub reference: Option<Cow<'static, str>>,
    /// The reference's value, in `unit`.
    pub reference_value: Option<f64>,
    pub reference_spread: Option<RepeatSpread>,
    /// The ratio to the reference: above 1, throng is better.
    pub ratio: Option<f64>,
    /// What was compared with the reference's results.
    pub compared: Option<String>,
    /// Whether the results agree; if not, the figures are meaningless.
    #[serde(alias = "agrees")]
    pub results_agree: Option<bool>,
    /// The target; `None` if targets are not checked.
    pub target: Option<String>,
    #[serde(alias = "meets")]
    pub meets_target: Option<bool>,
    /// The value of the same row in the baseline.
    pub baseline_value: Option<f64>,
    /// The range of the baseline's repetitions.
    pub baseline_spread: Option<RepeatSpread>,
    /// The ratio to the baseline, in the same direction as `ratio`: above 1, it is better now.
    pub baseline_ratio: Option<f64>,
    /// The same for the best repetitions, which are least disturbed by other load.
    pub baseline_best_ratio: Option<f64>,
    /// Whether the change since the baseline is within the range of either run.
    pub is_within_spread: Option<bool>,
}

/// Parses the name of a system, which may be a former one.
fn current_system<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Cow<'static, str>, D::Error> {
    let name = String::deserialize(deserializer)?;
    Ok(match &*name {
        "directory" => "store".into(),
        _ => name.into(),
    })
}

/// The range of repetitions of the same work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RepeatSpread {
    pub repeats: usize,
    pub min: f64,
    pub median: f64,
    pub max: f64,
}

impl RepeatSpread {
    /// From samples; at least one must be finite.
    pub(super) fn from_samples(figures: &[f64]) -> Option<Self> {
        let mut sorted = figures.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        Some(Self {
            repeats: sorted.len(),
            min,
            median: sorted[sorted.len() / 2],
            max,
        })
    }

    pub(super) fn width(&self) -> f64 {
        self.max - self.min
    }
}

impl BenchRow {
    /// A value that was measured once, or that must always be the same.
    pub(super) fn new(
        system: &'static str,
        case: impl Into<String>,
        value: f64,
        unit: &'static str,
    ) -> Self {
        Self {
            system: system.into(),
            case: case.into(),
            value,
            unit: unit.into(),
            ..Self::default()
        }
    }

    /// The median of samples with their range; 0 without samples.
    pub(super) fn repeated(
        system: &'static str,
        case: impl Into<String>,
        figures: &[f64],
        unit: &'static str,
    ) -> Self {
        let spread = RepeatSpread::from_samples(figures);
        let value = spread.map_or(0.0, |spread| spread.median);
        Self::new(system, case, value, unit).with_spread(spread)
    }

    /// Adds the range of the samples behind the value.
    pub(super) fn with_spread(self, spread: Option<RepeatSpread>) -> Self {
        let spread = spread.filter(|spread| spread.repeats > 1);
        Self { spread, ..self }
    }

    /// Marks the row as one in which a larger value is better.
    pub(super) fn more_is_better(self) -> Self {
        Self {
            more_is_better: true,
            ..self
        }
    }

    /// Adds a sentence that explains the figure.
    pub(super) fn about(self, about: impl Into<String>) -> Self {
        let about = about.into();
        Self {
            description: about,
            ..self
        }
    }

    /// Adds a reference; for both values, less is better.
    pub(super) fn with_reference(self, reference: &'static str, value: f64) -> Self {
        let ratio = (self.value > 0.0).then_some(value / self.value);
        Self {
            reference: Some(reference.into()),
            reference_value: Some(value),
            ratio,
            ..self
        }
    }

    /// Adds a reference with the median of its samples.
    pub(super) fn with_repeated_reference(self, reference: &'static str, figures: &[f64]) -> Self {
        let spread = RepeatSpread::from_samples(figures);
        let row = self.with_reference(reference, spread.map_or(0.0, |spread| spread.median));
        Self {
            reference_spread: spread.filter(|spread| spread.repeats > 1),
            ..row
        }
    }

    /// Adds what was compared, and whether the results agree.
    pub(super) fn with_comparison(self, compared: impl Into<String>, agrees: bool) -> Self {
        Self {
            compared: Some(compared.into()),
            results_agree: Some(agrees),
            ..self
        }
    }

    /// Adds a target: the value is at most this.
    pub(super) fn with_target_below(self, most: f64, unit: &str) -> Self {
        let meets = self.value <= most;
        self.with_target(format!("<= {most} {unit}"), meets)
    }

    /// Adds a target: the reference takes at least this many times as long.
    pub(super) fn with_target_ratio(self, least: f64) -> Self {
        let meets = self.ratio.unwrap_or_default() >= least;
        self.with_target(format!("{least} times as good or better"), meets)
    }

    /// Adds a target: the value is at least this.
    pub(super) fn with_target_above(self, least: f64, unit: &str) -> Self {
        let meets = self.value >= least;
        self.with_target(format!(">= {least} {unit}"), meets)
    }

    /// Adds a target, and whether it is met.
    pub(super) fn with_target(self, target: impl Into<String>, meets: bool) -> Self {
        Self {
            target: Some(target.into()),
            meets_target: Some(meets),
            ..self
        }
    }

    /// Removes the target, which belongs to the machine on which it was set.
    pub(super) fn without_target(self) -> Self {
        Self {
            target: None,
            meets_target: None,
            ..self
        }
    }

    /// Adds the same row of an earlier run.
    pub(super) fn with_baseline(self, value: f64, spread: Option<RepeatSpread>) -> Self {
        let ratio = |now: f64, then: f64| {
            let (more, less) = if self.more_is_better {
                (now, then)
            } else {
                (then, now)
            };
            (less > 0.0).then_some(more / less)
        };
        let best = |spread: RepeatSpread| {
            if self.more_is_better {
                spread.max
            } else {
                spread.min
            }
        };
        let both = self.spread.zip(spread);
        let change = (self.value - value).abs();
        Self {
            baseline_value: Some(value),
            baseline_spread: spread,
            baseline_ratio: ratio(self.value, value),
            baseline_best_ratio: both.and_then(|(now, then)| ratio(best(now), best(then))),
            is_within_spread: both.map(|(now, then)| change <= now.width().max(then.width())),
            ..self
        }
    }

    /// Whether the results differ or the target is missed.
    pub(super) fn has_failed(&self) -> bool {
        self.results_agree == Some(false) || self.meets_target == Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_as_slow_reference_has_a_ratio_of_two() {
        let row = BenchRow::new("nav", "town", 5.0, "us").with_reference("astar", 10.0);
        assert_eq!(row.ratio, Some(2.0));
        assert!(row.clone().with_target_ratio(2.0).meets_target == Some(true));
        assert!(row.with_target_ratio(2.1).has_failed());
        let nothing = BenchRow::new("nav", "town", 0.0, "us").with_reference("astar", 10.0);
        assert_eq!(nothing.ratio, None);
    }

    #[test]
    fn row_value_is_the_median_and_keeps_the_spread() {
        let row = BenchRow::repeated("nav", "town", &[3.0, 1.0, 2.0], "us");
        let spread = row.spread.unwrap();
        assert_eq!((row.value, spread.repeats), (2.0, 3));
        assert_eq!((spread.min, spread.median, spread.max), (1.0, 2.0, 3.0));
        assert_eq!(BenchRow::repeated("nav", "town", &[1.0], "us").spread, None);
        assert_eq!(BenchRow::repeated("nav", "town", &[], "us").value, 0.0);
    }

    #[test]
    fn change_is_compared_with_best_repeats_and_spread() {
        // Eight times as long at the median, but only a fifth longer at the minimum: other load disturbed the run.
        let then = RepeatSpread::from_samples(&[1.2, 1.3, 1.9]);
        let disturbed =
            BenchRow::repeated("a", "b", &[1.44, 10.4, 12.0], "ms").with_baseline(1.3, then);
        assert_eq!(disturbed.baseline_ratio, Some(0.125));
        let best = disturbed.baseline_best_ratio.unwrap();
        assert!((best - 1.2 / 1.44).abs() < 1e-12, "{best}");
        assert_eq!(disturbed.is_within_spread, Some(true));
        let slower = BenchRow::repeated("a", "b", &[2.4, 2.6, 2.7], "ms").with_baseline(1.3, then);
        assert_eq!(slower.baseline_ratio, Some(0.5));
        assert_eq!(slower.is_within_spread, Some(false));
        // A baseline ratio above 1 means better now, for both directions of a figure.
        let rate = BenchRow::repeated("a", "b", &[4.0, 6.0, 9.0], "GB/s").more_is_better();
        let rate = rate.with_baseline(2.0, RepeatSpread::from_samples(&[1.0, 2.0, 3.0]));
        assert_eq!(
            (rate.baseline_ratio, rate.baseline_best_ratio),
            (Some(3.0), Some(3.0))
        );
        let once = BenchRow::new("a", "b", 5.0, "ms").with_baseline(0.0, None);
        assert_eq!(
            (once.baseline_ratio, once.is_within_spread),
            (Some(0.0), None)
        );
    }

    #[test]
    fn stored_row_is_read_by_its_former_names() {
        let former = r#"{"system": "directory", "case": "hit", "about": "a", "agrees": true, "meets": false}"#;
        let row: BenchRow = serde_json::from_str(former).unwrap();
        assert_eq!((&*row.system, &*row.description), ("store", "a"));
        assert_eq!(
            (row.results_agree, row.meets_target),
            (Some(true), Some(false))
        );
    }

    #[test]
    fn differing_results_fail_also_without_target_check() {
        let row = BenchRow::new("nav", "town", 5.0, "us").with_target_below(4.0, "us");
        assert!(row.has_failed() && !row.clone().without_target().has_failed());
        assert!(
            row.with_comparison("the lengths", false)
                .without_target()
                .has_failed()
        );
    }
}
