//! Listens for UDP clients.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bevy_ecs::prelude::*;
use thiserror::Error;
#[cfg(feature = "web")]
use throng_net::WebSettings;
use throng_net::{
    ConnectionHandler, ConnectionStats, PROTOCOL_ID, RandomnessUnavailable, ServerHandshake,
    ServerHandshakeSettings, ServerSocket, TokenKeys, UdpServer, UdpServerSink, UdpSettings,
    UdpStats, UsedTokens,
};

use crate::inbox::{ConnectionInfo, DisconnectReason};
use crate::outbox::{Outbox, OutboxSettings, PacketSink};
use crate::session::TransportHandle;
use crate::sync::SyncSettings;
use crate::wire::ClientId;

/// The longest packet of the server that always fits into a packet of the transport, with header and encryption, in bytes.
const WIRE_PACKET_BYTES_MAX: usize = 1_150;

/// Settings of a listening server.
///
/// ```
/// use throng::net::ListenSettings;
///
/// // The id changes with each incompatible version of the game.
/// let settings = ListenSettings { protocol_id: 0x6d_7967_616d_6507, ..ListenSettings::default() };
/// assert_eq!(settings.requests_per_s, 32);
/// ```
#[derive(Clone, Debug)]
pub struct ListenSettings {
    /// Id of the game and its version; [`PROTOCOL_ID`] by default.
    pub protocol_id: u64,
    /// The public addresses of the server: a token must name one. If empty, the address that the server listens on.
    pub public_addresses: Vec<SocketAddr>,
    /// Connect requests per second from one address (IPv6: a network of 64 bits), also as a burst after a pause.
    pub requests_per_s: u32,
    /// Used tokens. Share it between all listeners of a server, so that each token admits once.
    pub used_tokens: UsedTokens,
    /// How long a client whose connection was lost may return with its token, in seconds: it then resumes its session. As long as sessions
    /// are kept: `SessionSettings::reconnect_grace_s`.
    pub return_s: u64,
    /// How long after its expiry a token lets its client resume a session here that it began at another gateway, in seconds. 0 for a server
    /// without gateways: it has no such sessions.
    pub late_resume_s: u64,
    /// Limits of UDP clients.
    pub udp: UdpSettings,
    /// Limits of browser clients, and WebTransport.
    #[cfg(feature = "web")]
    pub web: WebSettings,
}

impl Default for ListenSettings {
    fn default() -> Self {
        Self {
            protocol_id: PROTOCOL_ID,
            public_addresses: Vec::new(),
            requests_per_s: 32,
            used_tokens: UsedTokens::default(),
            return_s: 30,
            late_resume_s: 0,
            udp: UdpSettings::default(),
            #[cfg(feature = "web")]
            web: WebSettings::default(),
        }
    }
}

/// Why a server cannot listen.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The address does not exist on this machine, or another process uses it.
    #[error("cannot listen on {address}: {source}")]
    Socket {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The address is a wildcard for all addresses of the machine, and no public address is given that tokens could name.
    #[error(
        "{address} stands for all addresses of this machine: name the public addresses of the server, too"
    )]
    NoPublicAddress {
        /// The address.
        address: SocketAddr,
    },
    /// The public test key, on an address that other machines can reach.
    #[error(
        "{address} is reachable from other machines: expected a secret key, found the public test key"
    )]
    Insecure {
        /// The address.
        address: SocketAddr,
    },
    /// The operating system has no randomness.
    #[error(transparent)]
    NoRandomness(#[from] RandomnessUnavailable),
}

/// The UDP socket of a listening server.
#[derive(Resource, Debug)]
pub struct UdpListener {
    server: UdpServer,
}

impl UdpListener {
    /// The address that it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Whether its threads run. After a panic players cannot connect.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.server.is_running()
    }

    /// Statistics of the socket.
    #[must_use]
    pub fn stats(&self) -> UdpStats {
        self.server.stats()
    }

    /// Whether a client is connected over this socket.
    #[must_use]
    pub fn is_connected(&self, client: ClientId) -> bool {
        self.server.has_client(client)
    }

    /// Round trip time, bytes and losses of a client's connection, at most half a second old; `None` if it is not connected over this
    /// socket. One lookup.
    #[must_use]
    pub fn connection_stats(&self, client: ClientId) -> Option<ConnectionStats> {
        self.server.connection_stats(client)
    }

    /// Another sink, for an outbox with several sinks.
    #[must_use]
    pub fn sink(&self) -> UdpServerSink {
        self.server.sink()
    }
}

impl ConnectionHandler for TransportHandle {
    fn connect(&self, connected: ConnectionInfo) -> Option<ClientId> {
        Self::connect(self, connected).ok()
    }

    fn receive(&self, client: ClientId, message: &[u8]) {
        // A refusal is counted where it happens, and needs no reaction.
        let _ = Self::receive(self, client, message);
    }

    fn disconnect(&self, client: ClientId, reason: DisconnectReason) {
        Self::disconnect(self, client, reason);
    }
}

/// Listens for UDP clients with a token that was sealed with this key, or one of these [`TokenKeys`], and sends them the packets of the
/// outbox, until [`stop_listening`] or the world is dropped. Sets the sink of the outbox. Packets of clients that connected otherwise go to `others`.
///
/// # Errors
/// [`ListenError`]; then nothing is changed.
pub fn listen(
    world: &mut World,
    address: SocketAddr,
    keys: impl Into<TokenKeys>,
    settings: ListenSettings,
    others: Option<Box<dyn PacketSink>>,
) -> Result<SocketAddr, ListenError> {
    let mut settings = settings;
    let udp = &mut settings.udp;
    udp.unacknowledged_us_max = udp.unacknowledged_us_max.min(in_flight_us_max(world));
    let server = start_udp_server(address, keys, &settings, &connection_handler(world))?;
    let bound = server.address();
    limit_packets(world, WIRE_PACKET_BYTES_MAX);
    set_sink(world, server.sink().with_fallback(others));
    world.insert_resource(UdpListener { server });
    Ok(bound)
}

/// Listens for UDP clients for a handler without a world, such as a gateway of a cluster. Send packets to the clients with the server's
/// [`sink`](UdpServer::sink).
///
/// # Errors
/// [`ListenError`].
pub fn start_udp_server(
    address: SocketAddr,
    keys: impl Into<TokenKeys>,
    settings: &ListenSettings,
    handler: &Arc<dyn ConnectionHandler>,
) -> Result<UdpServer, ListenError> {
    let of_socket = |source| ListenError::Socket { address, source };
    let socket = ServerSocket::bind(address).map_err(of_socket)?;
    let bound = socket.address();
    let gate = server_handshake(
        settings,
        (address, bound),
        keys.into(),
        settings.udp.clients_max,
    )?;
    UdpServer::start(socket, settings.udp, gate, handler).map_err(of_socket)
}

/// Where the threads of a transport report connections and messages.
pub(super) fn connection_handler(world: &mut World) -> Arc<dyn ConnectionHandler> {
    Arc::new(world.get_resource_or_init::<TransportHandle>().clone())
}

/// Limits the packets of the outbox to this length.
pub(super) fn limit_packets(world: &mut World, bytes_max: usize) {
    let mut outbox = world.get_resource_or_init::<OutboxSettings>();
    outbox.mtu_bytes = outbox.mtu_bytes.min(bytes_max);
}

/// Sends the packets of the outbox to this sink.
pub(super) fn set_sink(world: &mut World, sink: impl PacketSink + 'static) {
    let mut outbox = world.get_resource_or_init::<Outbox>();
    outbox.set_sink(sink);
}

/// A handshake for a server that was configured with the first address, and listens on the second.
pub(super) fn server_handshake(
    settings: &ListenSettings,
    (address, bound): (SocketAddr, SocketAddr),
    keys: TokenKeys,
    clients_max: usize,
) -> Result<ServerHandshake, ListenError> {
    if keys.has_test_key() && !bound.ip().is_loopback() {
        return Err(ListenError::Insecure { address });
    }
    let mut public = settings.public_addresses.clone();
    if public.is_empty() {
        public.push(bound);
    }
    if public.iter().any(|public| public.ip().is_unspecified()) {
        return Err(ListenError::NoPublicAddress { address });
    }
    let gate = ServerHandshakeSettings {
        clients_max: u32::try_from(clients_max).unwrap_or(u32::MAX),
        requests_per_s: settings.requests_per_s,
        used_tokens: settings.used_tokens.clone(),
        return_s: settings.return_s,
        late_resume_s: settings.late_resume_s,
        ..ServerHandshakeSettings::new(settings.protocol_id, public)
    };
    Ok(ServerHandshake::new(gate, keys)?)
}

/// How long reliable messages in flight are kept for a resume, in microseconds.
pub(super) fn in_flight_us_max(world: &World) -> u64 {
    world
        .get_resource::<SyncSettings>()
        .map_or(u64::MAX, |sync| {
            (f64::from(sync.in_flight_s_max) * 1e6) as u64
        })
}

/// Closes all connections after their last packets were acknowledged, or after [`linger_us`](UdpSettings::linger_us), and returns the
/// statistics; `None` if the server does not listen. Blocks until then.
pub fn stop_listening(world: &mut World) -> Option<UdpStats> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the server stops listening, so the resource goes for good"
    )]
    let socket = world.remove_resource::<UdpListener>()?;
    if let Some(mut outbox) = world.get_resource_mut::<Outbox>() {
        outbox.flush();
    }
    Some(socket.server.stop())
}
