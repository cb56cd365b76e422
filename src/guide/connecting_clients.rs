//! Clients that connect: a token, a login, a message of the game's own.
//!
//! ```text
//! your login service ── knows the player, has the key ──▶ token ──▶ the game's client
//! client ── token, over UDP ──▶ net::listen ──▶ login ──▶ Authentication ──▶ LoggedIn ──▶ you spawn and control ──▶ packets
//! ```
//! The server listens by one call, beside whatever it does otherwise. A token says which player its client is; whether that player may
//! come in now is asked of a hook of yours, on a thread of its own where it takes time.
//!
//! ```
//! use bevy_ecs::prelude::*;
//! use glam::Vec2;
//! use throng::net::{ConnectToken, EndpointSettings, ListenSettings, SecretKey, TokenClaims};
//! use throng::net::{UdpClient, listen, stop_listening};
//! use throng::prelude::*;
//! use throng::sim::clock::unix_ms;
//! use throng::wire::SessionNotice;
//!
//! /// A message of the game's own: what a client casts.
//! #[derive(Debug, PartialEq)]
//! struct Cast(u8);
//!
//! impl ClientMessageType for Cast {
//!     fn read(bytes: &[u8]) -> Option<Self> {
//!         // As hostile as anything that comes over a line: whatever is not exactly one byte is refused.
//!         if let &[spell] = bytes { Some(Self(spell)) } else { None }
//!     }
//! }
//!
//! const CAST: u16 = 1;
//!
//! let mut server = Server::builder()
//!     .pace(Pace::RealTime)
//!     .plugins(|app: &mut bevy_app::App| {
//!         app.register_client_message::<Cast>(CAST);
//!     })
//!     .build();
//! let world = server.world_mut();
//! let town = open_scene(world, SceneSpec::default(), ())?;
//! // Whom the transport vouches for, and who is not banned. What takes time implements `Authenticator` instead.
//! world.insert_resource(Authentication::by(|login| {
//!     login.claims.player.filter(|&player| player == login.player && player != PlayerId(13))
//! }));
//! let key = SecretKey::random()?;
//! let address = listen(world, "127.0.0.1:0".parse()?, key, ListenSettings::default(), None)?;
//!
//! // The login service, mostly another program: it sends the token over a channel that is safe.
//! let claims = TokenClaims::new(7, vec![address], unix_ms() / 1_000);
//! let token = ConnectToken::issue(&claims, &key)?;
//!
//! // The client; a game has `throng_client` for all of this.
//! let mut client = UdpClient::connect(token, EndpointSettings::default())?;
//! let mut mirror = Mirror::default();
//! client.send(&ClientMessage::login(7).to_bytes())?;
//! let began = std::time::Instant::now();
//! let (mut has_cast, mut cast) = (false, None);
//! while cast.is_none() {
//!     assert!(began.elapsed().as_secs() < 20, "nobody came");
//!     client.update(|packet| mirror.receive(packet).expect("what the server writes"))?;
//!     for notice in mirror.take_notices() {
//!         if let SessionNotice::Loading { scene, .. } = notice {
//!             // It has loaded the scene, and is told what it sees there.
//!             client.send(&ClientMessage::Ready { scene }.to_bytes())?;
//!         }
//!     }
//!     if mirror.own().is_some() && !has_cast {
//!         has_cast = true;
//!         client.send(&ClientMessage::User { kind: CAST, bytes: &[3] }.to_bytes())?;
//!     }
//!
//!     // The server.
//!     server.step(1);
//!     let world = server.world_mut();
//!     let new: Vec<LoggedIn> = world.resource_mut::<Messages<LoggedIn>>().drain().collect();
//!     for LoggedIn { client, player } in new {
//!         let place = (Object::in_scene(town), Position(Vec2::splat(10.0)));
//!         world.spawn((Player, player, ControlledBy::new(client), Speed(3.0), place));
//!     }
//!     cast = world.resource_mut::<Messages<FromClient<Cast>>>().drain().next();
//! }
//! let cast = cast.expect("it came");
//! assert_eq!((cast.player, cast.message), (PlayerId(7), Cast(3)));
//! stop_listening(server.world_mut());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * **The game's end** is the crate `throng_client` (`crates/throng_client`): the same connection, what is in sight and where to draw it, the own
//!   object ahead of the server; with a plugin for Bevy. Engines that load C libraries have `clients/c`, browsers `clients/web`.
//! * **A token** is good for one connection and for as long as its claims say, half a minute unless you say otherwise. One that was used,
//!   is expired or of another key is not answered at all, so its client gives up after the token's timeout.
//! * **Ready**: a client that has to load a scene is told nothing of it until it says so; where yours know the scenes,
//!   `settings.udp.loads = false` spares them that.
//! * **Who comes back** after a lost line goes on with what it had: [`Resumed`](crate::session::Resumed). How long a session is kept is in
//!   [`SessionSettings`](crate::session::SessionSettings).
//! * **Try it bad**: `throng relay` between the two is a line that loses, delays and reorders; `throng client 500` are players.
//! * **Another transport** than UDP and browsers: [its page](crate::session::transport).
