//! How long a node may simulate without being dead for others.
//!
//! ```text
//! last successful heartbeat ──── 540 ms ────▶ paused without the bus ──── to 1,350 ms ────▶ paused
//!                                             └ its echoes return: goes on ┘
//! ```
//! Others declare a node dead after 1,500 ms without a heartbeat ([`NODE_LATE_AFTER_MS`](crate::NODE_LATE_AFTER_MS)), or after 600 ms if it has
//! not been connected to the bus for 220 ms ([`NODE_UNHEARD_AFTER_MS`](crate::NODE_UNHEARD_AFTER_MS), [`QuietNodes`](super::quiet_nodes)). The
//! times here are a tenth shorter, so a node pauses first, even if its clock runs up to a tenth slower.
//!
//! An echo is a message of a node to itself. When one returns, the bus had the node's subscription at some time after it was sent. A node that
//! has paused goes on with its next heartbeat only: its row then differs from the one that others have seen, so they cannot declare it dead for
//! what was before.

/// How long a node may simulate after it sent a heartbeat that succeeded, in milliseconds. It is shorter than
/// [`NODE_LATE_AFTER_MS`](crate::NODE_LATE_AFTER_MS) by a tenth, so that the node pauses before it is late, even if its clock runs up to a
/// tenth slower than the store's.
pub const NODE_VALID_MS: u64 = 1_350;

/// How long a node that is not connected to the bus may simulate after it sent a heartbeat that succeeded, in milliseconds. It is shorter than
/// [`NODE_UNHEARD_AFTER_MS`](crate::NODE_UNHEARD_AFTER_MS) by a tenth.
pub const NODE_VALID_ALONE_MS: u64 = 540;

/// How long the bus counts as connected after an echo was sent that has returned. It is a tenth shorter than the time for which others must have
/// found a node unconnected ([`UNREACHABLE_MS`](super::quiet_nodes::UNREACHABLE_MS)).
const ECHO_VALID_MS: u64 = 190;

/// Echoes are sent from this time after the last successful heartbeat on: earlier ones would not be needed.
const ECHO_AFTER_MS: u64 = 350;

/// The time between two echoes.
const ECHO_INTERVAL_MS: u64 = 50;

/// The time after a connection to the bus was made during which echoes do not count. It is longer than the pause between two probes that others
/// may take for one absence ([`PROBES_APART_MAX_MS`](super::quiet_nodes::PROBES_APART_MAX_MS)): they notice each connection that counts.
const BUS_SETTLE_MS: u64 = 400;

/// Until when a node may simulate.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeValidity {
    /// 0 before the first heartbeat of the run.
    until_ms: u64,
    /// When the last heartbeat was sent that succeeded.
    heartbeat_ms: u64,
    /// When the last echo was sent that counts.
    echo_ms: u64,
    next_echo_ms: u64,
    /// From when on echoes count.
    settled_ms: u64,
}

impl NodeValidity {
    pub const fn new() -> Self {
        Self {
            until_ms: 0,
            heartbeat_ms: 0,
            echo_ms: 0,
            next_echo_ms: 0,
            settled_ms: 0,
        }
    }

    /// `false` before the first heartbeat, and while the node pauses.
    pub const fn is_valid(&self, now_ms: u64) -> bool {
        now_ms < self.until_ms
    }

    /// Whether it was valid in this run.
    pub const fn has_begun(&self) -> bool {
        self.until_ms > 0
    }

    /// Handles a heartbeat that has succeeded.
    pub fn on_heartbeat(&mut self, sent_ms: u64) {
        self.heartbeat_ms = self.heartbeat_ms.max(sent_ms);
        self.until_ms = self.until_ms.max(self.heartbeat_ms + NODE_VALID_ALONE_MS);
        self.extend();
    }

    /// Handles an echo that has returned. It does not end a pause.
    pub fn on_echo(&mut self, sent_ms: u64, now_ms: u64) {
        if sent_ms >= self.settled_ms {
            self.echo_ms = self.echo_ms.max(sent_ms);
        }
        if self.is_valid(now_ms) {
            self.extend();
        }
    }

    fn extend(&mut self) {
        let connected_ms = self.echo_ms + ECHO_VALID_MS;
        let until_ms = connected_ms.min(self.heartbeat_ms + NODE_VALID_MS);
        self.until_ms = self.until_ms.max(until_ms);
    }

    /// Handles a new connection to the bus.
    pub const fn on_bus_connected(&mut self, now_ms: u64) {
        self.settled_ms = now_ms + BUS_SETTLE_MS;
    }

    /// Whether an echo has to be sent now.
    pub const fn takes_echo(&mut self, now_ms: u64) -> bool {
        let is_due = self.is_valid(now_ms)
            && now_ms >= self.heartbeat_ms + ECHO_AFTER_MS
            && now_ms >= self.next_echo_ms;
        if is_due {
            self.next_echo_ms = now_ms + ECHO_INTERVAL_MS;
        }
        is_due
    }

    /// The run has ended.
    pub const fn end_run(&mut self) {
        self.until_ms = 0;
        self.heartbeat_ms = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From when to when a node is valid whose heartbeat was sent at 10,000, and whose echoes until `echoes_until_ms` return after 5 ms.
    fn valid_until(mut validity: NodeValidity, echoes_until_ms: u64) -> u64 {
        validity.on_heartbeat(10_000);
        let mut returning = None;
        for now_ms in 10_000.. {
            if !validity.is_valid(now_ms) {
                return now_ms;
            }
            if let Some(sent_ms) = returning.take_if(|sent_ms| now_ms == *sent_ms + 5) {
                validity.on_echo(sent_ms, now_ms);
            }
            if validity.takes_echo(now_ms) && now_ms <= echoes_until_ms {
                returning = Some(now_ms);
            }
        }
        unreachable!()
    }

    #[test]
    fn node_without_the_bus_pauses_earlier() {
        let new = NodeValidity::new();
        assert!(!new.is_valid(0) && !new.has_begun());
        assert_eq!(valid_until(new, 0), 10_540);
        assert_eq!(valid_until(new, 10_700), 10_700 + 190);
        assert_eq!(valid_until(new, u64::MAX), 10_000 + 1_350);
    }

    #[test]
    fn new_connection_counts_after_a_while() {
        let mut validity = NodeValidity::new();
        validity.on_bus_connected(10_100);
        assert_eq!(valid_until(validity, u64::MAX), 10_000 + 1_350);
        validity.on_bus_connected(10_150);
        assert_eq!(valid_until(validity, u64::MAX), 10_540);
    }

    #[test]
    fn pause_ends_with_a_heartbeat_and_not_with_an_echo() {
        let mut validity = NodeValidity::new();
        validity.on_heartbeat(1_000);
        validity.on_echo(1_600, 1_610);
        assert!(!validity.is_valid(1_610));
        validity.on_heartbeat(1_500);
        assert!(validity.is_valid(2_039) && !validity.is_valid(2_040));
        validity.on_heartbeat(1_200);
        assert!(!validity.is_valid(2_040), "an older one changes nothing");
        validity.end_run();
        assert!(!validity.is_valid(1_700) && !validity.has_begun());
        validity.on_echo(1_700, 1_705);
        assert!(!validity.is_valid(1_705));
    }
}
