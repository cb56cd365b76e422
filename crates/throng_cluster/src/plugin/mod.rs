//! The players of a node in a Bevy app.
//!
//! ```text
//! FixedPreUpdate   [Scenes]  scenes of this node ─▶ ClusterScenes · SceneAssigned, SceneRemoved
//!                  [Arrive]  players of this node ─▶ on_leave, despawn · on_receive, on_arrive · FrozenPlayer, PlayerLoginRefused
//!                            ClusterGroups · PlayerGroupChanged, GroupMembersChanged, GroupChangeFinished
//!                  [Deliver] PlayerMessageReceived · ClusterAnnounced · PlayerLookedUp
//! FixedUpdate      the game
//! FixedPostUpdate  [Collect] on_collect ─▶ records · PlayerExchange · PlayerMove · PlayerLogOut
//! ```
//!
//! | file | contains |
//! |---|---|
//! | `hooks` | the hooks of a game for its players |
//! | `cluster_players` | the resource with the driver and the entities of players |
//! | `cluster_scenes` | the scenes of this node, and the nodes of the others |
//! | `arrive` | spawns and despawns players |
//! | `collect` | collects the states of players; handles moves, exchanges and log-outs |
//! | `matches` | tickets and matches, as messages |
//! | `groups` | the parties and guilds of the players of this node |
//! | `player_messages` | messages to players, and announcements |
//! | `player_lookups` | the saved states of players on any node |
//!
//! Invariants: after Arrive, there is exactly one entity for each player that the node holds, and none for other players. It was spawned from the
//! record of its arrival. If the game sends [`PlayerExchange`] in the tick of the exchange, both sides are saved together.
//!
//! While the node pauses, because it cannot reach the store, all its players are frozen and [`ClusterScenes::running`] is empty. Exchanges and
//! log-outs of a tick at whose end the node has paused are handled when it goes on.
//!
//! If a reply of the store is late, a player may arrive before the scene in its record is assigned to this node. `on_receive` has to keep such a
//! player out of the world until then. Put systems that open scenes between [`ClusterSystems::Scenes`] and [`ClusterSystems::Arrive`].
//!
//! Cost: O(players of the node) per tick, O(scenes of the cluster) when the list of scenes or nodes has changed, and one call of `on_collect` per
//! player every [`ClusterPlugin::collect_interval_ticks`].

mod arrive;
mod cluster_players;
mod cluster_scenes;
mod collect;
mod groups;
mod hooks;
mod matches;
mod player_lookups;
mod player_messages;

pub use cluster_players::{ClusterPlayer, ClusterPlayers, FrozenPlayer};
pub use cluster_scenes::{ClusterScenes, SceneAssigned, ScenePlace, SceneRemoved};
pub use collect::{PlayerExchange, PlayerLogOut, PlayerLoginRefused, PlayerMove};
pub use groups::{
    ClusterGroups, GroupChangeFinished, GroupChangeRequest, GroupMembersChanged,
    GroupMessageRequest, PlayerGroupChanged,
};
pub use hooks::{LeaveReason, PlayerHooks};
pub use matches::{
    MatchAssigned, MatchClosed, MatchEnded, MatchOpened, MatchReport, MatchStep, MatchTicket,
    MatchTicketCancel, MatchTicketChanged, MatchTicketInvalid, NoMatchElsewhere,
};
pub use player_lookups::{PlayerLookedUp, PlayerLookups};
pub use player_messages::{
    ClusterAnnounced, ClusterAnnouncement, PlayerMessageReceived, PlayerMessageRequest,
};

use std::sync::Arc;

use bevy_app::{App, FixedPostUpdate, FixedPreUpdate, Plugin};
use bevy_ecs::prelude::*;

use self::hooks::SharedHooks;

/// Adds the players of a node to an app. Nothing happens until [`ClusterPlayers::open`] is called with a running node.
#[derive(Clone)]
pub struct ClusterPlugin {
    hooks: Arc<dyn PlayerHooks>,
    /// The number of ticks between two collections of a player. It is also collected when it moves, exchanges something or logs out.
    pub collect_interval_ticks: u32,
}

/// The steps of a tick.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClusterSystems {
    /// Scenes are assigned and removed: in `FixedPreUpdate`, before `Arrive`.
    Scenes,
    /// Players arrive and leave: in `FixedPreUpdate`.
    Arrive,
    /// Messages of other nodes and looked-up players arrive: in `FixedPreUpdate`, after `Arrive`.
    Deliver,
    /// Messages are sent, and players are collected and sent away: in `FixedPostUpdate`.
    Collect,
}

impl std::fmt::Debug for ClusterPlugin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ClusterPlugin")
            .field("collect_interval_ticks", &self.collect_interval_ticks)
            .finish_non_exhaustive()
    }
}

impl ClusterPlugin {
    /// The plugin with the hooks of a game. Players are collected every 20 ticks.
    #[must_use]
    pub fn new(hooks: impl PlayerHooks) -> Self {
        Self {
            hooks: Arc::new(hooks),
            collect_interval_ticks: 20,
        }
    }
}

impl Plugin for ClusterPlugin {
    fn build(&self, app: &mut App) {
        app.insert_resource(SharedHooks {
            hooks: self.hooks.clone(),
            collect_interval_ticks: self.collect_interval_ticks.max(1),
        })
        .init_resource::<ClusterPlayers>()
        .init_resource::<ClusterScenes>()
        .init_resource::<PlayerLookups>()
        .add_message::<PlayerMove>()
        .add_message::<PlayerLogOut>()
        .add_message::<PlayerExchange>()
        .add_message::<PlayerLoginRefused>()
        .add_message::<SceneAssigned>()
        .add_message::<SceneRemoved>()
        .add_message::<PlayerMessageRequest>()
        .add_message::<PlayerMessageReceived>()
        .add_message::<ClusterAnnouncement>()
        .add_message::<ClusterAnnounced>()
        .add_message::<PlayerLookedUp>()
        .configure_sets(
            FixedPreUpdate,
            (
                ClusterSystems::Scenes,
                ClusterSystems::Arrive,
                ClusterSystems::Deliver,
            )
                .chain(),
        )
        .add_systems(
            FixedPreUpdate,
            (
                cluster_scenes::follow_scenes.in_set(ClusterSystems::Scenes),
                arrive::arrive_players.in_set(ClusterSystems::Arrive),
                (
                    player_messages::deliver_messages,
                    player_lookups::take_records,
                )
                    .chain()
                    .in_set(ClusterSystems::Deliver),
            ),
        )
        .add_plugins((matches::add_matches, groups::add_groups))
        .add_systems(
            FixedPostUpdate,
            (
                player_messages::send_messages,
                player_lookups::request_records,
                collect::collect_players,
            )
                .chain()
                .in_set(ClusterSystems::Collect),
        );
    }
}
