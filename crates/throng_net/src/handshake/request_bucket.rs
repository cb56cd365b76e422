//! A token bucket for requests.

/// Requests that an address, a site or all of them may send now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestBucket {
    /// In thousandths of a request.
    remaining: u64,
    filled_us: u64,
}

impl RequestBucket {
    /// A full bucket: `per_s` requests at once, and as many per second.
    pub fn full(per_s: u32) -> Self {
        Self {
            remaining: u64::from(per_s) * 1_000,
            filled_us: 0,
        }
    }

    /// Takes a request out of the bucket; `false` if it is empty.
    pub fn try_consume(&mut self, now_us: u64, per_s: u32) -> bool {
        let is_left = self.has_request(now_us, per_s);
        self.remaining -= if is_left { 1_000 } else { 0 };
        is_left
    }

    /// Whether a request is left.
    pub fn has_request(&mut self, now_us: u64, per_s: u32) -> bool {
        let per_s = u64::from(per_s);
        // In thousandths: one request per second is one thousandth per millisecond.
        let more = now_us.saturating_sub(self.filled_us).saturating_mul(per_s) / 1_000;
        if more > 0 {
            self.filled_us = now_us;
            self.remaining = self.remaining.saturating_add(more).min(per_s * 1_000);
        }
        self.remaining >= 1_000
    }
}
