//! Addresses of clients behind a proxy, from a header that only trusted proxies may set.

use std::net::{IpAddr, SocketAddr};

use hyper::HeaderMap;
use hyper::header::FORWARDED;

use crate::address_range::AddressRange;

/// The header that most proxies set.
const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// Maximum number of addresses that are read from a header, starting at the nearest proxy.
const HOPS_MAX: usize = 32;

/// The headers of a trusted proxy name two different clients: one of them was set by the client itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForgedAddress;

/// The client's address: the peer's or, if the peer is a trusted proxy, the one in its headers. The port is the peer's.
///
/// # Errors
/// If `X-Forwarded-For` and `Forwarded` name different clients.
pub fn client_address(
    peer: SocketAddr,
    headers: &HeaderMap,
    trusted: &[AddressRange],
) -> Result<SocketAddr, ForgedAddress> {
    let is_trusted = |address: IpAddr| trusted.iter().any(|range| range.contains(address));
    if !is_trusted(peer.ip()) {
        return Ok(peer);
    }
    let nearest = |hops: Vec<Option<IpAddr>>| {
        let mut client = None;
        for hop in hops.into_iter().rev().take(HOPS_MAX) {
            // A trusted proxy writes readable entries, so the ones before are not its own.
            let Some(hop) = hop else { break };
            client = Some(hop);
            if !is_trusted(hop) {
                break;
            }
        }
        client
    };
    let values = |name: &str| {
        let values = headers.get_all(name).into_iter();
        let texts: Vec<&str> = values.map(|value| value.to_str().unwrap_or("?")).collect();
        texts.join(",")
    };
    let x_forwarded_for = nearest(values(X_FORWARDED_FOR).split(',').map(parse_hop).collect());
    let forwarded = values(FORWARDED.as_str());
    let forwarded = nearest(forwarded.split(',').map(parse_forwarded).collect());
    match (x_forwarded_for, forwarded) {
        (Some(one), Some(other)) if one != other => Err(ForgedAddress),
        (Some(client), _) | (None, Some(client)) => Ok(SocketAddr::new(client, peer.port())),
        (None, None) => Ok(peer),
    }
}

/// An address, with or without a port: `192.0.2.7`, `192.0.2.7:80`, `2001:db8::1`, `[2001:db8::1]:80`.
fn parse_hop(text: &str) -> Option<IpAddr> {
    let text = text.trim().trim_matches('"');
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let address = bare.unwrap_or(text).parse::<IpAddr>();
    let address = address.or_else(|_| text.parse::<SocketAddr>().map(|it| it.ip()));
    address.ok().map(|address| address.to_canonical())
}

/// The `for` of an element of `Forwarded` (RFC 7239).
fn parse_forwarded(element: &str) -> Option<IpAddr> {
    let mut pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let (_, node) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
    parse_hop(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    use hyper::header::HeaderValue;

    fn client(peer: &str, headers: &[(&'static str, &str)]) -> Result<String, ForgedAddress> {
        let trusted = ["127.0.0.1", "10.0.0.0/8", "2001:db8::/32"];
        let trusted = trusted.map(|range| range.parse().unwrap());
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let peer = SocketAddr::new(peer.parse().unwrap(), 9);
        client_address(peer, &map, &trusted).map(|client| client.ip().to_string())
    }

    #[test]
    fn header_of_an_untrusted_peer_is_ignored() {
        let forged = [
            ("x-forwarded-for", "198.51.100.1"),
            ("forwarded", "for=198.51.100.1"),
        ];
        assert_eq!(client("203.0.113.5", &forged), Ok("203.0.113.5".to_owned()));
        assert_eq!(client("10.0.0.1", &[]), Ok("10.0.0.1".to_owned()));
    }

    #[test]
    fn rightmost_untrusted_address_is_the_client() {
        for (headers, found) in [
            (&[("x-forwarded-for", "198.51.100.1")][..], "198.51.100.1"),
            (
                &[("x-forwarded-for", "1.1.1.1, 198.51.100.1, 10.2.2.2")],
                "198.51.100.1",
            ),
            (
                &[
                    ("x-forwarded-for", "1.1.1.1"),
                    ("x-forwarded-for", "198.51.100.1:80"),
                ],
                "198.51.100.1",
            ),
            (&[("x-forwarded-for", "10.3.3.3, 10.2.2.2")], "10.3.3.3"),
            (
                &[("x-forwarded-for", "1.1.1.1, unknown, 10.2.2.2")],
                "10.2.2.2",
            ),
            (&[("x-forwarded-for", "junk")], "127.0.0.1"),
            (
                &[(
                    "forwarded",
                    "for=1.1.1.1, proto=https;For=\"[2001:db9::1]:4711\";by=a",
                )],
                "2001:db9::1",
            ),
            (
                &[
                    ("forwarded", "for=198.51.100.1"),
                    ("x-forwarded-for", "198.51.100.1"),
                ],
                "198.51.100.1",
            ),
        ] {
            assert_eq!(
                client("127.0.0.1", headers),
                Ok(found.to_owned()),
                "{headers:?}"
            );
        }
        let forged = [
            ("forwarded", "for=1.1.1.1"),
            ("x-forwarded-for", "198.51.100.1"),
        ];
        assert_eq!(client("127.0.0.1", &forged), Err(ForgedAddress));
    }
}
