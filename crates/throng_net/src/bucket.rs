//! Rate limit: a token bucket of bytes, whose rate decreases on a path with heavy loss.
//!
//! Tokens are millionths of bytes, so any rate is exact for any time between two calls.

/// Loss above which the rate is too high for the path, and below which a higher rate is tried.
const LOSS_HIGH: f32 = 0.3;
const LOSS_LOW: f32 = 0.1;

/// How long either has to last before the rate changes, in microseconds.
const LOSS_HIGH_US: u64 = 5_000_000;
const LOSS_LOW_US: u64 = 10_000_000;

/// The part of the bytes that may be redundant copies: one in this many.
const COPIES_DIVISOR: u64 = 4;

/// The bucket of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteBucket {
    /// Bytes per second: current, maximum, minimum.
    rate: u32,
    rate_max: u32,
    rate_min: u32,
    /// Burst after a pause, in bytes.
    burst: u32,
    tokens: u64,
    /// Tokens for copies.
    copies: u64,
    filled_us: u64,
    /// Time since which the loss is high, or low.
    loss_high_since_us: Option<u64>,
    loss_low_since_us: Option<u64>,
}

impl ByteBucket {
    /// A full bucket.
    pub fn new(rate: u32, rate_min: u32, burst: u32) -> Self {
        let full = u64::from(burst) * 1_000_000;
        Self {
            rate,
            rate_max: rate,
            rate_min: rate_min.min(rate),
            burst,
            tokens: full,
            copies: full / COPIES_DIVISOR,
            filled_us: 0,
            loss_high_since_us: None,
            loss_low_since_us: None,
        }
    }

    /// Adds the tokens up to now. A time that runs backwards adds nothing.
    pub fn fill(&mut self, now_us: u64) {
        let passed_us = now_us.saturating_sub(self.filled_us);
        self.filled_us = self.filled_us.max(now_us);
        let full = u64::from(self.burst) * 1_000_000;
        let more = passed_us.saturating_mul(u64::from(self.rate));
        self.tokens = self.tokens.saturating_add(more).min(full);
        let more = more / COPIES_DIVISOR;
        self.copies = self.copies.saturating_add(more).min(full / COPIES_DIVISOR);
    }

    /// Halves the rate while the loss is high, and doubles it again while it is low.
    pub fn adapt_rate(&mut self, now_us: u64, loss: f32) {
        let lasts = |is: bool, since: &mut Option<u64>, for_us: u64| {
            if !is {
                *since = None;
                return false;
            }
            let began_us = *since.get_or_insert(now_us);
            let is_long = now_us.saturating_sub(began_us) >= for_us;
            if is_long {
                *since = Some(now_us);
            }
            is_long
        };
        if lasts(loss > LOSS_HIGH, &mut self.loss_high_since_us, LOSS_HIGH_US) {
            self.rate = (self.rate / 2).max(self.rate_min);
        }
        if lasts(loss < LOSS_LOW, &mut self.loss_low_since_us, LOSS_LOW_US) {
            self.rate = self.rate.saturating_mul(2).min(self.rate_max);
        }
    }

    /// Current rate, in bytes per second.
    pub const fn rate(&self) -> u32 {
        self.rate
    }

    /// Bytes that may be sent now.
    pub const fn bytes(&self) -> usize {
        (self.tokens / 1_000_000) as usize
    }

    /// Bytes of these that may be copies.
    pub const fn copies_bytes(&self) -> usize {
        (self.copies / 1_000_000) as usize
    }

    /// Removes the bytes sent, some of them copies.
    pub const fn spend(&mut self, bytes: usize, copies: usize) {
        self.tokens = self.tokens.saturating_sub(bytes as u64 * 1_000_000);
        self.copies = self.copies.saturating_sub(copies as u64 * 1_000_000);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_allows_rate_plus_burst_however_often_it_is_filled() {
        for step_us in [1, 777, 33_000, 1_000_000] {
            let mut bucket = ByteBucket::new(10_000, 1_000, 3_000);
            let mut sent = 0;
            let mut now_us = 0;
            while now_us < 3_000_000 {
                bucket.fill(now_us);
                let bytes = bucket.bytes().min(200);
                bucket.spend(bytes, 0);
                sent += bytes;
                now_us += step_us;
            }
            assert!(sent <= 3_000 + 30_000, "{sent} bytes at {step_us} us");
            if step_us < 10_000 {
                assert!(sent >= 32_000, "{sent} bytes at {step_us} us");
            }
        }
    }

    #[test]
    fn lasting_loss_halves_the_rate_and_low_loss_restores_it() {
        let mut bucket = ByteBucket::new(10_000, 2_000, 3_000);
        let mut rates = Vec::new();
        for second in 0..60_u64 {
            let loss = if second < 20 { 0.4 } else { 0.01 };
            bucket.adapt_rate(second * 1_000_000, loss);
            rates.push(bucket.rate());
        }
        assert_eq!(rates[4], 10_000);
        assert_eq!(
            (rates[5], rates[10], rates[15], rates[19]),
            (5_000, 2_500, 2_000, 2_000)
        );
        assert_eq!((rates[29], rates[30], rates[59]), (2_000, 4_000, 10_000));
    }

    #[test]
    fn only_loss_without_a_break_halves_the_rate() {
        let mut bucket = ByteBucket::new(10_000, 2_000, 3_000);
        for second in 0..60_u64 {
            // A second of little loss in every five, too short to count itself.
            let loss = if second % 5 == 4 { 0.2 } else { 0.4 };
            bucket.adapt_rate(second * 1_000_000, loss);
        }
        assert_eq!(bucket.rate(), 10_000);
        for second in 60..=65 {
            bucket.adapt_rate(second * 1_000_000, 0.4);
        }
        assert_eq!(bucket.rate(), 5_000);
    }
}
