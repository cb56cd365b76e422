//! Your first server: a map, a player, and what its client receives.
//!
//! A [`Server`](crate::server::Server) is a Bevy app with all plugins of this crate, which does a tick when it is told to. It
//! needs no window and no network; what leaves it goes to a *sink*.
//!
//! ```
//! use glam::Vec2;
//! use throng::prelude::*;
//!
//! let mut server = Server::builder().seed(7).tick_hz(20.0).build();
//! let world = server.world_mut();
//!
//! // A scene with a map of 200 × 200 free tiles of half a metre.
//! let map = SceneMap::new(TileMap::new(200, 200, false)?.into(), 0.5);
//! let scene = open_scene(world, SceneSpec::new("meadow", map.size_m()), map)?;
//!
//! // Packets are kept in memory here; `outbox` has sinks that count, capture, or send.
//! let sent = MemorySink::default();
//! Outbox::set_sink(&mut world.resource_mut(), Box::new(sent.clone()));
//!
//! // A client connects and logs in as player 1, for which its transport vouches. Until the game gives it an object it sees
//! // nothing. Transports on threads of their own have a clone of the handle.
//! let transport = world.resource::<TransportHandle>().clone();
//! let client = transport.connect(Connected::player(1).ready())?;
//! transport.receive(client, &ClientMessage::login(1).to_bytes())?;
//! server.step(1);
//!
//! // The object that it controls: what makes a player is one line.
//! let at = Position(Vec2::splat(50.0));
//! server.world_mut().spawn((
//!     Player, PlayerId(1), Object::in_scene(scene), at, Speed(5.0), ControlledBy::new(client),
//! ));
//! server.step(2);
//!
//! // The other end of the line decodes with a `Mirror`.
//! let mut mirror = Mirror::default();
//! for (_, packet) in std::mem::take(&mut sent.kept().frames).iter() {
//!     mirror.receive(packet)?;
//! }
//! let (own, _) = mirror.own().ok_or("it knows what it controls")?;
//! let place = mirror.position(own, mirror.tick()).ok_or("and where that is")?;
//! assert!(place.distance(Vec2::splat(50.0)) < 0.02);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * In an app of your own, add [`ThrongPlugins`](crate::ThrongPlugins) or single plugins beside Bevy's `TaskPoolPlugin` and
//!   `TimePlugin`; systems go into a set of [`SimSystems`](crate::sim::SimSystems), in `FixedUpdate`.
//! * An object is any entity with [`Object`](crate::world::Object) and [`Position`](crate::world::Position). Change its
//!   `Position` as you like; a jump that is no walk is announced by [`teleport`](crate::world::teleport).
//! * It is despawned by Bevy's own `despawn()`; views, sessions and parties follow by themselves.
//!
//! Next: [`own_attribute`](super::own_attribute). A whole small game is `examples/game.rs`.
