//! Changes as text for a terminal, and as a page.

use super::changes::{ChangeGroup, Comparison, FigureChange, VerdictChange};
use crate::escape::escaped;
use crate::page::chart::{BucketLayout, Plot, digits, line, marks};
use crate::page::contents::contents;
use crate::page::html::{document, section, table as html_table, text};
use crate::page::numbers::{clock, figure};
use crate::page::scale::Axis;
use crate::wrapped;

/// Maximum number of changes shown per group, unless all are requested.
const SHOWN_MAX: usize = 24;

/// Columns for a name; a longer one gets a line of its own.
const NAME_COLUMNS: usize = 34;

/// Indentation of continuation lines.
const INDENT: usize = 2;

/// The changes as text in 80 columns.
pub(super) fn table(both: &Comparison, shows_all: bool) -> String {
    let mut lines = Vec::new();
    for (letter, (name, title)) in ["A", "B"].iter().zip(both.names.iter().zip(&both.titles)) {
        lines.push(wrapped(
            &format!("{letter} {}: {}", escaped(name), escaped(title)),
            INDENT,
        ));
    }
    lines.extend(
        both.notes
            .iter()
            .map(|note| wrapped(&escaped(note), INDENT)),
    );
    if !both.verdicts.is_empty() {
        lines.push(String::new());
        lines.push("changed expectations".to_owned());
    }
    for changed in &both.verdicts {
        let line = format!("{}: {}", changed.expected, changed.change());
        lines.push(wrapped(&escaped(&line), INDENT));
    }
    for group in &both.groups {
        lines.push(String::new());
        if group.changes.is_empty() {
            lines.push(format!(
                "{}: no change in {} figures",
                group.title, group.unchanged_count
            ));
        } else {
            lines.push(wrapped(group.title, INDENT));
            lines.push(format!(
                "{:<NAME_COLUMNS$}{:>14}{:>14}{:>14}",
                "", "A", "B", "B / A"
            ));
        }
        let shown = if shows_all {
            group.changes.len()
        } else {
            SHOWN_MAX
        };
        for one in group.changes.iter().take(shown) {
            lines.extend(row(one));
        }
        if let more @ 1.. = group.changes.len().saturating_sub(shown) {
            lines.push(format!("and {more} smaller changes: --all shows them"));
        }
        if group.unchanged_count > 0 && !group.changes.is_empty() {
            lines.push(format!("{} unchanged", group.unchanged_count));
        }
        for (letter, lone) in ["A", "B"].iter().zip(&group.only_in_one) {
            lines.extend(
                only_in_one_line(letter, lone).map(|line| wrapped(&escaped(&line), INDENT)),
            );
        }
    }
    lines.join("\n")
}

fn only_in_one_line(letter: &str, lone: &[String]) -> Option<String> {
    let first = lone.first()?;
    Some(match lone.len() {
        1 => format!("Only {letter} has `{first}`."),
        count => format!("Only {letter} has {count} figures; the first is `{first}`."),
    })
}

fn row(one: &FigureChange) -> Vec<String> {
    let name = escaped(&format!("{} {}", one.name, one.unit));
    let name = name.trim_end();
    let mark = if one.is_within_spread { " ~" } else { "" };
    let change = format!("{}{mark}", one.change());
    let figures = format!("{:>14}{:>14}{change:>14}", plain(one.from), plain(one.to));
    if name.chars().count() > NAME_COLUMNS {
        let short: String = name.chars().take(78).collect();
        return vec![short, format!("{:NAME_COLUMNS$}{figures}", "")];
    }
    vec![format!("{name:<NAME_COLUMNS$}{figures}")]
}

/// A number for a terminal.
fn plain(value: f64) -> String {
    figure(value).replace('\u{202f}', " ").replace('−', "-")
}

/// The changes as a page.
pub(super) fn page(both: &Comparison) -> String {
    let [a, b] = [0, 1].map(|nth| (text(&both.names[nth]), text(&both.titles[nth])));
    let head = format!(
        "<header><p class=\"kicker\">throng · two side by side</p><h1>Changes</h1>\
         <dl class=\"facts\"><dt>A</dt><dd><b>{}</b><br/>{}</dd><dt>B</dt><dd><b>{}</b><br/>{}</dd></dl></header>\n",
        a.0, a.1, b.0, b.1
    );
    let notes: String = both
        .notes
        .iter()
        .map(|note| format!("<li>{}</li>", text(note)))
        .collect();
    let head = head + &format!("<ul class=\"notes\">{notes}</ul>\n");
    let mut body = verdict_section(&both.verdicts);
    if let [first, second] = &both.tick_times[..] {
        body += &section(
            "course",
            "Median tick over time",
            "The median tick time of each point, A and B on the same axes.",
            &timeline(first, second).markup(),
        );
    }
    for (nth, group) in both.groups.iter().enumerate() {
        body += &group_section(nth, group);
    }
    let body = head + &contents(&body) + &body;
    document("throng: changes", &body)
}

/// The section of expectations whose verdict changed.
fn verdict_section(changed: &[VerdictChange]) -> String {
    if changed.is_empty() {
        return String::new();
    }
    let row = |one: &VerdictChange| {
        let class = match one.is_better() {
            Some(true) => "good",
            Some(false) => "bad",
            None => "open",
        };
        vec![
            text(&one.expected),
            format!(
                "<span class=\"chip {class}\">{}</span>",
                text(&one.change())
            ),
        ]
    };
    let rows: Vec<Vec<String>> = changed.iter().map(row).collect();
    let body = format!(
        "<div class=\"expectations\">{}</div>",
        html_table(&["expected", "A → B"], &rows)
    );
    let about = "Expectations whose verdict differs in B.";
    section("verdicts", "Changed expectations", about, &body)
}

/// The tick times of both runs, on the axis of the longer one.
fn timeline(first: &(f64, Vec<f64>), second: &(f64, Vec<f64>)) -> Plot {
    let seconds = first.0.max(second.0);
    // Spikes at the start would make all other values unreadable.
    let mut all: Vec<f64> = [first, second]
        .iter()
        .flat_map(|one| one.1.iter().copied())
        .collect();
    all.sort_unstable_by(f64::total_cmp);
    let top = all.get(all.len() * 98 / 100).copied().unwrap_or(1.0);
    let axis = Axis::up_to(top * 1.2, 4);
    let of = |one: &(f64, Vec<f64>), class: &str| {
        let places = BucketLayout {
            count: one.1.len(),
            length: one.1.len() as f64 * seconds / one.0.max(1e-9),
        };
        let shares: Vec<f64> = one.1.iter().map(|ms| axis.position(*ms)).collect();
        line(&places, class, &shares)
    };
    let is_long = seconds > 240.0;
    Plot {
        title: "Tick time".to_owned(),
        unit: "ms".to_owned(),
        height_px: 220,
        x_marks: marks(&Axis::of_time(seconds, 10), |s| clock(s, is_long)),
        x_unit: if is_long { "min:s" } else { "s" }.to_owned(),
        y_marks: marks(&axis, figure),
        svg: of(first, "other") + &of(second, "s-navigate"),
        legend: vec![
            ("other".to_owned(), "A".to_owned(), String::new()),
            ("s-navigate".to_owned(), "B".to_owned(), String::new()),
        ],
        ..Plot::default()
    }
}

fn group_section(nth: usize, group: &ChangeGroup) -> String {
    // A factor of four fills the bar; a factor of two, half of it.
    let sway = |one: &FigureChange| {
        let share = (one.size() / (2.0 * std::f64::consts::LN_2)).min(1.0);
        let class = if one.to > one.from { "more" } else { "less" };
        format!(
            "<span class=\"sway\"><b class=\"{class}\" style=\"width:{}%\"></b></span>",
            digits(share * 100.0)
        )
    };
    let row = |one: &FigureChange| {
        let (class, word) = match one.is_better {
            Some(_) if one.is_within_spread => ("open", "within the spread"),
            Some(true) => ("good", "better"),
            Some(false) => ("bad", "worse"),
            None => ("", ""),
        };
        vec![
            format!("{} <small>{}</small>", text(&one.name), text(&one.unit)),
            figure(one.from),
            figure(one.to),
            format!("{}<small class=\"{class}\">{word}</small>", one.change()),
            sway(one),
        ]
    };
    let rows: Vec<Vec<String>> = group.changes.iter().map(row).collect();
    let mut body = match rows.len() {
        0 => "<p class=\"none\">No change.</p>".to_owned(),
        _ => format!(
            "<div class=\"moved\">{}</div>",
            html_table(&["", "A", "B", "B / A", "less, more"], &rows)
        ),
    };
    for (letter, lone) in ["A", "B"].iter().zip(&group.only_in_one) {
        if let Some(line) = only_in_one_line(letter, lone) {
            body += &format!("<p class=\"none\">{}</p>", text(&line));
        }
    }
    let about = format!(
        "The largest change first, by ratio; a bar to the right means more in B. {} figures did not change.",
        group.unchanged_count
    );
    let mut title = group.title.to_owned();
    title[..1].make_ascii_uppercase();
    section(&format!("moved-{nth}"), &title, &about, &body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WIDTH;
    use crate::page::html::is_well_formed;

    fn both() -> Comparison {
        let one = |name: &str, from, to| FigureChange {
            name: name.to_owned(),
            unit: "ms".to_owned(),
            from,
            to,
            is_better: Some(to < from),
            is_within_spread: to == 3.0,
        };
        let mut moves = vec![
            one(
                "a <very> long name of a figure, longer than its column",
                1.0,
                123_456_789.0,
            ),
            one("b", 0.0, 2.0),
            one("c\u{1b}[2J", 4.0, 3.0),
        ];
        moves.extend((0..40).map(|nth| one(&format!("d{nth}"), 1.0, 1.5)));
        Comparison {
            names: ["a&b.json".to_owned(), "b.json".to_owned()],
            titles: ["<town>, ".repeat(20), "siege".to_owned()],
            notes: vec!["Different scenario: `<b>` in A. ".repeat(5)],
            verdicts: vec![VerdictChange {
                expected: "<views> within cap".to_owned(),
                from: Some("passed".to_owned()),
                to: Some("failed".to_owned()),
            }],
            groups: vec![ChangeGroup {
                title: "counted",
                changes: moves,
                unchanged_count: 3,
                only_in_one: [vec!["x".to_owned()], vec!["y".to_owned(), "z".to_owned()]],
            }],
            tick_times: vec![(10.0, vec![1.0, 2.0]), (20.0, vec![])],
        }
    }

    #[test]
    fn terminal_table_has_eighty_columns_and_largest_changes() {
        let table_of = |all| table(&both(), all);
        let shown = table_of(false);
        for line in shown.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        assert!(
            shown.contains("and 19 smaller changes") && !shown.contains('\u{1b}'),
            "{shown}"
        );
        assert!(
            shown.contains("<views> within cap: passed → failed"),
            "{shown}"
        );
        assert!(shown.contains("Only B has 2 figures; the first is `y`."));
        assert!(
            shown.contains("×0.75 ~"),
            "within the spread is marked: {shown}"
        );
        assert!(table_of(true).contains("d39"));
    }

    #[test]
    fn page_is_well_formed_and_has_every_change() {
        let page = page(&both());
        assert_eq!(is_well_formed(&page), Ok(()));
        assert!(page.contains("chip bad\">passed → failed") && page.contains("&lt;views&gt;"));
        assert!(
            page.contains("d39")
                && page.contains("a &lt;very&gt; long")
                && page.contains("within the spread")
        );
    }
}
