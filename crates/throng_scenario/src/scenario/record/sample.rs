//! The figures of one tick: their names and their sources.

use std::io::{self, Write};

use bevy_ecs::prelude::*;

use crate::crowd::SyntheticClients;
use throng::aoi::AoiStats;
use throng::inbox::Inbox;
use throng::matchmaking::Matchmaker;
use throng::nav::NavStats;
use throng::outbox::OutboxStats;
use throng::session::{SessionStats, Sessions};
use throng::sim::{Overload, SimSystems, TickTimings};
use throng::sync::SyncStats;
use throng::world::{SceneIds, Scenes};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Wall time of a set or of the whole tick, milliseconds.
    Time,
    /// A current value after the tick.
    Gauge,
    /// The number of events in the tick.
    Count,
}

/// A column of samples: its name in tables and records, with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleColumn {
    /// The name. It ends with the unit, unless the value is a plain count.
    pub name: &'static str,
    /// Whether it is a time, a gauge or an event count.
    pub kind: ColumnKind,
}

const fn time(name: &'static str) -> SampleColumn {
    let kind = ColumnKind::Time;
    SampleColumn { name, kind }
}

const fn gauge(name: &'static str) -> SampleColumn {
    let kind = ColumnKind::Gauge;
    SampleColumn { name, kind }
}

const fn count(name: &'static str) -> SampleColumn {
    let kind = ColumnKind::Count;
    SampleColumn { name, kind }
}

/// Number of columns.
pub(super) const COLUMNS: usize = 38;

/// All columns, in the order of tables.
pub const SAMPLE_COLUMNS: [SampleColumn; COLUMNS] = [
    time("tick_ms"),
    time("ingest_ms"),
    time("think_ms"),
    time("navigate_ms"),
    time("move_ms"),
    time("locate_ms"),
    time("view_ms"),
    time("heartbeat_ms"),
    time("replicate_ms"),
    time("send_ms"),
    gauge("objects"),
    gauge("clients"),
    gauge("login_queue"),
    gauge("links"),
    gauge("messages_waiting"),
    gauge("paths_waiting"),
    gauge("parties_waiting"),
    gauge("overload_level"),
    gauge("mirrors"),
    count("logins"),
    count("logouts"),
    count("enters"),
    count("leaves"),
    count("evictions"),
    count("path_requests"),
    count("paths_found"),
    count("nodes_expanded"),
    count("messages_handled"),
    count("matches"),
    count("packets"),
    count("sent_bytes"),
    count("snapshot_bytes"),
    count("despawn_bytes"),
    count("delta_bytes"),
    count("move_bytes"),
    count("unseen_update_bytes"),
    count("announcement_bytes"),
    count("cues_run"),
];

/// A tick's figures, in the order of [`SAMPLE_COLUMNS`].
#[derive(Clone, Debug)]
pub(super) struct TickSample {
    pub tick: u64,
    pub values: [f64; COLUMNS],
    /// The cues that ran, by their indices in the script.
    pub cues: Vec<usize>,
}

impl TickSample {
    pub const fn tick_ms(&self) -> f64 {
        self.values[0]
    }

    /// A tick with a time and no other figures.
    #[cfg(test)]
    pub fn with_tick_ms(ms: f64, cues: Vec<usize>) -> Self {
        let mut values = [0.0; COLUMNS];
        values[0] = ms;
        Self {
            tick: 0,
            values,
            cues,
        }
    }

    /// Creates the sample of a tick from the totals before and after it: counts become their difference.
    pub fn between(
        tick: u64,
        before: &[f64; COLUMNS],
        mut now: [f64; COLUMNS],
        cues: Vec<usize>,
    ) -> Self {
        for ((value, before), column) in now.iter_mut().zip(before).zip(SAMPLE_COLUMNS) {
            if column.kind == ColumnKind::Count {
                *value -= before;
            }
        }
        Self {
            tick,
            values: now,
            cues,
        }
    }

    /// The header line.
    pub fn write_header(to: &mut impl Write) -> io::Result<()> {
        write!(to, "tick,time_s")?;
        for column in SAMPLE_COLUMNS {
            write!(to, ",{}", column.name)?;
        }
        writeln!(to)
    }

    /// The line of the figures.
    pub fn write_line(&self, tick_hz: f64, to: &mut impl Write) -> io::Result<()> {
        write!(to, "{},{}", self.tick, self.tick as f64 / tick_hz)?;
        for value in self.values {
            write!(to, ",{value}")?;
        }
        writeln!(to)
    }
}

/// The figures of the last tick and of the run so far; events are counted from the start of the run.
pub(super) fn totals(world: &World, cues_run: u64) -> [f64; COLUMNS] {
    let timings = world.resource::<TickTimings>();
    let mut times = [timings.last_ms(None); 10];
    for (time, set) in times[1..].iter_mut().zip(SimSystems::STEPS) {
        *time = timings.last_ms(Some(*set));
    }
    let objects: u64 = world
        .resource::<Scenes>()
        .iter()
        .filter_map(|(_, scene)| world.get::<SceneIds>(scene))
        .map(|objects| u64::from(objects.len()))
        .sum();
    let sessions = world.resource::<Sessions>();
    let session_stats = world.resource::<SessionStats>();
    let views = world.resource::<AoiStats>();
    let inbox = world.resource::<Inbox>();
    let nav = world.resource::<NavStats>();
    let modes = world.resource::<Matchmaker>().modes();
    let (parties, matches) = modes.iter().fold((0, 0), |(parties, matches), mode| {
        (
            parties + mode.waiting_parties(),
            matches + mode.stats().matches,
        )
    });
    let sent = world.resource::<SyncStats>().sent;
    let outbox = world.resource::<OutboxStats>();
    let counted = [
        objects,
        sessions.len() as u64,
        sessions.queue_len() as u64,
        views.links,
        inbox.backlog() as u64,
        nav.waiting,
        parties,
        world.resource::<Overload>().level().number() as u64,
        world.resource::<SyntheticClients>().receiver_count() as u64,
        session_stats.logins,
        session_stats.logouts,
        views.counters.enters,
        views.counters.leaves,
        views.counters.evictions,
        nav.requested,
        nav.found,
        nav.expanded,
        inbox.counters().handled,
        matches,
        outbox.packets,
        outbox.bytes,
        sent.snapshots.bytes,
        sent.despawns.bytes,
        sent.deltas.bytes,
        sent.motions.bytes,
        sent.unseen.bytes,
        sent.announcements.bytes,
        cues_run,
    ];
    let mut all = [0.0; COLUMNS];
    let values = times.into_iter().chain(counted.map(|count| count as f64));
    for (place, value) in all.iter_mut().zip(values) {
        *place = value;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_per_tick_and_gauges_are_current() {
        let mut before = [0.0; COLUMNS];
        let mut now = [5.0; COLUMNS];
        before.fill(2.0);
        now[0] = 1.5;
        let sample = TickSample::between(7, &before, now, Vec::new());
        for (value, column) in sample.values.iter().zip(SAMPLE_COLUMNS).skip(1) {
            let expected = if column.kind == ColumnKind::Count {
                3.0
            } else {
                5.0
            };
            assert_eq!(*value, expected, "{}", column.name);
        }
        assert_eq!(sample.tick_ms(), 1.5);
        let mut text = Vec::new();
        TickSample::write_header(&mut text).unwrap();
        sample.write_line(20.0, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let fields = |line: &str| line.split(',').count();
        let counts: Vec<usize> = text.lines().map(fields).collect();
        assert_eq!(counts, [COLUMNS + 2; 2]);
        assert!(text.lines().nth(1).unwrap().starts_with("7,0.35,1.5,5"));
    }

    #[test]
    fn set_columns_follow_the_tick_in_order() {
        let names = SAMPLE_COLUMNS[1..10].iter().map(|column| column.name);
        let expected = SimSystems::STEPS
            .iter()
            .map(|set| format!("{}_ms", set.name()));
        assert!(names.eq(expected));
    }
}
