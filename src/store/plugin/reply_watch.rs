//! Whether the store still replies: a store that hangs is noticed after seconds, also while no player needs it.

use crate::memory::MemoryUse;

/// A store that was not used for this long is sent a request that reads nothing.
const PROBE_AFTER_MS: u64 = 1_000;

/// A store whose next reply takes longer than this counts as failing until it replies.
const STALLED_AFTER_MS: u64 = 3_000;

/// The times of replies, by the clock of this server.
#[derive(Clone, Copy, Debug, MemoryUse)]
pub(super) struct ReplyWatch {
    replied_ms: u64,
    /// Since when a reply is awaited.
    waiting_since_ms: Option<u64>,
    is_probe_pending: bool,
}

impl ReplyWatch {
    pub const fn new(now_ms: u64) -> Self {
        Self {
            replied_ms: now_ms,
            waiting_since_ms: None,
            is_probe_pending: false,
        }
    }

    /// Records a reply. Another one may still be awaited.
    pub const fn on_reply(&mut self, now_ms: u64, is_of_probe: bool) {
        self.replied_ms = now_ms;
        self.waiting_since_ms = None;
        if is_of_probe {
            self.is_probe_pending = false;
        }
    }

    /// Whether the store has not replied for too long. Call it once per tick, after its replies were taken; `is_pending`: whether the reply
    /// to another request than a probe is awaited.
    pub fn is_stalled(&mut self, now_ms: u64, is_pending: bool) -> bool {
        if !is_pending && !self.is_probe_pending {
            self.waiting_since_ms = None;
            return false;
        }
        let since_ms = *self.waiting_since_ms.get_or_insert(now_ms);
        now_ms.saturating_sub(since_ms) >= STALLED_AFTER_MS
    }

    /// Whether to send a probe now. If so, the next call needs a reply to it first.
    pub const fn start_probe(&mut self, now_ms: u64, is_pending: bool) -> bool {
        let is_idle = !is_pending && !self.is_probe_pending;
        let is_due = is_idle && now_ms.saturating_sub(self.replied_ms) >= PROBE_AFTER_MS;
        self.is_probe_pending |= is_due;
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_store_is_probed_every_second() {
        let mut watch = ReplyWatch::new(100);
        assert!(!watch.start_probe(1_099, false));
        assert!(!watch.start_probe(1_100, true), "another reply is awaited");
        assert!(watch.start_probe(1_100, false));
        assert!(!watch.start_probe(9_000, false), "one at a time");
        watch.on_reply(9_000, true);
        assert!(!watch.start_probe(9_999, false));
        assert!(watch.start_probe(10_000, false));
    }

    #[test]
    fn hanging_store_is_noticed_within_five_seconds() {
        for is_idle in [true, false] {
            let mut watch = ReplyWatch::new(0);
            let mut noticed = None;
            // It hangs from the start on.
            for now_ms in (0..20_000).step_by(50) {
                let is_pending = !is_idle && now_ms >= 200;
                if watch.is_stalled(now_ms, is_pending) {
                    noticed = Some(now_ms);
                    break;
                }
                watch.start_probe(now_ms, is_pending);
            }
            let noticed = noticed.expect("it is noticed");
            assert!((3_000..5_000).contains(&noticed), "{noticed}");
        }
    }

    #[test]
    fn server_that_stood_still_does_not_blame_its_store() {
        let mut watch = ReplyWatch::new(0);
        assert!(!watch.is_stalled(50, true));
        // No tick for 12 s. The reply has arrived meanwhile.
        watch.on_reply(12_050, false);
        assert!(!watch.is_stalled(12_050, true));
        assert!(!watch.is_stalled(15_049, true));
        assert!(watch.is_stalled(15_050, true));
        watch.on_reply(15_100, false);
        assert!(!watch.is_stalled(40_000, false));
        // A request whose reply cannot have arrived yet.
        assert!(!watch.is_stalled(60_000, true));
    }
}
