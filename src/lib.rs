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
//! | `png` | maps in PNG files |
//! | `sqlite`, `postgres` | players in a file, or on a Postgres server |
//! | `web` | clients in browsers, over WebSockets |
//! | `webtransport` | clients in browsers over WebTransport, too |
//! | `reflect` | `Reflect` on most public components and settings |
//! | `diagnostics` | the plugins' counters as Bevy diagnostics |
//! | `trace` | a span for each set, system and schedule, through `tracing` |
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
//! | [`net`] | clients over UDP, WebSockets and WebTransport: tokens, encryption, reliable streams |
//! | [`directory`] | players that persist: stores, leases, saves |
//! | `diagnostics` | what the plugins count, for whatever shows Bevy diagnostics |
//! | [`server`] | a server ready to run |
//! | [`prelude`] | what an embedder imports |
//! | [`guide`] | how to, a page a task |
#![warn(missing_docs)]

// Derived code names this crate from outside and from inside alike.
extern crate self as throng;

/// What the README shows compiles.
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
pub mod directory;
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
pub mod sync;
pub mod wire;
pub mod world;

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
pub struct ThrongPlugins;

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
