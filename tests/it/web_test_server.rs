//! A server for browser clients over any transport, and their test actions.

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

/// How long a test waits for other threads: much longer than any needs, since machines have other work, too.
pub const TIMEOUT: Duration = Duration::from_secs(120);

pub const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub const SPEED_M_S: f32 = 4.0;

pub const START: Vec2 = Vec2::splat(100.0);

/// What a client says first: of its token what is sealed, and what that is bound to.
pub fn request(token: &ConnectToken) -> Vec<u8> {
    let token = token.to_bytes();
    let version = u16::try_from(PROTOCOL_VERSION).unwrap().to_le_bytes();
    let prefix = b"\0THRONG NET\0";
    [prefix, &version[..], &token[13..21], &token[29..1_085]].concat()
}

/// Requests to a server: one that lets in, once, and some that do not.
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

/// The client's end of one way to a hall.
pub trait WebEnd {
    /// Takes the packets that are there, and sends what is due.
    fn exchange(&mut self, take: &mut dyn FnMut(&[u8]));

    fn send(&mut self, message: &[u8]);
}

/// A hall to which browsers come, and in which everybody who logs in gets a body.
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
                // No client is lost because of other load of the machine.
                app.insert_resource(SyncSettings {
                    in_flight_s_max: 300.0,
                    ..SyncSettings::default()
                });
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

    /// Does ticks until something is so.
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

    /// Waits until an operator sees of every client how far away it is, and what it was sent. The clients go on meanwhile.
    pub fn await_connection_stats<C: WebEnd>(&mut self, clients: &mut [(C, BotClient)]) {
        self.step_until("all connections are measured", |hall| {
            for (client, rambler) in &mut *clients {
                client.exchange(&mut |packet| rambler.receive(packet));
            }
            let world = hall.server.world();
            let web = world.resource::<WebListener>();
            let sessions = world.resource::<Sessions>().iter();
            let stats = sessions.filter_map(|(client, _)| web.connection_stats(client));
            let measured = stats.filter(|stats| stats.round_trip_us > 0 && stats.bytes_sent > 500);
            measured.count() == clients.len()
        });
    }

    /// What is wrong with a mirror.
    pub fn difference(&self, player: u64, mirror: &Mirror) -> Result<(), String> {
        let world = self.server.world();
        let client = world.resource::<Sessions>().client_of(PlayerId(player));
        compare_mirror(world, client.ok_or("it has no session")?, mirror)
    }

    /// Everybody walks for a while, and rests until all mirrors are the same as the server.
    pub fn walk_and_stop<C: WebEnd>(&mut self, clients: &mut [(C, BotClient)]) {
        let players = clients.len() as u64;
        self.step_until("they all walked", |hall| {
            for (client, rambler) in &mut *clients {
                client.exchange(&mut |packet| rambler.receive(packet));
                rambler.update(|message| client.send(message));
            }
            hall.stats().messages_in > players * 40
        });
        for (_, rambler) in &mut *clients {
            assert_ne!(rambler.position().unwrap_or(START), START);
            assert_eq!((rambler.corrections(), rambler.mirror_error()), (0, None));
            rambler.stop();
        }
        self.step_until("they hold the same", |hall| {
            for (client, rambler) in &mut *clients {
                client.exchange(&mut |packet| rambler.receive(packet));
            }
            clients.iter().all(|(_, rambler)| {
                let same = hall.difference(rambler.player(), rambler.mirror());
                same.is_ok() && rambler.unhandled_inputs() == 0
            })
        });
    }
}

/// A client that does nothing but listen, and says when it is ready.
pub struct TestPlayer<C> {
    pub client: C,
    mirror: Mirror,
    notices: Vec<SessionNotice>,
}

impl<C: WebEnd> TestPlayer<C> {
    /// Logs in as player 1, and waits until it sees what there is.
    pub fn log_in(hall: &mut WebTestServer, client: C) -> Self {
        let mut listener = Self {
            client,
            mirror: Mirror::default(),
            notices: Vec::new(),
        };
        listener.client.send(&ClientMessage::login(1).to_bytes());
        hall.step_until("it is in", |hall| {
            listener.receive();
            listener.mirror.controlled_object().is_some()
                && hall.difference(1, &listener.mirror).is_ok()
        });
        listener
    }

    /// The token that it received last.
    fn token(&self) -> Option<ResumeToken> {
        let notices = self.notices.iter().rev();
        { notices }.find_map(|notice| match notice {
            SessionNotice::Welcome { token, .. } => Some(*token),
            _ => None,
        })
    }

    /// Goes on over the client that it was given meanwhile, and has the body that it had.
    pub fn resume(&mut self, hall: &mut WebTestServer) {
        self.mirror.reconnect();
        let resume = ClientMessage::Resume {
            player: 1,
            token: self.token().expect("a token"),
            received: Some(self.mirror.received_bytes()),
        };
        self.client.send(&resume.to_bytes());
        self.notices.clear();
        let own = self.mirror.controlled_object();
        hall.step_until("it goes on", |hall| {
            self.receive();
            let is_on = |notice: &SessionNotice| matches!(notice, SessionNotice::Resumed { .. });
            self.notices.iter().any(is_on) && hall.difference(1, &self.mirror).is_ok()
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
