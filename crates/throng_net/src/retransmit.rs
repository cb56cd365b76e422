//! Redundancy and retransmission, chosen by the estimated loss, its pattern and the round trip time.
//!
//! | estimated loss | number of consecutive packets that carry the same bytes |
//! |---|---|
//! | below 0.2 % | 1 |
//! | below 2 % | 2 |
//! | below 7 % | 3 |
//! | below 15 % | 4 |
//! | above, or in bursts | all, until acknowledged |
//!
//! Afterwards the bytes are sent again when a packet that was sent later is acknowledged and theirs are not, or when nothing is
//! acknowledged for a *probe timeout* (PTO, RFC 9002, section 6.2), which doubles while that lasts. The other end acknowledges once per
//! tick, and the round trip exceeds four ticks on most paths. Waiting for an acknowledgement would therefore take longer than a game can
//! wait, and a second copy of a few bytes costs less.

/// PTO before the first round trip is measured, in microseconds.
const PTO_FIRST_US: u64 = 200_000;

/// The longest accepted round trip time, in microseconds.
const ROUND_TRIP_MAX_US: u64 = 60_000_000;

/// The longest delay of a reply at the other end, in microseconds: a tick.
const ACK_DELAY_US: u64 = 33_000;

/// The longest PTO, in microseconds.
const PTO_MAX_US: u64 = 1_000_000;

/// The longest reordering that does not count as loss, in microseconds.
const REORDER_MAX_US: u64 = 10_000;

/// Copies continue until the acknowledgement.
pub(super) const UNTIL_ACKNOWLEDGED: u8 = u8::MAX;

/// Estimate of loss and round trip time, from acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PathEstimate {
    /// Share of packets lost: over about the last 50, and over about the last 250.
    fast_average: f32,
    slow_average: f32,
    /// Share of about the last 250 packets lost, without the assumption that the averages above start with; and the sum of its weights.
    measured_loss: f32,
    measured_weight: f32,
    /// Share of lost packets that follow another lost packet.
    burst_loss: f32,
    /// Smoothed round trip time and its variation (RFC 6298), in microseconds; 0 before the first measurement.
    round_trip_us: u64,
    round_trip_variation_us: u64,
    /// Number of PTOs since the last acknowledgement of new data, and time of the last one.
    timeouts: u8,
    last_timeout_us: u64,
    /// Time of the last acknowledgement.
    last_ack_us: u64,
}

impl Default for PathEstimate {
    fn default() -> Self {
        Self {
            fast_average: 0.03,
            slow_average: 0.03,
            measured_loss: 0.0,
            measured_weight: 0.0,
            burst_loss: 0.05,
            round_trip_us: 0,
            round_trip_variation_us: 0,
            timeouts: 0,
            last_timeout_us: 0,
            last_ack_us: 0,
        }
    }
}

/// The weight of a packet in the average over about the last 250.
const SLOW_SHARE: f32 = 0.004;

/// Moves an average towards a new value.
fn blend(average: &mut f32, value: f32, share: f32) {
    *average += (value - *average) * share;
}

impl PathEstimate {
    /// Records that a packet arrived, and its round trip time if it measures one.
    pub fn on_arrived(&mut self, now_us: u64, round_trip_us: Option<u64>, was_lost: bool) {
        if !was_lost {
            blend(&mut self.fast_average, 0.0, 0.02);
            blend(&mut self.slow_average, 0.0, SLOW_SHARE);
            self.measure(0.0);
        } else {
            // It was only late.
            self.measured_loss = (self.measured_loss - SLOW_SHARE).max(0.0);
        }
        self.timeouts = 0;
        self.last_ack_us = now_us;
        let Some(sample_us) = round_trip_us.map(|us| us.min(ROUND_TRIP_MAX_US)) else {
            return;
        };
        if self.round_trip_us == 0 {
            (self.round_trip_us, self.round_trip_variation_us) = (sample_us.max(1), sample_us / 4);
        } else {
            let off_us = sample_us.abs_diff(self.round_trip_us);
            self.round_trip_variation_us = (self.round_trip_variation_us * 7 + off_us) / 8;
            self.round_trip_us = ((self.round_trip_us * 7 + sample_us) / 8).max(1);
        }
    }

    /// Records that a packet was lost, and whether the one before it was lost too.
    pub fn on_lost(&mut self, after_another: bool) {
        blend(&mut self.fast_average, 1.0, 0.02);
        blend(&mut self.slow_average, 1.0, SLOW_SHARE);
        self.measure(1.0);
        blend(
            &mut self.burst_loss,
            f32::from(u8::from(after_another)),
            0.04,
        );
    }

    /// Records a retransmission by timeout. Those within one PTO count once.
    pub fn on_timeout(&mut self, now_us: u64) {
        if self.timeouts == 0 || now_us.saturating_sub(self.last_timeout_us) >= self.pto_us() {
            self.timeouts = self.timeouts.saturating_add(1);
            self.last_timeout_us = now_us;
        }
    }

    /// Number of consecutive PTOs without an acknowledgement.
    pub const fn timeouts(&self) -> u8 {
        self.timeouts
    }

    fn measure(&mut self, lost: f32) {
        blend(&mut self.measured_loss, lost, SLOW_SHARE);
        blend(&mut self.measured_weight, 1.0, SLOW_SHARE);
    }

    /// Share of about the last 250 packets lost, as measured; 0 before the first acknowledgement. For people: [`loss`](Self::loss) begins
    /// with an assumption, so that the first packets of a connection are sent more than once.
    pub fn measured_loss(&self) -> f32 {
        if self.measured_weight > 0.0 {
            self.measured_loss / self.measured_weight
        } else {
            0.0
        }
    }

    /// Share of packets lost, for decisions about copies: 3 % at first.
    pub fn loss(&self) -> f32 {
        self.fast_average.max(self.slow_average)
    }

    /// Share of about the last 50 packets lost.
    pub fn recent_loss(&self) -> f32 {
        self.fast_average
    }

    /// Whether losses come in bursts.
    pub fn is_bursty(&self) -> bool {
        self.loss() > 0.01 && self.burst_loss > 0.3
    }

    /// Number of consecutive packets that carry the same bytes.
    pub fn copies(&self, now_us: u64) -> u8 {
        // If the other end does not reply at all, only timeouts send again.
        if self.timeouts > 1 && now_us.saturating_sub(self.last_ack_us) > 2 * self.shortest_pto_us()
        {
            return 1;
        }
        match self.loss() {
            _ if self.is_bursty() => UNTIL_ACKNOWLEDGED,
            ..0.002 => 1,
            ..0.02 => 2,
            ..0.07 => 3,
            ..0.15 => 4,
            _ => UNTIL_ACKNOWLEDGED,
        }
    }

    /// Smoothed round trip time, in microseconds; 0 before the first measurement.
    pub const fn round_trip_us(&self) -> u64 {
        self.round_trip_us
    }

    fn shortest_pto_us(&self) -> u64 {
        match self.round_trip_us {
            0 => PTO_FIRST_US,
            round_trip_us => round_trip_us + 4 * self.round_trip_variation_us + ACK_DELAY_US,
        }
    }

    /// Probe timeout, in microseconds.
    pub fn pto_us(&self) -> u64 {
        let pto_us = self.shortest_pto_us().min(PTO_MAX_US);
        (pto_us << self.timeouts.min(4)).min(PTO_MAX_US)
    }

    /// By how much packets can be reordered, in microseconds.
    pub fn reorder_us(&self) -> u64 {
        (self.round_trip_us / 8).min(REORDER_MAX_US)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(lost: impl Fn(u32) -> bool) -> PathEstimate {
        let mut estimate = PathEstimate::default();
        for nth in 0..2_000 {
            if lost(nth) {
                estimate.on_lost(lost(nth.wrapping_sub(1)));
            } else {
                estimate.on_arrived(0, Some(110_000), false);
            }
        }
        estimate
    }

    #[test]
    fn higher_loss_means_more_copies() {
        let copies = |one_in: u32| after(|nth| nth % one_in == 3).copies(0);
        assert_eq!(after(|_| false).copies(0), 1);
        assert_eq!([100, 20, 11, 5].map(copies), [2, 3, 4, UNTIL_ACKNOWLEDGED]);
    }

    #[test]
    fn measured_loss_starts_without_an_assumption() {
        let mut estimate = PathEstimate::default();
        assert_eq!(estimate.measured_loss(), 0.0);
        for _ in 0..200 {
            estimate.on_arrived(0, None, false);
        }
        assert!(estimate.loss() > 0.01);
        assert_eq!(estimate.measured_loss(), 0.0);
        // The same share after few packets and after many.
        for packets in [20, 2_000] {
            let mut estimate = PathEstimate::default();
            for nth in 0..packets {
                match nth % 10 {
                    3 => estimate.on_lost(false),
                    _ => estimate.on_arrived(0, None, false),
                }
            }
            let found = estimate.measured_loss();
            assert!((found - 0.1).abs() < 0.01, "{found} of {packets}");
        }
        // A packet that arrives after it counted as lost was not lost.
        let mut late = PathEstimate::default();
        (0..50).for_each(|_| late.on_arrived(0, None, false));
        late.on_lost(false);
        late.on_arrived(0, None, true);
        assert!(late.measured_loss() < 1e-6, "{}", late.measured_loss());
    }

    #[test]
    fn burst_losses_are_copied_until_acknowledged() {
        let bursts = after(|nth| nth % 40 < 2);
        assert!(bursts.is_bursty());
        assert_eq!(bursts.copies(0), UNTIL_ACKNOWLEDGED);
        assert!(!after(|nth| nth % 20 == 0).is_bursty());
    }

    #[test]
    fn timeouts_grow_to_a_second_and_reset_on_an_acknowledgement() {
        let mut estimate = after(|nth| nth % 5 == 0);
        let short_us = estimate.pto_us();
        assert!((140_000..200_000).contains(&short_us), "{short_us}");
        estimate.on_timeout(200_000);
        estimate.on_timeout(210_000);
        assert_eq!(estimate.pto_us(), 2 * short_us);
        (1..300).for_each(|second| estimate.on_timeout(second * 1_000_000));
        assert_eq!(estimate.pto_us(), PTO_MAX_US);
        assert_eq!(estimate.copies(300_000_000), 1);
        estimate.on_arrived(300_000_000, None, false);
        assert_eq!(estimate.pto_us(), short_us);
        assert_eq!(estimate.copies(300_000_000), UNTIL_ACKNOWLEDGED);
    }
}
