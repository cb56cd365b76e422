//! An estimate of the server's tick by the client's clock, from the replies to *Ping*.
//!
//! As in NTP (RFC 5905, section 10), the reply is assumed to have left in the middle of its round trip. Of the last [`CLOCK_SAMPLES`]
//! replies, the one with the shortest round trip counts: it was delayed least, so its middle is most accurate.
//!
//! Invariant: the error of the tick is half of the difference between the delays to the server and back, so at most half a round trip. (The
//! server replies at the beginning of a tick, so up to a tick of waiting counts as delay to the server.) Clock drift adds to the error,
//! over the time of this many replies. Cost: O(samples) per reply; no allocation after the first few. Reads no clock: the caller passes the
//! time.

use std::collections::VecDeque;

/// Number of stored replies.
pub const CLOCK_SAMPLES: usize = 16;

/// Number of stored requests without a reply; older ones are dropped like lost ones.
const PENDING_PINGS_MAX: usize = 16;

/// An estimate of the server's clock.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerClock {
    tick_s: f64,
    /// Number of the last request.
    last_ping: u32,
    /// Requests without a reply, oldest first, and their times.
    pending_pings: VecDeque<(u32, f64)>,
    /// The last replies, oldest first.
    samples: VecDeque<ClockSample>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct ClockSample {
    round_trip_s: f64,
    /// The server's tick at the client's time 0, by this reply.
    tick_at_zero: f64,
}

impl ServerClock {
    /// A clock with this tick length in seconds, from [`Mirror::tick_s`](crate::mirror::Mirror::tick_s) after *Hello*. An invalid length
    /// counts as a second.
    #[must_use]
    pub fn new(tick_s: f32) -> Self {
        let is_length = tick_s.is_finite() && tick_s > 0.0;
        Self {
            tick_s: if is_length { f64::from(tick_s) } else { 1.0 },
            last_ping: 0,
            pending_pings: VecDeque::new(),
            samples: VecDeque::new(),
        }
    }

    /// Sets the length of a tick by the client's clock, as after a *TimeRate*. Drops all earlier requests and replies.
    pub fn set_tick_s(&mut self, tick_s: f64) {
        if tick_s.is_finite() && tick_s > 0.0 {
            self.tick_s = tick_s;
        }
        self.pending_pings.clear();
        self.samples.clear();
    }

    /// Starts a request at a time of the client's monotonic clock, in seconds. Returns the number for its *Ping*.
    pub fn start_ping(&mut self, now_s: f64) -> u32 {
        if self.pending_pings.len() == PENDING_PINGS_MAX {
            self.pending_pings.pop_front();
        }
        self.last_ping = self.last_ping.wrapping_add(1);
        self.pending_pings.push_back((self.last_ping, now_s));
        self.last_ping
    }

    /// Handles a *Pong* that arrives now. Returns its round trip time in seconds, or `None` if there is no such request without a reply.
    pub fn finish_ping(&mut self, number: u32, tick: u64, now_s: f64) -> Option<f64> {
        let nth = self
            .pending_pings
            .iter()
            .position(|&(asked, _)| asked == number)?;
        let (_, asked_s) = self.pending_pings.remove(nth)?;
        let round_trip_s = now_s - asked_s;
        if !(round_trip_s >= 0.0 && round_trip_s.is_finite()) {
            return None;
        }
        let left_s = asked_s + round_trip_s / 2.0;
        if self.samples.len() == CLOCK_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(ClockSample {
            round_trip_s,
            tick_at_zero: tick as f64 - left_s / self.tick_s,
        });
        Some(round_trip_s)
    }

    /// Of several with the same round trip, the newest.
    fn best_sample(&self) -> Option<&ClockSample> {
        let shorter =
            |a: &&ClockSample, b: &&ClockSample| a.round_trip_s.total_cmp(&b.round_trip_s);
        self.samples.iter().rev().min_by(shorter)
    }

    /// The shortest round trip of the last replies, in seconds; `None` before the first.
    #[must_use]
    pub fn round_trip_s(&self) -> Option<f64> {
        self.best_sample().map(|best| best.round_trip_s)
    }

    /// The server's tick at a time of the client's clock, with its fraction; `None` before the first reply.
    #[must_use]
    pub fn tick_at(&self, now_s: f64) -> Option<f64> {
        self.best_sample()
            .map(|best| best.tick_at_zero + now_s / self.tick_s)
    }

    /// Maximum error of that tick: half a round trip.
    #[must_use]
    pub fn error_ticks_max(&self) -> Option<f64> {
        self.best_sample()
            .map(|best| best.round_trip_s / 2.0 / self.tick_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn unrequested_duplicate_or_backdated_pongs_are_ignored() {
        let mut clock = ServerClock::new(0.05);
        assert_eq!((clock.tick_at(1.0), clock.round_trip_s()), (None, None));
        let [first, second, third] = [1.0, 2.0, 3.0].map(|now| clock.start_ping(now));
        assert_eq!(clock.finish_ping(99, 7, 1.1), None);
        assert!(clock.finish_ping(first, 100, 1.2).is_some());
        let before = clock.clone();
        assert_eq!(clock.finish_ping(first, 900, 1.3), None);
        assert_eq!(clock, before);
        assert_eq!(clock.finish_ping(second, 900, 1.9), None);
        assert_eq!(clock.finish_ping(third, 900, f64::NAN), None);
        assert_eq!(clock.samples, before.samples);
        // The reply left at 1.1 s, at tick 100.
        assert!((clock.tick_at(1.6).unwrap() - 110.0).abs() < 1e-6);
        assert!((clock.error_ticks_max().unwrap() - 2.0).abs() < 1e-6);
        assert_eq!(ServerClock::new(f32::NAN).tick_s, 1.0);
    }

    #[test]
    fn newest_unanswered_pings_are_kept() {
        let mut clock = ServerClock::new(0.05);
        let asked: Vec<u32> = (0..40)
            .map(|nth| clock.start_ping(f64::from(nth)))
            .collect();
        let answered = asked
            .iter()
            .filter(|&&number| clock.finish_ping(number, 1, 50.0).is_some());
        assert_eq!(answered.count(), PENDING_PINGS_MAX);
    }

    #[test]
    fn newest_of_equally_short_round_trips_counts() {
        let mut clock = ServerClock::new(0.5);
        for (asked_s, tick) in [(1.0, 100), (2.0, 200)] {
            let number = clock.start_ping(asked_s);
            assert_eq!(clock.finish_ping(number, tick, asked_s + 0.5), Some(0.5));
        }
        // The second reply left at 2.25 s.
        assert_eq!(clock.tick_at(2.25), Some(200.0));
    }

    #[test]
    fn new_tick_length_drops_earlier_requests_and_replies() {
        let mut clock = ServerClock::new(0.5);
        let [answered, pending] = [1.0, 1.5].map(|now_s| clock.start_ping(now_s));
        clock.finish_ping(answered, 100, 1.5).unwrap();
        clock.set_tick_s(1.0);
        assert_eq!((clock.tick_at(2.0), clock.round_trip_s()), (None, None));
        assert_eq!(clock.finish_ping(pending, 101, 2.0), None);
        let again = clock.start_ping(3.0);
        clock.finish_ping(again, 103, 4.0).unwrap();
        assert_eq!(clock.tick_at(5.5), Some(105.0), "a tick a second");
    }

    proptest! {
        #![proptest_config(draws!())]

        /// The server's ticks begin at times unknown to the client; delays are random, and some replies are lost. The error of the tick is
        /// half the difference of the delays of the shortest round trip, and at most half of that round trip.
        #[test]
        fn tick_error_is_at_most_half_the_delay_difference(
            ways in prop::collection::vec((0.0f64..0.4, 0.0f64..0.4, prop::bool::weighted(0.8)), 1..80),
            origin_s in -1000.0f64..1000.0,
            tick_s in prop::sample::select(vec![0.05f32, 1.0 / 64.0, 1.0 / 30.0]),
        ) {
            let length = f64::from(tick_s);
            let mut clock = ServerClock::new(tick_s);
            let (mut now_s, mut came) = (5.0, Vec::new());
            for (there_s, back_s, is_answered) in ways {
                let number = clock.start_ping(now_s);
                // The server replies at the beginning of the first tick after the request arrived.
                let tick = ((now_s + there_s - origin_s) / length).ceil().max(0.0);
                let left_s = origin_s + tick * length;
                if is_answered && left_s >= now_s {
                    let back_at_s = left_s + back_s;
                    let round_trip_s = clock.finish_ping(number, tick as u64, back_at_s).unwrap();
                    prop_assert!((round_trip_s - (back_at_s - now_s)).abs() < 1e-9);
                    came.push((round_trip_s, ((left_s - now_s) - back_s).abs()));
                }
                let last = &came[came.len().saturating_sub(CLOCK_SAMPLES)..];
                let shortest = last.iter().map(|&(round_trip_s, _)| round_trip_s).reduce(f64::min);
                prop_assert_eq!(clock.round_trip_s(), shortest);
                if let Some(shortest) = shortest {
                    let worst = last.iter().filter(|(it, _)| *it == shortest).map(|&(_, apart)| apart);
                    let allowed = worst.fold(0.0, f64::max) / 2.0 / length;
                    let real = (now_s - origin_s) / length;
                    let off = (clock.tick_at(now_s).unwrap() - real).abs();
                    prop_assert!(off <= allowed + 1e-6, "{} above {}", off, allowed);
                    prop_assert!(allowed <= clock.error_ticks_max().unwrap() + 1e-9);
                }
                now_s += 1.0;
            }
        }
    }
}
