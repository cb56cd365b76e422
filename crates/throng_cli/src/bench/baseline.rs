//! The results of an earlier run, for comparison.

use std::path::Path;

use serde::Deserialize;

use super::calibration;
use super::rows::{BenchRow, RepeatSpread};
use super::table::number;
use crate::CliError;
use crate::machine::Machine;

/// Parsed `--json` output of an earlier run: for each row, its value and the fields that identify it.
#[derive(Debug, Deserialize)]
pub(super) struct BenchBaseline {
    machine: Machine,
    is_quick: bool,
    rows: Vec<BaselineRow>,
}

#[derive(Debug, Deserialize)]
struct BaselineRow {
    system: String,
    case: String,
    unit: String,
    value: f64,
    #[serde(default)]
    spread: Option<RepeatSpread>,
}

impl BenchBaseline {
    /// Reads a file.
    ///
    /// # Errors
    /// If the file does not exist, or is not the output of `--json`; the error has line and column.
    pub(super) fn load(file: &Path) -> Result<Self, CliError> {
        let text = std::fs::read_to_string(file).map_err(|error| {
            CliError::new(format!(
                "could not read --baseline {}: {error}",
                file.display()
            ))
        })?;
        serde_json::from_str(&text).map_err(|error| {
            CliError::new(format!(
                "--baseline {}: expected what `throng bench --json` prints, found: {error}",
                file.display()
            ))
        })
    }

    fn matching_row(&self, row: &BenchRow) -> Option<&BaselineRow> {
        let mut rows = self.rows.iter();
        rows.find(|old| {
            (old.system.as_str(), old.case.as_str(), old.unit.as_str())
                == (&*row.system, row.case.as_str(), &*row.unit)
        })
    }

    fn value(&self, row: &BenchRow) -> Option<f64> {
        self.matching_row(row).map(|old| old.value)
    }

    /// Adds the value of the same row in the baseline, if it has one.
    pub(super) fn with_baseline(&self, row: BenchRow) -> BenchRow {
        match self.matching_row(&row) {
            Some(old) => row.with_baseline(old.value, old.spread),
            None => row,
        }
    }

    /// Reasons why the current rows are not comparable with the baseline; empty if there are none.
    pub(super) fn warnings(
        &self,
        here: &Machine,
        is_quick: bool,
        rows: &[BenchRow],
    ) -> Vec<String> {
        let mut warnings = here.differences(&self.machine);
        if is_quick != self.is_quick {
            let (now, then) = if is_quick {
                ("with", "without")
            } else {
                ("without", "with")
            };
            warnings.push(format!("measured {now} --quick, the baseline {then}"));
        }
        let kernels = rows.iter().filter(|row| row.system == calibration::SYSTEM);
        warnings.extend(kernels.filter_map(|row| {
            let ratio = row.value / self.value(row).filter(|old| *old > 0.0)?;
            // A difference of 10 % is normal between two runs on the same machine.
            let differs = !(0.9..=1.1).contains(&ratio);
            differs.then(|| {
                format!(
                    "the calibration of {} takes {} times as long as in the baseline",
                    row.case,
                    number(ratio)
                )
            })
        }));
        let lost = rows.iter().filter(|row| self.value(row).is_none()).count();
        if lost > 0 {
            warnings.push(format!(
                "{lost} of {} rows are not in the baseline",
                rows.len()
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn baseline(core_ns: f64) -> BenchBaseline {
        let json = serde_json::json!({
            "machine": Machine::current(2),
            "is_quick": false,
            "rows": [
                BenchRow::new("nav", "town", 4.0, "us"),
                BenchRow::new(calibration::SYSTEM, "core", core_ns, "ns/step"),
            ],
        });
        serde_json::from_value(json).unwrap()
    }

    fn rows() -> Vec<BenchRow> {
        vec![
            BenchRow::new("nav", "town", 5.0, "us"),
            BenchRow::new(calibration::SYSTEM, "core", 2.0, "ns/step"),
        ]
    }

    #[test]
    fn row_is_matched_by_system_case_and_unit() {
        let baseline = baseline(2.0);
        let row = baseline.with_baseline(BenchRow::new("nav", "town", 5.0, "us"));
        assert_eq!(
            (row.baseline_value, row.baseline_ratio),
            (Some(4.0), Some(0.8))
        );
        for other in [
            BenchRow::new("nav", "city", 5.0, "us"),
            BenchRow::new("nav", "town", 5.0, "ms"),
            BenchRow::new("aoi", "town", 5.0, "us"),
        ] {
            assert_eq!(baseline.with_baseline(other).baseline_value, None);
        }
    }

    #[test]
    fn other_or_slower_machine_gives_a_warning() {
        let here = Machine::current(2);
        assert_eq!(
            baseline(2.0).warnings(&here, false, &rows()),
            Vec::<String>::new()
        );
        let slower = baseline(1.0).warnings(&here, true, &rows());
        assert_eq!(slower.len(), 2, "{slower:?}");
        assert!(slower[1].contains("core takes 2.00 times"), "{slower:?}");
        let elsewhere = Machine {
            cpu: "abacus".to_owned(),
            ..here
        };
        assert_eq!(baseline(2.0).warnings(&elsewhere, false, &rows()).len(), 1);
        let new = [BenchRow::new("nav", "city", 5.0, "us")];
        let warnings = baseline(2.0).warnings(&Machine::current(2), false, &new);
        assert_eq!(warnings, ["1 of 1 rows are not in the baseline"]);
    }
}
