//! Clients over WebTransport: one QUIC connection each, in the same thread as the WebSockets.
//!
//! ```text
//! UDP ─▶ address proven ─▶ CONNECT /play ─▶ first stream: a token ─▶ admission ─▶ ConnectionHandler::connect ──┐   the server, in its tick
//!                                           a datagram: a packet ─▶ endpoint ─▶ ConnectionHandler::receive ────┴▶ Ingest
//!                                           a datagram: a packet ◀─ endpoint ◀─ WebSendQueue ◀─ WebServerSink ◀── Send
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `settings` | limits |
//! | `certificate` | the certificate of the server |
//! | `session` | a client's connection |
//!
//! QUIC encrypts, and follows a client to another address; our own endpoint sends lost data again. So a datagram contains a packet of the
//! [crate documentation](crate), unencrypted.
//!
//! Invariants: the server stores nothing for an address that is not proven, and replies with less than it received. A silent connection
//! uses a slot of the unauthenticated clients, as over TCP, for the same limited time. The queues of both directions are bounded.
//!
//! Not provided: a congestion window. As over UDP, the endpoint's budget limits what is sent.
//!
//! Cost: per client, the memory of a QUIC connection (28 to 30 kB in `benches/peers -- net`, measured separately) and our endpoint; per
//! datagram, one encryption and one copy more than over UDP. All clients share one thread. The total cost is not measured.

mod certificate;
mod session;
mod settings;

use std::any::Any;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use wtransport::quinn;
use wtransport::quinn::congestion::{Controller, ControllerFactory};
use wtransport::quinn::crypto::rustls::QuicServerConfig;
use wtransport::tls::server::build_default_tls_config;

pub use settings::WebTransportSettings;

use crate::handshake::network_of;
use crate::http::HandshakeLimits;
use crate::web::settings::WebCounters;
use crate::web::shared::{UnauthenticatedSlot, WebShared};
use certificate::self_signed;

/// Bytes in flight to a client: more than its endpoint sends at once.
const IN_FLIGHT_BYTES: u64 = 128 << 10;

/// Bytes of datagrams that wait in either direction; the oldest are dropped.
const DATAGRAM_BUFFER_BYTES: usize = 64 << 10;

/// Streams that a client may have open: its session, one for the token, those of HTTP/3, and some that may stay unused.
const STREAMS_MAX: u8 = 4;
const ONE_WAY_STREAMS_MAX: u8 = 8;

/// How far a client may send ahead on a stream, in bytes: more than its token, and more than the first data of HTTP/3.
const STREAM_BYTES: u32 = 16 << 10;

/// Idle timeout of QUIC. Connections of clients end earlier by other limits.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes stored for a connection that is not accepted yet, and for all of those.
const INCOMING_BYTES: u64 = 16 << 10;
const INCOMING_BYTES_TOTAL: u64 = 4 << 20;

/// The HTTP/3 code for no error.
const NO_ERROR: u32 = 0x100;

/// Pause after a certificate could not be created.
const RETRY_PAUSE: Duration = Duration::from_secs(600);

/// A socket for WebTransport clients, with its certificate.
pub(super) struct SessionListener {
    socket: UdpSocket,
    config: quinn::ServerConfig,
    address: SocketAddr,
}

impl SessionListener {
    /// Creates a certificate and publishes its hash to the page.
    ///
    /// # Errors
    /// If the certificate cannot be created.
    pub fn new(socket: UdpSocket, shared: &WebShared) -> io::Result<Self> {
        let address = socket.local_addr()?;
        Ok(Self {
            socket,
            config: new_config(address, shared)?,
            address,
        })
    }

    /// Starts to accept sessions. The thread has to call this.
    pub fn listen(self, shared: &Arc<WebShared>) -> io::Result<ListeningSessions> {
        let endpoint = quinn::Endpoint::new(
            quinn::EndpointConfig::default(),
            Some(self.config),
            self.socket,
            Arc::new(quinn::TokioRuntime),
        )?;
        Ok(ListeningSessions {
            accepting: tokio::spawn(accept(endpoint.clone(), shared.clone())),
            renewing: tokio::spawn(renew_certificate(
                endpoint.clone(),
                self.address,
                shared.clone(),
            )),
            endpoint,
        })
    }
}

/// A listener that accepts sessions.
pub(super) struct ListeningSessions {
    endpoint: quinn::Endpoint,
    accepting: tokio::task::JoinHandle<()>,
    renewing: tokio::task::JoinHandle<()>,
}

impl ListeningSessions {
    /// Stops accepting clients.
    pub fn stop_accepting(&self) {
        self.accepting.abort();
        self.renewing.abort();
        self.endpoint.set_server_config(None);
    }

    /// Closes all connections that are still open, and notifies the clients.
    pub async fn shutdown(self, patience: Duration) {
        self.endpoint.close(NO_ERROR.into(), b"");
        let _ = tokio::time::timeout(patience, self.endpoint.wait_idle()).await;
    }
}

/// Accepts connections, up to the limits of unauthenticated connections and of handshakes.
async fn accept(endpoint: quinn::Endpoint, shared: Arc<WebShared>) {
    let counters = &shared.counters;
    let settings = shared.settings.webtransport.unwrap_or_default();
    let mut handshakes =
        HandshakeLimits::new(settings.handshakes_per_s, settings.network_handshakes_per_s);
    while let Some(incoming) = endpoint.accept().await {
        let from = incoming.remote_address();
        if !incoming.remote_address_validated() {
            // The address may be forged: the client has to confirm it, which takes one round trip.
            let _ = incoming.retry();
            continue;
        }
        // A handshake costs more than the check of a token.
        let now_us = shared.now_us();
        let is_heard = shared.handshake().try_take_request(now_us, from)
            && handshakes.try_consume(now_us, from.ip());
        let place = UnauthenticatedSlot::acquire(&shared, Some(network_of(from.ip())));
        let Some(place) = place.filter(|_| is_heard) else {
            WebCounters::one(&counters.refused_unauthenticated);
            incoming.refuse();
            continue;
        };
        WebCounters::one(&counters.accepted);
        tokio::spawn(session::run_session(incoming, place, shared.clone()));
    }
}

/// Renews the certificate from time to time. Connected clients are not affected.
async fn renew_certificate(endpoint: quinn::Endpoint, address: SocketAddr, shared: Arc<WebShared>) {
    let settings = shared.settings.webtransport.unwrap_or_default();
    let renewal = Duration::from_micros(settings.renewal_us_max());
    let mut pause = renewal;
    loop {
        tokio::time::sleep(pause).await;
        pause = renewal;
        match new_config(address, &shared) {
            Ok(config) => endpoint.set_server_config(Some(config)),
            Err(error) => {
                tracing::error!(%error, "renewing the WebTransport certificate failed");
                pause = RETRY_PAUSE.min(renewal);
            }
        }
    }
}

/// The configuration for new connections, with a new certificate whose hash is published to the page.
fn new_config(address: SocketAddr, shared: &WebShared) -> io::Result<quinn::ServerConfig> {
    let (identity, hash) = self_signed(&[address.ip().to_string(), "localhost".to_owned()])?;
    let crypto = QuicServerConfig::try_from(build_default_tls_config(identity));
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto.map_err(io::Error::other)?));
    config
        .transport_config(Arc::new(transport_config()))
        .max_incoming(shared.settings.unauthenticated_max)
        .incoming_buffer_size(INCOMING_BYTES)
        .incoming_buffer_size_total(INCOMING_BYTES_TOTAL);
    shared.set_certificate(hash);
    Ok(config)
}

fn transport_config() -> quinn::TransportConfig {
    let mut transport = quinn::TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(STREAMS_MAX.into())
        .max_concurrent_uni_streams(ONE_WAY_STREAMS_MAX.into())
        .stream_receive_window(STREAM_BYTES.into())
        .receive_window((2 * STREAM_BYTES).into())
        .send_window(u64::from(STREAM_BYTES))
        .datagram_receive_buffer_size(Some(DATAGRAM_BUFFER_BYTES))
        .datagram_send_buffer_size(DATAGRAM_BUFFER_BYTES)
        .max_idle_timeout(quinn::IdleTimeout::try_from(IDLE_TIMEOUT).ok())
        .congestion_controller_factory(Arc::new(ConstantWindow));
    transport
}

/// A constant congestion window, independent of loss.
#[derive(Clone, Copy, Debug)]
struct ConstantWindow;

impl ControllerFactory for ConstantWindow {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(*self)
    }
}

impl Controller for ConstantWindow {
    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: u64) {}

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        IN_FLIGHT_BYTES
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(*self)
    }

    fn initial_window(&self) -> u64 {
        IN_FLIGHT_BYTES
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
