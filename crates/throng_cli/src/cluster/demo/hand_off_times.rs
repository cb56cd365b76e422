//! How long hand-offs take, from the metrics of the gateways.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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
        let total = |counts: &Self| counts.0.last().map_or(0, |(_, count)| *count);
        let is_new = total(after) < total(before);
        for (nth, (bound, count)) in after.0.iter().enumerate() {
            let known = before.0.get(nth).filter(|_| !is_new);
            let more = count.saturating_sub(known.map_or(0, |(_, count)| *count));
            match self.0.get_mut(nth) {
                Some((_, sum)) => *sum += more,
                None => self.0.push((*bound, more)),
            }
        }
    }

    /// The lines of the summary: none without hand-offs, a hint if they take long and the kernel may be the reason.
    fn lines(&self, is_autogrouped: bool) -> Vec<String> {
        let total = self.0.last().map_or(0, |(_, total)| *total);
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
        let aim = self.0.iter().find(|(bound, _)| *bound >= AIM_S);
        let share = aim.map_or(0.0, |(_, count)| 100.0 * *count as f64 / total as f64);
        let freeze = format!(
            "freeze       p50 {}, p99 {} until the first packet of the new scene; {share:.1} % of {total} within {AIM_S} s",
            bound(0.5),
            bound(0.99)
        );
        let hint = "hint         while all cores are busy, this kernel lets the connections of Postgres wait for up to 0.1 s; they do not \
            wait after `sysctl kernel.sched_autogroup_enabled=0`";
        let hint = (is_autogrouped && share < AIM_PERCENT).then(|| hint.to_owned());
        std::iter::once(freeze).chain(hint).collect()
    }
}

/// Reads the metrics of the gateways in a thread of its own, so that no client waits for it.
pub(super) struct HandOffReader {
    counts: Arc<Mutex<HandOffCounts>>,
    is_disturbed: Arc<AtomicBool>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl HandOffReader {
    /// Starts the thread.
    pub fn start(metrics: &[SocketAddr]) -> Result<Self, CliError> {
        let metrics = metrics.to_vec();
        let (counts, is_disturbed, ends) =
            <(Arc<Mutex<HandOffCounts>>, Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        let (of_thread, disturbed, end) = (counts.clone(), is_disturbed.clone(), ends.clone());
        let thread = thread::Builder::new().name("hand-off times".to_owned());
        let thread = thread.spawn(move || {
            let mut last: BTreeMap<SocketAddr, HandOffCounts> = BTreeMap::new();
            let mut was_disturbed = false;
            while !end.load(Ordering::Acquire) {
                let is_disturbed = disturbed.load(Ordering::Acquire);
                for &gateway in &metrics {
                    // One that was killed has no metrics.
                    let Ok(text) = http_request(gateway, "GET", "/metrics") else {
                        continue;
                    };
                    let now = HandOffCounts::read(&text);
                    let before = last.insert(gateway, now.clone()).unwrap_or_default();
                    if !is_disturbed && !was_disturbed {
                        let mut counts = of_thread.lock().unwrap_or_else(PoisonError::into_inner);
                        counts.add(&before, &now);
                    }
                }
                was_disturbed = is_disturbed;
                thread::park_timeout(READ_INTERVAL);
            }
        });
        let thread =
            thread.map_err(|error| CliError::new(format!("cannot start a thread: {error}")))?;
        Ok(Self {
            counts,
            is_disturbed,
            ends,
            thread: Some(thread),
        })
    }

    /// While a process is down or clients return, hand-offs are not counted.
    pub fn set_disturbed(&self, is_disturbed: bool) {
        self.is_disturbed.store(is_disturbed, Ordering::Release);
    }

    /// The lines of the summary.
    pub fn lines(&self) -> Vec<String> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        // Other systems have no such file.
        let autogroup = fs::read_to_string(AUTOGROUP).unwrap_or_default();
        counts.lines(autogroup.trim() == "1")
    }
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
    fn hint_is_shown_only_if_the_kernel_may_be_the_reason() {
        for (in_time, is_autogrouped, lines) in [(98, true, 2), (98, false, 1), (99, true, 1)] {
            let mut sum = HandOffCounts::default();
            sum.add(&HandOffCounts::default(), &metrics([0, in_time, 100, 100]));
            assert_eq!(sum.lines(is_autogrouped).len(), lines, "{in_time}");
        }
    }
}
