//! Limits of connections over WebTransport.

use super::certificate::RENEWAL_S_MAX;
use crate::endpoint::EndpointSettings;

/// Limits of the connections over WebTransport, beside those of [`WebSettings`](crate::WebSettings).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebTransportSettings {
    /// Limits of each connection.
    pub endpoint: EndpointSettings,
    /// A client to which the server says nothing is sent what is due otherwise so often, in microseconds; 1 ms to 250 ms.
    pub flush_us: u64,
    /// Datagrams a second that are taken from a client, and half as many at once; what is more is dropped unread.
    pub datagrams_per_s: u32,
    /// QUIC handshakes a second, of all addresses together. A handshake takes 0.3 to 1 ms of the thread that serves all browsers.
    pub handshakes_per_s: u32,
    /// QUIC handshakes a second of a large network: 24 bits of an IPv4 address, 48 bits of an IPv6 address.
    pub network_handshakes_per_s: u32,
    /// How often the server makes itself another certificate, in microseconds; at most every six days.
    pub renewal_us: u64,
}

/// What QUIC adds to a packet, in bytes, with the longest of its heads that are usual.
const SEALING_BYTES: u16 = 40;

impl Default for WebTransportSettings {
    fn default() -> Self {
        Self {
            endpoint: EndpointSettings {
                sealing_bytes: SEALING_BYTES,
                ..EndpointSettings::default()
            },
            flush_us: 50_000,
            datagrams_per_s: 512,
            handshakes_per_s: 500,
            network_handshakes_per_s: 64,
            renewal_us: RENEWAL_S_MAX * 1_000_000,
        }
    }
}

impl WebTransportSettings {
    pub(super) fn flush_us_max(&self) -> u64 {
        self.flush_us.clamp(1_000, 250_000)
    }

    pub(super) fn renewal_us_max(&self) -> u64 {
        self.renewal_us.clamp(1_000, RENEWAL_S_MAX * 1_000_000)
    }
}
