//! From waiting parties to a battle, and home again.
//!
//! Three parts, each of use without the next: a *mode* makes matches of the parties that wait in it; an *instance* gives a
//! match a scene and moves its players there and back; your game says what happens inside.
//!
//! ```
//! use bevy_ecs::prelude::*;
//! use glam::Vec2;
//! use throng::prelude::*;
//!
//! let mut server = Server::builder()
//!     .plugins(|app: &mut bevy_app::App| {
//!         // Two groups of one player each, whose powers should be close.
//!         let modes = vec![QueueMode::groups("duel", 1)];
//!         app.insert_resource(MatchmakingSettings { modes });
//!         // A match of it is played for three seconds, in a scene of its own.
//!         let arena = SceneSpec::new("arena", Vec2::splat(20.0));
//!         let mut hosts = app.world_mut().resource_mut::<InstanceModes>();
//!         hosts.host("duel", InstanceRules::lasting_s(3.0), arena);
//!     })
//!     .build();
//! let town = open_scene(server.world_mut(), SceneSpec::default(), ())?;
//! for player in [1, 2] {
//!     let place = (Object::in_scene(town), Position(Vec2::splat(10.0)));
//!     server.world_mut().spawn((Player, PlayerId(player), place));
//!     let ticket = Ticket::new(PartyId(player as u32), [PlayerId(player)]);
//!     server.world_mut().write_message(QueueRequest { ticket });
//! }
//! server.step(30);
//! let inside = server.world().resource::<Instances>().iter().count();
//! assert_eq!(inside, 1);
//!
//! // After its time its players are home, where they were.
//! server.step(80);
//! assert!(server.world().resource::<Instances>().is_empty());
//! # Ok::<(), throng::world::WorldError>(())
//! ```
//!
//! * Matches are made at the *heartbeat*, every so many ticks; what a party wishes for (levels, regions, roles, whom it avoids)
//!   stands on its [`Ticket`](crate::matchmaking::Ticket).
//! * The game follows [`MatchFormed`](crate::matchmaking::MatchFormed),
//!   [`InstanceOpened`](crate::instance::InstanceOpened), [`PlayerEntered`](crate::instance::PlayerEntered) and
//!   [`PlayerReturned`](crate::instance::PlayerReturned), and ends a match early by
//!   [`end_instance`](crate::instance::end_instance).
//! * Who logs out keeps a seat for a while; for who leaves for good matchmaking is asked for others.
//! * Scenes that differ from match to match: implement [`InstanceHost`](crate::instance::InstanceHost).
//! * A request that is refused (a mode that is not open, a player who waits already) is answered by
//!   [`TicketRefused`](crate::matchmaking::TicketRefused). Modes are opened when the app starts; later a new
//!   [`Matchmaker`](crate::matchmaking::Matchmaker) replaces them.
//! * Why a party still waits: [`Matcher::wait_reason`](crate::matchmaking::Matcher::wait_reason).
