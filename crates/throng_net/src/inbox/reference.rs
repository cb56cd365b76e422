//! Reference designs for the inbox: one list in the order of arrival, and three ways to handle it.

use std::collections::VecDeque;

use throng_protocol::wire::ClientId;

use super::budget::{BudgetRule, WorkBudget};
use super::queue::{InboxLimits, MessageQueue};
use super::quota::ClientQuota;

/// How the messages of a tick are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntakePolicy {
    /// All waiting messages, in the order of arrival.
    Everything,
    /// In the order of arrival, for a number of milliseconds.
    Fixed(u64),
    /// In the order of arrival, by the rule of the reference.
    Reference,
    /// This crate: a queue per client, quotas, shares of the tick.
    ClientQueues,
}

/// The load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntakeLoad {
    /// Clients that send a message every second tick.
    pub polite: u32,
    /// Messages per tick of one more client, which floods.
    pub flood: u32,
    /// Messages that each polite client sends in the tick `BURST_AT`.
    pub burst: u32,
    /// Cost of a message for the game, in nanoseconds.
    pub message_ns: u64,
    /// Number of ticks.
    pub ticks: u64,
}

/// The tick of the burst.
const BURST_AT: u64 = 20;

const TICK_NS: u64 = 50_000_000;

/// The result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntakeOutcome {
    /// The most work in a tick, in nanoseconds.
    pub worst_tick_ns: u64,
    /// The longest time that a polite client's message waited after the tick that followed its arrival, in ticks.
    pub worst_polite_lag_ticks: u64,
    /// Messages of polite clients that were handled.
    pub polite_handled: u64,
    /// Messages of polite clients that were refused.
    pub polite_refused: u64,
}

/// A list in the order of arrival, or queues per client.
enum IntakeQueue {
    List(VecDeque<(ClientId, u64)>),
    ClientQueues(Box<MessageQueue>),
}

impl IntakeQueue {
    fn len(&self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::ClientQueues(queue) => queue.len(),
        }
    }

    fn push(&mut self, client: ClientId, tick: u64) -> bool {
        match self {
            Self::List(list) => {
                list.push_back((client, tick));
                true
            }
            Self::ClientQueues(queue) => queue.push(client, &[4, 1]).is_ok(),
        }
    }

    fn pop(&mut self, now: u64) -> Option<(ClientId, u64)> {
        match self {
            Self::List(list) => list.pop_front(),
            Self::ClientQueues(queue) => {
                queue.pop(now).map(|message| (message.client, message.tick))
            }
        }
    }
}

/// Runs a load through a policy, with computed costs: the same result every time.
#[must_use]
pub fn simulate(policy: IntakePolicy, load: IntakeLoad) -> IntakeOutcome {
    let limits = InboxLimits {
        // So that the client that floods is not disconnected.
        quota: ClientQuota {
            violations_max: u32::MAX,
            ..ClientQuota::default()
        },
        ..InboxLimits::default()
    };
    let flooder = ClientId(load.polite + 1);
    let mut waiting = if policy == IntakePolicy::ClientQueues {
        let mut queue = MessageQueue::new(limits);
        for client in (1..=flooder.0).map(ClientId) {
            queue.open(client);
            queue.promote(client);
        }
        IntakeQueue::ClientQueues(Box::new(queue))
    } else {
        IntakeQueue::List(VecDeque::new())
    };
    let rule = match policy {
        IntakePolicy::ClientQueues => BudgetRule::default(),
        _ => BudgetRule::reference(),
    };
    let (mut budget, mut outcome) = (WorkBudget::default(), IntakeOutcome::default());
    for tick in 0..load.ticks {
        if let IntakeQueue::ClientQueues(queue) = &mut waiting {
            queue.begin_tick(tick, limits);
        }
        // The client that floods is first in every tick.
        for _ in 0..load.flood {
            waiting.push(flooder, tick);
        }
        for client in 1..=load.polite {
            let now = u64::from((u64::from(client) + tick).is_multiple_of(2));
            let burst = u64::from(load.burst) * u64::from(tick == BURST_AT);
            for _ in 0..now + burst {
                let accepted = waiting.push(ClientId(client), tick);
                outcome.polite_refused += u64::from(!accepted);
            }
        }
        // Messages of a tick are handled in the next one.
        let (now, clients) = (tick + 1, flooder.0 as usize);
        let budget_ns = match policy {
            IntakePolicy::Everything => u64::MAX,
            IntakePolicy::Fixed(ms) => ms * 1_000_000,
            _ => budget.begin_tick(&rule, waiting.len(), clients, TICK_NS),
        };
        let mut spent_ns = 0;
        while spent_ns < budget_ns
            && let Some((client, came)) = waiting.pop(now)
        {
            spent_ns += load.message_ns;
            if client != flooder {
                outcome.polite_handled += 1;
                let lag = now - came - 1;
                outcome.worst_polite_lag_ticks = outcome.worst_polite_lag_ticks.max(lag);
            }
        }
        outcome.worst_tick_ns = outcome.worst_tick_ns.max(spent_ns);
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOD: IntakeLoad = IntakeLoad {
        polite: 1_000,
        flood: 5_000,
        burst: 0,
        message_ns: 5_000,
        ticks: 200,
    };

    #[test]
    fn flood_delays_others_in_one_list_but_not_in_client_queues() {
        let ours = simulate(IntakePolicy::ClientQueues, FLOOD);
        assert_eq!((ours.worst_polite_lag_ticks, ours.polite_refused), (0, 0));
        assert!(ours.worst_tick_ns < 10_000_000, "{ours:?}");
        let fixed = simulate(IntakePolicy::Fixed(20), FLOOD);
        assert!(fixed.worst_polite_lag_ticks > 20, "{fixed:?}");
        let reference = simulate(IntakePolicy::Reference, FLOOD);
        assert!(
            reference.worst_tick_ns > 25_000_000,
            "the flooder pulls the lever: {reference:?}"
        );
    }

    #[test]
    fn burst_within_quota_is_spread_over_ticks_without_loss() {
        let load = IntakeLoad {
            flood: 0,
            burst: 30,
            ..FLOOD
        };
        let ours = simulate(IntakePolicy::ClientQueues, load);
        assert_eq!(ours.polite_refused, 0);
        assert!(ours.worst_tick_ns <= 30_010_000, "{ours:?}");
        let everything = simulate(IntakePolicy::Everything, load);
        assert!(everything.worst_tick_ns > 150_000_000);
        assert_eq!(ours.polite_handled, everything.polite_handled);
    }
}
