//! Limits of how browsers come, and what is counted there.

use throng_protocol::wire::MESSAGE_BYTES_MAX;

use super::proxies::AddressRange;
#[cfg(feature = "webtransport")]
use super::webtransport::WebTransportSettings;
use crate::counters::counters;

/// Limits of the connections of browsers, over WebSockets and WebTransport.
#[derive(Clone, Debug, PartialEq)]
pub struct WebSettings {
    /// Clients that are connected at a time; more are closed at once.
    pub clients_max: usize,
    /// Whether clients have anything to load before they can be told of a scene, and say *Ready*.
    pub requires_ready: bool,
    /// Whether there is a page at `/` that walks in.
    pub serve_demo_page: bool,
    /// Whether who asks for a token at `POST /token` gets one, as a guest whose object walks so fast, in metres a second. Only where
    /// everybody knows the key anyway, and so on loopback alone.
    pub guest_speed_m_s: Option<f32>,
    /// Connections that have not shown a token yet; who comes beyond is closed unheard.
    pub unauthenticated_max: usize,
    /// The same of one address, of IPv6 a network of 64 bits.
    pub unauthenticated_per_address_max: u32,
    /// Proxies that forward clients: from these addresses the header `X-Forwarded-For`, or `Forwarded`, says whose a request is, and
    /// limits, bans and [`ConnectionInfo::address`](crate::inbox::ConnectionInfo::address) see that address. From others the headers are ignored.
    pub trusted_proxies: Vec<AddressRange>,
    /// How long a request, and the token after it, may take to come each, in microseconds.
    pub handshake_timeout_us: u64,
    /// Messages a second that are taken from a client, and as many at once; those beyond wait at the client.
    pub messages_per_s: u32,
    /// Bytes of packets that wait for a client; with a reliable one more it is behind, and closed.
    pub client_bytes_max: usize,
    /// With so many bytes waiting for a client unreliable packets are dropped.
    pub unreliable_bytes_max: usize,
    /// Bytes of packets that wait for all clients. With more, unreliable packets are dropped, and who would have been told a
    /// reliable one is behind.
    pub outbound_bytes_max: usize,
    /// How long a client may take to have read what it was told, in microseconds; then the connection is lost. At most
    /// `throng::sync::SyncSettings::in_flight_s_max`.
    pub read_timeout_us: u64,
    /// How long at most after the server is done with a client what is left is written, in microseconds.
    pub linger_us: u64,
    /// Whether there is WebTransport beside WebSockets, on UDP of the same port, and its limits.
    #[cfg(feature = "webtransport")]
    pub webtransport: Option<WebTransportSettings>,
}

impl Default for WebSettings {
    fn default() -> Self {
        Self {
            clients_max: 10_000,
            requires_ready: true,
            serve_demo_page: false,
            guest_speed_m_s: None,
            unauthenticated_max: 1_024,
            unauthenticated_per_address_max: 64,
            trusted_proxies: Vec::new(),
            handshake_timeout_us: 5_000_000,
            messages_per_s: 256,
            client_bytes_max: MESSAGE_BYTES_MAX + (1 << 18),
            unreliable_bytes_max: 1 << 15,
            outbound_bytes_max: 64 << 20,
            read_timeout_us: 25_000_000,
            linger_us: 1_000_000,
            #[cfg(feature = "webtransport")]
            webtransport: None,
        }
    }
}

counters! {
    /// What happened at a server's WebSockets, and its sessions of WebTransport, so far.
    WebStats,
    /// The same, as it is counted.
    WebCounters:
    /// Clients that are connected.
    clients,
    /// Connections that were taken, of anybody.
    accepted,
    /// Connections that were closed unheard, since too many of strangers are open, or begin one after the other.
    refused_unauthenticated,
    /// Requests that were answered with what they asked for.
    answered,
    /// Requests that made no sense, or ask for what they may not.
    refused,
    /// Connections that did not say in time what they want.
    timed_out,
    /// WebSockets and sessions that showed no token, or one that is good for nothing.
    denied,
    /// Clients with a good token for whom there was no room.
    full,
    /// Clients that were let in.
    clients_accepted,
    /// Of those, clients over WebTransport.
    webtransport,
    /// Datagrams of clients over WebTransport.
    datagrams_in,
    /// Datagrams that were sent to them, with what was sent again.
    datagrams_out,
    /// Of those that came, the ones that make no sense or came before.
    datagrams_refused,
    /// Messages of clients.
    messages_in,
    /// Their bytes.
    bytes_in,
    /// Packets that were written for clients.
    packets_out,
    /// Their bytes.
    bytes_out,
    /// Times that a client was made to wait, or a datagram of it was dropped, since it sent more than it may.
    throttled,
    /// Unreliable packets that were dropped since their client, or all of them, had too much waiting.
    dropped,
    /// Connections that ended since what came is no message: too long, a text, or no frame of a WebSocket; a stream without messages.
    broken,
    /// Connections that ended since nothing was read any more, or without a word.
    lost,
    /// Connections that ended since their client said so.
    left,
    /// Connections that the server was done with.
    closed,
    /// Connections that were given up since more waited for their client than may.
    slow_consumers,
}
