//! The recorder of a run.

use std::collections::BTreeMap;
use std::io::{self, Write};

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use super::buckets::{BUCKETS_MAX, TickBuckets};
use super::sample::{COLUMNS, ColumnKind, SAMPLE_COLUMNS, TickSample, totals};
use super::scenes::{SceneRecord, SceneRecorder};
use super::times::{TimeBin, TimeCounts};
use crate::scenario::script::{CueCounts, ScenarioScript};

/// Number of slowest ticks kept.
const SLOWEST_MAX: usize = 10;

/// Maximum number of cues whose ticks are recorded.
const CUES_MAX: usize = 24;

/// Simulated time between two samples of all positions.
const SAMPLE_INTERVAL_S: f64 = 0.5;

/// The record of a run: the data of a page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Ticks per simulated second.
    pub tick_hz: f64,
    /// Ticks at the start that are excluded from all times except those of `series`.
    pub start_up_ticks: u64,
    /// All ticks of the record.
    pub ticks: u64,
    /// Ticks per bucket of `series`; the last may have fewer.
    pub bucket_ticks: u64,
    /// The mean per tick of every column of [`SAMPLE_COLUMNS`], by bucket.
    pub series: BTreeMap<String, Vec<f64>>,
    /// The median time of the ticks of a bucket, milliseconds. The relative error is at most 1/20; a single tick is exact.
    pub tick_p50_ms: Vec<f64>,
    /// The longest tick of a bucket, milliseconds.
    pub tick_max_ms: Vec<f64>,
    /// The histogram of tick times, without start-up ticks.
    pub tick_times: Vec<TimeBin>,
    /// The mean of each column per tick, without start-up ticks.
    pub means: BTreeMap<String, f64>,
    /// The cues of the script, in their order.
    pub cues: Vec<CueRecord>,
    /// Number of cues that are not in `cues`.
    #[serde(alias = "more_cues")]
    pub unlisted_cues: u64,
    /// The slowest ticks, slowest first, without start-up ticks.
    pub slowest: Vec<SlowestTick>,
    /// The first scenes of the run.
    #[serde(alias = "grounds")]
    pub scenes: Vec<SceneRecord>,
}

/// A cue, and when it ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CueRecord {
    /// Its location: file, line and column.
    #[serde(alias = "place")]
    pub location: String,
    /// Its text in the file.
    pub text: String,
    /// How often it ran.
    #[serde(alias = "ran")]
    pub run_count: u64,
    /// The total number of affected objects; `None` for a cue that does not act on objects.
    #[serde(alias = "about")]
    pub object_count: Option<u64>,
    /// The buckets in which it ran, and how often in each.
    pub buckets: Vec<(usize, u32)>,
}

/// A slow tick and its figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowestTick {
    /// Its number.
    pub tick: u64,
    /// Its figures by the names of their columns.
    #[serde(alias = "figures")]
    pub values: BTreeMap<String, f64>,
    /// The cues that ran, by their indices in the record.
    pub cues: Vec<usize>,
}

/// The description of a cue before a run.
#[derive(Clone, Debug, Default)]
pub(in crate::scenario) struct CueText {
    pub location: String,
    pub text: String,
}

/// Records a run.
pub(in crate::scenario) struct Recorder {
    tick_hz: f64,
    sample_every: u64,
    csv: Option<Box<dyn Write>>,
    cues: Vec<CueText>,
    /// How often each cue had run before the tick.
    cue_runs: Vec<u64>,
    previous_totals: [f64; COLUMNS],
    buckets: TickBuckets,
    start_up_ticks: u64,
    since_start: SinceStart,
    scenes: SceneRecorder,
}

/// The figures of ticks after start-up.
#[derive(Debug, Default)]
struct SinceStart {
    ticks: u64,
    sums: Vec<f64>,
    times: TimeCounts,
    slowest: Vec<TickSample>,
}

impl SinceStart {
    fn add(&mut self, sample: &TickSample) {
        self.ticks += 1;
        self.sums.resize(COLUMNS, 0.0);
        for (sum, value) in self.sums.iter_mut().zip(sample.values) {
            *sum += value;
        }
        self.times.add(sample.tick_ms());
        // Of equally slow ticks the first is kept.
        let place = (self.slowest).partition_point(|slow| slow.tick_ms() >= sample.tick_ms());
        if place < SLOWEST_MAX {
            self.slowest.truncate(SLOWEST_MAX - 1);
            self.slowest
                .insert(place.min(self.slowest.len()), sample.clone());
        }
    }
}

impl Recorder {
    /// Creates the recorder of a run whose script has these cues. With `csv`, it writes a line per tick there.
    ///
    /// # Errors
    /// When the first line cannot be written.
    pub fn new(
        tick_hz: f64,
        cues: Vec<CueText>,
        mut csv: Option<Box<dyn Write>>,
    ) -> io::Result<Self> {
        if let Some(csv) = &mut csv {
            TickSample::write_header(csv)?;
        }
        Ok(Self {
            tick_hz,
            sample_every: ((SAMPLE_INTERVAL_S * tick_hz).round() as u64).max(1),
            csv,
            cue_runs: vec![0; cues.len()],
            previous_totals: [0.0; COLUMNS],
            buckets: TickBuckets::new(BUCKETS_MAX, cues.len().min(CUES_MAX)),
            cues,
            start_up_ticks: 0,
            since_start: SinceStart::default(),
            scenes: SceneRecorder::default(),
        })
    }

    /// Records the counters before the first tick, as the baseline of the first sample.
    pub fn start(&mut self, world: &World) {
        self.previous_totals = totals(world, 0);
        self.scenes.sample(world);
    }

    /// Records the last tick.
    ///
    /// # Errors
    /// When its line cannot be written.
    pub fn after_tick(&mut self, world: &World, tick: u64) -> io::Result<()> {
        let script = world.get_resource::<ScenarioScript>();
        let cue_counts = script.map_or(&[][..], ScenarioScript::cue_counts);
        let mut cues = Vec::new();
        for (nth, (ran, cue_counts)) in self.cue_runs.iter_mut().zip(cue_counts).enumerate() {
            if cue_counts.run_count > *ran {
                *ran = cue_counts.run_count;
                cues.push(nth);
            }
        }
        let now = totals(world, script.map_or(0, ScenarioScript::cues_run));
        let sample = TickSample::between(tick, &self.previous_totals, now, cues);
        self.previous_totals = now;
        self.buckets.add(&sample);
        self.since_start.add(&sample);
        if tick.is_multiple_of(self.sample_every) {
            self.scenes.sample(world);
        }
        match &mut self.csv {
            Some(csv) => sample.write_line(self.tick_hz, csv),
            None => Ok(()),
        }
    }

    /// Marks the ticks so far as start-up ticks.
    pub fn end_start_up(&mut self, ticks: u64) {
        self.start_up_ticks = ticks;
        self.since_start = SinceStart::default();
    }

    /// The record of the run.
    ///
    /// # Errors
    /// When the last lines cannot be written.
    pub fn finish(mut self, world: &World) -> io::Result<RunRecord> {
        if let Some(csv) = &mut self.csv {
            csv.flush()?;
        }
        let script = world.get_resource::<ScenarioScript>();
        let cue_counts = script.map_or(&[][..], ScenarioScript::cue_counts);
        let cues = self
            .cues
            .into_iter()
            .zip(cue_counts)
            .take(CUES_MAX)
            .enumerate();
        let cues = cues
            .map(|(nth, (text, cue_counts))| cue_record(nth, text, cue_counts, &self.buckets))
            .collect();
        let all = self.buckets.buckets();
        let mean = |column: usize| {
            let means = all
                .iter()
                .map(move |bucket| bucket.sums[column] / bucket.ticks as f64);
            means.map(rounded).collect()
        };
        let columns = SAMPLE_COLUMNS.iter().enumerate();
        let SinceStart {
            ticks: counted,
            sums,
            times,
            slowest,
        } = self.since_start;
        let slow_tick = |sample: TickSample| SlowestTick {
            tick: sample.tick,
            values: by_column(sample.values.iter().copied()),
            cues: sample.cues,
        };
        Ok(RunRecord {
            tick_hz: self.tick_hz,
            start_up_ticks: self.start_up_ticks,
            ticks: all.iter().map(|bucket| bucket.ticks).sum(),
            bucket_ticks: self.buckets.bucket_ticks(),
            series: columns
                .map(|(nth, column)| (column.name.to_owned(), mean(nth)))
                .collect(),
            tick_p50_ms: all
                .iter()
                .map(|bucket| rounded(bucket.times.quantile_ms(0.5)))
                .collect(),
            tick_max_ms: all
                .iter()
                .map(|bucket| rounded(bucket.longest_ms))
                .collect(),
            tick_times: times.bins(),
            means: by_column(sums.iter().map(|sum| sum / counted as f64)),
            cues,
            unlisted_cues: (self.cue_runs.len() as u64).saturating_sub(CUES_MAX as u64),
            slowest: slowest.into_iter().map(slow_tick).collect(),
            scenes: self.scenes.finish(world),
        })
    }
}

fn cue_record(
    nth: usize,
    text: CueText,
    cue_counts: &CueCounts,
    buckets: &TickBuckets,
) -> CueRecord {
    let ran = |(place, count): (usize, u32)| (count > 0).then_some((place, count));
    let counts = buckets.buckets().iter().map(|bucket| bucket.cues[nth]);
    CueRecord {
        location: text.location,
        text: text.text,
        run_count: cue_counts.run_count,
        object_count: cue_counts.object_count,
        buckets: counts.enumerate().filter_map(ran).collect(),
    }
}

/// Figures by the names of their columns. Times are rounded to four decimals, others to three.
fn by_column(values: impl Iterator<Item = f64>) -> BTreeMap<String, f64> {
    let columns = SAMPLE_COLUMNS.iter().zip(values);
    columns
        .map(|(column, value)| {
            let value = if column.kind == ColumnKind::Time {
                rounded(value)
            } else {
                (value * 1e3).round() / 1e3
            };
            (column.name.to_owned(), value)
        })
        .collect()
}

/// Rounds to four decimals: for milliseconds, a tenth of a microsecond.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slowest_ticks_are_kept_in_order_without_start_up() {
        let mut since = SinceStart::default();
        for (tick, ms) in [5.0, 9.0, 1.0, 9.0, 7.0]
            .into_iter()
            .cycle()
            .take(50)
            .enumerate()
        {
            let mut sample = TickSample::with_tick_ms(ms, Vec::new());
            sample.tick = tick as u64;
            since.add(&sample);
        }
        let slowest: Vec<(u64, f64)> = since
            .slowest
            .iter()
            .map(|s| (s.tick, s.tick_ms()))
            .collect();
        let expected = [1, 3, 6, 8, 11, 13, 16, 18, 21, 23].map(|tick| (tick, 9.0));
        assert_eq!(slowest, expected);
        assert_eq!((since.ticks, since.sums[0]), (50, 310.0));
    }
}
