//! A server for browser clients over any transport, and common actions of test clients.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use bevy_ecs::prelude::*;
use glam::Vec2;
use throng::net::bot_client::BotClient;
use throng::net::{
    ConnectToken, ListenSettings, SecretKey, TokenClaims, WebListener, WebStats, listen_web,
};
use throng::outbox::OutboxSettings;
use throng::prelude::*;
use throng::sim::clock::unix_ms;
use throng::sync::SyncSettings;
use throng::sync::{Mirror, compare_mirror};
use throng::wire::{ClientMessage, PROTOCOL_VERSION, ResumeToken, SessionNotice};

use crate::harness::be_patient;

/// How long a test waits for other threads: much longer than necessary on a machine without other load.
pub const TIMEOUT: Duration = Duration::from_secs(120);

pub const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub const SPEED_M_S: f32 = 4.0;

pub const START: Vec2 = Vec2::splat(100.0);

/// A client's first message: the encrypted part of its token, and the data that authenticates it.
pub fn request(token: &ConnectToken) -> Vec<u8> {
    let token = token.to_bytes();
    let version = u16::try_from(PROTOCOL_VERSION).unwrap().to_le_bytes();
    let prefix = b"\0THRONG NET\0";
    [prefix, &version[..], &token[13..21], &token[29..1_085]].concat()
}

/// Requests to a server: a valid one, which admits one client, and some invalid ones.
pub fn requests(server: SocketAddr) -> (Vec<u8>, Vec<Vec<u8>>) {
    let issue = |claims: &TokenClaims, key: &SecretKey| {
        let token = ConnectToken::issue(claims, key).unwrap();
        request(&token)
    };
    let now_s = unix_ms() / 1_000;
    let good = TokenClaims::new(1, vec![server], now_s);
    let old = TokenClaims {
        created_s: now_s - 100,
        expires_s: now_s - 50,
        ..good.clone()
    };
    let elsewhere = TokenClaims::new(1, vec!["203.0.113.5:7000".parse().unwrap()], now_s);
    let mut forged = issue(&good, &SecretKey::INSECURE);
    forged[500] ^= 1;
    let refused = vec![
        issue(&good, &SecretKey::random().unwrap()),
        issue(&old, &SecretKey::INSECURE),
        issue(&elsewhere, &SecretKey::INSECURE),
        forged,
        Vec::new(),
        vec![0; 1_000],
    ];
    (issue(&good, &SecretKey::INSECURE), refused)
}

/// A client's end of a connection, over any transport.
pub trait WebEnd {
    /// Receives pending packets, and sends what is due.
    fn exchange(&mut self, take: &mut dyn FnMut(&[u8]));

    fn send(&mut self, message: &[u8]);
}

/// A server for browsers. Every player that logs in gets an object.
pub struct WebTestServer {
    pub server: Server,
    scene: Entity,
    pub address: SocketAddr,
}

impl WebTestServer {
    pub fn new(shards: u32, configure: impl FnOnce(&mut ListenSettings)) -> Self {
        let mut server = Server::builder()
            .configure(move |app| {
                app.insert_resource(OutboxSettings {
                    sender_threads: shards,
                    ..OutboxSettings::default()
                });
                // Other load of the machine must not end connections.
                app.insert_resource(SyncSettings {
                    in_flight_s_max: 300.0,
                    ..SyncSettings::default()
                });
                be_patient(app);
            })
            .build();
        let world = server.world_mut();
        let spec = SceneSpec::new("hall", Vec2::splat(200.0));
        let scene = open_scene(world, spec, ()).unwrap();
        let mut settings = ListenSettings::default();
        settings.web.read_timeout_us = 300_000_000;
        settings.web.handshake_timeout_us = 100_000_000;
        settings.web.linger_us = 20_000_000;
        configure(&mut settings);
        let key = SecretKey::INSECURE;
        let address = listen_web(world, LOOPBACK, key, &settings, None).unwrap();
        Self {
            server,
            scene,
            address,
        }
    }

    pub fn step(&mut self) {
        self.server.step(1);
        let world = self.server.world_mut();
        let mut new = world.resource_mut::<Messages<LoggedIn>>();
        let new: Vec<LoggedIn> = new.drain().collect();
        for login in new {
            let place = (InScene(self.scene), Position(START));
            let own = (
                Player,
                login.player,
                ControlledBy(login.client_entity),
                MaxSpeed(SPEED_M_S),
            );
            world.spawn((own, Viewer::default(), place));
        }
        thread::sleep(Duration::from_millis(2));
    }

    /// Runs ticks until a condition holds; `what` describes it in the error message.
    pub fn step_until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        let started = Instant::now();
        while !is_so(self) {
            assert!(started.elapsed() < TIMEOUT, "{what}: {:?}", self.stats());
            self.step();
        }
    }

    pub fn stats(&self) -> WebStats {
        self.server.world().resource::<WebListener>().stats()
    }

    /// Runs ticks until the server has measured the round trip time and the sent bytes of every client. The clients continue to receive.
    pub fn await_connection_stats<C: WebEnd>(&mut self, clients: &mut [(C, BotClient)]) {
        self.step_until("all connections are measured", |rig| {
            for (client, bot) in &mut *clients {
                client.exchange(&mut |packet| bot.receive(packet));
            }
            let world = rig.server.world();
            let web = world.resource::<WebListener>();
            let sessions = world.resource::<Sessions>().iter();
            let stats = sessions.filter_map(|(client, _)| web.connection_stats(client));
            let measured = stats.filter(|stats| stats.round_trip_us > 0 && stats.bytes_sent > 500);
            measured.count() == clients.len()
        });
    }

    /// The difference between a mirror and the server.
    pub fn difference(&self, player: u64, mirror: &Mirror) -> Result<(), String> {
        let world = self.server.world();
        let client = world.resource::<Sessions>().client_of(PlayerId(player));
        compare_mirror(world, client.ok_or("the player has no session")?, mirror)
    }

    /// All clients walk for a while, then stop until all mirrors equal the server.
    pub fn walk_and_stop<C: WebEnd>(&mut self, clients: &mut [(C, BotClient)]) {
        let players = clients.len() as u64;
        self.step_until("all clients have walked", |rig| {
            for (client, bot) in &mut *clients {
                client.exchange(&mut |packet| bot.receive(packet));
                bot.update(|message| client.send(message));
            }
            let has_walked = |bot: &BotClient| bot.position().unwrap_or(START) != START;
            rig.stats().messages_in > players * 40 && clients.iter().all(|(_, bot)| has_walked(bot))
        });
        for (_, bot) in &mut *clients {
            assert_eq!((bot.corrections(), bot.mirror_error()), (0, None));
            bot.stop();
        }
        self.step_until("all mirrors equal the server", |rig| {
            for (client, bot) in &mut *clients {
                client.exchange(&mut |packet| bot.receive(packet));
            }
            clients.iter().all(|(_, bot)| {
                let same = rig.difference(bot.player(), bot.mirror());
                same.is_ok() && bot.unhandled_inputs() == 0
            })
        });
    }
}

/// A client that only receives, and reports when it has loaded a scene.
pub struct TestPlayer<C> {
    pub client: C,
    mirror: Mirror,
    notices: Vec<SessionNotice>,
}

impl<C: WebEnd> TestPlayer<C> {
    /// Logs in as player 1, and waits until its mirror equals the server.
    pub fn log_in(rig: &mut WebTestServer, client: C) -> Self {
        let mut player = Self {
            client,
            mirror: Mirror::default(),
            notices: Vec::new(),
        };
        player.client.send(&ClientMessage::login(1).to_bytes());
        rig.step_until("the player has its object", |rig| {
            player.receive();
            player.mirror.controlled_object().is_some() && rig.difference(1, &player.mirror).is_ok()
        });
        player
    }

    /// The last resume token that it received.
    fn token(&self) -> Option<ResumeToken> {
        let notices = self.notices.iter().rev();
        { notices }.find_map(|notice| match notice {
            SessionNotice::Welcome { token, .. } => Some(*token),
            _ => None,
        })
    }

    /// Resumes the session over the current `client`; the player keeps its object.
    pub fn resume(&mut self, rig: &mut WebTestServer) {
        self.mirror.reconnect();
        let resume = ClientMessage::Resume {
            player: 1,
            token: self.token().expect("a token"),
            received: Some(self.mirror.received_bytes()),
        };
        self.client.send(&resume.to_bytes());
        self.notices.clear();
        let own = self.mirror.controlled_object();
        rig.step_until("the session is resumed", |rig| {
            self.receive();
            let is_on = |notice: &SessionNotice| matches!(notice, SessionNotice::Resumed { .. });
            self.notices.iter().any(is_on) && rig.difference(1, &self.mirror).is_ok()
        });
        assert_eq!(self.mirror.controlled_object(), own);
    }

    fn receive(&mut self) {
        let mirror = &mut self.mirror;
        self.client
            .exchange(&mut |packet| mirror.receive(packet).unwrap());
        for notice in self.mirror.take_notices() {
            if let SessionNotice::Loading { scene, .. } = notice {
                self.client.send(&ClientMessage::Ready { scene }.to_bytes());
            }
            self.notices.push(notice);
        }
    }
}
