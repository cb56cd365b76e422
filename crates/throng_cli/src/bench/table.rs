//! Rows as text in 80 columns: a line of figures, then the explanation and the comparison.

use super::rows::{BenchRow, RepeatSpread};

/// Maximum width of a line.
const WIDTH: usize = 80;

/// Indentation of a row's further lines.
const INDENT: usize = 4;

/// The column headers.
pub(super) fn heading() -> String {
    format!(
        "{:<28}{:>10} {:<12}{:>10}{:>10}{:>9}",
        "", "value", "", "least", "most", "ratio"
    )
}

/// The rows of a system under its name; `mark` colours the lines of failures.
pub(super) fn table(rows: &[BenchRow], mark: impl Fn(&str) -> String) -> String {
    let mut lines = Vec::new();
    let mut system = "";
    for row in rows {
        if row.system != system {
            system = &row.system;
            lines.push(format!("{system:<28}{}", &heading()[28..]));
        }
        lines.extend(figures(row));
        lines.extend(wrapped(&row.description));
        lines.extend(wrapped(&comparison(row)));
        lines.extend(verdicts(row).into_iter().map(
            |(line, is_broken)| {
                if is_broken { mark(&line) } else { line }
            },
        ));
    }
    lines.join("\n")
}

/// The line of figures; a long name gets a line of its own.
fn figures(row: &BenchRow) -> Vec<String> {
    let spread = |figure: fn(&super::rows::RepeatSpread) -> f64| {
        let spread = row.spread.as_ref();
        spread.map_or_else(String::new, |spread| number(figure(spread)))
    };
    let ratio = row
        .ratio
        .map_or_else(String::new, |ratio| format!("{}×", number(ratio)));
    let (value, unit) = (figure(row.value), &row.unit);
    let (least, most) = (spread(|spread| spread.min), spread(|spread| spread.max));
    let name = format!("  {}", row.case);
    let mut lines = Vec::new();
    let name = if name.chars().count() > 28 {
        lines.push(name);
        String::new()
    } else {
        name
    };
    // A long unit takes the place of the range, which rows with such units do not have.
    let rest = if unit.chars().count() > 11 {
        format!("{name:<28}{value:>10} {unit:<32}{ratio:>9}")
    } else {
        format!("{name:<28}{value:>10} {unit:<12}{least:>10}{most:>10}{ratio:>9}")
    };
    lines.push(rest.trim_end().to_owned());
    lines
}

/// The values of the reference and the baseline.
fn comparison(row: &BenchRow) -> String {
    let mut parts = Vec::new();
    if let (Some(name), Some(value)) = (&row.reference, row.reference_value) {
        let spread = row.reference_spread.map_or_else(String::new, |spread| {
            format!(" ({} to {})", number(spread.min), number(spread.max))
        });
        parts.push(format!("{name}: {} {}{spread}", figure(value), row.unit));
    }
    parts.extend(since_baseline(row).map(|since| format!("baseline: {since}")));
    parts.join("; ")
}

/// The baseline's value and the change since; the wording is the same whether more is better or worse.
pub(super) fn since_baseline(row: &BenchRow) -> Option<String> {
    let then = row.baseline_value?;
    let mut text = format!("{} {}{}", figure(then), row.unit, change(row.value, then));
    if row.is_within_spread == Some(true) {
        text.push_str(", within the spread");
    }
    if let (Some(now), Some(then)) = (row.spread, row.baseline_spread) {
        let (word, best): (_, fn(&RepeatSpread) -> f64) = if row.more_is_better {
            ("most", |spread| spread.max)
        } else {
            ("least", |spread| spread.min)
        };
        let (now, then) = (best(&now), best(&then));
        text.push_str(&format!(", {word} {}{}", number(then), change(now, then)));
    }
    Some(text)
}

/// The change from an earlier figure to the current one; empty if the earlier one was 0.
fn change(now: f64, then: f64) -> String {
    let times = now / then;
    let percent = (times - 1.0).abs() * 100.0;
    let shown = |percent: f64| {
        if percent < 9.95 {
            format!("{percent:.1}")
        } else {
            format!("{percent:.0}")
        }
    };
    match times {
        _ if !times.is_finite() => String::new(),
        _ if percent < 0.05 => ", now the same".to_owned(),
        2.0.. => format!(", now {} times as much", number(times)),
        1.0.. => format!(", now {} % more", shown(percent)),
        _ => format!(", now {} % less", shown(percent)),
    }
}

/// Lines with the comparison of results and the target, each with whether it failed.
fn verdicts(row: &BenchRow) -> Vec<(String, bool)> {
    let line = |word: &str, what: &str| format!("    {word:<8}{what}");
    let mut lines = Vec::new();
    if let (Some(compared), Some(agrees)) = (&row.compared, row.results_agree) {
        let word = if agrees { "same" } else { "DIFFERS" };
        lines.push((line(word, compared), !agrees));
    }
    if let (Some(target), Some(meets)) = (&row.target, row.meets_target) {
        let word = if meets { "ok" } else { "MISSED" };
        lines.push((line(word, target), !meets));
    }
    lines
}

/// Text in indented lines of at most 80 columns.
pub(super) fn wrapped(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let is_full = INDENT + line.chars().count() + 1 + word.chars().count() > WIDTH;
        if is_full && !line.is_empty() {
            lines.push(format!("{:INDENT$}{line}", ""));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        lines.push(format!("{:INDENT$}{line}", ""));
    }
    lines
}

/// A number; counts have no decimal point.
fn figure(value: f64) -> String {
    if value.fract() == 0.0 {
        return format!("{value:.0}");
    }
    number(value)
}

/// A number with three significant digits, or with all digits before the decimal point.
pub(crate) fn number(value: f64) -> String {
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
    fn table_fits_eighty_columns_for_any_row_name() {
        let row = BenchRow::repeated(
            "matchmaking",
            "10000 parties in a mode with a long name",
            &[99_999.9, 123_456.7, 999_999.9],
            "ns/party",
        )
        .with_repeated_reference("the order of arrival", &[1.0, 9_999_999.0, 99_999_999.0])
        .about("What it takes to put all parties that wait into matches, ".repeat(4))
        .with_comparison("every player is in a match or waits", false);
        let long_unit = BenchRow::new("tick", "memory/100000", 123_456.0, "bytes/s a player");
        let rows = [row.clone().with_target_below(4.0, "ns"), row, long_unit];
        let table = table(&rows, str::to_owned);
        for line in table.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        assert!(table.contains("MISSED  <= 4 ns"), "{table}");
        assert!(table.contains("DIFFERS every player"), "{table}");
    }

    #[test]
    fn baseline_change_is_shown_with_its_unit() {
        let row = BenchRow::repeated("matchmaking", "heartbeat", &[1.4, 10.4, 12.0], "ms");
        let then = RepeatSpread::from_samples(&[1.2, 1.3, 1.9]);
        assert_eq!(
            since_baseline(&row.clone().with_baseline(1.3, then)).unwrap(),
            "1.30 ms, now 8.00 times as much, within the spread, least 1.20, now 17 % more"
        );
        let once = BenchRow::new("tick", "packets/20", 75.0, "a second");
        let since = |then| since_baseline(&once.clone().with_baseline(then, None)).unwrap();
        assert_eq!(since(100.0), "100 a second, now 25 % less");
        assert_eq!(since(75.01), "75.0 a second, now the same");
        assert_eq!(since(0.0), "0 a second");
        assert_eq!(since_baseline(&row), None);
    }

    #[test]
    fn only_failed_rows_are_marked() {
        let row = BenchRow::new("nav", "town", 5.0, "us").with_comparison("the lengths", true);
        let mark = |line: &str| format!("<{line}>");
        assert!(!table(std::slice::from_ref(&row), mark).contains('<'));
        let missed = table(&[row.with_target_below(4.0, "us")], mark);
        assert_eq!(missed.lines().filter(|line| line.contains('<')).count(), 1);
    }
}
