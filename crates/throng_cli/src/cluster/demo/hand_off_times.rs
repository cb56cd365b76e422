//! How long hand-offs take, from the metrics of the gateways.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::CliError;
use crate::cluster::metrics::HAND_OFF_SECONDS;
use crate::http_client::http_request;

/// Between two reads of the metrics. What a gateway has counted since the last one is lost when it is killed.
const READ_INTERVAL: Duration = Duration::from_millis(500);

/// The time in which this share of hand-offs is meant to end, in seconds and percent.
const AIM_S: f64 = 0.15;
const AIM_PERCENT: f64 = 99.0;

/// 1 if the kernel schedules sessions of processes (`sched(7)`: autogroup). Each connection of Postgres is such a session.
const AUTOGROUP: &str = "/proc/sys/kernel/sched_autogroup_enabled";

/// What happens while hand-offs are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum HandOffPhase {
    /// All clients log in at once: their players are handed to the nodes of their scenes.
    #[default]
    LoggingIn,
    Walking,
    /// A process is down, or clients return.
    Disturbed,
}

/// How many hand-offs took at most how long. The bounds are those of the metrics, in ascending order: numbers of seconds, and `+Inf`.
#[derive(Clone, Debug, Default, PartialEq)]
struct HandOffCounts(Vec<(f64, u64)>);

impl HandOffCounts {
    /// Reads the text of the metrics. Other metrics are left out.
    fn read(text: &str) -> Self {
        let prefix = format!("{HAND_OFF_SECONDS}_bucket{{le=\"");
        let buckets = text.lines().filter_map(|line| {
            let (bound, count) = line.strip_prefix(&prefix)?.split_once("\"} ")?;
            Some((bound.parse().ok()?, count.parse().ok()?))
        });
        Self(buckets.collect())
    }

    /// Adds what was counted between two reads. After a restart, a gateway counts from 0.
    fn add(&mut self, before: &Self, after: &Self) {
        let is_new = after.total() < before.total();
        for (nth, (bound, count)) in after.0.iter().enumerate() {
            let known = before.0.get(nth).filter(|_| !is_new);
            let more = count.saturating_sub(known.map_or(0, |(_, count)| *count));
            match self.0.get_mut(nth) {
                Some((_, sum)) => *sum += more,
                None => self.0.push((*bound, more)),
            }
        }
    }

    fn total(&self) -> u64 {
        self.0.last().map_or(0, |(_, total)| *total)
    }

    /// The percentage that took as long as was aimed for, at most.
    fn percent_in_time(&self) -> f64 {
        let aim = self.0.iter().find(|(bound, _)| *bound >= AIM_S);
        let in_time = aim.map_or(0, |(_, count)| *count);
        100.0 * in_time as f64 / self.total().max(1) as f64
    }

    /// The lines of the summary: none without hand-offs, a hint if they take long and the kernel may be the reason.
    fn lines(&self, is_autogrouped: bool) -> Vec<String> {
        let (total, percent) = (self.total(), self.percent_in_time());
        if total == 0 {
            return Vec::new();
        }
        let bound = |share: f64| {
            let wanted = (total as f64 * share).ceil() as u64;
            let reached = self.0.iter().find(|(_, count)| *count >= wanted);
            let bound = reached.map_or(f64::INFINITY, |(bound, _)| *bound);
            if bound.is_finite() {
                return format!("≤ {bound} s");
            }
            let finite = self.0.iter().rev().find(|(bound, _)| bound.is_finite());
            format!("> {} s", finite.map_or(0.0, |(bound, _)| *bound))
        };
        let freeze = format!(
            "freeze       p50 {}, p99 {} until the first packet of the new scene; {percent:.1} % of {total} within {AIM_S} s",
            bound(0.5),
            bound(0.99)
        );
        let hint = "hint         while all cores are busy, this kernel lets the connections of Postgres wait for up to 0.1 s; they do not \
            wait after `sysctl kernel.sched_autogroup_enabled=0`";
        let hint = (is_autogrouped && percent < AIM_PERCENT).then(|| hint.to_owned());
        std::iter::once(freeze).chain(hint).collect()
    }

    /// The line about the hand-offs while the clients logged in; `None` without any.
    fn login_line(&self) -> Option<String> {
        let (total, percent) = (self.total(), self.percent_in_time());
        (total > 0).then(|| {
            format!("logins       {percent:.1} % of {total} hand-offs within {AIM_S} s while all clients logged in at once")
        })
    }
}

/// The hand-offs of two phases.
#[derive(Clone, Debug, Default, PartialEq)]
struct PhaseCounts {
    logging_in: HandOffCounts,
    walking: HandOffCounts,
}

impl PhaseCounts {
    /// Adds what was counted between two reads, in these phases. After a change of the phase, some belong to the earlier one.
    fn add(
        &mut self,
        phases: (HandOffPhase, HandOffPhase),
        before: &HandOffCounts,
        after: &HandOffCounts,
    ) {
        match phases {
            (HandOffPhase::LoggingIn, _) => self.logging_in.add(before, after),
            (HandOffPhase::Walking, HandOffPhase::Walking) => self.walking.add(before, after),
            _ => {}
        }
    }
}

/// Reads the metrics of the gateways in a thread of its own, so that no client waits for it.
pub(super) struct HandOffReader {
    counts: Arc<Mutex<PhaseCounts>>,
    phase: Arc<Mutex<HandOffPhase>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl HandOffReader {
    /// Starts the thread.
    pub fn start(metrics: &[SocketAddr]) -> Result<Self, CliError> {
        let metrics = metrics.to_vec();
        let counts = Arc::<Mutex<PhaseCounts>>::default();
        let phase = Arc::<Mutex<HandOffPhase>>::default();
        let ends = Arc::<AtomicBool>::default();
        let (of_thread, phase_now, end) = (counts.clone(), phase.clone(), ends.clone());
        let thread = thread::Builder::new().name("hand-off times".to_owned());
        let thread = thread.spawn(move || {
            let mut last: BTreeMap<SocketAddr, HandOffCounts> = BTreeMap::new();
            let mut last_phase = HandOffPhase::LoggingIn;
            while !end.load(Ordering::Acquire) {
                let phase = *lock(&phase_now);
                for &gateway in &metrics {
                    // One that was killed has no metrics.
                    let Ok(text) = http_request(gateway, "GET", "/metrics") else {
                        continue;
                    };
                    let now = HandOffCounts::read(&text);
                    let before = last.insert(gateway, now.clone()).unwrap_or_default();
                    lock(&of_thread).add((last_phase, phase), &before, &now);
                }
                last_phase = phase;
                thread::park_timeout(READ_INTERVAL);
            }
        });
        let thread =
            thread.map_err(|error| CliError::new(format!("cannot start a thread: {error}")))?;
        Ok(Self {
            counts,
            phase,
            ends,
            thread: Some(thread),
        })
    }

    /// Hand-offs are counted for this phase from now on.
    pub fn set_phase(&self, phase: HandOffPhase) {
        *lock(&self.phase) = phase;
    }

    /// The lines of the summary.
    pub fn lines(&self) -> Vec<String> {
        let counts = lock(&self.counts);
        // Other systems have no such file.
        let autogroup = fs::read_to_string(AUTOGROUP).unwrap_or_default();
        let mut lines = counts.walking.lines(autogroup.trim() == "1");
        lines.extend(counts.logging_in.login_line());
        lines
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for HandOffReader {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(counts: [u64; 4]) -> HandOffCounts {
        let bounds = ["0.05", "0.15", "1", "+Inf"];
        let mut text = format!("# TYPE {HAND_OFF_SECONDS} histogram\n");
        for (bound, count) in bounds.into_iter().zip(counts) {
            text.push_str(&format!(
                "{HAND_OFF_SECONDS}_bucket{{le=\"{bound}\"}} {count}\n"
            ));
        }
        text.push_str(&format!("{HAND_OFF_SECONDS}_count {}\n", counts[3]));
        HandOffCounts::read(&text)
    }

    #[test]
    fn line_has_the_bounds_of_the_percentiles() {
        let mut sum = HandOffCounts::default();
        assert!(sum.lines(true).is_empty());
        sum.add(&HandOffCounts::default(), &metrics([0, 0, 0, 0]));
        assert!(sum.lines(true).is_empty());
        sum.add(&metrics([0, 0, 0, 0]), &metrics([50, 90, 100, 100]));
        // It was killed, and counts from 0 again.
        sum.add(&metrics([50, 90, 100, 100]), &metrics([50, 99, 99, 99]));
        let line = &sum.lines(false)[0];
        let expected = "p50 ≤ 0.05 s, p99 ≤ 1 s until";
        assert!(
            line.contains(expected) && line.contains("95.0 % of 199 within 0.15 s"),
            "{line}"
        );
        let mut late = HandOffCounts::default();
        late.add(&HandOffCounts::default(), &metrics([0, 0, 10, 90]));
        let line = &late.lines(false)[0];
        assert!(line.contains("p50 > 1 s, p99 > 1 s"), "{line}");
    }

    #[test]
    fn hand_offs_are_counted_for_the_phase_before_a_change() {
        use HandOffPhase::{Disturbed, LoggingIn, Walking};
        let mut sum = PhaseCounts::default();
        let reads = [
            (LoggingIn, 10),
            (Walking, 12),
            (Walking, 20),
            (Disturbed, 50),
            (Disturbed, 60),
            (Walking, 70),
            (Walking, 71),
        ];
        let (mut before, mut last) = (HandOffCounts::default(), LoggingIn);
        for (phase, count) in reads {
            let after = metrics([0, count, count, count]);
            sum.add((last, phase), &before, &after);
            (before, last) = (after, phase);
        }
        assert_eq!((sum.logging_in.total(), sum.walking.total()), (12, 9));
        let line = sum.logging_in.login_line().unwrap();
        assert!(
            line.contains("100.0 % of 12 hand-offs within 0.15 s"),
            "{line}"
        );
        assert_eq!(HandOffCounts::default().login_line(), None);
    }

    #[test]
    fn hint_is_shown_only_if_the_kernel_may_be_the_reason() {
        for (in_time, is_autogrouped, lines) in [(98, true, 2), (98, false, 1), (99, true, 1)] {
            let mut sum = HandOffCounts::default();
            sum.add(&HandOffCounts::default(), &metrics([0, in_time, 100, 100]));
            assert_eq!(sum.lines(is_autogrouped).len(), lines, "{in_time}");
        }
    }
}
