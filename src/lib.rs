//! **An ECS-based headless simulation server, for games in which thousands of players and NPCs share a world.**
//!
//! Interest management, NPC pathfinding, replication and matchmaking as [Bevy](https://bevy.org) plugins: exact,
//! deterministic, bounded, and measured under synthetic crowds. Take the whole server ([`ThrongPlugins`], [`server::Server`]), or
//! one plugin into an app that you have.
//!
//! # Where to begin
//!
//! The [`guide`] has a page a task, from [a first server](guide::first_server) on, and a [glossary](guide::glossary). Each
//! module's own page says what it promises and costs; [`wire`] is the one for who writes a client. The README has the
//! program, the scenarios and figures.
//!
//! | feature | adds |
//! |---|---|
//! | `server` | the plugins, and with them Bevy; on unless turned off. Without it there is what a client is made of |
//! | `png` | maps in PNG files |
//! | `trace` | a span for each set, system and schedule, through `tracing` |
//! | `bench` | what the systems are measured with and beside |
//! | `sqlite`, `postgres` | players in a file, or on a Postgres server |
//! | `net` | clients over UDP: tokens, handshakes, sealed packets, sockets |
//! | `web` | clients in browsers, over WebSockets; with `net` |
//! | `webtransport` | the same over WebTransport besides; with `web` |
//! | `count-alloc`, `leak-track` | what is allocated in each set of a tick; what of it is never freed, by call stack |
//! | `reflect` | `Reflect` on most public components and settings |
//! | `diagnostics` | what the plugins count, as Bevy diagnostics |
//!
//! ```
//! use throng::prelude::*;
//!
//! let mut server = Server::builder().build();
//! let scene = open_scene(server.world_mut(), SceneSpec::default(), ())?;
//! let at = Position(glam::Vec2::splat(10.0));
//! let player = server.world_mut().spawn((Player, PlayerId(1), Object::in_scene(scene), at)).id();
//! server.world_mut().spawn((Npc, Object::in_scene(scene), at));
//! server.step(1);
//! let mut views = bevy_ecs::system::SystemState::<Views>::new(server.world_mut());
//! assert_eq!(views.get(server.world())?.seen_by(player).count(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # One tick
//!
//! ```text
//!           ┌ First · Ingest ─▶ Think ─▶ Navigate ─▶ Move ─▶ Locate ─▶ View ─▶ Heartbeat ─▶ Replicate ─▶ Send · Last ┐
//!  clients ─┘         inbox     crowd,   search in   walk,   grid      enter/   Match        collect,     frames to   └─▶ clients
//!                     budget    scripts  parallel    check   cells     leave,                deltas,      a sink
//!                                                                      caps                  packets
//! ```
//! The sets are [`sim::SimSystems`]; each system's module page has its own picture, invariants and cost.
//!
//! # The folders, in the order of a tick
//!
//! | folder | holds |
//! |---|---|
//! | [`sim`] | the tick itself: sets, heartbeat, clocks, workers, randomness, state hash, timings |
//! | [`world`] | scenes, objects and their ids, kinds, positions, players, teams, parties, guilds |
//! | [`memory`] | what the memory is used for: by module, by set, and what was never freed |
//! | [`map`] | obstacle maps, regions, edits, file formats, the generator |
//! | [`wire`] | bytes to messages and back, in both directions; the page for who writes a client |
//! | [`inbox`] | *Ingest*: messages from clients, bounded |
//! | [`session`] | *Ingest*: who is connected, who plays, and what each controls |
//! | [`instance`] | *Think*: a match's scene, its players in and home again |
//! | [`nav`] | *Navigate*: shortest paths, exact also right after an edit |
//! | [`movement`] | *Move*: walkers on their paths; players' moves checked |
//! | [`aoi`] | *Locate*, *View*: who sees whom, under caps and rules |
//! | [`matchmaking`] | *Heartbeat*: parties into matches |
//! | [`sync`] | *Replicate*: attributes and motion to the clients that may learn them |
//! | [`outbox`] | *Send*: packets, sender threads, sinks |
//! | [`net`] | reliable and unreliable messages over links that lose packets; with the feature `net` sealed, by token, over UDP |
//! | [`directory`] | players that persist: stores, leases, saves |
//! | `diagnostics` | what the plugins count, for whatever shows Bevy diagnostics |
//! | [`server`] | a server ready to run |
//! | [`prelude`] | what an embedder imports |
//! | [`guide`] | how to, a page a task |
#![warn(missing_docs)]
#![cfg_attr(
    not(feature = "server"),
    allow(dead_code, reason = "what only a server calls")
)]

// Derived code names this crate from outside and from inside alike.
extern crate self as throng;

/// What the README shows compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(feature = "server")]
use bevy_app::{PluginGroup, PluginGroupBuilder};

#[cfg(test)]
#[macro_use]
#[path = "../tests/draws.rs"]
mod draws;

#[doc(no_inline)]
pub use throng_core as core;

#[cfg(feature = "server")]
pub mod aoi;
#[cfg(feature = "diagnostics")]
pub mod diagnostics;
#[cfg(feature = "server")]
pub mod directory;
#[cfg(feature = "server")]
pub mod guide;
#[cfg(feature = "server")]
pub mod inbox;
#[cfg(feature = "server")]
pub mod instance;
pub mod map;
#[cfg(feature = "server")]
pub mod matchmaking;
#[cfg(feature = "server")]
pub mod memory;
#[cfg(feature = "server")]
pub mod movement;
#[cfg(feature = "server")]
pub mod nav;
pub mod net;
#[cfg(feature = "server")]
pub mod outbox;
#[cfg(feature = "server")]
pub mod prelude;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod session;
#[cfg(feature = "server")]
pub mod sim;
#[cfg(feature = "server")]
pub mod sync;
pub mod wire;
#[cfg(feature = "server")]
pub mod world;

// Without the feature `server` there is what a client is made of, and of these folders that part.
#[cfg(not(feature = "server"))]
mod memory {
    pub use throng_core::memory::MemoryUse;
}
#[cfg(not(feature = "server"))]
pub use throng_protocol::movement;
#[cfg(all(feature = "net", not(feature = "server")))]
mod sim {
    pub use throng_core::clock;
}
#[cfg(not(feature = "server"))]
pub mod sync {
    //! What a client knows of its surroundings, and how its own object walks ahead of the server.
    pub use throng_protocol::mirror::*;
    pub use throng_protocol::predictor::*;
    pub use throng_protocol::server_clock::*;
}
#[cfg(not(feature = "server"))]
pub mod world {
    //! What players ask their objects to do.
    pub use throng_core::motion::PlayerMotion;
}

/// All systems of a game server.
///
/// | plugin | job | reads | writes |
/// |---|---|---|---|
/// | [`SimPlugin`](sim::SimPlugin) | sets, heartbeat, tick rate | – | [`SimTick`](sim::SimTick) |
/// | [`WorldPlugin`](world::WorldPlugin) | scenes, objects, who belongs to whom | – | [`Object`](world::Object), [`Scenes`](world::Scenes) |
/// | [`MapPlugin`](map::MapPlugin) | obstacle maps and their edits | – | [`SceneMap`](map::SceneMap) |
/// | [`InboxPlugin`](inbox::InboxPlugin) | bounded inbound messages | – | [`Inbox`](inbox::Inbox) |
/// | [`SessionPlugin`](session::SessionPlugin) | clients, logins, inputs | inbox | [`Sessions`](session::Sessions), [`MoveInput`](world::MoveInput) |
/// | [`NavPlugin`](nav::NavPlugin) | path requests | [`PathRequest`](nav::PathRequest), maps | [`Path`](nav::Path) |
/// | [`MovementPlugin`](movement::MovementPlugin) | walkers, players' moves | paths, inputs | [`Position`](world::Position), [`Velocity`](world::Velocity), [`Heading`](world::Heading) |
/// | [`AoiPlugin`](aoi::AoiPlugin) | who sees whom | positions, teams | [`SceneInterest`](aoi::SceneInterest), [`Entered`](aoi::Entered), [`Left`](aoi::Left) |
/// | [`MatchmakingPlugin`](matchmaking::MatchmakingPlugin) | battles out of parties | [`QueueRequest`](matchmaking::QueueRequest) | [`MatchFormed`](matchmaking::MatchFormed) |
/// | [`InstancePlugin`](instance::InstancePlugin) | matches in scenes of their own, once a mode is hosted | [`MatchFormed`](matchmaking::MatchFormed), [`InstanceModes`](instance::InstanceModes) | [`PlayerEntered`](instance::PlayerEntered), [`PlayerReturned`](instance::PlayerReturned) |
/// | [`SyncPlugin`](sync::SyncPlugin) | attributes and motion to clients | views, registered attributes | outbox |
/// | [`OutboxPlugin`](outbox::OutboxPlugin) | frames to a sink | – | [`Outbox`](outbox::Outbox) |
///
/// Each works alone too, in any order with others, and adds those of this table that it cannot do without; what is missing of
/// Bevy is named when the app starts ([`sim::finish`]). So
/// `ThrongPlugins.build().disable::<…>()` leaves out what no other member needs: [`SyncPlugin`](sync::SyncPlugin) (and with it
/// sessions and the outbox), [`MovementPlugin`](movement::MovementPlugin), [`InstancePlugin`](instance::InstancePlugin) (and
/// with it [`MatchmakingPlugin`](matchmaking::MatchmakingPlugin));
/// for less than that, add the plugins that you want one by one. The app brings Bevy's `TaskPoolPlugin` and `TimePlugin`;
/// [`sim::single_threaded`] makes its ticks faster where it has nothing else to do beside them.
#[cfg(feature = "server")]
pub struct ThrongPlugins;

#[cfg(feature = "server")]
impl PluginGroup for ThrongPlugins {
    fn build(self) -> PluginGroupBuilder {
        PluginGroupBuilder::start::<Self>()
            .add(sim::SimPlugin {
                tick_hz: Some(20.0),
            })
            .add(world::WorldPlugin)
            .add(map::MapPlugin)
            .add(inbox::InboxPlugin)
            .add(session::SessionPlugin)
            .add(nav::NavPlugin)
            .add(movement::MovementPlugin)
            .add(aoi::AoiPlugin)
            .add(matchmaking::MatchmakingPlugin)
            .add(instance::InstancePlugin)
            .add(outbox::OutboxPlugin)
            .add(sync::SyncPlugin)
    }
}
