//! Promise: TCP ports with a certificate serve browsers, pages and probes over TLS; a new certificate applies to new connections and keeps
//! open ones; stalled handshakes block neither the port nor the slots of others; behind a trusted proxy that sends PROXY headers, limits
//! and bans apply to the client's address, and no other peer can claim an address; the page connects to its public origin.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use throng::net::bot_client::BotClient;
use throng::net::{ListenSettings, PortSettings, TlsCertificate, TlsFiles};
use throng::session::{Ban, BanTarget, ban};
use throng_inspect::{
    CONNECTIONS_PER_PEER_MAX, InspectPlugin, InspectSettings, InspectStats, open_inspector,
};
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

use throng::prelude::*;

use crate::browsers::http_get;
use crate::harness::TempFolder;
use crate::inspect_page::{PAGE_TICK, wait_for};
use crate::sockets::token;
use crate::web_test_server::{LOOPBACK, TIMEOUT, TestPlayer, WebEnd, WebTestServer, request};

pub(crate) type TlsSocket = StreamOwned<ClientConnection, TcpStream>;

/// The certificate files of a server.
pub(crate) struct CertificateFiles {
    folder: TempFolder,
}

impl CertificateFiles {
    pub(crate) fn new() -> (Self, CertificateDer<'static>) {
        let files = Self {
            folder: TempFolder::new(),
        };
        let certificate = files.replace();
        (files, certificate)
    }

    /// Writes a new certificate for `localhost`.
    pub(crate) fn replace(&self) -> CertificateDer<'static> {
        let names = vec!["localhost".to_owned()];
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
        let key = self.folder.write("key.pem", signing_key.serialize_pem());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(key, fs::Permissions::from_mode(0o600)).unwrap();
        }
        #[cfg(not(unix))]
        drop(key);
        self.folder.write("certificate.pem", cert.pem());
        cert.der().clone()
    }

    pub(crate) fn paths(&self) -> [String; 2] {
        ["certificate.pem", "key.pem"].map(|name| self.folder.path(name))
    }

    fn load(&self) -> TlsCertificate {
        let [certificate, key] = self.paths().map(Into::into);
        TlsCertificate::load(TlsFiles { certificate, key }).unwrap()
    }
}

fn encrypt(stream: TcpStream, trusted: &CertificateDer<'static>) -> std::io::Result<TlsSocket> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut socket = StreamOwned::new(connection, stream);
    while socket.conn.is_handshaking() {
        socket.conn.complete_io(&mut socket.sock)?;
    }
    Ok(socket)
}

pub(crate) fn connect(
    server: SocketAddr,
    trusted: &CertificateDer<'static>,
) -> std::io::Result<TlsSocket> {
    encrypt(TcpStream::connect(server)?, trusted)
}

/// Status and body of a response.
pub(crate) fn tls_get(
    server: SocketAddr,
    trusted: &CertificateDer<'static>,
    path: &str,
) -> std::io::Result<(u16, String)> {
    let mut socket = connect(server, trusted)?;
    Ok(get(&mut socket, path))
}

fn get(socket: &mut (impl Read + Write), path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let _ = socket.write_all(request.as_bytes());
    let mut bytes = Vec::new();
    let _ = socket.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let status = text.split(' ').nth(1).unwrap_or_default();
    (status.parse().unwrap_or(0), text)
}

/// A client with a WebSocket over TLS.
struct TlsClient(WebSocket<TlsSocket>);

impl TlsClient {
    fn connect(
        server: SocketAddr,
        trusted: &CertificateDer<'static>,
        request: &[u8],
    ) -> Option<Self> {
        let socket = connect(server, trusted).ok()?;
        let (socket, _) = tungstenite::client("wss://localhost/play", socket).ok()?;
        socket.get_ref().sock.set_nonblocking(true).unwrap();
        let mut client = Self(socket);
        client.send(request);
        Some(client)
    }
}

impl WebEnd for TlsClient {
    fn exchange(&mut self, take: &mut dyn FnMut(&[u8])) {
        loop {
            match self.0.read() {
                Ok(Message::Binary(packet)) => take(&packet),
                Ok(_) => {}
                Err(tungstenite::Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                    return;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn send(&mut self, message: &[u8]) {
        match self.0.send(Message::Binary(message.to_vec().into())) {
            Ok(()) => {}
            Err(tungstenite::Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// A server for browsers that has a certificate.
fn tls_server(
    configure: impl FnOnce(&mut ListenSettings),
) -> (
    WebTestServer,
    CertificateFiles,
    TlsCertificate,
    CertificateDer<'static>,
) {
    let (files, trusted) = CertificateFiles::new();
    let certificate = files.load();
    let rig = WebTestServer::new(0, |settings| {
        settings.web.port.tls = Some(certificate.clone());
        settings.web.serve_demo_page = true;
        configure(settings);
    });
    (rig, files, certificate, trusted)
}

#[test]
fn browsers_play_over_tls() {
    let (mut rig, _files, _, trusted) = tls_server(|_| ());
    let (status, page) = tls_get(rig.address, &trusted, "/").unwrap();
    assert!(status == 200 && page.contains("page.js"), "{page}");
    let mut clients: Vec<(TlsClient, BotClient)> = (1..=4)
        .map(|player| {
            let request = request(&token(player, rig.address));
            let client = TlsClient::connect(rig.address, &trusted, &request).unwrap();
            (client, BotClient::new(player, 1))
        })
        .collect();
    rig.walk_and_stop(&mut clients);
    let stats = rig.stats();
    assert_eq!(
        (stats.clients_accepted, stats.tls_failed, stats.lost),
        (4, 0, 0)
    );
}

#[test]
fn reload_reaches_new_connections_and_keeps_open_ones() {
    let (mut rig, files, certificate, old) = tls_server(|_| ());
    let address = rig.address;
    let join = |player, trusted: &CertificateDer<'static>| {
        let request = request(&token(player, address));
        TlsClient::connect(address, trusted, &request)
    };
    let open = join(1, &old).expect("the old certificate is trusted");
    let mut open = [(open, BotClient::new(1, 1))];
    let walk = |rig: &mut WebTestServer, open: &mut [(TlsClient, BotClient)]| {
        let (messages, mut packets) = (rig.stats().messages_in + 40, 0);
        rig.step_until("a client walks", |rig| {
            let [(client, bot)] = open else { return true };
            client.exchange(&mut |packet| {
                packets += 1;
                bot.receive(packet);
            });
            bot.update(|message| client.send(message));
            packets > 20 && rig.stats().messages_in > messages
        });
    };
    walk(&mut rig, &mut open);
    let new = files.replace();
    certificate.reload().unwrap();
    assert!(
        join(2, &old).is_none(),
        "the old certificate is no longer used"
    );
    let _other = join(2, &new).expect("the new certificate is trusted");
    rig.step_until("the client is accepted", |rig| {
        rig.stats().clients_accepted == 2
    });
    // The open connection works in both directions.
    walk(&mut rig, &mut open);
    assert_eq!((rig.stats().clients, rig.stats().lost), (2, 0));
    // Invalid files change nothing.
    let [path, _] = files.paths();
    fs::write(path, "junk").unwrap();
    let error = certificate.reload().unwrap_err();
    assert!(error.to_string().contains("BEGIN CERTIFICATE"), "{error}");
    assert_eq!(tls_get(address, &new, "/").unwrap().0, 200);
}

#[test]
fn stalled_handshakes_end_and_hold_no_place_of_others() {
    const STALLED: u64 = 4;

    let (mut rig, _files, _, trusted) = tls_server(|settings| {
        settings.web.handshake_timeout_us = 1_000_000;
        settings.web.unauthenticated_per_address_max = STALLED as u32;
        settings.web.unauthenticated_max = 64;
    });
    // Some send the start of a handshake, some send nothing.
    let _stalled: Vec<TcpStream> = (0..STALLED)
        .map(|nth| {
            let mut stream = TcpStream::connect(rig.address).unwrap();
            if nth > 0 {
                stream.write_all(&[22, 3, 1, 2, 0, 1, 0, 1]).unwrap();
            }
            stream
        })
        .collect();
    rig.step_until("all handshakes stall or have timed out", |rig| {
        rig.stats().accepted == STALLED
    });
    rig.step_until("all handshakes have timed out", |rig| {
        rig.stats().timed_out == STALLED
    });
    // On a busy machine, a handshake of this test may time out, too.
    let mut replies = (0..100).filter_map(|_| tls_get(rig.address, &trusted, "/").ok());
    assert_eq!(replies.next().expect("a reply").0, 200);
    assert_eq!(rig.stats().tls_failed, 0);
}

#[test]
fn junk_on_a_tls_port_gets_a_reason_and_is_counted() {
    let (mut rig, _files, _, trusted) = tls_server(|_| ());
    let (status, reason) = http_get(rig.address, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(status == 400 && reason.contains("https:"), "{reason}");
    let mut stream = TcpStream::connect(rig.address).unwrap();
    stream.write_all(&[22, 3, 1, 0, 4, 9, 9, 9, 9]).unwrap();
    rig.step_until("both are counted", |rig| rig.stats().tls_failed == 2);
    let (_, stranger) = CertificateFiles::new();
    assert!(connect(rig.address, &stranger).is_err());
    assert_eq!(tls_get(rig.address, &trusted, "/").unwrap().0, 200);
}

/// A PROXY header, version 2, for TCP over IPv4.
fn proxy_header(client: &str) -> Vec<u8> {
    let client: SocketAddr = client.parse().unwrap();
    let SocketAddr::V4(client) = client else {
        panic!("expected IPv4")
    };
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
    header.extend(client.ip().octets());
    header.extend([203, 0, 113, 5]);
    header.extend(client.port().to_be_bytes());
    header.extend(443_u16.to_be_bytes());
    header
}

/// The header of a connection of the proxy itself, for example a probe.
const LOCAL_HEADER: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";

fn connect_as(server: SocketAddr, client: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(&proxy_header(client)).unwrap();
    stream
}

fn trust_local_proxy(port: &mut PortSettings) {
    port.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    port.uses_proxy_protocol = true;
}

#[test]
fn limits_and_bans_see_the_address_of_the_proxy_header() {
    let (mut rig, _files, _, trusted) = tls_server(|settings| {
        trust_local_proxy(&mut settings.web.port);
        settings.web.unauthenticated_per_address_max = 1;
    });
    let address = rig.address;
    let open = |client: &str| {
        let socket = encrypt(connect_as(address, client), &trusted).ok()?;
        let (socket, _) = tungstenite::client("wss://localhost/play", socket).ok()?;
        socket.get_ref().sock.set_nonblocking(true).unwrap();
        Some(TlsClient(socket))
    };
    let mut first = open("198.51.100.1:4000").expect("the first connection is accepted");
    assert!(
        open("198.51.100.1:4001").is_none(),
        "the same client address is over its limit"
    );
    let _other = open("203.0.113.9:4000").expect("another client");
    first.send(&request(&token(1, address)));
    let mut first = TestPlayer::log_in(&mut rig, first);
    let world = rig.server.world_mut();
    let sessions = world.resource::<Sessions>();
    let addresses: Vec<_> = sessions
        .iter()
        .map(|(_, session)| session.address)
        .collect();
    assert_eq!(addresses, [Some("198.51.100.1:4000".parse().unwrap())]);
    let order = |addresses: &str| Ban {
        target: BanTarget::Addresses(addresses.parse().unwrap()),
        reason: String::new(),
        issued_by: String::new(),
        issued_unix_s: 0,
        until_unix_s: None,
    };
    assert_eq!(ban(world, order("127.0.0.1")).unwrap(), 0);
    assert_eq!(ban(world, order("198.51.100.0/24")).unwrap(), 1);
    rig.step_until("the banned client is gone", |rig| {
        // The client replies to the close frame.
        let _ = first.client.0.read();
        rig.stats().clients == 0
    });
}

#[test]
fn handshakes_over_the_rate_of_a_network_wait() {
    let (mut rig, _files, _, trusted) = tls_server(|settings| {
        trust_local_proxy(&mut settings.web.port);
        settings.web.port.network_tls_handshakes_per_s = 0;
        settings.web.handshake_timeout_us = 300_000;
    });
    let waits = encrypt(connect_as(rig.address, "198.51.100.1:4"), &trusted);
    assert!(waits.is_err(), "the network has used up its handshakes");
    rig.step_until("the handshake has timed out", |rig| {
        rig.stats().timed_out == 1
    });
    assert_eq!(rig.stats().tls_failed, 0);
    // A proxy forwards many networks, so it is not limited. It may be slow on a busy machine.
    let served = (0..100).any(|_| {
        let mut stream = TcpStream::connect(rig.address).unwrap();
        stream.write_all(LOCAL_HEADER).unwrap();
        let socket = encrypt(stream, &trusted);
        socket.is_ok_and(|mut socket| get(&mut socket, "/").0 == 200)
    });
    assert!(served);
}

#[test]
fn only_trusted_proxies_send_a_valid_header() {
    let (mut rig, _files, _, _) = tls_server(|settings| {
        trust_local_proxy(&mut settings.web.port);
        settings.web.port.tls = None;
    });
    let answer = |server, bytes: &[u8]| {
        let mut stream = TcpStream::connect(server).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let _ = stream.write_all(bytes);
        get(&mut stream, "/")
    };
    assert_eq!(
        get(&mut connect_as(rig.address, "198.51.100.1:4"), "/").0,
        200
    );
    assert_eq!(answer(rig.address, LOCAL_HEADER).0, 200);
    let too_long = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff";
    let version_3 = b"\r\n\r\n\0\r\nQUIT\n\x31\x11\0\x0c";
    let refused: [(&[u8], &str); 4] = [
        (b"", "found something else"),
        (
            b"PROXY TCP4 198.51.100.1 203.0.113.5 4 443\r\n",
            "version 1",
        ),
        (too_long, "at most 4096 bytes"),
        (version_3, "0x31"),
    ];
    for (header, reason) in refused {
        let (status, text) = answer(rig.address, header);
        assert!(status == 400 && text.contains(reason), "{text}");
    }
    rig.step_until("all refusals are counted", |rig| {
        rig.stats().proxy_header_refused == 4
    });
    // From a peer that is not trusted, the header is a malformed request, even if others may send it.
    for uses_proxy_protocol in [false, true] {
        let mut rig = WebTestServer::new(0, |settings| {
            settings.web.serve_demo_page = true;
            settings.web.port.uses_proxy_protocol = uses_proxy_protocol;
            settings.web.port.trusted_proxies = vec!["192.0.2.1".parse().unwrap()];
        });
        let (status, text) = answer(rig.address, &proxy_header("198.51.100.1:4"));
        assert_eq!(status, 400, "{text}");
        rig.step_until("the request is counted", |rig| rig.stats().refused == 1);
        assert_eq!(answer(rig.address, b"").0, 200);
    }
}

#[test]
fn page_connects_to_its_public_origin() {
    let (rig, _files, _, trusted) = tls_server(|settings| {
        settings.web.public_origin = Some("https://play.example.com".parse().unwrap());
    });
    let (_, page) = tls_get(rig.address, &trusted, "/").unwrap();
    let meta = "<meta name=\"public-origin\" content=\"https://play.example.com\">";
    assert!(page.contains(meta), "{page}");
    let policy = "connect-src 'self' https://play.example.com wss://play.example.com";
    assert!(page.contains(policy), "{page}");
    let (_, script) = tls_get(rig.address, &trusted, "/demo/page.js").unwrap();
    assert!(script.contains("meta[name=public-origin]"), "{script}");
}

/// A server with an inspector over TLS, and with these trusted proxies.
fn inspected_tls_server(
    configure: impl FnOnce(&mut PortSettings),
) -> (
    Server,
    SocketAddr,
    CertificateFiles,
    CertificateDer<'static>,
) {
    let (files, trusted) = CertificateFiles::new();
    let mut port = PortSettings {
        tls: Some(files.load()),
        ..PortSettings::default()
    };
    configure(&mut port);
    let mut server = Server::builder().plugins(InspectPlugin).build();
    let settings = InspectSettings {
        metrics: Some(LOOPBACK),
        page: Some(LOOPBACK),
        page_port: port,
        token: Some("opensesame".to_owned()),
        public_origin: Some("https://ops.example.com".parse().unwrap()),
        ..InspectSettings::default()
    };
    let addresses = open_inspector(server.world_mut(), settings).unwrap();
    server.step(1);
    (server, addresses.page.unwrap(), files, trusted)
}

#[test]
fn live_page_and_probes_work_over_tls_beside_stalled_handshakes() {
    let (mut server, address, _files, trusted) = inspected_tls_server(|_| ());
    let stalled: Vec<TcpStream> = (0..CONNECTIONS_PER_PEER_MAX)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let is_full = |stats: &InspectStats| stats.accepted >= CONNECTIONS_PER_PEER_MAX as u64;
    wait_for(&mut server, is_full);
    assert_eq!(tls_get(address, &trusted, "/readyz").unwrap().0, 200);
    drop(stalled);
    wait_for(&mut server, |stats| stats.connections == 0);
    assert_eq!(tls_get(address, &trusted, "/page.js").unwrap().0, 200);
    let live = |origin: &str| {
        let socket = connect(address, &trusted).unwrap();
        let uri = "wss://localhost/live?token=opensesame".parse().unwrap();
        let request = tungstenite::ClientRequestBuilder::new(uri).with_header("Origin", origin);
        tungstenite::client(request, socket).map_err(|error| error.to_string())
    };
    let (mut page, _) = live("https://ops.example.com").unwrap();
    let hello = std::thread::spawn(move || page.read().unwrap());
    while !hello.is_finished() {
        server.step(1);
        std::thread::sleep(PAGE_TICK);
    }
    let hello = hello.join().unwrap().into_text().unwrap();
    assert!(hello.contains("\"hello\""), "{hello}");
    assert!(live("https://evil.example").is_err());
}

#[test]
fn inspect_port_counts_the_clients_of_a_proxy() {
    let (mut server, address, _files, trusted) = inspected_tls_server(trust_local_proxy);
    let stalled: Vec<TcpStream> = (0..2 * CONNECTIONS_PER_PEER_MAX)
        .map(|_| connect_as(address, "198.51.100.1:4000"))
        .collect();
    let most = CONNECTIONS_PER_PEER_MAX as u64;
    wait_for(&mut server, |stats| {
        stats.accepted + stats.refused == 2 * most
    });
    // Another client behind the same proxy has its own limit.
    let mut socket = encrypt(connect_as(address, "203.0.113.9:4000"), &trusted).unwrap();
    assert_eq!(get(&mut socket, "/page.js").0, 200);
    drop(stalled);
    let (status, text) = http_get(address, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(status == 400 && text.contains("send-proxy-v2"), "{text}");
}
