//! Discovery of the longest datagram that a path carries.
//!
//! Every path carries 508 bytes, nearly all 1,200, most 1,400. A *probe* is a packet padded to the next of these sizes, without content
//! that would have to be repeated (RFC 8899). When long packets are lost and only short ones arrive, the size returns to the minimum: the
//! path has changed, or silently drops long packets.

/// Sizes of datagrams, in bytes.
const SIZES: [u16; 3] = [508, 1_200, 1_400];

/// Index of the initial size.
const DEFAULT_INDEX: usize = 1;

/// Lost probes of one size after which it is not tried for a while.
const PROBES_MAX: u8 = 3;

/// Time between two probes, and the pause after all probes of one size were lost, in microseconds.
const PROBE_EVERY_US: u64 = 1_000_000;
const RETRY_US: u64 = 60_000_000;

/// Consecutive losses of long packets after which none is assumed to arrive: three, or six if a tenth of all packets is lost anyway.
const LOST_IN_A_ROW_MAX: u8 = 3;
const LOSS_HIGH: f32 = 0.1;

/// Consecutive timeouts with the same meaning: if both ends send only packets that are too long, neither receives any.
const TIMEOUTS_MAX: u8 = 3;

/// The longest datagram of a path, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathMtu {
    /// Index into [`SIZES`].
    size_index: usize,
    /// Index of the largest size to try.
    largest_index: usize,
    probes_lost: u8,
    next_probe_us: u64,
    /// Long packets lost since the last one that arrived.
    lost_in_a_row: u8,
}

impl PathMtu {
    /// Starts at the default size; tries datagrams of up to `bytes_max`.
    pub fn new(bytes_max: usize) -> Self {
        let fitting = SIZES
            .iter()
            .filter(|size| usize::from(**size) <= bytes_max)
            .count();
        let largest = fitting.saturating_sub(1);
        Self {
            size_index: DEFAULT_INDEX.min(largest),
            largest_index: largest,
            probes_lost: 0,
            next_probe_us: PROBE_EVERY_US,
            lost_in_a_row: 0,
        }
    }

    /// The longest datagram, in bytes.
    pub fn bytes(&self) -> usize {
        usize::from(SIZES[self.size_index])
    }

    /// Length of a probe, if one is pending.
    pub fn probe(&mut self, now_us: u64) -> Option<usize> {
        if self.size_index >= self.largest_index || now_us < self.next_probe_us {
            return None;
        }
        self.next_probe_us = now_us + PROBE_EVERY_US;
        Some(usize::from(SIZES[self.size_index + 1]))
    }

    /// Records that a datagram of this length arrived.
    pub fn on_arrived(&mut self, bytes: usize, is_probe: bool) {
        if bytes > usize::from(SIZES[0]) {
            self.lost_in_a_row = 0;
        }
        if is_probe && bytes > self.bytes() {
            self.size_index += 1;
            self.probes_lost = 0;
        }
    }

    /// Records that a datagram of this length was lost, on a path with this share of losses.
    pub fn on_lost(&mut self, now_us: u64, bytes: usize, is_probe: bool, loss: f32) {
        if is_probe {
            self.probes_lost += 1;
            if self.probes_lost >= PROBES_MAX {
                self.probes_lost = 0;
                self.next_probe_us = now_us + RETRY_US;
            }
        } else if bytes > usize::from(SIZES[0]) && self.size_index > 0 {
            self.lost_in_a_row += 1;
            let most = if loss < LOSS_HIGH {
                LOST_IN_A_ROW_MAX
            } else {
                2 * LOST_IN_A_ROW_MAX
            };
            if self.lost_in_a_row >= most {
                self.shrink(now_us);
            }
        }
    }

    /// Records consecutive timeouts: the packets may be too long for the path.
    pub fn on_timeouts(&mut self, now_us: u64, timeouts: u8) {
        if timeouts >= TIMEOUTS_MAX && self.size_index > 0 {
            self.shrink(now_us);
        }
    }

    fn shrink(&mut self, now_us: u64) {
        self.lost_in_a_row = 0;
        self.size_index = 0;
        self.probes_lost = 0;
        self.next_probe_us = now_us + 10 * PROBE_EVERY_US;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_mtu_is_found_and_a_smaller_one_after_three_losses() {
        let mut path = PathMtu::new(1_400);
        assert_eq!((path.bytes(), path.probe(0)), (1_200, None));
        assert_eq!(path.probe(1_000_000), Some(1_400));
        path.on_arrived(1_400, true);
        assert_eq!((path.bytes(), path.probe(9_000_000)), (1_400, None));
        path.on_lost(0, 1_300, false, 0.05);
        path.on_lost(0, 1_300, false, 0.05);
        path.on_arrived(600, false);
        for _ in 0..2 {
            path.on_lost(0, 1_300, false, 0.05);
            path.on_lost(0, 400, false, 0.05);
            path.on_arrived(400, false);
            assert_eq!(path.bytes(), 1_400);
        }
        path.on_lost(0, 1_300, false, 0.05);
        assert_eq!(path.bytes(), 508);
        assert_eq!(path.probe(10_000_000), Some(1_200));
        path.on_arrived(1_200, true);
        assert_eq!(path.bytes(), 1_200);
        path.on_timeouts(20_000_000, 2);
        assert_eq!(path.bytes(), 1_200);
        path.on_timeouts(20_000_000, 3);
        assert_eq!(path.bytes(), 508);
    }

    #[test]
    fn failed_mtu_probe_is_retried_three_times_then_each_minute() {
        let mut path = PathMtu::new(2_000);
        let probes: Vec<u64> = (0..130)
            .filter(|second| {
                let now_us = second * 1_000_000;
                let bytes = path.probe(now_us);
                if let Some(bytes) = bytes {
                    path.on_lost(now_us, bytes, true, 0.0);
                }
                bytes.is_some()
            })
            .collect();
        assert_eq!(probes, [1, 2, 3, 63, 64, 65, 125, 126, 127]);
        assert_eq!(path.bytes(), 1_200);
    }
}
