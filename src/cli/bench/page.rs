//! All figures as a page that needs nothing else: one file, no scripts, light or dark as the reader has it.

use std::fmt::Write as _;
use std::path::Path;

use super::rows::BenchRow;
use super::table::{number, since_baseline};
use super::{BenchFindings, Interruption};
use crate::cli::Failure;

const HEAD: &str = r#"<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>throng bench</title><style>
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 66rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .3rem .5rem; text-align: right; vertical-align: top; border-top: 1px solid #8884; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; }
td:last-child { white-space: normal; min-width: 9rem; }
td small { color: #777; display: block; max-width: 34rem; }
.bar { background: #0072b2; height: .45rem; margin-top: .2rem; margin-left: auto; }
.broken { color: #d55e00; font-weight: bold; }
dt { float: left; width: 8rem; color: #777; } dd { margin: 0 0 0 8rem; }
</style></head><body><h1>throng bench</h1>
"#;

const LEGEND: &str = "A value is the median of repeats. The ratio is how many times as much the reference takes as \
                      throng: above 1, throng is better. The baseline is an earlier run: what the figure was then, and \
                      how much more or less it is now; within the spread: by no more than its repeats lie apart.";

/// Writes the page.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn write(file: &Path, findings: &BenchFindings) -> Result<(), Failure> {
    std::fs::write(file, page(findings)).map_err(|error| {
        Failure::new(format!(
            "could not write --report {}: {error}",
            file.display()
        ))
    })?;
    tracing::info!("wrote {}", file.display());
    Ok(())
}

fn page(findings: &BenchFindings) -> String {
    let mut page = HEAD.to_owned();
    // Writing into a string does not fail.
    let _ = write_body(&mut page, findings);
    page.push_str("</body></html>\n");
    page
}

fn write_body(to: &mut String, findings: &BenchFindings) -> std::fmt::Result {
    let machine = &findings.machine;
    let load = machine
        .load_average
        .map_or_else(|| "unknown".to_owned(), number);
    let facts = [
        (
            "processor",
            format!("{}, {} cores", machine.cpu, machine.cores),
        ),
        ("system", machine.os.clone()),
        ("build", format!("throng {}", machine.throng)),
        ("threads", machine.threads.to_string()),
        ("measured", machine.date.clone()),
        ("load before", load),
    ];
    writeln!(to, "<dl>")?;
    for (name, fact) in facts {
        writeln!(to, "<dt>{name}</dt><dd>{}</dd>", escaped(&fact))?;
    }
    writeln!(to, "</dl>")?;
    let stopped = findings.interrupted.iter().map(Interruption::line);
    for note in findings.notes().into_iter().chain(stopped) {
        writeln!(to, "<p class=\"broken\">{}</p>", escaped(&note))?;
    }
    writeln!(to, "<p>{}</p>", escaped(LEGEND))?;
    let mut system = "";
    for row in &findings.rows {
        if row.system != system {
            let end = if system.is_empty() { "" } else { "</table>" };
            system = row.system;
            writeln!(
                to,
                "{end}<h2>{system}</h2><table><tr><th></th><th>value</th><th>least to most</th>\
                 <th>reference</th><th>ratio</th><th>baseline</th></tr>"
            )?;
        }
        write_row(to, row)?;
    }
    writeln!(to, "</table>")
}

fn write_row(to: &mut String, row: &BenchRow) -> std::fmt::Result {
    let optional = |value: Option<String>| value.unwrap_or_default();
    let (value, unit) = (number(row.value), row.unit);
    let spread = row.spread;
    let spread = spread.map(|spread| format!("{} to {}", number(spread.min), number(spread.max)));
    let beside = row.reference.zip(row.reference_value);
    let beside = beside.map(|(name, value)| format!("{}: {} {unit}", escaped(name), number(value)));
    // A bar as long as the reference's on a scale of hundredfold, so that 10 times is in its middle.
    let bar = row.ratio.filter(|ratio| *ratio > 0.0).map(|ratio| {
        let share = (ratio.max(1.0).log10() / 2.0).min(1.0) * 100.0;
        let times = number(ratio);
        format!("{times}×<div class=\"bar\" style=\"width:{share:.0}%\"></div>")
    });
    let baseline = since_baseline(row).map(|since| escaped(&since));
    write!(
        to,
        "<tr><td>{}<small>{}</small>",
        escaped(&row.case),
        escaped(&row.about)
    )?;
    for (text, holds) in [(&row.compared, row.agrees), (&row.target, row.meets)] {
        if let (Some(text), Some(holds)) = (text, holds) {
            let class = if holds { "" } else { " class=\"broken\"" };
            let word = if holds { "holds" } else { "does not hold" };
            write!(to, "<small{class}>{word}: {}</small>", escaped(text))?;
        }
    }
    writeln!(
        to,
        "</td><td>{value} {unit}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
        optional(spread),
        optional(beside),
        optional(bar),
        optional(baseline)
    )
}

/// A text that is no markup.
fn escaped(text: &str) -> String {
    let replaced = text.replace('&', "&amp;").replace('<', "&lt;");
    replaced.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::bench::machine::BenchMachine;

    #[test]
    fn a_page_has_every_row_and_no_markup_but_its_own() {
        let row = BenchRow::repeated("nav", "a <town>", &[1.0, 2.0, 3.0], "us")
            .beside("astar", 20.0)
            .about("A & B.")
            .comparing("the lengths", false)
            .since(1.5, None);
        let findings = BenchFindings {
            machine: BenchMachine::here(1),
            is_quick: true,
            interrupted: None,
            busy: vec!["load > 1".to_owned()],
            baseline_warnings: Vec::new(),
            rows: vec![row, BenchRow::new("aoi", "links", 5.0, "links")],
        };
        let page = page(&findings);
        assert_eq!(page.matches("<tr><td>").count(), 2);
        assert_eq!(
            page.matches("<table>").count(),
            page.matches("</table>").count()
        );
        for text in [
            "a &lt;town&gt;",
            "A &amp; B.",
            "1.00 to 3.00",
            "10.0×",
            "astar: 20.0 us",
            "1.50 us, now 33 % more",
            "load &gt; 1",
        ] {
            assert!(page.contains(text), "{text} in {page}");
        }
        assert!(page.contains("does not hold: the lengths"), "{page}");
    }
}
