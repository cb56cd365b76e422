//! A client of the C interface continues when another server process takes it over on the same connection.
#![expect(unsafe_code, reason = "calls functions of the C interface")]

use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use glam::Vec2;
use throng::inbox::{ConnectionInfo, DisconnectReason};
use throng::net::{
    ConnectToken, ConnectionHandler, PROTOCOL_ID, SecretKey, ServerHandshake,
    ServerHandshakeSettings, ServerSocket, TokenClaims, UdpServer, UdpServerSink, UdpSettings,
};
use throng::outbox::PacketSink;
use throng::sim::clock::unix_ms;
use throng::wire::{
    Channel, ClientId, Hello, Motion, PacketHeader, ResumeToken, SessionNotice,
    write_controlled_object, write_own_position, write_own_speed, write_scene,
    write_snapshot_header,
};
use throng_client_c::{
    ThrongClient, ThrongClientState, ThrongEventKind, ThrongStatus, throng_connect, throng_destroy,
    throng_next_event, throng_settings, throng_state, throng_update,
};

const ROUNDS_MAX: u32 = 20_000;

/// Records the messages of clients.
#[derive(Default)]
struct Recorder(Mutex<Vec<Vec<u8>>>);

impl ConnectionHandler for Recorder {
    fn connect(&self, _: ConnectionInfo) -> Option<ClientId> {
        Some(ClientId(1))
    }

    fn receive(&self, _: ClientId, message: &[u8]) {
        self.0.lock().unwrap().push(message.to_vec());
    }

    fn disconnect(&self, _: ClientId, _: DisconnectReason) {}
}

struct Game {
    client: Box<ThrongClient>,
    now_s: f64,
}

impl Game {
    fn state(&self) -> ThrongClientState {
        let mut state = MaybeUninit::uninit();
        let status = throng_state(Some(&self.client), Some(&mut state));
        assert_eq!(status, ThrongStatus::Ok);
        // SAFETY: the call has succeeded.
        unsafe { state.assume_init() }
    }

    fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        for _ in 0..ROUNDS_MAX {
            self.now_s += 0.002;
            let status = throng_update(Some(&mut self.client), self.now_s);
            assert_eq!(status, ThrongStatus::Ok, "{what}");
            if holds(self) {
                return;
            }
            thread::park_timeout(Duration::from_millis(2));
        }
        panic!("{what}: not after {ROUNDS_MAX} rounds");
    }

    fn events(&mut self) -> Vec<ThrongEventKind> {
        let mut kinds = Vec::new();
        loop {
            let mut event = MaybeUninit::uninit();
            if throng_next_event(Some(&mut self.client), Some(&mut event)) != ThrongStatus::Ok {
                return kinds;
            }
            // SAFETY: the call has succeeded.
            kinds.push(unsafe { event.assume_init() }.kind);
        }
    }
}

/// Sends a packet in which a process welcomes the client to its scene at a tick.
fn send(sink: &mut UdpServerSink, (epoch, sequence): (u8, u16), tick: u16, at: Vec2) {
    let header = PacketHeader {
        channel: Channel::Reliable,
        epoch,
        sequence,
        tick,
        input: 0,
    };
    let mut packet = header.to_bytes().to_vec();
    let hello = Hello {
        client: 1,
        tick_millihertz: 20_000,
        tick: tick.into(),
        mtu_bytes: 1_140,
    };
    hello.write(&mut packet);
    SessionNotice::Resumed { keeps_state: false }.write(&mut packet);
    let token = ResumeToken([sequence as u8; 16]);
    SessionNotice::Welcome { player: 7, token }.write(&mut packet);
    write_scene(&mut packet, 1, Vec2::splat(50.0));
    write_controlled_object(&mut packet, 3, 0);
    let motion = Motion::of(tick as u8, at, Vec2::ZERO, 0, 0);
    write_snapshot_header(&mut packet, 3, 0, 0, motion, 0);
    write_own_position(&mut packet, at);
    write_own_speed(&mut packet, 2.0);
    sink.deliver(ClientId(1), Channel::Reliable, &packet);
    sink.flush();
}

#[test]
fn client_continues_with_another_process() {
    let socket = ServerSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = socket.address();
    let gate = ServerHandshakeSettings::new(PROTOCOL_ID, vec![address]);
    let gate = ServerHandshake::new(gate, SecretKey::INSECURE).unwrap();
    let recorder = Arc::new(Recorder::default());
    let handler: Arc<dyn ConnectionHandler> = recorder.clone();
    let server = UdpServer::start(socket, UdpSettings::default(), gate, &handler).unwrap();
    let mut sink = server.sink();
    let claims = TokenClaims::new(7, vec![address], unix_ms() / 1_000);
    let token = ConnectToken::issue(&claims, SecretKey::INSECURE).unwrap();
    let token = token.to_bytes();
    let settings = throng_settings();
    let mut client = MaybeUninit::uninit();
    // SAFETY: the token has this length, and there is no credential.
    let status = unsafe {
        throng_connect(
            token.as_ptr(),
            token.len(),
            Some(&settings),
            Some(&mut client),
        )
    };
    assert_eq!(status, ThrongStatus::Ok);
    // SAFETY: the call has written it.
    let client = unsafe { client.assume_init() }.unwrap();
    let mut game = Game { client, now_s: 0.0 };
    let login = recorder.clone();
    game.until("login", |_| !login.0.lock().unwrap().is_empty());
    send(&mut sink, (1, 0), 900, Vec2::splat(10.0));
    game.until("the first scene", |game| game.state().has_own == 1);
    assert_eq!(game.state().tick, 900);
    game.events();
    // The tick of the other process is lower; its object has the same ids.
    send(&mut sink, (2, 1), 20, Vec2::splat(30.0));
    game.until("the other process", |game| game.state().tick == 20);
    let state = game.state();
    assert_eq!((state.is_connected, state.has_own), (1, 1));
    assert_eq!((state.own_id, state.server_tick), (3, 0.0));
    let events = game.events();
    for expected in [ThrongEventKind::Resumed, ThrongEventKind::SceneEntered] {
        assert!(events.contains(&expected), "{events:?}");
    }
    // The client has logged in once.
    let messages = recorder.0.lock().unwrap().clone();
    let logins = messages
        .iter()
        .filter(|message| matches!(message[0], 1 | 5));
    assert_eq!(logins.count(), 1);
    throng_destroy(Some(game.client));
    server.stop();
}
