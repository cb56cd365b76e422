//! Limits and counters of a server's UDP socket.

use crate::counters::counters;
use crate::endpoint::EndpointSettings;
use crate::server_endpoint::ConnectionLimits;

/// Limits of the connections over one socket.
///
/// ```
/// use throng_net::{EndpointSettings, UdpSettings};
///
/// // 2,000 players, at most 64 kB/s for each, encrypted by two threads.
/// let endpoint = EndpointSettings { bytes_per_s: 64_000, ..EndpointSettings::default() };
/// let settings = UdpSettings { shards: 2, clients_max: 2_000, endpoint, ..UdpSettings::default() };
/// assert_eq!(settings.datagrams_per_s, 512);
/// ```
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
    /// How often acknowledgements and retransmissions are sent to a client without new packets, in microseconds.
    pub flush_us: u64,
    /// How long remaining packets are sent after the server has closed a client, in microseconds.
    pub linger_us: u64,
    /// How long a client that sends packets may leave reliable packets unacknowledged, in microseconds; then the connection is lost.
    /// Silence does not count: the token has the limit for that. At most `throng::sync::SyncSettings::in_flight_s_max`.
    pub unacknowledged_us_max: u64,
    /// Datagrams per second of a client, with a burst of half as many; more are dropped.
    pub datagrams_per_s: u32,
    /// Bytes of datagrams that wait for a thread; more are dropped.
    pub inbound_bytes_max: usize,
    /// Bytes of packets from the server that wait for a thread. Above it, unreliable packets are dropped, and a client with a reliable
    /// packet is closed as a slow consumer.
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
    /// Counters of a UDP socket.
    UdpStats,
    /// The same counters, as atomics for its threads.
    UdpCounters:
    /// Connected clients.
    clients,
    /// Datagrams received, from any address.
    datagrams_in,
    /// Their bytes.
    bytes_in,
    /// Datagrams sent, to any address.
    datagrams_out,
    /// Their bytes.
    bytes_out,
    /// Datagrams that the system refused to send.
    send_errors,
    /// Replies to unauthenticated addresses.
    answers_out,
    /// Their bytes.
    answer_bytes_out,
    /// Datagrams that the handshake refused. The next ten counters have the reasons.
    unauthenticated,
    /// Of these: no connect request, and the address was not challenged.
    no_request,
    /// Of these: a packet of a connection that this server does not know.
    unknown_connection,
    /// Of these: a request of another version or game.
    other_version,
    /// Of these: the token has expired, or its challenge was answered too late.
    expired,
    /// Of these: the address, or all of them together, exceeded the rate of requests.
    requests_throttled,
    /// Of these: a token that the key did not seal.
    invalid_token,
    /// Of these: the token is for other servers.
    other_server,
    /// Of these: the token was used before.
    token_used,
    /// Of these: the table of half-open handshakes or of used tokens is full, or the system has no random bytes.
    no_room,
    /// Of these: a wrong answer to a challenge.
    invalid_response,
    /// Of the invalid tokens: those of a key that the server does not have.
    unknown_keys,
    /// Bytes of all datagrams of unauthenticated addresses.
    unauthenticated_bytes_in,
    /// Refusals sent to clients of another version or game.
    versions_refused,
    /// Resets sent for connections that this server does not know: it restarted, or they have ended.
    resets,
    /// Clients that have proven their token and address.
    clients_accepted,
    /// Clients refused because too many waited for the server's next tick.
    tick_full,
    /// Datagrams of clients that were accepted.
    client_datagrams,
    /// Datagrams of clients whose connection had ended before they were read.
    after_end,
    /// Datagrams of clients that were not sealed by them, were received before, or are malformed.
    refused,
    /// Datagrams dropped because their client exceeded its rate.
    throttled,
    /// Datagrams dropped because a thread was overloaded.
    inbound_dropped,
    /// Packets to clients dropped because a thread was overloaded.
    outbound_dropped,
    /// Connections lost: timeout, no acknowledgements, or a malformed stream.
    lost,
    /// Connections closed by their client.
    left,
    /// Connections closed by the server.
    closed,
    /// Connections closed because the client's send queue was full.
    slow_consumers,
    /// Clients that moved to another address.
    moved,
    /// Connections replaced by a new one of the same address.
    replaced,
    /// Packets to clients that counted as lost, of connections that have ended.
    packets_lost,
    /// Packets sent to clients, of connections that have ended.
    packets_sent,
}

impl UdpStats {
    /// Datagrams that the handshake answered with a challenge or that completed it, or that were from a client for which there was no room.
    #[must_use]
    pub const fn handshake_datagrams(&self) -> u64 {
        // The counters are read one after the other while threads count, so the parts may be ahead of the sum.
        let others = self.versions_refused.saturating_add(self.resets);
        let answers = self.answers_out.saturating_sub(others);
        answers + self.clients_accepted + self.tick_full
    }

    /// Datagrams that were processed or discarded, each counted once. Equal to [`datagrams_in`](Self::datagrams_in) while no datagram waits
    /// for a thread.
    #[must_use]
    pub const fn datagrams_accounted(&self) -> u64 {
        self.handshake_datagrams()
            + self.unauthenticated
            + self.client_datagrams
            + self.after_end
            + self.refused
            + self.throttled
            + self.inbound_dropped
    }
}
