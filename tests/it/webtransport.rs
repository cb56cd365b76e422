//! Promise: clients over WebTransport are admitted by their token, lose datagrams, walk, and converge with the server; junk data, silent
//! clients, missing acknowledgements and too many clients neither delay a tick nor are admitted.

use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use throng::net::bot_client::BotClient;
use throng::net::{
    EndpointSettings, ListenSettings, PacketStamp, ReliableEndpoint, StreamId, WebListener,
    WebTransportSettings, stop_listening_web,
};
use throng::prelude::*;

use throng::wire::{ClientMessage, CloseReason};
use tokio::runtime::Runtime;
use tokio::time::timeout;
use wtransport::endpoint::endpoint_side::Client;
use wtransport::tls::Sha256Digest;
use wtransport::{ClientConfig, Connection, RecvStream, SendStream};

use crate::browsers::http_get;
use crate::sockets::token;
use crate::web_test_server::{
    LOOPBACK, TIMEOUT, TestPlayer, WebEnd, WebTestServer, request, requests,
};

/// How long to poll for something that may not arrive.
const POLL_TIMEOUT: Duration = Duration::from_millis(1);

/// The client side of WebTransport, for any number of clients.
struct Browser {
    runtime: Runtime,
    endpoint: wtransport::Endpoint<Client>,
}

impl Browser {
    /// A browser that trusts the server's certificate by its hash.
    fn new(sha256: [u8; 32]) -> Rc<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        let config = ClientConfig::builder()
            .with_bind_address(LOOPBACK)
            .with_server_certificate_hashes([Sha256Digest::new(sha256)])
            .keep_alive_interval(Some(Duration::from_secs(3)))
            .build();
        let endpoint = runtime.block_on(async { wtransport::Endpoint::client(config).unwrap() });
        Rc::new(Self { runtime, endpoint })
    }

    fn of(rig: &WebTestServer) -> Rc<Self> {
        Self::new(certificate(rig))
    }

    /// Opens a session; `None` if the server refuses it.
    fn try_open(&self, server: SocketAddr, path: &str) -> Option<Connection> {
        let opened = self.endpoint.connect(format!("https://{server}{path}"));
        self.wait(opened).ok()
    }

    /// Waits for a future that depends on another thread.
    fn wait<T>(&self, something: impl Future<Output = T>) -> T {
        let waited = async { timeout(TIMEOUT, something).await };
        self.runtime.block_on(waited).expect("no timeout")
    }

    /// Polls a future for a short time.
    fn poll<T>(&self, something: impl Future<Output = T>) -> Option<T> {
        let polled = async { timeout(POLL_TIMEOUT, something).await };
        self.runtime.block_on(polled).ok()
    }
}

impl Drop for Browser {
    /// Closes all connections, so that the server does not wait for them when it stops.
    fn drop(&mut self) {
        self.endpoint.close(0u8.into(), b"");
        let closed = async { timeout(Duration::from_secs(1), self.endpoint.wait_idle()).await };
        let _ = self.runtime.block_on(closed);
    }
}

fn certificate(rig: &WebTestServer) -> [u8; 32] {
    let web = rig.server.world().resource::<WebListener>();
    web.certificate_sha256()
        .expect("the server has WebTransport")
}

/// A client with a WebTransport session.
struct SessionClient {
    browser: Rc<Browser>,
    connection: Connection,
    /// The stream that carries the token.
    stream: (SendStream, RecvStream),
    endpoint: ReliableEndpoint,
    started: Instant,
    packet: Vec<u8>,
    /// Number of datagrams in both directions; every `one_lost_of`th of them is lost, none if it is 0.
    passed: u64,
    one_lost_of: u64,
}

impl SessionClient {
    /// Connects, and sends a connect request with a token.
    fn connect(browser: &Rc<Browser>, server: SocketAddr, request: &[u8]) -> Self {
        Self::try_connect(browser, server, request).expect("a session")
    }

    /// The same; `None` if the server refuses the connection.
    fn try_connect(browser: &Rc<Browser>, server: SocketAddr, request: &[u8]) -> Option<Self> {
        let connection = browser.try_open(server, "/play")?;
        let mut stream = browser.wait(async {
            let opening = connection.open_bi().await.ok()?;
            opening.await.ok()
        })?;
        // A refused client gets an error, possibly before it has sent everything.
        browser.wait(async {
            let _ = stream.0.write_all(request).await;
            let _ = stream.0.finish().await;
        });
        Some(Self {
            browser: browser.clone(),
            connection,
            stream,
            endpoint: ReliableEndpoint::new(EndpointSettings::default().for_client()),
            started: Instant::now(),
            packet: Vec::new(),
            passed: 0,
            one_lost_of: 0,
        })
    }

    fn now_us(&self) -> u64 {
        self.started.elapsed().as_micros() as u64
    }

    fn is_lost(&mut self) -> bool {
        self.passed += 1;
        self.one_lost_of > 0 && self.passed.is_multiple_of(self.one_lost_of)
    }

    fn send(&mut self, message: &[u8]) {
        self.endpoint.push(StreamId::World, message).unwrap();
    }

    /// Receives pending packets, and sends what is due.
    fn exchange(&mut self, mut take: impl FnMut(&[u8])) {
        while let Some(Ok(datagram)) = self
            .browser
            .clone()
            .poll(self.connection.receive_datagram())
        {
            let now_us = self.now_us();
            if !self.is_lost() {
                let taken = self
                    .endpoint
                    .receive(now_us, &datagram, |it| take(it.bytes));
                taken.unwrap();
            }
        }
        let (now_us, mut packets) = (self.now_us(), Vec::new());
        let stamp = PacketStamp::default();
        self.endpoint
            .flush(now_us, stamp, usize::MAX, &mut self.packet, |packet| {
                packets.push(packet.to_vec());
            });
        for packet in packets {
            if !self.is_lost() {
                let _ = self.connection.send_datagram(packet);
            }
        }
        self.browser.poll(std::future::pending::<()>());
    }

    /// The close code of the server, once it has sent one.
    fn end(&mut self) -> Option<u16> {
        let mut code = [0; 2];
        let stream = &mut self.stream.1;
        let read = self.browser.poll(stream.read_exact(&mut code))?;
        read.ok().map(|()| u16::from_le_bytes(code))
    }
}

impl WebEnd for SessionClient {
    fn exchange(&mut self, take: &mut dyn FnMut(&[u8])) {
        SessionClient::exchange(self, take);
    }

    fn send(&mut self, message: &[u8]) {
        SessionClient::send(self, message);
    }
}

/// A test server with WebTransport.
fn server_with_webtransport(
    shards: u32,
    configure: impl FnOnce(&mut ListenSettings),
) -> WebTestServer {
    WebTestServer::new(shards, |settings| {
        settings.web.webtransport = Some(WebTransportSettings::default());
        settings.requests_per_s = 1_000;
        configure(settings);
    })
}

#[test]
fn clients_that_lose_datagrams_mirror_the_server() {
    for (shards, one_lost_of) in [(0, 0), (2, 9)] {
        let mut rig = server_with_webtransport(shards, |_| ());
        let browser = Browser::of(&rig);
        let mut clients: Vec<(SessionClient, BotClient)> = (1..=6)
            .map(|player| {
                let request = request(&token(player, rig.address));
                let client = SessionClient::connect(&browser, rig.address, &request);
                let client = SessionClient {
                    one_lost_of,
                    ..client
                };
                (client, BotClient::new(player, 1))
            })
            .collect();
        rig.walk_and_stop(&mut clients);
        let stats = rig.stats();
        assert_eq!((stats.clients, stats.webtransport, stats.lost), (6, 6, 0));
        rig.await_connection_stats(&mut clients);
        assert_eq!((stats.datagrams_refused, stats.throttled), (0, 0));
        // One client leaves; the server closes the others, which receive the reason.
        let (client, _) = clients.remove(0);
        client.connection.close(0u8.into(), b"");
        rig.step_until("one client has left", |rig| {
            browser.poll(std::future::pending::<()>());
            rig.stats().left == 1
        });
        rig.server.world_mut().resource_mut::<Sessions>().drain();
        let mut codes = vec![None; clients.len()];
        rig.step_until("the clients get the end of their sessions", |_| {
            for ((client, bot), codes) in clients.iter_mut().zip(&mut codes) {
                client.exchange(|packet| bot.receive(packet));
                *codes = codes.or_else(|| client.end());
            }
            codes.iter().all(Option::is_some)
        });
        for ((client, bot), codes) in clients.iter().zip(codes) {
            assert_eq!(codes, Some(1000));
            assert_eq!(bot.closed(), Some(CloseReason::Stopping.number()));
            client.connection.close(0u8.into(), b"");
        }
        rig.step_until("all clients are gone", |rig| {
            browser.poll(std::future::pending::<()>());
            rig.stats().clients == 0
        });
        let stats = stop_listening_web(rig.server.world_mut()).unwrap();
        assert_eq!(
            (stats.closed, stats.slow_consumers, stats.broken),
            (5, 0, 0)
        );
    }
}

#[test]
fn session_resumes_over_another_connection() {
    let mut rig = server_with_webtransport(0, |_| ());
    let (address, browser) = (rig.address, Browser::of(&rig));
    let connect = || SessionClient::connect(&browser, address, &request(&token(1, address)));
    let mut listener = TestPlayer::log_in(&mut rig, connect());
    listener.client = connect();
    rig.step_until("the second client is accepted", |rig| {
        rig.stats().clients_accepted == 2
    });
    listener.resume(&mut rig);
}

#[test]
fn session_that_the_client_gave_up_resumes_with_its_token() {
    let mut rig = server_with_webtransport(0, |_| ());
    let (address, browser) = (rig.address, Browser::of(&rig));
    let request = request(&token(1, address));
    let first = SessionClient::connect(&browser, address, &request);
    let mut listener = TestPlayer::log_in(&mut rig, first);
    listener.client.connection.close(4_014u16.into(), b"");
    rig.step_until("the connection is lost", |rig| {
        browser.poll(std::future::pending::<()>());
        rig.stats().lost == 1
    });
    listener.client = SessionClient::connect(&browser, address, &request);
    listener.resume(&mut rig);
}

#[test]
fn token_is_valid_once_on_its_server_and_before_expiry() {
    let mut rig = server_with_webtransport(0, |_| ());
    let (address, browser) = (rig.address, Browser::of(&rig));
    let (good, mut refused) = requests(address);
    let _first = SessionClient::connect(&browser, address, &good);
    rig.step_until("the client is accepted", |rig| {
        rig.stats().clients_accepted == 1
    });
    let long = [&good[..], &[0; 100_000]].concat();
    refused.extend([good, long]);
    for refused in refused {
        let mut client = SessionClient::connect(&browser, address, &refused);
        let mut end = None;
        rig.step_until("the client gets the refusal", |_| {
            end = client.end();
            end.is_some()
        });
        assert_eq!(end, Some(1008));
    }
    let stats = rig.stats();
    assert_eq!(
        (stats.denied, stats.clients_accepted, stats.clients),
        (8, 1, 1)
    );
}

#[test]
fn silent_connection_times_out() {
    let mut rig =
        server_with_webtransport(0, |settings| settings.web.handshake_timeout_us = 1_000_000);
    let (address, browser) = (rig.address, Browser::of(&rig));
    // An empty stream, half a token, no stream, and another path. Each of them may have timed out already.
    let empty = SessionClient::try_connect(&browser, address, &[]);
    let silent: Vec<Connection> = (0..3)
        .filter_map(|_| browser.try_open(address, "/play"))
        .collect();
    let streams: Vec<(SendStream, RecvStream)> = silent
        .iter()
        .take(2)
        .filter_map(|connection| {
            browser.wait(async {
                let (mut sink, stream) = connection.open_bi().await.ok()?.await.ok()?;
                let _ = sink.write_all(&[0; 500]).await;
                Some((sink, stream))
            })
        })
        .collect();
    assert!(browser.try_open(address, "/elsewhere").is_none());
    rig.step_until("all connections are refused or have timed out", |rig| {
        browser.poll(std::future::pending::<()>());
        let stats = rig.stats();
        let ended = stats.timed_out + stats.refused + stats.denied;
        ended == stats.accepted && stats.accepted >= 5 && stats.timed_out >= 3
    });
    for connection in silent {
        browser.wait(connection.closed());
    }
    drop((empty, streams));
    assert_eq!(rig.stats().clients_accepted, 0);
}

#[test]
fn junk_is_dropped_and_a_bad_stream_ends_its_own_connection() {
    let mut rig = server_with_webtransport(0, |_| ());
    let (address, browser) = (rig.address, Browser::of(&rig));
    let enter =
        |player| SessionClient::connect(&browser, address, &request(&token(player, address)));
    let (mut first, mut second) = (enter(1), enter(2));
    rig.step_until("both clients are accepted", |rig| {
        rig.stats().clients_accepted == 2
    });
    rig.step_until("the datagrams are refused", |rig| {
        for junk in [
            &[][..],
            &[0xff; 8],
            &[3; 20],
            &[0; 7],
            &[0x40; 1_000],
            b"hello there",
        ] {
            let _ = second.connection.send_datagram(junk);
        }
        browser.poll(std::future::pending::<()>());
        rig.stats().datagrams_refused >= 6
    });
    first.send(&ClientMessage::login(1).to_bytes());
    second.send(&ClientMessage::login(2).to_bytes());
    let mut counts = [0; 2];
    rig.step_until("both clients get the message", |_| {
        first.exchange(|_| counts[0] += 1);
        second.exchange(|_| counts[1] += 1);
        counts.iter().all(|counts| *counts > 0)
    });
    // A fragment of stream 0 that begins with the length of a message of one gigabyte.
    let mut third = enter(3);
    let packet = [
        1, 0, 0, 0, 0, 0, 0xff, 0xff, 5, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 3,
    ];
    let mut end = None;
    rig.step_until("the connection has ended", |_| {
        let _ = third.connection.send_datagram(packet);
        end = third.end();
        end.is_some()
    });
    third.connection.close(0u8.into(), b"");
    assert_eq!((end, rig.stats().lost), (Some(1008), 0));
    // Datagrams over the rate limit are dropped unread.
    rig.step_until("datagrams over the limit are dropped", |rig| {
        for _ in 0..50 {
            let _ = second.connection.send_datagram([9; 1_000]);
        }
        second.browser.poll(std::future::pending::<()>());
        rig.stats().throttled > 100
    });
    assert_eq!(rig.stats().clients, 2);
}

#[test]
fn client_that_never_acknowledges_is_dropped_without_blocking() {
    for (backlog_bytes_max, unread_us_max) in [(10, 300_000_000), (1 << 20, 1_500_000)] {
        let mut rig = server_with_webtransport(0, |settings| {
            let endpoint = EndpointSettings {
                backlog_bytes_max,
                ..WebTransportSettings::default().endpoint
            };
            settings.web.read_timeout_us = unread_us_max;
            settings.web.linger_us = 100_000;
            settings.web.webtransport = Some(WebTransportSettings {
                endpoint,
                ..WebTransportSettings::default()
            });
        });
        let (address, browser) = (rig.address, Browser::of(&rig));
        let mut client = SessionClient::connect(&browser, address, &request(&token(1, address)));
        client.send(&ClientMessage::login(1).to_bytes());
        client.send(&ClientMessage::Ready { scene: 0 }.to_bytes());
        client.exchange(|_| ());
        let mut number = 100_u16;
        rig.step_until("the client is dropped", |rig| {
            // Silence, QUIC's own acknowledgements, and packets that acknowledge nothing do not count as acknowledgements.
            let [low, high] = number.to_le_bytes();
            let packet = [0, 0, low, high, 0, 0, 0xff, 0xff];
            let _ = client.connection.send_datagram(packet);
            number = number.wrapping_add(1);
            browser.poll(std::future::pending::<()>());
            rig.stats().slow_consumers + rig.stats().lost == 1
        });
        let stats = rig.stats();
        assert_eq!(
            (stats.slow_consumers == 1, stats.clients),
            (backlog_bytes_max == 10, 0)
        );
        browser.wait(client.connection.closed());
    }
}

#[test]
fn unauthenticated_sessions_are_limited_and_release_slots() {
    let mut rig = server_with_webtransport(0, |settings| settings.web.unauthenticated_max = 5);
    let (address, browser) = (rig.address, Browser::of(&rig));
    let strangers: Vec<Option<Connection>> = (0..12)
        .map(|_| browser.try_open(address, "/play"))
        .collect();
    assert_eq!(strangers.iter().flatten().count(), 5);
    // A client repeats its request if the reply is late.
    assert_eq!(rig.stats().accepted, 5);
    assert!(rig.stats().refused_unauthenticated >= 7);
    for connection in strangers.iter().flatten() {
        connection.close(0u8.into(), b"");
    }
    let mut connection = None;
    rig.step_until("a slot is free again", |_| {
        connection = connection
            .take()
            .or_else(|| browser.try_open(address, "/play"));
        connection.is_some()
    });
    // The server ignores requests of an address above its rate limit.
    let rig = WebTestServer::new(0, |settings| {
        settings.web.webtransport = Some(WebTransportSettings::default());
        settings.requests_per_s = 0;
    });
    let browser = Browser::of(&rig);
    for nth in 1..=3 {
        assert!(browser.try_open(rig.address, "/play").is_none());
        assert_eq!(rig.stats().accepted, 0);
        assert!(rig.stats().refused_unauthenticated >= nth);
    }
}

#[test]
fn new_certificate_is_published_and_keeps_connections() {
    let mut rig = server_with_webtransport(0, |settings| {
        settings.web.webtransport = Some(WebTransportSettings {
            renewal_us: 1_500_000,
            ..WebTransportSettings::default()
        });
    });
    let address = rig.address;
    let published_hash = || {
        let (status, body) = http_get(address, "GET /webtransport HTTP/1.1\r\nHost: x\r\n\r\n");
        let reply: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, reply["path"].as_str()), (200, Some("/play")));
        reply["sha256"].as_str().unwrap().to_owned()
    };
    let mut before = None;
    let mut client = None;
    // The certificate may have changed by the time that its hash is used.
    rig.step_until("a client connects before the certificate changes", |rig| {
        before = Some(published_hash());
        let browser = Browser::of(rig);
        client = SessionClient::try_connect(&browser, address, &request(&token(1, address)));
        client.is_some()
    });
    let mut client = client.unwrap();
    client.send(&ClientMessage::login(1).to_bytes());
    // Ticks run faster than real time, and a session without messages times out after a number of ticks.
    let talk = |client: &mut SessionClient, received: &mut u32| {
        client.send(&ClientMessage::Ping { number: 1 }.to_bytes());
        client.exchange(|_| *received += 1);
    };
    let mut received = 0;
    rig.step_until("the certificate has changed", |_| {
        talk(&mut client, &mut received);
        Some(published_hash()) != before
    });
    let before = received;
    rig.step_until("the first connection continues", |_| {
        talk(&mut client, &mut received);
        received > before + 50
    });
    assert!(Browser::new([7; 32]).try_open(address, "/play").is_none());
    // Without WebTransport there is no certificate.
    let rig = WebTestServer::new(0, |_| ());
    let (status, body) = http_get(rig.address, "GET /webtransport HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!((status, body.as_str()), (204, ""));
}
