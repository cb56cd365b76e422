//! Tick times, and a log message about slow ticks.

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};

use super::RecordedTicks;
use crate::ticks::{SETS, SlowTick, TickWork, TimedTick};
use throng::aoi::AoiStats;
use throng::inbox::Inbox;
use throng::nav::NavStats;
use throng::session::SessionStats;
use throng::sim::{SimSystems, SimTick, TickTimings};
use throng::sync::SyncStats;

/// Maximum number of sets named in the log message about a slow tick.
const CAUSES_MAX: usize = 3;

/// The share of a tick's time from which a set is named as a cause.
const CAUSE_SHARE: f32 = 0.1;

const _: () = assert!(SimSystems::ALL.len() == SETS);

pub(super) fn record_tick(
    mut noted: ResMut<RecordedTicks>,
    tick: Res<SimTick>,
    time: Res<Time<Fixed>>,
    timings: Option<Res<TickTimings>>,
    inbox: Option<Res<Inbox>>,
    sessions: Option<Res<SessionStats>>,
    nav: Option<Res<NavStats>>,
    aoi: Option<Res<AoiStats>>,
    sync: Option<Res<SyncStats>>,
) {
    noted.tick = tick.0;
    let Some(timings) = timings else { return };
    let times = TimedTick {
        tick: tick.0,
        sets_ms: SimSystems::ALL.map(|set| timings.last_ms(Some(set)) as f32),
    };
    let mut totals = TickWork::default();
    if let Some(inbox) = inbox {
        totals.messages = inbox.counters().handled;
    }
    if let Some(sessions) = sessions {
        totals.logins = sessions.logins;
    }
    if let Some(nav) = nav {
        totals.paths = nav.requested - nav.waiting;
        totals.nodes = nav.expanded;
    }
    if let Some(aoi) = aoi {
        totals.links = aoi.counters.enters + aoi.counters.leaves;
    }
    if let Some(sync) = sync {
        totals.snapshots = sync.sent.snapshots.messages;
        totals.bytes = sync.sent.total().bytes;
    }
    let length = time.timestep();
    let told_apart = (1.0 / length.as_secs_f64()).ceil() as u64;
    let limit_ms = length.as_secs_f32() * 1e3;
    if let Some(slow) = noted.history.record(times, totals, limit_ms, told_apart) {
        log_slow_tick(&slow, limit_ms);
    }
}

/// One line with the sets that took the time and the work done in them.
fn log_slow_tick(slow: &SlowTick, limit_ms: f32) {
    let whole_ms = slow.times.total_ms();
    let causes = slow.times.longest();
    let causes: Vec<String> = causes
        .take_while(|(_, ms)| *ms >= whole_ms * CAUSE_SHARE)
        .take(CAUSES_MAX)
        .map(|(set, ms)| format!("{} {ms:.1}", SimSystems::ALL[set].name()))
        .collect();
    let TickWork {
        messages,
        logins,
        paths,
        nodes,
        links,
        snapshots,
        bytes,
    } = slow.work;
    tracing::warn!(
        tick = slow.times.tick,
        ms = (f64::from(whole_ms) * 10.0).round() / 10.0,
        limit_ms = f64::from(limit_ms),
        sets_ms = causes.join(", "),
        messages,
        logins,
        paths,
        nodes,
        links,
        snapshots,
        bytes,
        slow_ticks_since_last_log = slow.unlogged,
        "slow tick"
    );
}
