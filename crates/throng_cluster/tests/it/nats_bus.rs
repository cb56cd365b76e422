//! Promise: the bus works over a real NATS server, and notices when the server is killed, and when messages are forged or lost.
//!
//! Each test starts a server of its own. Without the program `nats-server` nothing is tested; `.ci/with_nats` installs it.

use std::net::TcpListener;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use futures_util::StreamExt;
use throng_cluster::{
    BUS_VERSION, BusConnectError, BusEvent, BusPeer, BusRefusal, BusSendError, ClusterKey,
    ClusterNodeId, GatewayId, MessageBus, NatsSettings, NatsTransport,
};

use crate::patience::{connect_nats, connected, until};
use crate::servers::NatsServer;

/// Timeout for events that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

const A: BusPeer = BusPeer::Node(ClusterNodeId(1));
const B: BusPeer = BusPeer::Gateway(GatewayId(1));

/// An end of the bus, and what wakes its thread.
struct TestEnd(MessageBus);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl TestEnd {
    fn new(settings: &NatsSettings, own: BusPeer, run: u64) -> Self {
        let transport = connect_nats(settings, own);
        let key = ClusterKey::new(&[7; 32]);
        let mut bus = MessageBus::new(Box::new(transport), key, own, run);
        bus.set_waker(Waker::from(Arc::new(Unpark(thread::current()))));
        Self(bus)
    }

    /// The next event.
    fn any(&mut self) -> BusEvent {
        self.any_within(PATIENCE).expect("nothing arrives")
    }

    /// The next event, if there is one within this time.
    fn any_within(&mut self, time: Duration) -> Option<BusEvent> {
        let begun = throng_core::clock::Stopwatch::start();
        loop {
            if let Some(event) = self.0.receive() {
                return Some(event);
            }
            let left = time.checked_sub(begun.elapsed())?;
            thread::park_timeout(left);
        }
    }

    /// The next event that is about messages.
    fn next(&mut self) -> BusEvent {
        loop {
            match self.any() {
                BusEvent::Connected | BusEvent::Disconnected => {}
                event => return event,
            }
        }
    }
}

fn message(number: u32) -> BusEvent {
    BusEvent::Message {
        from: A,
        run: 5,
        bytes: number.to_le_bytes().to_vec(),
    }
}

/// A client of the server that is no member of the cluster.
struct Stranger {
    runtime: tokio::runtime::Runtime,
    client: async_nats::Client,
}

impl Stranger {
    fn new(server: &NatsServer) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        let client = connected(|| runtime.block_on(async_nats::connect(server.address())));
        Self { runtime, client }
    }

    fn publish(&self, subject: &'static str, bytes: Vec<u8>) {
        self.runtime.block_on(async {
            self.client.publish(subject, bytes.into()).await.unwrap();
            self.client.flush().await.unwrap();
        });
    }

    /// Calls `send`, and returns the first messages of a subject.
    fn listen(&self, subject: &'static str, count: usize, send: impl FnOnce()) -> Vec<Vec<u8>> {
        self.runtime.block_on(async {
            let mut messages = self.client.subscribe(subject).await.unwrap();
            // The server knows the subscription when a message arrives.
            self.client.publish(subject, "".into()).await.unwrap();
            messages.next().await.unwrap();
            send();
            let messages = messages.take(count).map(|message| message.payload.into());
            tokio::time::timeout(PATIENCE, messages.collect())
                .await
                .unwrap()
        })
    }
}

#[test]
fn messages_pass_a_server_in_order() {
    let Some(server) = NatsServer::start(&[]) else {
        return;
    };
    let settings = NatsSettings::new(server.address());
    let mut receiver = TestEnd::new(&settings, B, 1);
    let mut sender = TestEnd::new(&settings, A, 5);
    for number in 0..3_000_u32 {
        sender.0.send(B, &number.to_le_bytes()).unwrap();
    }
    for number in 0..3_000 {
        assert_eq!(receiver.next(), message(number));
    }
    // Also the longest message, and the other way.
    let longest = vec![1; throng_cluster::MESSAGE_BYTES_MAX];
    receiver.0.send(A, &longest).unwrap();
    let expected = BusEvent::Message {
        from: B,
        run: 1,
        bytes: longest,
    };
    assert_eq!(sender.next(), expected);
}

#[test]
fn restart_of_the_server_is_survived_and_gaps_are_noticed() {
    let Some(mut server) = NatsServer::start(&[]) else {
        return;
    };
    let settings = NatsSettings::new(server.address());
    let mut receiver = TestEnd::new(&settings, B, 1);
    let mut sender = TestEnd::new(&settings, A, 5);
    let mut sent = 0_u32;
    let mut send = |count: u32| {
        for number in sent..sent + count {
            sender.0.send(B, &number.to_le_bytes()).unwrap();
        }
        sent += count;
        sent
    };
    for round in 0..3 {
        send(100);
        server.kill();
        while receiver.any() != BusEvent::Disconnected {}
        send(100);
        server.restart();
        while receiver.any() != BusEvent::Connected {}
        // A busy server may also lose a connection.
        assert!(receiver.0.stats().disconnects > round);
        // From then on messages arrive again, and each is received or noticed as missing by a later one.
        let count = u64::from(send(1));
        let known = |end: &TestEnd| end.0.stats().received + end.0.stats().missing;
        let mut events = 0;
        while known(&receiver) < count {
            events += 1;
            assert!(events < 10_000, "{:?}", receiver.0.stats());
            match receiver.any_within(Duration::from_millis(100)) {
                Some(BusEvent::Message { .. } | BusEvent::Gap { .. }) => {}
                Some(BusEvent::Connected | BusEvent::Disconnected) => {}
                Some(other) => panic!("{other:?}"),
                // The last one was lost, too.
                None => _ = send(1),
            }
        }
    }
    let stats = receiver.0.stats();
    assert!(stats.received >= 3, "{stats:?}");
    assert_eq!((stats.refused, stats.forged), (0, 0));
}

#[test]
fn strangers_on_the_server_are_refused() {
    let Some(server) = NatsServer::start(&[]) else {
        return;
    };
    let settings = NatsSettings::new(server.address());
    let mut receiver = TestEnd::new(&settings, B, 1);
    let mut sender = TestEnd::new(&settings, A, 5);
    let stranger = Stranger::new(&server);
    let recorded = stranger.listen("throng.gateway.1", 1, || {
        sender.0.send(B, &0_u32.to_le_bytes()).unwrap();
    });
    // The stranger has sent an empty message, too.
    let empty = BusEvent::Refused(BusRefusal::Malformed(0));
    assert_eq!(receiver.next(), empty);
    assert_eq!(receiver.next(), message(0));
    let (mut forged, mut foreign) = (recorded[0].clone(), recorded[0].clone());
    *forged.last_mut().unwrap() ^= 1;
    foreign[4] = 200;
    let found = 200;
    assert_ne!(found, BUS_VERSION);
    for (bytes, expected) in [
        (b"hello".to_vec(), BusRefusal::Malformed(5)),
        (forged, BusRefusal::Forged),
        (foreign, BusRefusal::Version { found }),
        (recorded[0].clone(), BusRefusal::Late(A)),
    ] {
        stranger.publish("throng.gateway.1", bytes);
        assert_eq!(receiver.next(), BusEvent::Refused(expected));
    }
    // What was recorded does not reach another receiver either.
    let c = BusPeer::Gateway(GatewayId(2));
    let mut other = TestEnd::new(&settings, c, 1);
    stranger.publish("throng.gateway.2", recorded[0].clone());
    let expected = BusEvent::Refused(BusRefusal::WrongReceiver(B));
    assert_eq!(other.next(), expected);
    // None of it counts as a message of the sender.
    sender.0.send(B, &1_u32.to_le_bytes()).unwrap();
    assert_eq!(receiver.next(), message(1));
}

#[test]
fn message_lost_on_the_way_is_a_gap() {
    let Some(server) = NatsServer::start(&[]) else {
        return;
    };
    let mut receiver = TestEnd::new(&NatsSettings::new(server.address()), B, 1);
    // The sender's messages take a way on which a stranger loses two of five.
    let mut settings = NatsSettings::new(server.address());
    settings.prefix = "elsewhere".to_owned();
    let mut sender = TestEnd::new(&settings, A, 5);
    let stranger = Stranger::new(&server);
    let mut taken = stranger.listen("elsewhere.gateway.1", 5, || {
        for number in 0..5_u32 {
            sender.0.send(B, &number.to_le_bytes()).unwrap();
        }
    });
    taken.drain(1..3);
    for bytes in taken {
        stranger.publish("throng.gateway.1", bytes);
    }
    let gap = BusEvent::Gap {
        from: A,
        missing: 2,
    };
    for expected in [message(0), gap, message(3), message(4)] {
        assert_eq!(receiver.next(), expected);
    }
    assert_eq!(receiver.0.stats().missing, 2);
}

#[test]
fn sender_never_waits_for_a_server_that_is_away() {
    let Some(mut server) = NatsServer::start(&[]) else {
        return;
    };
    let mut settings = NatsSettings::new(server.address());
    settings.queued_messages_max = 100;
    settings.queued_bytes_max = 50_000;
    let mut sender = TestEnd::new(&settings, A, 5);
    server.kill();
    while sender.any() != BusEvent::Disconnected {}
    let mut refused = 0;
    for _ in 0..5_000 {
        if let Err(error) = sender.0.send(B, &[0; 200]) {
            assert_eq!(error, BusSendError::Full(B));
            refused += 1;
        }
    }
    // The rest waits: up to 100 messages in the queue, and 256 in the client library.
    assert!((4_600..5_000).contains(&refused), "{refused}");
    assert_eq!(sender.0.stats().not_sent, refused);
}

#[test]
fn wrong_credentials_and_missing_servers_are_clear_errors() {
    let Some(server) = NatsServer::start(&["--user", "throng", "--pass", "secret"]) else {
        return;
    };
    let (host, port) = ("127.0.0.1", server.port());
    let connect = |address: String| {
        let connected = NatsTransport::connect(&NatsSettings::new(address), A);
        connected.map(|_| ())
    };
    // A server on a busy machine may not reply in time.
    let reached = |address: String| {
        let mut result = Ok(());
        until("the server replies", || {
            result = connect(address.clone());
            !matches!(result, Err(BusConnectError::Unreachable { .. }))
        });
        result
    };
    assert_eq!(
        reached(format!("nats://throng:secret@{host}:{port}")),
        Ok(())
    );
    for user in ["", "throng:wrong@", "token@"] {
        let error = reached(format!("nats://{user}{host}:{port}")).unwrap_err();
        let host = host.to_owned();
        assert_eq!(
            error,
            BusConnectError::CredentialsRefused { host },
            "{user}"
        );
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = port.local_addr().unwrap().port();
    let error = connect(format!("nats://throng:hidden@{host}:{port}")).unwrap_err();
    assert!(
        matches!(error, BusConnectError::Unreachable { .. }),
        "{error}"
    );
    assert!(!error.to_string().contains("hidden"), "{error}");
    let error = connect("nats://192.0.2.1:4222".to_owned()).unwrap_err();
    assert!(error.to_string().contains("credentials are required"));
    let mut settings = NatsSettings::new(server.address());
    settings.prefix = "a.b".to_owned();
    let error = NatsTransport::connect(&settings, A).unwrap_err();
    assert_eq!(error, BusConnectError::Prefix);
}

/// A server that has lost another one of its cluster would report all peers there as not connected.
#[test]
fn no_peer_is_probed_in_a_nats_cluster() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let routes = format!("nats://{}", port.local_addr().unwrap());
    drop(port);
    for (arguments, replies) in [
        (vec![], true),
        (vec!["--cluster_name", "c", "--cluster", &routes], false),
    ] {
        let Some(server) = NatsServer::start(&arguments) else {
            return;
        };
        let settings = NatsSettings::new(server.address());
        let mut end = TestEnd::new(&settings, A, 1);
        end.0.probe(B, 5);
        end.0.send_echo(7).unwrap();
        let unreachable = BusEvent::Unreachable { peer: B, number: 5 };
        if replies {
            assert_eq!(end.next(), unreachable);
        }
        assert_eq!(end.next(), BusEvent::Echo { number: 7 });
    }
}
