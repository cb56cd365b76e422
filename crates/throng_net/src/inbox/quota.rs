//! How much a client may send: a token bucket of messages and one of bytes.
//!
//! A bucket refills by a fixed amount per tick up to its size. A message takes one token, and its bytes, out of the two. Tokens are counted
//! in thousandths, so any rate is exact at any tick rate. Ticks are the only clock: a run with the same inputs refuses the same messages.

use serde::{Deserialize, Serialize};

/// How much one client may send. Messages above it are refused and counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(bevy_reflect::Reflect))]
pub struct ClientQuota {
    /// Sustained messages per second.
    pub messages_per_s: u32,
    /// Burst of messages after a pause, such as a short interruption of the network.
    pub messages_max: u32,
    /// Sustained bytes per second.
    pub bytes_per_s: u32,
    /// Burst of bytes after a pause.
    pub bytes_max: u32,
    /// Refused messages, beyond the number per second that may be accepted, after which a client counts as flooding and is disconnected.
    #[serde(alias = "offences_max")]
    pub violations_max: u32,
}

impl Default for ClientQuota {
    fn default() -> Self {
        Self {
            messages_per_s: 400,
            messages_max: 400,
            bytes_per_s: 16_384,
            bytes_max: 32_768,
            violations_max: 1_000,
        }
    }
}

/// A quota per tick, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QuotaPerTick {
    messages: u64,
    bytes: u64,
    pub messages_max: u64,
    pub bytes_max: u64,
    violations_max: u64,
}

impl QuotaPerTick {
    /// Converts a quota to ticks of this length.
    pub fn of(quota: ClientQuota, tick_ns: u64) -> Self {
        let per_tick = |per_s: u32| (u64::from(per_s) * tick_ns) / 1_000_000;
        Self {
            messages: per_tick(quota.messages_per_s),
            bytes: per_tick(quota.bytes_per_s),
            messages_max: u64::from(quota.messages_max) * 1_000,
            bytes_max: u64::from(quota.bytes_max) * 1_000,
            violations_max: u64::from(quota.violations_max) * 1_000,
        }
    }
}

/// What a client may still send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QuotaBucket {
    messages: u64,
    bytes: u64,
    /// Refused messages, in thousandths; they decay at the rate at which messages are accepted.
    violations: u64,
    /// The tick up to which it was refilled.
    tick: u64,
}

impl QuotaBucket {
    /// Full buckets.
    pub const fn full(quota: &QuotaPerTick, tick: u64) -> Self {
        Self {
            messages: quota.messages_max,
            bytes: quota.bytes_max,
            violations: 0,
            tick,
        }
    }

    /// Refills up to a tick.
    pub fn fill(&mut self, quota: &QuotaPerTick, tick: u64) {
        let ticks = tick.saturating_sub(self.tick);
        if ticks == 0 {
            return;
        }
        let more = |per_tick: u64| per_tick.saturating_mul(ticks);
        self.tick = tick;
        self.messages =
            (self.messages.saturating_add(more(quota.messages))).min(quota.messages_max);
        self.bytes = (self.bytes.saturating_add(more(quota.bytes))).min(quota.bytes_max);
        self.violations = self.violations.saturating_sub(more(quota.messages));
    }

    /// Takes the tokens of a message of this length. Returns false if there are too few.
    pub fn try_consume(&mut self, bytes: usize) -> bool {
        let cost = bytes as u64 * 1_000;
        if self.messages < 1_000 || self.bytes < cost {
            return false;
        }
        self.messages -= 1_000;
        self.bytes -= cost;
        true
    }

    /// Counts a refused message. Returns whether there are too many.
    pub fn count_violation(&mut self, quota: &QuotaPerTick) -> bool {
        self.violations = self.violations.saturating_add(1_000);
        self.violations > quota.violations_max
    }

    /// The state as words, for a hash.
    pub const fn words(&self) -> [u64; 4] {
        [self.messages, self.bytes, self.violations, self.tick]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: u64 = 50_000_000;

    #[test]
    fn long_run_acceptance_never_exceeds_the_rate() {
        let quota = QuotaPerTick::of(
            ClientQuota {
                messages_per_s: 30,
                messages_max: 10,
                ..ClientQuota::default()
            },
            TICK_NS,
        );
        let mut tokens = QuotaBucket::full(&quota, 0);
        let mut accepted = 0;
        for tick in 0..200 {
            tokens.fill(&quota, tick);
            accepted += (0..50).filter(|_| tokens.try_consume(1)).count();
        }
        // Ten at the start, and 30 per second for the 199 ticks after it.
        assert_eq!(accepted, 10 + 298);
    }

    #[test]
    fn byte_quota_holds_and_pauses_save_at_most_one_burst() {
        let quota = QuotaPerTick::of(
            ClientQuota {
                bytes_per_s: 1_000,
                bytes_max: 100,
                ..ClientQuota::default()
            },
            TICK_NS,
        );
        let mut tokens = QuotaBucket::full(&quota, 0);
        assert!(tokens.try_consume(60) && !tokens.try_consume(60) && tokens.try_consume(40));
        tokens.fill(&quota, 1);
        assert!(tokens.try_consume(50) && !tokens.try_consume(1));
        tokens.fill(&quota, u64::MAX);
        assert!(tokens.try_consume(100) && !tokens.try_consume(1));
    }

    #[test]
    fn violations_expire_with_time_and_a_flood_does_not() {
        let quota = QuotaPerTick::of(
            ClientQuota {
                messages_per_s: 100,
                violations_max: 20,
                ..ClientQuota::default()
            },
            TICK_NS,
        );
        let mut tokens = QuotaBucket::full(&quota, 0);
        for tick in 1..100 {
            tokens.fill(&quota, tick);
            assert!(
                (0..5).all(|_| !tokens.count_violation(&quota)),
                "five a tick are forgotten"
            );
        }
        assert!((0..30).any(|_| tokens.count_violation(&quota)));
    }

    #[test]
    fn first_violation_above_the_limit_counts_as_flooding() {
        let quota = QuotaPerTick::of(
            ClientQuota {
                messages_per_s: 20,
                violations_max: 3,
                ..ClientQuota::default()
            },
            TICK_NS,
        );
        let mut tokens = QuotaBucket::full(&quota, 0);
        let mut violate = |tick| {
            tokens.fill(&quota, tick);
            tokens.count_violation(&quota)
        };
        assert_eq!([0; 4].map(&mut violate), [false, false, false, true]);
        // One is forgotten per tick.
        assert_eq!([1, 1].map(&mut violate), [true, true]);
        assert_eq!([4, 4, 4].map(&mut violate), [false, true, true]);
    }
}
