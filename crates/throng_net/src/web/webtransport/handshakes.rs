//! Limits of QUIC handshakes: they cost more than anything else that an unknown client can cause.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

use super::settings::WebTransportSettings;
use crate::handshake::RequestBucket;

/// Number of buckets that the networks share.
const BUCKETS: usize = 1_024;

/// One bucket for all addresses and one per large network, so that one network cannot use up all handshakes.
pub(super) struct HandshakeLimits {
    per_s: u32,
    network_per_s: u32,
    total: RequestBucket,
    networks: Vec<RequestBucket>,
    hasher: RandomState,
}

impl HandshakeLimits {
    pub fn new(settings: &WebTransportSettings) -> Self {
        let (per_s, network_per_s) = (settings.handshakes_per_s, settings.network_handshakes_per_s);
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
        self.networks[at].try_consume(now_us, self.network_per_s)
            && self.total.try_consume(now_us, self.per_s)
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
        let mut limits = HandshakeLimits::new(&WebTransportSettings {
            handshakes_per_s: 100,
            network_handshakes_per_s: 20,
            ..WebTransportSettings::default()
        });
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
