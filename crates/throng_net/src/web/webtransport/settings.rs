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
