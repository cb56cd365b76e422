//! The same clients over WebTransport: a QUIC connection each, in the same thread.
//!
//! ```text
//! UDP ─▶ address proven ─▶ CONNECT /play ─▶ first stream: a token ─▶ admit                      the server, in its tick
//!                                           a datagram: a packet ─▶ endpoint ─▶ ConnectionHandler::receive ─▶ Ingest
//!                                           a datagram: a packet ◀─ endpoint ◀─ line ◀─ WebServerSink ◀─ Send
//! ```
//! | file | holds |
//! |---|---|
//! | `settings` | limits |
//! | `certificate` | what the server proves itself with |
//! | `handshakes` | how many handshakes are begun |
//! | `session` | a client's connection |
//!
//! QUIC seals, and follows a client to another address; what is lost our own endpoint says again. So a datagram is a packet as of
//! the [page of the transport](crate), unsealed.
//!
//! Invariants: of an address that is not proven nothing is kept, and it is answered with less than it sent; who says nothing has a place
//! among the strangers, as over TCP, and no longer than that; what waits in either direction is bounded.
//!
//! Absent: a window that congestion closes, as over UDP: the endpoint's budget says what is sent.
//!
//! Cost: for a client what QUIC keeps of a connection (28 to 30 kB in `benches/peers -- net`, where it is measured by itself) beside our endpoint;
//! for each datagram a seal, and a copy more than over UDP. All clients share the one thread. As a whole it was not measured.

mod certificate;
mod handshakes;
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
use crate::web::settings::WebCounters;
use crate::web::shared::{UnauthenticatedSlot, WebShared};
use certificate::self_signed;
use handshakes::HandshakeLimits;

/// Bytes that may be on their way to a client: more than its endpoint sends at once.
const IN_FLIGHT_BYTES: u64 = 128 << 10;

/// Bytes of datagrams that wait in either direction, for the network or to be read; the oldest give way.
const DATAGRAM_BUFFER_BYTES: usize = 64 << 10;

/// Streams that a client may have open: its session and one for the token; HTTP/3's own, and room for some that say nothing.
const STREAMS_MAX: u8 = 4;
const ONE_WAY_STREAMS_MAX: u8 = 8;

/// How far a client may be ahead on a stream, in bytes: longer than its token, and than what HTTP/3 says at first.
const STREAM_BYTES: u32 = 16 << 10;

/// After so long without anything of the other end QUIC ends a connection; those of clients end by other rules before.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes that are kept of a connection that was not looked at yet, and of all of those.
const INCOMING_BYTES: u64 = 16 << 10;
const INCOMING_BYTES_TOTAL: u64 = 4 << 20;

/// No error, as HTTP/3 numbers it.
const NO_ERROR: u32 = 0x100;

/// After how long another certificate is tried to be made where that failed.
const RETRY_PAUSE: Duration = Duration::from_secs(600);

/// A socket that waits for clients, with what it proves itself by.
pub(super) struct SessionListener {
    socket: UdpSocket,
    config: quinn::ServerConfig,
    address: SocketAddr,
}

impl SessionListener {
    /// Makes a certificate, which the page is told of.
    ///
    /// # Errors
    /// Where that is not possible.
    pub fn new(socket: UdpSocket, shared: &WebShared) -> io::Result<Self> {
        let address = socket.local_addr()?;
        Ok(Self {
            socket,
            config: new_config(address, shared)?,
            address,
        })
    }

    /// Begins to answer. To be called by the thread.
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

/// The same, while it answers.
pub(super) struct ListeningSessions {
    endpoint: quinn::Endpoint,
    accepting: tokio::task::JoinHandle<()>,
    renewing: tokio::task::JoinHandle<()>,
}

impl ListeningSessions {
    /// Nobody more is taken.
    pub fn stop_accepting(&self) {
        self.accepting.abort();
        self.renewing.abort();
        self.endpoint.set_server_config(None);
    }

    /// Ends what is still open, and says so.
    pub async fn shutdown(self, patience: Duration) {
        self.endpoint.close(NO_ERROR.into(), b"");
        let _ = tokio::time::timeout(patience, self.endpoint.wait_idle()).await;
    }
}

/// Takes connections, as many of strangers as may be open, and from each address as many as may ask for anything.
async fn accept(endpoint: quinn::Endpoint, shared: Arc<WebShared>) {
    let counters = &shared.counters;
    let mut handshakes = HandshakeLimits::new(&shared.settings.webtransport.unwrap_or_default());
    while let Some(incoming) = endpoint.accept().await {
        let from = incoming.remote_address();
        if !incoming.remote_address_validated() {
            // It may be somebody else's address: whoever is there says so, which takes a round trip once.
            let _ = incoming.retry();
            continue;
        }
        // A handshake costs more than a look at a token.
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

/// Proves itself by another certificate from time to time. Who is connected does not notice.
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

/// What connections begin with from now on: another certificate, which the page is told of.
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

/// Lets so much be on its way whatever is lost.
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
