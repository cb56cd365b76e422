//! **An ECS-based headless simulation server, for games in which thousands of players and NPCs share a world.**
//!
//! Interest management, NPC pathfinding, replication and matchmaking as [Bevy](https://bevy.org) plugins: exact, deterministic,
//! bounded, and benchmarked under synthetic load. Use the whole server ([`ThrongPlugins`], [`server::Server`]), or single
//! plugins in an existing app.
//!
//! ```
//! use throng::prelude::*;
//!
//! let mut server = Server::builder().build();
//! let scene = server.world_mut().spawn(SceneSpec::default()).id();
//! let at = Position(glam::Vec2::splat(10.0));
//! let player = server.world_mut().spawn((Player, PlayerId(1), InScene(scene), at)).id();
//! server.world_mut().spawn((Npc, InScene(scene), at));
//! server.step(1);
//! let mut views = bevy_ecs::system::SystemState::<Views>::new(server.world_mut());
//! assert_eq!(views.get(server.world())?.seen_by(player).count(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where to begin
//!
//! The [`guide`] has one page per task, beginning with [a first server](guide::first_server), and a [glossary](guide::glossary).
//! The page of each module says how to use it, what it guarantees and what it costs. [`wire`] is the specification for clients in
//! other languages. The README describes the program and has figures.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `png` | maps in PNG files |
//! | `sqlite`, `postgres` | players in a file, or on a Postgres server |
//! | `web` | clients in browsers, over WebSockets |
//! | `webtransport` | clients in browsers over WebTransport, too |
//! | `reflect` | `Reflect` on most public components and settings |
//! | `diagnostics` | the plugins' counters as Bevy diagnostics |
//! | `trace` | a span for each set, system and schedule, through `tracing` |
//!
//! # One tick
//!
//! ```text
//!           ┌ First · Ingest ─▶ Think ─▶ Navigate ─▶ Move ─▶ Locate ─▶ View ─▶ Heartbeat ─▶ Replicate ─▶ Send · Last ┐
//!  clients ─┘         inbox     crowd,   search in   walk,   grid      enter/  match-       collect,     packets to  └─▶ clients
//!                     budget    scripts  parallel    check   cells     leave,  making       deltas,      a sink
//!                                                                      caps                 packets
//! ```
//! The system sets are [`sim::SimSystems`].
//!
//! # Modules, in the order of a tick
//!
//! | module | contents |
//! |---|---|
//! | [`sim`] | the tick: system sets, heartbeat, clocks, workers, randomness, state hash, timings |
//! | [`world`] | scenes, objects and their ids, kinds, positions, players, teams, parties, guilds |
//! | [`memory`] | memory use by module and by system set; leaks |
//! | [`map`] | obstacle maps, regions, edits, file formats, the generator |
//! | [`wire`] | messages and their bytes, in both directions |
//! | [`inbox`] | *Ingest*: bounded queues of client messages |
//! | [`session`] | *Ingest*: connected clients, their players, the objects that they control |
//! | [`instance`] | *Think*: a scene per match; moves its players in and back |
//! | [`nav`] | *Navigate*: shortest paths, exact right after every map edit |
//! | [`movement`] | *Move*: walkers follow their paths; players' moves are validated |
//! | [`aoi`] | *Locate*, *View*: which objects each viewer sees, under caps and rules |
//! | [`matchmaking`] | *Heartbeat*: matches from waiting parties |
//! | [`sync`] | *Replicate*: attributes and motion to the clients that may see them |
//! | [`outbox`] | *Send*: packets, sender threads, sinks |
//! | [`net`] | clients over UDP, WebSockets and WebTransport: tokens, encryption, reliable streams |
//! | [`store`] | persistent players: stores, leases, saves |
//! | `diagnostics` | the plugins' counters as Bevy diagnostics |
//! | [`server`] | a server ready to run |
//! | [`prelude`] | the names that most games import |
//! | [`guide`] | one page per task |
#![warn(missing_docs)]

// Derived code uses the name of this crate inside it and outside.
extern crate self as throng;

/// Compiles the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

use bevy_app::{PluginGroup, PluginGroupBuilder};

#[cfg(test)]
#[macro_use]
#[path = "../tests/draws.rs"]
mod draws;

#[doc(no_inline)]
pub use throng_core as core;

pub mod aoi;
#[cfg(feature = "diagnostics")]
pub mod diagnostics;
pub mod guide;
pub mod inbox;
pub mod instance;
pub mod map;
pub mod matchmaking;
pub mod memory;
pub mod movement;
pub mod nav;
pub mod net;
pub mod outbox;
pub mod prelude;
pub mod server;
pub mod session;
pub mod sim;
pub mod store;
pub mod sync;
pub mod wire;
pub mod world;

/// All systems of a game server.
///
/// | plugin | job | reads | writes |
/// |---|---|---|---|
/// | [`SimPlugin`](sim::SimPlugin) | sets, heartbeat, tick rate | – | [`SimTick`](sim::SimTick) |
/// | [`WorldPlugin`](world::WorldPlugin) | scenes, objects, affiliations | – | [`Object`](world::Object), [`Scenes`](world::Scenes) |
/// | [`MapPlugin`](map::MapPlugin) | obstacle maps and their edits | – | [`SceneMap`](map::SceneMap) |
/// | [`InboxPlugin`](inbox::InboxPlugin) | bounded inbound messages | – | [`Inbox`](inbox::Inbox) |
/// | [`SessionPlugin`](session::SessionPlugin) | clients, logins, inputs | inbox | [`Sessions`](session::Sessions), [`MoveInput`](world::MoveInput) |
/// | [`NavPlugin`](nav::NavPlugin) | path requests | [`PathRequest`](nav::PathRequest), maps | [`NavPath`](nav::NavPath) |
/// | [`MovementPlugin`](movement::MovementPlugin) | walkers, players' moves | paths, inputs | [`Position`](world::Position), [`Velocity`](world::Velocity), [`Heading`](world::Heading) |
/// | [`AoiPlugin`](aoi::AoiPlugin) | which objects each viewer sees | positions, teams | [`SceneInterest`](aoi::SceneInterest), [`ViewEntered`](aoi::ViewEntered), [`ViewLeft`](aoi::ViewLeft) |
/// | [`MatchmakingPlugin`](matchmaking::MatchmakingPlugin) | matches of waiting parties | [`QueueRequest`](matchmaking::QueueRequest) | [`MatchFormed`](matchmaking::MatchFormed) |
/// | [`InstancePlugin`](instance::InstancePlugin) | matches in separate scenes, for hosted modes | [`MatchFormed`](matchmaking::MatchFormed), [`InstanceModes`](instance::InstanceModes) | [`InstancePlayerEntered`](instance::InstancePlayerEntered), [`InstancePlayerReturned`](instance::InstancePlayerReturned) |
/// | [`SyncPlugin`](sync::SyncPlugin) | attributes and motion to clients | views, registered attributes | outbox |
/// | [`OutboxPlugin`](outbox::OutboxPlugin) | packets to a sink | – | [`Outbox`](outbox::Outbox) |
///
/// Each plugin also works alone and in any order, and adds the plugins of this table that it needs. If a plugin of Bevy is missing, the
/// app panics at startup with its name ([`sim::finish_plugin`]). Use `ThrongPlugins.build().disable::<…>()` to leave out plugins that no other
/// one needs: [`SyncPlugin`](sync::SyncPlugin) (with sessions and the outbox), [`MovementPlugin`](movement::MovementPlugin),
/// [`InstancePlugin`](instance::InstancePlugin) (with [`MatchmakingPlugin`](matchmaking::MatchmakingPlugin)). For fewer than that, add
/// single plugins. The app adds Bevy's `TaskPoolPlugin` and `TimePlugin`, and sets the tick rate (`Time<Fixed>`, 64 Hz by default); [`sim::single_threaded`] makes ticks faster in an app
/// that runs no other systems in parallel.
pub struct ThrongPlugins;

impl PluginGroup for ThrongPlugins {
    fn build(self) -> PluginGroupBuilder {
        PluginGroupBuilder::start::<Self>()
            .add(sim::SimPlugin::default())
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
