//! What a bench finds: rows, and how they are shown.

use serde::Serialize;

/// One piece of work, beside the reference's where there is one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct BenchRow {
    /// The system's name on the command line.
    pub system: &'static str,
    /// What was done, to how much.
    pub case: String,
    /// What was found, in `unit`.
    pub value: f64,
    pub unit: &'static str,
    /// What did the same work.
    pub reference: Option<&'static str>,
    /// What it took, in `unit`.
    pub reference_value: Option<f64>,
    /// How many times as much the reference took: above 1, throng is better.
    pub ratio: Option<f64>,
    /// What is aimed at.
    pub target: Option<String>,
    pub meets: Option<bool>,
}

impl BenchRow {
    pub(super) fn new(
        system: &'static str,
        case: impl Into<String>,
        value: f64,
        unit: &'static str,
    ) -> Self {
        Self {
            system,
            case: case.into(),
            value,
            unit,
            ..Self::default()
        }
    }

    /// Beside a reference; of both, less is better.
    pub(super) fn beside(self, reference: &'static str, value: f64) -> Self {
        let ratio = (self.value > 0.0).then_some(value / self.value);
        Self {
            reference: Some(reference),
            reference_value: Some(value),
            ratio,
            ..self
        }
    }

    /// With the aim of at most so much.
    pub(super) fn aiming_below(self, most: f64, unit: &str) -> Self {
        let meets = self.value <= most;
        self.aiming(format!("<= {most} {unit}"), meets)
    }

    /// With a target, and whether it was met.
    pub(super) fn aiming(self, target: impl Into<String>, meets: bool) -> Self {
        Self {
            target: Some(target.into()),
            meets: Some(meets),
            ..self
        }
    }
}

/// Rows for a person, in 80 columns.
pub(super) fn table(rows: &[BenchRow]) -> String {
    let mut lines = vec![format!(
        "{:<12}{:<20}{:>10} {:<8}{:>10} {:<9}{:>7}",
        "system", "case", "value", "", "reference", "", "ratio"
    )];
    for row in rows {
        let reference = row.reference_value.map_or_else(String::new, number);
        let ratio = row
            .ratio
            .map_or_else(String::new, |ratio| format!("{}×", number(ratio)));
        let line = format!(
            "{:<12}{:<20}{:>10} {:<8}{reference:>10} {:<9}{ratio:>7}",
            row.system,
            row.case,
            number(row.value),
            row.unit,
            row.reference.unwrap_or_default()
        );
        lines.push(line.trim_end().to_owned());
        if let (Some(target), Some(meets)) = (&row.target, row.meets) {
            lines.push(format!(
                "{:<12}{} {target}",
                "",
                if meets { "ok     " } else { "MISSED " }
            ));
        }
    }
    lines.join("\n")
}

/// Three digits that count, or all before the point.
pub(in crate::cli) fn number(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_eighty_columns() {
        let row = BenchRow::new("matchmaking", "10000 parties time", 123_456.789, "ms")
            .beside("arrival", 99_999.9);
        let table = table(&[row.clone().aiming("everybody accounted for", true), row]);
        assert!(
            table.lines().all(|line| line.chars().count() <= 80),
            "{table}"
        );
    }

    #[test]
    fn a_reference_that_takes_twice_as_long_has_a_ratio_of_two() {
        let row = BenchRow::new("nav", "town", 5.0, "us").beside("astar", 10.0);
        assert_eq!(row.ratio, Some(2.0));
        assert_eq!(
            BenchRow::new("nav", "town", 0.0, "us")
                .beside("astar", 10.0)
                .ratio,
            None
        );
    }
}
