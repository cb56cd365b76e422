//! Players are collected, and sent away.

use std::collections::BTreeSet;

use bevy_ecs::prelude::*;
use throng_core::ids::PlayerId;

use super::cluster_players::{ClusterPlayers, PresentPlayer, set_frozen};
use super::hooks::{LeaveReason, PlayerHooks, SharedHooks};
use crate::ids::NodeRun;
use crate::request::RefusedWrite;

/// A player goes to another node. It is frozen from now on. If the node is not alive, or the player not here, nothing happens.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::PlayerMove;
/// use throng_core::ids::PlayerId;
///
/// fn enter_portal(player: PlayerId, mut moves: MessageWriter<PlayerMove>) {
///     moves.write(PlayerMove { player, to: "dungeon-1".to_owned() });
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct PlayerMove {
    /// The player.
    pub player: PlayerId,
    /// The name of the node.
    pub to: String,
}

/// A player logs out: it is saved and given up.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::PlayerLogOut;
/// use throng_core::ids::PlayerId;
///
/// fn log_out(player: PlayerId, mut log_outs: MessageWriter<PlayerLogOut>) {
///     log_outs.write(PlayerLogOut(player));
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerLogOut(
    /// The player.
    pub PlayerId,
);

/// The login of a player was refused: it is on another node, or was on one that is late and whose players may be claimed soon.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::PlayerLoginRefused;
///
/// fn log(mut refused: MessageReader<PlayerLoginRefused>) {
///     for it in refused.read() {
///         println!("player {} cannot log in here: {:?}", it.player.0, it.reason);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerLoginRefused {
    /// The player.
    pub player: PlayerId,
    /// Why.
    pub reason: RefusedWrite,
}

/// Two players have exchanged something in this tick: both are saved together.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::PlayerExchange;
/// use throng_core::ids::PlayerId;
///
/// /// Call this in the tick in which a trade is done: a failure keeps both sides of it or none.
/// fn trade(seller: PlayerId, buyer: PlayerId, mut exchanges: MessageWriter<PlayerExchange>) {
///     exchanges.write(PlayerExchange([seller, buyer]));
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerExchange(
    /// The players.
    pub [PlayerId; 2],
);

/// The requests of a tick.
struct TickRequests {
    exchanges: Vec<[PlayerId; 2]>,
    moves: Vec<(PlayerId, NodeRun)>,
    log_outs: Vec<PlayerId>,
}

/// Writes what players are into their records, and sends those away that go.
pub(super) fn collect_players(world: &mut World) {
    let SharedHooks {
        hooks,
        collect_interval_ticks,
    } = world.resource::<SharedHooks>().clone();
    let requests = take_requests(world);
    let players = world.resource::<ClusterPlayers>();
    let Some(driver) = &players.driver else {
        return;
    };
    let interval = u64::from(collect_interval_ticks);
    let is_due = |player: PlayerId| (player.0 % interval) == players.ticks % interval;
    let exchanging = requests.exchanges.iter().flatten().copied();
    let moving = requests.moves.iter().map(|(player, _)| *player);
    let leaving = requests.log_outs.iter().copied();
    let due = players.players().filter(|player| is_due(*player));
    let collected: BTreeSet<PlayerId> =
        exchanging.chain(moving).chain(leaving).chain(due).collect();
    let mut records = Vec::new();
    for player in collected {
        let bytes = players.present.get(&player);
        records.extend(bytes.and_then(|present| collect(world, &*hooks, player, present)));
    }
    let mut leaving = Vec::new();
    driver.with_node(|node, now_ms| {
        for &players in &requests.exchanges {
            // What they have is written below; from now on they are saved together.
            node.exchange(players, now_ms, |_| ());
        }
        for (player, bytes) in records {
            if node
                .state(player, now_ms)
                .is_some_and(|known| known != bytes)
                && let Some(record) = node.edit(player, now_ms)
            {
                *record = bytes;
            }
        }
        for &(player, to) in &requests.moves {
            if node.begin_move(player, to, now_ms) {
                leaving.push((player, LeaveReason::Moved, Some(to)));
            }
        }
        for &player in &requests.log_outs {
            if node.log_out(player) {
                leaving.push((player, LeaveReason::LoggedOut, None));
            }
        }
    });
    for (player, reason, to) in leaving {
        set_frozen(world, player, true);
        let mut players = world.resource_mut::<ClusterPlayers>();
        if let Some(present) = players.present.get_mut(&player) {
            (present.leaves, present.moves_to) = (Some(reason), to);
        }
    }
}

fn take_requests(world: &mut World) -> TickRequests {
    let moves = take::<PlayerMove>(world);
    let log_outs = take::<PlayerLogOut>(world).into_iter();
    let exchanges = take::<PlayerExchange>(world).into_iter();
    let players = world.resource::<ClusterPlayers>();
    let run_of = |to: &str| {
        let run = players.driver.as_ref()?.node_named(to);
        if run.is_none() {
            tracing::warn!(to, "player not moved: no node of that name is alive");
        }
        run
    };
    let moves = moves
        .iter()
        .filter_map(|request| Some((request.player, run_of(&request.to)?)));
    TickRequests {
        exchanges: exchanges.map(|exchange| exchange.0).collect(),
        log_outs: log_outs.map(|log_out| log_out.0).collect(),
        moves: moves.collect(),
    }
}

fn take<M: Message>(world: &mut World) -> Vec<M> {
    world.resource_mut::<Messages<M>>().drain().collect()
}

/// What a player is now; `None` if its entity is gone.
fn collect(
    world: &World,
    hooks: &dyn PlayerHooks,
    player: PlayerId,
    present: &PresentPlayer,
) -> Option<(PlayerId, Vec<u8>)> {
    world.get_entity(present.entity).ok()?;
    // A frozen player is not changed.
    (!present.is_frozen).then(|| (player, hooks.on_collect(world, present.entity)))
}
