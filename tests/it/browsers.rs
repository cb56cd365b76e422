//! Promise: clients over WebSockets, as in browsers, are admitted by their token, walk, and converge with the server; a lost connection is
//! resumed; junk data, silent clients, slow readers and too many clients neither delay a tick nor are admitted.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use bevy_ecs::prelude::*;
use throng::net::bot_client::BotClient;
use throng::net::{
    ConnectToken, EndpointSettings, ListenSettings, SecretKey, TokenClaims, UdpClient, WebListener,
    WebSettings, listen, listen_web, stop_listening_web,
};
use throng::prelude::*;
use throng::session::LogoutReason;

use throng::sim::clock::unix_ms;
use throng::sync::Mirror;
use throng::wire::{ClientMessage, CloseReason};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Error, Message, WebSocket};

use crate::sockets::token;
use crate::web_test_server::{
    LOOPBACK, SPEED_M_S, TIMEOUT, TestPlayer, WebEnd, WebTestServer, request, requests,
};

/// A client with a WebSocket.
pub struct WebClient {
    socket: WebSocket<TcpStream>,
    /// The close code of the server once the connection has ended, if there was one.
    pub end: Option<Option<CloseCode>>,
}

impl WebClient {
    /// Connects, and sends a connect request with a token.
    pub fn connect(server: SocketAddr, request: Vec<u8>) -> Self {
        let mut client = Self::open(server);
        client.send(&request);
        client
    }

    /// Connects, and sends nothing.
    fn open(server: SocketAddr) -> Self {
        Self::try_open(server).expect("the server accepts the connection")
    }

    /// The same; `None` if the server refuses the connection.
    fn try_open(server: SocketAddr) -> Option<Self> {
        Self::try_open_as(server, None)
    }

    /// The same, as a proxy that forwards a client with this address.
    fn try_open_as(server: SocketAddr, client: Option<&str>) -> Option<Self> {
        let stream = TcpStream::connect(server).ok()?;
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut request = format!("ws://{server}/play").into_client_request().ok()?;
        if let Some(client) = client {
            let client = client.parse().ok()?;
            request.headers_mut().insert("x-forwarded-for", client);
        }
        let (socket, _) = tungstenite::client(request, stream).ok()?;
        socket.get_ref().set_nonblocking(true).unwrap();
        Some(Self { socket, end: None })
    }

    pub fn send(&mut self, message: &[u8]) {
        let message = Message::Binary(message.to_vec().into());
        match self.socket.send(message) {
            Ok(()) => {}
            // It is sent with the next message.
            Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => assert!(self.end.is_some(), "{error}"),
        }
    }

    /// Receives all pending packets.
    pub fn receive(&mut self, mut take: impl FnMut(&[u8])) {
        while self.end.is_none() {
            match self.socket.read() {
                Ok(Message::Binary(packet)) => take(&packet),
                Ok(Message::Close(frame)) => {
                    self.end = Some(frame.map(|frame| frame.code));
                    // Sends the close reply that the server waits for.
                    let _ = self.socket.flush();
                }
                Ok(_) => {}
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.end = Some(None),
            }
        }
    }
}

impl WebEnd for WebClient {
    fn exchange(&mut self, take: &mut dyn FnMut(&[u8])) {
        self.receive(take);
    }

    fn send(&mut self, message: &[u8]) {
        WebClient::send(self, message);
    }
}

/// The close code of a connection that begins with this request.
fn close_code(rig: &mut WebTestServer, request: Vec<u8>) -> Option<CloseCode> {
    let mut client = WebClient::connect(rig.address, request);
    rig.step_until("the connection has ended", |_| {
        client.receive(|packet| panic!("{packet:?}"));
        client.end.is_some()
    });
    client.end.flatten()
}

#[test]
fn web_clients_walk_and_mirror_the_server() {
    for shards in [0, 2] {
        let mut rig = WebTestServer::new(shards, |_| ());
        let mut clients: Vec<(WebClient, BotClient)> = (1..=12)
            .map(|player| {
                let token = token(player, rig.address);
                let client = WebClient::connect(rig.address, request(&token));
                (client, BotClient::new(player, 1))
            })
            .collect();
        rig.walk_and_stop(&mut clients);
        let stats = rig.stats();
        if shards == 0 {
            rig.await_connection_stats(&mut clients);
        }
        assert_eq!(
            (stats.clients, stats.clients_accepted, stats.lost),
            (12, 12, 0)
        );
        assert!(
            stats.bytes_in > 0 && stats.packets_out > 12 * 30,
            "{stats:?}"
        );
        // One client leaves; the server closes the others, which receive the reason.
        clients[0].0.socket.close(None).unwrap();
        rig.step_until("one client has left", |rig| rig.stats().left == 1);
        rig.server.world_mut().resource_mut::<Sessions>().drain();
        rig.step_until("the clients get the end of their sessions", |rig| {
            for (client, bot) in &mut clients[1..] {
                client.receive(|packet| bot.receive(packet));
            }
            rig.stats().clients == 0
        });
        for (client, bot) in &clients[1..] {
            assert_eq!(client.end, Some(Some(CloseCode::Normal)));
            assert_eq!(bot.closed(), Some(CloseReason::Stopping.number()));
        }
        let stats = stop_listening_web(rig.server.world_mut()).unwrap();
        assert_eq!(
            (stats.closed, stats.slow_consumers, stats.broken),
            (11, 0, 0)
        );
    }
}

#[test]
fn lost_web_connection_is_resumed_with_the_same_token() {
    let mut rig = WebTestServer::new(0, |_| ());
    let address = rig.address;
    let request = request(&token(1, address));
    let first = WebClient::connect(address, request.clone());
    let mut listener = TestPlayer::log_in(&mut rig, first);
    // While the connection is open, the token admits no other connection.
    assert_eq!(
        close_code(&mut rig, request.clone()),
        Some(CloseCode::Policy)
    );
    // The connection breaks, and then is abandoned by the client with a close code; the session is resumed each time.
    for nth in 1..=2 {
        let mut before = std::mem::replace(&mut listener.client, WebClient::open(address));
        let mut given_up = None;
        if nth == 1 {
            drop(before);
        } else {
            let frame = CloseFrame {
                code: CloseCode::Library(4_014),
                reason: "".into(),
            };
            before.socket.close(Some(frame)).unwrap();
            given_up = Some(before);
        }
        rig.step_until("the connection is lost", |rig| rig.stats().lost == nth);
        drop(given_up);
        listener.client.send(&request);
        listener.resume(&mut rig);
        assert_eq!(rig.stats().clients_accepted, 1 + nth);
    }
}

/// A client that has logged in as player 1, and its connect request.
fn logged_in(rig: &mut WebTestServer) -> (TestPlayer<WebClient>, Vec<u8>) {
    let request = request(&token(1, rig.address));
    let client = WebClient::connect(rig.address, request.clone());
    (TestPlayer::log_in(rig, client), request)
}

#[test]
fn web_client_that_returns_with_its_token_cannot_log_in() {
    let mut rig = WebTestServer::new(0, |_| ());
    let (player, request) = logged_in(&mut rig);
    drop(player);
    rig.step_until("the connection is lost", |rig| rig.stats().lost == 1);
    let mut client = WebClient::connect(rig.address, request);
    let mut bot = BotClient::new(1, 1);
    rig.step_until("the client gets the reason", |_| {
        client.receive(|packet| bot.receive(packet));
        bot.update(|message| client.send(message));
        bot.closed().is_some()
    });
    assert_eq!(bot.closed(), Some(CloseReason::Refused.number()));
    // The session is unchanged.
    let sessions = rig.server.world().resource::<Sessions>();
    assert!(sessions.client_of(PlayerId(1)).is_some());
}

#[test]
fn web_token_does_not_return_late_or_after_another_end() {
    // The token is used too late.
    let mut rig = WebTestServer::new(0, |settings| settings.return_s = 0);
    let (player, late) = logged_in(&mut rig);
    drop(player);
    rig.step_until("the connection is lost", |rig| rig.stats().lost == 1);
    assert_eq!(close_code(&mut rig, late), Some(CloseCode::Policy));
    // The client left by itself before.
    let mut rig = WebTestServer::new(0, |_| ());
    let (mut player, left) = logged_in(&mut rig);
    player.client.socket.close(None).unwrap();
    rig.step_until("the client has left", |rig| rig.stats().left == 1);
    assert_eq!(close_code(&mut rig, left), Some(CloseCode::Policy));
    // The client broke the protocol.
    let mut rig = WebTestServer::new(0, |_| ());
    let (mut player, broken) = logged_in(&mut rig);
    let text = [0x81, 0x82, 0, 0, 0, 0, b'h', b'i'];
    player.client.socket.get_mut().write_all(&text).unwrap();
    rig.step_until("the connection is closed", |rig| {
        player.client.receive(|_| ());
        rig.stats().broken == 1
    });
    assert_eq!(close_code(&mut rig, broken), Some(CloseCode::Policy));
    // The client is kicked, and its connection breaks before it reads the reason.
    let mut rig = WebTestServer::new(0, |_| ());
    let (player, kicked) = logged_in(&mut rig);
    let world = rig.server.world_mut();
    let client = world.resource::<Sessions>().client_of(PlayerId(1)).unwrap();
    world
        .commands()
        .disconnect_client(client, LogoutReason::Kicked);
    world.flush();
    rig.step();
    drop(player);
    rig.step_until("the connection is gone", |rig| rig.stats().clients == 0);
    assert_eq!(close_code(&mut rig, kicked), Some(CloseCode::Policy));
}

#[test]
fn token_is_valid_once_on_its_server_and_before_expiry() {
    let mut rig = WebTestServer::new(0, |_| ());
    let address = rig.address;
    let (good, refused) = requests(address);
    for refused in refused {
        assert_eq!(close_code(&mut rig, refused), Some(CloseCode::Policy));
    }
    let _first = WebClient::connect(address, good.clone());
    rig.step_until("the client is accepted", |rig| {
        rig.stats().clients_accepted == 1
    });
    assert_eq!(close_code(&mut rig, good), Some(CloseCode::Policy));
    let stats = rig.stats();
    assert_eq!(
        (stats.denied, stats.clients_accepted, stats.clients),
        (7, 1, 1)
    );
}

#[test]
fn token_used_on_udp_is_refused_on_the_web() {
    let public: SocketAddr = "203.0.113.5:7000".parse().unwrap();
    let mut seen = None;
    let mut rig = WebTestServer::new(0, |settings| {
        settings.public_addresses = vec![public];
        seen = Some(settings.used_tokens.clone());
    });
    let settings = ListenSettings {
        used_tokens: seen.unwrap(),
        ..ListenSettings::default()
    };
    let world = rig.server.world_mut();
    let sink = Box::new(world.resource::<WebListener>().sink());
    let udp = listen(world, LOOPBACK, SecretKey::INSECURE, settings, Some(sink)).unwrap();
    let issue = |player| {
        let claims = TokenClaims::new(player, vec![udp, public], unix_ms() / 1_000);
        ConnectToken::issue(&claims, SecretKey::INSECURE).unwrap()
    };
    let (token, other) = (issue(7), issue(8));
    let mut client = UdpClient::connect(token.clone(), EndpointSettings::default()).unwrap();
    rig.step_until("the client is accepted", |_| {
        let _ = client.update(|_| ());
        let _ = client.receive(|_| ());
        matches!(client.connection().is_open(), Ok(true))
    });
    assert_eq!(
        close_code(&mut rig, request(&token)),
        Some(CloseCode::Policy)
    );
    // One outbox serves clients of both transports.
    let mut client = WebClient::connect(rig.address, request(&other));
    client.send(&ClientMessage::login(8).to_bytes());
    rig.step_until("the client gets the notice", |_| {
        let mut packets = 0;
        client.receive(|_| packets += 1);
        packets > 0
    });
}

#[test]
fn invalid_data_ends_only_its_own_connection() {
    let mut rig = WebTestServer::new(0, |settings| settings.web.linger_us = 1_000_000);
    let address = rig.address;
    let enter = |player| WebClient::connect(address, request(&token(player, address)));
    let mut other_client = enter(1);
    other_client.send(&ClientMessage::login(1).to_bytes());
    rig.step_until("the client is accepted", |rig| {
        rig.stats().clients_accepted == 1
    });
    // The header of a masked frame of one gigabyte: the server closes the connection without waiting for the rest.
    let long = [0x82, 0xff, 0, 0, 0, 0, 0x40, 0, 0, 0, 1, 2, 3, 4];
    let unmasked = [0x82, 0x03, 7, 7, 7];
    let text = [0x81, 0x82, 0, 0, 0, 0, b'h', b'i'];
    let reserved = [0xf3, 0x80, 0, 0, 0, 0];
    for (nth, junk) in [&long[..], &unmasked, &text, &reserved].iter().enumerate() {
        let mut client = enter(10 + nth as u64);
        rig.step_until("the client is accepted", |rig| {
            rig.stats().clients_accepted == 2 + nth as u64
        });
        client.socket.get_mut().write_all(junk).unwrap();
        rig.step_until("the connection has ended", |rig| {
            client.receive(|_| ());
            rig.stats().broken == 1 + nth as u64
        });
        rig.step_until("the client gets the reason", |_| {
            client.receive(|_| ());
            client.end.is_some()
        });
    }
    // The session refuses malformed messages, and the server malformed requests.
    other_client.send(&[200, 1, 2, 3]);
    for (request, status) in [
        ("GET /play HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (
            "POST /play HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
            405,
        ),
        ("GET /etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        ("\u{1}\u{2}\u{3}\r\n\r\n", 400),
    ] {
        assert_eq!(http_get(address, request).0, status, "{request:?}");
    }
    rig.step_until("the other client gets its messages", |_| {
        let mut packets = 0;
        other_client.receive(|_| packets += 1);
        packets > 0
    });
    rig.step_until("all refusals are counted", |rig| rig.stats().refused == 4);
    assert_eq!((rig.stats().clients, rig.stats().lost), (1, 0));
}

/// Sends the first half of an HTTP request head.
fn open_with_partial_request(server: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    // A refused connection may be closed before this.
    let _ = stream.write_all(b"GET /play HTTP/1.1\r\nHo");
    stream
}

#[test]
fn clients_behind_a_trusted_proxy_have_their_own_addresses() {
    let mut rig = WebTestServer::new(0, |settings| {
        settings.web.unauthenticated_per_address_max = 1;
        settings.web.port.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    });
    let address = rig.address;
    let open = |client: &str| WebClient::try_open_as(address, Some(client));
    let mut first = open("198.51.100.1").expect("the first connection is accepted");
    assert!(
        open("203.0.113.9, 198.51.100.1").is_none(),
        "the same client address is over its limit"
    );
    assert!(open("203.0.113.9").is_some(), "another");
    first.send(&request(&token(1, address)));
    rig.step_until("the client is accepted", |rig| {
        rig.stats().clients_accepted == 1
    });
    let addresses = |rig: &WebTestServer| -> Vec<_> {
        let sessions = rig.server.world().resource::<Sessions>();
        let addresses = sessions.iter().filter_map(|(_, session)| session.address);
        addresses.map(|address| address.ip().to_string()).collect()
    };
    rig.step_until("the session has the client's address", |rig| {
        addresses(rig) == ["198.51.100.1"]
    });
    // The header of a proxy that is not trusted is ignored.
    let rig = WebTestServer::new(0, |settings| {
        settings.web.unauthenticated_per_address_max = 1
    });
    let open = |client: &str| WebClient::try_open_as(rig.address, Some(client));
    let _first = open("198.51.100.1").expect("the first connection is accepted");
    assert!(
        open("203.0.113.9").is_none(),
        "both connections count for the peer's address"
    );
}

#[test]
fn silent_connection_times_out() {
    let mut rig = WebTestServer::new(0, |settings| settings.web.handshake_timeout_us = 1_000_000);
    let address = rig.address;
    let mut silent = None;
    for _ in 0..100 {
        silent = silent.or_else(|| WebClient::try_open(address));
    }
    let mut silent = silent.expect("one of a hundred connects before its timeout");
    let strangers = [(); 3].map(|()| open_with_partial_request(address));
    rig.step_until("all connections have timed out", |rig| {
        silent.receive(|_| ());
        rig.stats().timed_out >= 4 && silent.end.is_some()
    });
    for mut stream in strangers {
        let mut rest = Vec::new();
        let end = stream.read_to_end(&mut rest);
        let is_reset = |error: std::io::Error| error.kind() == ErrorKind::ConnectionReset;
        assert!(end.is_ok() || end.is_err_and(is_reset));
    }
}

#[test]
fn unauthenticated_connections_are_limited_and_release_slots() {
    let mut rig = WebTestServer::new(0, |settings| {
        settings.web.unauthenticated_max = 15;
    });
    let address = rig.address;
    let strangers = [(); 30].map(|()| open_with_partial_request(address));
    rig.step_until("half of them are refused", |rig| {
        (rig.stats().accepted, rig.stats().refused_unauthenticated) == (15, 15)
    });
    drop(strangers);
    let mut client = None;
    rig.step_until("a slot is free again", |_| {
        client = client.take().or_else(|| WebClient::try_open(address));
        client.is_some()
    });
    client.unwrap().send(&request(&token(1, address)));
    rig.step_until("the client is accepted", |rig| {
        rig.stats().clients_accepted == 1
    });
    // The limit per address is reached while other addresses would still be accepted.
    let mut rig = WebTestServer::new(0, |settings| {
        settings.web.unauthenticated_per_address_max = 4
    });
    let _strangers = [(); 9].map(|()| open_with_partial_request(rig.address));
    rig.step_until("more than half are refused", |rig| {
        (rig.stats().accepted, rig.stats().refused_unauthenticated) == (4, 5)
    });
}

#[test]
fn clients_over_the_limit_are_refused() {
    let mut rig = WebTestServer::new(0, |settings| {
        settings.web.clients_max = 40;
        settings.requests_per_s = 1_000;
    });
    let mut clients: Vec<WebClient> = (1..=60)
        .map(|player| {
            let mut client = WebClient::connect(rig.address, request(&token(player, rig.address)));
            client.send(&ClientMessage::login(player).to_bytes());
            client
        })
        .collect();
    rig.step_until("all clients are accepted or refused", |rig| {
        clients.iter_mut().for_each(|client| client.receive(|_| ()));
        rig.stats().clients_accepted + rig.stats().full == 60
    });
    rig.step_until("the refused clients get the reason", |_| {
        clients.iter_mut().for_each(|client| client.receive(|_| ()));
        let again = Some(Some(CloseCode::Again));
        clients.iter().filter(|client| client.end == again).count() == 20
    });
    assert_eq!(rig.stats().clients, 40);
    drop(clients);
    rig.step_until("all clients are gone", |rig| rig.stats().clients == 0);
}

#[test]
fn client_that_never_reads_is_dropped_without_blocking() {
    let mut rig = WebTestServer::new(0, |settings| settings.web.read_timeout_us = 1_500_000);
    let token = request(&token(1, rig.address));
    let mut client = WebClient::connect(rig.address, token);
    client.send(&ClientMessage::login(1).to_bytes());
    rig.step_until("the client is accepted", |rig| {
        rig.stats().clients_accepted == 1
    });
    rig.step_until("the connection is lost", |rig| rig.stats().lost == 1);
    assert_eq!(rig.stats().clients, 0);
    // Messages of a lost session wait in the session, not at the socket.
    let sessions = rig.server.world().resource::<Sessions>();
    assert_eq!(sessions.len(), 1);
}

#[test]
fn fragmented_message_is_joined_and_ping_gets_a_pong() {
    let mut rig = WebTestServer::new(0, |_| ());
    let mut client = WebClient::connect(rig.address, request(&token(1, rig.address)));
    rig.step_until("the client is accepted", |rig| {
        rig.stats().clients_accepted == 1
    });
    let WebClient { socket, .. } = client;
    // A login in two hand-made frames, with a ping between them.
    let stream = socket.into_inner();
    let mut socket = &stream;
    socket.write_all(&[0x02, 0x81, 0, 0, 0, 0, 1]).unwrap();
    socket.write_all(&[0x89, 0x80, 0, 0, 0, 0]).unwrap();
    socket.write_all(&[0x80, 0x81, 0, 0, 0, 0, 1]).unwrap();
    let config = Some(WebSocketConfig::default());
    let socket = WebSocket::from_raw_socket(stream, Role::Client, config);
    client = WebClient { socket, end: None };
    let mut mirror = Mirror::default();
    rig.step_until("the login is handled", |rig| {
        client.receive(|packet| mirror.receive(packet).unwrap());
        let sessions = rig.server.world().resource::<Sessions>();
        sessions.client_of(PlayerId(1)).is_some()
    });
    assert_eq!(rig.stats().messages_in, 1);
}

/// The status and the body of an HTTP response.
pub fn http_get(address: SocketAddr, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.split(' ').nth(1).unwrap_or_default();
    (status.parse().unwrap_or(0), body.to_owned())
}

#[test]
fn local_page_logs_in_with_the_public_test_key() {
    let mut rig = WebTestServer::new(0, |settings| {
        settings.web.serve_demo_page = true;
        settings.web.guest_speed_m_s = Some(SPEED_M_S);
    });
    let address = rig.address;
    let get = |path: &str| http_get(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
    for path in ["/", "/page.css", "/demo/page.js", "/src/index.js"] {
        assert_eq!(get(path).0, 200, "{path}");
    }
    assert_eq!(get("/src/other.js").0, 404);
    // The names of kinds and attributes are served once the server has set them.
    assert_eq!(get("/names").0, 404);
    let names = r#"{"kinds":["player"],"attributes":[]}"#;
    let web = rig.server.world().resource::<WebListener>();
    web.set_names(names.to_owned());
    assert_eq!(get("/names"), (200, names.to_owned()));
    let post = |address: SocketAddr, path: &str, fields: &str| {
        let head = format!("POST {path} HTTP/1.1\r\nContent-Length: 0\r\n{fields}\r\n");
        http_get(address, &head)
    };
    let host = format!("Host: {address}\r\n");
    let (status, body) = post(
        address,
        "/token",
        &format!("{host}Origin: http://{address}\r\n"),
    );
    assert_eq!(status, 200, "{body}");
    let reply: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(reply["speed_m_s"], f64::from(SPEED_M_S));
    let player: u64 = reply["player"].as_str().unwrap().parse().unwrap();
    let digits = reply["token"].as_str().unwrap();
    let bytes = (0..digits.len()).step_by(2);
    let bytes: Result<Vec<u8>, _> = bytes
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16))
        .collect();
    let token = ConnectToken::from_bytes(&bytes.unwrap()).unwrap();
    let client = WebClient::connect(address, request(&token));
    rig.step_until("the client is accepted", |rig| {
        rig.stats().clients_accepted == 1
    });
    drop(client);
    // Another token for the same guest; none for a player of the game, and none for requests with another host.
    let again = format!("/token?player={player}");
    assert_eq!(post(address, &again, &host).0, 200);
    for (path, fields) in [
        ("/token?player=7", &*host),
        ("/token?player=x", &host),
        ("/token", "Host: rebound.example\r\n"),
        ("/token", &format!("{host}Origin: https://example.org\r\n")),
    ] {
        assert_eq!(post(address, path, fields).0, 403, "{path} {fields}");
    }
    let settings = ListenSettings {
        web: WebSettings {
            guest_speed_m_s: Some(SPEED_M_S),
            ..WebSettings::default()
        },
        ..ListenSettings::default()
    };
    let key = SecretKey::random().unwrap();
    let world = rig.server.world_mut();
    let closed = listen_web(world, LOOPBACK, key, &settings, None).unwrap();
    assert_eq!(
        post(closed, "/token", &format!("Host: {closed}\r\n")).0,
        403
    );
    let head = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_eq!(http_get(closed, head).0, 404, "the page is off");
}
