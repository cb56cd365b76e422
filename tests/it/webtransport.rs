//! Promise: clients over WebTransport are admitted by their token, lose datagrams, walk, and converge with the server; junk,
//! silence, missing acknowledgements and crowds neither delay a tick nor get in.

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

/// How long one that may have nothing to say is listened to.
const POLL_TIMEOUT: Duration = Duration::from_millis(1);

/// The other end of WebTransport, for any number of clients.
struct Browser {
    runtime: Runtime,
    endpoint: wtransport::Endpoint<Client>,
}

impl Browser {
    /// One that knows a server by its certificate.
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

    fn of(hall: &WebTestServer) -> Rc<Self> {
        Self::new(certificate(hall))
    }

    /// A session, unless the server wants none.
    fn try_open(&self, server: SocketAddr, path: &str) -> Option<Connection> {
        let opened = self.endpoint.connect(format!("https://{server}{path}"));
        self.wait(opened).ok()
    }

    /// Waits for something that another thread does.
    fn wait<T>(&self, something: impl Future<Output = T>) -> T {
        let waited = async { timeout(TIMEOUT, something).await };
        self.runtime.block_on(waited).expect("it is there in time")
    }

    /// The same, but no longer than for a moment.
    fn poll<T>(&self, something: impl Future<Output = T>) -> Option<T> {
        let looked = async { timeout(POLL_TIMEOUT, something).await };
        self.runtime.block_on(looked).ok()
    }
}

fn certificate(hall: &WebTestServer) -> [u8; 32] {
    let web = hall.server.world().resource::<WebListener>();
    web.certificate_sha256().expect("it has WebTransport")
}

/// A client with a session.
struct SessionClient {
    browser: Rc<Browser>,
    connection: Connection,
    /// The stream of the token.
    stream: (SendStream, RecvStream),
    endpoint: ReliableEndpoint,
    started: Instant,
    packet: Vec<u8>,
    /// Datagrams in both directions, and of how many one gets lost; none where it is 0.
    passed: u64,
    one_lost_of: u64,
}

impl SessionClient {
    /// Connects and shows what may be a token.
    fn connect(browser: &Rc<Browser>, server: SocketAddr, request: &[u8]) -> Self {
        Self::try_connect(browser, server, request).expect("a session")
    }

    /// The same, unless the server wants none.
    fn try_connect(browser: &Rc<Browser>, server: SocketAddr, request: &[u8]) -> Option<Self> {
        let connection = browser.try_open(server, "/play")?;
        let mut stream = browser.wait(async {
            let opening = connection.open_bi().await.ok()?;
            opening.await.ok()
        })?;
        // A refused client gets an error, perhaps before it has sent everything.
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

    /// Takes what is there, and sends what is due.
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

    /// What the server said of its end, once it did.
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

/// A hall with WebTransport.
fn hall(shards: u32, configure: impl FnOnce(&mut ListenSettings)) -> WebTestServer {
    WebTestServer::new(shards, |settings| {
        settings.web.webtransport = Some(WebTransportSettings::default());
        settings.requests_per_s = 1_000;
        configure(settings);
    })
}

#[test]
fn clients_that_lose_datagrams_mirror_the_server() {
    for (shards, one_lost_of) in [(0, 0), (2, 9)] {
        let mut hall = hall(shards, |_| ());
        let browser = Browser::of(&hall);
        let mut clients: Vec<(SessionClient, BotClient)> = (1..=6)
            .map(|player| {
                let request = request(&token(player, hall.address));
                let client = SessionClient::connect(&browser, hall.address, &request);
                let client = SessionClient {
                    one_lost_of,
                    ..client
                };
                (client, BotClient::new(player, 1))
            })
            .collect();
        hall.walk_and_stop(&mut clients);
        let stats = hall.stats();
        assert_eq!((stats.clients, stats.webtransport, stats.lost), (6, 6, 0));
        hall.await_connection_stats(&mut clients);
        assert_eq!((stats.datagrams_refused, stats.throttled), (0, 0));
        // One leaves; the server closes the others, which receive the reason.
        let (client, _) = clients.remove(0);
        client.connection.close(0u8.into(), b"");
        hall.step_until("one left", |hall| {
            browser.poll(std::future::pending::<()>());
            hall.stats().left == 1
        });
        hall.server.world_mut().resource_mut::<Sessions>().drain();
        let mut told = vec![None; clients.len()];
        hall.step_until("the clients get the end of their sessions", |_| {
            for ((client, rambler), told) in clients.iter_mut().zip(&mut told) {
                client.exchange(|packet| rambler.receive(packet));
                *told = told.or_else(|| client.end());
            }
            told.iter().all(Option::is_some)
        });
        for ((client, rambler), told) in clients.iter().zip(told) {
            assert_eq!(told, Some(1000));
            assert_eq!(rambler.closed(), Some(CloseReason::Stopping.number()));
            client.connection.close(0u8.into(), b"");
        }
        hall.step_until("all are gone", |hall| {
            browser.poll(std::future::pending::<()>());
            hall.stats().clients == 0
        });
        let stats = stop_listening_web(hall.server.world_mut()).unwrap();
        assert_eq!(
            (stats.closed, stats.slow_consumers, stats.broken),
            (5, 0, 0)
        );
    }
}

#[test]
fn session_resumes_over_another_connection() {
    let mut hall = hall(0, |_| ());
    let (address, browser) = (hall.address, Browser::of(&hall));
    let connect = || SessionClient::connect(&browser, address, &request(&token(1, address)));
    let mut listener = TestPlayer::log_in(&mut hall, connect());
    listener.client = connect();
    hall.step_until("the other is let in", |hall| {
        hall.stats().clients_accepted == 2
    });
    listener.resume(&mut hall);
}

#[test]
fn session_that_the_client_gave_up_resumes_with_its_token() {
    let mut hall = hall(0, |_| ());
    let (address, browser) = (hall.address, Browser::of(&hall));
    let request = request(&token(1, address));
    let first = SessionClient::connect(&browser, address, &request);
    let mut listener = TestPlayer::log_in(&mut hall, first);
    listener.client.connection.close(4_014u16.into(), b"");
    hall.step_until("it is lost", |hall| {
        browser.poll(std::future::pending::<()>());
        hall.stats().lost == 1
    });
    listener.client = SessionClient::connect(&browser, address, &request);
    listener.resume(&mut hall);
}

#[test]
fn token_is_valid_once_on_its_server_and_before_expiry() {
    let mut hall = hall(0, |_| ());
    let (address, browser) = (hall.address, Browser::of(&hall));
    let (good, mut refused) = requests(address);
    let _first = SessionClient::connect(&browser, address, &good);
    hall.step_until("it is let in", |hall| hall.stats().clients_accepted == 1);
    let long = [&good[..], &[0; 100_000]].concat();
    refused.extend([good, long]);
    for refused in refused {
        let mut client = SessionClient::connect(&browser, address, &refused);
        let mut end = None;
        hall.step_until("the client gets the refusal", |_| {
            end = client.end();
            end.is_some()
        });
        assert_eq!(end, Some(1008));
    }
    let stats = hall.stats();
    assert_eq!(
        (stats.denied, stats.clients_accepted, stats.clients),
        (8, 1, 1)
    );
}

#[test]
fn silent_connection_times_out() {
    let mut hall = hall(0, |settings| settings.web.handshake_timeout_us = 1_000_000);
    let (address, browser) = (hall.address, Browser::of(&hall));
    // A stream without anything; half a token; no stream; another page. Each may be late already.
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
    hall.step_until("they are late", |hall| {
        browser.poll(std::future::pending::<()>());
        let stats = hall.stats();
        let gone = stats.timed_out + stats.refused + stats.denied;
        gone == stats.accepted && stats.accepted >= 5 && stats.timed_out >= 3
    });
    for connection in silent {
        browser.wait(connection.closed());
    }
    drop((empty, streams));
    assert_eq!(hall.stats().clients_accepted, 0);
}

#[test]
fn junk_is_dropped_and_a_bad_stream_ends_its_own_connection() {
    let mut hall = hall(0, |_| ());
    let (address, browser) = (hall.address, Browser::of(&hall));
    let enter =
        |player| SessionClient::connect(&browser, address, &request(&token(player, address)));
    let (mut polite, mut rude) = (enter(1), enter(2));
    hall.step_until("they are let in", |hall| hall.stats().clients_accepted == 2);
    hall.step_until("it is refused", |hall| {
        for junk in [
            &[][..],
            &[0xff; 8],
            &[3; 20],
            &[0; 7],
            &[0x40; 1_000],
            b"hello there",
        ] {
            let _ = rude.connection.send_datagram(junk);
        }
        browser.poll(std::future::pending::<()>());
        hall.stats().datagrams_refused >= 6
    });
    polite.send(&ClientMessage::login(1).to_bytes());
    rude.send(&ClientMessage::login(2).to_bytes());
    let mut told = [0; 2];
    hall.step_until("both clients get the message", |_| {
        polite.exchange(|_| told[0] += 1);
        rude.exchange(|_| told[1] += 1);
        told.iter().all(|told| *told > 0)
    });
    // A piece of stream 0 that begins with the length of a message of a gigabyte.
    let mut strange = enter(3);
    let packet = [
        1, 0, 0, 0, 0, 0, 0xff, 0xff, 5, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 3,
    ];
    let mut end = None;
    hall.step_until("it is over", |_| {
        let _ = strange.connection.send_datagram(packet);
        end = strange.end();
        end.is_some()
    });
    strange.connection.close(0u8.into(), b"");
    assert_eq!((end, hall.stats().lost), (Some(1008), 0));
    // What is too many is dropped unread.
    hall.step_until("it is too much", |hall| {
        for _ in 0..50 {
            let _ = rude.connection.send_datagram([9; 1_000]);
        }
        rude.browser.poll(std::future::pending::<()>());
        hall.stats().throttled > 100
    });
    assert_eq!(hall.stats().clients, 2);
}

#[test]
fn client_that_never_acknowledges_is_dropped_without_blocking() {
    for (backlog_bytes_max, unread_us_max) in [(10, 300_000_000), (1 << 20, 1_500_000)] {
        let mut hall = hall(0, |settings| {
            let endpoint = EndpointSettings {
                backlog_bytes_max,
                ..WebTransportSettings::default().endpoint
            };
            settings.web.read_timeout_us = unread_us_max;
            settings.web.webtransport = Some(WebTransportSettings {
                endpoint,
                ..WebTransportSettings::default()
            });
        });
        let (address, browser) = (hall.address, Browser::of(&hall));
        let mut client = SessionClient::connect(&browser, address, &request(&token(1, address)));
        client.send(&ClientMessage::login(1).to_bytes());
        client.send(&ClientMessage::Ready { scene: 0 }.to_bytes());
        client.exchange(|_| ());
        let mut number = 100_u16;
        hall.step_until("it is given up", |hall| {
            // Neither silence nor QUIC's own answers are an acknowledgement, nor are packets that name none.
            let [low, high] = number.to_le_bytes();
            let packet = [0, 0, low, high, 0, 0, 0xff, 0xff];
            let _ = client.connection.send_datagram(packet);
            number = number.wrapping_add(1);
            browser.poll(std::future::pending::<()>());
            hall.stats().slow_consumers + hall.stats().lost == 1
        });
        let stats = hall.stats();
        assert_eq!(
            (stats.slow_consumers == 1, stats.clients),
            (backlog_bytes_max == 10, 0)
        );
        browser.wait(client.connection.closed());
    }
}

#[test]
fn unauthenticated_sessions_are_limited_and_release_slots() {
    let mut hall = hall(0, |settings| settings.web.unauthenticated_max = 5);
    let (address, browser) = (hall.address, Browser::of(&hall));
    let strangers: Vec<Option<Connection>> = (0..12)
        .map(|_| browser.try_open(address, "/play"))
        .collect();
    assert_eq!(strangers.iter().flatten().count(), 5);
    assert_eq!(
        (hall.stats().accepted, hall.stats().refused_unauthenticated),
        (5, 7)
    );
    for connection in strangers.iter().flatten() {
        connection.close(0u8.into(), b"");
    }
    let mut connection = None;
    hall.step_until("there is room again", |_| {
        connection = connection
            .take()
            .or_else(|| browser.try_open(address, "/play"));
        connection.is_some()
    });
    // The server ignores an address above its request rate.
    let hall = WebTestServer::new(0, |settings| {
        settings.web.webtransport = Some(WebTransportSettings::default());
        settings.requests_per_s = 0;
    });
    let browser = Browser::of(&hall);
    for nth in 1..=3 {
        assert!(browser.try_open(hall.address, "/play").is_none());
        assert_eq!(
            (hall.stats().accepted, hall.stats().refused_unauthenticated),
            (0, nth)
        );
    }
}

#[test]
fn new_certificate_is_published_and_keeps_connections() {
    let mut hall = hall(0, |settings| {
        settings.web.webtransport = Some(WebTransportSettings {
            renewal_us: 1_500_000,
            ..WebTransportSettings::default()
        });
    });
    let address = hall.address;
    let told = || {
        let (status, body) = http_get(address, "GET /webtransport HTTP/1.1\r\nHost: x\r\n\r\n");
        let told: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, told["path"].as_str()), (200, Some("/play")));
        told["sha256"].as_str().unwrap().to_owned()
    };
    let mut before = None;
    let mut client = None;
    // A certificate may be another one by the time that its hash is used.
    hall.step_until("one comes in time", |hall| {
        before = Some(told());
        let browser = Browser::of(hall);
        client = SessionClient::try_connect(&browser, address, &request(&token(1, address)));
        client.is_some()
    });
    let mut client = client.unwrap();
    client.send(&ClientMessage::login(1).to_bytes());
    // Ticks pass faster than in real time, and a session without messages times out after a number of ticks.
    let talk = |client: &mut SessionClient, heard: &mut u32| {
        client.send(&ClientMessage::Ping { number: 1 }.to_bytes());
        client.exchange(|_| *heard += 1);
    };
    let mut heard = 0;
    hall.step_until("it has another one", |_| {
        talk(&mut client, &mut heard);
        Some(told()) != before
    });
    let before = heard;
    hall.step_until("the first goes on", |_| {
        talk(&mut client, &mut heard);
        heard > before + 50
    });
    assert!(Browser::new([7; 32]).try_open(address, "/play").is_none());
    // Without WebTransport, none is announced.
    let hall = WebTestServer::new(0, |_| ());
    let (status, _) = http_get(
        hall.address,
        "GET /webtransport HTTP/1.1\r\nHost: x\r\n\r\n",
    );
    assert_eq!(status, 404);
}
