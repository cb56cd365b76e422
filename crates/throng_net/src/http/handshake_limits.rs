//! Limits of TLS and QUIC handshakes: they cost more than anything else that an unknown client can cause.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

use crate::handshake::RequestBucket;

/// Number of buckets that the networks share.
const BUCKETS: usize = 1_024;

/// One bucket for all addresses and one per large network, so that one network cannot use up all handshakes.
pub(crate) struct HandshakeLimits {
    per_s: u32,
    network_per_s: u32,
    total: RequestBucket,
    networks: Vec<RequestBucket>,
    hasher: RandomState,
}

impl HandshakeLimits {
    /// Limits for all addresses together, and for each large network: 24 bits of an IPv4 address, 48 bits of an IPv6 address.
    pub fn new(per_s: u32, network_per_s: u32) -> Self {
        Self {
            per_s,
            network_per_s,
            total: RequestBucket::full(per_s),
            networks: vec![RequestBucket::full(network_per_s); BUCKETS],
            hasher: RandomState::new(),
        }
    }

    /// Whether an address may start a handshake now.
    pub fn try_consume(&mut self, now_us: u64, from: IpAddr) -> bool {
        let at = self.hasher.hash_one(large_network_of(from)) as usize % BUCKETS;
        self.networks[at].try_consume(now_us, self.network_per_s) && self.try_consume_shared(now_us)
    }

    /// The same for an address that stands for many, such as a proxy: only the limit of all applies.
    pub fn try_consume_shared(&mut self, now_us: u64) -> bool {
        self.total.try_consume(now_us, self.per_s)
    }
}

fn large_network_of(ip: IpAddr) -> (bool, u64) {
    match ip.to_canonical() {
        IpAddr::V4(ip) => (true, u64::from(ip.to_bits() >> 8)),
        IpAddr::V6(ip) => (false, (ip.to_bits() >> 80) as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_network_does_not_use_up_the_handshakes_of_all() {
        let mut limits = HandshakeLimits::new(100, 20);
        // 65,536 networks of 64 bits in one network of 48 bits.
        let hostile = |nth: u16| IpAddr::from([0x2001, 0xdb8, 0, nth, 0, 0, 0, 1]);
        let begun = |limits: &mut HandshakeLimits, now_us| {
            let each = (0..u16::MAX).filter(|&nth| limits.try_consume(now_us, hostile(nth)));
            each.count()
        };
        assert_eq!(begun(&mut limits, 0), 20);
        assert!((0..50).all(|nth| limits.try_consume(0, IpAddr::from([192, 0, nth, 1]))));
        assert_eq!(begun(&mut limits, 1_000_000), 20);
        // All networks together.
        let more =
            (0..200).filter(|&nth| limits.try_consume(1_000_000, IpAddr::from([198, 51, nth, 1])));
        assert_eq!(more.count(), 80);
    }
}
