//! Limits of connections over WebTransport.

use super::certificate::RENEWAL_S_MAX;
use crate::endpoint::EndpointSettings;

/// Limits of WebTransport connections, in addition to those of [`WebSettings`](crate::WebSettings).
///
/// ```
/// use throng_net::{WebSettings, WebTransportSettings};
///
/// // WebTransport with the default limits, on the UDP port with the number of the web port.
/// let settings = WebSettings { webtransport: Some(WebTransportSettings::default()), ..WebSettings::default() };
/// assert_eq!(settings.webtransport.map(|limits| limits.handshakes_per_s), Some(500));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebTransportSettings {
    /// Limits of each connection.
    pub endpoint: EndpointSettings,
    /// How often acknowledgements and retransmissions are sent to a client without new packets, in microseconds; 1 ms to 250 ms.
    pub flush_us: u64,
    /// Datagrams per second of a client, with a burst of half as many; more are dropped unread.
    pub datagrams_per_s: u32,
    /// QUIC handshakes a second, of all addresses together. A handshake takes 0.3 to 1 ms of the thread that serves all browsers.
    pub handshakes_per_s: u32,
    /// QUIC handshakes a second of a large network: 24 bits of an IPv4 address, 48 bits of an IPv6 address.
    pub network_handshakes_per_s: u32,
    /// How often the server renews its certificate, in microseconds; at least every six days.
    pub renewal_us: u64,
}

/// Bytes that QUIC adds to a packet, with its longest usual header.
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
