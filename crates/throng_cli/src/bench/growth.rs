//! The growth of figures with the input size. The exponent is the slope of a straight line through the logarithms of both: 0 is constant, 1
//! linear, 2 quadratic.

use super::rows::BenchRow;

/// Minimum number of sizes for an exponent.
const SIZES_MIN: usize = 3;

/// Figures of the same work at several sizes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SizeGrowth {
    /// The common part of the case names, such as `navigate mean`.
    pub case: String,
    pub unit: String,
    /// Pairs of a size and its figure, ascending by size.
    pub points: Vec<(f64, f64)>,
    pub exponent: f64,
}

/// The cases with at least three sizes, the largest at least twice the smallest, in the order of their rows. The size is the number after
/// the slash of `case/number`.
pub(super) fn growths<'a>(rows: impl IntoIterator<Item = &'a BenchRow>) -> Vec<SizeGrowth> {
    let mut all: Vec<SizeGrowth> = Vec::new();
    for row in rows {
        let Some((case, size)) = sized(row) else {
            continue;
        };
        let point = (size, row.value);
        let known = all
            .iter_mut()
            .find(|growth| growth.case == case && growth.unit == row.unit);
        match known {
            Some(growth) => growth.points.push(point),
            None => all.push(SizeGrowth {
                case: case.to_owned(),
                unit: row.unit.to_string(),
                points: vec![point],
                exponent: 0.0,
            }),
        }
    }
    for growth in &mut all {
        growth.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        growth.points.dedup_by_key(|point| point.0);
        growth.exponent = exponent(&growth.points).unwrap_or(f64::NAN);
    }
    all.retain(|growth| growth.points.len() >= SIZES_MIN && growth.exponent.is_finite());
    all
}

/// One row per exponent, for figures that are times.
pub(super) fn rows(rows: &[BenchRow]) -> Vec<BenchRow> {
    let is_time = |growth: &&SizeGrowth| {
        let unit = growth.unit.split(['/', ' ']).next();
        // The maximum varies too much, and the median shows the same as the mean.
        let is_one_of_many = [" p50", " max"]
            .iter()
            .any(|end| growth.case.ends_with(end));
        matches!(unit, Some("s" | "ms" | "us" | "ns")) && !is_one_of_many
    };
    let Some(system) = rows.first().map(|row| row.system.clone()) else {
        return Vec::new();
    };
    let row = |growth: &SizeGrowth| {
        let [(first, _), .., (last, _)] = growth.points[..] else {
            return BenchRow::default();
        };
        let about = format!(
            "Growth from {first} to {last}, over {} sizes: 1 is linear, 2 is quadratic.",
            growth.points.len()
        );
        BenchRow {
            system: system.clone(),
            case: format!("growth of {}", growth.case),
            value: growth.exponent,
            unit: "exponent".into(),
            description: about,
            ..BenchRow::default()
        }
    };
    growths(rows).iter().filter(is_time).map(row).collect()
}

/// The case name without the size, and the size.
fn sized(row: &BenchRow) -> Option<(&str, f64)> {
    let (case, size) = row.case.rsplit_once('/')?;
    let size: f64 = size.parse().ok()?;
    (size > 0.0 && row.value > 0.0).then_some((case, size))
}

/// The slope of the least-squares line through the logarithms; `None` if the sizes differ by less than a factor of two.
fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    let (first, last) = (points.first()?, points.last()?);
    if last.0 < 2.0 * first.0 {
        return None;
    }
    let logs = || points.iter().map(|(size, value)| (size.ln(), value.ln()));
    let count = points.len() as f64;
    let (sum_x, sum_y) = logs().fold((0.0, 0.0), |(x, y), log| (x + log.0, y + log.1));
    let (mean_x, mean_y) = (sum_x / count, sum_y / count);
    let (over, under) = logs().fold((0.0, 0.0), |(over, under), (x, y)| {
        (
            over + (x - mean_x) * (y - mean_y),
            under + (x - mean_x).powi(2),
        )
    });
    Some(over / under)
}

/// An exponent with a description.
pub(super) fn describe(exponent: f64) -> String {
    let word = match exponent {
        ..0.25 => "hardly grows",
        ..0.75 => "sublinear",
        ..1.25 => "linear",
        ..1.75 => "superlinear",
        _ => "quadratic or more",
    };
    format!("exponent {exponent:.2}: {word}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(case: &str, value: f64, unit: &'static str) -> BenchRow {
        BenchRow::new("tick", case, value, unit)
    }

    #[test]
    fn quadratic_linear_and_constant_growth_are_distinguished() {
        let mut all = Vec::new();
        for size in [1_000.0, 2_000.0, 4_000.0, 8_000.0f64] {
            all.push(row(&format!("square/{size}"), 3e-6 * size * size, "ms"));
            all.push(row(&format!("line/{size}"), 0.2 * size, "us"));
            all.push(row(&format!("rate/{size}"), 5.0, "a second"));
        }
        let found = growths(&all);
        let exponents: Vec<f64> = found.iter().map(|growth| growth.exponent).collect();
        for (found, expected) in exponents.iter().zip([2.0, 1.0, 0.0]) {
            assert!((found - expected).abs() < 1e-9, "{found}");
        }
        let rows = rows(&all);
        let cases: Vec<&str> = rows.iter().map(|row| row.case.as_str()).collect();
        assert_eq!(
            cases,
            ["growth of square", "growth of line"],
            "only times have an exponent"
        );
        assert!(
            rows[0]
                .description
                .contains("from 1000 to 8000, over 4 sizes")
        );
        assert!(describe(2.0).contains("quadratic") && describe(1.04).contains(": linear"));
    }

    #[test]
    fn too_few_sizes_have_no_exponent() {
        for all in [
            vec![row("a/1", 1.0, "ms"), row("a/2", 2.0, "ms")],
            vec![
                row("a/10", 1.0, "ms"),
                row("a/11", 2.0, "ms"),
                row("a/12", 2.0, "ms"),
            ],
            vec![
                row("a/1", 1.0, "ms"),
                row("a/2", 0.0, "ms"),
                row("a/4", 2.0, "ms"),
            ],
            vec![
                row("a/1 B", 1.0, "ms"),
                row("a", 2.0, "ms"),
                row("b/4", 2.0, "ms"),
            ],
        ] {
            assert_eq!(growths(&all), []);
        }
    }
}
