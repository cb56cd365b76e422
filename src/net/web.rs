//! A server's world to which browsers come.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bevy_ecs::prelude::*;
use throng_net::{ClientIntake, SecretKey, WebServer, WebServerSink, WebSocketListener, WebStats};

use super::plugin::{ListenError, ListenSettings, gate, in_flight_us_max};
use crate::map::{TileMap, TileRect};
#[cfg(feature = "webtransport")]
use crate::outbox::OutboxSettings;
use crate::outbox::{Outbox, Sink};
use crate::session::TransportHandle;
use crate::wire::ClientId;

/// The longest packet of the server that always fits into a datagram of WebTransport, with the head of the packet around it and what QUIC
/// adds, in bytes.
#[cfg(feature = "webtransport")]
const WIRE_PACKET_BYTES_MAX: usize = 1_140;

/// The address at which a server has browsers come.
#[derive(Resource, Debug)]
pub struct ListeningWeb {
    server: WebServer,
}

impl ListeningWeb {
    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Gives the page at `/` the walls of a scene, as they are now. O(tiles).
    pub fn set_map(&self, scene: u32, tiles: &TileMap, tile_m: f32) {
        self.server.set_map(scene, tiles, tile_m);
    }

    /// Gives it those of a rectangle of tiles anew, after an [edit](crate::map::MapEdited); pages that are open ask for it within
    /// seconds. O(tiles of the rectangle), and a copy of the map where it is just being sent.
    pub fn edit_map(&self, scene: u32, tiles: &TileMap, rect: TileRect) {
        self.server.edit_map(scene, tiles, rect);
    }

    /// The SHA-256 of the certificate by which browsers know this server over WebTransport, until it has another one; none where there is no
    /// WebTransport.
    #[cfg(feature = "webtransport")]
    #[must_use]
    pub fn certificate_sha256(&self) -> Option<[u8; 32]> {
        self.server.certificate_sha256()
    }

    /// Whether its threads run; `false` once one has panicked: then players cannot connect.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.server.is_running()
    }

    /// What happened at it so far.
    #[must_use]
    pub fn stats(&self) -> WebStats {
        self.server.stats()
    }

    /// Whether a client came over it, and is connected.
    #[must_use]
    pub fn has(&self, client: ClientId) -> bool {
        self.server.has(client)
    }

    /// A sink, for an outbox that has more than this one.
    #[must_use]
    pub fn sink(&self) -> WebServerSink {
        self.server.sink()
    }
}

/// Lets clients in that come to `ws://ADDRESS/play` with a token sealed by this key, or over WebTransport to `https://ADDRESS/play` where
/// [`WebSettings`](throng_net::WebSettings) have it, and sends them what the server has to say. The outbox gets a sink for them; clients that come
/// another way are told by `others`, if there are any. Until the world goes, or [`stop_listening_web`].
///
/// A server that listens on UDP, too, does this first, and gives a [`sink`](ListeningWeb::sink) of it to
/// [`listen`](crate::net::listen) as `others`.
///
/// # Errors
/// [`ListenError`]; nothing is changed then.
pub fn listen_web(
    world: &mut World,
    address: SocketAddr,
    key: SecretKey,
    settings: &ListenSettings,
    others: Option<Box<dyn Sink>>,
) -> Result<SocketAddr, ListenError> {
    let of_socket = |source| ListenError::Socket { address, source };
    let listener = bind(address, settings).map_err(of_socket)?;
    let bound = listener.address();
    let mut web = settings.web.clone();
    if key != SecretKey::INSECURE {
        web.guest_speed_m_s = None;
    }
    let gate = gate(settings, (address, bound), key, web.clients_max)?;
    web.unread_us_max = web.unread_us_max.min(in_flight_us_max(world));
    let transport = world.get_resource_or_init::<TransportHandle>().clone();
    let transport: Arc<dyn ClientIntake> = Arc::new(transport);
    #[cfg(feature = "webtransport")]
    let has_webtransport = web.webtransport.is_some();
    let server = WebServer::start(listener, web, gate, &transport).map_err(of_socket)?;
    #[cfg(feature = "webtransport")]
    if has_webtransport {
        let mut outbox = world.get_resource_or_init::<OutboxSettings>();
        outbox.mtu_bytes = outbox.mtu_bytes.min(WIRE_PACKET_BYTES_MAX);
    }
    let sink = server.sink();
    let sink = match others {
        Some(others) => sink.or(others),
        None => sink,
    };
    world
        .get_resource_or_init::<Outbox>()
        .set_sink(Box::new(sink));
    world.insert_resource(ListeningWeb { server });
    Ok(bound)
}

#[cfg(feature = "webtransport")]
fn bind(address: SocketAddr, settings: &ListenSettings) -> io::Result<WebSocketListener> {
    match settings.web.webtransport {
        Some(_) => WebSocketListener::bind_both(address),
        None => WebSocketListener::bind(address),
    }
}

#[cfg(not(feature = "webtransport"))]
fn bind(address: SocketAddr, _: &ListenSettings) -> io::Result<WebSocketListener> {
    WebSocketListener::bind(address)
}

/// Closes all connections once everything that the server said is written, or there was no more time for it, and gives what
/// happened in all; `None` where nobody listens. Waits for as long as [`linger_us`](throng_net::WebSettings::linger_us) says.
pub fn stop_listening_web(world: &mut World) -> Option<WebStats> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the server stops listening, so the resource goes for good"
    )]
    let web = world.remove_resource::<ListeningWeb>()?;
    if let Some(mut outbox) = world.get_resource_mut::<Outbox>() {
        outbox.flush();
    }
    Some(web.server.stop())
}
