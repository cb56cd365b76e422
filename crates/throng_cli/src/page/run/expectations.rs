//! Expectations and their margins.

use serde_json::Value;

use super::PageRun;
use crate::page::chart::cell_bar;
use crate::page::html::{self, table, text};
use crate::page::numbers::{count, figure};
use throng_scenario::{Margin, MarginSide};

/// The outcome of a run in a sentence, and the class of its colour.
pub(super) fn verdict(run: &PageRun) -> (String, &'static str) {
    if let Some(tick) = run.report["interrupted"].as_u64() {
        return (
            format!("Interrupted after tick {tick}: expectations not checked"),
            "open",
        );
    }
    let expected = expectations(run);
    let of = |word: &str| expected.iter().filter(|one| one["verdict"] == word).count() as u64;
    let (broken, unused, passed) = (of("failed"), of("not_exercised"), of("passed"));
    match (broken, unused) {
        (0, 0) if expected.is_empty() => ("The scenario has no expectations".to_owned(), "open"),
        (0, 0) if passed == 0 => {
            let all = count(expected.len() as u64, "expectation");
            (format!("{all} not checked"), "open")
        }
        (0, 0) => (format!("{} passed", count(passed, "expectation")), "good"),
        (0, unused) => (
            format!("{} not exercised", count(unused, "expectation")),
            "bad",
        ),
        (broken, _) => (format!("{} broken", count(broken, "expectation")), "bad"),
    }
}

fn expectations(run: &PageRun) -> &[Value] {
    run.report["expectations"]
        .as_array()
        .map_or(&[], Vec::as_slice)
}

/// The table of expectations, and errors of the script.
pub(super) fn section(run: &PageRun) -> String {
    let expected = expectations(run);
    let rows: Vec<Vec<String>> = expected.iter().map(row).collect();
    let mut body = if rows.is_empty() {
        "<p class=\"none\">The scenario has no expectations.</p>".to_owned()
    } else {
        format!(
            "<div class=\"expectations\">{}</div>",
            table(&["expected", "verdict", "found", "room"], &rows)
        )
    };
    for (name, word) in [
        ("script_errors", "Script error"),
        ("cues_without_effect", "Cue without effect"),
    ] {
        let lines = run.report[name].as_array().into_iter().flatten();
        for line in lines.filter_map(Value::as_str) {
            body += &format!("<p class=\"fault\"><b>{word}:</b> {}</p>", text(line));
        }
    }
    let about = "The expectations of the scenario, the value found, and its distance to the limit: the bar is the \
                 value, the mark is the limit.";
    html::section("expected", "Expectations", about, &body)
}

fn row(result: &Value) -> Vec<String> {
    let word = |name: &str| result[name].as_str().unwrap_or_default();
    let (mark, class) = match word("verdict") {
        "passed" => ("passed", "good"),
        "failed" => ("failed", "bad"),
        "not_exercised" => ("not exercised", "bad"),
        "slow_machine" => ("slow machine", "open"),
        _ => ("not checked", "open"),
    };
    let margin: Option<Margin> = serde_json::from_value(result["margin"].clone()).ok();
    vec![
        text(word("text")),
        format!("<span class=\"chip {class}\">{mark}</span>"),
        text(word("found")),
        margin.as_ref().map_or_else(String::new, headroom),
    ]
}

/// The margin between a figure and its limit, with a bar.
fn headroom(margin: &Margin) -> String {
    let Margin {
        found,
        limit,
        side,
        unit,
    } = margin;
    let end = found.max(*limit) * 1.1;
    if !found.is_finite() || end <= 0.0 {
        return String::new();
    }
    let is_over = margin.headroom() < 0.0;
    let class = if is_over { "over" } else { "within" };
    let percent = figure((margin.headroom().abs() * 100.0).round());
    let words = match (side, is_over) {
        (_, true) => format!("misses it by {percent} %"),
        (MarginSide::AtLeast, false) => format!("{percent} % above"),
        (MarginSide::Below | MarginSide::AtMost, false) => format!("{percent} % below"),
    };
    let of = match side {
        MarginSide::AtLeast => "of at least",
        MarginSide::Below | MarginSide::AtMost => "of",
    };
    format!(
        "{}<small>{} {of} {} {}: {words}</small>",
        cell_bar(class, found / end, Some(limit / end)),
        figure(*found),
        figure(*limit),
        text(unit),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headroom_is_shown_on_both_sides_of_a_limit() {
        let shown = |found, limit, side| headroom(&Margin::new(found, limit, side, "ms"));
        let below = shown(12.5, 50.0, MarginSide::Below);
        assert!(
            below.contains("12.5 of 50 ms: 75 % below") && below.contains("within"),
            "{below}"
        );
        assert!(shown(75.0, 50.0, MarginSide::AtMost).contains("misses it by 50 %"));
        assert!(
            shown(60.0, 50.0, MarginSide::AtLeast).contains("60 of at least 50 ms: 20 % above")
        );
        assert_eq!(shown(f64::NAN, 1.0, MarginSide::Below), "");
        assert_eq!(shown(0.0, 0.0, MarginSide::AtMost), "");
    }
}
