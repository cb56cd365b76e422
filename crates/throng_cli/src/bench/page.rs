//! All results as an HTML page: bars with references and peers, growth with sizes, and every row in a table.

use super::growth::{SizeGrowth, describe, growths};
use super::rows::BenchRow;
use super::table::{number, since_baseline};
use super::{BenchReport, Interruption};
use crate::page::chart::{Plot, cell_bar, digits};
use crate::page::html::{document, section, table, text};
use crate::page::numbers::figure;

/// Maximum number of curves in a plot, so that they can be told apart.
const CURVES_MAX: usize = 12;

/// Sets of the tick and the classes of their colours, which are the same everywhere.
const SET_CLASSES: [(&str, &str); 10] = [
    ("ingest", "s-ingest"),
    ("think", "s-think"),
    ("navigate", "s-navigate"),
    ("move", "s-move"),
    ("locate", "s-locate"),
    ("view", "s-view"),
    ("heartbeat", "s-heartbeat"),
    ("replicate", "s-replicate"),
    ("send", "s-send"),
    ("tick", "c1"),
];

/// Classes of the colours of other curves, in turn.
const CURVE_CLASSES: [&str; 6] = [
    "s-navigate",
    "s-replicate",
    "s-view",
    "s-think",
    "s-locate",
    "s-move",
];

const LEGEND: &str = "A value is the median of repeats. The ratio is the reference's time divided by throng's: \
                      above 1, throng is better. The baseline is an earlier run: its figure, and the change since \
                      then; `within the spread`: the change is not larger than the range of the repeats.";

/// The page; `peers` are rows of benches/peers.
pub(crate) fn page(findings: &BenchReport, peers: &[BenchRow]) -> String {
    let machine = &findings.machine;
    let build = if machine.is_optimised {
        ""
    } else {
        ", not optimised"
    };
    let mut body = format!(
        "<header><p class=\"kicker\">throng · a bench</p><h1>{}</h1>\
         <p class=\"seed\">throng {}{build} · {} · {} cores, {} · {} · {}</p></header>\n",
        text(&title(findings)),
        text(&machine.throng),
        text(&machine.cpu),
        machine.cores,
        crate::threads(machine.threads),
        text(&machine.os),
        text(&machine.date),
    );
    let stopped = findings.interrupted.iter().map(Interruption::line);
    for note in findings.notes().into_iter().chain(stopped) {
        body += &format!("<p class=\"fault\"><b>Note:</b> {}</p>\n", text(&note));
    }
    if let Some(row) = findings.rows.iter().find(|row| row.case == "largest crowd") {
        body += &format!(
            "<ul class=\"tiles\"><li><span>largest crowd on this machine</span><strong>{}<small> players</small></strong><em>{}</em></li></ul>\n",
            figure(row.value),
            text(&row.description)
        );
    }
    body += &comparison_bars("beside", "Compared with references", &findings.rows);
    body += &comparison_bars("peers", "Compared with published crates", peers);
    body += &growth(&findings.rows);
    body += &all_rows(&findings.rows);
    document("throng bench", &body)
}

/// The names of the systems, each once.
fn title(findings: &BenchReport) -> String {
    let names = systems(&findings.rows);
    let measured: Vec<&str> = names
        .into_iter()
        .filter(|name| *name != super::calibration::SYSTEM)
        .collect();
    measured.join(", ")
}

fn systems(rows: &[BenchRow]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.system.as_ref()) {
            names.push(&row.system);
        }
    }
    names
}

/// A pair of bars for each row with a reference: throng's value and the reference's, on one scale.
fn comparison_bars(id: &str, heading: &str, rows: &[BenchRow]) -> String {
    let pair = |row: &BenchRow| {
        let (name, other) = (row.reference.as_ref()?, row.reference_value?);
        let most = row.value.max(other).max(f64::MIN_POSITIVE);
        let bar = |class: &str, label: &str, value: f64| {
            format!(
                "<div class=\"pair\"><span>{}</span>{}<span>{} {}</span></div>",
                text(label),
                cell_bar(class, value / most, None),
                number(value),
                text(&row.unit)
            )
        };
        let ratio = row
            .ratio
            .map_or_else(String::new, |ratio| format!("{} ×", number(ratio)));
        Some(vec![
            format!(
                "<b>{}</b> {}<small>{}</small>{}",
                text(&row.system),
                text(&row.case),
                text(&row.description),
                verdicts(row)
            ),
            format!(
                "{}{}",
                bar("s-navigate", "throng", row.value),
                bar("other", name, other)
            ),
            format!("<b>{ratio}</b>"),
        ])
    };
    let rows: Vec<Vec<String>> = rows.iter().filter_map(pair).collect();
    if rows.is_empty() {
        return String::new();
    }
    let about = "The same work on the same input in the same process, results compared. The shorter bar is better if less \
                 is better; above a ratio of 1, throng is better.";
    section(
        id,
        heading,
        about,
        &format!(
            "<div class=\"pairs\">{}</div>",
            table(&["work", "", "ratio"], &rows)
        ),
    )
}

/// Curves over sizes: one plot per system and unit; for the tick, one plot for spread crowds and one for crowds in a square.
fn growth(rows: &[BenchRow]) -> String {
    let mut plots = String::new();
    for system in systems(rows) {
        let all = growths(rows.iter().filter(|row| row.system == system));
        // For the tick only the means are shown, because percentiles vary too much.
        let is_shown = |growth: &&SizeGrowth| system != "tick" || growth.case.ends_with(" mean");
        let plot_of = |growth: &SizeGrowth| (growth.case.contains("square "), growth.unit.clone());
        let mut titles: Vec<(bool, String)> = all.iter().filter(is_shown).map(plot_of).collect();
        titles.sort_unstable();
        titles.dedup();
        for title in titles {
            let of_plot = all
                .iter()
                .filter(|growth| is_shown(growth) && plot_of(growth) == title);
            let mut chosen: Vec<&SizeGrowth> = of_plot.collect();
            chosen.sort_by(|a, b| b.exponent.total_cmp(&a.exponent));
            chosen.truncate(CURVES_MAX);
            let name = if title.0 {
                format!("{system}, all in one square")
            } else {
                system.to_owned()
            };
            plots += &curves(&name, &title.1, &chosen).markup();
        }
    }
    if plots.is_empty() {
        return String::new();
    }
    let about = "Figures of the same work at several sizes. Both axes are logarithmic, so that a straight line is a power of the \
                 size, and its slope is the exponent: 1 is linear, 2 is quadratic.";
    section("growth", "Growth", about, &plots)
}

/// A curve for each growth, on logarithmic axes.
fn curves(system: &str, unit: &str, all: &[&SizeGrowth]) -> Plot {
    let points = || all.iter().flat_map(|growth| &growth.points);
    let ends = |value: fn(&(f64, f64)) -> f64| {
        let values = points().map(value);
        values.fold((f64::INFINITY, 0.0f64), |(low, high), value| {
            (low.min(value), high.max(value))
        })
    };
    let ((x_low, x_high), (y_low, y_high)) = (ends(|point| point.0), ends(|point| point.1));
    let (y_low, y_high) = (y_low / 1.3, y_high * 1.3);
    let place = |value: f64, low: f64, high: f64| (value / low).ln() / (high / low).ln().max(1e-9);
    let mut svg = String::new();
    let mut legend = Vec::new();
    for (nth, growth) in all.iter().enumerate() {
        let name = growth
            .case
            .split(' ')
            .find_map(|word| SET_CLASSES.iter().find(|set| set.0 == word));
        let class = name.map_or(CURVE_CLASSES[nth % CURVE_CLASSES.len()], |set| set.1);
        let mut path = String::new();
        for (nth, (size, value)) in growth.points.iter().enumerate() {
            let letter = if nth == 0 { 'M' } else { 'L' };
            let x = place(*size, x_low, x_high) * 1_000.0;
            let y = (1.0 - place(*value, y_low, y_high)) * 100.0;
            path += &format!("{letter}{} {}", digits(x), digits(y));
        }
        svg += &format!("<path class=\"line {class}\" d=\"{path}\"/>");
        legend.push((
            class.to_owned(),
            text(&growth.case),
            describe(growth.exponent),
        ));
    }
    let mut sizes: Vec<f64> = points().map(|point| point.0).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    sizes.dedup();
    let mut y_marks = Vec::new();
    for power in -6..=9 {
        for step in [1.0, 3.0] {
            let value = step * 10f64.powi(power);
            if (y_low..=y_high).contains(&value) {
                y_marks.push((place(value, y_low, y_high), figure(value)));
            }
        }
    }
    Plot {
        title: text(system),
        unit: text(unit),
        caption: String::new(),
        height_px: 260,
        x_marks: sizes
            .into_iter()
            .map(|size| (place(size, x_low, x_high), figure(size)))
            .collect(),
        x_unit: "size".to_owned(),
        y_marks,
        svg,
        legend,
    }
}

/// Every row, a table per system.
fn all_rows(rows: &[BenchRow]) -> String {
    let mut body = String::new();
    for system in systems(rows) {
        let of_system = rows.iter().filter(|row| row.system == system);
        let cells: Vec<Vec<String>> = of_system.map(row_cells).collect();
        let heads = ["", "value", "range", "reference", "ratio", "baseline"];
        body += &format!("<h3>{}</h3>{}", text(system), table(&heads, &cells));
    }
    section(
        "rows",
        "All figures",
        LEGEND,
        &format!("<div class=\"rows\">{body}</div>"),
    )
}

/// The comparison of results and the target, and whether each holds.
fn verdicts(row: &BenchRow) -> String {
    let mut words = String::new();
    for (condition, holds) in [
        (&row.compared, row.results_agree),
        (&row.target, row.meets_target),
    ] {
        if let (Some(condition), Some(holds)) = (condition, holds) {
            let (class, word) = if holds {
                ("good", "holds")
            } else {
                ("bad", "does not hold")
            };
            words += &format!(
                "<small class=\"{class}\">{word}: {}</small>",
                text(condition)
            );
        }
    }
    words
}

fn row_cells(row: &BenchRow) -> Vec<String> {
    let optional = |value: Option<String>| value.unwrap_or_default();
    let unit = text(&row.unit);
    let spread = row
        .spread
        .map(|spread| format!("{} to {}", number(spread.min), number(spread.max)));
    let beside = row.reference.as_ref().zip(row.reference_value);
    let beside = beside.map(|(name, value)| format!("{}: {} {unit}", text(name), number(value)));
    let name = format!(
        "{}<small>{}</small>{}",
        text(&row.case),
        text(&row.description),
        verdicts(row)
    );
    vec![
        name,
        format!("{} {unit}", number(row.value)),
        optional(spread),
        optional(beside),
        optional(row.ratio.map(|ratio| format!("{} ×", number(ratio)))),
        optional(since_baseline(row).map(|since| text(&since))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::page::html::is_well_formed;

    #[test]
    fn page_has_every_row_and_escapes_texts() {
        let row = BenchRow::repeated("nav", "a <town>", &[1.0, 2.0, 3.0], "us")
            .with_reference("astar", 20.0)
            .about("A & B.")
            .with_comparison("the lengths", false)
            .with_baseline(1.5, None);
        let mut rows = vec![row, BenchRow::new("aoi", "links", 5.0, "links")];
        for players in [1_000, 2_000, 4_000] {
            let ms = f64::from(players) / 500.0;
            rows.push(BenchRow::new(
                "tick",
                format!("view mean/{players}"),
                ms,
                "ms",
            ));
        }
        let findings = BenchReport {
            machine: Machine::current(1),
            is_quick: true,
            interrupted: None,
            busy_reasons: vec!["load > 1".to_owned()],
            baseline_warnings: Vec::new(),
            rows,
        };
        // As a page of stored JSON output is made.
        let json = serde_json::to_string(&findings).unwrap();
        let findings: BenchReport = serde_json::from_str(&json).unwrap();
        let peer = BenchRow::new("nav", "maze", 1.0, "us").with_reference("pathfinding", 3.0);
        let peer = peer.with_target("4 times as fast", false);
        let page = page(&findings, &[peer]);
        assert_eq!(is_well_formed(&page), Ok(()));
        for expected in [
            "a &lt;town&gt;",
            "A &amp; B.",
            "1.00 to 3.00",
            "10.0 ×",
            "astar: 20.0 us",
            "1.50 us, now 33 % more",
            "load &gt; 1",
            "does not hold: the lengths",
            "does not hold: 4 times as fast",
            "<span>pathfinding</span>",
            "exponent 1.00: linear",
        ] {
            assert!(page.contains(expected), "{expected} in {page}");
        }
    }
}
