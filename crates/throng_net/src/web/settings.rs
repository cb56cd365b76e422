//! Limits and counters of the browser transports.

use throng_protocol::wire::MESSAGE_BYTES_MAX;

#[cfg(feature = "webtransport")]
use super::webtransport::WebTransportSettings;
use crate::counters::counters;
use crate::http::{PortSettings, PublicOrigin};

/// Limits of connections over WebSockets and WebTransport.
///
/// ```
/// use throng_net::WebSettings;
///
/// // Browsers open the game by its name; the page of the demo stays off.
/// let settings = WebSettings { public_origin: "https://play.example.com".parse().ok(), ..WebSettings::default() };
/// assert!(settings.public_origin.is_some() && !settings.serve_demo_page);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct WebSettings {
    /// Connected clients; more are closed at once.
    pub clients_max: usize,
    /// Whether clients load something before they enter a scene, and then send *Ready*.
    pub requires_ready: bool,
    /// Whether the demo page is served at `/`.
    pub serve_demo_page: bool,
    /// Whether `POST /token` issues guest tokens, and the speed of a guest's object in metres per second. Only for servers whose key is
    /// public, and so only on the loopback interface.
    pub guest_speed_m_s: Option<f32>,
    /// Connections that have not shown a token yet; more are closed at once.
    pub unauthenticated_max: usize,
    /// The same per address (IPv6: per network of 64 bits).
    pub unauthenticated_per_address_max: u32,
    /// TLS, and proxies in front of the port. [`ConnectionInfo::address`](crate::inbox::ConnectionInfo::address) is the client's address
    /// behind a trusted proxy.
    pub port: PortSettings,
    /// The address under which browsers open the page, if it is not that of the port: behind a proxy, or by the name in the certificate.
    /// The page then connects to it, and a page of this origin counts as the server's own.
    pub public_origin: Option<PublicOrigin>,
    /// Time limit for a TLS handshake (with the PROXY header before it), again for a request, and again for the token after it, in
    /// microseconds.
    pub handshake_timeout_us: u64,
    /// The slowest rate at which a client may read a response, such as a map, in bytes per second on average. A slower client is
    /// disconnected.
    pub response_bytes_per_s_min: u32,
    /// Time limit for a request with its response, in microseconds, however fast the client reads.
    pub response_timeout_us: u64,
    /// Messages per second of a client, with a burst of as many; more wait at the client.
    pub messages_per_s: u32,
    /// Bytes of packets that wait for a client; a reliable packet beyond it closes the client as a slow consumer.
    pub client_bytes_max: usize,
    /// Bytes that wait for a client; above it unreliable packets are dropped.
    pub unreliable_bytes_max: usize,
    /// Bytes of packets that wait for all clients. Above it, unreliable packets are dropped, and a client with a reliable packet is closed
    /// as a slow consumer.
    pub outbound_bytes_max: usize,
    /// How long a client may take to read its packets, in microseconds; then the connection is lost. At most
    /// `throng::sync::SyncSettings::in_flight_s_max`.
    pub read_timeout_us: u64,
    /// How long remaining packets are written after the server has closed a client, in microseconds.
    pub linger_us: u64,
    /// Limits of WebTransport on the UDP port with the same number; `None`: no WebTransport.
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
            port: PortSettings::default(),
            public_origin: None,
            handshake_timeout_us: 5_000_000,
            response_bytes_per_s_min: 16 << 10,
            response_timeout_us: 120_000_000,
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
    /// Counters of a server's WebSockets and WebTransport sessions.
    WebStats,
    /// The same counters, as atomics.
    WebCounters:
    /// Connected clients.
    clients,
    /// Connections accepted, from any address.
    accepted,
    /// Connections closed at once, because too many unauthenticated ones are open or start.
    refused_unauthenticated,
    /// Requests that were answered successfully.
    answered,
    /// Requests that are malformed or not allowed.
    refused,
    /// Connections of trusted proxies without a valid PROXY header.
    proxy_header_refused,
    /// Connections whose TLS handshake failed.
    tls_failed,
    /// Connections that sent no complete TLS handshake or request in time, or read the response too slowly.
    timed_out,
    /// WebSockets and sessions without a valid token.
    denied,
    /// Those of them with a token of a key that the server does not have.
    unknown_keys,
    /// Clients with a valid token, refused because the server is full.
    full,
    /// Clients admitted.
    clients_accepted,
    /// Those of them over WebTransport.
    webtransport,
    /// Datagrams received over WebTransport.
    datagrams_in,
    /// Datagrams sent over WebTransport, including retransmissions.
    datagrams_out,
    /// Datagrams received that are malformed or duplicates.
    datagrams_refused,
    /// Messages received from clients.
    messages_in,
    /// Their bytes.
    bytes_in,
    /// Packets written to clients.
    packets_out,
    /// Their bytes.
    bytes_out,
    /// Times that a client had to wait, or a datagram of it was dropped, because it exceeded its rate.
    throttled,
    /// Unreliable packets dropped, because too many bytes waited for their client or for all clients.
    dropped,
    /// Connections closed because of an invalid message: too long, a text, no valid WebSocket frame, or a malformed stream.
    broken,
    /// Connections that timed out or broke.
    lost,
    /// Connections closed by their client.
    left,
    /// Connections closed by the server.
    closed,
    /// Connections closed because the client's send queue was full.
    slow_consumers,
}
