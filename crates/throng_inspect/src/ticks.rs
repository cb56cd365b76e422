//! Tick times: a histogram, the last minute, and the causes of slow ticks.
//!
//! Cost: some additions per tick; no allocation once the minute is full. Bounded: [`TICK_HISTORY_MAX`] ticks and
//! [`SLOW_TICK_HISTORY_MAX`] slow ones.

use std::collections::VecDeque;

/// Sets of a tick.
pub const SETS: usize = 11;

/// Maximum number of kept ticks: a minute at twenty a second.
pub const TICK_HISTORY_MAX: usize = 1_200;

/// Maximum number of kept slow ticks: the newest.
pub const SLOW_TICK_HISTORY_MAX: usize = 64;

/// The upper bounds of the histogram, in seconds. Ticks of 50 ms are late at twenty a second.
pub const TICK_BUCKETS_S: [f64; 14] = [
    0.0005, 0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.25, 1.0,
];

/// The work counters of a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickWork {
    /// Client messages handled.
    pub messages: u64,
    /// Players logged in.
    pub logins: u64,
    /// Path requests answered.
    pub paths: u64,
    /// Nodes expanded by path searches.
    pub nodes: u64,
    /// View links that began or ended.
    pub links: u64,
    /// Objects newly sent to clients.
    pub snapshots: u64,
    /// Bytes of messages to clients.
    pub bytes: u64,
}

impl TickWork {
    /// The work between two readings of totals.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            messages: self.messages.saturating_sub(before.messages),
            logins: self.logins.saturating_sub(before.logins),
            paths: self.paths.saturating_sub(before.paths),
            nodes: self.nodes.saturating_sub(before.nodes),
            links: self.links.saturating_sub(before.links),
            snapshots: self.snapshots.saturating_sub(before.snapshots),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }
}

/// The times of a tick, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimedTick {
    /// Its number.
    pub tick: u64,
    /// Of each set, in their order.
    pub sets_ms: [f32; SETS],
}

impl TimedTick {
    /// Of all sets together.
    #[must_use]
    pub fn total_ms(&self) -> f32 {
        self.sets_ms.iter().sum()
    }

    /// The indices of the sets by time, longest first, without sets that took none.
    pub fn longest(&self) -> impl Iterator<Item = (usize, f32)> {
        let mut sets: Vec<_> = self.sets_ms.into_iter().enumerate().collect();
        sets.sort_by(|one, other| other.1.total_cmp(&one.1));
        sets.into_iter().filter(|(_, ms)| *ms > 0.0)
    }
}

/// A slow tick and its work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SlowTick {
    /// Its time by set.
    pub times: TimedTick,
    /// Its work.
    pub work: TickWork,
    /// Slow ticks since the last one that was logged, this one included, if it has to be logged now.
    pub unlogged: u64,
}

/// The ticks so far.
#[derive(Clone, Debug)]
pub struct TickHistory {
    /// Number of ticks per bucket; those above the last bound in the last entry.
    counts: [u64; TICK_BUCKETS_S.len() + 1],
    sets_s: [f64; SETS],
    recent: VecDeque<TimedTick>,
    slow: VecDeque<SlowTick>,
    slow_count: u64,
    unlogged: u64,
    next_log_tick: u64,
    totals: TickWork,
}

impl Default for TickHistory {
    fn default() -> Self {
        Self {
            counts: [0; TICK_BUCKETS_S.len() + 1],
            sets_s: [0.0; SETS],
            recent: VecDeque::with_capacity(TICK_HISTORY_MAX),
            slow: VecDeque::with_capacity(SLOW_TICK_HISTORY_MAX),
            slow_count: 0,
            unlogged: 0,
            next_log_tick: 0,
            totals: TickWork::default(),
        }
    }
}

impl TickHistory {
    /// Counts a tick, with the totals of the work so far. Returns it if it took longer than `limit_ms` and none was returned in
    /// the last `told_apart` ticks: then it has to be logged.
    pub fn record(
        &mut self,
        times: TimedTick,
        totals: TickWork,
        limit_ms: f32,
        told_apart: u64,
    ) -> Option<SlowTick> {
        let whole_ms = times.total_ms();
        let whole_s = f64::from(whole_ms) / 1e3;
        let size = TICK_BUCKETS_S.iter().position(|&most| whole_s <= most);
        self.counts[size.unwrap_or(TICK_BUCKETS_S.len())] += 1;
        for (total, ms) in self.sets_s.iter_mut().zip(times.sets_ms) {
            *total += f64::from(ms) / 1e3;
        }
        if self.recent.len() == TICK_HISTORY_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(times);
        let deeds = totals.since(self.totals);
        self.totals = totals;
        if whole_ms <= limit_ms {
            return None;
        }
        self.slow_count += 1;
        self.unlogged += 1;
        let mut slow = SlowTick {
            times,
            work: deeds,
            unlogged: 0,
        };
        let is_told = times.tick >= self.next_log_tick;
        if is_told {
            slow.unlogged = std::mem::take(&mut self.unlogged);
            self.next_log_tick = times.tick + told_apart;
        }
        if self.slow.len() == SLOW_TICK_HISTORY_MAX {
            self.slow.pop_front();
        }
        self.slow.push_back(slow);
        is_told.then_some(slow)
    }

    /// The cumulative number of ticks for each bound of [`TICK_BUCKETS_S`], and the number of all ticks.
    #[must_use]
    pub fn buckets(&self) -> (Vec<(f64, u64)>, u64) {
        let mut below = 0;
        let buckets = TICK_BUCKETS_S.into_iter().zip(self.counts);
        let buckets = buckets
            .map(|(most, count)| {
                below += count;
                (most, below)
            })
            .collect();
        (buckets, self.counts.iter().sum())
    }

    /// Total seconds of each set, in their order.
    #[must_use]
    pub const fn sets_s(&self) -> [f64; SETS] {
        self.sets_s
    }

    /// The kept ticks after one, oldest first.
    pub fn since(&self, tick: u64) -> impl Iterator<Item = &TimedTick> {
        let first = self.recent.partition_point(|kept| kept.tick <= tick);
        self.recent.range(first..)
    }

    /// The newest slow ticks, oldest first.
    pub fn slow(&self) -> impl Iterator<Item = &SlowTick> {
        self.slow.iter()
    }

    /// How many ticks were slow.
    #[must_use]
    pub const fn slow_count(&self) -> u64 {
        self.slow_count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tick whose time is spent in one set.
    fn tick(tick: u64, ms: f32) -> TimedTick {
        let mut sets_ms = [0.0; SETS];
        sets_ms[6] = ms;
        TimedTick { tick, sets_ms }
    }

    fn did(paths: u64) -> TickWork {
        TickWork {
            paths,
            ..TickWork::default()
        }
    }

    #[test]
    fn ticks_are_counted_by_size_and_summed_by_set() {
        let mut history = TickHistory::default();
        for (nth, ms) in (1..).zip([0.5, 0.6, 50.0, 51.0, 5_000.0]) {
            history.record(tick(nth, ms), TickWork::default(), 1e9, 20);
        }
        let (buckets, count) = history.buckets();
        let at = |s: f64| buckets.iter().find(|(most, _)| *most == s).unwrap().1;
        assert_eq!((at(0.0005), at(0.001), at(0.05)), (1, 2, 3));
        assert_eq!((at(0.075), at(1.0), count), (4, 4, 5));
        let [.., view, _, _, _, _] = history.sets_s();
        assert!((view - 5.1021).abs() < 1e-5, "{view}");
    }

    #[test]
    fn slow_tick_is_kept_with_its_work_and_logged_at_intervals() {
        let mut history = TickHistory::default();
        assert_eq!(history.record(tick(1, 50.0), did(7), 50.0, 20), None);
        let slow = history.record(tick(2, 60.0), did(10), 50.0, 20).unwrap();
        assert_eq!((slow.work, slow.unlogged), (did(3), 1));
        assert_eq!(slow.times.longest().next(), Some((6, 60.0)));
        for nth in 3..22 {
            assert_eq!(history.record(tick(nth, 70.0), did(10), 50.0, 20), None);
        }
        let slow = history.record(tick(22, 70.0), did(10), 50.0, 20).unwrap();
        assert_eq!(slow.unlogged, 20);
        assert_eq!((history.slow_count(), history.slow().count()), (21, 21));
    }

    #[test]
    fn newest_ticks_are_kept() {
        let mut history = TickHistory::default();
        for nth in 1..=3_000 {
            history.record(tick(nth, 2.0), TickWork::default(), 1.0, 20);
        }
        assert_eq!(history.since(0).count(), TICK_HISTORY_MAX);
        let newer: Vec<u64> = history.since(2_998).map(|kept| kept.tick).collect();
        assert_eq!(newer, [2_999, 3_000]);
        assert_eq!(history.slow().count(), SLOW_TICK_HISTORY_MAX);
        assert_eq!(history.slow().next().unwrap().times.tick, 2_937);
    }
}
