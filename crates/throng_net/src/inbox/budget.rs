//! How much time of a tick is spent on messages.
//!
//! ```text
//! waiting messages, connected clients ─▶ WorkBudget::begin_tick ─▶ nanoseconds of work for this tick
//!                      threshold: + step while more than `grow_above` wait, − step otherwise, within min…max
//!                      more than `drain_all_above` wait: everything, but never more than `hard_limit`
//! ```
//!
//! The rule is that of the reference, with its numbers as parameters. The reference has milliseconds and numbers of messages; here times
//! may also be shares of a tick, and lengths may be messages per connected client, so one rule serves a server of ten clients and of ten
//! thousand. Work is counted in nanoseconds of a clock, or of [`MessageCosts`], which makes a run reproducible.

use serde::{Deserialize, Serialize};

/// A time, absolute or relative to the length of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect))]
pub enum TickTime {
    /// Milliseconds.
    Ms(f32),
    /// A share of the tick: 0.15 is 15 %.
    Share(f32),
}

impl TickTime {
    /// In nanoseconds, for ticks of this length. Negative values and NaN are 0.
    #[must_use]
    pub fn ns(self, tick_ns: u64) -> u64 {
        let ns = match self {
            Self::Ms(ms) => f64::from(ms) * 1e6,
            Self::Share(share) => f64::from(share) * tick_ns as f64,
        };
        ns as u64
    }
}

/// A number of waiting messages, absolute or per connected client.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect))]
pub enum BacklogLength {
    /// Messages.
    Messages(u32),
    /// Messages per connected client.
    PerClient(f32),
}

impl BacklogLength {
    /// In messages, for this many clients. At least one client is assumed.
    #[must_use]
    pub fn messages(self, clients: usize) -> usize {
        match self {
            Self::Messages(messages) => messages as usize,
            Self::PerClient(each) => (f64::from(each) * clients.max(1) as f64) as usize,
        }
    }
}

/// How the threshold follows the backlog.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect))]
pub struct BudgetRule {
    /// Initial threshold, and its minimum.
    #[serde(alias = "least")]
    pub min: TickTime,
    /// Maximum of the threshold.
    #[serde(alias = "most")]
    pub max: TickTime,
    /// Change per tick.
    pub step: TickTime,
    /// While more messages wait, the threshold grows; otherwise it falls.
    #[serde(alias = "busy")]
    pub grow_above: BacklogLength,
    /// While more messages wait, all are handled, whatever the threshold is.
    #[serde(alias = "all")]
    pub drain_all_above: BacklogLength,
    /// Limit of the work per tick, even if all messages are handled.
    #[serde(alias = "hard")]
    pub hard_limit: TickTime,
}

impl Default for BudgetRule {
    fn default() -> Self {
        Self {
            min: TickTime::Share(0.15),
            max: TickTime::Share(0.4),
            step: TickTime::Share(0.02),
            grow_above: BacklogLength::PerClient(1.0),
            drain_all_above: BacklogLength::PerClient(3.0),
            hard_limit: TickTime::Share(0.6),
        }
    }
}

impl BudgetRule {
    /// The rule of the reference: starts at 20 ms, adds one per tick while more than 100 messages wait, subtracts one otherwise, within 20
    /// to 40 ms; above 300 waiting messages it handles everything. Nothing limits "everything", so a client that floods can force it.
    #[must_use]
    pub const fn reference() -> Self {
        Self {
            min: TickTime::Ms(20.0),
            max: TickTime::Ms(40.0),
            step: TickTime::Ms(1.0),
            grow_above: BacklogLength::Messages(100),
            drain_all_above: BacklogLength::Messages(300),
            hard_limit: TickTime::Ms(f32::MAX),
        }
    }
}

/// The current threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkBudget {
    threshold_ns: u64,
    is_started: bool,
}

impl WorkBudget {
    /// Work that this tick may spend, given the waiting messages and the connected clients at its start. Call it once per tick.
    pub fn begin_tick(
        &mut self,
        rule: &BudgetRule,
        waiting: usize,
        clients: usize,
        tick_ns: u64,
    ) -> u64 {
        let least = rule.min.ns(tick_ns);
        let most = rule.max.ns(tick_ns).max(least);
        let hard = rule.hard_limit.ns(tick_ns);
        if self.is_started {
            let step = rule.step.ns(tick_ns);
            let next = if waiting > rule.grow_above.messages(clients) {
                self.threshold_ns.saturating_add(step)
            } else {
                self.threshold_ns.saturating_sub(step)
            };
            self.threshold_ns = next.clamp(least, most);
        } else {
            (self.threshold_ns, self.is_started) = (least, true);
        }
        if waiting > rule.drain_all_above.messages(clients) {
            hard
        } else {
            self.threshold_ns.min(hard)
        }
    }

    /// The threshold, in nanoseconds.
    #[must_use]
    pub const fn threshold_ns(&self) -> u64 {
        self.threshold_ns
    }
}

/// Assumed costs of messages, in nanoseconds, for runs that read no clock. Measured by `throng bench inbox` and rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect))]
pub struct MessageCosts {
    /// Any message: taken, decoded, passed on and handled.
    pub message_ns: u32,
    /// Each byte of a message.
    pub byte_ns: u32,
    /// A login or resume, instead of `message_ns`.
    pub login_ns: u32,
}

impl Default for MessageCosts {
    fn default() -> Self {
        Self {
            message_ns: 250,
            byte_ns: 1,
            login_ns: 1_000,
        }
    }
}

impl MessageCosts {
    /// The cost of a message of this length.
    #[must_use]
    pub fn of(&self, is_login: bool, bytes: usize) -> u64 {
        let base = if is_login {
            self.login_ns
        } else {
            self.message_ns
        };
        u64::from(base) + u64::from(self.byte_ns) * bytes as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: u64 = 50_000_000;
    const MS: u64 = 1_000_000;

    #[test]
    fn the_reference_rule_starts_at_20_ms_and_moves_by_one() {
        let (rule, mut budget) = (BudgetRule::reference(), WorkBudget::default());
        let mut begin = |waiting| budget.begin_tick(&rule, waiting, 7, TICK_NS) / MS;
        assert_eq!(
            [101, 101, 300, 100, 0].map(&mut begin),
            [20, 21, 22, 21, 20]
        );
        assert_eq!(begin(0), 20, "never below");
        for _ in 0..50 {
            begin(200);
        }
        assert_eq!(begin(200), 40, "never above");
        assert!(begin(301) > 1_000_000, "everything");
    }

    #[test]
    fn default_budget_is_a_tick_share_and_has_a_hard_limit() {
        let (rule, mut budget) = (BudgetRule::default(), WorkBudget::default());
        let mut begin = |waiting| budget.begin_tick(&rule, waiting, 100, TICK_NS);
        let near = |found: u64, ms: f64| (found as f64 - ms * 1e6).abs() < 10_000.0;
        assert!(near(begin(100), 7.5));
        assert!(near(begin(101), 8.5));
        assert!(near(begin(100), 7.5));
        for _ in 0..50 {
            begin(200);
        }
        assert!(near(begin(200), 20.0));
        assert!(
            near(begin(301), 30.0),
            "60 % of the tick, however much waits"
        );
    }

    #[test]
    fn invalid_settings_give_no_work_and_no_panic() {
        let rule = BudgetRule {
            min: TickTime::Ms(f32::NAN),
            max: TickTime::Share(-1.0),
            step: TickTime::Ms(f32::INFINITY),
            grow_above: BacklogLength::PerClient(f32::NAN),
            drain_all_above: BacklogLength::PerClient(f32::INFINITY),
            hard_limit: TickTime::Share(f32::NAN),
        };
        let mut budget = WorkBudget::default();
        for waiting in [0, 1, usize::MAX, 5] {
            assert_eq!(budget.begin_tick(&rule, waiting, 0, TICK_NS), 0);
        }
    }

    #[test]
    fn hard_limit_binds_the_threshold_of_a_short_backlog() {
        let rule = BudgetRule {
            hard_limit: TickTime::Share(0.1),
            ..BudgetRule::default()
        };
        let mut budget = WorkBudget::default();
        for waiting in [0, 1, 1_000] {
            let found = budget.begin_tick(&rule, waiting, 1, TICK_NS);
            assert!(found.abs_diff(5 * MS) < 10, "{found} ns for {waiting}");
        }
    }
}
