//! Rate limits of sites with many networks.

use std::net::{Ipv6Addr, SocketAddr};

use super::{KEY, PROTOCOL, address, request, server, site_of, token};
use crate::handshake::{ServerHandshake, ServerHandshakeError, ServerHandshakeSettings};

#[test]
fn flood_from_a_site_uses_up_no_rate_of_others() {
    let settings = ServerHandshakeSettings {
        requests_per_s: 2,
        reserve_requests_per_s: 100,
        ..ServerHandshakeSettings::new(PROTOCOL, vec![server()])
    };
    let mut gate = ServerHandshake::new(settings, KEY).unwrap();
    let mut forged = request(&token(1));
    *forged.last_mut().unwrap() ^= 1;
    let (mut answer, mut flooded, mut answered) = (Vec::new(), 0_u128, 0);
    for ms in 0..1_000_u64 {
        let now_us = ms * 1_000;
        // More than all buckets and the reserve hold, each time from another network of 64 bits.
        for _ in 0..10 {
            let network = Ipv6Addr::from_bits(0x2001_0db8_0bad << 80 | flooded << 64 | 1);
            flooded += 1;
            let from = SocketAddr::new(network.into(), 4_000);
            let mut packet = forged.clone();
            let received = gate.receive((now_us, 100), from, &mut packet, false, &mut answer);
            assert!(received.is_err());
        }
        if ms.is_multiple_of(10) {
            let nth = ms as u16 / 10;
            let mut packet = request(&token(2 + u64::from(nth)));
            let from = address(nth << 8 | 1);
            let received = gate.receive((now_us, 100), from, &mut packet, false, &mut answer);
            match received {
                Ok(_) => answered += 1,
                Err(refused) => assert_eq!(refused, ServerHandshakeError::RateLimited),
            }
        }
    }
    // Some share a bucket by chance.
    assert!(answered >= 90, "{answered} of 100");
}

#[test]
fn addresses_of_a_site_count_together() {
    let of = |address: &str| site_of(address.parse().unwrap());
    assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:ffff::2"));
    assert_ne!(of("2001:db8:1::1"), of("2001:db8:2::1"));
    assert_eq!(of("10.1.2.3"), of("::ffff:10.1.2.200"));
    assert_ne!(of("10.1.2.3"), of("10.1.3.3"));
}
