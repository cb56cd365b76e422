//! Tick times: their distribution, the share of each set, and why the slowest ticks were slow.

use std::collections::BTreeMap;

use super::PageRun;
use super::timeline::set_class;
use crate::page::chart::{Plot, bars, cell_bar, digits, marks, vertical_lines};
use crate::page::explain::reasons;
use crate::page::html::{self, short, table};
use crate::page::numbers::{count, figure, fixed};
use crate::page::scale::Axis;
use throng::sim::SimSystems;
use throng_scenario::RunRecord;
use throng_scenario::record::{SlowestTick, TimeBin};

/// The section with the histogram, the table of sets, and the slowest ticks.
pub(super) fn section(run: &PageRun) -> String {
    let start = &run.report["start_up"];
    let left_out = match start["ticks"].as_u64() {
        Some(ticks) => format!(
            " The {ticks} ticks of the start, in which caches are cold and all objects appear, are not counted: the longest of them took {} ms.",
            fixed(start["max_ms"].as_f64().unwrap_or(0.0), 2)
        ),
        None => String::new(),
    };
    let mut body = String::new();
    if let Some(record) = run
        .record
        .as_ref()
        .filter(|record| !record.tick_times.is_empty())
    {
        body += &histogram(run, &record.tick_times).markup();
    }
    body += &sets(run);
    if let Some(record) = run
        .record
        .as_ref()
        .filter(|record| !record.slowest.is_empty())
    {
        body += &slowest(run, record);
    }
    let about = format!("Wall time of ticks and of their sets.{left_out}");
    html::section("times", "Tick times", &about, &body)
}

/// A histogram of tick times; bins get wider by the same factor.
fn histogram(run: &PageRun, bins: &[TimeBin]) -> Plot {
    let (low, high) = (bins[0].from_ms, bins[bins.len() - 1].to_ms);
    let place = |ms: f64| ((ms / low).ln() / (high / low).ln()).clamp(0.0, 1.0);
    let most = bins.iter().map(|bin| bin.ticks).max().unwrap_or(0) as f64;
    let axis = Axis::up_to(most, 4);
    let drawn = bins.iter().map(|bin| {
        let height = axis.position(bin.ticks as f64);
        (place(bin.from_ms), place(bin.to_ms), height)
    });
    let quantiles =
        ["p50", "p99", "max"].map(|name| (name, run.number(&format!("tick_ms.{name}"))));
    let lines: String = quantiles
        .iter()
        .map(|(name, ms)| vertical_lines(&format!("q-{name}"), [place(*ms)]))
        .collect();
    let mut x_marks = Vec::new();
    for power in -3..=5 {
        for step in [1.0, 2.0, 5.0] {
            let ms = step * 10f64.powi(power);
            if (low..=high).contains(&ms) {
                x_marks.push((place(ms), figure(ms)));
            }
        }
    }
    let legend = quantiles.map(|(name, ms)| {
        let word = match name {
            "p50" => "median (p50)",
            "p99" => "99th percentile (p99)",
            _ => "longest",
        };
        (
            format!("q-{name}"),
            word.to_owned(),
            format!("{} ms", fixed(ms, 2)),
        )
    });
    let ticks = bins
        .iter()
        .fold(0_u64, |sum, bin| sum.saturating_add(bin.ticks));
    Plot {
        title: "Distribution of tick times".to_owned(),
        unit: "ticks".to_owned(),
        caption: format!(
            "{}. The axis is logarithmic; a bin is 9 % wide, and a single tick is still visible.",
            count(ticks, "tick")
        ),
        height_px: 180,
        x_marks,
        x_unit: "ms".to_owned(),
        y_marks: marks(&axis, figure),
        svg: bars("bin", drawn) + &lines,
        legend: legend.into(),
    }
}

/// One row per set: its figures, and its share of the tick.
fn sets(run: &PageRun) -> String {
    let whole = run.number("tick_ms.mean").max(1e-9);
    let figures = ["mean_ms", "p50_ms", "p99_ms", "max_ms"];
    let mut rows: Vec<Vec<String>> = SimSystems::STEPS
        .iter()
        .map(|set| {
            let name = set.name();
            let of = figures.map(|figure| run.number(&format!("systems.{name}.{figure}")));
            let class = set_class(name);
            let mut row = vec![format!(
                "<span class=\"set\"><i class=\"key {class}\"></i>{name}</span>"
            )];
            row.extend(of.map(|ms| fixed(ms, 3)));
            row.push(format!("{} %", fixed(100.0 * of[0] / whole, 0)));
            row.push(cell_bar(class, of[0] / whole, None));
            row
        })
        .collect();
    let tick = ["mean", "p50", "p99", "max"].map(|name| run.number(&format!("tick_ms.{name}")));
    let mut last = vec!["<b>tick</b>".to_owned()];
    last.extend(tick.map(|ms| format!("<b>{}</b>", fixed(ms, 3))));
    last.extend([String::new(), String::new()]);
    rows.push(last);
    table(
        &[
            "set",
            "mean ms",
            "p50 ms",
            "p99 ms",
            "max ms",
            "share of mean",
            "",
        ],
        &rows,
    )
}

/// The slowest ticks, each with the times of its sets and the likely causes.
fn slowest(run: &PageRun, record: &RunRecord) -> String {
    let longest = record.slowest.iter().map(tick_ms).fold(1e-9, f64::max);
    let p50 = |set: &str| run.number(&format!("systems.{set}.p50_ms"));
    let item = |slow: &SlowestTick| {
        let cues = slow.cues.iter().map(|&nth| {
            let cue = record.cues.get(nth);
            let words = cue.map_or_else(String::new, |cue| {
                format!(" <code>{}</code>", short(&cue.text, 70))
            });
            format!("<b>cue {}</b> ran{words}", nth.saturating_add(1))
        });
        let mut causes: Vec<String> = cues.take(3).collect();
        causes.extend(reasons(&slow.values, &record.means, p50));
        format!(
            "<li><div class=\"when\"><strong>{} ms</strong> <span>tick {}, {} s</span></div>{}<p>{}.</p></li>\n",
            fixed(tick_ms(slow), 2),
            figure(slow.tick as f64),
            figure(slow.tick as f64 / record.tick_hz.max(1e-9)),
            parts(&slow.values, longest),
            causes.join("; "),
        )
    };
    let items: String = record.slowest.iter().map(item).collect();
    format!(
        "<h3>The slowest ticks</h3><p class=\"about\">Each bar is a tick, divided into its sets, on one scale; next to it is what was \
         unusual in it.</p><ol class=\"slow\">{items}</ol>\n"
    )
}

fn tick_ms(slow: &SlowestTick) -> f64 {
    slow.values.get("tick_ms").copied().unwrap_or(0.0)
}

/// The times of the sets of a tick, as a bar.
fn parts(figures: &BTreeMap<String, f64>, longest: f64) -> String {
    let part = |set: &SimSystems| {
        let ms = figures
            .get(&format!("{}_ms", set.name()))
            .copied()
            .unwrap_or(0.0);
        let (class, name) = (set_class(set.name()), set.name());
        let share = 100.0 * ms / longest;
        (share >= 0.05).then(|| {
            format!(
                "<b class=\"{class}\" style=\"width:{}%\" title=\"{name} {} ms\"></b>",
                digits(share),
                fixed(ms, 2)
            )
        })
    };
    let all: String = SimSystems::STEPS.iter().filter_map(part).collect();
    format!("<div class=\"parts\">{all}</div>")
}
