//! Settings of a TCP port, and how its connections are opened.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use thiserror::Error;
use throng_core::clock::Stopwatch;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::certificate::TlsCertificate;
use super::handshake_limits::HandshakeLimits;
use super::proxy_header::{ProxyHeaderError, read_proxy_header};
use super::stream::PortStream;
use crate::address_range::AddressRange;

/// The first byte of every TLS connection: a handshake record.
const TLS_HANDSHAKE: u8 = 22;

/// How often a connection looks whether its handshake may start.
const HANDSHAKE_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Bytes of a request that are read before the connection is closed. Closing with unread data would discard the response.
const UNREAD_BYTES_MAX: u64 = 16 << 10;

/// Minimum time between two warnings about a proxy, in microseconds.
const WARNING_INTERVAL_US: u64 = 60_000_000;

/// How connections to a TCP port are opened.
///
/// ```
/// use throng_net::http::{PortSettings, TlsCertificate, TlsFiles};
///
/// /// Behind a load balancer that adds a header of the PROXY protocol, with the certificate of the game.
/// fn port() -> Result<PortSettings, Box<dyn std::error::Error>> {
///     let files = TlsFiles { certificate: "cert.pem".into(), key: "key.pem".into() };
///     Ok(PortSettings {
///         tls: Some(TlsCertificate::load(files)?),
///         trusted_proxies: vec!["10.0.0.0/8".parse()?],
///         uses_proxy_protocol: true,
///         ..PortSettings::default()
///     })
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PortSettings {
    /// The certificate of the port; `None`: no TLS.
    pub tls: Option<TlsCertificate>,
    /// Proxies that forward clients. From these addresses the header `X-Forwarded-For`, or `Forwarded`, names the client's address, or a
    /// header of the PROXY protocol. Limits and bans use that address. From others the headers are ignored.
    pub trusted_proxies: Vec<AddressRange>,
    /// Whether each connection of a trusted proxy begins with a header of the PROXY protocol, version 2; without it the connection is
    /// refused. Connections of others never have one.
    pub uses_proxy_protocol: bool,
    /// TLS handshakes a second, of all addresses together. A handshake takes 0.1 to 1 ms of the thread that serves the port. More wait.
    pub tls_handshakes_per_s: u32,
    /// TLS handshakes a second of a large network: 24 bits of an IPv4 address, 48 bits of an IPv6 address. Trusted proxies have no such
    /// limit.
    pub network_tls_handshakes_per_s: u32,
}

impl Default for PortSettings {
    fn default() -> Self {
        Self {
            tls: None,
            trusted_proxies: Vec::new(),
            uses_proxy_protocol: false,
            tls_handshakes_per_s: 500,
            network_tls_handshakes_per_s: 128,
        }
    }
}

/// Why a connection could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A trusted proxy sent no valid header.
    #[error(transparent)]
    ProxyHeader(#[from] ProxyHeaderError),
    /// The client does not use TLS.
    #[error("expected TLS, found a connection without it")]
    WithoutTls,
    /// The client closed the connection, or the handshake failed.
    #[error("TLS handshake failed: {0}")]
    Handshake(#[from] io::Error),
}

/// Opens the connections of a port. All steps have to be limited in time by the caller.
pub struct ConnectionOpener {
    settings: PortSettings,
    acceptor: Option<TlsAcceptor>,
    limits: Mutex<HandshakeLimits>,
    clock: Stopwatch,
    /// When a proxy may be warned of next, in microseconds.
    next_warning_us: AtomicU64,
}

impl ConnectionOpener {
    /// An opener with these settings.
    #[must_use]
    pub fn new(settings: PortSettings) -> Self {
        let tls = settings.tls.as_ref();
        Self {
            acceptor: tls.map(|tls| TlsAcceptor::from(tls.config())),
            limits: Mutex::new(HandshakeLimits::new(
                settings.tls_handshakes_per_s,
                settings.network_tls_handshakes_per_s,
            )),
            settings,
            clock: Stopwatch::start(),
            next_warning_us: AtomicU64::new(0),
        }
    }

    /// The addresses of trusted proxies.
    #[must_use]
    pub fn trusted_proxies(&self) -> &[AddressRange] {
        &self.settings.trusted_proxies
    }

    /// Whether an address is that of a trusted proxy, so that the client may have another one.
    #[must_use]
    pub fn is_trusted(&self, ip: IpAddr) -> bool {
        let mut proxies = self.settings.trusted_proxies.iter();
        proxies.any(|range| range.contains(ip))
    }

    /// Whether a connection of this peer begins with a PROXY header.
    #[must_use]
    pub fn expects_proxy_header(&self, peer: IpAddr) -> bool {
        self.settings.uses_proxy_protocol && self.is_trusted(peer)
    }

    /// Reads the PROXY header, if one is expected. Returns the client's address: the one in the header, or the peer's.
    ///
    /// # Errors
    /// [`OpenError::ProxyHeader`]. Logs a warning, at most one per minute.
    pub async fn read_client_address(
        &self,
        stream: &mut TcpStream,
        peer: SocketAddr,
    ) -> Result<SocketAddr, OpenError> {
        if !self.expects_proxy_header(peer.ip()) {
            return Ok(peer);
        }
        match read_proxy_header(stream).await {
            Ok(source) => Ok(source.unwrap_or(peer)),
            Err(error) => {
                let is_connected = !matches!(error, ProxyHeaderError::Io(_));
                if is_connected && self.may_warn() {
                    tracing::warn!(proxy = %peer.ip(), %error, "connection of a trusted proxy refused");
                }
                if is_connected {
                    refuse(stream, &error.to_string()).await;
                }
                Err(error.into())
            }
        }
    }

    /// Does the TLS handshake, if the port has TLS. It waits while too many others start.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn encrypt(
        &self,
        mut stream: TcpStream,
        client: IpAddr,
    ) -> Result<PortStream, OpenError> {
        let Some(acceptor) = &self.acceptor else {
            return Ok(PortStream::Plain(stream));
        };
        let mut first = [0];
        if stream.peek(&mut first).await? == 0 {
            return Err(OpenError::Handshake(io::ErrorKind::UnexpectedEof.into()));
        }
        if first != [TLS_HANDSHAKE] {
            refuse(&mut stream, "this port uses TLS: expected https: or wss:").await;
            return Err(OpenError::WithoutTls);
        }
        while !self.may_start_handshake(client) {
            tokio::time::sleep(HANDSHAKE_RETRY_INTERVAL).await;
        }
        let stream = acceptor.accept(stream).await?;
        Ok(PortStream::Tls(Box::new(stream)))
    }

    fn may_start_handshake(&self, client: IpAddr) -> bool {
        let now_us = self.now_us();
        let limits = self.limits.lock();
        let mut limits = limits.unwrap_or_else(PoisonError::into_inner);
        if self.is_trusted(client) {
            limits.try_consume_shared(now_us)
        } else {
            limits.try_consume(now_us, client)
        }
    }

    fn may_warn(&self) -> bool {
        let now_us = self.now_us();
        let next_us = self.next_warning_us.load(Ordering::Relaxed);
        if now_us < next_us {
            return false;
        }
        self.next_warning_us
            .store(now_us + WARNING_INTERVAL_US, Ordering::Relaxed);
        true
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// Sends a reason that people can read, and waits until the peer has received it.
async fn refuse(stream: &mut TcpStream, reason: &str) {
    let response = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{reason}\n",
        reason.len() + 1
    );
    if stream.write_all(response.as_bytes()).await.is_err() || stream.shutdown().await.is_err() {
        return;
    }
    let mut unread = stream.take(UNREAD_BYTES_MAX);
    let mut buffer = [0; 1 << 10];
    while matches!(unread.read(&mut buffer).await, Ok(1..)) {}
}
