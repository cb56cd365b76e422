//! Players that persist: loaded when they log in, saved while they play, and live on one server at a time.
//!
//! What is kept of a player are the attributes of its object that are [`persistent`](crate::sync::AttributeSpec::persistent).
//! Add [`DirectoryPlugin`](crate::directory::DirectoryPlugin), open a store, and spawn players on
//! [`PlayerLoaded`](crate::directory::PlayerLoaded) in place of [`LoggedIn`](crate::session::LoggedIn):
//!
//! ```
//! use std::time::Duration;
//!
//! use bevy_app::{App, FixedUpdate};
//! use bevy_ecs::prelude::*;
//! use glam::Vec2;
//! use throng::directory::{MemoryDisk, StoreAnswers, close_directory};
//! use throng::prelude::*;
//!
//! #[derive(Component)]
//! struct Gold(u32);
//!
//! const GOLD: AttributeSpec = AttributeSpec::new("gold", 40, Encoding::Varint);
//!
//! #[derive(Resource)]
//! struct Town(Entity);
//!
//! fn welcome(mut new: MessageReader<PlayerLoaded>, town: Res<Town>, mut commands: Commands) {
//!     for PlayerLoaded { client, record } in new.read() {
//!         // A new player has nothing yet.
//!         let gold = record.count(GOLD.id, GOLD.encoding).unwrap_or(5) as u32;
//!         let place = (Object::in_scene(town.0), Position(Vec2::splat(10.0)));
//!         let body = (Player, record.player, ControlledBy::new(*client), Gold(gold));
//!         commands.spawn((body, place));
//!     }
//! }
//!
//! fn game(disk: MemoryDisk) -> Server {
//!     let mut server = Server::builder()
//!         .plugins((DirectoryPlugin, |app: &mut App| {
//!             app.replicate_field(GOLD.to(Audience::OWNER).persistent(), |gold: &Gold| gold.0);
//!             app.add_systems(FixedUpdate, welcome.in_set(SimSystems::Think));
//!             app.insert_resource(DirectorySettings {
//!                 server: "town-1".to_owned(),
//!                 // A tick waits for what the last one asked; leave this out in real time.
//!                 answers: StoreAnswers::NextTick,
//!                 ..DirectorySettings::default()
//!             });
//!         }))
//!         .build();
//!     let world = server.world_mut();
//!     let town = open_scene(world, SceneSpec::default(), ()).expect("there is room");
//!     world.insert_resource(Town(town));
//!     // With the feature `sqlite`: `SqliteSource::new("players.db")`;
//!     // with `postgres`: `PostgresSource::new("postgres://user@host/database")`.
//!     world.resource_mut::<Directory>().open(disk).unwrap();
//!     server
//! }
//!
//! fn log_in(server: &mut Server) -> Result<Entity, Box<dyn std::error::Error>> {
//!     // Its transport vouches for who it is; without that an `Authenticator` has to.
//!     let client = connect(server.world_mut(), Connected::player(7).ready())?;
//!     let transport = server.world().resource::<TransportHandle>().clone();
//!     transport.receive(client, &ClientMessage::login(7).to_bytes())?;
//!     server.step(2);
//!     Ok(server.world().resource::<Players>().entity(PlayerId(7)).expect("it was loaded"))
//! }
//!
//! let disk = MemoryDisk::default();
//! let mut server = game(disk.clone());
//! let player = log_in(&mut server)?;
//! server.world_mut().get_mut::<Gold>(player).unwrap().0 += 37;
//! server.step(1);
//! // At the end: all is saved, and no other server has to wait for leases to run out.
//! assert!(close_directory(server.world_mut(), Duration::from_secs(10)));
//!
//! let mut server = game(disk);
//! let player = log_in(&mut server)?;
//! assert_eq!(server.world().get::<Gold>(player).unwrap().0, 42);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * **When it is saved**: every [`save_every_ticks`](crate::sync::SyncSettings::save_every_ticks), when the object goes, and
//!   at once after a [`Transfer`](crate::directory::Transfer). All saves of a tick are one transaction;
//!   [`PlayersSaved`](crate::directory::PlayersSaved) says which tick is on disk.
//! * **What is taken from a player** is taken from the store, too: when a component that its object has is removed. What a game
//!   never gave the object stays in the store, so that whoever spawns it without one of its components has erased nothing.
//! * **Dealing**: change the components of both players, and write a [`Transfer`](crate::directory::Transfer) in the same tick.
//!   Both are saved in one transaction or neither is, whenever the process is killed.
//! * **One server at a time**: a player is live under a lease. Who is live elsewhere is refused
//!   ([`PlayerRefused`](crate::directory::PlayerRefused)). A server that comes back under its name has its players at once;
//!   those of one that does not are had by others when their leases ran out, a minute by default.
//! * **A store that does not keep up** delays saves and never the tick: what waits is one copy of what changed of each player.
//!   Then logins are refused, and in the end players have to leave as their leases run out
//!   ([`LeaseLost`](crate::directory::LeaseLost)). What each error of a store means: [`StoreFault`](crate::directory::StoreFault).
//! * **Your own store** implements [`Store`](crate::directory::Store), six calls that may wait, and is held to what they
//!   promise by [`check_store`](crate::directory::conformance::check_store) in a test. The supervisor opens it again when it
//!   fails ([`StoreSource`](crate::directory::StoreSource)).
//! * **Players elsewhere** are looked up: write a `LookUpRequest`, read the `LookUpAnswer`. Who is here is
//!   read from its components, all others from a cache in which a record is fresh for ten seconds (`CacheSettings`); the next look
//!   after that asks the store anew. All that is missing is one query a tick. Whoever asks has an answer or an error within a second.
//! * **Several servers** of one store tell each other what they save: give each its `Peers` by `Directory::join`. Who shows a player
//!   is told of its saves, and all are told when it goes. Nothing depends on that: without it what is shown is up to ten seconds
//!   old. `PeerHub` joins servers of one process; a network of yours implements three functions that never wait.
//! * **A record that is spoilt** keeps its player out, and what cannot be kept of one (somebody took its attribute out of the
//!   file) ends its session and those of whom it dealt with since; all others log in and are saved. An attribute that is
//!   registered after the store was opened is not kept, which is logged.
//! * **Limits of this version**: a run that is not in real time counts its leases in simulated time, so have no other server
//!   beside it.
//! * **For operators**: `throng run --store players.db`, `throng db check|dump|migrate players.db`, and `sqlite3`. On a Postgres
//!   server the tables are in the schema `throng`, made and brought up to date when a server opens it; `throng db` takes its
//!   address in place of the file, `psql` shows them, and its backups are theirs. The line to it is not encrypted: have it beside the server, or a tunnel between.
