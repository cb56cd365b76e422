//! Listens for browsers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bevy_ecs::prelude::*;
use throng_net::{
    ConnectionHandler, ConnectionStats, PublicOrigin, TokenKeys, WebServer, WebServerSink,
    WebSocketListener, WebStats,
};

#[cfg(feature = "webtransport")]
use super::plugin::limit_packets;
use super::plugin::{
    ListenError, ListenSettings, connection_handler, in_flight_us_max, server_handshake, set_sink,
};
use crate::map::{TileMap, TileRect};
use crate::outbox::{Outbox, PacketSink};
use crate::wire::ClientId;

/// The longest packet of the server that always fits into a WebTransport datagram, with the packet header and the overhead of
/// QUIC, in bytes.
#[cfg(feature = "webtransport")]
const WIRE_PACKET_BYTES_MAX: usize = 1_140;

/// The web port of a listening server.
#[derive(Resource, Debug)]
pub struct WebListener {
    server: WebServer,
}

impl WebListener {
    /// The address that it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Whether the port has TLS.
    #[must_use]
    pub fn has_tls(&self) -> bool {
        self.server.settings().port.tls.is_some()
    }

    /// The address under which browsers open the page, if it is not that of the port.
    #[must_use]
    pub fn public_origin(&self) -> Option<&PublicOrigin> {
        self.server.settings().public_origin.as_ref()
    }

    /// Sets the walls of a scene for the page at `/`. O(tiles).
    pub fn set_map(&self, scene: u32, tiles: &TileMap, tile_m: f32) {
        self.server.set_map(scene, tiles, tile_m);
    }

    /// Sets the names of kinds and attributes for the page at `/`, as JSON: `kinds`, a list of names by number, and `attributes`, a list
    /// of objects with `id`, `name` and `encoding` (`u8`, `u16`, `u32`, `varint`, `zigzag`, `f32` or `bytes`).
    pub fn set_names(&self, json: String) {
        self.server.set_names(json);
    }

    /// Updates the walls in a rectangle after an [edit](crate::map::MapEdited); open pages load it within seconds. O(tiles of the
    /// rectangle), plus a copy of the map if it is being sent.
    pub fn edit_map(&self, scene: u32, tiles: &TileMap, rect: TileRect) {
        self.server.update_map(scene, tiles, rect);
    }

    /// The SHA-256 of the current WebTransport certificate; `None` without WebTransport.
    #[cfg(feature = "webtransport")]
    #[must_use]
    pub fn certificate_sha256(&self) -> Option<[u8; 32]> {
        self.server.certificate_sha256()
    }

    /// Whether its thread runs. After a panic players cannot connect.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.server.is_running()
    }

    /// Statistics of the port.
    #[must_use]
    pub fn stats(&self) -> WebStats {
        self.server.stats()
    }

    /// Whether a client is connected over this port.
    #[must_use]
    pub fn is_connected(&self, client: ClientId) -> bool {
        self.server.has_client(client)
    }

    /// Round trip time, bytes and losses of a client's connection, at most about a second old; `None` if it is not connected over this
    /// port. One lookup.
    #[must_use]
    pub fn connection_stats(&self, client: ClientId) -> Option<ConnectionStats> {
        self.server.connection_stats(client)
    }

    /// Another sink, for an outbox with several sinks.
    #[must_use]
    pub fn sink(&self) -> WebServerSink {
        self.server.sink()
    }
}

/// Listens for browsers at `ws://ADDRESS/play`, or `wss:` with a [certificate](throng_net::PortSettings::tls), and over WebTransport at
/// `https://ADDRESS/play` if [`WebSettings`](throng_net::WebSettings) enable it, with tokens that were sealed with this key or one of
/// these [`TokenKeys`]. Sends them the packets of the outbox, until
/// [`stop_listening_web`] or the world is dropped. Sets the sink of the outbox. Packets of clients that connected otherwise go to `others`.
///
/// To listen on UDP, too, call this first, then [`listen`](crate::net::listen) with [`WebListener::sink`] as `others`.
///
/// # Errors
/// [`ListenError`]; then nothing is changed.
pub fn listen_web(
    world: &mut World,
    address: SocketAddr,
    keys: impl Into<TokenKeys>,
    settings: &ListenSettings,
    others: Option<Box<dyn PacketSink>>,
) -> Result<SocketAddr, ListenError> {
    let mut settings = settings.clone();
    let web = &mut settings.web;
    web.read_timeout_us = web.read_timeout_us.min(in_flight_us_max(world));
    #[cfg(feature = "webtransport")]
    let has_webtransport = web.webtransport.is_some();
    let server = start_web_server(address, keys, &settings, &connection_handler(world))?;
    let bound = server.address();
    #[cfg(feature = "webtransport")]
    if has_webtransport {
        limit_packets(world, WIRE_PACKET_BYTES_MAX);
    }
    set_sink(world, server.sink().with_fallback(others));
    world.insert_resource(WebListener { server });
    Ok(bound)
}

/// Listens for browsers for a handler without a world, such as a gateway of a cluster. Send packets to the clients with the server's
/// [`sink`](WebServer::sink).
///
/// # Errors
/// [`ListenError`].
pub fn start_web_server(
    address: SocketAddr,
    keys: impl Into<TokenKeys>,
    settings: &ListenSettings,
    handler: &Arc<dyn ConnectionHandler>,
) -> Result<WebServer, ListenError> {
    let of_socket = |source| ListenError::Socket { address, source };
    let listener = bind(address, settings).map_err(of_socket)?;
    let bound = listener.address();
    let mut web = settings.web.clone();
    let keys = keys.into();
    if !keys.has_test_key() {
        web.guest_speed_m_s = None;
    }
    let gate = server_handshake(settings, (address, bound), keys, web.clients_max)?;
    WebServer::start(listener, web, gate, handler).map_err(of_socket)
}

#[cfg(feature = "webtransport")]
fn bind(address: SocketAddr, settings: &ListenSettings) -> io::Result<WebSocketListener> {
    match settings.web.webtransport {
        Some(_) => WebSocketListener::bind_with_udp(address),
        None => WebSocketListener::bind(address),
    }
}

#[cfg(not(feature = "webtransport"))]
fn bind(address: SocketAddr, _: &ListenSettings) -> io::Result<WebSocketListener> {
    WebSocketListener::bind(address)
}

/// Closes all connections after their last packets were written, or after [`linger_us`](throng_net::WebSettings::linger_us), and returns
/// the statistics; `None` if the server does not listen. Blocks until then.
pub fn stop_listening_web(world: &mut World) -> Option<WebStats> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the server stops listening, so the resource goes for good"
    )]
    let web = world.remove_resource::<WebListener>()?;
    if let Some(mut outbox) = world.get_resource_mut::<Outbox>() {
        outbox.flush();
    }
    Some(web.server.stop())
}
