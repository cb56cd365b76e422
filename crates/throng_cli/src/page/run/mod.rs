//! The page of a run.
//!
//! | file | holds |
//! |---|---|
//! | `timeline.rs` | everything over time: the script, times, views, queues, bytes |
//! | `facts.rs` | the facts, and the command to repeat the run; all figures |
//! | `expectations.rs` | expectations and their margins |
//! | `times.rs` | tick times, and why the slowest ticks were slow |

mod expectations;
mod facts;
mod timeline;
mod times;

pub(crate) use facts::flatten;
use serde_json::Value;

use super::chart::cell_bar;
use super::contents::contents;
use super::embed::{self, PageImage};
use super::html::{document, section, table, text};
use super::numbers::{bytes, figure, fixed};
use crate::machine::Machine;
use throng_scenario::{RunRecord, rename_former_keys};

/// The output of `--json` of a run.
#[derive(Clone, Debug)]
pub(crate) struct PageRun {
    /// The report, without its record.
    pub report: Value,
    /// The record, if there is one.
    pub record: Option<RunRecord>,
    pub machine: Option<Machine>,
    pub command: Vec<String>,
}

impl PageRun {
    /// Parses the output.
    ///
    /// # Errors
    /// What is wrong, as text.
    pub fn parse(json: &str) -> Result<Self, String> {
        let report =
            serde_json::from_str(json).map_err(|error| format!("expected JSON: {error}"))?;
        Self::from_json(report)
    }

    /// Takes the parts of the report out of a JSON value.
    ///
    /// # Errors
    /// What is missing, as text.
    pub fn from_json(mut report: Value) -> Result<Self, String> {
        let expected = "expected what `throng run --json` prints";
        rename_former_keys(&mut report);
        let fields = report
            .as_object_mut()
            .ok_or_else(|| format!("{expected}, an object"))?;
        for field in ["scenario", "state_hash", "tick_ms", "systems", "ticks"] {
            if !fields.contains_key(field) {
                return Err(format!("{expected}, found no `{field}`"));
            }
        }
        fn part<T: serde::de::DeserializeOwned>(
            value: Option<Value>,
            name: &str,
        ) -> Result<Option<T>, String> {
            let read = value.map(serde_json::from_value).transpose();
            read.map_err(|error| format!("`{name}`: {error}"))
        }
        Ok(Self {
            record: part(fields.remove("record"), "record")?,
            machine: part(fields.remove("machine"), "machine")?,
            command: part(fields.remove("command"), "command")?.unwrap_or_default(),
            report,
        })
    }

    /// A figure by its path in the report: `paths.found`.
    pub fn number(&self, name: &str) -> f64 {
        let mut steps = name.split('.');
        let found = steps.try_fold(&self.report, |at, step| at.get(step));
        found.and_then(Value::as_f64).unwrap_or(0.0)
    }

    /// A text by its name in the report.
    pub fn text(&self, name: &str) -> &str {
        self.report
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

/// The whole page, with images of the run.
pub(crate) fn page(run: &PageRun, images: &[PageImage]) -> String {
    let mut body = expectations::section(run);
    body += &embed::images(images);
    if let Some(record) = &run.record {
        body += &timeline::section(run, record);
    }
    body += &times::section(run);
    if let Some(record) = &run.record {
        body += &grounds(record);
    } else {
        body += "<p class=\"none\">This file has no record of the run over time, which needs \
                 <code>--json --report</code>.</p>";
    }
    body += &kinds(run);
    body += &facts::section(run);
    let body = head(run) + &contents(&body) + &body;
    document(&format!("{}: a run of throng", run.text("scenario")), &body)
}

/// The head of the page: the name, the outcome, and the most important figures.
fn head(run: &PageRun) -> String {
    let (verdict, class) = expectations::verdict(run);
    // A seed is an identifier, so it is not formatted as an amount.
    let seed = run.report.get("seed").map(Value::to_string);
    format!(
        "<header><p class=\"kicker\">throng · a run</p><h1>{}</h1><p class=\"verdict {class}\">{verdict}</p>\
         <p class=\"seed\">seed {} · {} ticks · {} · state hash <code>{}</code></p></header>\n<ul class=\"tiles\">{}</ul>\n",
        text(run.text("scenario")),
        text(&seed.unwrap_or_default()),
        figure(run.number("ticks")),
        crate::threads(run.number("threads") as usize),
        text(run.text("state_hash")),
        tiles(run),
    )
}

/// The most important figures, in large type.
fn tiles(run: &PageRun) -> String {
    let number = |name: &str| run.number(name);
    let whole = |name: &str| figure(run.number(name));
    let ms = |name: &str| fixed(run.number(name), 2);
    let speed = number("sim_seconds") / number("wall_seconds").max(1e-9);
    let all = [
        (
            "p99 tick time",
            (ms("tick_ms.p99"), "ms"),
            format!(
                "median {} ms, maximum {} ms",
                ms("tick_ms.p50"),
                ms("tick_ms.max")
            ),
        ),
        (
            "speed",
            (format!("{}×", figure(speed)), "real time"),
            format!(
                "{} s simulated in {} s",
                whole("sim_seconds"),
                whole("wall_seconds")
            ),
        ),
        (
            "most objects",
            (whole("objects.peak"), ""),
            format!(
                "{} players and {} NPCs at the end",
                whole("objects.players"),
                whole("objects.npcs")
            ),
        ),
        (
            "sent to a client",
            (bytes(number("sync.bytes_per_client_s")), "a second"),
            format!(
                "{} packets, {}",
                whole("sync.packets"),
                bytes(number("sync.bytes"))
            ),
        ),
        (
            "view links at the end",
            (whole("views.links"), ""),
            format!(
                "{} enters, longest list {}",
                whole("views.enters"),
                whole("views.longest_list")
            ),
        ),
        (
            "paths found",
            (whole("paths.found"), ""),
            format!(
                "of {}; mean {} µs",
                whole("paths.requested"),
                whole("paths.mean_us")
            ),
        ),
    ];
    let tile = |(name, (value, unit), more): &(&str, (String, &str), String)| {
        format!(
            "<li><span>{name}</span><strong>{value}<small> {unit}</small></strong><em>{more}</em></li>"
        )
    };
    all.iter().map(tile).collect()
}

fn grounds(record: &RunRecord) -> String {
    let drawn: String = record
        .scenes
        .iter()
        .enumerate()
        .filter(|(_, ground)| ground.samples > 0)
        .map(|(nth, ground)| super::scene_maps::figures(ground, nth))
        .collect();
    if drawn.is_empty() {
        return String::new();
    }
    let about = "Seen from above, as on the map: north is up, positions are in metres from the upper left corner.";
    section("places", "Where the crowd was", about, &drawn)
}

/// Bytes by kind of message.
fn kinds(run: &PageRun) -> String {
    let all = run.number("sync.bytes");
    if all <= 0.0 {
        return String::new();
    }
    let names = [
        ("moves", "motions of objects in view"),
        ("deltas", "changed attributes"),
        ("snapshots", "objects that entered a view"),
        ("despawns", "objects that left a view"),
        ("unseen_updates", "parties and scenes, in view or not"),
        ("announcements", "chat, shouts, effects"),
    ];
    let mut rows: Vec<(&str, &str, f64)> = names
        .iter()
        .map(|(name, about)| {
            (
                *name,
                *about,
                run.number(&format!("sync.message_bytes.{name}")),
            )
        })
        .collect();
    let named: f64 = rows.iter().map(|row| row.2).sum();
    rows.push(("headers", "of packets and messages", (all - named).max(0.0)));
    rows.sort_by(|a, b| b.2.total_cmp(&a.2));
    let row = |(name, about, found): &(&str, &str, f64)| {
        let bar = cell_bar(&format!("k-{name}"), found / all, None);
        vec![
            format!("{name} <small>{about}</small>"),
            bytes(*found),
            format!("{} %", fixed(100.0 * found / all, 1)),
            bar,
        ]
    };
    let rows: Vec<Vec<String>> = rows.iter().filter(|row| row.2 > 0.0).map(row).collect();
    let about = "All bytes of the packets sent, by kind of message.";
    section(
        "kinds",
        "Traffic to clients",
        about,
        &table(&["kind of message", "bytes", "share", ""], &rows),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::html::is_well_formed;
    use throng_scenario::{LoadedScenario, RunOptions, ScenarioRun};

    /// A scenario in which every name contains markup.
    const HOSTILE: &str = r#"Scenario(
        name: "</title><script>alert(1)</script>&'", duration_s: 3, heartbeat_ticks: 5,
        scenes: [Scene(name: "<b>\"keep", map: Generate(Random(width_tiles: 60, height_tiles: 40, fill: 0.1)))],
        crowds: [
            Crowd(tag: "<i>", kind: "npc", count: 30, behaviour: Wander(radius_m: 9)),
            Crowd(kind: "player", count: 6, client_share: 0.5, behaviour: Wander(radius_m: 9)),
        ],
        script: [Every(t_s: 1, run: Announce(tag: "<i>", scope: Viewers, text: "</code>&<x>"))],
        expect: [TicksUnderMs(ms: 100000, share: 1), Counter(name: "paths.found", at_least: 1)],
    )"#;

    fn played(records: bool) -> Value {
        let loaded = LoadedScenario::from_text("<x>.ron", HOSTILE).unwrap();
        let options = RunOptions {
            record: records,
            ..RunOptions::default()
        };
        let mut run = ScenarioRun::new(loaded, options).unwrap();
        while run.step().unwrap() {}
        serde_json::to_value(run.finish().unwrap()).unwrap()
    }

    #[test]
    fn page_has_the_report_numbers_and_escapes_scenario_texts() {
        let report = played(true);
        let run = PageRun::from_json(report.clone()).unwrap();
        let page = page(&run, &[]);
        assert_eq!(is_well_formed(&page), Ok(()));
        for markup in ["<script>alert", "</title><", "<x>", "<i>\"", "<b>\"keep"] {
            assert!(!page.contains(markup), "{markup}");
        }
        assert!(page.contains("&lt;script&gt;alert(1)") && page.contains("&lt;b&gt;&quot;keep"));
        let mut figures = Vec::new();
        let mut without = report.clone();
        without.as_object_mut().unwrap().remove("record");
        facts::flatten(&without, "", 5, &mut figures);
        assert!(figures.len() > 150, "{}", figures.len());
        for (name, value) in &figures {
            let row = format!("<tr><td>{}</td><td>{value}</td></tr>", text(name));
            assert!(page.contains(&row), "{row}");
        }
        let p99 = fixed(report["tick_ms"]["p99"].as_f64().unwrap(), 2);
        assert!(page.contains(&format!("<strong>{p99}<small> ms")), "{p99}");
        for section in ["expected", "course", "times", "places", "kinds", "facts"] {
            assert!(
                page.contains(&format!("<section id=\"{section}\">"))
                    && page.contains(&format!("<a href=\"#{section}\">")),
                "{section}"
            );
        }
        assert!(page.contains("ran 2 times, about 60 objects"));
        let speed = run.number("sim_seconds") / run.number("wall_seconds");
        let speed = format!("<strong>{}×<small> real time</small>", figure(speed));
        assert!(page.contains(&speed), "{speed}");
    }

    #[test]
    fn record_changes_no_hash_and_matches_the_report() {
        let (with, without) = (played(true), played(false));
        assert_eq!(with["state_hash"], without["state_hash"]);
        assert!(without.get("record").is_none());
        let record: RunRecord = serde_json::from_value(with["record"].clone()).unwrap();
        assert_eq!(
            (record.ticks, record.bucket_ticks, record.start_up_ticks),
            (60, 1, 20)
        );
        let total = |column: &str| record.series[column].iter().sum::<f64>().round();
        for (column, figure) in [
            ("enters", "/views/enters"),
            ("leaves", "/views/leaves"),
            ("path_requests", "/paths/requested"),
            ("sent_bytes", "/sync/bytes"),
            ("move_bytes", "/sync/message_bytes/moves"),
            ("logins", "/clients/logins"),
            ("cues_run", "/script_cues_run"),
        ] {
            assert_eq!(
                Some(total(column)),
                with.pointer(figure).unwrap().as_f64(),
                "{column}"
            );
        }
        let last = |column: &str| record.series[column].last().copied();
        assert_eq!(last("links"), with["views"]["links"].as_f64());
        assert_eq!(last("objects"), Some(36.0));
        let ticks: u64 = record.tick_times.iter().map(|bin| bin.ticks).sum();
        assert_eq!(ticks, 40, "the ticks of the start are not counted");
        let slowest = record.slowest[0].values["tick_ms"];
        assert!((slowest - with["tick_ms"]["max"].as_f64().unwrap()).abs() < 1e-3);
        let ground = &record.scenes[0];
        assert_eq!(
            ground.heat.iter().sum::<u32>() as u64,
            30 + 36 * (ground.samples - 1)
        );
        assert_eq!((ground.samples, ground.tracks.len()), (7, 12));
        assert_eq!((ground.map.len(), ground.map[0].len()), (40, 60));
    }

    #[test]
    fn invalid_run_is_refused_and_run_without_record_is_drawn() {
        for (bad, expected) in [
            ("[]", "an object"),
            ("{}", "no `scenario`"),
            ("{", "expected JSON"),
        ] {
            let error = PageRun::parse(bad).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let mut report = played(false);
        let drawn = page(&PageRun::from_json(report.clone()).unwrap(), &[]);
        assert!(is_well_formed(&drawn).is_ok() && drawn.contains("has no record of the run"));
        // A record that was edited by hand does not cause a panic.
        for (name, value) in [
            ("expectations", "x"),
            ("systems", "x"),
            ("interrupted", "3"),
            ("sync", "1"),
        ] {
            report[name] = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        }
        report["record"] = serde_json::json!({"tick_hz": 0.0});
        assert!(PageRun::from_json(report.clone()).is_err());
        report["record"] = serde_json::to_value(RunRecord {
            ticks: 5,
            ..RunRecord::default()
        })
        .unwrap();
        assert!(is_well_formed(&page(&PageRun::from_json(report).unwrap(), &[])).is_ok());
    }
}
