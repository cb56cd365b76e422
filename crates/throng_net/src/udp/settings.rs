//! Limits of a server's sockets, and what is counted there.

use crate::counters::counters;
use crate::endpoint::EndpointSettings;
use crate::server_endpoint::ConnectionLimits;

/// Limits of the connections over one socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpSettings {
    /// Threads that encrypt and send, each for a share of the clients; 1 to 64.
    pub shards: usize,
    /// Connected clients; more are refused.
    pub clients_max: usize,
    /// Whether clients load something before they enter a scene, and then send *Ready*.
    pub requires_ready: bool,
    /// Limits of each connection.
    pub endpoint: EndpointSettings,
    /// How often acknowledgements and repeats are sent to a client without new packets, in microseconds.
    pub flush_us: u64,
    /// How long remaining packets are sent after the server has closed a client, in microseconds.
    pub linger_us: u64,
    /// How long a client that sends packets may leave reliable packets unacknowledged, in microseconds; then the connection is lost.
    /// Silence does not count: the token has the limit for that. At most
    /// `throng::sync::SyncSettings::in_flight_s_max`.
    pub unacknowledged_us_max: u64,
    /// Datagrams per second of a client, and half as many at once; more are dropped.
    pub datagrams_per_s: u32,
    /// Bytes of datagrams that wait for a thread; more are dropped.
    pub inbound_bytes_max: usize,
    /// Bytes of packets from the server that wait for a thread. Above it, unreliable packets are dropped, and a client with a reliable one is
    /// closed as behind.
    pub outbound_bytes_max: usize,
}

impl Default for UdpSettings {
    fn default() -> Self {
        Self {
            shards: 1,
            clients_max: 10_000,
            requires_ready: true,
            endpoint: EndpointSettings::default(),
            flush_us: 50_000,
            linger_us: 1_000_000,
            unacknowledged_us_max: 10_000_000,
            datagrams_per_s: 512,
            inbound_bytes_max: 8 << 20,
            outbound_bytes_max: 64 << 20,
        }
    }
}

impl UdpSettings {
    pub(super) const fn limits(&self) -> ConnectionLimits {
        ConnectionLimits {
            endpoint: self.endpoint,
            linger_us: self.linger_us,
            unacknowledged_us_max: self.unacknowledged_us_max,
        }
    }
}

counters! {
    /// What happened at a socket so far.
    UdpStats,
    /// The same, as its threads count it.
    UdpCounters:
    /// Clients that are connected.
    clients,
    /// Datagrams that came, from anybody.
    datagrams_in,
    /// Their bytes.
    bytes_in,
    /// Datagrams that were sent, to anybody.
    datagrams_out,
    /// Their bytes.
    bytes_out,
    /// Datagrams that the system did not take.
    send_errors,
    /// Datagrams to who is not connected: answers to requests.
    answers_out,
    /// Their bytes.
    answer_bytes_out,
    /// Datagrams of addresses that are not connected, and were not answered.
    unauthenticated,
    /// Bytes of those, and of those that were answered.
    unauthenticated_bytes_in,
    /// Clients that proved their token and address.
    clients_accepted,
    /// Of those who were not let in: more waited for the server's next tick than may.
    tick_full,
    /// Datagrams of clients that were not sealed by them, came before, or make no sense.
    refused,
    /// Datagrams of clients that sent more than they may.
    throttled,
    /// Datagrams that were dropped since a thread had too much to do.
    inbound_dropped,
    /// Packets to clients that were dropped since a thread had too much to do.
    outbound_dropped,
    /// Connections that ended since nothing came, nothing arrived or what came made no sense.
    lost,
    /// Connections that ended since their client said so.
    left,
    /// Connections that the server was done with.
    closed,
    /// Connections that were given up since more waited for their client than may.
    slow_consumers,
    /// Clients that went on from another address.
    moved,
    /// Connections whose client connected anew from the same address.
    replaced,
    /// Packets that seemed to be lost on their way to clients, of connections that are over.
    packets_lost,
    /// Packets that were sent to clients, of connections that are over.
    packets_sent,
}
