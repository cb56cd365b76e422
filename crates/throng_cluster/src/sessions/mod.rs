//! Sessions of a throng server for the players of its node. A game spawns players in its hooks, and needs no other code for clients.
//!
//! ```text
//! LoggedIn ──▶ is the player here? ── yes ─▶ ControlledBy
//!                └─ no ─▶ ClusterPlayers::log_in ─▶ it arrives ─▶ ControlledBy
//!                                                 └ refused for login_wait_s ─▶ the session ends
//! LoggedOut ─▶ PlayerLogOut, unless the player is frozen
//! a player without a client for client_wait_s ─▶ PlayerLogOut
//! GroupMembersChanged ─▶ PartyExchange ─▶ ForeignMembers ─▶ replication ─▶ PartyExchange ─▶ nodes with other members
//! a session without its player for client_wait_s, whose client no other node takes over ─▶ the session ends
//! ```
//!
//! | file | contains |
//! |---|---|
//! | `attach_node` | connects a node and its gateways to a server |
//! | `client_messages` | passes messages to players on to their clients |
//! | `follow` | the systems |
//! | `groups` | parties and guilds as components of players |
//! | `party_values` | attributes of party members on other nodes |
//! | `moved_tokens` | passes resume tokens on to the nodes that get players |
//! | `stand_still` | frozen players do not move |
//!
//! Invariant: only [`ClusterPlugin`](crate::ClusterPlugin) despawns the object of a player, also when its session ends first: the object has
//! [`OutlivesSession`](throng::session::OutlivesSession). Cost: O(players without a client + sessions without a player) per tick.

mod attach_node;
mod client_messages;
mod follow;
mod groups;
mod moved_tokens;
mod party_values;
mod stand_still;

pub use attach_node::attach_node;
pub use client_messages::ClientMessageChannels;

use std::time::Duration;

use bevy_app::{App, FixedPostUpdate, FixedPreUpdate, FixedUpdate, Plugin};
use bevy_ecs::prelude::*;
use throng::sim::SimSystems;

use self::client_messages::announce_to_clients;
use self::follow::{ClusterSessions, attach_players, end_sessions, note_departure, start_sessions};
use self::groups::{follow_guilds, follow_parties};
use self::moved_tokens::{receive_tokens, send_tokens};
use self::party_values::{publish_members, receive_members};
use self::stand_still::{release_player, stop_player};
use crate::plugin::ClusterSystems;

/// Gives clients that log in, or come from another node, control of their players. Add it to a server with a
/// [`ClusterPlugin`](crate::ClusterPlugin), whose hook [`on_receive`](crate::PlayerHooks::on_receive) spawns players as objects: with
/// `InScene` and `Position`.
///
/// ```
/// use bevy_ecs::prelude::*;
/// use throng::prelude::*;
/// use throng_cluster::{ClusterPlugin, ClusterRecord, ClusterSessionsPlugin, PlayerHooks};
///
/// #[derive(Resource)]
/// struct Town(Entity);
///
/// struct Game;
///
/// impl PlayerHooks for Game {
///     fn on_collect(&self, world: &World, player: Entity) -> Vec<u8> {
///         world.get::<Position>(player).map_or_else(Vec::new, |at| at.0.to_array().map(f32::to_le_bytes).concat())
///     }
///
///     fn on_receive(&self, world: &mut World, player: PlayerId, _: &ClusterRecord) -> Entity {
///         // Read the position from the record here.
///         let place = (InScene(world.resource::<Town>().0), Position::default());
///         world.spawn((Player, player, place, Viewer::default())).id()
///     }
/// }
///
/// let plugins = |app: &mut bevy_app::App| _ = app.add_plugins((ClusterPlugin::new(Game), ClusterSessionsPlugin));
/// let server = Server::builder().plugins(plugins).build();
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ClusterSessionsPlugin;

/// The number of ticks of this time, at least one.
fn ticks(seconds: f32, tick: Duration) -> u64 {
    (f64::from(seconds) / tick.as_secs_f64()).ceil().max(1.0) as u64
}

/// How long sessions and players wait for each other, in seconds of simulated time.
///
/// ```
/// use throng_cluster::ClusterSessionsSettings;
///
/// // A player whose client does not follow it is logged out after 10 s.
/// let settings = ClusterSessionsSettings { client_wait_s: 10.0, ..ClusterSessionsSettings::default() };
/// assert!(settings.login_wait_s < settings.client_wait_s);
/// ```
#[derive(Resource, Clone, Copy, Debug, PartialEq)]
pub struct ClusterSessionsSettings {
    /// How long a player without a client stays, and a client without its player.
    pub client_wait_s: f32,
    /// How long a login is repeated that was refused, because the player is on another node or its node has died.
    pub login_wait_s: f32,
    /// The time between two attempts of such a login.
    pub login_interval_s: f32,
}

impl Default for ClusterSessionsSettings {
    fn default() -> Self {
        Self {
            client_wait_s: 30.0,
            login_wait_s: 5.0,
            login_interval_s: 0.25,
        }
    }
}

impl Plugin for ClusterSessionsPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<ClusterSessionsSettings>()
            .init_resource::<ClusterSessions>()
            .init_resource::<ClientMessageChannels>()
            .add_observer(note_departure)
            .add_observer(stop_player)
            .add_observer(release_player)
            .add_systems(
                FixedPreUpdate,
                (follow_parties, follow_guilds, receive_members)
                    .chain()
                    .after(ClusterSystems::Arrive),
            )
            .add_systems(
                FixedUpdate,
                (
                    end_sessions,
                    start_sessions,
                    attach_players,
                    announce_to_clients,
                )
                    .chain()
                    .after(SimSystems::Ingest)
                    .before(SimSystems::Think),
            )
            .add_systems(FixedUpdate, receive_tokens.before(SimSystems::Ingest))
            .add_systems(
                FixedPostUpdate,
                (send_tokens, publish_members).after(ClusterSystems::Collect),
            );
    }
}
