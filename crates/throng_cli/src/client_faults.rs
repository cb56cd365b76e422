//! Faults of the players of `throng client`: a change of port, as when a phone changes its network, and a crash, after which the player
//! reconnects with a new token before the server times out the old connection.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};

/// The share of the run in which faults start, so that all recoveries end within the run.
const FAULT_TIME_SHARE: f64 = 0.9;

/// A fault of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientFault {
    /// The client continues from another port.
    Rebind,
    /// The client crashes and restarts.
    Restart,
}

/// The scheduled faults and their results.
pub(super) struct ClientFaultPlan {
    /// The next fault is at the end.
    schedule: Vec<(Duration, ClientFault)>,
    random: Pcg64Mcg,
    /// Number of requested, started and recovered faults, by [`ClientFault`].
    counts: [[u64; 3]; 2],
}

impl ClientFaultPlan {
    /// Schedules this many faults within this time; their times depend on the seed only.
    pub fn new([rebinds, restarts]: [u32; 2], within: Duration, seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut due = Vec::new();
        for (fault, count) in [
            (ClientFault::Rebind, rebinds),
            (ClientFault::Restart, restarts),
        ] {
            due.extend((0..count).map(|_| {
                let at = within.mul_f64(random.random_range(0.0..FAULT_TIME_SHARE));
                (at, fault)
            }));
        }
        due.sort_by_key(|&(at, _)| std::cmp::Reverse(at));
        Self {
            schedule: due,
            random,
            counts: [rebinds, restarts].map(|count| [u64::from(count), 0, 0]),
        }
    }

    /// The next fault that is scheduled up to `now`, and a client from `idle` for it. `None` if no fault is due or `idle` is empty; the
    /// fault then stays scheduled.
    pub fn next(&mut self, now: Duration, idle: &[usize]) -> Option<(usize, ClientFault)> {
        let &(at, fault) = self.schedule.last()?;
        if at > now || idle.is_empty() {
            return None;
        }
        self.schedule.pop();
        self.counts[fault as usize][1] += 1;
        Some((idle[self.random.random_range(0..idle.len())], fault))
    }

    /// Whether a fault is due.
    pub fn is_due(&self, now: Duration) -> bool {
        self.schedule.last().is_some_and(|&(at, _)| at <= now)
    }

    /// Records a recovery.
    pub const fn record_recovery(&mut self, fault: ClientFault) {
        self.counts[fault as usize][2] += 1;
    }

    /// Whether all faults started and all clients recovered.
    pub fn is_finished(&self) -> bool {
        let mut counts = self.counts.iter();
        counts.all(|[requested, _, recovered]| requested == recovered)
    }

    /// The counts of one kind of fault.
    pub fn to_json(&self, fault: ClientFault) -> Value {
        let [requested, started, recovered] = self.counts[fault as usize];
        json!({ "asked": requested, "begun": started, "survived": recovered })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_hit_idle_clients_in_time_and_follow_the_seed() {
        let play = |seed| {
            let mut plan = ClientFaultPlan::new([20, 5], Duration::from_secs(10), seed);
            let mut found = Vec::new();
            for ms in 0..9_000 {
                let now = Duration::from_millis(ms);
                assert_eq!(plan.next(now, &[]), None, "no client is idle");
                while let Some((client, fault)) = plan.next(now, &[3, 8]) {
                    assert!(!plan.is_finished());
                    plan.record_recovery(fault);
                    found.push((ms, client, fault));
                }
                assert!(!plan.is_due(now));
            }
            assert!(plan.is_finished());
            assert_eq!(plan.to_json(ClientFault::Restart)["survived"], 5);
            found
        };
        let found = play(1);
        assert_eq!(found.len(), 25);
        assert!(found.iter().all(|(_, client, _)| [3, 8].contains(client)));
        assert_eq!(found, play(1));
        assert_ne!(found, play(2));
    }
}
