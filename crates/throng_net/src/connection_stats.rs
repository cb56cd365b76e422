//! Figures of one connection, for operators.

/// Time between two measurements of a connection's figures, in microseconds.
pub(crate) const CONNECTION_STATS_US: u64 = 500_000;

/// Figures of one connection, at most about a second old.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ConnectionStats {
    /// Smoothed round trip time, in microseconds; 0 before the first measurement.
    pub round_trip_us: u64,
    /// Bytes of packets sent to the client since it connected, without encryption and datagram headers.
    pub bytes_sent: u64,
    /// The same per second, over the last measurement.
    pub bytes_per_s: u64,
    /// Estimated share of packets that do not arrive at the client, 0 to 1; 0 over a stream.
    pub loss: f32,
}

impl ConnectionStats {
    /// The figures after `elapsed_us` more microseconds.
    pub(crate) fn next(
        self,
        elapsed_us: u64,
        (round_trip_us, bytes_sent, loss): (u64, u64, f32),
    ) -> Self {
        let bytes = bytes_sent.saturating_sub(self.bytes_sent);
        Self {
            round_trip_us,
            bytes_sent,
            bytes_per_s: bytes.saturating_mul(1_000_000) / elapsed_us.max(1),
            loss,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_of_the_last_measurement() {
        let first = ConnectionStats::default().next(500_000, (20_000, 1_000, 0.0));
        assert_eq!(first.bytes_per_s, 2_000);
        let second = first.next(2_000_000, (30_000, 1_500, 0.1));
        assert_eq!((second.bytes_per_s, second.bytes_sent), (250, 1_500));
        assert_eq!((second.round_trip_us, second.loss), (30_000, 0.1));
        // A machine that stood still, and a clock that did not move.
        assert_eq!(second.next(0, (1, 1_500, 0.0)).bytes_per_s, 0);
    }
}
