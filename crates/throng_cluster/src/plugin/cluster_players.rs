//! The players of a node: the driver, and the entities of players.

use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::prelude::*;
use throng_core::ids::PlayerId;

use super::hooks::LeaveReason;
use crate::driver::NodeDriver;
#[cfg(feature = "server")]
use crate::ids::ClusterNodeId;
use crate::ids::NodeRun;
use crate::node::NodeStats;

/// The player of an entity.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::ClusterPlayer;
///
/// fn count(players: Query<&ClusterPlayer>) {
///     println!("{} players are on this node", players.iter().count());
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(immutable)]
pub struct ClusterPlayer(pub PlayerId);

/// The player moves to another node or logs out, or the node has paused: the game must not change it. If it stays after all, this is removed.
/// With `ClusterSessionsPlugin` (feature `server`) it stands still meanwhile: its `MaxSpeed` is 0.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::{ClusterPlayer, FrozenPlayer};
///
/// #[derive(Component)]
/// struct Gold(u32);
///
/// /// A frozen player earns nothing: its record may be written already.
/// fn pay(mut players: Query<&mut Gold, (With<ClusterPlayer>, Without<FrozenPlayer>)>) {
///     players.iter_mut().for_each(|mut gold| gold.0 += 1);
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, Default)]
pub struct FrozenPlayer;

/// A player in this app.
#[derive(Clone, Copy, Debug)]
pub(super) struct PresentPlayer {
    pub entity: Entity,
    /// The run of the node, and the epoch, with which it arrived.
    pub arrival: (u64, u64),
    pub is_frozen: bool,
    /// Why it leaves, if it moves or logs out.
    pub leaves: Option<LeaveReason>,
    /// The run that it goes to, if it moves.
    pub moves_to: Option<NodeRun>,
}

/// Requests of ticks at whose end the node had paused. They are handled when it goes on, because records can be written only then.
#[derive(Debug, Default)]
pub(super) struct PostponedRequests {
    pub exchanges: BTreeSet<[PlayerId; 2]>,
    pub log_outs: BTreeSet<PlayerId>,
}

/// The players of this node.
#[derive(Resource, Debug, Default)]
pub struct ClusterPlayers {
    pub(super) driver: Option<NodeDriver>,
    pub(super) present: BTreeMap<PlayerId, PresentPlayer>,
    pub(super) ticks: u64,
    /// Counts arrivals and departures.
    pub(super) changes: u64,
    pub(super) postponed: PostponedRequests,
}

impl ClusterPlayers {
    /// Connects the app to a node: its players arrive in the app. Returns the former node, if there was one.
    pub fn open(&mut self, driver: NodeDriver) -> Option<NodeDriver> {
        self.driver.replace(driver)
    }

    /// Disconnects the app from the node. In the next tick, all players leave as [`LeaveReason::Lost`]. Move them or log them out before.
    pub fn close(&mut self) -> Option<NodeDriver> {
        self.driver.take()
    }

    /// The node.
    #[must_use]
    pub const fn driver(&self) -> Option<&NodeDriver> {
        self.driver.as_ref()
    }

    /// Claims a player without an owner whose client has logged in here. It arrives in a later tick. `false` without a node.
    pub fn log_in(&self, player: PlayerId) -> bool {
        let driver = self.driver.as_ref();
        driver
            .map(|driver| driver.with_node(|node, _| node.log_in(player)))
            .is_some()
    }

    /// The entity of a player of this node. O(log n).
    #[must_use]
    pub fn entity(&self, player: PlayerId) -> Option<Entity> {
        self.present.get(&player).map(|present| present.entity)
    }

    /// The players with an entity, in ascending order.
    pub fn players(&self) -> impl Iterator<Item = PlayerId> {
        self.present.keys().copied()
    }

    /// Whether the tick may change a player: it is here, and not frozen.
    pub(super) fn is_free(&self, player: PlayerId) -> bool {
        let present = self.present.get(&player);
        present.is_some_and(|present| !present.is_frozen)
    }

    /// Whether messages to a player are handled by this app. A player that leaves has none: what they change would not go with it.
    pub(super) fn takes_messages(&self, player: PlayerId) -> bool {
        let present = self.present.get(&player);
        present.is_some_and(|present| present.leaves.is_none())
    }

    /// Whether a player is here, and leaves because it was logged out.
    #[cfg(feature = "server")]
    pub(crate) fn is_logging_out(&self, player: PlayerId) -> bool {
        let present = self.present.get(&player);
        present.is_some_and(|present| present.leaves == Some(LeaveReason::LoggedOut))
    }

    /// Changes with each arrival and departure.
    #[cfg(feature = "server")]
    pub(crate) const fn version(&self) -> u64 {
        self.changes
    }

    /// The epoch with which a player has arrived, and the node that it is about to move to.
    #[cfg(feature = "server")]
    pub(crate) fn stay(&self, player: PlayerId) -> Option<(u64, Option<ClusterNodeId>)> {
        let present = self.present.get(&player)?;
        let (_, epoch) = present.arrival;
        Some((epoch, present.moves_to.map(|run| run.node)))
    }

    /// The players that are about to move, with the runs of the nodes that get them, in ascending order.
    #[cfg(feature = "server")]
    pub(crate) fn moving(&self) -> impl Iterator<Item = (PlayerId, NodeRun)> {
        let players = self.present.iter();
        players.filter_map(|(player, present)| Some((*player, present.moves_to?)))
    }

    /// Counters of the node.
    #[must_use]
    pub fn stats(&self) -> NodeStats {
        let driver = self.driver.as_ref();
        driver.map_or_else(NodeStats::default, |driver| {
            driver.with_node(|node, _| node.stats())
        })
    }
}

/// Freezes or unfreezes the entity of a player.
pub(super) fn set_frozen(world: &mut World, player: PlayerId, is_frozen: bool) {
    let mut players = world.resource_mut::<ClusterPlayers>();
    let Some(present) = players.present.get_mut(&player) else {
        return;
    };
    if present.is_frozen == is_frozen {
        return;
    }
    present.is_frozen = is_frozen;
    if !is_frozen {
        // Its move has failed, or the pause is over.
        (present.leaves, present.moves_to) = (None, None);
    }
    let entity = present.entity;
    if let Ok(mut entity) = world.get_entity_mut(entity) {
        if is_frozen {
            entity.insert(FrozenPlayer);
        } else {
            entity.remove::<FrozenPlayer>();
        }
    }
}
