//! Faults of the players of `throng client`: another port, as for a phone that changes its network, and a crash, after which the
//! player reconnects with a new token before the server could have timed it out.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};

/// The share of the run in which faults start, so that all are over at the end.
const FAULT_TIME_SHARE: f64 = 0.9;

/// A fault of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientFault {
    /// It continues from another port.
    Rebind,
    /// It crashes and restarts.
    Restart,
}

/// The scheduled faults and their results.
pub(super) struct ClientFaultPlan {
    /// The next at the end.
    schedule: Vec<(Duration, ClientFault)>,
    random: Pcg64Mcg,
    /// Number of requested, started and recovered faults; by [`ClientFault`].
    counts: [[u64; 3]; 2],
}

impl ClientFaultPlan {
    /// This many faults in this time, at times that depend on the seed only.
    pub fn new([rebinds, restarts]: [u32; 2], within: Duration, seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut due = Vec::new();
        for (mishap, count) in [
            (ClientFault::Rebind, rebinds),
            (ClientFault::Restart, restarts),
        ] {
            due.extend((0..count).map(|_| {
                let at = within.mul_f64(random.random_range(0.0..FAULT_TIME_SHARE));
                (at, mishap)
            }));
        }
        due.sort_by_key(|&(at, _)| std::cmp::Reverse(at));
        Self {
            schedule: due,
            random,
            counts: [rebinds, restarts].map(|count| [u64::from(count), 0, 0]),
        }
    }

    /// The next scheduled fault up to this time after the start, and its client: one without another fault. `None` if nothing is
    /// scheduled or no client is available; then it stays scheduled.
    pub fn next(&mut self, now: Duration, idle: &[usize]) -> Option<(usize, ClientFault)> {
        let &(at, mishap) = self.schedule.last()?;
        if at > now || idle.is_empty() {
            return None;
        }
        self.schedule.pop();
        self.counts[mishap as usize][1] += 1;
        Some((idle[self.random.random_range(0..idle.len())], mishap))
    }

    /// Whether a fault is scheduled.
    pub fn is_due(&self, now: Duration) -> bool {
        self.schedule.last().is_some_and(|&(at, _)| at <= now)
    }

    /// Records a recovery.
    pub const fn record_recovery(&mut self, mishap: ClientFault) {
        self.counts[mishap as usize][2] += 1;
    }

    /// Whether all faults started and all clients recovered.
    pub fn is_finished(&self) -> bool {
        let mut counts = self.counts.iter();
        counts.all(|[asked, _, survived]| asked == survived)
    }

    /// The result of one kind.
    pub fn to_json(&self, mishap: ClientFault) -> Value {
        let [asked, begun, survived] = self.counts[mishap as usize];
        json!({ "asked": asked, "begun": begun, "survived": survived })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_hit_idle_clients_in_time_and_follow_the_seed() {
        let play = |seed| {
            let mut mishaps = ClientFaultPlan::new([20, 5], Duration::from_secs(10), seed);
            let mut found = Vec::new();
            for ms in 0..9_000 {
                let now = Duration::from_millis(ms);
                assert_eq!(mishaps.next(now, &[]), None, "there is nobody");
                while let Some((who, mishap)) = mishaps.next(now, &[3, 8]) {
                    assert!(!mishaps.is_finished());
                    mishaps.record_recovery(mishap);
                    found.push((ms, who, mishap));
                }
                assert!(!mishaps.is_due(now));
            }
            assert!(mishaps.is_finished());
            assert_eq!(mishaps.to_json(ClientFault::Restart)["survived"], 5);
            found
        };
        let found = play(1);
        assert_eq!(found.len(), 25);
        assert!(found.iter().all(|(_, who, _)| [3, 8].contains(who)));
        assert_eq!(found, play(1));
        assert_ne!(found, play(2));
    }
}
