//! Everything over time, on one axis: the script, tick times, objects, views, queues, bytes.

use super::PageRun;
use crate::page::chart::{BucketLayout, Plot, band, line, marks, stacked, vertical_lines};
use crate::page::html::{self, short, text};
use crate::page::numbers::{bytes, clock, count, figure, fixed};
use crate::page::scale::Axis;
use throng::sim::SimSystems;
use throng_scenario::RunRecord;
use throng_scenario::record::CueRecord;

/// From this time on the axis is in minutes.
const LONG_S: f64 = 240.0;

/// A spike is cut off at this multiple of the 99th percentile.
const CUT_TIMES: f64 = 2.0;

/// Cues whose times are drawn through all plots; with more of them one would see nothing else.
const CUE_LINES_MAX: usize = 40;

/// The class of a set's colour.
pub(super) fn set_class(name: &str) -> &'static str {
    match name {
        "ingest" => "s-ingest",
        "think" => "s-think",
        "navigate" => "s-navigate",
        "move" => "s-move",
        "locate" => "s-locate",
        "view" => "s-view",
        "heartbeat" => "s-heartbeat",
        "replicate" => "s-replicate",
        _ => "s-send",
    }
}

/// What all plots of a run share.
struct Timeline<'a> {
    run: &'a PageRun,
    record: &'a RunRecord,
    places: BucketLayout,
    seconds: f64,
    x_marks: Vec<(f64, String)>,
    /// What is behind every drawing: the start, and the cues.
    background: String,
}

/// What a line or an area of a plot is.
struct TimelineSeries {
    /// The column of the record.
    column: &'static str,
    class: &'static str,
    name: &'static str,
    /// What a value is multiplied by.
    scale: f64,
}

/// All plots over time.
pub(super) fn section(run: &PageRun, record: &RunRecord) -> String {
    if record.ticks == 0 {
        return String::new();
    }
    let course = Timeline::new(run, record);
    let mut body = lanes(&course);
    body += &tick_times(&course).markup();
    for plot in [
        clients(&course),
        links(&course),
        changes(&course),
        queues(&course),
        paths(&course),
        sent(&course),
    ] {
        body += &plot.map_or_else(String::new, |plot| plot.markup());
    }
    let bucket = match record.bucket_ticks {
        1 => "Each point is a tick.".to_owned(),
        ticks => format!("Each point is the mean of {ticks} ticks."),
    };
    let start = match record.start_up_ticks {
        0 => String::new(),
        ticks => format!(" The shaded {} are the start.", count(ticks, "tick")),
    };
    let about = format!(
        "All plots share one axis of simulated time, of {} s. {bucket}{start} A dotted line is a cue of the script.",
        figure(course.seconds)
    );
    let body = format!(
        "<div class=\"course\" data-seconds=\"{}\">{body}</div>",
        course.seconds
    );
    html::section("course", "What happened when", &about, &body)
}

impl<'a> Timeline<'a> {
    /// In front of the largest of the points, which are means where they hold many ticks.
    const fn max_prefix(&self) -> &'static str {
        if self.record.bucket_ticks > 1 {
            "a point at most"
        } else {
            "at most"
        }
    }

    fn new(run: &'a PageRun, record: &'a RunRecord) -> Self {
        let hz = record.tick_hz.max(1e-9);
        let seconds = record.ticks as f64 / hz;
        let bucket_ticks = record.bucket_ticks.max(1) as f64;
        let places = BucketLayout {
            count: record.tick_p50_ms.len(),
            length: record.ticks as f64 / bucket_ticks,
        };
        let start = record.start_up_ticks as f64 / record.ticks as f64;
        let mut ran: Vec<usize> = record
            .cues
            .iter()
            .flat_map(|cue| cue.buckets.iter().map(|ran| ran.0))
            .collect();
        ran.sort_unstable();
        ran.dedup();
        let mut behind = band("start", 0.0, start);
        if ran.len() <= CUE_LINES_MAX {
            behind += &vertical_lines("cue", ran.iter().map(|nth| places.start(*nth)));
        }
        let axis = Axis::of_time(seconds, 10);
        Self {
            run,
            record,
            x_marks: marks(&axis, |s| clock(s, seconds > LONG_S)),
            places,
            seconds,
            background: behind,
        }
    }

    fn values(&self, column: &str, scale: f64) -> Vec<f64> {
        let series = self
            .record
            .series
            .get(column)
            .map_or(&[][..], Vec::as_slice);
        let mut values: Vec<f64> = series.iter().map(|value| value * scale).collect();
        values.resize(self.places.count, 0.0);
        values
    }

    fn plot(&self, title: &str, unit: &str, caption: String, height_px: u32) -> Plot {
        Plot {
            title: title.to_owned(),
            unit: unit.to_owned(),
            caption,
            height_px,
            x_marks: self.x_marks.clone(),
            x_unit: if self.seconds > LONG_S { "min:s" } else { "s" }.to_owned(),
            svg: self.background.clone(),
            ..Plot::default()
        }
    }

    /// Lines of what is there and what happens; `None` where nothing ever was.
    fn lines(&self, mut plot: Plot, all: &[TimelineSeries]) -> Option<Plot> {
        let drawn: Vec<(&TimelineSeries, Vec<f64>, f64)> = all
            .iter()
            .map(|series| {
                let values = self.values(series.column, series.scale);
                let most = values.iter().copied().fold(0.0, f64::max);
                (series, values, most)
            })
            .filter(|(.., most)| *most > 0.0)
            .collect();
        if drawn.is_empty() {
            return None;
        }
        let (axis, beyond) = self.axis(drawn.iter().map(|(_, values, _)| values.as_slice()));
        plot.caption += beyond;
        for (series, values, most) in drawn {
            let shares: Vec<f64> = values.iter().map(|value| axis.position(*value)).collect();
            plot.svg += &line(&self.places, series.class, &shares);
            plot.legend.push((
                series.class.to_owned(),
                series.name.to_owned(),
                format!("{} {}", self.max_prefix(), figure(most)),
            ));
        }
        plot.y_marks = marks(&axis, figure);
        Some(plot)
    }

    /// An axis that fits the values after the start, in which all objects spawn at once, and a note about the start.
    fn axis<'v>(&self, all: impl Iterator<Item = &'v [f64]>) -> (Axis, &'static str) {
        let start = self
            .record
            .start_up_ticks
            .div_ceil(self.record.bucket_ticks.max(1)) as usize;
        let (mut most, mut later) = (0.0f64, 0.0f64);
        for values in all {
            most = values.iter().copied().fold(most, f64::max);
            later = values.iter().skip(start).copied().fold(later, f64::max);
        }
        if later > 0.0 && most > 2.0 * later {
            (Axis::up_to(later, 3), " The start goes beyond the top.")
        } else {
            (Axis::up_to(most, 3), "")
        }
    }

    fn hz(&self) -> f64 {
        self.record.tick_hz
    }
}

const fn gauge_series(
    column: &'static str,
    class: &'static str,
    name: &'static str,
) -> TimelineSeries {
    rate_series(column, class, name, 1.0)
}

const fn rate_series(
    column: &'static str,
    class: &'static str,
    name: &'static str,
    scale: f64,
) -> TimelineSeries {
    TimelineSeries {
        column,
        class,
        name,
        scale,
    }
}

/// The script: a lane a cue, with a mark where it ran.
fn lanes(course: &Timeline) -> String {
    let record = course.record;
    let lane = |(nth, cue): (usize, &CueRecord)| {
        let ran: String = vertical_lines(
            "ran",
            cue.buckets.iter().map(|(nth, _)| course.places.start(*nth)),
        );
        let about = cue.object_count.map_or_else(String::new, |about| {
            format!(", about {}", count(about, "object"))
        });
        let times = match cue.run_count {
            0 => "never ran".to_owned(),
            1 => format!("ran once{about}"),
            ran => format!("ran {} times{about}", figure(ran as f64)),
        };
        format!(
            "<div class=\"lane\"><p><b>{}</b> <code title=\"{}\">{}</code> <small>{times}; {}</small></p>\
             <div class=\"canvas\"><svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"cue {}\">\
             <path class=\"grid\" d=\"M0 50H1000\"/>{ran}</svg></div></div>\n",
            nth + 1,
            text(&cue.text),
            short(&cue.text, 110),
            text(&cue.location),
            nth + 1,
        )
    };
    let lanes: String = record.cues.iter().enumerate().map(lane).collect();
    if lanes.is_empty() {
        return "<p class=\"none\">The scenario has no script.</p>".to_owned();
    }
    let more = match record.unlisted_cues {
        0 => String::new(),
        more => format!(
            "<p class=\"none\">{} more are not shown.</p>",
            count(more, "cue")
        ),
    };
    format!(
        "<figure class=\"lanes\"><figcaption><b>The script</b> <span class=\"says\">Its cues, and when each ran.</span></figcaption>{lanes}{more}</figure>"
    )
}

/// Sets on top of each other, with the median and the longest tick of each bucket.
fn tick_times(course: &Timeline) -> Plot {
    let record = course.record;
    let axis = time_axis(course);
    let share = |ms: &f64| ms / axis.end;
    let sets: Vec<(String, Vec<f64>)> = SimSystems::STEPS
        .iter()
        .map(|set| {
            let values = course.values(&format!("{}_ms", set.name()), 1.0);
            let class = set_class(set.name()).to_owned();
            (class, values.iter().map(share).collect())
        })
        .collect();
    let cut = record.tick_max_ms.iter().filter(|ms| **ms > axis.end);
    let cut = match cut.count() as u64 {
        0 => String::new(),
        cut => {
            let most = record.tick_max_ms.iter().copied().fold(0.0, f64::max);
            let points = count(cut, "point");
            format!(
                " The longest tick is cut off above at {points}, up to {} ms.",
                fixed(most, 1)
            )
        }
    };
    let caption =
        format!("Sets on top of each other, as a tick runs them from the bottom up.{cut}");
    let mut plot = course.plot("Time of a tick", "ms", caption, 260);
    plot.svg += &stacked(&course.places, &sets);
    plot.y_marks = marks(&axis, figure);
    plot.legend = SimSystems::STEPS
        .iter()
        .map(|set| {
            let mean = course
                .run
                .number(&format!("systems.{}.mean_ms", set.name()));
            let class = set_class(set.name()).to_owned();
            (
                class,
                set.name().to_owned(),
                format!("{} ms", fixed(mean, 2)),
            )
        })
        .collect();
    if record.bucket_ticks > 1 {
        for (class, values) in [
            ("longest", &record.tick_max_ms),
            ("median", &record.tick_p50_ms),
        ] {
            let shares: Vec<f64> = values.iter().map(share).collect();
            plot.svg += &line(&course.places, class, &shares);
            let name = format!("{class} tick");
            plot.legend
                .push((format!("line-key {class}"), name, String::new()));
        }
    }
    plot
}

/// The axis of the times of ticks: up to the longest, but where spikes would press all else flat.
fn time_axis(course: &Timeline) -> Axis {
    let record = course.record;
    let start = (record.start_up_ticks / record.bucket_ticks.max(1)) as usize;
    let later = record.tick_max_ms.get(start..);
    let later = later.filter(|later| !later.is_empty());
    let later = later.unwrap_or(&record.tick_max_ms);
    let longest = later.iter().copied().fold(0.0, f64::max);
    let p99 = course.run.number("tick_ms.p99");
    let top = if p99 > 0.0 {
        longest.min(CUT_TIMES * p99)
    } else {
        longest
    };
    Axis::up_to(top, 4)
}

fn clients(course: &Timeline) -> Option<Plot> {
    let caption = "Objects of all scenes, and the clients that are logged in.".to_owned();
    let plot = course.plot("Who was there", "objects, clients", caption, 110);
    course.lines(
        plot,
        &[
            gauge_series("objects", "c1", "objects"),
            gauge_series("clients", "c2", "clients"),
        ],
    )
}

fn links(course: &Timeline) -> Option<Plot> {
    let caption =
        "How many times somebody saw somebody after a tick; a link is one direction.".to_owned();
    let plot = course.plot("View links", "links", caption, 110);
    course.lines(plot, &[gauge_series("links", "c3", "links")])
}

fn changes(course: &Timeline) -> Option<Plot> {
    let caption = "Links that began and ended; an eviction is a link that gave way to one of higher priority.".to_owned();
    let plot = course.plot("Changes of views", "links a second", caption, 110);
    let hz = course.hz();
    let all = [
        rate_series("enters", "c2", "enters", hz),
        rate_series("leaves", "c4", "leaves", hz),
        rate_series("evictions", "c5", "evictions", hz),
    ];
    course.lines(plot, &all)
}

fn queues(course: &Timeline) -> Option<Plot> {
    let caption = "What waited after a tick.".to_owned();
    let plot = course.plot("Queues", "things that wait", caption, 110);
    let all = [
        gauge_series("messages_waiting", "c1", "messages of clients"),
        gauge_series("paths_waiting", "c3", "path requests"),
        gauge_series("parties_waiting", "c5", "parties for a match"),
        gauge_series("login_queue", "c4", "players in the login queue"),
    ];
    course.lines(plot, &all)
}

fn paths(course: &Timeline) -> Option<Plot> {
    let caption = "Requests for paths, and players who log in and out.".to_owned();
    let plot = course.plot("Paths and sessions", "events a second", caption, 110);
    let hz = course.hz();
    let all = [
        rate_series("path_requests", "c3", "path requests", hz),
        rate_series("logins", "c2", "logins", hz),
        rate_series("logouts", "c4", "logouts", hz),
    ];
    course.lines(plot, &all)
}

/// Bytes a second by kind of message, on top of each other.
fn sent(course: &Timeline) -> Option<Plot> {
    let kinds = [
        ("move_bytes", "k-moves", "motions"),
        ("delta_bytes", "k-deltas", "deltas"),
        ("snapshot_bytes", "k-snapshots", "snapshots"),
        ("despawn_bytes", "k-despawns", "despawns"),
        ("unseen_update_bytes", "k-unseen_updates", "unseen"),
        ("announcement_bytes", "k-announcements", "announcements"),
    ];
    let hz = course.hz();
    let all = course.values("sent_bytes", hz);
    let most = all.iter().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let (axis, beyond) = course.axis(std::iter::once(all.as_slice()));
    let mut headers = all.clone();
    let mut stack = Vec::new();
    let mut legend = Vec::new();
    for (column, class, name) in kinds {
        let values = course.values(column, hz);
        let sum: f64 = values.iter().sum();
        for (header, value) in headers.iter_mut().zip(&values) {
            *header = (*header - value).max(0.0);
        }
        if sum > 0.0 {
            stack.push((
                class.to_owned(),
                values.iter().map(|value| value / axis.end).collect(),
            ));
            legend.push((class.to_owned(), name.to_owned(), String::new()));
        }
    }
    stack.push((
        "k-headers".to_owned(),
        headers.iter().map(|value| value / axis.end).collect(),
    ));
    legend.push((
        "k-headers".to_owned(),
        "headers".to_owned(),
        format!("all: {} {} a second", course.max_prefix(), bytes(most)),
    ));
    let caption = format!("What all clients together were sent, by kind of message.{beyond}");
    let mut plot = course.plot("Sent to clients", "bytes a second", caption, 130);
    plot.svg += &stacked(&course.places, &stack);
    plot.y_marks = marks(&axis, bytes);
    plot.legend = legend;
    Some(plot)
}
